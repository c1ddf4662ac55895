"""Parts of the summary of AutoRanker, and the log of members for comparisons."""

from __future__ import annotations

import sys

from rankwise.auto.comparison_members import EvaluatedEntry, SkippedEntry
from rankwise.auto.comparison_results import ResultRow
from rankwise.preprocessing.column_types import ColumnInfo
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.summary import ColumnUse, HeldOutErrors


def print_entry(result: EvaluatedEntry | SkippedEntry) -> None:
    """Print a member to standard error."""
    if isinstance(result, SkippedEntry):
        text = f"{result.name}: left out: {result.reason}"
    else:
        text = f"{result.member.name}: {result.seconds:.1f} s"
    sys.stderr.write(f"AutoRanker: {text}\n")


def column_uses(table: TableVectorizer | None) -> list[ColumnUse]:
    """Use of the columns of a table."""
    return [ColumnUse(column.name, column.words, column.why) for column in column_facts(table)]


def column_facts(table: TableVectorizer | None) -> list[ColumnInfo]:
    """Kinds of the columns of a table; empty for items that are not a table."""
    if table is None:
        return []
    return table.facts_


def notes_of_dropped_columns(table: TableVectorizer | None) -> list[str]:
    """Why columns of a table are not used."""
    return [
        f"column {column.name} is dropped: {column.why}"
        for column in column_facts(table)
        if not column.is_used
    ]


def held_out_errors(table: list[ResultRow], uses_pairs: bool) -> list[HeldOutErrors]:
    """Errors of the order and, if they are used, of pairs, by kind of held-out comparison."""
    errors = []
    predictors = ["order"]
    if uses_pairs:
        predictors.append("pairs")
    for row in table:
        for predictor in predictors:
            if f"{predictor}_wrong" not in row:  # only ties are held out
                continue
            errors.append(
                HeldOutErrors(
                    kind=str(row["kind"]),
                    n_comparisons=int(row["n"]),
                    predictor=predictor,
                    wrong=float(row[f"{predictor}_wrong"]),
                    standard_error=float(row[f"{predictor}_wrong_error"]),
                    log_loss=float(row[f"{predictor}_log_loss"]),
                )
            )
    return errors


def best_member_name(members: list[ResultRow]) -> str:
    """The member with the smallest held-out log loss."""
    losses = {str(row["name"]): float(row["log_loss"]) for row in members if "log_loss" in row}
    return min(losses, key=losses.__getitem__)
