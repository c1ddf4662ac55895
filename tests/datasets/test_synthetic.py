"""make_ranking: the answer is known, and every claim of its docstring holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rankwise.datasets import make_ranking


def disagreement(y, scores, groups):
    """Share of the pairs ordered by y, inside groups, that the scores order otherwise."""
    better = (y[:, None] > y) & (groups[:, None] == groups)
    return np.mean((scores[:, None] <= scores)[better])


def centred(values, groups):
    sums = np.zeros((groups.max() + 1, *values.shape[1:]))
    np.add.at(sums, groups, values)
    means = (sums.T / np.bincount(groups)).T
    return values - means[groups]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_levels=st.sampled_from([None, 2, 5]),
    ties=st.sampled_from([0.0, 0.3, 1.0]),
    n_documents=st.sampled_from([1, 2, 7, (1, 9)]),
)
def test_without_noise_the_utility_is_the_answer(seed, n_levels, ties, n_documents):
    problem = make_ranking(
        6, n_documents, 3, n_levels=n_levels, noise=0, ties=ties, random_state=seed
    )
    better = problem.y[:, None] > problem.y
    same = problem.groups[:, None] == problem.groups
    assert (problem.utility[:, None] > problem.utility)[better & same].all()
    gap = centred(problem.utility - problem.X @ problem.coef, problem.groups)
    assert_allclose(gap, 0, atol=1e-12)  # inside a query the utility is X @ coef plus a constant


def test_noise_is_in_units_of_the_spread_inside_a_query():
    problem = make_ranking(300, 50, n_levels=None, noise=0.5, random_state=1)
    assert np.std(problem.y - problem.utility) == pytest.approx(0.5, rel=0.05)
    assert np.std(centred(problem.utility, problem.groups)) == pytest.approx(1, rel=0.05)


def test_rows_are_shuffled_unless_told_otherwise():
    shuffled = make_ranking(20, 10, random_state=0)
    ordered = make_ranking(20, 10, shuffle=False, random_state=0)
    assert (np.diff(ordered.groups) >= 0).all()
    assert np.count_nonzero(np.diff(shuffled.groups)) > 150
    order = np.lexsort((shuffled.utility, shuffled.groups))
    other = np.lexsort((ordered.utility, ordered.groups))
    assert_array_equal(shuffled.X[order], ordered.X[other])  # the same rows
    assert_array_equal(shuffled.y[order], ordered.y[other])


def test_levels_are_equally_frequent():
    y = make_ranking(50, 20, n_levels=3, random_state=0).y
    counts = np.bincount(y.astype(int))
    assert len(counts) == 3
    assert counts.max() - counts.min() <= 1


def test_group_sizes_are_in_the_range():
    sizes = np.bincount(make_ranking(200, (3, 6), random_state=0).groups)
    assert set(sizes) == {3, 4, 5, 6}


def test_real_scores_have_the_ties_that_were_asked_for():
    def n_copies(ties):
        problem = make_ranking(20, 10, n_levels=None, ties=ties, random_state=0)
        return 200 - len(np.unique(np.c_[problem.groups, problem.y], axis=0))

    assert n_copies(0) == 0
    assert n_copies(0.2) == 40
    assert n_copies(1) == 180  # all but one in each query


def test_only_the_informative_features_have_weights():
    coef = make_ranking(5, 5, 12, n_informative=3, random_state=0).coef
    assert np.count_nonzero(coef) == 3


def test_offset_misleads_models_that_ignore_the_groups():
    X, y, groups, coef, utility = make_ranking(100, 10, n_levels=None, random_state=0)
    pooled = np.linalg.lstsq(np.c_[X, np.ones(len(X))], y)[0][:-1]
    grouped = np.linalg.lstsq(centred(X, groups), centred(y, groups))[0]
    assert disagreement(utility, X @ coef, groups) == 0
    assert disagreement(utility, X @ grouped, groups) < 0.02
    assert disagreement(utility, X @ pooled, groups) > 0.15

    X, y, groups, coef, utility = make_ranking(100, 10, n_levels=None, offset=0, random_state=0)
    pooled = np.linalg.lstsq(np.c_[X, np.ones(len(X))], y)[0][:-1]
    assert disagreement(utility, X @ pooled, groups) < 0.02


def test_random_state():
    first, again = make_ranking(random_state=7), make_ranking(random_state=7)
    for one, other in zip(first, again, strict=True):
        assert_array_equal(one, other)
    assert not np.array_equal(first.X, make_ranking(random_state=8).X)
    stream = np.random.RandomState(7)
    assert_array_equal(make_ranking(random_state=stream).X, first.X)
    assert not np.array_equal(make_ranking(random_state=stream).X, first.X)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_queries": 0}, "n_queries=0"),
        ({"n_documents": (5, 3)}, "n_documents=3; expected a whole number from 5"),
        ({"n_documents": (1, 2, 3)}, r"n_documents=\(1, 2, 3\)"),
        ({"n_informative": 11}, "n_informative=11; expected at most 10"),
        ({"n_levels": 1}, "n_levels=1"),
        ({"noise": np.nan}, "noise=nan"),
        ({"offset": np.inf}, "offset=inf"),
        ({"ties": 1.5}, "ties=1.5"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        make_ranking(**options)
