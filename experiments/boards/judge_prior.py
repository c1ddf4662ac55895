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
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau

from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise.datasets import read_pairs
from rankwise.leaderboard import rate

SHOWN = ("people alone", "people and GPT-4", "people and GPT-3", "people, GPT-4 and GPT-3")
SIZES = (100, 300, 600, 1000)
VOTES_OF_CURVE = (50, 100, 200, 300, 450, 600, 800, 1000, 1300, 1700, 2200)  # votes of people alone


class Measured(NamedTuple):
    """How good a board is; NaN where the board has no prior, or no intervals."""

    tau: float
    interval_coverage: float = np.nan
    rank_coverage: float = np.nan
    width: float = np.nan
    votes: float = np.nan  # that the prior is worth, as the board says
    trust: float = np.nan


def read(data, name):
    """The votes in a file, and the pair of answers of each."""
    (path,) = find_data(data, f"llmfao/{name}crowd-comparisons.csv.gz")
    return read_pairs(path, sides=("left", "right"), outcome="winner", group="id")


def numbered(data, items):
    """The same votes with the numbers of the items as their labels."""
    number_of = {label: number for number, label in enumerate(items)}
    number = np.array([number_of[label] for label in data.items.tolist()])
    return replace(
        data,
        first=number[data.first],
        second=number[data.second],
        items=np.arange(len(items)),
    )


def said_of_the_same(judge, votes):
    """What the judge said of the pairs of answers of these votes."""
    row_of = {group: row for row, group in enumerate(judge.groups.tolist())}
    rows = np.array([row_of[group] for group in votes.groups.tolist()])
    sign = np.where(judge.first[rows] == votes.first, 1.0, -1.0)
    return replace(votes, outcome=sign * judge.outcome[rows])


def predict_powered(people, judge, all_pairs):
    """PPI++ for the ratings of least squares."""
    design = np.eye(people.n_items)[people.first] - np.eye(people.n_items)[people.second]
    inverse = np.linalg.pinv(design.T @ design, rcond=1e-9)

    def ratings_and_influences(outcome):
        """Least-squares ratings, and by how much each vote moves them."""
        ratings = inverse @ (design.T @ outcome)
        residuals = outcome - design @ ratings
        return ratings, design @ inverse * residuals[:, None]

    people_ratings, people_influences = ratings_and_influences(people.outcome)
    judge_ratings, judge_influences = ratings_and_influences(judge.outcome)
    # λ of least variance: covariance over variance, for a share n / N of judged pairs with votes
    covariance = np.sum(people_influences * judge_influences)
    variance = np.sum(judge_influences**2)
    power = covariance / ((1 + people.n_pairs / all_pairs.n_pairs) * variance)
    judge_ratings_of_all = rate(all_pairs, model="least-squares", intervals=False).ratings
    return people_ratings + np.clip(power, 0, 1) * (judge_ratings_of_all - judge_ratings)


def tau(ratings, truth):
    """Kendall's tau."""
    return kendalltau(ratings, truth).statistic


def standard_error(values):
    """Standard error of the mean."""
    return values.std(ddof=1) / np.sqrt(len(values))


def measured(board, truth):
    """τ, shares of intervals and rank ranges that hold the truth, and what the prior is worth."""
    if board.prior is None:  # items without votes have no interval
        return Measured(tau(board.ratings, truth))
    true_ranks = 1 + np.sum(truth > truth[:, None], axis=1)
    holds_rating = []
    holds_rank = []
    widths = []
    for item, (rating, rank) in enumerate(zip(truth, true_ranks, strict=True)):
        row = board[item]
        holds_rating.append(row.low <= rating <= row.high)
        holds_rank.append(row.best_rank <= rank <= row.worst_rank)
        widths.append(row.high - row.low)
    return Measured(
        tau(board.ratings, truth),
        np.mean(holds_rating),
        np.mean(holds_rank),
        np.mean(widths),
        board.prior.votes,
        board.prior.trust,
    )


def main(arguments=None):
    """Print the table and draw the figure."""
    parser = make_parser(__doc__, output=True)
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", UserWarning)  # few votes fall in components
    people = read(options.data, "")
    items = people.items.tolist()
    people = numbered(people, items)
    truth = rate(people, model="least-squares", intervals=False).ratings

    judges = {name: numbered(read(options.data, f"{name}-"), items) for name in ("gpt4", "gpt3")}
    judge_ratings = {
        name: rate(votes, model="least-squares", intervals=False).ratings
        for name, votes in judges.items()
    }
    priors = {name: dict(enumerate(ratings)) for name, ratings in judge_ratings.items()}
    tau_of_judge = {name: tau(ratings, truth) for name, ratings in judge_ratings.items()}

    curve = people_alone(people, truth, options.runs)
    taus = table(people, judges["gpt4"], priors, truth, curve, options.runs)
    print_notes(
        f"τ of the judges alone: GPT-4 {tau_of_judge['gpt4']:.3f}, "
        f"GPT-3 {tau_of_judge['gpt3']:.3f}",
        f"{options.runs} draws of votes; truth: the board of all 8,931 votes, least squares",
    )
    draw(taus, tau_of_judge["gpt4"], options.output)


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
    mean_taus = []
    for n_votes in VOTES_OF_CURVE:
        taus = []
        for run in range(n_runs):
            rng = np.random.default_rng([n_votes, run])
            votes = people.take(rng.choice(people.n_pairs, n_votes, replace=False))
            ratings = rate(votes, model="least-squares", intervals=False).ratings
            taus.append(tau(ratings, truth))
        mean_taus.append(np.mean(taus))
    return mean_taus


def measure_methods(people, gpt4, priors, truth, n_votes, n_runs):
    """For each method its `Measured` boards of `n_votes` drawn votes, one of each run."""
    results = {}
    for run in range(n_runs):
        rng = np.random.default_rng([7, n_votes, run])
        votes = people.take(rng.choice(people.n_pairs, n_votes, replace=False))
        prior_of_method = {
            "people alone": None,
            "people and GPT-4": priors["gpt4"],
            "people and GPT-3": priors["gpt3"],
            "people, GPT-4 and GPT-3": [priors["gpt4"], priors["gpt3"]],
            "people and noise": dict(enumerate(rng.standard_normal(len(truth)))),
            "people and GPT-4 reversed": {item: -value for item, value in priors["gpt4"].items()},
        }
        for name, prior in prior_of_method.items():
            board = rate(votes, model="least-squares", prior=prior)
            results.setdefault(name, []).append(measured(board, truth))
        judged = said_of_the_same(gpt4, votes)
        ratings = predict_powered(votes, judged, gpt4)
        results.setdefault("prediction-powered, GPT-4", []).append(Measured(tau(ratings, truth)))
    return results


def row_of(n_votes, name, results, curve):
    """A row of the table: means over the runs, and what the prior was worth in votes."""
    columns = Measured(*np.transpose(results))
    means = [
        columns.interval_coverage.mean(),
        columns.rank_coverage.mean(),
        columns.width.mean(),
        columns.trust.mean(),
    ]
    cells = ["–" if np.isnan(mean) else f"{mean:.3f}" for mean in means]
    claimed_worth = "–"
    if not np.isnan(columns.votes).any():
        claimed_worth = f"{np.median(columns.votes):.0f}"
    measured_worth = "–"
    if name != "people alone":
        n_votes_needed = np.interp(columns.tau.mean(), curve, VOTES_OF_CURVE)
        measured_worth = f"{n_votes_needed - n_votes:.0f}"
    mean_tau = f"{columns.tau.mean():.3f} ± {standard_error(columns.tau):.3f}"
    return [str(n_votes), name, mean_tau, *cells, claimed_worth, measured_worth]


def table(people, gpt4, priors, truth, curve, n_runs):
    """Print a row for each number of votes and method; return mean τ and its error by both."""
    rows = []
    taus_and_errors = {}
    for n_votes in SIZES:
        results = measure_methods(people, gpt4, priors, truth, n_votes, n_runs)
        for name, results_of_method in results.items():
            rows.append(row_of(n_votes, name, results_of_method, curve))
            taus = np.array([result.tau for result in results_of_method])
            taus_and_errors[n_votes, name] = (taus.mean(), standard_error(taus))
    header = ["votes", "", "τ", "intervals\nhold", "rank ranges\nhold", "width", "trust"]
    header += ["worth, as\nthe board says", "worth, as\nmeasured"]
    print_table("A judge as a prior, LLMFAO", header, rows)
    return taus_and_errors


if __name__ == "__main__":
    record(main)
