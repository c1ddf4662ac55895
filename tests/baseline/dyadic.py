"""Problems of tables: ConditionalRankRLS and LabelRanker, with their searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.baseline.draws import (
    chance,
    draw_basis,
    draw_kernel,
    log_uniform,
    pick,
)
from tests.baseline.names import call, find
from tests.baseline.rankers import log_alpha, record_model
from tests.baseline.record import Record

COSTS = ("magnitude", "magnitude", "sign")


def draw_table(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features of rows and of columns, and a table of values."""
    n_rows = int(rng.integers(8, 18))
    n_columns = int(rng.integers(4, 9))
    rows = rng.normal(size=(n_rows, 3))
    columns = rng.normal(size=(n_columns, 2))
    values = rows @ rng.normal(size=(3, 2)) @ columns.T
    Y = values + 0.5 * rng.normal(size=values.shape)
    if chance(rng, 0.3):
        Y = np.round(Y)
    return rows, columns, Y


def draw_table_options(rng: np.random.Generator) -> dict[str, Any]:
    """Return the parameters of ConditionalRankRLS without the regularization."""
    options: dict[str, Any] = {
        "ranked": pick(rng, ("columns", "columns", "rows", "cells")),
        "cost": pick(rng, COSTS),
        "ties": pick(rng, ("include", "exclude")),
        "group_weight": pick(rng, ("pairs", "groups")),
        "tol": 1e-11,
    }
    for side in ("row", "column"):
        if chance(rng, 0.4):
            options[f"{side}_kernel"] = "rbf"
            options[f"{side}_gamma"] = log_uniform(rng, 0.1, 1.0)
    return options


def conditional_rank_rls(rng: np.random.Generator, record: Record) -> None:
    """ConditionalRankRLS on whole tables and tables with missing cells."""
    rows, columns, Y = draw_table(rng)
    if chance(rng, 0.3):
        Y[rng.random(Y.shape) < 0.15] = np.nan
    model = find("ConditionalRankRLS")(log_alpha(rng), **draw_table_options(rng))
    model.fit(rows, columns, Y)
    record_model(record, model)
    record.add("predict", model.predict(rows[:4] + 0.1, columns + 0.1))
    record.add("rank", model.rank(rows[:4] + 0.1, columns))
    record.add("score", model.score(rows, columns, Y))


def conditional_leave_out(rng: np.random.Generator, record: Record) -> None:
    """Scores of rows, columns or both by ConditionalRankRLS without them."""
    rows, columns, Y = draw_table(rng)
    learner = find("ConditionalRankRLS")(log_alpha(rng), **draw_table_options(rng))
    record.describe(learner)
    leave = pick(rng, ("rows", "rows", "columns", "both"))
    cv = pick(rng, ("auto", 3))
    held_out = learner.leave_out(rows, columns, Y, leave, alphas=[0.05, 0.5, 5.0], cv=cv)
    record.add("scores", held_out)


def conditional_searches(rng: np.random.Generator, record: Record) -> None:
    """ConditionalRankRLSCV."""
    rows, columns, Y = draw_table(rng)
    options = draw_table_options(rng)
    options["ranked"] = "columns"
    leave = pick(rng, ("rows", "columns"))
    search = find("ConditionalRankRLSCV")([0.01, 0.1, 1.0, 10.0], leave=leave, **options)
    search.fit(rows, columns, Y)
    record.add("best_params", search.best_params_)
    record.add("best_score", search.best_score_)
    record.add("predict", search.predict(rows + 0.1, columns))


def draw_labels(rng: np.random.Generator, values: str) -> tuple[np.ndarray, np.ndarray]:
    """Return instances, and the ranks of labels, or their scores with missing ones and ties."""
    X = rng.normal(size=(int(rng.integers(20, 40)), 3))
    y = X @ rng.normal(size=(3, 4)) + 0.7 * rng.normal(size=(len(X), 4))
    if values == "ranks":
        return X, (-y).argsort(axis=1).argsort(axis=1) + 1.0
    if chance(rng, 0.3):
        y[rng.random(y.shape) < 0.15] = np.nan
    if chance(rng, 0.3):
        y = np.round(y)
    return X, y


def draw_label_options(rng: np.random.Generator, values: str, n_instances: int) -> dict[str, Any]:
    """Return the parameters of LabelRanker without the regularization."""
    options: dict[str, Any] = {
        "values": values,
        "cost": pick(rng, COSTS),
        "group_weight": pick(rng, ("pairs", "groups")),
        "fit_intercept": chance(rng, 0.8),
        "tol": 1e-11,
    }
    options |= draw_kernel(rng, 0.4)
    if "kernel" in options:
        options |= draw_basis(rng, n_instances)
    return options


def label_ranker(rng: np.random.Generator, record: Record) -> None:
    """LabelRanker: scores, ranks, held-out scores and conformal sets."""
    values = pick(rng, ("scores", "scores", "ranks"))
    X, y = draw_labels(rng, values)
    model = find("LabelRanker")(log_alpha(rng), **draw_label_options(rng, values, len(X)))
    model.fit(X, y)
    record_model(record, model)
    record.add("predict", model.predict(X[:8] + 0.1))
    record.add("rank", model.rank(X[:8] + 0.1))
    record.add("score", model.score(X, y))
    record.add("leave_out", model.leave_out(X, y, alphas=[0.1, 1.0]))
    model.calibrate(X, y)
    sets = call(model.predict_set, X[:8] + 0.1, confidence=0.8)
    record.add("set_sizes", [len(labels) for labels in sets])
    record.add("set_labels", np.concatenate(sets))


def label_searches(rng: np.random.Generator, record: Record) -> None:
    """LabelRankerCV."""
    values = pick(rng, ("scores", "scores", "ranks"))
    X, y = draw_labels(rng, values)
    search = find("LabelRankerCV")(
        [0.01, 0.1, 1.0, 10.0], **draw_label_options(rng, values, len(X))
    )
    search.fit(X, y)
    record.add("best_params", search.best_params_)
    record.add("best_score", search.best_score_)
    record.add("predict", search.predict(X + 0.1))


AREAS = {
    "conditional_rank_rls": (conditional_rank_rls, 100),
    "conditional_leave_out": (conditional_leave_out, 60),
    "conditional_searches": (conditional_searches, 30),
    "label_ranker": (label_ranker, 80),
    "label_searches": (label_searches, 40),
}
