"""Every option that a message names is an option of the command that prints it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

import typer.main

from rankwise.cli.app import app
from tests.cli.shell import TABLE, run, succeed

SOURCE = Path(__file__).parents[2] / "src" / "rankwise"
COMMANDS = typer.main.get_command(app).commands
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*|(?<![\w-])-[a-z](?![\w-])")
EVERYWHERE = {"--help", "-h"}
# Not printed by a command: how the command itself is called
BUILDS_THE_COMMAND = {"app", "command", "options", "__init__"}


def options_of(command):
    return {name for parameter in command.params for name in parameter.opts} | EVERYWHERE


def messages(path):
    """String literals that are no docstrings, those in f-strings included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docs.add(first.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs:
            yield node.value


def declared(path):
    """Names that are given to typer.Option or flag: declarations, not messages."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "Option":
            yield from (a.value for a in node.args if isinstance(a, ast.Constant))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("flag", "table_option"):
            yield from (a.value for a in node.args if isinstance(a, ast.Constant))


def imported_modules(name, seen=()):
    """Modules of the command that a module of it needs, itself included."""
    found = {name}
    for node in ast.walk(ast.parse((SOURCE / "cli" / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("rankwise.cli."):
            other = node.module.removeprefix("rankwise.cli.")
            if other not in found | set(seen):
                found |= imported_modules(other, found | set(seen))
    return found


def told_of(text):
    """Options that a message names, and those that it names after "rankwise COMMAND"."""
    own, others = text, {}
    for call, other, rest in re.findall(r"(rankwise ([a-z]+)((?: [^\s.;,]+)*))", text):
        if other in COMMANDS:
            own = own.replace(call, "")
            others.setdefault(other, set()).update(OPTION.findall(rest))
    return set(OPTION.findall(own)), others


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_messages_of_the_modules_of_a_command_name_its_options(name):
    allowed = options_of(COMMANDS[name])
    modules = imported_modules(name) - BUILDS_THE_COMMAND
    assert name in modules
    for module in modules:
        path = SOURCE / "cli" / f"{module}.py"
        for text in messages(path):
            own, others = told_of(text)
            assert own - set(declared(path)) <= allowed, module
            for other, options in others.items():
                assert options <= options_of(COMMANDS[other]), module


def test_the_collection_finds_options():
    found = {
        option for text in messages(SOURCE / "cli" / "cv.py") for option in OPTION.findall(text)
    }
    assert {"--leave", "--per-group", "-o"} <= found
    assert {"models", "held_out", "training_set"} <= imported_modules("cv")
    assert "training_set" not in imported_modules("predict")


def test_the_library_knows_no_options_of_the_command():
    for path in SOURCE.rglob("*.py"):
        if path.parent.name != "cli":
            for text in messages(path):
                assert not re.search(r"(?<![\w-])--[a-z]", text), f"{path}: {text}"


BAD_TABLES = {
    "no target": "height,qid,a\n1,1,2\n2,1,4\n",
    "two targets": "y,score,a\n1,1,2\n2,1,4\n",
    "column twice": "y,a,a\n1,1,2\n2,1,4\n",
    "only numbers": "1,2,3\n4,5,6\n",
    "no delimiter": "y\n1\n",
    "two delimiters": "y,a;b\n1,2;3\n",
    "empty group": "y,qid,size,age,stars\n1,,1,2,3\n2,1,1,2,3\n",
    "word for a number": "rating,shop,size,age,stars\n1,1,1,x,3\n2,1,1,2,3\n",
    "gap": "rating,shop,size,age,stars\n1,1,1,,3\n2,1,1,2,3\n",
    "infinite": "rating,shop,size,age,stars\n1,1,1,inf,3\n2,1,1,2,3\n",
    "long number": "rating,shop,size,age,stars\n1,1,1,900719925474099301,3\n2,1,1,1,3\n",
    "target is a word": "rating,shop,size,age,stars\ngood,1,1,2,3\n2,1,1,2,3\n",
    "no rows": "y,qid,a\n",
    "letor": "1 qid:1 1:0.5\n2 qid:1 1:0.7\n",
    "prose": "Dear reader\nthis is a letter\n",
    "thousands": 'rating,shop,size,age,stars\n1,1,1,"1,000",3\n2,1,1,2,3\n',
    "no winner": "a,b\n1,2\n",
    "no loser": "winner,b\n1,2\n",
    "empty group of pairs": "winner,loser,group\nA,B,\nA,B,x\n",
    "no items": "thing,speed\nA,1\n",
    "unnamed": ",speed\nA,1\n",
}
OPTIONS = {
    "train": [
        *([], ["--target", "Y"], ["--group", "none"], ["--id", "z"], ["--ignore", "z"]),
        *(["--features", "z"], ["--categorical", "z"], ["--numeric", "z"], ["--delimiter", ";"]),
        *(["--format", "parquet"], ["--no-impute"], ["--delimiter", "ab"], ["--decimal", "x"]),
    ],
    "predict": [[], ["--group", "z"], ["--column", "a b "], ["--no-header", "--column", "x"]],
    "evaluate": [[], ["--target", "z"], ["--format", "letor"], ["--metric", "ndgc"]],
    "rank": [[], ["--winner", "z"], ["--sides", "a"], ["--sides", "a,c"], ["--delimiter", "ab"]],
}


def calls(command, file, good_table, good_model, folder):
    """Calls of a command on a file; most of them fail."""
    if command == "train":
        yield from ([file, "-o", folder / "m.rw", *more] for more in OPTIONS["train"])
    elif command == "cv":
        yield from ([file, *more] for more in OPTIONS["train"])
        yield from ([file, "--leave", leave] for leave in ("pair", "group", "x"))
    elif command in ("predict", "evaluate"):
        yield from ([good_model, file, *more] for more in OPTIONS[command])
    elif command == "compare":
        yield [file, good_model, good_model]
    elif command == "report":
        yield [good_model, file, "-o", folder / "r.html"]
    else:
        yield from ([file, *more] for more in OPTIONS["rank"])
        games = folder / "games.csv"
        games.write_text("winner,loser\nA,B\nB,A\nA,C\n")
        yield [games, "--features", file]
        yield [games, "--features", file, "--item", "thing"]


@pytest.mark.parametrize(
    "command", ["train", "cv", "predict", "evaluate", "compare", "report", "rank"]
)
def test_what_a_failing_command_prints_names_its_own_options(command, tmp_path, table, model):
    allowed = options_of(COMMANDS[command])
    n_failed = 0
    for text in BAD_TABLES.values():
        file = tmp_path / "bad"
        file.write_text(text)
        for arguments in calls(command, file, table, model, tmp_path):
            done = run(command, *arguments)
            said = done.stderr.replace(str(tmp_path), "")
            assert "should not happen" not in said, (arguments, said)
            assert set(OPTION.findall(said)) <= allowed, said
            assert not re.search(r"\b(target|group|id|ignore|features|winner|sides)=", said), said
            n_failed += done.exit_code == 1
    assert n_failed >= 15


def test_names_of_columns_are_suggested_in_any_case(table, tmp_path):
    done = run("train", table, "--target", "Rating", "-o", tmp_path / "m.rw")
    assert (
        "there is no column 'Rating' for the target; did you mean 'rating'? The columns are"
        in done.stderr
    )
    done = run("train", table, *TABLE, "--ignore", "AGE,starz", "-o", tmp_path / "m.rw")
    assert "did you mean 'age'?" in done.stderr


def test_help_shows_flags_without_a_value_and_examples():
    shown = run("train", "--help").stdout
    for flag in ("--json", "--quiet", "--no-impute", "--no-header"):
        (line,) = [line for line in shown.splitlines() if f" {flag} " in line]
        assert "bool" not in line
    assert "rankwise train houses.csv --target price" in " ".join(shown.split())


def test_shells_can_complete_the_command(monkeypatch):
    # without it, typer looks for the shell above this process, and CI may have none
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert "--install-completion" in run("--help").stdout
    done = run("--show-completion", "bash")
    assert done.exit_code == 0
    assert "_RANKWISE_COMPLETE" in done.stdout or "COMPLETE" in done.stdout


@pytest.mark.parametrize("command", ["", "train", "predict", "export", "info", "rank"])
def test_flags_are_shown_as_flags(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = succeed(*command.split(), "--help").output
    assert "--help" in shown
    assert "bool" not in shown.lower()
