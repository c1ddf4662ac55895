"""RankRLS on a cluster: every block adds up its pairs, the sums are merged in a tree."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import dask
import numpy as np
from numpy.typing import ArrayLike

from rankwise.dask.blocks import RowBlock, Survey, align, survey
from rankwise.dask.lazy_model import LazyModel
from rankwise.dask.whole_groups import gather_groups
from rankwise.estimators import RankRLS as LocalRankRLS
from rankwise.estimators.chunked import pair_rule
from rankwise.features import FeatureMap
from rankwise.model_selection.candidates import check_alphas
from rankwise.solvers.closed_form import solve_shifted
from rankwise.solvers.sums import ONE_LIST, PairRule, StreamingSums

MERGED_AT_ONCE = 8
LARGEST_OPEN = 2**30  # bytes that the rows of split groups may take on one worker, by estimate


@dataclass(eq=False, repr=False)
class RankRLS(LazyModel):
    """Regularized least-squares ranking of Dask collections, with the coefficients of one machine.

    Minimizes what `rankwise.RankRLS` does. Each block of the data adds up its ``Rᵀ L R`` and
    ``Rᵀ d`` ([RankRLS09] equation 28) on a worker; of groups that have rows in several blocks it
    also passes on the rows, or what they can be reduced to. The sums are merged in a tree and the
    client solves one system of p × p.

    Parameters
    ----------
    alpha, kernel, gamma, degree, coef0, kernel_params, cost, ties, group_weight, beta
        As in `rankwise.RankRLS`; a kernel other than "linear" needs a basis.
    n_basis : int, optional
        Number of basis items.
    basis : "random", array of int, or array of shape (n_basis, n_features)
        How the basis is chosen, or row numbers, or the points themselves.
    shuffle : bool
        First move rows so that every group is whole in one block. Not needed for
        ``cost="magnitude", ties="include"``, but cheaper if many groups are split: if rows of
        groups are spread at random. The other costs always do so.
    random_state : int, RandomState or None
        Seed of the choice of basis items: the same as on one machine.

    Attributes
    ----------
    coef_, dual_coef_, X_fit_, basis_indices_, n_pairs_, n_features_in_, feature_names_in_
        As in `rankwise.RankRLS`.
    n_split_groups_ : int
        Groups that had rows in several blocks.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import rankwise
    >>> from rankwise.dask import RankRLS
    >>> rng = np.random.default_rng(0)
    >>> X, y, groups = rng.random((90, 2)), rng.random(90), np.repeat(np.arange(9), 10)
    >>> lazy = [da.from_array(values, chunks=25) for values in (X, y, groups)]
    >>> model = RankRLS(alpha=0.1).fit(*lazy)
    >>> np.allclose(model.coef_, rankwise.RankRLS(alpha=0.1).fit(X, y, groups).coef_, rtol=1e-10)
    True
    >>> model.n_split_groups_
    2
    """

    local_class = LocalRankRLS

    alpha: float = 1e-3
    _: KW_ONLY
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    beta: float = 0.0
    n_basis: int | None = None
    basis: str | ArrayLike = "random"
    shuffle: bool = False
    random_state: Any = None

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Learn from items and their scores, on the workers.

        Parameters
        ----------
        X : dask array or data frame of shape (n_items, n_features)
            Items. Blocks of unknown length are fine.
        y : dask array, series or data frame, or array-like
            Scores, with the blocks of X; larger is better.
        groups : dask array or series, or array-like, optional
            Group labels, with the blocks of X; None compares all items.
        sample_weight : None
            Weights of items are not taken on a cluster, and refused.

        Returns
        -------
        RankRLS
            The fitted estimator.
        """
        self._refuse_weights(sample_weight)
        alphas = check_alphas([self.alpha], "alpha")
        shape = _output_shape(y)
        n_outputs = shape[0] if shape else 1
        rule = pair_rule(self, n_outputs)
        aligned = align(X, y, groups)
        self._learn_columns(X)
        seen = survey(aligned)
        self.n_split_groups_ = len(seen.split)
        view = self._fixed_map(aligned, seen)
        blocks = aligned.blocks
        keep: list[set[Hashable]] = [{ONE_LIST}] * len(blocks)
        if groups is None and rule.tells_scores_apart and len(blocks) > 1:
            raise ValueError(
                f"all rows are one list in {len(blocks)} blocks, but with cost={self.cost!r} and "
                f"ties={self.ties!r} a group must be whole in one block; give groups, or use "
                "cost='magnitude' with ties='include'."
            )
        if groups is not None and (self.shuffle or rule.tells_scores_apart):
            blocks, keep = gather_groups(blocks, seen), [set()] * len(blocks)
        elif groups is not None:
            _check_room(seen, view.n_features + n_outputs)
            keep = seen.split_by_block()
        sums = _merged(blocks, keep, view, (view.n_features, n_outputs, rule, self.beta))
        if not sums.n_pairs and self.beta < 1:
            raise ValueError(
                f"there is nothing to rank: {sums.n_items} items make no pair; give group labels "
                "that are shared by items to be compared, and scores that differ."
            )
        self.output_shape_, self.n_pairs_ = shape, sums.n_pairs
        solutions, _ = solve_shifted(*sums.system(), alphas)
        self._store(view.coefficients(solutions[0]))
        return self


def _output_shape(y: Any) -> tuple[int, ...]:
    shape = np.shape(y) if not hasattr(y, "shape") else y.shape
    return () if len(shape) == 1 else (int(shape[1]),)


def _check_room(seen: Survey, n_columns: int) -> None:
    """Refuse to bring more rows of split groups together than a worker may hold."""
    rows = [min(sum(where.values()), n_columns) for where in seen.split.values()]
    n_bytes = 8 * n_columns * sum(rows)
    if n_bytes > LARGEST_OPEN:
        raise ValueError(
            f"{len(rows)} groups have rows in several blocks, {n_bytes / 2**30:,.1f} GiB of them "
            f"to be merged on one worker (at most {LARGEST_OPEN / 2**30:g} GiB); pass shuffle=True "
            "to make the groups whole first, or cut the blocks between groups."
        )


def _merged(
    blocks: list[Any],
    keep: list[set[Hashable]],
    view: FeatureMap,
    settings: tuple[int, int, PairRule, float],
) -> StreamingSums:
    """The sums of all blocks, from a tree of tasks."""
    shared = dask.delayed(view, traverse=False)
    accumulate, merge = dask.delayed(_add_up), dask.delayed(_merge)
    sums = [
        accumulate(block, shared, settings, labels)
        for block, labels in zip(blocks, keep, strict=True)
    ]
    while len(sums) > 1:
        starts = range(0, len(sums), MERGED_AT_ONCE)
        sums = [merge(sums[start : start + MERGED_AT_ONCE]) for start in starts]
    result: StreamingSums = dask.compute(dask.delayed(_settled)(sums[0]))[0]
    return result


def _add_up(
    block: RowBlock,
    view: FeatureMap,
    settings: tuple[int, int, PairRule, float],
    keep: set[Hashable],
) -> StreamingSums:
    """On a worker: the sums of one block; rows of the groups in `keep` are passed on."""
    sums = StreamingSums(*settings, open_bytes=2 * LARGEST_OPEN)
    if len(block.y):
        sums.add(view.features(block.X), block.y, block.groups, keep=keep, remember=False)
    return sums


def _merge(several: list[StreamingSums]) -> StreamingSums:
    """On a worker: all sums in one; those given may be read again if a worker dies."""
    sums = several[0].copy()
    for other in several[1:]:
        sums.merge(other)
    return sums


def _settled(sums: StreamingSums) -> StreamingSums:
    """On a worker: the sums alone, without rows, for the client."""
    sums = sums.copy()
    sums.settle()
    return sums
