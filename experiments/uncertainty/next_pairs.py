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
    chosen = []
    for _ in range(BATCH):
        v = belief.variances(i, j) * (1 + 1e-6 * rng.random(len(i)))
        best = int(np.argmax(v))
        chosen.append((int(i[best]), int(j[best])))
        belief.observe(*chosen[-1])
    return chosen


def for_the_order(graph, rng, X):
    """`next_pairs` with its default goal."""
    return [(q.first, q.second) for q in next_pairs(graph, X, BATCH, random_state=rng)]


def for_the_top(graph, rng, X):
    """`next_pairs` for the ten best."""
    return [(q.first, q.second) for q in next_pairs(graph, X, BATCH, goal="top", random_state=rng)]


RULES = {
    "random": at_random,
    "largest variance": largest_variance,
    "next_pairs, order": for_the_order,
    "next_pairs, top 10": for_the_top,
}


def play(shares, rule, n_pairs, rng, X=None):
    """Comparisons, one after the other."""
    winner = []
    loser = []
    while len(winner) < n_pairs:
        for a, b in rule(PairGraph(winner, loser, n_items=len(shares)), rng, X):
            won = rng.random() < shares[a, b]
            winner.append(a if won else b)
            loser.append(b if won else a)
    return PairGraph(winner, loser, n_items=len(shares))


def judged(graph, truth, rng, X):
    """Kendall's τ and the share of the ten best."""
    mean = fit_posterior(graph, X, 1.0).mean
    best = set(np.argsort(-truth)[:10]) & set(np.argsort(-mean)[:10])
    return [kendalltau(mean, truth).statistic, len(best) / 10]


def rating_shares(ratings):
    """Win shares of a matrix of ratings of users, nan where one is missing; ties are half."""
    higher = np.nan_to_num((ratings[:, :, None] > ratings[:, None, :]).astype(np.float32))
    known = ~np.isnan(ratings)
    both = known.T.astype(float) @ known
    tied = (ratings[:, :, None] == ratings[:, None, :]).sum(axis=0)
    return (higher.sum(axis=0) + tied / 2) / both


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
    shares = expit(np.subtract.outer(*2 * [bradley_terry(battles, 1.0)]))
    won, met = np.zeros((2, n, n))
    np.add.at(won, (battles.left, battles.right), (1 + battles.outcome) / 2)
    np.add.at(won, (battles.right, battles.left), (1 - battles.outcome) / 2)
    np.add.at(met, (battles.left, battles.right), 1)
    np.add.at(met, (battles.right, battles.left), 1)
    return np.where(met > 0, won / np.maximum(met, 1), shares)


def simulated(rng, n=60, spread=1.5):
    skill = spread * rng.standard_normal(n)
    return expit(np.subtract.outer(skill, skill)), skill


def with_features(rng, n=60, p=8):
    X = rng.standard_normal((n, p))
    skill = X @ rng.standard_normal(p) * 1.5 / np.sqrt(p)
    return expit(np.subtract.outer(skill, skill)), skill, X


def table(title, problem, n_runs):
    """τ and top 10 of every rule after 2 n and 5 n comparisons, with standard errors."""
    rows = []
    for name, rule in RULES.items():
        found = []
        for seed in range(n_runs):
            rng = np.random.default_rng(seed)
            shares, truth, X = problem(rng)
            graph = play(shares, rule, 5 * len(shares), rng, X)
            early = graph.with_edges(np.arange(2 * len(shares)))
            found.append(judged(early, truth, rng, X) + judged(graph, truth, rng, X))
        mean = np.mean(found, axis=0)
        error = np.std(found, axis=0, ddof=1) / np.sqrt(n_runs)
        rows.append([name, *(f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True))])
    print_table(title, ["", "τ, 2 n", "top 10, 2 n", "τ, 5 n", "top 10, 5 n"], rows)


def bent(n_runs):
    """How far ratings are stretched, without alpha and with that of the skills, by rule."""
    rows = []
    for name, rule in RULES.items():
        found = []
        for seed in range(n_runs):
            rng = np.random.default_rng(seed)
            shares, skill = simulated(rng, n=20, spread=1.0)
            graph = play(shares, rule, 400, rng)
            truth = skill - skill.mean()
            free = rate(graph, model="bradley-terry")
            drawn = rate(graph, model="bradley-terry", alpha=1 / 800, intervals=False).ratings
            rank = 1 + np.sum(truth > truth[:, None], axis=1)
            inside = [free[k].best_rank <= rank[k] <= free[k].worst_rank for k in range(20)]
            stretch = free.ratings @ truth / (truth @ truth)
            found.append([stretch, truth @ drawn / (drawn @ drawn), np.mean(inside)])
        mean = np.mean(found, axis=0)
        error = np.std(found, axis=0) / np.sqrt(n_runs)
        rows.append([name, *(f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True))])
    header = [
        "",
        "ratings by truth,\nalpha 1e-8",
        "truth by ratings,\nalpha 1/(2 W)",
        "ranks inside",
    ]
    print_table("Are ratings bent by the choice?", header, rows)


def stopped(n_runs, level=0.9):
    """How often the top 5 of 30 is right when the rule stops, and after how many comparisons."""
    rows = []
    for goal in ("chosen", "random"):
        right = []
        used = []
        for seed in range(n_runs):
            rng = np.random.default_rng(seed)
            shares, skill = simulated(rng, n=30)
            graph = PairGraph([], [], n_items=30)
            while graph.n_pairs < 2000:
                asked = next_pairs(graph, k=BATCH, goal="top", top=5, level=level, random_state=rng)
                if asked.settled:
                    break
                pairs = [(q.first, q.second) for q in asked]
                pairs = pairs if goal == "chosen" else at_random(graph, rng, None)
                won = [rng.random() < shares[a, b] for a, b in pairs]
                ends = [(a, b) if w else (b, a) for (a, b), w in zip(pairs, won, strict=True)]
                a, b = np.array(ends).T
                graph = PairGraph(np.r_[graph.winner, a], np.r_[graph.loser, b], n_items=30)
            mean = fit_posterior(graph, None, 1.0).mean
            top = set(np.argsort(-mean)[:5])
            right.append(top == set(np.argsort(-skill)[:5]) if asked.settled else np.nan)
            used.append(graph.n_pairs)
        share = np.nanmean([*right, np.nan]) if np.isfinite(right).any() else np.nan
        error = np.sqrt(share * (1 - share) / np.sum(~np.isnan(right)))
        rows.append(
            [
                goal,
                f"{np.mean(~np.isnan(right)):.2f}",
                f"{share:.2f} ± {error:.2f}",
                f"{np.median(used):.0f}",
            ]
        )
    header = ["pairs", "settled before\n2,000", "top 5 right", "comparisons\n(median)"]
    print_table(f"Top 5 of 30 settled at {level:g}", header, rows)


def predicted(n_runs, level=0.9):
    """How many answers were said to be needed, over those that were: top 3 of 10 items."""
    said = []
    used = []
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        shares, _ = simulated(rng, n=10)
        graph = PairGraph([], [], n_items=10)
        told = []
        while graph.n_pairs < 600:
            asked = next_pairs(graph, k=BATCH, goal="top", top=3, level=level, random_state=rng)
            if asked.settled:
                break
            if graph.n_pairs >= 20:
                belief = fit_posterior(graph, None, 1.0)
                told.append((graph.n_pairs, answers_to_go(belief, "top", 3, level, rng)))
            won = [rng.random() < shares[q.first, q.second] for q in asked]
            ends = [
                (q.first, q.second) if w else (q.second, q.first)
                for q, w in zip(asked, won, strict=True)
            ]
            a, b = np.array(ends).T
            graph = PairGraph(np.r_[graph.winner, a], np.r_[graph.loser, b], n_items=10)
        used += [graph.n_pairs - n for n, _ in told]
        said += [np.inf if number is None else number for _, number in told]
    is_told = np.isfinite(said)
    ratio = np.array(said)[is_told] / np.array(used)[is_told]
    low, middle, high = np.quantile(ratio, [0.25, 0.5, 0.75])
    row = [f"{is_told.mean():.2f}", f"{middle:.2f}", f"{low:.2f} … {high:.2f}"]
    row += [f"{np.median(np.array(used)[~is_told]):.0f}"]
    header = ["said", "over needed,\nmedian", "middle half", "needed where\nnothing is said"]
    print_table("Answers to go, top 3 of 10", header, [row])


def main(arguments=None):
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
