"""Members of AutoRanker: the default menu, and the members that a user requests.

All entries of the menu except the trees are `RankRLS` models of expanded features, so their
held-out scores are exact. The menu was fixed before any evaluation of this code: it contains each
scaling, each expansion and each cost, and cheap entries come first. Boosted trees were added for
interactions of features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import scipy.sparse as sp

from rankwise.auto.scaling import (
    GROUP,
    LOG_GROUP,
    LOG_STANDARD,
    STANDARD,
    STANDARD_GROUP,
    Scaling,
)
from rankwise.auto.training_data import WIDE, TrainingData
from rankwise.rankers.rank_rls import RankRLS
from rankwise.validation import check_option

MAX_HINGES = 1000  # columns of an expansion by hinges
MAX_KNOTS = 4
MIN_ITEMS_FOR_TREES = 500
TOL = 1e-4  # of iterations, for wide sparse items only: rankings converge long before 1e-8


class CandidateMember(NamedTuple):
    """One entry of the menu.

    Attributes
    ----------
    expansion : {"linear", "hinges", "rbf", "trees"}
        The scaled features, also with hinges, or kernel values to basis items; or boosted trees.
    scaling : Scaling
        How the features are scaled.
    cost, ties : str
        As in `RankRLS`.
    view : {"dense", "wide", "trees"}
        Columns that it receives; see `TrainingData`.
    """

    expansion: str
    scaling: Scaling
    cost: str = "magnitude"
    ties: str = "include"
    view: str = "dense"

    @property
    def is_trees(self) -> bool:
        """Whether the entry is the boosted trees."""
        return self.expansion == "trees"

    @property
    def name(self) -> str:
        """Name such as "rbf, group, magnitude without ties"."""
        if self.is_trees:
            return "trees"
        name = self.expansion
        if self.view == "wide":
            name += " with all values and words"
        name += f", {self.scaling.name}, {self.cost}"
        if self.ties == "exclude":
            name += " without ties"
        return name

    def ranker(self, R: Any, alpha: float = 1e-3) -> RankRLS:
        """The model on features R; wide sparse features are solved by iterations."""
        if not sp.issparse(R):
            solver = "auto"
        elif R.shape[1] <= WIDE:
            solver = "primal"
        else:
            solver = "iterative"
        return RankRLS(alpha, cost=self.cost, ties=self.ties, solver=solver, tol=TOL)


TREES = CandidateMember("trees", GROUP, "sign", view="trees")
#: The simplest entry comes first. The trees follow, because they get a share of the time limit.
CANDIDATE_MEMBERS = (
    CandidateMember("linear", STANDARD),
    TREES,
    CandidateMember("hinges", STANDARD),
    CandidateMember("hinges", GROUP, ties="exclude"),
    CandidateMember("hinges", LOG_GROUP, "sign"),
    CandidateMember("rbf", STANDARD),
    CandidateMember("rbf", GROUP, ties="exclude"),
    CandidateMember("rbf", LOG_GROUP, "sign"),
    CandidateMember("linear", GROUP, ties="exclude"),
    CandidateMember("linear", LOG_GROUP, "sign"),
    CandidateMember("linear", STANDARD_GROUP, ties="exclude"),
)


def candidate_members(data: TrainingData) -> list[CandidateMember]:
    """The entries of the menu that are applicable to these data, and differ on them.

    Trees require scores and many items. Sparse features stay sparse, so they have neither hinges
    nor trees.
    """
    adapted = [_adapt_to_data(entry, data) for entry in CANDIDATE_MEMBERS]
    applicable = [entry for entry in adapted if _is_applicable(entry, data)]
    return list(dict.fromkeys(applicable))  # equal entries once


def requested_members(members: Any, data: TrainingData) -> dict[str, Any]:
    """Entries of the menu and rankers that the user requests, by name."""
    requests = members
    if isinstance(members, str):
        requests = [members]
    if not isinstance(requests, (list, tuple)) or not requests:
        raise ValueError(
            f"members={requests!r}; expected 'default' or a list of names and rankers."
        )
    menu = {entry.name: entry for entry in candidate_members(data)}
    selected: dict[str, Any] = {}
    for request in requests:
        if isinstance(request, str):
            check_option("members", request, ("default", *menu))
            if request == "default":
                selected.update(menu)
            else:
                selected[request] = menu[request]
            continue
        if isinstance(request, tuple):
            name, ranker = request
        else:
            name = type(request).__name__
            ranker = request
        if not (hasattr(ranker, "fit") and hasattr(ranker, "predict")):
            raise ValueError(
                f"members has {ranker!r:.80}; expected names, or rankers with fit and predict."
            )
        selected[_unused_name(name, selected)] = ranker
    return selected


def n_knots(n_columns: int) -> int:
    """Knots of each column, so that columns and hinges are at most `MAX_HINGES`."""
    n_affordable = MAX_HINGES // max(1, n_columns) - 1  # k knots turn a column into k + 1
    return max(1, min(MAX_KNOTS, n_affordable))


def _adapt_to_data(entry: CandidateMember, data: TrainingData) -> CandidateMember:
    """The entry without options that have no effect on these data.

    Without groups, scaling in groups is replaced by standard scaling, and the exclusion of ties is
    dropped. Explicit preferences have their own cost. If categories have many values, or there is
    text, entries with standard scaling receive all of these columns.
    """
    if entry.is_trees:
        return entry
    if data.groups is None:  # one list: scale all items together
        scaling = STANDARD
        if entry.scaling.with_log:
            scaling = LOG_STANDARD
        entry = entry._replace(scaling=scaling, ties="include")
    if not data.has_scores:  # preferences have neither differences of scores nor ties
        entry = entry._replace(cost="magnitude", ties="include")
    has_values_and_words = data.views["wide"].shape[1] > data.views["dense"].shape[1]
    if has_values_and_words and entry.expansion != "rbf" and entry.scaling.has_standard:
        entry = entry._replace(scaling=STANDARD, view="wide")
    return entry


def _is_applicable(entry: CandidateMember, data: TrainingData) -> bool:
    """Whether these data have the columns that an entry requires."""
    dense = data.views["dense"]
    n_items, n_dense = dense.shape
    if entry.is_trees:
        return data.has_scores and "trees" in data.views and n_items >= MIN_ITEMS_FOR_TREES
    if entry.expansion == "hinges":
        n_columns_of_one_knot = 2 * n_dense  # each column, and a hinge of it
        if sp.issparse(dense) or not 0 < n_columns_of_one_knot <= MAX_HINGES:
            return False
    return bool(data.views[entry.view].shape[1] > 0)


def _unused_name(name: str, names: dict[str, Any]) -> str:
    """The name, with a number if it is in use."""
    if name not in names:
        return name
    n_used = sum(used == name or used.startswith(f"{name} ") for used in names)
    return f"{name} {n_used + 1}"
