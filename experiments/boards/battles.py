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
        right_wins = self.outcome < 0
        winner = np.where(right_wins, self.right, self.left)
        loser = np.where(right_wins, self.left, self.right)
        return PairGraph(winner, loser, np.abs(self.outcome), items=self.names)

    def subset(self, rows):
        """Some of the battles."""
        columns = (column[rows] for column in self[:-1])
        return Battles(*columns, names=self.names)


def read_battles(data):
    """All battles of LLMFAO."""
    rows = read_rows(data, "llmfao/crowd-comparisons.csv.gz")
    sides = np.array([[row["left"], row["right"]] for row in rows])
    names, codes = np.unique(sides, return_inverse=True)
    left, right = codes.reshape(-1, 2).T
    outcome_of = {"left": 1.0, "right": -1.0, "tie": 0.0}
    outcome = np.array([outcome_of[row["winner"]] for row in rows])
    judge = np.array([row["worker"] for row in rows])
    prompt = np.array([row["prompt"] for row in rows])
    return Battles(left, right, outcome, judge, prompt, names)


def least_squares(battles, alpha=1e-8):
    """Ratings; "auto" chooses alpha by leaving out one battle at a time."""
    graph = battles.graph()
    return rate(graph, model="least-squares", alpha=alpha, intervals=False).ratings


def win_share(battles):
    """Wins and half of the ties, as a share of all battles of a model."""
    n = len(battles.names)
    model = np.r_[battles.left, battles.right]
    outcome = np.r_[battles.outcome, -battles.outcome]
    sum_of_outcomes = np.bincount(model, outcome, minlength=n)
    n_battles = np.bincount(model, minlength=n)
    return sum_of_outcomes / np.maximum(1, n_battles)


def bradley_terry(battles, penalty=None):
    """Ratings on the logit scale."""
    if penalty is None:
        penalty = choose_penalty(battles)
    n = len(battles.names)
    left_share = (1 + battles.outcome) / 2  # of the win
    code, pair = np.unique(battles.left * n + battles.right, return_inverse=True)
    won = np.bincount(pair, left_share)
    lost = np.bincount(pair, 1 - left_share)
    # one row per ordered pair of models, once as a win and once as a loss, with these weights
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
            left_share = (1 + battles.outcome[test]) / 2
            losses[k] += np.sum(np.logaddexp(0, margin) - left_share * margin)
    return PENALTIES[losses.argmin()]


def folds_of_battles(battles, n_folds):
    """Random folds."""
    return list(KFold(n_folds, shuffle=True, random_state=0).split(battles.outcome))


def folds_of_judges(battles, n_folds):
    """Folds with no judge in two of them."""
    return list(GroupKFold(n_folds).split(battles.outcome, groups=battles.judge))


def held_out_accuracy(method, battles, folds):
    """Share of the decided held-out battles whose winner has the higher rating, and its error."""
    hits_by_fold = []
    for train, test in folds:
        ratings = method(battles.subset(train))
        held_out = battles.subset(test)
        margin_of_winner = (ratings[held_out.left] - ratings[held_out.right]) * held_out.outcome
        hits = (np.sign(margin_of_winner) + 1) / 2  # equal ratings count one half
        hits_by_fold.append(hits[held_out.outcome != 0])
    hits = np.concatenate(hits_by_fold)
    standard_error = hits.std() / len(hits) ** 0.5
    return float(hits.mean()), float(standard_error)


def print_boards(battles, top):
    """The first models of the board, beside Bradley–Terry and left-out judges."""
    graph = battles.graph()
    start = time.perf_counter()
    board = rate(graph, model="least-squares")
    seconds = time.perf_counter() - start
    board_by_judges = rate(graph, model="least-squares", clusters=battles.judge)
    logits = bradley_terry(battles)
    print_first_models(board, board_by_judges, dict(zip(battles.names, logits, strict=True)), top)

    boards_by_prompt = rate_groups(graph, battles.prompt, model="least-squares", intervals=False)
    ratios = [of_prompt.circles.cycle_ratio for of_prompt in boards_by_prompt.values()]
    tau = kendalltau(board.ratings, logits).statistic
    width_ratio = width_of(board_by_judges) / width_of(board)
    print_notes(
        f"Kendall tau of the two boards: {tau:.3f} (least squares, Bradley–Terry)",
        f"intervals from judges are {width_ratio:.2f} times as wide on average",
        f"alpha {board.alpha:.2g}; unexplained {board.circles.unexplained:.3f}",
        f"circles: {board.circles.cyclicity:.3f} of the mean margins, "
        f"{board.circles.cycle_ratio:.2f} times what disagreement about the same two models gives "
        "by chance",
        f"inside one prompt: {np.mean(ratios):.2f} times ({min(ratios):.2f} … {max(ratios):.2f})",
        f"a board of {board.n_comparisons} battles took {seconds:.2f} s",
    )


def print_first_models(board, board_by_judges, logits, top):
    """One row per model; `logits` are the ratings of Bradley and Terry's model by name."""
    names_by_logit = sorted(logits, key=lambda name: -logits[name])
    rows = []
    for row in board.rows[:top]:
        by_judges = board_by_judges[row.item]
        rows.append([
            f"{row.rank:>2}  {row.item}", row.rating, f"{row.low:.3f} … {row.high:.3f}",
            f"{by_judges.low:.3f} … {by_judges.high:.3f}",
            f"{by_judges.best_rank}–{by_judges.worst_rank}", by_judges.tier,
            f"{row.wins}/{row.ties}/{row.losses}", float(logits[row.item]),
            names_by_logit.index(row.item) + 1,
        ])  # fmt: skip
    header = [
        "rank, model", "rating", "95% interval\nbattles", "95% interval\njudges", "rank\nrange",
        "tier", "w/t/l", "Bradley–\nTerry", "its\nrank",
    ]  # fmt: skip
    print_table(f"The first {top} of {len(board)} models", header, rows)


def print_control(battles):
    """The advantage of the first side, the board without it, and the judges."""
    weights = np.ones(len(battles.left))
    data = PairData(
        battles.left, battles.right, battles.outcome, weights, battles.names, judges=battles.judge
    )
    print_side_effect(data, battles.prompt)

    plain_board = rate(data, model="least-squares")
    side_board = rate(data, model="least-squares", side=True)
    reweighted_board = rate(data, model="least-squares", reweight=True)
    rank_changes = [abs(side_board[name].rank - plain_board[name].rank) for name in battles.names]
    suspects = [judge for judge in plain_board.judges if judge.remark]
    n_suspect_votes = sum(judge.n for judge in suspects)
    print_notes(
        f"board with the side taken out: Kendall tau {tau_of(plain_board, side_board):.3f} with "
        f"the one without, ranks move by {max(rank_changes)} at most",
        f"{len(suspects)} of {len(plain_board.judges)} judges stand out, with {n_suspect_votes} "
        "battles; the board with judges reweighted: Kendall tau "
        f"{tau_of(plain_board, reweighted_board):.3f}",
        f"mean width of the intervals {width_of(plain_board):.3f}, "
        f"reweighted {width_of(reweighted_board):.3f}",
    )
    header = ["judge", "n", "agreement", "side bias", "weight", "remark"]
    rows = [
        [judge.name, judge.n, judge.agreement, judge.side_bias, judge.weight, judge.remark]
        for judge in suspects
    ]
    print_table("Judges who stand out", header, rows)


def print_side_effect(data, prompt):
    """The advantage of the left side, with battles, judges or prompts left out for its error."""
    clusters_by_title = {
        "battles": np.arange(data.n_pairs),
        "judges": None,  # the default, since the data have judges
        "prompts": prompt,
    }
    rows = []
    for title, clusters in clusters_by_title.items():
        (side,) = rate(data, model="least-squares", side=True, clusters=clusters).effects
        rows.append([title, side.value, side.error, f"{side.low:.3f} … {side.high:.3f}"])
    header = ["left out", "advantage", "s.e.", "95% interval"]
    print_table("The first (left) side", header, rows, digits=4)


def tau_of(first_board, second_board):
    """Kendall's tau of two boards of the same items."""
    return kendalltau(first_board.ratings, second_board.ratings).statistic


def width_of(board):
    """Mean width of the intervals."""
    return float(np.mean([row.high - row.low for row in board]))


def print_accuracy(battles, n_folds):
    """Who predicts held-out winners better."""
    battle_folds = folds_of_battles(battles, n_folds)
    judge_folds = folds_of_judges(battles, n_folds)
    methods = {
        "least squares": least_squares,
        "least squares, alpha chosen": partial(least_squares, alpha="auto"),
        "Bradley–Terry": bradley_terry,
        "share of wins": win_share,
    }
    rows = []
    for name, method in methods.items():
        new_battles = held_out_accuracy(method, battles, battle_folds)
        new_judges = held_out_accuracy(method, battles, judge_folds)
        rows.append([name, *new_battles, *new_judges])
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
