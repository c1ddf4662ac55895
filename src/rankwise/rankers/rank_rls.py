"""RankRLS: regularized least squares on a preference graph, its paths and its hold-out task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from rankwise.arrays import Array, MatrixLike, ParameterValue, RandomState, dense_rows
from rankwise.caching import cached_property
from rankwise.fitted_schema import FittedSchema, NotSaved, Values
from rankwise.frames import check_same_index
from rankwise.graphs import PairGraph
from rankwise.graphs.supervision import Relevance, TargetLike, TrainingTarget, read_y
from rankwise.kernels.feature_maps import FeatureMap
from rankwise.kernels.kernel import KernelName
from rankwise.kernels.solver_input import SolverInput, has_basis, make_solver_input
from rankwise.kernels.stable_products import row_products
from rankwise.losses import SquaredLoss
from rankwise.losses.profiled import nuisance_effects
from rankwise.model_selection.candidate_grid import ALPHA_DECADES, CandidateGrid, default_alphas
from rankwise.model_selection.folds import FEWEST_FOR_PAIRS, Folds
from rankwise.model_selection.protocol import HeldOutPairs, HoldOutTask, pair_distance
from rankwise.model_selection.shortcuts import (
    HoldOutProblem,
    HoldOutUnits,
    Refit,
    coefficients_without,
    cross_val_scores,
    find_shortcut,
    item_spectrum,
)
from rankwise.preprocessing.group_columns import (
    check_groups,
    refuse_other_keywords,
    warn_of_group_names,
)
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.batch_sums import BatchSums, SumOptions
from rankwise.rankers.chunked_training import (
    check_same_parameters,
    learns_in_chunks,
    make_chunk_features,
)
from rankwise.rankers.paths import ModelPath, PathModel
from rankwise.rankers.ranking_problem import (
    check_beta,
    iterations_are_faster,
    ranking_loss,
    warn_about_solutions,
    warn_explained,
)
from rankwise.rankers.several_outputs import (
    OutputsTask,
    outputs_have_own_pairs,
    split_outputs,
)
from rankwise.runtime.progress import Progress
from rankwise.runtime.threads import single_threaded
from rankwise.solvers import minimize
from rankwise.solvers.least_squares import SHARED_STEPS, IterationLimits
from rankwise.solvers.leave_items_out import Spectrum
from rankwise.solvers.methods import choose_method
from rankwise.validation import check_alphas, restored_on_failure

MOST_REFITS = 10  # folds trained by iterations; with more folds a Gram matrix is cheaper

ITERATIVE_DECADES = (-7.0, 0.0)  # iterations cannot distinguish smaller alphas

HELD_OUT_TOL = 1e-4  # residual of models that are evaluated and dropped


class RankRLS(PathModel):
    """Regularized least-squares ranking.

    Use it for graded lists and for preferences between items with features. `RankRLSCV` selects
    alpha.

    A function f is learned from scores, scores in groups or pairwise preferences by minimizing

        J(f) = (1−β)/W Σ_k ω_k (δ_k − (f_i − f_j))² + β/m Σ_i (y_i − f_i)² + α ‖f‖²

    over the edges k = (i → j) of a preference graph with magnitudes δ, weights ω and W = Σ ω
    ([RankRLS09] equations 11 and 16; β is from [Pursuit13] equation 5). With weights w of the m
    items, the terms of the second sum have the factors w_i, and Σ w replaces m. The pairs are never
    formed: training costs as much as ridge regression on the same items.

    Parameters
    ----------
    alpha : float or array-like of shape (n_outputs,), default=0.001
        Regularization, at least 0; relative to the mean over pairs, so it does not depend on the
        amount of data. The papers' λ is ``alpha * W``. 0 is the limit for small alphas: the model
        of smallest norm among all that minimize the error. An array has one value for each output.
    kernel : str or callable, default="linear"
        "linear"; any other name known to `sklearn.metrics.pairwise.pairwise_kernels`; "ngram" for
        texts such as SMILES or sequences (X is then a list of texts); a function of two items,
        which may be any objects; or "precomputed" (X is then the kernel matrix between items and
        training items).
    gamma : float, default=None
        Parameter of the named kernels, as in scikit-learn.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant of the polynomial and sigmoid kernels.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel; ``ngram_range=(1, 3)`` and ``shared=0`` of "ngram".
    cost : {"magnitude", "sign", "relative"}, default="magnitude"
        Target of a pair: the difference of y, 1, or the difference weighted by one over its square
        ([RankRLS09] equations 21, 20 and 22).
    ties : {"include", "exclude"}, default="include"
        Whether pairs with equal y are part of the loss, with a target of 0; only for
        ``cost="magnitude"``. The other costs always exclude them.
    group_weight : {"pairs", "groups"}, default="pairs"
        Whether all pairs or all groups have equal weight.
    beta : float, default=0.0
        Mixture of ranking (0) and regression (1, the papers' RLS baseline). No intercept is fitted:
        for beta > 0 center y or add a constant feature if the level of the scores matters.
    n_basis : int, optional
        Number of basis items of a sparse kernel model ([RankRLS09] section 3.5); None uses all
        items. The time is linear in the number of items; kernel values are computed in blocks of
        rows and not stored.
    basis : {"random", "kmeans++"}, array of int, or array of points, default="random"
        How the basis items are selected, their row numbers (for example `basis_indices_` of a
        `RankingPursuit`), or the points themselves, which may contain duplicates.
    solver : {"auto", "primal", "dual", "iterative"}, default="auto"
        "primal": one weight per feature or basis item, O(m p²); "dual": one per item, O(m³);
        "iterative": conjugate gradients for large sparse X, O(non-zeros) per iteration ([RankRLS09]
        section 4.3). "auto" selects the cheapest.
    tol : float, default=1e-8
        Residual of the iterative solver, relative to the right-hand side.
    max_iter : int, optional
        Maximum number of iterations of the iterative solver; None is ten times the number of
        features.
    random_state : int, RandomState or None, default=None
        Seed of the selection of basis items.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Weights of the features (linear kernel).
    dual_coef_ : ndarray of shape (n_basis,) or (n_basis, n_outputs)
        Weights of the training or basis items (other kernels).
    X_fit_ : ndarray or sparse matrix
        The training or basis items (other kernels, unless precomputed).
    basis_indices_ : ndarray of int
        Row numbers of the basis items (if a basis of rows was used).
    n_pairs_ : int
        Number of pairs trained on.
    solver_ : str
        The solver in use.
    n_iter_ : int
        Number of iterations of the iterative solver; 1 for the other solvers.
    n_samples_seen_ : int
        Number of rows of all chunks (if trained by `partial_fit`).
    nuisance_coef_, nuisance_se_ : ndarray of shape (n_columns,)
        Effects γ of the nuisance columns (if passed to `fit`) and their standard errors, which are
        robust to dependence inside groups; nan for a column that is constant in all pairs, or if
        there is one group. Effects that the data do not determine have the smallest norm: the
        effects of the values of a text column, or of one-hot columns, sum to zero.
    nuisance_names_ : list of str
        Names of the nuisance columns; ``"name=value"`` for text.
    max_group_size_ : int or None
        Number of items in the longest group; None without groups, or if y is a graph.
    group_columns_ : list of str
        Columns of a data frame that contain the groups and are therefore dropped.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    ScoreGraph, PairGraph : Preference graphs; one may be passed as y.
    make_target : Scores and groups in one array.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLS
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> y = [1, 2, 3, 0, 1, 2]
    >>> model = RankRLS(alpha=0.01).fit(X, y, groups=[1, 1, 1, 2, 2, 2])
    >>> model.rank(X, groups=[1, 1, 1, 2, 2, 2])
    array([3, 2, 1, 3, 2, 1])
    >>> model.coef_.round(3)
    array([0.995])
    """

    _fitted: ClassVar[FittedSchema] = {
        "n_samples_seen_": Values(),
        "_sums": NotSaved(),
        "_features": NotSaved(),
    }

    multi_output = True
    allows_zero_alpha = True
    alpha: float | Sequence[float] | Array  # type: ignore[assignment]
    takes_nuisance = True
    optional_attributes = (*PathModel.optional_attributes, "n_samples_seen_", "_sums", "_features")

    __metadata_request__partial_fit = {  # noqa: RUF012
        "groups": True,
        "sample_weight": True,
        "whole_groups": False,
    }

    def __init__(
        self,
        alpha: float | Sequence[float] | Array = 1e-3,
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
        n_basis: int | None = None,
        basis: str | ArrayLike = "random",
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        random_state: RandomState = None,
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
        self.n_basis = n_basis
        self.basis = basis
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @refuse_other_keywords
    @single_threaded
    @restored_on_failure
    def fit(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        nuisance: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to items and their scores or preferences.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items; the square kernel matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_items,) or (n_items, n_outputs), or a preference graph
            Scores (larger is better), a target of `make_target`, a `ScoreGraph` or a `PairGraph`.
            A graph has its own cost, ties and weights; different options of the estimator raise a
            ValueError.
        groups : array-like of shape (n_items,), optional
            Group labels, hashable and in any order: only items of one group are compared. None
            compares all items.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items, 0 or larger. The weight of a pair is the product of the weights of
            its items; in the regression part (beta > 0) the weights of the items apply. Only ratios
            of weights matter; an item of weight 0 has no effect. For clicks, use the inverse
            propensity of a clicked item.
        nuisance : array-like of shape (n_items,) or (n_items, n_columns), or data frame, optional
            Variables that affect the scores but not the quality of an item, such as the position of
            a click, the plate of a measurement or the rater: f(x) + zᵀγ is fitted, and f(x) is the
            model. γ is not penalized. Numbers have a linear effect; a text column has an effect for
            each value.

        Returns
        -------
        RankRLS
            The fitted estimator.
        """
        alphas = check_alphas(np.atleast_1d(self.alpha), "alpha", allow_zero=True)
        target = read_y(y, groups, sample_weight, nuisance, X=X)
        X = check_groups(self, X, y, groups, target)
        if outputs_have_own_pairs(target, self.cost, self.ties):
            task = self._prepare(X, target)  # `train` stores the models of all outputs in self
            task.train(alpha=np.asarray(self.alpha, dtype=np.float64))
            return self
        check_beta(self.beta)
        X = validate_X(self, X)
        loss = self._make_loss(X.shape[0], target)
        features = self._make_features(X, loss, to_fit=True)
        coefficients = self._learn_outputs(loss, features, alphas, overwrite=True)
        self._store_coefficients(coefficients)
        return self

    @available_if(learns_in_chunks)  # type: ignore[untyped-decorator]
    @refuse_other_keywords
    @single_threaded
    @restored_on_failure
    def partial_fit(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        whole_groups: bool = False,
    ) -> Self:
        """Learn from one more chunk of rows.

        After any number of chunks, in any order, the coefficients equal those of one `fit` on all
        rows up to rounding. The model stores `SufficientStatistics` of the rows. Available for
        linear models and for kernels with a basis, which is passed or selected from the first
        chunk.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            At least one row; all chunks have the same features.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Scores, or a target of `make_target`; several outputs only for ``cost="magnitude",
            ties="include"``.
        groups : array-like of shape (n_rows,), optional
            Group labels. A group may have rows in several chunks under ``cost="magnitude",
            ties="include"``; otherwise all its rows must be in one chunk. None in all chunks puts
            all rows of all chunks in one group.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, as in `fit`; 1 if they are not passed.
        whole_groups : bool, default=False
            Whether no group of this chunk has rows in another chunk, as in the chunks of
            `read_letor`. The groups are then not stored, which saves memory and time.

        Returns
        -------
        RankRLS
            The model of all rows so far; its coefficients are zero as long as there is no pair.

        Raises
        ------
        ValueError
            If a group continues that is no longer stored; the model is not modified.

        See Also
        --------
        SufficientStatistics : Sums of several processes, merged and solved for many alphas.

        Notes
        -----
        Up to 128 MiB of the most recently seen groups are stored. Only the labels of all other
        groups are stored, and further rows of these groups raise a ValueError. A group of any
        length takes at most about two matrices of p × p.

        A chunk of n rows and p features (or basis items) costs n p² + p³/3; make chunks longer than
        p rows. `alpha` may be changed between chunks, other parameters may not. `solver` is
        ignored. `fit` discards the chunks, and `partial_fit` after `fit` starts a new model.

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
        alphas = check_alphas(np.atleast_1d(self.alpha), "alpha")
        check_same_index(X=X, y=y, groups=groups)
        warn_of_group_names(X, y, groups)
        is_first_chunk = not hasattr(self, "_sums")
        if is_first_chunk:  # forget the groups of an earlier `fit`
            self.group_columns_: list[str] = []
            self.max_group_size_ = None
        X = validate_X(self, X, reset=is_first_chunk)
        options: SumOptions = {
            "cost": self.cost,
            "ties": self.ties,
            "group_weight": self.group_weight,
            "beta": self.beta,
        }
        if is_first_chunk:
            sums = BatchSums(**options)
            features = make_chunk_features(self, X)
        else:
            sums = self._sums
            features = self._features
        check_same_parameters(
            {**sums.rule, "kernel": features.kernel}, {**options, "kernel": self.make_kernel()}
        )
        sums.add(features.transform(X), y, groups, sample_weight, whole_groups=whole_groups)
        if is_first_chunk:
            self._store_features(features)
            self._features: FeatureMap = features
            self._sums: BatchSums = sums
        self.output_shape_ = sums.output_shape
        (weights,) = sums.coefficients(alphas)  # of the only alpha
        self._store_coefficients(features.coefficients(weights))
        self.n_samples_seen_ = sums.n_items
        self.n_pairs_ = sums.n_pairs
        self.solver_ = "primal"
        self.n_iter_ = 1
        return self

    def _prepare(self, X: MatrixLike, target: TrainingTarget) -> RankRLSTask | OutputsTask:
        if outputs_have_own_pairs(target, self.cost, self.ties):
            assert isinstance(target, Relevance)
            tasks = []
            for target_of_output in split_outputs(target):
                learner = clone(self)
                tasks.append(learner._prepare(X, target_of_output))
            return OutputsTask(self, target, tasks)
        check_beta(self.beta)
        X = validate_X(self, X)
        return RankRLSTask(self, X, self._make_loss(X.shape[0], target))

    def _make_loss(self, n_items: int, target: TrainingTarget) -> SquaredLoss:
        """Validate the target and build the loss; sets the shape of the outputs."""
        loss, self.output_shape_ = ranking_loss(
            n_items, target, self.cost, self.ties, self.group_weight, self.beta
        )
        if target.nuisance is not None:
            self._nuisance_names = target.nuisance.names
        return loss

    def _make_features(
        self, X: MatrixLike, loss: SquaredLoss, *, to_fit: bool, keeps_matrix: bool = False
    ) -> SolverInput:
        """Solver and its input.

        `to_fit` enables shortcuts that are valid for a single fit only: a dual linear model may
        shift the features, which changes kernel values but not the weights, and the features of a
        basis may be computed in blocks.
        """
        kernel = self.make_kernel()
        is_on_basis = has_basis(self.n_basis, self.basis)
        method = choose_method(kernel, X, self.solver, has_basis=is_on_basis)
        has_nuisance = loss.nuisance is not None
        if has_nuisance and method == "iterative":
            raise ValueError(
                f"X has shape {X.shape}, which needs the iterative solver, and that does not "
                "support nuisance; reduce the number of columns, or use solver='primal'."
            )
        features = make_solver_input(
            kernel,
            X,
            method,
            n_basis=self.n_basis,
            basis=self.basis,
            random_state=self.random_state,
            shift_invariant=to_fit and self.beta == 0,  # only differences of scores count
            explicit=has_nuisance,
            keeps_matrix=keeps_matrix,
        )
        # the loss has one part only: pairs (beta 0) or items (beta 1)
        are_read_once = to_fit and self.beta in (0, 1) and not has_nuisance
        if are_read_once:  # computed block by block when they are read
            return features
        return features.stored()

    def _learn_outputs(
        self, loss: SquaredLoss, features: SolverInput, alphas: Array, *, overwrite: bool = False
    ) -> Array:
        """Coefficients of shape (n, n_outputs), for one alpha or one for each output."""
        if len(alphas) == 1:
            return np.asarray(self._learn(loss, features, alphas, overwrite=overwrite)[0])
        n_outputs = loss.target[0].size
        if len(alphas) != n_outputs:
            raise ValueError(
                f"alpha has {len(alphas)} values, but y has {n_outputs} outputs; pass a number, or "
                "a value for each output."
            )
        # fit all outputs for each distinct alpha, then select for each output its own alpha
        distinct_alphas, alpha_index = np.unique(alphas, return_inverse=True)
        # (n_alphas, n_coefficients, n_outputs)
        coefficients = self._learn(loss, features, distinct_alphas, overwrite=overwrite)
        columns = [coefficients[alpha_index[k], :, k] for k in range(n_outputs)]
        return np.stack(columns, axis=1)

    def _learn(
        self, loss: SquaredLoss, features: SolverInput, alphas: Array, *, overwrite: bool = False
    ) -> Array:
        """Coefficients of shape (n_alphas, n, n_outputs); sets all other fitted attributes.

        If `overwrite` is true, a kernel matrix may be overwritten.
        """
        if features.method == "iterative" and not alphas.all():
            raise ValueError(
                "alpha=0 needs a direct solver; use solver='primal', or a small alpha such as 1e-9."
            )
        progress = Progress("RankRLS")
        solutions = minimize(
            features.method,
            loss,
            features.matrix,
            alphas,
            overwrite=overwrite,
            tol=self.tol,
            max_iter=self.max_iter,
            watch=progress.iteration,
        )
        progress.close()
        if not np.isfinite(solutions.coef).all():
            raise ValueError(
                "the squares of some features or kernel values overflow; scale the features, for "
                "example with sklearn.preprocessing.StandardScaler."
            )
        self.n_pairs_ = loss.graph.n_pairs
        self.solver_ = features.method
        self.n_iter_ = solutions.n_iter
        self._store_features(features.map)
        warn_about_solutions(solutions, self.kernel, self.tol)
        if loss.nuisance is not None and len(alphas) == 1:
            weights_of_only_model = solutions.coef[0, :, 0]
            self._store_nuisance_effects(loss, features, float(alphas[0]), weights_of_only_model)

        # weights of the features to coefficients of columns or items, for all alphas and outputs
        n_alphas, n_features, n_outputs = solutions.coef.shape
        weight_columns = solutions.coef.transpose(1, 0, 2).reshape(n_features, -1)
        coefficients = features.coefficients(weight_columns)
        return coefficients.reshape(-1, n_alphas, n_outputs).transpose(1, 0, 2)

    def _store_nuisance_effects(
        self, loss: SquaredLoss, features: SolverInput, alpha: float, feature_weights: Array
    ) -> None:
        assert loss.nuisance is not None
        if not feature_weights.any():
            warn_explained()
        effects = nuisance_effects(  # and their standard errors
            dense_rows(features.matrix),
            feature_weights,
            loss.nuisance,
            loss.times_A,
            loss.target,
            loss.graph.groups,
            alpha,
        )
        self._store_effects(effects)


class RankRLSTask(HoldOutTask):
    """RankRLS with its data, for cross-validation; refits only if there is no shortcut.

    Parameters
    ----------
    learner : RankRLS
        The learner.
    X : array or sparse matrix
        The items.
    loss : SquaredLoss
        The loss to minimize.
    """

    def __init__(self, learner: RankRLS, X: MatrixLike, loss: SquaredLoss) -> None:
        super().__init__(learner, loss.graph)
        self.output_shape = learner.output_shape_
        self.loss = loss
        self._X = X
        # whether each fold is refitted, by iterations
        may_iterate = learner.kernel == "linear" and learner.solver == "auto"
        may_iterate = may_iterate and loss.nuisance is None and sp.issparse(X)
        self.refits = may_iterate and iterations_are_faster(X)
        self._iteration_limits = IterationLimits(tol=learner.tol, max_iter=learner.max_iter)

    @cached_property
    def features(self) -> SolverInput:
        """Features or kernel matrix of all items, never overwritten."""
        if self.refits:  # by iterations, which read the columns of X
            return make_solver_input(self.learner.make_kernel(), self._X, "iterative")
        return self._direct_features

    @cached_property
    def _direct_features(self) -> SolverInput:
        learner: RankRLS = self.learner
        return learner._make_features(self._X, self.loss, to_fit=False, keeps_matrix=True)

    def refits_folds(self, n_folds: int) -> bool:
        """Whether each fold is refitted; with many folds a Gram matrix is faster."""
        return self.refits and n_folds <= MOST_REFITS

    def _features_of_folds(self, n_folds: int) -> SolverInput:
        if self.refits_folds(n_folds):
            return self.features
        return self._direct_features

    def default_values(self, _: str) -> Array:
        """Default alphas, relative to the mean squared distance in a pair.

        40 alphas from the rounding error, where regularization has no effect, to 1e4 times the
        distance, where the model is shrunk to zero. For models that are trained by iterations, only
        the alphas that iterations can distinguish.
        """
        return default_alphas(self.alpha_scale(), self.alpha_decades)

    @property
    def alpha_decades(self) -> tuple[float, float]:
        """Exponents of ten of the default alphas, relative to their scale."""
        if self.refits:
            return ITERATIVE_DECADES
        return ALPHA_DECADES

    def alpha_scale(self) -> float:
        """Mean squared distance in a pair."""
        return pair_distance(self.loss, self.features)

    def held_out(self, folds: Folds, candidates: CandidateGrid) -> Array:
        """Held-out scores, by a shortcut if there is one."""
        features = self._features_of_folds(len(folds))
        limits = self._iteration_limits
        if self.refits_folds(len(folds)) and len(candidates) > 1:
            # these models are compared and dropped, so they need not be exact
            tol = max(self.learner.tol, HELD_OUT_TOL)
            limits = {"tol": tol, "max_iter": SHARED_STEPS}
        return cross_val_scores(self.loss, features, folds, candidates.axes["alpha"], limits)

    def from_edges(self, edges: PairGraph, candidates: CandidateGrid) -> Array:
        """Scores of all items by refits on the edges."""
        features = self.features
        loss_of_edges = self.loss.of_items(np.arange(self.n_rows), edges)
        alphas = candidates.axes["alpha"]
        solutions = minimize(
            features.method, loss_of_edges, features.matrix, alphas, **self._iteration_limits
        )
        weights = solutions.coef[:, :, 0].T  # a column per alpha
        return row_products(features.matrix, weights)

    def needs_refits(self, units: HoldOutUnits) -> bool:
        """Whether `coefficients_without` has to refit the model for each unit."""
        features = self._features_of_folds(len(units.members))
        problem = HoldOutProblem(self.loss, features, self._iteration_limits)
        return find_shortcut(problem, units) is Refit

    def coefficients_without(self, units: HoldOutUnits, alphas: Array) -> Array:
        """Coefficients of the models without each unit, followed by the model of all data.

        Shape (n_coefficients, n_units + 1, n_outputs, n_alphas); they belong to the columns of
        `KernelModel.regressors`. Computed by a shortcut if there is one.
        """
        features = self._features_of_folds(len(units.members))
        return coefficients_without(self.loss, features, units, alphas, self._iteration_limits)

    @property
    def has_pairs(self) -> bool:
        """Whether the data are one list, all of whose pairs are compared, without weights or
        nuisance.
        """
        # only then leave-pair-out has a shortcut
        is_plain = self.graph.item_weights is None and self.loss.nuisance is None
        return self.graph.is_complete and is_plain  # complete: it has all pairs of items

    def pairs(self) -> HeldOutPairs:
        """Held-out pairs of one list, all of whose pairs are compared."""
        if not self.has_pairs:
            return super().pairs()
        beta = self.loss.beta
        y = np.asarray(self.graph.y)
        n_items = len(y)
        if n_items < FEWEST_FOR_PAIRS:
            raise ValueError(
                f"leave-pair-out needs at least {FEWEST_FOR_PAIRS} items, got {n_items}: "
                "without two of them at least one pair must be left to train on."
            )
        # the spectrum of the uncentered kernel matrix is computed only if it is needed
        spectrum = self._spectrum(centered=beta == 0)
        output_columns = y.reshape(n_items, -1)
        return HeldOutPairs(spectrum, output_columns, beta, lambda: self._spectrum(centered=False))

    def _spectrum(self, *, centered: bool) -> Spectrum:
        """Spectrum of newly computed features, so that only one kernel matrix is in memory."""
        features = self.learner._make_features(self._X, self.loss, to_fit=False)
        return item_spectrum(features, centered=centered, overwrite=True)

    def path(self, alphas: Array) -> RankRLSPath:
        """Models for several alphas, trained on all data."""
        learner: RankRLS = self.learner
        features = learner._make_features(self._X, self.loss, to_fit=True)
        coefficients = learner._learn(self.loss, features, alphas, overwrite=True)
        return RankRLSPath(learner, alphas, coefficients)

    def train(self, **values: ParameterValue) -> RankRLS:
        """Train RankRLS with one alpha, or with one alpha for each output."""
        learner: RankRLS = self.learner
        learner.alpha = values["alpha"]
        alphas = np.atleast_1d(np.asarray(values["alpha"], dtype=np.float64))
        coefficients = learner._learn_outputs(self.loss, self.features, alphas)
        learner._store_coefficients(coefficients)
        return learner


class RankRLSPath(ModelPath):
    """Models along a list of alphas, as `RankRLS.path` returns them.

    Parameters
    ----------
    template : RankRLS
        The unfitted ranker.
    alphas, coefficients
        See the attributes.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        In the order given.
    coefficients : ndarray of shape (n_alphas, n, n_outputs)
        Weights of the features (linear kernel) or of the training or basis items.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> path = RankRLS().path([[0.0], [1.0], [2.0]], [0, 1, 2], alphas=[1e-09, 1.0])
    >>> path.coefficients[:, 0, 0].round(2)
    array([1.  , 0.67])
    >>> path.predict([[3.0]]).shape
    (1, 2)
    """
