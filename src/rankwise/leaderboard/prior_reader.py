"""Reader of prior ratings: boards, mappings, series and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import svd

from rankwise.arrays import AnyArray, Array, MatrixLike
from rankwise.datasets import PairData
from rankwise.formatting import count, join_words
from rankwise.frames import as_array, frame_columns
from rankwise.leaderboard.board import Leaderboard
from rankwise.leaderboard.board_types import Label
from rankwise.leaderboard.prior import RANK_TOLERANCE, Priors
from rankwise.uncertainty.possible_ranks import COVARIANCE_LIMIT
from rankwise.validation import check_float_array

PRIOR = "the prior"
OnePriorArgument: TypeAlias = Leaderboard | MatrixLike
PriorArgument: TypeAlias = OnePriorArgument | list[OnePriorArgument]


class _RatedItem(NamedTuple):
    """Label and rating of an item by a prior."""

    label: Label
    rating: float


class _OnePrior(NamedTuple):
    """Name of a prior, and its ratings by the text of the label."""

    name: str
    ratings: dict[str, _RatedItem]


def read_prior(prior: PriorArgument, data: PairData) -> tuple[PairData, Priors]:
    """Read the argument `prior` of `rate`.

    Returns
    -------
    data : PairData
        The comparisons, with the items that only the prior rates at the end of the items.
    priors : Priors
        Ratings of all items.
    """
    priors = _read_all(prior)
    for one_prior in priors:
        _check_overlap(one_prior, data)
    data = _with_rated_items(data, priors)
    item_texts = [str(label) for label in data.items.tolist()]
    names = _distinct_names(priors)
    table: dict[str, AnyArray] = {"item": data.items}
    notes = []
    for name, one_prior in zip(names, priors, strict=True):
        ratings = _ratings_of_items(one_prior, item_texts)
        n_missing = int(np.isnan(ratings).sum())
        if n_missing:
            notes.append(f"{name} does not rate {count(n_missing, 'item')}, imputed as average")
        table[name] = (ratings - np.nanmean(ratings)) / np.nanstd(ratings)

    standardized = np.column_stack([table[name] for name in names])
    columns = np.nan_to_num(standardized)  # items that are not rated get the mean, 0
    priors_of_board = Priors(
        names=tuple(names),
        columns=columns,
        orthogonal_basis=_orthogonal_basis(columns),
        note="; ".join(notes),
        table=table,
    )
    return data, priors_of_board


def _read_all(prior: PriorArgument) -> list[_OnePrior]:
    """Read one prior, or a list of them."""
    if not isinstance(prior, (list, tuple)):
        return _read_argument(prior)
    if not prior:
        raise ValueError("prior is empty; pass a board, or ratings by item.")
    return [one_prior for argument in prior for one_prior in _read_argument(argument)]


def _distinct_names(priors: list[_OnePrior]) -> list[str]:
    """Names of the priors, numbered if two are equal, or if one is the name of the items."""
    names = [one_prior.name for one_prior in priors]
    # Number the names if two are equal, or one is that of the column of items.
    if len(set(names)) < len(names) or "item" in names:
        return [f"{name} {k}" for k, name in enumerate(names, start=1)]
    return names


def _ratings_of_items(one_prior: _OnePrior, item_texts: list[str]) -> Array:
    """Rating of each item, NaN for items that the prior does not rate."""
    ratings = np.full(len(item_texts), np.nan)
    for position, text in enumerate(item_texts):
        if text in one_prior.ratings:
            ratings[position] = one_prior.ratings[text].rating
    return ratings


def _check_overlap(one_prior: _OnePrior, data: PairData) -> None:
    """Refuse a prior that rates none of the compared items, or all of them equally."""
    # A prior must give different ratings to at least two of the compared items.
    compared = data.items[np.union1d(data.first, data.second)].tolist()
    texts = [str(label) for label in compared]
    rated = [one_prior.ratings[text] for text in texts if text in one_prior.ratings]
    distinct_ratings = {item.rating for item in rated}
    if len(distinct_ratings) >= 2:
        return
    problem = "gives all of them the same rating" if rated else "rates none of them"
    raise ValueError(
        f"{one_prior.name} does not distinguish the compared items: it {problem}. Its items are "
        f"{join_words(map(repr, one_prior.ratings))}, the compared items are "
        f"{join_words(map(repr, texts))}."
    )


def _with_rated_items(data: PairData, priors: list[_OnePrior]) -> PairData:
    """Append the items that only priors rate."""
    # Items of the data, then items that only a prior rates.
    label_by_text = {str(label): label for label in data.items.tolist()}
    n_compared = len(label_by_text)
    for one_prior in priors:
        for text, rated in one_prior.ratings.items():
            label_by_text.setdefault(text, rated.label)
    if len(label_by_text) > n_compared:
        only_rated = list(label_by_text.values())[n_compared:]
        items = np.concatenate([data.items, np.array(only_rated)])
        data = replace(data, items=items)
    if data.n_items > COVARIANCE_LIMIT:
        raise ValueError(
            f"prior= is for at most {COVARIANCE_LIMIT:,} items, but there are {data.n_items:,}."
        )
    return data


def _orthogonal_basis(columns: Array) -> Array:
    # Left singular vectors with a mean square of 1; linearly dependent columns are dropped.
    centered = columns - columns.mean(axis=0)
    left_vectors, singular_values, _ = svd(centered, full_matrices=False)
    is_independent = singular_values > RANK_TOLERANCE * singular_values[0]
    return np.asarray(left_vectors[:, is_independent] * np.sqrt(len(columns)))


def _read_argument(prior: OnePriorArgument) -> list[_OnePrior]:
    """Read a board, a mapping, a series or a frame; a frame may have several columns."""
    if isinstance(prior, Leaderboard):
        ratings = _ratings_by_text(PRIOR, prior.items.tolist(), prior.ratings)
        return [_OnePrior(PRIOR, ratings)]
    if _is_series(prior):
        prior = prior.to_dict()
    if not isinstance(prior, Mapping):
        return _read_table(prior, frame_columns(prior))
    # A mapping is ratings by item, or a table of columns.
    is_rating_by_item = all(np.ndim(value) == 0 for value in prior.values())
    if not is_rating_by_item:
        return _read_table(prior, prior)
    ratings = _ratings_by_text(PRIOR, labels=list(prior), values=list(prior.values()))
    return [_OnePrior(PRIOR, ratings)]


def _is_series(values: MatrixLike) -> bool:
    """Whether a value is a series of pandas, whose index has the items."""
    return hasattr(values, "to_dict") and np.ndim(values) == 1


def _read_table(prior: object, columns: Mapping[str, ArrayLike] | None) -> list[_OnePrior]:
    """Read a column of items and columns of ratings."""
    if columns is None or len(columns) < 2:
        raise TypeError(
            f"prior is of type {type(prior).__name__}; expected a board, ratings by item (a dict "
            "or series), a table with a column of items and columns of ratings, or a list."
        )
    item_column = "item" if "item" in columns else next(iter(columns))
    labels = np.asarray(as_array(columns[item_column], item_column)).tolist()
    if "rating" in columns:
        values = as_array(columns["rating"], "rating")
        return [_OnePrior(PRIOR, _ratings_by_text(PRIOR, labels, values))]
    return [
        _OnePrior(name, _ratings_by_text(name, labels, as_array(column, name)))
        for name, column in columns.items()
        if name != item_column
    ]


def _ratings_by_text(name: str, labels: list[Label], values: ArrayLike) -> dict[str, _RatedItem]:
    """Return the ratings by the text of the label, without items whose rating is missing."""
    ratings = check_float_array(name, values)
    repeated = [text for text, n in Counter(map(str, labels)).items() if n > 1]
    if repeated:
        raise ValueError(f"{name} rates the item {repeated[0]!r} twice; pass one rating per item.")
    if np.isinf(ratings).any():
        raise ValueError(f"{name} has an infinite rating; correct it, or drop the item.")
    return {
        str(label): _RatedItem(label, rating)
        for label, rating in zip(labels, ratings.tolist(), strict=True)
        if not np.isnan(rating)
    }
