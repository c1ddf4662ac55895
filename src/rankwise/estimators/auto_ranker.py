"""AutoRanker: several exact rankers, judged on held-out groups and combined; nothing to set."""

from __future__ import annotations

import numbers
import sys
import time
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.errors import warn_user
from rankwise.estimators.auto_combine import Combination, combine_members
from rankwise.estimators.auto_estimate import estimate_folds, held_out_once_more, interval
from rankwise.estimators.auto_hold_out import HeldOutEdges, Units, is_worse, make_units
from rankwise.estimators.auto_members import (
    Member,
    Problem,
    asked_members,
    judge_estimator,
    judge_recipe,
    menu_of,
)
from rankwise.estimators.auto_menu import WIDE, Features, Recipe, as_pipeline, check_seed
from rankwise.estimators.auto_problem import check_problem, default_scoring
from rankwise.estimators.auto_trees import judge_trees
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.checks import check_rows
from rankwise.estimators.group_scaler import GroupScaler
from rankwise.estimators.rank_rls import RankRLS
from rankwise.frames import check_same_index
from rankwise.machine import Progress, calm
from rankwise.model_selection.group_routing import predict_items
from rankwise.model_selection.measures import (
    Measure,
    check_scoring,
    mean_defined,
)
from rankwise.model_selection.nested_hold_out import NestedFolds
from rankwise.options import check_option
from rankwise.real_numbers import as_whole
from rankwise.rows import row_products

HOPELESS = 3.0  # standard errors: a scaling whose linear model is so much worse is not expanded


class AutoRanker(RankerMixin, BaseEstimator):
    """A ranker without settings: a stack of exact models, each judged on held-out groups.

    The members differ in scaling (of all items, or inside groups), in expansion (linear, hinges,
    kernel values to a basis of items) and in cost. Each gets its alpha by exact leave-group-out.
    With 500 items or more, boosted trees join them, held out by folds of groups.
    Their held-out scores, centered and scaled in each group, are the columns of H, and
    ``RankRLS(cost="sign")`` on H, with alpha by leave-group-out, gives their weights. If the mean
    of the best members, or the best of them, is better on held-out data by more than a standard
    error, it takes the place of the stack.

    Parameters
    ----------
    members : "default" or list
        What is combined: "default" for the menu, names of its entries, and rankers of any kind,
        such as ``["default", lightgbm.LGBMRanker()]``. A ranker may be given as (name, ranker). It
        needs `fit` with `groups`, `qid`, `group_id` or `group`, or none of them, and `predict`.
        Those without a hold-out task are trained again for five folds of groups.
    combine : {"stack", "mean", "best"}
        How: weights from held-out data, the mean of the four best, or the best alone.
    scoring : str or Metric, optional
        The metric that chooses. By default ndcg@10 if there are groups and the scores are grades
        (whole numbers from 0 to 31), else disagreement; `scoring_` tells.
    estimate_folds : int
        Folds of groups for the honest estimate: all is done again without each of them. 0 leaves
        it out, which takes about half of the time.
    time_limit : float, optional
        Seconds after which no further member, and no estimate, is begun. The simplest member is
        always trained.
    random_state : int, RandomState or None
        Seed of the choice of basis items.
    verbose : int
        1 prints a line for each member to standard error.

    Attributes
    ----------
    members_ : list of dict
        A row for each member: "name", "alpha", "score" (held-out, with "low" and "high", a 95 %
        interval over groups), "weight", "seconds", and "note" (why it was left out, or the number
        of trees).
    best_member_ : str
        Name of the member with the best held-out score.
    held_out_scores_ : ndarray of shape (n_items, n_judged)
        Held-out scores of the members with a score, in the order of `members_`. Compare them in
        one group only. A row for each fold and item if edges were held out.
    combine_ : {"stack", "mean", "best"}
        What is in use.
    score_ : float
        The metric of the combination on held-out data, each group held out of its weights.
    estimate_ : dict
        "score", "low" and "high" with groups held out once more, from members and weights alike;
        "optimism", by how much `score_` flatters. Empty without ``estimate_folds``.
    scoring_ : str
        The metric.
    notes_ : list of str
        What there is to say about the choice.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    Examples
    --------
    >>> from rankwise import AutoRanker
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=30, noise=0.5, random_state=0)[:3]
    >>> model = AutoRanker(estimate_folds=0).fit(X, y, groups)
    >>> model.scoring_, len(model.members_), model.predict(X, groups).shape
    ('ndcg@10', 11, (600,))
    """

    __metadata_request__predict = {"groups": True}  # noqa: RUF012

    def __init__(
        self,
        members: Any = "default",
        *,
        combine: str = "stack",
        scoring: Any = None,
        estimate_folds: int = 3,
        time_limit: float | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.members = members
        self.combine = combine
        self.scoring = scoring
        self.estimate_folds = estimate_folds
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose

    @calm
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Judge the members, combine them, and train them on all data.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,), target of `make_target`, or a preference graph
            Scores; larger is better.
        groups : array-like of shape (n_items,), optional
            Group labels: only items of one group are compared.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items, 0 or larger; a pair weighs the product of its two.

        Returns
        -------
        AutoRanker
            The fitted estimator.
        """
        start = time.perf_counter()
        check_option("combine", self.combine, ("stack", "mean", "best"))
        n_folds = as_whole("estimate_folds", self.estimate_folds, "0 for no estimate")
        self._check_limit()
        seed = check_seed(self.random_state)
        check_same_index(X=X, y=y, groups=groups)
        X = check_rows(self, X, accept_sparse="csr")
        problem = check_problem(X, y, groups, sample_weight)
        metric = self._metric(problem)
        self.scoring_ = metric.name
        self.notes_: list[str] = []
        self.members_: list[dict[str, Any]] = []
        self.estimate_: dict[str, float] = {}
        is_wide = sp.issparse(X) and X.shape[1] > WIDE
        units = make_units(problem.graph, metric, one_at_a_time=not is_wide)
        is_joined = isinstance(units, HeldOutEdges)
        nested = None if is_joined else estimate_folds(problem.graph, n_folds)
        features = Features(problem.X, problem.groups, seed)
        judged = self._judge(problem, features, units, nested, start)
        if not judged:
            self._keep_simplest(problem, features)
            return self
        self._keep(judged, combine_members(judged, units, self.combine), units, problem)
        if nested is not None:
            self._estimate(problem, units, nested, judged)
        return self

    @calm
    def predict(self, X: Any, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Score items; larger is better, and only differences inside a group have a meaning.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels, whatever they are; needed if `fit` had some.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores.
        """
        check_is_fitted(self)
        X = check_rows(self, X, accept_sparse="csr", reset=False)
        if groups is None and self.needs_groups_:
            raise ValueError(
                "this AutoRanker was trained on groups and compares an item with the others of its "
                "group, so it needs the groups of new items, too: predict(X, groups=groups). If "
                "they are one list, pass groups=[0] * len(X)."
            )
        groups = groups if self.needs_groups_ else None
        scores = self._member_scores(X, groups)
        if len(self.estimators_) == 1:
            return scores[:, 0]
        return row_products(np.asarray(self.scaler_.transform(scores, groups)), self.weights_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _member_scores(self, X: Any, groups: Any) -> Array:
        columns = [predict_items(member, X, groups) for member in self.estimators_]
        return np.stack(columns, axis=1).astype(np.float64)

    def _metric(self, problem: Problem) -> Measure:
        given = default_scoring(problem) if self.scoring is None else self.scoring
        metric = check_scoring(given)
        if problem.graph.scores is None and metric.name not in ("disagreement", "concordance"):
            raise ValueError(
                f"scoring={metric.name!r} needs scores, but y is a graph of explicit preferences; "
                "use scoring='disagreement' or 'concordance'."
            )
        return metric

    def _judge(
        self,
        problem: Problem,
        features: Features,
        units: Units,
        nested: NestedFolds | None,
        start: float,
    ) -> list[Member]:
        asked = asked_members(self.members, problem)
        meter = Progress("AutoRanker", len(asked))
        judged: list[Member] = []
        for done, (name, what) in enumerate(asked):
            meter.update(done)
            begun = time.perf_counter()
            why = self._why_not(judged, what, units, start)
            if not why:
                try:
                    twice = None if self._is_late(start) else nested
                    if isinstance(what, Recipe):
                        judge = judge_trees if what.expansion == "trees" else judge_recipe
                        judged.append(judge(what, features, problem, units, twice))
                    else:
                        rival = max(judged, key=self._gain(units), default=None)
                        judged.append(judge_estimator(name, what, problem, units, rival, twice))
                except Exception as error:  # other people's models raise what they like
                    why = f"left out: {str(error).rstrip('.')}"
                    if not isinstance(what, Recipe) and "given up" not in why:
                        warn_user(f"the member {name!r} is {why}.")
            row = self._row(judged[-1]) if not why else {"name": name, "note": why}
            self.members_.append({"seconds": time.perf_counter() - begun, **row})
            self._say(self.members_[-1])
        meter.close()
        return judged

    def _gain(self, units: Units) -> Any:
        sign = 1.0 if units.metric.greater_is_better else -1.0
        return lambda member: sign * float(mean_defined(member.by_unit))

    def _why_not(self, judged: list[Member], what: Any, units: Units, start: float) -> str:
        """Why a member is not even begun; empty if it is."""
        if not judged:
            return ""
        if self._is_late(start):
            return f"left out: the time limit of {self.time_limit:g} s was over"
        linear = [member for member in judged if member.name.startswith("linear, ")]
        if linear and isinstance(what, Recipe) and what.expansion in ("hinges", "rbf"):
            plain = f"linear, {what.scaling},"
            kin = [member for member in linear if member.name.startswith(plain)]
            best = max(linear, key=self._gain(units))
            sign = 1.0 if units.metric.greater_is_better else -1.0
            if kin and all(is_worse(k.by_unit, best.by_unit, sign, HOPELESS) for k in kin):
                return f"given up: {kin[0].name!r} is far worse than {best.name!r}"
        return ""

    def _check_limit(self) -> None:
        limit = self.time_limit
        is_number = isinstance(limit, numbers.Real) and not isinstance(limit, bool)
        if limit is not None and not (is_number and limit >= 0):
            raise ValueError(f"time_limit={limit!r}; expected seconds, 0 or more, or None.")

    def _is_late(self, start: float) -> bool:
        limit = self.time_limit
        return limit is not None and time.perf_counter() - start > limit

    def _row(self, member: Member) -> dict[str, Any]:
        return {
            "name": member.name,
            "alpha": member.alpha,
            **interval(member.by_unit),
            "seconds": member.seconds,
            "note": f"{member.n_trees} trees" if member.n_trees else "",
        }

    def _keep(
        self, judged: list[Member], combination: Combination, units: Units, problem: Problem
    ) -> None:
        """Train the members that have a weight, and fill the table."""
        kept = np.flatnonzero(combination.weights)
        self.estimators_ = [judged[k].train() for k in kept]
        self.weights_ = combination.weights[kept]
        self.combine_ = combination.how
        self.best_member_ = max(judged, key=self._gain(units)).name
        self.score_ = float(mean_defined(combination.by_unit))
        self.held_out_scores_ = np.stack([member.held for member in judged], axis=1)
        self.notes_ += [combination.note] * bool(combination.note)
        self.needs_groups_ = problem.groups is not None
        self.scaler_ = GroupScaler()
        is_list = problem.groups is None and len(kept) > 1  # in groups nothing is to be learned
        scores = self._member_scores(problem.X, None) if is_list else np.zeros((2, len(kept)))
        self.scaler_.fit(scores, groups=[0, 0] if self.needs_groups_ else None)
        weights = dict(zip((member.name for member in judged), combination.weights, strict=True))
        for row in self.members_:
            if "score" in row:
                row["weight"] = float(weights[row["name"]])

    def _keep_simplest(self, problem: Problem, features: Features) -> None:
        """Nothing can be held out: the simplest member alone, with the alpha of RankRLS."""
        simplest = menu_of(problem)[0]
        steps, R = features.make(simplest)
        self.estimators_ = [as_pipeline(steps, RankRLS().fit(R, *problem.target))]
        self.weights_, self.combine_, self.best_member_ = np.ones(1), "best", simplest.name
        self.score_ = float("nan")
        self.held_out_scores_ = np.empty((problem.X.shape[0], 0))
        self.needs_groups_ = False
        why = self.members_[0]["note"].removeprefix("left out: ")
        self.notes_.append(f"no member could be held out ({why}): the simplest one is used alone")

    def _estimate(
        self, problem: Problem, units: Units, nested: NestedFolds, judged: list[Member]
    ) -> None:
        """Say how good the combination is with groups held out once more."""
        if any(member.again is None for member in judged):
            self.notes_.append("no time was left for the honest estimate")
            return
        try:
            scores = held_out_once_more(problem, units, nested, judged, self.combine)
        except ValueError as error:
            self.notes_.append(f"no honest estimate: {error}")
            return
        metric, what = units.metric, "items" if problem.groups is None else "groups"
        found = interval(scores)
        sign = 1.0 if metric.greater_is_better else -1.0
        self.estimate_ = {**found, "optimism": sign * (self.score_ - found["score"])}
        self.notes_.append(
            f"{metric.name} {found['score']:.4f} (95% from {found['low']:.4f} to "
            f"{found['high']:.4f}) with {what} held out once more; the second level said "
            f"{self.score_:.4f}, so it is optimistic by {self.estimate_['optimism']:+.4f}"
        )

    def _say(self, row: dict[str, Any]) -> None:
        if self.verbose:
            score = f"{self.scoring_} {row['score']:.4f}" if "score" in row else row["note"]
            sys.stderr.write(f"AutoRanker: {row['name']}: {score}, {row['seconds']:.1f} s\n")
