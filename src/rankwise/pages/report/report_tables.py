"""Tables of a report that need no script: members, best sets, model and data."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from rankwise.arrays import Array
from rankwise.auto.auto_ranker import AutoRanker
from rankwise.formatting import TextTable, count
from rankwise.inspection.model_parts import ModelParts
from rankwise.model_selection.conformal import conformal_quantile, held_out_gaps, in_best_set
from rankwise.pages.page_values import as_text
from rankwise.pages.report.html_text import hint, number_text, scrolling_table
from rankwise.pages.report.report_data import ScoredItems
from rankwise.uncertainty import CalibratedRanker

LEVELS = (0.5, 0.8, 0.9, 0.95)  # of best sets
MAX_NOTE = 160  # characters
MAX_VALUE = 400  # characters


def member_table(model_parts: ModelParts) -> str:
    """The members of an AutoRanker by weight; empty for other models."""
    learner = model_parts.learner
    if not isinstance(learner, AutoRanker):
        return ""
    evaluated = [member for member in learner.members_ if "score" in member]
    not_evaluated = [member for member in learner.members_ if "score" not in member]
    rows = []
    for member in sorted(evaluated, key=lambda member: -abs(member["weight"])):
        weight = number_text(member["weight"])
        score = number_text(member["score"])
        interval = f"{number_text(member['low'])} to {number_text(member['high'])}"
        rows.append([str(member["name"]), weight, score, interval])
    for member in not_evaluated:  # for the reason in its note
        rows.append([str(member["name"]), as_text(member["note"], MAX_NOTE), "", ""])
    table = TextTable(["Member", "Weight", f"Held-out {learner.scoring_}", "Interval"], rows)
    explanation = hint(
        "An AutoRanker predicts the weighted sum of the scores of its members. Each member was "
        "evaluated on groups that it was not trained on. A member of weight 0 does not improve "
        "the sum."
    )
    return f"<h3>Members</h3>{explanation}" + scrolling_table(table, "members", "Table of members")


def best_set_table(ranker: CalibratedRanker | None, scored: ScoredItems) -> str:
    """Sizes of best sets; empty without a calibrated ranker, or with too few held-out groups."""
    if ranker is None or scored.is_one_list:
        return ""
    # Distance from the top score to the best item, for each held-out group; of the first output
    gaps = ranker.gaps_[0]
    n_gaps = len(gaps)
    # The set of a level needs the ⌈(n + 1) · level⌉-th smallest of n gaps.
    levels = [level for level in LEVELS if level <= n_gaps / (n_gaps + 1)]
    if not levels:
        return ""
    header = ["Confidence", "Items in the set (mean)", "In 90% of groups at most", "Observed"]
    rows = [_best_set_row(gaps, level, scored) for level in levels]
    explanation = hint(
        "The first items of a group that contain its best item, or an item tied with it, with the "
        f"given confidence, estimated from {count(n_gaps, 'held-out group')}. Observed: share "
        "of the groups on this page whose set contains the best item. The confidence applies to "
        "groups of the same kind as the training groups."
    )
    table = scrolling_table(TextTable(header, rows), "best-sets", "Table of best sets")
    return f"<h3>How many items contain the best one?</h3>{explanation}{table}"


def _best_set_row(gaps: Array, level: float, scored: ScoredItems) -> list[str]:
    # A gap is the distance from the top score of a group to its truly best item. The best set has
    # the items whose distance is at most the quantile of the gaps of held-out groups.
    groups = scored.groups
    is_in_set = in_best_set(scored.scores, groups.codes, gaps, level)
    set_sizes = np.bincount(groups.codes, is_in_set)  # for each group
    gaps_of_page = held_out_gaps(scored.y, scored.scores, groups.codes)
    share_with_best = ""
    if len(gaps_of_page):  # of the groups with items of different true scores
        contains_best = gaps_of_page <= conformal_quantile(gaps, level)
        share_with_best = f"{np.mean(contains_best):.0%}"
    mean_sizes = f"{set_sizes.mean():.1f} of {groups.sizes.mean():.1f}"
    size_in_90_percent = f"{np.quantile(set_sizes, 0.9):.0f}"
    return [f"{level:.0%}", mean_sizes, size_in_90_percent, share_with_best]


def about_table(model_parts: ModelParts, scored: ScoredItems, versions: Mapping[str, str]) -> str:
    """Model, data and versions as rows of a table."""
    return fact_rows({**describe_learner(model_parts), **_describe_data(scored), **versions})


def fact_rows(rows: Mapping[str, str]) -> str:
    """Names and values as rows of a table."""
    return "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in rows.items()
    )


def describe_learner(model_parts: ModelParts) -> dict[str, str]:
    """Steps and parameters of the model."""
    rows = {"model": " → ".join([*model_parts.step_names, model_parts.name])}
    if model_parts.learner is None:
        return rows
    rows["parameters"] = as_text(repr(model_parts.learner), MAX_VALUE)
    chosen_parameters = getattr(model_parts.learner, "best_params_", {})
    for name, value in chosen_parameters.items():
        rounded_value = f"{value:.6g}" if isinstance(value, float) else value
        rows[f"{name} (chosen)"] = as_text(rounded_value)
    return rows


def _describe_data(scored: ScoredItems) -> dict[str, str]:
    sizes = scored.groups.sizes
    n_groups = "one list" if scored.is_one_list else f"{len(sizes):,}"
    return {
        "items": f"{len(scored.y):,}",
        "groups": n_groups,
        "items per group": f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):,g}",
        "pairs with different true scores": f"{int(scored.counts.different_y.sum()):,}",
        "true scores": f"{scored.y.min():,g} to {scored.y.max():,g}",
        "items without true score, dropped": f"{scored.n_unscored:,}",
    }
