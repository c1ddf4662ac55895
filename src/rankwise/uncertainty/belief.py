"""What is believed about the ratings of items before the next comparison."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit

from rankwise.arrays import Array, Indices
from rankwise.graphs import PairGraph
from rankwise.machine import check_matrix_fits
from rankwise.uncertainty.calibration import ProbabilityMap

DENSE_LIMIT = 3000  # items; above, variances are estimated from draws
N_DRAWS = 64
DRAW_TOLERANCE = 1e-3
LOGISTIC = 1.702  # σ(1.702 x) is nearly the normal distribution function
NEWTON_STEPS = 30
MODE_TOLERANCE = 1e-5
SINGLE = 300  # items; from here on single precision, which is enough to choose a pair


class Belief:
    """Ratings with mean r and covariance C, and how a comparison would go.

    P(i beats j) is a logistic curve of r_i − r_j, flatter where its variance is large. A comparison
    of i and j with noise σ² changes C by a matrix of rank one,

        C ← C − g gᵀ / (σ² + v),     g = C (e_i − e_j),     v = g_i − g_j,

    which is kept as g: no matrix of all pairs is written again.

    Parameters
    ----------
    mean : ndarray of shape (n_items,)
        r.
    curve : ProbabilityMap
        From a difference and the root of its variance to a probability.
    covariance : ndarray of shape (n_items, n_items), optional
        C, of which only the part on and above the diagonal is read; or else
    root : ndarray of shape (n_items, n_columns), optional
        F with F Fᵀ = C.
    """

    def __init__(
        self,
        mean: Array,
        curve: ProbabilityMap,
        *,
        covariance: Array | None = None,
        root: Array | None = None,
    ) -> None:
        self.mean, self.curve = mean, curve
        self._C, self._F = covariance, root
        self._changes: list[Array] = []

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.mean)

    @property
    def is_dense(self) -> bool:
        """Whether the variances of all pairs are at hand."""
        return self._C is not None

    @property
    def noise(self) -> float:
        """σ², the variance of one comparison about the difference of the ratings."""
        return (LOGISTIC / self.curve.slope) ** 2 if self.curve.slope > 0 else np.inf

    def variances(self, i: Any, j: Any) -> Array:
        """Variance of r_i − r_j for arrays i and j; for slices of all i with all j > i."""
        is_block = isinstance(i, slice)
        if self._C is not None:
            own = self._C.diagonal()
            rows = own[i, None] if is_block else own[i]
            at = (i, j) if is_block else (np.minimum(i, j), np.maximum(i, j))
            v = rows + own[j] - 2 * self._C[at]
        else:
            assert self._F is not None
            difference = self._F[i] - self._F[j]
            v = np.einsum("ij,ij->i", difference, difference)
        for g in self._changes:
            v = v - ((g[i, None] if is_block else g[i]) - g[j]) ** 2
        return np.asarray(np.maximum(v, 0.0))

    def item_variances(self) -> Array:
        """Variance of each rating about the mean of all, on which its rank depends."""
        v = self._own
        for g in self._changes:
            v = v - (g - g.mean()) ** 2
        return np.asarray(np.maximum(v, 0.0), dtype=np.float64)

    @cached_property
    def _own(self) -> Array:
        if self._C is None:
            assert self._F is not None
            centered = self._F - self._F.mean(axis=0)
            return np.asarray(np.einsum("ij,ij->i", centered, centered))
        upper, own = np.triu(self._C), self._C.diagonal()
        means = (upper.sum(axis=0) + upper.sum(axis=1) - own) / len(own)
        return np.asarray(own - 2 * means + means.mean())

    def observe(self, i: int, j: int) -> None:
        """Reckon with a comparison of i and j, whose outcome is not known yet."""
        if self._C is not None:
            g = self._column(i) - self._column(j)
        else:
            assert self._F is not None
            g = self._F @ (self._F[i] - self._F[j])
        for other in self._changes:
            g = g - other * (other[i] - other[j])
        self._changes.append(g / np.sqrt(self.noise + max(0.0, float(g[i] - g[j]))))

    def _column(self, i: int) -> Array:
        assert self._C is not None
        return np.concatenate([self._C[:i, i], self._C[i, i:]])

    def draw(self, items: Indices, n_draws: int, rng: np.random.Generator) -> Array:
        """Ratings of some items, numbered in rising order, shape (n_draws, n_items)."""
        if self._C is None:
            assert self._F is not None
            F = self._F[items]
        else:
            upper = np.triu(self._C[np.ix_(items, items)].astype(np.float64))
            values, Q = np.linalg.eigh(upper.T)
            F = Q * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(self.mean[items] + rng.standard_normal((n_draws, F.shape[1])) @ F.T)


def belief_of_comparisons(
    graph: PairGraph, features: Array | None, prior: float, rng: np.random.Generator
) -> Belief:
    """Ratings after these comparisons, from a normal prior.

    With x = e_i − e_j, or a difference of features that are centered and have mean square 1,

        r = Φ A⁻¹ Φᵀ d,     C = σ² Φ A⁻¹ Φᵀ,     A = Φᵀ L Φ + prior · I

    where Φ is the identity without features. A prior of 1 counts as one comparison of every item
    with an average one that was a tie. Of margins σ² maximizes the likelihood:
    ``(Σ ω δ² − dᵀ r)/n``. Of wins and ties ratings are log odds (Bradley and Terry), L and d those
    of a Newton step at the most probable ratings, and σ² = 1: Laplace's approximation.
    """
    n = graph.n_items
    weight = graph.edge_weight / graph.edge_weight.mean() if graph.n_pairs else graph.edge_weight
    flow = weight * graph.edge_target
    Phi = None if features is None else _scaled(features)
    is_verdict = bool(np.isin(graph.edge_target, (0.0, 1.0)).all())
    if is_verdict:
        prior /= 4  # the curvature of a tie
        weight, flow = _at_the_mode(graph, weight, Phi, prior)
    L, d = _system(graph, weight, flow)
    root = None
    if Phi is None and n > DENSE_LIMIT:
        mean, root = _by_draws(L, weight, graph, d, prior, rng)
    elif Phi is None:
        check_matrix_fits(n, n, "the covariance of the ratings", "compare fewer items")
        C, mean = _inverse(L.astype(np.float32 if n > SINGLE else np.float64), prior, d)
    else:
        A = Phi.T @ (L @ Phi) + prior * np.eye(Phi.shape[1])
        factor = scipy.linalg.cholesky(A, lower=True)
        root = np.asarray(scipy.linalg.solve_triangular(factor, Phi.T, lower=True).T)
        mean = root @ (root.T @ d)
    noise = 1.0 if is_verdict else _noise(graph, weight, d, mean)
    spread = LOGISTIC if is_verdict else np.sqrt(noise)  # P = σ(1.702 d / √(spread² + v))
    curve = ProbabilityMap(LOGISTIC / spread, 1 / spread**2)
    if root is not None and n > DENSE_LIMIT:
        return Belief(mean, curve, root=np.sqrt(noise) * root)
    return Belief(mean, curve, covariance=noise * (C if root is None else root @ root.T))


def _at_the_mode(
    graph: PairGraph, weight: Array, Phi: Array | None, prior: float
) -> tuple[Array, Array]:
    """Weights ω p(1 − p) and flows of the Newton step at the most probable ratings."""
    said = (1 + graph.edge_target) / 2
    u = np.zeros(graph.n_items if Phi is None else Phi.shape[1])

    def margins(u: Array) -> Array:
        r = u if Phi is None else Phi @ u
        return np.asarray(r[graph.winner] - r[graph.loser])

    def loss(u: Array) -> float:
        m = margins(u)
        return float(weight @ (np.logaddexp(0.0, m) - said * m) + prior / 2 * u @ u)

    for _ in range(NEWTON_STEPS):
        m = margins(u)
        p = expit(m)
        bent = weight * p * (1 - p)
        flow = weight * (said - p) + bent * m
        step = _solved(*_system(graph, bent, flow), Phi, prior, u) - u
        if np.abs(step).max(initial=0.0) < MODE_TOLERANCE:
            break
        now, share = loss(u), 1.0
        while share > 1e-3 and loss(u + share * step) > now:
            share /= 2
        u = u + share * step
    return bent, flow


def _solved(L: sp.csr_array, d: Array, Phi: Array | None, prior: float, start: Array) -> Array:
    """``(Φᵀ L Φ + prior · I)⁻¹ Φᵀ d`` by conjugate gradients."""
    if Phi is None:
        A, inverse = _shifted(L, prior)
        return np.asarray(cg(A, d, start, rtol=1e-8, M=inverse)[0])
    size = Phi.shape[1]
    A = LinearOperator((size, size), lambda v: Phi.T @ (L @ (Phi @ v)) + prior * v, dtype=float)
    return np.asarray(cg(A, Phi.T @ d, start, rtol=1e-8)[0])


def _shifted(L: sp.csr_array, prior: float) -> tuple[sp.csr_array, sp.dia_array]:
    """A = L + prior · I, and the inverse of its diagonal."""
    A = (L + prior * sp.eye_array(L.shape[0])).tocsr()
    return A, sp.diags_array(1 / A.diagonal())


def _system(graph: PairGraph, weight: Array, flow: Array) -> tuple[sp.csr_array, Array]:
    """L and d for these weights and flows of the comparisons."""
    n, i, j = graph.n_items, graph.winner, graph.loser
    off = sp.coo_array((weight, (i, j)), shape=(n, n)).tocsr()
    off = off + off.T
    L = sp.diags_array(np.asarray(off.sum(axis=1)).ravel()) - off
    return L.tocsr(), _divergence(graph, flow)


def _divergence(graph: PairGraph, flow: Array) -> Array:
    """What goes out of each item."""
    n = graph.n_items
    ends = np.bincount(graph.winner, flow, n) - np.bincount(graph.loser, flow, n)
    return np.asarray(ends, dtype=np.float64)


def _noise(graph: PairGraph, weight: Array, d: Array, mean: Array) -> float:
    total = float(weight @ graph.edge_target**2)
    return max(total - float(d @ mean), 1e-3 * total) / graph.n_pairs


def _inverse(L: sp.csr_array, prior: float, d: Array) -> tuple[Array, Array]:
    """``A⁻¹`` on and above the diagonal, and ``A⁻¹ d``, for A = L + prior · I."""
    A = L.toarray()
    A.flat[:: len(A) + 1] += A.dtype.type(prior)
    potrf, potri, potrs = scipy.linalg.get_lapack_funcs(("potrf", "potri", "potrs"), (A,))
    factor, _ = potrf(A.T, lower=1, overwrite_a=1, clean=0)
    mean, _ = potrs(factor, d, lower=1)
    inverse, _ = potri(factor, lower=1, overwrite_c=1)
    return np.asarray(inverse.T), np.asarray(mean, dtype=np.float64)


def _scaled(features: Array) -> Array:
    """Centered, with mean square 1 of a row; no more columns than rows."""
    Phi = features - features.mean(axis=0)
    if Phi.shape[1] > Phi.shape[0]:
        Phi = scipy.linalg.qr(Phi.T, mode="economic")[1].T
    size = np.sqrt((Phi**2).sum(axis=1).mean())
    return np.asarray(Phi / size) if size > 0 else Phi


def _by_draws(
    L: sp.csr_array,
    weight: Array,
    graph: PairGraph,
    d: Array,
    prior: float,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """A⁻¹ d, and draws of covariance A⁻¹ as columns of a root.

    ``A⁻¹ z`` has the covariance A⁻¹ if z has A: noise of every comparison and of every prior.
    """
    n = len(d)
    A, inverse = _shifted(L, prior)
    mean, _ = cg(A, d, rtol=1e-8, M=inverse)
    root = np.empty((n, N_DRAWS), dtype=np.float32)
    for k in range(N_DRAWS):
        noise = np.sqrt(weight) * rng.standard_normal(len(weight))
        z = _divergence(graph, noise) + np.sqrt(prior) * rng.standard_normal(n)
        root[:, k] = cg(A, z, rtol=DRAW_TOLERANCE, M=inverse)[0]
    return np.asarray(mean), np.asarray(root / np.sqrt(N_DRAWS))
