"""``rankwise report``: one page that shows how a model ranks a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rankwise.cli import terminal
from rankwise.cli.shared_options import ItemOptions, TableOptions


def report(
    model: Path,
    data: Path,
    /,
    output: Path,
    table: TableOptions,
    pairs: ItemOptions,
    previous: Path | None = None,
    metric: list[str] | None = None,
    title: str | None = None,
) -> None:
    """Write a page (HTML) that shows how a model ranks a file.

    \b
    rankwise report model.rw new.csv -o report.html

    Parameters
    ----------
    output : -o FILE
        Where to write the page; - is standard output.
    previous : RANKER
        The model in use so far, or a file of its scores, to compare with.
    title : TEXT
        Title of the page.
    """  # noqa: D301
    import numpy as np

    from rankwise.cli.input_files import open_data, open_model, open_ranker
    from rankwise.cli.model_options import metrics_for
    from rankwise.report import report as make_page

    terminal.check_files([model, data, previous, pairs.items], output)
    ranker = open_model(model)
    file = open_data(data, table, pairs)
    found: Any = file.read_for(ranker)
    before = None
    if previous is not None:
        before = np.zeros(found.X.shape[0])  # rows without a true score are left out of the page
        before[~np.isnan(found.y)] = open_ranker(previous).scores(file)[0]
    warning = ranker.seen_items(file, found)
    metrics = metrics_for(metric or file.usual_metrics, found.y)
    page = make_page(
        ranker.model,
        found.X,
        found.y,
        found.groups,
        ids=None if found.ids is None else found.ids.tolist(),
        feature_names=ranker.features or [f"f{k + 1}" for k in range(ranker.n_features)],
        previous=before,
        metrics=metrics,
        warning=warning,
        title=title or f"{model.stem} on {data.name}",
    )
    page.save(output)
    terminal.note(warning)
    terminal.echo(f"written to {output}")
