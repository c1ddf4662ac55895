"""RankRLS and RankSVM on a cluster: the workers compute sums, the client solves."""

from __future__ import annotations

from collections.abc import Callable, Hashable
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
    align_blocks,
    gather_groups,
    whole_rows,
)
from rankwise.distributed.totals import Totals, merge_in_tree
from rankwise.distributed.workers import check_workers
from rankwise.fitted_schema import fitted_schema
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.graphs.edges import GROUP_WEIGHTS
from rankwise.kernels.basis import basis_map
from rankwise.kernels.feature_maps import ColumnFeatures, FeatureMap
from rankwise.kernels.kernel import KernelName
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
        all_labels = (label for sizes in self.group_sizes for label in sizes)
        return frozenset(sample_labels(all_labels, n_groups))


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
            # meta: the names and types of the columns of the result
            meta: list[tuple[int, type]] | tuple[str, type] = ("score", np.float64)
            if output_shape:
                n_outputs = output_shape[0]
                meta = [(output, np.float64) for output in range(n_outputs)]
            return X.map_partitions(_score_frame, model, meta=meta)

        X = whole_rows(X)
        shape_of_result: dict[str, object] = {"drop_axis": 1}
        if output_shape:
            shape_of_result = {"chunks": (X.chunks[0], output_shape)}
        n_dimensions = 1 + len(output_shape)
        empty_result = np.empty((0,) * n_dimensions)
        return da.map_blocks(_score_block, X, model=model, meta=empty_result, **shape_of_result)

    def to_local(self) -> Any:
        """Return the same model as an estimator of `rankwise`, without Dask.

        Returns
        -------
        estimator
            The model in memory.
        """
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        if self.basis is None:  # the local class has another default
            del parameters["basis"]
        model = self.local_class(**parameters)
        names_of_fitted_attributes = fitted_schema(self.local_class)
        for name, value in vars(self).items():
            if name in names_of_fitted_attributes:
                setattr(model, name, value)
        return model

    def _gather_whole_groups(
        self,
        X: Collection,
        y: Collection | ArrayLike,
        groups: Collection | ArrayLike | None,
        *,
        may_cut_list: bool = False,
    ) -> WholeBlocks:
        """Move the rows of groups that are in several blocks, and store the names of columns."""
        check_workers()
        blocks, delayed_group_sizes = align_blocks(X, y, groups)
        features = self._make_feature_map(X)
        group_sizes = list(dask.compute(*delayed_group_sizes))
        n_blocks_with_rows = sum(bool(sizes) for sizes in group_sizes)
        if not n_blocks_with_rows:
            raise ValueError("X has no rows, expected at least two items of one group.")
        self.n_split_groups_ = 0
        if groups is not None:
            blocks, self.n_split_groups_ = gather_groups(blocks, group_sizes)
        elif n_blocks_with_rows > 1 and not may_cut_list:
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
        needs_basis = not kernel.is_linear
        has_basis = self.basis is not None
        if kernel.is_precomputed or has_basis != needs_basis:
            raise ValueError(
                f"kernel={self.kernel!r} with basis={self.basis!r} needs all items at once; on "
                "Dask collections use kernel='linear' without a basis, or a kernel other than "
                "'precomputed' with basis points, for example basis=X[:500].compute()."
            )
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = int(n_columns)
        if isinstance(X, dd.DataFrame) and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        feature_map: FeatureMap = ColumnFeatures(None, self.n_features_in_)
        if self.basis is not None:
            no_items = np.empty((0, n_columns))  # the basis consists of points, not of items
            feature_map = basis_map(kernel, no_items, None, self.basis, random_state=None)
        self._store_features(feature_map)
        return feature_map


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


class RankRLS(LazyModel):
    """Regularized least-squares ranking on Dask collections.

    Use it for data that are spread over a Dask cluster.

    It minimizes the objective of `rankwise.RankRLS` and has the same coefficients up to rounding.
    Each worker computes ``Rᵀ L R`` and ``Rᵀ d`` ([RankRLS09] equation 28) of the groups in its
    blocks. The sums are merged in a tree, and the client solves one p × p system.

    Parameters
    ----------
    alpha, kernel, gamma, degree, coef0, kernel_params, cost, ties, group_weight, beta
        As in `rankwise.RankRLS`, with the same defaults; a kernel other than "linear" requires a
        basis.
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

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        kernel: KernelName = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        beta: float = 0.0,
        basis: ArrayLike | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
        self.beta = beta
        self.basis = basis

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
        weights_of_only_alpha = path.coefficients[0]
        self.store_solution(totals, features, weights_of_only_alpha)
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
        can_add_parts_of_list = SufficientStatistics(**rule).takes_parts
        whole = self._gather_whole_groups(X, y, groups, may_cut_list=can_add_parts_of_list)
        has_groups = groups is not None
        feature_map = dask.delayed(whole.features, traverse=False)
        # a sample of groups; their rows are part of the sums, too
        held_out_labels = dask.delayed(whole.draw_labels(n_held_out), traverse=False)
        totals_of_block = dask.delayed(_totals_of_block)
        totals = [
            totals_of_block(block, feature_map, rule, has_groups, held_out_labels)
            for block in whole.blocks
        ]
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
        self._store_coefficients(features.coefficients(weights))
        self.n_pairs_ = totals.statistics.n_pairs


def _totals_of_block(
    block: RowBlock,
    feature_map: FeatureMap,
    rule: _SumOptions,
    has_groups: bool,
    held_out_labels: frozenset[Hashable],
) -> Totals:
    """On a worker: return the totals of one block of whole groups, or of a part of one list."""
    sample = GroupSample(len(held_out_labels), held_out_labels)
    totals = Totals(SufficientStatistics(**rule), sample)
    if not len(block.y):
        return totals
    features = feature_map.transform(block.X)
    groups = block.groups if has_groups else None
    totals.statistics.add(features, block.y, groups, whole_groups=has_groups)
    totals.sample.add(features, block.y, block.groups)
    return totals


class RankSVM(LazyModel):
    """Ranking support vector machine on Dask collections, trained to a certified gap.

    Use it for data that are spread over a Dask cluster if only the order of the scores is
    meaningful.

    It minimizes the objective of `rankwise.RankSVM` with the same solver. The blocks stay on the
    workers, which compute loss and subgradient of their groups at each iterate, and the client sums
    them. Rows of groups that are in several blocks are moved into one block.

    Parameters
    ----------
    alpha, loss, kernel, gamma, degree, coef0, kernel_params, group_weight
        As in `rankwise.RankSVM`, with the same defaults; a kernel other than "linear" requires a
        basis.
    basis : array of shape (n_basis, n_features), optional
        Basis points of a kernel model, for example ``X[:500].compute()``.
    tol, max_iter, verbose
        As in `rankwise.RankSVM`, with the same defaults.
    solver : {"auto", "lbfgs", "newton-cg", "bmrm"}, default="auto"
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

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        kernel: KernelName = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        loss: str = "hinge",
        group_weight: str = "pairs",
        basis: ArrayLike | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        solver: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.loss = loss
        self.group_weight = group_weight
        self.basis = basis
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.verbose = verbose

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
        solver = self.solver
        if solver == "auto":
            solver = "lbfgs"
        local_model = rank_svm.RankSVM(loss=self.loss, solver=solver)
        make_loss, self.solver_ = local_model._loss_and_method()
        blocks, feature_map, _ = self._gather_whole_groups(X, y, groups)

        # The objective of each block remains on its worker.
        make_block_objective = dask.delayed(_make_block_objective)
        delayed_map = dask.delayed(feature_map, traverse=False)
        block_objectives = [
            make_block_objective(block, delayed_map, make_loss, self.group_weight)
            for block in blocks
        ]
        loss = ClusterLoss(list(dask.persist(*block_objectives)))

        # Here the loss is a function of the weights: their "features" are the identity.
        identity = sp.identity(feature_map.n_features, format="csr")
        # alpha is set by solve_path
        objective = Objective(
            identity,
            loss,
            alpha=0.0,
            largest_feature_values=loss.largest_feature_values,
            n_items=loss.n_items,
        )
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
        self._store_coefficients(feature_map.coefficients(solution.w[:, None]))
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
    largest_feature_values : ndarray of shape (n_features,)
        Largest absolute values of the features.
    n_evaluations : int
        Number of calls of `at`.
    """

    def __init__(self, blocks: list[Delayed]) -> None:
        summarize = dask.delayed(_summarize)
        summary_of_block = dask.compute(*(summarize(block) for block in blocks))
        self._blocks = []
        summaries = []
        for block, summary in zip(blocks, summary_of_block, strict=True):
            if summary is not None:
                self._blocks.append(block)
                summaries.append(summary)
        if not self._blocks:
            raise ValueError(
                "there is nothing to rank: the items make no pair of different scores; give group "
                "labels that are shared by the items to be compared."
            )
        weights = [summary.total_weight for summary in summaries]
        covariances = [summary.pair_covariance for summary in summaries]

        # totals of all blocks, and the largest absolute values of each feature
        self.n_items = sum(summary.n_items for summary in summaries)
        self.n_pairs = sum(summary.n_pairs for summary in summaries)
        self.total_weight = sum(weights)
        self.pair_covariance = np.average(covariances, axis=0, weights=weights)
        self.largest_feature_values = np.max(
            [summary.largest_feature_values for summary in summaries], axis=0
        )
        self.n_evaluations = 0

    def sample(self, step: int) -> None:
        """Return None: a sample would move rows to the client."""
        return None  # a sample would move rows to the client

    def at(self, f: Array) -> LossValue:
        """Evaluate in one pass over all blocks; each Hessian product is one more pass."""
        self.n_evaluations += 1
        # f: the weights, which are the scores here. Of each block: value, gradient and fields of
        # the plane below the loss, times the weight of its pairs
        terms_of_blocks = self._compute_by_block(_weighted_terms, f)
        value, gradient, *plane_fields = (
            sum(terms) / self.total_weight for terms in zip(*terms_of_blocks, strict=True)
        )

        def hessian_product(v: Array) -> Array:
            weighted_products = self._compute_by_block(_weighted_hessian_product, f, v)
            return np.asarray(sum(weighted_products) / self.total_weight)

        plane = Plane(*map(float, plane_fields))
        return LossValue(float(value), np.asarray(gradient), hessian_product, plane)

    def _compute_by_block(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
        delayed_function = dask.delayed(function)
        tasks = [delayed_function(block, *arguments) for block in self._blocks]
        return tuple(dask.compute(*tasks))


def _make_block_objective(
    block: RowBlock,
    feature_map: FeatureMap,
    make_loss: Callable[[PreferenceGraph], PairwiseLoss],
    group_weight: str,
) -> Objective | None:
    """On a worker: return the objective of a block; None if the block has no pairs."""
    if not len(block.y):
        return None
    n_outputs = block.y.shape[1]
    if n_outputs > 1:
        raise ValueError(f"y has {n_outputs} outputs; fit one RankSVM for each.")
    only_output = block.y[:, 0]
    graph = ScoreGraph(only_output, block.groups, cost="sign", group_weight=group_weight)
    loss = make_loss(graph)
    if loss.graph.n_pairs == 0:
        return None
    return make_objective(feature_map.transform(block.X), loss, alpha=0.0)


class _BlockSummary(NamedTuple):
    """Sizes and statistics of the objective of a block."""

    n_items: int
    n_pairs: int
    total_weight: float
    pair_covariance: Array
    largest_feature_values: Array


def _summarize(objective: Objective | None) -> _BlockSummary | None:
    """On a worker: return counts, W, pair covariance and largest feature values."""
    if objective is None:
        return None
    loss = objective.loss
    return _BlockSummary(
        n_items=objective.n_items,
        n_pairs=loss.graph.n_pairs,
        total_weight=loss.total_weight,
        pair_covariance=estimate_pair_covariance(objective),
        largest_feature_values=objective.largest_feature_values,
    )


def _weighted_terms(objective: Objective, w: Array) -> tuple[Any, ...]:
    """On a worker: return loss, gradient and the sums of the plane, times the pairs' weight."""
    # times the weight of the pairs of the block, so that the sum over blocks is that of all pairs
    iterate = objective.at(w)
    total_weight = objective.loss.total_weight
    value_gradient_and_plane = (iterate.loss.value, iterate.loss_gradient, *iterate.loss.plane)
    return tuple(total_weight * term for term in value_gradient_and_plane)


def _weighted_hessian_product(objective: Objective, w: Array, v: Array) -> Array:
    """On a worker: return the product of the Hessian with v, times the pairs' weight."""
    # W Rᵀ H R v with R: features, H: Hessian of the loss in the scores, W: weight of all pairs
    loss_at_w = objective.loss.at(objective.scores(w))
    product_of_scores = loss_at_w.hessian_product(objective.scores(v))
    product_of_weights = objective.derivative_in_weights(product_of_scores)
    return objective.loss.total_weight * product_of_weights
