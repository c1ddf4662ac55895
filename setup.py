"""Compiled parts of the package; everything else about it is in pyproject.toml.

Each part has a fallback in NumPy or Python, so the package also installs without a C compiler.
With RANKWISE_PURE=1 in the environment no part is compiled, and the wheel fits every platform
(`make dist`).
"""

import os

from setuptools import Extension, setup

COMPILED = () if os.environ.get("RANKWISE_PURE") else ("pair_counts", "letor_rows", "group_sums")

setup(
    ext_modules=[
        Extension(
            f"rankwise._compiled.{name}", [f"src/rankwise/_compiled/{name}.pyx"], optional=True
        )
        for name in COMPILED
    ]
)
