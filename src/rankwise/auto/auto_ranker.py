"""AutoRanker: several exact rankers, judged on held-out groups and combined; nothing to set."""

from __future__ import annotations

import numbers
import sys
from textwrap import wrap
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.auto.boosted_trees import TreeFeatures, is_predictive
from rankwise.auto.members import (
    LEAST_FOR_TREES,
    CandidateMember,
    EvaluatedMember,
    evaluate_member,
    expected_seconds,
    first_seconds,
    may_go_together,
    requested_members,
)
from rankwise.auto.stacking import Stack, Stacking
from rankwise.auto.time_budget import TimeBudget
from rankwise.auto.training_data import HoldOut, TrainingData, check_data
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.errors import warn_user
from rankwise.fitted_schema import FittedSchema, Floats, Ints, ListOf, Model, Values
from rankwise.formatting import TextTable
from rankwise.frames import check_same_index, narwhals_frame, take_rows
from rankwise.graphs import ScoreGraph
from rankwise.graphs.supervision import Preferences, TrainingTarget, read_y
from rankwise.kernels.stable_products import row_products
from rankwise.metrics import get_metric
from rankwise.metrics.by_group import mean_interval, nanmean
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
from rankwise.preprocessing.table_vectorizer import TableFeatures, TableVectorizer
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import RankerMixin
from rankwise.runtime.interrupts import no_interrupted_fits
from rankwise.runtime.progress import Progress, track
from rankwise.runtime.threads import LARGE_STEP, map_in_threads, single_threaded
from rankwise.validation import check_int, check_option, restored_on_failure

MANY = 50_000  # items from which members are chosen on a sample
MOST_JUDGED = 20_000  # items of that sample
LEAST_SHARE = 5  # it is at most one of so many items
LEAST_JUDGED = 500  # items of a sample that is small because of a time limit
FIRST_SHARE = 0.3  # of a time limit, for judging and training the first member
MOST_WIDE = 1000  # values and words that exact members see, the most frequent ones
TREE_SHARE = 0.5  # of the time that is left
LONG = 3.0  # seconds of work that are announced on a terminal
LEAST_UNITS = 4  # groups, or folds of one list, for an estimate


class AutoRanker(RankerMixin, BaseEstimator):
    """A ranker without settings: a stack of exact models, each judged on held-out groups.

    Use it first if you want the best order and need not read the model.

    The members differ in scaling (of all items, or inside groups), in expansion (linear, hinges,
    kernel values to a basis of items) and in cost. Each gets its alpha by exact leave-group-out.
    With 500 items or more, boosted trees join them, held out by folds of groups.
    Their held-out scores, centered and scaled in each group, are the columns of H, and
    ``RankRLS(cost="sign")`` on H, with alpha by leave-group-out, gives their weights. If the best
    member is better on held-out data by more than three standard errors, it takes the place of the
    stack.

    Parameters
    ----------
    members : "default" or list
        What is combined: "default" for the menu, names of its entries, and rankers of any kind,
        such as ``["default", lightgbm.LGBMRanker()]``. A ranker may be given as (name, ranker). It
        needs `fit` with `groups`, `qid`, `group_id` or `group`, or none of them, and `predict`.
        Those without a hold-out task are trained again for five folds of groups.
    combine : {"stack", "mean", "best"}
        How: weights from held-out data, the mean of the four best, or the best alone.
    scoring : str, Metric or function, optional
        The metric that chooses. By default ndcg@10 if there are groups and the scores are grades
        (whole numbers from 0 to 31), else disagreement; `scoring_` tells.
    n_resamples : int
        For the honest estimate groups are drawn so many times, as many as there are, with
        replacement. Members are chosen, weighted and combined on those that were drawn, and judged
        on the others. No model is trained again. 0 leaves the estimate out.
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
        A row for each member: "name", "alpha", "score" (held-out, with "low" and "high", a 95%
        interval over groups), "weight", "seconds", and "note" (why it was left out, or the number
        of trees).
    best_member_ : str
        Name of the member with the best held-out score.
    held_out_scores_ : ndarray of shape (n_items, n_judged)
        Held-out scores of the members with a score, in the order of `members_`. Compare them in
        one group only.
    combine_ : {"stack", "mean", "best"}
        What is in use.
    score_ : float
        The metric of the combination on held-out data, each group held out of its weights.
    estimate_ : dict
        "score", "low" and "high" (95%) on groups that choice and weights had not seen; "optimism",
        by how much `score_` flatters. Empty without ``n_resamples``, or with fewer than four
        groups.
    scoring_ : str
        The metric.
    notes_ : list of str
        What there is to say about the choice.
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
        time : array-like of shape (n_items,), optional
            When each item was seen: dates or numbers. The honest estimate is then that of a model
            of earlier groups on the last sixth of the groups, which takes as long again.

        Returns
        -------
        AutoRanker
            The fitted estimator.
        """
        start = perf_counter()
        check_option("combine", self.combine, ("stack", "mean", "best"))
        n_resamples = check_int("n_resamples", self.n_resamples, "0 for no estimate")
        limit = self.time_limit
        is_number = isinstance(limit, numbers.Real) and not isinstance(limit, bool)
        if limit is not None and not (is_number and limit >= 0):
            raise ValueError(f"time_limit={limit!r}; expected seconds, 0 or more, or None.")
        seed = self.random_state
        if not isinstance(seed, numbers.Integral):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        check_same_index(X=X, y=y, groups=groups)
        X = check_groups(self, X, y, groups)
        later = None if time is None else self._judge_later(X, y, groups, sample_weight, time)
        clock = TimeBudget(limit, start)
        self.notes_: list[str] = []
        self.estimate_: dict[str, float] = {}
        views, trees = self._see_first(X, y, groups, sample_weight)
        every = check_data(views, y, groups, sample_weight, trees)
        rng = np.random.default_rng(int(seed))
        asked = requested_members(self.members, every)
        held_out = self._plan(asked, every, clock, rng)
        held_out.judge(np.zeros(held_out.graph.n_items))  # a metric that fails is to fail here
        self.scoring_ = held_out.metric.name
        judged = self._judge(asked, held_out, int(seed), clock)
        combiner = Stacking(list(judged.values()), held_out, self.combine)
        combination = combiner.combine()
        self._keep(judged, combination, held_out, clock)
        n_items, n_judged = every.graph.n_items, held_out.graph.n_items
        if n_judged < n_items:
            self.notes_.append(
                f"members were chosen on {n_judged:,} of {n_items:,} items, and trained on all"
            )
        if later is not None:
            self._estimate(later, "the latest groups, by a model of earlier ones")
        elif n_resamples and clock.left() <= 0:
            self.notes_.append("no time was left for the honest estimate")
        elif n_resamples and combiner.n_units >= LEAST_UNITS:
            units = "groups" if held_out.graph.n_groups > 1 else "folds of the list"
            by_unit = combiner.out_of_bag(n_resamples, rng)
            self._estimate(by_unit, f"{units} that choice and weights had not seen")
            optimism = held_out.sign * (self.score_ - self.estimate_["score"])
            self.estimate_["optimism"] = optimism
            self.notes_[-1] += (
                f"; on those that they had seen {self.score_:.4f}, so it is optimistic by "
                f"{optimism:+.4f}"
            )
        return self

    def _judge_later(self, X: Any, y: Any, groups: Any, sample_weight: Any, time: Any) -> Array:
        """The metric in each of the latest groups, by a model of all earlier ones."""
        target = read_y(y, groups, sample_weight, X=X)
        if isinstance(target, Preferences):
            raise ValueError(
                "time says when items were seen, but y is a preference graph; pass scores and "
                "groups."
            )
        *earlier, new = time_series_blocks(time, target.groups)
        rows = np.sort(np.concatenate(earlier))
        old = target.take(rows)
        later = target.take(new)
        half = None if self.time_limit is None else self.time_limit / 2
        model = clone(self).set_params(n_resamples=0, time_limit=half)
        model.fit(take_rows(X, rows), old.y, old.item_labels, old.weight)
        scores = model.predict(take_rows(X, new), groups=later.item_labels)
        targets = GroupedTargets(later.y, later.groups, later.weight)
        metric = get_metric(self.scoring or model.scoring_)
        values: Array = metric.by_group(Ranking(targets, scores)).values
        return values

    def _see_first(
        self, X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> tuple[dict[str, Any], TreeFeatures]:
        """Decide what becomes of the columns; the items as members see them, and as trees do."""
        is_frame = narwhals_frame(X) is not None
        self.table_: TableVectorizer | None = None
        self.kept_values_: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        if not is_frame:
            X = validate_X(self, X, accept_sparse="csr", ensure_all_finite="allow-nan")
        if is_frame or (not sp.issparse(X) and np.isnan(np.sum(X))):
            columns = TableVectorizer().decide_columns(X)
            numbers = columns.numbered(X)
            if numbers:
                target = read_y(y, groups, sample_weight, X=X)
                columns = TableVectorizer(wanted=self._telling(numbers, target)).decide_columns(X)
            if not all(c.kind == "number" and not c.n_missing for c in columns.facts_):
                self.table_ = columns
        if self.table_ is None:
            return self._see(X, reset=True), TreeFeatures()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.table_, name):
                setattr(self, name, getattr(self.table_, name))
        views = self.table_.views(X)
        counts = np.where(views.is_wide, views.sparse.count_nonzero(axis=0), 0)
        frequent = np.argsort(-counts, kind="stable")[: min(MOST_WIDE, int(views.is_wide.sum()))]
        self.kept_values_ = np.sort(frequent)
        trees = TreeFeatures(views.n_codes, views.sizes)
        return self._joined(views), trees

    def _telling(self, numbers: dict[str, Array], target: TrainingTarget) -> list[str]:
        """The columns with names of identifiers whose numbers order items that are held out."""
        if isinstance(target, Preferences):
            return []
        if target.y.ndim > 1 or len(target.y) < LEAST_FOR_TREES:
            return []
        rows = np.arange(0, len(target.y), 1 + len(target.y) // MOST_JUDGED)
        graph = ScoreGraph(target.take(rows))
        telling = [name for name, values in numbers.items() if is_predictive(values[rows], graph)]
        self.notes_ += [
            f"column {name} has the name of an identifier, but its numbers tell the order of "
            "held-out items: it is used as a number"
            for name in telling
        ]
        return telling

    def _see(self, X: Any, *, reset: bool = False) -> dict[str, Any]:
        """The items as members see them."""
        if self.table_ is not None:
            return self._joined(self.table_.views(X))
        X = validate_X(self, X, accept_sparse="csr", reset=reset)
        return {"dense": X, "wide": X} if sp.issparse(X) else {"dense": X, "wide": X, "trees": X}

    def _joined(self, views: TableFeatures) -> dict[str, Any]:
        """Dense columns beside the frequent values and words; cells beside all of them."""
        dense, cells = views.dense, views.cells
        wide = dense
        if len(self.kept_values_):
            kept = views.sparse[:, self.kept_values_]
            wide = sp.hstack([sp.csr_array(dense), kept], format="csr")
        if views.sparse.shape[1]:
            cells = sp.hstack([sp.csr_array(cells), views.sparse], format="csr")
        return {"dense": dense, "wide": wide, "trees": cells}

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
        return self._score(self._see(without_group_columns(self, X)), groups)

    def probe(self) -> Array:
        """Scores of made-up rows of the table that it was trained on; for checks of model files."""
        if self.table_ is None:
            return np.zeros(0)
        return self._score(self._joined(self.table_.probe()), [0, 0])

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

    def summary(self) -> str:
        """The held-out score, the members, and what became of the columns, 80 characters wide.

        Returns
        -------
        str
            Lines of text.
        """
        check_is_fitted(self)
        known = self.estimate_ or {"score": self.score_}
        first = f"{self.scoring_} {known['score']:.4f} on held-out data"
        if "low" in known:
            first += f" ({DEFAULT_CONFIDENCE:.0%} from {known['low']:.4f} to {known['high']:.4f})"
        rows = []
        for row in self.members_:
            numbers = ["", ""]
            if "score" in row:
                numbers = [f"{row['score']:.4f}", f"{row['weight']:+.3f}"]
            name = f"{row['name']} ({row['note']})" if row["note"] else row["name"]
            rows.append([name, *numbers, f"{row['seconds']:.1f}"])
        lines = [
            first,
            "",
            *TextTable(["member", self.scoring_, "weight", "seconds"], rows).lines(80),
        ]
        if self.table_ is not None:
            header = ["column", "used as", "because"]
            facts = [[c.name, c.words, c.why] for c in self.table_.facts_]
            lines += ["", *TextTable(header, facts, names=(0, 1, 2)).lines(80)]
        return "\n".join([*lines, "", *(line for note in self.notes_ for line in wrap(note, 80))])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _member_scores(self, views: dict[str, Any], groups: Any) -> Array:
        pairs = zip(self.estimators_, self.views_, strict=True)
        columns = [predict_items(member, views[name], groups) for member, name in pairs]
        return np.stack(columns, axis=1).astype(np.float64)

    def _plan(
        self,
        asked: dict[str, Any],
        every: TrainingData,
        clock: TimeBudget,
        rng: np.random.Generator,
    ) -> HoldOut:
        """What is held out: all items, or a sample of so many that the first member has time."""
        n_items, first = every.graph.n_items, next(iter(asked.values()))
        most = n_items if n_items < MANY else min(MOST_JUDGED, n_items // LEAST_SHARE)
        while True:
            rows = every.sample(most, rng) if most < n_items else None
            held_out = HoldOut.of(every, self.scoring, rows)
            most = min(most, held_out.graph.n_items) // 2
            is_paid = clock.affords(sum(expected_seconds(first, held_out)), FIRST_SHARE)
            if is_paid or most < LEAST_JUDGED:
                return held_out

    def _judge(
        self, asked: dict[str, Any], held_out: HoldOut, seed: int, clock: TimeBudget
    ) -> dict[str, EvaluatedMember]:
        """Hold out the members, side by side where cores are idle, and begin the table of them.

        With a time limit the first is alone: it tells how slow the machine is.
        """
        names, judged = list(asked), dict[str, EvaluatedMember]()
        self.members_: list[dict[str, Any]] = []
        line = Progress("AutoRanker", len(asked), False if self.verbose else None)
        seconds = self._announce(asked, held_out)

        def judge_some(some: list[str]) -> None:
            for name in some:
                line.update(len(self.members_))
                share = 1.0 if name == names[-1] else TREE_SHARE
                member = self._judge_one(name, asked[name], held_out, seed, clock, share)
                if member is not None:
                    judged[name] = member

        n_alone = 0 if self.time_limit is None else 1
        judge_some(names[:n_alone])
        work = LARGE_STEP * seconds if may_go_together(asked, held_out) else 0.0
        map_in_threads(judge_some, names[n_alone:], work, one_by_one=True)
        line.close()
        self.members_.sort(key=lambda row: names.index(row["name"]))
        if not judged:
            why = self.members_[0]["note"].removeprefix("left out: ")
            raise ValueError(f"no member could be held out: {why}.")
        return {name: judged[name] for name in names if name in judged}

    def _judge_one(
        self, name: str, what: Any, held_out: HoldOut, seed: int, clock: TimeBudget, share: float
    ) -> EvaluatedMember | None:
        """Judge a member and add its row to the table; None if it fails or there is no time."""
        begun, member = perf_counter(), None
        row: dict[str, Any] = {"name": name, "note": ""}
        expected, training = expected_seconds(what, held_out)
        is_trees = isinstance(what, CandidateMember) and what.expansion == "trees"
        least, share = (first_seconds(held_out), share) if is_trees else (expected + training, 1.0)
        seconds, of_training = share * clock.left(), training / (expected + training)
        if self.members_ and not clock.affords(least, share):
            row["note"] = f"left out: the time limit of {self.time_limit:g} s was over"
        else:
            clock.reserved[name] = of_training * min(seconds, clock.pace * (expected + training))
            try:
                member = evaluate_member(what, held_out, seed, seconds, clock.pace)
                row.update(alpha=member.alpha, **mean_interval(member.by_unit))
                row["note"] = f"{member.n_trees} trees" if member.n_trees else ""
            except Exception as error:  # other people's models raise what they like
                row["note"] = f"left out: {str(error).rstrip('.')}"
                if not isinstance(what, CandidateMember):
                    warn_user(f"the member {name!r} is {row['note']}.")
        row["seconds"] = perf_counter() - begun
        clock.reserved[name] = row["seconds"] * training / expected if member else 0.0
        if member and not is_trees:
            clock.pace = max(row["seconds"] / expected, clock.pace / 2)
        self.members_.append(row)
        if self.verbose:
            score = f"{self.scoring_} {row['score']:.4f}" if "score" in row else row["note"]
            sys.stderr.write(f"AutoRanker: {name}: {score}, {row['seconds']:.1f} s\n")
        return member

    def _announce(self, asked: dict[str, Any], held_out: HoldOut) -> float:
        """Say what became of the columns, what will be tried, and how long one core may take."""
        facts = [] if self.table_ is None else self.table_.facts_
        left_out = [c for c in facts if c.kind == "left out"]
        self.notes_ += [f"column {c.name} is left out: {c.why}" for c in left_out]
        seconds = sum(sum(expected_seconds(what, held_out)) for what in asked.values())
        if not (self.verbose or (sys.stderr.isatty() and seconds > LONG)):
            return seconds
        for column in facts:
            why = f" ({column.why})" if column.why else ""
            sys.stderr.write(f"AutoRanker: column {column.name}: {column.words}{why}\n")
        n_items = held_out.every.graph.n_items
        limit = "" if self.time_limit is None else f", at most {self.time_limit:g} s"
        plan = (
            f"{len(asked)} members on {n_items:,} items, about {seconds:.0f} s of one core{limit}"
        )
        sys.stderr.write(f"AutoRanker: {plan}\n")
        return seconds

    def _keep(
        self,
        judged: dict[str, EvaluatedMember],
        combination: Stack,
        held_out: HoldOut,
        clock: TimeBudget,
    ) -> None:
        """Train the members that count, the heaviest first; keep them, and fill the table.

        Those that there is no time for are left out, and the others are combined anew.
        """
        weights = dict(zip(judged, combination.weights.tolist(), strict=True))
        in_use = sorted((name for name in weights if weights[name]), key=lambda n: -abs(weights[n]))
        trained: dict[str, Any] = {}
        clock.reserved.clear()
        for name in track(in_use, "AutoRanker trains"):
            if not trained or clock.left() > 0:
                trained[name] = judged[name].train()
        if len(trained) < len(in_use):
            combiner = Stacking([judged[name] for name in trained], held_out, self.combine)
            combination = combiner.combine()
            new = zip(trained, combination.weights.tolist(), strict=True)
            weights = dict.fromkeys(judged, 0.0) | dict(new)
            n_lost = len(in_use) - len(trained)
            self.notes_.append(f"no time was left to train {n_lost} of the members")
        in_use = [name for name, weight in weights.items() if weight]
        self.estimators_ = [trained[name] for name in in_use]
        self.views_ = [judged[name].view for name in in_use]
        self.weights_ = np.array([weights[name] for name in in_use])
        self.combine_ = combination.how
        gain = [held_out.sign * float(nanmean(m.by_unit)) for m in judged.values()]
        self.best_member_ = list(judged)[int(np.argmax(gain))]
        self.score_ = float(nanmean(combination.by_unit))
        self.held_out_scores_ = np.stack([m.held for m in judged.values()], axis=1)
        self.notes_ += [combination.note] * bool(combination.note)
        self.needs_groups_ = held_out.data.groups is not None
        scores = np.zeros((2, len(in_use)))
        if not self.needs_groups_ and len(in_use) > 1:  # in groups nothing is to be learned
            scores = self._member_scores(held_out.data.views, None)
        self.scaler_ = GroupScaler().fit(scores, groups=[0, 0] if self.needs_groups_ else None)
        for row in self.members_:
            if row["name"] in weights:
                row["weight"] = weights[row["name"]]

    def _estimate(self, by_unit: Array, where: str) -> None:
        """Say how good the combination is where it was neither chosen nor weighted."""
        self.estimate_ = mean_interval(by_unit)
        low, high = self.estimate_["low"], self.estimate_["high"]
        interval = f"{DEFAULT_CONFIDENCE:.0%} from {low:.4f} to {high:.4f}"
        score = self.estimate_["score"]
        self.notes_.append(f"{self.scoring_} {score:.4f} ({interval}) on {where}")
