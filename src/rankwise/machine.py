"""What the machine has to give: threads, memory, and a line on the terminal.

**Threads.** The threads of BLAS and OpenMP wait for each other in a loop that never sleeps. While
other programs run, they take the cores from the very threads that they wait for: two threads can
then be much slower than one. So every public call that computes runs in one thread (`calm`).
Only large steps, in which a second thread gains at least 1.5 times on an idle machine, have as many
threads as there are idle cores (`idle_cores`), and never more than the user has set.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from operator import itemgetter
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

LARGE = 2**30  # multiplications in one step, such as a product of 1,000 × 1,000 matrices
LOOKS = (
    0.0,
    0.001,
    0.001,
)  # waits before looks at what runs; a program that ran for a moment is gone
ENTRY_OF_TREE = 512  # multiplications that take as long as one entry of X while a tree grows

_lock = threading.RLock()
_wishes: dict[int, int] = {}  # threads of BLAS that each Python thread asks for
_blas_before: list[tuple[Any, int]] = []  # what the user has set; BLAS has one for the process
_here = threading.local()  # OpenMP has one for each Python thread
_side_by_side: set[int] = set()  # Python threads that compute, or wait for Python to go on
_pools: tuple[int, list[Any]] = (0, [])


@contextmanager
def limit_threads(n: int) -> Iterator[None]:
    """A context in which BLAS and OpenMP have n threads; afterwards they have what they had.

    It holds for this Python thread and, as there is only one BLAS, for all others that use it. It
    costs ten microseconds, and almost nothing inside another one of the same n.
    """
    before = getattr(_here, "wish", None)
    if n == before:
        yield
        return
    try:
        _ask_for(n)
        yield
    finally:
        _ask_for(before)


calm = limit_threads(1)  # the decorator of every public function that computes


def _ask_for(n: int | None) -> None:
    """Give this Python thread n threads, or what the user has set."""
    global _pools
    if _pools[0] != len(sys.modules):  # a module that was imported since may have brought a pool
        import scipy.linalg  # noqa: F401  # its pool comes with it
        from threadpoolctl import ThreadpoolController  # to look for pools takes milliseconds

        _pools = (len(sys.modules), ThreadpoolController().lib_controllers)
    with _lock:
        if not _wishes:
            _blas_before[:] = [(p, p.num_threads) for p in _pools[1] if p.user_api == "blas"]
        if getattr(_here, "wish", None) is None:
            _here.openmp_before = [(p, p.num_threads) for p in _pools[1] if p.user_api == "openmp"]
        if n is None:
            _wishes.pop(threading.get_ident(), None)
        else:
            _wishes[threading.get_ident()] = n
        _here.wish = n
        _limit_pools(_blas_before, min(_wishes.values(), default=None))
        _limit_pools(_here.openmp_before, n)


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
        _side_by_side.intersection_update({this_thread})
        dead_threads = _wishes.keys() - {this_thread}
        for thread in dead_threads:
            del _wishes[thread]
        if dead_threads:
            _limit_pools(_blas_before, min(_wishes.values(), default=None))
    finally:
        _lock.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    # A lock that another thread holds during a fork is never released in the child process.
    os.register_at_fork(
        before=_lock.acquire,
        after_in_parent=_lock.release,
        after_in_child=_forget_other_threads,
    )


_keeps_interrupted_fits: ContextVar[bool] = ContextVar("keeps_interrupted_fits", default=True)


def keeps_interrupted_fits() -> bool:
    """Whether a fit that Ctrl-C interrupts may end with the best model so far.

    Only if the user called the fit; as a step of a search, of standard errors or of a command it
    raises KeyboardInterrupt (`no_interrupted_fits`).
    """
    return _keeps_interrupted_fits.get()


@contextmanager
def no_interrupted_fits() -> Iterator[None]:
    """A context, also a decorator, in which an interrupted fit raises KeyboardInterrupt."""
    token = _keeps_interrupted_fits.set(False)
    try:
        yield
    finally:
        _keeps_interrupted_fits.reset(token)


def idle_cores(n_multiplications: float) -> AbstractContextManager[None]:
    """A context for a step of a calm call; a large step may use the cores that are idle now."""
    return limit_threads(count_idle_cores(n_multiplications))


def count_idle_cores(n_multiplications: float) -> int:
    """How many threads a step of so many multiplications should have: one if it is not large."""
    if n_multiplications < LARGE:
        return 1
    n_cores, n_running = os.cpu_count() or 1, 1
    with suppress(AttributeError, OSError):  # another system than Linux
        n_cores = len(os.sched_getaffinity(0))
        n_running = min(count_running_threads(wait) for wait in LOOKS)
    return min(n_cores, max(1, n_cores - max(n_running, len(_side_by_side)) + 1))


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


def map_on_idle_cores(
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

    @calm
    def work(run: list[S]) -> T:
        _side_by_side.add(threading.get_ident())
        try:
            return function(run)
        finally:
            _side_by_side.discard(threading.get_ident())

    n = min(count_idle_cores(n_multiplications), len(parts))
    if _wishes:  # in a calm call: no more than the user has set
        _, n_before = max(_blas_before, key=itemgetter(1), default=(None, 1))
        n = min(n, n_before)
    if n <= 1:
        return [function(parts)]
    n_runs = len(parts) if one_by_one else n
    bounds = [len(parts) * k // n_runs for k in range(n_runs + 1)]
    with ThreadPoolExecutor(n) as pool:
        runs = [parts[start:stop] for start, stop in itertools.pairwise(bounds)]
        return list(pool.map(work, runs))


def available_bytes() -> int | None:
    """Free memory without swapping, or None if the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def check_matrix_fits(
    n_rows: int, n_columns: int, what: str, advice: str, *, n_matrices: float = 1.0
) -> None:
    """Raise a ValueError that names the size if float64 matrices exceed the available memory.

    Parameters
    ----------
    n_rows, n_columns : int
        Size of a matrix.
    what, advice : str
        What it is, and what to do instead.
    n_matrices : float
        How many of that size are in memory at a time.
    """
    free = available_bytes()
    needed = 8 * n_rows * n_columns * n_matrices
    if free is not None and needed > free:
        times = "" if n_matrices == 1 else f" ({n_matrices:g} matrices of that size at a time)"
        raise ValueError(
            f"{what} of {n_rows:,} × {n_columns:,} would take {needed / 2**30:,.1f} GiB{times} but "
            f"only {free / 2**30:,.1f} GiB of memory are available; {advice}."
        )


class Progress:
    """One line on standard error that tells how far a long work is; `close` ends it.

    Parameters
    ----------
    what : str
        What is being done, in front of the line.
    total : int, optional
        How many steps there are. Then the line is a bar, else it counts iterations.
    show : bool, optional
        Whether to draw; by default only if standard error is a terminal, and after a second.
    in_place : bool
        Whether the line is drawn over the last one.
    """

    WIDTH = 30
    DELAY = 1.0  # seconds; short work shows no line
    PAUSE = 0.1  # seconds before the line is drawn again

    def __init__(
        self, what: str, total: int | None = None, show: bool | None = None, in_place: bool = True
    ) -> None:
        self.is_shown = sys.stderr.isatty() if show is None else show
        self._what, self._total, self._in_place = what, total, in_place
        delay, self._pause = (self.DELAY, self.PAUSE) if show is None else (0.0, 0.0)
        self._start = time.monotonic() + delay
        self._drawn: int | None = None

    def update(self, done: int, detail: str = "") -> None:
        """Draw the line anew: so many steps are done."""
        if not self.is_shown or done == self._drawn or time.monotonic() < self._start:
            return
        self._drawn = done
        self._start = time.monotonic() + self._pause
        text = f"iteration {done}{detail}"
        if self._total is not None:
            filled = self.WIDTH * done // self._total
            text = "█" * filled + "·" * (self.WIDTH - filled) + f" {done}/{self._total}"
        line = f"{self._what} {text}"
        sys.stderr.write(f"\r{line}" if self._in_place else f"{line}\n")
        sys.stderr.flush()

    def iteration(self, n_iter: int, residual: float) -> None:
        """Draw the line after an iteration of a solver."""
        self.update(n_iter, f", residual {residual:.1e}   ")

    def close(self) -> None:
        """Fill the bar, if it is one, and end the line."""
        if self._drawn is not None:
            self._start = 0.0
        if self._total is not None:
            self.update(self._total)
        if self._drawn is not None and self._in_place:
            sys.stderr.write("\n")


def track(steps: Sequence[T], what: str, show: bool | None = None) -> Iterator[T]:
    """Yield the steps and draw a bar that tells how many are done; see `Progress`."""
    if not steps:
        return
    line = Progress(what, len(steps), show)
    for done, step in enumerate(steps):
        line.update(done)
        yield step
    line.close()
