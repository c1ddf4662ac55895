"""``rankwise judge``: a local page that asks which of two items is better."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command, option
from rankwise.cli.shared_options import output_option
from rankwise.formatting import count

if TYPE_CHECKING:
    from rankwise.judge.item_set import ItemSet
    from rankwise.judge.storage import AnswerStore
    from rankwise.judge.web_app import Address

LARGEST_PORT = 65535


@click.command(
    cls=Command,
    examples=["rankwise judge cheese.csv", "rankwise judge cheese.csv -o comparisons.csv"],
)
@click.argument("items", type=FILE)
@option(
    "--database",
    metavar="FILE",
    type=FILE,
    help="File of the answers; default: ITEMS.judged.db.",
)
@option("--name", metavar="COLUMN", help="Column of the item names.")
@option("--show", metavar="A,B,…", help="Columns that the judges see; default: all columns.")
@option(
    "--image",
    metavar="COLUMN",
    help="Column of picture files, relative to the folder of ITEMS.",
)
@option("--markdown", is_flag=True, help="Render text as Markdown.")
@option(
    "--blind",
    is_flag=True,
    help="Hide item names before an answer, and the board before the order is settled.",
)
@option("--no-features", is_flag=True, help="Select questions without the columns of the table.")
@option("--title", metavar="TEXT", default="Which one is better?", help="Question on the page.")
@option(
    "--goal", metavar="top|order", default="top", help="Find the best items, or the whole order."
)
@option("--top", metavar="N", type=int, default=3, help="Number of best items to find.")
@option("--confidence", metavar="X", type=float, default=0.9, help="Confidence required to stop.")
@option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    help="0.0.0.0 admits other computers; they need the token.",
)
@option("--port", metavar="N", type=int, default=8765, help="Port of the page; 0: any free port.")
@option("--token", metavar="WORD", help="Access token; default: generated when needed.")
@option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
@option("--accept-changes", is_flag=True, help="Continue although the items have changed.")
@option("--random-state", metavar="N", type=int, help="Seed of sides and ties.")
@output_option
def judge(
    items: Path,
    database: Path | None,
    name: str | None,
    show: str | None,
    image: str | None,
    markdown: bool,
    blind: bool,
    no_features: bool,
    title: str,
    goal: str,
    top: int,
    confidence: float,
    host: str,
    port: int,
    token: str | None,
    open_browser: bool,
    accept_changes: bool,
    random_state: int | None,
    output: Path | None,
) -> None:
    """Ask people which of two items is better, on a local page.

    ITEMS is a table with one item per row, a text file (.txt) with one item per line, or a folder
    of pictures or texts. Each answer is saved before the next question. Stop with Ctrl-C and run
    the same command to continue. -o writes the answers as CSV for "rankwise rank" and starts no
    page.
    """
    try:
        from rankwise.judge.item_set import read_items
        from rankwise.judge.session import JudgingSession
        from rankwise.judge.storage import AnswerStore
        from rankwise.judge.web_app import Address, serve
    except ImportError as error:
        raise ImportError(
            f"rankwise judge needs {error.name}: pip install starlette uvicorn markdown-it-py"
        ) from error
    _check_goal(goal, top, confidence)
    if database is None:
        database = Path(f"{str(items).rstrip('/')}.judged.db")
    terminal.check_files([items, database], output)
    if not items.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(items))
    if output is not None and not database.exists():
        raise ValueError(f"there are no answers yet: {database} does not exist.")
    shown_columns = []
    if show:
        shown_columns = [column.strip() for column in show.split(",")]
    item_set = read_items(
        items,
        name=name,
        show=shown_columns,
        image=image,
        use_features=not no_features,
        is_blind=blind,
    )
    if output is not None:
        with closing(AnswerStore(database, item_set.items, accept_changes=accept_changes)) as store:
            terminal.write_text(output, store.csv())
        return
    if not 0 <= port <= LARGEST_PORT:
        raise ValueError(f"--port {port}: expected a number from 0 to {LARGEST_PORT}.")
    address = Address(host, port, token)  # before the database, which a bad address must not create
    with (
        closing(address.socket),
        closing(AnswerStore(database, item_set.items, accept_changes=accept_changes)) as store,
    ):
        session = JudgingSession(
            item_set,
            store,
            goal=goal,
            top=top,
            level=confidence,
            is_blind=blind,
            random_state=random_state,
        )
        _print_start(item_set, store, address)
        if open_browser:
            import webbrowser

            webbrowser.open(address.url)
        serve(session, address, title=title, is_markdown=markdown)
        n_answers = store.n_answers()
    terminal.echo(
        f"\n{count(n_answers, 'answer')} in {database}. Run the same command to continue."
    )
    terminal.echo(f"rankwise judge {items} -o comparisons.csv writes them for rankwise rank.")


def _check_goal(goal: str, top: int, confidence: float) -> None:
    """Refuse goals that do not exist or cannot be reached."""
    from rankwise.validation import check_option

    check_option("--goal", goal, ("top", "order"))
    if not 0.5 <= confidence < 1:
        raise ValueError(f"--confidence {confidence}: expected a number from 0.5 to below 1.")
    if top < 1:
        raise ValueError(f"--top {top}: expected at least 1.")


def _print_start(item_set: ItemSet, store: AnswerStore, address: Address) -> None:
    """Print what is judged, and the address of the page."""
    n_items = f"{len(item_set.items):,} items"
    terminal.echo(f"{n_items}, {count(store.n_answers(), 'answer')} so far in {store.path}")
    if item_set.feature_names:
        names = ", ".join(item_set.feature_names)
        terminal.note(f"questions are selected using {names}; --no-features turns this off")
    terminal.echo(f"Open {address.url}  (Ctrl-C stops, no answer is lost)")
    sys.stdout.flush()
