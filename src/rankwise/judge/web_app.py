"""The web application of `rankwise judge`: requests, access, and the server."""

from __future__ import annotations

import errno
import hmac
import ipaddress
import json
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import TypedDict, Unpack
from urllib.parse import quote, urlsplit

import uvicorn
from markdown_it import MarkdownIt
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rankwise.judge.item_set import read_items
from rankwise.judge.session import JudgingSession
from rankwise.judge.storage import AnswerStore, NotOpenError, Question
from rankwise.validation import check_option

MAX_BODY = 4096  # bytes
MAX_NAME = 60  # characters
MAX_QUESTION_ID = 2**63 - 1  # of SQLite
COOKIE = "rankwise_token"  # the port follows: browsers send cookies to all ports of a host
MAX_BRACKETS = 1_000  # "[" in a Markdown text; the parser takes about 60 µs for each
MAX_CACHED_TEXTS = 500  # Markdown texts whose HTML is cached
JOINERS = "\u200c\u200d"  # zero-width (non-)joiner, part of Persian names and of emoji
PAGES = ("judge.html", "judge.css", "judge.js")
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PageOptions(TypedDict, total=False):
    """Keyword arguments of `session_app` that do not depend on the address."""

    title: str
    is_markdown: bool
    closes_session: bool


class CellContent(TypedDict, total=False):
    """A cell of an item on the page: its column, and its text or HTML."""

    column: str
    text: str
    html: str


class ItemContent(TypedDict):
    """An item on the page; `image` is the number of its picture."""

    name: str
    cells: list[CellContent]
    image: int | None


class Address:
    """Address and access token of the page.

    Parameters
    ----------
    host : str, default="127.0.0.1"
        Name or number of the interface. Other interfaces than loopback need a token.
    port : int, default=8765
        Port; 0 selects any free port.
    token : str, optional
        Secret part of the address; generated if the interface is not loopback.

    Examples
    --------
    >>> from rankwise.judge.web_app import Address
    >>> address = Address(port=0)
    >>> address.url == f"http://127.0.0.1:{address.port}/"
    True
    >>> address.socket.close()
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 8765, token: str | None = None) -> None:
        if token is not None and len(token) < 8:
            raise ValueError(
                f"token= has {len(token)} characters, expected at least 8; leave it out to "
                "generate one."
            )
        is_local = host in ("127.0.0.1", "localhost", "::1")
        if token is None and not is_local:
            token = secrets.token_urlsafe(16)
        self.token = token
        self.socket = _listen_at(host, port)
        self.port = self.socket.getsockname()[1]  # of port 0: the one that was free
        self.shown_host = host
        if host in ("0.0.0.0", "::"):  # all addresses of this machine
            self.shown_host = socket.gethostname()
        self.hosts = {"localhost", host.lower(), self.shown_host.lower()}

    @property
    def url(self) -> str:
        """The address that judges open."""
        host = self.shown_host
        if ":" in host:  # IPv6
            host = f"[{host}]"
        url = f"http://{host}:{self.port}/"
        if self.token:
            url += f"?token={quote(self.token, safe='')}"
        return url


def serve(session: JudgingSession, address: Address, **options: Unpack[PageOptions]) -> None:
    """Serve until interrupted, or until the file of the answers is deleted or replaced.

    Parameters
    ----------
    session : JudgingSession
        Closed at the end.
    address : Address
        Address, already bound to its port.
    **options
        Keyword arguments of `session_app`.

    Raises
    ------
    OSError
        If the file was deleted or replaced. All answers are then in a CSV file in the same folder.
    """
    app = session_app(session, hosts=address.hosts, token=address.token, **options)
    config = uvicorn.Config(
        app,
        timeout_graceful_shutdown=2,
        log_level="error",
        access_log=False,
        server_header=False,
    )
    server = _Server(config, session.store)
    try:
        server.run(sockets=[address.socket])
    except KeyboardInterrupt:
        pass
    finally:
        session.close()
    if session.store.is_gone():
        raise OSError(session.store.rescue())


class _Server(uvicorn.Server):
    """A server that stops when answers can no longer be stored."""

    def __init__(self, config: uvicorn.Config, store: AnswerStore) -> None:
        super().__init__(config)
        self.store = store

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self.store.is_gone()


def create_app(
    items: str | Path,
    database: str | Path,
    *,
    name: str | None = None,
    show: Sequence[str] = (),
    image: str | None = None,
    markdown: bool = False,
    blind: bool = False,
    use_features: bool = True,
    title: str = "Which one is better?",
    goal: str = "top",
    top: int = 3,
    confidence: float = 0.9,
    hosts: Collection[str] = ("localhost",),
    token: str | None = None,
    accept_changes: bool = False,
    random_state: int | None = None,
) -> Starlette:
    r"""Create the application of ``rankwise judge`` for your own server.

    Use it to run the page behind uvicorn, gunicorn or another ASGI server, or to mount it in a
    larger application. The command ``rankwise judge`` does the rest by itself.

    Parameters
    ----------
    items : str or Path
        A table with one item a row (CSV, TSV, Parquet, Feather, JSON), a text file (.txt) with one
        item a line, or a folder with one picture or text for each item.
    database : str or Path
        SQLite file of the answers; created if it does not exist.
    name : str, optional
        Column that names the items; by default a column named id, name, item, title or key, else
        the first column with unique values.
    show : sequence of str, default=()
        Columns that judges see; all columns if empty.
    image : str, optional
        Column with the file names of pictures, relative to the folder of the table.
    markdown : bool, default=False
        Whether texts are shown as Markdown.
    blind : bool, default=False
        Whether names are hidden before an answer, and the board until the goal is settled.
    use_features : bool, default=True
        Whether the columns of the table help to choose the questions.
    title : str, default="Which one is better?"
        The question on the page.
    goal : {"top", "order"}, default="top"
        Whether to find the best items or the order of all items.
    top : int, default=3
        Number of best items to find.
    confidence : float, default=0.9
        Confidence from which on the page says that the goal is settled.
    hosts : collection of str, default=("localhost",)
        Names by which the page may be reached, without port. Numeric addresses are always allowed.
    token : str, optional
        Access token, which must be in the address of the first visit.
    accept_changes : bool, default=False
        Whether to continue although the items have changed.
    random_state : int or None, default=None
        Seed of the sides, and of the choice between equally useful pairs.

    Returns
    -------
    Starlette
        The application. It closes the database when the server stops.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from starlette.testclient import TestClient
    >>> from rankwise.judge import create_app
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "cheese.csv"
    ...     _ = table.write_text("name\nBrie\nComté\nFeta\n")
    ...     app = create_app(table, Path(folder) / "answers.db")
    ...     with TestClient(app, base_url="http://localhost") as client:
    ...         client.get("/api/board").json()["note"]
    'No answers yet.'
    """
    check_option("goal", goal, ("top", "order"))
    item_set = read_items(
        items, name=name, show=show, image=image, use_features=use_features, is_blind=blind
    )
    store = AnswerStore(database, item_set.items, accept_changes=accept_changes)
    session = JudgingSession(
        item_set,
        store,
        goal=goal,
        top=top,
        level=confidence,
        is_blind=blind,
        random_state=random_state,
    )
    return session_app(
        session,
        hosts=hosts,
        token=token,
        title=title,
        is_markdown=markdown,
        closes_session=True,
    )


def session_app(
    session: JudgingSession,
    *,
    hosts: Collection[str],
    token: str | None = None,
    title: str = "",
    is_markdown: bool = False,
    closes_session: bool = False,
) -> Starlette:
    """Create the application of a session.

    Parameters
    ----------
    session : JudgingSession
        Chooses the questions and stores the answers.
    hosts : collection of str
        Names by which the page may be reached, without port. A request for another name comes from
        a page that imitates this one (DNS rebinding) and is refused. Numeric addresses are always
        allowed, because no other page can have an address of this computer.
    token : str, optional
        Must be in the address of the first visit; then a cookie contains it.
    title : str, default=""
        The question on the page.
    is_markdown : bool, default=False
        Whether texts are shown as Markdown. HTML in a text is shown as text.
    closes_session : bool, default=False
        Whether session and storage are closed when the server stops.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        if closes_session:
            session.close()
            session.store.close()

    endpoints = _Endpoints(session, title, is_markdown)
    guard = Middleware(_Guard, hosts=frozenset(hosts), token=token)
    routes = [
        Route("/image/{number}", endpoints.image),
        Route("/api/board", endpoints.board),
        Route("/api/{action}", endpoints.act, methods=["POST"]),
        Route("/comparisons.csv", endpoints.comparisons),
        Route("/favicon.ico", lambda request: Response(status_code=204)),
        Route("/", endpoints.page),
        Route("/{name}", endpoints.page),
    ]
    return Starlette(routes=routes, middleware=[guard], lifespan=lifespan)


class _Guard(BaseHTTPMiddleware):
    """Refuses requests of other pages, and requests without the token."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], token: str | None) -> None:
        super().__init__(app)
        self.hosts = hosts
        self.token = token

    async def dispatch(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        reason_to_refuse = self._find_reason_to_refuse(request)
        if reason_to_refuse:
            response: Response = PlainTextResponse(reason_to_refuse, status_code=403)
        else:
            response = await call_next(request)
            token_in_url = request.query_params.get("token")
            if self.token and token_in_url:  # checked above; later requests send the cookie
                value = quote(token_in_url, safe="")  # a header takes Latin-1 characters only
                response.set_cookie(_cookie_name(request), value, httponly=True, samesite="strict")
        response.headers.update(SECURITY_HEADERS)
        return response

    def _find_reason_to_refuse(self, request: Request) -> str:
        """Return why a request is refused; an empty text if it is accepted."""
        address = request.headers.get("host", "")
        if not self._is_allowed_host(address):
            return "This page is not served under that name."
        if self.token and not self._has_token(request, self.token):
            return "Open the complete address that rankwise judge printed, including the token."
        if request.method == "POST" and not _is_from_this_page(request, address):
            return "Another site may not answer here."
        if request.method == "POST" and not _is_json(request):
            return "An answer is JSON."
        return ""

    def _has_token(self, request: Request, token: str) -> bool:
        """Whether the address or the cookie of a request has the token."""
        quoted_token = request.cookies.get(_cookie_name(request), "")
        token_in_url = request.query_params.get("token")
        if token_in_url:
            quoted_token = quote(token_in_url, safe="")
        expected = quote(token, safe="")
        return hmac.compare_digest(quoted_token.encode(), expected.encode())

    def _is_allowed_host(self, address: str) -> bool:
        try:
            url = urlsplit(f"//{address}")
            url.port  # noqa: B018, raises ValueError if the port is not a number
            host = url.hostname or ""
            if host in self.hosts:
                return True
            ipaddress.ip_address(host)  # raises ValueError if it is a name
        except ValueError:
            return False
        return True


def _is_from_this_page(request: Request, address: str) -> bool:
    """Whether the browser sends the request on behalf of this page."""
    origin = request.headers.get("origin")
    if origin is not None:
        _, _, address_of_origin = origin.partition("://")
        if address_of_origin != address:
            return False
    site = request.headers.get("sec-fetch-site", "same-origin")
    return site in ("same-origin", "none")


def _is_json(request: Request) -> bool:
    media_type, _, _ = request.headers.get("content-type", "").partition(";")
    return media_type == "application/json"


def _cookie_name(request: Request) -> str:
    """Name of the token's cookie, with the port: cookies are shared by all ports of a host."""
    address = request.headers.get("host", "")
    port = urlsplit(f"//{address}").port
    if port is None:
        return COOKIE
    return f"{COOKIE}_{port}"


class _Endpoints:
    def __init__(self, session: JudgingSession, title: str, is_markdown: bool) -> None:
        self.session = session
        self.title = title
        self.is_markdown = is_markdown
        markdown = MarkdownIt("js-default", {"linkify": False})
        self._render = lru_cache(maxsize=MAX_CACHED_TEXTS)(markdown.render)
        self.images = {str(position): item.image for position, item in enumerate(session.items)}

    async def page(self, request: Request) -> Response:
        name = request.path_params.get("name", "judge.html")
        if name not in PAGES:
            return PlainTextResponse("There is no such page.", status_code=404)
        return FileResponse(Path(__file__).with_name(name))

    async def image(self, request: Request) -> Response:
        file = self.images.get(request.path_params["number"])
        if file is None or not file.is_file():
            return PlainTextResponse("There is no such picture.", status_code=404)
        return FileResponse(file)

    async def board(self, request: Request) -> Response:
        board = await run_in_threadpool(self.session.board)
        return JSONResponse(board)

    async def comparisons(self, request: Request) -> Response:
        if self.session.is_hidden:
            return PlainTextResponse("Judging is blind until it is settled.", status_code=403)
        text = await run_in_threadpool(self.session.store.csv)
        headers = {"Content-Disposition": 'attachment; filename="comparisons.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)

    async def act(self, request: Request) -> Response:
        """Ask, store an answer or undo one, and reply with the open question."""
        try:
            body = await _read_object(request)
            return await run_in_threadpool(self._reply_to, request.path_params["action"], body)
        except ValueError as error:
            return JSONResponse({"message": str(error)}, status_code=400)
        except OSError as error:  # the disk is full, or the file is gone
            return JSONResponse({"message": str(error)}, status_code=507)

    def _reply_to(self, action: str, body: dict[str, object]) -> Response:
        judge = _read_judge(body)
        status = 200
        message = ""
        try:
            if action == "answer":
                answered_question = self.session.question(judge)
                question_id, outcome = _read_answer(body)
                question = self.session.answer(judge, question_id, outcome)
                message = self._confirmation(answered_question)
            elif action == "undo":
                question = self.session.undo(judge)
            else:  # "question": only ask
                question = self.session.question(judge)
        except NotOpenError as error:
            question = self.session.question(judge)
            status = 409
            message = str(error)
        first, second = self.session.positions(question)
        content = {
            "question": question.id,
            "first": self._item_content(first),
            "second": self._item_content(second),
            "message": message,
            "title": self.title,
            "progress": self.session.progress(judge),
        }
        return JSONResponse(content, status_code=status)

    def _confirmation(self, question: Question) -> str:
        """Confirm an answer; blind judges see the names now."""
        if not self.session.is_blind:
            return "Saved."
        first, second = self.session.positions(question)
        items = self.session.items
        return f"Saved. The items were {items[first].name} and {items[second].name}."

    def _item_content(self, position: int) -> ItemContent:
        """Return what the page shows of an item."""
        item = self.session.items[position]
        cells: list[CellContent] = []
        for column, text in item.cells:
            is_fast_to_parse = text.count("[") <= MAX_BRACKETS
            if self.is_markdown and is_fast_to_parse:
                cells.append({"column": column, "html": self._render(text)})
            else:
                cells.append({"column": column, "text": text})
        name = item.name
        if self.session.is_blind:
            name = "a picture"  # the alternative text of the image
        image_number = None
        if item.image is not None:
            image_number = position
        return {"name": name, "cells": cells, "image": image_number}


async def _read_object(request: Request) -> dict[str, object]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise ValueError(f"the request has more than {MAX_BODY} bytes.")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError("the request is not JSON.") from error
    if not isinstance(content, dict):
        raise ValueError("the request is not a JSON object.")
    return content


def _read_judge(body: dict[str, object]) -> str:
    name = body.get("judge")
    if not isinstance(name, str):
        name = ""
    name = " ".join(name.split()).strip(JOINERS)
    visible_name = name
    for joiner in JOINERS:
        visible_name = visible_name.replace(joiner, "")
    if not visible_name.strip() or len(name) > MAX_NAME or not visible_name.isprintable():
        raise ValueError(f"give a name of 1 to {MAX_NAME} printable characters; got {name[:80]!r}.")
    return name


def _read_answer(body: dict[str, object]) -> tuple[int, str]:
    question = body.get("question")
    outcome = body.get("outcome")
    if (
        not isinstance(question, int)
        or abs(question) > MAX_QUESTION_ID
        or not isinstance(outcome, str)
    ):
        raise ValueError('an answer has the number of a "question" and an "outcome".')
    return question, outcome


def _listen_at(host: str, port: int) -> socket.socket:
    family = socket.AF_INET
    if ":" in host:
        family = socket.AF_INET6
    # With IPPROTO_TCP asyncio disables Nagle's algorithm, which delays replies by 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(128)
    except (OSError, OverflowError) as error:
        bound.close()
        is_in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        if is_in_use:
            raise ValueError(
                f"port {port} is in use, perhaps by another rankwise judge; choose another port, "
                "or port=0 for any free port."
            ) from error
        raise ValueError(f"cannot serve at {host}:{port}: {error}") from error
    return bound
