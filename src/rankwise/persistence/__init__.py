"""Save and load fitted rankers: one file, no pickle; export linear ones to search engines."""

from rankwise.errors import ModelFileError
from rankwise.persistence.linear_export import export_linear
from rankwise.persistence.model_file import load, read_header, save

__all__ = ["ModelFileError", "export_linear", "load", "read_header", "save"]
