"""RankRLS and RankSVM on a cluster: the workers compute sums, the client solves."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypedDict

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

try:
    import dask
    import dask.array as da
    import dask.dataframe as dd
except ImportError as error:
    raise ImportError(
        "rankwise.distributed needs Dask with arrays and data frames: "
        "pip install 'dask[array,dataframe]' distributed."
    ) from error

from rankwise.arrays import AnyArray, Array, Matrix, MatrixLike
from rankwise.distributed.blocks import (
    Collection,
    GroupSizes,
    RowBlock,
    align,
    gather_groups,
    whole_rows,
)
from rankwise.distributed.totals import Totals, merge_in_tree
from rankwise.distributed.workers import check_workers
from rankwise.fitted_schema import fitted_schema
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.graphs.pair_graph import GROUP_WEIGHTS
from rankwise.kernels.basis import basis_map
from rankwise.kernels.feature_maps import ColumnFeatures, FeatureMap
from rankwise.losses import LossValue, PairwiseLoss, Plane
from rankwise.preprocessing.group_columns import refuse_other_keywords
from rankwise.rankers import pairwise_ranker, rank_rls, rank_svm
from rankwise.rankers.base import KernelModel
from rankwise.rankers.group_sample import GroupSample, sample_labels
from rankwise.rankers.out_of_core import SufficientStatistics
from rankwise.runtime.interrupts import keeps_interrupted_fits
from rankwise.solvers.pairwise_objective import (
    Objective,
    estimate_pair_covariance,
    make_objective,
)
from rankwise.validation import check_alphas, check_option, restored_on_failure

if TYPE_CHECKING:
    from dask.delayed import Delayed


class _SumOptions(TypedDict):
    """Parameters of `SufficientStatistics`."""

    cost: str
    ties: str
    group_weight: str
    beta: float


class WholeBlocks(NamedTuple):
    """Blocks of whole groups.

    Attributes
    ----------
    blocks : list of delayed RowBlock
        The rows.
    features : FeatureMap
        From rows of X to features.
    group_sizes : list of dict
        Number of rows of each label in each block before rows were moved.
    """

    blocks: list[Delayed]
    features: FeatureMap
    group_sizes: list[GroupSizes]

    def draw_labels(self, n_groups: int) -> frozenset[Hashable]:
        """Labels of a sample of the groups."""
        return frozenset(
            sample_labels((label for sizes in self.group_sizes for label in sizes), n_groups)
        )


class LazyModel(KernelModel):
    """A linear or basis model that is trained on Dask collections and scores them lazily."""

    basis: ArrayLike | None

    local_class: type[KernelModel]
    """The estimator of `rankwise` with the same parameters."""

    def predict(self, X: Collection | MatrixLike) -> Collection | AnyArray:
        """Score items, lazily if X is a Dask collection.

        Parameters
        ----------
        X : dask array or data frame, or X of the estimator of `rankwise`
            Items.

        Returns
        -------
        dask array (for an array), dask series or data frame (for a data frame), or ndarray
            Scores; larger is better.
        """
        if not dask.is_dask_collection(X):
            return super().predict(X)
        model = self.to_local()
        output_shape = self.output_shape_
        if isinstance(X, dd.DataFrame):
            meta: list[tuple[int, type]] | tuple[str, type] = ("score", np.float64)
            if output_shape:
                meta = [(output, np.float64) for output in range(output_shape[0])]
            return X.map_partitions(_score_frame, model, meta=meta)
        X = whole_rows(X)
        layout: dict[str, object] = {"drop_axis": 1}
        if output_shape:
            layout = {"chunks": (X.chunks[0], output_shape)}
        empty = np.empty((0,) * (1 + len(output_shape)))
        return da.map_blocks(_score_block, X, model=model, meta=empty, **layout)

    def to_local(self) -> Any:
        """Return the same model as an estimator of `rankwise`, without Dask.

        Returns
        -------
        estimator
            The model in memory.
        """
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        if self.basis is None:
            del parameters["basis"]
        model = self.local_class(**parameters)
        local_attributes = fitted_schema(self.local_class)
        fitted = {name: value for name, value in vars(self).items() if name in local_attributes}
        vars(model).update(fitted)
        return model

    def _whole_blocks(
        self,
        X: Collection,
        y: Collection | ArrayLike,
        groups: Collection | ArrayLike | None,
        *,
        may_cut_list: bool = False,
    ) -> WholeBlocks:
        """Move the rows of groups that are in several blocks, and store the names of columns."""
        check_workers()
        blocks, delayed_sizes = align(X, y, groups)
        features = self._make_feature_map(X)
        group_sizes = list(dask.compute(*delayed_sizes))
        if not any(group_sizes):
            raise ValueError("X has no rows, expected at least two items of one group.")
        self.n_split_groups_ = 0
        if groups is not None:
            blocks, self.n_split_groups_ = gather_groups(blocks, group_sizes)
        elif sum(map(bool, group_sizes)) > 1 and not may_cut_list:
            raise ValueError(
                "without groups all rows are one list, but they are in several blocks; pass "
                "groups, or one block (X.rechunk), or use RankRLS with cost='magnitude' and "
                "ties='include', which accepts a list in several blocks."
            )
        return WholeBlocks(blocks, features, group_sizes)

    def _make_feature_map(self, X: Collection) -> FeatureMap:
        """Store the names of the columns, and return the map from rows to features."""
        kernel = self.make_kernel()
        n_columns = X.shape[1]
        if kernel.is_precomputed or kernel.is_linear != (self.basis is None):
            raise ValueError(
                f"kernel={self.kernel!r} with basis={self.basis!r} needs all items at once; on "
                "Dask collections use kernel='linear' without a basis, or a kernel other than "
                "'precomputed' with basis points, for example basis=X[:500].compute()."
            )
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = int(n_columns)
        if isinstance(X, dd.DataFrame) and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        features: FeatureMap = ColumnFeatures(None, self.n_features_in_)
        if self.basis is not None:
            features = basis_map(kernel, np.empty((0, n_columns)), None, self.basis, None)
        self._store_features(features)
        return features


def _score_block(block: Matrix, model: KernelModel) -> AnyArray:
    if block.shape[0] == 0:
        return np.zeros((0, *model.output_shape_))
    return np.asarray(model.predict(block))


def _score_frame(frame: Any, model: Any) -> Any:
    import pandas as pd

    scores = _score_block(frame, model)
    if scores.ndim == 2:
        return pd.DataFrame(scores, index=frame.index)
    return pd.Series(scores, index=frame.index, name="score", dtype=np.float64)


@dataclass(eq=False, repr=False)
class RankRLS(LazyModel):
    """Regularized least-squares ranking on Dask collections.

    It minimizes the objective of `rankwise.RankRLS` and has the same coefficients up to rounding.
    Each worker computes ``Rᵀ L R`` and ``Rᵀ d`` ([RankRLS09] equation 28) of the groups in its
    blocks. The sums are merged in a tree, and the client solves one p × p system.

    Parameters
    ----------
    alpha, kernel, gamma, degree, coef0, kernel_params, cost, ties, group_weight, beta
        As in `rankwise.RankRLS`; a kernel other than "linear" needs a basis.
    basis : array of shape (n_basis, n_features), optional
        Basis points of a kernel model, for example ``X[:500].compute()``.

    Attributes
    ----------
    coef_, dual_coef_, X_fit_, n_pairs_, n_features_in_, feature_names_in_
        As in `rankwise.RankRLS`.
    n_split_groups_ : int
        Groups that had rows in several blocks.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import rankwise
    >>> from rankwise.distributed import RankRLS
    >>> rng = np.random.default_rng(0)
    >>> X, y, groups = rng.random((90, 2)), rng.random(90), np.repeat(np.arange(9), 10)
    >>> lazy = [da.from_array(values, chunks=25) for values in (X, y, groups)]
    >>> model = RankRLS(alpha=0.1).fit(*lazy)
    >>> np.allclose(model.coef_, rankwise.RankRLS(alpha=0.1).fit(X, y, groups).coef_, rtol=1e-10)
    True
    >>> model.n_split_groups_
    2
    """

    local_class = rank_rls.RankRLS

    alpha: float = 1e-3
    _: KW_ONLY
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    beta: float = 0.0
    basis: ArrayLike | None = None

    @refuse_other_keywords
    @restored_on_failure
    def fit(
        self, X: Collection, y: Collection | ArrayLike, groups: Collection | ArrayLike | None = None
    ) -> Self:
        """Fit the model on the workers.

        Parameters
        ----------
        X : dask array or data frame of shape (n_items, n_features)
            Items. Blocks may have unknown lengths.
        y : dask array, series or data frame, or array-like
            Scores, with the blocks of X; larger is better.
        groups : dask array or series, or array-like, optional
            Group labels, with the blocks of X. None compares all items, which may be in several
            blocks if ``cost="magnitude"`` and ties are included.

        Returns
        -------
        RankRLS
            The fitted estimator.
        """
        alphas = check_alphas([self.alpha], "alpha")
        totals, features = self.compute_totals(X, y, groups)
        path = totals.statistics.solve(alphas)
        self.store_solution(totals, features, path.coefficients[0])
        return self

    def compute_totals(
        self,
        X: Collection,
        y: Collection | ArrayLike,
        groups: Collection | ArrayLike | None,
        n_held_out: int = 0,
    ) -> tuple[Totals, FeatureMap]:
        """Add up all blocks on the workers, with a sample of `n_held_out` groups.

        Parameters
        ----------
        X, y, groups
            As in `fit`.
        n_held_out : int, default=0
            Number of groups in the sample.

        Returns
        -------
        tuple of Totals and FeatureMap
            Sums over all rows, and the map from X to features.
        """
        self.output_shape_ = ()
        if np.ndim(y) > 1:
            self.output_shape_ = (int(np.shape(y)[1]),)
        rule: _SumOptions = {
            "cost": self.cost,
            "ties": self.ties,
            "group_weight": self.group_weight,
            "beta": self.beta,
        }
        takes_parts = SufficientStatistics(**rule).takes_parts
        whole = self._whole_blocks(X, y, groups, may_cut_list=takes_parts)
        features = dask.delayed(whole.features, traverse=False)
        held_out = dask.delayed(whole.draw_labels(n_held_out), traverse=False)
        add_up = dask.delayed(_add_up)
        has_groups = groups is not None
        totals = [add_up(block, features, rule, has_groups, held_out) for block in whole.blocks]
        return merge_in_tree(totals).compute(), whole.features

    def store_solution(self, totals: Totals, features: FeatureMap, weights: Array) -> None:
        """Set the fitted attributes from the weights of the features.

        Parameters
        ----------
        totals : Totals
            Sums over all rows.
        features : FeatureMap
            Map from X to features.
        weights : ndarray
            Weights of the features.
        """
        self._store(features.coefficients(weights))
        self.n_pairs_ = totals.statistics.n_pairs


def _add_up(
    block: RowBlock,
    features: FeatureMap,
    rule: _SumOptions,
    has_groups: bool,
    held_out: frozenset[Hashable],
) -> Totals:
    """On a worker: return the totals of one block of whole groups, or of a part of one list."""
    totals = Totals(SufficientStatistics(**rule), GroupSample(len(held_out), held_out))
    if not len(block.y):
        return totals
    rows = features.transform(block.X)
    groups = block.groups if has_groups else None
    totals.statistics.add(rows, block.y, groups, whole_groups=has_groups)
    totals.sample.add(rows, block.y, block.groups)
    return totals


@dataclass(eq=False, repr=False)
class RankSVM(LazyModel):
    """Ranking support vector machine on Dask collections, trained to a certified gap.

    It minimizes the objective of `rankwise.RankSVM` with the same solver. The blocks stay on the
    workers, which compute loss and subgradient of their groups at each iterate, and the client sums
    them. Rows of groups that are in several blocks are moved into one block.

    Parameters
    ----------
    alpha, loss, kernel, gamma, degree, coef0, kernel_params, group_weight
        As in `rankwise.RankSVM`; a kernel other than "linear" needs a basis.
    basis : array of shape (n_basis, n_features), optional
        Basis points of a kernel model, for example ``X[:500].compute()``.
    tol, max_iter, verbose
        As in `rankwise.RankSVM`.
    solver : {"auto", "lbfgs", "newton-cg", "bmrm"}
        As in `rankwise.RankSVM`, but "auto" is "lbfgs" for both losses, which needs fewer passes
        over the data.

    Attributes
    ----------
    coef_, dual_coef_, X_fit_, n_pairs_, n_features_in_, feature_names_in_
        As in `rankwise.RankSVM`.
    objective_, lower_bound_, gap_, n_iter_, history_, solver_
        As in `rankwise.RankSVM`.
    n_split_groups_ : int
        Groups that had rows in several blocks.
    n_evaluations_ : int
        Number of evaluations of loss and gradient on all blocks.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from rankwise.distributed import RankSVM
    >>> rng = np.random.default_rng(0)
    >>> X, y, groups = rng.random((90, 2)), rng.random(90), np.repeat(np.arange(9), 10)
    >>> lazy = [da.from_array(values, chunks=30) for values in (X, y, groups)]
    >>> RankSVM(alpha=0.1).fit(*lazy).gap_ <= 1e-3
    True
    """

    local_class = rank_svm.RankSVM

    if TYPE_CHECKING:  # fitted attributes, not parameters of the data class
        solver_: str
        objective_: float
        lower_bound_: float
        gap_: float
        n_iter_: int
        history_: dict[str, Array]

    alpha: float = 1e-3
    _: KW_ONLY
    loss: str = "hinge"
    group_weight: str = "pairs"
    basis: ArrayLike | None = None
    tol: float = 1e-3
    max_iter: int = 1000
    solver: str = "auto"
    verbose: int = 0

    @refuse_other_keywords
    @restored_on_failure
    def fit(
        self, X: Collection, y: Collection | ArrayLike, groups: Collection | ArrayLike | None = None
    ) -> Self:
        """Fit the model on the workers.

        Parameters
        ----------
        X : dask array or data frame of shape (n_items, n_features)
            Items. Blocks may have unknown lengths.
        y : dask array or series, or array-like
            Scores, with the blocks of X; larger is better, and only their order matters.
        groups : dask array or series, or array-like, optional
            Group labels, with the blocks of X. None compares all items, which must then be in one
            block.

        Returns
        -------
        RankSVM
            The fitted estimator.
        """
        alphas = check_alphas([self.alpha], "alpha")
        check_option("group_weight", self.group_weight, GROUP_WEIGHTS)
        solver = "lbfgs" if self.solver == "auto" else self.solver
        local = rank_svm.RankSVM(loss=self.loss, solver=solver)
        make_loss, self.solver_ = local._loss_and_method()
        blocks, features, _ = self._whole_blocks(X, y, groups)
        delayed_features = dask.delayed(features, traverse=False)
        prepare = dask.delayed(_prepare)
        objectives = [
            prepare(block, delayed_features, make_loss, self.group_weight) for block in blocks
        ]
        loss = ClusterLoss(list(dask.persist(*objectives)))
        identity = sp.identity(features.n_features, format="csr")
        objective = Objective(identity, loss, 0.0, loss.magnitude, loss.n_items)
        (solution,) = pairwise_ranker.solve_path(
            self,
            objective,
            alphas,
            pair_covariance=loss.pair_covariance,
            keep_interrupted=keeps_interrupted_fits(),
        )
        self.n_pairs_ = loss.n_pairs
        self.n_evaluations_ = loss.n_evaluations
        pairwise_ranker.report_solution(self, solution)
        self._store(features.coefficients(solution.w[:, None]))
        return self


class ClusterLoss(PairwiseLoss):
    """Loss as a function of the weights: the sum of the losses of the blocks.

    For the solvers this is a pairwise loss of items with the identity matrix as features, so that
    scores and weights are the same; one evaluation is one computation on the cluster.

    Parameters
    ----------
    blocks : list of delayed Objective
        Objective of each block, on its worker; None for a block without pairs.

    Attributes
    ----------
    n_items, n_pairs : int
        Numbers of items and pairs in all blocks with pairs.
    total_weight : float
        W, the sum of the weights of the pairs.
    pair_covariance : ndarray
        As `estimate_pair_covariance` returns it.
    magnitude : ndarray of shape (n_features,)
        Largest absolute values of the features.
    n_evaluations : int
        Number of calls of `at`.
    """

    def __init__(self, blocks: list[Delayed]) -> None:
        summaries = dask.compute(*map(dask.delayed(_summarize), blocks))
        self._blocks = [block for block, summary in zip(blocks, summaries, strict=True) if summary]
        if not self._blocks:
            raise ValueError(
                "there is nothing to rank: the items make no pair of different scores; give group "
                "labels that are shared by the items to be compared."
            )
        items, pairs, weights, covariances, magnitudes = zip(*filter(None, summaries), strict=True)
        self.n_items = sum(items)
        self.n_pairs = sum(pairs)
        self.total_weight = sum(weights)
        self.pair_covariance = np.average(covariances, axis=0, weights=weights)
        self.magnitude = np.max(magnitudes, axis=0)
        self.n_evaluations = 0

    def sample(self, step: int) -> None:
        """Return None: a sample would move rows to the client."""
        return None

    def at(self, f: Array) -> LossValue:
        """Evaluate in one pass over all blocks; each Hessian product is one more pass."""
        self.n_evaluations += 1
        by_block = self._compute(_evaluate, f)
        value, gradient, *plane = (
            sum(terms) / self.total_weight for terms in zip(*by_block, strict=True)
        )

        def hessian_product(v: Array) -> Array:
            return np.asarray(sum(self._compute(_hessian_product, f, v)) / self.total_weight)

        return LossValue(
            float(value), np.asarray(gradient), hessian_product, Plane(*map(float, plane))
        )

    def _compute(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
        task = dask.delayed(function)
        return tuple(dask.compute(*(task(block, *arguments) for block in self._blocks)))


def _prepare(
    block: RowBlock,
    features: FeatureMap,
    make_loss: Callable[[PreferenceGraph], PairwiseLoss],
    group_weight: str,
) -> Objective | None:
    """On a worker: return the objective of a block; None if the block has no pairs."""
    if not len(block.y):
        return None
    if block.y.shape[1] > 1:
        raise ValueError(f"y has {block.y.shape[1]} outputs; fit one RankSVM for each.")
    graph = ScoreGraph(block.y[:, 0], block.groups, cost="sign", group_weight=group_weight)
    loss = make_loss(graph)
    if loss.graph.n_pairs == 0:
        return None
    return make_objective(features.transform(block.X), loss, 0.0)


def _summarize(objective: Objective | None) -> tuple[Any, ...] | None:
    """On a worker: return numbers of items and pairs, W, pair covariance and magnitude."""
    if objective is None:
        return None
    loss = objective.loss
    return (
        objective.n_items,
        loss.graph.n_pairs,
        loss.total_weight,
        estimate_pair_covariance(objective),
        objective.magnitude,
    )


def _evaluate(objective: Objective, w: Array) -> tuple[Any, ...]:
    """On a worker: return loss, gradient and the sums of the plane, times the pairs' weight."""
    iterate = objective.at(w)
    total_weight = objective.loss.total_weight
    terms = (iterate.loss.value, iterate.loss_gradient, *iterate.loss.plane)
    return tuple(total_weight * term for term in terms)


def _hessian_product(objective: Objective, w: Array, v: Array) -> Array:
    """On a worker: return the product of the Hessian with v, times the pairs' weight."""
    loss_value = objective.loss.at(objective.scores(w))
    product = loss_value.hessian_product(objective.scores(v))
    return objective.loss.total_weight * objective.derivative_in_weights(product)
