"""Types of the arguments of leaderboards."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rankwise.datasets import PairData
from rankwise.datasets.column_roles import Column
from rankwise.graphs import PreferenceGraph

Label: TypeAlias = str | int
"""Label of an item, a judge or a level of a context."""

Side: TypeAlias = Label | Collection[Label] | Mapping[Label, float]
"""An item, or a team: its members, or their weights."""

Moment: TypeAlias = str | float | datetime.date | np.datetime64
"""A date or a number."""

Context: TypeAlias = Label | Mapping[str, Label] | None
"""Level of the only context, or of each context by its name; None is the mix of all levels."""

Contexts: TypeAlias = Context | Mapping[str, Collection[Label]]
"""A context, or the levels of several games by the name of the context."""

Comparisons: TypeAlias = PairData | PreferenceGraph | object
"""Comparisons, or a data frame, a dictionary of columns or a list of rankings."""

CovariateArgument: TypeAlias = (
    Sequence[Column | tuple[Column, Column]] | Mapping[str, ArrayLike] | str | None
)
"""Names of columns, pairs of names, or values by name."""
