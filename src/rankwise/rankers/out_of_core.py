"""Sufficient statistics of RankRLS: models of data that do not fit in memory."""

from __future__ import annotations

from numpy.typing import ArrayLike

from rankwise.rankers.batch_sums import BatchSums
from rankwise.rankers.rank_rls import RankRLS, RankRLSPath
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_alphas


class SufficientStatistics(BatchSums):
    """Sums over rows that determine a linear RankRLS.

    Use it for data that do not fit in memory, or that live elsewhere: whatever reads the rows
    (DuckDB, Polars, Spark, Dask, a loop over files) adds them up in batches, in as many processes
    as there are; the sums are merged and solved. The models are those of `RankRLS.fit` on all rows
    at once, to rounding, whatever the batches and their order. It is ``Rᵀ L R`` and ``Rᵀ d``
    ([RankRLS09] equation 28), so its size does not depend on the number of rows.

    Parameters
    ----------
    cost, ties, group_weight, beta
        As in `RankRLS`. With ``cost="magnitude", ties="include"`` a group may have rows in several
        batches, with others it must come whole in one.

    Attributes
    ----------
    n_items, n_pairs : int
        Rows and pairs so far.

    See Also
    --------
    RankRLS.partial_fit : A model after each batch; kernels with a basis, too.

    Notes
    -----
    Groups that may go on are kept in 128 MiB, those seen last. Of all others the labels are kept,
    and a row that comes later is refused, never counted wrongly.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLS, SufficientStatistics
    >>> rng = np.random.default_rng(0)
    >>> X, y, groups = rng.random((90, 2)), rng.random(90), np.repeat(np.arange(9), 10)
    >>> one, two = SufficientStatistics(), SufficientStatistics()
    >>> one.add(X[:25], y[:25], groups[:25]).add(X[60:], y[60:], groups[60:]).n_items
    55
    >>> sent = two.add(X[25:60], y[25:60], groups[25:60]).to_bytes()  # in another process
    >>> path = one.merge(SufficientStatistics.from_bytes(sent)).solve([0.01, 0.1])
    >>> np.allclose(path.model(1).coef_, RankRLS(0.1).fit(X, y, groups).coef_, rtol=1e-10)
    True
    """

    @single_threaded
    def solve(self, alphas: ArrayLike) -> RankRLSPath:
        """The models of a list of alphas, as `RankRLS.path` of all rows gives them.

        Parameters
        ----------
        alphas : array-like of shape (n_alphas,)
            Positive numbers in any order.

        Returns
        -------
        RankRLSPath
            ``path.model(k)`` is the `RankRLS` of ``alphas[k]``, ready to predict and to be saved.
        """
        checked = check_alphas(alphas, "alphas")
        if not self.n_pairs and (self.beta < 1 or not self.n_items):
            raise ValueError(
                f"there is nothing to rank: {self.n_items} items make no pair; give group labels "
                "that are shared by items to be compared, and scores that differ."
            )
        model = RankRLS(**self.rule)
        vars(model).update(vars(self._columns))
        model.n_pairs_ = self.n_pairs
        model.solver_ = "primal"
        model.n_iter_ = 1
        return RankRLSPath(model, checked, self.coefficients(checked))
