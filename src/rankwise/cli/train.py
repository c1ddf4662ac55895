"""``rankwise train``: read training data, choose the parameters, write the model."""

from __future__ import annotations

import math
import shlex
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rankwise.cli.data import DataFile, TrainingNotes
from rankwise.cli.options import (
    AsJson,
    DataArgument,
    ModelName,
    ModelOptions,
    TrainingTableOptions,
    WeightColumn,
    flag,
    option,
    split_names,
)
from rankwise.cli.session import current, note

if TYPE_CHECKING:
    from rankwise.estimators.column_kinds import ColumnFacts

SHOWN_NAMES = 8
ROLES = {"id": "names of the items", "weight": "weights of the items"}
LEARN_UNSCORED = (ModelName.corankrls, ModelName.pursuit)
HINT = "--model auto combines several models: often better, slower, harder to explain"


ChoosingMetric = Annotated[
    str | None,
    option(
        "Metric that chooses the parameters, such as ndcg@10; disagreement if not given.",
        "NAME",
        "--metric",
        "-m",
        panel="Model",
    ),
]


Calibrate = Annotated[
    bool,
    flag(
        "--calibrate",
        help="Find standard errors and probabilities; rankwise predict --intervals shows them.",
        panel="Model",
    ),
]


def train(
    file: DataArgument,
    output: Annotated[
        Path, option("Where to write the model; - is standard output.", "FILE", "--output", "-o")
    ],
    model: ModelOptions,
    table: TrainingTableOptions,
    metric: ChoosingMetric = None,
    calibrate: Calibrate = False,
    weight: WeightColumn = None,
    as_json: AsJson = False,
) -> None:
    """Train a model on scored items, choose its parameters, and write it to a file.

    A table may have gaps, text, dates and identifiers: what becomes of each column is printed.

    For example:

      rankwise train queries.txt -o model.rw

      rankwise train houses.csv --target price --group district -o houses.rw

      rankwise train houses.csv --target price --categorical zip --ignore agent -o houses.rw

      rankwise train queries.txt --model auto -o auto.rw

      rankwise train clicks.csv --target clicked --weight inverse_propensity -o clicks.rw

      rankwise train queries.txt --kernel rbf --set n_basis=300 --metric ndcg@10 -o rbf.rw

      rankwise train queries.txt --calibrate -o sure.rw
    """
    from rankwise.cli.models import fit_model, make_model, too_good
    from rankwise.cli.output import check_output, print_json, print_pairs
    from rankwise.persistence import save

    check_output(output, file)
    estimator = make_model(model, metric)
    data = read_training(file, table, model, estimator, weight)
    ranker = estimator
    if calibrate:
        from rankwise.uncertainty import CalibratedRanker

        ranker = CalibratedRanker(estimator)
    start = time.perf_counter()
    fitted = fit_model(ranker, data)
    seconds = time.perf_counter() - start
    inner = ranker.estimator_ if calibrate else ranker
    chosen = describe(inner)
    if chosen.get("held_out_score") is not None:
        note(too_good(chosen["metric"], chosen["held_out_score"], len(data.y)))
    short = {name: v for name, v in chosen.items() if not isinstance(v, (list, dict))}
    notes = data.notes(shlex.join(["rankwise", *sys.argv[1:]]), short)
    save(fitted, output, notes=notes.as_notes())
    calibration = (
        {
            "units": ranker.units_,
            "n_units": ranker.n_units_,
            "n_pairs": ranker.n_pairs_,
            "log_loss": ranker.log_loss_,
            "trained_again": ranker.members_ is not None,
        }
        if calibrate
        else None
    )
    summary = {
        "data": data.summary,
        "model": type(inner).__name__.removesuffix("CV"),
        "kernel": getattr(estimator, "kernel", None),
        "chosen": chosen,
        "calibration": calibration,
        "scaler": type(data.scaler).__name__ if data.scaler is not None else None,
        "seconds": round(seconds, 3),
        "output": output,
        "hint": HINT if model.model is ModelName.rankrls else "",
    }
    if as_json:
        print_json(summary)
    elif not current.quiet:
        data.print_columns()
        print_pairs(_lines(summary, data))
        if hasattr(inner, "members_"):
            print_members(inner)


def describe(ranker: Any) -> dict[str, Any]:
    """Parameters that were chosen or given, and how good the chosen ones were; JSON has no nan."""
    from rankwise.text_tables import plain

    if hasattr(ranker, "members_"):
        found = {
            "metric": ranker.scoring_,
            "held_out_score": ranker.score_,
            "combine": ranker.combine_,
            "best_member": ranker.best_member_,
            "estimate": ranker.estimate_,
            "members": ranker.members_,
            "notes": ranker.notes_,
        }
    elif hasattr(ranker, "cv_results_"):
        found = {
            **ranker.best_params_,
            "metric": str(ranker.scoring),
            "held_out_score": ranker.best_score_,
            "held_out_by": ranker.cv_results_.get("cv", "folds"),
            "n_candidates": ranker.cv_results_["mean_score"].size,
        }
    else:
        found = {name: getattr(ranker, name) for name in ("alpha", "nu") if hasattr(ranker, name)}
    described: dict[str, Any] = plain(found)
    return described


def _lines(summary: dict[str, Any], data: TrainingSet) -> list[tuple[str, str]]:
    """The summary for people."""
    chosen, calibration = summary["chosen"], summary["calibration"]
    kernel = f", kernel {summary['kernel']}" if summary["kernel"] else ""
    lines = [*data.lines(), ("model", f"{summary['model']}{kernel}")]
    if kernel:
        lines.append(("scaling", summary["scaler"] or "none"))
    values = ", ".join(
        f"{name} {chosen[name]:.4g}"
        for name in ("alpha", "nu", "gamma", "n_basis")
        if chosen.get(name) is not None
    )
    if "members" in chosen:
        lines += member_lines(chosen)
    elif "held_out_score" in chosen:
        score = f"{chosen['metric']} {chosen['held_out_score'] + 0.0:.4f}"
        lines += [
            ("chosen", f"{values}, of {chosen['n_candidates']} candidates"),
            ("held-out score", f"{score} by {chosen['held_out_by']}"),
        ]
    else:
        lines.append(("given", values))
    if calibration is not None:
        units = f"{calibration['n_units']} {calibration['units']}"
        if calibration["trained_again"]:
            folds = f"{calibration['n_units']} folds of {calibration['units']}"
            units = f"{folds}, trained again for each"
        loss = f"log loss {calibration['log_loss']:.3f} (a coin 0.693)"
        lines += [
            ("errors", f"by leaving out {units}"),
            ("probabilities", f"from {calibration['n_pairs']:,} held-out pairs, {loss}"),
        ]
    return [
        *lines,
        ("training time", f"{summary['seconds']:.2f} s"),
        ("written to", str(summary["output"])),
        ("or else", summary["hint"]),
    ]


def member_lines(chosen: dict[str, Any]) -> list[tuple[str, str]]:
    """The combination in a few lines."""
    what = {"stack": "a stack of", "mean": "the mean of the best of", "best": "the best of"}
    judged = sum("score" in row for row in chosen["members"])
    return [
        ("chosen", f"{what[chosen['combine']]} {judged} members by {chosen['metric']}"),
        ("best member", chosen["best_member"]),
        *(("note", note) for note in chosen["notes"]),
    ]


def print_members(ranker: Any) -> None:
    """One row for each member."""
    from rankwise.cli.output import print_table, say, shown
    from rankwise.text_tables import Table

    def cells(row: dict[str, Any]) -> list[str]:
        if "score" not in row:
            return [row["name"], "", "", "", "", f"{row['seconds']:.1f}", row["note"]]
        interval = f"{shown(row['low'])} … {shown(row['high'])}"
        alpha = "" if math.isnan(row["alpha"]) else f"{row['alpha']:.3g}"
        numbers = [shown(row["score"]), interval, alpha, f"{row['weight']:+.3f}"]
        return [row["name"], *numbers, f"{row['seconds']:.1f}", row["note"]]

    say("")
    header = ["member", ranker.scoring_, "95% interval", "alpha", "weight", "seconds", ""]
    print_table(Table(header, [cells(row) for row in ranker.members_]))


@dataclass
class TrainingSet:
    """Training data, and what became of each column of the file.

    Attributes
    ----------
    path : Path
        The file.
    X : pyarrow.Table, ndarray or sparse matrix
        The columns of a table that are learned from, or the features of svmlight rows.
    y, groups : ndarray
        Scores and labels of the groups, which may be None.
    roles : dict
        Names of the columns of scores, groups and names of the items, where there are some.
    whole : pyarrow.Table or None
        All columns of a table that have no other role, by which its rows are recognized later.
    scaler : transformer or None
        What scales the features.
    steps : list of (str, transformer)
        What comes before the ranker in a Pipeline; the columns are fitted, `prepared` fits others.
    facts : list of ColumnFacts
        What became of each column of a table that has no role.
    n_dropped : int
        Number of rows without score that were left out.
    weights : ndarray or None
        Weights of the items, if a column of them was named.
    zero_based : bool
        Whether the features of svmlight rows count from 0.
    """

    path: Path
    X: Any
    y: Any
    groups: Any
    roles: dict[str, str | None]
    scaler: Any
    steps: list[tuple[str, Any]]
    facts: list[ColumnFacts] = field(default_factory=list)
    n_dropped: int = 0
    weights: Any = None
    whole: Any = None
    zero_based: bool = False

    @cached_property
    def prepared(self) -> Any:
        """The features as the ranker gets them."""
        from rankwise.estimators.anatomy import fit_transform

        X = self.X
        for name, step in self.steps:
            X = step.transform(X) if name == "columns" else fit_transform(step, X, self.groups)
        return X

    def notes(self, command: str, chosen: dict[str, Any]) -> TrainingNotes:
        """What the model file should remember."""
        from scipy.sparse import issparse

        from rankwise.datasets.row_sketch import sketch_rows

        is_table = self.whole is not None
        features = self.whole.select(self._names) if is_table else self.X
        return TrainingNotes(
            command=command,
            data=self.path.name,
            n_rows=len(self.y),
            target=self.roles.get("target") or "",
            group=self.roles.get("group") or "",
            sparse=bool(issparse(self.X)),
            zero_based=self.zero_based,
            rows=sketch_rows(features, self.y, self.groups),
            whole_rows=sketch_rows(self.whole, self.y, self.groups) if is_table else "",
            columns=list(self.whole.column_names) if is_table else [],
            chosen=chosen,
        )

    @property
    def _names(self) -> list[str]:
        return [column.name for column in self.facts if column.kind != "left out"]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Columns and counts."""
        import numpy as np

        from rankwise.graphs import ScoreGraph

        scored = np.flatnonzero(~np.isnan(self.y))
        groups = None if self.groups is None else np.asarray(self.groups)[scored]
        weights = None if self.weights is None else self.weights[scored]
        found = ScoreGraph(self.y[scored], groups, sample_weight=weights).describe()
        return {
            "file": self.path,
            "items": len(self.y),
            "items_without_score": len(self.y) - len(scored),
            "rows_left_out": self.n_dropped,
            "target": self.roles.get("target"),
            "group": self.roles.get("group"),
            "weight": self.roles.get("weight"),
            "n_features": len(self._names) or int(self.X.shape[1]),
            "features": self._names or None,
            "columns": [
                {"name": c.name, "use": c.kind, "n_gaps": c.n_gaps, "why": c.why}
                for c in self.facts
            ],
            "groups": found.n_groups,
            "pairs": found.n_pairs,
            "tied_pairs": found.n_tied_pairs,
            "groups_without_pairs": found.n_groups_without_pairs,
        }

    def lines(self) -> list[tuple[str, str]]:
        """The summary for people."""
        from rankwise.text_tables import listed

        found = self.summary
        unscored, idle = found["items_without_score"], found["groups_without_pairs"]
        group = self.roles.get("group")
        by = f" by {group}" if group else ": no column of groups, so one list"
        weight = self.roles.get("weight")
        shown = listed(self._names, SHOWN_NAMES)
        return [
            ("data", str(self.path)),
            ("items", f"{found['items']:,}" + (f", {unscored:,} without score" * bool(unscored))),
            ("scores", self.roles.get("target") or ""),
            *([("weights", weight)] if weight else []),
            ("features", f"{found['n_features']:,}" + (f": {shown}" if shown else "")),
            ("groups", f"{found['groups']:,}{by}" + (f", {idle:,} without pairs" * bool(idle))),
            ("pairs", f"{found['pairs']:,}, {found['tied_pairs']:,} of them tied"),
        ]

    def print_columns(self) -> None:
        """One table that says what became of every column, if something needs saying."""
        from rankwise.cli.output import print_table, say
        from rankwise.text_tables import Table, listed

        plain = [c.name for c in self.facts if c.words == "number" and not c.why]
        if len(plain) == len(self.facts):
            return
        rows = [[name, ROLES.get(role, role), ""] for role, name in self.roles.items() if name]
        rows += [[listed(plain, SHOWN_NAMES), "number", ""]] if plain else []
        rows += [[c.name or "(no name)", c.words, c.why] for c in self.facts if c.name not in plain]
        say("")
        print_table(Table(["column", "used as", "because"], rows, names=(0, 1, 2)))
        say("")


def read_training(
    path: Path,
    table: TrainingTableOptions,
    options: ModelOptions,
    estimator: Any,
    weight: str | None = None,
) -> TrainingSet:
    """Read a file to learn from; `weight` is the column of weights, if there is one."""
    file = DataFile(path, table, weight=weight)
    if file.is_letor:
        data = _training_rows(file, table, options, estimator)
    else:
        data = _training_table(file, table, options, estimator)
    if 0 < data.summary["pairs"] == data.summary["tied_pairs"]:
        raise ValueError(
            f"{path}: there is nothing to learn: all items of a group have the same score in "
            f"column {data.roles['target']}; check the columns of scores and groups."
        )
    return data


def _training_table(
    file: DataFile, table: TrainingTableOptions, options: ModelOptions, estimator: Any
) -> TrainingSet:
    """A table, with text and gaps."""
    import numpy as np
    from scipy.sparse import issparse
    from sklearn.preprocessing import StandardScaler

    from rankwise.cli.models import make_scaler
    from rankwise.estimators.column_kinds import ColumnFacts
    from rankwise.estimators.columns import Columns

    wanted, ignored = split_names(table.features), split_names(table.ignore)
    categorical, numeric = split_names(table.categorical), split_names(table.numeric)
    known_as = {"features": wanted or None, "ignore": ignored}
    found: Any = file.read_table(**known_as, text=categorical, numeric=numeric)
    roles = found.roles
    kept = np.arange(len(found.y))
    if options.model not in LEARN_UNSCORED:
        kept = np.flatnonzero(~np.isnan(found.y))
    n_dropped = len(found.y) - len(kept)
    if not len(kept):
        raise ValueError(f"{file.path}: no row has a score: column {roles['target']} is empty.")
    scaler = make_scaler(options, estimator, False)
    columns = Columns(
        categorical=categorical,
        numeric=numeric,
        wanted=wanted,
        scale=isinstance(scaler, StandardScaler),
    )
    try:
        X, facts = found.X, list(columns.fit(found.X).facts_)
        if n_dropped:  # a row counter is one before rows are left out
            counters = [column for column in facts if "counts the rows" in column.why]
            found = found.take(kept)
            X = found.X.drop_columns([column.name for column in counters])
            facts = [*columns.fit(X).facts_, *counters]
    except ValueError as error:
        remedy = "--categorical and --numeric say what columns are, --ignore leaves them out."
        raise ValueError(f"{file.path}: {error} {remedy}") from None
    scaler = make_scaler(options, estimator, issparse(columns.transform(X.slice(0, 1))))
    gaps = [f"{c.name} ({c.n_gaps:,})" for c in facts if c.kind == "number" and c.n_gaps]
    if gaps and table.no_impute:
        raise ValueError(
            f"{file.path} has gaps in the columns {', '.join(gaps)}; fill them in, leave these "
            "columns out with --ignore, or leave out --no-impute."
        )
    known = {*(column.name for column in facts), *roles.values()}
    facts += [
        ColumnFacts(name, "left out", why="as asked for" if name else "it has no name")
        for name in file.names
        if name not in known
    ]
    if n_dropped:
        note(f"{n_dropped:,} rows of {file.path} have no score and are left out")
    steps: list[tuple[str, Any]] = [("columns", columns)]
    if scaler is not None and not columns.scale:
        steps.append(("scale", scaler))
    about = (roles, scaler, steps, facts, n_dropped, found.weight, found.X)
    return TrainingSet(file.path, X, found.y, found.groups, *about)


def _training_rows(
    file: DataFile, table: TrainingTableOptions, options: ModelOptions, estimator: Any
) -> TrainingSet:
    """Svmlight rows, which are numbers without names."""
    import numpy as np
    from scipy.sparse import issparse

    from rankwise.cli.models import make_scaler

    names = ("features", "ignore", "categorical", "numeric")
    asked = [f"--{name}" for name in names if getattr(table, name)]
    if asked:
        raise ValueError(
            f"{file.path} has svmlight rows, whose columns have no names; leave out "
            f"{' and '.join(asked)}."
        )
    data: Any = file.read_rows()
    n_unscored = int(np.isnan(data.y).sum())
    if n_unscored and options.model not in LEARN_UNSCORED:
        raise ValueError(
            f"{file.path}: {n_unscored} items have no score, and {options.model} needs one for "
            "each; leave these rows out, or use --model corankrls or pursuit, which learn from "
            "them, too."
        )
    roles = {"target": "label", "group": None if data.groups is None else "qid"}
    scaler = make_scaler(options, estimator, bool(issparse(data.X)))
    steps = [("scale", scaler)] if scaler is not None else []
    about = (data.X, data.y, data.groups, roles, scaler, steps)
    return TrainingSet(file.path, *about, zero_based=table.zero_based)
