"""Every experiment runs on small made-up files of the form of the real ones and prints its table.

What the experiments do by themselves, such as RankBoost and the choice by a validation part, is
compared with the slow way.
"""

import importlib
import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

mpl.use("agg")

from experiments import __main__ as all_experiments
from experiments.pursuit13 import methods, movielens, users
from experiments.rankrls09 import figure1, figure2, leave_pair_out, table1, table4
from experiments.shared import code_hash, command_line, rankboost
from experiments.shared.letor import Fold, Learner, score_test_part
from experiments.shared.margin_runs import make_objective
from experiments.shared.ratings import tied_share
from experiments.treersvm11.figure1 import AllPairsHinge
from experiments.uncertainty.next_pairs import at_random
from rankwise import RankRLS, RankSVM
from rankwise.datasets import RankingData
from rankwise.metrics import auc, disagreement_error
from tests.experiments.made_data import make_data

FEW_USERS = "--repeats 1 --users 2 --hold-out 1 --widths 3"
FEW_ALPHAS = {"ALPHAS": 10.0 ** np.arange(-3, 2)}
RUNS = {  # options, constants to make smaller, and something that must be printed
    "auto_coverage": ("--only ohsumed --repeats 1", {"SIZES": (4,)}, "further groups"),
    "clicks.mq2008": (
        "--folds 1 --seeds 1 --sessions 2",
        {"TREES": 2, "EXAMINATION": {"weak": 0.5}, "CASCADE": {"weak": (0.7, 0.95)}},
        "cascade, weak",
    ),
    "comparisons.who_wins": (
        "--only order",
        {"SIZES": {"order": (60, 600)}, "MAX_TREES": 20, "PATIENCE": 5},
        "its order",
    ),
    "corankrls10.letor": ("--repeats 1 --width 2", {**FEW_ALPHAS, "N_BASIS": 5}, "0.348"),
    "corankrls10.parses": ("--repeats 1", FEW_ALPHAS, "0.326"),
    "metric_weights": ("--only mq2008", {}, "mq2008"),
    "pursuit13.gain": (f"--shares 0.5 {FEW_USERS}", {"NUS": (0.0, 1.0)}, "halves of the users"),
    "pursuit13.jester": (FEW_USERS, {}, "0.419"),
    "pursuit13.level": (FEW_USERS, {}, "differences"),
    "pursuit13.movielens": (FEW_USERS, {}, "0.479"),
    "rankrls07.tables123": ("", {}, "0.447"),
    "rankrls07.transductive": ("--scored 5", {**FEW_ALPHAS, "DRAWS": 1}, "test queries unscored"),
    "rankrls09.approximate_leave_pair_out": ("--sizes 10", {}, "exact"),
    "rankrls09.figure1": ("", {}, "(22) relative"),
    "rankrls09.figure2": ("", {}, "x4 > x3 > x2 > x1"),
    "rankrls09.graph_kernel": ("--train 10", {**FEW_ALPHAS, "N_BASIS": 5}, "words and links"),
    "rankrls09.leave_pair_out": ("--repeats 3", {"ALPHAS": (0.1,)}, "pooled"),
    "rankrls09.leave_query_out": ("--dataset ohsumed", {}, "leave-query-out"),
    "rankrls09.parses": ("", {}, "0.225"),
    "rankrls09.reuters_all": ("--short", {}, "a couple of hundred"),
    "rankrls09.support_vectors": ("--documents 60", {"NOISE": (0.1,)}, "coefficient"),
    "rankrls09.table1": (
        "",
        {"PUBLISHED": {60: (1, 2)}, "PAIR_SIZES": (30,), "N_BASIS": 20},
        "SVC",
    ),
    "rankrls09.table3": ("", {}, "0.351"),
    "rankrls09.table4": ("--repeats 1", {}, "0.947"),
    "rankrls09.table5": ("--repeats 1", {"LAMBDAS": np.array([64.0])}, "0.946"),
    "rankrls09.table6": (
        "--users 3",
        {"N_REFERENCE": 5, "GAMMAS": np.array([0.01]), **FEW_ALPHAS},
        "0.413",
    ),
    "runs.hidden_judgments": ("", {"HIDDEN": (0.5,), "POOL_DEPTHS": (5,)}, "A new run"),
    "runs.paired_tests": (
        "--samples 30",
        {"GROUPS": (20,), "QUERIES": (10,)},
        "Type I error with clusters",
    ),
    "score_tables.drug_target": ("--sets nr", {"ALPHAS": np.array([0.01])}, "both new"),
    "score_tables.kiba": ("--seeds 1 --settings both", {}, "both new"),
    "score_tables.label_ranking": ("--sets iris --short", {"WIDTHS": (1.0,)}, "iris"),
    "score_tables.ratings": ("--sets movielens", {"ALPHAS": np.array([0.01])}, "movielens"),
    "sets.coverage": ("--sets iris --short", {"LISTS": (20,)}, "iris"),
    "survival.peers": ("--repeats 1 --only veterans", {}, "FastSurvivalSVM, searched"),
    "treersvm11.covtype": ("--examples 300 --bmrm-iterations 3", {}, "< 6000"),
    "treersvm11.figure1": ("--sizes 200 500", {}, "slope"),
    "treersvm11.iterations": ("--sizes 200", {"ALPHAS": (0.1,)}, "ε = 0.01"),
    "treersvm11.levels": ("--examples 300 --levels 2 5", {}, "passes over"),
    "uncertainty.coverage": ("--runs 3 --only 40", {}, "40 groups"),
    "uncertainty.next_pairs": (
        "--runs 2",
        {"RULES": {"random": at_random}, "stopped": print, "predicted": print},
        "Films",
    ),
    "uncertainty.probabilities": ("--folds 2 --only MQ2008", {}, "CalibratedRanker"),
}
NEEDED = {"comparisons.who_wins": "catboost", "survival.peers": "sksurv"}
ELSEWHERE = (
    "auto_estimate",
    "quality",
    "quality_tables",
    "boards",
    "sums",
    "treersvm11.certificate",
)


@pytest.fixture(autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.mark.filterwarnings("ignore")  # the made-up data are small
@pytest.mark.parametrize("name", RUNS)
def test_an_experiment_prints_its_table(name, data, tmp_path, monkeypatch, capsys):
    options, constants, expected = RUNS[name]
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    module = importlib.import_module(f"experiments.{name}")
    for constant, value in constants.items():
        monkeypatch.setattr(module, constant, value)
    monkeypatch.setattr(table4, "N_TRAIN", 100)
    monkeypatch.setattr(command_line, "DEFAULT_OUTPUT", tmp_path)
    monkeypatch.setattr(rankboost, "ROUNDS", np.array([2, 4]))
    words = ["--data", str(data), *options.split()]
    if "output=True" in Path(module.__file__).read_text(encoding="utf-8"):
        words += ["--output", str(tmp_path)]
    module.main(words)
    assert expected in capsys.readouterr().out


def test_every_experiment_is_run_by_a_test():
    modules = {name for name in all_experiments.find_modules() if not name.startswith(ELSEWHERE)}
    assert modules == set(RUNS)


def test_all_results_are_made_by_one_command_and_shown_on_a_page():
    options = all_experiments.OPTIONS
    modules = set(all_experiments.find_modules())
    assert set(options) <= modules
    made = {
        command_line.result_path(name, words)
        for name in modules
        for words in options.get(name, ("",))
    }
    folder = command_line.EXPERIMENTS
    recorded = set(folder.glob("*/results/*.txt"))
    assert recorded <= made
    pages = "".join(path.read_text(encoding="utf-8") for path in folder.parent.glob("docs/*.md"))
    assert [path for path in recorded if str(path.relative_to(folder.parent)) not in pages] == []


def test_what_the_present_code_has_recorded_is_not_run_again(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "experiments"
    script = folder / "paper" / "table1.py"
    script.parent.mkdir(parents=True)
    script.write_text("def main():\n    print('a table')\n")
    monkeypatch.setattr(command_line, "EXPERIMENTS", folder)
    monkeypatch.setattr(code_hash, "ROOT", tmp_path)
    monkeypatch.setitem(code_hash.FOLDERS, "experiments", folder)
    namespace = {}
    exec(compile(script.read_text(), str(script), "exec"), namespace)
    monkeypatch.setattr(sys, "argv", ["x", "--data", "somewhere", "--draws", "3"])
    command_line.record(namespace["main"])
    assert capsys.readouterr().out == "a table\n"
    command, run, _, table = (
        (script.parent / "results" / "table1-draws-3.txt").read_text().split("\n", 3)
    )
    assert command == "python -m experiments.paper.table1 --draws 3"
    assert re.match(r"\d{4}-\d\d-\d\d, commit \w+, \d+ s of processor time, code \w{8}$", run)
    assert table == "a table\n"
    assert command_line.is_current("paper.table1", "--draws 3")
    assert not command_line.is_current("paper.table1", "")


def test_results_of_older_code_are_listed_and_fail(monkeypatch, capsys):
    runs = [("paper.table1", ""), ("paper.table2", "--draws 3")]
    monkeypatch.setattr(all_experiments, "find_runs", lambda folders: runs)
    monkeypatch.setattr(
        all_experiments, "is_current", lambda module, words: module == "paper.table1"
    )
    with pytest.raises(SystemExit) as stale:
        all_experiments.main(["--stale"])
    assert stale.value.code == 1
    assert capsys.readouterr().out == "experiments.paper.table2 --draws 3\n"

    monkeypatch.setattr(all_experiments, "is_current", lambda module, words: True)
    with pytest.raises(SystemExit) as current:
        all_experiments.main(["--stale"])
    assert current.value.code == 0
    assert capsys.readouterr().out == ""


def test_missing_data_are_explained(monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match=r"does not exist.*--data"):
        table1.main(["--data", str(tmp_path)])
    monkeypatch.delenv(command_line.VARIABLE, raising=False)
    with pytest.raises(SystemExit, match=r"--data, or set RANKWISE_DATA"):
        table1.main([])


# -- what the experiments do by themselves ------------------------------------------------------


def make_part(first, rng, n_queries=6, n_items=12):
    X = rng.normal(size=(n_queries * n_items, 3))
    y = np.clip(np.round(1 + X[:, 0] + 0.8 * rng.normal(size=len(X))), 0, 2)
    return RankingData(X, y, first + np.repeat(np.arange(n_queries), n_items))


def boost_by_pairs(X, y, groups, n_rounds):
    """RankBoost to the letter: a distribution over pairs, all steps tried one by one."""
    pairs = [
        (i, j)
        for i in range(len(y))
        for j in range(len(y))
        if y[i] > y[j] and groups[i] == groups[j]
    ]
    better, worse = np.array(pairs).T
    D, H = np.full(len(pairs), 1 / len(pairs)), np.zeros(len(y))
    for _ in range(n_rounds):
        best = (0.0, None)
        for k in range(X.shape[1]):
            values = np.unique(X[:, k])
            for threshold in (values[1:] + values[:-1]) / 2:
                h = (X[:, k] > threshold).astype(float)
                r = D @ (h[better] - h[worse])
                best = max(best, (abs(r), r, h), key=lambda each: each[0])
        _, r, h = best
        weight = 0.5 * np.log((1 + r) / (1 - r))
        H += weight * h
        D *= np.exp(-weight * (h[better] - h[worse]))
        D /= D.sum()
    return H


def test_rankboost_is_that_over_explicit_pairs(monkeypatch):
    monkeypatch.setattr(rankboost, "ROUNDS", np.array([1, 6]))
    part = make_part(0, np.random.default_rng(0), n_queries=3)
    X = part.X.round(1)  # with equal values
    found = rankboost.RankBoost().path(X, part.y, part.groups).predict(X)
    for k, n_rounds in enumerate((1, 6)):
        truth = boost_by_pairs(X, part.y, part.groups, n_rounds)
        np.testing.assert_allclose(found[:, k], truth, atol=1e-10)


def test_the_choice_is_the_best_on_validation():
    rng = np.random.default_rng(0)
    fold = Fold(*(make_part(first, rng) for first in (0, 20, 40)))
    alphas = np.array([1e-4, 1e-1, 1.0, 100.0])

    def quality(y, scores, groups):
        return -disagreement_error(y, scores, groups)

    scores, model = score_test_part(Learner("RankRLS", (RankRLS(),)), fold, quality, alphas)
    fits = [RankRLS(alpha).fit(*fold.train[:3]) for alpha in alphas]
    valid = fold.validation
    errors = [disagreement_error(valid.y, fit.predict(valid.X), valid.groups) for fit in fits]
    assert model.alpha == alphas[np.argmin(errors)]
    np.testing.assert_allclose(scores, fits[np.argmin(errors)].predict(fold.test.X))


def test_figure1_draws_the_costs_of_equations_20_to_22():
    y, g = figure1.MAGNITUDE, figure1.G
    expected = {"sign": (1 - g) ** 2, "magnitude": (y - g) ** 2, "relative": (1 - g / y) ** 2}
    for name, values in expected.items():
        np.testing.assert_allclose(figure1.cost_of(name, g), values)


def test_figure2_features_fit_the_description_in_the_paper():
    x, s = figure2.FEATURE[:, 0], figure2.SCORES
    for i in range(4):
        for j in range(4):
            if s[i] > s[j]:
                assert (x[i] < x[j]) == (figure2.OBJECTS[i] == figure2.OBJECTS[j])


@pytest.mark.parametrize("learner", table4.LEARNERS, ids=lambda learner: learner.name)
def test_lambda_is_that_of_the_papers(learner):
    rng = np.random.default_rng(0)
    X, y, lam = rng.normal(size=(20, 4)), rng.normal(size=20), 3.0
    L = np.eye(20) if learner.beta else 20 * np.eye(20) - 1  # of the sums over items or over pairs
    w = np.linalg.solve(X.T @ L @ X + lam * np.eye(4), X.T @ L @ y)
    model = RankRLS(lam / learner.amount(20), beta=learner.beta).fit(X, y)
    np.testing.assert_allclose(model.coef_, w)


def test_tenfold_estimates_are_those_of_refitted_ridge_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60))
    Y = rng.integers(0, 2, size=(40, 3)).astype(float)
    X -= X.mean(axis=0)
    averaged, pooled, intercept = leave_pair_out.tenfold(X, Y, 0.5, seed=3)
    scores, by_fold = np.empty((2, *Y.shape)), []
    for train, test in KFold(10, shuffle=True, random_state=3).split(X):
        model = Ridge(0.5 * (len(train) - 1) / 2).fit(X[train], Y[train])
        scores[0, test], scores[1, test] = X[test] @ model.coef_.T, model.predict(X[test])
        by_fold.append(auc(Y[test], scores[0, test], undefined="nan"))
    np.testing.assert_allclose(averaged, np.nanmean(by_fold, axis=0))
    np.testing.assert_allclose(pooled, auc(Y, scores[0]))
    np.testing.assert_allclose(intercept, auc(Y, scores[1]))


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_the_baseline_over_all_pairs_is_the_same_loss(scale):
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = X[:, 0].round(1)
    f = scale * X @ [1.0, 1, 0, -1]
    ours, baseline = make_objective(X, y, 1.0).loss.at(f), AllPairsHinge(y, height=64).at(f)
    assert baseline.value == pytest.approx(ours.value)
    np.testing.assert_allclose(baseline.gradient, ours.gradient, atol=1e-15)


def test_the_svm_on_explicit_pairs_finds_the_same_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=50) > 0.5).astype(float)
    found = table1.train_on_pairs(X[:30], y[:30], X[30:], y[30:])
    options = {"kernel": "rbf", "gamma": table1.GAMMA, "tol": 1e-5}
    model = RankSVM(table1.ALPHA, **options).fit(X[:30], y[:30])
    assert found.objective == pytest.approx(model.objective_, rel=1e-2)
    assert found.objective > (1 - 1e-9) * model.lower_bound_


def test_beta_weighs_order_and_level_as_equation_5_does():
    n, beta = 40, methods.paper_beta(40)
    L = n * np.eye(n) - 1
    ours = (1 - beta) / (n * (n - 1) / 2) * L + beta / n * np.eye(n)
    paper = 0.5 * L + 0.5 * np.eye(n)
    np.testing.assert_allclose(ours / ours[0, 0], paper / paper[0, 0])


def test_a_tied_pair_costs_one_half_in_equation_1():
    y, f = np.array([1.0, 1, 2, 3]), np.array([0.3, 0.1, 0.2, 0.4])
    pairs = [(i, j) for i in range(4) for j in range(i)]
    letter = np.mean([abs(np.sign(y[i] - y[j]) - np.sign(f[i] - f[j])) / 2 for i, j in pairs])
    errors = np.array([disagreement_error(y, f)])
    assert movielens.with_ties(errors, np.array([tied_share(y)]))[0] == pytest.approx(letter)


def test_features_are_ratings_or_the_median_of_the_user():
    ratings = np.array([[1.0, np.nan, 5, 2], [np.nan, np.nan, 3, 4]])
    X = users.reference_features(ratings, [0, 1])
    np.testing.assert_array_equal(X, [[1, 3.5], [2, 3.5], [5, 3], [2, 4]])
