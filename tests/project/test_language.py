"""Code and documentation use the vocabulary of the field (CONTRIBUTING.md)."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFUSED = (
    "front door",
    "slow truth",
    "upside down",
    "of one's own",
    "foreseen",
    "foresee",
    "so many",
    "a coin has",
    "a coin gets",
    "grown again",
    "trained again without",
    "house words",
    "what is told",
    "ordered rightly",
    "counts alike",
    "weighs them alike",
    "a little lucky",
    "as good as absent",
    "nobody has touched",
    "goes on where",
    "made up if needed",
)
FOLDERS = (".github", "src", "docs", "examples", "benchmarks", "experiments")
TEXT_FILES = {".py", ".pyi", ".pyx", ".md", ".rst", ".html", ".js", ".yml"}


def text_files():
    yield from ROOT.glob("*.md")
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            is_made = {"_build", "auto_examples", "generated"} & set(path.parts)
            if path.suffix in TEXT_FILES and not is_made:
                yield path


def test_phrases_of_a_private_vocabulary_are_not_used():
    pattern = re.compile("|".join(map(re.escape, REFUSED)), re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in text_files()
        for match in pattern.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []
