"""``rankwise compare``: which of several rankers is better on the same groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rankwise.cli import terminal
from rankwise.cli.shared_options import ItemOptions, TableOptions
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.formatting import TABLE_FORMATS, text_width

if TYPE_CHECKING:
    from rankwise.metrics import Evaluation, Metric
    from rankwise.model_selection import Comparison

SPARED = ("mean a", "mean b", "p")


def compare(
    data: Path,
    rankers: list[Path],
    /,
    table: TableOptions,
    pairs: ItemOptions,
    metric: list[str] | None = None,
    baseline: str | None = None,
    test: str = "wilcoxon",
    confidence: float = DEFAULT_CONFIDENCE,
    style: str = "text",
    as_json: bool = False,
) -> None:
    """Compare models, or files of scores, by a paired test.

    \b
    rankwise compare new.csv model.rw other.rw --metric ndcg@10

    Parameters
    ----------
    rankers : RANKER…
        Two or more models, or files of scores.
    baseline : NAME
        Compare the others with this one only.
    test : NAME
        wilcoxon (ranks of differences) or randomization (their mean).
    style : --as NAME
        text, markdown, latex or html.
    """  # noqa: D301
    from rankwise.cli.input_files import open_data, open_ranker
    from rankwise.cli.model_options import metrics_for
    from rankwise.metrics import evaluate
    from rankwise.model_selection import compare as paired_test
    from rankwise.model_selection.comparison import TESTS
    from rankwise.validation import check_option

    check_option("--test", test, TESTS)
    check_option("--as", style, TABLE_FORMATS)
    if len(rankers) < 2:
        raise ValueError("compare needs two rankers or more: `rankwise compare DATA A B`.")
    terminal.check_files([data, pairs.items, *rankers])
    file = open_data(data, table, pairs)
    names = unique_names(rankers)
    evaluations: dict[str, Evaluation] = {}
    chosen: list[Metric] = []
    for name, path in zip(names, rankers, strict=True):
        ranker = open_ranker(path)
        predicted, found = ranker.scores(file)
        terminal.note(ranker.seen_items(file, found))
        if len(predicted) > 1 and (predicted == predicted[0]).all():
            terminal.note(f"all scores of {name} are equal, so it does not rank anything")
        chosen = chosen or metrics_for(metric or file.usual_metrics, found.y)
        evaluations[name] = evaluate(found.y, predicted, found.groups, chosen, undefined="nan")
    found_by = {
        one.name: paired_test(
            {name: result.per_group[one.name] for name, result in evaluations.items()},
            confidence=confidence,
            greater_is_better=one.greater_is_better,
            baseline=baseline,
            test=test,
        )
        for one in chosen
    }
    if as_json:
        terminal.print_json({name: result.to_dict() for name, result in found_by.items()})
        return
    for name, result in found_by.items():
        if style == "text":
            typer.echo(name)
            print_comparison(result)
        else:
            typer.echo(getattr(replace(result.table(), title=name), style)())


def print_comparison(test: Comparison) -> None:
    """One row for each two rankers; a narrow terminal has no room for what can be done without."""
    if test.n_groups == 1:
        terminal.note("there is one group only, so nothing can be said about chance")
    table, width = test.table(), terminal.terminal_width()
    if width is not None and max(map(text_width, table.lines())) > width:
        kept = [k for k, name in enumerate(table.header) if name not in SPARED]
        rows = [[row[k] for k in kept] for row in table.rows]
        table = replace(table, header=[table.header[k] for k in kept], rows=rows)
    terminal.print_table(table)
    typer.echo("")


def unique_names(paths: list[Path]) -> list[str]:
    """Names of the files without suffix; whole paths where these are equal, with their place."""
    stems = [path.stem for path in paths]
    names = [path.stem if stems.count(path.stem) == 1 else str(path) for path in paths]
    numbered = enumerate(names, start=1)
    return [name if names.count(name) == 1 else f"{name} ({k})" for k, name in numbered]
