"""The sentences at the top of a report."""

from __future__ import annotations

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
    items = count(len(scored.y), "item")
    if scored.compared is not None:
        comparisons = count(scored.groups.n_groups, "comparison")
        return escape(f"{learner} on {comparisons} of {count(scored.compared.n_items, 'item')}")
    if not scored.is_one_list:
        items += f" in {count(scored.groups.n_groups, 'group')}"
    return escape(f"{learner} on {items}")


def headline(scored: ScoredItems, baselines: list[Baseline]) -> str:
    """The shares of correctly and wrongly ordered pairs, and a question if no pair is wrong."""
    n_pairs = int(scored.counts.differing.sum())
    n_wrong = int(scored.counts.discordant.sum())
    n_tied = int(scored.counts.tied_scores.sum())
    dropped = _dropped_items(scored.n_unscored)
    if not n_pairs:
        return f"No two items of a group differ in their true score.{dropped}"
    same_group = "" if scored.is_one_list else " of the same group"
    correct = share_text(n_pairs - n_wrong - n_tied, n_pairs)
    wrong = share_text(n_wrong, n_pairs)
    if n_tied:
        incorrect = f", {wrong} in the wrong one, and {share_text(n_tied, n_pairs)} are tied"
    else:
        incorrect = f" and {wrong} in the wrong one"
    pairs = f"{count(n_pairs, 'pair')} of items{same_group} with different true scores"
    if scored.compared is not None:
        pairs = f"{count(n_pairs, 'comparison')} with a winner"
    question = ""
    if n_wrong + n_tied == 0 and n_pairs >= MANY_PAIRS:
        question = _perfect_score(scored, baselines)
    return (
        f"Of {pairs}, "
        f"<strong>{correct} are in the right order</strong>{incorrect}.{question}{dropped}"
    )


def _dropped_items(n_unscored: int) -> str:
    if not n_unscored:
        return ""
    verb = "is" if n_unscored == 1 else "are"
    return f" {count(n_unscored, 'item')} without a true score (NaN) {verb} dropped."


def _perfect_score(scored: ScoredItems, baselines: list[Baseline]) -> str:
    """Ask whether the target is among the features, and name a feature without error."""
    text = " Perfect score: is the true score, or something computed from it, among the features?"
    error = get_metric("disagreement")
    for baseline in baselines:
        is_feature = baseline.kind is BaselineKind.FEATURE
        if is_feature and baseline.measure(scored, error).mean == 0:
            text += f" <bdi>{escape(baseline.name)}</bdi> alone has no error either."
    return text


def interval_hint(results: list[MetricResult], scored: ScoredItems, confidence: float) -> str:
    """What the means and their intervals refer to."""
    if scored.groups.n_groups == 1:
        text = "There is only one list, so the variation between lists cannot be estimated."
        if any(result.low == result.low for result in results):  # not NaN
            text += " The interval is for other items of this list (DeLong)."
        return text
    weighting = ": each group counts the same, whereas each pair does in the sentence above"
    if any(dict(result.metric.options).get("average") == "pairs" for result in results):
        weighting = ""
    if scored.compared is not None:
        return (
            f"The values are means over {scored.groups.n_groups:,} comparisons of two of "
            f"{scored.compared.n_items:,} items{weighting}. The {100 * confidence:g}% intervals "
            "allow for comparisons that share items."
        )
    return (
        f"The values are means over groups{weighting}. The {100 * confidence:g}% intervals cover "
        "the mean over many more groups of this kind."
    )


def banner(warning: str) -> str:
    """The most important caveat, at the top of the page."""
    text = as_text(warning, MAX_BANNER)
    if not text:
        return ""
    return f'<p class="note banner" role="note">{escape(text)}</p>'
