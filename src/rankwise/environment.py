"""Versions, compiled modules, BLAS and memory of this installation."""

from __future__ import annotations

import importlib.util
import platform
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from rankwise._compiled import IS_COMPILED
from rankwise.runtime.memory import available_bytes

PACKAGES = ("rankwise", "numpy", "scipy", "scikit-learn")
EXTRAS = {
    "cli": ("click", "pyarrow"),
    "plot": ("matplotlib",),
    "dask": ("dask", "distributed"),
    "onnx": ("onnx",),
    "judge": ("starlette", "uvicorn", "markdown_it"),
}


def describe_environment() -> dict[str, Any]:
    """Facts about the installation for bug reports.

    Returns
    -------
    dict
        "versions", "platform", "compiled" (False if the slower NumPy fallbacks are used), "blas"
        (library and number of threads of each pool), "extras" and "available_gib".

    Examples
    --------
    >>> from rankwise.environment import describe_environment
    >>> sorted(describe_environment())
    ['available_gib', 'blas', 'compiled', 'extras', 'platform', 'versions']
    """
    from threadpoolctl import threadpool_info  # comes with scikit-learn

    blas_libraries = []
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            library = f"{pool['internal_api']} {pool.get('version')}"
            blas_libraries.append(f"{library}, {pool['num_threads']} threads")
    is_installed = {}
    for extra, packages in EXTRAS.items():
        is_installed[extra] = all(importlib.util.find_spec(package) for package in packages)
    n_bytes = available_bytes()
    available_gib = None
    if n_bytes is not None:
        available_gib = round(n_bytes / 2**30, 1)
    return {
        "versions": package_versions(),
        "platform": platform.platform(),
        "compiled": IS_COMPILED,
        "blas": blas_libraries,
        "extras": is_installed,
        "available_gib": available_gib,
    }


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        versions[package] = _installed_version(package)
    return versions


def require(module: str, purpose: str) -> ModuleType:
    """Import a module of an optional package; if it is missing, explain how to install it.

    Examples
    --------
    >>> from rankwise.environment import require
    >>> require("pyarrow", "Reading a table").__name__
    'pyarrow'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(
            f"{purpose} needs {package}, which is not installed: pip install {package}."
        ) from error


@cache
def _installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "not installed"
