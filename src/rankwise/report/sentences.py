"""What the page says in words and numbers without any script: HTML made here, escaped here."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from rankwise.estimators import RankRLSCV
from rankwise.inspection.model_parts import ModelParts
from rankwise.report.cards import count, number
from rankwise.report.group_items import FIRST_ITEMS, ITEMS_A_GROUP
from rankwise.report.group_metrics import MetricResult
from rankwise.report.model_words import list_defaults, list_parameters
from rankwise.report.scored_items import ScoredItems, as_text

LONGEST_BANNER = 400


def subtitle(parts: ModelParts, scored: ScoredItems) -> str:
    """Model and data in one line."""
    learner = " → ".join([*parts.step_names, parts.name])
    items = count(scored.n_items, "item")
    if not scored.is_one_list:
        items += f" in {count(scored.groups.n_groups, 'group')}"
    return escape(f"{learner} on {items}")


def headline(scored: ScoredItems) -> str:
    """The share of rightly ordered pairs as a sentence."""
    total, wrong, tied = int(scored.pairs.sum()), scored.n_wrong, scored.n_tied
    left_out = (
        f" {count(scored.n_unscored, 'item')} without a true score (NaN) "
        f"{'is' if scored.n_unscored == 1 else 'are'} left out."
        if scored.n_unscored
        else ""
    )
    if not total:
        return f"No two items of a group differ in their true score.{left_out}"
    right = _share(total - wrong - tied, total)
    shares = f"{_share(wrong, total)} in the wrong one"
    rest = f", {shares}, and {_share(tied, total)} are tied" if tied else f" and {shares}"
    where = "" if scored.is_one_list else " of the same group"
    return (
        f"Of {count(total, 'pair')} of items{where} with different true scores, "
        f"<strong>{right} are in the right order</strong>{rest}.{left_out}"
    )


def interval_hint(results: list[MetricResult], scored: ScoredItems, confidence: float) -> str:
    """What the values and their intervals are."""
    if scored.groups.n_groups == 1:
        return "There is only one list, so nothing tells how far another list would differ."
    is_pooled = any(dict(result.metric.options).get("average") == "pairs" for result in results)
    weight = "" if is_pooled else ": each group counts the same, while above each pair does"
    return (
        f"The values are means over groups{weight}. The {100 * confidence:g}% intervals say where "
        "the mean over many more groups like these is likely to be."
    )


def banner(warning: str) -> str:
    """What a reader must know first."""
    text = as_text(warning, LONGEST_BANNER)
    return f'<p class="note banner" role="note">{escape(text)}</p>' if text else ""


def member_table(learner: Any) -> str:
    """The members of an AutoRanker, those that count most first."""
    members = sorted(
        getattr(learner, "members_", ()), key=lambda row: -abs(row.get("weight", -np.inf))
    )
    if not members:
        return ""
    scoring = escape(str(learner.scoring_))
    rows = "".join(
        f'<tr><th scope="row">{escape(str(row["name"]))}</th>{_member_cells(row)}</tr>'
        for row in members
    )
    return (
        '<h3>Members</h3><p class="hint">An AutoRanker adds up the scores of its members. Each was '
        "judged on groups that it was not trained on. A weight of 0: the others do as well "
        'without it.</p><div class="scroll"><table id="member-table"><thead><tr><th>Member</th>'
        f"<th>Weight</th><th>Held-out {scoring}</th><th>Interval</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _member_cells(row: dict[str, Any]) -> str:
    if "score" not in row:
        return f'<td colspan="3">{escape(as_text(row["note"], 160))}</td>'
    interval = f"{number(row['low'])} to {number(row['high'])}"
    return f"<td>{number(row['weight'])}</td><td>{number(row['score'])}</td><td>{interval}</td>"


def group_note(groups: dict[str, Any], items: list[dict[str, Any]], metric: dict[str, Any]) -> str:
    """Which groups the page leaves out."""
    n_listed, n_shown = len(groups["names"]), len(items)
    notes = []
    if n_listed < groups["total"]:
        notes.append(
            f"{n_listed:,} of {groups['total']:,} groups are listed: the worst and the best by "
            f"{metric['title']}, and others at random. The means above are over all groups."
        )
    if n_shown < n_listed:
        notes.append(
            f"To keep the page small it has the items of {n_shown:,} groups (the worst and the "
            "best, and others at random); their names are links."
        )
    return _note(" ".join(notes))


def item_note(items: list[dict[str, Any]]) -> str:
    """How long groups were cut."""
    n_cut = sum(len(each["names"]) < each["total"] for each in items)
    if not n_cut:
        return ""
    are = "is" if n_cut == 1 else "are"
    return _note(
        f"{count(n_cut, 'group')} of more than {ITEMS_A_GROUP} items {are} cut: the page has "
        f"the first {FIRST_ITEMS} predicted, the {FIRST_ITEMS} truly best, others at even steps. "
        "Ranks and swaps count all items."
    )


def margin_note(margins: dict[str, Any]) -> str:
    """Whether all pairs were drawn."""
    if margins["total"] and margins["used"] < margins["total"]:
        return _note(
            f"Drawn from a random sample of {margins['used']:,} of the {margins['total']:,} pairs; "
            "the shares are exact."
        )
    return ""


def feature_note(parts: ModelParts, has_weights: bool, has_losses: bool) -> str:
    """On which scale the weights are, or why there are none."""
    if parts.learner is None:
        return _note("Scores were given instead of a model, so there are no weights to show.")
    if hasattr(parts.learner, "members_"):
        return _note(
            "This AutoRanker combines several models, listed below with their weights and "
            "held-out scores. It has no weight for each feature: "
            + (
                "the table has what is lost if one is shuffled inside the groups"
                if has_losses
                else "see rankwise.inspection.permutation_importance for what each one is worth"
            )
            + ". RankRLSCV on HingeFeatures has one curve for each."
        )
    if not has_weights:
        return _note(
            f"This {parts.name} has no weight for each feature: its score is a sum over training "
            "items (a kernel model) or over views that have such sums. A linear kernel, or "
            "RankingPursuit(dictionary='features', kernel='linear'), gives weights."
        )
    if parts.steps is not None:
        steps = ", ".join(parts.step_names)
        return _note(f"Weights belong to the features after {steps}, not to those of the data.")
    return ""


def curve_note(
    parts: ModelParts, curves: dict[str, Any] | None, path: dict[str, Any] | None
) -> str:
    """What is missing, and how to get it."""
    if parts.learner is None:
        return _note("Scores were given instead of a model, so there is nothing to tune.")
    if hasattr(parts.learner, "members_"):
        return _note(" ".join(f"{text}." for text in parts.learner.notes_))
    if curves is None and parts.search:
        return _note(
            f"The parameters were chosen by {parts.search}, whose scores are in its cv_results_. "
            "Curves of rankwise's own searches, such as RankRLSCV, are drawn here."
        )
    if curves is None:
        return _note(
            "This model did not search for its parameters. Train RankRLSCV, RankSVMCV, "
            "RankLogisticCV, CoRankRLSCV or RankingPursuitCV, or pass training=(X, y, groups) with "
            "a RankRLS, to see held-out scores here."
        )
    if path is None and isinstance(parts.learner, RankRLSCV) and parts.weights() is not None:
        return _note("Pass training=(X, y, groups) to see the weights for each α, too.")
    return ""


def about_table(parts: ModelParts, scored: ScoredItems, versions: dict[str, str]) -> str:
    """Model, data and versions as rows of a table."""
    sizes = scored.sizes
    rows = [
        ("model", " → ".join([*parts.step_names, parts.name])),
        *((f"· {name}", value) for name, value in list_parameters(parts.learner)),
        ("· parameters left as they are", ", ".join(list_defaults(parts.learner)) or "none"),
        ("items", f"{scored.n_items:,}"),
        ("groups", "one list" if scored.is_one_list else f"{len(sizes):,}"),
        ("items a group", f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):,g}"),
        ("pairs of different true score", f"{int(scored.pairs.sum()):,}"),
        ("true scores", f"{scored.y.min():,g} to {scored.y.max():,g}"),
        ("items without true score, left out", f"{scored.n_unscored:,}"),
        *((name, version) for name, version in versions.items()),
    ]
    return "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in rows
    )


def _share(part: int, whole: int) -> str:
    """A share in percent; 0% and 100% only if the share is exactly 0 or 1."""
    if 0 < part / whole < 0.0005:
        return "less than 0.1%"
    return "more than 99.9%" if 0.9995 <= part / whole < 1 else f"{part / whole:.1%}"


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>' if text else ""
