"""All commands under one name."""

from __future__ import annotations

from typing import Annotated, Any

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
from rankwise.cli.command import command
from rankwise.cli.options import flag


class _PlainFlags:
    """Shows no type for options without a value: typer has "bool" even for --help."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for option in found:
            if getattr(option, "is_flag", False):
                option.metavar = ""
        return found


class _Command(_PlainFlags, TyperCommand):
    pass


class _Group(_PlainFlags, TyperGroup):
    pass


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
    quiet: Annotated[bool, flag("--quiet", "-q", help=session.QUIET_HELP)] = False,
    debug: Annotated[bool, flag("--debug", help=session.DEBUG_HELP)] = False,
) -> None:
    """Learning to rank from scores, groups and pairwise preferences.

    Start with "rankwise demo", or "rankwise train DATA -o model.rw" on data of your own.
    """
    session.begin(quiet=quiet, debug=debug)
