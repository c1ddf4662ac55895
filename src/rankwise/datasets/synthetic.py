"""Synthetic ranking data with known weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.validation import check_int


class RankingProblem(NamedTuple):
    """Synthetic data and the weights that generated them.

    ``X, y, groups = problem[:3]`` unpacks the arguments of `fit`.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        Features.
    y : ndarray of shape (n_rows,), float64
        Scores, or levels 0, 1, ...; larger is better.
    groups : ndarray of shape (n_rows,), int
        Query of each row, 0 to n_queries - 1.
    coef : ndarray of shape (n_features,)
        True weights with norm 1; ``X @ coef`` is the true order inside each query.
    utility : ndarray of shape (n_rows,)
        `y` without noise, ties and levels: ``X @ coef`` plus the offset of the query.
    """

    X: Array
    y: Array
    groups: Indices
    coef: Array
    utility: Array


def make_ranking(
    n_queries: int = 100,
    n_documents: int | tuple[int, int] = 20,
    n_features: int = 10,
    *,
    n_informative: int | None = None,
    n_levels: int | None = 5,
    noise: float = 0.1,
    offset: float = 2.0,
    ties: float = 0.0,
    shuffle: bool = True,
    random_state: int | np.random.RandomState | None = None,
) -> RankingProblem:
    """Make ranking data from a linear utility.

    Use it for examples and tests.

        utility = x · coef + offset of the query,      score = utility + noise

    The documents of a query are distributed around the center of the query, and the offset of the
    query is a linear function of that center with weights other than `coef`. A model that ignores
    the queries mistakes differences *between* queries for preferences and learns the wrong weights
    from any amount of data. ``offset=0`` removes this difference.

    Parameters
    ----------
    n_queries : int, default=100
        Number of queries (groups).
    n_documents : int or (int, int), default=20
        Documents per query, or the range from which the number is drawn uniformly.
    n_features : int, default=10
        Number of features.
    n_informative : int, optional
        Number of features with a nonzero weight; default: all.
    n_levels : int or None, default=5
        Number of relevance levels; the scores are cut at the quantiles of all data, so that the
        levels 0, 1, ... are about equally frequent overall. None keeps real-valued scores.
    noise : float, default=0.1
        Standard deviation of the noise; that of the utility inside a query is 1.
    offset : float, default=2.0
        Size of the differences between queries, in the same unit.
    ties : float, default=0.0
        Share of the documents whose score is set to the next lower score of the same query before
        cutting into levels; the lowest document of a query keeps its score.
    shuffle : bool, default=True
        Whether to shuffle the rows, so that the documents of a query are not consecutive.
    random_state : int, RandomState or None, default=None
        Seed; an int makes the data reproducible.

    Returns
    -------
    RankingProblem
        ``X``, ``y``, ``groups``, the true ``coef`` and the noise-free ``utility``. Without noise,
        `y` and `utility` order no pair of a query in opposite ways.

    Examples
    --------
    >>> X, y, groups, coef, utility = make_ranking(n_queries=3, n_documents=4, random_state=0)
    >>> X.shape, groups.tolist()
    ((12, 10), [1, 2, 1, 2, 0, 2, 0, 2, 0, 1, 1, 0])
    """
    from sklearn.utils import check_random_state

    check_int("n_queries", n_queries, least=1)
    check_int("n_features", n_features, least=1)
    min_documents, max_documents = _check_range("n_documents", n_documents)
    if n_informative is None:
        n_informative = n_features
    check_int("n_informative", n_informative, least=1)
    if n_informative > n_features:
        raise ValueError(
            f"n_informative={n_informative}; expected at most {n_features}, the number of features."
        )
    if n_levels is not None:
        check_int("n_levels", n_levels, least=2)
    for name, amount in {"noise": noise, "offset": offset}.items():
        if not (np.isfinite(amount) and amount >= 0):
            raise ValueError(f"{name}={amount!r}; expected a finite number of at least 0.")
    if not 0 <= ties <= 1:
        raise ValueError(f"ties={ties!r}; expected a share between 0 and 1.")

    # Documents lie around the center of their query, on which the offset of the query depends.
    rng = check_random_state(random_state)
    n_documents_of_query = rng.randint(min_documents, max_documents + 1, size=n_queries)
    groups = np.repeat(np.arange(n_queries, dtype=np.intp), n_documents_of_query)
    n_rows = len(groups)
    coef = _random_unit_vector(rng, n_features, n_informative)
    query_centers = rng.standard_normal((n_queries, n_features))
    X = query_centers[groups] + rng.standard_normal((n_rows, n_features))
    offset_coef = offset * _random_unit_vector(rng, n_features, n_features)
    query_offsets = query_centers @ offset_coef
    utility = X @ coef + query_offsets[groups]

    y = utility + noise * rng.standard_normal(n_rows)
    y = _copy_next_lower_scores(y, groups, ties, rng)
    if n_levels is not None:  # cut the scores at quantiles
        thresholds = np.quantile(y, np.arange(1, n_levels) / n_levels)
        y = np.searchsorted(thresholds, y, side="right").astype(np.float64)
    order = np.arange(n_rows)
    if shuffle:
        order = rng.permutation(n_rows)
    return RankingProblem(X[order], y[order], groups[order], coef, utility[order])


def _check_range(name: str, value: int | Sequence[int]) -> tuple[int, int]:
    """Return the smallest and the largest of a number or a pair of numbers."""
    if isinstance(value, Sequence) and len(value) == 2:
        smallest = check_int(name, value[0], least=1)
        largest = check_int(name, value[1], least=smallest)
        return smallest, largest
    number = check_int(name, value, least=1)
    return number, number


def _random_unit_vector(rng: np.random.RandomState, n_features: int, n_nonzero: int) -> Array:
    """Return a random vector with norm 1 and `n_nonzero` nonzero entries."""
    vector = np.zeros(n_features)
    nonzero_positions = rng.permutation(n_features)[:n_nonzero]
    direction = rng.standard_normal(n_nonzero)
    vector[nonzero_positions] = direction / np.linalg.norm(direction)
    return vector


def _copy_next_lower_scores(
    y: Array, groups: Indices, share: float, rng: np.random.RandomState
) -> Array:
    """Copy a share of the scores from the next lower document of the query."""
    order = np.lexsort((y, groups))  # by query, the lowest score first
    sorted_groups = groups[order]
    has_lower_document = np.zeros(len(y), dtype=bool)
    has_lower_document[1:] = sorted_groups[1:] == sorted_groups[:-1]
    can_copy = np.flatnonzero(has_lower_document)
    n_copies = min(round(share * len(y)), len(can_copy))
    copying = rng.permutation(can_copy)[:n_copies]

    # The source of each document: itself, or the last one before it that does not copy. The
    # sources of copying documents are 0 first, so that the running maximum skips them.
    source = np.arange(len(y))
    source[copying] = 0
    source = np.maximum.accumulate(source)
    y_with_ties = np.empty_like(y)
    y_with_ties[order] = y[order][source]
    return y_with_ties
