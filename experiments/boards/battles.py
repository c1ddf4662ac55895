"""Leaderboards of language models: least squares on margins against Bradley–Terry.

    python -m experiments.boards.battles [--data DIR] [--folds 10]

LLMFAO: 8,931 battles of 59 models on 13 prompts, judged by 124 people, 39% of them ties. Five
questions. (a) Do the two ways agree on the order? (b) Which predicts better who wins a battle that
was left out, in ten folds of battles and in ten folds of judges? Ties do not count there. (c) How
much wider are the intervals if whole judges are left out? (d) Do the battles go in circles? (e)
Has the left side an advantage, and which judges stand out?

Bradley–Terry is logistic regression on e_left − e_right, a tie being half a win for each side
(scikit-learn, L2 penalty chosen from 7 values by the held-out log loss of five folds of battles, as
alpha is chosen for least squares in one of two rows). Least squares asks for a margin of 1, or 0
for a tie. The last row is neither: the share of wins, ties counted half.
"""

import time
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold

from experiments.shared.command_line import make_parser, read_rows, record
from experiments.shared.tables import print_notes, print_table
from rankwise import PairGraph
from rankwise.datasets import PairData
from rankwise.leaderboard import rate, rate_groups

PENALTIES = 10.0 ** np.arange(-3, 4)


class Battles(NamedTuple):
    """Models by number; `outcome` is 1 if the left one won, −1 if the right one, 0 for a tie."""

    left: np.ndarray
    right: np.ndarray
    outcome: np.ndarray
    judge: np.ndarray
    prompt: np.ndarray
    names: np.ndarray

    def graph(self):
        """The battles as a preference graph."""
        turned = self.outcome < 0
        winner = np.where(turned, self.right, self.left)
        loser = np.where(turned, self.left, self.right)
        return PairGraph(winner, loser, np.abs(self.outcome), items=self.names)

    def subset(self, rows):
        """Some of the battles."""
        parts = (part[rows] for part in self[:-1])
        return Battles(*parts, self.names)


def read_battles(data):
    """All battles of LLMFAO."""
    rows = read_rows(data, "llmfao/crowd-comparisons.csv.gz")
    sides = np.array([[row["left"], row["right"]] for row in rows])
    names, ends = np.unique(sides, return_inverse=True)
    left, right = ends.reshape(-1, 2).T
    value = {"left": 1.0, "right": -1.0, "tie": 0.0}
    outcome = np.array([value[row["winner"]] for row in rows])
    judge, prompt = (np.array([row[name] for row in rows]) for name in ("worker", "prompt"))
    return Battles(left, right, outcome, judge, prompt, names)


def least_squares(battles, alpha=1e-8):
    """Ratings; "auto" chooses alpha by leaving out one battle at a time."""
    graph = battles.graph()
    return rate(graph, model="least-squares", alpha=alpha, intervals=False).ratings


def win_share(battles):
    """Wins and half of the ties, as a share of all battles of a model."""
    n = len(battles.names)
    ends, result = np.r_[battles.left, battles.right], np.r_[battles.outcome, -battles.outcome]
    return np.bincount(ends, result, minlength=n) / np.maximum(1, np.bincount(ends, minlength=n))


def bradley_terry(battles, penalty=None):
    """Ratings on the logit scale."""
    if penalty is None:
        penalty = choose_penalty(battles)
    n = len(battles.names)
    share = (1 + battles.outcome) / 2  # of the win, for the left model
    code, pair = np.unique(battles.left * n + battles.right, return_inverse=True)
    won, lost = np.bincount(pair, share), np.bincount(pair, 1 - share)
    design = np.eye(n)[code // n] - np.eye(n)[code % n]
    model = LogisticRegression(C=penalty, fit_intercept=False, solver="newton-cholesky", tol=1e-8)
    model.fit(
        np.vstack([design, design]),
        np.repeat([1, 0], len(code)),
        sample_weight=np.r_[won, lost],
    )
    return model.coef_[0]


def choose_penalty(battles):
    """The C with the lowest held-out log loss, in five folds of the battles."""
    losses = np.zeros(len(PENALTIES))
    for train, test in folds_of_battles(battles, 5):
        for k, penalty in enumerate(PENALTIES):
            ratings = bradley_terry(battles.subset(train), penalty)
            margin = ratings[battles.left[test]] - ratings[battles.right[test]]
            share = (1 + battles.outcome[test]) / 2
            losses[k] += np.sum(np.logaddexp(0, margin) - share * margin)
    return PENALTIES[losses.argmin()]


def folds_of_battles(battles, n_folds):
    """Random folds."""
    return list(KFold(n_folds, shuffle=True, random_state=0).split(battles.outcome))


def folds_of_judges(battles, n_folds):
    """Folds with no judge in two of them."""
    return list(GroupKFold(n_folds).split(battles.outcome, groups=battles.judge))


def held_out_accuracy(method, battles, folds):
    """Share of the decided held-out battles whose winner has the higher rating, and its error."""
    right = []
    for train, test in folds:
        ratings = method(battles.subset(train))
        rest = battles.subset(test)
        margin = (ratings[rest.left] - ratings[rest.right]) * rest.outcome
        right.append(((np.sign(margin) + 1) / 2)[rest.outcome != 0])
    right = np.concatenate(right)
    return float(right.mean()), float(right.std() / len(right) ** 0.5)


def print_boards(battles, top):
    """The first models of the board, beside Bradley–Terry and left-out judges."""
    start = time.perf_counter()
    board = rate(battles.graph(), model="least-squares")
    seconds = time.perf_counter() - start
    judges = rate(battles.graph(), model="least-squares", clusters=battles.judge)
    logits = bradley_terry(battles)
    places = (-logits).argsort().argsort() + 1
    rows = []
    for row in board.rows[:top]:
        wide, k = judges[row.item], list(battles.names).index(row.item)
        rows.append([
            f"{row.rank:>2}  {row.item}", row.rating, f"{row.low:.3f} … {row.high:.3f}",
            f"{wide.low:.3f} … {wide.high:.3f}", f"{wide.best_rank}–{wide.worst_rank}",
            wide.tier, f"{row.wins}/{row.ties}/{row.losses}", float(logits[k]), int(places[k]),
        ])  # fmt: skip
    header = [
        "rank, model", "rating", "95% interval\nbattles", "95% interval\njudges", "rank\nrange",
        "tier", "w/t/l", "Bradley–\nTerry", "its\nrank",
    ]  # fmt: skip
    print_table(f"The first {top} of {len(board)} models", header, rows)
    widths = [np.mean([row.high - row.low for row in of]) for of in (board, judges)]
    prompts = rate_groups(
        battles.graph(), battles.prompt, model="least-squares", intervals=False
    ).values()
    ratios = [of_prompt.circles.cycle_ratio for of_prompt in prompts]
    tau = kendalltau(board.ratings, logits).statistic
    print_notes(
        f"Kendall tau of the two boards: {tau:.3f} (least squares, Bradley–Terry)",
        f"intervals from judges are {widths[1] / widths[0]:.2f} times as wide on average",
        f"alpha {board.alpha:.2g}; unexplained {board.circles.unexplained:.3f}",
        f"circles: {board.circles.cyclicity:.3f} of the mean margins, "
        f"{board.circles.cycle_ratio:.2f} times what disagreement about the same two models gives "
        "by chance",
        f"inside one prompt: {np.mean(ratios):.2f} times ({min(ratios):.2f} … {max(ratios):.2f})",
        f"a board of {board.n_comparisons} battles took {seconds:.2f} s",
    )


def print_control(battles):
    """The advantage of the first side, the board without it, and the judges."""
    data = PairData(*battles[:3], np.ones(len(battles.left)), battles.names, judges=battles.judge)
    single = np.arange(data.n_pairs)
    plain = rate(data, model="least-squares")
    rows = []
    for title, clusters in (("battles", single), ("judges", None), ("prompts", battles.prompt)):
        (side,) = rate(data, model="least-squares", side=True, clusters=clusters).effects
        rows.append([title, side.value, side.error, f"{side.low:.3f} … {side.high:.3f}"])
    header = ["left out", "advantage", "s.e.", "95% interval"]
    print_table("The first (left) side", header, rows, digits=4)
    board = rate(data, model="least-squares", side=True)
    moved = [abs(board[name].rank - plain[name].rank) for name in battles.names]
    suspects = [judge for judge in plain.judges if judge.remark]
    votes = sum(judge.n for judge in suspects)
    reweighted = rate(data, model="least-squares", reweight=True)
    print_notes(
        f"board with the side taken out: Kendall tau {tau_of(plain, board):.3f} with the one "
        f"without, ranks move by {max(moved)} at most",
        f"{len(suspects)} of {len(plain.judges)} judges stand out, with {votes} battles; "
        f"the board with judges reweighted: Kendall tau {tau_of(plain, reweighted):.3f}",
        f"mean width of the intervals {width_of(plain):.3f}, reweighted {width_of(reweighted):.3f}",
    )
    header = ["judge", "n", "agreement", "side bias", "weight", "remark"]
    rows = [[j.name, j.n, j.agreement, j.side_bias, j.weight, j.remark] for j in suspects]
    print_table("Judges who stand out", header, rows)


def tau_of(one, two):
    """Kendall's tau of two boards of the same items."""
    return kendalltau(one.ratings, two.ratings).statistic


def width_of(board):
    """Mean width of the intervals."""
    return float(np.mean([row.high - row.low for row in board]))


def print_accuracy(battles, n_folds):
    """Who predicts held-out winners better."""
    folds = (folds_of_battles(battles, n_folds), folds_of_judges(battles, n_folds))
    methods = {
        "least squares": least_squares,
        "least squares, alpha chosen": partial(least_squares, alpha="auto"),
        "Bradley–Terry": bradley_terry,
        "share of wins": win_share,
    }
    rows = []
    for name, method in methods.items():
        found = [held_out_accuracy(method, battles, part) for part in folds]
        rows.append([name, *found[0], *found[1]])
    header = ["method", "battles\naccuracy", "\n± s.e.", "judges\naccuracy", "\n± s.e."]
    print_table(f"Held-out battles with a winner, {n_folds} folds of", header, rows, digits=4)


def main(arguments=None):
    """Print the boards and the accuracies."""
    parser = make_parser(__doc__)
    parser.add_argument("--top", type=int, default=15, help="models to show (%(default)s)")
    parser.add_argument("--folds", type=int, default=10, help="(%(default)s)")
    options = parser.parse_args(arguments)
    battles = read_battles(options.data)
    print_boards(battles, options.top)
    print_control(battles)
    print_accuracy(battles, options.folds)


if __name__ == "__main__":
    record(main)
