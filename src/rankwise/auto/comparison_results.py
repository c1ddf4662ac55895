"""AutoRanker's report on comparisons: held-out errors, and the share that an order explains."""

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
LEAST_NOVEL = 200  # comparisons of two new items, to report the share that an order explains
N_EXAMPLES = 8

ResultRow = dict[str, str | int | float]


class WhereHeldOut(NamedTuple):
    """Held-out comparisons of one novelty."""

    novelty: Novelty
    rows: Array


def rows_by_novelty(hold_out: HeldOutComparisons) -> list[WhereHeldOut]:
    """The kinds of held-out comparisons that occur."""
    kinds = []
    for novelty in Novelty:
        rows = hold_out.novelty == novelty
        if rows.any():
            kinds.append(WhereHeldOut(novelty, rows))
    return kinds


def mean_over_rows(
    values: Array, hold_out: HeldOutComparisons, rows: Array
) -> ComparisonMean | None:
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
    for kind in rows_by_novelty(hold_out):
        row: ResultRow = {"kind": str(kind.novelty), "n": int(kind.rows.sum())}
        columns = {
            "order_wrong": losses.order_wrong,
            "order_log_loss": losses.order_loss,
            "pairs_wrong": losses.pairs_wrong,
            "pairs_log_loss": losses.pairs_loss,
        }
        for name, values in columns.items():
            mean = mean_over_rows(values, hold_out, kind.rows)
            if mean is not None:
                row[name] = mean.mean
                row[f"{name}_error"] = mean.standard_error
        table.append(row)
    return table


def explain(hold_out: HeldOutComparisons, losses: HeldOutLosses) -> dict[str, float]:
    """Share of the held-out log loss of random guesses that the order and pairs explain.

    Comparisons of two new items count, unless they are fewer than 200.
    """
    are_both_new = hold_out.novelty == Novelty.BOTH
    rows = np.ones(len(are_both_new), dtype=bool)
    if are_both_new.sum() >= LEAST_NOVEL:
        rows = are_both_new
    order_loss = mean_over_rows(losses.order_loss, hold_out, rows)
    pairs_loss = mean_over_rows(losses.pairs_loss, hold_out, rows)
    gain = mean_over_rows(losses.order_loss - losses.pairs_loss, hold_out, rows)
    if order_loss is None or pairs_loss is None or gain is None:
        return {}

    # share of the loss of random guesses that each explains
    explained_by_order = 1 - order_loss.mean / CHANCE_LOSS
    explained_by_pairs = 1 - pairs_loss.mean / CHANCE_LOSS
    share_of_order = 1.0  # models of pairs explain nothing beyond the order
    if explained_by_pairs > max(0.0, explained_by_order):
        share_of_order = explained_by_order / explained_by_pairs
    return {
        "order": explained_by_order,
        "pairs": explained_by_pairs,
        "share": max(0.0, share_of_order),
        "p": gain.p,
    }


def explanation(table: list[ResultRow], explained: dict[str, float], uses_pairs: bool) -> str:
    """One sentence about the share that an order explains."""
    most_novel = table[0]  # rows are in the order of `Novelty`, two new items first
    if not uses_pairs:
        return (
            "A ranking explains the comparisons as well as models of both items do; it misorders "
            f"{most_novel['order_wrong']:.1%} of held-out comparisons ({most_novel['kind']})."
        )
    return (
        "The winner depends on both items: the best ranking misorders "
        f"{most_novel['order_wrong']:.1%} of held-out comparisons ({most_novel['kind']}), "
        f"predict_above {most_novel['pairs_wrong']:.1%}. A ranking explains "
        f"{explained['share']:.0%} of what can be predicted."
    )


def estimate_error(
    hold_out: HeldOutComparisons,
    losses: HeldOutLosses,
    out_of_bag_losses: HeldOutLosses | None,
    uses_pairs: bool,
) -> dict[str, float]:
    """Share of wrong comparisons of new items, with an interval.

    The share on the comparisons that the weights were fitted to is biased downward, and that of
    stacks of drawn items upward: the estimate is their mean.
    """
    most_novel = rows_by_novelty(hold_out)[0]  # in the order of `Novelty`, two new items first
    is_wrong = losses.wrong_shares(uses_pairs)
    wrong_share = mean_over_rows(is_wrong, hold_out, most_novel.rows)
    if wrong_share is None:
        return {}
    optimism = 0.0
    if out_of_bag_losses is not None:
        is_wrong_out_of_bag = out_of_bag_losses.wrong_shares(uses_pairs)
        is_evaluated = most_novel.rows & ~np.isnan(is_wrong_out_of_bag)
        wrong_share_out_of_bag = mean_over_rows(is_wrong_out_of_bag, hold_out, is_evaluated)
        wrong_share_in_sample = mean_over_rows(is_wrong, hold_out, is_evaluated)
        # The share in the sample is biased downward, and that out of bag upward: the estimate is
        # between them.
        if wrong_share_out_of_bag is not None and wrong_share_in_sample is not None:
            optimism = (wrong_share_out_of_bag.mean - wrong_share_in_sample.mean) / 2
    return {
        "score": wrong_share.mean + optimism,
        "low": max(0.0, wrong_share.low + optimism),
        "high": min(1.0, wrong_share.high + optimism),
        "optimism": optimism,
    }


def member_row(
    member: EvaluatedPairMember, seconds: float, problem: ComparisonProblem
) -> ResultRow:
    """A row of `members_`, without weights."""
    every_comparison = np.ones(len(problem.hold_out.novelty), dtype=bool)
    is_wrong = problem.wrong_shares(member.differences)
    wrong_share = mean_over_rows(is_wrong, problem.hold_out, every_comparison)
    row: ResultRow = {
        "name": member.name,
        "note": note_of_trees(member.n_trees),
        "alpha": member.alpha,
        "log_loss": problem.held_out_loss(member.differences, member.min_upset_probability),
        "seconds": seconds,
    }
    if wrong_share is not None:
        row.update(score=wrong_share.mean, low=wrong_share.low, high=wrong_share.high)
    return row


def find_examples(
    problem: ComparisonProblem, stacks: ComparisonStacks, names: list[str]
) -> list[ResultRow]:
    """Held-out comparisons whose probabilities by the order and by pairs differ most."""
    comparisons = problem.hold_out.comparisons
    by_order = win_probability(stacks.order_differences, stacks.order.min_upset_probability)
    by_pairs = win_probability(stacks.pair_log_odds, min_upset_probability=0.0)
    largest_difference_first = np.argsort(-np.abs(by_order - by_pairs), kind="stable")
    examples: list[ResultRow] = []
    shown_pairs: set[tuple[int, int]] = set()
    for k in largest_difference_first.tolist():
        first = int(comparisons.first[k])
        second = int(comparisons.second[k])
        if (first, second) in shown_pairs:  # compared several times
            continue
        shown_pairs.add((first, second))
        examples.append(
            {
                "first": names[first],
                "second": names[second],
                "order": float(by_order[k]),
                "pairs": float(by_pairs[k]),
                "outcome": float(comparisons.first_win_share[k]),
            }
        )
        if len(examples) == N_EXAMPLES:
            break
    return examples
