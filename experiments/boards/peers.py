"""Who predicts the next comparison best: least squares, Bradley–Terry, its peers, Elo.

    python -m experiments.boards.peers [--data DIR] [--folds 10] [--size 1000000]

(a) LLMFAO: 8,931 battles of 59 language models, 39% of them ties; ten folds of battles and ten
folds of judges. Trained on all battles, judged on those with a winner by accuracy and log loss.
(b) ATP tennis: the matches of a year from those of the year before (Elo: from all years before,
also followed from match to match). Matches of two players of the year before count.
(c) Processor seconds for many comparisons of 60 and of 1e5 items.

The logit of least squares is a multiple of its margin; the factor is fitted on the margins of the
training comparisons, each without itself. A tie is half a win in all but Davidson.
choix and evalica are left out where they are not installed.
"""

import importlib.util
import time
import warnings

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from experiments.boards.battles import folds_of_battles, folds_of_judges, read_battles
from experiments.boards.tennis import YEARS, read_matches
from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise.datasets import PairData
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.models.bradley_terry import BradleyTerry
from rankwise.leaderboard.models.least_squares_model import LeastSquares

FACTORS = (24.0, 48.0)  # K of Elo
PSEUDO_WINS = 0.01  # that choix adds to every pair, so that its iterations end


def least_squares(games, alpha):
    """Margins times one factor."""
    counts = ComparisonCounts.of(games)
    model = LeastSquares(counts)
    if alpha is None:
        alpha = model.select_alpha()
    model.fit(alpha)
    outcome = counts.target
    held_out_margin = outcome - model.leave_one_out().held_out_residuals
    loser_share = (1 - outcome) / 2  # of the win, for the second item

    def log_loss(factor):
        logit = factor * held_out_margin
        return counts.count @ (np.logaddexp(0, -logit) + loser_share * logit)

    factor = minimize_scalar(log_loss, bounds=(0, 20), method="bounded").x
    return factor * model.ratings


def bradley_terry(games, alpha, ties="half"):
    """Ratings; alpha by leaving out one comparison at a time if it is None."""
    model = BradleyTerry(ComparisonCounts.of(games), ties=ties)
    if alpha is None:
        alpha = model.select_alpha()
    return model.fit(alpha).ratings


def by_choix(games):
    """Its spectral iterations to the maximum of the likelihood, on counts of wins."""
    import choix

    n = games.n_items
    first_share = (1 + games.outcome) / 2  # of the win
    wins = np.bincount(games.first * n + games.second, first_share, minlength=n * n)
    wins += np.bincount(games.second * n + games.first, 1 - first_share, minlength=n * n)
    return choix.ilsr_pairwise_dense(wins.reshape(n, n), alpha=PSEUDO_WINS, max_iter=10_000)


def by_evalica(games, limit=1000):
    """Its minorization–maximization."""
    import evalica

    # at the positions 0, 1 and −1 of the outcomes
    evalica_outcomes = np.array([evalica.Winner.Draw, evalica.Winner.X, evalica.Winner.Y])
    winners = evalica_outcomes[games.outcome.astype(int)]
    result = evalica.bradley_terry(
        games.first.tolist(), games.second.tolist(), winners.tolist(), limit=limit
    )
    scores = np.ones(games.n_items)
    scores[result.scores.index.to_numpy()] = result.scores.to_numpy()
    return np.log(np.maximum(scores, 1e-12))


def elo(games, factor, start=None):
    """Ratings in logits after all games in their order, and the logit before each of them."""
    ratings = np.zeros(games.n_items)
    if start is not None:
        ratings = start.copy()
    logits_before = np.empty(games.n_pairs)
    step = factor * np.log(10) / 400
    for k, (i, j, outcome) in enumerate(zip(games.first, games.second, games.outcome, strict=True)):
        logits_before[k] = ratings[i] - ratings[j]
        expected_share = 1 / (1 + np.exp(-logits_before[k]))
        change = step * ((1 + outcome) / 2 - expected_share)
        ratings[i] += change
        ratings[j] -= change
    return ratings, logits_before


def methods():
    """What is compared, by name: from games to ratings in logits."""
    ratings_by = {
        "least squares": lambda games: least_squares(games, 1e-8),
        "least squares, alpha chosen": lambda games: least_squares(games, None),
        "Bradley–Terry": lambda games: bradley_terry(games, 1e-8),
        "Bradley–Terry, alpha chosen": lambda games: bradley_terry(games, None),
        "Davidson, alpha chosen": lambda games: bradley_terry(games, None, "davidson"),
    }
    for package, method in (("choix", by_choix), ("evalica", by_evalica)):
        if importlib.util.find_spec(package):
            ratings_by[package] = method
    return ratings_by


def judged(logit, outcome):
    """Right or not, and log loss, of each comparison with a winner."""
    logit_of_winner = (logit * outcome)[outcome != 0]
    hits = (np.sign(logit_of_winner) + 1) / 2
    log_losses = np.logaddexp(0, -logit_of_winner)
    return hits, log_losses


def logits_of(ratings, games):
    """Difference of the ratings of the two sides of each game."""
    return ratings[games.first] - ratings[games.second]


def summary(results):
    """Mean accuracy, mean log loss and its error, over the comparisons of all results."""
    hits, losses = (np.concatenate(values) for values in zip(*results, strict=True))
    standard_error = losses.std() / len(losses) ** 0.5
    return [float(hits.mean()), float(losses.mean()), float(standard_error)]


def print_battles(data, n_folds):
    """Held-out battles."""
    battles = read_battles(data)
    ones = np.ones(len(battles.left))
    games = PairData(battles.left, battles.right, battles.outcome, ones, battles.names)
    kinds_of_folds = (folds_of_battles(battles, n_folds), folds_of_judges(battles, n_folds))
    rows = []
    for name, method in methods().items():
        row = [name]
        for folds in kinds_of_folds:
            results = []
            for train, test in folds:
                ratings = method(games.take(train))
                held_out = games.take(test)
                results.append(judged(logits_of(ratings, held_out), held_out.outcome))
            row += summary(results)
        rows.append(row)
    header = ["method", *2 * ["accuracy", "log loss", "± s.e."]]
    print_table(f"Battles with a winner, {n_folds} folds of battles / judges", header, rows, 4)


def read_tennis(data):
    """The matches of each year, of players numbered over all years, in the order of the dates."""
    rows = read_matches(data)
    sides = [(row["winner_name"], row["loser_name"]) for row in rows]
    names, codes = np.unique(sides, return_inverse=True)
    winner, loser = codes.reshape(-1, 2).T
    rng = np.random.default_rng(0)
    is_swapped = rng.random(len(winner)) < 0.5  # the winner is not always the first
    games = PairData(
        np.where(is_swapped, loser, winner),
        np.where(is_swapped, winner, loser),
        np.where(is_swapped, -1.0, 1.0),
        np.ones(len(winner)),
        names,
    )
    return games, np.array([int(row["tourney_date"][:4]) for row in rows])


def predict_year(games, years, year):
    """Results of all methods on the matches of a year whose two players played the year before."""
    matches_before = games.take(years == year - 1)
    matches_now = games.take(years == year)
    played_before = np.zeros(games.n_items, bool)
    played_before[np.r_[matches_before.first, matches_before.second]] = True
    is_tested = played_before[matches_now.first] & played_before[matches_now.second]
    tested = matches_now.take(is_tested)

    results = {}
    for name, method in methods().items():
        if "Davidson" not in name:  # there are no ties
            ratings = method(matches_before)
            results[name] = judged(logits_of(ratings, tested), tested.outcome)
    for factor in FACTORS:
        ratings, _ = elo(games.take(years < year), factor)
        frozen_logits = logits_of(ratings, tested)
        _, logits_before = elo(matches_now, factor, ratings)
        name = f"Elo, K = {factor:g}"
        results[name] = judged(frozen_logits, tested.outcome)
        results[f"{name}, followed"] = judged(logits_before[is_tested], tested.outcome)
    return results


def print_tennis(data):
    """Every year from the one before."""
    games, years = read_tennis(data)
    results_by_year = [predict_year(games, years, year) for year in YEARS[1:]]
    rows = []
    for name in results_by_year[0]:
        rows.append([name, *summary([results[name] for results in results_by_year])])
    n_matches = sum(len(losses) for _, losses in (r["least squares"] for r in results_by_year))
    header = ["method", "accuracy", "log loss", "± s.e."]
    title = f"{n_matches:,} matches of {YEARS[1]}–{YEARS[-1]}, from the year before"
    print_table(title, header, rows, 4)


def made_up(n_items, n_games):
    """Games of items whose strengths differ, a fifth of them ties."""
    rng = np.random.default_rng(0)
    strength = rng.normal(size=n_items)
    first = rng.integers(0, n_items, n_games)
    second = (first + rng.integers(1, n_items, n_games)) % n_items
    win_probability = 1 / (1 + np.exp(strength[second] - strength[first]))
    is_win = rng.random(n_games) < win_probability
    is_tie = rng.random(n_games) < 0.2
    outcome = np.where(is_tie, 0.0, np.where(is_win, 1.0, -1.0))
    return PairData(first, second, outcome, np.ones(n_games), np.arange(n_items))


def by_scikit_learn(games, alpha=1e-8):
    """LogisticRegression on sparse rows, a tie as two rows of half the weight."""
    n = games.n_pairs
    # a row for each game: 1 for the first item and −1 for the second
    rows = np.repeat(np.arange(n), 2)
    items = np.stack([games.first, games.second], axis=1).ravel()
    values = np.tile([1.0, -1.0], n)
    design = csr_matrix((values, (rows, items)), shape=(n, games.n_items))
    decided = np.flatnonzero(games.outcome)
    tied = np.flatnonzero(games.outcome == 0)
    rows_of_labels = np.r_[decided, tied, tied]
    labels = np.r_[games.outcome[decided] > 0, np.ones(len(tied)), np.zeros(len(tied))]
    weights = np.r_[np.ones(len(decided)), np.full(2 * len(tied), 0.5)] / n
    model = LogisticRegression(C=1 / (2 * alpha), fit_intercept=False, tol=1e-6, max_iter=1000)
    model.fit(design[rows_of_labels], labels, sample_weight=weights)
    return model.coef_[0]


def processor_seconds(method, games):
    """Processor seconds of one fit, without warnings."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method(games)
    return time.process_time() - start


def print_times(n_games):
    """Seconds without intervals; choix and evalica have dense matrices of items: 60 only."""
    methods_to_time = {
        "Bradley–Terry": lambda games: bradley_terry(games, 1e-8),
        "Davidson": lambda games: bradley_terry(games, 1e-8, "davidson"),
        "scikit-learn, sparse rows": by_scikit_learn,
    }
    for package, method in (("evalica", by_evalica), ("choix", by_choix)):
        if importlib.util.find_spec(package):
            methods_to_time[package] = method
    sizes = [60, max(61, n_games // 10)]
    rows = []
    for name, method in methods_to_time.items():
        row = [name]
        for n_items in sizes:
            is_dense = name in ("choix", "evalica")
            if is_dense and n_items > 60:
                row.append(None)
            else:
                row.append(processor_seconds(method, made_up(n_items, n_games)))
        rows.append(row)
    header = ["method", *(f"{n_items:,}\nitems" for n_items in sizes)]
    print_table(f"Processor seconds for {n_games:,} comparisons", header, rows, 2)


def main(arguments=None):
    """Print the three tables."""
    parser = make_parser(__doc__)
    parser.add_argument("--folds", type=int, default=10, help="(%(default)s)")
    parser.add_argument("--size", type=int, default=1_000_000, help="comparisons (%(default)s)")
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="evalica")
        print_battles(options.data, options.folds)
        print_tennis(options.data)
        print_times(options.size)
    print_notes("least squares and Bradley–Terry without a word have alpha 1e-8")


if __name__ == "__main__":
    record(main)
