"""A file of items, read as a model needs it, or for its true scores only."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.options import TableOptions
from rankwise.cli.session import note
from rankwise.text_tables import listed

if TYPE_CHECKING:
    from rankwise.cli.model_file import TrainedModel
    from rankwise.datasets import RankingData


class DataFile:
    """A file of items, opened once and read as one model or another needs it.

    Parameters
    ----------
    path : Path
        The file.
    table : TableOptions
        What the user says about it.
    target_needed : bool
        Whether items without true scores are of no use.
    weight : str, optional
        The column of weights.
    """

    def __init__(
        self,
        path: Path,
        table: TableOptions,
        *,
        target_needed: bool = True,
        weight: str | None = None,
    ) -> None:
        self.path, self.table, self.target_needed = path, table, target_needed
        self.weight = weight
        self._cache: dict[str, RankingData] = {}

    @cached_property
    def format(self) -> str:
        """What the file is; told by its content unless the user says it."""
        from rankwise.datasets.tables import format_of

        found = format_of(str(self.path), str(self.table.format))  # type: ignore[arg-type]
        if self.table.zero_based and found != "letor":
            raise ValueError(f"{self.path} is a table; leave out --zero-based.")
        if self.weight is not None and found == "letor":
            raise ValueError(
                f"{self.path} has svmlight rows, which have no weights and no column "
                f"{self.weight}; write the data as a table with a column of weights, or name none."
            )
        return found

    @property
    def is_letor(self) -> bool:
        """Whether the file has svmlight rows."""
        return self.format == "letor"

    @property
    def names(self) -> list[str]:
        """Names of the columns of a table."""
        return list(self._opened.names)

    @cached_property
    def _opened(self) -> Any:
        from rankwise.datasets.tables import open_table

        said = self.table
        header = not said.no_header
        return open_table(str(self.path), said.delimiter, said.decimal, header, self.format)  # type: ignore[arg-type]

    def read(self, **options: Any) -> RankingData:
        """The file; columns as the user says unless `options` do."""
        from rankwise.datasets import read_ranking

        if self.is_letor:
            options = {"format": "letor", "zero_based": self.table.zero_based, **options}
            source: Any = self.path
        else:
            asked = {**self.asked(), "weight": self.weight, "target_needed": self.target_needed}
            options = {**asked, **options}
            source = self._opened
        key = repr(sorted(options.items()))
        if key not in self._cache:
            self._cache[key] = read_ranking(source, **options)
        return self._cache[key]

    def asked(self) -> dict[str, Any]:
        """The columns that the user names; "none" is no column."""
        target, group = self.table.target or "auto", self.table.group or "auto"
        return {
            "target": None if target == "none" else target,
            "group": None if group == "none" else group,
            "id": self.table.id,
        }

    def read_targets(self) -> RankingData:
        """The true scores and groups; of a table, no other column is read."""
        return self.read() if self.is_letor else self.read(features=[])

    def read_for(self, trained: TrainedModel) -> RankingData:
        """Items with the features that the model was trained on, in its order."""
        known = trained.notes.features
        if self.is_letor:
            if trained.takes_table:
                raise ValueError(
                    f"{trained.name} takes a table with the columns {listed(known)}, but "
                    f"{self.path} has svmlight rows, whose features have numbers."
                )
            if known:
                note(f"{self.path} has no column names; its features are matched by position")
            data = self._read_letor_for(trained)
        elif known:
            self._check_names(known, trained)
            data = self._read_columns_for(trained)
        else:
            data = self._read_by_position(trained)
        if data.groups is None and trained.notes.group and self.table.group != "none":
            self._tell_missing_groups(trained)
        return data

    def _read_columns_for(self, trained: TrainedModel) -> RankingData:
        """The columns of a table, as they were when the model was trained."""
        from rankwise.datasets.feature_columns import cast_columns

        notes = trained.notes
        roles = self._roles_of(trained)
        if not trained.takes_table:
            return self.read(features=notes.features, **roles)
        is_ours = bool(notes.command)
        found = self.read(
            **roles,
            as_frame=True,
            features=notes.features,
            text=notes.categories,
            numeric=[n for n in notes.features if is_ours and n not in notes.categories],
        )
        return found._replace(X=cast_columns(found.X, notes.categories)) if is_ours else found

    def read_frame_for(self, trained: TrainedModel, columns: list[str]) -> Any:
        """These columns of a table as they stand in the file, as an Arrow table."""
        roles = self._roles_of(trained)
        return self.read(**roles, as_frame=True, features=columns).X

    @property
    def n_rows(self) -> int:
        """Number of rows of a table, those with gaps included."""
        return len(next(iter(self._opened.read([], []).values())))

    def _read_by_position(self, trained: TrainedModel) -> RankingData:
        """A table for a model that does not know the names of its features."""
        if trained.notes.data:
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

    def _read_letor_for(self, trained: TrainedModel) -> RankingData:
        """Trailing features that the file does not have are zero."""
        counts = {"zero_based": self.table.zero_based or trained.notes.zero_based}
        data = self.read(**counts)
        n_columns = data.X.shape[1]
        if n_columns > trained.n_features and trained.notes.sparse:
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
        return self.read(n_features=trained.n_features, **counts) if missing else data

    def _roles_of(self, trained: TrainedModel) -> dict[str, str | None]:
        """Target and group of the training data, where the user says nothing else."""
        found: dict[str, str | None] = {}
        for role in ("target", "group"):
            name = getattr(trained.notes, role)
            if getattr(self.table, role) is None and name and name in self.names:
                found[role] = name
        if not self.target_needed and self.table.target is None:
            found["target"] = None
        return found

    def _tell_missing_groups(self, trained: TrainedModel) -> None:
        """Say that the items are one list, unlike the training data; figures of it are refused."""
        from rankwise.model_selection.group_routing import needs_groups

        group = trained.notes.group
        lacks = f"{trained.name} was trained on groups by {group}, which {self.path} does not have"
        if self.target_needed and not self.is_letor:
            raise ValueError(
                f"{lacks}; name the column of groups with --group, or rank all items as one list "
                "with --group none."
            )
        if not needs_groups(trained.model):  # else it says so itself
            note(f"{lacks}: all its items are one list")

    def _check_names(self, known: list[str], trained: TrainedModel) -> None:
        from rankwise.options import suggestion

        notes, table = trained.notes, self.table
        there = set(self.names)
        missing = [name for name in known if name not in there]
        if missing:
            free = sorted(there - set(known), key=self.names.index)
            shown = (f"{name} ({suggestion(name, free).strip()})" for name in missing)
            raise ValueError(
                f"{self.path} lacks {len(missing)} of the {len(known)} columns that {trained.name} "
                f"was trained on: {', '.join(shown).replace(' ()', '')}."
            )
        roles = (notes.target, notes.group, table.id, table.target, table.group, self.weight)
        used = {*known, *roles, *notes.other_columns}
        extra = [name for name in self.names if name and name not in used]
        if extra:
            note(f"columns of {self.path} that the model does not know: {listed(extra)}")
