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

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from experiments.shared.command_line import find_data, make_parser, record
from rankwise import rate_scores

N_BOOTSTRAP = 10_000
N_EXPERIMENTS = 40
RANDOM_BASELINE = "mteb__baseline-random-encoder"


def quiet(frame, **options):
    """A board without warnings, and the processor seconds it takes with ranks and tiers."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        board = rate_scores(frame, **options)
        _ = board.columns
    return board, time.process_time() - start


def separable(board):
    """Share of the pairs of ranked models that differ, one by one and at once, and neighbors."""
    ranked = [row for row in board.rows if row.rank is not None]
    n = len(ranked)
    n_pairs = n * (n - 1) / 2
    apart = sum(row.best_rank - 1 for row in ranked) / n_pairs
    at_once = sum(row.best_of_all - 1 for row in ranked) / n_pairs
    tied = sum(row.best_rank == 1 for row in ranked)
    neighbors = [
        board.difference(a.item, b.item).p_value > 1 - board.confidence
        for a, b in itertools.pairwise(ranked)
    ]
    return f"{100 * apart:.1f}%", f"{100 * at_once:.1f}%", f"{sum(neighbors)} of {n - 1}", tied


def bootstrap_verdicts(scores, rng):
    """Sign of each difference of means, 0 if the percentile interval contains 0."""
    n_models, n_tasks = scores.shape
    means = np.empty((N_BOOTSTRAP, n_models))
    for k in range(N_BOOTSTRAP):
        means[k] = scores[:, rng.integers(n_tasks, size=n_tasks)].mean(axis=1)
    verdicts = np.zeros((n_models, n_models))
    for i in range(n_models):
        low, high = np.percentile(means[:, [i]] - means, [2.5, 97.5], axis=0)
        verdicts[i] = np.where(low > 0, 1, np.where(high < 0, -1, 0))
    return verdicts


def board_verdicts(board):
    """The same by the board."""
    differences = board.errors.differences(board.ratings)
    n = len(differences)
    padded = np.zeros((n + 1, n + 1))
    padded[:n, :n] = differences
    p_values = board.errors.pairs.p_values(padded)[:n, :n]
    return np.sign(differences) * (p_values <= 0.05)


def mteb(data):
    (path,) = find_data(data, "scores/mteb_eng_v2.csv.gz")
    long = pd.read_csv(path)
    long["score"] *= 100
    kinds = long.groupby("task").kind.first()
    wide = long.pivot(index="model", columns="task", values="score")
    complete = wide.dropna().drop(index=RANDOM_BASELINE, errors="ignore")
    print(f"MTEB(eng, v2): {len(wide)} models, {len(complete)} complete, {wide.shape[1]} tasks,")
    print(f"{100 * wide.isna().to_numpy().mean():.0f}% of the cells missing\n")
    quiet(complete)  # imports
    board, seconds = quiet(complete)
    start = time.process_time()
    by_bootstrap = bootstrap_verdicts(complete.to_numpy(), np.random.default_rng(0))
    bootstrap_seconds = time.process_time() - start
    by_board = board_verdicts(board)
    upper = np.triu_indices(len(complete), k=1)
    same = np.mean(by_board[upper] == by_bootstrap[upper])
    more = np.mean(by_bootstrap[upper] != 0) - np.mean(by_board[upper] != 0)
    weights = (1 / kinds.map(kinds.value_counts())).to_dict()
    by_type, _ = quiet(complete, task_weight=weights)
    everything, seconds_all = quiet(wide)
    by_family, _ = quiet(complete, family=kinds.to_dict(), balance="family")
    print("| board | pairs separable | at once | neighbors not | tied with the first | effective |")
    print("|---" * 6 + "|")
    for name, each in (
        ("complete", board),
        ("complete, mean of types", by_type),
        ("complete, types left out", by_family),
        ("all models", everything),
    ):
        cells = [name, *map(str, separable(each)), f"{each.effective_tasks:.1f}"]
        print("| " + " | ".join(cells) + " |")
    print(f"\nbootstrap of {N_BOOTSTRAP:,}: same verdict for {100 * same:.1f}% of the pairs,")
    print(f"{100 * more:+.1f}% of the pairs separable; {bootstrap_seconds:.2f} s, board")
    print(f"{seconds:.3f} s (1/{bootstrap_seconds / seconds:.0f}); all models {seconds_all:.2f} s")
    print(everything.to_text().splitlines()[1][:60].rstrip() + "  … (first of all models)")
    mean_of_present = wide.mean(axis=1)
    print(f"first by the mean of present scores: {mean_of_present.idxmax()}")
    for note in everything.notes:
        print(f"note: {note}")
    mteb_gaps(complete, wide)
    mteb_kinds(complete, kinds)


def mteb_gaps(complete, wide):
    """Kendall's tau of ratings from tables with gaps with the ratings on all tasks."""
    patterns = wide[wide.isna().any(axis=1) & (wide.notna().sum(axis=1) >= 10)].isna().to_numpy()
    taus = []
    for seed in range(N_EXPERIMENTS):
        rng = np.random.default_rng(seed)
        table = complete.copy()
        rows = rng.choice(len(table), len(table) // 2, replace=False)
        values = table.to_numpy(copy=True)
        values[rows] = np.where(
            patterns[rng.integers(len(patterns), size=len(rows))], np.nan, values[rows]
        )
        table.loc[:, :] = values
        truth = complete.mean(axis=1).to_numpy()
        board, _ = quiet(table)
        common = table.loc[:, table.notna().all()].mean(axis=1)
        place = [board.position(name) for name in table.index]
        ratings = board.ratings[place]
        estimates = [ratings, table.mean(axis=1), common]
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


def mteb_kinds(complete, kinds):
    """Coverage if a quarter of the models keep one kind of tasks only."""
    print("| tasks that a quarter keeps | complete models | jackknife | board |")
    print("|---" * 4 + "|")
    for kind in ("Retrieval", "STS", "Classification", "Clustering"):
        for n_complete in (0, 5, 10):
            results = []
            for seed in range(N_EXPERIMENTS):
                rng = np.random.default_rng(seed)
                table = complete
                if n_complete:
                    table = complete.iloc[rng.choice(len(complete), 2 * n_complete, replace=False)]
                n_masked = n_complete or len(table) // 4
                masked = table.index[rng.choice(len(table), n_masked, replace=False)]
                gappy = table.copy()
                gappy.loc[masked, kinds[kinds != kind].index] = np.nan
                board, _ = quiet(gappy, min_tasks=0)
                truth = table.mean(axis=1)
                by_jackknife = covered(board, masked, truth, board.score_errors.by_tasks)
                by_board = covered(board, masked, truth, board.errors.pairs)
                results.append([by_jackknife, by_board])
            jackknife, of_board = np.mean(results, axis=0)
            shown = n_complete or len(complete) - len(complete) // 4
            print(f"| {kind} | {shown} | {100 * jackknife:.1f}% | {100 * of_board:.1f}% |")


def sure_pairs(board):
    apart = sum(row.best_rank - 1 for row in board.rows if row.rank is not None)
    n = sum(row.rank is not None for row in board.rows)
    return f"{apart} of {n * (n - 1) // 2}"


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
        board, _ = quiet(rows, task="task", seed="fold", **names)
        by_fold, _ = quiet(rows, task="cell", **names)
        cells = [
            metric,
            str(rows.task.nunique()),
            sure_pairs(board),
            sure_pairs(by_fold),
            f"{100 * board.noise.seed_share:.0f}%",
            "; ".join(board.warnings) or "–",
        ]
        print("| " + " | ".join(cells) + " |")


def euroeval(data):
    (path,) = find_data(data, "scores/euroeval_danish_all.csv.gz")
    table = pd.read_csv(path, header=1)
    table.columns = [re.sub("<[^>]*>", "", name) for name in table.columns]
    names = list(table.columns[11:19])
    pattern = r"([\d.]+) ± ([\d.]+)"
    means = table[names].apply(lambda column: column.str.extract(pattern)[0].astype(float))
    widths = table[names].apply(lambda column: column.str.extract(pattern)[1].astype(float))
    models = table.Model.str.replace("<[^>]*>", "", regex=True)
    usable = means.notna().all(axis=1).to_numpy() & ~models.duplicated().to_numpy()
    best = np.flatnonzero(usable)[np.argsort(-means[usable].mean(axis=1).to_numpy())[:60]]
    scores = means.iloc[best].set_axis(models.iloc[best])
    board, _ = quiet(scores)
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((10, *scores.shape))
    draws -= draws.mean(axis=0)
    draws /= draws.std(axis=0, ddof=1)
    deviations = draws * widths.iloc[best].to_numpy() / 1.96 * np.sqrt(10)
    rows = pd.concat(
        [
            (scores + deviations[k]).melt(ignore_index=False, var_name="task").assign(draw=k)
            for k in range(10)
        ]
    ).reset_index(names="model")
    names_of_rows = {"item": "model", "task": "task", "score": "value", "seed": "draw"}
    sample, _ = quiet(rows, **names_of_rows)
    fixed, _ = quiet(rows, tasks="fixed", **names_of_rows)
    print("\nEuroEval Danish: the 60 best complete models on 8 data sets of 7 tasks\n")
    print(f"data sets as a sample: {separable(board)[0]} of the pairs separable,")
    print(f"{separable(board)[3]} models tied with the first; fixed data sets:")
    print(f"{separable(fixed)[0]}, {separable(fixed)[3]} tied; the draws cause")
    print(f"{100 * sample.noise.seed_share:.1f}% of the variance of a difference")
    group = np.array([0, 1, 2, 3, 4, 5, 5, 6])  # the two data sets of knowledge are one task
    values = scores.to_numpy()
    weights = 1 / np.bincount(group)[group] / 7
    means_of_draws = []
    for _ in range(N_BOOTSTRAP):
        columns = np.array([rng.choice(np.flatnonzero(group == g)) for g in group])
        means_of_draws.append(values[:, columns] @ weights)
    low, high = np.percentile(means_of_draws, [2.5, 97.5], axis=0)
    own = np.array([board[name].high - board[name].low for name in scores.index])
    print(f"stratified bootstrap: median interval {np.median(high - low):.2f} wide, the board's")
    print(f"{np.median(own):.2f}")


def main(arguments=None):
    """Print all tables."""
    options = make_parser(__doc__).parse_args(arguments)
    mteb(options.data)
    amlb(options.data)
    euroeval(options.data)


if __name__ == "__main__":
    record(main)
