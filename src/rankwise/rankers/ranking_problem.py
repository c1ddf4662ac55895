"""From the training target to a ranking loss, with checks and warnings."""

from __future__ import annotations

import numbers
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import column_or_1d

from rankwise.arrays import Array, MatrixLike
from rankwise.errors import warn_user
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.graphs.supervision import Preferences, TrainingTarget
from rankwise.losses import SquaredLoss
from rankwise.losses.profiled import center_in_components
from rankwise.solvers import Solutions

DEFAULTS = {"cost": "magnitude", "ties": "include", "group_weight": "pairs"}

PASSES = 3000  # passes over the non-zeros of sparse X in all iterations of a search

GAIN = 10  # speedup from which a search uses iterations


def check_beta(beta: float) -> None:
    """Raise an error unless beta is a number from 0 to 1."""
    if not isinstance(beta, numbers.Real) or not 0 <= beta <= 1:
        raise ValueError(f"beta={beta!r}; expected a number from 0 (ranking) to 1 (regression).")


def iterations_are_faster(X: MatrixLike) -> bool:
    """Whether a linear model of sparse items is fitted much faster without a Gram matrix."""
    # multiplications for the Gram matrix of rows or columns, or for products with sparse X
    cost_of_gram = X.shape[0] * X.shape[1] * min(X.shape)
    cost_of_iterations = PASSES * X.nnz
    return bool(GAIN * cost_of_iterations < cost_of_gram)


def warn_about_solutions(solutions: Solutions, kernel: object, tol: float) -> None:
    """Warn about indefinite kernels and about iterations that did not converge."""
    if not solutions.is_definite:
        warn_user(
            f"the kernel {kernel!r} is not positive semidefinite on these data: the "
            "model is a stationary point of the objective, not its minimum. A larger alpha or "
            "another kernel avoids this.",
        )
    if solutions.unfinished:
        warn_user(
            f"conjugate gradients stopped after {solutions.n_iter} iterations without reaching "
            f"tol={tol:g} at alpha={min(solutions.unfinished):g}; raise max_iter, tol or alpha, or "
            "scale the features.",
            ConvergenceWarning,
        )


def ranking_loss(
    n_items: int, target: TrainingTarget, cost: str, ties: str, group_weight: str, beta: float
) -> tuple[SquaredLoss, tuple[int, ...]]:
    """The loss of all outputs, and their shape: (), or (n_outputs,) for y of two dimensions."""
    options = {"cost": cost, "ties": ties, "group_weight": group_weight}
    if isinstance(target, Preferences):
        graph = check_graph(target.graph, n_items, options)
        scores = None  # a graph of given pairs has none
        output_shape: tuple[int, ...] = ()
        if graph.has_relevance:
            scores = graph.y
            output_shape = scores.shape[1:]
        elif beta > 0:
            raise ValueError(
                f"beta={beta} mixes in regression on scores, but y is a {type(graph).__name__}, "
                "which has preferences only; use beta=0."
            )
    else:
        scores = target.y
        output_shape = scores.shape[1:]
        if output_shape == (1,):
            scores = scores[:, 0]
        graph = ScoreGraph(replace(target, y=scores), **options)
    loss = SquaredLoss(graph, beta, scores, nuisance_columns(target, graph))
    check_something_to_rank(loss)
    if loss.nuisance is not None and (beta > 0 or loss.target.ndim > 1):
        raise ValueError(
            f"nuisance is for beta=0 and one output; got beta={beta} and targets of shape "
            f"{loss.target.shape}. Use beta=0 and fit a model for each column of y."
        )
    return loss, output_shape


def nuisance_columns(target: TrainingTarget, graph: PreferenceGraph) -> Array | None:
    """Nuisance columns, centered inside groups; None without nuisance."""
    if target.nuisance is None:
        return None
    values, names = target.nuisance
    if len(values) != graph.n_items:
        raise ValueError(
            f"nuisance has {len(values)} rows but X has {graph.n_items}; pass one row per item."
        )
    if len(names) >= graph.n_items:
        raise ValueError(
            f"nuisance has {len(names)} columns (text has one for each value) for {graph.n_items} "
            "items, so it explains everything; pass fewer columns."
        )
    return center_in_components(values, graph)


def warn_explained() -> None:
    """Warn that the nuisance columns explain all preferences."""
    warn_user(
        "the nuisance columns explain every column of X or all preferences: nothing is left to "
        "learn, and the scores of the model are meaningless."
    )


def no_nuisance(learner: str, target: TrainingTarget) -> None:
    """Raise an error if there are nuisance columns, which this learner does not support."""
    if target.nuisance is not None:
        raise ValueError(
            f"{learner} does not support nuisance; use RankRLS, RankLogistic or their searches."
        )


def compared_graph(
    learner: str, n_items: int, target: TrainingTarget, group_weight: str, ties: str = "exclude"
) -> PreferenceGraph:
    """Graph of a learner of one output; a graph passed as y has its own ties."""
    if isinstance(target, Preferences):
        graph = target.graph
        if graph.has_relevance:
            one_output(learner, graph.y)
        return check_graph(graph, n_items, {"group_weight": group_weight})
    target = replace(target, y=one_output(learner, target.y))
    cost = "sign"
    if ties == "include":  # only the magnitude cost has pairs of equal score
        cost = "magnitude"
    return ScoreGraph(target, cost=cost, ties=ties, group_weight=group_weight)


def one_output(learner: str, y: Array) -> Array:
    """Scores of one output as a flat array; several outputs raise an error."""
    if y.ndim != 2:
        return y
    n_outputs = y.shape[1]
    if n_outputs > 1:
        raise ValueError(
            f"y has shape {y.shape}; {learner} learns one output, so fit a model for each "
            "column (RankRLS learns several at once)."
        )
    return np.asarray(column_or_1d(y, warn=True))


def check_graph(graph: PreferenceGraph, n_items: int, options: dict[str, str]) -> PreferenceGraph:
    """Check that a graph passed as y has an item for each row of X, and matches the options."""
    if graph.n_items != n_items:
        raise ValueError(
            f"the graph has {graph.n_items} items but X has {n_items} rows; build it with one item "
            "for each row (pass n_items to PairGraph)."
        )
    for name, value in options.items():  # a default may differ from the option of the graph
        if value != DEFAULTS[name] and value != getattr(graph, name):
            raise ValueError(
                f"the estimator has {name}={value!r} but the graph given as y was built with "
                f"{name}={getattr(graph, name)!r}; set the option of the graph."
            )
    return graph


def check_something_to_rank(loss: SquaredLoss) -> None:
    """Raise an error for a loss without pairs; warn if it prefers no item to another."""
    if loss.beta == 1:  # regression only, without pairs
        return
    if loss.graph.n_pairs == 0:
        raise ValueError(f"there is nothing to rank: {why_no_pairs(loss.graph)}.")
    if loss.beta == 0 and not loss.graph.divergence.any():
        warn_user(
            "no item is preferred to any other (all scores of a group are equal, or preferences "
            "cancel): the model will predict the same score for every item.",
        )


def why_no_pairs(graph: PreferenceGraph) -> str:
    """Explain why a graph has no (strict) pairs, and how to get some."""
    return (
        f"{graph.n_items} items (n_samples = {graph.n_items}) in {graph.n_groups} groups make no "
        "pair of positive weight; give scores that differ, or use cost='magnitude' and "
        "ties='include', and group labels that are shared by the items to be compared"
    )
