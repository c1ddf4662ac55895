"""rankwise: learning to rank from scores, groups and pairwise preferences.

>>> from rankwise import RankRLS
>>> model = RankRLS().fit([[1.0], [2.0], [3.0]], [10, 20, 30])
>>> model.rank([[0.0], [5.0]])
array([2, 1])
"""

from importlib import import_module

__version__ = "0.3.0"

_HOMES = {
    "estimators.auto_ranker": ["AutoRanker"],
    "estimators.co_rank_rls": ["CoRankRLS", "CoRankRLSCV", "CoRankRLSPath"],
    "estimators.columns": ["Columns"],
    "estimators.conditional_rank_rls": ["ConditionalRankRLS", "ConditionalRankRLSCV"],
    "estimators.label_ranker": ["LabelRanker", "LabelRankerCV"],
    "estimators.margin": ["MarginPath", "RankLogistic", "RankLogisticCV", "RankSVM", "RankSVMCV"],
    "estimators.rank_rls": ["RankRLS", "RankRLSCV", "RankRLSPath"],
    "estimators.ranking_pursuit": ["RankingPursuit", "RankingPursuitCV"],
    "estimators.sums": ["Sums"],
    "estimators.transformers": ["GroupScaler", "HingeFeatures"],
    "features.feature_map": ["View"],
    "graphs": ["PairGraph", "PreferenceGraph", "ScoreGraph"],
    "inputs": ["make_target"],
    "leaderboard": ["rate"],
    "uncertainty": ["CalibratedRanker"],
}
_ROOMS = ["datasets", "inspection", "leaderboard", "metrics", "model_selection", "persistence"]
_ROOMS += ["plot", "report", "uncertainty"]
_FURTHER = ["dask", "graphs", "judge", "losses"]  # attributes, but not for ``import *``
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME, *_ROOMS])


def __getattr__(name: str) -> object:
    """Import on first use, so that ``rankwise --help`` need not wait for scikit-learn."""
    if name in _ROOMS or name in _FURTHER:
        return import_module(f"rankwise.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'rankwise' has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"rankwise.{_HOME[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_FURTHER})
