"""``rankwise cv --table``: rows, columns, both or cells of a table held out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

from rankwise.cli.options import ModelOptions
from rankwise.cli.score_tables import ScoreTableOptions, make_table_model, read_table_data

LEAVE = ("rows", "columns", "both", "cells")


class _Leaving(NamedTuple):
    """A learner of tables that holds out something else than rows."""

    model: Any
    leave: str

    def hold_out_task(self, rows: Any, columns: Any, Y: Any) -> Any:
        return self.model.hold_out_task(rows, columns, Y, self.leave)


def cv_table(
    file: Path,
    cells: ScoreTableOptions,
    model: ModelOptions,
    leave: str,
    metric: list[str] | None,
    output: Path | None,
    per_group: Path | None,
    as_json: bool,
) -> None:
    """Print the metrics of every alpha on held-out rows, columns, both or cells."""
    from rankwise.cli.cv import print_summary, summarize, write_groups
    from rankwise.cli.held_out import HeldOut
    from rankwise.cli.output import print_json, write_csv
    from rankwise.estimators import ConditionalRankRLS
    from rankwise.metrics import get_metric
    from rankwise.model_selection import held_out_curves

    leave = "rows" if leave == "auto" else leave
    if leave not in LEAVE:
        raise ValueError(f"--leave {leave}: of a table, {', '.join(LEAVE)} can be held out.")
    names = [get_metric(name) for name in metric or ["disagreement", "tau"]]
    search = make_table_model(model, cells, names[0].name, leave)
    given, known = search.get_params(), ConditionalRankRLS().get_params()
    for name in ("row_gamma", "column_gamma"):
        if isinstance(given[name], list):
            raise ValueError(f"one {name.replace('_', ' ')} is needed here; `train` takes several.")
    data = read_table_data(file, cells, model)
    learner = ConditionalRankRLS(**{name: given[name] for name in set(given) & set(known)})
    start = time.perf_counter()
    curves = held_out_curves(
        _Leaving(learner, leave),
        data.rows,
        data.columns,
        data.table.Y,
        scoring=names,
        candidates={"alpha": search.alphas},
    )
    seconds = time.perf_counter() - start
    held = curves.predictions
    by_group = {name: values[:, :, 0] for name, values in curves.by_group.items()}
    labels = _labels(data.table, str(cells.ranked))
    found = HeldOut(curves, "alpha", curves.candidates.axes["alpha"], by_group, labels,
                    curves.describe(), None if held is None else held[:, 0], {})  # fmt: skip
    best = found.best(names[0])
    if output is not None and held is not None:
        scores = held[:, 0, best].reshape(data.table.Y.shape)
        lines = zip(data.table.rows.tolist(), list(scores), strict=True)
        write_csv(
            output, ["row", *data.table.columns.tolist()], ([n, *s.tolist()] for n, s in lines)
        )
    if per_group is not None:
        write_groups(per_group, found, best)
    scaled = "features scaled by all rows and columns" if data.sides["rows"].scale else ""
    summary = summarize(found, names, best, learner, scaled, seconds)
    if as_json:
        print_json({"data": dict(data.lines()), **summary})
    else:
        print_summary(summary, data.lines(), names)


def _labels(table: Any, ranked: str) -> Any:
    """Names of the groups that were judged."""
    import numpy as np

    parts = {"columns": [table.rows], "rows": [table.columns], "both": [table.rows, table.columns]}
    return np.concatenate(parts[ranked])
