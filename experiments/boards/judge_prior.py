"""A language model as a judge beside few votes of people: what is its word worth?

    python -m experiments.boards.judge_prior [--data DIR] [--runs 100]

LLMFAO: 8,931 votes of people on answers of 59 models, and one vote of GPT-4 and of GPT-3 on each of
the 2,139 pairs of answers. Some votes of people are drawn at random; the truth is the board of all
of them. Beside each other: people alone, the judge alone, the judge as a prior (`rate(prior=)`),
and prediction-powered inference (PPI++: the people's board, and λ times what the judge's board of
all pairs says more than that of the same pairs, λ by least variance). Two more priors are
worthless: random numbers, and GPT-4 reversed.

Kendall's τ with its standard error over the runs, shares of the 95 % intervals and of the rank
ranges that hold the truth, and what the prior was worth in votes: as the board says it, and as
measured, by how many votes people alone need for the same τ.
"""

import warnings
from dataclasses import replace

import numpy as np
from scipy.stats import kendalltau

from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise.datasets import read_pairs
from rankwise.leaderboard import rate

SHOWN = ("people alone", "people and GPT-4", "people and GPT-3", "people, GPT-4 and GPT-3")
SIZES = (100, 300, 600, 1000)
CURVE = (50, 100, 200, 300, 450, 600, 800, 1000, 1300, 1700, 2200)  # votes of people alone


def read(data, name):
    """The votes in a file, and the pair of answers of each."""
    (path,) = find_data(data, f"llmfao/{name}crowd-comparisons.csv.gz")
    return read_pairs(path, sides=("left", "right"), outcome="winner", group="id")


def numbered(data, items):
    """The same votes with the numbers of the items as their labels."""
    place = {label: k for k, label in enumerate(items)}
    number = np.array([place[label] for label in data.items.tolist()])
    ends = {"first": number[data.first], "second": number[data.second]}
    return replace(data, **ends, items=np.arange(len(items)))


def said_of_the_same(judge, votes):
    """What the judge said of the pairs of answers of these votes."""
    row = {group: k for k, group in enumerate(judge.groups.tolist())}
    at = np.array([row[group] for group in votes.groups.tolist()])
    sign = np.where(judge.first[at] == votes.first, 1.0, -1.0)
    return replace(votes, outcome=sign * judge.outcome[at])


def predict_powered(people, judge, all_pairs):
    """PPI++ for the ratings of least squares."""
    n, N = people.n_pairs, all_pairs.n_pairs
    ratings, influences = [], []
    D = np.eye(people.n_items)[people.first] - np.eye(people.n_items)[people.second]
    inverse = np.linalg.pinv(D.T @ D, rcond=1e-9)
    for outcome in (people.outcome, judge.outcome):
        r = inverse @ (D.T @ outcome)
        ratings.append(r)
        influences.append(D @ inverse * (outcome - D @ r)[:, None])
    own, judged = influences
    power = np.sum(own * judged) / ((1 + n / N) * np.sum(judged**2))
    whole = rate(all_pairs, model="least-squares", intervals=False).ratings
    return ratings[0] + np.clip(power, 0, 1) * (whole - ratings[1])


def tau(ratings, truth):
    return kendalltau(ratings, truth).statistic


def mean_error(values):
    values = np.array(values)
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def measured(board, truth):
    """τ, shares of intervals and rank ranges that hold the truth, and what the prior is worth."""
    if board.prior is None:  # items without votes have no interval
        return tau(board.ratings, truth), *[np.nan] * 5
    rank = 1 + np.sum(truth > truth[:, None], axis=1)
    rows = [board[k] for k in range(len(truth))]
    inside = [row.low <= truth[k] <= row.high for k, row in enumerate(rows)]
    ranks = [row.best_rank <= rank[k] <= row.worst_rank for k, row in enumerate(rows)]
    width = np.mean([row.high - row.low for row in rows])
    holds = np.mean(inside), np.mean(ranks), width
    return tau(board.ratings, truth), *holds, board.prior.votes, board.prior.trust


def main(arguments=None):
    parser = make_parser(__doc__, output=True)
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", UserWarning)  # few votes fall in components
    people = read(options.data, "")
    items = people.items.tolist()
    people = numbered(people, items)
    truth = rate(people, model="least-squares", intervals=False).ratings
    judges = {name: numbered(read(options.data, f"{name}-"), items) for name in ("gpt4", "gpt3")}
    boards = {
        name: rate(votes, model="least-squares", intervals=False) for name, votes in judges.items()
    }
    said = {name: dict(enumerate(board.ratings)) for name, board in boards.items()}
    curve = people_alone(people, truth, options.runs)
    taus = table(people, judges, said, truth, curve, options.runs)
    own = {name: tau(board.ratings, truth) for name, board in boards.items()}
    print_notes(
        f"τ of the judges alone: GPT-4 {own['gpt4']:.3f}, GPT-3 {own['gpt3']:.3f}",
        f"{options.runs} draws of votes; truth: the board of all 8,931 votes, least squares",
    )
    draw(taus, own["gpt4"], options.output)


def draw(taus, judge_alone, folder):
    """τ by number of votes, people alone and with priors."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for name, color in zip(SHOWN, ("0.45", "tab:blue", "tab:orange", "tab:green"), strict=True):
        means, errors = np.transpose([taus[size, name] for size in SIZES])
        axes.errorbar(SIZES, means, 2 * errors, color=color, marker="o", label=name)
    axes.axhline(judge_alone, color="0.7", ls="--", label="GPT-4 alone")
    axes.set(xlabel="votes of people", ylabel="Kendall's τ to all 8,931 votes", xticks=SIZES)
    axes.legend(frameon=False)
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / "judge_prior.png", dpi=120)


def people_alone(people, truth, n_runs):
    """τ of people alone by number of votes."""
    found = []
    for size in CURVE:
        drawn = [np.random.default_rng([size, run]).choice(people.n_pairs, size, replace=False)
                 for run in range(n_runs)]  # fmt: skip
        found.append(
            [
                tau(rate(people.take(k), model="least-squares", intervals=False).ratings, truth)
                for k in drawn
            ]
        )
    return np.mean(found, axis=1)


def table(people, judges, said, truth, curve, n_runs):
    """One row for each number of votes and way."""
    rows, shown = [], {}
    for size in SIZES:
        found = {}
        for run in range(n_runs):
            rng = np.random.default_rng([7, size, run])
            votes = people.take(rng.choice(people.n_pairs, size, replace=False))
            noise = dict(enumerate(rng.standard_normal(len(truth))))
            reversed_prior = {item: -value for item, value in said["gpt4"].items()}
            ways = {
                "people alone": None,
                "people and GPT-4": said["gpt4"],
                "people and GPT-3": said["gpt3"],
                "people, GPT-4 and GPT-3": [said["gpt4"], said["gpt3"]],
                "people and noise": noise,
                "people and GPT-4 reversed": reversed_prior,
            }
            for name, prior in ways.items():
                found.setdefault(name, []).append(
                    measured(rate(votes, model="least-squares", prior=prior), truth)
                )
            judged = said_of_the_same(judges["gpt4"], votes)
            powered = tau(predict_powered(votes, judged, judges["gpt4"]), truth)
            found.setdefault("prediction-powered, GPT-4", []).append([powered] + [np.nan] * 5)
        for name, runs in found.items():
            taus, inside, ranks, width, worth, trust = np.transpose(runs)
            needed = np.interp(taus.mean(), curve, CURVE)
            cells = [inside.mean(), ranks.mean(), width.mean(), trust.mean()]
            cells = ["–" if np.isnan(cell) else f"{cell:.3f}" for cell in cells]
            worth = "–" if np.isnan(worth).any() else f"{np.median(worth):.0f}"
            gained = "–" if name == "people alone" else f"{needed - size:.0f}"
            rows.append([str(size), name, mean_error(taus), *cells, worth, gained])
            shown[size, name] = taus.mean(), taus.std(ddof=1) / np.sqrt(n_runs)
    header = ["votes", "", "τ", "intervals\nhold", "rank ranges\nhold", "width", "trust"]
    header += ["worth, as\nthe board says", "worth, as\nmeasured"]
    print_table("A judge as a prior, LLMFAO", header, rows)
    return shown


if __name__ == "__main__":
    record(main)
