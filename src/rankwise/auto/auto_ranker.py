"""AutoRanker: several exact rankers, evaluated on held-out groups and combined."""

from __future__ import annotations

import numbers
import sys
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.auto.budgeted_evaluation import (
    Evaluated,
    EvaluationPlan,
    Skipped,
    evaluate_members,
    plan_hold_out,
    sum_of_expected_seconds,
)
from rankwise.auto.evaluated_member import EvaluatedMember
from rankwise.auto.item_views import frequent_values, prepare_table, views_of_matrix, views_of_table
from rankwise.auto.member_table import print_result, table_row
from rankwise.auto.members import requested_members
from rankwise.auto.stacking import Stack, Stacking
from rankwise.auto.time_budget import TimeBudget
from rankwise.auto.training_data import HoldOut, check_data
from rankwise.auto.tree_features import TreeFeatures
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.errors import warn_user
from rankwise.fitted_schema import FittedSchema, Floats, Ints, ListOf, Model, Values
from rankwise.frames import check_same_index, narwhals_frame, take_rows
from rankwise.graphs.supervision import Preferences, read_y
from rankwise.kernels.stable_products import row_products
from rankwise.metrics import get_metric
from rankwise.metrics.by_group import mean_interval, nanmean, new_mean_interval
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.model_selection.scorer import predict_items
from rankwise.model_selection.time_blocks import time_series_blocks
from rankwise.preprocessing.group_columns import (
    check_groups,
    refuse_other_keywords,
    warn_of_long_list,
    without_group_columns,
)
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.summary import ColumnUse, Summary
from rankwise.runtime.interrupts import no_interrupted_fits
from rankwise.runtime.progress import Progress, track
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_int, check_option, restored_on_failure

LONG_SECONDS = 3.0  # of work that is announced on a terminal
LEAST_UNITS = 4  # groups, or folds of one list, for an estimate


class TrainedStack(NamedTuple):
    """A combination with its trained members.

    Attributes
    ----------
    stack : Stack
        The combination.
    weights : dict of float
        Weights of all evaluated members, by name.
    models : dict
        Trained models of members, by name; all that have a weight are trained.
    n_untrained : int
        Number of members that were left out because no time was left.
    """

    stack: Stack
    weights: dict[str, float]
    models: dict[str, Any]
    n_untrained: int


class AutoRanker(RankerMixin, BaseEstimator):
    """A ranker without settings: a stack of exact models, evaluated on held-out groups.

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
        Members to combine: "default" for the menu, names of its entries ("trees" and names such as
        "linear, standard, magnitude", listed by `members_`), and rankers of any kind, such as
        ``["default", lightgbm.LGBMRanker()]``. A ranker may be passed as (name, ranker). It needs
        `predict`, and `fit` with `groups`, `qid`, `group_id` or `group`, or none of them. Rankers
        without a hold-out task are refitted for five folds of groups.
    combine : {"stack", "mean", "best"}, default="stack"
        Combination: weights from held-out data, the mean of the four best, or the best alone.
    scoring : str, Metric or function, optional
        Metric that selects. By default ndcg@10 if there are groups and the scores are grades
        (integers from 0 to 31), else disagreement; see `scoring_`.
    n_resamples : int, default=30
        Number of bootstrap samples of the groups for the out-of-bag estimate: members are selected,
        weighted and combined on the groups of a sample, and evaluated on the other groups. No model
        is refitted. 0 omits the estimate.
    time_limit : float, optional
        Seconds after which no further member, and no estimate, is started. The simplest member is
        always trained.
    random_state : int, RandomState or None, default=0
        Seed of the choice of basis items.
    verbose : int, default=0
        1 prints the columns, the members and an estimate of the run time to standard error.

    Attributes
    ----------
    members_ : list of dict
        A row for each member: "name", "alpha", "score" (held-out, with "low" and "high", a 95%
        interval over groups), "weight", "seconds", and "note" (the reason if it was left out, or
        the number of trees).
    best_member_ : str
        Name of the member with the best held-out score.
    held_out_scores_ : ndarray of shape (n_items, n_evaluated)
        Held-out scores of the members with a score, in the order of `members_`. They are comparable
        inside a group only.
    combine_ : {"stack", "mean", "best"}
        The combination in use.
    score_ : float
        The metric of the combination on held-out data; the weights for a group are computed without
        it.
    estimate_ : dict
        "score", "low" and "high" (95%) on groups that were used neither for selection nor for
        weights: the interval of the mean over all groups of this kind. "low_new" and "high_new"
        (95%) contain the mean over "n_new" further groups, as many as in training. "optimism", the
        bias of `score_`. Empty without ``n_resamples``, or with fewer than four groups; one list
        has no interval for further groups.
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
        time: ArrayLike | None = None,
    ) -> Self:
        """Evaluate the members, combine them, and train them on all data.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,), target of `make_target`, or a preference graph
            Scores; larger is better.
        groups : array-like of shape (n_items,), optional
            Group labels: only items of one group are compared.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items, 0 or larger; the weight of a pair is the product of those of its
            items.
        time : array-like of shape (n_items,), optional
            When each item was observed: dates or numbers. The estimate is then that of a model of
            earlier groups on the last sixth of the groups, which doubles the time.

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
        check_same_index(X=X, y=y, groups=groups)
        X = check_groups(self, X, y, groups)
        self.notes_: list[str] = []
        self.estimate_: dict[str, float] = {}
        values_of_later = None
        if time is not None:
            values_of_later = self._evaluate_later_groups(X, y, groups, sample_weight, time)

        budget = TimeBudget(self.time_limit, start)
        views, trees = self._prepare_columns(X, y, groups, sample_weight)
        data = check_data(views, y, groups, sample_weight, trees)
        members = requested_members(self.members, data)
        rng = np.random.default_rng(seed)
        first_member = next(iter(members.values()))
        hold_out = plan_hold_out(first_member, data, self.scoring, budget, rng)
        self.scoring_ = hold_out.metric.name
        hold_out.evaluate(np.zeros(hold_out.graph.n_items))  # raise errors of the metric now

        plan = EvaluationPlan(hold_out, seed, budget, self.time_limit)
        evaluated = self._evaluate(members, plan)
        stacking = Stacking(list(evaluated.values()), hold_out, self.combine)
        trained = self._train(evaluated, stacking.combine(), hold_out, budget)
        self._store(trained, evaluated, hold_out)

        if values_of_later is not None:
            where = "the latest groups, by a model of earlier ones"
            self._store_estimate(values_of_later, where, hold_out)
        elif n_resamples and budget.left() <= 0:
            self.notes_.append("no time was left for the honest estimate")
        elif n_resamples and stacking.n_units >= LEAST_UNITS:
            self._estimate_out_of_bag(stacking.out_of_bag(n_resamples, rng), hold_out)
        return self

    @single_threaded
    def predict(self, X: Any, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Score items; larger is better, and only differences inside a group have a meaning.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels, whatever they are. None is one list, with a warning if it is longer than
            three times the longest group that `fit` had.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores.
        """
        check_is_fitted(self)
        return self._score(self._transform(without_group_columns(self, X)), groups)

    def smoke_test(self) -> Array:
        """Scores of made-up rows of the training table, to check a model file."""
        if self.table_ is None:
            return np.zeros(0)
        views = views_of_table(self.table_.probe(), self.kept_values_)
        return self._score(views, [0, 0])

    def _score(self, views: dict[str, Any], groups: Any) -> Array:
        if groups is None and self.needs_groups_:
            n_rows = views["dense"].shape[0]
            warn_of_long_list(self, n_rows)
            groups = np.zeros(n_rows, dtype=np.intp)
        elif not self.needs_groups_:
            groups = None
        columns = self._member_scores(views, groups)
        if len(self.estimators_) == 1:
            scores = columns[:, 0]
        else:
            scores = row_products(
                np.asarray(self.scaler_.transform(columns, groups)), self.weights_
            )
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
        columns = []
        if self.table_ is not None:
            columns = [
                ColumnUse(column.name, column.words, column.why) for column in self.table_.facts_
            ]
        return Summary(
            model=type(self).__name__,
            metric=self.scoring_,
            held_out_score=self.score_,
            combine=self.combine_,
            best_member=self.best_member_,
            estimate=self.estimate_,
            members=self.members_,
            columns=columns,
            notes=list(self.notes_),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _evaluate_later_groups(
        self, X: Any, y: Any, groups: Any, sample_weight: Any, time: Any
    ) -> Array:
        """The metric in each of the latest groups, by a model of all earlier ones."""
        target = read_y(y, groups, sample_weight, X=X)
        if isinstance(target, Preferences):
            raise ValueError(
                "time says when items were seen, but y is a preference graph; pass scores and "
                "groups."
            )
        *earlier_blocks, later_rows = time_series_blocks(time, target.groups)
        earlier_rows = np.sort(np.concatenate(earlier_blocks))
        earlier = target.take(earlier_rows)
        later = target.take(later_rows)
        time_limit = None if self.time_limit is None else self.time_limit / 2
        model = clone(self).set_params(n_resamples=0, time_limit=time_limit)
        model.fit(take_rows(X, earlier_rows), earlier.y, earlier.item_labels, earlier.weight)
        scores = model.predict(take_rows(X, later_rows), groups=later.item_labels)
        targets = GroupedTargets(later.y, later.groups, later.weight)
        metric = get_metric(self.scoring or model.scoring_)
        values: Array = metric.by_group(Ranking(targets, scores)).values
        return values

    def _prepare_columns(
        self, X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> tuple[dict[str, Any], TreeFeatures]:
        """Decide how columns are used; the views of the items, and the features of trees."""
        self.table_: TableVectorizer | None = None
        self.kept_values_: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        is_frame = narwhals_frame(X) is not None
        if not is_frame:
            X = validate_X(self, X, accept_sparse="csr", ensure_all_finite="allow-nan")
        if is_frame or (not sp.issparse(X) and np.isnan(np.sum(X))):
            table = prepare_table(X, lambda: read_y(y, groups, sample_weight, X=X))
            self.notes_ += [
                f"column {name} has the name of an identifier, but its numbers tell the order of "
                "held-out items: it is used as a number"
                for name in table.predictive_ids
            ]
            if not table.has_plain_numbers:
                self.table_ = table.vectorizer
        if self.table_ is None:
            return views_of_matrix(validate_X(self, X, accept_sparse="csr")), TreeFeatures()
        schema = vars(self.table_)
        self.n_features_in_ = schema["n_features_in_"]
        if "feature_names_in_" in schema:
            self.feature_names_in_ = schema["feature_names_in_"]
        features = self.table_.views(X)
        self.kept_values_ = frequent_values(features)
        trees = TreeFeatures(features.n_codes, features.sizes)
        return views_of_table(features, self.kept_values_), trees

    def _transform(self, X: Any) -> dict[str, Any]:
        """The views of new items."""
        if self.table_ is not None:
            return views_of_table(self.table_.views(X), self.kept_values_)
        return views_of_matrix(validate_X(self, X, accept_sparse="csr", reset=False))

    def _evaluate(
        self, members: dict[str, Any], plan: EvaluationPlan
    ) -> dict[str, EvaluatedMember]:
        """Evaluate the members, and start the table of them."""
        self._announce(members, plan.hold_out)
        progress = Progress("AutoRanker", len(members), False if self.verbose else None)
        n_done = 0

        def report(result: Evaluated | Skipped) -> None:
            nonlocal n_done
            n_done += 1
            progress.update(n_done)
            if self.verbose:
                print_result(result, self.scoring_)

        results = evaluate_members(members, plan, report)
        progress.close()
        self.members_: list[dict[str, Any]] = [table_row(result) for result in results]
        evaluated = {}
        for result in results:
            if isinstance(result, Evaluated):
                evaluated[result.name] = result.member
            elif result.is_foreign_error:
                warn_user(f"the member {result.name!r} is left out: {result.reason}.")
        if not evaluated:
            reason = next(result.reason for result in results if isinstance(result, Skipped))
            raise ValueError(f"no member could be held out: {reason}.")
        return evaluated

    def _announce(self, members: dict[str, Any], hold_out: HoldOut) -> None:
        """Report the use of the columns, and if the work is long, the members and the time."""
        columns = [] if self.table_ is None else self.table_.facts_
        for column in columns:
            if not column.is_used:
                self.notes_.append(f"column {column.name} is dropped: {column.why}")
        seconds = sum_of_expected_seconds(members, hold_out)
        is_long = sys.stderr.isatty() and seconds > LONG_SECONDS
        if not self.verbose and not is_long:
            return
        for column in columns:
            why = f" ({column.why})" if column.why else ""
            sys.stderr.write(f"AutoRanker: column {column.name}: {column.words}{why}\n")
        limit = "" if self.time_limit is None else f", at most {self.time_limit:g} s"
        sys.stderr.write(
            f"AutoRanker: {len(members)} members on {hold_out.every.graph.n_items:,} items, about "
            f"{seconds:.0f} s of one core{limit}\n"
        )

    def _train(
        self,
        evaluated: dict[str, EvaluatedMember],
        stack: Stack,
        hold_out: HoldOut,
        budget: TimeBudget,
    ) -> TrainedStack:
        """Train the members with a weight, in the order of its size.

        If there is no time for some of them, the trained members are combined again.
        """
        weights = dict(zip(evaluated, stack.weights.tolist(), strict=True))
        weighted = [name for name, weight in weights.items() if weight]
        weighted.sort(key=lambda name: -abs(weights[name]))
        models: dict[str, Any] = {}
        budget.release()
        for name in track(weighted, "AutoRanker trains"):
            if not models or budget.left() > 0:
                models[name] = evaluated[name].train()
        n_untrained = len(weighted) - len(models)
        if n_untrained:
            members = [evaluated[name] for name in models]
            stack = Stacking(members, hold_out, self.combine).combine()
            weights = dict.fromkeys(evaluated, 0.0)
            weights.update(zip(models, stack.weights.tolist(), strict=True))
        return TrainedStack(stack, weights, models, n_untrained)

    def _store(
        self, trained: TrainedStack, evaluated: dict[str, EvaluatedMember], hold_out: HoldOut
    ) -> None:
        """Set the fitted attributes of the combination, and fill the table of members."""
        in_use = [name for name, weight in trained.weights.items() if weight]
        self.estimators_ = [trained.models[name] for name in in_use]
        self.views_ = [evaluated[name].view for name in in_use]
        self.weights_ = np.array([trained.weights[name] for name in in_use])
        self.combine_ = trained.stack.how
        self.score_ = float(nanmean(trained.stack.by_unit))
        gains = [hold_out.sign * float(nanmean(member.by_unit)) for member in evaluated.values()]
        self.best_member_ = list(evaluated)[int(np.argmax(gains))]
        self.held_out_scores_ = np.stack([member.scores for member in evaluated.values()], axis=1)
        for row in self.members_:
            if row["name"] in trained.weights:
                row["weight"] = trained.weights[row["name"]]
        if trained.n_untrained:
            self.notes_.append(f"no time was left to train {trained.n_untrained} of the members")
        if trained.stack.note:
            self.notes_.append(trained.stack.note)
        n_all = hold_out.every.graph.n_items
        n_evaluated = hold_out.graph.n_items
        if n_evaluated < n_all:
            self.notes_.append(
                f"members were chosen on {n_evaluated:,} of {n_all:,} items, and trained on all"
            )
        self._fit_scaler(hold_out)

    def _fit_scaler(self, hold_out: HoldOut) -> None:
        """Fit the scaler of the scores of the members; inside groups it learns nothing."""
        self.needs_groups_ = hold_out.data.groups is not None
        if self.needs_groups_:
            scores = np.zeros((2, len(self.estimators_)))
            self.scaler_ = GroupScaler().fit(scores, groups=[0, 0])
            return
        scores = np.zeros((2, len(self.estimators_)))
        if len(self.estimators_) > 1:
            scores = self._member_scores(hold_out.data.views, None)
        self.scaler_ = GroupScaler().fit(scores)

    def _member_scores(self, views: dict[str, Any], groups: Any) -> Array:
        """Scores of each member in use, shape (n_items, n_in_use)."""
        scores = [
            predict_items(member, views[view], groups)
            for member, view in zip(self.estimators_, self.views_, strict=True)
        ]
        return np.stack(scores, axis=1).astype(np.float64)

    def _store_estimate(self, by_unit: Array, where: str, hold_out: HoldOut) -> None:
        """Set the estimate from units that were used neither for selection nor for weights."""
        self.estimate_ = mean_interval(by_unit)
        score, low, high = (self.estimate_[key] for key in ("score", "low", "high"))
        interval = f"{DEFAULT_CONFIDENCE:.0%} from {low:.4f} to {high:.4f}"
        self.notes_.append(f"{self.scoring_} {score:.4f} ({interval}) on {where}")
        n_groups = hold_out.every.graph.n_groups
        if n_groups == 1:
            return
        low_new, high_new = new_mean_interval(by_unit, n_groups)
        self.estimate_ |= {"n_new": n_groups, "low_new": low_new, "high_new": high_new}
        self.notes_.append(
            f"the mean {self.scoring_} of {n_groups:,} further groups lies between {low_new:.4f} "
            f"and {high_new:.4f} with a probability of {DEFAULT_CONFIDENCE:.0%}"
        )

    def _estimate_out_of_bag(self, by_unit: Array, hold_out: HoldOut) -> None:
        """Set the out-of-bag estimate, and the bias of the score on all units."""
        units = "groups" if hold_out.graph.n_groups > 1 else "folds of the list"
        where = f"{units} that were used neither for selection nor for weights"
        self._store_estimate(by_unit, where, hold_out)
        optimism = hold_out.sign * (self.score_ - self.estimate_["score"])
        self.estimate_["optimism"] = optimism
        self.notes_.append(
            f"on the {units} used for selection and weights {self.scoring_} is {self.score_:.4f}, "
            f"optimistic by {optimism:+.4f}"
        )


def check_time_limit(limit: Any) -> None:
    """Check that a time limit is None, or a number of seconds."""
    if limit is None:
        return
    is_number = isinstance(limit, numbers.Real) and not isinstance(limit, bool)
    if not is_number or not limit >= 0:
        raise ValueError(f"time_limit={limit!r}; expected seconds, 0 or more, or None.")


def seed_from(random_state: Any) -> int:
    """An integer seed."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
