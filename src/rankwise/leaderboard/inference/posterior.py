"""What is believed about the ratings of items before the next comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit

from rankwise.arrays import Array, Indices
from rankwise.graphs import PairGraph
from rankwise.uncertainty.calibrated_ranker import ProbabilityMap

MOST_ITEMS = 3000  # of which every pair is looked at
LOGISTIC = 1.702  # σ(1.702 x) is nearly the normal distribution function
SINGLE = 300  # items; from here on single precision, which is enough to choose a pair


class RatingPosterior:
    """Ratings with mean r and covariance C, and how a comparison would go.

    P(i beats j) is a logistic curve of r_i − r_j, flatter where its variance is large. A comparison
    of i and j with noise σ² changes C by a matrix of rank one,

        C ← C − g gᵀ / (σ² + v),     g = C (e_i − e_j),     v = g_i − g_j,

    which is kept as g: no matrix of all pairs is written again.

    Parameters
    ----------
    mean : ndarray of shape (n_items,)
        r.
    covariance : ndarray of shape (n_items, n_items)
        C.
    curve : ProbabilityMap
        From a difference and the root of its variance to a probability.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import PairGraph
    >>> from rankwise.leaderboard import fit_posterior
    >>> belief = fit_posterior(PairGraph([0, 0], [1, 1], n_items=3), None, 1.0)
    >>> pairs = np.array([0, 0]), np.array([1, 2])
    >>> before = belief.variances(*pairs)
    >>> belief.observe(0, 2)
    >>> belief.variances(*pairs) < before
    array([ True,  True])
    """

    def __init__(self, mean: Array, covariance: Array, curve: ProbabilityMap) -> None:
        self.mean, self.covariance, self.curve = mean, covariance, curve
        self._changes: list[Array] = []

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.mean)

    @property
    def noise(self) -> float:
        """σ², the variance of one comparison about the difference of the ratings."""
        return (LOGISTIC / self.curve.slope) ** 2 if self.curve.slope > 0 else np.inf

    def variances(self, i: Indices, j: Indices) -> Array:
        """Variance of r_i − r_j; i and j are broadcast against each other."""
        own = self.covariance.diagonal()
        v = own[i] + own[j] - 2 * self.covariance[i, j]
        for g in self._changes:
            v -= (g[i] - g[j]) ** 2
        return np.asarray(np.maximum(v, 0.0))

    def item_variances(self) -> Array:
        """Variance of each rating about the mean of all, on which its rank depends."""
        means = self.covariance.mean(axis=0)
        v = self.covariance.diagonal() - 2 * means + means.mean()
        for g in self._changes:
            v -= (g - g.mean()) ** 2
        return np.asarray(np.maximum(v, 0.0), dtype=np.float64)

    def observe(self, i: int, j: int) -> None:
        """Update the variances as if i and j had been compared. The outcome is not needed."""
        g = self.covariance[:, i] - self.covariance[:, j]
        for other in self._changes:
            g = g - other * (other[i] - other[j])
        self._changes.append(g / np.sqrt(self.noise + max(0.0, float(g[i] - g[j]))))

    def futures(
        self, n_futures: int, n_errors: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Means that the observed comparisons may lead to, and errors that are left around them.

        C falls by Σ g gᵀ with every comparison, and by so much the mean will vary.
        """
        learned = np.array(self._changes).reshape(-1, self.n_items)
        means = self.mean + rng.standard_normal((n_futures, len(learned))) @ learned
        root = _root(self.covariance - learned.T @ learned)
        return means, rng.standard_normal((n_errors, self.n_items)) @ root.T

    def draw(self, items: Indices, n_draws: int, rng: np.random.Generator) -> Array:
        """Ratings of some items, shape (n_draws, n_items)."""
        root = _root(self.covariance[np.ix_(items, items)].astype(np.float64))
        return np.asarray(self.mean[items] + rng.standard_normal((n_draws, len(items))) @ root.T)


def fit_posterior(graph: PairGraph, features: Array | None, prior: float) -> RatingPosterior:
    """Ratings after these comparisons, from a normal prior.

    With x = e_i − e_j, or a difference of features that are centered and have mean square 1,

        r = Φ A⁻¹ Φᵀ d,     C = σ² Φ A⁻¹ Φᵀ,     A = Φᵀ L Φ + prior · I

    where Φ is the identity without features. A prior of 1 counts as one comparison of every item
    with an average one that was a tie. Of margins σ² maximizes the likelihood:
    ``(Σ ω δ² − dᵀ r)/n``. Of wins and ties ratings are log odds (Bradley and Terry), L and d those
    of a Newton step at the most probable ratings, and σ² = 1: Laplace's approximation.

    Examples
    --------
    >>> from rankwise import PairGraph
    >>> from rankwise.leaderboard import fit_posterior
    >>> belief = fit_posterior(PairGraph([0, 0, 1], [1, 2, 2], n_items=3), None, 1.0)
    >>> belief.mean.round(2)
    array([ 1.23,  0.  , -1.23])
    """
    check_number_of_items(graph.n_items)
    n, n_items = graph.n_pairs, graph.n_items
    weight = graph.edge_weight / graph.edge_weight.mean() if n else graph.edge_weight
    flow = weight * graph.edge_target
    Phi = sp.eye_array(n_items, format="csr") if features is None else _scaled(features)
    ends = np.tile(np.arange(n), 2), np.r_[graph.winner, graph.loser]
    D = sp.csr_array((np.repeat([1.0, -1.0], n), ends), shape=(n, n_items))  # r_i − r_j = D r
    is_verdict = bool(np.isin(graph.edge_target, (0.0, 1.0)).all())
    if is_verdict:
        prior /= 4  # the curvature of a tie
        weight, flow = _at_the_mode(D, graph.edge_target, weight, Phi, prior)
    A = Phi.T @ (D.T @ (sp.diags_array(weight) @ D) @ Phi) + prior * sp.eye_array(Phi.shape[1])
    if features is None:
        inverse = _inverse(A.astype(np.float32 if n_items > SINGLE else np.float64).toarray())
    else:
        inverse = Phi @ _inverse(A) @ Phi.T
    d = D.T @ flow
    mean = np.asarray(inverse @ d, dtype=np.float64)
    noise = 1.0
    if not is_verdict:
        total = float(weight @ graph.edge_target**2)
        noise = max(total - float(d @ mean), 1e-3 * total) / n
    spread = LOGISTIC if is_verdict else np.sqrt(noise)  # P = σ(1.702 d / √(spread² + v))
    return RatingPosterior(mean, noise * inverse, ProbabilityMap(LOGISTIC / spread, 1 / spread**2))


def check_number_of_items(n_items: int) -> None:
    """Refuse more items than have a covariance that can be looked through."""
    if n_items > MOST_ITEMS:
        raise ValueError(
            f"there are {n_items:,} items; pairs are chosen among at most {MOST_ITEMS:,}, since "
            "every pair is looked at. Take a sample of the items, or the best ones."
        )


def _at_the_mode(
    D: Any, target: Array, weight: Array, Phi: Any, prior: float
) -> tuple[Array, Array]:
    """Weights ω p(1 − p) and flows of the Newton step at the most probable ratings."""
    said = (1 + target) / 2

    def margins(u: Array) -> Array:
        return np.asarray(D @ (Phi @ u))

    def loss(u: Array) -> tuple[float, Array]:
        m = margins(u)
        value = weight @ (np.logaddexp(0.0, m) - said * m) + prior / 2 * u @ u
        return float(value), Phi.T @ (D.T @ (weight * (expit(m) - said))) + prior * u

    def curved(u: Array, v: Array) -> Array:
        p = expit(margins(u))
        return np.asarray(Phi.T @ (D.T @ (weight * p * (1 - p) * margins(v))) + prior * v)

    u = minimize(loss, np.zeros(Phi.shape[1]), jac=True, hessp=curved, method="Newton-CG").x
    m = margins(u)
    p = expit(m)
    bent = weight * p * (1 - p)
    return bent, weight * (said - p) + bent * m


def _root(C: Array) -> Array:
    values, vectors = np.linalg.eigh(C)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _inverse(A: Array) -> Array:
    """A⁻¹ of a positive definite A, which is overwritten."""
    potrf, potri = scipy.linalg.get_lapack_funcs(("potrf", "potri"), (A,))
    factor, _ = potrf(A.T, lower=1, overwrite_a=1, clean=0)
    half = np.asarray(potri(factor, lower=1, overwrite_c=1)[0])
    return np.asarray(np.tril(half) + np.tril(half, -1).T)


def _scaled(features: Array) -> Array:
    """Centered, with mean square 1 of a row; no more columns than rows."""
    Phi = features - features.mean(axis=0)
    if Phi.shape[1] > Phi.shape[0]:
        Phi = scipy.linalg.qr(Phi.T, mode="economic")[1].T
    size = np.sqrt((Phi**2).sum(axis=1).mean())
    return np.asarray(Phi / size) if size > 0 else Phi
