"""Evaluation of the members of AutoRanker on held-out data, and their training."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from rankwise.arrays import Array, Indices
from rankwise.auto.evaluated_member import EvaluatedMember, as_pipeline
from rankwise.auto.expected_time import FOREIGN_FOLDS
from rankwise.auto.linear_member import LinearMember
from rankwise.auto.member_features import candidate_features, feature_shape
from rankwise.auto.members import CandidateMember
from rankwise.auto.stacking import is_worse
from rankwise.auto.training_data import WIDE, HoldOut, TrainingData
from rankwise.auto.tree_features import blocks_of_groups
from rankwise.auto.tree_member import evaluate_trees
from rankwise.graphs.supervision import make_target
from rankwise.metrics.by_group import check_defined, check_scoring, nanmean_over_units
from rankwise.model_selection.scorer import predict_items
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.out_of_core import SufficientStatistics
from rankwise.rankers.pipelines import final_estimator, transform_step
from rankwise.rankers.rank_rls import RankRLS
from rankwise.runtime.threads import ENTRY_OF_TREE, n_threads_for

N_ALPHAS = 13  # decades from the largest default alpha; more are not needed for scaled features
BLOCK_ITEMS = 20_000  # items whose features are computed at a time for large data sets
GROUP_ARGUMENTS = ("qid", "group_id", "group")


def evaluate_member(
    member: Any, hold_out: HoldOut, seed: int, seconds: float = np.inf, pace: float = 1.0
) -> EvaluatedMember:
    """Hold out an entry of the menu, or any ranker; trees grow at most for these seconds."""
    if not isinstance(member, CandidateMember):
        evaluated = _evaluate_ranker(member, hold_out)
    elif member.is_trees:
        evaluated = evaluate_trees(hold_out, seconds, pace)
    else:
        evaluated = _evaluate_candidate(member, hold_out, seed)
    check_defined(hold_out.metric, evaluated.metric_by_unit)
    return evaluated


def fit_candidate(
    entry: CandidateMember, alpha: float, steps: list[Any], data: TrainingData
) -> Pipeline:
    """Train an exact member on all items of a large data set, by sums over blocks of groups.

    A long list is compared in parts, each spread over the whole list.
    """
    _, n_columns = feature_shape(entry, data)
    if data.has_scores and n_columns <= WIDE:
        ranker = _fit_by_sums(entry, alpha, steps, data)
    else:
        features = _transform(steps, data.views[entry.view], data.groups)
        ranker = entry.ranker(features, alpha).fit(features, data.target)
    return as_pipeline(steps, ranker)


def _fit_by_sums(
    entry: CandidateMember, alpha: float, steps: list[Any], data: TrainingData
) -> RankRLS:
    """Train RankRLS on blocks of whole groups, whose features are not all in memory."""
    X = data.views[entry.view]
    group_of_item = data.graph.groups
    is_one_list = not group_of_item.any()
    # fit from sums over blocks of items, so that not all features are in memory
    sums = SufficientStatistics(cost=entry.cost, ties=entry.ties)
    for block_number, rows in enumerate(blocks_of_groups(group_of_item, BLOCK_ITEMS)):
        features = _transform(steps, X[rows], data.group_labels(rows))
        labels = group_of_item[rows]
        if is_one_list:
            # Each block, every k-th row of the list, is taken as one group: pairs of items of
            # different blocks are left out.
            labels = np.full(len(rows), block_number)
        target = data.relevance.take(rows)
        sums.add(features, target.y, labels, target.weight, whole_groups=True)
    model: RankRLS = sums.solve([alpha]).model(0)
    return model


def _transform(steps: list[Any], X: Any, groups: Indices | None) -> Any:
    """Apply the steps one after the other."""
    for step in steps:
        X = transform_step(step, X, groups)
    return X


def fit_any(estimator: Any, data: TrainingData) -> Any:
    """Train a copy of any ranker, which receives groups by the name of its argument for them."""
    if isinstance(final_estimator(estimator), RankerMixin):
        return clone(estimator).fit(data.X, _target_with_groups(data))
    if not data.has_scores:
        raise ValueError("it needs scores, but y is a preference graph")
    group_of_item = data.graph.groups
    rows_by_group = np.argsort(group_of_item, kind="stable")
    arguments = _fit_arguments(estimator, data, rows_by_group)
    model = clone(estimator)
    if model.get_params(deep=False).get("n_jobs", 0) is None:  # LightGBM has no other limit
        model.set_params(n_jobs=n_threads_for(ENTRY_OF_TREE * data.X.size))
    return model.fit(data.X[rows_by_group], data.relevance.y[rows_by_group], **arguments)


def _fit_arguments(estimator: Any, data: TrainingData, rows: Indices) -> dict[str, Any]:
    """Groups and weights of these rows, by the names of the arguments of the estimator's `fit`."""
    parameters = inspect.signature(estimator.fit).parameters
    group_of_item = data.graph.groups
    weight = data.relevance.weight
    arguments: dict[str, Any] = {}
    group_argument = next((name for name in GROUP_ARGUMENTS if name in parameters), None)
    if group_argument == "group":  # of LightGBM: the sizes of consecutive groups
        arguments["group"] = np.bincount(group_of_item)
    elif group_argument is not None:
        arguments[group_argument] = group_of_item[rows]
    if weight is not None:
        has_weights_of_groups = group_argument in ("qid", "group_id")  # as in XGBoost
        if "sample_weight" not in parameters or has_weights_of_groups:
            raise ValueError("it does not support sample_weight")
        arguments["sample_weight"] = weight[rows]
    return arguments


def _target_with_groups(data: TrainingData) -> Any:
    """The target of a ranker of rankwise, with groups and weights inside."""
    if not data.has_scores:
        return data.graph
    relevance = data.relevance
    if data.groups is None and relevance.weight is None:
        return relevance.y
    return make_target(relevance.y, data.graph.groups, relevance.weight)


def _evaluate_candidate(entry: CandidateMember, hold_out: HoldOut, seed: int) -> EvaluatedMember:
    """Select alpha, one value per decade, by exact hold-out."""
    data = hold_out.data
    features = candidate_features(entry, data, seed)
    loss = data.loss(entry.cost, entry.ties)
    member = LinearMember(entry.ranker(features.R), features.R, loss)

    # two default alphas in each decade: take every second one, from the largest on
    alphas = member.default_alphas()[::-2][:N_ALPHAS]
    scores = member.held_out_scores(hold_out.folds, alphas)
    metric_by_unit = hold_out.evaluate(scores)
    best = _best_alpha(metric_by_unit, scores, hold_out)
    alpha = float(alphas[best])

    if hold_out.is_sample:
        train = partial(fit_candidate, entry, alpha, features.steps, hold_out.all_data)
    else:  # while the features are in memory
        train = partial(as_pipeline, features.steps, member.fit(alpha))
    return EvaluatedMember(
        alpha, scores[:, best].copy(), metric_by_unit[:, best], train, entry.view
    )


def _best_alpha(metric_by_unit: Array, scores: Array, hold_out: HoldOut) -> int:
    """The candidate with the best metric, or an equivalent one with fewer wrong pairs.

    Of the candidates within a standard error of the best, the one with the fewest wrong pairs is
    selected: metrics such as NDCG vary much from group to group, and the share of wrong pairs
    varies less.

    Parameters
    ----------
    metric_by_unit : ndarray of shape (n_units, n_alphas)
        The metric of each candidate in each unit.
    scores : ndarray of shape (n_items, n_alphas)
        Held-out scores of each candidate.
    hold_out : HoldOut
        Metric and units.
    """
    mean_gain = np.nan_to_num(hold_out.gain_sign * nanmean_over_units(metric_by_unit), nan=-np.inf)
    best = int(np.argmax(mean_gain))  # of equal ones the first, with the largest alpha
    if hold_out.metric.name == "disagreement" or not hold_out.data.graph.has_relevance:
        return best
    # of the alphas that are not clearly worse, select the one with the fewest wrong pairs, whose
    # share varies less from group to group than other metrics
    wrong_share = nanmean_over_units(hold_out.evaluate(scores, check_scoring("disagreement")))
    for k in range(metric_by_unit.shape[1]):
        if is_worse(metric_by_unit[:, k], metric_by_unit[:, best], hold_out.gain_sign):
            wrong_share[k] = np.nan  # not eligible
    if np.isnan(wrong_share).all():
        return best
    return int(np.nanargmin(wrong_share))


def _evaluate_ranker(ranker: Any, hold_out: HoldOut) -> EvaluatedMember:
    """Hold out a ranker by its hold-out task, or by refits for five folds of groups.

    A ranker with a hold-out task keeps its alpha.
    """
    data = hold_out.data
    alpha = np.nan
    if hasattr(ranker, "hold_out_task"):
        task: Any = clone(ranker).hold_out_task(data.X, data.target)
        held_out_scores = task.held_out(hold_out.folds, task.candidates())
        scores = held_out_scores[:, 0, 0]  # of the only output and the only candidate
        alpha = float(ranker.get_params(deep=False).get("alpha", np.nan))
    else:
        scores = _refit_scores(ranker, hold_out)
    train = partial(fit_any, ranker, hold_out.all_data)
    return EvaluatedMember(alpha, scores, hold_out.evaluate(scores), train)


def _refit_scores(ranker: Any, hold_out: HoldOut) -> Array:
    """Held-out scores by refits without each fold of groups."""
    data = hold_out.data
    n_items = data.graph.n_items
    scores = np.zeros(n_items)
    for held_out_rows in hold_out.group_folds(FOREIGN_FOLDS):
        train_rows = np.setdiff1d(np.arange(n_items), held_out_rows)
        model = fit_any(ranker, data.subset(train_rows))
        groups = data.group_labels(held_out_rows)
        scores[held_out_rows] = predict_items(model, data.X[held_out_rows], groups)
    if not np.isfinite(scores).all():
        raise ValueError("its scores are not finite")
    return scores
