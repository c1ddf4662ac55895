"""Leaderboards of models over tasks: MTEB, AMLB and EuroEval beside their usual evaluation.

    python -m experiments.boards.model_benchmarks [--data DIR]

MTEB(eng, v2), August 2026, from the results repository: complete models beside a bootstrap of
10,000 over tasks; all models, beside the mean of the scores that each has. For ratings from
missing scores the truth is the rating of the same model on all tasks: half of the complete models
get the gaps of incomplete ones (Kendall's tau), or a quarter of them keep one kind of tasks only
(share of the models whose interval, around the mean of the other models, contains the rating on
all tasks); the drawn models have the seeds 0 to 39.

AMLB (2019 reports, 4 h): folds as seeds of a task, beside each fold as a task of its own. EuroEval
Danish, the 60 best complete models: data sets as a sample, fixed data sets (draws with the
published standard errors), and the stratified bootstrap of data sets within tasks.
"""

from __future__ import annotations

import itertools
import re
import time
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from experiments.shared.command_line import find_data, make_parser, record
from rankwise import rate_scores

N_BOOTSTRAP = 10_000
N_EXPERIMENTS = 40
RANDOM_BASELINE = "mteb__baseline-random-encoder"


class Separable(NamedTuple):
    """What `separable` counts, as text."""

    apart: str
    at_once: str
    tied_neighbors: str
    tied_with_first: int


def board_and_seconds(frame, **options):
    """A board without warnings, and the processor seconds it takes with ranks and tiers."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        board = rate_scores(frame, **options)
        _ = board.columns  # computed on first access
    return board, time.process_time() - start


def quiet(frame, **options):
    """A board without warnings."""
    board, _ = board_and_seconds(frame, **options)
    return board


def separable(board):
    """Share of the pairs of ranked models that differ, one by one and at once, and neighbors."""
    ranked = [row for row in board.rows if row.rank is not None]
    n = len(ranked)
    n_pairs = n * (n - 1) / 2
    share_apart = sum(row.best_rank - 1 for row in ranked) / n_pairs
    share_at_once = sum(row.best_of_all - 1 for row in ranked) / n_pairs
    n_tied_with_first = sum(row.best_rank == 1 for row in ranked)
    n_tied_neighbors = 0
    for upper, lower in itertools.pairwise(ranked):
        p_value = board.difference(upper.item, lower.item).p_value
        n_tied_neighbors += p_value > 1 - board.confidence
    return Separable(
        f"{100 * share_apart:.1f}%",
        f"{100 * share_at_once:.1f}%",
        f"{n_tied_neighbors} of {n - 1}",
        n_tied_with_first,
    )


def bootstrap_verdicts(scores, rng):
    """Sign of each difference of means, 0 if the percentile interval contains 0."""
    n_models, n_tasks = scores.shape
    means = np.empty((N_BOOTSTRAP, n_models))
    for draw in range(N_BOOTSTRAP):
        tasks = rng.integers(n_tasks, size=n_tasks)
        means[draw] = scores[:, tasks].mean(axis=1)
    verdicts = np.zeros((n_models, n_models))
    for model in range(n_models):
        differences = means[:, [model]] - means
        low, high = np.percentile(differences, [2.5, 97.5], axis=0)
        verdicts[model] = np.where(low > 0, 1, np.where(high < 0, -1, 0))
    return verdicts


def board_verdicts(board):
    """The same by the board."""
    differences = board.errors.differences(board.ratings)
    n = len(differences)
    padded = np.zeros((n + 1, n + 1))
    padded[:n, :n] = differences
    p_values = board.errors.pair_errors.p_values(padded)[:n, :n]
    return np.sign(differences) * (p_values <= 0.05)


def mteb(data):
    """Boards of MTEB beside a bootstrap over tasks."""
    (path,) = find_data(data, "scores/mteb_eng_v2.csv.gz")
    long = pd.read_csv(path)
    long["score"] *= 100
    kinds = long.groupby("task").kind.first()
    wide = long.pivot(index="model", columns="task", values="score")
    complete = wide.dropna().drop(index=RANDOM_BASELINE, errors="ignore")
    print(f"MTEB(eng, v2): {len(wide)} models, {len(complete)} complete, {wide.shape[1]} tasks,")
    print(f"{100 * wide.isna().to_numpy().mean():.0f}% of the cells missing\n")

    quiet(complete)  # imports are not measured
    board, seconds = board_and_seconds(complete)
    board_of_all, seconds_of_all = board_and_seconds(wide)
    weights = (1 / kinds.map(kinds.value_counts())).to_dict()
    print("| board | pairs separable | at once | neighbors not | tied with the first | effective |")
    print("|---" * 6 + "|")
    print_separable("complete", board)
    print_separable("complete, mean of types", quiet(complete, task_weight=weights))
    by_family = quiet(complete, family=kinds.to_dict(), balance="family")
    print_separable("complete, types left out", by_family)
    print_separable("all models", board_of_all)

    print_bootstrap(complete, board, seconds, seconds_of_all)
    print(board_of_all.to_text().splitlines()[1][:60].rstrip() + "  … (first of all models)")
    mean_of_present = wide.mean(axis=1)
    print(f"first by the mean of present scores: {mean_of_present.idxmax()}")
    for note in board_of_all.notes:
        print(f"note: {note}")
    mteb_gaps(complete, wide)
    mteb_kinds(complete, kinds)


def print_separable(name, board):
    """A row of the table of boards."""
    cells = [name, *map(str, separable(board)), f"{board.effective_tasks:.1f}"]
    print("| " + " | ".join(cells) + " |")


def print_bootstrap(complete, board, seconds, seconds_of_all):
    """How often a bootstrap and the board agree on a pair, and their times."""
    start = time.process_time()
    verdicts_of_bootstrap = bootstrap_verdicts(complete.to_numpy(), np.random.default_rng(0))
    bootstrap_seconds = time.process_time() - start
    pairs = np.triu_indices(len(complete), k=1)
    by_bootstrap = verdicts_of_bootstrap[pairs]
    by_board = board_verdicts(board)[pairs]
    share_equal = np.mean(by_board == by_bootstrap)
    more_separable = np.mean(by_bootstrap != 0) - np.mean(by_board != 0)
    print(
        f"\nbootstrap of {N_BOOTSTRAP:,}: same verdict for {100 * share_equal:.1f}% of the pairs,"
    )
    print(f"{100 * more_separable:+.1f}% of the pairs separable; {bootstrap_seconds:.2f} s, board")
    print(
        f"{seconds:.3f} s (1/{bootstrap_seconds / seconds:.0f}); all models {seconds_of_all:.2f} s"
    )


def mteb_gaps(complete, wide):
    """Kendall's tau of ratings from tables with gaps with the ratings on all tasks."""
    has_gaps = wide.isna().any(axis=1) & (wide.notna().sum(axis=1) >= 10)
    gap_patterns = wide[has_gaps].isna().to_numpy()
    truth = complete.mean(axis=1).to_numpy()
    taus = []
    for seed in range(N_EXPERIMENTS):
        table = with_gaps(complete, gap_patterns, np.random.default_rng(seed))
        board = quiet(table)
        positions = [board.position(name) for name in table.index]
        ratings = board.ratings[positions]
        mean_of_present = table.mean(axis=1)
        mean_of_common_tasks = table.loc[:, table.notna().all()].mean(axis=1)
        estimates = [ratings, mean_of_present, mean_of_common_tasks]
        taus.append([kendalltau(estimate, truth).statistic for estimate in estimates])
    additive, present, common = np.nanmean(taus, axis=0)
    print(f"\ngaps of other models in half of the complete ones: tau {additive:.3f}, mean of the")
    print(f"present scores {present:.3f}, tasks that all have {common:.3f}\n")


def covered(board, names, truth, errors):
    """Share of the models whose interval, relative to the reference, contains the truth."""
    n = len(board.items)
    half_widths = errors.half_widths(n, 0.95)
    reference = board.score_errors.reference
    order = [list(truth.index).index(name) for name in board.items]
    true_reference = reference @ truth.to_numpy()[order]
    rating_reference = reference @ board.ratings
    inside = []
    for name in names:
        row = board.position(name)
        error = board.ratings[row] - rating_reference - (truth[name] - true_reference)
        inside.append(abs(error) <= half_widths[row])
    return np.mean(inside)


def with_gaps(complete, gap_patterns, rng):
    """The complete models, half of them with gaps of incomplete models, drawn at random."""
    rows = rng.choice(len(complete), len(complete) // 2, replace=False)
    is_missing = gap_patterns[rng.integers(len(gap_patterns), size=len(rows))]
    values = complete.to_numpy(copy=True)
    values[rows] = np.where(is_missing, np.nan, values[rows])
    table = complete.copy()
    table.loc[:, :] = values
    return table


def mteb_kinds(complete, kinds):
    """Coverage if a quarter of the models keep one kind of tasks only."""
    print("| tasks that a quarter keeps | complete models | jackknife | board |")
    print("|---" * 4 + "|")
    for kind in ("Retrieval", "STS", "Classification", "Clustering"):
        other_tasks = kinds[kinds != kind].index
        for n_complete in (0, 5, 10):
            results = [
                coverage_with_one_kind(complete, other_tasks, n_complete, seed)
                for seed in range(N_EXPERIMENTS)
            ]
            jackknife, of_board = np.mean(results, axis=0)
            n_shown = n_complete
            if not n_complete:
                n_shown = len(complete) - len(complete) // 4
            print(f"| {kind} | {n_shown} | {100 * jackknife:.1f}% | {100 * of_board:.1f}% |")


def coverage_with_one_kind(complete, other_tasks, n_complete, seed):
    """Coverage of jackknife and board for drawn models without scores on the other tasks.

    `n_complete` models stay complete, as many lose the other tasks; 0 stands for all models, of
    which a quarter lose them.
    """
    rng = np.random.default_rng(seed)
    table = complete
    n_masked = len(complete) // 4
    if n_complete:
        table = complete.iloc[rng.choice(len(complete), 2 * n_complete, replace=False)]
        n_masked = n_complete
    masked = table.index[rng.choice(len(table), n_masked, replace=False)]
    table_with_gaps = table.copy()
    table_with_gaps.loc[masked, other_tasks] = np.nan
    board = quiet(table_with_gaps, min_tasks=0)
    truth = table.mean(axis=1)
    by_jackknife = covered(board, masked, truth, board.score_errors.by_tasks)
    by_board = covered(board, masked, truth, board.errors.pair_errors)
    return [by_jackknife, by_board]


def separable_pairs(board):
    """Number of pairs of ranked models that differ, of all."""
    ranked = [row for row in board.rows if row.rank is not None]
    n_apart = sum(row.best_rank - 1 for row in ranked)
    n = len(ranked)
    return f"{n_apart} of {n * (n - 1) // 2}"


def amlb(data):
    (path,) = find_data(data, "scores/amlb_4h.csv.gz")
    table = pd.read_csv(path)
    table = table[table.framework != "constantpredictor"]
    print("\nAMLB: 6 systems, 10 folds of each task; failed folds are missing\n")
    print(
        "| metric | tasks | folds as seeds: sure pairs | folds as tasks | seeds' share | warnings |"
    )
    print("|---" * 6 + "|")
    for metric, kind in (("auc", "binary"), ("logloss", "multiclass")):
        rows = table[(table.type == kind) & table[metric].notna()]
        rows = rows.assign(cell=rows.task + "/" + rows.fold.astype(str))
        names = {"item": "framework", "score": metric, "lower_is_better": metric == "logloss"}
        board = quiet(rows, task="task", seed="fold", **names)
        by_fold = quiet(rows, task="cell", **names)
        cells = [
            metric,
            str(rows.task.nunique()),
            separable_pairs(board),
            separable_pairs(by_fold),
            f"{100 * board.noise.seed_share:.0f}%",
            "; ".join(board.warnings) or "–",
        ]
        print("| " + " | ".join(cells) + " |")


def euroeval(data):
    """Boards of EuroEval with data sets as a sample, fixed data sets, and a bootstrap."""
    scores, interval_widths = read_euroeval(data)
    board = quiet(scores)
    rng = np.random.default_rng(0)
    rows = draws_of_scores(scores, interval_widths, rng)
    columns = {"item": "model", "task": "task", "score": "value", "seed": "draw"}
    sample = quiet(rows, **columns)
    fixed = quiet(rows, tasks="fixed", **columns)
    print("\nEuroEval Danish: the 60 best complete models on 8 data sets of 7 tasks\n")
    print(f"data sets as a sample: {separable(board).apart} of the pairs separable,")
    print(f"{separable(board).tied_with_first} models tied with the first; fixed data sets:")
    print(f"{separable(fixed).apart}, {separable(fixed).tied_with_first} tied; the draws cause")
    print(f"{100 * sample.noise.seed_share:.1f}% of the variance of a difference")
    low, high = stratified_bootstrap(scores.to_numpy(), rng)
    board_widths = np.array([board[name].high - board[name].low for name in scores.index])
    print(f"stratified bootstrap: median interval {np.median(high - low):.2f} wide, the board's")
    print(f"{np.median(board_widths):.2f}")


def read_euroeval(data):
    """Scores of the 60 best complete models, and half the widths of their intervals."""
    (path,) = find_data(data, "scores/euroeval_danish_all.csv.gz")
    table = pd.read_csv(path, header=1)
    table.columns = [re.sub("<[^>]*>", "", name) for name in table.columns]
    data_sets = list(table.columns[11:19])
    pattern = r"([\d.]+) ± ([\d.]+)"
    means = table[data_sets].apply(lambda column: column.str.extract(pattern)[0].astype(float))
    widths = table[data_sets].apply(lambda column: column.str.extract(pattern)[1].astype(float))
    models = table.Model.str.replace("<[^>]*>", "", regex=True)
    is_usable = means.notna().all(axis=1).to_numpy() & ~models.duplicated().to_numpy()
    best_first = np.argsort(-means[is_usable].mean(axis=1).to_numpy())
    best = np.flatnonzero(is_usable)[best_first[:60]]
    scores = means.iloc[best].set_axis(models.iloc[best])
    return scores, widths.iloc[best].to_numpy()


def draws_of_scores(scores, interval_widths, rng, n_draws=10):
    """Ten scores of each cell with the published mean and standard error, a row each."""
    draws = rng.standard_normal((n_draws, *scores.shape))
    draws -= draws.mean(axis=0)
    draws /= draws.std(axis=0, ddof=1)
    deviations = draws * interval_widths / 1.96 * np.sqrt(n_draws)
    tables = [
        (scores + deviations[k]).melt(ignore_index=False, var_name="task").assign(draw=k)
        for k in range(n_draws)
    ]
    return pd.concat(tables).reset_index(names="model")


def stratified_bootstrap(scores, rng):
    """Lower and upper ends of the intervals of all models, data sets drawn within their tasks."""
    task = np.array([0, 1, 2, 3, 4, 5, 5, 6])  # the two data sets of knowledge are one task
    weights = 1 / np.bincount(task)[task] / 7
    means_of_draws = []
    for _ in range(N_BOOTSTRAP):
        data_sets = np.array([rng.choice(np.flatnonzero(task == t)) for t in task])
        means_of_draws.append(scores[:, data_sets] @ weights)
    return np.percentile(means_of_draws, [2.5, 97.5], axis=0)


def main(arguments=None):
    """Print all tables."""
    options = make_parser(__doc__).parse_args(arguments)
    mteb(options.data)
    amlb(options.data)
    euroeval(options.data)


if __name__ == "__main__":
    record(main)
