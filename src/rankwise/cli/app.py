"""All commands under one name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from rankwise.cli import (
    compare,
    cv,
    demo,
    evaluate,
    export,
    info,
    judge,
    predict,
    rank,
    report,
    session,
    train,
)
from rankwise.cli.options import flag
from rankwise.cli.session import DEBUG_HELP, QUIET_HELP, telling

SHOW_ALL = "rankwise.help_all"
COLUMN_OF_HELP = 24  # where what an option does begins, if it is not longer itself
MAIN = {  # options that the short help shows
    "train": ("model", "metric", "alpha", "kernel", "set", "calibrate", "target", "group",
              "features", "ignore", "weight", "items", "output", "as_json", "help"),
    "cv": ("model", "alpha", "kernel", "set", "leave", "metric", "target", "group", "features",
           "ignore", "items", "output", "per_group", "as_json", "help"),
    "evaluate": ("target", "group", "items", "metric", "per_group", "as_json", "help"),
    "compare": ("target", "group", "items", "metric", "baseline", "test", "style", "as_json",
                "help"),
    "report": ("target", "group", "items", "metric", "train", "previous", "output", "help"),
    "predict": ("group", "column", "rank", "intervals", "output", "help"),
    "rank": ("winner", "loser", "sides", "outcome", "scores", "weight", "judge", "group",
             "features", "model", "scale", "page", "output", "as_json", "help"),
}  # fmt: skip


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.meta[SHOW_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option("--help-all", callback=_show_all, is_eager=True, help="Show all options."),
]
Quiet = Annotated[bool, flag("--quiet", "-q", help=QUIET_HELP)]
Debug = Annotated[bool, flag("--debug", help=DEBUG_HELP)]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a function the signature that typer reads.

    A parameter annotated by a dataclass stands for the fields of that class: so commands share
    their options. ``--quiet`` and ``--debug`` are added to every command.
    """
    hints = get_type_hints(function, include_extras=True)
    bundles = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}

    def run(**given: Any) -> None:
        quiet, debug, _ = given.pop("quiet"), given.pop("debug"), given.pop("help_all")
        for name, bundle in bundles.items():
            own = {field.name: given.pop(field.name) for field in dataclasses.fields(bundle)}
            given[name] = bundle(**own)  # type: ignore[operator]
        with telling(quiet=quiet, debug=debug):
            function(**given)

    parameters = _parameters(function, hints, bundles)
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameters(
    function: Callable[..., None], hints: dict[str, Any], bundles: dict[str, Any]
) -> list[inspect.Parameter]:
    defaults: list[tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in bundles:
            defaults.append((parameter.name, hints[parameter.name], parameter.default))
            continue
        bundle = bundles[parameter.name]
        types = get_type_hints(bundle, include_extras=True)
        fields = dataclasses.fields(bundle)
        defaults += [(field.name, types[field.name], field.default) for field in fields]
    defaults += [("quiet", Quiet, False), ("debug", Debug, False), ("help_all", HelpAll, False)]
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(name, kind, default=default, annotation=hint)
        for name, hint, default in defaults
    ]


class _PlainFlags:
    """Shows no type for options without a value: typer has "bool" even for --help."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for option in found:
            if getattr(option, "is_flag", False):
                option.metavar = ""
        return found


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
    train.train,
    predict.predict,
    evaluate.evaluate,
    cv.cv,
    compare.compare,
    report.report,
    rank.rank,
    judge.judge,
    export.export,
    info.info,
    demo.demo,
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
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Learning to rank from scores, groups and pairwise preferences.

    Start with "rankwise demo", or "rankwise train DATA -o model.rw" on data of your own.
    """
    session.begin(quiet=quiet, debug=debug)
