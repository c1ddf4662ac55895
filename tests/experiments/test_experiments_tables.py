"""The experiments on labels and tables run; skipped where the data are not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from experiments import drug_target, label_ranking, rating_tables
from rankwise import ConditionalRankRLS

DATA = Path(os.environ.get("RANKWISE_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def needs(folder):
    return pytest.mark.skipif(
        not (DATA / folder).is_dir(),
        reason=f"no {DATA / folder}; set RANKWISE_DATA to the folder of the real data",
    )


@pytest.mark.parametrize("gaps", [False, True])
def test_kernel_ridge_is_that_of_the_explicit_kronecker_kernel(monkeypatch, gaps):
    monkeypatch.setattr(drug_target, "ALPHAS", np.array([0.3]))
    rng = np.random.default_rng(0)
    G, K = (A @ A.T for A in (rng.standard_normal((5, 5)), rng.standard_normal((4, 4))))
    Y = rng.standard_normal((5, 4))
    Y[0, :2] = np.nan if gaps else 1.0
    known = ~np.isnan(Y.ravel())
    (A,) = drug_target.ridge(G, K, Y)
    y = Y.ravel()[known]
    kernel = np.kron(G, K)[np.ix_(known, known)] + 0.3 * len(y) * np.eye(len(y))
    truth = np.zeros(20)
    truth[known] = np.linalg.solve(kernel, y - y.mean())
    np.testing.assert_allclose(A.ravel(), truth, atol=1e-3 if gaps else 1e-8)


@pytest.mark.parametrize("leave", ["cells", "rows", "columns", "both"])
def test_every_cell_is_hidden_once_and_what_is_new_is_not_trained_on(leave):
    seen = np.zeros((7, 6), dtype=int)
    for rows, columns, hidden in drug_target.splits((7, 6), leave, 3):
        seen += hidden
        i, j = np.nonzero(hidden)
        assert np.isin(i, rows).any() == (leave in ("cells", "columns"))
        assert np.isin(j, columns).any() == (leave in ("cells", "rows"))
    assert (seen == 1).all()


def test_growth_measures_the_model_and_the_explicit_kernel():
    row = drug_target.growth_row(20)
    assert row[0] == "20 × 5"
    assert all(value > 0 for value in row[2:6])


def test_positive_leaves_out_negative_eigenvalues():
    K = drug_target.positive(np.array([[0.0, 2.0], [2.0, 0.0]]))
    np.testing.assert_allclose(K, np.ones((2, 2)))


@needs("label_ranking")
def test_iris_has_the_tau_of_the_table(capsys):
    (row,) = label_ranking.main(["--data", str(DATA), "--sets", "iris", "--short"])
    linear, gaussian, pairwise, forest = (float(each.split()[0]) for each in row[3:7])
    assert linear == pytest.approx(0.79, abs=0.02)
    assert gaussian == pytest.approx(0.97, abs=0.02)
    assert pairwise == pytest.approx(0.87, abs=0.02)
    assert forest == pytest.approx(0.97, abs=0.02)
    assert "iris" in capsys.readouterr().out


@needs("drug_target")
def test_nuclear_receptors_are_ranked_in_four_settings(monkeypatch):
    monkeypatch.setattr(drug_target, "ALPHAS", np.array([1e-3, 1e-2]))
    G, K, Y = drug_target.read_set(DATA, "nr")
    assert Y.shape == (26, 54)
    rows = drug_target.four_settings(G, K, Y)
    assert len(rows) == 8
    assert all(0.5 < row[2] <= 1 for row in rows)


@needs("jester")
def test_jokes_have_features_of_other_users():
    X, Z, Y = rating_tables.read_jester(DATA)
    assert X.shape == (2000, 10)
    assert Z.shape == (90, 20)
    model = ConditionalRankRLS(1e-2).fit(X[:300], Z, Y[:300])
    assert model.score(X[300:400], Z, Y[300:400]) > 0.6
