"""Problems of evaluation: metrics, paired comparisons, inspection, model files, and tables."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.baseline.draws import (
    chance,
    draw_alpha,
    draw_basis,
    draw_kernel,
    draw_least_squares,
    draw_ranking,
    pick,
)
from tests.baseline.names import find
from tests.baseline.rankers import draw_views, log_alpha
from tests.baseline.record import Record

METRICS = (
    "disagreement",
    "auc",
    "pooled_auc",
    "tau",
    "spearman",
    "mse",
    "ndcg",
    "ndcg@5",
    "ndcg(gain=linear)",
    "map",
    "mrr",
    "err",
    "p@3",
    "recall@3",
    "hit@2",
    "rbp",
)


def metrics(rng: np.random.Generator, record: Record) -> None:
    """Every metric, as a mean with its interval and by group, with ties in y and scores."""
    data = draw_ranking(rng, weighted=False)
    record.describe(data.summary)
    scores = data.y + rng.normal(size=len(data.y))
    if chance(rng, 0.5):
        scores = np.round(scores)
    if chance(rng, 0.5):
        data.y = data.y - data.y.min()
    for name in METRICS:
        metric = find("get_metric")(name)
        record_metric(record, name, metric, (data.y, scores, data.groups))


def record_metric(record: Record, name: str, metric: Any, data: tuple[Any, Any, Any]) -> None:
    """Store the values of a metric by group, or the type of its exception."""
    try:
        evaluation = find("evaluate")(*data, [metric])
    except ValueError as error:  # undefined in all groups, or not for grades of this kind
        record.add(f"{name}.error", type(error).__name__)
        return
    for row in evaluation.rows:
        record.add(f"{name}.mean", [row.mean, row.low, row.high])
        record.add(f"{name}.n", [row.n_groups, row.n_undefined])
    for values in evaluation.per_group.values():
        record.add(f"{name}.per_group", values)


def weighted_metrics(rng: np.random.Generator, record: Record) -> None:
    """Metrics with weights of the items."""
    data = draw_ranking(rng, weighted=True)
    record.describe(data.summary)
    data.y = data.y - data.y.min()
    scores = data.y + rng.normal(size=len(data.y))
    for name in ("disagreement", "tau", "mse", "ndcg@5"):
        evaluation = find("evaluate")(
            data.y, scores, data.groups, [name], sample_weight=data.sample_weight
        )
        for row in evaluation.rows:
            record.add(f"{name}.mean", [row.mean, row.low, row.high])


def compare(rng: np.random.Generator, record: Record) -> None:
    """Paired comparisons of three rankers on the same groups."""
    n_groups = int(rng.integers(8, 40))
    difficulty = rng.normal(size=n_groups)
    errors = {
        name: np.round(difficulty + shift + 0.5 * rng.normal(size=n_groups), 2)
        for name, shift in (("a", 0.0), ("b", 0.2), ("c", rng.uniform(0, 1)))
    }
    if chance(rng, 0.3):
        errors["b"][rng.integers(0, n_groups, 2)] = np.nan
    comparison = find("compare")(
        errors,
        confidence=0.9,
        greater_is_better=chance(rng, 0.5),
        baseline="a" if chance(rng, 0.5) else None,
        test="wilcoxon",
    )
    record.add("n", [comparison.n_groups, comparison.n_dropped])
    record.add("rows", [row[:5] + row[7:13] for row in comparison.rows])


def inspection(rng: np.random.Generator, record: Record) -> None:
    """Contributions of columns and permutation importance."""
    data = draw_ranking(rng, grouped=True, sparse=False)
    record.describe(data.summary)
    if chance(rng, 0.5):
        model = make_pipeline(StandardScaler(), find("RankRLSCV")([0.1, 1.0]))
        model.fit(data.X, data.y, rankrlscv__groups=data.groups)
    else:
        model = find("RankRLS")(log_alpha(rng), **draw_least_squares(rng))
        model.fit(data.X, **data.target)
    result = find("contributions")(model, data.X_new, data.groups_new)
    record.add("contributions", result.values)
    if len(np.unique(data.y)) > 1:
        importance = find("permutation_importance")(
            model, data.X, data.y, data.groups, n_repeats=2, random_state=3
        )
        record.add("importance", importance.importance)
        record.add("interval", [importance.low, importance.high])
        record.add("standard_error", importance.standard_error)


def draw_learner(rng: np.random.Generator, n_items: int, n_features: int) -> Any:
    """Return a learner of any kind, for model files."""
    name = pick(
        rng, ("RankRLS", "RankRLSCV", "RankSVM", "RankLogistic", "CoRankRLS", "RankingPursuit")
    )
    kernel = draw_kernel(rng)
    if kernel:
        kernel |= draw_basis(rng, n_items)
    if name == "RankRLSCV":
        return find(name)([0.1, 1.0], **kernel)
    if name == "CoRankRLS":
        return find(name)(log_alpha(rng), views=draw_views(rng, n_features))
    if name == "RankingPursuit":
        return find(name)(3, kernel="rbf", gamma=0.3)
    return find(name)(log_alpha(rng), **kernel)


def model_files(rng: np.random.Generator, record: Record) -> None:
    """Models that are saved and loaded: alone, scaled, and calibrated."""
    data = draw_ranking(rng, grouped=True, sparse=False)
    record.describe(data.summary)
    model = draw_learner(rng, *data.X.shape)
    step = type(model).__name__.lower()
    kind = pick(rng, ("alone", "alone", "scaled", "calibrated"))
    if kind == "calibrated":
        model = find("CalibratedRanker")(find("RankRLS")(log_alpha(rng)))
    if kind == "scaled":
        model = make_pipeline(StandardScaler(), model)
        model.fit(data.X, data.y, **{f"{step}__groups": data.groups})
    else:
        model.fit(data.X, data.y, data.groups)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.rw"
        find("save")(model, path)
        loaded = find("load")(path)
    record.add("predict", model.predict(data.X_new))
    record.add("loaded", loaded.predict(data.X_new))
    record.add("is_same", np.array_equal(model.predict(data.X_new), loaded.predict(data.X_new)))


def export_linear(rng: np.random.Generator, record: Record) -> None:
    """The weights of a linear model, as they are exported."""
    data = draw_ranking(rng, grouped=True, sparse=False)
    record.describe(data.summary)
    model = find("RankRLS")(draw_alpha(rng)).fit(data.X, **data.target)
    exported = find("export_linear")(model)
    for key, value in exported.items():
        if isinstance(value, (list, float, dict)):
            record.add(key, value)


def draw_table(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    """Return a table with numbers, categories, dates and missing values."""
    size = rng.normal(size=n_rows)
    size[rng.random(n_rows) < 0.1] = np.nan
    city = rng.choice(["Oslo", "Rome", "Kyoto", "Lima"], n_rows).astype(object)
    city[rng.random(n_rows) < 0.1] = None
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, n_rows), unit="D")
    return pd.DataFrame(
        {
            "size": size,
            "stars": rng.integers(1, 6, n_rows),
            "city": city,
            "open": rng.choice(["yes", "no"], n_rows),
            "since": days,
        }
    )


def transformers(rng: np.random.Generator, record: Record) -> None:
    """HingeFeatures, GroupScaler and TableVectorizer."""
    data = draw_ranking(rng, grouped=True, sparse=False)
    record.describe(data.summary)
    hinges = find("HingeFeatures")(int(rng.integers(2, 6))).fit(data.X)
    record.add("hinges", hinges.transform(data.X_new))
    options = {"with_log": chance(rng, 0.3), "with_standard": chance(rng, 0.5)}
    options["with_mean"] = chance(rng, 0.7)
    scaler = find("GroupScaler")(**options).fit(data.X, groups=data.groups)
    record.add("group_scaler", scaler.transform(data.X_new, groups=data.groups_new))
    table = draw_table(rng, 60)
    vectorizer = find("TableVectorizer")(scale=chance(rng, 0.5)).fit(table[:40])
    record.add("table", np.asarray(as_dense(vectorizer.transform(table[40:])), dtype=float))
    record.add("feature_names", list(vectorizer.get_feature_names_out()))


def as_dense(X: Any) -> Any:
    """Return a dense matrix of a matrix of either kind."""
    return X.toarray() if hasattr(X, "toarray") else X


def table_pipelines(rng: np.random.Generator, record: Record) -> None:
    """RankRLS on the columns of a table."""
    table = draw_table(rng, 80)
    stars = table["stars"].to_numpy()
    y = stars + np.nan_to_num(table["size"].to_numpy()) + rng.normal(size=80)
    groups = np.repeat(np.arange(10), 8)
    model = make_pipeline(find("TableVectorizer")(scale=True), find("RankRLS")(log_alpha(rng)))
    model.fit(table[:64], y[:64], rankrls__groups=groups[:64])
    record.add("predict", model.predict(table[64:]))
    record.add("coef", model[-1].coef_)


def auto_ranker(rng: np.random.Generator, record: Record) -> None:
    """AutoRanker on small data, as numbers and as a table."""
    if chance(rng, 0.5):
        problem = find("make_ranking")(
            n_queries=14, n_documents=6, n_features=4, noise=0.5, random_state=rng.integers(1000)
        )
        X, y, groups = problem.X, problem.y, problem.groups
    else:
        X = draw_table(rng, 84)
        y = np.round(np.clip(X["stars"] - 3 + rng.normal(size=84), 0, 4)).to_numpy()
        groups = np.repeat(np.arange(14), 6)
    model = find("AutoRanker")(n_resamples=5, random_state=0).fit(X, y, groups)
    record.add("predict", model.predict(X, groups))
    record.add("score", model.score_)
    record.add("estimate", model.estimate_)
    for row in model.members_:
        numbers = [row.get(key) for key in ("alpha", "score", "low", "high", "weight")]
        record.add(f"member.{row['name']}", numbers)


AREAS = {
    "metrics": (metrics, 150),
    "weighted_metrics": (weighted_metrics, 40),
    "compare": (compare, 60),
    "inspection": (inspection, 60),
    "model_files": (model_files, 80),
    "export_linear": (export_linear, 20),
    "transformers": (transformers, 60),
    "table_pipelines": (table_pipelines, 30),
    "auto_ranker": (auto_ranker, 4),
}
