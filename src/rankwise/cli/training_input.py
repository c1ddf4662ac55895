"""Training data of `train` and `cv`: scored items, or comparisons of items."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from rankwise.caching import cached_property
from rankwise.cli import terminal
from rankwise.cli.input_files import SHOWN_NAMES, DataFile, PairFile
from rankwise.cli.model_options import make_model, make_scaler, numbers_in, settings
from rankwise.cli.shared_options import FeatureOptions, ModelOptions, split_names
from rankwise.cli.training_notes import TrainingNotes
from rankwise.datasets import RankingData
from rankwise.datasets.column_values import is_number
from rankwise.datasets.files import import_arrow
from rankwise.datasets.overlap import fingerprint_rows
from rankwise.formatting import TextTable, join_words
from rankwise.graphs import PairGraph, ScoreGraph
from rankwise.graphs.supervision import read_y
from rankwise.metrics import Metric
from rankwise.model_selection import CrossValidationResult, cross_validate_candidates
from rankwise.preprocessing.column_types import ColumnInfo, Reason
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.pipelines import fit_transform

ROLES = {"id": "names of the items", "weight": "weights of the items"}  # in the table of columns
N_EDGE_FOLDS = 10
SEMI_SUPERVISED_MODELS = ("corankrls", "pursuit")  # learn from items without a score
LARGEST_FEATURE = 1e100  # sums of squares of larger numbers overflow
MIN_SKEWED_LEVELS = 20  # distinct scores and skewness from which a note is printed
MIN_SKEWNESS = 3.0


@dataclass
class TrainingSet:
    """Training data, and the use of each column of the file.

    Attributes
    ----------
    file : DataFile
        The items, or the comparisons of items.
    data : RankingData
        The training rows with all columns without a role: they identify training rows later.
    X : pyarrow.Table, ndarray or sparse matrix
        The columns of a table that are used, or the features of svmlight rows.
    y : ndarray or PairGraph
        Scores, or comparisons of the items.
    steps : list of (str, transformer)
        The steps before the ranker in a Pipeline; a TableVectorizer is fitted, other steps are
        fitted by `prepared`.
    facts : list of ColumnInfo
        Use of each column of a table without a role.
    n_dropped : int
        Number of rows that are not used.
    nuisance : pyarrow.Table or None
        Columns whose effects are estimated and removed.
    folds : list of (train, test) or None
        What a search holds out; None: the default of the search.
    """

    file: DataFile
    data: RankingData
    X: Any
    y: Any
    steps: list[tuple[str, Any]]
    facts: list[ColumnInfo] = field(default_factory=list)
    n_dropped: int = 0
    nuisance: Any = None
    folds: list[tuple[Any, Any]] | None = None

    @property
    def path(self) -> Path:
        """The file of scores or of comparisons."""
        return self.file.data_path

    @property
    def pairs(self) -> PairFile | None:
        """The comparisons, or None for scored items."""
        if isinstance(self.file, PairFile):
            return self.file
        return None

    @property
    def groups(self) -> Any:
        """Groups of scored items, or None; a graph of comparisons contains its groups."""
        if self.pairs is not None:
            return None
        return self.data.groups

    @property
    def names(self) -> list[str]:
        """Names of the columns of a table that are used."""
        return _used_names(self.facts)

    @property
    def scaler_name(self) -> str | None:
        """Class of the scaler, or None."""
        for _, step in self.steps:
            if isinstance(step, StandardScaler | GroupScaler):
                return str(type(step).__name__)
            if isinstance(step, TableVectorizer) and step.scale:
                return "StandardScaler"
        return None

    @cached_property
    def prepared(self) -> Any:
        """The features as the ranker gets them."""
        X = self.X
        for _, step in self.steps:
            if isinstance(step, TableVectorizer):
                X = step.transform(X)
            else:
                X = fit_transform(step, X, self.groups)
        return X

    def fit(self, model: Any) -> Any:
        """Fit a ranker and return it, in a Pipeline with the steps before it if there are any.

        The steps before the ranker are not weighted.
        """
        arguments = {"groups": self.groups, "sample_weight": self.data.weight}
        if self.data.time is not None:
            if "time" not in inspect.signature(model.fit).parameters:
                raise ValueError(
                    f"--time holds out later groups to choose parameters, but "
                    f"{type(model).__name__} does not choose parameters; leave out --time, or "
                    "--alpha, --calibrate or --model auto."
                )
            arguments["time"] = self.data.time
        if self.nuisance is not None:
            arguments["nuisance"] = self.nuisance
        model.fit(self.prepared, self.y, **arguments)
        if not self.steps:
            return model
        return Pipeline([*self.steps, ("rank", model)])

    def notes(self, command: str, chosen: dict[str, Any]) -> TrainingNotes:
        """Facts about the training for the model file."""
        table = self.file.table
        roles = self.data.roles
        fingerprints = self._fingerprints()
        return TrainingNotes(
            command=command,
            data=self.path.name,
            n_rows=self.X.shape[0],
            target=roles.get("target") or "",
            group=roles.get("group") or "",
            sparse=bool(issparse(self.X)),
            zero_based=table.zero_based,
            missing=list(table.missing),
            levels=table.levels(),
            lower=table.lower_is_better,
            chosen=chosen,
            **fingerprints,
        )

    def _fingerprints(self) -> dict[str, Any]:
        """Fingerprints of the training rows, as fields of TrainingNotes."""
        if self.pairs is not None:
            return {"rows": fingerprint_rows(*self.pairs.rows())}
        if self.file.is_letor:
            return {"rows": fingerprint_rows(self.X, self.y, self.groups)}
        all_columns = self.data.X
        features = all_columns.select(self.names)
        return {
            "rows": fingerprint_rows(features, self.y, self.groups),
            "whole_rows": fingerprint_rows(all_columns, self.y, self.groups),
            "columns": list(all_columns.column_names),
        }

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Columns and counts."""
        roles = self.data.roles
        n_items = self.X.shape[0]
        if self.pairs is not None:
            counts = self.y.describe()
        else:
            rows = np.flatnonzero(~np.isnan(self.y))
            scored = self.data.take(rows)
            counts = ScoreGraph(self.y[rows], scored.groups, sample_weight=scored.weight).describe()
        return {
            "file": self.path,
            "items_file": None if self.pairs is None else self.pairs.path,
            "items": n_items,
            "items_without_score": n_items - counts.n_items,
            "rows_left_out": self.n_dropped,
            "target": roles.get("target"),
            "group": roles.get("group"),
            "weight": roles.get("weight"),
            "nuisance": [] if self.nuisance is None else self.nuisance.column_names,
            "n_features": len(self.names) or int(self.X.shape[1]),
            "features": self.names or None,
            "columns": [
                {
                    "name": column.name,
                    "use": column.kind,
                    "n_missing": column.n_missing,
                    "why": column.why,
                }
                for column in self.facts
            ],
            "groups": counts.n_groups,
            "pairs": counts.n_pairs,
            "tied_pairs": counts.n_tied_pairs,
            "groups_without_pairs": counts.n_groups_without_pairs,
        }

    def lines(self) -> list[tuple[str, str]]:
        """The summary as names and values."""
        summary = self.summary
        pairs_name = "pairs" if self.pairs is None else "comparisons"
        return [
            ("data", str(self.path)),
            ("items", self._items_text()),
            ("scores", summary["target"] or ""),
            ("weights", summary["weight"] or ""),
            ("nuisance", ", ".join(summary["nuisance"])),
            ("features", _features_text(summary["n_features"], self.names)),
            ("groups", self._groups_text()),
            (pairs_name, f"{summary['pairs']:,}, {summary['tied_pairs']:,} of them tied"),
        ]

    def _items_text(self) -> str:
        text = f"{self.summary['items']:,}"
        if self.pairs is not None:
            text += f", {self.data.roles['id']} in {self.pairs.path}"
        n_unscored = self.summary["items_without_score"]
        if n_unscored:
            text += f", {n_unscored:,} without score"
        return text

    def _groups_text(self) -> str:
        n_groups = self.summary["groups"]
        text = f"{n_groups:,}"
        if self.summary["group"]:
            text += f" by {self.summary['group']}"
        elif self.pairs is None:
            text += ": no column of groups, so one list"
        elif n_groups > 1:
            text += " that no comparison connects"
        else:
            text += ": all are connected"
        n_without_pairs = self.summary["groups_without_pairs"]
        if n_without_pairs:
            text += f", {n_without_pairs:,} without pairs"
        return text

    def print_columns(self) -> None:
        """Print the use of each column, unless all columns are plain numbers."""
        plain = [
            column.name for column in self.facts if column.words == "number" and not column.why
        ]
        if len(plain) == len(self.facts):
            return
        rows = []
        for role, name in self.data.roles.items():
            if name:
                rows.append([name, ROLES.get(role, role), ""])
        if plain:
            rows.append([join_words(plain, SHOWN_NAMES), "number", ""])
        for column in self.facts:
            if column.name not in plain:
                rows.append([column.name or "(no name)", column.words, column.why])
        terminal.echo("")
        terminal.print_table(TextTable(["column", "used as", "because"], rows, names=(0, 1, 2)))
        terminal.echo("")


def _used_names(facts: Iterable[ColumnInfo]) -> list[str]:
    """Names of the columns that are not left out, each once."""
    return list(dict.fromkeys(column.name for column in facts if column.kind != "left out"))


def _features_text(n_features: int, names: Sequence[str]) -> str:
    if not names:
        return f"{n_features:,}"
    return f"{n_features:,}: {join_words(names, SHOWN_NAMES)}"


def read_training(
    file: DataFile, usage: FeatureOptions, options: ModelOptions, estimator: Any
) -> TrainingSet:
    """Read training data from an opened file.

    Parameters
    ----------
    file : DataFile
        The file.
    usage : FeatureOptions
        Use of its columns.
    options : ModelOptions
        The model.
    estimator : estimator
        The unfitted ranker.
    """
    read = _read_letor if file.is_letor else _read_table
    training = read(file, usage, options, estimator)
    ranker = getattr(estimator, "model_class", type(estimator))
    if training.nuisance is not None and not ranker.takes_nuisance:
        raise ValueError("--nuisance is for the models rankrls and ranklogistic.")
    if 0 < training.summary["pairs"] == training.summary["tied_pairs"]:
        reason = "all comparisons are ties."
        if training.pairs is None:
            reason = (
                "all items of a group have the same score in column "
                f"{training.data.roles['target']}; check the columns of scores and groups."
            )
        raise ValueError(f"{training.path}: there is nothing to learn: {reason}")
    return training


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns that options give a use."""

    features: list[str]
    ignore: list[str]
    categorical: list[str]
    numeric: list[str]
    nuisance: list[str]


def _read_table(
    file: DataFile, usage: FeatureOptions, options: ModelOptions, estimator: Any
) -> TrainingSet:
    """Read a table, with text and missing values."""
    names = ColumnNames(
        features=split_names(usage.features, file.names),
        ignore=split_names(usage.ignore, file.names),
        categorical=split_names(usage.categorical, file.names),
        numeric=split_names(usage.numeric, file.names),
        nuisance=split_names(usage.nuisance, file.names),
    )
    text_nuisance = [name for name in names.nuisance if name not in names.numeric]
    all_rows = file.read(
        features=[*names.features, *names.nuisance] if names.features else None,
        ignore=names.ignore,
        text=[*names.categorical, *text_nuisance],
        numeric=names.numeric,
        time=usage.time,
    )
    rows = _rows_to_learn_from(file, all_rows, options)
    n_dropped = all_rows.X.num_rows - len(rows)
    data = all_rows
    if n_dropped or isinstance(file, PairFile):
        data = all_rows.take(rows)
    nuisance = data.X.select(names.nuisance) if names.nuisance else None
    data = data._replace(X=data.X.drop_columns(names.nuisance))
    check_magnitudes(file.path, data.X, data.X.column_names)
    scales_in_vectorizer = isinstance(make_scaler(options, estimator, False), StandardScaler)
    vectorizer = _fit_vectorizer(file, data.X, rows, names, scales_in_vectorizer)
    if usage.no_impute:
        _refuse_missing_numbers(file, vectorizer.facts_)
    facts = [*vectorizer.facts_, *_columns_without_use(file, data, vectorizer.facts_, names)]
    if n_dropped:
        reason = "have no score"
        if isinstance(file, PairFile):
            reason = "are of items that were never compared"
        terminal.note(f"{n_dropped:,} rows of {file.path} {reason} and are left out")
    has_column_options = names.features or names.categorical or names.numeric or file.table.order
    if options.model == "auto" and not has_column_options:
        # AutoRanker encodes the columns itself: trees take categories and missing values
        X = data.X.select(_used_names(facts))
        steps = []
    else:
        X = data.X
        steps = _preparation_steps(vectorizer, X, options, estimator)
    y: Any = data.y
    folds = None
    if isinstance(file, PairFile):
        y, folds = _comparisons(file, data, options, estimator)
    else:
        terminal.note(skew_note(y, estimator))
    return TrainingSet(file, data, X, y, steps, facts, n_dropped, nuisance, folds)


def _rows_to_learn_from(
    file: DataFile, data: RankingData, options: ModelOptions
) -> NDArray[np.intp]:
    """Rows of the compared items, or rows with a score if the model needs one."""
    rows: NDArray[np.intp] = np.arange(data.X.num_rows)
    if isinstance(file, PairFile):
        assert data.ids is not None
        rows = file.item_rows(data.ids)
    elif options.model not in SEMI_SUPERVISED_MODELS:
        assert data.y is not None
        rows = np.flatnonzero(~np.isnan(data.y))
    if not len(rows):
        raise ValueError(
            f"{file.path}: no row has a score: column {data.roles['target']} is empty."
        )
    return rows


def _fit_vectorizer(
    file: DataFile, X: Any, rows: NDArray[np.intp], names: ColumnNames, scale: bool
) -> TableVectorizer:
    """Fit the encoder of the columns; `rows` are the row numbers in the file."""
    vectorizer = TableVectorizer(
        categorical=[name for name in names.categorical if name not in names.nuisance],
        numeric=[name for name in names.numeric if name not in names.nuisance],
        wanted=names.features,
        scale=scale,
        order=file.table.orders() or None,
    )
    try:
        return vectorizer.decide_columns(X, row_numbers=rows)
    except ValueError as error:
        raise ValueError(
            f"{file.path}: {error} Set the use of columns with --categorical and --numeric, or "
            "leave them out with --ignore."
        ) from None


def _refuse_missing_numbers(file: DataFile, facts: Sequence[ColumnInfo]) -> None:
    columns = [
        f"{column.name} ({column.n_missing:,})"
        for column in facts
        if column.kind == "number" and column.n_missing
    ]
    if columns:
        raise ValueError(
            f"{file.path} has missing values in the columns {', '.join(columns)}; fill them in, "
            "leave these columns out with --ignore, or leave out --no-impute."
        )


def _columns_without_use(
    file: DataFile, data: RankingData, facts: Sequence[ColumnInfo], names: ColumnNames
) -> list[ColumnInfo]:
    """Columns of the file that options leave out, or that have no name."""
    groups = split_names([data.roles.get("group") or ""], file.names)
    used = {column.name for column in facts}
    used.update(data.roles.values(), names.nuisance, groups)
    columns = []
    for name in file.names:
        if name not in used:
            reason = Reason.IGNORED if name else Reason.UNNAMED
            columns.append(ColumnInfo(name, "left out", reason=reason))
    return columns


def _preparation_steps(
    vectorizer: TableVectorizer, X: Any, options: ModelOptions, estimator: Any
) -> list[tuple[str, Any]]:
    """The steps before the ranker; sparse features are not centered."""
    is_sparse = issparse(vectorizer.transform(X.slice(0, 1)))
    scaler = make_scaler(options, estimator, is_sparse)
    steps: list[tuple[str, Any]] = [("columns", vectorizer)]
    if scaler is not None and not vectorizer.scale:
        steps.append(("scale", scaler))
    return steps


def _comparisons(
    pairs: PairFile, data: RankingData, options: ModelOptions, estimator: Any
) -> tuple[PairGraph, list[tuple[Any, Any]] | None]:
    """The graph of comparisons, and the folds of a search: those of judges, or None."""
    if data.time is not None:
        raise ValueError("--time is for scored items; rankwise rank --time rates comparisons.")
    if "group" in options.feature_scaling:
        raise ValueError(
            f"--feature-scaling {options.feature_scaling}: compared items have no groups."
        )
    folds = pairs.judge_folds()
    if folds is None:
        return pairs.graph(data.groups, estimator), None
    if data.groups is not None:
        raise ValueError("--group and --judge both set what is held out; leave out one of them.")
    return pairs.graph(pairs.one_list(), estimator), folds


def _read_letor(
    file: DataFile, usage: FeatureOptions, options: ModelOptions, estimator: Any
) -> TrainingSet:
    """Read svmlight rows, which are numbers without names."""
    columns = [*usage.categorical, *usage.numeric, *usage.nuisance]
    features = usage.features or columns or None
    data = file.read(features=features, ignore=usage.ignore, time=usage.time)
    assert data.y is not None
    n_unscored = int(np.isnan(data.y).sum())
    if n_unscored and options.model not in SEMI_SUPERVISED_MODELS:
        raise ValueError(
            f"{file.path}: {n_unscored} items have no score, and {options.model} needs one for "
            "each; leave these rows out, or use --model corankrls or pursuit, which learn from "
            "items without a score."
        )
    check_magnitudes(file.path, data.X)
    group = "" if data.groups is None else "qid"
    data = data._replace(roles={"target": "label", "group": group})
    scaler = make_scaler(options, estimator, bool(issparse(data.X)))
    steps = [] if scaler is None else [("scale", scaler)]
    return TrainingSet(file, data, data.X, data.y, steps)


def check_magnitudes(path: Path, X: Any, names: Sequence[str] | None = None) -> None:
    """Refuse features beyond `LARGEST_FEATURE`, whose squares overflow."""
    if names is None:
        values = X.data if issparse(X) else X
        largest = {"a feature": float(np.abs(values).max(initial=0.0))}
    else:
        largest = {f"column {name}": _largest_number(X.column(name)) for name in names}
    for column, number in largest.items():
        if number > LARGEST_FEATURE:
            raise ValueError(
                f"{path}: {column} has a number of magnitude {number:.3g}; beyond "
                f"{LARGEST_FEATURE:g} squares overflow. Correct it, divide the column, or leave it "
                "out with --ignore."
            )


def _largest_number(column: Any) -> float:
    """Largest absolute value of a column of Arrow; 0 if it has no numbers."""
    if not is_number(column.type) or column.null_count == len(column):
        return 0.0
    ends = import_arrow("pyarrow.compute").min_max(column.cast("double", safe=False)).as_py()
    return float(max(abs(ends["min"]), abs(ends["max"])))


def skew_note(y: NDArray[np.float64], estimator: Any) -> str:
    """Warn about scores of which a few are far larger than the rest; else an empty text."""
    scores = y[~np.isnan(y)]
    if getattr(estimator, "cost", "") != "magnitude" or len(np.unique(scores)) <= MIN_SKEWED_LEVELS:
        return ""
    scores = scores / np.abs(scores).max()  # the cube of 1e200 is infinite
    skewness = float(np.mean((scores - scores.mean()) ** 3) / scores.std() ** 3)
    if abs(skewness) < MIN_SKEWNESS:
        return ""
    return (
        f"the scores are very skewed (skewness {skewness:.1f}), so that few pairs dominate the "
        "loss; --set cost=sign gives all pairs the same weight"
    )


def hold_out(
    options: ModelOptions, metrics: list[Metric], leave: str, training: TrainingSet
) -> tuple[CrossValidationResult, dict[str, Any]]:
    """Evaluate every candidate on held-out data.

    Parameters
    ----------
    options : ModelOptions
        The model; parameters that its search chooses, and that no option sets, take the candidates
        of the search.
    metrics : list of Metric
        Metrics; the first one selects.
    leave : str
        Value of --leave.
    training : TrainingSet
        The training data.

    Returns
    -------
    results : CrossValidationResult
        Held-out results of the candidates of the first parameter, at the best values of the others.
    fixed : dict
        The best values of the other parameters.
    """
    y = training.y
    groups = training.groups
    weight = training.data.weight
    if leave in ("edge", "judge") and training.pairs is not None:
        y = training.pairs.graph(training.pairs.one_list(), y)
    if training.nuisance is not None:
        y = read_y(y, groups, weight, training.nuisance)
        groups = None
        weight = None
    results = cross_validate_candidates(
        make_model(options, search=False),
        training.prepared,
        y,
        groups,
        scoring=metrics,
        cv=_cv_of(options, leave, training),
        candidates=_candidates(options),
        sample_weight=weight,
        time=training.data.time,
    )
    return results.line(metrics[0])


def _candidates(options: ModelOptions) -> dict[str, Any]:
    """Candidates of each parameter; None stands for those of the search of the model."""
    if options.model == "pursuit":
        return {"n_basis": None}
    candidates: dict[str, Any] = {"alpha": None}
    if options.alpha != "auto":
        candidates["alpha"] = numbers_in("--alpha", options.alpha)
    if options.model == "corankrls" and "nu" not in settings(options):
        candidates["nu"] = None
    return candidates


def _cv_of(options: ModelOptions, leave: str, training: TrainingSet) -> Any:
    """The argument `cv` of `cross_validate_candidates` for a value of --leave."""
    if leave == "auto":
        return training.folds or "auto"
    if training.data.time is not None:
        raise ValueError(f"--time and --leave {leave} both set what is held out; pass one.")
    if leave == "edge" and training.pairs is not None:
        return N_EDGE_FOLDS
    if leave == "judge" and training.pairs is not None:
        if training.folds is None:
            raise ValueError("--leave judge: name the column of judges with --judge.")
        return training.folds
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
