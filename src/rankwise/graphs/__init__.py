"""Preference graphs: which items are preferred to which, by how much and how weighty."""

from rankwise.graphs.base import GraphDescription, PairGraph, PreferenceGraph
from rankwise.graphs.score_graph import ScoreGraph
from rankwise.graphs.survival_graph import SurvivalGraph

__all__ = ["GraphDescription", "PairGraph", "PreferenceGraph", "ScoreGraph", "SurvivalGraph"]
