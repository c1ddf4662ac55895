"""The section of a report about comparisons that an AutoRanker held out in training."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from rankwise.auto.auto_ranker import AutoRanker
from rankwise.formatting import TextTable
from rankwise.inspection.model_parts import ModelParts
from rankwise.pages.page_values import as_text
from rankwise.pages.report.html_text import hint, number_text, scrolling_table

LINK = '<a href="#comparisons">Comparisons</a>'


class ComparisonSection(NamedTuple):
    """The section, and the link to it; both are empty for other models."""

    html: str
    link: str


def comparison_section(model_parts: ModelParts) -> ComparisonSection:
    """Held-out errors of the ranking and of pairs, what a ranking explains, and examples."""
    learner = model_parts.learner
    if not isinstance(learner, AutoRanker) or learner.comparison_ is None:
        return ComparisonSection(html="", link="")
    blocks = [
        '<section id="comparisons" aria-labelledby="comparisons-title">',
        '<h2 id="comparisons-title">Who beats whom: held-out comparisons</h2>',
        f'<p class="lead">{escape(learner.notes_[-1])}</p>',
        _error_table(learner),
        hint(
            "Measured in training, on comparisons whose items (one, or both) were held out, or on "
            "later comparisons. ± is one standard error that allows for comparisons that share "
            "items."
        ),
        _explained_table(learner),
    ]
    if learner.comparison_.uses_pairs_:
        blocks.append(_example_table(learner))
    blocks.append("</section>")
    return ComparisonSection(html="\n".join(blocks), link=LINK)


def _error_table(learner: AutoRanker) -> str:
    """Share of wrong comparisons and log loss, by kind of held-out comparison."""
    header = ["Held out", "Comparisons", "Predicted by", "Wrong", "Log loss"]
    predictors = {"order": "ranking", "pairs": "both items"}
    rows = []
    for error in learner.summary().comparisons:
        rows.append(
            [
                error.kind,
                f"{error.n_comparisons:,}",
                predictors[error.predictor],
                f"{error.wrong:.1%} ± {error.standard_error:.1%}",
                number_text(error.log_loss),
            ]
        )
    return scrolling_table(
        TextTable(header, rows, names=(0, 2)), "comparison-errors", "Table of held-out errors"
    )


def _explained_table(learner: AutoRanker) -> str:
    """What the ranking explains of what pairs explain."""
    explained = learner.explained_
    if not explained:
        return ""
    rows = [
        ["the best ranking", f"{explained['order']:.0%}"],
        ["a model of both items", f"{explained['pairs']:.0%}"],
        ["ranking / both items", f"{explained['share']:.0%}"],
        ["p of the difference", f"{explained['p']:.2g}"],
    ]
    explanation = hint("Part of the log loss of random guesses that is removed, held out.")
    table = TextTable(["Explained by", "Part"], rows)
    return (
        "<h3>What does a ranking explain?</h3>"
        + explanation
        + scrolling_table(table, "explained", "Table of what a ranking explains")
    )


def _example_table(learner: AutoRanker) -> str:
    """Held-out comparisons where the ranking and the model of both items differ most."""
    outcomes = {1.0: "won", 0.0: "lost", 0.5: "tied"}
    rows = []
    for example in learner.examples_:
        rows.append(
            [
                as_text(example["first"]),
                as_text(example["second"]),
                f"{example['order']:.0%}",
                f"{example['pairs']:.0%}",
                outcomes[float(example["outcome"])],
            ]
        )
    header = ["Item", "Against", "Ranking", "Both items", "Outcome"]
    table = TextTable(header, rows, names=(0, 1, 4))
    explanation = hint(
        "Probability that the item wins, by the ranking and by the model of both items: held-out "
        "comparisons where the two differ most."
    )
    return (
        "<h3>Where both items matter</h3>"
        + explanation
        + scrolling_table(table, "comparison-examples", "Table of examples")
    )
