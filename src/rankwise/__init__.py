"""rankwise: learning to rank from scores, groups and pairwise preferences.

>>> from rankwise import RankRLS
>>> model = RankRLS().fit([[1.0], [2.0], [3.0]], [10, 20, 30])
>>> model.rank([[0.0], [5.0]])
array([2, 1])
"""

from rankwise import datasets, metrics, model_selection
from rankwise.estimators import (
    CoRankRLS,
    CoRankRLSCV,
    CoRankRLSPath,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankRLSPath,
    RankSVM,
    RankSVMCV,
    RankSVMPath,
    View,
)
from rankwise.graphs import PairGraph, PreferenceGraph, ScoreGraph
from rankwise.targets import make_target

__version__ = "0.1.0"

__all__ = [
    "CoRankRLS",
    "CoRankRLSCV",
    "CoRankRLSPath",
    "PairGraph",
    "PreferenceGraph",
    "RankRLS",
    "RankRLSCV",
    "RankRLSPath",
    "RankSVM",
    "RankSVMCV",
    "RankSVMPath",
    "RankingPursuit",
    "RankingPursuitCV",
    "ScoreGraph",
    "View",
    "datasets",
    "make_target",
    "metrics",
    "model_selection",
]
