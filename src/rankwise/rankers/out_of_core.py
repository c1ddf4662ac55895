"""Sufficient statistics of RankRLS: models of data that do not fit in memory."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from rankwise.rankers.batch_sums import BatchSums
from rankwise.rankers.rank_rls import RankRLS, RankRLSPath
from rankwise.runtime.threads import single_threaded
from rankwise.solvers.normal_equations import GroupMoments, NormalEquations, WeightedSums
from rankwise.validation import check_alphas

FORMAT = "rankwise.SufficientStatistics 2"
READING_ERRORS = (
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    OSError,
    RuntimeError,
    zipfile.BadZipFile,
)


class SufficientStatistics(BatchSums):
    """Sums over rows that determine a linear RankRLS.

    Use it for data that do not fit in memory. Any reader (DuckDB, Polars, Spark, Dask, a loop over
    files) passes the rows in batches, in one or several processes; the sums are then merged and
    solved. The models equal those of `RankRLS.fit` on all rows up to rounding, for any batches in
    any order. The sums are ``Rᵀ L R`` and ``Rᵀ d`` ([RankRLS09] equation 28); their size does not
    depend on the number of rows.

    Parameters
    ----------
    cost, ties, group_weight, beta
        As in `RankRLS`, with the same defaults. With ``cost="magnitude", ties="include"`` a group
        may have rows in several batches; otherwise all rows of a group must be in one batch.

    Attributes
    ----------
    n_items, n_pairs : int
        Number of rows and pairs added so far.

    See Also
    --------
    RankRLS.partial_fit : Update a model after each batch; also for kernels with a basis.

    Notes
    -----
    Up to 128 MiB of the most recently seen groups are stored, so that later batches may continue
    them. Only the labels of all other groups are stored, and further rows of these groups raise a
    ValueError.

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
        """Models for a list of alphas, equal to `RankRLS.path` on all rows.

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
        model.__dict__.update(vars(self._input_schema))  # number and names of columns, outputs
        model.n_pairs_ = self.n_pairs
        model.solver_ = "primal"
        model.n_iter_ = 1
        return RankRLSPath(model, checked, self.coefficients(checked))

    def to_bytes(self) -> bytes:
        """Return the sums as bytes, which `from_bytes` reads.

        The format does not use pickle; group labels must be numbers or text.

        Returns
        -------
        bytes
            The sums.
        """
        if not all(isinstance(name, str | int | float | None) for name in self._n_rows_by_group()):
            raise ValueError(
                "only numbers and text can be saved as group labels; convert the labels to text."
            )
        pairs = self._equations.pairs
        rows = self._equations.rows
        n_features = 0
        if self.n_items:
            n_features = self._input_schema.n_features_in_
        feature_names = vars(self._input_schema).get("feature_names_in_", [])  # of data frames
        facts = {
            "format": FORMAT,
            "rule": self.rule,
            "n_features": n_features,
            "feature_names": list(feature_names),
            "output_shape": self.output_shape,
            "totals": [pairs.weight, pairs.n_terms, rows.weight, rows.n_terms],
            "open": [
                [name, group.n_items, group.weight, group.pair_weight]
                for name, group in self._open_groups.items()
            ],
            "closed": list(self._n_rows_of_closed_groups.items()),
        }
        # for each open group: the mean of its rows, and a root of the Gram matrix of its centered
        # rows
        means = np.array([group.mean for group in self._open_groups.values()])
        roots = [group.scatter_root for group in self._open_groups.values()]
        if not roots:
            roots = [np.empty((0, 0))]
        root_ends = np.cumsum([len(root) for root in roots])
        text = np.frombuffer(json.dumps(facts).encode(), np.uint8)
        sums = [pairs.gram, pairs.moment, rows.gram, rows.moment]
        stream = io.BytesIO()
        np.savez(stream, text, *sums, means, np.vstack(roots), root_ends)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the sums that `to_bytes` wrote; other bytes raise a ValueError.

        Parameters
        ----------
        data : bytes
            Result of `to_bytes`.

        Returns
        -------
        SufficientStatistics
            The sums.
        """
        try:
            text, *arrays = np.load(io.BytesIO(data), allow_pickle=False).values()
            facts = json.loads(text.tobytes())
            if facts["format"] != FORMAT:
                raise ValueError(f"the format is {facts['format']!r:.40}, expected {FORMAT!r}")
            gram, moment, row_gram, row_moment, means, stacked_roots, root_ends = arrays
        except READING_ERRORS as error:
            raise ValueError(
                f"these bytes do not contain rankwise.SufficientStatistics: {error!s:.200}."
            ) from error
        sums = cls(**facts["rule"])
        weight, n_pairs, row_weight, n_items = facts["totals"]
        sums._equations = NormalEquations(
            WeightedSums(gram, moment, weight, n_pairs),
            WeightedSums(row_gram, row_moment, row_weight, n_items),
        )
        roots = np.split(stacked_roots, root_ends[:-1])
        # without open groups there is one empty root, and no mean
        for group_facts, mean, root in zip(facts["open"], means, roots, strict=False):
            name, n_rows, total_weight, pair_weight = group_facts
            sums._open_groups[name] = GroupMoments(n_rows, total_weight, pair_weight, mean, root)
        sums._n_rows_of_closed_groups = dict(facts["closed"])
        sums._input_schema.n_features_in_ = facts["n_features"]
        sums._input_schema.output_shape_ = tuple(facts["output_shape"])
        if facts["feature_names"]:
            sums._input_schema.feature_names_in_ = np.array(facts["feature_names"], object)
        return sums
