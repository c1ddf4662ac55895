"""The iterative solver, [RankRLS09] section 4.3, against dense truths, and on large sparse X."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from rankwise import RankRLS, RankRLSCV, ScoreGraph
from rankwise.losses import SquaredLoss
from rankwise.model_selection import leave_group_out_predict
from rankwise.runtime.progress import Progress
from rankwise.solvers.least_squares import conjugate_gradients, galerkin_path, minimize_iteratively


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def sparse_list(rng, m=300, p=200):
    """Counts of words that are common or rare, and scores that some of them explain."""
    counts = rng.poisson(3.0 / np.arange(1, p + 1) ** 0.7, size=(m, p)).astype(float)
    X = sp.csr_array(counts)
    return X, X @ rng.normal(size=p) + rng.normal(size=m), rng.integers(0, 12, m)


def test_conjugate_gradients_solve_every_column_to_the_tolerance(rng):
    B = rng.normal(size=(30, 30))
    A = B @ B.T + 1e-2 * np.eye(30)
    t = rng.normal(size=(30, 3)) * [1.0, 1e6, 1e-6]
    found = conjugate_gradients(lambda V: A @ V, t, np.diag(A), tol=1e-10)
    assert found.converged
    residual = np.linalg.norm(A @ found.x - t, axis=0) / np.linalg.norm(t, axis=0)
    assert residual.max() < 1e-8
    alone = conjugate_gradients(lambda V: A @ V, t[:, 1:2], np.diag(A), tol=1e-10)
    np.testing.assert_allclose(found.x[:, 1:2], alone.x, rtol=1e-6)


def test_a_zero_right_hand_side_and_an_exact_start_take_no_iteration(rng):
    A = np.diag([1.0, 2.0, 3.0])
    t = rng.normal(size=(3, 1))
    found = conjugate_gradients(lambda V: A @ V, 0 * t, np.ones(3), tol=1e-8)
    assert (found.n_iter, found.converged, found.x.any()) == (0, True, False)
    exact = np.linalg.solve(A, t)
    found = conjugate_gradients(lambda V: A @ V, t, np.ones(3), tol=1e-8, start=exact)
    assert found.n_iter == 0
    np.testing.assert_array_equal(found.x, exact)


def test_the_diagonal_of_the_matrix_solves_a_diagonal_system_at_once(rng):
    d = np.logspace(-6, 6, 40)
    t = rng.normal(size=(40, 1))
    found = conjugate_gradients(lambda V: d[:, None] * V, t, d, tol=1e-12)
    assert found.n_iter == 1
    np.testing.assert_allclose(found.x[:, 0], t[:, 0] / d)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_norms_are_the_diagonal_of_the_system(rng, form, beta):
    X, y, groups = sparse_list(rng, 60, 20)
    loss = SquaredLoss(ScoreGraph(y, groups), beta, y)
    R = form(X.toarray())
    np.testing.assert_allclose(loss.norms(R), np.diag(loss.system(X.toarray())[0]), atol=1e-10)
    np.testing.assert_allclose(loss.norms(X.toarray(), 60), loss.norms(R), atol=1e-10)


def test_an_alpha_path_is_warm_started_from_the_largest(rng):
    X, y, groups = sparse_list(rng)
    alphas = np.logspace(-3, 0, 7)
    loss = SquaredLoss(ScoreGraph(y, groups))
    steps = []
    path = minimize_iteratively(
        loss, X, alphas, tol=1e-8, max_iter=None, watch=lambda n, _: steps.append(n)
    )
    cold = [minimize_iteratively(loss, X, [a], tol=1e-8, max_iter=None).n_iter for a in alphas]
    assert len(steps) < sum(cold)
    exact = RankRLS().path(X.toarray(), y, groups, alphas=alphas)
    np.testing.assert_allclose(path.coef, exact.coefficients, atol=1e-6)


def test_unfinished_iterations_warn_and_name_the_alpha(rng):
    X, y, groups = sparse_list(rng)
    model = RankRLS(solver="iterative", max_iter=2)
    with pytest.warns(ConvergenceWarning, match="after 2 iterations .* at alpha=0.001; raise"):
        model.fit(X, y, groups)
    assert model.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="at alpha=1e-05"):
        model.path(X, y, groups, alphas=[1e-5, 1e-3])


def test_a_hundred_thousand_rows_and_columns_are_never_densified(rng):
    n, p = 100_000, 120_000
    rows = np.repeat(np.arange(n), 5)
    X = sp.csr_matrix((rng.normal(size=5 * n), (rows, rng.integers(0, p, 5 * n))), shape=(n, p))
    y = X @ rng.normal(size=p)
    tracemalloc.start()
    model = RankRLS(1e-5, tol=1e-6).fit(X, y, np.arange(n) // 50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.solver_ == "iterative"
    assert peak < 2**28  # a dense row of X for each item would be 96 GB
    assert model.score(X, y, np.arange(n) // 50) > 0.9


def test_the_line_of_iterations_appears_only_for_long_work_and_a_person(capsys):
    line = Progress("RankRLS", show=True)
    line.iteration(3, 0.5)
    line.iteration(4, 0.25)
    line.close()
    assert "RankRLS iteration 4, residual 2.5e-01" in (drawn := capsys.readouterr().err)
    assert drawn.endswith("\n")
    Progress("RankRLS").iteration(1, 1.0)
    assert capsys.readouterr().err == ""


def test_one_space_solves_the_system_of_every_shift(rng):
    R = rng.standard_normal((40, 15)) * np.logspace(0, -3, 15)
    A, t = R.T @ R, rng.standard_normal(15)
    shifts = np.array([1e-6, 1e-2, 10.0])

    def solve(t, n_steps, A=A, tol=1e-12):
        return galerkin_path(lambda v: A @ v, t, np.diagonal(A), shifts, tol, n_steps)

    for x, shift in zip(solve(t, 40)[0], shifts, strict=True):
        truth = np.linalg.solve(A + shift * np.eye(15), t)
        np.testing.assert_allclose(x, truth, rtol=1e-8)
    early, residuals, n_iter = solve(t, 4)
    errors = [np.linalg.norm(A @ x + s * x - t) for x, s in zip(early, shifts, strict=True)]
    np.testing.assert_allclose(residuals * np.linalg.norm(t), errors, rtol=1e-6, atol=1e-12)
    assert n_iter == 4
    assert not solve(np.zeros(15), 4)[0].any()
    few, _, n_iter = solve(t, 40, 2 * np.eye(15), tol=0.0)  # every vector is an eigenvector
    np.testing.assert_allclose(few, t / (2 + shifts[:, None]), rtol=1e-12)
    assert n_iter == 1


def test_a_search_over_many_categories_goes_by_iterations_and_chooses_as_folds_do(rng):
    n = 3000
    codes = rng.integers(0, 600, size=n)
    X = sp.csr_matrix((np.ones(n), (np.arange(n), codes)), shape=(n, 600))
    y = rng.standard_normal(600)[codes] + rng.standard_normal(n)
    groups = rng.integers(0, 60, size=n)
    alphas = [1e-6, 1e-4, 1e-2]
    wide = sp.hstack([X, sp.csr_matrix((n, 4000))], format="csr")
    search = RankRLSCV(alphas).fit(wide, y, groups)
    assert (search.solver_, search.cv_results_["cv"]) == ("iterative", "folds of groups")
    direct = RankRLSCV(alphas, solver="primal", cv=5).fit(X, y, groups)
    np.testing.assert_allclose(
        search.cv_results_["mean_score"], direct.cv_results_["mean_score"], atol=1e-3
    )
    np.testing.assert_allclose(search.predict(wide), direct.predict(X), atol=1e-5)
    assert RankRLS().fit(X, y, groups).solver_ == "primal"
    few = groups < 15  # leave-group-out keeps its shortcut
    held_out = leave_group_out_predict(RankRLS(1e-3), wide[few], y[few], groups[few])
    truth = leave_group_out_predict(RankRLS(1e-3), X[few].toarray(), y[few], groups[few])
    np.testing.assert_allclose(held_out, truth, atol=1e-8)
