"""Old and new names of what the baseline uses, so that one script runs on both versions.

Problems name everything as version 0.4 does. Each table maps such a name to its spellings; the
first one that the installed package has is used. A name that is not in a table has one spelling.
When something is renamed, add its new spelling here and nowhere else.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

MISSING = object()

# Public objects, by their last name: "module:attribute". Without an entry: "rankwise:NAME".
SYMBOLS: dict[str, Sequence[str]] = {
    "SufficientStatistics": ["rankwise:SufficientStatistics", "rankwise:Sums"],
    "TableVectorizer": ["rankwise:TableVectorizer", "rankwise:Columns"],
    "GroupScaler": ["rankwise:GroupScaler", "rankwise.preprocessing:GroupScaler"],
    "HingeFeatures": ["rankwise:HingeFeatures", "rankwise.preprocessing:HingeFeatures"],
    "make_ranking": ["rankwise.datasets:make_ranking"],
    "pairs_from_frame": ["rankwise.datasets:pairs_from_frame"],
    "contributions": ["rankwise.inspection:contributions"],
    "permutation_importance": ["rankwise.inspection:permutation_importance"],
    "PriorScales": ["rankwise.leaderboard:PriorScales", "rankwise.leaderboard:Scales"],
    "backtest": ["rankwise.leaderboard:backtest"],
    "rate": ["rankwise.leaderboard:rate"],
    "rate_groups": ["rankwise.leaderboard:rate_groups"],
    "evaluate": ["rankwise.metrics:evaluate"],
    "get_metric": ["rankwise.metrics:get_metric"],
    "compare": ["rankwise.model_selection:compare"],
    "cross_val_predict_groups": [
        "rankwise.model_selection:cross_val_predict_groups",
        "rankwise.model_selection:cross_val_predict",
    ],
    "held_out_curves": [
        "rankwise.model_selection:held_out_curves",
        "rankwise.model_selection:grid_search",
        "rankwise.model_selection:validation_curve",
    ],
    "leave_group_out_predict": ["rankwise.model_selection:leave_group_out_predict"],
    "leave_pair_out": ["rankwise.model_selection:leave_pair_out"],
    "permutation_test": ["rankwise.model_selection:permutation_test"],
    "load": ["rankwise.persistence:load"],
    "save": ["rankwise.persistence:save"],
    "export_linear": ["rankwise.persistence:export_linear"],
    "jackknife": ["rankwise.uncertainty:jackknife"],
    "next_pairs": ["rankwise.uncertainty:next_pairs", "rankwise.leaderboard:next_pairs"],
    "DistributedRankRLS": ["rankwise.distributed:RankRLS", "rankwise.dask:RankRLS"],
    "command": ["rankwise.cli:main", "rankwise.cli.main:main", "rankwise.cli.app:main"],
}

# Attributes and methods of public objects.
ATTRIBUTES: dict[str, Sequence[str]] = {
    "pair_gradient": ["pair_gradient", "divergence"],
    "sum_of_squares": ["sum_of_squares", "squared_magnitude"],
    "intransitivity": ["intransitivity", "circles"],
    "votes_to_flip": ["votes_to_flip", "votes_to_overturn"],
    "row_votes_to_flip": ["row_votes_to_flip", "votes_to_flip_next", "flips_after", "holds_by"],
    "agreement_alpha": ["agreement_alpha", "krippendorff"],
    "rating_at": ["rating_at", "at"],
    "rating_histories": ["rating_histories", "histories", "paths"],
    "prior_scales": ["prior_scales", "scales"],
    "suggestions": ["suggestions", "pairs", "questions"],
    "scheme": ["scheme", "way"],
    "refit": ["refit", "refits"],
    "fold_models": ["fold_models", "members"],
    "covariance_root": ["covariance_root", "root"],
    "degrees_of_freedom": ["degrees_of_freedom", "freedom"],
    "held_out": ["held_out", "held_out_scores"],
    "conformity_scores": ["conformity_scores_", "gaps_"],
}

# Keywords of public functions and methods.
KEYWORDS: dict[str, Sequence[str]] = {
    "confidence": ["confidence", "level"],
    "sort_by": ["sort_by", "order"],
}

# Keys of results that are dictionaries, named tuples or JSON: the name under which they are stored.
KEYS: dict[str, str] = {
    "holds_by": "votes_to_flip",
    "holds_by_at_least": "votes_to_flip_at_least",
    "krippendorff": "agreement_alpha",
    "way": "scheme",
}

# Options of the command: "command --option" to its spellings. Where the new spelling exists in an
# old version with another meaning, put the old spelling first.
OPTIONS: dict[str, Sequence[str]] = {
    "rank --item-features": ["--item-features", "--features"],
    "rank --rating-scale": ["--rating-scale", "--scale"],
    "rank --rating-model": ["--rating-model", "--model"],
    "rank --sort-by": ["--sort-by", "--order"],
    "rank --backtest": ["--backtest", "--test"],
    "rank --board-per": ["--board-per", "--group"],
    "train --feature-scaling": ["--feature-scaling", "--scale"],
    "cv --feature-scaling": ["--feature-scaling", "--scale"],
    "predict --confidence": ["--confidence", "--level"],
}


@cache
def find(name: str) -> Any:
    """Return the public object of this name, under the first spelling that is installed."""
    spellings = SYMBOLS.get(name, [f"rankwise:{name}"])
    for spelling in spellings:
        module_name, _, attribute = spelling.partition(":")
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError:
            continue
        value = getattr(module, attribute, MISSING)
        if value is not MISSING and not inspect.ismodule(value):
            return value
    raise LookupError(f"{name} has none of its spellings {spellings}; add one to names.SYMBOLS.")


def get(owner: Any, name: str) -> Any:
    """Return an attribute of a public object, under the first spelling that it has."""
    spellings = ATTRIBUTES.get(name, [name])
    for spelling in spellings:
        value = getattr(owner, spelling, MISSING)
        if value is not MISSING:
            return value
    kind = type(owner).__name__
    raise LookupError(f"{kind}.{name} has none of its spellings {spellings}.")


def call(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call a function, with the keywords under the spelling of its signature."""
    parameters = inspect.signature(function).parameters
    spelled = {}
    for name, value in keywords.items():
        spellings = KEYWORDS.get(name, [name])
        accepted = [spelling for spelling in spellings if spelling in parameters]
        spelled[accepted[0] if accepted else name] = value
    return function(*arguments, **spelled)


def key_name(key: Any) -> str:
    """Return the name under which a key of a result is stored."""
    return KEYS.get(str(key), str(key))


def option(command: str, name: str, installed: frozenset[str]) -> str:
    """Return the spelling of an option of a command, given the options that it has."""
    spellings = OPTIONS.get(f"{command} {name}", [name])
    for spelling in spellings:
        if spelling in installed:
            return spelling
    raise LookupError(f"rankwise {command} has none of {spellings}; add one to names.OPTIONS.")
