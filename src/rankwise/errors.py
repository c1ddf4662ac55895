"""Exceptions defined by rankwise; other errors in user input are ValueErrors.

ValueError
 ├── UndefinedMetricError   a metric has no value for this group, or for all of them
 ├── ClosedGroupError       rows of a group come after its sums were closed
 ├── DataFileError          a data file cannot be read
 │    ├── LetorFormatError  a file of svmlight rows, or of group sizes
 │    └── TableFormatError  a table, comparisons, or scores
 └── ModelFileError         a model file is damaged, odd, or from a newer version
"""

import contextlib
import os
import sys
import warnings
from pathlib import Path

# A context manager used as a decorator adds a contextlib frame to the stack.
_OWN_PATHS = (str(Path(__file__).parent) + os.sep, contextlib.__file__)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line of the nearest caller outside this package."""
    # `warnings.warn` shows the line `stacklevel` frames up: here the first outside of rankwise.
    frame = sys._getframe(1)
    stacklevel = 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN_PATHS):
        frame = frame.f_back
        stacklevel += 1
    warnings.warn(message, category, stacklevel=stacklevel)


class UngroupedRowsWarning(UserWarning):
    """Rows that look like several lists are compared as one list, because no groups were passed.

    Rankers warn once per process if there are more than 200 rows, fewer than 7 distinct y, and no
    groups. `sklearn.model_selection.cross_val_score` with ``groups=g`` and metadata routing off
    causes this: it passes the groups to the splitter, but not to `fit`.
    """


class UndefinedMetricError(ValueError):
    """A ranking metric is undefined for the given data."""


class ClosedGroupError(ValueError):
    """A batch has rows of a group whose earlier rows are no longer stored."""


class DataFileError(ValueError):
    """A data file cannot be read; the message names file, line and remedy.

    Attributes
    ----------
    path : str
        The file.
    line : int or None
        Line number, counted from one; None if the problem is not in one line.  Of a binary file,
        the number of the row.
    """

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        self.path = path
        self.line = line
        location = path
        if line is not None:
            location = f"{path}:{line}"
        super().__init__(f"{location}: {problem}")


class LetorFormatError(DataFileError):
    """A file of svmlight rows (LETOR), or of group sizes, cannot be read."""


class TableFormatError(DataFileError):
    """A table, a file of comparisons or of scores cannot be read."""


class ModelFileError(ValueError):
    """A model file cannot be used; the message names file, problem and remedy.

    Parameters
    ----------
    path : str
        The file.
    problem : str
        Problem and remedy, a sentence.

    Attributes
    ----------
    path : str
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.persistence import ModelFileError, load
    >>> path = Path(tempfile.mkdtemp()) / "model.rw"
    >>> _ = path.write_text("not a model")
    >>> try:
    ...     load(path)
    ... except ModelFileError:
    ...     print("refused")
    refused
    """

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}")
