"""The sentences at the top of a report."""

from __future__ import annotations

import math
from html import escape

from rankwise.formatting import count
from rankwise.inspection.model_parts import ModelParts
from rankwise.metrics import get_metric
from rankwise.pages.page_values import as_text
from rankwise.pages.report.baselines import Baseline, BaselineKind
from rankwise.pages.report.html_text import share_text
from rankwise.pages.report.metric_results import MetricResult
from rankwise.pages.report.report_data import ScoredItems

MAX_BANNER = 400  # characters
MANY_PAIRS = 20  # that are unlikely to be all in the right order by chance


def subtitle(model_parts: ModelParts, scored: ScoredItems) -> str:
    """Model and data in one line."""
    learner = " → ".join([*model_parts.step_names, model_parts.name])
    n_groups = scored.groups.n_groups
    if scored.compared_items is not None:
        n_compared = count(scored.compared_items.n_items, "item")
        data = f"{count(n_groups, 'comparison')} of {n_compared}"
    elif scored.is_one_list:
        data = count(len(scored.y), "item")
    else:
        data = f"{count(len(scored.y), 'item')} in {count(n_groups, 'group')}"
    return escape(f"{learner} on {data}")


def headline(scored: ScoredItems, baselines: list[Baseline]) -> str:
    """The shares of correctly and wrongly ordered pairs, and a question if no pair is wrong."""
    n_pairs = int(scored.counts.different_y.sum())
    n_wrong_pairs = int(scored.counts.discordant.sum())
    n_tied_pairs = int(scored.counts.tied_scores.sum())
    dropped_sentence = _describe_dropped_items(scored.n_unscored)
    if not n_pairs:
        return f"No two items of a group differ in their true score.{dropped_sentence}"

    if scored.compared_items is not None:
        pairs = f"{count(n_pairs, 'comparison')} with a winner"
    elif scored.is_one_list:
        pairs = f"{count(n_pairs, 'pair')} of items with different true scores"
    else:
        pairs = f"{count(n_pairs, 'pair')} of items of the same group with different true scores"
    correct = share_text(n_pairs - n_wrong_pairs - n_tied_pairs, n_pairs)
    wrong = share_text(n_wrong_pairs, n_pairs)
    if n_tied_pairs:
        tied = share_text(n_tied_pairs, n_pairs)
        incorrect = f", {wrong} in the wrong order, and {tied} have equal scores"
    else:
        incorrect = f" and {wrong} in the wrong order"
    leakage_question = ""
    if n_wrong_pairs + n_tied_pairs == 0 and n_pairs >= MANY_PAIRS:
        leakage_question = _ask_for_leakage(scored, baselines)
    return (
        f"Of {pairs}, <strong>{correct} are in the right order</strong>{incorrect}."
        f"{leakage_question}{dropped_sentence}"
    )


def _describe_dropped_items(n_unscored: int) -> str:
    if not n_unscored:
        return ""
    verb = "is" if n_unscored == 1 else "are"
    return f" {count(n_unscored, 'item')} without a true score (NaN) {verb} dropped."


def _ask_for_leakage(scored: ScoredItems, baselines: list[Baseline]) -> str:
    """Ask whether the target is among the features, and name a feature without error."""
    text = " Perfect score: is the true score, or something computed from it, among the features?"
    disagreement = get_metric("disagreement")
    for baseline in baselines:
        if baseline.kind is not BaselineKind.FEATURE:
            continue
        share_of_wrong_pairs = baseline.measure(scored, disagreement).mean
        if share_of_wrong_pairs == 0:
            text += f" <bdi>{escape(baseline.name)}</bdi> alone has no error either."
    return text


def interval_hint(results: list[MetricResult], scored: ScoredItems, confidence: float) -> str:
    """What the means and their intervals refer to."""
    if scored.groups.n_groups == 1:
        text = "There is only one list, so the variation between lists cannot be estimated."
        has_interval = any(not math.isnan(result.low) for result in results)
        if has_interval:
            text += " The interval is for other items of this list (DeLong)."
        return text
    averages = [dict(result.metric.options).get("average") for result in results]
    weighting = ", which have equal weights; in the sentence above, pairs have equal weights"
    if "pairs" in averages:  # a metric weights groups by their pairs, as the sentence above does
        weighting = ""
    if scored.compared_items is not None:
        return (
            f"The values are means over {scored.groups.n_groups:,} comparisons of two of "
            f"{scored.compared_items.n_items:,} items{weighting}. The {100 * confidence:g}% "
            "intervals allow for comparisons that share items."
        )
    return (
        f"The values are means over groups{weighting}. The {100 * confidence:g}% intervals are for "
        "the mean over all groups of this kind, not only over these."
    )


def banner(warning: str) -> str:
    """The most important caveat, at the top of the page."""
    text = as_text(warning, MAX_BANNER)
    if not text:
        return ""
    return f'<p class="note banner" role="note">{escape(text)}</p>'
