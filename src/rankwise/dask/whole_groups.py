"""The group shuffle: move rows between blocks until every group is whole in one of them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import dask
import numpy as np

from rankwise.dask.blocks import RowBlock, Survey


def homes_of_groups(survey: Survey) -> dict[Hashable, int]:
    """The block where each split group is to be whole.

    It is the block that has most rows of the group, so that few rows are moved. Of several such
    blocks it is the one with the fewest rows so far.
    """
    load = survey.n_rows.astype(np.int64)
    homes: dict[Hashable, int] = {}
    for label, where in survey.split.items():
        home = max(where, key=lambda block: (where[block], -load[block]))
        for block, count in where.items():
            load[block] -= count
            load[home] += count
        homes[label] = home
    return homes


def gather_groups(blocks: list[Any], survey: Survey) -> list[Any]:
    """Blocks with whole groups, lazily; only rows of split groups go from worker to worker."""
    homes = homes_of_groups(survey)
    leaving: list[dict[Hashable, int]] = [{} for _ in blocks]
    for label, where in survey.split.items():
        for block in where:
            if block != homes[label]:
                leaving[block][label] = homes[label]
    staying = list(blocks)
    arriving: list[list[Any]] = [[] for _ in blocks]
    split = dask.delayed(_split)
    for k, moves in enumerate(leaving):
        if moves:
            pieces = split(blocks[k], moves)
            staying[k] = pieces[None]
            for home in sorted(set(moves.values())):
                arriving[home].append(pieces[home])
    join = dask.delayed(_join)
    return [
        join([own, *others]) if others else own
        for own, others in zip(staying, arriving, strict=True)
    ]


def _split(block: RowBlock, moves: dict[Hashable, int]) -> dict[int | None, RowBlock]:
    """Rows by the block they go to; those that stay under None."""
    if block.groups is None:
        raise ValueError("rows without groups cannot be moved to their group.")
    home = np.array([moves.get(label, -1) for label in block.groups.tolist()])
    pieces: dict[int | None, RowBlock] = {None: block.rows(np.flatnonzero(home < 0))}
    for number in set(moves.values()):
        pieces[number] = block.rows(np.flatnonzero(home == number))
    return pieces


def _join(blocks: list[RowBlock]) -> RowBlock:
    from scipy.sparse import issparse, vstack

    sparse = any(issparse(block.X) for block in blocks)
    X = vstack([block.X for block in blocks], "csr") if sparse else np.vstack([p.X for p in blocks])
    y = np.concatenate([block.y for block in blocks])
    return RowBlock(
        X, y, np.concatenate([block.groups for block in blocks if block.groups is not None])
    )
