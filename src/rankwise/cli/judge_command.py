"""``rankwise judge``: a local page that asks which of two items is better."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankwise.judge import Address, AnswerStore, ItemSet

from rankwise.cli import terminal


def judge(
    items: Path,
    /,
    database: Path | None = None,
    name: str | None = None,
    show: str | None = None,
    image: str | None = None,
    markdown: bool = False,
    blind: bool = False,
    no_features: bool = False,
    title: str = "Which one is better?",
    goal: str = "top",
    top: int = 3,
    level: float = 0.9,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    open_browser: bool = False,
    accept_changes: bool = False,
    random_state: int | None = None,
    output: Path | None = None,
) -> None:
    """Ask people which of two items is better, on a local page.

    Answers are on the disk before the next question. Stop with Ctrl-C, and go on later with the
    same command. -o writes the answers as CSV for "rankwise rank", and asks nothing.

    \b
    rankwise judge cheese.csv
    rankwise judge cheese.csv -o comparisons.csv

    Parameters
    ----------
    items : ITEMS
        Table with one item a row, .txt with one a line, or folder of pictures or texts.
    database : FILE
        Where the answers are kept; ITEMS.judged.db if not given.
    name : COLUMN
        Column that names the items.
    show : A,B,…
        Columns that judges see; all if not given.
    image : COLUMN
        Column with the file names of pictures, seen from the folder of ITEMS.
    markdown : flag
        Show text as Markdown.
    blind : flag
        Show no names before an answer, and no board before it is settled.
    no_features : flag
        Choose questions without the columns of the table.
    title : TEXT
        The question on the page.
    goal : top|order
        Find the best items, or the whole order.
    top : N
        How many best items to find.
    level : P
        How sure the page has to be to say that it is settled.
    host : ADDRESS
        0.0.0.0 lets in other computers; they need the token.
    port : N
        Port of the page; 0 for any free one.
    token : WORD
        Secret part of the address; made up if needed.
    open_browser : --open
        Open the page in a browser.
    accept_changes : flag
        Go on although the items have changed.
    random_state : N
        Seed of sides and ties.
    """  # noqa: D301
    try:
        from rankwise.judge import Address, AnswerStore, JudgingSession, read_items, serve
    except ImportError as error:
        raise ImportError(
            f"rankwise judge needs {error.name}: pip install starlette uvicorn markdown-it-py"
        ) from error

    if goal not in ("top", "order") or not 0.5 <= level < 1 or top < 1:
        raise ValueError(
            f"--goal is top or order, --level from 0.5 to 1, --top from 1; got {goal}, {level}, "
            f"{top}."
        )
    path = database or Path(f"{str(items).rstrip('/')}.judged.db")
    terminal.check_files([items, path], output)
    shown = [column.strip() for column in show.split(",")] if show else []
    if output is not None and not path.exists():
        raise ValueError(f"there are no answers yet: {path} is not there.")
    found = read_items(
        items,
        name=name,
        show=shown,
        image=image,
        use_features=not no_features,
        is_blind=blind,
    )
    with closing(AnswerStore(path, found.items, accept_changes=accept_changes)) as store:
        if output is not None:
            terminal.write_text(output, store.csv())
            return
        address = Address(host, port, token)
        session = JudgingSession(
            found,
            store,
            goal=goal,
            top=top,
            level=level,
            is_blind=blind,
            random_state=random_state,
        )
        _tell(found, store, address)
        if open_browser:
            import webbrowser

            webbrowser.open(address.url)
        serve(session, address, title=title, is_markdown=markdown)
        n = store.n_answers()
    terminal.echo(
        f"\n{n:,} answer{'s' * (n != 1)} in {path}. The same command goes on where you were."
    )
    terminal.echo(f"rankwise judge {items} -o comparisons.csv writes them for rankwise rank.")


def _tell(found: ItemSet, store: AnswerStore, address: Address) -> None:
    n = store.n_answers()
    terminal.echo(
        f"{len(found.items):,} items, {n:,} answer{'s' * (n != 1)} so far in {store.path}"
    )
    if found.feature_names:
        terminal.note(f"questions are chosen with the help of {', '.join(found.feature_names)}")
    terminal.echo(f"Open {address.url}  (Ctrl-C stops, nothing is lost)")
    sys.stdout.flush()
