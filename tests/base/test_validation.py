"""Input that NumPy would misread in silence is refused, or right; messages say what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rankwise import (
    CoRankRLS,
    PairGraph,
    RankingPursuit,
    RankRLS,
    RankRLSCV,
    RankSVM,
    ScoreGraph,
    make_target,
)
from rankwise.datasets import groups_from_sizes, write_letor
from rankwise.leaderboard import rate
from rankwise.metrics import disagreement_error
from rankwise.model_selection import leave_group_out_predict, leave_pair_out
from rankwise.solvers.least_squares import conjugate_gradients
from tests.ranker_cases import VIEWS, every_ranker

M = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(M, 3))
Y = (X @ [1.0, 2.0, 3.0] + RNG.normal(size=M)).round()
GROUPS = np.repeat(np.arange(6), 5)
MASK = np.arange(M) == 3
SCALES = [1e-300, 1e-200, 1e200, 1e300]


@every_ranker
def test_masked_entries_are_refused_wherever_they_enter(ranker, atol):
    masked_X = np.ma.array(X, mask=np.tile(MASK[:, None], (1, 3)))
    masked_y, masked_groups = np.ma.array(Y, mask=MASK), np.ma.array(GROUPS, mask=MASK)
    fitted = ranker.fit(X, Y, GROUPS)
    for name, call in [
        ("X", lambda: ranker.fit(masked_X, Y, GROUPS)),
        ("y", lambda: ranker.fit(X, masked_y, GROUPS)),
        ("groups", lambda: ranker.fit(X, Y, masked_groups)),
        ("X", lambda: fitted.predict(masked_X)),
        ("groups", lambda: fitted.rank(X, masked_groups)),
        ("y", lambda: fitted.score(X, masked_y, GROUPS)),
    ]:
        with pytest.raises(ValueError, match=rf"{name}\w* is a masked array.*in row 3; drop"):
            call()


def test_masked_arrays_without_masked_entries_are_plain_arrays():
    plain = RankRLS().fit(X, Y, GROUPS)
    masked = RankRLS().fit(np.ma.array(X), np.ma.array(Y), np.ma.array(GROUPS))
    np.testing.assert_array_equal(masked.coef_, plain.coef_)


def test_masked_entries_are_refused_elsewhere_too(tmp_path):
    target = np.ma.array(make_target(Y, GROUPS))
    target[3] = np.ma.masked
    masked = np.ma.array(np.ones(M), mask=MASK)
    for call in (
        lambda: RankRLS().fit(X, target),
        lambda: RankRLS().partial_fit(np.ma.array(X, mask=np.isnan(X) | MASK[:, None]), Y, GROUPS),
        lambda: make_target(masked, GROUPS),
        lambda: ScoreGraph(masked),
        lambda: disagreement_error(Y, Y, GROUPS, sample_weight=masked),
        lambda: groups_from_sizes(np.ma.array([1, 2], mask=[0, 1])),
        lambda: PairGraph(np.ma.array([1, 2], mask=[0, 1]), [0, 0]),
        lambda: PairGraph([1, 2], [0, 0], weight=np.ma.array([1.0, 2.0], mask=[0, 1])),
        lambda: rate(PairGraph([1], [0]), features=np.ma.array([[1.0], [2.0]], mask=[[0], [1]])),
        lambda: write_letor(tmp_path / "out.txt", X, masked),
        lambda: RankRLS(kernel="rbf", basis=np.ma.array([1, 2], mask=[0, 1])).fit(X, Y),
    ):
        with pytest.raises(ValueError, match="masked array"):
            call()
    with pytest.raises(ValueError, match="alphas: got"):
        RankRLSCV(np.ma.array([1.0, 2.0], mask=[0, 1])).fit(X, Y, GROUPS)


@pytest.mark.parametrize("n_items", [12.0, "12", True, np.True_, -1, np.nan, 2**70, [12], 1 + 0j])
def test_a_number_of_items_is_a_whole_number(n_items):
    with pytest.raises(ValueError, match=r"n_items=.*; expected a whole number from 0, the number"):
        PairGraph([0], [1], n_items=n_items)


@pytest.mark.parametrize(
    "rows",
    [
        [2**63],
        [2**64],
        [1.0],
        np.array([True]),
        ["1"],
        [None],
        [[1]],
        np.array(["2020"], dtype="M8[Y]"),
        pd.array([pd.NA], dtype="Int64"),
    ],
    ids=str,
)
def test_rows_are_whole_numbers_that_a_row_can_have(rows):
    with pytest.raises(ValueError, match=r"winner.*(row number|numbered from 0)"):
        PairGraph(rows, [0])
    with pytest.raises(ValueError, match=r"loser.*(row number|numbered from 0)"):
        PairGraph([0], rows)


def test_whole_numbers_of_every_width_are_taken():
    for rows in (np.array([1], np.uint64), np.array([1], np.int8), pd.array([1], dtype="Int64")):
        assert PairGraph(rows, [0]).n_items == 2
    for n_items in (12, np.int64(12), np.uint8(12), np.array(12)):
        assert PairGraph([0], [1], n_items=n_items).n_items == 12


@pytest.mark.parametrize(
    "values", [[1 + 1j], ["a"], [None], [np.nan], [np.inf], [pd.NA], np.array(["2020"], "M8[Y]")]
)
def test_weights_and_magnitudes_are_finite_real_numbers(values):
    for name in ("weight", "magnitude"):
        with pytest.raises(ValueError, match=f"{name}"):
            PairGraph([0], [1], **{name: values})


@pytest.mark.parametrize(
    "y, message",
    [
        (np.arange(M).astype("M8[D]"), "dtype datetime64"),
        (np.arange(M).astype("m8[D]"), "dtype timedelta64"),
        (pd.date_range("2020", periods=M, tz="UTC"), "expected real numbers"),
        (Y + 0j, "Complex data not supported"),
        (["a"] * M, "map the labels to numbers"),
        (pd.array([pd.NA, *Y[1:]], dtype="Float64"), "contains NaN"),
        (np.array([None, *Y[1:]], dtype=object), "contains NaN"),
        (np.r_[np.inf, Y[1:]], "contains infinity"),
        ([10**400] * M, "expected real numbers"),
        (2**62 + np.arange(M), r"beyond 2\*\*53.*subtract a constant"),
        (np.array(1.0), r"shape \(\)"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_scores_are_real_numbers(y, message):
    for ranker in (RankRLS(), RankSVM()):
        with pytest.raises(ValueError, match=message):
            ranker.fit(X, y)


def test_scores_of_any_numeric_type_are_the_same_scores():
    plain = RankRLS().fit(X, Y, GROUPS).coef_
    for y in (Y.astype(str), Y.astype(object), Y.astype(np.int8), pd.array(Y, dtype="Float64")):
        np.testing.assert_array_equal(RankRLS().fit(X, y, GROUPS).coef_, plain)


def test_missing_scores_of_pandas_are_unscored_rows():
    y = pd.array(np.where(GROUPS < 4, Y, np.nan), dtype="Float64")
    model = CoRankRLS(views=VIEWS).fit(X, y, GROUPS)
    assert (model.n_scored_, model.n_unscored_) == (20, 10)


@pytest.mark.parametrize(
    "groups",
    [
        np.r_[np.nan, GROUPS[1:]],
        np.r_[complex("nan"), GROUPS[1:]],
        [None, *GROUPS[1:]],
        pd.array([pd.NA, *GROUPS[1:]], dtype="Int64"),
        pd.Categorical([None] + ["a"] * (M - 1)),
        np.r_[np.datetime64("NaT"), np.arange(M - 1).astype("M8[D]")],
        [pd.NaT] + [pd.Timestamp("2020")] * (M - 1),
    ],
    ids=lambda groups: type(groups).__name__,
)
def test_missing_groups_are_refused(groups):
    with pytest.raises(ValueError, match="groups has no label in row 0"):
        RankRLS().fit(X, Y, groups)


def test_groups_of_different_lengths_are_explained():
    with pytest.raises(ValueError, match="different lengths"):
        RankRLS().fit(X, Y, [[1], [1, 2]] * 15)


@pytest.mark.parametrize(
    "items, message",
    [
        (np.arange(3 * M).reshape(M, 3).astype("M8[D]"), "X has dtype datetime64"),
        (np.arange(3 * M).reshape(M, 3).astype("m8[D]"), "X has dtype timedelta64"),
        (pd.DataFrame({"t": pd.to_timedelta(range(M)), "b": Y}), r"not numbers: t \(durations\)\."),
        (np.zeros(M, dtype=[("a", float)]), "X has dtype"),
        (X + 0j, "Complex data not supported"),
        (pd.DataFrame({"a": pd.array([pd.NA] + [1] * (M - 1), dtype="Int64")}), "contains NaN"),
    ],
)
def test_features_are_real_numbers(items, message):
    for ranker in (RankRLS(), RankSVM(), CoRankRLS(kernel="rbf"), RankingPursuit(3)):
        with pytest.raises(ValueError, match=message):
            ranker.fit(items, Y, GROUPS)


@pytest.mark.parametrize("factor", SCALES)
@pytest.mark.parametrize(
    "options",
    [
        {"solver": "iterative"},
        {"solver": "primal"},
        {"solver": "dual"},
        {"kernel": "rbf"},
        {"solver": "iterative", "beta": 0.5},
        {"solver": "iterative", "ties": "exclude"},
    ],
    ids=str,
)
def test_scores_on_any_scale_are_learned_alike(options, factor):
    model = RankRLS(**options)
    plain = model.fit(X, Y, GROUPS).predict(X)
    np.testing.assert_allclose(model.fit(X, factor * Y, GROUPS).predict(X) / factor, plain)
    held = leave_group_out_predict(model, X, Y, GROUPS)
    scaled = leave_group_out_predict(model, X, factor * Y, GROUPS)
    np.testing.assert_allclose(scaled / factor, held, atol=1e-9)


@pytest.mark.parametrize("factor", SCALES)
def test_leave_pair_out_judges_scores_on_any_scale_alike(factor):
    plain = leave_pair_out(RankRLS(), X, Y, alphas=[0.1, 10.0]).disagreement
    scaled = leave_pair_out(RankRLS(), X, factor * Y, alphas=[0.1, 10.0]).disagreement
    np.testing.assert_array_equal(scaled, plain)


@pytest.mark.parametrize("factor", SCALES)
def test_where_squares_overflow_or_vanish_it_is_said(factor):
    with pytest.raises(ValueError, match=r"mean square.*multiply all"):
        RankingPursuit(3).fit(X, factor * Y, GROUPS)
    with pytest.raises(ValueError, match="cost='relative'"):
        RankRLS(cost="relative").fit(X, factor * Y, GROUPS)
    with pytest.raises(ValueError, match=r"cost='relative'.*nearer to 1"):
        PairGraph([0, 1], [1, 2], magnitude=[factor, factor], cost="relative")


@pytest.mark.parametrize("factor", [*SCALES, 1e-320, 1.7e308])
def test_conjugate_gradients_take_right_hand_sides_of_any_size(factor):
    A = np.diag([1.0, 2.0, 3.0]) + 0.1
    t = np.array([[1.0, 0.0, 0.5], [0.3, 0.0, -0.5], [-0.7, 0.0, 0.25]])
    exact = np.linalg.solve(A, t)
    found = conjugate_gradients(lambda V: A @ V, factor * t, np.diag(A), tol=1e-12)
    assert found.converged
    loss = 1e-3 if factor < 1e-307 else 1e-9
    np.testing.assert_allclose(found.x / factor, exact, atol=loss)
    again = conjugate_gradients(
        lambda V: A @ V, factor * t, np.diag(A), tol=1e-12, start=factor * exact
    )
    np.testing.assert_allclose(again.x / factor, exact, atol=loss)
