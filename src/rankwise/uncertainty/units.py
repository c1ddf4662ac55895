"""What is left out together: groups, items, comparisons, or clusters that the user names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwise.arrays import Indices
from rankwise.graphs import PreferenceGraph
from rankwise.groups import encode_groups
from rankwise.model_selection.leave_out import Units
from rankwise.options import check_option

FEW_COMPONENTS = 10  # of explicit preferences: fewer are parts of one list, not groups
KINDS = ("auto", "groups", "items", "comparisons")


def make_units(graphs: Sequence[PreferenceGraph], units: Any, *, beta: float = 0.0) -> Units:
    """The units of a graph, or of one graph for each output.

    Parameters
    ----------
    graphs : sequence of PreferenceGraph
        What is known about the items.
    units : {"auto", "groups", "items", "comparisons"} or array-like
        "auto" are groups if there are several, else items of a list of scores; of explicit
        preferences groups if there are at least ten and none has half of the weight, else
        comparisons.
        Labels name clusters: of comparisons if y is a `PairGraph`, else of items.
    beta : float
        Of the model: for 0 a unit without a pair has no effect and is no unit.
    """
    graph = graphs[0]
    kind = "clusters"
    if isinstance(units, str):
        check_option("units", units, KINDS)
        kind = _automatic(graph) if units == "auto" else units
    of_edges = kind == "comparisons" or (kind == "clusters" and graph.scores is None)
    if of_edges and graph.scores is not None:
        raise ValueError(
            "units='comparisons' is for explicit preferences (y is a PairGraph), but y has scores; "
            "use units='groups' or 'items'."
        )
    size = graph.n_pairs if of_edges else graph.n_items
    labels = _labels(graph, kind, units, size)
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
    if not of_edges and beta == 0:
        degree = np.sum([one.degrees for one in graphs], axis=0)
        members = [U for U in members if degree[U].any()]
    if len(members) < 2:
        raise ValueError(
            f"standard errors need at least two {kind} with pairs to leave out, and there is "
            f"{'one' if members else 'none'}; use smaller units, such as units='items' for one "
            "list or units='comparisons' for a PairGraph."
        )
    return Units(kind, members, of_edges)


def _automatic(graph: PreferenceGraph) -> str:
    if graph.scores is None:
        weight = np.bincount(graph.groups, graph.degrees)
        is_even = weight.max() < weight.sum() / 2
        is_grouped = graph.n_units >= FEW_COMPONENTS and is_even
        return "groups" if is_grouped else "comparisons"
    return "groups" if graph.n_units > 1 else "items"


def _labels(graph: PreferenceGraph, kind: str, units: Any, size: int) -> Indices:
    if kind == "groups":
        return graph.groups
    if kind in ("items", "comparisons"):
        return np.arange(size)
    if np.shape(units) != (size,):
        what = "comparisons" if graph.scores is None else "items"
        raise ValueError(
            f"units has shape {np.shape(units)}, but there are {size} {what}; pass one label of a "
            "cluster for each."
        )
    return encode_groups(units, size).codes


def folds_of_units(units: Units, n_folds: int) -> Units:
    """The units in at most `n_folds` folds of about equal size, in a fixed random order."""
    n = min(n_folds, len(units.members))
    sizes = np.array([len(U) for U in units.members])
    order = np.random.default_rng(0).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    filled, folds = np.zeros(n), [[] for _ in range(n)]  # type: ignore[var-annotated]
    for k in order:
        least = int(np.argmin(filled))
        folds[least].append(units.members[k])
        filled[least] += sizes[k]
    return units._replace(members=[np.sort(np.concatenate(fold)) for fold in folds])
