"""RankRLS with several outputs whose pairs differ: one model for each output.

With ``cost="magnitude", ties="include"`` the graph Laplacian does not depend on the scores, so one
decomposition serves all outputs. With other costs, or without ties, each output has its own graph
and its own linear system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.arrays import Array, ParameterValue
from rankwise.graphs import ScoreGraph
from rankwise.graphs.supervision import Relevance, TrainingTarget
from rankwise.model_selection.candidate_grid import CandidateGrid, default_alphas
from rankwise.model_selection.folds import Folds
from rankwise.model_selection.protocol import HoldOutTask
from rankwise.rankers.paths import ModelPath, PathModel


class OneOutputTask(Protocol):
    """The part of the task of one output that `OutputsTask` uses."""

    refits: bool

    @property
    def alpha_decades(self) -> tuple[float, float]:
        """Exponents of ten of the default alphas, relative to their scale."""
        ...

    def alpha_scale(self) -> float:
        """Scale of the default alphas."""
        ...

    def refits_folds(self, n_folds: int) -> bool:
        """Whether each fold is refitted."""
        ...

    def held_out(self, folds: Folds, candidates: CandidateGrid) -> Array:
        """Held-out scores, shape (n_items, 1, n_candidates)."""
        ...

    def train(self, **values: ParameterValue) -> Any:
        """The fitted model of one alpha."""
        ...

    def path(self, alphas: Array) -> ModelPath:
        """The models of several alphas."""
        ...


def outputs_have_own_pairs(target: TrainingTarget, cost: str, ties: str) -> bool:
    """Whether the outputs of a target have different pairs, or pairs of different weight."""
    if not isinstance(target, Relevance):  # a graph, which has its pairs already
        return False
    if target.nuisance is not None:  # refused later if there are several outputs
        return False
    n_outputs = target.y[0].size
    has_all_pairs = cost == "magnitude" and ties != "exclude"  # for any scores
    return n_outputs > 1 and not has_all_pairs


def split_outputs(target: Relevance) -> list[Relevance]:
    """A target for each output."""
    return [replace(target, y=np.ascontiguousarray(y)) for y in target.y.T]


class OutputsTask(HoldOutTask):
    """A RankRLS for each output, with the same alphas, as one task.

    Parameters
    ----------
    learner : RankRLS
        Receives the coefficients of all outputs.
    target : Relevance
        Scores of several outputs.
    tasks : sequence of OneOutputTask
        The task of each output, each with its own learner.
    """

    def __init__(
        self, learner: PathModel, target: Relevance, tasks: Sequence[OneOutputTask]
    ) -> None:
        super().__init__(learner, ScoreGraph(target))  # a graph of all pairs, for evaluation only
        self.output_shape = target.y.shape[1:]
        self.tasks = tasks
        self.refits = any(task.refits for task in tasks)  # each fold of a cross-validation

    def default_values(self, name: str) -> Array:
        """40 alphas around the mean of the scales of the outputs."""
        scales = [task.alpha_scale() for task in self.tasks]
        return default_alphas(float(np.mean(scales)), self.tasks[0].alpha_decades)

    def refits_folds(self, n_folds: int) -> bool:
        """Whether a fold of any output is refitted."""
        return any(task.refits_folds(n_folds) for task in self.tasks)

    def held_out(self, folds: Folds, candidates: CandidateGrid) -> Array:
        """Held-out scores of each output."""
        scores = [task.held_out(folds, candidates) for task in self.tasks]
        return np.concatenate(scores, axis=1)  # (n_items, n_outputs, n_candidates)

    def train(self, **values: ParameterValue) -> BaseEstimator:
        """The learner with the coefficients of all outputs."""
        alpha_of_output = np.broadcast_to(values["alpha"], len(self.tasks))
        models = [
            task.train(alpha=float(alpha))
            for task, alpha in zip(self.tasks, alpha_of_output, strict=True)
        ]
        learner = self.learner
        parameters = learner.get_params(deep=False)
        vars(learner).update(vars(models[0]))  # fitted attributes that all outputs share
        vars(learner).update(parameters)  # restore the parameters of the learner
        learner.alpha = values["alpha"]
        self._store_outputs(learner, [model._coefficient_columns for model in models])
        learner.n_pairs_ = sum(model.n_pairs_ for model in models)
        learner.n_iter_ = max(model.n_iter_ for model in models)
        return learner

    def path(self, alphas: Array) -> ModelPath:
        """The models of several alphas, trained on all data."""
        paths = [task.path(alphas) for task in self.tasks]
        path_of_first_output = paths[0]
        coefficients = np.concatenate([path.coefficients for path in paths], axis=2)
        learner = self.learner
        # fitted attributes that all outputs share; those with an axis of outputs are set below
        vars(learner).update(vars(path_of_first_output.model(0)))
        # coefficients: (n_alphas, n, n_outputs); of the first alpha a column (n, 1) per output
        columns_of_first_alpha = list(coefficients[0].T[:, :, None])
        self._store_outputs(learner, columns_of_first_alpha)
        return type(path_of_first_output)(learner, alphas, coefficients)

    def _store_outputs(self, learner: PathModel, columns_of_outputs: list[Array]) -> None:
        learner.output_shape_ = self.output_shape
        learner._store_coefficients(np.hstack(columns_of_outputs))
