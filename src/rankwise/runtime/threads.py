"""Number of threads of BLAS and OpenMP.

Threads of BLAS and OpenMP wait for each other in a busy loop. While other programs run, the waiting
threads take the cores from the threads that they wait for: two threads can then be much slower than
one. So every public call that computes runs in one thread (`single_threaded`). Only large steps, in
which a second thread gains at least a factor of 1.5 on an idle machine, use as many threads as
there are idle cores (`allow_threads`), and never more than the user has set.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

S = TypeVar("S")

T = TypeVar("T")

#: Multiplications of a large step, such as a product of two matrices of 1,000 × 1,000.
LARGE_STEP = 2**30

#: Seconds to wait before each reading of the load average; short-lived processes drop out.
LOAD_SAMPLES = (0.0, 0.001, 0.001)

#: Multiplications that take as long as one entry of X while a tree grows.
ENTRY_OF_TREE = 512

_lock = threading.RLock()

_requested: dict[int, int] = {}  # number of threads that each Python thread requests for BLAS

_blas_limits: list[tuple[Any, int]] = []  # pools of BLAS with the numbers that the user has set

_thread_local = threading.local()  # OpenMP has a number of threads for each Python thread

_workers: set[int] = set()  # Python threads of `map_in_threads` that compute

_pools: tuple[int, list[Any]] = (0, [])  # number of loaded modules, and their pools of threads


@contextmanager
def limit_threads(n_threads: int) -> Iterator[None]:
    """A context in which BLAS and OpenMP use at most `n_threads` threads.

    The limit holds for this Python thread and, since BLAS has one limit for the process, for all
    other Python threads that use BLAS. Entering takes ten microseconds, and almost nothing inside
    another context of the same number.
    """
    outer_limit = getattr(_thread_local, "limit", None)
    if n_threads == outer_limit:
        yield
        return
    try:
        _request_threads(n_threads)
        yield
    finally:
        _request_threads(outer_limit)


single_threaded = limit_threads(1)  # the decorator of every public function that computes


def _request_threads(n_threads: int | None) -> None:
    """Set the limit of this Python thread; None restores what the user has set."""
    pools = _find_pools()
    with _lock:
        if not _requested:
            _blas_limits[:] = [(p, p.num_threads) for p in pools if p.user_api == "blas"]
        if getattr(_thread_local, "limit", None) is None:
            _thread_local.openmp_limits = [
                (p, p.num_threads) for p in pools if p.user_api == "openmp"
            ]
        if n_threads is None:
            _requested.pop(threading.get_ident(), None)
        else:
            _requested[threading.get_ident()] = n_threads
        _thread_local.limit = n_threads
        _limit_pools(_blas_limits, min(_requested.values(), default=None))
        _limit_pools(_thread_local.openmp_limits, n_threads)


def _find_pools() -> list[Any]:
    """Pools of threads of the loaded libraries; searched again if modules were imported since."""
    global _pools
    n_modules = len(sys.modules)
    if _pools[0] != n_modules:
        import scipy.linalg  # noqa: F401  # loads its BLAS
        from threadpoolctl import ThreadpoolController  # the search takes milliseconds

        _pools = (len(sys.modules), ThreadpoolController().lib_controllers)
    return _pools[1]


def _limit_pools(user_limits: list[tuple[Any, int]], limit: int | None) -> None:
    """Limit pools to `limit` threads and to the numbers of the user; None: the latter only."""
    for pool, user_limit in user_limits:
        n_threads = user_limit if limit is None else min(limit, user_limit)
        pool.set_num_threads(n_threads)
        if hasattr(pool, "clear_controlling_thread"):
            pool.clear_controlling_thread()  # so that another Python thread can set the number


def _forget_other_threads() -> None:
    """In a forked process, drop the limits of threads that only exist in the parent process."""
    try:
        this_thread = threading.get_ident()
        _workers.intersection_update({this_thread})
        missing_threads = _requested.keys() - {this_thread}
        for thread in missing_threads:
            del _requested[thread]
        if missing_threads:
            _limit_pools(_blas_limits, min(_requested.values(), default=None))
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
    """A context for a step of a single-threaded call; a large step may use idle cores."""
    if n_multiplications < LARGE_STEP:
        return nullcontext()
    return limit_threads(n_threads_for(n_multiplications))


def n_threads_for(n_multiplications: float) -> int:
    """Number of threads for a step with this many multiplications; 1 unless it is large."""
    if n_multiplications < LARGE_STEP:
        return 1
    n_cores = os.cpu_count() or 1
    n_running = 1
    with suppress(AttributeError, OSError):  # systems other than Linux
        n_cores = len(os.sched_getaffinity(0))
        n_running = min(count_running_threads(delay) for delay in LOAD_SAMPLES)
    n_busy = max(n_running, len(_workers))
    n_idle = n_cores - n_busy + 1  # the core of this thread is available
    return min(n_cores, max(1, n_idle))


def count_running_threads(delay: float) -> int:
    """Number of running threads of all programs, including this one, after a delay in seconds."""
    time.sleep(delay)
    with open("/proc/loadavg", encoding="ascii") as file:
        running_and_total = file.read().split()[3]
    return int(running_and_total.partition("/")[0]) - count_spinning_threads()


def count_spinning_threads() -> int:
    """Number of running threads of BLAS and OpenMP in this process.

    They spin for a while after a product, so their cores are available. Python threads are not
    counted, since they may compute.
    """
    python_threads = {thread.native_id for thread in threading.enumerate()}
    n_spinning = 0
    for task in os.scandir("/proc/self/task"):
        if int(task.name) in python_threads:
            continue
        with suppress(OSError), open(f"{task.path}/stat", encoding="utf-8") as file:
            n_spinning += ") R " in file.read()  # OSError if the thread has ended meanwhile
    return n_spinning


def map_in_threads(
    function: Callable[[list[S]], T],
    parts: list[S],
    n_multiplications: float,
    *,
    one_by_one: bool = False,
) -> list[T]:
    """Apply a function to runs of consecutive parts, each run in a thread of its own.

    Parameters
    ----------
    function : callable
        Takes a list of parts. It runs with one thread of BLAS, so no thread waits for another.
    parts : list
        Parts of the work.
    n_multiplications : float
        Size of the whole step; a small step is one run.
    one_by_one : bool, default=False
        Whether each part is a run, for parts that take unequal time; by default there is one run
        for each idle core.

    Returns
    -------
    list
        Results of the runs in the order of the parts.
    """

    @single_threaded
    def compute(run: list[S]) -> T:
        _workers.add(threading.get_ident())
        try:
            return function(run)
        finally:
            _workers.discard(threading.get_ident())

    n_threads = min(n_threads_for(n_multiplications), len(parts))
    if _requested:  # in a single-threaded call: no more threads than the user has set
        user_limit = max((limit for _, limit in _blas_limits), default=1)
        n_threads = min(n_threads, user_limit)
    if n_threads <= 1:
        return [function(parts)]
    n_runs = len(parts) if one_by_one else n_threads
    bounds = [len(parts) * k // n_runs for k in range(n_runs + 1)]
    runs = [parts[start:stop] for start, stop in itertools.pairwise(bounds)]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(compute, runs))
