"""A process that is forked while other threads fit rankers can fit rankers, too."""

from __future__ import annotations

import subprocess
import sys

import pytest

N_FORKS = 50
CHILD_TIMEOUT = 60  # seconds; a child needs a few milliseconds

SCRIPT = f"""
import os, signal, threading, warnings
import numpy as np
from rankwise import RankRLS
from rankwise.runtime import threads

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork with running threads
rng = np.random.default_rng(0)
X = rng.standard_normal((20, 2))
y = rng.standard_normal(20)
expected = RankRLS().fit(X, y).coef_
stop = threading.Event()

def fit_until_stopped():
    while not stop.is_set():
        RankRLS().fit(X, y)

def exit_code_of_child():
    if threads._blas_requests:  # limits of threads that do not exist in this process
        return 3
    model = RankRLS().fit(X, y)
    if threads._blas_requests:
        return 4
    return 0 if np.array_equal(model.coef_, expected) else 5

fitting_threads = [threading.Thread(target=fit_until_stopped) for _ in range(2)]
for thread in fitting_threads:
    thread.start()
codes = []
while len(codes) < {N_FORKS} and not any(codes):
    child = os.fork()
    if child == 0:
        signal.alarm({CHILD_TIMEOUT})  # ends a child that hangs
        code = 2
        try:
            code = exit_code_of_child()
        finally:
            os._exit(code)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in fitting_threads:
    thread.join()
print(*codes)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_children_forked_while_threads_fit_can_fit():
    process = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert process.stderr == ""
    assert process.stdout.split() == ["0"] * N_FORKS
