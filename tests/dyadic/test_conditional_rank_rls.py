"""Conditional ranking: tables of rows and columns against explicit dyads and refits."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import KFold

from rankwise import ConditionalRankRLS, ConditionalRankRLSCV, LabelRanker
from rankwise.metrics import disagreement_error, kendall_tau
from rankwise.persistence import load, save
from tests.oracle_tables import (
    OPTIONS,
    count_from_mean,
    explicit_dyads,
    refit_without,
    with_missing,
)

Q, T = 8, 5
ALPHAS = [1e-4, 3.0]


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def table(rng):
    rows, columns = rng.standard_normal((Q, 3)), rng.standard_normal((T, 2))
    return rows, columns, rng.integers(0, 4, (Q, T)).astype(float)


def relative_error(found, truth):
    return np.abs(found - truth).max() / np.abs(truth).max()


def kernels(kind, rows, columns, new_rows, new_columns):
    """Parameters, the kernel matrices, and values of new items to the training ones."""
    if kind == "linear":
        return {}, rows @ rows.T, columns @ columns.T, new_rows @ rows.T, new_columns @ columns.T
    options = {"row_kernel": "rbf", "row_gamma": 0.3, "column_kernel": "poly"}
    options["column_kernel_params"] = {"degree": 2, "coef0": 0.5}
    poly = {"degree": 2, "coef0": 0.5}
    return (
        options,
        rbf_kernel(rows, gamma=0.3),
        polynomial_kernel(columns, **poly),
        rbf_kernel(new_rows, rows, gamma=0.3),
        polynomial_kernel(new_columns, columns, **poly),
    )


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["linear", "kernel", "precomputed"])
@pytest.mark.parametrize("ranked", ["columns", "rows", "cells"])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_model_is_that_of_explicit_dyads(table, rng, gaps, ranked, kind, intercept):
    rows, columns, Y = table
    Y = with_missing(Y, rng) if gaps else Y
    new_rows, new_columns = rng.standard_normal((4, 3)), rng.standard_normal((6, 2))
    given, G, K, G_new, K_new = kernels(kind, rows, columns, new_rows, new_columns)
    items = (rows, columns, new_rows, new_columns)
    if kind == "precomputed":
        given, items = {"row_kernel": kind, "column_kernel": kind}, (G, K, G_new, K_new)
    on_rows = G.diagonal().mean() if intercept and ranked != "rows" else 0.0
    on_columns = K.diagonal().mean() if intercept and ranked != "columns" else 0.0
    for options, alpha in zip(OPTIONS, itertools.cycle(ALPHAS), strict=False):
        model = ConditionalRankRLS(
            alpha, ranked=ranked, fit_intercept=intercept, tol=1e-12, **given, **options
        )
        found = model.fit(items[0], items[1], Y).predict(items[2], items[3])
        A = explicit_dyads(G + on_rows, K + on_columns, Y, alpha, ranked=ranked, **options)
        truth = (G_new + on_rows) @ A @ (K_new + on_columns).T
        error = relative_error(count_from_mean(found, ranked), count_from_mean(truth, ranked))
        assert error < 1e-8, (options, alpha)


@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_weights_are_copies_of_rows(table, rng, kind):
    rows, columns, Y = table
    options = kernels(kind, rows, columns, rows, columns)[0]
    weight = rng.integers(0, 4, Q)
    copies = np.repeat(np.arange(Q), weight)
    for scores in (Y, with_missing(Y, rng)):
        model = ConditionalRankRLS(0.1, tol=1e-13, **options)
        found = model.fit(rows, columns, scores, 0.5 * weight).predict(rows)
        truth = model.fit(rows[copies], columns, scores[copies]).predict(rows)
        assert relative_error(count_from_mean(found), count_from_mean(truth)) < 1e-8
    with pytest.raises(ValueError, match="ranked='rows' does not support sample_weight"):
        ConditionalRankRLS(ranked="rows").fit(rows, columns, Y, weight)


@pytest.mark.parametrize(
    "gaps, kind, leave, intercept",
    [
        *itertools.product(
            (False, True), ("linear", "kernel"), ("rows", "columns", "both"), [False]
        ),
        *((False, "linear", leave, True) for leave in ("rows", "columns", "both")),
    ],
)
def test_leave_out_one_at_a_time_is_refitting(table, rng, gaps, kind, leave, intercept):
    rows, columns, Y = table
    if leave == "both":
        rows, columns, Y = rows[:5], columns[:4], Y[:5, :4]
    Y = with_missing(Y, rng) if gaps else Y
    given, G, K, _, _ = kernels(kind, rows, columns, rows, columns)
    G = G + G.diagonal().mean() * intercept  # the constant of all rows
    for options in [{}] if not gaps or leave == "both" else OPTIONS[::2]:
        model = ConditionalRankRLS(fit_intercept=intercept, tol=1e-12, **given, **options)
        held = model.leave_out(rows, columns, Y, leave, alphas=ALPHAS, cv=None)
        for k, alpha in enumerate(ALPHAS):
            truth = refit_without(G, K, Y, alpha, leave, **options)
            found = held[:, :, k]
            if leave == "rows":  # unknown cells may be left unscored
                scored = ~np.isnan(found)
                assert scored[~np.isnan(Y)].all()
                truth, found = np.where(scored, truth, np.nan), found
                truth -= np.nanmean(truth, axis=1, keepdims=True)
                found = found - np.nanmean(found, axis=1, keepdims=True)
                truth, found = np.nan_to_num(truth), np.nan_to_num(found)
            assert relative_error(found, truth) < 1e-8, (options, alpha)


@pytest.mark.filterwarnings("ignore:the best alpha")
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_columns_with_equal_features_are_tied_in_every_row_left_out(rng, gaps, kind):
    rows = rng.integers(0, 2, (16, 3)).astype(float)
    columns = rng.integers(0, 2, (14, 3)).astype(float)  # of eight kinds, so many are equal
    Y = rows @ rng.standard_normal((3, 3)) @ columns.T + rng.standard_normal((16, 14))
    if gaps:
        Y = with_missing(Y, rng)
    model = ConditionalRankRLS(row_kernel=kind, column_kernel=kind, tol=1e-12)
    held = model.leave_out(rows, columns, Y, "rows", alphas=ALPHAS, cv=None)
    for a, b in itertools.combinations(range(14), 2):
        if np.array_equal(columns[a], columns[b]):
            difference = held[:, a] - held[:, b]
            assert (difference[~np.isnan(difference)] == 0).all()

    known = ~np.isnan(Y)
    errors = np.zeros((len(rows), len(ALPHAS)))
    for row in range(len(rows)):
        others = np.delete(np.arange(len(rows)), row)
        for k, alpha in enumerate(ALPHAS):
            model.set_params(alpha=alpha).fit(rows[others], columns, Y[others])
            scores = model.predict(rows[[row]], columns)[0]
            errors[row, k] = disagreement_error(Y[row, known[row]], scores[known[row]])
            held_out = disagreement_error(Y[row, known[row]], held[row, known[row], k])
            assert held_out == pytest.approx(errors[row, k])
    search = ConditionalRankRLSCV(
        ALPHAS, leave="rows", row_kernel=kind, column_kernel=kind, scoring="disagreement", tol=1e-12
    )
    search.fit(rows, columns, Y)
    assert search.best_score_ == pytest.approx(errors.mean(axis=0).min())


def test_tables_in_another_order_than_their_columns_are_refused(rng):
    rows = pd.DataFrame(rng.standard_normal((5, 2)), index=list("abcde"))
    columns = pd.DataFrame(rng.standard_normal((4, 2)), index=list("wxyz"))
    Y = pd.DataFrame(rng.standard_normal((5, 4)), index=rows.index, columns=columns.index)
    model = ConditionalRankRLS().fit(rows, columns, Y)
    with pytest.raises(ValueError, match=r"columns and Y.T"):
        ConditionalRankRLS().fit(rows, columns, Y[list("zyxw")])
    with pytest.raises(ValueError, match=r"columns and Y.T"):
        model.score(rows, columns, Y[list("zyxw")])
    with pytest.raises(ValueError, match=r"rows and Y "):
        model.score(rows, columns, Y[::-1])


@pytest.mark.parametrize("leave", ["rows", "columns", "both"])
@pytest.mark.parametrize("ranked", ["columns", "rows", "cells"])
def test_folds_are_refitted_by_the_public_estimator(table, rng, ranked, leave):
    rows, columns, Y = table
    Y = with_missing(Y, rng)
    model = ConditionalRankRLS(0.2, ranked=ranked, tol=1e-12, fit_intercept=False)
    held = model.leave_out(rows, columns, Y, leave, cv=3)
    of_row, of_column = fold_of(Q), fold_of(T)
    for a, b in (
        itertools.product(range(3), range(3)) if leave == "both" else [(k, k) for k in range(3)]
    ):
        seen_rows = of_row != a if leave in ("rows", "both") else np.ones(Q, bool)
        seen_columns = of_column != b if leave in ("columns", "both") else np.ones(T, bool)
        R, S = rows[seen_rows], columns[seen_columns]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rows without a pair, in so small a table
            part = Y[np.ix_(seen_rows, seen_columns)]
            A = explicit_dyads(R @ R.T, S @ S.T, part, 0.2, ranked=ranked)
        scores = rows @ R.T @ A @ S @ columns.T
        if ranked == "cells":  # on the scale of Y
            scores -= np.nanmean((scores - Y)[np.ix_(seen_rows, seen_columns)])
        else:
            by_row = ranked == "columns"
            trained = scores[:, seen_columns] if by_row else scores[seen_rows]
            scores -= trained.mean(axis=1 if by_row else 0, keepdims=True)
        out = ~seen_rows[:, None] if leave in ("rows", "both") else np.ones((Q, 1), bool)
        out = out & (~seen_columns if leave in ("columns", "both") else np.ones(T, bool))
        np.testing.assert_allclose(held[out], scores[out], atol=1e-8)


@pytest.mark.parametrize("leave", ["rows", "columns", "both"])
@pytest.mark.parametrize("gaps", [False, True])
def test_leave_out_of_ranked_rows_is_that_of_the_turned_table(table, rng, gaps, leave):
    rows, columns, Y = table
    Y = with_missing(Y, rng) if gaps else Y
    options = {"tol": 1e-12, "fit_intercept": True}
    model = ConditionalRankRLS(0.2, ranked="rows", **options)
    turned = ConditionalRankRLS(0.2, **options)
    other = {"rows": "columns", "columns": "rows"}.get(leave, leave)
    for cv in ("auto", None, 3):
        held = model.leave_out(rows, columns, Y, leave, cv=cv)
        truth = turned.leave_out(columns, rows, Y.T, other, cv=cv).T
        np.testing.assert_allclose(held, truth, atol=1e-9)


def fold_of(n):
    """The fold of each of n things, as cv=3 makes them."""
    found = np.empty(n, dtype=int)
    for k, (_, test) in enumerate(KFold(3, shuffle=True, random_state=0).split(np.zeros(n))):
        found[test] = k
    return found


@pytest.mark.parametrize("gaps", [False, True])
def test_columns_that_are_like_no_other_are_label_ranking(table, rng, gaps):
    rows, _, Y = table
    Y = with_missing(Y, rng) if gaps else Y
    for kernel in ("linear", "rbf"):
        one = LabelRanker(0.05, kernel=kernel, tol=1e-12).fit(rows, Y)
        other = ConditionalRankRLS(
            0.05, row_kernel=kernel, column_kernel="precomputed", fit_intercept=True, tol=1e-12
        )
        other.fit(rows, np.eye(T), Y)
        new = rng.standard_normal((6, 3))
        truth = count_from_mean(one.predict(new))
        assert relative_error(count_from_mean(other.predict(new)), truth) < 1e-8
        two = other.predict(new, np.eye(T)[[3, 1]])
        np.testing.assert_allclose(two, other.predict(new)[:, [3, 1]])


def test_one_list_of_cells_is_scored_on_the_scale_of_the_table(table):
    rows, columns, Y = table
    model = ConditionalRankRLS(0.1, ranked="cells").fit(rows, columns, Y + 1e3)
    assert (model.predict(rows) - Y).mean() == pytest.approx(1e3)
    assert model.rank(rows).min() == 1
    assert model.score(rows, columns, Y) == pytest.approx(
        1 - disagreement_error(Y.ravel(), model.predict(rows).ravel())
    )


def test_an_intercept_is_for_linear_kernels_unless_it_is_asked_for(table):
    rows, columns, Y = table
    assert ConditionalRankRLS().fit(rows, columns, Y).column_coef_.any()
    assert not ConditionalRankRLS(row_kernel="rbf").fit(rows, columns, Y).column_coef_.any()
    assert not ConditionalRankRLS(fit_intercept=False).fit(rows, columns, Y).column_coef_.any()
    by_column = ConditionalRankRLS(ranked="rows", row_kernel="rbf").fit(rows, columns, Y)
    assert by_column.row_coef_.any()


def test_all_alphas_are_what_single_fits_give(table):
    rows, columns, Y = table
    with pytest.warns(UserWarning, match="edge of the grid"):
        search = ConditionalRankRLSCV(ALPHAS, row_kernel="rbf").fit(rows, columns, Y)
    single = ConditionalRankRLS(search.alpha_, row_kernel="rbf").fit(rows, columns, Y)
    np.testing.assert_array_equal(search.predict(rows), single.predict(rows))
    held = single.leave_out(rows, columns, Y, alphas=ALPHAS)
    errors = [
        disagreement_error(Y.ravel(), held[:, :, k].ravel(), np.repeat(np.arange(Q), T))
        for k in range(len(ALPHAS))
    ]
    np.testing.assert_allclose(search.cv_results_["mean_score"][0], errors)
    assert search.best_score_ == pytest.approx(min(errors))
    assert search.cv_results_["cv"] == "leave-row-out"


@pytest.mark.parametrize("leave", ["rows", "columns", "both"])
@pytest.mark.parametrize("ranked", ["columns", "rows", "cells"])
def test_the_search_judges_each_ranked_list(table, rng, ranked, leave):
    rows, columns, Y = table
    Y = with_missing(Y, rng)
    search = ConditionalRankRLSCV(
        [0.1], ranked=ranked, leave=leave, cv=3, scoring="tau", store_predictions=True
    )
    search.fit(rows, columns, Y)
    held = search.cv_results_["predictions"][0].reshape(Q, T)
    known = ~np.isnan(Y)
    i, j = np.nonzero(known)
    unit = {"columns": i, "rows": j, "cells": None}[ranked]
    values = kendall_tau(Y[known], held[known], unit, per_group=True, undefined="nan")
    assert search.best_score_ == pytest.approx(np.nanmean(values))
    assert ("row" in search.cv_results_["cv"]) == (leave in ("rows", "both"))


def test_sparse_float32_and_wide_features_give_the_same_model(table, rng):
    rows, columns, Y = table
    wide = rng.standard_normal((Q, 40))
    truth = ConditionalRankRLS().fit(rows, columns, Y).predict(rows, columns)
    thin = ConditionalRankRLS().fit(sp.csr_array(rows), sp.csr_array(columns), Y)
    np.testing.assert_allclose(thin.predict(sp.csr_array(rows), columns), truth, atol=1e-10)
    single = ConditionalRankRLS().fit(rows.astype("f4"), columns.astype("f4"), Y)
    np.testing.assert_allclose(single.predict(rows, columns), truth, rtol=1e-3, atol=1e-3)
    by_features = ConditionalRankRLS(0.1).fit(wide, columns, Y)
    by_kernel = ConditionalRankRLS(0.1, row_kernel="precomputed", fit_intercept=True)
    by_kernel.fit(wide @ wide.T, columns, Y)
    assert by_features.coef_.shape == (40, 2)
    new = rng.standard_normal((3, 40))
    np.testing.assert_allclose(
        by_features.predict(new), by_kernel.predict(new @ wide.T), atol=1e-10
    )


def test_offsets_and_scales_of_features_and_scores_change_nothing_but_the_scale(table):
    rows, columns, Y = table
    truth = ConditionalRankRLS(0.01, fit_intercept=False).fit(rows, columns, Y)
    far = ConditionalRankRLS(0.01, fit_intercept=False).fit(rows, columns + 1e6, 1e9 + 1e3 * Y)
    found = count_from_mean(far.predict(rows, columns + 1e6)) / 1e3
    np.testing.assert_allclose(found, count_from_mean(truth.predict(rows, columns)), atol=1e-5)


def test_rank_and_score_follow_what_is_ranked(table):
    rows, columns, Y = table
    model = ConditionalRankRLS(0.1).fit(rows, columns, Y)
    scores = model.predict(rows)
    assert (model.rank(rows)[np.arange(Q), scores.argmax(axis=1)] == 1).all()
    groups = np.repeat(np.arange(Q), T)
    assert model.score(rows, columns, Y) == pytest.approx(
        1 - disagreement_error(Y.ravel(), scores.ravel(), groups)
    )
    turned = ConditionalRankRLS(0.1, ranked="rows").fit(columns, rows, Y.T)
    np.testing.assert_allclose(
        count_from_mean(turned.predict(columns).T), count_from_mean(scores), atol=1e-12
    )
    assert turned.score(columns, rows, Y.T) == pytest.approx(model.score(rows, columns, Y))
    assert (model.rank(rows) == turned.rank(columns).T).all()


BAD = [
    (lambda r, c, Y: (r, c, np.where(np.arange(Q)[:, None] == 2, np.nan, Y)), "no score for 1 row"),
    (lambda r, c, Y: (r, c, np.where(np.arange(T) == 2, np.nan, Y)), "no score for 1 column"),
    (lambda r, c, Y: (r, c[:1], Y[:, :1]), "Y has the scores of one column"),
    (lambda r, c, Y: (c, r, Y), "rows and columns were swapped"),
    (lambda r, c, Y: (r, c, Y[:, 0]), "expected a table"),
    (lambda r, c, Y: (r, c, np.where(Y.max() == Y, np.inf, Y)), "infinity"),
    (lambda r, c, Y: (np.where(r == r.max(), np.nan, r), c, Y), "NaN"),
    (lambda r, c, Y: (r, c, sp.csr_array(Y)), "Y is a sparse matrix"),
    (lambda r, c, Y: (pd.DataFrame(r), c, pd.DataFrame(Y)[::-1]), "same pandas index"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_tables_are_refused_in_plain_words(table, change, message):
    with pytest.raises(ValueError, match=message):
        ConditionalRankRLS().fit(*change(*table))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"row_kernel": "precomputed"}, r"kernel values between them, \(8, 8\)"),
        ({"row_kernel": "delta"}, "kernel='delta' is unknown"),
        ({"row_kernel": "rbf", "row_kernel_params": {"gama": 1}}, "gama"),
        ({"ranked": "all"}, "ranked='all' is unknown"),
        ({"fit_intercept": "yes"}, "fit_intercept='yes' is unknown"),
    ],
)
def test_bad_options_are_refused_in_plain_words(table, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ConditionalRankRLS(**options).fit(*table)


def test_unknown_columns_and_ways_to_leave_out_are_refused(table):
    rows, columns, Y = table
    model = ConditionalRankRLS().fit(rows, columns, Y)
    for call, message in (
        (lambda: model.leave_out(rows, columns, Y, "row"), "did you mean 'rows'"),
        (lambda: model.predict(columns), "rows has 2 columns; the model was trained with 3"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_features_are_known_by_their_names(table, tmp_path):
    rows, columns, Y = table
    R, C = pd.DataFrame(rows, columns=list("abc")), pd.DataFrame(columns, columns=list("de"))
    save(ConditionalRankRLSCV([0.1]).fit(R, C, Y), tmp_path / "model.rw")
    for model in (ConditionalRankRLS(0.1).fit(R, C, Y), load(tmp_path / "model.rw")):
        np.testing.assert_allclose(model.predict(R, C), model.predict(rows, columns), rtol=1e-9)
        with pytest.raises(ValueError, match="rows has the features c, a, b"):
            model.predict(R[list("cab")])
        with pytest.raises(ValueError, match="columns has the features e, d"):
            model.predict(R, C[["e", "d"]])


def test_a_table_too_large_for_its_kernels_is_refused_before_memory_is_taken(table, monkeypatch):
    rows, columns, Y = table
    monkeypatch.setattr("rankwise.runtime.memory.available_bytes", lambda: 2000)
    with pytest.raises(ValueError, match="a table of 8 × 5 would take"):
        ConditionalRankRLS().fit(rows, columns, Y)
    monkeypatch.setattr("rankwise.runtime.memory.available_bytes", lambda: 2600)
    ConditionalRankRLS().fit(rows, columns, Y)
    big = rows[np.zeros(20, dtype=int)]
    monkeypatch.setattr("rankwise.runtime.memory.available_bytes", lambda: 8 * 20 * 5 * 8)
    with pytest.raises(ValueError, match="a kernel matrix of the rows of 20 × 20 would take"):
        ConditionalRankRLS(row_kernel="rbf").fit(big, columns, Y[np.zeros(20, dtype=int)])


def test_an_indefinite_kernel_is_told_of(table, rng):
    _, columns, Y = table
    G = rng.standard_normal((Q, Q))
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        ConditionalRankRLS(1.0, row_kernel="precomputed", fit_intercept=False).fit(
            G + G.T, columns, Y
        )


def test_estimators_can_be_cloned_and_forget_an_earlier_fit(table):
    rows, columns, Y = table
    model = clone(ConditionalRankRLSCV(row_gamma=[0.1, 1.0], row_kernel="rbf", alphas=[0.1]))
    model.fit(rows, columns, Y)
    assert model.best_params_["row_gamma"] in (0.1, 1.0)
    plain = ConditionalRankRLS(row_kernel="rbf").fit(rows, columns, Y)
    plain.set_params(row_kernel="linear").fit(rows, columns, Y)
    assert not hasattr(plain, "rows_fit_")
