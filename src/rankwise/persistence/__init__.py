"""Save and load fitted rankers in files without code; export them to other programs."""

from rankwise.errors import ModelFileError
from rankwise.persistence.linear_export import export_linear
from rankwise.persistence.model_file import load, read_header, save
from rankwise.persistence.onnx_export import export_onnx

__all__ = ["ModelFileError", "export_linear", "export_onnx", "load", "read_header", "save"]
