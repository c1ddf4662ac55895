"""Edges of a preference graph as arrays, and validation of edges passed by the user."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.frames import as_array
from rankwise.validation import check_float_array, check_int, rescale_weights

COSTS = ("magnitude", "sign", "relative")
GROUP_WEIGHTS = ("pairs", "groups")


class EdgeArrays(NamedTuple):
    """Checked arrays of shape (n_edges,); see `PairGraph`."""

    winner: Indices
    loser: Indices
    magnitude: Array
    weight: Array

    def take(self, edges: NDArray[Any]) -> EdgeArrays:
        """Edges given by their numbers or by a mask."""
        return EdgeArrays(
            self.winner[edges], self.loser[edges], self.magnitude[edges], self.weight[edges]
        )


class ReadEdges(NamedTuple):
    """Checked edges, the number of items, and their names, if there are any."""

    edges: EdgeArrays
    n_items: int
    item_names: NDArray[Any] | None


def read_edges(
    winner: ArrayLike,
    loser: ArrayLike,
    magnitude: ArrayLike | None,
    weight: ArrayLike | None,
    n_items: int | None,
    items: ArrayLike | None,
) -> ReadEdges:
    """Check the edges that a user passes to `PairGraph`, which describes the parameters."""
    winner, loser, item_names = _replace_names(winner, loser, items)
    winner_index = _as_indices("winner", winner)
    loser_index = _as_indices("loser", loser)
    largest_index = int(max(winner_index.max(initial=-1), loser_index.max(initial=-1)))
    if n_items is None and item_names is not None:
        n_items = len(item_names)
    elif n_items is None:
        n_items = largest_index + 1
    n_items = check_int("n_items", n_items, "the number of rows of X")
    _check_edges(winner_index, loser_index, largest_index, n_items)
    if item_names is not None and len(item_names) != n_items:
        raise ValueError(
            f"items has {len(item_names)} names, but n_items is {n_items}; omit n_items."
        )
    n_edges = len(winner_index)
    edges = EdgeArrays(
        winner_index,
        loser_index,
        _as_edge_values("magnitude", magnitude, n_edges),
        _as_edge_values("weight", weight, n_edges, positive=True),
    )
    return ReadEdges(edges, n_items, item_names)


def _check_edges(winner: Indices, loser: Indices, largest_index: int, n_items: int) -> None:
    if len(winner) != len(loser):
        raise ValueError(
            f"winner has {len(winner)} entries but loser has {len(loser)}; "
            "edge k says that winner[k] is preferred to loser[k]."
        )
    if largest_index >= n_items:
        raise ValueError(
            f"an edge names item {largest_index}, but n_items is {n_items}; items are numbered "
            "from 0 as the rows of X."
        )
    is_loop = winner == loser
    if is_loop.any():
        edge = int(np.argmax(is_loop))
        raise ValueError(f"edge {edge} prefers item {winner[edge]} to itself; drop or correct it.")


def _replace_names(
    winner: ArrayLike, loser: ArrayLike, items: ArrayLike | None
) -> tuple[ArrayLike, ArrayLike, NDArray[Any] | None]:
    """Row numbers in place of names, and the names; numbers are returned unchanged."""
    item_names = None
    if items is not None:
        item_names = np.asarray(items)
        if len(np.unique(item_names)) < len(item_names):
            raise ValueError("items contains a name twice; pass distinct names.")
    winner_names = np.asarray(winner)
    loser_names = np.asarray(loser)
    are_row_numbers = not (_is_text(winner_names) and _is_text(loser_names))
    if are_row_numbers:
        return winner, loser, item_names
    if item_names is None:
        item_names = np.unique(np.r_[winner_names.astype(np.str_), loser_names.astype(np.str_)])
    compared_names = [*winner_names.tolist(), *loser_names.tolist()]
    rows = _rows_of_names(compared_names, item_names)
    n_edges = len(winner_names)
    return rows[:n_edges], rows[n_edges:], item_names


def _rows_of_names(compared_names: list[Any], item_names: NDArray[Any]) -> Indices:
    """Position in `item_names` of each name of `compared_names`."""
    row_of_name = {name: row for row, name in enumerate(item_names.tolist())}
    unknown_names = [name for name in compared_names if name not in row_of_name]
    if unknown_names:
        first_unknown = ", ".join(map(repr, unknown_names[:5]))
        raise ValueError(
            f"items does not contain {first_unknown}, which occur in winner or loser; pass the "
            "names of all items."
        )
    return np.array([row_of_name[name] for name in compared_names], dtype=np.intp)


def _is_text(values: NDArray[Any]) -> bool:
    if values.dtype == object:
        return any(isinstance(value, str) for value in values.tolist())
    return values.dtype.kind in "UT"


def _as_indices(name: str, values: ArrayLike) -> NDArray[np.intp]:
    """Row numbers of items."""
    array = np.asarray(as_array(values, name))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} has dtype {array.dtype} and shape {array.shape}; expected a flat array of "
            "whole row numbers (encode item names first, e.g. with rankwise.datasets.read_pairs)."
        )
    is_invalid = (array < 0) | (array > np.iinfo(np.intp).max)
    if is_invalid.any():
        edge = int(np.argmax(is_invalid))
        raise ValueError(
            f"{name}[{edge}] is {array[edge]}; items are numbered from 0 as the rows of X."
        )
    return array.astype(np.intp)


def _as_edge_values(
    name: str, values: ArrayLike | None, n_edges: int, *, positive: bool = False
) -> Array:
    """One finite number for each edge, by default 1."""
    if values is None:
        return np.ones(n_edges)
    array = check_float_array(name, values)
    if array.shape != (n_edges,):
        raise ValueError(
            f"{name} has shape {array.shape} but there are {n_edges} edges; pass one number for "
            "each edge."
        )
    if positive:
        is_valid = np.isfinite(array) & (array > 0)
        expected = "a positive number; drop the edge instead of setting its weight to 0"
    else:
        is_valid = np.isfinite(array) & (array >= 0)
        expected = "a number of at least 0; swap winner and loser to reverse the preference"
    if not is_valid.all():
        edge = int(np.argmin(is_valid))
        raise ValueError(f"{name}[{edge}] is {array[edge]}, expected {expected}.")
    if positive:
        return rescale_weights(name, array)
    return array
