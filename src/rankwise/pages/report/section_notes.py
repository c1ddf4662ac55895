"""Notes of the sections of a report: what is not shown, and why."""

from __future__ import annotations

from html import escape

from rankwise.auto.auto_ranker import AutoRanker
from rankwise.formatting import JsonObject, count
from rankwise.inspection.model_parts import ModelParts
from rankwise.pages.report.feature_sections import FeatureEffects
from rankwise.pages.report.group_sections import (
    MAX_ITEMS_PER_GROUP,
    N_FIRST_ITEMS,
    GroupSelection,
)
from rankwise.pages.report.margin_sections import Margins
from rankwise.pages.report.metric_results import MetricResult
from rankwise.pages.report.report_data import ReportModel, ScoredItems


def section_notes(
    subject: ReportModel,
    selection: GroupSelection,
    result: MetricResult,
    effects: FeatureEffects | None,
    margins: Margins,
    search: JsonObject | None,
) -> dict[str, str]:
    """Paragraphs for the fields of the template; empty for sections without a note.

    Parameters
    ----------
    subject : ReportModel
        Model and items.
    selection : GroupSelection
        The groups on the page.
    result : MetricResult
        The metric that selected them.
    effects : FeatureEffects or None
        Weights of the features.
    margins : Margins
        Differences of predicted scores.
    search : dict or None
        Section of the search.
    """
    texts = {
        "group_note": _group_note(subject.scored, selection, result),
        "item_note": _item_note(subject.scored, selection),
        "feature_note": _feature_note(subject.model_parts, effects),
        "margin_note": _margin_note(margins),
        "search_note": _search_note(subject.model_parts, search),
    }
    fields = {"feature_lead": escape(_feature_lead(effects))}
    for field, text in texts.items():
        fields[field] = ""
        if text:
            fields[field] = f'<p class="note">{escape(text)}</p>'
    return fields


def _group_note(scored: ScoredItems, selection: GroupSelection, result: MetricResult) -> str:
    """Which groups are not on the page."""
    n_groups = scored.groups.n_groups
    n_listed = len(selection.listed_groups)
    n_with_items = len(selection.groups_with_items)
    sentences = []
    if n_listed < n_groups:
        sentences.append(
            f"{n_listed:,} of {n_groups:,} groups are listed: the worst and the best by "
            f"{result.metric.short_title}. The means above are over all groups."
        )
    if n_with_items < n_listed:
        sentences.append(
            f"To limit the size of the page, it contains the items of {n_with_items:,} groups, the "
            "worst and the best; their names are links."
        )
    return " ".join(sentences)


def _item_note(scored: ScoredItems, selection: GroupSelection) -> str:
    """Which items of long groups are on the page."""
    n_shortened_groups = selection.n_shortened_groups(scored)
    if not n_shortened_groups:
        return ""
    verb = "is" if n_shortened_groups == 1 else "are"
    return (
        f"{count(n_shortened_groups, 'group')} of more than {MAX_ITEMS_PER_GROUP} items {verb} "
        f"shortened: the page contains the first {N_FIRST_ITEMS} predicted items, the "
        f"{N_FIRST_ITEMS} truly best items, and others at equal distances. Ranks and swaps count "
        "all items."
    )


def _margin_note(margins: Margins) -> str:
    """Whether the histogram is that of a sample."""
    if not margins.is_sample:
        return ""
    return (
        f"The histogram shows a random sample of {len(margins.differences):,} of the "
        f"{margins.n_pairs:,} pairs; the shares are exact."
    )


def _feature_lead(effects: FeatureEffects | None) -> str:
    """What the table of features shows."""
    lead = "Only differences within a group affect its order."
    if effects is None:
        return lead
    return (
        f"{lead} The effect of a feature is its weight times its standard deviation within groups. "
        "Its share is its part of the variance of the scores within groups; a negative share means "
        "that it counteracts other features."
    )


def _feature_note(model_parts: ModelParts, effects: FeatureEffects | None) -> str:
    """To which features the weights belong, or why there are none."""
    if model_parts.learner is None:
        return "Scores were passed instead of a model, so there are no weights to show."
    if isinstance(model_parts.learner, AutoRanker):
        return (
            "This AutoRanker combines several models, listed below with their weights and "
            "held-out scores. Features have no weights; the table shows how much the metric "
            "decreases if a feature is permuted in the groups "
            "(rankwise.inspection.permutation_importance)."
        )
    if effects is None:
        return (
            f"This {model_parts.name} has no weights of features: its score is a sum over training "
            "items (a kernel model) or over views with such sums. A linear kernel, or "
            "RankingPursuit(dictionary='features', kernel='linear'), has weights."
        )
    if model_parts.steps is None:
        return ""
    steps = ", ".join(model_parts.step_names)
    return f"Weights belong to the features after {steps}, not to the features of the data."


def _search_note(model_parts: ModelParts, search: JsonObject | None) -> str:
    """Why there are no curves, and how to get them."""
    if model_parts.learner is None:
        return "Scores were passed instead of a model, so there is nothing to tune."
    if isinstance(model_parts.learner, AutoRanker):
        return "; ".join(model_parts.learner.notes_) + "."
    if search is not None:
        return ""
    if model_parts.search:  # class of a scikit-learn search around the learner
        return (
            f"The parameters were chosen by {model_parts.search}; its scores are in its "
            "cv_results_. Only the searches of rankwise, such as RankRLSCV, are drawn here."
        )
    return (
        "This model did not search for its parameters. Train RankRLSCV, RankSVMCV, "
        "RankLogisticCV, CoRankRLSCV or RankingPursuitCV to see held-out scores here."
    )
