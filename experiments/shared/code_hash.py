"""A hash of the code that an experiment runs, to see which results are older than the code.

The code of an experiment is its module and the modules of ``rankwise`` and ``experiments`` that it
imports, and those that they import. Comments, docstrings and the texts of errors and warnings do
not count, nor do modules that only type checkers import.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

__all__ = ["code_hash", "module_files"]

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"rankwise": ROOT / "src" / "rankwise", "experiments": ROOT / "experiments"}
COMPILED = "rankwise._compiled"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
WARNINGS = {"warn", "warn_user"}


def code_hash(module: str) -> str:
    """Eight hexadecimal digits for the code of a module, such as ``experiments.boards.tennis``."""
    digest = hashlib.sha256()
    for path in module_files(module):
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(_syntax(path).encode())
    return digest.hexdigest()[:8]


def module_files(module: str) -> list[Path]:
    """The file of a module and those of all modules of ours that it imports."""
    visited: set[str] = set()
    to_visit = [module]
    while to_visit:
        name = to_visit.pop()
        if name not in visited:
            visited.add(name)
            to_visit.extend(_imported_modules(name))
    files = set()
    for name in visited:
        path = _file_of(name)
        if path is not None:
            files.add(path)
    if COMPILED in visited:
        files.update(FOLDERS["rankwise"].glob("_compiled/*.pyx"))
    return sorted(files)


def _file_of(module: str) -> Path | None:
    """The file of a module of ours; None for other modules."""
    package, *names = module.split(".")
    if package not in FOLDERS:
        return None
    path = FOLDERS[package].joinpath(*names)
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imported_modules(module: str) -> frozenset[str]:
    """Modules of ours that a module imports; names of a package count as those of their module."""
    path = _file_of(module)
    if path is None or path.stem == "__init__":
        return frozenset()
    imported = set()
    for node in _nodes_that_run(_tree(path)):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.update(_module_of(node.module or "", alias.name) for alias in node.names)
    return frozenset(name for name in imported if _file_of(name))


def _nodes_that_run(tree: ast.AST) -> list[ast.AST]:
    """All nodes, without blocks for type checkers."""
    nodes = []
    to_visit = [tree]
    while to_visit:
        node = to_visit.pop()
        is_type_checking_block = (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        )
        if is_type_checking_block:
            continue
        nodes.append(node)
        to_visit.extend(ast.iter_child_nodes(node))
    return nodes


def _module_of(package: str, name: str) -> str:
    """The module that defines a name which is imported from a package or module."""
    if _file_of(f"{package}.{name}"):
        return f"{package}.{name}"
    path = _file_of(package)
    if path is None or path.stem != "__init__":
        return package
    statements = _tree(path).body
    stub = path.with_suffix(".pyi")  # has the names of a package that imports them on first use
    if stub.is_file():
        statements = statements + _tree(stub).body
    for node in statements:
        if not isinstance(node, ast.ImportFrom):
            continue
        if name in {alias.name for alias in node.names}:
            source = node.module or ""
            if node.level:  # a relative import
                source = f"{package}.{node.module}"
            return _module_of(source, name)
    return package


@cache
def _syntax(path: Path) -> str:
    """The syntax tree without docstrings and texts of errors and warnings; other files as text."""
    if path.suffix == ".pyx":
        return path.read_text(encoding="utf-8")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        elif isinstance(node, ast.Raise) or _is_warning(node):
            _blank_texts(node)
    return ast.dump(tree)


def _is_warning(node: ast.AST) -> bool:
    """Whether a node is a call that warns."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in WARNINGS
    return ast.unparse(node.func) in WARNINGS


def _blank_texts(statement: ast.AST) -> None:
    """Replace the texts inside an error or a warning by nothing."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
