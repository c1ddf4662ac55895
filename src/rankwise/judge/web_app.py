"""The web application of `rankwise judge`: who may ask what, how answers come in, where it runs."""

from __future__ import annotations

import errno
import hmac
import ipaddress
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection
from functools import lru_cache
from pathlib import Path
from typing import Any
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

from rankwise.judge.session import JudgingSession
from rankwise.judge.storage import NotOpenError

LONGEST_BODY = 4096
LONGEST_NAME = 60
LARGEST_NUMBER = 2**63 - 1  # that SQLite can hold
COOKIE = "rankwise_token"  # the port follows: browsers send cookies to all ports of a host
MOST_BRACKETS = 1_000  # "[" in a text; the Markdown parser takes about 60 µs for one
RENDERED_TEXTS = 500  # Markdown texts whose HTML is cached
JOINERS = "\u200c\u200d"  # zero-width (non-)joiner, part of Persian names and of emoji
PAGES = ("judge.html", "judge.css", "judge.js")
SAFETY = {
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


class Address:
    """Where the page is served, and who may reach it.

    Parameters
    ----------
    host : str
        Loopback by default. Another one needs a token.
    port : int
        0 takes any free one.
    token : str, optional
        Part of the address that judges open; made up if the host is not loopback.

    Examples
    --------
    >>> address = Address(port=0)
    >>> address.url == f"http://127.0.0.1:{address.port}/"
    True
    >>> address.socket.close()
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 8765, token: str | None = None) -> None:
        if token is not None and len(token) < 8:
            raise ValueError("a token has at least 8 characters; leave it out to get a good one.")
        is_local = host in ("127.0.0.1", "localhost", "::1")
        self.token = token or (None if is_local else secrets.token_urlsafe(16))
        self.socket = _bound(host, port)
        self.port = self.socket.getsockname()[1]
        self.shown_host = socket.gethostname() if host in ("0.0.0.0", "::") else host
        self.hosts = {"localhost", host.lower(), self.shown_host.lower()}

    @property
    def url(self) -> str:
        """What judges open."""
        host = f"[{self.shown_host}]" if ":" in self.shown_host else self.shown_host
        query = f"?token={quote(self.token, safe='')}" if self.token else ""
        return f"http://{host}:{self.port}/{query}"


def serve(session: JudgingSession, address: Address, **options: Any) -> None:
    """Serve until interrupted, or until the file of the answers is gone.

    Parameters
    ----------
    session : JudgingSession
        Closed at the end.
    address : Address
        Bound already, so that a port in use is known before.
    options
        Of `rankwise.judge.web_app.judging_app`.

    Raises
    ------
    OSError
        If the file was deleted or replaced meanwhile. All answers are then in a CSV file beside it.

    Examples
    --------
    >>> from rankwise.judge import Address, Item, ItemSet, AnswerStore, JudgingSession, serve
    >>> items = ItemSet([Item(name, ()) for name in ("tea", "coffee", "milk")])
    >>> store = AnswerStore("answers.db", items.items)  # doctest: +SKIP
    >>> serve(JudgingSession(items, store), Address())  # doctest: +SKIP
    """
    app = judging_app(session, hosts=address.hosts, token=address.token, **options)
    quiet: Any = {"log_level": "error", "access_log": False, "server_header": False}
    config = uvicorn.Config(app, timeout_graceful_shutdown=2, **quiet)
    server = _Server(config)
    server.store = session.store
    try:
        server.run(sockets=[address.socket])
    except KeyboardInterrupt:
        pass
    finally:
        session.close()
    if session.store.is_gone():
        raise OSError(session.store.rescue())


class _Server(uvicorn.Server):
    """Stops by itself when answers could no longer be kept."""

    store: Any

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self.store.is_gone()


def judging_app(
    session: JudgingSession,
    *,
    hosts: Collection[str],
    token: str | None = None,
    title: str = "",
    is_markdown: bool = False,
) -> Starlette:
    """Make the application.

    Parameters
    ----------
    session : JudgingSession
        Who is asked what.
    hosts : collection of str
        Names by which the page may be reached, without port. A request for another name comes
        from a page that wants to be taken for ours, and is refused. Numeric addresses are all
        let in: no other page can have one of ours.
    token : str, optional
        Must be in the address of the first visit; a cookie keeps it.
    title : str
        What the page is about.
    is_markdown : bool
        Show text as Markdown. HTML in it stays text.
    """
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
    return Starlette(routes=routes, middleware=[guard])


class _Guard(BaseHTTPMiddleware):
    """Lets in only our own page, and only those who have the token."""

    def __init__(self, app: Any, hosts: frozenset[str], token: str | None) -> None:
        super().__init__(app)
        self.hosts, self.token = hosts, token

    async def dispatch(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        reason = self._refusal(request)
        if reason:
            response: Response = PlainTextResponse(reason, status_code=403)
        else:
            response = await call_next(request)
            sent = request.query_params.get("token")
            if self.token and sent:  # checked above
                value = quote(sent, safe="")  # a header takes Latin-1 characters only
                response.set_cookie(_cookie_name(request), value, httponly=True, samesite="strict")
        response.headers.update(SAFETY)
        return response

    def _refusal(self, request: Request) -> str:
        address = request.headers.get("host", "")
        if not self._is_ours(address):
            return "This page is not served under that name."
        if self.token:
            sent = request.query_params.get("token")
            cookie = request.cookies.get(_cookie_name(request), "")
            quoted = quote(sent, safe="") if sent else cookie
            expected = quote(self.token, safe="")
            if not hmac.compare_digest(quoted.encode(), expected.encode()):
                return "Open the whole address that rankwise judge printed, token included."
        if request.method == "POST":
            origin = request.headers.get("origin")
            if origin is not None and origin.partition("://")[2] != address:
                return "Another site may not answer here."
            if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                return "Another site may not answer here."
            if request.headers.get("content-type", "").split(";")[0] != "application/json":
                return "An answer is JSON."
        return ""

    def _is_ours(self, address: str) -> bool:
        try:
            parts = urlsplit(f"//{address}")
            parts.port  # noqa: B018, raises ValueError if the port is not a number
            host = parts.hostname or ""
            return host in self.hosts or bool(ipaddress.ip_address(host))
        except ValueError:
            return False


def _cookie_name(request: Request) -> str:
    """Name of the token's cookie; it has the port, or servers of one host would share a cookie."""
    port = urlsplit(f"//{request.headers.get('host', '')}").port
    return COOKIE if port is None else f"{COOKIE}_{port}"


class _Endpoints:
    def __init__(self, session: JudgingSession, title: str, is_markdown: bool) -> None:
        self.session, self.title = session, title
        self.is_markdown = is_markdown
        markdown = MarkdownIt("js-default", {"linkify": False})
        self._render = lru_cache(maxsize=RENDERED_TEXTS)(markdown.render)
        self.images = {str(k): item.image for k, item in enumerate(session.items)}

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
        return JSONResponse(await run_in_threadpool(self.session.standing))

    async def comparisons(self, request: Request) -> Response:
        if self.session.is_hidden:
            return PlainTextResponse("Judging is blind until it is settled.", status_code=403)
        text = await run_in_threadpool(self.session.store.csv)
        headers = {"Content-Disposition": 'attachment; filename="comparisons.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)

    async def act(self, request: Request) -> Response:
        """Ask, keep an answer or take it back, and reply with the question that is open then."""
        try:
            body = await _read_object(request)
            return await run_in_threadpool(self._act, request.path_params["action"], body)
        except ValueError as error:
            return JSONResponse({"message": str(error)}, status_code=400)
        except OSError as error:  # the disk is full, or the file is gone
            return JSONResponse({"message": str(error)}, status_code=507)

    def _act(self, action: str, body: dict[str, Any]) -> Response:
        judge, status, message = _judge(body), 200, ""
        try:
            if action == "answer":
                places = self.session.places(self.session.question(judge))
                question = self.session.answer(judge, *_answer(body))
                names = " and ".join(self.session.items[place].name for place in places)
                message = f"Kept. That was {names}." if self.session.is_blind else "Kept."
            elif action == "undo":
                question = self.session.undo(judge)
            else:
                question = self.session.question(judge)
        except NotOpenError as error:
            question, status, message = self.session.question(judge), 409, str(error)
        first, second = (self._content(place) for place in self.session.places(question))
        content = {"question": question.id, "first": first, "second": second, "message": message}
        content |= {"title": self.title, "progress": self.session.progress(judge)}
        return JSONResponse(content, status_code=status)

    def _content(self, place: int) -> dict[str, Any]:
        item = self.session.items[place]
        cells = []
        for column, text in item.cells:
            if self.is_markdown and text.count("[") <= MOST_BRACKETS:
                cells.append({"column": column, "html": self._render(text)})
            else:
                cells.append({"column": column, "text": text})
        name = "a picture" if self.session.is_blind else item.name
        return {"name": name, "cells": cells, "image": place if item.image else None}


async def _read_object(request: Request) -> dict[str, Any]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_BODY:
            raise ValueError(f"more than {LONGEST_BODY} bytes.")
    try:
        read = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError("this is not JSON.") from error
    if not isinstance(read, dict):
        raise ValueError("an object is expected.")
    return read


def _judge(body: dict[str, Any]) -> str:
    name = body.get("judge")
    name = " ".join(name.split()).strip(JOINERS) if isinstance(name, str) else ""
    visible = name.translate(dict.fromkeys(map(ord, JOINERS)))
    if not visible.strip() or len(name) > LONGEST_NAME or not visible.isprintable():
        raise ValueError(
            f"give a name of 1 to {LONGEST_NAME} printable characters; got {name[:80]!r}."
        )
    return name


def _answer(body: dict[str, Any]) -> tuple[int, str]:
    number, outcome = body.get("question"), body.get("outcome")
    if not isinstance(number, int) or abs(number) > LARGEST_NUMBER or not isinstance(outcome, str):
        raise ValueError('an answer has the number of a "question" and an "outcome".')
    return number, outcome


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once, without the 40 ms of Nagle's rule, only if TCP is named here
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(128)
    except (OSError, OverflowError) as error:
        bound.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise ValueError(
                f"port {port} is in use, perhaps by another rankwise judge; take another, port=0 "
                "for any that is free."
            ) from error
        raise ValueError(f"cannot serve at {host}:{port}: {error}") from error
    return bound
