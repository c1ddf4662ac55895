"""A process that is forked while other threads compute can compute, too."""

from __future__ import annotations

import subprocess
import sys

import pytest

N_FORKS = 50
SECONDS = 60  # for one child; it needs a few milliseconds

SCRIPT = f"""
import os, signal, sys, threading, time, warnings
import numpy as np
from rankwise import RankRLS, machine

warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: a fork beside threads
rng = np.random.default_rng(0)
X, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
expected = RankRLS().fit(X, y).coef_
goes_on = True

def work():
    while goes_on:
        RankRLS().fit(X, y)

def compute():
    if machine._wishes:
        return 3
    model = RankRLS().fit(X, y)
    if machine._wishes:
        return 4
    return 0 if np.array_equal(model.coef_, expected) else 5

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
codes = []
for _ in range({N_FORKS}):
    child = os.fork()
    if child == 0:
        signal.alarm({SECONDS})  # ends a child that hangs
        code = 2
        try:
            code = compute()
        finally:
            os._exit(code)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
goes_on = False
for thread in threads:
    thread.join()
print(*codes)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no forks there")
def test_children_that_are_forked_beside_threads_that_fit_can_fit():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.split() == ["0"] * N_FORKS
