"""Preference graphs: preferences between items, with magnitudes and weights."""

from rankwise.graphs.base import GraphDescription, PairGraph, PreferenceGraph
from rankwise.graphs.score_graph import ScoreGraph
from rankwise.graphs.survival_graph import SurvivalGraph

__all__ = ["GraphDescription", "PairGraph", "PreferenceGraph", "ScoreGraph", "SurvivalGraph"]
