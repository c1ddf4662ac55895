"""Training data: a file of items with scores, or comparisons and a file of items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.data import DataFile, TrainingNotes
from rankwise.cli.options import ModelName, ModelOptions, TrainingTableOptions, split_names
from rankwise.cli.pairs import (
    ItemOptions,
    PairFile,
    judge_folds,
    open_data,
    pair_graph,
    rows_of_pairs,
)
from rankwise.cli.session import note

if TYPE_CHECKING:
    from rankwise.estimators.column_kinds import ColumnFacts

SHOWN_NAMES = 8
ROLES = {"id": "names of the items", "weight": "weights of the items"}
LEARN_UNSCORED = (ModelName.corankrls, ModelName.pursuit)
MANY_LEVELS, VERY_SKEWED = 20, 3.0  # different scores, and their skewness


@dataclass
class TrainingSet:
    """Training data, and what became of each column of the file.

    Attributes
    ----------
    path : Path
        The file.
    table : TrainingTableOptions
        What the user says about it.
    X : pyarrow.Table, ndarray or sparse matrix
        The columns of a table that are learned from, or the features of svmlight rows.
    y : ndarray or PairGraph
        Scores, or comparisons of the items.
    groups : ndarray or None
        Labels of the groups; the graph of comparisons has its own.
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
    nuisance : pyarrow.Table or None
        Columns whose effects are taken out, if some were named.
    zero_based : bool
        Whether the features of svmlight rows count from 0.
    pairs : PairFile or None
        Where the comparisons are from.
    cv : "auto" or list of (train, test)
        What a search holds out.
    time : ndarray or None
        When each item was, if later ones are to be held out.
    """

    path: Path
    table: TrainingTableOptions
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
    nuisance: Any = None
    zero_based: bool = False
    pairs: PairFile | None = None
    cv: Any = "auto"
    time: Any = None

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

        known = TrainingNotes(
            command=command,
            data=self.path.name,
            n_rows=self.X.shape[0],
            target=self.roles.get("target") or "",
            group=self.roles.get("group") or "",
            sparse=bool(issparse(self.X)),
            zero_based=self.zero_based,
            missing=self.table.missing or [],
            levels=self.table.levels(),
            lower=self.table.lower_is_better,
            chosen=chosen,
        )
        if self.pairs is not None:
            return replace(known, rows=sketch_rows(*rows_of_pairs(self.pairs.compared)))
        if self.whole is None:
            return replace(known, rows=sketch_rows(self.X, self.y, self.groups))
        return replace(
            known,
            rows=sketch_rows(self.whole.select(self._names), self.y, self.groups),
            whole_rows=sketch_rows(self.whole, self.y, self.groups),
            columns=list(self.whole.column_names),
        )

    @property
    def _names(self) -> list[str]:
        used = (column.name for column in self.facts if column.kind != "left out")
        return list(dict.fromkeys(used))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Columns and counts."""
        found, n_items = self._graph().describe(), self.X.shape[0]
        return {
            "file": self.path,
            "items_file": None if self.pairs is None else self.pairs.path,
            "items": n_items,
            "items_without_score": n_items - found.n_items,
            "rows_left_out": self.n_dropped,
            "target": self.roles.get("target"),
            "group": self.roles.get("group"),
            "weight": self.roles.get("weight"),
            "nuisance": [] if self.nuisance is None else self.nuisance.column_names,
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

    def _graph(self) -> Any:
        """The preferences between the items that have a score."""
        import numpy as np

        from rankwise.graphs import ScoreGraph

        if self.pairs is not None:
            return self.y
        scored = np.flatnonzero(~np.isnan(self.y))
        groups = None if self.groups is None else np.asarray(self.groups)[scored]
        weights = None if self.weights is None else self.weights[scored]
        return ScoreGraph(self.y[scored], groups, sample_weight=weights)

    def lines(self) -> list[tuple[str, str]]:
        """The summary for people."""
        from rankwise.text_tables import listed

        found = self.summary
        unscored, idle = found["items_without_score"], found["groups_without_pairs"]
        group = self.roles.get("group")
        by = f" by {group}" if group else ": no column of groups, so one list"
        if self.pairs is not None and not group:
            by = " that no comparison connects" if found["groups"] > 1 else ": all are connected"
        source = "" if self.pairs is None else f", {self.roles['id']} in {self.pairs.path}"
        weight = self.roles.get("weight")
        shown = listed(self._names, SHOWN_NAMES)
        return [
            ("data", str(self.path)),
            (
                "items",
                f"{found['items']:,}{source}" + (f", {unscored:,} without score" * bool(unscored)),
            ),
            ("scores", self.roles.get("target") or ""),
            *([("weights", weight)] if weight else []),
            *([("nuisance", ", ".join(self.nuisance.column_names))] if self.nuisance else []),
            ("features", f"{found['n_features']:,}" + (f": {shown}" if shown else "")),
            ("groups", f"{found['groups']:,}{by}" + (f", {idle:,} without pairs" * bool(idle))),
            (
                "pairs" if self.pairs is None else "comparisons",
                f"{found['pairs']:,}, {found['tied_pairs']:,} of them tied",
            ),
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
    pairs: ItemOptions,
    options: ModelOptions,
    estimator: Any,
    weight: str | None = None,
) -> TrainingSet:
    """Read a file to learn from; `weight` is the column of weights, if there is one."""
    file = open_data(path, table, pairs, weight=weight)
    if file.is_letor:
        data = _training_rows(file, table, options, estimator)
    else:
        data = _training_table(file, table, options, estimator)
    data.path = path
    ranker = getattr(estimator, "model_class", type(estimator))
    if data.nuisance is not None and not ranker.takes_nuisance:
        raise ValueError("--nuisance is for the models rankrls and ranklogistic.")
    if 0 < data.summary["pairs"] == data.summary["tied_pairs"]:
        raise ValueError(
            f"{path}: there is nothing to learn: "
            + (
                f"all items of a group have the same score in column {data.roles['target']}; check "
                "the columns of scores and groups."
                if data.pairs is None
                else "all comparisons are ties."
            )
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

    wanted, ignored, categorical, numeric = (
        split_names(texts, file.names)
        for texts in (table.features, table.ignore, table.categorical, table.numeric)
    )
    nuisance = split_names(table.nuisance, file.names)
    found: Any = file.read_table(
        features=[*wanted, *nuisance] if wanted else None,
        ignore=ignored,
        text=[*categorical, *(name for name in nuisance if name not in numeric)],
        numeric=numeric,
        time=table.time,
    )
    effects = found.X.select(nuisance) if nuisance else None
    found = found._replace(X=found.X.drop_columns(nuisance))
    roles, pairs = found.roles, file if isinstance(file, PairFile) else None
    kept = np.arange(found.X.num_rows)
    if pairs is not None:
        kept = pairs.item_rows(found.ids)
    elif options.model not in LEARN_UNSCORED:
        kept = np.flatnonzero(~np.isnan(found.y))
    n_dropped = found.X.num_rows - len(kept)
    if not len(kept):
        raise ValueError(f"{file.path}: no row has a score: column {roles['target']} is empty.")
    scaler = make_scaler(options, estimator, False)
    columns = Columns(
        categorical=[name for name in categorical if name not in nuisance],
        numeric=[name for name in numeric if name not in nuisance],
        wanted=wanted,
        scale=isinstance(scaler, StandardScaler),
        order=table.orders() or None,
    )
    try:
        X, facts = found.X, list(columns.fit(found.X).facts_)
        if n_dropped or pairs is not None:  # a row counter is one before rows are left out
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
    known = {*(column.name for column in facts), *roles.values(), *nuisance}
    known |= {*split_names([roles.get("group") or ""], file.names)}
    facts += [
        ColumnFacts(name, "left out", why="as asked for" if name else "it has no name")
        for name in file.names
        if name not in known
    ]
    if n_dropped:
        why = "have no score" if pairs is None else "are of items that were never compared"
        note(f"{n_dropped:,} rows of {file.path} {why} and are left out")
    steps: list[tuple[str, Any]] = [("columns", columns)]
    if options.model is ModelName.auto and not (wanted or categorical or numeric or table.order):
        # the model has a Columns of its own: trees want categories and gaps as they are
        steps, used = [], dict.fromkeys(c.name for c in facts if c.kind != "left out")
        X = X.select(list(used))
    if scaler is not None and not columns.scale:
        steps.append(("scale", scaler))
    effects = None if effects is None else effects.take(kept)
    about = (roles, scaler, steps, facts, n_dropped, found.weight, found.X, effects)
    if pairs is None:
        note(skew_note(found.y, estimator))
        return TrainingSet(*(file.path, table, X, found.y, found.groups, *about), time=found.time)
    if found.time is not None:
        raise ValueError("--time is for scored items; rankwise rank --time rates comparisons.")
    if "group" in options.scale:
        raise ValueError(f"--scale {options.scale}: items that are compared have no lists.")
    cv = judge_folds(pairs.compared.judges)
    if cv != "auto" and found.groups is not None:
        raise ValueError("--group and --judge both say what is held out; leave out one of them.")
    graph = pair_graph(pairs.compared, found.groups, estimator, is_one=cv != "auto")
    return TrainingSet(file.path, table, X, graph, None, *about, pairs=pairs, cv=cv)


def _training_rows(
    file: DataFile, table: TrainingTableOptions, options: ModelOptions, estimator: Any
) -> TrainingSet:
    """Svmlight rows, which are numbers without names."""
    import numpy as np
    from scipy.sparse import issparse

    from rankwise.cli.models import make_scaler

    names = ("features", "ignore", "categorical", "numeric", "nuisance", "time")
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
    return TrainingSet(file.path, table, *about, zero_based=table.zero_based)


def skew_note(y: Any, estimator: Any) -> str:
    """What there is to say about scores of which a few are far larger than the others."""
    import numpy as np
    from scipy.stats import skew

    known = y[~np.isnan(y)]
    if getattr(estimator, "cost", "") != "magnitude" or len(np.unique(known)) <= MANY_LEVELS:
        return ""
    skewness = float(skew(known))
    if abs(skewness) < VERY_SKEWED:
        return ""
    return (
        f"the scores are very skewed (skewness {skewness:.1f}), so that few pairs outweigh the "
        "others; --set cost=sign counts every pair alike"
    )
