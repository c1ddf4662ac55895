"""Leave-pair-out against tenfold cross-validation: which estimate of AUC is biased on few samples?

    python -m experiments.rankrls09.leave_pair_out [--repeats 1000] [--output DIR]

[RankRLS09] section 4.1 on colon (62 samples) and leukaemia (72) gene expression. Tenfold
cross-validation has an AUC either of each fold, averaged, or of all held-out scores, pooled;
leave-pair-out holds out every pair in turn. Two tests: (a) labels permuted, so that the true AUC
is 0.5; (b) 30 samples drawn, the estimate from them less the AUC on all other samples. The paper
has no figures, it says (after Parker et al. 2007) that averaging has a large variance and pooling
a pessimistic bias. Permuted labels are outputs of one model, which costs little more than one.
Genes are standardized over the samples in use; data as in the README of the data, no logarithm.
"""

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold

from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise import RankRLS
from rankwise.metrics import auc
from rankwise.model_selection import cross_val_predict_groups, leave_pair_out

DATASETS = {"colon": ("alon", "t"), "leukaemia": ("golub", "AML")}
ESTIMATES = ("leave-pair-out", "averaged", "pooled", "pooled, intercept")
COLORS = ("#009E73", "#E69F00", "#56B4E9", "#D55E00")
ALPHA = 0.1
ALPHAS = (0.001, 0.01, 0.1, 1.0, 10.0)
N_SUBSAMPLE = 30
N_SPLITS = 10


class Samples(NamedTuple):
    """Expression of genes, and 1 for the positive class."""

    X: np.ndarray
    y: np.ndarray


def read_samples(data, name):
    """All samples of a data set."""
    file, positive = DATASETS[name]
    (path,) = find_data(data, f"gene_expression/{file}.npz")
    with np.load(path) as arrays:
        return Samples(arrays["X"], (arrays["y"] == positive).astype(float))


def standardize(X, *more_X):
    """Genes with mean 0 and variance 1 in X, divided by √p: squared distances are about 2."""
    mean = X.mean(axis=0)
    scale = X.std(axis=0)
    scale[scale == 0] = 1
    return [(features - mean) / scale / X.shape[1] ** 0.5 for features in (X, *more_X)]


def tenfold(X, Y, alpha, seed):
    """AUC of each column of Y by tenfold cross-validation: averaged, pooled, with intercept.

    X is centered. RankRLS has no intercept; the one that least squares would add to a fold's
    model is the mean of y − f in training, and Σ f over all samples is 0.
    """
    folds = list(KFold(10, shuffle=True, random_state=seed).split(X))
    scores = cross_val_predict_groups(RankRLS(alpha), X, Y, cv=folds)
    fold = np.empty(len(X), dtype=int)
    shifted = scores.copy()
    for k, (train, test) in enumerate(folds):
        fold[test] = k
        shifted[test] += Y[train].mean(axis=0) + scores[test].sum(axis=0) / len(train)
    averaged = [auc(y, f, fold) for y, f in zip(Y.T, scores.T, strict=True)]
    return np.array([averaged, auc(Y, scores), auc(Y, shifted)])


def estimate_all(X, Y, alpha, seed):
    """All estimates of the AUC of each column of Y, shape (4, n_outputs)."""
    return np.vstack([leave_pair_out(RankRLS(alpha), X, Y).auc, tenfold(X, Y, alpha, seed)])


def estimate_without_signal(samples, repeats, alpha=ALPHA):
    """Estimates for permuted labels, shape (4, repeats); ten splits, each for a tenth of them."""
    random = np.random.default_rng(0)
    (X,) = standardize(samples.X)
    Y = np.column_stack([random.permutation(samples.y) for _ in range(repeats)])
    splits_of_Y = np.array_split(Y, min(N_SPLITS, repeats), axis=1)
    return np.hstack(
        [estimate_all(X, permuted_Y, alpha, seed) for seed, permuted_Y in enumerate(splits_of_Y)]
    )


def errors_on_subsamples(samples, repeats):
    """Estimate from a subsample less the AUC on the other samples, shape (4, repeats)."""
    random = np.random.default_rng(0)
    m = len(samples.y)
    errors = []
    for seed in range(repeats):
        order = random.permutation(m)
        inside = order[:N_SUBSAMPLE]
        outside = order[N_SUBSAMPLE:]
        X, X_test = standardize(samples.X[inside], samples.X[outside])
        y = samples.y[inside]
        truth = auc(samples.y[outside], RankRLS(ALPHA).fit(X, y).predict(X_test))
        errors.append(estimate_all(X, y[:, None], ALPHA, seed)[:, 0] - truth)
    return np.array(errors).T


def estimate_real(samples):
    """Estimates from all samples and true labels, for ten splits, shape (4, 10)."""
    (X,) = standardize(samples.X)
    y = samples.y[:, None]
    return np.hstack([estimate_all(X, y, ALPHA, seed) for seed in range(N_SPLITS)])


def plot(path, estimates):
    """A row for each data set: (a) permuted labels, (b) subsamples."""
    figure, grid = plt.subplots(
        len(estimates), 2, figsize=(11, 6.4), sharey=True, layout="constrained"
    )
    for axes, (name, (permuted, errors)) in zip(grid, estimates.items(), strict=True):
        _draw(axes[0], permuted, 0.5, f"{name}: permuted labels, the true AUC is 0.5")
        _draw(axes[1], errors, 0.0, f"{name}: {N_SUBSAMPLE} samples with true labels")
    grid[-1, 0].set_xlabel("estimated AUC")
    grid[-1, 1].set_xlabel("estimated AUC less AUC on the other samples")
    figure.suptitle("Estimates of AUC by leave-pair-out and by tenfold cross-validation")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _draw(axes, values, truth, title):
    places = np.arange(len(ESTIMATES))[::-1]
    axes.axvline(truth, color="#444444", linestyle="--", linewidth=1)
    bodies = axes.violinplot(
        list(values), places, orientation="horizontal", widths=0.85, showextrema=False
    )["bodies"]
    for body, color in zip(bodies, COLORS, strict=True):
        body.set(facecolor=color, edgecolor=color, alpha=0.6)
    for place, row in zip(places, values, strict=True):
        axes.plot(np.percentile(row, [25, 75]), [place, place], color="#444444", linewidth=3)
        axes.plot(row.mean(), place, "D", color="black", markeredgecolor="white", markersize=8)
    texts = dict(zip(places, summarize(values, truth, "+.3f"), strict=True))
    for place, text in {len(places) - 0.35: "bias ± s.d.", **texts}.items():
        axes.text(
            1.01, place, text.replace("-", "−"),
            transform=axes.get_yaxis_transform(), va="center", fontsize=9,
        )  # fmt: skip
    axes.set_yticks(places, ESTIMATES)
    axes.set_title(title, fontsize=11)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def summarize(values, truth=0.0, form=".3f"):
    """Text for each estimate: mean deviation from the truth and standard deviation."""
    return [f"{row.mean() - truth:{form}} ±{row.std():.3f}" for row in values]


def main(argv=None):
    """Print the tables and write the plot."""
    parser = make_parser(__doc__, output=True)
    parser.add_argument("--repeats", type=int, default=1000, help="permutations (%(default)s)")
    options = parser.parse_args(argv)
    estimates = {}
    rows = {"true": [], "permuted": [], "drawn": []}
    for name in DATASETS:
        samples = read_samples(options.data, name)
        rows["true"].append([name, *summarize(estimate_real(samples))])
        permuted = {a: estimate_without_signal(samples, options.repeats, a) for a in ALPHAS}
        for alpha, values in permuted.items():
            rows["permuted"].append([f"{name}, alpha = {alpha:g}", *summarize(values, 0.5, "+.3f")])
        errors = errors_on_subsamples(samples, max(options.repeats // 4, 10))
        rows["drawn"].append([name, *summarize(errors, 0.0, "+.3f")])
        estimates[name] = permuted[ALPHA], errors
    header = ["", "leave-pair-\nout", "tenfold\naveraged", "tenfold\npooled", "pooled,\nintercept"]
    titles = {
        "true": "AUC of all samples, mean ± standard deviation over ten splits into folds",
        "permuted": f"(a) {options.repeats} permutations: bias (mean − 0.5) ± standard deviation",
        "drawn": f"(b) {N_SUBSAMPLE} samples: bias against the AUC on the others ± standard dev.",
    }
    for key, title in titles.items():
        print_table(title, header, rows[key])
    path = options.output / "leave_pair_out_bias.png"
    plot(path, estimates)
    print_notes(
        f"alpha = {ALPHA:g} where nothing else is said, the same for all; folds not stratified; a "
        "fold of one class has no AUC and is left out of the average.",
        "'pooled': scores of RankRLS, which has no intercept, with features centered over all "
        "samples. 'pooled, intercept': the same models with the intercept of least squares, as "
        "usual for classifiers: it is low for a fold with many positives, which then rank low.",
        "(b) is noisy by itself: its standard deviation includes that of the AUC on the others.",
        "The paper gives no figures; it says: averaging has a large variance, pooling a "
        "pessimistic bias.",
        f"The plot is in {path}.",
    )


if __name__ == "__main__":
    record(main)
