"""A file of items, read as a model needs it, or for its true scores only."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.options import FileFormat, TableOptions
from rankwise.cli.session import note

if TYPE_CHECKING:
    from rankwise.cli.rankers import TrainedModel
    from rankwise.datasets import RankingData

__all__ = ["Source"]


class Source:
    """A file of items, read as one model or another needs it.

    Parameters
    ----------
    path : Path
        The file.
    table : TableOptions
        What the user says about it.
    target_needed : bool
        Whether items without true scores are of no use.
    """

    def __init__(self, path: Path, table: TableOptions, *, target_needed: bool = True) -> None:
        self.path, self.table, self.target_needed = path, table, target_needed
        self._cache: dict[str, RankingData] = {}

    @cached_property
    def is_letor(self) -> bool:
        """Whether the file has svmlight rows; told by its content unless the user says it."""
        if self.table.format is not FileFormat.auto:
            return self.table.format is FileFormat.letor
        return self._kind == "letor"

    @cached_property
    def _kind(self) -> str:
        from rankwise.datasets.file_kinds import kind_of

        return kind_of(str(self.path))

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns of a table."""
        return list(self._opened.names)

    @cached_property
    def _opened(self) -> Any:
        from rankwise.datasets.table_files import open_table

        delimiter = "\t" if self.table.format is FileFormat.tsv else self.table.delimiter
        return open_table(str(self.path), delimiter)

    @cached_property
    def unnamed(self) -> list[int]:
        """Positions of columns without a name; pandas and R write the numbers of the rows so."""
        return [at for at, name in enumerate(self.names) if not name]

    def roles(self, **options: Any) -> tuple[str | None, str | None]:
        """Names of the columns that are the target and the group of a table."""
        from rankwise.datasets.table_columns import Wishes, choose_columns

        wishes = Wishes(**self._wishes() | {"target_needed": self.target_needed} | options)
        chosen = choose_columns(self._opened, wishes)
        target = None if chosen.target is None else self.names[chosen.target]
        return target, None if chosen.group is None else self.names[chosen.group]

    def read(self, **options: Any) -> RankingData:
        """The file; columns as the user says unless `options` say otherwise."""
        from rankwise.datasets import read_ranking

        given = {
            **self._wishes(),
            "delimiter": self.table.delimiter,
            "format": str(self.table.format),
            "target_needed": self.target_needed,
            **options,
        }
        key = repr(sorted(given.items()))
        if key not in self._cache:
            self._cache[key] = read_ranking(self.path, **given)
        return self._cache[key]

    def read_for(self, trained: TrainedModel) -> RankingData:
        """Items with the features that the model was trained on, in its order."""
        known = trained.record.features
        if self.is_letor:
            if known:
                note(f"{self.path} has no column names; its features are matched by position")
            return self._read_letor_for(trained)
        if not known:
            return self._read_by_position(trained)
        self._check_names(known, trained)
        return self.read(features=known, **self._roles_of(trained))

    def _read_by_position(self, trained: TrainedModel) -> RankingData:
        """A table for a model that does not know the names of its features."""
        if trained.record.data:
            raise ValueError(
                f"{trained.name} was trained on svmlight rows, whose features have numbers, but "
                f"{self.path} is a table, whose features have names; write it as svmlight rows."
            )
        data = self.read()
        if data.X.shape[1] != trained.n_features:
            raise ValueError(
                f"{trained.name} has {trained.n_features} features and does not know their names, "
                f"but {self.path} has {data.X.shape[1]} columns of features; leave the others out, "
                "or train the model on a data frame with names."
            )
        note(f"{trained.name} does not know the names of its features; matched by position")
        return data

    def read_targets(self) -> RankingData:
        """The true scores and groups; of a table, no other column is read."""
        if self.is_letor:
            return self.read()
        target, group = self.roles()
        return self.read(target=target, group=group, features=[])

    def _read_letor_for(self, trained: TrainedModel) -> RankingData:
        """Trailing features that the file does not have are zero."""
        data = self.read()
        n_columns = data.X.shape[1]
        if n_columns > trained.n_features and trained.record.sparse:
            note(
                f"features of {self.path} beyond the {trained.n_features} of the training data "
                "are left out"
            )
            return data._replace(X=data.X[:, : trained.n_features])
        if n_columns > trained.n_features:
            raise ValueError(
                f"{self.path} has features up to number {n_columns}, but {trained.name} was "
                f"trained on {trained.n_features}; predict from the features of the training data."
            )
        missing = n_columns < trained.n_features
        return self.read(n_features=trained.n_features) if missing else data

    def _wishes(self) -> dict[str, Any]:
        """The columns that the user names; "none" is no column."""
        target, group = self.table.target or "auto", self.table.group or "auto"
        return {
            "target": None if target == "none" else target,
            "group": None if group == "none" else group,
            "id": self.table.id,
        }

    def _roles_of(self, trained: TrainedModel) -> dict[str, str]:
        """Target and group of the training data, where the user says nothing else."""
        found = {}
        for role in ("target", "group"):
            name = getattr(trained.record, role)
            if getattr(self.table, role) is None and name and name in self.names:
                found[role] = name
        return found

    def _check_names(self, known: list[str], trained: TrainedModel) -> None:
        missing = [name for name in known if name not in self.names]
        if missing:
            raise ValueError(
                f"{self.path} lacks {len(missing)} of the {len(known)} columns that {trained.name} "
                f"was trained on: {', '.join(missing)}."
            )
        record, table = trained.record, self.table
        roles = (record.target, record.group, table.id, table.target, table.group)
        used = {*known, *roles, *record.other_columns}
        extra = [name for name in self.names if name and name not in used]
        if extra:
            note(f"columns of {self.path} that the model does not know: {', '.join(extra)}")
