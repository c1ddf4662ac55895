"""Prior ratings of the items, such as those of a language model as a judge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import AnyArray, Array
from rankwise.leaderboard.algebra.alpha_selection import leave_one_out_errors
from rankwise.leaderboard.algebra.leave_comparison_out import LeaveOneOut

RANK_TOLERANCE = 1e-9  # relative to the largest singular value of the priors


class Prior(NamedTuple):
    """Weight of the priors of a board.

    Attributes
    ----------
    names : tuple of str
        Names of the priors.
    slopes : tuple of float
        Difference in rating, on the scale of the board, of two items that differ by one standard
        deviation in the prior; negative if the votes contradict the prior.
    votes : float
        Number of votes that the priors are equivalent to: nλ/2, since the priors add λ votes to
        each of n items and each vote is about two items, times the share of the variance of the
        ratings that the priors explain; close to 0 for random numbers.
    trust : float
        Share of the priors in all votes, theirs and the observed ones, from 0 to 1.
    """

    names: tuple[str, ...]
    slopes: tuple[float, ...]
    votes: float
    trust: float

    def note(self, n_votes: int) -> str:
        """Return one sentence for the reader of a board.

        Parameters
        ----------
        n_votes : int
            Number of votes on the board.

        Returns
        -------
        str
            The sentence.
        """
        names = " and ".join(self.names)
        verb = "count" if len(self.names) > 1 else "counts"
        text = (
            f"{names} {verb} as much as {self.votes:.0f} votes, compared with {n_votes} observed "
            f"votes: trusted {self.trust:.0%}"
        )
        contradicted = [
            name for name, slope in zip(self.names, self.slopes, strict=True) if slope < 0
        ]
        if contradicted:
            text += f"; the votes contradict {' and '.join(contradicted)}"
        return text


class Priors(NamedTuple):
    """Ratings of all items by all priors.

    Attributes
    ----------
    names : tuple of str
        Names of the priors.
    columns : ndarray of shape (n_items, n_priors)
        B, each column with mean 0 and standard deviation 1 over the items that it rates; 0 for the
        other items.
    orthogonal_basis : ndarray of shape (n_items, rank)
        Orthogonal basis of the centered columns; equal priors are one.
    note : str
        Items that the priors do not rate.
    table : dict from str to ndarray
        Items and columns as a prior for `rate`; NaN where an item is not rated.
    """

    names: tuple[str, ...]
    columns: Array
    orthogonal_basis: Array
    note: str
    table: dict[str, AnyArray]

    def weigh(self, ratings: Array, scale_factor: float, leave_one_out: LeaveOneOut) -> Prior:
        """Return the weight of the priors on a board.

        The regularized part u of the ratings is orthogonal to B, so B β is the projection of r. The
        variance of u is σ²/λ, with σ² the mean square of the left-out votes.

        Parameters
        ----------
        ratings : ndarray of shape (n_items,)
            Ratings of the model.
        scale_factor : float
            Factor of the scale of the board.
        leave_one_out : LeaveOneOut
            Least squares with these ratings.
        """
        # A prior adds λ votes to each item, times the share of the variance of the ratings that it
        # explains: explained variance / (explained variance + σ²/λ), with the unexplained variance
        # σ²/λ.
        counts = leave_one_out.counts
        n_votes = counts.n_comparisons
        alpha = leave_one_out.ridge / counts.total_weight
        penalty_in_votes = alpha * n_votes  # λ for votes of weight 1

        # Projection of the ratings on the priors, and the variance that it explains.
        centered_priors = self.columns - self.columns.mean(axis=0)
        slopes = np.linalg.lstsq(centered_priors, ratings, rcond=RANK_TOLERANCE)[0]
        explained_variance = float(np.mean((centered_priors @ slopes) ** 2))

        explained_share = 0.0  # a single vote cannot support the prior
        if n_votes > 1:
            # Mean square of the left-out votes, for the alpha of the board only.
            (noise,) = leave_one_out_errors(leave_one_out.system, np.array([alpha]))
            total_variance = explained_variance + noise / penalty_in_votes
            if total_variance > 0:
                explained_share = explained_variance / total_variance
        votes = penalty_in_votes * explained_share * counts.n_items / 2  # a vote is about two items
        return Prior(
            names=self.names,
            slopes=tuple((scale_factor * slopes).tolist()),
            votes=votes,
            trust=votes / (votes + n_votes),
        )
