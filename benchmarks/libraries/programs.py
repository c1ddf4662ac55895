"""SVMrank and the ranking version of LIBLINEAR: programs that read a file and write another.

Only if the path of a built program is given (``--svmrank``, ``--liblinear-ranksvm``). Writing the
data is not timed; the start of the program, its reading of the text and its writing of the model
are, as there is no other way in. The weights are read back, and their objective is ours. dlib has a
ranking SVM, too, but no program, and it knows two levels only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file

from benchmarks.libraries.interface import Library, Model
from benchmarks.libraries.linear_svc import cost_of_pair, linear_model
from benchmarks.problems import Problem
from rankwise import RankSVM

TOLERANCE = 1e-3  # of RankSVM
# A small process in between: a child of this one would start with the peak of this one.
IN_BETWEEN = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True, errors="replace")
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([done.returncode, peak, (done.stdout + done.stderr)[-500:]]))
"""


def _svmrank_options(problem: Problem) -> list[str]:
    """Minimize ``1/2 ‖w‖² + C ξ``, where ξ is the sum over pairs divided by the number of groups.

    So C is that of a pair times the number of groups, and one unit of ξ is ``n_groups/W`` of our
    objective: the accuracy of ξ is chosen such that it is TOLERANCE of the smallest objective.
    """
    n_groups = 1 if problem.groups is None else len(np.unique(problem.groups))
    cost = cost_of_pair(problem)
    best = RankSVM(problem.alpha, loss="hinge").fit(problem.X, problem.y, problem.groups)
    total_weight = 1 / (2 * problem.alpha * cost)
    accuracy = TOLERANCE * best.objective_ * total_weight / n_groups
    return ["-c", f"{cost * n_groups:.17g}", "-e", f"{accuracy:.17g}"]


def _liblinear_options(problem: Problem) -> list[str]:
    """Minimize ``1/2 ‖w‖² + C Σ_k loss``, stopping as the program does if nothing is said."""
    return ["-s", "8", "-c", f"{cost_of_pair(problem):.17g}"]


def read_svmrank(path: Path, n_features: int) -> np.ndarray:
    """Sum of the support vectors after the header, ``factor index:value ... #``."""
    w = np.zeros(n_features)
    lines = iter(path.read_text(encoding="utf-8", errors="replace").splitlines())
    for line in lines:
        if "threshold b" in line:
            break
    for line in lines:
        factor, *entries = line.split("#")[0].split()
        for index, value in (entry.split(":") for entry in entries):
            w[int(index) - 1] += float(factor) * float(value)
    return w


def read_liblinear(path: Path, n_features: int) -> np.ndarray:
    """One weight in each line after the line ``w``; features after the last one seen are zero."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = np.array([float(line.split()[0]) for line in lines[lines.index("w") + 1 :]])
    return np.pad(found, (0, n_features - len(found)))


def _program(
    variable: str,
    options: Callable[[Problem], list[str]],
    read: Callable[[Path, int], np.ndarray],
) -> Callable[[Problem], Callable[[], Model]]:
    def prepare(problem: Problem) -> Callable[[], Model]:
        folder = tempfile.TemporaryDirectory(prefix="rankwise-bench-")
        data, model = Path(folder.name) / "data.txt", Path(folder.name) / "model.txt"
        groups = np.zeros(len(problem.y), int) if problem.groups is None else problem.groups
        dump_svmlight_file(
            problem.X, problem.y, str(data), zero_based=False, query_id=groups.astype(int) + 1
        )
        command = [os.environ[variable], *options(problem), str(data), str(model)]

        def fit(folder: tempfile.TemporaryDirectory[str] = folder) -> Model:  # keeps the folder
            peak = _run(command)
            return linear_model(read(model, problem.X.shape[1]), peak_mib=peak)

        return fit

    return prepare


def _run(command: list[str]) -> float:
    """Peak memory in MiB; an error if the program fails."""
    between = [sys.executable, "-S", "-c", IN_BETWEEN, *command]
    done = subprocess.run(between, check=True, capture_output=True, text=True)
    code, peak, output = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{command[0]} ended with {code}: {' '.join(output.split())}")
    return float(peak) * (1 if sys.platform == "darwin" else 1024) / 2**20


LIBRARIES = [
    Library(
        "SVMrank",
        lambda problem: problem.loss == "hinge",
        _program("RANKWISE_BENCH_SVMRANK", _svmrank_options, read_svmrank),
        "svm_rank_learn",
        "svmrank",
    ),
    Library(
        "LIBLINEAR ranking",
        lambda problem: problem.loss == "squared_hinge",
        _program("RANKWISE_BENCH_LIBLINEAR_RANKSVM", _liblinear_options, read_liblinear),
        "train of liblinear-ranksvm",
        "liblinear-ranksvm",
    ),
]
