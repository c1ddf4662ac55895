"""Draw the pictures of docs/what_it_means.md: python docs/_extensions/draw_meanings.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

from rankwise import RankRLSCV

STATIC = Path(__file__).parent.parent / "_static"
BLUE, ORANGE, GRAY, INK = "#1f5fa8", "#b8500a", "#b9b6af", "#1d2129"
plt.rcParams.update({"font.size": 10, "text.color": INK, "svg.hashsalt": "rankwise"})


def start(width: float = 6.4, height: float = 2.3, n: int = 1) -> tuple[plt.Figure, list[plt.Axes]]:
    """A figure and its axes."""
    figure, axes = plt.subplots(1, n, figsize=(width, height), layout="constrained")
    return figure, list(np.atleast_1d(axes))


def keep(figure: plt.Figure, name: str) -> None:
    """Write the figure to the folder of pictures."""
    figure.savefig(STATIC / f"means_{name}.png", dpi=110, metadata={"Software": None})
    plt.close(figure)


def slope(axis: plt.Axes, predicted: str, true: str, title: str) -> None:
    """Lines from the predicted to the true order; those that cross another are orange."""
    place = {name: true.index(name) for name in true}
    for k, name in enumerate(predicted):
        crosses = any((k - j) * (place[name] - place[o]) < 0 for j, o in enumerate(predicted))
        axis.plot([0, 1], [-k, -place[name]], color=ORANGE if crosses else BLUE, lw=2)
        axis.text(-0.06, -k, name, ha="right", va="center", weight="bold")
        axis.text(1.06, -place[name], name, ha="left", va="center", weight="bold")
    axis.set(xlim=(-0.5, 1.5), ylim=(-len(true) + 0.4, 0.9), title=title)
    axis.text(-0.06, 0.55, "predicted", ha="right", fontsize=8)
    axis.text(1.06, 0.55, "true", ha="left", fontsize=8)
    axis.axis("off")


def draw_pairs() -> None:
    """Groups and their pairs."""
    figure, (axis,) = start()
    for left, name, ys in ((0, "query 1", [2, 1, 0]), (4, "query 2", [1, 0, 0])):
        axis.add_patch(plt.Rectangle((left, -0.5), 3, 1.75, fill=False, ec=GRAY, lw=1.5))
        axis.text(left + 1.5, 1.4, name, ha="center", weight="bold")
        for k, y in enumerate(ys):
            axis.scatter(left + 0.5 + k, 0.2, s=420, color=BLUE if y else GRAY, zorder=3)
            axis.text(
                left + 0.5 + k, 0.2, str(y), ha="center", va="center", color="white", zorder=4
            )
        for a in range(3):
            for b in range(a + 1, 3):
                if ys[a] > ys[b]:
                    axis.annotate(
                        "", (left + 0.5 + b, 0.42), (left + 0.5 + a, 0.42),
                        arrowprops={"arrowstyle": "-|>", "color": ORANGE, "lw": 1.5,
                                    "connectionstyle": f"arc3,rad={-0.45 if b - a == 2 else -0.3}"},
                    )  # fmt: skip
    axis.text(3.5, -0.85, "2 groups, 5 pairs: the arrow goes from better to worse", ha="center")
    axis.set(xlim=(-0.3, 7.3), ylim=(-1.1, 1.8))
    axis.axis("off")
    keep(figure, "pairs")


def draw_disagreement() -> None:
    """Crossing lines."""
    figure, axes = start(n=2)
    slope(axes[0], "ABCD", "ABCD", "no line crosses: disagreement 0")
    slope(axes[1], "BADC", "ABCD", "2 of 6 pairs cross: disagreement 0.33")
    keep(figure, "disagreement")


def draw_ndcg() -> None:
    """What each place counts."""
    figure, (axis,) = start()
    place = np.arange(1, 11)
    axis.bar(place, 1 / np.log2(1 + place), color=BLUE)
    for k in place:
        axis.text(
            k, 1 / np.log2(1 + k) + 0.02, f"{1 / np.log2(1 + k):.2f}", ha="center", fontsize=8
        )
    axis.set(xticks=place, xlabel="place in the list", ylabel="what it counts", ylim=(0, 1.15))
    axis.spines[["top", "right"]].set_visible(False)
    keep(figure, "ndcg")


def draw_tau() -> None:
    """Three orders."""
    figure, axes = start(n=3)
    slope(axes[0], "ABCD", "ABCD", "τ = 1")
    slope(axes[1], "CADB", "ABCD", "τ = 0")
    slope(axes[2], "DCBA", "ABCD", "τ = −1")
    keep(figure, "tau")


def draw_alpha() -> None:
    """The error on groups left out for each alpha."""
    rng = np.random.default_rng(0)
    queries = np.repeat(np.arange(30), 6)
    X = (
        rng.standard_normal((180, 140)) * np.r_[np.ones(110), 3 * np.ones(30)]
    )  # the last say nothing
    y = X[:, :15].sum(axis=1) + 2 * rng.standard_normal(180)
    search = RankRLSCV(alphas=np.logspace(-3, 5, 49)).fit(X, y, queries)
    error = search.cv_results_["mean_score"][0]
    alphas = search.cv_results_["alphas"][0]
    figure, (axis,) = start(height=2.6)
    axis.semilogx(alphas, error, color=BLUE, lw=2)
    axis.axvline(search.alpha_, color=INK, ls="--", lw=1)
    axis.text(search.alpha_ * 1.3, axis.get_ylim()[1], "chosen", va="top")
    axis.set(xlabel="alpha", ylabel="disagreement,\nqueries left out")
    axis.text(0.02, 0.75, "follows noise", transform=axis.transAxes, va="top", color=ORANGE)
    axis.text(0.98, 0.35, "sees too little", transform=axis.transAxes, va="top", ha="right",
              color=ORANGE)  # fmt: skip
    axis.spines[["top", "right"]].set_visible(False)
    keep(figure, "alpha")


def draw_interval() -> None:
    """Values of groups, their mean and its interval."""
    values = np.clip(np.random.default_rng(2).normal(0.62, 0.22, 60), 0, 1)
    mean, half = values.mean(), 2.0 * values.std(ddof=1) / np.sqrt(len(values))
    figure, (axis,) = start(height=1.7)
    axis.scatter(values, np.random.default_rng(0).uniform(0.5, 0.9, 60), s=14, color=GRAY)
    axis.plot([mean - half, mean + half], [0.2, 0.2], color=BLUE, lw=6, alpha=0.4,
              solid_capstyle="round")  # fmt: skip
    axis.scatter(mean, 0.2, s=60, color=BLUE, zorder=3)
    axis.text(mean + half + 0.02, 0.2, "mean and its 95% interval", va="center")
    axis.text(0, 0.95, "one dot for each group", va="bottom", fontsize=9)
    axis.set(xlim=(0, 1), ylim=(0, 1.15), yticks=[], xlabel="NDCG@10")
    axis.spines[["top", "right", "left"]].set_visible(False)
    keep(figure, "interval")


if __name__ == "__main__":
    draw_pairs()
    draw_disagreement()
    draw_ndcg()
    draw_tau()
    draw_alpha()
    draw_interval()
