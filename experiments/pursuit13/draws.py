"""Complete experiments with users, drawn again: what a difference is worth beside the luck.

A draw has its own reference, test and hold-out users, and its own choice of parameters. Inside a
draw every run has other reference users, too. So there are two errors of a mean difference: over
runs (reference and test users) and over draws (the choice of parameters, too). The first has many
terms but takes the choice as given, the second is honest but has few.
"""

from typing import NamedTuple

import numpy as np

from experiments.pursuit13.methods import NUS
from experiments.pursuit13.users import GROUPS, Results, Run, draw_runs, measure
from experiments.shared.tables import print_table

__all__ = [
    "Draw",
    "draw_groups",
    "gains_by_run",
    "pool",
    "print_choices",
    "print_gains",
    "print_widths",
]

NEXT_SEED = 1000


class Draw(NamedTuple):
    """Runs of each group of reference users; of each method the results, a list over groups."""

    runs: list[list[Run]]
    results: dict[str, list[Results]]


def draw_groups(methods, ratings, options, seed, scored=1.0, measures=("error",)):
    """All draws of an experiment on the three groups of reference users."""
    draws = []
    for k in range(options.draws):
        runs = [
            draw_runs(ratings, bounds, options, seed + NEXT_SEED * k, scored) for bounds in GROUPS
        ]
        results = {
            method.name: [measure(method, group, measures, options.widths) for group in runs]
            for method in methods
        }
        draws.append(Draw(runs, results))
    return draws


def pool(draws):
    """All draws as one; the choices are those of the first, and stand for nothing."""
    runs = [[run for draw in draws for run in draw.runs[k]] for k in range(len(GROUPS))]
    results = {
        name: [_join([draw.results[name][k] for draw in draws]) for k in range(len(GROUPS))]
        for name in draws[0].results
    }
    return Draw(runs, results)


def _join(results):
    """The values and densities of all results, with the choices of the first."""
    first = results[0]
    values = {
        measure_name: np.concatenate([result.values[measure_name] for result in results])
        for measure_name in first.values
    }
    density = np.concatenate([result.density for result in results])
    return first._replace(values=values, density=density)


def gains_by_run(draws, worse, better):
    """Mean difference of two errors over test users, shape (n_draws, n_groups, n_runs)."""
    gains = []
    for draw in draws:
        gains_of_draw = []
        for group in range(len(draw.runs)):
            errors_of_worse = draw.results[worse][group].values["error"]
            errors_of_better = draw.results[better][group].values["error"]
            gains_of_users = errors_of_worse - errors_of_better
            gains_of_draw.append(_means_of_runs(draw.runs[group], gains_of_users))
        gains.append(gains_of_draw)
    return np.array(gains)


def _means_of_runs(runs, values):
    """Mean over the test users of each run."""
    first_of_next_run = np.cumsum([len(run.test) for run in runs])[:-1]
    return [float(np.nanmean(of_run)) for of_run in np.split(values, first_of_next_run)]


def standard_error(values):
    """Of the mean; None of one value."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / len(values) ** 0.5)


def _mean_and_error(values):
    error = standard_error(values)
    if error is None:
        return f"{values.mean():+.4f}"
    return f"{values.mean():+.4f} ±{error:.4f}"


def print_gains(draws, better):
    """How much better one method is than each other, with both errors of the mean."""
    rows = []
    for name in draws[0].results:
        if name == better:
            continue
        gains = gains_by_run(draws, name, better)  # (n_draws, n_groups, n_runs)
        n_draws, n_groups, _ = gains.shape
        by_group = [_mean_and_error(gains[:, k].ravel()) for k in range(n_groups)]
        error_over_runs = standard_error(gains.ravel())
        error_over_draws = standard_error(gains.mean(axis=(1, 2)))
        n_positive = np.sum(gains.mean(axis=2) > 0)
        rows.append(
            [
                name,
                *by_group,
                f"{gains.mean():+.4f}",
                error_over_runs,
                error_over_draws,
                f"{n_positive} of {n_draws * n_groups}",
            ]
        )
    n_runs = sum(len(group) for group in draws[0].runs) * len(draws)
    print_table(
        f"Gain of {better}: mean ± standard error over draws of reference users",
        ["over", *(f"\n{low}–{high}" for low, high in GROUPS), "all\ngain",
         f"± over {n_runs}\nruns", f"± over {len(draws)}\ndraws", "groups × draws\nbetter in"],
        rows, 4,
    )  # fmt: skip


def print_choices(draws, name="SS Ranking Pursuit"):
    """What the hold-out users say about ν, and what was chosen."""
    rows = []
    for k, draw in enumerate(draws):
        for (low, high), result in zip(GROUPS, draw.results[name], strict=True):
            choice = result.choices["error"]
            rows.append(
                [f"{low}–{high}, draw {k + 1}", *result.by_setting,
                 f"{choice.setting['nu']:g}", f"{choice.width:g}", f"{choice.value:g}"]
            )  # fmt: skip
    print_table(
        f"{name}: lowest mean error of the hold-out users for each ν, and what was chosen",
        ["", *(f"ν = {nu:g}" for nu in NUS), "ν", "width", "steps"],
        rows,
        4,
    )


def print_widths(draws):
    """The width that each method has chosen, in all draws."""
    rows = []
    for name in draws[0].results:
        row = [name]
        for k in range(len(GROUPS)):
            widths = [draw.results[name][k].choices["error"].width for draw in draws]
            row.append(" ".join(f"{width:g}" for width in widths))
        rows.append(row)
    print_table("Chosen widths", ["", *(f"{low}–{high}" for low, high in GROUPS)], rows)
