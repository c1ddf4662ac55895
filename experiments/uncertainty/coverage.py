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

import numpy as np
from scipy.stats import norm, t

from experiments.shared.command_line import make_parser, record
from rankwise import RankRLS, RankRLSCV
from rankwise.uncertainty import jackknife

W = np.array([1.0, -1.0, 0.5, 0.0, 0.25])


def linear(X):
    return X @ W


def curved(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2


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
        self.model = model or RankRLS(1e-5)

    def draw(self, rng):
        """Items, scores and groups."""
        sizes = (
            np.full(self.n_groups, self.sizes)
            if np.isscalar(self.sizes)
            else self.sizes(rng, self.n_groups)
        )
        groups = np.repeat(np.arange(self.n_groups), sizes)
        X = rng.standard_normal((len(groups), len(W)))
        own = self.slopes * rng.standard_normal((self.n_groups, len(W)))
        error = (
            rng.standard_normal(len(X))
            if self.tails is None
            else rng.standard_t(self.tails, len(X))
        )
        level = 3 * rng.standard_normal(self.n_groups)
        y = self.truth(X) + np.sum(X * own[groups], axis=1) + self.noise * error + level[groups]
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


def model_errors(found, X, y, groups, D):
    """Standard errors of differences D by ridge regression with independent errors; linear only."""
    centered = X.copy()
    residual = y - found.model.predict(X)
    for g in np.unique(groups):
        centered[groups == g] -= X[groups == g].mean(axis=0)
        residual[groups == g] -= residual[groups == g].mean()
    sizes = np.bincount(groups)[groups]
    L_X = sizes[:, None] * centered
    total = sum(n * (n - 1) / 2 for n in np.bincount(groups))
    alpha = getattr(found.model, "alpha_", None) or found.model.alpha
    A = np.linalg.inv(centered.T @ L_X + alpha * total * np.eye(X.shape[1]))
    freedom = len(y) - len(np.unique(groups)) - X.shape[1]
    V = residual @ residual / freedom * A @ (L_X.T @ L_X) @ A
    return np.sqrt(np.einsum("ij,jk,ik->i", D, V, D))


def run(setting, n_runs):
    """Values, errors of both kinds and truths, shape (n_runs, 20) each; the quantile of t."""
    new = np.random.default_rng(10**6).standard_normal((40, len(W)))
    i = np.arange(20)
    j = np.arange(20, 40)
    values = []
    errors = []
    plain = []
    quantile = 0.0
    for seed in range(n_runs):
        X, y, groups = setting.draw(np.random.default_rng(seed))
        found = jackknife(setting.model, X, y, groups if setting.n_groups > 1 else None)
        value, error = found.predict_difference(new, i, j)
        values.append(value)
        errors.append(error)
        is_linear = setting.truth is linear
        plain.append(
            model_errors(found, X, y, groups, new[i] - new[j]) if is_linear else error * np.nan
        )
        quantile = t.ppf(0.975, found.freedom)
    truth = setting.truth(new)
    return np.array(values), np.array(errors), np.array(plain), truth[i] - truth[j], quantile


def share(inside):
    """Mean over runs with its standard error; the pairs of a run are not independent."""
    by_run = inside.mean(axis=1)
    return f"{by_run.mean():.3f} ± {by_run.std(ddof=1) / np.sqrt(len(by_run)):.3f}"


def main(arguments=None):
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
        values, errors, plain, truth, quantile = run(setting, options.runs)
        found = share(np.abs(values - truth) <= quantile * errors)
        scale = np.sum(values * truth, axis=1) / np.sum(values**2, axis=1)
        scaled = scale[:, None] * values, scale[:, None] * errors
        free = share(np.abs(scaled[0] - truth) <= quantile * scaled[1])
        own = share(np.abs(values - values.mean(axis=0)) <= quantile * errors)
        other = (
            "–"
            if np.isnan(plain).any()
            else share(np.abs(values - truth) <= norm.ppf(0.975) * plain)
        )
        ratio = np.sqrt(np.mean(errors**2, axis=0)) / values.std(axis=0)
        cells = [name, found, free, own, other, f"{ratio.mean():.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    record(main)
