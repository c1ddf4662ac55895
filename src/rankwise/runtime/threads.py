"""Number of threads of BLAS and OpenMP.

Threads of BLAS and OpenMP busy-wait. On a busy machine the waiting threads occupy the cores of the
threads that they wait for, and two threads can be much slower than one. Every public call that
computes therefore runs in one thread (`single_threaded`). Only large steps, where a second thread
gains at least a factor of 1.5 on an idle machine, use as many threads as there are idle cores
(`allow_threads`), and never more than the user has set.

The last bits of a decomposition depend on its number of threads, and by default therefore on the
load of the machine. If the environment sets the number of threads (`THREAD_VARIABLES`), large steps
use that number on a busy machine, too, so that results do not depend on the load. Sums computed by
rankwise itself depend on the shape of the data only.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import LibController

S = TypeVar("S")

T = TypeVar("T")

#: Multiplications of a large step, such as a product of two matrices of 1,000 × 1,000.
LARGE_STEP = 2**30

#: Seconds to wait before each reading of the load average; short-lived processes drop out.
LOAD_SAMPLES = (0.0, 0.001, 0.001)

#: Multiplications that take as long as one entry of X while a tree grows.
ENTRY_OF_TREE = 512

#: Environment variables that set the number of threads of OpenMP and BLAS.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class PoolLimit(NamedTuple):
    """A pool of threads of a library, and the number of threads that the user has set for it."""

    pool: LibController
    user_limit: int


class LoadedPools(NamedTuple):
    """Thread pools that existed when `n_modules` modules were imported."""

    n_modules: int
    pools: list[LibController]


def read_fixed_threads(environment: Mapping[str, str]) -> int | None:
    """The smallest number of threads that environment variables set; None if none is set."""
    numbers = []
    for variable in THREAD_VARIABLES:
        # "4,2" is 4 threads, each of which may start 2
        first_level = environment.get(variable, "").partition(",")[0].strip()
        if first_level.isdecimal() and int(first_level) > 0:
            numbers.append(int(first_level))
    return min(numbers, default=None)


#: Number of threads of large steps if the user has fixed it before Python was started.
FIXED_THREADS = read_fixed_threads(os.environ)

_lock = threading.RLock()

_blas_requests: dict[int, int] = {}  # number of threads that each Python thread requests

_blas_limits: list[PoolLimit] = []  # pools of BLAS, and the numbers that the user has set

_thread_local = threading.local()  # OpenMP has a number of threads for each Python thread

_workers: set[int] = set()  # Python threads of `map_in_threads` that compute

_loaded = LoadedPools(0, [])


@contextmanager
def limit_threads(n_threads: int) -> Iterator[None]:
    """Context manager that limits BLAS and OpenMP to at most `n_threads` threads.

    The limit holds for this Python thread and, since BLAS has one limit for the process, for all
    other Python threads that use BLAS. Entering takes ten microseconds, and much less inside
    another context of the same number.
    """
    limit_of_caller = getattr(_thread_local, "limit", None)  # of an enclosing limit_threads
    if n_threads == limit_of_caller:
        yield
        return
    try:
        _set_thread_limit(n_threads)
        yield
    finally:
        _set_thread_limit(limit_of_caller)


single_threaded = limit_threads(1)  # the decorator of every public function that computes


def _set_thread_limit(n_threads: int | None) -> None:
    """Set the limit of this Python thread; None restores what the user has set."""
    pools = _find_pools()
    this_thread = threading.get_ident()
    with _lock:
        # Before the first limit, remember the numbers that the user has set. The pools of BLAS are
        # limited while any Python thread requests it.
        if not _blas_requests:
            _blas_limits[:] = _user_limits(pools, "blas")
        if getattr(_thread_local, "limit", None) is None:
            _thread_local.openmp_limits = _user_limits(pools, "openmp")

        if n_threads is None:
            _blas_requests.pop(this_thread, None)
        else:
            _blas_requests[this_thread] = n_threads
        _thread_local.limit = n_threads

        # All Python threads share the pools of BLAS, so the smallest request counts; each has its
        # own number for OpenMP.
        smallest_request = min(_blas_requests.values(), default=None)
        _limit_pools(_blas_limits, smallest_request)
        _limit_pools(_thread_local.openmp_limits, n_threads)


def _user_limits(pools: list[LibController], user_api: str) -> list[PoolLimit]:
    """The current limits of the pools of BLAS, or of OpenMP."""
    return [PoolLimit(pool, pool.num_threads) for pool in pools if pool.user_api == user_api]


def _find_pools() -> list[LibController]:
    """Pools of threads of the loaded libraries; searched again if modules were imported since."""
    global _loaded
    n_modules = len(sys.modules)
    if _loaded.n_modules != n_modules:  # a new module may have loaded a library
        import scipy.linalg  # noqa: F401  # loads its BLAS
        from threadpoolctl import ThreadpoolController  # the search takes milliseconds

        pools = ThreadpoolController().lib_controllers
        _loaded = LoadedPools(len(sys.modules), pools)
    return _loaded.pools


def _limit_pools(user_limits: list[PoolLimit], limit: int | None) -> None:
    """Limit pools to `limit` threads and to the numbers of the user; None: the latter only."""
    for pool, user_limit in user_limits:
        n_threads = user_limit
        if limit is not None:
            n_threads = min(limit, user_limit)
        pool.set_num_threads(n_threads)
        if hasattr(pool, "clear_controlling_thread"):
            pool.clear_controlling_thread()  # so that another Python thread can set the number


def _forget_other_threads() -> None:
    """In a forked process, drop the limits of threads that only exist in the parent process."""
    try:
        this_thread = threading.get_ident()  # the only one of a forked process
        _workers.intersection_update({this_thread})
        missing_threads = _blas_requests.keys() - {this_thread}
        for thread in missing_threads:
            del _blas_requests[thread]
        if missing_threads:
            smallest_request = min(_blas_requests.values(), default=None)
            _limit_pools(_blas_limits, smallest_request)
    finally:
        _lock.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    # A lock that another thread holds during a fork is never released in the child process.
    os.register_at_fork(
        before=_lock.acquire,
        after_in_parent=_lock.release,
        after_in_child=_forget_other_threads,
    )


def allow_threads(n_multiplications: float) -> AbstractContextManager[None]:
    """Context manager for a step of a single-threaded call; large steps use several threads."""
    if n_multiplications < LARGE_STEP:
        return nullcontext()
    return limit_threads(n_threads_for(n_multiplications))


def n_threads_for(n_multiplications: float) -> int:
    """Number of threads for a step with this many multiplications; 1 unless it is large.

    The number that the environment sets (1 inside `map_in_threads`), else the number of idle cores.
    """
    if n_multiplications < LARGE_STEP:
        return 1
    if FIXED_THREADS is None:
        return count_idle_cores()
    is_worker = threading.get_ident() in _workers
    if is_worker:  # the other cores run other workers
        return 1
    return FIXED_THREADS


def count_idle_cores() -> int:
    """Number of cores that no other thread uses, including the core of this thread."""
    n_cores = os.cpu_count() or 1
    n_running_threads = 1
    with suppress(AttributeError, OSError):  # systems other than Linux
        n_cores = len(os.sched_getaffinity(0))
        n_running_threads = min(count_running_threads(delay) for delay in LOAD_SAMPLES)
    n_busy_cores = max(n_running_threads, len(_workers))
    n_idle_cores = n_cores - n_busy_cores + 1  # this thread runs, too, and its core is available
    return min(n_cores, max(1, n_idle_cores))


def count_running_threads(delay: float) -> int:
    """Number of running threads of all programs, including this one, after a delay in seconds."""
    time.sleep(delay)
    with open("/proc/loadavg", encoding="ascii") as file:
        running_and_total = file.read().split()[3]  # "0.20 0.18 0.12 1/80 11206": here "1/80"
    n_running, _, _ = running_and_total.partition("/")
    return int(n_running) - count_spinning_threads()


def count_spinning_threads() -> int:
    """Number of running threads of BLAS and OpenMP in this process.

    They spin for a while after a product, so their cores are available. Python threads are not
    counted, since they may compute.
    """
    python_threads = {thread.native_id for thread in threading.enumerate()}
    n_spinning = 0
    for task in os.scandir("/proc/self/task"):
        is_python_thread = int(task.name) in python_threads
        if is_python_thread:
            continue
        try:
            with open(f"{task.path}/stat", encoding="utf-8") as file:
                is_running = ") R " in file.read()  # "number (name) state …", R for running
        except OSError:  # the thread has ended meanwhile
            is_running = False
        if is_running:
            n_spinning += 1
    return n_spinning


def map_in_threads(
    function: Callable[[list[S]], T],
    tasks: list[S],
    n_multiplications: float,
    *,
    one_by_one: bool = False,
) -> list[T]:
    """Apply a function to runs of consecutive tasks, in several threads.

    Parameters
    ----------
    function : callable
        Takes a list of tasks. It runs with one thread of BLAS, so no thread waits for another.
    tasks : list
        Tasks that are independent of each other.
    n_multiplications : float
        Size of the whole step; the tasks of a small step are one run.
    one_by_one : bool, default=False
        Whether each task is a run, for tasks that take unequal time; by default there is one run
        for each thread.

    Returns
    -------
    list
        Results of the runs, in the order of the tasks.
    """

    @single_threaded
    def compute_in_worker(run: list[S]) -> T:
        _workers.add(threading.get_ident())
        try:
            return function(run)
        finally:
            _workers.discard(threading.get_ident())

    if n_multiplications < LARGE_STEP:
        return [function(tasks)]

    n_threads = min(n_threads_for(n_multiplications), len(tasks))
    if _blas_requests:  # in a single-threaded call: no more threads than the user has set
        user_limit = max((blas.user_limit for blas in _blas_limits), default=1)
        n_threads = min(n_threads, user_limit)
    if n_threads <= 1:
        return [function(tasks)]
    # one call of the function computes a run of consecutive tasks
    n_runs = n_threads
    if one_by_one:
        n_runs = len(tasks)
    run_bounds = [len(tasks) * number // n_runs for number in range(n_runs + 1)]
    runs = [tasks[start:stop] for start, stop in itertools.pairwise(run_bounds)]
    with ThreadPoolExecutor(n_threads) as executor:
        return list(executor.map(compute_in_worker, runs))
