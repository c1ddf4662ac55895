"""RankSVM on a cluster: blocks evaluate loss and gradient, the client runs the solver."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.dask.blocks import Survey, align, survey
from rankwise.dask.cluster_loss import ClusterLoss, prepare_blocks
from rankwise.dask.lazy_model import LazyModel
from rankwise.dask.whole_groups import gather_groups
from rankwise.estimators import RankSVM as LocalRankSVM
from rankwise.estimators.margin_ranker import (
    check_stopping,
    minimize_to_gap,
    report_solution,
    warn_unfinished,
)
from rankwise.estimators.rank_svm import LOSSES, choose_method
from rankwise.graphs.pair_graph import GROUP_WEIGHTS
from rankwise.model_selection.candidates import check_alphas
from rankwise.options import check_option
from rankwise.solvers.margin_objective import MarginObjective


@dataclass(eq=False, repr=False)
class RankSVM(LazyModel):
    """Ranking support vector machine on Dask collections, trained to a certified gap.

    Minimizes what `rankwise.RankSVM` does, by the same solver. The blocks stay on the workers; for
    each point that the solver looks at they compute loss and subgradient of their groups, and the
    client adds them up. Every group must be whole in one block: this is checked.

    Parameters
    ----------
    alpha, loss, kernel, gamma, degree, coef0, kernel_params, group_weight
        As in `rankwise.RankSVM`; a kernel other than "linear" needs a basis.
    n_basis : int, optional
        Number of basis items.
    basis : "random", array of int, or array of shape (n_basis, n_features)
        How the basis is chosen, or row numbers, or the points themselves.
    tol, max_iter, verbose
        As in `rankwise.RankSVM`.
    solver : {"auto", "lbfgs", "newton-cg", "bmrm"}
        As in `rankwise.RankSVM`, but "auto" is "lbfgs" for both losses, which looks at the data
        less often.
    shuffle : bool
        Move rows between blocks if a group is split; without it split groups are refused.
    random_state : int, RandomState or None
        Seed of the choice of basis items.

    Attributes
    ----------
    coef_, dual_coef_, X_fit_, basis_indices_, n_pairs_, n_features_in_, feature_names_in_
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
    >>> from rankwise.dask import RankSVM
    >>> rng = np.random.default_rng(0)
    >>> X, y, groups = rng.random((90, 2)), rng.random(90), np.repeat(np.arange(9), 10)
    >>> lazy = [da.from_array(values, chunks=30) for values in (X, y, groups)]
    >>> RankSVM(alpha=0.1).fit(*lazy).gap_ <= 1e-3
    True
    """

    local_class = LocalRankSVM

    alpha: float = 1e-3
    _: KW_ONLY
    loss: str = "hinge"
    group_weight: str = "pairs"
    n_basis: int | None = None
    basis: str | ArrayLike = "random"
    tol: float = 1e-3
    max_iter: int = 1000
    solver: str = "auto"
    shuffle: bool = False
    verbose: int = 0
    random_state: Any = None

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
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
        sample_weight : None
            Weights of items are not taken on a cluster, and refused.

        Returns
        -------
        RankSVM
            The fitted estimator.
        """
        self._refuse_weights(sample_weight)
        alpha = float(check_alphas([self.alpha], "alpha")[0])
        check_option("group_weight", self.group_weight, GROUP_WEIGHTS)
        self.solver_ = choose_method(self.loss, "lbfgs" if self.solver == "auto" else self.solver)
        check_stopping(self.tol, self.max_iter)
        aligned = align(X, y, groups)
        self._learn_columns(X)
        seen = survey(aligned)
        self.n_split_groups_ = len(seen.split)
        self._check_whole(seen, grouped=groups is not None)
        view = self._fixed_map(aligned, seen)
        blocks = gather_groups(aligned.blocks, seen) if seen.split else aligned.blocks
        loss = ClusterLoss(prepare_blocks(blocks, view, LOSSES[self.loss], self.group_weight))
        if not loss.n_pairs:
            raise ValueError(
                f"there is nothing to rank: {loss.n_items} items make no pair of different "
                "scores; give group labels that are shared by the items to be compared."
            )
        identity = sp.identity(view.n_features, format="csr")
        objective = MarginObjective(identity, loss, alpha, loss.magnitude, loss.n_items)
        solution = minimize_to_gap(self, objective, moment=loss.moment)
        self.n_pairs_, self.n_evaluations_ = loss.n_pairs, loss.n_evaluations
        report_solution(self, solution)
        self._store(view.coefficients(solution.best.w[:, None]))
        warn_unfinished(self, [solution], [alpha])
        return self

    def _check_whole(self, seen: Survey, grouped: bool) -> None:
        if not grouped and np.count_nonzero(seen.n_rows) > 1:
            raise ValueError(
                f"without groups all {seen.n_rows.sum()} rows are one list, but they are in "
                f"{np.count_nonzero(seen.n_rows)} blocks; give groups, or one block (X.rechunk), "
                "or use RankRLS, which takes a list of any length."
            )
        if seen.split and not self.shuffle:
            raise ValueError(
                f"{len(seen.split)} groups have rows in several blocks, among them "
                f"{next(iter(seen.split))!r}; RankSVM needs every group whole in one. Pass "
                "shuffle=True to move their rows, or cut the blocks between groups."
            )
