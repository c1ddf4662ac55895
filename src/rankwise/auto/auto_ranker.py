"""AutoRanker: several exact rankers, evaluated on held-out groups and combined."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, Indices
from rankwise.auto.budgeted_evaluation import Evaluated, EvaluationPlan, Skipped, plan_hold_out
from rankwise.auto.comparison_checks import (
    check_comparison_arguments,
    read_pairs_of_rows,
)
from rankwise.auto.comparison_model import ComparisonModel
from rankwise.auto.comparison_pipeline import (
    ComparisonSettings,
    FittedComparisons,
    ItemTable,
    fit_comparisons,
)
from rankwise.auto.comparison_reader import (
    read_item_comparisons,
    read_items_to_predict,
    split_names,
)
from rankwise.auto.comparison_summary import (
    best_member_name,
    column_facts,
    column_uses,
    held_out_errors,
    notes_of_dropped_columns,
)
from rankwise.auto.evaluated_member import EvaluatedMember
from rankwise.auto.fit_arguments import check_time_limit, seed_from
from rankwise.auto.item_views import FittedViews, fit_views, views_of_matrix, views_of_table
from rankwise.auto.later_groups import evaluate_later_groups
from rankwise.auto.member_table import evaluate_with_log, table_row
from rankwise.auto.member_training import TrainedStack, train_members, training_notes
from rankwise.auto.members import requested_members
from rankwise.auto.stacking import Stacking
from rankwise.auto.time_budget import TimeBudget
from rankwise.auto.training_data import HoldOut, read_training_data
from rankwise.auto.unit_estimate import estimate_from_units, note_of_optimism
from rankwise.datasets import PairData
from rankwise.errors import warn_user
from rankwise.fitted_schema import FittedSchema, Floats, Ints, ListOf, Model, Values
from rankwise.graphs import PairGraph
from rankwise.graphs.supervision import Preferences, TrainingTarget, read_y
from rankwise.kernels.stable_products import row_products
from rankwise.metrics.by_group import nanmean_over_units
from rankwise.model_selection.scorer import predict_items
from rankwise.preprocessing.group_columns import (
    check_groups,
    read_items_in_groups,
    refuse_other_keywords,
    warn_of_long_list,
)
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.summary import Summary
from rankwise.runtime.interrupts import no_interrupted_fits
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_int, check_option, restored_on_failure

LEAST_UNITS = 4  # groups, or folds of one list, for an estimate


class AutoRanker(RankerMixin, BaseEstimator):
    """Evaluate several rankers on held-out groups and combine them; no tuning is required.

    Use it first if you want the best order and do not need to interpret the model.

    The members differ in scaling (over all items, or inside groups), in expansion (linear, hinges,
    kernel values to basis items) and in cost. The alpha of each is selected by exact
    leave-group-out. With 500 items or more, boosted trees are added, held out by folds of groups.
    The held-out scores of the members, centered and scaled in each group, are the columns of H, and
    ``RankRLS(cost="sign")`` on H, with alpha by leave-group-out, gives their weights. If `scoring`
    is NDCG, average precision or reciprocal rank, weights that maximize a smooth version of it
    replace these if they are better by leave-group-out. If the best member is better on held-out
    data by more than three standard errors, it replaces the stack.

    Parameters
    ----------
    members : "default" or list, default="default"
        Members to combine: "default" for all that suit the data, names of members (see Notes), and
        rankers of any kind, such as ``["default", lightgbm.LGBMRanker()]``. A ranker may be passed
        as (name, ranker). It needs `predict`, and `fit` with `groups`, `qid`, `group_id` or
        `group`, or none of them. Rankers without a hold-out task are refitted for five folds of
        groups.
    combine : {"stack", "mean", "best"}, default="stack"
        Combination: weights from held-out data, the mean of the four best, or the best alone.
    scoring : str, Metric or function, optional
        Metric by which members and weights are selected. By default ndcg@10 if there are groups and
        the scores are grades (integers from 0 to 32), else disagreement; see `scoring_`.
    n_resamples : int, default=30
        Number of bootstrap samples of the groups for the out-of-bag estimate: members are selected,
        weighted and combined on the groups of a sample, and evaluated on all other groups. No model
        is refitted. 0 omits the estimate.
    time_limit : float, optional
        Seconds after which no further member, and no estimate, is started. The simplest member is
        always trained.
    random_state : int, RandomState or None, default=0
        Seed of the selection of basis items.
    verbose : int, default=0
        1 prints the columns, the members and an estimate of the run time to standard error. On a
        terminal, 0 does so for fits that take more than about three seconds.

    Attributes
    ----------
    members_ : list of dict
        One entry per member: "name", "alpha", "score" (held-out, with "low" and "high", a 95%
        interval over groups), "weight", "seconds", and "note" (the reason if the member was
        skipped, or the number of trees).
    best_member_ : str
        Name of the member with the best held-out score.
    held_out_scores_ : ndarray of shape (n_items, n_evaluated)
        Held-out scores of the members with a score, in the order of `members_`. They are comparable
        inside a group only.
    combine_ : {"stack", "mean", "best"}
        The combination in use.
    score_ : float
        The metric of the combination on held-out data; the weights that score a group are computed
        without that group.
    estimate_ : dict
        "score", "low" and "high" (95%) on groups that were used neither for selection nor for
        weights: the interval of the mean over all groups of this kind. "low_new" and "high_new"
        (95%) contain the mean over "n_new" further groups, as many as in training. "optimism" is
        the bias of `score_`. Empty for ``n_resamples=0`` or fewer than four groups; one list has no
        interval for further groups.
    scoring_ : str
        Name of the metric.
    notes_ : list of str
        Remarks on columns, members, combination and estimate.
    max_group_size_ : int or None
        Number of items in the longest group; None without groups, or if y is a graph.
    group_columns_ : list of str
        Columns of a data frame that contain the groups and are therefore dropped.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    Notes
    -----
    Names of members for data with groups: "linear, standard, magnitude", "trees", "hinges,
    standard, magnitude", "hinges, group, magnitude without ties", "hinges, log+group, sign", "rbf,
    standard, magnitude", "rbf, group, magnitude without ties", "rbf, log+group, sign", "linear,
    group, magnitude without ties", "linear, log+group, sign" and "linear, standard+group, magnitude
    without ties".

    For one list, "group" is replaced by "standard", and equal members are dropped: "linear,
    standard, magnitude", "trees", "hinges, standard, magnitude", "hinges, log+standard, sign",
    "rbf, standard, magnitude", "rbf, log+standard, sign" and "linear, log+standard, sign". With
    text or many categories, names of members that use all values and words begin with "linear with
    all values and words" or "hinges with all values and words".

    For comparisons: "hinges", "hinges, capped at 0.02", "hinges, capped at 0.06", "strengths of
    known items", "joint linear model of pairs", "trees of items" and "trees of pairs".

    Examples
    --------
    >>> from rankwise import AutoRanker
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=30, noise=0.5, random_state=0)[:3]
    >>> model = AutoRanker(n_resamples=0).fit(X, y, groups)
    >>> model.scoring_, len(model.members_), model.predict(X, groups).shape
    ('ndcg@10', 11, (600,))
    """

    _fitted: ClassVar[FittedSchema] = {
        "estimators_": ListOf(Model()),
        "table_": Model(optional=True),
        "scaler_": Model(),
        "weights_": Floats("members_in_use"),
        "held_out_scores_": Floats("samples members"),
        "kept_values_": Ints("values"),
        "views_": Values(),
        "combine_": Values(),
        "members_": Values(),
        "best_member_": Values(),
        "estimate_": Values(),
        "score_": Values(),
        "scoring_": Values(),
        "notes_": Values(),
        "needs_groups_": Values(),
        "comparison_": Model(optional=True),
        "item_id_": Values(),
        "explained_": Values(),
        "held_out_comparisons_": Values(),
        "examples_": Values(),
    }

    __metadata_request__predict = {"groups": True}  # noqa: RUF012

    def __init__(
        self,
        members: Any = "default",
        *,
        combine: str = "stack",
        scoring: Any = None,
        n_resamples: int = 30,
        time_limit: float | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.members = members
        self.combine = combine
        self.scoring = scoring
        self.n_resamples = n_resamples
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose

    @refuse_other_keywords
    @single_threaded
    @no_interrupted_fits()
    @restored_on_failure
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        item_id: str | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Evaluate the members, combine them, and train them on all data.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,), target of `make_target`, graph, or comparisons
            Scores, larger is better; or comparisons of the items: a `PairGraph` of row numbers, or
            the `PairData` of `rankwise.datasets.read_pairs`, matched by `item_id`.
        groups : array-like of shape (n_items,), optional
            Group labels: only items of one group are compared. Groups of comparisons are passed to
            the `PairGraph`; the items of such a group are held out together.
        sample_weight : array-like of shape (n_items,) or (n_comparisons,), optional
            Weights of the items, 0 or larger; the weight of a pair is the product of the weights of
            its items. With comparisons: weights of the comparisons.
        item_id : str, optional
            With comparisons: column of X with the names of the items. By default they are in the
            index of a pandas frame, and the rows of other X are the `items` of the comparisons.
        time : array-like of shape (n_items,) or (n_comparisons,), optional
            Time of each item, as dates or numbers. The estimate is then computed on the last sixth
            of the groups, by a model of the earlier groups, which doubles the run time. With
            comparisons: time of each comparison. Later comparisons are then held out, and each
            known item has its own strength.

        Returns
        -------
        AutoRanker
            The fitted estimator.
        """
        start = perf_counter()
        check_option("combine", self.combine, ("stack", "mean", "best"))
        n_resamples = check_int("n_resamples", self.n_resamples, "0 for no estimate")
        check_time_limit(self.time_limit)
        seed = seed_from(self.random_state)
        budget = TimeBudget(self.time_limit, start)
        self.notes_: list[str] = []
        self.estimate_: dict[str, float] = {}
        self.comparison_: ComparisonModel | None = None
        if isinstance(y, PairGraph | PairData):
            check_comparison_arguments(groups, self.scoring, self.combine)
            return self._fit_comparisons(X, y, item_id, sample_weight, time, budget)
        if item_id is not None:
            raise ValueError("item_id= is for comparisons: pass a PairData or a PairGraph as y.")
        target = read_y(y, groups, sample_weight, X=X)
        X = check_groups(self, X, y, groups, target)
        metric_of_later_groups = None
        if time is not None:
            metric_of_later_groups = evaluate_later_groups(self, X, target, time)

        # candidates, and the folds that compare them
        fitted = self._fit_views(X, target)
        data = read_training_data(fitted.views, y, groups, sample_weight, fitted.trees)
        members = requested_members(self.members, data)
        rng = np.random.default_rng(seed)
        first_member, *_ = members.values()  # limits the size of a sample
        hold_out = plan_hold_out(first_member, data, self.scoring, budget, rng)
        self.scoring_ = hold_out.metric.name
        # raise errors of the metric before any training
        hold_out.evaluate(np.zeros(hold_out.graph.n_items))

        # held-out scores of each member, the stack of them, and models of all data
        plan = EvaluationPlan(hold_out, seed, budget, self.time_limit)
        evaluated = self._evaluate(members, plan)
        stacking = Stacking(list(evaluated.values()), hold_out, self.combine)
        stack = stacking.combine()
        trained = train_members(evaluated, stack, hold_out, budget, self.combine)
        self._store(trained, evaluated, hold_out)

        if metric_of_later_groups is not None:
            where = "the latest groups, by a model of earlier ones"
            self._store_estimate(metric_of_later_groups, where, hold_out)
        elif n_resamples and budget.left() <= 0:
            self.notes_.append("no time was left for the honest estimate")
        elif n_resamples and stacking.n_units >= LEAST_UNITS:
            self._estimate_out_of_bag(stacking.out_of_bag(n_resamples, rng), hold_out)
        return self

    @single_threaded
    def predict(self, X: Any, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Score items; larger is better, and only differences inside a group are meaningful.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels. None is one list; a warning is issued if the list is longer than three
            times the longest training group.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores.
        """
        check_is_fitted(self)
        if self.comparison_ is not None:
            items = read_items_to_predict(X, self.item_id_)
            return self._scores_of_order(self._transform(items.X), items.names)
        return self._score(self._transform(read_items_in_groups(self, X, groups)), groups)

    @single_threaded
    def predict_above(
        self,
        X: Any,
        a: ArrayLike,
        b: ArrayLike,
        *,
        covariates: Mapping[str, ArrayLike] | None = None,
    ) -> float | Array:
        """Probability that item a beats item b, after training on comparisons.

        The probabilities of (a, b) and of (b, a) add up to exactly 1.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        a, b : int or array-like of int, shape (n_pairs,)
            Row numbers of X.
        covariates : mapping from str to value or array-like of shape (n_pairs,), optional
            Covariates of the comparisons, from the point of view of a. "named first" is 1 if a is
            named first, −1 if b is. Covariates that are not passed are unknown.

        Returns
        -------
        float or ndarray of shape (n_pairs,)
            Probabilities; a tie counts as half a win.
        """
        check_is_fitted(self)
        model = self._require_comparison_model("predict_above")
        items = read_items_to_predict(X, self.item_id_)
        views = self._transform(items.X)
        pairs = read_pairs_of_rows(a, b, views["dense"].shape[0])
        scores = self._scores_of_order(views, items.names)
        if covariates is None:
            covariates = {}
        probability = model.win_probability(views, scores, items.names, pairs.sides, covariates)
        return pairs.reshape(probability)

    @single_threaded
    def win_share(self, X: Any) -> Array:
        """Mean probability of each item to beat known items, after training on comparisons.

        Use it to see which items win most often. The opponents are up to 50 of the items that `fit`
        compared. Unlike `predict`, it uses the model of both items, if that is in use.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,)
            Shares between 0 and 1.
        """
        check_is_fitted(self)
        model = self._require_comparison_model("win_share")
        items = read_items_to_predict(X, self.item_id_)
        # the mean over opponents, which are a sample of the training items
        return model.mean_probability_to_win(self._transform(items.X), self._sum_member_scores)

    def rescale(self, factor: float) -> None:
        """Multiply all scores of a model of scored items by a positive factor.

        The scale of the scores depends on the members that were selected, so models of different
        folds are rescaled before their scores are compared (`rankwise.uncertainty.jackknife`).

        Parameters
        ----------
        factor : float
            A positive number.
        """
        self.weights_: Array = factor * self.weights_

    def check_comparisons(self, X: Any) -> None:
        """Raise a ValueError unless probabilities of comparisons of the rows of X are finite.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            At least two items.
        """
        if self.comparison_ is None:
            return
        probability = self.predict_above(X, 0, 1)
        if not np.isfinite(probability):  # of the first two rows, as a test
            raise ValueError("probabilities of the model are not finite")

    def smoke_test(self) -> Array:
        """Scores of made-up rows of the training table, to check a model file.

        Returns
        -------
        ndarray
            Scores and, for a model of comparisons, a probability; empty without a table.
        """
        if self.table_ is None:
            return np.zeros(0)
        # the scores of two rows of missing values
        views = views_of_table(self.table_.probe(), self.kept_values_)
        if self.comparison_ is None:
            return self._score(views, groups=[0, 0])
        scores = self._scores_of_order(views, names=None)
        first_against_second = np.array([0]), np.array([1])
        probability = self.comparison_.win_probability(
            views, scores, names=None, sides=first_against_second, covariates={}
        )
        return np.append(scores, probability)

    def _require_comparison_model(self, method: str) -> ComparisonModel:
        """The model of probabilities; an error if `fit` had no comparisons."""
        if self.comparison_ is None:
            raise ValueError(
                f"{method} needs a model of comparisons, but this AutoRanker was fitted to scores; "
                "pass a PairGraph or a PairData to fit."
            )
        return self.comparison_

    def _sum_member_scores(self, views: dict[str, Any]) -> Array:
        """Scores of the order of a model of comparisons, without strengths of known items."""
        return np.asarray(self._member_scores(views, groups=None).sum(axis=1))

    def _scores_of_order(self, views: dict[str, Any], names: NDArray[np.str_] | None) -> Array:
        """Scores of the order of a model of comparisons."""
        scores = self._sum_member_scores(views)
        model = self._require_comparison_model("predict")
        return scores + model.strengths_by_name(names, len(scores), model.order_strengths_)

    def _score(self, views: dict[str, Any], groups: Any) -> Array:
        """Weighted sum of the scores of the members, scaled in their groups."""
        if not self.needs_groups_:
            groups = None
        elif groups is None:  # all items are one list
            n_items = views["dense"].shape[0]
            warn_of_long_list(self, n_items)
            groups = np.zeros(n_items, dtype=np.intp)
        member_scores = self._member_scores(views, groups)
        if len(self.estimators_) == 1:  # a single member is not scaled
            scores = np.asarray(self.weights_[0] * member_scores[:, 0])
        else:
            scaled = np.asarray(self.scaler_.transform(member_scores, groups))
            scores = row_products(scaled, self.weights_)
        if groups is not None and not scores.any() and len(np.unique(groups)) == len(scores):
            warn_user(
                "every group has one item, and this AutoRanker compares an item with the others of "
                "its group: all scores are 0. Pass whole groups."
            )
        return scores

    def summary(self) -> Summary:
        """Summarize the held-out score, the members, and the use of the columns.

        Returns
        -------
        Summary
            A record; ``print`` shows it as text of at most 80 characters a line.
        """
        check_is_fitted(self)
        errors = []
        if self.comparison_ is not None:
            errors = held_out_errors(self.held_out_comparisons_, self.comparison_.uses_pairs_)
        return Summary(
            model=type(self).__name__,
            metric=self.scoring_,
            held_out_score=self.score_,
            combine=self.combine_,
            best_member=self.best_member_,
            estimate=self.estimate_,
            members=self.members_,
            columns=column_uses(self.table_),
            notes=list(self.notes_),
            comparisons=errors,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _fit_views(self, X: Any, target: TrainingTarget) -> FittedViews:
        """Decide how columns are used, and store the transformers for the views of new items."""
        fitted = fit_views(self, X, target)
        self.table_: TableVectorizer | None = fitted.table
        self.kept_values_: Indices = fitted.wide_values
        self.notes_ += fitted.notes
        self.notes_ += notes_of_dropped_columns(fitted.table)
        return fitted

    def _transform(self, X: Any) -> dict[str, Any]:
        """The views of new items."""
        if self.table_ is not None:
            return views_of_table(self.table_.views(X), self.kept_values_)
        return views_of_matrix(validate_X(self, X, accept_sparse="csr", reset=False))

    def _fit_comparisons(
        self,
        X: Any,
        y: PairGraph | PairData,
        item_id: str | None,
        sample_weight: ArrayLike | None,
        time: ArrayLike | None,
        budget: TimeBudget,
    ) -> Self:
        """Train on comparisons of the items, of which folds of items are held out."""
        self.item_id_ = item_id
        # comparisons have no groups
        self.max_group_size_ = None
        self.group_columns_: list[str] = []
        items = split_names(X, item_id)
        if isinstance(y, PairGraph):
            graph = y
        else:
            graph = y.graph()
        fitted_views = self._fit_views(items.X, Preferences(graph))
        views = fitted_views.views
        comparisons = read_item_comparisons(y, items, views["dense"].shape[0], sample_weight, time)
        table = ItemTable(
            views=views,
            n_codes=fitted_views.trees.n_codes,
            items=items,
            vectorizer=fitted_views.table,
        )
        settings = ComparisonSettings(
            members=self.members,
            n_resamples=self.n_resamples,
            seed=seed_from(self.random_state),
            budget=budget,
            is_verbose=bool(self.verbose),
        )
        self._store_comparisons(fit_comparisons(table, comparisons, settings))
        return self

    def _store_comparisons(self, fitted: FittedComparisons) -> None:
        """Set the fitted attributes of a model of comparisons."""
        n_rankers = len(fitted.rankers)
        self.comparison_ = fitted.model
        self.estimators_ = fitted.rankers
        self.views_ = fitted.views
        self.weights_ = np.ones(n_rankers)  # their scores are scaled already
        # columns of mean 0 and standard deviation 1, so that scores are not scaled
        standardized = np.repeat([[-1.0], [1.0]], n_rankers, axis=1)
        self.scaler_ = GroupScaler().fit(standardized)
        self.needs_groups_ = False
        self.combine_ = "stack"
        self.scoring_ = "disagreement"
        self.members_: list[dict[str, Any]] = fitted.members
        self.best_member_ = best_member_name(fitted.members)
        self.estimate_ = fitted.estimate
        # the held-out score, without the correction for optimism
        self.score_ = fitted.estimate["score"] - fitted.estimate["optimism"]
        self.explained_ = fitted.explained
        self.held_out_comparisons_ = fitted.held_out
        self.examples_ = fitted.examples
        self.notes_ += fitted.notes

    def _evaluate(
        self, members: dict[str, Any], plan: EvaluationPlan
    ) -> dict[str, EvaluatedMember]:
        """Evaluate the members, and begin the table of members, without their weights."""
        columns = column_facts(self.table_)
        results = evaluate_with_log(members, plan, columns, is_verbose=bool(self.verbose))
        self.members_ = [table_row(result) for result in results]
        evaluated = {}
        for result in results:
            if isinstance(result, Evaluated):
                evaluated[result.name] = result.member
            elif result.is_foreign_error:
                warn_user(f"the member {result.name!r} is left out: {result.reason}.")
        if not evaluated:
            reasons = [result.reason for result in results if isinstance(result, Skipped)]
            raise ValueError(f"no member could be evaluated on held-out data: {reasons[0]}.")
        return evaluated

    def _store(
        self, trained: TrainedStack, evaluated: dict[str, EvaluatedMember], hold_out: HoldOut
    ) -> None:
        """Set the fitted attributes of the combination, and fill the table of members."""
        in_use = [name for name, weight in trained.weights.items() if weight]
        self.estimators_ = [trained.models[name] for name in in_use]
        self.views_ = [evaluated[name].view for name in in_use]
        self.weights_ = np.array([trained.weights[name] for name in in_use])
        self.combine_ = trained.stack.kind
        self.score_ = float(nanmean_over_units(trained.stack.metric_by_unit))
        members = evaluated.values()
        metric_of_members = np.stack([member.metric_by_unit for member in members], axis=1)
        mean_gain = hold_out.gain_sign * nanmean_over_units(metric_of_members)
        self.best_member_ = list(evaluated)[int(np.argmax(mean_gain))]
        self.held_out_scores_ = np.stack([member.scores for member in members], axis=1)
        for row in self.members_:
            if row["name"] in trained.weights:
                row["weight"] = trained.weights[row["name"]]
        self.notes_ += training_notes(trained, hold_out)
        self._fit_scaler(hold_out)

    def _fit_scaler(self, hold_out: HoldOut) -> None:
        """Fit the scaler of the scores of the members; a scaler inside groups has no statistics."""
        self.needs_groups_ = hold_out.data.groups is not None
        made_up_scores = np.zeros((2, len(self.estimators_)))
        if self.needs_groups_:  # a scaler inside groups has no statistics
            self.scaler_ = GroupScaler().fit(made_up_scores, groups=[0, 0])
        elif len(self.estimators_) > 1:  # learn means and deviations from all items
            self.scaler_ = GroupScaler().fit(self._member_scores(hold_out.data.views, groups=None))
        else:  # a single member is not scaled
            self.scaler_ = GroupScaler().fit(made_up_scores)

    def _member_scores(self, views: dict[str, Any], groups: Any) -> Array:
        """Scores of each member in use, shape (n_items, n_in_use)."""
        scores = [
            predict_items(member, views[view], groups)
            for member, view in zip(self.estimators_, self.views_, strict=True)
        ]
        return np.stack(scores, axis=1).astype(np.float64)

    def _store_estimate(self, metric_by_unit: Array, where: str, hold_out: HoldOut) -> None:
        """Set the estimate from units that were used neither for selection nor for weights."""
        n_groups = hold_out.all_data.graph.n_groups
        result = estimate_from_units(metric_by_unit, self.scoring_, where, n_groups)
        self.estimate_ = result.estimate
        self.notes_ += result.notes

    def _estimate_out_of_bag(self, metric_by_unit: Array, hold_out: HoldOut) -> None:
        """Set the out-of-bag estimate, and the bias of the score on all units."""
        units = "groups"
        if hold_out.graph.n_groups == 1:
            units = "folds of the list"
        where = f"{units} that were used neither for selection nor for weights"
        self._store_estimate(metric_by_unit, where, hold_out)
        optimism = hold_out.gain_sign * (self.score_ - self.estimate_["score"])
        self.estimate_["optimism"] = optimism
        self.notes_.append(note_of_optimism(optimism, self.score_, self.scoring_, units))
