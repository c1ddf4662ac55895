"""All commands under one name."""

from __future__ import annotations

import click

from rankwise.cli.compare_command import compare
from rankwise.cli.cv_command import cv
from rankwise.cli.demo_command import demo
from rankwise.cli.evaluate_command import evaluate
from rankwise.cli.export_command import export
from rankwise.cli.info_command import info
from rankwise.cli.judge_command import judge
from rankwise.cli.predict_command import predict
from rankwise.cli.rank_command import rank
from rankwise.cli.report_command import report
from rankwise.cli.train_command import train

COMMANDS = (train, predict, evaluate, cv, compare, report, rank, judge, export, info, demo)


class CommandsInOrder(click.Group):
    """A group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands."""
        return list(self.commands)


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:  # in which the shell completes the command line
        from rankwise.environment import describe_environment

        click.echo(f"rankwise {describe_environment()['versions']['rankwise']}")
        ctx.exit()


@click.group(
    cls=CommandsInOrder,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def app() -> None:
    """Learning to rank from scores, groups and pairwise preferences.

    Start with "rankwise demo", or with "rankwise train DATA -o model.rw" for your own data.
    """


for _command in COMMANDS:
    app.add_command(_command)
