"""The master problem, and that its bound is one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from rankwise.losses import Plane
from rankwise.solvers.bundle import Bundle, maximize_on_simplex


def random_master(seed, n, rank):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank)) * 10.0 ** rng.integers(-3, 3, size=(n, 1))
    return A @ A.T, rng.normal(size=n)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), rank=st.integers(1, 6))
def test_master_problem_is_solved_as_by_a_general_solver(seed, n, rank):
    Q, c = random_master(seed, n, rank)
    start = np.eye(n)[0]
    x = maximize_on_simplex(Q, c, start)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1, abs=1e-12)

    def value(z):
        return c @ z - 0.5 * z @ Q @ z

    gain = c - Q @ x  # optimal if no vertex gains on the point: the gap of Frank and Wolfe
    assert gain.max() - gain @ x <= 1e-7 * max(1.0, abs(value(x)))
    other = scipy.optimize.minimize(
        lambda z: -value(z),
        np.full(n, 1 / n),
        jac=lambda z: Q @ z - c,
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda z: z.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
    )
    there = np.maximum(other.x, 0) / np.maximum(other.x, 0).sum()
    assert value(x) >= value(there) - 1e-7 * max(1.0, abs(value(there)))


@given(seed=st.integers(0, 10**6), n=st.integers(2, 10), max_steps=st.integers(0, 3))
def test_an_unfinished_master_problem_never_gets_worse_and_stays_on_the_simplex(seed, n, max_steps):
    Q, c = random_master(seed, n, 4)
    start = np.random.default_rng(seed).dirichlet(np.ones(n))
    x = maximize_on_simplex(Q, c, start, max_steps=max_steps)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1, abs=1e-12)
    assert c @ x - 0.5 * x @ Q @ x >= c @ start - 0.5 * start @ Q @ start - 1e-12


def piecewise_linear(seed, n_features, n_pieces):
    """A convex function that is the largest of some planes, and of zero."""
    rng = np.random.default_rng(seed)
    slopes, offsets = rng.normal(size=(n_pieces, n_features)), rng.normal(size=n_pieces)

    def at(w):
        k = int(np.argmax(slopes @ w + offsets))
        best = slopes[k] @ w + offsets[k]
        return (best, slopes[k]) if best > 0 else (0.0, np.zeros(n_features))

    return at


@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([1e-4, 0.1, 10.0]))
def test_bound_is_below_the_objective_everywhere_and_rises(seed, alpha):
    at = piecewise_linear(seed, 4, 12)
    rng = np.random.default_rng(seed)
    planes, bound = Bundle(np.zeros(4), 0), -np.inf
    w = np.zeros(4)
    for _ in range(15):
        value, slope = at(w)
        planes.add(slope, Plane(value - slope @ w, 0.0, 0.0))
        before = bound
        bound, w = planes.solve(alpha)
        assert bound >= before - 1e-10 * abs(before)
        for size in (0.1, 1.0, 10.0):
            other = rng.normal(size=4) * size
            assert at(other)[0] + alpha * other @ other >= bound - 1e-9
    assert at(w)[0] + alpha * w @ w >= bound - 1e-9


def test_a_full_bundle_merges_planes_and_keeps_its_bound():
    at = piecewise_linear(0, 3, 40)
    planes = Bundle(np.zeros(3), 0, max_planes=6)
    bound = -np.inf
    w = np.zeros(3)
    for _ in range(60):
        value, slope = at(w)
        planes.add(slope, Plane(value - slope @ w, 0.0, 0.0))
        assert len(planes._mixture_weights) <= 6
        before, (bound, w) = bound, planes.solve(0.1)
        assert bound >= before - 1e-10
    assert at(w)[0] + 0.1 * w @ w == pytest.approx(bound, rel=1e-3)
