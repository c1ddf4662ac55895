"""Hold out what came later: each block of groups is judged by the models of all earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.times import as_times, in_days
from rankwise.frames import as_array, take_rows
from rankwise.groups import Groups, encode_groups
from rankwise.inputs import Nuisance, Target
from rankwise.machine import track
from rankwise.metrics import Metric
from rankwise.model_selection.curves import HeldOutCurves, metric_by_group

LATER = "later groups"
N_BLOCKS = 6  # in the order of time; all but the first are judged


def later_blocks(time: Any, groups: Groups, n_blocks: int = N_BLOCKS) -> list[Indices]:
    """Rows in blocks of whole groups, from the earliest to the latest.

    A group is as late as its last row, and groups of one time stay together. If there is one
    group only, its items are the units.

    Parameters
    ----------
    time : array-like of shape (n_items,)
        Dates or numbers.
    groups : Groups
        Groups of the items.
    n_blocks : int
        Number of blocks, of about as many groups; fewer if there are fewer times.
    """
    moments = in_days(as_times(as_array(time, "time"), len(groups.codes), "row"))
    unit = groups.codes if groups.n_groups > 1 else np.arange(len(groups.codes))
    last = np.full(unit.max() + 1, -np.inf)
    np.maximum.at(last, unit, moments)
    distinct, place = np.unique(last, return_inverse=True)
    if len(distinct) < 2:
        raise ValueError(
            "all rows are of one time, so nothing came later; pass the time of each row or group, "
            "or leave out time."
        )
    earlier = np.cumsum(np.bincount(place)) - 1  # the last unit of each time
    block = np.minimum(earlier * n_blocks // len(last), n_blocks - 1)[place]
    _, block = np.unique(block, return_inverse=True)
    if block.max() == 0:  # nearly all units are of the last time
        block = (place == place.max()).astype(np.intp)
    return [np.flatnonzero(block[unit] == k) for k in range(block.max() + 1)]


def later_curves(
    model: Any,
    X: Any,
    target: Target,
    time: Any,
    values: Mapping[str, ArrayLike | None],
    metrics: Sequence[Metric],
    progress: bool | None = None,
) -> HeldOutCurves:
    """Metrics of later groups for every candidate; the model is trained again for each block.

    Parameters
    ----------
    model : estimator
        Any learner that has ``hold_out_task``.
    X, target
        The items, and what is known about them.
    time : array-like of shape (n_items,)
        When each item was seen; see `later_blocks`.
    values : mapping from str to array-like or None
        As in `held_out_curves`.
    metrics : sequence of Metric
        How held-out groups are judged.
    progress : bool, optional
        Whether to draw a bar; by default only on a terminal.
    """
    if target.groups is None:
        raise ValueError(
            "time says when items were seen, but y is a preference graph; pass scores and groups."
        )
    blocks = later_blocks(time, target.groups)
    candidates = model.hold_out_task(X, target).candidates(**values)
    n_outputs = np.reshape(target.y, (len(target.y), -1)).shape[1]
    held = np.full((len(target.y), n_outputs, len(candidates)), np.nan)
    for k in track(range(1, len(blocks)), "training on what came before", progress):
        rows = np.sort(np.concatenate(blocks[: k + 1]))
        task = model.hold_out_task(take_rows(X, rows), take_target(target, rows))
        items = rows if task.rows is None else rows[task.rows]
        U = np.flatnonzero(np.isin(items, blocks[k]))
        held[items[U]] = task.held_out([U], candidates, False)[U]
    by_group, labels = _judge(target, held, metrics)
    n_folds = len(blocks) - 1
    return HeldOutCurves(candidates, by_group, labels, LATER, n_folds, True, held)


def take_target(target: Target, rows: Indices) -> Target:
    """What is known about some rows."""
    codes, labels = target.groups or encode_groups(None, len(target.y))
    weight = None if target.weight is None else target.weight[rows]
    taken = Target(target.y[rows], encode_groups(labels[codes[rows]], len(rows)), weight)
    if target.nuisance is None:
        return taken
    values, names = target.nuisance
    return taken._replace(nuisance=Nuisance(values[rows], names))


def label_rows(target: Target) -> NDArray[Any] | None:
    """The label of the group of each row."""
    return None if target.groups is None else target.groups.labels[target.groups.codes]


def _judge(
    target: Target, held: Array, metrics: Sequence[Metric]
) -> tuple[dict[str, Array], NDArray[Any]]:
    """The metrics in each group that was held out."""
    scored = ~np.isnan(held).any(axis=(1, 2))
    known = take_target(target, np.flatnonzero(scored))
    Y, groups = known.y.reshape(len(known.y), -1), known.groups or encode_groups(None, 0)
    by_group = {
        metric.name: metric_by_group(metric, Y, groups, known.weight, held[scored])
        for metric in metrics
    }
    return by_group, groups.labels
