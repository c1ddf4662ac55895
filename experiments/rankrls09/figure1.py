"""[RankRLS09] Figure 1: three least-squares costs of a pair beside the disagreement it stands for.

    python -m experiments.rankrls09.figure1 [--output DIR]

Section 2.4: a pair with preference magnitude y = 0.5 and predicted difference g costs (1 − g)² by
equation 20 (`cost="sign"`), (y − g)² by 21 ("magnitude") and (y − g)²/y² by 22 ("relative"). The
curves are drawn from what a graph of one such pair asks for in rankwise: its weight ω and its
target δ, ω (δ − g)². ``--data`` is accepted and ignored.
"""

import matplotlib.pyplot as plt
import numpy as np

from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise import PairGraph

MAGNITUDE = 0.5
G = np.linspace(-1, 2, 301)
COSTS = {  # equation, formula, line style of the paper's figure
    "sign": ("(20)", "(1 − g)²", "--"),
    "magnitude": ("(21)", "(y − g)²", ":"),
    "relative": ("(22)", "(y − g)²/y²", "-."),
}


def disagreement(g):
    """1 for a pair in the wrong order, ½ for equal scores, else 0: half of |sign y − sign g|."""
    return (1 - np.sign(g)) / 2


def cost_of(name, g):
    """The cost of predicted differences g, from the weight and the target of a graph."""
    graph = PairGraph([0], [1], magnitude=[MAGNITUDE], cost=name)
    return float(graph.edge_weight[0]) * (float(graph.edge_target[0]) - g) ** 2


def make_rows():
    """For each cost: where it is lowest, its value at g = 0, and whether it bounds the error."""
    rows = []
    for name, (number, formula, _) in COSTS.items():
        values = cost_of(name, G)
        bounds = bool((values >= disagreement(G) - 1e-12).all())
        lowest = float(G[values.argmin()])
        rows.append([f"{number} {name}", formula, lowest, float(cost_of(name, 0.0)), bounds])
    return rows


def plot(path):
    """The figure, with the paper's line styles."""
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.plot(G, disagreement(G), color="black", label="disagreement")
    for name, (number, formula, style) in COSTS.items():
        axes.plot(G, cost_of(name, G), style, label=f"{number} {formula}")
    axes.set(
        xlabel="predicted difference g",
        ylabel="cost",
        ylim=(0, 4.2),
        title=f"costs of a pair with magnitude y = {MAGNITUDE:g}",
    )
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(argv=None):
    """Print what the figure shows and write it."""
    options = make_parser(__doc__, output=True).parse_args(argv)
    rows = [[*row[:-1], "yes" if row[-1] else "no"] for row in make_rows()]
    print_table(
        f"Figure 1: costs of a pair with magnitude {MAGNITUDE:g}",
        ["", "cost", "lowest\nat g =", "value\nat g = 0", "bounds the\ndisagreement"],
        rows,
    )
    path = options.output / "rankrls09_figure1.png"
    plot(path)
    print_notes(
        "The paper says in the text that (22) is above the disagreement error and that (21) is "
        "not; (20) is as well.",
        f"The figure is in {path}.",
    )


if __name__ == "__main__":
    record(main)
