"""The features that order the items, for the page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.inspection import Contributions
from rankwise.report.scored_items import ScoredItems, short_numbers

LISTED_FEATURES = 40
SHOWN_FEATURES = 8


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

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return self.added.names

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
        weights, spread = self.added.weights, self.added.spread
        by_weight = np.argsort(-np.abs(weights), kind="stable")
        by_spread = np.argsort(-spread, kind="stable")
        half = LISTED_FEATURES // 2
        listed = list(dict.fromkeys([*by_spread[:half], *by_weight[:half], *by_spread]))
        listed = [j for j in listed if weights[j]][:LISTED_FEATURES]
        return {
            "names": [self.names[j] for j in listed],
            "weights": short_numbers(weights[listed]),
            "errors": None if self.errors is None else short_numbers(self.errors[listed]),
            "effects": short_numbers((np.sign(weights) * spread)[listed]),
            "shares": short_numbers(self.added.share[listed]),
            "total": len(weights),
            "nonzero": int(np.count_nonzero(weights)),
            "shown": [self.names[j] for j in self.shown],
            "others": len(weights) - len(self.shown),
        }
