"""RankRLS on data that come in chunks: `partial_fit` and `merge`, exact."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators.kernel_model import KernelModel
from rankwise.estimators.problem import check_beta
from rankwise.features import FeatureMap, basis_map
from rankwise.frames import check_same_index
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.pair_graph import COSTS, GROUP_WEIGHTS
from rankwise.graphs.score_graph import TIES
from rankwise.inputs import as_real, as_scores, as_weights, check_option, split_weighted
from rankwise.machine import calm, check_matrix_fits
from rankwise.model_selection.candidates import check_alphas
from rankwise.solvers.least_squares import solve_shifted
from rankwise.solvers.sums import PairRule, StreamingSums


def has_fixed_features(model: Any) -> bool:
    """Whether the features of a ranker do not depend on rows that are yet to come."""
    has_basis = not isinstance(model.basis, str) or model.n_basis is not None
    if isinstance(model.kernel, str) and model.kernel == "linear":
        return not has_basis
    return bool(model.kernel != "precomputed" and has_basis)


def _learns_in_chunks(model: Any) -> bool:
    if not has_fixed_features(model):
        raise AttributeError(
            "partial_fit needs features that do not change from chunk to chunk, but kernel="
            f"{model.kernel!r}, n_basis={model.n_basis!r}; use kernel='linear' without a basis, or "
            "any other kernel but 'precomputed' with one."
        )
    return True


class ChunkedFit(KernelModel):
    """Mixin that learns from chunks of rows; the result is that of `fit` on all of them."""

    learned = (*KernelModel.learned, "n_samples_seen_", "_chunks", "_features")

    cost: str
    ties: str
    group_weight: str
    beta: float
    n_basis: int | None
    basis: str | ArrayLike
    random_state: Any
    n_pairs_: Any

    __metadata_request__partial_fit = {  # noqa: RUF012
        "groups": True,
        "sample_weight": True,
        "whole_groups": False,
    }

    _chunks: StreamingSums
    _features: FeatureMap

    @available_if(_learns_in_chunks)  # type: ignore[untyped-decorator]
    @calm
    def partial_fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        whole_groups: bool = False,
    ) -> Self:
        """Learn from one more chunk of rows.

        After any number of chunks, in any order, the coefficients are those of one `fit` on all
        rows, to rounding. The model keeps ``Rᵀ L R`` and ``Rᵀ d`` ([RankRLS09] equation 28) and,
        for groups that may go on in a later chunk, their rows or what those can be reduced to. For
        linear models and for kernels with a basis, which is chosen from the first chunk or given.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            At least one row; always with the same features.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Scores, or a target of `make_target`; several outputs only for ``cost="magnitude",
            ties="include"``.
        groups : array-like of shape (n_rows,), optional
            Group labels. A group may have rows in several chunks; see Notes. None in all chunks
            puts all rows of all chunks in one group.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, as in `fit`; chunks without have weights of 1.
        whole_groups : bool
            Promise that no group of this chunk has rows in another one, as in the chunks of
            `read_letor`: nothing is kept of them, which saves memory and time.

        Returns
        -------
        RankRLS
            The model of all rows so far; its coefficients are zero as long as there is no pair.

        Raises
        ------
        ValueError
            If a group comes back after its rows have been given up; the model is left as it was.

        Notes
        -----
        Of the groups seen last up to 128 MiB of rows are kept; those that are given up are known by
        their labels, and a row that still belongs to one is refused, never counted wrongly. With
        ``cost="magnitude", ties="include"`` a group of any length takes at most about one matrix of
        p × p, otherwise one for each of its distinct scores (or its rows, if that is less).

        A chunk of n rows and p features (or basis items) costs n p² + p³/3; make chunks longer than
        p rows. `alpha` may be changed between chunks, other parameters may not. `solver` is not
        looked at. `fit` forgets the chunks, and `partial_fit` after `fit` begins anew.

        Examples
        --------
        >>> from rankwise import RankRLS
        >>> model = RankRLS(alpha=0.1)
        >>> model.partial_fit([[0.0], [1.0], [4.0]], [0, 1, 2], ["a", "a", "b"]).coef_.round(3)
        array([0.909])
        >>> model.partial_fit([[5.0], [2.0]], [4, 5], ["b", "a"]).coef_.round(3)
        array([2.297])
        >>> whole = [[0.0], [1.0], [4.0], [5.0], [2.0]], [0, 1, 2, 4, 5], ["a", "a", "b", "b", "a"]
        >>> RankRLS(alpha=0.1).fit(*whole).coef_.round(3)
        array([2.297])
        """
        alphas = check_alphas([self.alpha], "alpha")
        is_first = not hasattr(self, "_chunks") or not self._chunks.n_items
        check_same_index(X=X, y=y, groups=groups)
        shape = np.shape(X)
        if len(shape) == 2 and not shape[0]:
            raise ValueError(f"the chunk has no rows (shape {shape}); leave out empty chunks.")
        X = self._check_items(X, accept_sparse="csr", reset=is_first)
        scores, groups, weights = _chunk_target(X.shape[0], y, groups, sample_weight)
        rule = pair_rule(self, n_outputs=scores[0].size)
        if is_first:
            self._start_chunks(X, scores, rule)
        self._check_chunk(scores, rule)
        columns = scores.reshape(len(scores), -1)
        keep = () if whole_groups else None
        self._chunks.add(self._features.features(X), columns, groups, keep=keep, weight=weights)
        self._solve_chunks(alphas)
        return self

    def merge(self, other: Self) -> Self:
        """Learn all that another model has learned by `partial_fit`, exactly.

        Both may have rows of the same groups. Merging is associative and commutative, so that
        models trained on parts of the data in several processes can be put together in any order.

        Parameters
        ----------
        other : RankRLS
            A model with the same parameters (but for `alpha`), features and basis; left as it is.

        Returns
        -------
        RankRLS
            This model, of the rows of both.

        Examples
        --------
        >>> from rankwise import RankRLS
        >>> one = RankRLS(alpha=0.1).partial_fit([[0.0], [1.0]], [0, 1], groups=["a", "a"])
        >>> two = RankRLS(alpha=0.1).partial_fit([[2.0], [4.0]], [5, 2], groups=["a", "b"])
        >>> one.merge(two).coef_.round(3), one.n_pairs_
        (array([2.381]), 3)
        """
        check_is_fitted(self)
        if type(other) is not type(self) or not hasattr(other, "_chunks"):
            raise ValueError(
                f"cannot merge {type(other).__name__} that has not learned by partial_fit; merge "
                "models that both have."
            )
        if not hasattr(self, "_chunks"):
            raise ValueError(
                "this model has not learned by partial_fit; merge models that both have."
            )
        self._check_same(other)
        self._chunks.merge(other._chunks)
        self._solve_chunks(check_alphas([self.alpha], "alpha"))
        return self

    def _start_chunks(self, X: Any, scores: Array, rule: PairRule) -> None:
        """Forget what was learned before, and be ready for chunks like this one."""
        features, self.output_shape_ = fixed_map(self, X), scores.shape[1:]
        self._store_features(features)
        self._features = features
        self._chunks = StreamingSums(self._features.n_features, scores[0].size, rule, self.beta)

    def _solve_chunks(self, alphas: Array) -> None:
        solutions, _ = solve_shifted(*self._chunks.system(), alphas)
        self._store(self._features.coefficients(solutions[0]))
        self.n_samples_seen_ = self._chunks.n_items
        self.n_pairs_ = self._chunks.n_pairs
        self.solver_, self.n_iter_ = "primal", 1

    def _check_chunk(self, scores: Array, rule: PairRule) -> None:
        if scores.shape[1:] != self.output_shape_:
            raise ValueError(
                f"y has shape {scores.shape}, but the chunks before had outputs of shape "
                f"{self.output_shape_}; give every chunk the same outputs."
            )
        before = (*self._chunks.rule, self._chunks.beta, self._features.kernel)
        now = (*rule, self.beta, self.make_kernel())
        names = ("cost", "ties", "group_weight", "beta", "kernel")
        for name, old, new in zip(names, before, now, strict=True):
            if old != new:
                raise ValueError(
                    f"{name} is {new!r} but was {old!r} in the chunks before; only alpha may "
                    "change between chunks. Train a clone of the model instead."
                )

    def _check_same(self, other: ChunkedFit) -> None:
        if self.n_features_in_ != other.n_features_in_:
            raise ValueError(
                f"the models have {self.n_features_in_} and {other.n_features_in_} features; only "
                "models on the same features can be merged."
            )
        for name in ("output_shape_", "cost", "ties", "group_weight", "beta"):
            own, theirs = getattr(self, name), getattr(other, name)
            if own != theirs:
                raise ValueError(
                    f"{name.strip('_')} is {own!r} in one model and {theirs!r} in the other; only "
                    "models of the same problem can be merged."
                )
        mine, yours = self._features, other._features
        if mine.kernel != yours.kernel or not _equal_items(mine.items, yours.items):
            raise ValueError(
                "the models have different kernels or basis items; choose the basis once and pass "
                "its points, basis=points, to all models that are to be merged."
            )


def fixed_map(model: Any, X: Any) -> FeatureMap:
    """The features of all chunks: the columns themselves, or a basis chosen from the first one."""
    kernel = model.make_kernel()
    if kernel.is_linear:
        advice = "use fit with solver='iterative' for so many features"
        check_matrix_fits(X.shape[1], X.shape[1], "a Gram matrix", advice)
        return FeatureMap(kernel, None, X.shape[1])
    is_chosen = isinstance(model.basis, str) and isinstance(model.n_basis, int)
    if is_chosen and model.n_basis > X.shape[0]:
        raise ValueError(
            f"n_basis={model.n_basis}, but the first chunk, from which the basis items are chosen, "
            f"has {X.shape[0]} rows; begin with a larger chunk, or pass the points as basis."
        )
    return basis_map(kernel, X, model.n_basis, model.basis, model.random_state)


def pair_rule(model: Any, n_outputs: int) -> PairRule:
    """The checked parameters of a RankRLS that say which pairs there are."""
    check_beta(model.beta)
    check_option("cost", model.cost, COSTS)
    check_option("ties", model.ties, TIES)
    check_option("group_weight", model.group_weight, GROUP_WEIGHTS)
    rule = PairRule(model.cost, model.ties, model.group_weight)
    if rule.tells_scores_apart and n_outputs > 1:
        raise ValueError(
            f"y has {n_outputs} outputs, but with cost={rule.cost!r} and ties={rule.ties!r} each "
            "has pairs of its own, which cannot be added up at once; train one model per output."
        )
    return rule


def _chunk_target(
    n_rows: int, y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[Array, ArrayLike | None, Array | None]:
    """Finite scores of shape (n_rows,) or (n_rows, n_outputs), the groups and the weights."""
    if isinstance(y, PreferenceGraph):
        raise ValueError(
            f"y is a {type(y).__name__}, whose preferences cannot be cut in chunks; pass scores "
            "and groups."
        )
    y, groups, weights = split_weighted(y, groups, sample_weight)
    scores = as_scores(y)
    if len(scores) != n_rows:
        raise ValueError(
            f"y has {len(scores)} entries but X has {n_rows} rows; pass one score per row."
        )
    if weights is None:
        return scores, groups, None
    checked = as_weights(weights, n_rows)
    if not np.array_equal(checked, as_real("sample_weight", weights)):
        raise ValueError(
            "sample_weight is so large or so small that products of weights cannot be held; "
            "multiply the weights of all chunks by one common factor that brings them near 1."
        )
    return scores, groups, checked


def _equal_items(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    if one.shape != other.shape:
        return False
    same = one != other
    return not (same.nnz if hasattr(same, "nnz") else np.any(same))
