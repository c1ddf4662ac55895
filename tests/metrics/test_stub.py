"""Type checkers see the signatures that the metrics have at run time."""

from __future__ import annotations

import ast

from tests.metrics.stub import PATH, stub_text


def test_the_stub_is_up_to_date():
    stub = ast.parse(PATH.read_text(encoding="utf-8"))
    assert ast.dump(stub) == ast.dump(ast.parse(stub_text())), "run: python -m tests.metrics.stub"
