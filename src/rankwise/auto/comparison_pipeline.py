"""Training of AutoRanker on comparisons: evaluate the members, stack them, train, explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.auto.comparison_checks import cell_names, comparison_notes
from rankwise.auto.comparison_folds import hold_out_comparisons
from rankwise.auto.comparison_members import (
    ComparisonMember,
    EvaluatedEntry,
    SkippedEntry,
    evaluate_entry,
    requested_comparison_members,
)
from rankwise.auto.comparison_model import ComparisonModel
from rankwise.auto.comparison_problem import (
    ComparisonProblem,
    EvaluatedPairMember,
    LinearFeatures,
)
from rankwise.auto.comparison_reader import NamedItems, ReadComparisons
from rankwise.auto.comparison_results import (
    ResultRow,
    estimate_error,
    explain,
    explanation,
    find_examples,
    held_out_table,
    member_row,
)
from rankwise.auto.comparison_stacks import ComparisonStacks, out_of_bag_losses
from rankwise.auto.comparison_summary import print_entry
from rankwise.auto.comparison_training import TrainedStacks, train_stacks
from rankwise.auto.item_cells import ItemCells
from rankwise.auto.item_comparisons import canonical_item_order
from rankwise.auto.member_table import progress_of_members
from rankwise.auto.time_budget import TimeBudget
from rankwise.groups import encode_groups
from rankwise.preprocessing.table_vectorizer import TableVectorizer

EVALUATION_SHARE = 0.5  # of a time limit, for the evaluation of the members
N_FIELD = 50  # known items that are the opponents in `win_share`


@dataclass(frozen=True, eq=False)
class ItemTable:
    """Items as members receive them.

    Attributes
    ----------
    views : dict
        Columns by name; see `TrainingData`.
    n_codes : int
        Number of columns of codes at the end of the view "cells".
    items : NamedItems
        Names of the items.
    vectorizer : TableVectorizer or None
        Vectorizer of a table; None for other items.
    """

    views: dict[str, Any]
    n_codes: int
    items: NamedItems
    vectorizer: TableVectorizer | None

    @property
    def cells(self) -> ItemCells | None:
        """Unscaled columns; None for sparse items."""
        if "cells" not in self.views:  # sparse items
            return None
        return ItemCells.of_view(self.views["cells"], self.n_codes)


@dataclass(frozen=True, eq=False)
class FittedComparisons:
    """Result of `fit_comparisons`.

    Attributes
    ----------
    rankers : list of estimator
        Rankers of items whose sum is the order.
    views : list of str
        The columns that they receive.
    model : ComparisonModel
        Probabilities of comparisons.
    members : list of dict
        A row for each member.
    held_out : list of dict
        Errors for each kind of held-out comparison.
    explained : dict
        What the order and pairs explain.
    estimate : dict
        Share of wrong comparisons, with an interval.
    examples : list of dict
        Comparisons where the predictions by the order and by pairs differ most.
    notes : list of str
        Remarks.
    """

    rankers: list[Any]
    views: list[str]
    model: ComparisonModel
    members: list[ResultRow]
    held_out: list[ResultRow]
    explained: dict[str, float]
    estimate: dict[str, float]
    examples: list[ResultRow]
    notes: list[str]


@dataclass(frozen=True, eq=False)
class ComparisonSettings:
    """Parameters of AutoRanker that matter for comparisons.

    Attributes
    ----------
    members : "default" or list of str
        Names of members.
    n_resamples : int
        Number of resamples of items for the estimate.
    seed : int
        Seed of folds and resamples.
    budget : TimeBudget
        Time; half of a limit is for the evaluation of the members.
    is_verbose : bool
        Whether each member is printed.
    """

    members: object
    n_resamples: int
    seed: int
    budget: TimeBudget
    is_verbose: bool

    def is_time_over(self) -> bool:
        """Whether no further member may begin."""
        return self.budget.is_spent(EVALUATION_SHARE)


def fit_comparisons(
    table: ItemTable, read: ReadComparisons, settings: ComparisonSettings
) -> FittedComparisons:
    """Evaluate the members on held-out comparisons, stack them, and train them on all.

    Items, sides and rows are first sorted into a canonical order, so that the result does not
    depend on the order in which they were passed.
    """
    rng = np.random.default_rng(settings.seed)
    item_order = _item_order(table)
    problem = _make_problem(table, read, item_order, rng, settings)
    hold_out = problem.hold_out

    menu_entries = requested_comparison_members(settings.members, problem)
    results = _evaluate(menu_entries, problem, settings)
    members = [result.member for result in results if isinstance(result, EvaluatedEntry)]
    stacks = ComparisonStacks.fit(members, hold_out)
    out_of_bag = None
    if settings.n_resamples and not settings.is_time_over():
        out_of_bag = out_of_bag_losses(stacks, hold_out, settings.n_resamples, rng)
    trained = train_stacks(stacks, n_names=problem.n_names, n_covariates=problem.n_covariates)

    held_out = held_out_table(hold_out, stacks.losses)
    explained = explain(hold_out, stacks.losses)
    labels = read.labels[item_order].tolist()
    return FittedComparisons(
        rankers=trained.order.scaled_rankers(),
        views=trained.order.views,
        model=_make_model(table, read, stacks, trained, problem, item_order),
        members=_member_table(results, stacks, problem),
        held_out=held_out,
        explained=explained,
        estimate=estimate_error(hold_out, stacks.losses, out_of_bag, stacks.uses_pairs),
        examples=find_examples(problem, stacks, labels),
        notes=[*_notes_on_data(table, read), explanation(held_out, explained, stacks.uses_pairs)],
    )


def _notes_on_data(table: ItemTable, read: ReadComparisons) -> list[str]:
    """Remarks on columns and items; warns about a column that leaks the outcome."""
    cells = table.cells
    if cells is None:
        return []
    return comparison_notes(cells, cell_names(table.vectorizer, cells), read)


def _item_order(table: ItemTable) -> Indices:
    # an order that does not depend on that of the rows
    cells = table.cells
    if cells is None:  # sparse items keep their order
        return np.arange(table.views["dense"].shape[0])
    return canonical_item_order(cells.all)


def _make_problem(
    table: ItemTable,
    read: ReadComparisons,
    item_order: Indices,
    rng: np.random.Generator,
    settings: ComparisonSettings,
) -> ComparisonProblem:
    comparisons = read.comparisons.in_canonical_order(item_order)
    cells = table.cells
    if cells is not None:
        cells = cells.take(item_order)
    name_codes = None
    names = table.items.names
    if names is not None and table.items.names_are_lasting:
        name_codes = encode_groups(names, len(names)).codes[item_order]
    n_dense = table.views["dense"].shape[1]
    return ComparisonProblem(
        linear=LinearFeatures.of_view(table.views["wide"][item_order], n_dense),
        view="wide",
        cells=cells,
        comparisons=comparisons,
        hold_out=hold_out_comparisons(comparisons, rng),
        name_codes=name_codes,
        is_time_over=settings.is_time_over,
    )


def _evaluate(
    entries: list[ComparisonMember], problem: ComparisonProblem, settings: ComparisonSettings
) -> list[EvaluatedEntry | SkippedEntry]:
    progress = progress_of_members(len(entries), settings.is_verbose)
    results: list[EvaluatedEntry | SkippedEntry] = []
    for entry in entries:
        is_first = not results
        result = evaluate_entry(entry, problem, is_required=is_first)
        results.append(result)
        progress.update(len(results))
        if settings.is_verbose:
            print_entry(result)
    progress.close()
    return results


def _make_model(
    table: ItemTable,
    read: ReadComparisons,
    stacks: ComparisonStacks,
    trained: TrainedStacks,
    problem: ComparisonProblem,
    item_order: Indices,
) -> ComparisonModel:
    """The model of probabilities."""
    model = ComparisonModel()
    model.covariates_ = read.covariates
    model.uses_pairs_ = stacks.uses_pairs
    model.order_cap_ = stacks.order.min_upset_probability
    model.order_covariate_coef_ = trained.order.covariate_coef
    model.order_strengths_ = trained.order.strengths
    model.rankers_ = trained.pair_orders.rankers
    model.ranker_views_ = trained.pair_orders.views
    model.ranker_factors_ = np.array(trained.pair_orders.factors)
    model.ranker_covariate_coef_ = trained.pair_orders.covariate_coef
    model.pair_strengths_ = trained.pair_orders.strengths
    model.pair_models_ = trained.pair_models
    model.pair_factors_ = np.array(trained.pair_factors)
    model.names_ = np.zeros(0, dtype=str)
    if problem.n_names and table.items.names is not None:
        model.names_ = np.unique(table.items.names)
    model.n_codes_ = table.n_codes
    rows = _field_rows(problem, item_order)
    model.field_ = {name: view[rows] for name, view in table.views.items()}
    return model


def _field_rows(problem: ComparisonProblem, item_order: Indices) -> Indices:
    """Rows of compared items, evenly spaced in their order."""
    comparisons = problem.comparisons
    compared_items = np.unique([comparisons.first, comparisons.second])
    compared_rows = item_order[compared_items]
    n_compared = len(compared_rows)
    # up to N_FIELD of the compared items, evenly spaced
    positions = np.linspace(0, n_compared - 1, min(N_FIELD, n_compared)).astype(np.intp)
    rows: Indices = compared_rows[np.unique(positions)]
    return rows


def _member_table(
    results: list[EvaluatedEntry | SkippedEntry],
    stacks: ComparisonStacks,
    problem: ComparisonProblem,
) -> list[ResultRow]:
    """A row for each member, with its weights in the two stacks."""
    order_weights = _weights_by_name(stacks.order_members, stacks.order.weights)
    pair_weights: dict[str, float] = {}
    if stacks.uses_pairs:
        pair_weights = _weights_by_name(stacks.pair_members, stacks.pairs.weights)
    table: list[ResultRow] = []
    for result in results:
        if isinstance(result, SkippedEntry):
            note = f"left out: {result.reason}"
            table.append({"name": result.name, "note": note, "seconds": result.seconds})
            continue
        name = result.member.name
        row = member_row(result.member, result.seconds, problem)
        row["weight"] = order_weights.get(name, 0.0)
        row["pair_weight"] = pair_weights.get(name, 0.0)
        table.append(row)
    return table


def _weights_by_name(members: list[EvaluatedPairMember], weights: Array) -> dict[str, float]:
    names = [member.name for member in members]
    return dict(zip(names, weights.tolist(), strict=True))
