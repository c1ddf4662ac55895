"""Messages of the library in the syntax of the command: ``target=`` becomes ``--target``.

Errors and warnings of the library name Python arguments. The command replaces them with the options
that set them. `OPTIONS` lists all arguments with an option; parameters of estimators are set by
``--set NAME=VALUE``. Sentences with a remedy that exists in Python only, such as `make_target`, are
left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

SAME_NAME = (  # argument a_b is option --a-b
    "accept_changes",
    "alpha",
    "anchor",
    "balance",
    "baseline",
    "categorical",
    "cluster",
    "confidence",
    "context",
    "correction",
    "covariates",
    "database",
    "decimal",
    "delimiter",
    "difference",
    "family",
    "features",
    "goal",
    "group",
    "half_life",
    "id",
    "ignore",
    "image",
    "item",
    "items",
    "judge",
    "kernel",
    "loser",
    "lower_is_better",
    "magnitude",
    "map",
    "margin",
    "min_comparisons",
    "min_tasks",
    "missing",
    "missing_queries",
    "model",
    "name",
    "nuisance",
    "numeric",
    "order",
    "outcome",
    "place",
    "places",
    "port",
    "prior",
    "random_state",
    "ranking",
    "reweight",
    "score",
    "scores",
    "seed",
    "show",
    "side",
    "sides",
    "target",
    "task",
    "task_scale",
    "task_weight",
    "team_separator",
    "team_weights",
    "test",
    "tie",
    "time",
    "time_limit",
    "token",
    "top",
    "unjudged",
    "unlisted",
    "until",
    "weight",
    "winner",
    "wins",
    "zero_based",
)
OTHER_NAME = {
    "alphas": "--alpha",
    "clusters": "--cluster",
    "format": "--input-format",
    "groups": "--group",
    "judges": "--judge",
    "level": "--confidence",
    "levels": "--order",
    "magnitudes": "--magnitude",
    "metrics": "--metric",
    "outcome_words": "--map",
    "sample_weight": "--weight",
    "scale": "--feature-scaling",
    "scoring": "--metric",
    "text": "--categorical",
    "weights": "--weight",
}
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in SAME_NAME} | OTHER_NAME
RANK_OPTIONS = OPTIONS | {  # `rank` has other options for these arguments
    "features": "--item-features",
    "group": "--board-per",
    "groups": "--board-per",
    "id": "--item",
    "model": "--rating-model",
    "order": "--sort-by",
    "scale": "--rating-scale",
    "ties": "--ties",
}
OPTIONS_OF_COMMAND = {
    "cv": OPTIONS | {"cv": "--leave"},
    "export": OPTIONS | {"format": "--to"},
    "rank": RANK_OPTIONS,
}
SPECIAL_VALUES = {  # (argument, value) and its option
    ("gain", "linear"): '--metric "ndcg(gain=linear)@10"',
    ("header", "False"): "--no-header",
    ("header", "True"): "no --no-header",
    ("tasks", "fixed"): "--fixed-tasks",
}
PARAMETERS = (  # of estimators
    "beta",
    "coef0",
    "cost",
    "degree",
    "dictionary",
    "gamma",
    "group_weight",
    "loss",
    "max_iter",
    "n_basis",
    "nu",
    "search",
    "solver",
    "ties",
    "tol",
)

_COLUMN = r'X\.pop\("(?P<column>[^"]*)"\)'
_VALUE = r"\([^()]*\)|\[[^\[\]]*\]|'[^']*'|\"[^\"]*\"|[\w+-]+(?:\.\w+)*"
_QUOTED = r"(?<!\w)'[^']*'"  # a name or a value of the user, which may contain "="
_ARGUMENT = re.compile(
    rf"{_QUOTED}"
    r"|(?<![\w/.='\"-])(?<!\w\()(?<!--set )(?P<name>[a-z][a-z_0-9]*)="
    rf"(?:{_COLUMN}|(?P<value>{_VALUE}))?"
)
_OPTION = re.compile(r"(?<!\S)(?P<option>--[a-z-]+)='(?P<value>[^']*)'")  # of --model='svm'
_SUBJECT = re.compile(r"^[a-z_]+(?=: got )")  # of "alpha: got -1.0"
_PYTHON_SENTENCE = re.compile(r"(?:(?<=\.) |^)[^.]*(?:make_target\(|len\(X\))[^.]*\.(?= |$)")


def with_options(message: str, command: str = "") -> str:
    """Return a message of the library with options in place of arguments.

    Parameters
    ----------
    message : str
        The message.
    command : str, default=""
        Name of the command; `cv`, `export` and `rank` have other options for some arguments.

    Returns
    -------
    str
        The message for users of the command.

    Examples
    --------
    >>> with_options("There is no column 'x'. Pass target= with the right one.")
    "There is no column 'x'. Pass --target with the right one."
    >>> with_options("Pass levels=('bad', 'good'), or header=False; use cost='sign'.")
    'Pass --order bad,good, or --no-header; use --set cost=sign.'
    >>> with_options("Pass groups=. If the rows are one list, pass groups=[0] * len(X).")
    'Pass --group.'
    >>> with_options("use scale='logit'", "rank")
    'use --rating-scale logit'
    """
    option_of_argument = OPTIONS_OF_COMMAND.get(command, OPTIONS)

    def replace_subject(subject: re.Match[str]) -> str:
        """Replace "alpha" in "alpha: got -1.0"."""
        return option_of_argument.get(subject[0], subject[0])

    def replace_argument(argument: re.Match[str]) -> str:
        """Replace an argument such as ``target=`` or ``target='price'``."""
        name = argument["name"]
        if name is None:  # the pattern matches quoted text, too, which stays unchanged
            return argument[0]
        value = _shell_value(argument["column"] or argument["value"] or "")
        return _option_with_value(name, value, option_of_argument) or argument[0]

    def replace_value(option: re.Match[str]) -> str:
        """Replace an option with a Python value, such as ``--model='svm'``."""
        return f"{option['option']} {_shell_value(option['value'])}"

    # Drop sentences about Python, unless there are no others. Then replace an argument at the start
    # ("alpha: got −1") and arguments with values ("levels=('bad', 'good')").
    message_for_command = _PYTHON_SENTENCE.sub("", message).strip() or message
    with_subject = _SUBJECT.sub(replace_subject, message_for_command)
    with_option_names = _ARGUMENT.sub(replace_argument, with_subject)
    return _OPTION.sub(replace_value, with_option_names)


def _option_with_value(name: str, value: str, option_of_argument: Mapping[str, str]) -> str:
    """The option that sets an argument to a value; empty if there is none."""
    if (name, value) in SPECIAL_VALUES:
        return SPECIAL_VALUES[name, value]
    if name not in option_of_argument:
        return f"--set {name}={value or 'VALUE'}" if name in PARAMETERS else ""
    option = option_of_argument[name]
    if value in ("", "True"):
        return option
    if value in ("False", "None"):
        return f"no {option}"
    return f"{option} {value}"


def _shell_value(value: str) -> str:
    """Spell a Python value for a shell: words without quotes, several of them with commas."""
    # "('bad', 'good')" becomes "bad,good"
    words = [word.strip().strip("'\"") for word in value.strip("()[]").split(",")]
    shell_text = ",".join(word for word in words if word)
    needs_quotes = " " in shell_text
    return f'"{shell_text}"' if needs_quotes else shell_text
