"""Training data, and what became of each column of the file they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.data_file import DataFile
from rankwise.cli.options import ModelName, TrainingTableOptions, split_names
from rankwise.cli.session import note
from rankwise.cli.training_notes import TrainingNotes

if TYPE_CHECKING:
    from rankwise.datasets import ColumnKind

SHOWN_NAMES = 8
ROLES = {"id": "names of the items", "weight": "weights of the items"}
NEED_SCORES = (ModelName.rankrls, ModelName.ranksvm, ModelName.ranklogistic, ModelName.auto)


@dataclass
class TrainingSet:
    """Training data, and what became of each column of the file.

    Attributes
    ----------
    path : Path
        The file.
    X : ndarray, sparse matrix or pyarrow.Table
        Features: numbers, or a table if there are gaps or categories among them.
    y, groups : ndarray
        Scores and labels of the groups, which may be None.
    roles : dict
        Names of the columns of scores, groups and names of the items, where there are some.
    kinds : list of ColumnKind
        What became of the other columns of a table.
    n_dropped : int
        Number of rows without score that were left out.
    weights : ndarray or None
        Weights of the items, if a column of them was named.
    columns : pyarrow.Table or None
        All columns of a table that have no other role, by which its rows are recognized later.
    zero_based : bool
        Whether the features of svmlight rows count from 0.
    """

    path: Path
    X: Any
    y: Any
    groups: Any
    roles: dict[str, str | None]
    kinds: list[ColumnKind] = field(default_factory=list)
    n_dropped: int = 0
    weights: Any = None
    columns: Any = None
    zero_based: bool = False

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a sparse matrix."""
        from scipy.sparse import issparse

        return bool(issparse(self.X))

    @property
    def is_table(self) -> bool:
        """Whether the features have yet to be made of the columns."""
        return hasattr(self.X, "column_names")

    def prepared_by(self, scaler: Any) -> Any:
        """What makes features of X: the scaler, or a ColumnTransformer with it; None if nothing."""
        from rankwise.datasets import column_transformer

        return column_transformer(self.kinds, scaler=scaler) if self.is_table else scaler

    def notes(self, command: str, chosen: dict[str, Any], fitted: Any) -> TrainingNotes:
        """What the model file should remember."""
        from rankwise.datasets.row_sketch import sketch_rows

        is_named = self.columns is not None
        features = self.columns.select(self._names) if is_named else self.X
        others = [kind.name for kind in self.kinds if kind.use == "left out" and kind.name]
        others += [name for name in [self.roles.get("weight")] if name]
        return TrainingNotes(
            command=command,
            data=self.path.name,
            n_rows=len(self.y),
            target=self.roles.get("target") or "",
            group=self.roles.get("group") or "",
            features=self._names,
            categories=[kind.name for kind in self.kinds if kind.use == "category"],
            other_columns=others,
            sparse=self.is_sparse,
            zero_based=self.zero_based,
            rows=sketch_rows(features, self.y, self.groups),
            columns=list(self.columns.column_names) if is_named else [],
            whole_rows=sketch_rows(self.columns, self.y, self.groups) if is_named else "",
            chosen=chosen,
        )

    @cached_property
    def _names(self) -> list[str]:
        return [kind.name for kind in self.kinds if kind.use != "left out"]

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
            "n_features": int(self.X.shape[1]),
            "features": self._names or None,
            "columns": [kind._asdict() for kind in self.kinds],
            "groups": found.n_groups,
            "pairs": found.n_pairs,
            "tied_pairs": found.n_tied_pairs,
            "groups_without_pairs": found.n_groups_without_pairs,
        }

    def lines(self) -> list[tuple[str, str]]:
        """The summary for people."""
        found = self.summary
        unscored, idle = found["items_without_score"], found["groups_without_pairs"]
        group = self.roles.get("group")
        by = f" by {group}" if group else ": no column of groups, so one list"
        weight = self.roles.get("weight")
        shown = _shortened(self._names)
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
        from rankwise.text_tables import Table

        plain = [kind.name for kind in self.kinds if kind.words == "number" and not kind.why]
        if len(plain) == len(self.kinds):
            return
        rows = [
            [name, ROLES.get(role, role), ""]
            for role, name in self.roles.items()
            if name is not None
        ]
        rows += [[_shortened(plain), "number", ""]] if plain else []
        rows += [
            [kind.name or "(no name)", kind.words, kind.why]
            for kind in self.kinds
            if kind.words != "number" or kind.why
        ]
        say("")
        print_table(Table(["column", "used as", "because"], rows, names=(0, 1, 2)))
        say("")


def read_training(
    path: Path, table: TrainingTableOptions, model: ModelName, weight: str | None = None
) -> TrainingSet:
    """Read a file to learn from; `weight` is the column of weights, if there is one."""
    file = DataFile(path, table, weight=weight)
    if file.is_letor:
        data = _read_rows(file, table, model)
    else:
        data = _read_columns(file, table, model)
    if 0 < data.summary["pairs"] == data.summary["tied_pairs"]:
        raise ValueError(
            f"{path}: there is nothing to learn: all items of a group have the same score in "
            f"column {data.roles['target']}; check the columns of scores and groups."
        )
    return data


def _read_columns(file: DataFile, table: TrainingTableOptions, model: ModelName) -> TrainingSet:
    """A table, with text and gaps."""
    import numpy as np

    from rankwise.datasets import find_identifiers

    path = file.path
    wanted, ignored = split_names(table.features), split_names(table.ignore)
    categorical, numeric = split_names(table.categorical), split_names(table.numeric)
    found: Any = file.read(
        as_frame=True,
        features=wanted or None,
        ignore=ignored,
        text=categorical,
        numeric=numeric,
    )
    identifiers = find_identifiers(found.X)  # a row counter is one before rows are left out
    kept = np.flatnonzero(~np.isnan(found.y))
    n_dropped = len(found.y) - len(kept) if model in NEED_SCORES else 0
    if n_dropped:
        if not len(kept):
            name = found.roles["target"]
            raise ValueError(f"{path}: no row has a score: column {name} is empty.")
        note(f"{n_dropped:,} rows of {path} have no score and are left out")
        found = found.take(kept)
    asked = {"categorical": categorical, "numeric": numeric, "wanted": wanted}
    kinds = _kinds(path, found.X, identifiers=identifiers, **asked)
    _check_gaps(path, table, kinds)
    return TrainingSet(
        path,
        _features(file, found.X, kinds),
        found.y,
        found.groups,
        found.roles,
        _with_others(file, kinds, found.roles),
        n_dropped,
        found.weight,
        found.X,
    )


def _kinds(path: Path, X: Any, **asked: Any) -> list[ColumnKind]:
    from rankwise.datasets import column_kinds

    try:
        return column_kinds(X, **asked)
    except ValueError as error:
        remedy = "--categorical and --numeric say what columns are, --ignore leaves them out."
        raise ValueError(f"{path}: {error} {remedy}") from None


def _read_rows(file: DataFile, table: TrainingTableOptions, model: ModelName) -> TrainingSet:
    """Svmlight rows, which are numbers without names."""
    import numpy as np

    names = ("features", "ignore", "categorical", "numeric")
    asked = [f"--{name}" for name in names if getattr(table, name)]
    if asked:
        raise ValueError(
            f"{file.path} has svmlight rows, whose columns have no names; leave out "
            f"{' and '.join(asked)}."
        )
    data: Any = file.read()
    n_unscored = int(np.isnan(data.y).sum())
    if n_unscored and model in NEED_SCORES:
        raise ValueError(
            f"{file.path}: {n_unscored} items have no score, and {model} needs one for each; leave "
            "these rows out, or use --model corankrls or pursuit, which learn from them, too."
        )
    roles = {"target": "label", "group": None if data.groups is None else "qid"}
    counts = table.zero_based
    return TrainingSet(file.path, data.X, data.y, data.groups, roles, zero_based=counts)


def _features(file: DataFile, X: Any, kinds: list[ColumnKind]) -> Any:
    """An array if all columns are numbers without gaps, else a table."""
    import numpy as np

    from rankwise.datasets.feature_columns import used_columns

    used = [kind for kind in kinds if kind.use != "left out"]
    table = used_columns(X, used)
    numbers = [kind.name for kind in used if kind.use == "number"]
    bad = [name for name in numbers if np.isinf(table[name].to_numpy()).any()]
    if bad:
        file.read(features=bad, target=None, group=None)  # says in which line
        raise ValueError(f"{file.path}: infinite numbers in {', '.join(bad)}.")
    if any(kind.words != "number" for kind in used):
        return table
    return np.column_stack([table[name].to_numpy() for name in numbers])


def _check_gaps(path: Path, table: TrainingTableOptions, kinds: list[ColumnKind]) -> None:
    gaps = [f"{k.name} ({k.n_gaps:,})" for k in kinds if k.use == "number" and k.n_gaps]
    if gaps and table.no_impute:
        raise ValueError(
            f"{path} has gaps in the columns {', '.join(gaps)}; fill them in, leave these columns "
            "out with --ignore, or leave out --no-impute."
        )


def _with_others(
    file: DataFile, kinds: list[ColumnKind], roles: dict[str, str | None]
) -> list[ColumnKind]:
    """All columns but those with a role: first those that could be features."""
    from rankwise.datasets import ColumnKind

    known = {*(kind.name for kind in kinds), *roles.values()}
    rest = [name for name in file.names if name not in known]
    return kinds + [
        ColumnKind(name, "left out", why="as asked for" if name else "it has no name")
        for name in rest
    ]


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
