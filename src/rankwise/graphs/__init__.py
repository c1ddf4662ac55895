"""Preference graphs: which items are preferred to which, by how much and how weighty."""

from rankwise.graphs.base import BaseGraph
from rankwise.graphs.pair_graph import PairGraph
from rankwise.graphs.protocol import GraphDescription, GraphRoot, PreferenceGraph
from rankwise.graphs.score_graph import ScoreGraph

__all__ = [
    "BaseGraph",
    "GraphDescription",
    "GraphRoot",
    "PairGraph",
    "PreferenceGraph",
    "ScoreGraph",
]
