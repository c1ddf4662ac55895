"""How often 95 % intervals of score differences hold the truth: the jackknife, simulated.

    python -m experiments.uncertainty.coverage [--runs N]

Scores are a function of the features plus noise; the truth is the difference of that function
between two new items, 20 pairs a run. Beside the jackknife over groups there is what a Gaussian
process says that has the same mean: the covariance of ridge regression with independent errors.
For kernels and for an alpha that was chosen, the model is pulled away from the truth. So the
target is given three times: the truth, the truth after the differences of a run were stretched by
one factor to fit it best (an alpha chosen by the order alone leaves the scale open), and what the
same model finds on average over the runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm, t

from experiments.shared.command_line import make_parser, record
from rankwise import RankRLS, RankRLSCV
from rankwise.uncertainty import jackknife

W = np.array([1.0, -1.0, 0.5, 0.0, 0.25])


def linear(X):
    """A linear function of the features."""
    return X @ W


def curved(X):
    """A function that is not linear."""
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2


class Simulation(NamedTuple):
    """Differences of 20 pairs of items, shape (n_runs, 20), with errors and quantile of t."""

    values: np.ndarray
    errors: np.ndarray
    model_errors: np.ndarray  # NaN for kernels
    truth: np.ndarray
    quantile: float


class Setting:
    """Groups, their sizes, how scores come about, and the model."""

    def __init__(
        self, n_groups, sizes=8, noise=1.0, tails=None, slopes=0.0, truth=linear, model=None
    ):
        self.n_groups = n_groups
        self.sizes = sizes
        self.noise = noise
        self.tails = tails
        self.slopes = slopes
        self.truth = truth
        self.model = model
        if model is None:
            self.model = RankRLS(1e-5)

    def draw(self, rng):
        """Items, scores and groups."""
        if np.isscalar(self.sizes):
            sizes = np.full(self.n_groups, self.sizes)
        else:
            sizes = self.sizes(rng, self.n_groups)
        groups = np.repeat(np.arange(self.n_groups), sizes)
        X = rng.standard_normal((len(groups), len(W)))
        random_slopes = self.slopes * rng.standard_normal((self.n_groups, len(W)))
        if self.tails is None:
            noise = rng.standard_normal(len(X))
        else:
            noise = rng.standard_t(self.tails, len(X))
        level = 3 * rng.standard_normal(self.n_groups)
        group_effect = np.sum(X * random_slopes[groups], axis=1)
        y = self.truth(X) + group_effect + self.noise * noise + level[groups]
        return X, y, groups


def unequal(rng, n):
    """Sizes from 3 to 30, most of them small."""
    return np.exp(rng.uniform(np.log(3), np.log(31), n)).astype(int)


def very_unequal(rng, n):
    """Sizes from 2 to 80, most of them very small: one to three groups have most pairs."""
    return np.maximum(2, (2 * rng.pareto(1.2, n) + 2).astype(int).clip(max=80))


SETTINGS = {
    "40 groups": Setting(40),
    "6 groups": Setting(6),
    "15 groups, random slopes": Setting(15, slopes=0.5),
    "40 groups, heavy tails (t, 2.1)": Setting(40, tails=2.1),
    "30 unequal groups, 3 to 30 items": Setting(30, sizes=unequal),
    "the same, random slopes": Setting(30, sizes=unequal, slopes=0.5),
    "30 very unequal groups, 2 to 80": Setting(30, sizes=very_unequal),
    "the same, groups count alike": Setting(
        30, sizes=very_unequal, model=RankRLS(1e-5, group_weight="groups")
    ),
    "60 groups of 2": Setting(60, sizes=2),
    "one list of 120 items": Setting(1, sizes=120),
    "alpha chosen": Setting(30, noise=2.0, model=RankRLSCV()),
    "kernel": Setting(40, noise=0.5, truth=curved, model=RankRLS(3e-4, kernel="rbf", gamma=0.1)),
    "kernel, alpha chosen": Setting(
        40, noise=0.5, truth=curved, model=RankRLSCV(kernel="rbf", gamma=0.1)
    ),
}


def model_errors(model, X, y, groups, differences):
    """Standard errors of differences by ridge regression with independent errors; linear only."""
    centered_X = X.copy()
    residual = y - model.predict(X)
    for group in np.unique(groups):
        in_group = groups == group
        centered_X[in_group] -= X[in_group].mean(axis=0)
        residual[in_group] -= residual[in_group].mean()
    group_sizes = np.bincount(groups)
    laplacian_X = group_sizes[groups][:, None] * centered_X
    n_pairs = sum(n * (n - 1) / 2 for n in group_sizes)
    alpha = getattr(model, "alpha_", None) or model.alpha  # the chosen alpha of a search
    inverse = np.linalg.inv(centered_X.T @ laplacian_X + alpha * n_pairs * np.eye(X.shape[1]))

    residual_degrees_of_freedom = len(y) - len(np.unique(groups)) - X.shape[1]
    variance = residual @ residual / residual_degrees_of_freedom
    covariance = variance * inverse @ (laplacian_X.T @ laplacian_X) @ inverse
    return np.sqrt(np.einsum("ij,jk,ik->i", differences, covariance, differences))


def run(setting, n_runs):
    """Simulate data and fit the model in every run; the new items are the same in all."""
    new = np.random.default_rng(10**6).standard_normal((40, len(W)))
    i = np.arange(20)
    j = np.arange(20, 40)
    values_of_runs = []
    errors_of_runs = []
    model_errors_of_runs = []
    quantile = 0.0
    for seed in range(n_runs):
        X, y, groups = setting.draw(np.random.default_rng(seed))
        fitted_groups = None
        if setting.n_groups > 1:
            fitted_groups = groups
        fitted = jackknife(setting.model, X, y, fitted_groups)
        values, errors = fitted.predict_difference(new, i, j)
        values_of_runs.append(values)
        errors_of_runs.append(errors)
        if setting.truth is linear:
            difference = new[i] - new[j]
            model_errors_of_runs.append(model_errors(fitted.model, X, y, groups, difference))
        else:
            model_errors_of_runs.append(np.full(len(i), np.nan))
        quantile = t.ppf(0.975, fitted.freedom)
    true_scores = setting.truth(new)
    return Simulation(
        np.array(values_of_runs),
        np.array(errors_of_runs),
        np.array(model_errors_of_runs),
        true_scores[i] - true_scores[j],
        quantile,
    )


def share(is_inside):
    """Mean over runs with its standard error; the pairs of a run are not independent."""
    by_run = is_inside.mean(axis=1)
    standard_error = by_run.std(ddof=1) / np.sqrt(len(by_run))
    return f"{by_run.mean():.3f} ± {standard_error:.3f}"


def row_of(name, simulation):
    """A row of the table: coverage of four kinds of intervals, and errors over spread."""
    values, errors, errors_of_model, truth, quantile = simulation
    covers_truth = np.abs(values - truth) <= quantile * errors
    # the factor by which the differences of a run fit the truth best
    scale = np.sum(values * truth, axis=1) / np.sum(values**2, axis=1)
    scaled_values = scale[:, None] * values
    scaled_errors = scale[:, None] * errors
    covers_scaled = np.abs(scaled_values - truth) <= quantile * scaled_errors
    covers_mean = np.abs(values - values.mean(axis=0)) <= quantile * errors
    independent_errors = "–"
    if not np.isnan(errors_of_model).any():
        covers = np.abs(values - truth) <= norm.ppf(0.975) * errors_of_model
        independent_errors = share(covers)
    ratio = np.sqrt(np.mean(errors**2, axis=0)) / values.std(axis=0)
    return [
        name,
        share(covers_truth),
        share(covers_scaled),
        share(covers_mean),
        independent_errors,
        f"{ratio.mean():.2f}",
    ]


def main(arguments=None):
    """Print one line for each setting."""
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", help="settings whose name begins like this")
    options = parser.parse_args(arguments)
    columns = "jackknife, truth | the same, freed of the scale | jackknife, mean of the model"
    print(f"| setting | {columns} | independent errors | error bar / spread |")
    print("|---|---|---|---|---|---|")
    for name, setting in SETTINGS.items():
        if options.only and not name.startswith(options.only):
            continue
        cells = row_of(name, run(setting, options.runs))
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    record(main)
