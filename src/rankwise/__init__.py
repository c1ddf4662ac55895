"""rankwise: learning to rank from scores, groups and pairwise preferences.

>>> from rankwise import RankRLS
>>> model = RankRLS().fit([[1.0], [2.0], [3.0]], [10, 20, 30])
>>> model.rank([[0.0], [5.0]])
array([2, 1])
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankwise import (
        datasets,
        inspection,
        leaderboard,
        metrics,
        model_selection,
        persistence,
        plot,
        report,
        uncertainty,
    )
    from rankwise.estimators import (
        AutoRanker,
        Columns,
        ConditionalRankRLS,
        ConditionalRankRLSCV,
        CoRankRLS,
        CoRankRLSCV,
        CoRankRLSPath,
        GroupScaler,
        HingeFeatures,
        LabelRanker,
        LabelRankerCV,
        RankingPursuit,
        RankingPursuitCV,
        RankLogistic,
        RankLogisticCV,
        RankLogisticPath,
        RankRLS,
        RankRLSCV,
        RankRLSPath,
        RankSVM,
        RankSVMCV,
        RankSVMPath,
        View,
    )
    from rankwise.graphs import PairGraph, PreferenceGraph, ScoreGraph
    from rankwise.inputs import make_target
    from rankwise.uncertainty import CalibratedRanker

__version__ = "0.3.0"

__all__ = [
    "AutoRanker",
    "CalibratedRanker",
    "CoRankRLS",
    "CoRankRLSCV",
    "CoRankRLSPath",
    "Columns",
    "ConditionalRankRLS",
    "ConditionalRankRLSCV",
    "GroupScaler",
    "HingeFeatures",
    "LabelRanker",
    "LabelRankerCV",
    "PairGraph",
    "PreferenceGraph",
    "RankLogistic",
    "RankLogisticCV",
    "RankLogisticPath",
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
    "inspection",
    "leaderboard",
    "make_target",
    "metrics",
    "model_selection",
    "persistence",
    "plot",
    "report",
    "uncertainty",
]

_HOMES = {
    "CalibratedRanker": "uncertainty",
    "PairGraph": "graphs",
    "PreferenceGraph": "graphs",
    "ScoreGraph": "graphs",
    "make_target": "inputs",
}


def __getattr__(name: str) -> object:
    """Import on first use, so that ``rankwise --help`` need not wait for scikit-learn."""
    if name not in __all__:
        raise AttributeError(f"module 'rankwise' has no attribute {name!r}")
    if name.islower() and name not in _HOMES:
        return import_module(f"rankwise.{name}")
    found = getattr(import_module(f"rankwise.{_HOMES.get(name, 'estimators')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
