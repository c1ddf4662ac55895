"""Runs of RankSVM on one list of scored items, with the time of every iteration."""

import time
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise import RankSVM, ScoreGraph
from rankwise.losses import HingeLoss
from rankwise.solvers import certified_descent, pairwise_objective

__all__ = ["Course", "Fit", "follow", "make_objective", "shortest_time", "standardize", "time_fit"]


class Fit(NamedTuple):
    """One training run."""

    seconds: float
    iterations: int
    gap: float
    objective: float

    def text(self, tol):
        """Seconds and iterations; the gap that is left, if it is larger than `tol`."""
        remaining_gap = ""
        if self.gap > tol:
            remaining_gap = f", gap {self.gap:.1g}"
        return f"{self.seconds:.2f} s ({self.iterations}{remaining_gap})"


class Course(NamedTuple):
    """The state after each iteration: seconds from the start, objective, lower bound."""

    seconds: np.ndarray
    objective: np.ndarray
    bound: np.ndarray


def standardize(X):
    """Features with mean 0 and variance 1; constant ones become 0."""
    standard_deviations = X.std(axis=0)
    divisors = np.where(standard_deviations > 0, standard_deviations, 1.0)
    return (X - X.mean(axis=0)) / divisors


def make_objective(X, y, alpha, loss=HingeLoss):
    """The objective of RankSVM over all pairs of different y."""
    return pairwise_objective.make_objective(X, loss(ScoreGraph(y)), alpha)


def time_fit(model, X, y, clock=time.perf_counter):
    """Fit the RankSVM and say how long it took; the limit of iterations is not worth a warning."""
    assert isinstance(model, RankSVM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = clock()
        model.fit(X, y)
        seconds = clock() - start
    return Fit(seconds, model.n_iter_, model.gap_, model.objective_)


def follow(objective, solver, *, tol, max_iter):
    """Minimize, and keep what every iteration reached and when."""
    seconds = []
    objectives = []
    bounds = []

    def record_iteration(progress):
        seconds.append(time.perf_counter() - start)
        objectives.append(progress.objective)
        bounds.append(progress.bound)

    start = time.perf_counter()
    certified_descent.minimize_pairwise(
        objective, solver, tol=tol, max_iter=max_iter, watch=record_iteration
    )
    return Course(np.array(seconds), np.array(objectives), np.array(bounds))


def shortest_time(work, repeats, clock=time.perf_counter):
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)
