"""Errors of the ratings of a board of scores, by tasks left out or by seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist, squareform

from rankwise.arrays import Array, Mask
from rankwise.caching import cached_property
from rankwise.leaderboard.inference.masking import MaskingTest, masking_test
from rankwise.leaderboard.inference.pair_errors import PairErrors, StudentErrors, student_errors
from rankwise.leaderboard.inference.ranks import FEW_UNITS
from rankwise.leaderboard.inference.ranks_by_pairs import RatingErrors
from rankwise.leaderboard.inference.seed_noise import SeedNoise, seed_noise
from rankwise.leaderboard.models.task_scores import (
    AdditiveModel,
    LeaveTaskOut,
    TaskJackknife,
    unit_kinds,
)
from rankwise.leaderboard.score_table import Repetitions
from rankwise.uncertainty.possible_ranks import CovarianceRoot

ROUNDING = 1e-12  # differences up to this multiple of the largest score are rounding errors


@dataclass(frozen=True, eq=False)
class ScoreErrors:
    """Errors of the ratings of an additive model.

    Attributes
    ----------
    model : AdditiveModel
        The fitted model.
    repetitions : Repetitions or None
        Rows of the cells.
    has_enough_tasks : ndarray of bool, shape (n_models,)
        Models with enough tasks for a rank.
    baseline : int or None
        Model from which intervals of ratings are measured; None for the mean of ranked models.
    """

    model: AdditiveModel
    repetitions: Repetitions | None
    has_enough_tasks: Mask
    baseline: int | None

    @cached_property
    def jackknife(self) -> TaskJackknife:
        """The model without each unit."""
        return TaskJackknife(self.model, unit_kinds(self.model.design))

    @cached_property
    def is_ranked(self) -> Mask:
        """Models with a rank: enough tasks, and connected to the others without any unit."""
        return self.has_enough_tasks & self.jackknife.remains_connected

    @cached_property
    def reference(self) -> Array:
        """Weights of the models in the reference of the ratings; 0 with several components."""
        # Weights of the models in the mean from which ratings are measured
        reference = np.zeros(self.model.design.n_models)
        if self.baseline is not None:
            reference[self.baseline] = 1.0
            return reference
        has_one_component = self.model.components.max() == 0  # numbered from 0
        if has_one_component and self.is_ranked.any():  # the mean of the ranked models
            reference[self.is_ranked] = 1 / self.is_ranked.sum()
        return reference

    @cached_property
    def left_out(self) -> LeaveTaskOut:
        """Changes of the ratings by each unit."""
        return self.jackknife.leave_out_each_unit(self.reference)

    @cached_property
    def by_tasks(self) -> StudentErrors:
        """Errors by the jackknife over units, with the degrees of freedom of each difference."""
        # The variance of a difference is the squared distance of two rows of the root.
        squared_distances = pdist(self.left_out.root, "sqeuclidean")
        variance = squareform(squared_distances, checks=False)
        return student_errors(variance, freedom=self.left_out.effective_units - 1)

    @cached_property
    def seed_noise(self) -> SeedNoise | None:
        """Errors by seeds alone; None without repetitions."""
        if self.repetitions is None:
            return None
        return seed_noise(self.model, self.repetitions, self.reference)

    @cached_property
    def masking(self) -> MaskingTest | None:
        """The masking test, if there are missing cells and at least five complete models."""
        return masking_test(self.model, self.jackknife.remains_connected, self.by_tasks.variance)

    @property
    def _rounding(self) -> float:
        observed_scores = self.model.scores[self.model.design.is_observed]
        return ROUNDING * float(np.abs(observed_scores).max(initial=0.0))

    def for_sample_of_tasks(self) -> RatingErrors:
        """Errors for conclusions about further tasks."""
        # The jackknife over tasks, and the masking test, which adds errors of missing cells
        methods = [self.by_tasks]
        if self.masking is not None:
            methods.append(self.masking.errors)
        return RatingErrors(
            pair_errors=PairErrors(tuple(methods)),
            spread=self._common_spread,
            rounding=self._rounding,
        )

    @property
    def _common_spread(self) -> CovarianceRoot | None:
        """Covariance of the ratings, if the table is complete and has enough effective units."""
        if not self.model.design.is_complete:
            return None
        n_effective_units = float(self.left_out.effective_units[0, 1])  # the same for all pairs
        if n_effective_units < FEW_UNITS:
            return None
        root_without_reference = self.left_out.root[:-1]
        return CovarianceRoot(root_without_reference, freedom=n_effective_units - 1)

    def for_fixed_tasks(self, noise: SeedNoise) -> RatingErrors:
        """Errors for conclusions about these tasks."""
        pair_errors = PairErrors(methods=(noise.errors,))
        return RatingErrors(pair_errors, spread=None, rounding=self._rounding)
