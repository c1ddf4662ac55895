"""rankwise: learning to rank from scores, groups and pairwise preferences."""

from rankwise import metrics
from rankwise.estimators import RankRLS
from rankwise.graphs import PairGraph, PreferenceGraph, ScoreGraph
from rankwise.targets import make_target

__version__ = "0.1.0"

__all__ = [
    "PairGraph",
    "PreferenceGraph",
    "RankRLS",
    "ScoreGraph",
    "make_target",
    "metrics",
]
