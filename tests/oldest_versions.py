"""Print the oldest versions that pyproject.toml allows, as constraints of pip.

``make test-oldest`` installs them: dependencies and extras of the package. The tools of the tests
themselves are not constrained.
"""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
EXTRAS = ("cli", "plot", "dask", "onnx", "judge", "trees")


def oldest_versions() -> list[str]:
    """One constraint for each requirement with a floor: any bug-fix release of it."""
    requirements = list(PROJECT["dependencies"])
    for extra in EXTRAS:
        requirements += PROJECT["optional-dependencies"][extra]
    floors = dict(re.fullmatch(r"([\w.-]+)(?:\[.+\])?>=([\d.]+)", r).groups() for r in requirements)
    series = {name: floor if "." in floor else f"{floor}.0" for name, floor in floors.items()}
    return [f"{name}=={version}.*" for name, version in sorted(series.items())]


if __name__ == "__main__":
    print("\n".join(oldest_versions()))
