"""All commands under one name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from rankwise.cli import (
    compare_command,
    cv_command,
    demo_command,
    evaluate_command,
    export_command,
    info_command,
    judge_command,
    predict_command,
    rank_command,
    report_command,
    terminal,
    train_command,
)
from rankwise.cli.shared_options import Common

SHOW_ALL = "rankwise.help_all"
COLUMN_OF_HELP = 24  # where what an option does begins, if it is not longer itself
MAIN = {  # options that the short help shows
    "train": ("model", "metric", "alpha", "kernel", "set", "calibrate", "target", "group",
              "features", "ignore", "items", "output", "help"),
    "cv": ("model", "alpha", "kernel", "leave", "metric", "target", "group", "items", "output",
           "help"),
    "evaluate": ("target", "group", "items", "metric", "per_group", "as_json", "help"),
    "compare": ("target", "group", "items", "metric", "baseline", "test", "style", "as_json",
                "help"),
    "report": ("target", "group", "items", "metric", "previous", "output", "help"),
    "predict": ("group", "column", "rank", "intervals", "output", "help"),
    "rank": ("winner", "loser", "sides", "outcome", "scores", "weight", "judge", "group",
             "features", "model", "scale", "page", "output", "as_json", "help"),
}  # fmt: skip
_SECTION = re.compile(r"^(\w+)\n---+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+) : (.+)\n((?:    .+\n?)+)", re.MULTILINE)


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.meta[SHOW_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool, typer.Option("--help-all", callback=_show_all, is_eager=True, help="Show all options.")
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="No notes and no progress; train says nothing at all."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a function the signature that typer reads.

    Parameters that are positional only are arguments, the others are options. A parameter annotated
    by a dataclass stands for the fields of that class: so commands share their options. What help
    says of them is in the docstrings, see `read_help`. ``--quiet`` and ``--debug`` are added.
    """
    hints = get_type_hints(function)
    said, about = read_help(Common, function), read_help(function)[""]
    bundles: dict[str, Any] = {}
    arguments: list[str] = []
    shown: list[tuple[str, Any, Any]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        bundle: type = hints[name]
        if is_dataclass(bundle):
            bundles[name] = bundle
            known = read_help(*reversed(inspect.getmro(bundle)[:-1]))
            types = get_type_hints(bundle)
            for one in fields(bundle):
                shown.append((one.name, _option(types[one.name], known[one.name]), one.default))
            continue
        is_argument = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        if is_argument:
            arguments.append(name)
        shown.append((name, _option(bundle, said[name], is_argument), parameter.default))
    shown += [("quiet", Quiet, False), ("debug", Debug, False), ("help_all", HelpAll, False)]

    def run(**values: Any) -> None:
        quiet, debug, _ = values.pop("quiet"), values.pop("debug"), values.pop("help_all")
        for name, bundle in bundles.items():
            values[name] = bundle(**{one.name: values.pop(one.name) for one in fields(bundle)})
        positional = [values.pop(name) for name in arguments]
        with terminal.command_session(quiet=quiet, debug=debug):
            function(*positional, **values)

    kind = inspect.Parameter.KEYWORD_ONLY
    run.__name__, run.__doc__ = function.__name__, about
    run.__annotations__ = {name: hint for name, hint, _ in shown}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind, default=d, annotation=hint) for name, hint, d in shown]
    )
    return run


def read_help(*documented: Any) -> dict[str, Any]:
    """What docstrings say of each option; the empty name has what the last one begins with.

    An option is described as a parameter of NumPy's docstrings, with what stands for its value in
    place of a type, after names that are not made of its own, such as -o. A section that is not
    called Parameters is a heading of the help.
    """
    said: dict[str, Any] = {}
    for one in documented:
        said[""], *sections = _SECTION.split(inspect.cleandoc(one.__doc__ or ""))
        for panel, text in zip(sections[::2], sections[1::2], strict=True):
            for name, form, help in _ENTRY.findall(text):
                words = form.split()
                names = [word for word in words if word.startswith("-")]
                if not any(word.startswith("--") for word in names):
                    names.append(f"--{name.replace('_', '-')}")
                said[name] = {
                    "names": names,
                    "metavar": words[-1] if words[-1] not in names else None,
                    "help": " ".join(help.split()),
                    "rich_help_panel": None if panel == "Parameters" else panel,
                }
    return said


def _option(hint: Any, said: dict[str, Any], is_argument: bool = False) -> Any:
    options = {name: value for name, value in said.items() if name != "names"}
    if is_argument:
        return Annotated[hint, typer.Argument(**options)]
    if hint is bool:
        options["metavar"] = None
    return Annotated[hint, typer.Option(*said["names"], **options)]


class _PlainFlags:
    """Shows no type for options without a value: typer has "bool" even for --help."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for option in parameters:
            if getattr(option, "is_flag", False):
                option.metavar = ""
        return parameters


class _Command(_PlainFlags, TyperCommand):
    """A command whose help has the options of `MAIN`; --help-all shows all, by subject."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        main = MAIN.get(ctx.info_name)
        sections: dict[str, list[tuple[str, str]]] = {}
        n_more = 0
        for parameter in self.get_params(ctx):
            is_shown = main is None or ctx.meta.get(SHOW_ALL) or parameter.name in main
            if not is_shown and parameter.param_type_name == "option":
                n_more += 1
                continue
            record = parameter.get_help_record(ctx)
            section = getattr(parameter, "rich_help_panel", None) or "Options"
            if record is not None:
                sections.setdefault(section, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records, col_max=COLUMN_OF_HELP)
        if n_more:
            formatter.write_paragraph()
            formatter.write_text(f"--help-all shows {n_more} more options.")


class _Group(_PlainFlags, TyperGroup):
    pass


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

for function in (
    train_command.train,
    predict_command.predict,
    evaluate_command.evaluate,
    cv_command.cv,
    compare_command.compare,
    report_command.report,
    rank_command.rank,
    judge_command.judge,
    export_command.export,
    info_command.info,
    demo_command.demo,
):
    app.command(cls=_Command)(command(function))


def _print_version(wanted: bool) -> None:
    if wanted:
        from rankwise.environment import describe_environment

        typer.echo(f"rankwise {describe_environment()['versions']['rankwise']}")
        raise typer.Exit


@app.callback()
def rankwise(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Learning to rank from scores, groups and pairwise preferences.

    Start with "rankwise demo", or "rankwise train DATA -o model.rw" on data of your own.
    """
