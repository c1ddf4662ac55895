"""``rankwise judge``: a local page that asks which of two items is better."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankwise.cli.options import Output, flag, option
from rankwise.cli.output import say

if TYPE_CHECKING:
    from rankwise.judge import Address, ItemSet, JudgementStore

Items = Annotated[
    Path,
    typer.Argument(
        metavar="ITEMS",
        help="Table with one item a row, .txt with one a line, or folder of pictures or texts.",
    ),
]
Database = Annotated[
    Path | None, option("Where the answers are kept; ITEMS.judged.db if not given.", "FILE")
]
Name = Annotated[str | None, option("Column that names the items.", "COLUMN")]
Show = Annotated[str | None, option("Columns that judges see; all if not given.", "A,B,…")]
Image = Annotated[str | None, option("Column with the file names of pictures.", "COLUMN")]
Images = Annotated[
    Path | None, option("Where the pictures are; beside ITEMS if not given.", "FOLDER")
]
Title = Annotated[str, option("The question on the page.", "TEXT")]
Goal = Annotated[str, option("Find the best items, or the whole order.", "top|order")]
Top = Annotated[int, option("How many best items to find.", "N")]
Level = Annotated[float, option("How sure the page has to be to say that it is settled.", "P")]
Host = Annotated[str, option("0.0.0.0 lets in other computers; they need the token.", "ADDRESS")]
Port = Annotated[int, option("Port of the page; 0 for any free one.", "N")]
Token = Annotated[str | None, option("Secret part of the address; made up if needed.", "WORD")]
Seed = Annotated[int | None, option("Seed of sides and ties.", "N")]


def judge(
    items: Items,
    database: Database = None,
    name: Name = None,
    show: Show = None,
    image: Image = None,
    images: Images = None,
    markdown: Annotated[bool, flag("--markdown", help="Show text as Markdown.")] = False,
    blind: Annotated[
        bool,
        flag("--blind", help="Show no names before an answer, and no board before it is settled."),
    ] = False,
    no_features: Annotated[
        bool, flag("--no-features", help="Choose questions without the columns of the table.")
    ] = False,
    title: Title = "Which one is better?",
    goal: Goal = "top",
    top: Top = 3,
    level: Level = 0.9,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    token: Token = None,
    open_browser: Annotated[bool, flag("--open", help="Open the page in a browser.")] = False,
    accept_changes: Annotated[
        bool, flag("--accept-changes", help="Go on although the items have changed.")
    ] = False,
    random_state: Seed = None,
    output: Output = None,
) -> None:
    """Ask people which of two items is better, on a local page.

    Answers are on the disk before the next question. Stop with Ctrl-C, and go on later with the
    same command. -o writes the answers as CSV for "rankwise rank", and asks nothing.
    """
    from rankwise.cli.output import check_output, write_text

    try:
        from rankwise.judge import Address, JudgementStore, JudgingSession, read_items, serve
    except ImportError as error:
        raise ImportError(
            f"rankwise judge needs {error.name}: pip install starlette uvicorn markdown-it-py"
        ) from error

    if goal not in ("top", "order"):
        raise ValueError(f"--goal is top or order; got {goal!r}.")
    if not 0.5 <= level < 1:
        raise ValueError(f"--level is a probability from 0.5 to 1; got {level}.")
    if top < 1:
        raise ValueError(f"--top is 1 or more; got {top}.")
    check_output(output, items)
    shown = [column.strip() for column in show.split(",")] if show else []
    path = database or Path(f"{str(items).rstrip('/')}.judged.db")
    if output is not None and not path.exists():
        raise ValueError(f"there are no answers yet: {path} is not there.")
    found = read_items(
        items,
        name=name,
        show=shown,
        image=image,
        images=images,
        use_features=not no_features,
        is_blind=blind,
    )
    with closing(JudgementStore(path, found.items, accept_changes=accept_changes)) as store:
        if output is not None:
            write_text(output, store.csv())
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
    say(f"\n{n:,} answer{'s' * (n != 1)} in {path}. The same command goes on where you were.")
    say(f"rankwise judge {items} -o comparisons.csv writes them for rankwise rank.")


def _tell(found: ItemSet, store: JudgementStore, address: Address) -> None:
    from rankwise.cli.session import note

    n = store.n_answers()
    say(f"{len(found.items):,} items, {n:,} answer{'s' * (n != 1)} so far in {store.path}")
    if found.feature_names:
        note(f"questions are chosen with the help of {', '.join(found.feature_names)}")
    say(f"Open {address.url}  (Ctrl-C stops, nothing is lost)")
    sys.stdout.flush()
