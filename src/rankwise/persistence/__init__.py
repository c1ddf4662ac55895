"""Save and load fitted rankers: one file, no pickle; export them to other programs."""

from importlib import import_module
from typing import TYPE_CHECKING

from rankwise.errors import ModelFileError

if TYPE_CHECKING:
    from rankwise.persistence.header import read_header
    from rankwise.persistence.linear_export import export_linear
    from rankwise.persistence.model_file import load, save
    from rankwise.persistence.onnx_export import export_onnx

__all__ = ["ModelFileError", "export_linear", "export_onnx", "load", "read_header", "save"]

_HOMES = {
    "export_linear": "linear_export",
    "export_onnx": "onnx_export",
    "load": "model_file",
    "read_header": "header",
    "save": "model_file",
}


def __getattr__(name: str) -> object:
    """Import on first use: a header is read without scikit-learn, a model without ONNX."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rankwise.persistence' has no attribute {name!r}")
    found = getattr(import_module(f"rankwise.persistence.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
