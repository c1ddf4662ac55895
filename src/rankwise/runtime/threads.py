"""What the machine has to give: threads, memory, and a line on the terminal.

**Threads.** The threads of BLAS and OpenMP wait for each other in a loop that never sleeps. While
other programs run, they take the cores from the very threads that they wait for: two threads can
then be much slower than one. So every public call that computes runs in one thread (`calm`).
Only large steps, in which a second thread gains at least 1.5 times on an idle machine, have as many
threads as there are idle cores (`allow_threads`), and never more than the user has set.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from operator import itemgetter
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")

S = TypeVar("S")

T = TypeVar("T")

LARGE_STEP = 2**30  # multiplications in one step, such as a product of 1,000 × 1,000 matrices

LOAD_SAMPLES = (
    0.0,
    0.001,
    0.001,
)  # waits before looks at what runs; a program that ran for a moment is gone

ENTRY_OF_TREE = 512  # multiplications that take as long as one entry of X while a tree grows

_lock = threading.RLock()

_requested: dict[int, int] = {}  # threads of BLAS that each Python thread asks for

_blas_limits: list[tuple[Any, int]] = []  # what the user has set; BLAS has one for the process

_thread_local = threading.local()  # OpenMP has one for each Python thread

_workers: set[int] = set()  # Python threads that compute, or wait for Python to go on

_pools: tuple[int, list[Any]] = (0, [])


@contextmanager
def limit_threads(n: int) -> Iterator[None]:
    """A context in which BLAS and OpenMP have n threads; afterwards they have what they had.

    It holds for this Python thread and, as there is only one BLAS, for all others that use it. It
    costs ten microseconds, and almost nothing inside another one of the same n.
    """
    before = getattr(_thread_local, "wish", None)
    if n == before:
        yield
        return
    try:
        _request_threads(n)
        yield
    finally:
        _request_threads(before)


single_threaded = limit_threads(1)  # the decorator of every public function that computes


def _request_threads(n: int | None) -> None:
    """Give this Python thread n threads, or what the user has set."""
    global _pools
    if _pools[0] != len(sys.modules):  # a module that was imported since may have brought a pool
        import scipy.linalg  # noqa: F401  # its pool comes with it
        from threadpoolctl import ThreadpoolController  # to look for pools takes milliseconds

        _pools = (len(sys.modules), ThreadpoolController().lib_controllers)
    with _lock:
        if not _requested:
            _blas_limits[:] = [(p, p.num_threads) for p in _pools[1] if p.user_api == "blas"]
        if getattr(_thread_local, "wish", None) is None:
            _thread_local.openmp_before = [
                (p, p.num_threads) for p in _pools[1] if p.user_api == "openmp"
            ]
        if n is None:
            _requested.pop(threading.get_ident(), None)
        else:
            _requested[threading.get_ident()] = n
        _thread_local.wish = n
        _limit_pools(_blas_limits, min(_requested.values(), default=None))
        _limit_pools(_thread_local.openmp_before, n)


def _limit_pools(before: list[tuple[Any, int]], limit: int | None) -> None:
    """Give pools at most `limit` threads, or as many as they had before if it is None."""
    for pool, n_before in before:
        pool.set_num_threads(n_before if limit is None else min(limit, n_before))
        if hasattr(pool, "clear_controlling_thread"):
            pool.clear_controlling_thread()  # so that another Python thread can set it, too


def _forget_other_threads() -> None:
    """Drop the wishes of all threads but this one, which do not exist in a forked process."""
    try:
        this_thread = threading.get_ident()
        _workers.intersection_update({this_thread})
        dead_threads = _requested.keys() - {this_thread}
        for thread in dead_threads:
            del _requested[thread]
        if dead_threads:
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
    """A context for a step of a calm call; a large step may use the cores that are idle now."""
    return limit_threads(n_threads_for(n_multiplications))


def n_threads_for(n_multiplications: float) -> int:
    """How many threads a step of so many multiplications should have: one if it is not large."""
    if n_multiplications < LARGE_STEP:
        return 1
    n_cores, n_running = os.cpu_count() or 1, 1
    with suppress(AttributeError, OSError):  # another system than Linux
        n_cores = len(os.sched_getaffinity(0))
        n_running = min(count_running_threads(wait) for wait in LOAD_SAMPLES)
    return min(n_cores, max(1, n_cores - max(n_running, len(_workers)) + 1))


def count_running_threads(wait: float) -> int:
    """Threads of all programs that run, this one included, after so many seconds."""
    time.sleep(wait)
    with open("/proc/loadavg", encoding="ascii") as file:
        n_running = int(file.read().split()[3].partition("/")[0])
    return n_running - count_spinning_threads()


def count_spinning_threads() -> int:
    """Threads of BLAS and OpenMP in this process that run: they spin for a while after a product.

    Their cores are free for us. Threads of Python are not among them, since they may compute.
    """
    python_threads = {thread.native_id for thread in threading.enumerate()}
    n_spinning = 0
    for task in os.scandir("/proc/self/task"):
        if int(task.name) not in python_threads:
            with suppress(OSError), open(f"{task.path}/stat", encoding="utf-8") as file:
                n_spinning += ") R " in file.read()  # a thread may have ended meanwhile
    return n_spinning


def map_in_threads(
    function: Callable[[list[S]], T],
    parts: list[S],
    n_multiplications: float,
    *,
    one_by_one: bool = False,
) -> list[T]:
    """Results of the function for runs of the parts, one run for each idle core; one if small.

    Each core needs one thread of BLAS only, and none of them waits for another on the way. Parts
    that take unequal time go one by one to the core that is free.
    """

    @single_threaded
    def work(run: list[S]) -> T:
        _workers.add(threading.get_ident())
        try:
            return function(run)
        finally:
            _workers.discard(threading.get_ident())

    n = min(n_threads_for(n_multiplications), len(parts))
    if _requested:  # in a calm call: no more than the user has set
        _, n_before = max(_blas_limits, key=itemgetter(1), default=(None, 1))
        n = min(n, n_before)
    if n <= 1:
        return [function(parts)]
    n_runs = len(parts) if one_by_one else n
    bounds = [len(parts) * k // n_runs for k in range(n_runs + 1)]
    with ThreadPoolExecutor(n) as pool:
        runs = [parts[start:stop] for start, stop in itertools.pairwise(bounds)]
        return list(pool.map(work, runs))
