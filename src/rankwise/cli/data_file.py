"""A file of items, read as a model needs it, or for its true scores only."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.options import TableOptions
from rankwise.cli.session import note

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankwise.cli.model_file import TrainedModel
    from rankwise.datasets import RankingData


class DataFile:
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
    def format(self) -> str:
        """What the file is; told by its content unless the user says it."""
        from rankwise.datasets.any_format import chosen_format

        found = chosen_format(str(self.path), str(self.table.format))  # type: ignore[arg-type]
        if self.table.zero_based and found != "letor":
            raise ValueError(f"{self.path} is a table; leave out zero_based=.")
        return found

    @property
    def is_letor(self) -> bool:
        """Whether the file has svmlight rows."""
        return self.format == "letor"

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns of a table."""
        return list(self._opened.names)

    @cached_property
    def _opened(self) -> Any:
        from rankwise.datasets.table_files import open_table

        return open_table(str(self.path), **self.layout)

    @property
    def layout(self) -> dict[str, Any]:
        """How the cells of a table are told apart."""
        delimiter = self.table.delimiter or ("\t" if self.format == "tsv" else None)
        decimal, header = self.table.decimal, not self.table.no_header
        return {"delimiter": delimiter, "decimal": decimal, "header": header}

    def roles(self, **options: Any) -> dict[str, str | None]:
        """Names of the columns that are the target, the group and the names of the items."""
        from rankwise.datasets.table_columns import ColumnOptions, choose_columns

        given = self.given() | {"target_needed": self.target_needed} | options
        chosen = choose_columns(self._opened, ColumnOptions(**given))
        found = {name: getattr(chosen, name) for name in ("target", "group", "id", "weight")}
        return {role: None if at is None else self.names[at] for role, at in found.items()}

    def read(self, **options: Any) -> RankingData:
        """The file, its features as numbers; columns as the user says unless `options` do."""
        from rankwise.datasets import read_ranking

        given = {
            **self.given(),
            **self.layout,
            "format": self.format,
            "target_needed": self.target_needed,
            "zero_based": self.table.zero_based,
            **options,
        }
        key = repr(sorted(given.items()))
        if key not in self._cache:
            self._cache[key] = read_ranking(self.path, **given)
        return self._cache[key]

    def read_for(self, trained: TrainedModel) -> RankingData:
        """Items with the features that the model was trained on, in its order."""
        known = trained.notes.features
        if self.is_letor:
            if trained.takes_table:
                raise ValueError(
                    f"{trained.name} takes a table with the columns {', '.join(known)}, but "
                    f"{self.path} has svmlight rows, whose features have numbers."
                )
            if known:
                note(f"{self.path} has no column names; its features are matched by position")
            return self._read_letor_for(trained)
        if not known:
            return self._read_by_position(trained)
        self._check_names(known, trained)
        if trained.takes_table:
            return self._read_table_for(trained)
        return self.read(features=known, **self._roles_of(trained))

    def _read_table_for(self, trained: TrainedModel) -> RankingData:
        """A table with text and gaps, as it was when the model was trained."""
        from rankwise.datasets import RankingData, read_frame
        from rankwise.datasets.feature_columns import cast_columns

        notes = trained.notes
        is_ours = bool(notes.command)
        found = read_frame(
            self.path,
            **{**self.given(), **self._roles_of(trained), **self.layout},
            features=notes.features,
            text=notes.categories,
            numeric=[n for n in notes.features if is_ours and n not in notes.categories],
            target_needed=self.target_needed,
            keep_unscored=True,
        )
        X = cast_columns(found.X, notes.categories) if is_ours else found.X
        return RankingData(X, found.y, found.groups, found.ids)

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

    def read_targets(self) -> RankingData:
        """The true scores and groups; of a table, no other column is read."""
        if self.is_letor:
            return self.read()
        roles = self.roles()
        return self.read(target=roles["target"], group=roles["group"], features=[])

    def weights(self, column: str | None) -> NDArray[np.float64] | None:
        """The weights of all items, None if no column is named."""
        from rankwise.datasets import read_frame

        if column is None:
            return None
        self.refuse_weights(column)
        others: dict[str, Any] = {"target": None, "group": None, "features": [], **self.layout}
        return read_frame(self.path, weight=column, target_needed=False, **others).weight

    def refuse_weights(self, column: str | None) -> None:
        """Raise a ValueError if weights are asked for and the file cannot have them."""
        if column is not None and self.is_letor:
            raise ValueError(
                f"{self.path} has svmlight rows, which have no weights and no column {column}; "
                "write the data as a table with a column of weights, or name none."
            )

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

    def given(self) -> dict[str, Any]:
        """The columns that the user names; "none" is no column."""
        target, group = self.table.target or "auto", self.table.group or "auto"
        return {
            "target": None if target == "none" else target,
            "group": None if group == "none" else group,
            "id": self.table.id,
        }

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

    def _check_names(self, known: list[str], trained: TrainedModel) -> None:
        from rankwise.options import suggestion

        notes, table = trained.notes, self.table
        there = set(self.names)
        missing = [name for name in known if name not in there]
        if missing:
            free = sorted(there - set(known), key=self.names.index)
            listed = (f"{name} ({suggestion(name, free).strip()})" for name in missing)
            raise ValueError(
                f"{self.path} lacks {len(missing)} of the {len(known)} columns that {trained.name} "
                f"was trained on: {', '.join(listed).replace(' ()', '')}."
            )
        roles = (notes.target, notes.group, table.id, table.target, table.group)
        used = {*known, *roles, *notes.other_columns}
        extra = [name for name in self.names if name and name not in used]
        if extra:
            note(f"columns of {self.path} that the model does not know: {', '.join(extra)}")
