"""What is known of the items before the votes: ratings by a judge who may be wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd

from rankwise.arrays import Array
from rankwise.datasets import PairData
from rankwise.formatting import count, join_words
from rankwise.frames import as_array, frame_columns
from rankwise.leaderboard.algebra.leave_comparison_out import LeaveOneOut
from rankwise.leaderboard.algebra.rating_system import leave_one_out_errors
from rankwise.uncertainty.jackknife_errors import COVARIANCE_LIMIT
from rankwise.validation import check_float_array

PRIOR = "the prior"
SAME = 1e-9  # of the largest singular value of the priors; less is a prior that repeats others


class Prior(NamedTuple):
    """What a prior was worth on a board.

    Attributes
    ----------
    names : tuple of str
        Of the priors.
    slopes : tuple of float
        What two items differ in rating, on the scale of the board, that differ by one standard
        deviation in the prior; negative if the votes contradict it.
    votes : float
        How many votes the priors count for: nλ/2, since each of n items has λ votes that say where
        the priors put it and each vote is about two items, times the share of the spread of the
        ratings that the priors explain. Random numbers count for next to none.
    trust : float
        Their share of all votes, theirs and those of people: 0 is people alone, 1 the prior alone.
    """

    names: tuple[str, ...]
    slopes: tuple[float, ...]
    votes: float
    trust: float

    def note(self, n_votes: int) -> str:
        """One sentence for the reader of a board."""
        names = " and ".join(self.names)
        verb = "count" if len(self.names) > 1 else "counts"
        said = (
            f"{names} {verb} as much as {self.votes:.0f} votes beside the {n_votes} that were "
            f"given: trusted {self.trust:.0%}"
        )
        turned = [name for name, slope in zip(self.names, self.slopes, strict=True) if slope < 0]
        return said + (f"; the votes contradict {' and '.join(turned)}" if turned else "")


class Priors(NamedTuple):
    """Ratings of all items by all priors.

    Attributes
    ----------
    names : tuple of str
        Of the priors.
    columns : ndarray of shape (n_items, n_priors)
        B, each with mean 0 and deviation 1 over the items that it rates; 0 for the others.
    basis : ndarray of shape (n_items, rank)
        What the columns span: two priors that say the same are one.
    note : str
        Which items the priors do not rate.
    table : dict from str to ndarray
        Items and columns as a prior for `rate`; NaN where an item is not rated.
    """

    names: tuple[str, ...]
    columns: Array
    basis: Array
    note: str
    table: dict[str, NDArray[Any]]

    def worth(self, ratings: Array, factor: float, exact: LeaveOneOut) -> Prior:
        """From the ratings, the unit of the board and the least squares behind it.

        What is regularized, u, is orthogonal to B, so that B β is the projection of r. The variance
        of u is σ²/λ with σ² the mean square of votes left out.
        """
        tally, n_votes = exact.system.tally, len(exact.system.tally.outcome)
        alpha = exact.shift / tally.total_weight
        centered = self.columns - self.columns.mean(axis=0)
        slopes = np.linalg.lstsq(centered, ratings, rcond=SAME)[0]
        explained = float(np.mean((centered @ slopes) ** 2))
        share = 0.0  # one vote, which cannot support the prior if it is left out, or only ties
        if n_votes > 1:
            (error,) = leave_one_out_errors(exact.system, np.array([alpha]))
            total = explained + error / (alpha * n_votes)
            share = explained / total if total > 0 else 0.0
        regularization = alpha * n_votes  # λ in votes
        votes = regularization * share * tally.n_items / 2
        told = tuple((factor * slopes).tolist())
        return Prior(self.names, told, votes, votes / (votes + n_votes))


def read_prior(prior: Any, data: PairData) -> tuple[PairData, Priors]:
    """The comparisons with the items of the prior, too, and the ratings by it."""
    several = prior if isinstance(prior, (list, tuple)) else [prior]
    if not several:
        raise ValueError("prior is empty; pass a board, or ratings by item.")
    read = [(name, _by_text(name, *rated)) for one in several for name, *rated in _ratings_of(one)]
    names = [name for name, _ in read]
    if len(set(names)) < len(names):
        names = [f"{name} {k}" for k, name in enumerate(names, start=1)]
    voted = [str(label) for label in data.items[np.union1d(data.first, data.second)].tolist()]
    labels = {str(label): label for label in data.items.tolist()}
    n_known = len(labels)
    for name, ratings in read:
        n_values = len({ratings[text][1] for text in voted if text in ratings})
        if n_values < 2:
            raise ValueError(
                f"{name} says nothing about the items of the votes: it rates "
                f"{'them all alike' if n_values else 'none of them'}. Its items are "
                f"{join_words(map(repr, ratings))}, theirs {join_words(map(repr, voted))}."
            )
        labels |= {text: label for text, (label, _) in ratings.items() if text not in labels}
    if len(labels) > n_known:
        extra = np.array(list(labels.values())[n_known:])
        data = replace(data, items=np.concatenate([data.items, extra]))
    if data.n_items > COVARIANCE_LIMIT:
        raise ValueError(
            f"prior= is for at most {COVARIANCE_LIMIT:,} items, but there are {data.n_items:,}."
        )
    table, notes = {"item": data.items}, []
    for name, (_, ratings) in zip(names, read, strict=True):
        column = np.array([ratings.get(text, (None, np.nan))[1] for text in labels])
        table[name] = (column - np.nanmean(column)) / np.nanstd(column)
        if np.isnan(column).any():
            missing = count(int(np.isnan(column).sum()), "item")
            notes.append(f"{name} does not rate {missing}, and is taken to call such average")
    columns = np.nan_to_num(np.column_stack([table[name] for name in names]))
    left, size, _ = svd(columns - columns.mean(axis=0), full_matrices=False)
    basis = left[:, size > SAME * size[0]] * np.sqrt(len(labels))
    return data, Priors(tuple(names), columns, basis, "; ".join(notes), table)


def _ratings_of(prior: Any) -> list[tuple[str, Any, Any]]:
    """Name, labels and values of each prior in a board, a mapping, a series or a frame."""
    if hasattr(prior, "ratings"):  # a board
        return [(PRIOR, prior.items.tolist(), prior.ratings)]
    if getattr(prior, "ndim", 2) == 1 and hasattr(prior, "to_dict"):  # a series
        prior = prior.to_dict()
    if isinstance(prior, Mapping) and all(np.ndim(value) == 0 for value in prior.values()):
        return [(PRIOR, list(prior), list(prior.values()))]
    columns = prior if isinstance(prior, Mapping) else frame_columns(prior)
    if columns is None or len(columns) < 2:
        raise TypeError(
            f"prior is of type {type(prior).__name__}; expected a board, ratings by item (a dict "
            "or series), a table with a column of items and columns of ratings, or a list."
        )
    names = list(columns)
    item = "item" if "item" in names else names[0]
    labels = np.asarray(as_array(columns[item], item)).tolist()
    if "rating" in names:
        return [(PRIOR, labels, as_array(columns["rating"], "rating"))]
    return [(name, labels, as_array(columns[name], name)) for name in names if name != item]


def _by_text(name: str, labels: list[Any], values: Any) -> dict[str, tuple[Any, float]]:
    """Label and rating by the text of the label; an item without a rating (nan) is not there."""
    ratings = check_float_array(name, values)
    twice = [text for text, n in Counter(map(str, labels)).items() if n > 1]
    if twice:
        raise ValueError(f"{name} has the item {twice[0]!r} twice; give each item one rating.")
    if np.isinf(ratings).any():
        raise ValueError(f"{name} has an infinite rating; correct it, or leave out the item.")
    rows = zip(labels, ratings.tolist(), strict=True)
    return {str(label): (label, value) for label, value in rows if value == value}
