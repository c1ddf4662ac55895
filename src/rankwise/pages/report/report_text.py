"""What the page says in words and numbers without any script: HTML made here, escaped here."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from rankwise.arrays import Array
from rankwise.formatting import TextTable, count
from rankwise.inspection.model_parts import ModelParts
from rankwise.metrics import get_metric
from rankwise.metrics.evaluation import FEW_GROUPS
from rankwise.model_selection import compare
from rankwise.model_selection.conformal import conformal_quantile, held_out_gaps, in_best_set
from rankwise.pages.page_values import as_text
from rankwise.pages.report.baselines import Baseline
from rankwise.pages.report.report_data import ScoredItems
from rankwise.pages.report.report_sections import FIRST_ITEMS, ITEMS_A_GROUP, MetricResult
from rankwise.uncertainty import CalibratedRanker

LEVELS = (0.5, 0.8, 0.9, 0.95)  # of best sets
LONGEST_BANNER = 400
LONGEST_NOTE = 160
LONGEST_VALUE = 400
MANY_PAIRS = 20  # that are not all in the right order by luck
MARKS = {"random": "○", "feature": "◇", "previous": "□"}


def subtitle(parts: ModelParts, scored: ScoredItems) -> str:
    """Model and data in one line."""
    learner = " → ".join([*parts.step_names, parts.name])
    items = count(len(scored.y), "item")
    if not scored.is_one_list:
        items += f" in {count(scored.groups.n_groups, 'group')}"
    return escape(f"{learner} on {items}")


def headline(scored: ScoredItems, rivals: list[Baseline]) -> str:
    """The share of rightly ordered pairs as a sentence, and a question if it is too good."""
    counts = scored.counts[:3]  # of different y, of these in the wrong order, and undecided
    total, wrong, tied = (int(by_group.sum()) for by_group in counts)
    n, left_out = scored.n_unscored, ""
    if n:
        are = "is" if n == 1 else "are"
        left_out = f" {count(n, 'item')} without a true score (NaN) {are} left out."
    if not total:
        return f"No two items of a group differ in their true score.{left_out}"
    right = _share(total - wrong - tied, total)
    shares = f"{_share(wrong, total)} in the wrong one"
    others = f", {shares}, and {_share(tied, total)} are tied" if tied else f" and {shares}"
    where = "" if scored.is_one_list else " of the same group"
    question = ""
    if wrong + tied == 0 and total >= MANY_PAIRS:
        question = " No error at all: is the true score, or what follows from it, a feature?"
        error = get_metric("disagreement")
        for rival in rivals:
            if rival.kind == "feature" and rival.measure(scored, error)[0] == 0:
                question += f" <bdi>{escape(rival.name)}</bdi> alone has no error either."
    return (
        f"Of {count(total, 'pair')} of items{where} with different true scores, "
        f"<strong>{right} are in the right order</strong>{others}.{question}{left_out}"
    )


def interval_hint(results: list[MetricResult], scored: ScoredItems, confidence: float) -> str:
    """What the values and their intervals are."""
    if scored.groups.n_groups == 1:
        is_sure = any(not np.isnan(result.low) for result in results)
        items = " The interval is that of other items in it (DeLong)." if is_sure else ""
        return f"There is only one list, so nothing tells how far another list would differ.{items}"
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


# ---------------------------------------------------------------- cards


def metric_cards(
    results: list[MetricResult], rivals: list[Baseline], scored: ScoredItems, confidence: float
) -> str:
    """One card for each metric: what it is, its mean with an interval, what it must beat."""
    cards = []
    for result in results:
        metric = result.metric
        lines = [f"<h3>{escape(metric.title)}</h3>"]
        if result.refusal:
            lines += ['<p class="value">–</p>', _hint(result.refusal)]
        else:
            measured = [(rival, *rival.measure(scored, metric)) for rival in rivals]
            known = [each for each in measured if not np.isnan(each[1])]
            direction = "Higher is better" if metric.greater_is_better else "Lower is better"
            lines += [
                f'<p class="value">{"–" if np.isnan(result.mean) else _number(result.mean)}</p>',
                _hint(_interval_text(result, confidence)),
                _drawing(result, [(rival.kind, mean) for rival, mean, _ in known]),
                _rival_list(known),
                _against_previous(result, known, confidence),
                _hint(f"{metric.meaning} {direction}{_undefined(result)}."),
            ]
        cards.append(f'<li class="card">{"".join(lines)}</li>')
    return "\n".join(cards)


def _rival_list(known: list[tuple[Baseline, float, Array]]) -> str:
    rows = ""
    for rival, mean, _ in known:
        name = escape(rival.name)
        if rival.kind == "feature":
            name = f"best single feature: <bdi>{name}</bdi>"
        mark = f'<span aria-hidden="true">{MARKS[rival.kind]}</span>'
        rows += f"<li>{mark} <span>{name} </span><b>{_number(mean)}</b></li>"
    return f'<ul class="rivals">{rows}</ul>' if rows else ""


def _against_previous(
    result: MetricResult, known: list[tuple[Baseline, float, Array]], confidence: float
) -> str:
    """The difference to the previous model, with the interval of paired groups."""
    for rival, _, values in known:
        if rival.kind == "previous":
            row = compare(
                {"this": result.values, "previous": values},
                confidence=confidence,
                greater_is_better=result.metric.greater_is_better,
            ).rows[0]
            difference, low, high = (
                f"{value:+z.3f}".replace("-", "−") for value in (row.difference, row.low, row.high)
            )
            interval = "" if np.isnan(row.low) else f" ({100 * confidence:g}%: {low} to {high})"
            return _hint(f"{difference} against the previous model{interval}")
    return ""


def _interval_text(result: MetricResult, confidence: float) -> str:
    n_defined = len(result.values) - result.n_undefined
    if not np.isnan(result.low):
        is_rough = 1 < n_defined < FEW_GROUPS
        rough = f", a rough guess from {n_defined} groups" if is_rough else ""
        return f"{100 * confidence:g}%: {_number(result.low)} to {_number(result.high)}{rough}"
    if n_defined == 0:
        return "no group has a value"
    if n_defined > 1:
        return f"the same in all {n_defined:,} groups: no interval"
    return "one list: no interval" if len(result.values) == 1 else "one group: no interval"


def _drawing(result: MetricResult, rivals: list[tuple[str, float]]) -> str:
    """A line from the worst to the best possible value; on it the interval, the mean, rivals."""
    if np.isnan(result.mean):
        return ""
    start, end = result.scale

    def place(value: float) -> float:
        return round(4 + 192 * float(np.clip((value - start) / (end - start), 0, 1)), 1)

    marks = ""
    for kind, value in rivals:
        x = place(value)
        if kind == "random":
            marks += f'<circle class="rival" cx="{x}" cy="7" r="3.5"/>'
        elif kind == "feature":
            marks += f'<path class="rival" d="M{x - 4.5:.1f},7l4.5,-4.5l4.5,4.5l-4.5,4.5z"/>'
        else:
            marks += f'<rect class="rival" x="{x - 3.5:.1f}" y="3.5" width="7" height="7"/>'
    low, high = np.nan_to_num((result.low, result.high), nan=result.mean)
    first, last = (f"{value:.4g}".replace("-", "−") for value in (start, end))
    label = f"{result.metric.title} {_number(result.mean)} on a scale from {start:.4g} to {end:.4g}"
    return (
        f'<svg viewBox="0 0 200 14" role="img" aria-label="{escape(label)}">'
        '<line class="rail" x1="4" y1="7" x2="196" y2="7"/>'
        f'<line class="whisker" x1="{place(low)}" y1="7" x2="{place(high)}" y2="7"/>{marks}'
        f'<circle class="dot" cx="{place(result.mean)}" cy="7" r="4.5"/></svg>'
        f'<p class="ends" aria-hidden="true"><span>{first}</span><span>{last}</span></p>'
    )


def _undefined(result: MetricResult) -> str:
    if not result.n_undefined:
        return ""
    return (
        f"; undefined in {result.n_undefined:,} of {count(len(result.values), 'group')}, "
        f"it needs {result.metric.needs}"
    )


# ---------------------------------------------------------------- notes


def notes(parts: ModelParts, data: dict[str, Any]) -> dict[str, str]:
    """What the sections leave out, and why, for the places of the template."""
    texts = {
        "group_note": _group_note(data["groups"], data["items"], data["metrics"][0]),
        "item_note": _item_note(data["items"]),
        "feature_note": _feature_note(parts, data),
        "margin_note": _margin_note(data["margins"]),
        "curve_note": _curve_note(parts, data["curves"]),
    }
    return {
        name: f'<p class="note">{escape(text)}</p>' if text else "" for name, text in texts.items()
    }


def _group_note(groups: dict[str, Any], items: list[dict[str, Any]], metric: dict[str, Any]) -> str:
    """Which groups the page leaves out."""
    n_listed, n_shown = len(groups["names"]), len(items)
    sentences = []
    if n_listed < groups["total"]:
        sentences.append(
            f"{n_listed:,} of {groups['total']:,} groups are listed: the worst and the best by "
            f"{metric['title']}. The means above are over all groups."
        )
    if n_shown < n_listed:
        sentences.append(
            f"To keep the page small it has the items of {n_shown:,} groups, the worst and the "
            "best; their names are links."
        )
    return " ".join(sentences)


def _item_note(items: list[dict[str, Any]]) -> str:
    """How long groups were cut."""
    n_cut = sum(len(each["names"]) < each["total"] for each in items)
    if not n_cut:
        return ""
    is_cut = "is cut" if n_cut == 1 else "are cut"
    return (
        f"{count(n_cut, 'group')} of more than {ITEMS_A_GROUP} items {is_cut}: the page has the "
        f"first {FIRST_ITEMS} predicted, the {FIRST_ITEMS} truly best, others at even "
        "steps. Ranks and swaps count all items."
    )


def _margin_note(margins: dict[str, Any]) -> str:
    """Whether all pairs were drawn."""
    if not margins["total"] or margins["used"] == margins["total"]:
        return ""
    return (
        f"Drawn from a random sample of {margins['used']:,} of the {margins['total']:,} pairs; "
        "the shares are exact."
    )


def _feature_note(parts: ModelParts, data: dict[str, Any]) -> str:
    """On which scale the weights are, or why there are none."""
    if parts.learner is None:
        return "Scores were given instead of a model, so there are no weights to show."
    if hasattr(parts.learner, "members_"):
        return (
            "This AutoRanker combines several models, listed below with their weights and "
            "held-out scores. It has no weight for each feature, but a loss if one is shuffled "
            "inside the groups (rankwise.inspection.permutation_importance)."
        )
    if data["features"] is None:
        return (
            f"This {parts.name} has no weight for each feature: its score is a sum over training "
            "items (a kernel model) or over views that have such sums. A linear kernel, or "
            "RankingPursuit(dictionary='features', kernel='linear'), gives weights."
        )
    if parts.steps is None:
        return ""
    steps = ", ".join(parts.step_names)
    return f"Weights belong to the features after {steps}, not to those of the data."


def _curve_note(parts: ModelParts, curves: dict[str, Any] | None) -> str:
    """What is missing, and how to get it."""
    if parts.learner is None:
        return "Scores were given instead of a model, so there is nothing to tune."
    if hasattr(parts.learner, "members_"):
        return " ".join(f"{text}." for text in parts.learner.notes_)
    if curves is None and parts.search:
        return (
            f"The parameters were chosen by {parts.search}, whose scores are in its cv_results_. "
            "Curves of rankwise's own searches, such as RankRLSCV, are drawn here."
        )
    if curves is None:
        return (
            "This model did not search for its parameters. Train RankRLSCV, RankSVMCV, "
            "RankLogisticCV, CoRankRLSCV or RankingPursuitCV to see held-out scores here."
        )
    return ""


# ---------------------------------------------------------------- tables


def member_table(learner: Any) -> str:
    """The members of an AutoRanker, those that count most first."""
    members = sorted(
        getattr(learner, "members_", ()), key=lambda row: -abs(row.get("weight", -np.inf))
    )
    if not members:
        return ""
    rows = []
    for row in members:
        numbers = [as_text(row["note"], LONGEST_NOTE), "", ""]
        if "score" in row:
            interval = f"{_number(row['low'])} to {_number(row['high'])}"
            numbers = [_number(row["weight"]), _number(row["score"]), interval]
        rows.append([str(row["name"]), *numbers])
    table = TextTable(["Member", "Weight", f"Held-out {learner.scoring_}", "Interval"], rows)
    return (
        '<h3>Members</h3><p class="hint">An AutoRanker adds up the scores of its members. Each was '
        "judged on groups that it was not trained on. A weight of 0: the others do as well "
        'without it.</p><div class="scroll" id="members" tabindex="0" role="region" '
        f'aria-label="Table of members">{table.html()}</div>'
    )


def best_set_table(ranker: CalibratedRanker | None, scored: ScoredItems) -> str:
    """How many items of a group must be looked at to find its best one; nothing if not known."""
    gaps = np.empty(0) if ranker is None else ranker.gaps_[0]
    levels = [level for level in LEVELS if level <= len(gaps) / (len(gaps) + 1)]
    if not levels or scored.is_one_list:
        return ""
    lists = scored.groups.codes
    found = held_out_gaps(scored.y, scored.scores, lists)
    rows = []
    for level in levels:
        sizes = np.bincount(lists, in_best_set(scored.scores, lists, gaps, level))
        share = f"{np.mean(found <= conformal_quantile(gaps, level)):.0%}" if len(found) else ""
        looked_at = f"{sizes.mean():.1f} of {scored.groups.sizes.mean():.1f}"
        rows.append([f"{level:.0%}", looked_at, f"{np.quantile(sizes, 0.9):.0f}", share])
    header = ["Asked for", "Items looked at (mean)", "In 9 of 10 groups at most", "Found here"]
    return (
        '<h3>How many must be looked at?</h3><p class="hint">The first items of a group that hold '
        f"its best one, or one tied for it, as often as asked for, by {count(len(gaps), 'group')} "
        "that were held out from training. Found here: in how many of these groups the best "
        "item is among them. The share that was asked for is that of groups of the same kind as "
        'those of the training.</p><div class="scroll" id="best-sets" tabindex="0" role="region" '
        f'aria-label="Table of best sets">{TextTable(header, rows).html()}</div>'
    )


def about_table(parts: ModelParts, scored: ScoredItems, versions: dict[str, str]) -> str:
    """Model, data and versions as rows of a table."""
    sizes, learner = scored.groups.sizes, parts.learner
    chosen = getattr(learner, "best_params_", {})
    rows = [
        ("model", " → ".join([*parts.step_names, parts.name])),
        *([] if learner is None else [("as it was set", as_text(repr(learner), LONGEST_VALUE))]),
        *(
            (f"{name} (chosen)", as_text(f"{value:.6g}" if isinstance(value, float) else value))
            for name, value in chosen.items()
        ),
        ("items", f"{len(scored.y):,}"),
        ("groups", "one list" if scored.is_one_list else f"{len(sizes):,}"),
        ("items a group", f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):,g}"),
        ("pairs of different true score", f"{int(scored.counts.differing.sum()):,}"),
        ("true scores", f"{scored.y.min():,g} to {scored.y.max():,g}"),
        ("items without true score, left out", f"{scored.n_unscored:,}"),
        *versions.items(),
    ]
    return "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in rows
    )


def _share(n: int, total: int) -> str:
    """A share in percent; 0% and 100% only if the share is exactly 0 or 1."""
    if 0 < n / total < 0.0005:
        return "less than 0.1%"
    return "more than 99.9%" if 0.9995 <= n / total < 1 else f"{n / total:.1%}"


def _number(value: float) -> str:
    """Three decimals and a minus that is as wide as a plus; no −0."""
    return f"{value:z.3f}".replace("-", "−")


def _hint(text: str) -> str:
    return f'<p class="hint">{escape(text)}</p>'
