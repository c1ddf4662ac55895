"""The experiments on model selection run and say what their README says."""

import os
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

mpl.use("agg")

from experiments import (
    auto_estimate,
    leave_pair_out_bias,
    letor_leave_query_out,
    rankrls09_tables45,
)
from experiments.rankrls09.auc_intervals import PUBLISHED_INTERVALS, auc_interval, count_apart
from experiments.shared.letor import Fold
from experiments.rankrls09.table4 import LEARNERS, PUBLISHED, Sample
from rankwise import RankRLS
from rankwise.datasets import RankingData
from rankwise.metrics import auc

DATA = Path(os.environ.get("RANKWISE_DATA") or Path(__file__).parents[3] / "shared" / "data")
PAGE = Path(__file__).parents[2] / "docs" / "exact_cross_validation.md"


def needs(folder):
    return pytest.mark.skipif(
        not (DATA / folder).is_dir(),
        reason=f"no {DATA / folder}; set RANKWISE_DATA to the folder of the real data",
    )


@pytest.fixture(autouse=True)
def _one_thread():
    """Threads wait for each other longer than matrices of this size take, if others run tests."""
    with threadpool_limits(1):
        yield


def rows_of(printed, name):
    """Numbers in each line that starts with this name."""
    lines = [line for line in printed.splitlines() if line.startswith(name)]
    return [[float(x) for x in re.findall(r"[-+]?\d+\.\d+", line[len(name) :])] for line in lines]


# -- without data ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "main", [rankrls09_tables45.main, leave_pair_out_bias.main, letor_leave_query_out.main]
)
def test_absent_data_are_explained(main, tmp_path):
    with pytest.raises(SystemExit, match=r"does not exist.*--data"):
        main(["--data", str(tmp_path)])


def test_every_block_of_the_page_runs(capsys):
    namespace = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, PAGE.name, "exec"), namespace)
    assert "leave-group-out" in capsys.readouterr().out


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_lambda_is_that_of_the_papers(learner):
    random = np.random.default_rng(0)
    X, y, lam = random.normal(size=(20, 4)), random.normal(size=20), 3.0
    L = np.eye(20) if learner.beta else 20 * np.eye(20) - 1  # of the sums over items or over pairs
    w = np.linalg.solve(X.T @ L @ X + lam * np.eye(4), X.T @ L @ y)
    model = RankRLS(lam / learner.amount(20), beta=learner.beta).fit(X, y)
    np.testing.assert_allclose(model.coef_, w)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_lambda_is_chosen_by_the_pooled_auc_of_refitted_models(learner, monkeypatch):
    monkeypatch.setattr(rankrls09_tables45, "LAMBDAS", np.array([0.1, 10.0, 1000.0]))
    random = np.random.default_rng(1)
    X = random.normal(size=(90, 30))
    Y = (X[:, :2] + random.normal(size=(90, 2)) > 1).astype(float)
    sample = Sample(X[:50] @ X[:50].T, Y[:50], X[50:] @ X[:50].T, Y[50:])
    values, lambdas = rankrls09_tables45.measure(learner, sample)
    for j in range(2):
        pooled, test = [], []
        for lam in rankrls09_tables45.LAMBDAS:
            model = RankRLS(lam / learner.amount(50), beta=learner.beta)
            y, scores = np.where(Y[:50, j] > 0, 1.0, learner.negative), np.empty(50)
            for rest, held in KFold(10, shuffle=True, random_state=0).split(y):
                scores[held] = model.fit(X[rest], y[rest]).predict(X[held])
            pooled.append(auc(y, scores))
            test.append(auc(Y[50:, j], model.fit(X[:50], y).predict(X[50:])))
        best = np.flatnonzero(np.array(pooled) == max(pooled))[-1]
        assert lambdas[j] == rankrls09_tables45.LAMBDAS[best]
        assert values[j] == pytest.approx(test[best])


def test_auc_interval_is_that_of_all_pairs():
    random = np.random.default_rng(0)
    y = (random.random(40) < 0.3).astype(float)
    scores = np.round(y + random.normal(size=40), 1)  # some tie
    wins = np.array([[(a > b) + (a == b) / 2 for b in scores[y == 0]] for a in scores[y > 0]])
    of_positive, of_negative = wins.mean(axis=1), wins.mean(axis=0)
    error = np.sqrt(
        of_positive.var(ddof=1) / len(of_positive) + of_negative.var(ddof=1) / len(of_negative)
    )
    value, low, high = auc_interval(y, scores)
    assert value == pytest.approx(auc(y, scores))
    assert (value - low) / 1.96 == pytest.approx(error)
    assert high == pytest.approx(min(1, value + 1.96 * error))
    assert auc_interval(np.array([0, 0, 1, 1]), np.arange(4.0)) == (1, 1, 1)


def test_auc_intervals_cover_the_truth_as_often_as_they_say():
    random = np.random.default_rng(1)
    truth = 0.7602  # Φ(1/√2), of two normal distributions one apart
    inside = 0
    for _ in range(400):
        y = np.repeat([0.0, 1.0], [80, 40])
        _, low, high = auc_interval(y, y + random.normal(size=120))
        inside += low <= truth <= high
    assert 0.91 < inside / 400 < 0.98


def test_intervals_apart():
    assert count_apart([[0.5, 0.6], [0.1, 0.2], [0.3, 0.5]], [[0.3, 0.4]] * 3) == (1, 1)
    for topic, ends in PUBLISHED_INTERVALS.items():
        for k, value in enumerate(PUBLISHED[topic][:3]):
            assert ends[2 * k] < value < ends[2 * k + 1]


def test_tenfold_estimates_are_those_of_refitted_ridge_regression():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 60))
    Y = random.integers(0, 2, size=(40, 3)).astype(float)
    X -= X.mean(axis=0)
    averaged, pooled, intercept = leave_pair_out_bias.tenfold(X, Y, 0.5, seed=3)
    scores, by_fold = np.empty((2, *Y.shape)), []
    for train, test in KFold(10, shuffle=True, random_state=3).split(X):
        model = Ridge(0.5 * (len(train) - 1) / 2).fit(X[train], Y[train])
        scores[0, test], scores[1, test] = X[test] @ model.coef_.T, model.predict(X[test])
        by_fold.append(auc(Y[test], scores[0, test], undefined="nan"))
    np.testing.assert_allclose(averaged, np.nanmean(by_fold, axis=0))
    np.testing.assert_allclose(pooled, auc(Y, scores[0]))
    np.testing.assert_allclose(intercept, auc(Y, scores[1]))


def test_leave_query_out_trains_on_both_parts_and_chooses_as_refitting_does(monkeypatch):
    alphas = np.array([1e-3, 1.0, 1e3])
    monkeypatch.setattr(letor_leave_query_out, "ALPHAS", alphas)
    random = np.random.default_rng(0)

    def part(first):
        X = random.normal(size=(48, 5))
        y = np.clip(np.round(X[:, 0] + random.normal(size=48)), 0, 2)
        return RankingData(X, y, first + np.arange(48) // 8)

    fold = Fold(part(0), part(10), part(20))
    X, y, groups = letor_leave_query_out.join(fold)[:3]
    assert len(y) == 96
    chosen = letor_leave_query_out.choose_by_leave_query_out(fold, "ndcg@10")
    errors = np.zeros(3)
    for k, alpha in enumerate(alphas):
        scores = np.empty(96)
        for group in np.unique(groups):
            rest = groups != group
            model = RankRLS(alpha).fit(X[rest], y[rest], groups[rest])
            scores[~rest] = model.predict(X[~rest])
        errors[k] = -letor_leave_query_out.ndcg(y, scores, groups, k=10)
    assert chosen.alpha_ == alphas[errors.argmin()]
    np.testing.assert_allclose(chosen.coef_, RankRLS(chosen.alpha_).fit(X, y, groups).coef_)


# -- with data -------------------------------------------------------------------------------


@needs("reuters21578")
def test_rankrls09_tables45(capsys):
    rankrls09_tables45.main(["--data", str(DATA), "--repeats", "1"])
    printed = capsys.readouterr().out
    ((rank_rls, _, rls, _, rls_01, _, no_ties, _, *published),) = rows_of(printed, "mean ")
    assert published == [0.947, 0.88, 0.946]
    assert rank_rls > 0.95
    assert rls < rank_rls - 0.04  # as published, but only with labels -1/+1
    assert abs(rls_01 - rank_rls) < 0.02
    assert no_ties == pytest.approx(rank_rls, abs=0.01)
    for topic in PUBLISHED:
        line = next(line for line in printed.splitlines() if line.startswith(f"{topic} "))
        found, paper, here = map(int, line.split()[-3:])
        assert found >= 2
        assert abs(paper - here) <= 2


@needs("gene_expression")
def test_leave_pair_out_bias(tmp_path, capsys):
    leave_pair_out_bias.main(["--data", str(DATA), "--output", str(tmp_path), "--repeats", "100"])
    printed = capsys.readouterr().out
    for alpha in ("0.1", "1", "10"):
        for name in leave_pair_out_bias.DATASETS:
            ((pair, pair_sd, average, average_sd, pooled, _, intercept, _),) = rows_of(
                printed, f"{name}, alpha = {alpha} "
            )
            assert abs(pair) < 0.04  # three standard errors of 100 permutations
            assert intercept < min(pair, average, pooled) - 0.02
            assert average_sd > pair_sd
    real, _ = rows_of(printed, "colon  ")
    assert real[0] == pytest.approx(0.89, abs=0.01)
    assert real[1] == 0  # no random split into folds
    assert (tmp_path / "leave_pair_out_bias.png").stat().st_size > 10_000


@needs("ohsumed")
def test_letor_leave_query_out(capsys):
    letor_leave_query_out.main(["--data", str(DATA), "--dataset", "ohsumed"])
    printed = capsys.readouterr().out
    rows = [rows_of(printed, way)[0] for way in letor_leave_query_out.WAYS]
    for row in rows:
        assert row == pytest.approx([0.449, 0.452, 0.376], abs=0.008)
    assert "84 queries, 31 alphas" in printed


def test_auto_estimate_prints_both_estimates(capsys):
    auto_estimate.main(["--problems", "2", "--new", "20"])
    printed = capsys.readouterr().out
    assert "second level" in printed
    assert "out of bag" in printed
