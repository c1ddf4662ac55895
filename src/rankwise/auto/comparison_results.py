"""What AutoRanker reports about comparisons: held-out errors, and what an order explains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.auto.capped_link import win_probability
from rankwise.auto.comparison_folds import HeldOutComparisons, Novelty
from rankwise.auto.comparison_problem import ComparisonProblem, EvaluatedPairMember
from rankwise.auto.comparison_stacks import ComparisonStacks, HeldOutLosses
from rankwise.auto.evaluated_member import note_of_trees
from rankwise.metrics.shared_items import ComparisonMean, dyadic_robust_mean

CHANCE_LOSS = float(np.log(2))
LEAST_NOVEL = 200  # comparisons of two new items to report what an order explains there
N_EXAMPLES = 8
LITTLE_EXPLAINED = 0.9  # share of what can be predicted, below which `rank` is not enough

ResultRow = dict[str, str | int | float]


class WhereHeldOut(NamedTuple):
    """Held-out comparisons of one novelty."""

    novelty: Novelty
    rows: Array


def novelty_rows(hold_out: HeldOutComparisons) -> list[WhereHeldOut]:
    """The kinds of held-out comparisons that occur."""
    kinds = [WhereHeldOut(novelty, hold_out.novelty == novelty) for novelty in Novelty]
    return [kind for kind in kinds if kind.rows.any()]


def mean_of(values: Array, hold_out: HeldOutComparisons, rows: Array) -> ComparisonMean | None:
    """Mean over the defined values of selected comparisons; None if there are none."""
    comparisons = hold_out.comparisons
    selected = np.flatnonzero(rows & ~np.isnan(values))
    if not len(selected):
        return None
    return dyadic_robust_mean(
        values[selected],
        comparisons.first[selected],
        comparisons.second[selected],
        sample_weight=comparisons.weight[selected],
    )


def held_out_table(hold_out: HeldOutComparisons, losses: HeldOutLosses) -> list[ResultRow]:
    """A row for each kind of held-out comparison, with errors of the order and of pairs."""
    table = []
    for kind in novelty_rows(hold_out):
        row: ResultRow = {"kind": str(kind.novelty), "n": int(kind.rows.sum())}
        columns = {
            "order_wrong": losses.order_wrong,
            "order_log_loss": losses.order_loss,
            "pairs_wrong": losses.pairs_wrong,
            "pairs_log_loss": losses.pairs_loss,
        }
        for name, values in columns.items():
            mean = mean_of(values, hold_out, kind.rows)
            if mean is not None:
                row[name] = mean.mean
                row[f"{name}_error"] = mean.standard_error
        table.append(row)
    return table


def explain(hold_out: HeldOutComparisons, losses: HeldOutLosses) -> dict[str, float]:
    """What the best order and pairs explain of the log loss of random guesses, held out.

    Comparisons of two new items count, unless they are fewer than 200.
    """
    is_novel = hold_out.novelty == Novelty.BOTH
    rows = np.ones(len(is_novel), dtype=bool)
    if is_novel.sum() >= LEAST_NOVEL:
        rows = is_novel
    order = mean_of(losses.order_loss, hold_out, rows)
    pairs = mean_of(losses.pairs_loss, hold_out, rows)
    gain = mean_of(losses.order_loss - losses.pairs_loss, hold_out, rows)
    if order is None or pairs is None or gain is None:
        return {}
    of_order = 1 - order.mean / CHANCE_LOSS
    of_pairs = 1 - pairs.mean / CHANCE_LOSS
    share = 1.0
    if of_pairs > max(0.0, of_order):
        share = of_order / of_pairs
    return {"order": of_order, "pairs": of_pairs, "share": max(0.0, share), "p": gain.p}


def explanation(table: list[ResultRow], explained: dict[str, float], uses_pairs: bool) -> str:
    """One sentence about what an order explains."""
    row = table[0]
    if not uses_pairs:
        return (
            "A ranking explains the comparisons as well as models of both items do; it misorders "
            f"{row['order_wrong']:.1%} of held-out comparisons ({row['kind']})."
        )
    return (
        "The winner depends on both items: the best ranking misorders "
        f"{row['order_wrong']:.1%} of held-out comparisons ({row['kind']}), predict_above "
        f"{row['pairs_wrong']:.1%}. A ranking explains {explained['share']:.0%} of what can be "
        "predicted."
    )


def estimate_error(
    hold_out: HeldOutComparisons,
    losses: HeldOutLosses,
    resampled: HeldOutLosses | None,
    uses_pairs: bool,
) -> dict[str, float]:
    """Share of wrong comparisons of new items, with an interval.

    The share on the comparisons that the weights were fitted to is biased downward, and that of
    stacks of drawn items upward: the estimate is their mean.
    """
    kind = novelty_rows(hold_out)[0]
    values = losses.wrong(uses_pairs)
    fitted = mean_of(values, hold_out, kind.rows)
    if fitted is None:
        return {}
    optimism = 0.0
    if resampled is not None:
        resampled_values = resampled.wrong(uses_pairs)
        is_resampled = kind.rows & ~np.isnan(resampled_values)
        of_drawn_items = mean_of(resampled_values, hold_out, is_resampled)
        of_all_items = mean_of(values, hold_out, is_resampled)
        if of_drawn_items is not None and of_all_items is not None:
            optimism = (of_drawn_items.mean - of_all_items.mean) / 2
    return {
        "score": fitted.mean + optimism,
        "low": max(0.0, fitted.low + optimism),
        "high": min(1.0, fitted.high + optimism),
        "optimism": optimism,
    }


def member_row(
    member: EvaluatedPairMember, seconds: float, problem: ComparisonProblem
) -> ResultRow:
    """A row of `members_`, without weights."""
    hold_out = problem.hold_out
    all_rows = np.ones(len(hold_out.novelty), dtype=bool)
    wrong = mean_of(problem.wrong(member.differences), hold_out, all_rows)
    row: ResultRow = {
        "name": member.name,
        "note": note_of_trees(member.n_trees),
        "alpha": member.alpha,
        "log_loss": problem.loss(member.differences, member.cap),
        "seconds": seconds,
    }
    if wrong is not None:
        row.update(score=wrong.mean, low=wrong.low, high=wrong.high)
    return row


def find_examples(
    problem: ComparisonProblem, stacks: ComparisonStacks, names: list[str]
) -> list[ResultRow]:
    """Held-out comparisons whose probabilities by the order and by pairs differ most."""
    comparisons = problem.hold_out.comparisons
    order = win_probability(stacks.order_differences, stacks.order.cap)
    pairs = win_probability(stacks.pair_log_odds, 0.0)
    examples: list[ResultRow] = []
    pairs_of_examples: set[tuple[int, int]] = set()
    for k in np.argsort(-np.abs(order - pairs), kind="stable").tolist():
        first = int(comparisons.first[k])
        second = int(comparisons.second[k])
        if (first, second) in pairs_of_examples:
            continue
        pairs_of_examples.add((first, second))
        examples.append(
            {
                "first": names[first],
                "second": names[second],
                "order": float(order[k]),
                "pairs": float(pairs[k]),
                "outcome": float(comparisons.share[k]),
            }
        )
        if len(examples) == N_EXAMPLES:
            break
    return examples
