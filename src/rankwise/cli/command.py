"""The class of all commands: help by section, and --quiet, --debug and --help-all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rankwise.cli import terminal

SHOW_ALL = "rankwise.help_all"  # key in ctx.meta
DEFAULT_SECTION = "Options"
WIDEST_OPTION = 24  # options that are longer have their help on the next line

FILE = click.Path(path_type=Path)

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


class Option(click.Option):
    """An option that is listed in a section of the help.

    Parameters
    ----------
    section : str, default="Options"
        Title of the section.
    is_advanced : bool, default=False
        Whether only --help-all lists the option.
    """

    def __init__(
        self,
        *args: Any,
        section: str = DEFAULT_SECTION,
        is_advanced: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.section = section
        self.is_advanced = is_advanced


option = partial(click.option, cls=Option)


class Command(click.Command):
    """A command that runs in a session of `rankwise.cli.terminal`.

    ``--help`` lists the common options, ``--help-all`` lists all of them.

    Parameters
    ----------
    examples : sequence of str, default=()
        Command lines for the end of the help.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = examples
        self.params += session_parameters()

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a failure becomes one line and an exit code."""
        quiet = ctx.params.pop("quiet")
        debug = ctx.params.pop("debug")
        with terminal.command_session(ctx.info_name or "", quiet=quiet, debug=debug):
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section, and how many advanced options are not listed."""
        shows_all = SHOW_ALL in ctx.meta
        sections: dict[str, list[tuple[str, str]]] = {}
        n_hidden = 0
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Argument):
                continue  # the text above the options describes the arguments
            section = DEFAULT_SECTION
            if isinstance(parameter, Option):
                if parameter.is_advanced and not shows_all:
                    n_hidden += 1
                    continue
                section = parameter.section
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(section, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records, col_max=WIDEST_OPTION)
        if n_hidden:
            formatter.write_paragraph()
            formatter.write_text(f"--help-all lists {n_hidden} more options.")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples; a command line is never wrapped."""
        if not self.examples:
            return
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def session_parameters() -> list[click.Parameter]:
    """Options that every command has."""
    return [
        Option(
            ["-q", "--quiet"],
            is_flag=True,
            is_advanced=True,
            help="Suppress notes and progress, and the summary of train.",
        ),
        Option(
            ["--debug"], is_flag=True, is_advanced=True, help="Show the traceback of a failure."
        ),
        Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            is_advanced=True,
            expose_value=False,
            callback=_show_all_options,
            help="Show all options and exit.",
        ),
    ]


def _show_all_options(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[SHOW_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def refuse_options(names: Collection[str], reason: str) -> None:
    """Raise a ValueError for an option that was passed and that the command would ignore.

    Parameters
    ----------
    names : collection of str
        Names of parameters of the current command.
    reason : str
        End of the message, such as "is for comparisons".
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name not in names:
            continue
        if context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise ValueError(f"{parameter.opts[0]} {reason}")


def option_group(record: type, argument: str, *options: Decorator) -> Decorator:
    """Return a decorator that adds options and passes their values as one record.

    Parameters
    ----------
    record : type
        A dataclass with one field for each option.
    argument : str
        Name of the argument of the decorated function that receives the record.
    *options : decorators
        What `option` returns.
    """
    names = [field.name for field in fields(record)]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(**values: Any) -> None:
            group_values = {name: values.pop(name) for name in names}
            function(**{argument: record(**group_values)}, **values)

        decorated: Callable[..., None] = run
        for add_option in reversed(options):
            decorated = add_option(decorated)
        return decorated

    return decorate
