"""Training data of `train` and `cv`: scored items, or comparisons of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

from rankwise.arrays import Array, CrossValidation, Indices, Matrix
from rankwise.cli import terminal
from rankwise.cli.input_files import DataFile, refuse_types_without_use
from rankwise.cli.model_options import estimator_parameters, make_model, make_scaler, numbers_in
from rankwise.cli.pair_file import PairFile
from rankwise.cli.shared_options import FeatureOptions, ModelOptions, split_names
from rankwise.cli.training_set import Steps, TrainingSet, used_names
from rankwise.datasets import RankingData
from rankwise.datasets.column_values import is_number
from rankwise.datasets.files import import_arrow
from rankwise.formatting import join_words
from rankwise.graphs import PairGraph, SurvivalGraph
from rankwise.graphs.supervision import Preferences, Relevance, read_y
from rankwise.metrics import Metric
from rankwise.model_selection import CrossValidationResult, cross_validate_candidates
from rankwise.preprocessing.column_types import ColumnInfo, Reason
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.validation import suggestion

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
    ranker_class = getattr(estimator, "model_class", type(estimator))  # that a search trains
    if training.nuisance is not None and not ranker_class.takes_nuisance:
        raise ValueError("--nuisance is for the models rankrls and ranklogistic.")
    _refuse_ties_only(training)
    return training


def _refuse_ties_only(training: TrainingSet) -> None:
    """Raise an error if all pairs are tied: there is nothing to learn."""
    n_pairs = training.summary.pairs
    is_scored = isinstance(training.y, np.ndarray) and training.data.weight is None
    if n_pairs == 0 and is_scored:
        raise ValueError(
            f"{training.path}: there is nothing to learn: no group has two items with a score. "
            "Name another column of groups with --group, or rank all items as one list with "
            "--group none."
        )
    if n_pairs == 0 or training.summary.tied_pairs < n_pairs:
        return
    reason = "all comparisons are ties."
    if training.pairs is None:
        reason = (
            "all items of a group have the same score in column "
            f"{training.data.roles['target']}; check the columns of scores and groups."
        )
    raise ValueError(f"{training.path}: there is nothing to learn: {reason}")


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
    rows = _read_training_rows(file, names, usage.time, options)
    vectorizer = _fit_vectorizer(file, rows, names, options, estimator)
    if usage.no_impute:
        _refuse_missing_numbers(file, vectorizer.facts_)
    _note_dropped_rows(file, rows.n_dropped)

    data = rows.data
    unused_columns = _columns_without_use(file, data, vectorizer.facts_, names)
    facts = [*vectorizer.facts_, *unused_columns]
    if _model_encodes_columns(file, names, options):
        X = data.frame.select(used_names(facts))
        steps: Steps = []
    else:
        X = data.frame  # the vectorizer drops unused columns
        steps = _preparation_steps(vectorizer, X, options, estimator)

    folds = None
    y: Array | SurvivalGraph | PairGraph
    if isinstance(file, PairFile):
        _refuse_options_of_scored_items(data, options)
        folds = file.judge_folds()
        y = _comparison_graph(file, data, estimator, has_judges=folds is not None)
    else:
        y = _scores_or_survival_graph(data, estimator)
    return TrainingSet(
        file,
        data,
        X,
        y,
        steps,
        facts,
        n_dropped=rows.n_dropped,
        nuisance=rows.nuisance,
        folds=folds,
    )


class _TrainingRows(NamedTuple):
    """The rows of a table that a model learns from.

    Attributes
    ----------
    data : RankingData
        The rows; X has all columns without a role.
    row_numbers : ndarray of int
        Numbers of the rows in the file.
    nuisance : pyarrow.Table or None
        Columns whose effects are estimated and removed.
    n_dropped : int
        Number of the other rows of the file.
    """

    data: RankingData
    row_numbers: Indices
    nuisance: pa.Table | None
    n_dropped: int


def _read_training_rows(
    file: DataFile, names: ColumnNames, time: str | None, options: ModelOptions
) -> _TrainingRows:
    """Read the columns of a table in the rows to learn from."""
    features = None  # all columns
    if names.features:
        features = [*names.features, *names.nuisance]
    nuisance_categories = [name for name in names.nuisance if name not in names.numeric]
    data = file.read(
        features=features,
        ignore=names.ignore,
        text=[*names.categorical, *nuisance_categories],
        numeric=names.numeric,
        time=time,
    )
    n_rows_in_file = data.frame.num_rows
    row_numbers = _rows_to_learn_from(file, data, options)
    n_dropped = n_rows_in_file - len(row_numbers)
    if n_dropped or isinstance(file, PairFile):  # compared items are in the order of their graph
        data = data.take(row_numbers)
    nuisance = None
    if names.nuisance:
        nuisance = data.frame.select(names.nuisance)
    data = data._replace(X=data.frame.drop_columns(names.nuisance))
    refuse_types_without_use(file, data.frame)
    check_magnitudes(file.path, data.X, data.frame.column_names)
    return _TrainingRows(data, row_numbers, nuisance, n_dropped)


def _model_encodes_columns(file: DataFile, names: ColumnNames, options: ModelOptions) -> bool:
    """Whether the model gets the table as it is: trees take categories and missing values."""
    if options.model != "auto":
        return False
    sets_use_of_columns = names.features or names.categorical or names.numeric or file.table.order
    return not sets_use_of_columns


def _scores_or_survival_graph(data: RankingData, estimator: BaseEstimator) -> Array | SurvivalGraph:
    """The target of scored items; a note reports very skewed scores."""
    assert data.y is not None  # a file without scores was refused
    if data.event is not None:
        return SurvivalGraph(data.y, data.event, data.groups, data.weight)
    terminal.note(skew_note(data.y, estimator))
    return data.y


def _split_column_names(file: DataFile, usage: FeatureOptions) -> ColumnNames:
    """Split the options that name several columns."""
    names = ColumnNames(
        features=split_names(usage.features, file.names),
        ignore=split_names(usage.ignore, file.names),
        categorical=split_names(usage.categorical, file.names),
        numeric=split_names(usage.numeric, file.names),
        nuisance=split_names(usage.nuisance, file.names),
    )
    for option, columns in {
        "--features": names.features,
        "--ignore": names.ignore,
        "--categorical": names.categorical,
        "--numeric": names.numeric,
        "--nuisance": names.nuisance,
        "--order": list(file.table.column_orders()),
    }.items():
        for name in columns:
            if name not in file.names:
                raise ValueError(
                    f"{option}: {file.path} has no column {name!r}{suggestion(name, file.names)} "
                    f"The columns are {join_words(map(repr, file.names), 30)}."
                )
    return names


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
    rows: Indices = np.arange(data.frame.num_rows)  # all, for semi-supervised models
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
    file: DataFile,
    rows: _TrainingRows,
    names: ColumnNames,
    options: ModelOptions,
    estimator: BaseEstimator,
) -> TableVectorizer:
    """Fit the encoder of the columns."""
    scaler_of_dense_features = make_scaler(options, estimator, is_sparse=False)
    vectorizer = TableVectorizer(
        categorical=[name for name in names.categorical if name not in names.nuisance],
        numeric=[name for name in names.numeric if name not in names.nuisance],
        keep=names.features,
        scale=isinstance(scaler_of_dense_features, StandardScaler),  # others are later steps
        order=file.table.column_orders() or None,
    )
    try:
        return vectorizer.fit_without_warning(rows.data.X, row_numbers=rows.row_numbers)
    except ValueError as error:
        advice = ""
        if "learned from" in str(error):
            advice = (
                " Set the use of columns with --categorical and --numeric, or leave them out with "
                "--ignore."
            )
        raise ValueError(f"{file.path}: {error}{advice}") from None


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
    group_columns = split_names([data.roles.get("group") or ""], file.names)
    columns_with_use = {column.name for column in facts}
    columns_with_use.update(data.roles.values(), names.nuisance, group_columns)
    unused_columns = []
    for name in file.names:
        if name not in columns_with_use:
            reason = Reason.IGNORED if name else Reason.UNNAMED
            unused_columns.append(ColumnInfo(name, "dropped", reason=reason))
    return unused_columns


def _preparation_steps(
    vectorizer: TableVectorizer, X: pa.Table, options: ModelOptions, estimator: BaseEstimator
) -> Steps:
    """The steps before the ranker; sparse features are not centered."""
    features_of_one_row = vectorizer.transform(X.slice(0, 1))  # sparse if those of all rows are
    scaler = make_scaler(options, estimator, is_sparse=bool(issparse(features_of_one_row)))
    steps: Steps = [("columns", vectorizer)]
    if scaler is not None and not vectorizer.scale:
        steps.append(("scale", scaler))
    return steps


def _refuse_options_of_scored_items(data: RankingData, options: ModelOptions) -> None:
    """Refuse times and scaling by group for compared items."""
    if data.time is not None:
        raise ValueError("--time is for scored items; rankwise rank --time rates comparisons.")
    if "group" in options.feature_scaling:
        raise ValueError(
            f"--feature-scaling {options.feature_scaling}: compared items have no groups."
        )


def _comparison_graph(
    pairs: PairFile, data: RankingData, estimator: BaseEstimator, has_judges: bool
) -> PairGraph:
    """The graph of comparisons; with judges, who are held out, all items are one group."""
    if not has_judges:
        return pairs.graph(data.groups, estimator)
    if data.groups is not None:
        raise ValueError("--group and --judge both set what is held out; leave out one of them.")
    # Judges are held out, so that connected components of items are not needed as groups.
    return pairs.graph(pairs.one_group_of_items(), estimator)


def _read_letor(
    file: DataFile, usage: FeatureOptions, options: ModelOptions, estimator: BaseEstimator
) -> TrainingSet:
    """Read svmlight rows, which are numbers without names."""
    # svmlight rows have no columns: the reader refuses options that name some.
    named_columns = [*usage.features, *usage.categorical, *usage.numeric, *usage.nuisance]
    data = file.read(features=named_columns or None, ignore=usage.ignore, time=usage.time)
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
    scaler = make_scaler(options, estimator, is_sparse=bool(issparse(data.X)))
    steps = [] if scaler is None else [("scale", scaler)]
    return TrainingSet(file, data, data.X, y, steps)


def check_magnitudes(path: Path, X: Matrix, names: Sequence[str] | None = None) -> None:
    """Refuse features beyond `LARGEST_FEATURE`, whose squares overflow."""
    if names is None:
        values = X.data if issparse(X) else X
        largest_numbers = {"a feature": float(np.abs(values).max(initial=0.0))}
    else:
        largest_numbers = {f"column {name}": _largest_number(X.column(name)) for name in names}
    for subject, number in largest_numbers.items():
        if np.isinf(number):
            raise ValueError(
                f"{path}: {subject} has an infinite value. Correct it, leave the cell empty if the "
                "value is unknown, or leave the column out with --ignore."
            )
        if number > LARGEST_FEATURE:
            raise ValueError(
                f"{path}: {subject} has a number of magnitude {number:.3g}; beyond "
                f"{LARGEST_FEATURE:g} squares overflow. Correct it, divide the column, or leave it "
                "out with --ignore."
            )


def _largest_number(column: pa.ChunkedArray) -> float:
    """Largest absolute value of a column of Arrow; 0 if it has no numbers."""
    if not is_number(column.type) or column.null_count == len(column):
        return 0.0
    compute = import_arrow("pyarrow.compute")
    smallest_and_largest = compute.min_max(column.cast("double", safe=False)).as_py()
    return float(max(abs(smallest_and_largest["min"]), abs(smallest_and_largest["max"])))


def skew_note(y: Array, estimator: BaseEstimator) -> str:
    """Warn about very skewed scores; return an empty text for other scores."""
    scores = y[~np.isnan(y)]
    uses_magnitudes = getattr(estimator, "cost", "") == "magnitude"
    if not uses_magnitudes or len(np.unique(scores)) <= MIN_SKEWED_LEVELS:
        return ""
    # The skewness does not depend on the unit of the scores, but the cube of 1e200 is infinite.
    scaled_scores = scores / np.abs(scores).max()
    third_central_moment = np.mean((scaled_scores - scaled_scores.mean()) ** 3)
    skewness = float(third_central_moment / scaled_scores.std() ** 3)
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
        # One group of all items, so that edges or judges are held out, and not groups.
        y = training.pairs.graph(training.pairs.one_group_of_items(), y)
    if training.nuisance is not None:
        y = read_y(y, groups, weight, training.nuisance)  # contains groups and weights
        groups = None
        weight = None
    results = cross_validate_candidates(
        make_model(options, search=False),  # `candidates` replaces its search
        training.prepared,
        y,
        groups,
        scoring=metrics,
        cv=_cross_validation(options, leave, training),
        candidates=_candidates(options),
        sample_weight=weight,
        time=training.data.time,
    )
    # The candidates along the first parameter, and the best values of the others
    return results.line(metrics[0])


def _candidates(options: ModelOptions) -> dict[str, list[float] | None]:
    """Candidates of each parameter; None stands for those of the search of the model."""
    # None: the candidates of the search of the model
    if options.model == "pursuit":
        return {"n_basis": None}
    candidates: dict[str, list[float] | None] = {"alpha": None}
    if options.alpha != "auto":
        candidates["alpha"] = numbers_in("--alpha", options.alpha)
    if options.model == "corankrls" and "nu" not in estimator_parameters(options):
        candidates["nu"] = None
    return candidates


def _cross_validation(options: ModelOptions, leave: str, training: TrainingSet) -> CrossValidation:
    """The argument `cv` of `cross_validate_candidates` for a value of --leave."""
    if leave == "auto":
        return training.folds or "auto"  # folds of judges, if the comparisons have judges
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
        return None  # leave-group-out
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
