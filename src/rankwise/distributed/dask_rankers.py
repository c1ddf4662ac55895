"""RankRLS and RankSVM on a cluster: blocks add up, the client solves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
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

from rankwise.arrays import Array
from rankwise.distributed.blocks import RowBlock, align, gather_groups, whole_rows
from rankwise.fitted_schema import fitted_schema
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.graphs.pair_graph import GROUP_WEIGHTS
from rankwise.kernels.basis import basis_map
from rankwise.kernels.feature_maps import FeatureMap
from rankwise.losses import LossValue, PairwiseLoss, Plane
from rankwise.preprocessing.group_columns import refuse_other_keywords
from rankwise.rankers import pairwise_ranker, rank_rls, rank_svm
from rankwise.rankers.base import KernelModel
from rankwise.rankers.out_of_core import SufficientStatistics
from rankwise.runtime.interrupts import keeps_interrupted_fits
from rankwise.solvers.certified_descent import Objective, make_objective, pair_covariance
from rankwise.validation import check_alphas, check_option, restored_on_failure

MERGED_AT_ONCE = 8


class LazyModel(KernelModel):
    """A linear or basis model that learns from Dask collections and scores them."""

    basis: ArrayLike | None

    local_class: Any
    """The estimator of `rankwise` with the same parameters."""

    def predict(self, X: Any) -> Any:
        """Score items; lazily if X is lazy.

        Parameters
        ----------
        X : dask array or data frame, or anything that the model of `rankwise` takes
            Items.

        Returns
        -------
        dask array (for an array), dask series or data frame (for a data frame), or ndarray
            Scores; larger is better.
        """
        if not dask.is_dask_collection(X):
            return super().predict(X)
        model, shape = self.to_local(), self.output_shape_
        if isinstance(X, dd.DataFrame):
            one = ("score", np.float64)
            meta = [(name, np.float64) for name in range(shape[0])] if shape else one
            return X.map_partitions(_score_frame, model, meta=meta)
        X = whole_rows(X)
        layout = {"chunks": (X.chunks[0], shape)} if shape else {"drop_axis": 1}
        empty = np.empty((0,) * (1 + len(shape)))
        return da.map_blocks(_score_block, X, model=model, meta=empty, **layout)

    def to_local(self) -> Any:
        """The same model as an estimator of `rankwise`, without Dask."""
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
        self, X: Any, y: Any, groups: Any, *, may_cut_list: bool = False
    ) -> tuple[list[Any], FeatureMap]:
        """Blocks of whole groups, and the features of items."""
        blocks, surveys = align(X, y, groups)
        features = self._learn_features(X)
        counts = list(dask.compute(*surveys))
        if not any(counts):
            raise ValueError("X has no rows, expected at least two items of one group.")
        self.n_split_groups_ = 0
        if groups is not None:
            blocks, self.n_split_groups_ = gather_groups(blocks, counts)
        elif sum(map(bool, counts)) > 1 and not may_cut_list:
            raise ValueError(
                "without groups all rows are one list, but they are in several blocks; give "
                "groups, or one block (X.rechunk), or use RankRLS with cost='magnitude', "
                "ties='include', which takes a list of any length."
            )
        return blocks, features

    def _learn_features(self, X: Any) -> FeatureMap:
        """Note the columns of X, and make what gives the features of a block of rows."""
        kernel, n_columns = self.make_kernel(), X.shape[1]
        if kernel.is_precomputed or kernel.is_linear != (self.basis is None):
            raise ValueError(
                f"kernel={self.kernel!r} with basis={self.basis!r} needs all items at once; on "
                "Dask collections use kernel='linear' without a basis, or any other kernel but "
                "'precomputed' with points as basis, for example X[:500].compute()."
            )
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = int(n_columns)
        if isinstance(X, dd.DataFrame) and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        features = FeatureMap(kernel, None, self.n_features_in_)
        if self.basis is not None:
            features = basis_map(kernel, np.empty((0, n_columns)), None, self.basis, None)
        self._store_features(features)
        return features


def _score_block(block: Any, model: Any) -> NDArray[Any]:
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
    """Regularized least-squares ranking of Dask collections, with the coefficients of one machine.

    Minimizes what `rankwise.RankRLS` does. Each block of the data adds up the ``Rᵀ L R`` and
    ``Rᵀ d`` ([RankRLS09] equation 28) of its groups on a worker. The sums are merged in a tree and
    the client solves one system of p × p.

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
    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn from items and their scores, on the workers.

        Parameters
        ----------
        X : dask array or data frame of shape (n_items, n_features)
            Items. Blocks of unknown length are fine.
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
        self.output_shape_ = () if np.ndim(y) == 1 else (int(np.shape(y)[1]),)
        names = ("cost", "ties", "group_weight", "beta")
        rule: dict[str, Any] = {name: getattr(self, name) for name in names}
        takes_parts = SufficientStatistics(**rule).takes_parts
        blocks, features = self._whole_blocks(X, y, groups, may_cut_list=takes_parts)
        shared = dask.delayed(features, traverse=False)
        add_up, merge = dask.delayed(_add_up), dask.delayed(_merge)
        sums = [add_up(block, shared, rule, groups is not None) for block in blocks]
        while len(sums) > 1:
            starts = range(0, len(sums), MERGED_AT_ONCE)
            sums = [merge(sums[start : start + MERGED_AT_ONCE]) for start in starts]
        total: SufficientStatistics = dask.compute(sums[0])[0]
        self._store(features.coefficients(total.solve(alphas).coefficients[0]))
        self.n_pairs_ = total.n_pairs
        return self


def _add_up(
    block: RowBlock, features: FeatureMap, rule: Any, has_groups: bool
) -> SufficientStatistics:
    """On a worker: the sums of one block, whose groups are whole; one list may go on."""
    sums = SufficientStatistics(**rule)
    if len(block.y):
        groups = block.groups if has_groups else None
        sums.add(features.features(block.X), block.y, groups, whole_groups=has_groups)
    return sums


def _merge(several: list[SufficientStatistics]) -> SufficientStatistics:
    """On a worker: all sums in one; those given may be read again if a worker dies."""
    return functools.reduce(
        SufficientStatistics.merge, several, SufficientStatistics(**several[0].rule)
    )


@dataclass(eq=False, repr=False)
class RankSVM(LazyModel):
    """Ranking support vector machine on Dask collections, trained to a certified gap.

    Minimizes what `rankwise.RankSVM` does, by the same solver. The blocks stay on the workers; for
    each point that the solver looks at they compute loss and subgradient of their groups, and the
    client adds them up. Rows of groups that are in several blocks are moved into one.

    Parameters
    ----------
    alpha, loss, kernel, gamma, degree, coef0, kernel_params, group_weight
        As in `rankwise.RankSVM`; a kernel other than "linear" needs a basis.
    basis : array of shape (n_basis, n_features), optional
        Basis points of a kernel model, for example ``X[:500].compute()``.
    tol, max_iter, verbose
        As in `rankwise.RankSVM`.
    solver : {"auto", "lbfgs", "newton-cg", "bmrm"}
        As in `rankwise.RankSVM`, but "auto" is "lbfgs" for both losses, which looks at the data
        less often.

    Attributes
    ----------
    coef_, dual_coef_, X_fit_, n_pairs_, n_features_in_, feature_names_in_
        As in `rankwise.RankSVM`.
    objective_, lower_bound_, gap_, n_iter_, history_, solver_
        As in `rankwise.RankSVM`.
    n_split_groups_ : int
        Groups that had rows in several blocks.
    n_evaluations_ : int
        How often loss and gradient of all blocks were computed.

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
    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn from items and their scores, on the workers.

        Parameters
        ----------
        X : dask array or data frame of shape (n_items, n_features)
            Items. Blocks of unknown length are fine.
        y : dask array or series, or array-like
            Scores, with the blocks of X; larger is better, and only their order counts.
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
        blocks, features = self._whole_blocks(X, y, groups)
        shared, prepare = dask.delayed(features, traverse=False), dask.delayed(_prepare)
        kept = [prepare(block, shared, make_loss, self.group_weight) for block in blocks]
        loss = ClusterLoss(list(dask.persist(*kept)))
        identity = sp.identity(features.n_features, format="csr")
        objective = Objective(identity, loss, 0.0, loss.magnitude, loss.n_items)
        (solution,) = pairwise_ranker.solve_path(
            self,
            objective,
            alphas,
            moment=loss.moment,
            keep_interrupted=keeps_interrupted_fits(),
        )
        self.n_pairs_, self.n_evaluations_ = loss.n_pairs, loss.n_evaluations
        pairwise_ranker.report_solution(self, solution)
        self._store(features.coefficients(solution.w[:, None]))
        return self


class ClusterLoss(PairwiseLoss):
    """``loss(w)`` and its derivatives in the weights: the sum over the blocks.

    To the solvers it is a margin loss of items whose features are the identity, so that scores
    and weights are the same thing; one evaluation is one computation of the cluster.

    Parameters
    ----------
    blocks : list of delayed Objective
        Of each block, on its worker; None for one without pairs.

    Attributes
    ----------
    n_items, n_pairs : int
        Of all blocks with pairs.
    total_weight : float
        W, the sum of the weights of the pairs.
    moment : ndarray
        Second moment of the differences of pairs, as `pair_covariance` gives it.
    magnitude : ndarray of shape (n_features,)
        Largest absolute values of the features.
    n_evaluations : int
        How often `at` was called.
    """

    def __init__(self, blocks: list[Any]) -> None:
        summaries = dask.compute(*map(dask.delayed(_summarize), blocks))
        self._blocks = [block for block, one in zip(blocks, summaries, strict=True) if one]
        if not self._blocks:
            raise ValueError(
                "there is nothing to rank: the items make no pair of different scores; give group "
                "labels that are shared by the items to be compared."
            )
        items, pairs, weights, moments, magnitudes = zip(*filter(None, summaries), strict=True)
        self.n_items, self.n_pairs, self.total_weight = sum(items), sum(pairs), sum(weights)
        self.moment = np.average(moments, axis=0, weights=weights)
        self.magnitude = np.max(magnitudes, axis=0)
        self.n_evaluations = 0

    def sample(self, step: int) -> None:
        """No sample: its rows would have to come to the client."""
        return None

    def at(self, f: NDArray[Any]) -> LossValue:
        """One pass over all blocks; every product with the Hessian is one more."""
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
    """On a worker: features and loss of a block; None if it has no pairs."""
    if not len(block.y):
        return None
    if block.y.shape[1] > 1:
        raise ValueError(f"y has {block.y.shape[1]} outputs; fit one RankSVM for each.")
    graph = ScoreGraph(block.y[:, 0], block.groups, cost="sign", group_weight=group_weight)
    loss = make_loss(graph)
    return make_objective(features.features(block.X), loss, 0.0) if loss.graph.n_pairs else None


def _summarize(objective: Objective | None) -> tuple[Any, ...] | None:
    """Number of items and of pairs, W, second moment and magnitude."""
    if objective is None:
        return None
    loss, moment = objective.loss, pair_covariance(objective)
    return objective.n_items, loss.graph.n_pairs, loss.total_weight, moment, objective.magnitude


def _evaluate(objective: Objective, w: Array) -> tuple[Any, ...]:
    """Loss, gradient in the weights and the plane's sums, each times the weight of the pairs."""
    point = objective.at(w)
    terms = point.loss.value, point.slope, *point.loss.plane
    return tuple(objective.loss.total_weight * term for term in terms)


def _hessian_product(objective: Objective, w: Array, v: Array) -> Array:
    curved = objective.loss.at(objective.scores(w)).hessian_product(objective.scores(v))
    return objective.loss.total_weight * objective.pull_back(curved)
