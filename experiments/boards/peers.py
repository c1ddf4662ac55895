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
    tally = ComparisonCounts.of(games)
    model = LeastSquares(tally)
    alpha = model.select_alpha() if alpha is None else alpha
    model.fit(alpha)
    said = tally.target
    margin = said - model.leave_one_out().held_out_residuals
    factor = minimize_scalar(
        lambda c: tally.count @ (np.logaddexp(0, -c * margin) + (1 - said) / 2 * c * margin),
        bounds=(0, 20),
        method="bounded",
    ).x
    return factor * model.ratings


def bradley_terry(games, alpha, ties="half"):
    """Ratings; alpha by leaving out one comparison at a time if it is None."""
    model = BradleyTerry(ComparisonCounts.of(games), ties=ties)
    alpha = model.select_alpha() if alpha is None else alpha
    return model.fit(alpha).ratings


def by_choix(games):
    """Its spectral iterations to the maximum of the likelihood, on counts of wins."""
    import choix

    n, share = games.n_items, (1 + games.outcome) / 2
    wins = np.bincount(games.first * n + games.second, share, minlength=n * n)
    wins += np.bincount(games.second * n + games.first, 1 - share, minlength=n * n)
    return choix.ilsr_pairwise_dense(wins.reshape(n, n), alpha=PSEUDO_WINS, max_iter=10_000)


def by_evalica(games, limit=1000):
    """Its minorization–maximization."""
    import evalica

    said = np.array([evalica.Winner.Draw, evalica.Winner.X, evalica.Winner.Y])
    winners = said[games.outcome.astype(int)]
    found = evalica.bradley_terry(
        games.first.tolist(), games.second.tolist(), winners.tolist(), limit=limit
    )
    scores = np.ones(games.n_items)
    scores[found.scores.index.to_numpy()] = found.scores.to_numpy()
    return np.log(np.maximum(scores, 1e-12))


def elo(games, factor, start=None):
    """Ratings in logits after all games in their order, and the logit before each of them."""
    ratings = np.zeros(games.n_items) if start is None else start.copy()
    before, step = np.empty(games.n_pairs), factor * np.log(10) / 400
    for k, (i, j, said) in enumerate(zip(games.first, games.second, games.outcome, strict=True)):
        before[k] = ratings[i] - ratings[j]
        change = step * ((1 + said) / 2 - 1 / (1 + np.exp(-before[k])))
        ratings[i] += change
        ratings[j] -= change
    return ratings, before


def methods():
    """What is compared, by name: from games to ratings in logits."""
    found = {
        "least squares": lambda games: least_squares(games, 1e-8),
        "least squares, alpha chosen": lambda games: least_squares(games, None),
        "Bradley–Terry": lambda games: bradley_terry(games, 1e-8),
        "Bradley–Terry, alpha chosen": lambda games: bradley_terry(games, None),
        "Davidson, alpha chosen": lambda games: bradley_terry(games, None, "davidson"),
    }
    for name, peer in (("choix", by_choix), ("evalica", by_evalica)):
        if importlib.util.find_spec(name):
            found[name] = peer
    return found


def judged(logit, outcome):
    """Right or not, and log loss, of each comparison with a winner."""
    margin = (logit * outcome)[outcome != 0]
    return (np.sign(margin) + 1) / 2, np.logaddexp(0, -margin)


def summary(name, parts):
    """A row: mean accuracy and mean log loss over all comparisons of all parts."""
    right, loss = (np.concatenate(column) for column in zip(*parts, strict=True))
    return [name, float(right.mean()), float(loss.mean()), float(loss.std() / len(loss) ** 0.5)]


def print_battles(data, n_folds):
    """Held-out battles."""
    battles = read_battles(data)
    items, ones = battles.names, np.ones(len(battles.left))
    games = PairData(battles.left, battles.right, battles.outcome, ones, items)
    rows = []
    for name, method in methods().items():
        row = [name]
        for folds in (folds_of_battles(battles, n_folds), folds_of_judges(battles, n_folds)):
            parts = []
            for train, test in folds:
                r, rest = method(games.take(train)), games.take(test)
                parts.append(judged(r[rest.first] - r[rest.second], rest.outcome))
            row += summary(name, parts)[1:]
        rows.append(row)
    header = ["method", *2 * ["accuracy", "log loss", "± s.e."]]
    print_table(f"Battles with a winner, {n_folds} folds of battles / judges", header, rows, 4)


def read_tennis(data):
    """The matches of each year, of players numbered over all years, in the order of the dates."""
    rows = read_matches(data)
    ends = [(row["winner_name"], row["loser_name"]) for row in rows]
    names, codes = np.unique(ends, return_inverse=True)
    winner, loser = codes.reshape(-1, 2).T
    rng = np.random.default_rng(0)
    turned = rng.random(len(winner)) < 0.5  # the winner is not always the first
    games = PairData(
        np.where(turned, loser, winner),
        np.where(turned, winner, loser),
        np.where(turned, -1.0, 1.0),
        np.ones(len(winner)),
        names,
    )
    return games, np.array([int(row["tourney_date"][:4]) for row in rows])


def print_tennis(data):
    """Every year from the one before."""
    games, years = read_tennis(data)
    chosen = {k: v for k, v in methods().items() if "Davidson" not in k}
    found = {name: [] for name in chosen}
    for factor in FACTORS:
        found |= {f"Elo, K = {factor:g}": [], f"Elo, K = {factor:g}, followed": []}
    for year in YEARS[1:]:
        past, now = games.take(years == year - 1), games.take(years == year)
        seen = np.zeros(games.n_items, bool)
        seen[np.r_[past.first, past.second]] = True
        known = seen[now.first] & seen[now.second]
        rest = now.take(known)
        for name, method in chosen.items():
            r = method(past)
            found[name].append(judged(r[rest.first] - r[rest.second], rest.outcome))
        for factor in FACTORS:
            r, _ = elo(games.take(years < year), factor)
            fixed, moving = r[rest.first] - r[rest.second], elo(now, factor, r)[1][known]
            found[f"Elo, K = {factor:g}"].append(judged(fixed, rest.outcome))
            found[f"Elo, K = {factor:g}, followed"].append(judged(moving, rest.outcome))
    rows = [summary(name, parts) for name, parts in found.items()]
    n = sum(len(loss) for _, loss in next(iter(found.values())))
    header = ["method", "accuracy", "log loss", "± s.e."]
    print_table(f"{n:,} matches of {YEARS[1]}–{YEARS[-1]}, from the year before", header, rows, 4)


def made_up(n_items, n_games):
    """Games of items whose strengths differ, a fifth of them ties."""
    rng = np.random.default_rng(0)
    r = rng.normal(size=n_items)
    first = rng.integers(0, n_items, n_games)
    second = (first + rng.integers(1, n_items, n_games)) % n_items
    wins = rng.random(n_games) < 1 / (1 + np.exp(r[second] - r[first]))
    outcome = np.where(rng.random(n_games) < 0.2, 0.0, np.where(wins, 1.0, -1.0))
    return PairData(first, second, outcome, np.ones(n_games), np.arange(n_items))


def by_scikit_learn(games, alpha=1e-8):
    """LogisticRegression on sparse rows, a tie as two rows of half the weight."""
    n, rows = games.n_pairs, np.repeat(np.arange(games.n_pairs), 2)
    ends = np.stack([games.first, games.second], axis=1).ravel()
    D = csr_matrix((np.tile([1.0, -1.0], n), (rows, ends)), shape=(n, games.n_items))
    decided, tied = np.flatnonzero(games.outcome), np.flatnonzero(games.outcome == 0)
    every = np.r_[decided, tied, tied]
    label = np.r_[games.outcome[decided] > 0, np.ones(len(tied)), np.zeros(len(tied))]
    weight = np.r_[np.ones(len(decided)), np.full(2 * len(tied), 0.5)] / n
    model = LogisticRegression(C=1 / (2 * alpha), fit_intercept=False, tol=1e-6, max_iter=1000)
    return model.fit(D[every], label, sample_weight=weight).coef_[0]


def print_times(n_games):
    """Seconds without intervals; choix and evalica have dense matrices of items: 60 only."""
    works = {
        "Bradley–Terry": lambda games: bradley_terry(games, 1e-8),
        "Davidson": lambda games: bradley_terry(games, 1e-8, "davidson"),
        "scikit-learn, sparse rows": by_scikit_learn,
    }
    for name, peer in (("evalica", by_evalica), ("choix", by_choix)):
        if importlib.util.find_spec(name):
            works[name] = peer
    sizes = [60, max(61, n_games // 10)]
    rows = []
    for name, work in works.items():
        row = [name]
        for n_items in sizes:
            if n_items > 60 and name in ("choix", "evalica"):
                row.append(None)
                continue
            games = made_up(n_items, n_games)
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                work(games)
            row.append(time.process_time() - start)
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
