"""The three exceptions of our own; everything else that is wrong with user input is a ValueError.

ValueError
 ├── UndefinedMetricError   a metric has no value for this group, or for all of them
 ├── LetorFormatError       a ranking file has a line that cannot be read
 └── ModelFileError         a model file is damaged, odd, or from a newer version
"""

__all__ = ["LetorFormatError", "ModelFileError", "UndefinedMetricError"]


class UndefinedMetricError(ValueError):
    """A ranking metric is undefined for the given data."""


class LetorFormatError(ValueError):
    """A line of a ranking file cannot be read; the message names file, line and remedy.

    Attributes
    ----------
    path : str
        The file.
    line : int or None
        Line number, counted from one; None if the problem is not in one line.
    """

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        self.path = path
        self.line = line
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}")


class ModelFileError(ValueError):
    """A model file cannot be used; the message names file, problem and remedy.

    Attributes
    ----------
    path : str
        The file.
    """

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}")
