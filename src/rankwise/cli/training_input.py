"""Training data: a file of items with scores, or comparisons and a file of items."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from rankwise.caching import cached_property
from rankwise.cli import terminal
from rankwise.cli.input_files import SHOWN_NAMES, DataFile, PairFile, TrainingNotes
from rankwise.cli.model_options import make_model, make_scaler, numbers_in, settings
from rankwise.cli.shared_options import FeatureOptions, ModelOptions, split_names
from rankwise.datasets.column_values import is_number
from rankwise.datasets.files import import_arrow
from rankwise.datasets.overlap import fingerprint_rows
from rankwise.formatting import TextTable, join_words
from rankwise.graphs import ScoreGraph
from rankwise.graphs.supervision import read_y
from rankwise.metrics import Metric
from rankwise.model_selection import CrossValidationResult, cross_validate_candidates
from rankwise.preprocessing.column_types import ColumnInfo, Reason
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.pipelines import fit_transform

ROLES = {"id": "names of the items", "weight": "weights of the items"}
FOLDS_OF_EDGES = 10
LEARN_UNSCORED = ("corankrls", "pursuit")
LARGEST_FEATURE = 1e100  # sums of squares of larger numbers overflow
MANY_LEVELS, VERY_SKEWED = 20, 3.0  # different scores, and their skewness


@dataclass
class TrainingSet:
    """Training data, and what became of each column of the file.

    Attributes
    ----------
    path : Path
        The file of scores or comparisons.
    file : DataFile
        The items.
    data : RankingData
        The rows that are learned from, with all columns that have no role: by these, rows are
        recognized later.
    X : pyarrow.Table, ndarray or sparse matrix
        The columns of a table that are learned from, or the features of svmlight rows.
    y : ndarray or PairGraph
        Scores, or comparisons of the items.
    scaler : transformer or None
        What scales the features.
    steps : list of (str, transformer)
        What comes before the ranker in a Pipeline; the columns are fitted, `prepared` fits others.
    facts : list of ColumnInfo
        What became of each column of a table that has no role.
    n_dropped : int
        Number of rows without score that were left out.
    nuisance : pyarrow.Table or None
        Columns whose effects are taken out, if some were named.
    cv : "auto" or list of (train, test)
        What a search holds out.
    """

    path: Path
    file: DataFile
    data: Any
    X: Any
    y: Any
    scaler: Any
    steps: list[tuple[str, Any]]
    facts: list[ColumnInfo] = field(default_factory=list)
    n_dropped: int = 0
    nuisance: Any = None
    cv: Any = "auto"

    def __post_init__(self) -> None:
        self.pairs = self.file if isinstance(self.file, PairFile) else None
        # the graph of comparisons has groups of its own
        self.groups = self.data.groups if self.pairs is None else None
        self.weights, self.time, self.roles = self.data.weight, self.data.time, self.data.roles
        used = (column.name for column in self.facts if column.kind != "left out")
        self.names = list(dict.fromkeys(used))

    @cached_property
    def prepared(self) -> Any:
        """The features as the ranker gets them."""
        X = self.X
        for name, step in self.steps:
            X = step.transform(X) if name == "columns" else fit_transform(step, X, self.groups)
        return X

    def fit(self, model: Any) -> Any:
        """The model, trained, in a Pipeline with what makes its features if there is something.

        The preparation is for the model alone to weigh: it sees all rows alike.
        """
        known = {"groups": self.groups, "sample_weight": self.weights}
        if self.time is not None:
            if "time" not in inspect.signature(model.fit).parameters:
                raise ValueError(
                    f"--time says on what parameters are judged, but {type(model).__name__} does "
                    "not choose any by it; leave out --time, or --alpha, --calibrate or --model "
                    "auto."
                )
            known["time"] = self.time
        if self.nuisance is not None:
            known["nuisance"] = self.nuisance
        model.fit(self.prepared, self.y, **known)
        return Pipeline([*self.steps, ("rank", model)]) if self.steps else model

    def notes(self, command: str, chosen: dict[str, Any]) -> TrainingNotes:
        """What the model file should remember."""
        table, whole, scores = self.file.table, self.data.X, (self.y, self.groups)
        rows: dict[str, Any] = {}
        if self.pairs is not None:
            rows["rows"] = fingerprint_rows(*self.pairs.rows())
        elif self.file.is_letor:
            rows["rows"] = fingerprint_rows(self.X, *scores)
        else:
            rows["rows"] = fingerprint_rows(whole.select(self.names), *scores)
            rows["whole_rows"] = fingerprint_rows(whole, *scores)
            rows["columns"] = list(whole.column_names)
        return TrainingNotes(
            command=command,
            data=self.path.name,
            n_rows=self.X.shape[0],
            target=self.roles.get("target") or "",
            group=self.roles.get("group") or "",
            sparse=bool(issparse(self.X)),
            zero_based=table.zero_based,
            missing=list(table.missing),
            levels=table.levels(),
            lower=table.lower_is_better,
            chosen=chosen,
            **rows,
        )

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Columns and counts."""
        if self.pairs is not None:
            about = self.y.describe()
        else:
            scored = self.data.take(np.flatnonzero(~np.isnan(self.y)))
            about = ScoreGraph(scored.y, scored.groups, sample_weight=scored.weight).describe()
        n_items = self.X.shape[0]
        return {
            "file": self.path,
            "items_file": None if self.pairs is None else self.pairs.path,
            "items": n_items,
            "items_without_score": n_items - about.n_items,
            "rows_left_out": self.n_dropped,
            "target": self.roles.get("target"),
            "group": self.roles.get("group"),
            "weight": self.roles.get("weight"),
            "nuisance": [] if self.nuisance is None else self.nuisance.column_names,
            "n_features": len(self.names) or int(self.X.shape[1]),
            "features": self.names or None,
            "columns": [
                {"name": c.name, "use": c.kind, "n_gaps": c.n_gaps, "why": c.why}
                for c in self.facts
            ],
            "groups": about.n_groups,
            "pairs": about.n_pairs,
            "tied_pairs": about.n_tied_pairs,
            "groups_without_pairs": about.n_groups_without_pairs,
        }

    def lines(self) -> list[tuple[str, str]]:
        """The summary for people."""
        counts = self.summary
        unscored, idle = counts["items_without_score"], counts["groups_without_pairs"]
        group = counts["group"]
        by = f" by {group}" if group else ": no column of groups, so one list"
        if self.pairs is not None and not group:
            by = " that no comparison connects" if counts["groups"] > 1 else ": all are connected"
        source = "" if self.pairs is None else f", {self.roles['id']} in {self.pairs.path}"
        names = join_words(self.names, SHOWN_NAMES)
        return [
            ("data", str(self.path)),
            (
                "items",
                f"{counts['items']:,}{source}" + (f", {unscored:,} without score" * bool(unscored)),
            ),
            ("scores", counts["target"] or ""),
            ("weights", counts["weight"] or ""),
            ("nuisance", ", ".join(counts["nuisance"])),
            ("features", f"{counts['n_features']:,}" + (f": {names}" if names else "")),
            ("groups", f"{counts['groups']:,}{by}" + (f", {idle:,} without pairs" * bool(idle))),
            (
                "pairs" if self.pairs is None else "comparisons",
                f"{counts['pairs']:,}, {counts['tied_pairs']:,} of them tied",
            ),
        ]

    def print_columns(self) -> None:
        """One table that says what became of every column, if something needs saying."""
        plain = [c.name for c in self.facts if c.words == "number" and not c.why]
        if len(plain) == len(self.facts):
            return
        rows = [[name, ROLES.get(role, role), ""] for role, name in self.roles.items() if name]
        rows += [[join_words(plain, SHOWN_NAMES), "number", ""]] if plain else []
        rows += [[c.name or "(no name)", c.words, c.why] for c in self.facts if c.name not in plain]
        terminal.echo("")
        terminal.print_table(TextTable(["column", "used as", "because"], rows, names=(0, 1, 2)))
        terminal.echo("")


def read_training(
    file: DataFile, features: FeatureOptions, options: ModelOptions, estimator: Any
) -> TrainingSet:
    """Read training data from an opened file."""
    path = file.data_path
    read = _training_rows if file.is_letor else _training_table
    training = read(path, file, features, options, estimator)
    ranker = getattr(estimator, "model_class", type(estimator))
    if training.nuisance is not None and not ranker.takes_nuisance:
        raise ValueError("--nuisance is for the models rankrls and ranklogistic.")
    if 0 < training.summary["pairs"] == training.summary["tied_pairs"]:
        why = "all comparisons are ties."
        if training.pairs is None:
            why = (
                f"all items of a group have the same score in column {training.roles['target']}; "
                "check the columns of scores and groups."
            )
        raise ValueError(f"{path}: there is nothing to learn: {why}")
    return training


def _training_table(
    path: Path, file: DataFile, usage: FeatureOptions, options: ModelOptions, estimator: Any
) -> TrainingSet:
    """A table, with text and gaps."""
    wanted, ignored, categorical, numeric, nuisance = (
        split_names(getattr(usage, name), file.names)
        for name in ("features", "ignore", "categorical", "numeric", "nuisance")
    )
    data: Any = file.read(
        features=[*wanted, *nuisance] if wanted else None,
        ignore=ignored,
        text=[*categorical, *(name for name in nuisance if name not in numeric)],
        numeric=numeric,
        time=usage.time,
    )
    pairs = file if isinstance(file, PairFile) else None
    n_rows = data.X.num_rows
    kept = np.arange(n_rows)
    if pairs is not None:
        kept = pairs.item_rows(data.ids)
    elif options.model not in LEARN_UNSCORED:
        kept = np.flatnonzero(~np.isnan(data.y))
    if not len(kept):
        target = data.roles["target"]
        raise ValueError(f"{file.path}: no row has a score: column {target} is empty.")
    effects = data.X.select(nuisance).take(kept) if nuisance else None
    data = data._replace(X=data.X.drop_columns(nuisance))
    columns = TableVectorizer(
        categorical=[name for name in categorical if name not in nuisance],
        numeric=[name for name in numeric if name not in nuisance],
        wanted=wanted,
        scale=isinstance(make_scaler(options, estimator, False), StandardScaler),
        order=file.table.orders() or None,
    )
    check_magnitudes(file.path, data.X, data.X.column_names)
    try:
        if len(kept) < n_rows or pairs is not None:
            data = data.take(kept)
        X = data.X
        facts = list(columns.decide_columns(X, row_numbers=kept).facts_)
        if len(kept) < n_rows or pairs is not None:  # the model is fitted without row numbers
            counters = [c.name for c in facts if c.reason is Reason.ROW_COUNTER]
            X = X.drop_columns(counters)
    except ValueError as error:
        remedy = "--categorical and --numeric say what columns are, --ignore leaves them out."
        raise ValueError(f"{file.path}: {error} {remedy}") from None
    gaps = [f"{c.name} ({c.n_gaps:,})" for c in facts if c.kind == "number" and c.n_gaps]
    if gaps and usage.no_impute:
        raise ValueError(
            f"{file.path} has gaps in the columns {', '.join(gaps)}; fill them in, leave these "
            "columns out with --ignore, or leave out --no-impute."
        )
    known = {*(column.name for column in facts), *data.roles.values(), *nuisance}
    known |= {*split_names([data.roles.get("group") or ""], file.names)}
    facts += [
        ColumnInfo(name, "left out", reason=Reason.IGNORED if name else Reason.UNNAMED)
        for name in file.names
        if name not in known
    ]
    n_dropped = n_rows - len(kept)
    if n_dropped:
        why = "have no score" if pairs is None else "are of items that were never compared"
        terminal.note(f"{n_dropped:,} rows of {file.path} {why} and are left out")
    scaler = make_scaler(options, estimator, issparse(columns.transform(X.slice(0, 1))))
    steps: list[tuple[str, Any]] = [("columns", columns)]
    if options.model == "auto" and not (wanted or categorical or numeric or file.table.order):
        # the model has a Columns of its own: trees want categories and gaps as they are
        steps, used = [], dict.fromkeys(c.name for c in facts if c.kind != "left out")
        X = X.select(list(used))
    if scaler is not None and not columns.scale:
        steps.append(("scale", scaler))
    y, cv = data.y, "auto"
    if pairs is None:
        terminal.note(skew_note(y, estimator))
    else:
        y, cv = _compared(pairs, data, options, estimator)
    return TrainingSet(
        path, file, data, X, y, scaler, steps, facts, n_dropped, nuisance=effects, cv=cv
    )


def _compared(pairs: PairFile, data: Any, options: ModelOptions, estimator: Any) -> tuple[Any, Any]:
    """The graph of comparisons, and what a search holds out."""
    if data.time is not None:
        raise ValueError("--time is for scored items; rankwise rank --time rates comparisons.")
    if "group" in options.feature_scaling:
        raise ValueError(
            f"--feature-scaling {options.feature_scaling}: items that are compared have no lists."
        )
    cv = pairs.judge_folds()
    if cv != "auto" and data.groups is not None:
        raise ValueError("--group and --judge both say what is held out; leave out one of them.")
    return pairs.graph(data.groups, estimator, is_one=cv != "auto"), cv


def _training_rows(
    path: Path, file: DataFile, usage: FeatureOptions, options: ModelOptions, estimator: Any
) -> TrainingSet:
    """Svmlight rows, which are numbers without names."""
    columns = [*usage.categorical, *usage.numeric, *usage.nuisance]
    features = usage.features or columns or None
    data: Any = file.read(features=features, ignore=usage.ignore, time=usage.time)
    n_unscored = int(np.isnan(data.y).sum())
    if n_unscored and options.model not in LEARN_UNSCORED:
        raise ValueError(
            f"{path}: {n_unscored} items have no score, and {options.model} needs one for each; "
            "leave these rows out, or use --model corankrls or pursuit, which learn from them, too."
        )
    check_magnitudes(path, data.X)
    data = data._replace(roles={"target": "label", "group": "" if data.groups is None else "qid"})
    scaler = make_scaler(options, estimator, bool(issparse(data.X)))
    steps = [("scale", scaler)] if scaler is not None else []
    return TrainingSet(path, file, data, data.X, data.y, scaler, steps)


def check_magnitudes(path: Path, X: Any, names: Sequence[str] | None = None) -> None:
    """Refuse features beyond `LARGEST_FEATURE`, whose squares overflow."""
    if names is None:
        values = X.data if issparse(X) else X
        largest = {"": float(np.abs(values).max(initial=0.0))}
    else:
        largest = {name: _largest_number(X.column(name)) for name in names}
    for name, number in largest.items():
        if number > LARGEST_FEATURE:
            where = f"column {name}" if name else "a feature"
            raise ValueError(
                f"{path}: {where} has a number of magnitude {number:.3g}; beyond "
                f"{LARGEST_FEATURE:g} squares overflow. Correct it, divide the column, or leave it "
                "out with --ignore."
            )


def _largest_number(column: Any) -> float:
    """Largest absolute value of a column of Arrow; 0 if it has no numbers."""
    if not is_number(column.type) or column.null_count == len(column):
        return 0.0
    ends = import_arrow("pyarrow.compute").min_max(column.cast("double", safe=False)).as_py()
    return float(max(abs(ends["min"]), abs(ends["max"])))


def skew_note(y: Any, estimator: Any) -> str:
    """What there is to say about scores of which a few are far larger than the others."""
    known = y[~np.isnan(y)]
    if getattr(estimator, "cost", "") != "magnitude" or len(np.unique(known)) <= MANY_LEVELS:
        return ""
    known = known / np.abs(known).max()  # or the cube of 1e200 is infinite
    skewness = float(np.mean((known - known.mean()) ** 3) / known.std() ** 3)
    if abs(skewness) < VERY_SKEWED:
        return ""
    return (
        f"the scores are very skewed (skewness {skewness:.1f}), so that few pairs outweigh the "
        "others; --set cost=sign counts every pair alike"
    )


def hold_out(
    options: ModelOptions, metrics: list[Metric], leave: str, training: TrainingSet
) -> tuple[CrossValidationResult, dict[str, Any]]:
    """Judge every candidate on held-out data: the curve through the best, and what it fixes.

    Parameters
    ----------
    options : ModelOptions
        The model; ``alpha="auto"`` takes the candidates of its search, and so does every other
        parameter that is searched and not given.
    metrics : list of Metric
        How to judge; the first one chooses.
    leave : str
        "auto", "group", "pair", or a number of folds.
    training : TrainingSet
        Prepared features, scores, groups and weights.
    """
    candidates: dict[str, Any] = {"alpha": None}  # None stands for those of the search
    if options.alpha != "auto":
        candidates["alpha"] = numbers_in("--alpha", options.alpha)
    if options.model == "pursuit":
        candidates = {"n_basis": None}
    if options.model == "corankrls" and "nu" not in settings(options):
        candidates["nu"] = None
    cv = _cv(options, leave, training)
    y, groups, weights = training.y, training.groups, training.weights
    if training.nuisance is not None:
        y, groups, weights = read_y(y, groups, weights, training.nuisance), None, None
    curves = cross_validate_candidates(
        *(make_model(options, search=False), training.prepared, y, groups),
        scoring=metrics,
        cv=cv,
        candidates=candidates,
        sample_weight=weights,
        time=training.time,
    )
    return curves.line(metrics[0])


def _cv(options: ModelOptions, leave: str, training: TrainingSet) -> Any:
    """What `cross_validate_candidates` calls it."""
    if leave == "auto":
        return training.cv
    if training.time is not None:
        raise ValueError(f"--time and --leave {leave} both say what is held out; give one.")
    if training.pairs is not None and leave in ("edge", "judge"):
        if leave == "judge" and training.cv == "auto":
            raise ValueError("--leave judge: name the column of judges with --judge.")
        training.y = training.pairs.graph(None, training.y, is_one=True)
        return training.cv if leave == "judge" else FOLDS_OF_EDGES
    if leave == "group":
        if training.summary["groups"] < 2:
            raise ValueError(
                "--leave group: the data are one list; name the column of groups with --group, "
                "or use --leave pair or a number of folds."
            )
        return None
    if leave == "pair":
        if options.model != "rankrls":
            raise ValueError(f"--leave pair is for the model rankrls, not for {options.model}.")
        return "leave-pair-out"
    if not leave.isdecimal() or int(leave) < 2:
        raise ValueError(
            f"--leave {leave}: expected auto, group, pair or a number of folds from 2; for "
            "comparisons also judge or edge."
        )
    return int(leave)
