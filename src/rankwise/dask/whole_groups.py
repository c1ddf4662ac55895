"""The group shuffle: move rows between parts until every group is whole in one of them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import dask
import numpy as np

from rankwise.dask.parts import Part, Survey

__all__ = ["gather_groups", "homes_of_groups"]


def homes_of_groups(survey: Survey) -> dict[Hashable, int]:
    """The part where each split group is to be whole.

    The one that has most of its rows, so that few are moved; of several the one that has fewest
    rows so far.
    """
    load = survey.n_rows.astype(np.int64)
    homes: dict[Hashable, int] = {}
    for label, where in survey.split.items():
        home = max(where, key=lambda part: (where[part], -load[part]))
        for part, count in where.items():
            load[part] -= count
            load[home] += count
        homes[label] = home
    return homes


def gather_groups(parts: list[Any], survey: Survey) -> list[Any]:
    """Parts with whole groups, lazily; only rows of split groups go from worker to worker."""
    homes = homes_of_groups(survey)
    leaving: list[dict[Hashable, int]] = [{} for _ in parts]
    for label, where in survey.split.items():
        for part in where:
            if part != homes[label]:
                leaving[part][label] = homes[label]
    staying = list(parts)
    arriving: list[list[Any]] = [[] for _ in parts]
    split = dask.delayed(_split)
    for k, moves in enumerate(leaving):
        if moves:
            pieces = split(parts[k], moves)
            staying[k] = pieces[None]
            for home in sorted(set(moves.values())):
                arriving[home].append(pieces[home])
    join = dask.delayed(_join)
    return [
        join([own, *others]) if others else own
        for own, others in zip(staying, arriving, strict=True)
    ]


def _split(part: Part, moves: dict[Hashable, int]) -> dict[int | None, Part]:
    """Rows by the part they go to; those that stay under None."""
    if part.groups is None:
        raise ValueError("rows without groups cannot be moved to their group.")
    home = np.array([moves.get(label, -1) for label in part.groups.tolist()])
    pieces: dict[int | None, Part] = {None: part.rows(np.flatnonzero(home < 0))}
    for number in set(moves.values()):
        pieces[number] = part.rows(np.flatnonzero(home == number))
    return pieces


def _join(parts: list[Part]) -> Part:
    from scipy.sparse import issparse, vstack

    sparse = any(issparse(part.X) for part in parts)
    X = vstack([part.X for part in parts], "csr") if sparse else np.vstack([p.X for p in parts])
    y = np.concatenate([part.y for part in parts])
    return Part(X, y, np.concatenate([part.groups for part in parts if part.groups is not None]))
