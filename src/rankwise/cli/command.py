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
        # the text above the options describes the arguments
        parameters = [
            parameter
            for parameter in self.get_params(ctx)
            if not isinstance(parameter, click.Argument)
        ]
        advanced = [
            parameter
            for parameter in parameters
            if isinstance(parameter, Option) and parameter.is_advanced
        ]
        shows_all = SHOW_ALL in ctx.meta  # set by --help-all
        help_records_of_section: dict[str, list[tuple[str, str]]] = {}
        for parameter in parameters:
            if parameter in advanced and not shows_all:
                continue
            section = DEFAULT_SECTION
            if isinstance(parameter, Option):
                section = parameter.section
            help_record = parameter.get_help_record(ctx)
            if help_record is not None:
                help_records_of_section.setdefault(section, []).append(help_record)

        for title, help_records in help_records_of_section.items():
            with formatter.section(title):
                formatter.write_dl(help_records, col_max=WIDEST_OPTION)
        if advanced and not shows_all:
            formatter.write_paragraph()
            formatter.write_text(f"--help-all lists {len(advanced)} more options.")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples; a command line is never wrapped."""
        if not self.examples:
            return
        with formatter.section("Examples"):
            indent = " " * formatter.current_indent
            for example in self.examples:
                formatter.write(f"{indent}{example}\n")


def session_parameters() -> list[click.Parameter]:
    """Options that every command has."""
    return [
        Option(
            ["-q", "--quiet"],
            is_flag=True,
            is_advanced=True,
            help="Suppress notes, progress and the summary of train.",
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
    if value and not ctx.resilient_parsing:  # in which the shell completes the command line
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
        source = context.get_parameter_source(parameter.name)
        was_passed = source is ParameterSource.COMMANDLINE
        if was_passed:
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
    names_in_group = [field.name for field in fields(record)]

    def add_options(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)  # which also takes over the options below this decorator
        def function_of_options(**option_values: Any) -> None:
            # function(table=TableOptions(…), …) instead of one argument for each option
            values_in_group = {name: option_values.pop(name) for name in names_in_group}
            group_argument = {argument: record(**values_in_group)}
            function(**group_argument, **option_values)

        decorated: Callable[..., None] = function_of_options
        for add_option in reversed(options):  # the decorator that is applied last is listed first
            decorated = add_option(decorated)
        return decorated

    return add_options
