"""[RankRLS09] Figure 2: pairs that are irrelevant to the task can turn the learned order around.

    python -m experiments.rankrls09.figure2 [--output DIR]

Section 5.1: two objects with two inputs each, x1 and x2, x3 and x4, on a one-dimensional feature
space, scores 2, 1, 4, 3. Trained on the two relevant pairs, RankRLS orders both rightly; the four
pairs between the objects outweigh them if they are included. The paper does not print the feature
values: ours are the simplest that fit its description (relevant preferences go from left to right,
irrelevant ones from right to left). ``--data`` is accepted and ignored.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch

from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise import RankRLS, ScoreGraph
from rankwise.metrics import disagreement_error

FEATURE = np.array([[-2.0], [-1.0], [1.0], [2.0]])
SCORES = np.array([2.0, 1.0, 4.0, 3.0])
OBJECTS = np.array([1, 1, 2, 2])
NAMES = ("x1", "x2", "x3", "x4")
CASES = (  # trained on, groups, the direction the paper reports
    ("relevant pairs only", OBJECTS, "left to right"),
    ("all pairs", None, "right to left"),
)
COLORS = {1: "#0072B2", 2: "#D55E00"}
RELEVANT = "#222222"
IRRELEVANT = "#999999"
LEARNED = "#009E73"


def learn(groups):
    """The weight of the feature, the learned order (best first) and the error on relevant pairs."""
    model = RankRLS(alpha=0.01).fit(FEATURE, SCORES, groups=groups)
    predicted = model.predict(FEATURE)
    order = tuple(NAMES[i] for i in np.argsort(-predicted))
    return float(model.coef_[0]), order, disagreement_error(SCORES, predicted, OBJECTS)


def draw(axes, groups, title):
    """One panel: inputs on a line, an arrow from the better to the worse input of each pair."""
    weight, order, _ = learn(groups)
    edges = ScoreGraph(SCORES, groups).pairs()
    axes.axhline(0, color="#cccccc", linewidth=1, zorder=0)
    for better, worse in zip(edges.winner, edges.loser, strict=True):
        _draw_preference(axes, int(better), int(worse))
    for i, (x, score) in enumerate(zip(FEATURE[:, 0], SCORES, strict=True)):
        axes.scatter(x, 0, s=620, color=COLORS[int(OBJECTS[i])], edgecolor="white", zorder=3)
        axes.annotate(
            f"$x_{i + 1}$", (x, 0), ha="center", va="center", color="white", fontsize=12, zorder=4
        )
        axes.annotate(
            f"$s_{i + 1} = {score:.0f}$", (x, 0), (0, -24), textcoords="offset points",
            ha="center", va="center", fontsize=10,
        )  # fmt: skip
    towards = 2.4 * np.sign(weight)
    axes.annotate(
        "", (towards, -1.05), (-towards, -1.05),
        arrowprops={"arrowstyle": "-|>", "color": LEARNED, "linewidth": 3, "mutation_scale": 22},
    )  # fmt: skip
    axes.text(
        0, -1.3, "learned: " + " > ".join(f"${name[0]}_{name[1]}$" for name in order),
        ha="center", va="top", color=LEARNED, fontsize=12,
    )  # fmt: skip
    axes.set(title=title, xlim=(-2.7, 2.7), ylim=(-1.7, 1.75))
    axes.set_axis_off()


def _draw_preference(axes, better, worse):
    """An arrow: straight and thick inside an object, a dashed arc between objects."""
    if OBJECTS[better] == OBJECTS[worse]:
        style = {"linewidth": 2.2, "linestyle": "-", "color": RELEVANT, "zorder": 2}
        bend = 0
    else:
        style = {"linewidth": 1.4, "linestyle": (0, (5, 2)), "color": IRRELEVANT, "zorder": 1}
        distance = abs(FEATURE[better, 0] - FEATURE[worse, 0])
        bend = 0.25 + 0.11 * distance  # wider arcs rise steeper: no overlap
    axes.add_patch(
        FancyArrowPatch(
            (FEATURE[better, 0], 0),
            (FEATURE[worse, 0], 0),
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>",
            mutation_scale=16,
            shrinkA=14,
            shrinkB=14,
            **style,
        )
    )


def plot(path):
    """Both panels side by side."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    draw(left, OBJECTS, "relevant pairs only")
    draw(right, None, "relevant and irrelevant pairs")
    handles = [
        plt.Line2D([], [], color=RELEVANT, linewidth=2.2, label="better → worse, same object"),
        plt.Line2D([], [], color=IRRELEVANT, linestyle="--", label="between objects"),
        plt.Line2D([], [], color=LEARNED, linewidth=3, label="direction of growing score"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(argv=None):
    """Print the learned orders and write the figure."""
    options = make_parser(__doc__, output=True).parse_args(argv)
    rows = []
    for name, groups, expected in CASES:
        weight, order, error = learn(groups)
        direction = "right to left"
        if weight < 0:
            direction = "left to right"
        assert direction == expected, f"{name}: learned {direction}, the paper has {expected}"
        rows.append([name, weight, " > ".join(order), direction, expected, f"{2 * error:.0f} of 2"])
    print_table(
        "Figure 2: learned orders, best first",
        ["trained on", "weight", "rankwise\norder", "rankwise\ndirection", "paper\ndirection",
         "relevant\npairs wrong"],
        rows,
    )  # fmt: skip
    path = options.output / "rankrls09_figure2.png"
    plot(path)
    values = ", ".join(f"{x:g}" for x in FEATURE[:, 0])
    print_notes(
        f"Feature values {values} of x1 to x4 are ours; the paper shows them in a drawing only.",
        f"The figure is in {path}.",
    )


if __name__ == "__main__":
    record(main)
