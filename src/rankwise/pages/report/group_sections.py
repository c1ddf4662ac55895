"""The groups of a report and the items of some groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Indices
from rankwise.formatting import JsonObject
from rankwise.frames import take_rows
from rankwise.pages.page_values import short_numbers
from rankwise.pages.report.feature_sections import FeatureEffects
from rankwise.pages.report.metric_results import MetricResult
from rankwise.pages.report.report_data import ReportModel, ScoredItems
from rankwise.rankers.base import ranks_in_groups
from rankwise.rankers.pipelines import transform_step
from rankwise.uncertainty import RankInterval

MAX_LISTED_GROUPS = 20_000  # rows of the table of groups
MAX_SHOWN_GROUPS = 2_000  # groups whose items are on the page
MAX_SHOWN_ITEMS = 20_000  # in all groups together
MAX_ITEMS_PER_GROUP = 200
N_FIRST_ITEMS = 50  # of a long group: the best predicted and the truly best items


class GroupSelection(NamedTuple):
    """The groups that a page contains.

    Attributes
    ----------
    listed_groups : ndarray of int
        Groups in the table of groups; those with items come first.
    groups_with_items : ndarray of int
        Groups whose items are on the page.
    """

    listed_groups: Indices
    groups_with_items: Indices

    def n_shortened_groups(self, scored: ScoredItems) -> int:
        """Number of groups with items of which the page contains only some items."""
        group_sizes = scored.groups.sizes[self.groups_with_items]
        return int(np.count_nonzero(group_sizes > MAX_ITEMS_PER_GROUP))


def select_groups(scored: ScoredItems, result: MetricResult) -> GroupSelection:
    """Select the worst and the best groups by a metric, as many as a page can contain."""
    all_groups = np.arange(scored.groups.n_groups)
    worst_first = _worst_and_best(result, all_groups, MAX_LISTED_GROUPS)
    groups_with_items = _first_groups_that_fit(scored, worst_first)
    if len(groups_with_items) < len(worst_first):
        # The first groups are the worst: take as many again, but half of them the best. If their
        # items do not fit, the last ones are left out.
        worst_and_best = _worst_and_best(result, worst_first, len(groups_with_items))
        groups_with_items = _first_groups_that_fit(scored, worst_and_best)
    groups_without_items = worst_first[~np.isin(worst_first, groups_with_items)]
    listed_groups = np.concatenate([groups_with_items, groups_without_items])
    return GroupSelection(listed_groups, groups_with_items)


def _worst_and_best(result: MetricResult, groups: Indices, max_groups: int) -> Indices:
    """Select at most `max_groups` groups: half of them the worst, half of them the best.

    The worst come first, and groups without a value last.
    """
    values = result.values[groups]
    quality = values
    if not result.metric.greater_is_better:
        quality = -values
    worst_first: Indices = groups[np.argsort(quality, kind="stable")]  # NaN last
    if len(worst_first) <= max_groups:
        return worst_first
    n_best = max_groups // 2
    n_worst = max_groups - n_best
    n_defined = int(np.count_nonzero(~np.isnan(values)))
    start_of_best = max(n_worst, n_defined - n_best)  # no group twice, no NaN among the best
    best = worst_first[start_of_best : start_of_best + n_best]
    return np.concatenate([worst_first[:n_worst], best])


def _first_groups_that_fit(scored: ScoredItems, groups: Indices) -> Indices:
    """The first groups whose items together fit on a page; at least one."""
    n_shown_items = np.minimum(scored.groups.sizes[groups], MAX_ITEMS_PER_GROUP)
    n_items_up_to_group = np.cumsum(n_shown_items)
    n_fitting = int(np.count_nonzero(n_items_up_to_group <= MAX_SHOWN_ITEMS))
    n_groups = min(max(n_fitting, 1), MAX_SHOWN_GROUPS)  # one group even if it does not fit
    return groups[:n_groups]


def describe_groups(
    scored: ScoredItems, results: list[MetricResult], selection: GroupSelection
) -> JsonObject:
    """The table of groups, column by column."""
    listed = selection.listed_groups
    return {
        "names": [scored.group_name(group) for group in listed],
        "sizes": scored.groups.sizes[listed].tolist(),
        "pairs": scored.counts.different_y[listed].tolist(),
        "values": [short_numbers(result.values[listed]) for result in results if result.has_mean],
        "total": scored.groups.n_groups,
    }


def describe_items(
    scored: ScoredItems,
    selection: GroupSelection,
    effects: FeatureEffects | None,
    ranks: RankInterval | None,
) -> list[JsonObject]:
    """Names, scores, ranks and swaps of items, best predicted first."""
    predicted_rank = ranks_in_groups(scored.scores, scored.groups.codes)
    true_rank = ranks_in_groups(scored.y, scored.groups.codes)
    swaps = scored.swaps
    sections = []
    for group in selection.groups_with_items:
        start = scored.targets.group_starts[group]
        stop = start + scored.groups.sizes[group]
        items_of_group = scored.order[start:stop]  # `order`: by group, best predicted item first
        items = items_of_group[_shown_positions(true_rank[items_of_group])]
        section: JsonObject = {
            "total": len(items_of_group),
            "names": [scored.name_of(item) for item in items],
            "scores": short_numbers(scored.scores[items]),
            "y": short_numbers(scored.y[items], 9),
            "predicted": predicted_rank[items].tolist(),
            "true": true_rank[items].tolist(),
            "betterBelow": swaps.better_below[items].tolist(),
            "worseAbove": swaps.worse_above[items].tolist(),
        }
        if ranks is not None:
            section["rankLow"] = ranks.low[items].tolist()
            section["rankHigh"] = ranks.high[items].tolist()
        if effects is not None:
            section["contributions"] = effects.contributions(items)
        sections.append(section)
    return sections


def _shown_positions(true_rank: Indices) -> Indices:
    """Positions of the items that are shown of a group in predicted order.

    All of a short group; of a long group the first items, the truly best items, and other items at
    equal distances.
    """
    positions = np.arange(len(true_rank))  # by predicted score
    if len(positions) <= MAX_ITEMS_PER_GROUP:
        return positions
    best_predicted = positions[:N_FIRST_ITEMS]
    truly_best = np.argsort(true_rank, kind="stable")[:N_FIRST_ITEMS]  # rank 1 is the best
    important = np.union1d(best_predicted, truly_best)

    # Fill up with other items at equal distances.
    others = np.setdiff1d(positions, important)
    n_free_places = MAX_ITEMS_PER_GROUP - len(important)
    evenly_spaced = np.linspace(0, len(others) - 1, n_free_places).round().astype(np.intp)
    return np.union1d(important, others[evenly_spaced])


def possible_ranks(subject: ReportModel, confidence: float) -> RankInterval | None:
    """Rank intervals of the items with a true score; None if the model is not calibrated."""
    model_parts = subject.model_parts
    scored = subject.scored
    if model_parts.calibrated is None:
        return None
    items = subject.X
    if model_parts.steps_before is not None:  # of a Pipeline that ends in the ranker
        items = transform_step(model_parts.steps_before, items, subject.groups)
    if scored.n_unscored:  # drop the items without a true score
        items = take_rows(items, scored.rows)
    return model_parts.calibrated.rank_interval(items, scored.groups.codes, confidence)
