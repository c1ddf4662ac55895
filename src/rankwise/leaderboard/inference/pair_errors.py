"""Standard errors of all differences of ratings, each with its own degrees of freedom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from rankwise.arrays import Array

LEAST_FREEDOM = 0.05  # degrees of freedom; with fewer, quantiles of Student's t overflow


@dataclass(frozen=True, eq=False)
class StudentErrors:
    """Variances of the differences of ratings, and degrees of freedom of Student's t.

    Attributes
    ----------
    variance : ndarray of shape (n, n)
        Variance of each difference.
    freedom : ndarray of shape (n, n)
        Degrees of freedom of each variance.
    """

    variance: Array
    freedom: Array

    def p_values(self, differences: Array) -> Array:
        """Two-sided p-values of the differences; 1 for a difference of 0."""
        absolute_difference = np.abs(differences)
        error = np.sqrt(self.variance)
        # |difference| / error: infinite without error, but 0 if equal
        t_statistic = np.full_like(absolute_difference, np.inf)
        np.divide(absolute_difference, error, out=t_statistic, where=error > 0)
        t_statistic[absolute_difference == 0] = 0.0
        return np.asarray(2 * stdtr(self.freedom, -t_statistic))  # both tails of Student's t

    def half_widths(self, row: int, confidence: float) -> Array:
        """Half widths of the intervals of the differences to one row."""
        quantile = stdtrit(self.freedom[row], (1 + confidence) / 2)  # of Student's t
        error = np.sqrt(self.variance[row])
        quantile = np.where(error > 0, quantile, 0.0)  # it may be infinite where there is no error
        return np.asarray(quantile * error)


def student_errors(variance: Array, freedom: Array) -> StudentErrors:
    """Make `StudentErrors` with at least `LEAST_FREEDOM` degrees of freedom."""
    # With fewer degrees of freedom the quantiles of Student's t overflow.
    return StudentErrors(variance, np.maximum(freedom, LEAST_FREEDOM))


@dataclass(frozen=True, eq=False)
class PairErrors:
    """Errors of all differences; the widest of several intervals counts.

    Attributes
    ----------
    methods : tuple of StudentErrors
        Errors by each method: first the jackknife or the seeds, then the masking test, if any.
    """

    methods: tuple[StudentErrors, ...]

    @property
    def by_tasks_or_seeds(self) -> StudentErrors:
        """Errors by the jackknife over tasks or, for fixed tasks, by seeds; without masking."""
        return self.methods[0]  # the second one, if any, is the masking test

    def p_values(self, differences: Array) -> Array:
        """Largest p-value of each difference."""
        # The largest of the methods: a difference must be significant by each of them
        p_values = [errors.p_values(differences) for errors in self.methods]
        return np.asarray(np.max(p_values, axis=0))

    def half_widths(self, row: int, confidence: float) -> Array:
        """Largest half widths of the intervals of the differences to one row."""
        widths = [errors.half_widths(row, confidence) for errors in self.methods]
        return np.asarray(np.max(widths, axis=0))
