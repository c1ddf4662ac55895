"""The features of a report: weights, contributions, importance and curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.auto.auto_ranker import AutoRanker
from rankwise.caching import cached_property
from rankwise.formatting import Json, JsonObject
from rankwise.frames import take_rows
from rankwise.inspection import Contributions, permutation_importance
from rankwise.inspection.feature_effects import feature_curves, has_curves
from rankwise.inspection.model_parts import ModelParts
from rankwise.metrics import Metric
from rankwise.pages.page_values import as_text, short_numbers
from rankwise.pages.report.report_data import ReportModel, ScoredItems, count_columns

MAX_LISTED_FEATURES = 40  # rows of the table of features
MAX_CONTRIBUTIONS = 8  # features whose contributions to single items are shown
MAX_PERMUTED_ITEMS = 1000  # in complete groups
MAX_PERMUTED_FEATURES = 100
MAX_CURVES = 8
N_REPEATS = 2  # permutations of each feature


@dataclass(frozen=True, eq=False)
class FeatureEffects:
    """Weights of a linear model, and its contributions to the scores of a page's items.

    Attributes
    ----------
    feature_contributions : Contributions
        Contributions of the learner's features to the scores.
    scored : ScoredItems
        The items.
    errors : ndarray of shape (n_features,) or None
        Standard errors of the weights.
    """

    feature_contributions: Contributions
    scored: ScoredItems
    errors: Array | None = None

    @cached_property
    def top_features(self) -> Indices:
        """The features with the largest effects, whose contributions are shown for each item."""
        spread = self.feature_contributions.spread  # standard deviation within groups
        largest_first = np.argsort(-spread, kind="stable")
        with_effect: Indices = largest_first[spread[largest_first] > 0]
        return with_effect[:MAX_CONTRIBUTIONS]

    def contributions(self, items: Indices) -> list[Json]:
        """For each item the contributions of the top features, and of all others together."""
        of_top_features = self.feature_contributions.of(items, self.top_features)
        # All contributions to a score add up to its difference from the mean of the group.
        of_other_features = self.scored.centered_scores[items] - of_top_features.sum(axis=1)
        rows = np.column_stack([of_top_features, of_other_features])
        return [short_numbers(row, 4) for row in rows]

    def describe(self) -> JsonObject:
        """The table of the features with the largest weights and effects."""
        weights = self.feature_contributions.weights
        names = self.feature_contributions.names
        listed = self._listed_features()
        errors = None
        if self.errors is not None:
            errors = short_numbers(self.errors[listed])
        signed_effects = np.sign(weights) * self.feature_contributions.spread
        return {
            "names": [names[feature] for feature in listed],
            "weights": short_numbers(weights[listed]),
            "errors": errors,
            "effects": short_numbers(signed_effects[listed]),
            "shares": short_numbers(self.feature_contributions.share[listed]),
            "total": len(weights),
            "nonzero": int(np.count_nonzero(weights)),
            "shown": [names[feature] for feature in self.top_features],
            "others": len(weights) - len(self.top_features),
        }

    def _listed_features(self) -> list[int]:
        """Features with a weight: half of them by effect, half by weight, then by effect."""
        weights = self.feature_contributions.weights
        by_weight = np.argsort(-np.abs(weights), kind="stable")
        by_effect = np.argsort(-self.feature_contributions.spread, kind="stable")
        # Half of the list by effect, half by weight; places that are still free by effect
        n_half = MAX_LISTED_FEATURES // 2
        in_order_of_priority = [*by_effect[:n_half], *by_weight[:n_half], *by_effect]
        without_duplicates = dict.fromkeys(in_order_of_priority)
        with_weight = [int(feature) for feature in without_duplicates if weights[feature]]
        return with_weight[:MAX_LISTED_FEATURES]


def find_effects(subject: ReportModel) -> FeatureEffects | None:
    """The weights of a linear model; None for other models."""
    model_parts = subject.model_parts
    if model_parts.learner is None:
        return None
    weights = model_parts.weights()
    if weights is None:
        return None
    names = [as_text(name) for name in model_parts.feature_names(subject.names, len(weights))]
    contributions = Contributions(weights, subject.features(), subject.scored.groups, names)
    weight_errors = _weight_errors(model_parts, len(weights))
    return FeatureEffects(contributions, subject.scored, weight_errors)


def _weight_errors(model_parts: ModelParts, n_weights: int) -> Array | None:
    """Jackknife standard errors of the weights of a calibrated ranker; None if it has none."""
    calibrated = model_parts.calibrated
    if calibrated is None or calibrated.root_ is None:
        return None
    if len(calibrated.root_) != n_weights:  # of a kernel model, whose coefficients are of items
        return None
    return calibrated.jackknife().coefficient_errors


def describe_importance(
    subject: ReportModel, metric: Metric, confidence: float
) -> JsonObject | None:
    """The permutation importance of the columns of X for an AutoRanker; None for other models."""
    n_columns = count_columns(subject.X)
    has_few_columns = n_columns is not None and n_columns <= MAX_PERMUTED_FEATURES
    if not isinstance(subject.model_parts.learner, AutoRanker) or not has_few_columns:
        return None
    scored = subject.scored
    items = scored.first_groups(MAX_PERMUTED_ITEMS)  # numbers of items with a true score
    rows = scored.rows[items]  # rows of X
    groups = None
    if not scored.is_one_list:
        groups = scored.groups.codes[items]
    result = permutation_importance(
        subject.model,
        take_rows(subject.X, rows),
        scored.y[items],
        groups,
        scoring=metric,
        n_repeats=N_REPEATS,
        confidence=confidence,
    )
    if np.isnan(result.importance).any():
        return None
    most_important_first = np.argsort(-result.importance, kind="stable")
    names = subject.names
    if names is None:
        names = result.names
    return {
        "names": [as_text(names[feature]) for feature in most_important_first],
        "confidence": confidence,
        "losses": short_numbers(result.importance[most_important_first]),
        # NaN, the bounds of a column with a value in one group only, becomes 0.
        "low": short_numbers(np.nan_to_num(result.low[most_important_first])),
        "high": short_numbers(np.nan_to_num(result.high[most_important_first])),
        "metric": metric.name,
        "items": len(rows),
    }


def describe_curves(subject: ReportModel) -> JsonObject | None:
    """Curves of the most important features of an additive model; None for other models."""
    if not has_curves(subject.model):
        return None
    curves, scale = feature_curves(subject.model, subject.X, subject.groups, subject.names)
    described_curves = []
    for curve in curves[:MAX_CURVES]:
        if curve.spread > 0:
            described_curves.append(
                {
                    "label": as_text(curve.name),
                    "x": short_numbers(curve.x),
                    "mean": short_numbers(curve.added),
                }
            )
    if not described_curves:
        return None
    return {"scale": scale, "curves": described_curves, "total": len(curves)}
