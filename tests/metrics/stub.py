"""Generate ``rankwise/metrics/__init__.pyi``: ``python -m tests.metrics.stub`` writes the file.

The public functions of metrics get their signatures at run time (`group_metric`), which a type
checker cannot see. The stub lists them.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from rankwise import metrics
from rankwise.metrics.registry import FUNCTIONS

PATH = Path(metrics.__file__).with_suffix(".pyi")
HEADER = '''"""Signatures of the metrics; written by ``python -m tests.metrics.stub``."""

from numpy.typing import ArrayLike

from rankwise.arrays import Array
'''


def stub_text() -> str:
    """Return the stub: imports of the objects defined elsewhere, and one signature per metric."""
    names_of_functions = {function.__name__ for function in FUNCTIONS}
    imports = []
    for name in sorted(set(metrics.__all__) - names_of_functions):
        module = inspect.getmodule(getattr(metrics, name)).__name__
        imports.append(f"from {module} import {name} as {name}")
    functions = []
    for function in sorted(FUNCTIONS, key=lambda function: function.__name__):
        if function.__name__ not in metrics.__all__:
            continue
        lines = [f"def {function.__name__}("]
        signature = inspect.signature(function)
        has_marker = False
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and not has_marker:
                lines.append("    *,")
                has_marker = True
            lines.append(f"    {_parameter_text(parameter)},")
        lines.append(f") -> {signature.return_annotation}: ...")
        functions.append("\n".join(lines))
    names = "\n".join(f'    "{name}",' for name in metrics.__all__)
    sections = [HEADER + "\n".join(sorted(imports)), f"__all__ = [\n{names}\n]", *functions]
    return "\n\n".join(sections) + "\n"


def _parameter_text(parameter: inspect.Parameter) -> str:
    declaration = f"{parameter.name}: {parameter.annotation}"
    if parameter.default is parameter.empty:
        return declaration
    default = repr(parameter.default).replace("'", '"')
    return f"{declaration} = {default}"


if __name__ == "__main__":
    PATH.write_text(stub_text(), encoding="utf-8")
