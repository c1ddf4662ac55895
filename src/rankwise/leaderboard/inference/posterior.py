"""Gaussian posterior of the ratings of items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit

from rankwise.arrays import Array, Indices, Matrix
from rankwise.graphs import PairGraph
from rankwise.uncertainty.probability_map import ProbabilityMap

MOST_ITEMS = 3000  # every pair of items is evaluated
LOGISTIC = 1.702  # σ(1.702 x) approximates the normal distribution function
DOUBLE_PRECISION_LIMIT = 300  # items; above, single precision suffices to choose a pair
TIE_CURVATURE = 0.25  # of the log likelihood of a comparison of equal items
LEAST_NOISE = 1e-3  # of margins, relative to their mean square


class RatingPosterior:
    """Normal distribution of ratings with mean r and covariance C, and outcome probabilities.

    P(i beats j) is a logistic curve of r_i − r_j, flatter where its variance is large. A comparison
    of i and j with noise σ² changes C by a matrix of rank one,

        C ← C − g gᵀ / (σ² + v),     g = C (e_i − e_j),     v = g_i − g_j,

    which is stored as the vector g / √(σ² + v).

    Parameters
    ----------
    mean : ndarray of shape (n_items,)
        r.
    covariance : ndarray of shape (n_items, n_items)
        C.
    curve : ProbabilityMap
        From a difference and its standard error to a probability.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import PairGraph
    >>> from rankwise.leaderboard import fit_posterior
    >>> posterior = fit_posterior(PairGraph([0, 0], [1, 1], n_items=3), None, 1.0)
    >>> pairs = np.array([0, 0]), np.array([1, 2])
    >>> before = posterior.variances(*pairs)
    >>> posterior.observe(0, 2)
    >>> posterior.variances(*pairs) < before
    array([ True,  True])
    """

    def __init__(self, mean: Array, covariance: Array, curve: ProbabilityMap) -> None:
        self.mean = mean
        self.covariance = covariance
        self.curve = curve
        # Each observed comparison appends a vector, whose product vector · vectorᵀ is subtracted
        # from the covariance.
        self._update_vectors: list[Array] = []

    def copy(self) -> RatingPosterior:
        """Return the posterior without the comparisons that were only observed.

        Returns
        -------
        RatingPosterior
            A new posterior.
        """
        # A new posterior has no update vectors, which belong to observed comparisons.
        return RatingPosterior(self.mean, self.covariance, self.curve)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.mean)

    @property
    def noise(self) -> float:
        """σ², the variance of one comparison around the difference of the ratings."""
        # expit(slope · d) is about the normal distribution function of slope · d / 1.702.
        if self.curve.slope > 0:
            return (LOGISTIC / self.curve.slope) ** 2
        return np.inf  # outcomes do not depend on the ratings

    def variances(self, i: Indices, j: Indices) -> Array:
        """Variance of r_i − r_j; i and j are broadcast against each other.

        Parameters
        ----------
        i, j : ndarray of int
            Positions of the items.

        Returns
        -------
        ndarray
            Variances, of the broadcast shape.
        """
        diagonal = self.covariance.diagonal()
        variances = diagonal[i] + diagonal[j] - 2 * self.covariance[i, j]
        for vector in self._update_vectors:  # each subtracts vector · vectorᵀ from the covariance
            variances -= (vector[i] - vector[j]) ** 2
        return np.asarray(np.maximum(variances, 0.0))

    def item_variances(self) -> Array:
        """Variance of each rating around the mean of all ratings.

        Returns
        -------
        ndarray of shape (n_items,)
            Variances.
        """
        # Diagonal of the covariance after centering its rows and columns.
        column_means = self.covariance.mean(axis=0)
        variances = self.covariance.diagonal() - 2 * column_means + column_means.mean()
        for vector in self._update_vectors:  # each subtracts vector · vectorᵀ from the covariance
            variances -= (vector - vector.mean()) ** 2
        return np.asarray(np.maximum(variances, 0.0), dtype=np.float64)

    def observe(self, i: int, j: int) -> None:
        """Update the variances as if i and j had been compared; the outcome is not needed.

        Parameters
        ----------
        i, j : int
            Positions of the two items.
        """
        # Covariances of all ratings with r_i − r_j, after the earlier comparisons.
        covariances = self.covariance[:, i] - self.covariance[:, j]
        for vector in self._update_vectors:
            covariances = covariances - vector * (vector[i] - vector[j])
        variance = max(0.0, float(covariances[i] - covariances[j]))
        # The covariance falls by g gᵀ / (σ² + v): g the covariances, v the variance, σ² the noise.
        self._update_vectors.append(covariances / np.sqrt(self.noise + variance))

    def futures(
        self, n_futures: int, n_errors: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Draw means that the observed comparisons may lead to, and the remaining errors.

        Every comparison reduces C by g gᵀ; the mean varies by the same matrix.

        Parameters
        ----------
        n_futures : int
            Number of possible means.
        n_errors : int
            Number of errors.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        means : ndarray of shape (n_futures, n_items)
            Possible means.
        errors : ndarray of shape (n_errors, n_items)
            Errors around a mean.
        """
        # Every observed comparison moves its vector's product g gᵀ from the covariance of the
        # errors to that of the mean.
        vectors = np.array(self._update_vectors).reshape(-1, self.n_items)
        mean_draws = rng.standard_normal((n_futures, len(vectors)))
        means = self.mean + mean_draws @ vectors
        remaining_covariance = self.covariance - vectors.T @ vectors
        error_draws = rng.standard_normal((n_errors, self.n_items))
        errors = error_draws @ _symmetric_root(remaining_covariance).T
        return means, errors

    def draw(self, items: Indices, n_draws: int, rng: np.random.Generator) -> Array:
        """Draw ratings of some items, of shape (n_draws, n_items).

        Parameters
        ----------
        items : ndarray of int
            Positions of the items.
        n_draws : int
            Number of draws.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        ndarray of shape (n_draws, n_selected_items)
            Ratings.
        """
        covariance = self.covariance[np.ix_(items, items)].astype(np.float64)
        normal_draws = rng.standard_normal((n_draws, len(items)))
        errors = normal_draws @ _symmetric_root(covariance).T
        return np.asarray(self.mean[items] + errors)


class _NewtonStep(NamedTuple):
    """Weights and weighted targets of the least squares that a Newton step solves."""

    weight: Array
    weighted_target: Array


def fit_posterior(graph: PairGraph, features: Array | None, prior: float) -> RatingPosterior:
    """Return the posterior of the ratings after comparisons, with a normal prior.

    Use it with `next_pairs` to select comparisons, or for probabilities that account for few votes.

    With x = e_i − e_j, or a difference of features that are centered and have mean square 1,

        r = Φ A⁻¹ Φᵀ d,     C = σ² Φ A⁻¹ Φᵀ,     A = Φᵀ L Φ + prior · I

    where Φ is the identity without features. Wins and ties are rated by the Bradley–Terry model:
    ratings are log odds, L and d belong to a Newton step at the most probable ratings, and σ² = 1
    (Laplace's approximation). For margins, σ² maximizes the likelihood: ``(Σ ω δ² − dᵀ r)/n``.

    Parameters
    ----------
    graph : PairGraph
        The comparisons.
    features : ndarray of shape (n_items, n_features) or None
        Features of the items.
    prior : float
        Strength of the prior: 1 counts as one tie of every item with an average item.

    Returns
    -------
    RatingPosterior
        Mean, covariance and outcome probabilities.

    Examples
    --------
    >>> from rankwise import PairGraph
    >>> from rankwise.leaderboard import fit_posterior
    >>> posterior = fit_posterior(PairGraph([0, 0, 1], [1, 2, 2], n_items=3), None, 1.0)
    >>> posterior.mean.round(2)
    array([ 1.23,  0.  , -1.23])
    """
    check_number_of_items(graph.n_items)
    n_items = graph.n_items
    weight = graph.edge_weight
    if graph.n_pairs:
        weight = weight / weight.mean()
    basis = sp.eye_array(n_items, format="csr") if features is None else _centered_basis(features)
    differences = _difference_matrix(graph)

    # Least squares with these weights and targets, of the margins or of a Newton step.
    are_wins = bool(np.isin(graph.edge_target, (0.0, 1.0)).all())
    if are_wins:
        penalty = prior * TIE_CURVATURE  # prior 1: the curvature of one tie
        step = _newton_step_at_mode(differences, graph.edge_target, weight, basis, penalty)
    else:
        penalty = prior
        step = _NewtonStep(weight, weighted_target=weight * graph.edge_target)
    # Posterior covariance of the ratings, without the noise: basis · precision⁻¹ · basisᵀ
    laplacian = differences.T @ (sp.diags_array(step.weight) @ differences)
    precision = basis.T @ (laplacian @ basis) + penalty * sp.eye_array(basis.shape[1])
    if features is None:
        dtype = np.float32 if n_items > DOUBLE_PRECISION_LIMIT else np.float64
        scaled_covariance = _inverse(precision.astype(dtype).toarray())
    else:
        scaled_covariance = basis @ _inverse(precision) @ basis.T
    right = differences.T @ step.weighted_target
    mean = np.asarray(scaled_covariance @ right, dtype=np.float64)
    if are_wins:  # Bradley–Terry: ratings are log odds, and the inverse is their covariance
        # P = σ(d / √(1 + v / 1.702²)): the logistic curve, averaged over errors of variance v
        log_odds = ProbabilityMap(slope=1.0, error_weight=1 / LOGISTIC**2)
        return RatingPosterior(mean, scaled_covariance, log_odds)

    noise = _noise_of_margins(graph.edge_target, weight, explained_squares=float(right @ mean))
    # P = σ(1.702 d / √(noise + v)) approximates the normal distribution function; v = error².
    curve = ProbabilityMap(slope=LOGISTIC / np.sqrt(noise), error_weight=1 / np.sqrt(noise) ** 2)
    return RatingPosterior(mean, noise * scaled_covariance, curve)


def _noise_of_margins(target: Array, weight: Array, explained_squares: float) -> float:
    """Variance of a margin around the difference of the ratings, of maximum likelihood."""
    total_squares = float(weight @ target**2)
    # Not 0, even if the ratings explain all margins
    residual_squares = max(total_squares - explained_squares, LEAST_NOISE * total_squares)
    return residual_squares / len(target)


def _difference_matrix(graph: PairGraph) -> Matrix:
    """Return D with D r the differences r_winner − r_loser."""
    n_pairs = graph.n_pairs
    rows = np.tile(np.arange(n_pairs), 2)
    columns = np.concatenate([graph.winner, graph.loser])
    signs = np.repeat([1.0, -1.0], n_pairs)
    return sp.csr_array((signs, (rows, columns)), shape=(n_pairs, graph.n_items))


def check_number_of_items(n_items: int) -> None:
    """Raise a ValueError if the covariance of the items is too large."""
    if n_items > MOST_ITEMS:
        raise ValueError(
            f"there are {n_items:,} items; pairs are chosen among at most {MOST_ITEMS:,}, since "
            "every pair is evaluated. Take a sample of the items, or the best ones."
        )


def _newton_step_at_mode(
    differences: Matrix, target: Array, weight: Array, basis: Matrix, penalty: float
) -> _NewtonStep:
    """Return the Newton step at the most probable ratings ``basis @ u``."""
    # u: coefficients of the basis, with ratings basis @ u (without features the ratings themselves)
    outcome = (1 + target) / 2  # 1 is a win, ½ a tie

    def margins_of(u: Array) -> Array:
        return np.asarray(differences @ (basis @ u))

    def apply_transpose(values: Array) -> Array:
        return np.asarray(basis.T @ (differences.T @ values))

    def negative_log_posterior(u: Array) -> tuple[float, Array]:
        margins = margins_of(u)
        # −outcome log p − (1 − outcome) log(1 − p), with p = expit(margin)
        log_losses = np.logaddexp(0.0, margins) - outcome * margins
        value = weight @ log_losses + penalty / 2 * u @ u
        gradient = apply_transpose(weight * (expit(margins) - outcome)) + penalty * u
        return float(value), gradient

    def hessian_product(u: Array, v: Array) -> Array:
        p_win = expit(margins_of(u))
        curvature = weight * p_win * (1 - p_win)
        return np.asarray(apply_transpose(curvature * margins_of(v)) + penalty * v)

    start = np.zeros(basis.shape[1])
    mode = minimize(
        negative_log_posterior, start, jac=True, hessp=hessian_product, method="Newton-CG"
    ).x
    margins = margins_of(mode)
    p_win = expit(margins)
    curvature = weight * p_win * (1 - p_win)
    # A Newton step is least squares with the curvatures as weights, and as targets
    # margin + weight (outcome − p_win) / curvature.
    weighted_target = weight * (outcome - p_win) + curvature * margins
    return _NewtonStep(curvature, weighted_target)


def _symmetric_root(covariance: Array) -> Array:
    """Return F with F Fᵀ the covariance, which is positive semidefinite up to rounding."""
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)
    return np.asarray(eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0)))


def _inverse(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix, which is overwritten."""
    # LAPACK: Cholesky factor, then the lower triangle of the inverse from it.
    potrf, potri = scipy.linalg.get_lapack_funcs(("potrf", "potri"), (matrix,))
    factor, _ = potrf(matrix.T, lower=1, overwrite_a=1, clean=0)  # in the memory of the matrix
    lower_triangle = np.asarray(potri(factor, lower=1, overwrite_c=1)[0])
    below_diagonal = np.tril(lower_triangle, -1)
    return np.asarray(np.tril(lower_triangle) + below_diagonal.T)


def _centered_basis(features: Array) -> Array:
    """Center features and scale their rows to mean square 1; at most as many columns as rows."""
    basis = features - features.mean(axis=0)
    n_items, n_features = basis.shape
    if n_features > n_items:  # the same inner products with n_items columns
        basis = scipy.linalg.qr(basis.T, mode="economic")[1].T
    root_mean_square = np.sqrt((basis**2).sum(axis=1).mean())
    if root_mean_square == 0:  # all items have the same features
        root_mean_square = 1.0
    return np.asarray(basis / root_mean_square)
