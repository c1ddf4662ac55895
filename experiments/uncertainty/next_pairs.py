"""Is a chosen pair worth more than a random one? next_pairs in simulation and on real answers.

    python -m experiments.uncertainty.next_pairs [--data DIR] [--runs 30]

Every run begins without comparisons and asks five pairs at a time. Answers are drawn from the
shares of the data: for jokes (Jester) and films (MovieLens) the answer of a random user who rated
both, for language models (LLMFAO) a random one of the recorded battles of the two, or by
Bradley–Terry where the two never met; in simulation by Bradley–Terry. After twice and five times as
many comparisons as items the ratings are compared with those from all data: Kendall's τ, and the
share of the ten best items that are among the ten best.

Two more tables, simulated: whether the choice of pairs bends a Bradley–Terry board (slopes of
ratings and truth on each other, and how often rank ranges hold the true rank; 20 comparisons an
item), whether the stopping rule keeps its promise, and how rough the number of answers is that are
said to be still needed.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit
from scipy.stats import kendalltau

from experiments.boards.battles import bradley_terry, read_battles
from experiments.shared.command_line import make_parser, record
from experiments.shared.ratings import read_jester, read_movielens
from experiments.shared.tables import print_table
from rankwise import PairGraph
from rankwise.leaderboard import next_pairs, rate
from rankwise.leaderboard.inference.pair_suggestions import answers_to_go
from rankwise.leaderboard.inference.posterior import fit_posterior

BATCH = 5


def at_random(graph, rng, X):
    """Any pairs."""
    return [tuple(rng.choice(graph.n_items, 2, replace=False)) for _ in range(BATCH)]


def largest_variance(graph, rng, X):
    """The pairs whose difference is known least, whatever it is."""
    belief = fit_posterior(graph, X, 1.0)
    i, j = np.triu_indices(graph.n_items, 1)
    pairs = []
    for _ in range(BATCH):
        tie_breaker = 1 + 1e-6 * rng.random(len(i))
        widest = int(np.argmax(belief.variances(i, j) * tie_breaker))
        pair = (int(i[widest]), int(j[widest]))
        pairs.append(pair)
        belief.observe(*pair)
    return pairs


def for_the_order(graph, rng, X):
    """`next_pairs` with its default goal."""
    questions = next_pairs(graph, X, BATCH, random_state=rng)
    return [(question.first, question.second) for question in questions]


def for_the_top(graph, rng, X):
    """`next_pairs` for the ten best."""
    questions = next_pairs(graph, X, BATCH, goal="top", random_state=rng)
    return [(question.first, question.second) for question in questions]


RULES = {
    "random": at_random,
    "largest variance": largest_variance,
    "next_pairs, order": for_the_order,
    "next_pairs, top 10": for_the_top,
}


def answers_of(pairs, shares, rng):
    """Winners and losers of these pairs, drawn with the win shares."""
    winners = []
    losers = []
    for a, b in pairs:
        if rng.random() < shares[a, b]:
            winners.append(a)
            losers.append(b)
        else:
            winners.append(b)
            losers.append(a)
    return winners, losers


def play(shares, rule, n_pairs, rng, X=None):
    """Comparisons, one batch after the other, of pairs that the rule chooses."""
    winners = []
    losers = []
    while len(winners) < n_pairs:
        graph = PairGraph(winners, losers, n_items=len(shares))
        new_winners, new_losers = answers_of(rule(graph, rng, X), shares, rng)
        winners += new_winners
        losers += new_losers
    return PairGraph(winners, losers, n_items=len(shares))


def judged(graph, truth, rng, X):
    """Kendall's τ and the share of the ten best."""
    mean = fit_posterior(graph, X, 1.0).mean
    true_top = set(np.argsort(-truth)[:10])
    estimated_top = set(np.argsort(-mean)[:10])
    return [kendalltau(mean, truth).statistic, len(true_top & estimated_top) / 10]


def rating_shares(ratings):
    """Win shares of a matrix of ratings of users, nan where one is missing; ties are half."""
    is_higher = (ratings[:, :, None] > ratings[:, None, :]).astype(np.float32)
    is_equal = ratings[:, :, None] == ratings[:, None, :]
    n_higher = np.nan_to_num(is_higher).sum(axis=0)
    n_equal = is_equal.sum(axis=0)
    is_rated = ~np.isnan(ratings)
    n_users_of_both = is_rated.T.astype(float) @ is_rated
    return (n_higher + n_equal / 2) / n_users_of_both


def jokes(data):
    """100 jokes by the users who rated all of them, at most 2,000."""
    ratings = read_jester(data)
    return ratings[~np.isnan(ratings).any(axis=1)][:2000]


def films(data):
    """The 60 films with most ratings."""
    ratings = read_movielens(data)
    return ratings[:, np.argsort(-(~np.isnan(ratings)).sum(axis=0))[:60]]


def models(data):
    """Shares of the battles of language models."""
    battles = read_battles(data)
    n = len(battles.names)
    wins = np.zeros((n, n))
    meetings = np.zeros((n, n))
    np.add.at(wins, (battles.left, battles.right), (1 + battles.outcome) / 2)
    np.add.at(wins, (battles.right, battles.left), (1 - battles.outcome) / 2)
    np.add.at(meetings, (battles.left, battles.right), 1)
    np.add.at(meetings, (battles.right, battles.left), 1)
    recorded_shares = wins / np.maximum(meetings, 1)
    ratings = bradley_terry(battles, 1.0)
    predicted_shares = expit(np.subtract.outer(ratings, ratings))
    return np.where(meetings > 0, recorded_shares, predicted_shares)


def simulated(rng, n=60, spread=1.5):
    """Win shares of Bradley and Terry's model, and the skills."""
    skill = spread * rng.standard_normal(n)
    return expit(np.subtract.outer(skill, skill)), skill


def with_features(rng, n=60, n_features=8):
    """The same with skills that are a linear function of features."""
    X = rng.standard_normal((n, n_features))
    skill = X @ rng.standard_normal(n_features) * 1.5 / np.sqrt(n_features)
    return expit(np.subtract.outer(skill, skill)), skill, X


def mean_and_error_cells(mean, error):
    """Cells of a table."""
    return [f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)]


def table(title, problem, n_runs):
    """τ and top 10 of every rule after 2 n and 5 n comparisons, with standard errors."""
    rows = []
    for name, rule in RULES.items():
        values = []
        for seed in range(n_runs):
            rng = np.random.default_rng(seed)
            shares, truth, X = problem(rng)
            n = len(shares)
            late = play(shares, rule, 5 * n, rng, X)
            early = late.with_edges(np.arange(2 * n))
            values.append(judged(early, truth, rng, X) + judged(late, truth, rng, X))
        mean = np.mean(values, axis=0)
        error = np.std(values, axis=0, ddof=1) / np.sqrt(n_runs)
        rows.append([name, *mean_and_error_cells(mean, error)])
    print_table(title, ["", "τ, 2 n", "top 10, 2 n", "τ, 5 n", "top 10, 5 n"], rows)


def slope_through_zero(x, y):
    """Of the regression of y on x without intercept."""
    return x @ y / (x @ x)


def bent(n_runs):
    """How far ratings are stretched, without alpha and with that of the skills, by rule."""
    rows = []
    for name, rule in RULES.items():
        values = []
        for seed in range(n_runs):
            rng = np.random.default_rng(seed)
            shares, skill = simulated(rng, n=20, spread=1.0)
            graph = play(shares, rule, 400, rng)
            truth = skill - skill.mean()
            board = rate(graph, model="bradley-terry")
            shrunk = rate(graph, model="bradley-terry", alpha=1 / 800, intervals=False).ratings
            true_ranks = 1 + np.sum(truth > truth[:, None], axis=1)
            is_inside = [
                board[item].best_rank <= rank <= board[item].worst_rank
                for item, rank in enumerate(true_ranks)
            ]
            values.append(
                [
                    slope_through_zero(truth, board.ratings),
                    slope_through_zero(shrunk, truth),
                    np.mean(is_inside),
                ]
            )
        mean = np.mean(values, axis=0)
        error = np.std(values, axis=0) / np.sqrt(n_runs)
        rows.append([name, *mean_and_error_cells(mean, error)])
    header = [
        "",
        "ratings by truth,\nalpha 1e-8",
        "truth by ratings,\nalpha 1/(2 W)",
        "ranks inside",
    ]
    print_table("Are ratings bent by the choice?", header, rows)


def with_answers(graph, pairs, shares, rng):
    """The graph with drawn answers for these pairs."""
    winners, losers = answers_of(pairs, shares, rng)
    return PairGraph(
        np.r_[graph.winner, winners], np.r_[graph.loser, losers], n_items=graph.n_items
    )


def ask_until_settled(pairs_are_chosen, seed, level):
    """Whether the top 5 of 30 was settled, whether it is right, and the number of comparisons."""
    rng = np.random.default_rng(seed)
    shares, skill = simulated(rng, n=30)
    graph = PairGraph([], [], n_items=30)
    is_settled = False
    while graph.n_pairs < 2000 and not is_settled:
        questions = next_pairs(graph, k=BATCH, goal="top", top=5, level=level, random_state=rng)
        is_settled = questions.settled
        if is_settled:
            break
        pairs = [(question.first, question.second) for question in questions]
        if not pairs_are_chosen:
            pairs = at_random(graph, rng, None)
        graph = with_answers(graph, pairs, shares, rng)
    mean = fit_posterior(graph, None, 1.0).mean
    is_right = set(np.argsort(-mean)[:5]) == set(np.argsort(-skill)[:5])
    return is_settled, is_right, graph.n_pairs


def stopped(n_runs, level=0.9):
    """How often the top 5 of 30 is right when the rule stops, and after how many comparisons."""
    rows = []
    for title, pairs_are_chosen in (("chosen", True), ("random", False)):
        runs = [ask_until_settled(pairs_are_chosen, seed, level) for seed in range(n_runs)]
        is_settled, is_right, n_comparisons = (
            np.array(values) for values in zip(*runs, strict=True)
        )
        share = np.nan
        if is_settled.any():
            share = np.mean(is_right[is_settled])
        error = np.sqrt(share * (1 - share) / np.sum(is_settled))
        rows.append(
            [
                title,
                f"{np.mean(is_settled):.2f}",
                f"{share:.2f} ± {error:.2f}",
                f"{np.median(n_comparisons):.0f}",
            ]
        )
    header = ["pairs", "settled before\n2,000", "top 5 right", "comparisons\n(median)"]
    print_table(f"Top 5 of 30 settled at {level:g}", header, rows)


def predictions_of_run(seed, level):
    """Numbers of answers said to be needed on the way, and needed in fact; infinite for None."""
    rng = np.random.default_rng(seed)
    shares, _ = simulated(rng, n=10)
    graph = PairGraph([], [], n_items=10)
    predicted_numbers = []
    n_pairs_before = []
    while graph.n_pairs < 600:
        questions = next_pairs(graph, k=BATCH, goal="top", top=3, level=level, random_state=rng)
        if questions.settled:
            break
        if graph.n_pairs >= 20:
            belief = fit_posterior(graph, None, 1.0)
            number = answers_to_go(belief, "top", 3, level, rng)
            if number is None:
                number = np.inf
            predicted_numbers.append(number)
            n_pairs_before.append(graph.n_pairs)
        pairs = [(question.first, question.second) for question in questions]
        graph = with_answers(graph, pairs, shares, rng)
    return predicted_numbers, [graph.n_pairs - n for n in n_pairs_before]


def predicted(n_runs, level=0.9):
    """How many answers were said to be needed, over those that were: top 3 of 10 items."""
    predicted_numbers = []
    needed_numbers = []
    for seed in range(n_runs):
        predicted_of_run, needed_of_run = predictions_of_run(seed, level)
        predicted_numbers += predicted_of_run
        needed_numbers += needed_of_run
    predicted_numbers = np.array(predicted_numbers)
    needed_numbers = np.array(needed_numbers)
    is_predicted = np.isfinite(predicted_numbers)
    ratios = predicted_numbers[is_predicted] / needed_numbers[is_predicted]
    lower_quartile, median, upper_quartile = np.quantile(ratios, [0.25, 0.5, 0.75])
    row = [
        f"{is_predicted.mean():.2f}",
        f"{median:.2f}",
        f"{lower_quartile:.2f} … {upper_quartile:.2f}",
        f"{np.median(needed_numbers[~is_predicted]):.0f}",
    ]
    header = ["said", "over needed,\nmedian", "middle half", "needed where\nnothing is said"]
    print_table("Answers to go, top 3 of 10", header, [row])


def main(arguments=None):
    """Print all tables."""
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args(arguments)
    n_runs = options.runs
    table("Simulation, 60 items", lambda rng: (*simulated(rng), None), n_runs)
    table("Simulation, 60 items with 8 features", with_features, n_runs)
    bent(3 * n_runs)
    stopped(2 * n_runs)
    predicted(n_runs // 2)
    for title, shares in [
        ("Language models (LLMFAO, 59)", models(options.data)),
        ("Jokes (Jester, 100)", rating_shares(jokes(options.data))),
        ("Films (MovieLens, 60)", rating_shares(films(options.data))),
    ]:
        clipped = np.clip(shares, 0.02, 0.98)
        truth = np.nan_to_num(logit(clipped)).mean(axis=1)
        table(title, lambda rng, s=shares, t=truth: (s, t, None), n_runs)


if __name__ == "__main__":
    record(main)
