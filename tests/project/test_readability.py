"""Limits that keep the source readable; ruff enforces those on the complexity of functions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "rankwise"
MODULES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PARAMETERS_OF_PRIVATE_FUNCTION = 8
PACKED_PER_THOUSAND = 6.0
FUNCTIONS_ABOVE_THE_LIMITS = 0  # may fall, and never rise: split the function instead

# Two modules that name each other's types only. A new pair needs a reason here.
TYPES_OF_EACH_OTHER = {
    ("leaderboard.board", "leaderboard.render"),
    ("leaderboard.render_scores", "leaderboard.score_board", "leaderboard.score_notes"),
}


def test_no_more_functions_exceed_the_limits_of_complexity():
    exempt = []
    for path in MODULES.values():
        for line in path.read_text(encoding="utf-8").splitlines():
            exemption = re.search(r"# noqa: .*(C901|PLR0912|PLR0915)(.*)", line)
            if exemption is not None:
                assert "#" in exemption[2], f"{path}: {line.strip()} gives no reason"
                exempt.append(f"{path}: {line.strip()}")
    assert len(exempt) <= FUNCTIONS_ABOVE_THE_LIMITS, exempt


def n_parameters(function):
    arguments = function.args
    names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in names)


def test_private_functions_have_few_parameters():
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS) and re.match(r"_(?!_)", node.name):
                assert n_parameters(node) <= PARAMETERS_OF_PRIVATE_FUNCTION, (name, node.name)


def is_packed(node):
    """Whether a statement assigns several expressions to several names; a swap is allowed."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
        return False
    if not isinstance(node.value, ast.Tuple):
        return False
    targets = sorted(ast.unparse(target) for target in node.targets[0].elts)
    return targets != sorted(ast.unparse(value) for value in node.value.elts)


def test_statements_are_not_packed():
    nodes = [node for tree in TREES.values() for node in ast.walk(tree)]
    n_statements = sum(isinstance(node, ast.stmt) for node in nodes)
    n_packed = sum(is_packed(node) for node in nodes)
    assert 1000 * n_packed / n_statements <= PACKED_PER_THOUSAND


def imported_modules(tree):
    """Modules of rankwise that are imported anywhere in a module, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                full_name = f"{node.module}.{alias.name}"
                yield full_name if full_name in MODULES else node.module


def modules_reachable_from(name, imports):
    """Modules that a module imports, directly or through other modules."""
    reachable = set()
    pending = [name]
    while pending:
        further = imports[pending.pop()] - reachable
        reachable |= further
        pending += further
    return reachable


def test_modules_do_not_import_each_other():
    imports = {}
    for name, tree in TREES.items():
        imports[name] = (MODULES.keys() & set(imported_modules(tree))) - {name}
    reachable = {name: modules_reachable_from(name, imports) for name in imports}
    cycles = set()
    for name, modules in reachable.items():
        if name in modules:
            members = {module for module in modules if name in reachable[module]}
            cycles.add(tuple(sorted(member.removeprefix("rankwise.") for member in members)))
    assert cycles == TYPES_OF_EACH_OTHER
