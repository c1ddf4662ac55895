"""Data of each section of the report: groups, items, features, margins, search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.errors import UndefinedMetricError
from rankwise.frames import take_rows
from rankwise.inspection import Contributions, permutation_importance
from rankwise.inspection.feature_effects import feature_curves, has_curves
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.by_group import nanmean, standard_error
from rankwise.metrics.grades import default_metrics
from rankwise.metrics.registry import MetricName, get_metrics
from rankwise.model_selection.validation_curve import curves_of_search
from rankwise.pages.page_values import as_text, short_numbers
from rankwise.pages.report.report_data import ReportModel, ScoredItems
from rankwise.rankers.base import ranks_in_groups
from rankwise.rankers.pipelines import transform_step
from rankwise.uncertainty import CalibratedRanker, RankInterval
from rankwise.uncertainty.calibrated_ranker import draw_pairs

LISTED_GROUPS = 20_000
BINS = 20
SHOWN_GROUPS = 2_000
SHOWN_ITEMS = 20_000
ITEMS_A_GROUP = 200
FIRST_ITEMS = 50
LISTED_FEATURES = 40
SHOWN_FEATURES = 8
SHUFFLED_ITEMS = 1000  # of whole groups
SHUFFLED_FEATURES = 100
SHAPES = 8  # curves of features that are drawn
SHOWN_CURVES = 8  # of a search
DRAWN_PAIRS = 1_000_000
MARGIN_BINS = 60
OUTER = 0.0025  # share of the pairs beyond either end of the drawing


class MetricResult(NamedTuple):
    """A metric: its mean with an interval, and its value in each group.

    Attributes
    ----------
    metric : Metric
        Which one.
    values : ndarray of shape (n_groups,)
        NaN where it is undefined.
    mean, low, high : float
        Mean over the groups with a value, and its confidence interval; NaN if there is none. A
        value that is the same in all groups shows no spread, so it has no interval.
    refusal : str
        Why the metric does not take these true scores (NDCG of negative ones), else empty.
    """

    metric: Metric
    values: Array
    mean: float = np.nan
    low: float = np.nan
    high: float = np.nan
    refusal: str = ""

    @property
    def n_undefined(self) -> int:
        """Number of groups without a value."""
        return int(np.isnan(self.values).sum())

    @property
    def scale(self) -> tuple[float, float]:
        """The ends of the scale; where the metric has none, those of its values and 0."""
        values = np.append(self.values[~np.isnan(self.values)], 0.0)
        low = self.metric.lowest
        if not np.isfinite(low):
            low = float(values.min())
        high = self.metric.highest
        if not np.isfinite(high):
            high = float(values.max())
        if high <= low:
            high = low + 1.0
        return low, high


def measure(
    scored: ScoredItems, metrics: MetricName | Iterable[MetricName] | None, confidence: float
) -> list[MetricResult]:
    """Evaluate the metrics, those that have a value first; there must be at least one."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    chosen = get_metrics(default_metrics(scored.y) if metrics is None else metrics)
    if not chosen:
        raise ValueError("metrics is empty; name at least one, such as 'ndcg@10'.")
    results = []
    for metric in chosen:
        try:
            by_group = metric.by_group(scored.ranking)
            interval = metric.interval(by_group, confidence)
            results.append(MetricResult(metric, by_group.values, *interval))
        except ValueError as error:  # the user's other metrics are worth a page all the same
            nothing = np.full(scored.groups.n_groups, np.nan)
            results.append(MetricResult(metric, nothing, refusal=str(error)))
    if all(result.refusal for result in results):
        raise ValueError(results[0].refusal)
    if all(np.isnan(result.mean) for result in results):
        needs = "; ".join(f"{metric} needs {metric.needs}" for metric in chosen)
        raise UndefinedMetricError(
            f"no metric is defined in any of the {scored.groups.n_groups} groups: {needs}. "
            "Check y and groups."
        )
    return sorted(results, key=lambda result: bool(np.isnan(result.mean)))


def describe_groups(
    scored: ScoredItems,
    results: list[MetricResult],
    effects: FeatureEffects | None,
    ranks: RankInterval | None,
) -> dict[str, Any]:
    """The metrics, the table of groups column by column, and the items of some groups."""
    defined = [result for result in results if not np.isnan(result.mean)]
    listed = choose_groups(defined[0], np.arange(scored.groups.n_groups), LISTED_GROUPS)
    shown = groups_that_fit(scored, listed)
    if len(shown) < len(listed):
        shown = groups_that_fit(scored, choose_groups(defined[0], listed, len(shown)))
    listed = np.r_[shown, listed[~np.isin(listed, shown)]]
    return {
        "metrics": [describe_metric(result) for result in defined],
        "groups": {
            "names": [scored.group_name(group) for group in listed],
            "sizes": scored.groups.sizes[listed].tolist(),
            "pairs": scored.counts.differing[listed].tolist(),
            "values": [short_numbers(result.values[listed]) for result in defined],
            "total": scored.groups.n_groups,
        },
        "items": describe_items(scored, shown, effects, ranks),
    }


def describe_metric(result: MetricResult) -> dict[str, Any]:
    """A metric for the page, with a histogram of its values in all groups, listed or not."""
    metric, values = result.metric, result.values[~np.isnan(result.values)]
    start, end = result.scale
    place = (values - start) / (end - start)
    bins = np.clip((place * BINS + 1e-9).astype(np.intp), 0, BINS - 1)
    return {
        "name": metric.name,
        "title": metric.short_title,
        "greater": metric.greater_is_better,
        "start": start,
        "end": end,
        "counts": np.bincount(bins, minlength=BINS).tolist(),
        "defined": len(values),
        "median": short_numbers(np.median(values))[0],
    }


def choose_groups(result: MetricResult, among: Indices, n_wanted: int) -> Indices:
    """Select at most `n_wanted` groups, worst first: the worst half and the best half."""
    values = result.values[among]
    badness = -values if result.metric.greater_is_better else values
    order: Indices = among[np.argsort(-badness, kind="stable")]  # NaN last
    if len(order) <= n_wanted:
        return order
    n_worst, n_defined = (n_wanted + 1) // 2, len(order) - int(np.isnan(values).sum())
    best = order[max(n_worst, n_defined - n_wanted // 2) :]
    chosen: Indices = np.r_[order[:n_worst], best[: n_wanted // 2]]
    return chosen


def groups_that_fit(scored: ScoredItems, wanted: Indices) -> Indices:
    """The first of the wanted groups whose items the page can hold."""
    sizes = np.minimum(scored.groups.sizes[wanted], ITEMS_A_GROUP)
    n_fitting = int(np.searchsorted(np.cumsum(sizes), SHOWN_ITEMS, side="right"))
    return wanted[: min(max(n_fitting, 1), SHOWN_GROUPS)]


def describe_items(
    scored: ScoredItems,
    groups: Indices,
    effects: FeatureEffects | None,
    ranks: RankInterval | None,
) -> list[dict[str, Any]]:
    """Names, scores, ranks and swaps of the items of these groups, best predicted first."""
    predicted = ranks_in_groups(scored.scores, scored.groups.codes)
    true = ranks_in_groups(scored.y, scored.groups.codes)
    too_high, too_low = scored.swaps
    described = []
    for group in groups:
        start = scored.targets.starts[group]
        members = scored.order[start : start + scored.groups.sizes[group]]
        items = members[_shown_positions(true[members])]
        entry = {
            "total": len(members),
            "names": [scored.name_of(item) for item in items],
            "scores": short_numbers(scored.scores[items]),
            "y": short_numbers(scored.y[items], 9),
            "predicted": predicted[items].tolist(),
            "true": true[items].tolist(),
            "tooHigh": too_high[items].tolist(),
            "tooLow": too_low[items].tolist(),
        }
        if ranks is not None:
            entry |= {"rankLow": ranks.low[items].tolist(), "rankHigh": ranks.high[items].tolist()}
        if effects is not None:
            entry["contributions"] = effects.contributions(items)
        described.append(entry)
    return described


def _shown_positions(true: Indices) -> Indices:
    """Of a long group the first predicted items, the truly best, and others at even steps."""
    n = len(true)
    if n <= ITEMS_A_GROUP:
        return np.arange(n)
    best = np.argsort(true, kind="stable")[:FIRST_ITEMS]
    kept = np.union1d(np.arange(FIRST_ITEMS), best)
    others = np.setdiff1d(np.arange(n), kept)
    steps = np.linspace(0, len(others) - 1, ITEMS_A_GROUP - len(kept)).round().astype(np.intp)
    return np.union1d(kept, others[steps])


def possible_ranks(subject: ReportModel, confidence: float) -> RankInterval | None:
    """Rank intervals of the items with a true score; None if the model is not calibrated."""
    parts, scored, items = subject.parts, subject.scored, subject.X
    if parts.calibrated is None:
        return None
    if parts.steps_before is not None:
        items = transform_step(parts.steps_before, items, subject.groups)
    items = take_rows(items, scored.rows) if scored.n_unscored else items
    return parts.calibrated.rank_interval(items, scored.groups.codes, confidence)


@dataclass(frozen=True, eq=False)
class FeatureEffects:
    """A linear model on the items of a page.

    Attributes
    ----------
    added : Contributions
        What the features that the learner sees add to the scores.
    scored : ScoredItems
        The items.
    errors : ndarray of shape (n_features,) or None
        Standard errors of the weights.
    """

    added: Contributions
    scored: ScoredItems
    errors: Array | None = None

    @cached_property
    def shown(self) -> Indices:
        """The features that add most, whose contributions to single items are shown."""
        spread = self.added.spread
        order = np.argsort(-spread, kind="stable")
        useful: Indices = order[spread[order] > 0][:SHOWN_FEATURES]
        return useful

    def contributions(self, items: Indices) -> list[list[Any]]:
        """For each item what the shown features add, and at last all other features together."""
        added = self.added.of(items, self.shown)
        others = self.scored.centered_scores[items] - added.sum(axis=1)
        return [short_numbers(row, 4) for row in np.column_stack([added, others])]

    def describe(self) -> dict[str, Any]:
        """The table of the largest weights and effects for the page."""
        weights, spread, names = self.added.weights, self.added.spread, self.added.names
        by_weight = np.argsort(-np.abs(weights), kind="stable")
        by_spread = np.argsort(-spread, kind="stable")
        half = LISTED_FEATURES // 2
        listed = list(dict.fromkeys([*by_spread[:half], *by_weight[:half], *by_spread]))
        listed = [j for j in listed if weights[j]][:LISTED_FEATURES]
        return {
            "names": [names[j] for j in listed],
            "weights": short_numbers(weights[listed]),
            "errors": None if self.errors is None else short_numbers(self.errors[listed]),
            "effects": short_numbers((np.sign(weights) * spread)[listed]),
            "shares": short_numbers(self.added.share[listed]),
            "total": len(weights),
            "nonzero": int(np.count_nonzero(weights)),
            "shown": [names[j] for j in self.shown],
            "others": len(weights) - len(self.shown),
        }


def find_effects(subject: ReportModel) -> FeatureEffects | None:
    """Of a linear model; None for others."""
    parts, scored = subject.parts, subject.scored
    weights = None if parts.learner is None else parts.weights()
    if weights is None:
        return None
    names = [as_text(name) for name in parts.feature_names(subject.names, len(weights))]
    added = Contributions(weights, subject.features(), scored.groups, names)
    ranker, errors = parts.calibrated, None
    if ranker is not None and ranker.root_ is not None and len(ranker.root_) == len(weights):
        errors = ranker.jackknife().coefficient_errors
    return FeatureEffects(added, scored, errors)


def describe_losses(
    subject: ReportModel, metric: Metric, confidence: float
) -> dict[str, Any] | None:
    """What is lost if a column of X is shuffled, for an AutoRanker; None for other models."""
    X, scored = subject.X, subject.scored
    if not hasattr(subject.parts.learner, "members_") or X.shape[1] > SHUFFLED_FEATURES:
        return None
    last = int(np.searchsorted(np.cumsum(scored.groups.sizes), SHUFFLED_ITEMS, side="right"))
    kept = np.flatnonzero(scored.groups.codes < max(1, last))
    rows = scored.rows[kept]
    labels = None if scored.is_one_list else scored.groups.codes[kept]
    shuffled = permutation_importance(
        *(subject.model, take_rows(X, rows), scored.y[kept], labels),
        scoring=metric,
        n_repeats=2,
        confidence=confidence,
    )
    if np.isnan(shuffled.importance).any():
        return None
    order = np.argsort(-shuffled.importance, kind="stable")
    names = shuffled.names if subject.names is None else subject.names
    return {
        "names": [as_text(names[j]) for j in order],
        "confidence": confidence,
        "losses": short_numbers(shuffled.importance[order]),
        "low": short_numbers(np.nan_to_num(shuffled.low[order])),
        "high": short_numbers(np.nan_to_num(shuffled.high[order])),
        "metric": metric.name,
        "items": len(rows),
    }


def describe_shapes(subject: ReportModel) -> dict[str, Any] | None:
    """The curves of the features of an additive model that add most."""
    if not has_curves(subject.model):
        return None
    curves, scale = feature_curves(subject.model, subject.X, subject.groups, subject.names)
    shown = [
        {
            "label": as_text(curve.name),
            "x": short_numbers(curve.x),
            "mean": short_numbers(curve.added),
        }
        for curve in curves[:SHAPES]
        if curve.spread > 0
    ]
    return {"scale": scale, "curves": shown, "total": len(curves)} if shown else None


def describe_margins(scored: ScoredItems, rng: np.random.Generator) -> dict[str, Any]:
    """A histogram of f_i − f_j over pairs with y_i > y_j, and the exact numbers of pairs."""
    total = int(scored.counts.differing.sum())
    if not total:
        return {"total": 0}
    better, worse = draw_pairs(scored.y, scored.groups.codes, DRAWN_PAIRS, rng)
    margins = scored.scores[better] - scored.scores[worse]
    zero = margins == 0
    edges = _edges(margins)
    counts = np.histogram(np.clip(margins[~zero], edges[0], edges[-1]), edges)[0]
    return {
        "total": total,
        "used": len(margins),
        "edges": short_numbers(edges),
        "counts": counts.tolist(),
        "zero": int(zero.sum()),
        "wrong": int(scored.counts.discordant.sum()),
        "tied": int(scored.counts.tied_scores.sum()),
        "median": short_numbers(np.median(margins))[0],
    }


def _edges(margins: Array) -> Array:
    """Edges of bins of equal width, 0 among them."""
    low, high = np.quantile(margins, [OUTER, 1 - OUTER])
    low = min(float(low), 0.0)
    high = max(float(high), 0.0)
    width = (high - low) / (MARGIN_BINS - 2)
    if width == 0:
        width = float(np.abs(margins).max())
    if width == 0:
        width = 1.0
    first = min(np.floor(low / width), -1)
    last = max(np.ceil(high / width), 1)
    return np.asarray(np.arange(first, last + 1) * width)


def describe_reliability(ranker: CalibratedRanker | None) -> dict[str, Any] | None:
    """How often held-out pairs came out as their probability said; None if none was said."""
    if ranker is None:
        return None
    bins = ranker.reliability()
    return {
        "said": short_numbers(bins.predicted),
        "was": short_numbers(bins.observed),
        "pairs": int(bins.n_pairs.sum()),
        "loss": short_numbers(ranker.log_loss_)[0],
    }


def describe_curves(learner: Any) -> dict[str, Any] | None:
    """The held-out score of each candidate of a search, with the spread over groups."""
    if "mean_score" not in getattr(learner, "cv_results_", ()):
        return None
    every, metric = curves_of_search(learner), get_metric(learner.scoring)
    drawn, peaks = [], []
    for curve in every:
        by_group = curve.by_group if curve.by_group.ndim == 2 else curve.by_group.mean(axis=2)
        mean, error = nanmean(by_group), standard_error(by_group)
        drawn.append(
            {
                "label": ", ".join(f"{name} = {value}" for name, value in curve.params.items()),
                "x": short_numbers(curve.x),
                "mean": short_numbers(mean, 6),
                "low": short_numbers(mean - error, 6),
                "high": short_numbers(mean + error, 6),
                "nParts": int((~np.isnan(by_group)).any(axis=1).sum()),
            }
        )
        worth = mean if metric.greater_is_better else -mean
        peaks.append(np.max(worth, initial=-np.inf, where=~np.isnan(worth)))
    known = [k for k, peak in enumerate(peaks) if np.isfinite(peak)]
    order = sorted(known, key=lambda k: (not every[k].is_chosen, -peaks[k]))[:SHOWN_CURVES]
    variable = every[0].parameter
    return {
        "variable": variable,
        "isLog": variable == "alpha",
        "metric": metric.title,
        "greater": metric.greater_is_better,
        "way": str(learner.cv_results_.get("cv", "folds")),
        "curves": [drawn[k] for k in order],
        "total": len(drawn),
        "best": {
            "x": short_numbers(learner.best_params_[variable])[0],
            "y": short_numbers(learner.best_score_)[0],
        },
        "nParts": drawn[order[0]]["nParts"],
        "part": _parts_of(learner.cv_results_),
    }


def _parts_of(results: dict[str, Any]) -> str:
    """Over which parts of the data a mean is taken.

    The rows of a single list that was cut into folds all have the label of that list.
    """
    labels = results.get("groups")
    if labels is None:  # a pursuit does not tell
        return "held-out parts"
    is_grouped = results.get("cv") != "folds of edges" and len(np.unique(labels)) == len(labels)
    return "groups" if is_grouped else "folds"
