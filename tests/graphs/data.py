"""A graph that is neither a ScoreGraph nor a PairGraph, taken from docs/extending.md."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["ChampionGraph"]

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


def _class_of_the_page():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (source,) = [block for block in blocks if "class ChampionGraph(" in block]
    names = {"__name__": __name__}  # where pickle finds the class
    exec(compile(source, str(PAGE), "exec"), names)
    return names["ChampionGraph"]


ChampionGraph = _class_of_the_page()
