"""``rankwise rank``: a leaderboard from comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwise.cli.options import AsJson, Confidence, Output, Seed, flag
from rankwise.cli.pairs_file import ComparisonOptions

if TYPE_CHECKING:
    from rankwise.leaderboard import Leaderboard

__all__ = ["rank"]


PairsFile = Annotated[
    Path, typer.Argument(metavar="PAIRS", help="CSV or TSV with one comparison a line.")
]
Alpha = Annotated[
    str | None,
    typer.Option(
        metavar="auto|X",
        help="Regularization; next to none if not given, auto leaves out one comparison at a time.",
    ),
]
Intervals = Annotated[
    str,
    typer.Option(
        metavar="jackknife|bootstrap",
        help="Leave out every comparison or cluster in closed form, or draw them again.",
    ),
]
Side = Annotated[
    bool, flag("--side", help="Estimate the advantage of the first side, and take it out.")
]
Resamples = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Bootstrap resamples, or draws for the ranks; 0 for no intervals. "
        "1000 if not given, 200 above 2,000 items.",
    ),
]


def rank(
    pairs: PairsFile,
    columns: ComparisonOptions,
    alpha: Alpha = None,
    side: Side = False,
    intervals: Intervals = "jackknife",
    resamples: Resamples = None,
    confidence: Confidence = 0.95,
    random_state: Seed = 0,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Rate items by who beat whom: a leaderboard with intervals.

    With a column of groups there is one board for each group. -o writes the boards as CSV.
    """
    from rankwise.cli.number_options import number_in
    from rankwise.cli.output import check_inputs, check_output, print_json
    from rankwise.cli.pairs_file import read_comparisons
    from rankwise.leaderboard import rate, rate_groups

    check_inputs(pairs, columns.features)
    check_output(output, pairs, columns.features)
    found = read_comparisons(pairs, columns)
    options: dict[str, Any] = {
        "intervals": intervals,
        "n_resamples": resamples,
        "confidence": confidence,
        "features": found.features,
        "covariates": list(found.pairs.covariates) or None,
        "side": side,
        "random_state": random_state,
    }
    if alpha is not None:
        options["alpha"] = alpha if alpha == "auto" else number_in("--alpha", alpha)
    is_one = found.pairs.groups is None
    boards = {None: rate(found.pairs, **options)} if is_one else rate_groups(found.pairs, **options)
    if output is not None:
        _write(output, boards)
    if as_json:
        documents = {label: board.to_dict() for label, board in boards.items()}
        print_json(documents.get(None, documents))
    elif output is None:
        for label, board in boards.items():
            _print(label, board)


def _print(label: Any, board: Leaderboard) -> None:
    from rankwise.cli.output import print_table

    if label is not None:
        typer.echo(str(label))
    header, *rows = board.table
    print_table(header, rows, n_left=2)
    typer.echo(f"{board.footer}\n")


def _write(path: Path, boards: dict[Any, Leaderboard]) -> None:
    from rankwise.cli.output import write_csv
    from rankwise.leaderboard import LeaderboardRow

    names, grouped = list(LeaderboardRow._fields), None not in boards
    rows = [
        ([label] if grouped else []) + list(row) for label, board in boards.items() for row in board
    ]
    write_csv(path, (["group"] if grouped else []) + names, rows)
