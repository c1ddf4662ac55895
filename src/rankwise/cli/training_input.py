"""Training data of `train` and `cv`: scored items, or comparisons of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

from rankwise.arrays import Array, CrossValidation, Indices, Matrix
from rankwise.cli import terminal
from rankwise.cli.input_files import DataFile, PairFile
from rankwise.cli.model_options import make_model, make_scaler, numbers_in, settings
from rankwise.cli.shared_options import FeatureOptions, ModelOptions, split_names
from rankwise.cli.training_set import Folds, Steps, TrainingSet, used_names
from rankwise.datasets import RankingData
from rankwise.datasets.column_values import is_number
from rankwise.datasets.files import import_arrow
from rankwise.graphs import PairGraph, SurvivalGraph
from rankwise.graphs.supervision import Preferences, Relevance, read_y
from rankwise.metrics import Metric
from rankwise.model_selection import CrossValidationResult, cross_validate_candidates
from rankwise.preprocessing.column_types import ColumnInfo, Reason
from rankwise.preprocessing.table_vectorizer import TableVectorizer

if TYPE_CHECKING:
    import pyarrow as pa

N_EDGE_FOLDS = 10
SEMI_SUPERVISED_MODELS = ("corankrls", "pursuit")  # learn from items without a score
LARGEST_FEATURE = 1e100  # sums of squares of larger numbers overflow
MIN_SKEWED_LEVELS = 20  # distinct scores and skewness from which a note is printed
MIN_SKEWNESS = 3.0


def read_training(
    file: DataFile, usage: FeatureOptions, options: ModelOptions, estimator: BaseEstimator
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
    if file.is_letor:
        training = _read_letor(file, usage, options, estimator)
    else:
        training = _read_table(file, usage, options, estimator)
    ranker = getattr(estimator, "model_class", type(estimator))  # the class that a search trains
    if training.nuisance is not None and not ranker.takes_nuisance:
        raise ValueError("--nuisance is for the models rankrls and ranklogistic.")
    if 0 < training.summary.pairs == training.summary.tied_pairs:
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
    file: DataFile, usage: FeatureOptions, options: ModelOptions, estimator: BaseEstimator
) -> TrainingSet:
    """Read a table, with text and missing values."""
    names = _split_column_names(file, usage)
    text_nuisance = [name for name in names.nuisance if name not in names.numeric]
    all_rows = file.read(
        features=[*names.features, *names.nuisance] if names.features else None,
        ignore=names.ignore,
        text=[*names.categorical, *text_nuisance],
        numeric=names.numeric,
        time=usage.time,
    )
    rows = _rows_to_learn_from(file, all_rows, options)
    n_dropped = all_rows.frame.num_rows - len(rows)
    data = all_rows
    if n_dropped or isinstance(file, PairFile):
        data = all_rows.take(rows)
    nuisance = data.frame.select(names.nuisance) if names.nuisance else None
    data = data._replace(X=data.frame.drop_columns(names.nuisance))
    check_magnitudes(file.path, data.X, data.frame.column_names)
    scales_in_vectorizer = isinstance(make_scaler(options, estimator, False), StandardScaler)
    vectorizer = _fit_vectorizer(file, data.X, rows, names, scales_in_vectorizer)
    if usage.no_impute:
        _refuse_missing_numbers(file, vectorizer.facts_)
    facts = [*vectorizer.facts_, *_columns_without_use(file, data, vectorizer.facts_, names)]
    _note_dropped_rows(file, n_dropped)
    X = data.frame
    has_column_options = names.features or names.categorical or names.numeric or file.table.order
    if options.model == "auto" and not has_column_options:
        # AutoRanker encodes the columns itself: trees take categories and missing values
        X = X.select(used_names(facts))
        steps: Steps = []
    else:
        steps = _preparation_steps(vectorizer, X, options, estimator)
    y, folds = _target_and_folds(file, data, options, estimator)
    return TrainingSet(
        file, data, X, y, steps, facts, n_dropped=n_dropped, nuisance=nuisance, folds=folds
    )


def _target_and_folds(
    file: DataFile, data: RankingData, options: ModelOptions, estimator: BaseEstimator
) -> tuple[Array | SurvivalGraph | PairGraph, Folds | None]:
    """What is learned: comparisons with what a search holds out, survival times, or scores."""
    if isinstance(file, PairFile):
        return _comparisons(file, data, options, estimator)
    assert data.y is not None  # a file without scores was refused
    if data.event is not None:
        return SurvivalGraph(data.y, data.event, data.groups, data.weight), None
    terminal.note(skew_note(data.y, estimator))
    return data.y, None


def _split_column_names(file: DataFile, usage: FeatureOptions) -> ColumnNames:
    """Split the options that name several columns."""
    return ColumnNames(
        features=split_names(usage.features, file.names),
        ignore=split_names(usage.ignore, file.names),
        categorical=split_names(usage.categorical, file.names),
        numeric=split_names(usage.numeric, file.names),
        nuisance=split_names(usage.nuisance, file.names),
    )


def _note_dropped_rows(file: DataFile, n_dropped: int) -> None:
    """Report the number of rows that are not used."""
    if not n_dropped:
        return
    if isinstance(file, PairFile):
        reason = "are of items that were never compared"
    else:
        reason = "have no score"
    terminal.note(f"{n_dropped:,} rows of {file.path} {reason} and are dropped")


def _rows_to_learn_from(file: DataFile, data: RankingData, options: ModelOptions) -> Indices:
    """Rows of the compared items, or rows with a score if the model needs one."""
    rows: Indices = np.arange(data.frame.num_rows)
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
    file: DataFile, X: pa.Table, rows: Indices, names: ColumnNames, scale: bool
) -> TableVectorizer:
    """Fit the encoder of the columns; `rows` are the row numbers in the file."""
    vectorizer = TableVectorizer(
        categorical=[name for name in names.categorical if name not in names.nuisance],
        numeric=[name for name in names.numeric if name not in names.nuisance],
        keep=names.features,
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
            columns.append(ColumnInfo(name, "dropped", reason=reason))
    return columns


def _preparation_steps(
    vectorizer: TableVectorizer, X: pa.Table, options: ModelOptions, estimator: BaseEstimator
) -> Steps:
    """The steps before the ranker; sparse features are not centered."""
    is_sparse = issparse(vectorizer.transform(X.slice(0, 1)))
    scaler = make_scaler(options, estimator, is_sparse)
    steps: Steps = [("columns", vectorizer)]
    if scaler is not None and not vectorizer.scale:
        steps.append(("scale", scaler))
    return steps


def _comparisons(
    pairs: PairFile, data: RankingData, options: ModelOptions, estimator: BaseEstimator
) -> tuple[PairGraph, Folds | None]:
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
    file: DataFile, usage: FeatureOptions, options: ModelOptions, estimator: BaseEstimator
) -> TrainingSet:
    """Read svmlight rows, which are numbers without names."""
    columns = [*usage.categorical, *usage.numeric, *usage.nuisance]
    features = usage.features or columns or None
    data = file.read(features=features, ignore=usage.ignore, time=usage.time)
    y = data.y
    assert y is not None  # svmlight rows have labels
    n_unscored = int(np.isnan(y).sum())
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
    return TrainingSet(file, data, data.X, y, steps)


def check_magnitudes(path: Path, X: Matrix, names: Sequence[str] | None = None) -> None:
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


def _largest_number(column: pa.ChunkedArray) -> float:
    """Largest absolute value of a column of Arrow; 0 if it has no numbers."""
    if not is_number(column.type) or column.null_count == len(column):
        return 0.0
    limits = import_arrow("pyarrow.compute").min_max(column.cast("double", safe=False)).as_py()
    return float(max(abs(limits["min"]), abs(limits["max"])))


def skew_note(y: Array, estimator: BaseEstimator) -> str:
    """Warn about very skewed scores; return an empty text for other scores."""
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
) -> tuple[CrossValidationResult, dict[str, float]]:
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
    y: Array | SurvivalGraph | PairGraph | Relevance | Preferences = training.y
    groups = training.groups
    weight = training.sample_weight
    if leave in ("edge", "judge") and training.pairs is not None and isinstance(y, PairGraph):
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


def _candidates(options: ModelOptions) -> dict[str, list[float] | None]:
    """Candidates of each parameter; None stands for those of the search of the model."""
    if options.model == "pursuit":
        return {"n_basis": None}
    candidates: dict[str, list[float] | None] = {"alpha": None}
    if options.alpha != "auto":
        candidates["alpha"] = numbers_in("--alpha", options.alpha)
    if options.model == "corankrls" and "nu" not in settings(options):
        candidates["nu"] = None
    return candidates


def _cv_of(options: ModelOptions, leave: str, training: TrainingSet) -> CrossValidation:
    """The argument `cv` of `cross_validate_candidates` for a value of --leave."""
    if leave == "auto":
        return training.folds or "auto"
    if training.data.time is not None:
        raise ValueError(f"--time and --leave {leave} both set what is held out; pass one.")
    if training.pairs is not None and leave == "edge":
        return N_EDGE_FOLDS
    if training.pairs is not None and leave == "judge":
        if training.folds is None:
            raise ValueError("--leave judge: name the column of judges with --judge.")
        return training.folds
    if leave == "group":
        if training.summary.groups < 2:
            raise ValueError(
                "--leave group: the data are one list; name the column of groups with --group, "
                "or use --leave pair or a number of folds."
            )
        return None
    if leave == "pair":
        if options.model != "rankrls":
            raise ValueError(f"--leave pair is for the model rankrls, not for {options.model}.")
        return "leave-pair-out"
    return _number_of_folds(leave)


def _number_of_folds(leave: str) -> int:
    """Read a number of folds."""
    if leave.isdecimal() and int(leave) >= 2:
        return int(leave)
    raise ValueError(
        f"--leave {leave}: expected auto, group, pair or a number of folds from 2; for "
        "comparisons also judge or edge."
    )
