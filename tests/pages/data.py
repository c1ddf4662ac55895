"""Shared by the tests of pages: hostile names, comparisons, and readers of a page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np

from rankwise.leaderboard import rate

HOSTILE_TITLE = "</script><img src=x onerror=alert(1)>"


ODD_NAMES = [HOSTILE_TITLE, "مرحبا بالعالم", "🏳️‍🌈 emoji", "x" * 500, "&lt;b&gt;", "a b=c#d%e"]


HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "a&amp;b \u2028\u2029 '\"",
    "مرحبا \u202e reversed \u2069",
    "🏳️‍🌈" * 3,
    "x" * 5000,
    "\ud800 alone",
    "nul\x00\x1b",
]


def data_of(page):
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    return json.loads(match[1])


class Outline(HTMLParser):
    """Elements, attributes and visible text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text, self._inside = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_endtag(self, tag):
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self._inside):
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def assert_nothing_foreign_runs(page):
    """Nothing is loaded, and the policy allows one style and one script: those of the page."""
    outline = Outline(page)
    for tag, attributes in outline.attributes:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            assert attributes.get(name, "#").startswith(("#", "data:")), attributes
    assert outline.tags.count("script") == 2
    policy = next(a["content"] for _, a in outline.attributes if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    parts = [re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1] for tag in ("style", "script")]
    hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes


def make_battles(n=300, names=("Ann", "Bob", "Cleo", "Dan", "Eve"), seed=0):
    """Rows (left, right, outcome of the left side, judge, length), as people write them down."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        i, j = rng.choice(len(names), 2, replace=False)
        margin = (j - i) / len(names) + 0.2 + 0.6 * rng.normal()
        word = "tie" if abs(margin) < 0.15 else "left" if margin > 0 else "right"
        rows.append((names[i], names[j], word, f"j{rng.integers(9)}", rng.normal()))
    return rows


def columns_of(rows):
    names = ("left", "right", "better", "judge", "length")
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


def board_of(rows, **options):
    columns = {"sides": ("left", "right"), "outcome": "better", **options}
    return rate(columns_of(rows), **columns)
