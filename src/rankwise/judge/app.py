"""The web application of `rankwise judge`: who may ask what, and how answers come in."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Collection
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from rankwise.judge.items import Item
from rankwise.judge.session import JudgingSession
from rankwise.judge.storage import NotOpenError, Question

LONGEST_BODY = 4096
LONGEST_NAME = 60
COOKIE = "rankwise_token"
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
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


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
        from a page that wants to be taken for ours, and is refused.
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
        Route("/", endpoints.page("judge.html")),
        Route("/judge.css", endpoints.page("judge.css")),
        Route("/judge.js", endpoints.page("judge.js")),
        Route("/image/{code:int}", endpoints.image),
        Route("/api/board", endpoints.board),
        Route("/api/question", endpoints.question, methods=["POST"]),
        Route("/api/answer", endpoints.answer, methods=["POST"]),
        Route("/api/undo", endpoints.undo, methods=["POST"]),
        Route("/comparisons.csv", endpoints.comparisons),
        Route("/favicon.ico", lambda request: Response(status_code=204)),
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
            given = request.query_params.get("token")
            if self.token and given:  # checked above
                response.set_cookie(COOKIE, given, httponly=True, samesite="strict")
        response.headers.update(SAFETY)
        return response

    def _refusal(self, request: Request) -> str:
        address = urlsplit(f"//{request.headers.get('host', '')}")
        if (address.hostname or "") not in self.hosts:
            return "This page is not served under that name."
        if self.token:
            given = request.query_params.get("token") or request.cookies.get(COOKIE) or ""
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return "Open the whole address that rankwise judge printed, token included."
        if request.method == "POST":
            origin = request.headers.get("origin")
            if origin is not None and urlsplit(origin).netloc != address.netloc:
                return "Another site may not answer here."
            if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                return "Another site may not answer here."
            if request.headers.get("content-type", "").split(";")[0] != "application/json":
                return "An answer is JSON."
        return ""


class _Endpoints:
    def __init__(self, session: JudgingSession, title: str, is_markdown: bool) -> None:
        self.session, self.title = session, title
        self.markdown = MarkdownIt("js-default", {"linkify": False}) if is_markdown else None
        self.by_name = {item.name: item for item in session.items}

    def page(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        text = files("rankwise.judge").joinpath(name).read_text("utf-8")
        kind = TYPES[name.rpartition(".")[2]]

        async def send(request: Request) -> Response:
            return Response(text, media_type=kind)

        return send

    async def image(self, request: Request) -> Response:
        code = request.path_params["code"]
        items = self.session.items
        file = items[code].image if code < len(items) else None
        if file is None or not file.is_file():
            return PlainTextResponse("There is no such picture.", status_code=404)
        return FileResponse(file)

    async def question(self, request: Request) -> Response:
        return await self._answered(request, lambda body, judge: self.session.question(judge))

    async def answer(self, request: Request) -> Response:
        def keep(body: dict[str, Any], judge: str) -> Question:
            number, outcome = body.get("question"), body.get("outcome")
            if not isinstance(number, int) or not isinstance(outcome, str):
                raise ValueError('an answer has a "question" and an "outcome".')
            return self.session.answer(judge, number, outcome)

        return await self._answered(request, keep)

    async def undo(self, request: Request) -> Response:
        return await self._answered(request, lambda body, judge: self.session.undo(judge))

    async def board(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.session.standing))

    async def comparisons(self, request: Request) -> Response:
        text = await run_in_threadpool(self.session.store.csv)
        headers = {"Content-Disposition": 'attachment; filename="comparisons.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)

    async def _answered(
        self, request: Request, act: Callable[[dict[str, Any], str], Question]
    ) -> Response:
        """Do it in a thread, and reply with the question that is open then."""
        try:
            body = _object(await request.body())
            judge = _judge(body)
            return await run_in_threadpool(self._done, act, body, judge)
        except ValueError as error:
            return JSONResponse({"message": str(error)}, status_code=400)
        except OSError as error:  # the disk is full, or the file is gone
            return JSONResponse({"message": str(error)}, status_code=507)

    def _done(
        self, act: Callable[[dict[str, Any], str], Question], body: dict[str, Any], judge: str
    ) -> Response:
        try:
            question, status, message = act(body, judge), 200, ""
        except NotOpenError as error:
            question, status, message = self.session.question(judge), 409, str(error)
        return JSONResponse({**self._shown(question), "message": message}, status_code=status)

    def _shown(self, question: Question) -> dict[str, Any]:
        names = self.session.names_of(question)
        first, second = (self._content(self.by_name[name]) for name in names)
        return {
            "question": question.id,
            "first": first,
            "second": second,
            "title": self.title,
            "progress": self.session.progress(question.judge),
        }

    def _content(self, item: Item) -> dict[str, Any]:
        cells = []
        for cell in item.cells:
            kind = "html" if self.markdown else "text"
            text = self.markdown.render(cell.text) if self.markdown else cell.text
            cells.append({"column": cell.column, kind: text})
        code = self.session.items.index(item) if item.image is not None else None
        return {"name": item.name, "cells": cells, "image": code}


def _object(body: bytes) -> dict[str, Any]:
    if len(body) > LONGEST_BODY:
        raise ValueError(f"more than {LONGEST_BODY} bytes.")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError("this is not JSON.") from error
    if not isinstance(found, dict):
        raise ValueError("an object is expected.")
    return found


def _judge(body: dict[str, Any]) -> str:
    name = body.get("judge")
    name = " ".join(name.split()) if isinstance(name, str) else ""
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(f"give a name of 1 to {LONGEST_NAME} characters.")
    return name
