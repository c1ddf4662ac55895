"""Messages of the library in the syntax of the command: ``target=`` becomes ``--target``.

Errors and warnings of the library name arguments, as its users in Python type them. The command
replaces the arguments by the options that set them. `OPTIONS` lists all arguments with an option;
parameters of estimators are set by ``--set NAME=VALUE``. Sentences with a remedy that exists in
Python only, such as `make_target`, are left out.
"""

from __future__ import annotations

import re

SAME_NAME = (  # argument a_b is option --a-b
    *("alpha", "anchor", "categorical", "confidence", "context", "covariates", "decimal"),
    *("delimiter", "features", "format", "group", "half_life", "id", "ignore", "image", "item"),
    *("items", "judge", "kernel", "loser", "magnitude", "map", "margin", "min_comparisons"),
    *("missing", "missing_queries", "model", "name", "nuisance", "numeric", "order", "outcome"),
    *("place", "places", "port", "prior", "random_state", "ranking", "reweight", "scale"),
    *("scores", "show", "side", "sides", "target", "tie", "ties", "time", "time_limit", "token"),
    *("unlisted", "weight", "winner", "wins", "zero_based"),
)
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in SAME_NAME} | {
    "accept_changes": "--accept-changes",
    "baseline": "--baseline",
    "cluster": "--cluster",
    "clusters": "--cluster",
    "database": "--database",
    "goal": "--goal",
    "groups": "--group",
    "judges": "--judge",
    "level": "--level",
    "levels": "--order",
    "magnitudes": "--magnitude",
    "metrics": "--metric",
    "outcome_words": "--map",
    "sample_weight": "--weight",
    "scoring": "--metric",
    "text": "--categorical",
    "top": "--top",
    "until": "--until",
    "weights": "--weight",
}
WHOLE = {  # argument and value: what says the same
    ("gain", "linear"): '--metric "ndcg(gain=linear)@10"',
    ("header", "False"): "--no-header",
    ("header", "True"): "no --no-header",
}
PARAMETERS = (  # of estimators
    *("beta", "coef0", "cost", "degree", "dictionary", "gamma", "group_weight", "loss", "max_iter"),
    *("n_basis", "nu", "search", "solver", "tol"),
)

_COLUMN = r'X\.pop\("(?P<column>[^"]*)"\)'
_VALUE = r"\([^()]*\)|\[[^\[\]]*\]|'[^']*'|\"[^\"]*\"|[\w+-]+(?:\.\w+)*"
_ARGUMENT = re.compile(
    rf"(?<![\w/.='\"-])(?<!--set )(?P<name>[a-z][a-z_0-9]*)=(?:{_COLUMN}|(?P<value>{_VALUE}))?"
)
_PYTHON_SENTENCE = re.compile(r"(?:(?<=\.) |^)[^.]*(?:make_target\(|len\(X\))[^.]*\.(?= |$)")


def with_options(message: str) -> str:
    """The message of the library with options in place of arguments.

    Examples
    --------
    >>> with_options("There is no column 'x'. Pass target= with the right one.")
    "There is no column 'x'. Pass --target with the right one."
    >>> with_options("Pass levels=('bad', 'good'), or header=False; use cost='sign'.")
    'Pass --order bad,good, or --no-header; use --set cost=sign.'
    >>> with_options("Pass groups=. If the rows are one list, pass groups=[0] * len(X).")
    'Pass --group.'
    """
    for_command = _PYTHON_SENTENCE.sub("", message).strip() or message
    return _ARGUMENT.sub(_as_option, for_command)


def _as_option(argument: re.Match[str]) -> str:
    name = argument["name"]
    value = _plain(argument["column"] or argument["value"] or "")
    if (name, value) in WHOLE:
        return WHOLE[name, value]
    if name in PARAMETERS:
        return f"--set {name}={value or 'VALUE'}"
    if name not in OPTIONS:
        return argument[0]
    if value in ("", "True"):
        return OPTIONS[name]
    if value in ("False", "None"):
        return f"no {OPTIONS[name]}"
    return f"{OPTIONS[name]} {value}"


def _plain(value: str) -> str:
    """A value as it is typed in a shell: words without quotes, several of them with commas."""
    words = [word.strip().strip("'\"") for word in value.strip("()[]").split(",")]
    plain = ",".join(word for word in words if word)
    return f'"{plain}"' if " " in plain else plain
