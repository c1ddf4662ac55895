"""Messages of the command name options: no Python argument of the library is left in them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytest.importorskip("click")

import rankwise
from rankwise.cli.app import app
from rankwise.cli.argument_names import OPTIONS, PARAMETERS, RANK_OPTIONS, with_options
from rankwise.datasets.pair_data import PAIR_COLUMNS
from tests.cli.shell import fail, succeed

PACKAGE = Path(rankwise.__file__).parent
READ_BY_THE_COMMAND = ["datasets", "judge", "leaderboard"]  # packages whose messages users see
WITHOUT_OPTION = {  # names in texts that are no message of a command, and why
    "by": "Leaderboard.transitions and the like are called in Python only",
    "charset": "HTTP header",
    "filename": "HTTP header",
    "group_sizes": "the command never names a file of group sizes",
    "intervals": "the command always computes intervals",
    "likelihood": "the estimator of another model, which the command does not train",
    "n_features": "the command counts the features of the model",
    "n_informative": "make_ranking is called in Python only",
    "return_inverse": "write_letor is called in Python only",
    "scales": "rank has no option for scales",
    "sparse": "the command reads sparse='auto'",
}
ARGUMENT = re.compile(r"(?<![\w/.='\"-])(?<!--set )([a-z][a-z_0-9]*)=(?!=)")


def texts_of(tree):
    """Texts of a module that are no docstring, f-strings with "X" for the values in them."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inside = {
        id(value)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for value in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [
                value.value if isinstance(value, ast.Constant) else "X" for value in node.values
            ]
            yield node.lineno, "".join(map(str, pieces))
        elif isinstance(node, ast.Constant) and id(node) not in docstrings | inside:
            yield node.lineno, str(node.value)


def messages():
    for package in READ_BY_THE_COMMAND:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            for line, text in texts_of(ast.parse(path.read_text(encoding="utf-8"))):
                if " " in text and ARGUMENT.search(text):
                    yield f"{package}/{path.name}:{line}", text


MESSAGES = dict(messages())


def test_messages_of_the_packages_that_the_command_reads_with_are_found():
    assert len(MESSAGES) > 30
    assert any("Pass target= " in text for text in MESSAGES.values())


@pytest.mark.parametrize("place", MESSAGES)
def test_no_python_argument_is_left_in_a_message_of_the_command(place):
    shown = with_options(MESSAGES[place])
    kept = set(ARGUMENT.findall(shown)) - WITHOUT_OPTION.keys()
    kept -= {name for name in PARAMETERS if f"--set {name}=" in shown}
    assert not kept, shown


def test_every_option_that_messages_name_exists():
    commands = app.commands.values()
    exist = {option for command in commands for part in command.params for option in part.opts}
    assert set(OPTIONS.values()) <= exist


def test_every_option_that_messages_of_rank_name_exists():
    exist = {option for part in app.commands["rank"].params for option in part.opts}
    changed = {RANK_OPTIONS[name] for name in OPTIONS if RANK_OPTIONS[name] != OPTIONS[name]}
    assert len(changed) > 4
    assert changed <= exist


def test_every_column_that_a_message_may_name_has_an_option():
    roles = {"target", "group", "id", "weight", "features", "ignore", "time", "text", "numeric"}
    assert (roles | set(PAIR_COLUMNS)) <= OPTIONS.keys()


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Pass target= with the right one.", "Pass --target with the right one."),
        ("Or pass header=False.", "Or pass --no-header."),
        ("use kernel='linear' without", "use --kernel linear without"),
        ("use cost='magnitude'", "use --set cost=magnitude"),
        ('pass groups=X.pop("qid"); if', "pass --group qid; if"),
        ("Pass groups=. Or pass groups=[0] * len(X).", "Pass --group."),
        ("Pass groups=. Give fit make_target(y, groups) as y. End.", "Pass --group. End."),
        ("levels=('bad', 'very good')", '--order "bad,very good"'),
        ("column 'target=3' of a/target=x.csv", "column 'target=3' of a/target=x.csv"),
        ("--set gamma=[0.1, 1]: one value", "--set gamma=[0.1, 1]: one value"),
        ("columns '<a id=11>', 'b': pass id=", "columns '<a id=11>', 'b': pass --id"),
        ("in parentheses (ndcg(gain=linear)@10)", "in parentheses (ndcg(gain=linear)@10)"),
        ("alpha: got -1.0, expected more", "--alpha: got -1.0, expected more"),
    ],
)
def test_arguments_become_options(message, shown):
    assert with_options(message) == shown


def test_words_in_the_target_name_the_order(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("a,score\n" + "1.5,good\n2,bad\n3.5,good\n0,bad\n" * 3)
    message = fail("train", path, "-o", tmp_path / "m.rw")
    assert "--order bad,good" in message
    assert "target=" not in message
    succeed("train", path, "--order", "bad,good", "-o", tmp_path / "m.rw")


def test_a_missing_target_names_the_option(tmp_path):
    path = tmp_path / "no_target.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    message = fail("train", path, "-o", tmp_path / "m.rw")
    assert "--target" in message
    assert "target=" not in message


def test_python_users_read_of_arguments(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("a,score\n1,good\n2,bad\n")
    with pytest.raises(ValueError, match=r"levels=\('bad', 'good'\)"):
        rankwise.datasets.read_ranking(path)
