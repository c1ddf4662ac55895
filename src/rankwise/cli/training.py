"""Training data, and which columns of the file they come from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.options import ModelName, TrainingTableOptions, split_names
from rankwise.cli.record import TrainingRecord
from rankwise.cli.session import note
from rankwise.cli.source import Source

if TYPE_CHECKING:
    from rankwise.datasets import RankingData

__all__ = ["Training", "read_training"]

SHOWN_NAMES = 8
IDENTIFIER = re.compile(r"(^|[_. -])(id|ID|Id)$|[a-z](ID|Id)$|^(docid|uuid|index|Unnamed: \d+)$")


@dataclass
class Training:
    """Training data, and which columns of the file they come from."""

    path: Path
    data: RankingData
    target: str | None
    group: str | None
    others: list[str]

    @property
    def X(self) -> Any:
        """Features."""
        return self.data.X

    @property
    def y(self) -> Any:
        """Scores."""
        return self.data.y

    @property
    def groups(self) -> Any:
        """Group labels or None."""
        return self.data.groups

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a sparse matrix."""
        from scipy.sparse import issparse

        return bool(issparse(self.X))

    def record(self, command: str, chosen: dict[str, Any]) -> TrainingRecord:
        """What the model file should remember."""
        return TrainingRecord(
            command=command,
            data=self.path.name,
            n_rows=int(self.X.shape[0]),
            target=self.target or "",
            group=self.group or "",
            features=self._names or [],
            other_columns=self.others,
            sparse=self.is_sparse,
            chosen=chosen,
        )

    @cached_property
    def _names(self) -> list[str] | None:
        names = self.data.feature_names
        return None if names is None else [str(name) for name in names]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Columns and counts."""
        import numpy as np

        from rankwise.graphs import ScoreGraph

        scored = np.flatnonzero(~np.isnan(self.y))
        groups = None if self.groups is None else np.asarray(self.groups)[scored]
        found = ScoreGraph(self.y[scored], groups).describe()
        return {
            "file": self.path,
            "items": len(self.y),
            "items_without_score": len(self.y) - len(scored),
            "target": self.target,
            "group": self.group,
            "n_features": int(self.X.shape[1]),
            "features": self._names,
            "groups": found.n_groups,
            "pairs": found.n_pairs,
            "tied_pairs": found.n_tied_pairs,
            "groups_without_pairs": found.n_groups_without_pairs,
        }

    def lines(self) -> list[tuple[str, str]]:
        """The summary for people."""
        found = self.summary
        names = self._names or []
        shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
        unscored, idle = found["items_without_score"], found["groups_without_pairs"]
        by = f" by {self.group}" if self.group else ": no column of groups, so one list"
        return [
            ("data", str(self.path)),
            ("items", f"{found['items']:,}" + (f", {unscored:,} without score" * bool(unscored))),
            ("scores", self.target or ""),
            ("features", f"{found['n_features']:,}" + (f": {shown}" if shown else "")),
            ("groups", f"{found['groups']:,}{by}" + (f", {idle:,} without pairs" * bool(idle))),
            ("pairs", f"{found['pairs']:,}, {found['tied_pairs']:,} of them tied"),
        ]


def read_training(path: Path, table: TrainingTableOptions, model: ModelName) -> Training:
    """Read a file to learn from."""
    found = _read_training(path, table)
    n_unscored = found.summary["items_without_score"]
    if n_unscored and model in (ModelName.rankrls, ModelName.ranksvm):
        raise ValueError(
            f"{path}: {n_unscored} items have no score, and {model} needs one for each; leave "
            "these rows out, or use --model corankrls or pursuit, which learn from them, too."
        )
    return found


def _read_training(path: Path, table: TrainingTableOptions) -> Training:
    source = Source(path, table)
    features = split_names(table.features) or None
    ignore: list[str | int] = [*split_names(table.ignore)]
    if not source.is_letor and features is None and source.unnamed:
        note(f"the column without a name of {path} is left out")
        ignore += source.unnamed
    data = source.read(features=features, ignore=ignore)
    if source.is_letor:
        return Training(path, data, "label", None if data.groups is None else "qid", [])
    target, group = source.roles(features=features, ignore=ignore)
    used = {target, group, *map(str, data.feature_names)}  # type: ignore[arg-type]
    others = [name for name in source.names if name and name not in used]
    if features is None:
        _doubt_identifiers(data)
    return Training(path, data, target, group, others)


def _doubt_identifiers(data: RankingData) -> None:
    """Say which features look like names or numbers of the items: nobody asked for them."""
    names = [str(name) for name in data.feature_names]  # type: ignore[union-attr]
    found = [
        name
        for name, column in zip(names, data.X.T, strict=True)
        if IDENTIFIER.search(name) or _counts_rows(column)
    ]
    if found:
        shown = ", ".join(found[:SHOWN_NAMES]) + (", …" if len(found) > SHOWN_NAMES else "")
        note(f"features that look like identifiers: {shown}; --ignore leaves them out")


def _counts_rows(column: Any) -> bool:
    """Whether the values go up by one from row to row."""
    import numpy as np

    return all(len(part) > 2 and (np.diff(part) == 1).all() for part in (column[:9], column))
