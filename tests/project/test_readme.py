"""The README is true: its code runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
for folder in ("docs", "experiments", "benchmarks"):
    PAGES += sorted((ROOT / folder).glob("*.md"))


def blocks(language, page=ROOT / "README.md"):
    return re.findall(
        rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL
    )


def test_every_python_block_prints_what_is_shown(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    namespace: dict[str, object] = {}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, flags=re.DOTALL)
    assert len(shown) == len(blocks("python")) >= 3
    assert len(shown[0][0].splitlines()) <= 8
    for block, output in shown:
        exec(compile(block, "README.md", "exec"), namespace)
        assert capsys.readouterr().out == output


def shell_lines():
    """What a reader would type into a shell; lines with a prompt are run for real elsewhere."""
    for page in PAGES:
        for language in ("console", "sh"):
            for block in blocks(language, page):
                for line in block.splitlines():
                    if not line.startswith("$ ") and page.name != "command_line.md":
                        yield pytest.param(line.split("#")[0].strip(), id=f"{page.name}: {line}")


@pytest.mark.parametrize("command", shell_lines())
def test_every_command_is_there(command):
    tool, *words = shlex.split(command)
    if tool == "make":
        plan = ["make", "--dry-run", *words]
        done = subprocess.run(plan, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    elif tool == "pip":  # `make dist` installs one of them for real
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extras = re.fullmatch(r"\.(?:\[([a-z,]+)\])?", words[-1])
        assert words[0] == "install"
        assert set((extras[1] or "cli").split(",")) <= set(project["optional-dependencies"])
    elif tool == "python":
        assert words[0] == "-m"
        assert importlib.util.find_spec(words[1]) is not None
    else:
        assert tool == "rankwise"
        parse_command_line(words)


def parse_command_line(words):
    """Parse the arguments of `rankwise` without opening files; unknown options raise an error."""
    click = pytest.importorskip("click")
    from rankwise.cli.app import app

    name, *arguments = words
    command = app.get_command(click.Context(app), name)
    assert command is not None, name
    context = click.Context(command, info_name=name)
    _, extra_arguments, _ = command.make_parser(context).parse_args(arguments)
    assert extra_arguments == []


@pytest.mark.parametrize(
    "line", ["demonstrate", "rank games.csv --rating-units elo", "judge a.csv b.csv"]
)
def test_wrong_commands_are_noticed(line):
    click = pytest.importorskip("click")
    with pytest.raises((AssertionError, click.UsageError)):
        parse_command_line(line.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


def anchors(page):
    """Headings of a page as GitHub and the site turn them into addresses."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_a_heading_find_it(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text)
    links += re.findall(r"^:link: ([^#\n]+)#(\S+)$", text, flags=re.MULTILINE)
    links += re.findall(r"^\[\w+\]: ([^#\n]+)#(\S+)$", text, flags=re.MULTILINE)
    for path, anchor in links:
        target = (page.parent / path).with_suffix(".md") if path else page
        assert anchor in anchors(target), f"{path}#{anchor}"


def test_readme_names_the_two_commands_that_set_up_everything():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\nmake demo " in readme
    assert "\nmake test " in readme
