"""The benchmarks of RankSVM keep running; nothing here looks at a clock."""

import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks import bars, run, sweep
from benchmarks.libraries import LIBRARIES, boosting
from benchmarks.margin_problems import MARGIN_PROBLEMS
from benchmarks.measure import COLUMNS, measure, objective
from rankwise import ScoreGraph

PAIRS = [
    (name, library.name)
    for name, load in MARGIN_PROBLEMS.items()
    for library in LIBRARIES.values()
    if library.solves(load("tiny")) and not library.option
]
# Solves the problem in the file as RankSVM does, and writes its model as the program would.
SVMRANK = """#!{python}
import sys
from sklearn.datasets import load_svmlight_file
from sklearn.svm import LinearSVC
import numpy as np
arguments = sys.argv[1:]
assert arguments[0] == "-c" and arguments[2] == "-e" and float(arguments[3]) > 0, arguments
X, y, qid = load_svmlight_file(arguments[4], query_id=True)
assert (np.diff(qid) >= 0).all() and qid[0] == 1
i, j = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
sign = np.where(np.arange(len(i)) % 2, 1, -1)
D = (X[i] - X[j]).toarray() * sign[:, None]
C = float(arguments[1]) / len(set(qid))
w = LinearSVC(C=C, loss="hinge", fit_intercept=False, max_iter=100000).fit(D, sign).coef_[0]
with open(arguments[5], "w") as file:
    file.write("SVM-light Version V6.20\\n0 # kernel type\\n")
    file.write("2 # number of support vectors plus 1 \\n")
    file.write("0 # threshold b, each following line is a SV (starting with alpha*y)\\n")
    file.write("2 " + " ".join(f"{{k + 1}}:{{v / 2:.9g}}" for k, v in enumerate(w)) + " #\\n")
"""
LIBLINEAR = """#!{python}
import sys
from sklearn.datasets import load_svmlight_file
from sklearn.svm import LinearSVC
import numpy as np
arguments = sys.argv[1:]
assert arguments[:3] == ["-s", "8", "-c"], arguments
X, y, qid = load_svmlight_file(arguments[4], query_id=True)
i, j = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
sign = np.where(np.arange(len(i)) % 2, 1, -1)
D = (X[i] - X[j]).toarray() * sign[:, None]
svc = LinearSVC(C=float(arguments[3]), dual=False, fit_intercept=False)
w = svc.fit(D, sign).coef_[0]
with open(arguments[5], "w") as file:
    file.write("solver_type L2R_L2LOSS_RANKSVM\\nnr_class 2\\n")
    file.write(f"nr_feature {{len(w)}}\\nbias -1\\nw\\n")
    file.writelines(f"{{v:.16g}} \\n" for v in w)
"""


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setattr(boosting, "N_TREES", 2)
    monkeypatch.setattr(boosting, "N_THREADS", 1)
    with threadpool_limits(1):
        yield


@pytest.fixture
def program(tmp_path):
    def write(text):
        path = tmp_path / "program"
        path.write_text(text.format(python=sys.executable), encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    return write


@pytest.mark.filterwarnings("ignore")  # those of other libraries
@pytest.mark.parametrize("problem, library", PAIRS)
def test_every_library_runs_on_every_problem_it_solves(problem, library):
    if not LIBRARIES[library].is_installed:
        pytest.skip(f"{LIBRARIES[library].package} is not installed")
    row = measure(problem, library, "tiny", 1)
    assert tuple(row) == COLUMNS
    if not library.startswith("limit"):
        assert 0 <= row["disagreement"] <= 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("problem", MARGIN_PROBLEMS)
def test_objective_is_the_mean_over_explicit_pairs_and_rank_svm_has_the_smallest(problem):
    data = MARGIN_PROBLEMS[problem]("tiny")
    pairs = ScoreGraph(data.y, data.groups, cost="sign").pairs()
    power = {"hinge": 1, "squared_hinge": 2}[data.loss]
    best = measure(problem, "rankwise RankSVM lbfgs", "tiny", 1)["objective"]
    names = [name for of, name in PAIRS if of == problem and LIBRARIES[name].is_installed]
    for name in names:
        model = LIBRARIES[name].prepare(data)()
        if model.squared_norm is None:
            continue
        f = model.predict(data.X)
        gap = np.maximum(1 - f[pairs.winner] + f[pairs.loser], 0)
        expected = np.mean(gap**power) + data.alpha * model.squared_norm()
        assert objective(data, model) == pytest.approx(expected, rel=1e-9)
        assert expected >= best * (1 - 1e-3)
        if name == "LinearSVC on pairs" and data.loss == "squared_hinge":
            assert expected == pytest.approx(best, rel=1e-3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name, option, text, library, loss",
    [
        ("one_group", "svmrank", SVMRANK, "SVMrank", "hinge"),
        (
            "small_groups",
            "liblinear-ranksvm",
            LIBLINEAR,
            "LIBLINEAR ranking",
            "squared_hinge",
        ),
    ],
)
def test_a_program_gets_the_data_and_the_cost(
    program, monkeypatch, option, text, library, loss, name
):
    assert not LIBRARIES[library].is_installed
    monkeypatch.setenv(LIBRARIES[library].variable, program(text))
    assert LIBRARIES[library].option == option
    row = measure(f"{name} {loss}", library, "tiny", 1)
    best = measure(f"{name} {loss}", "rankwise RankSVM lbfgs", "tiny", 1)["objective"]
    assert row["objective"] == pytest.approx(best, rel=2e-3)
    assert row["peak_mib"] > 1


def test_run_tells_a_row_the_path_and_a_failing_program_is_a_row(
    program, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("RANKWISE_BENCH_SVMRANK", "")  # and undo what run sets
    path = program("#!/bin/sh\necho no memory >&2\nexit 3\n")
    output = tmp_path / "table.csv"
    run.main(
        ["--size", "tiny", "--repeat", "1", "--only", "one_group hinge / SVMrank",
         "--svmrank", path, "--output", str(output)]
    )  # fmt: skip
    assert "ended with 3: no memory" in capsys.readouterr().out


def test_slope_of_a_ratio():
    ratio = bars.Ratio(numerator=(100.0, 1000.0), denominator=(1.0, 1.0)).as_slope(100.0)
    assert ratio.of_minima == pytest.approx(1.0)
    assert ratio.of_medians == pytest.approx(1.5)


def test_sweeps_agree_and_are_printed(capsys):
    sweep.main(["--size", "tiny", "--repeat", "1"])
    assert "|      100 |" in capsys.readouterr().out
