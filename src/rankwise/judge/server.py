"""Serve the page until somebody stops it."""

from __future__ import annotations

import errno
import ipaddress
import secrets
import socket
from typing import Any

import uvicorn

from rankwise.judge.app import judging_app
from rankwise.judge.session import JudgingSession

LOOPBACK = ("127.0.0.1", "localhost", "::1")


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
    names : tuple of str
        Further names of this computer, such as that of its network.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8765,
        token: str | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        is_local = host in LOOPBACK
        if token is not None and len(token) < 8:
            raise ValueError("a token has at least 8 characters; leave it out to get a good one.")
        self.token = token or (None if is_local else secrets.token_urlsafe(16))
        self.socket = _bound(host, port)
        self.port = self.socket.getsockname()[1]
        self.hosts = {*LOOPBACK, host, *names}
        self.shown_host = host
        if host in ("0.0.0.0", "::"):
            own = socket.gethostname()
            self.hosts |= {own, own.lower(), *_own_addresses()}
            self.shown_host = next(iter(sorted(_own_addresses())), own)

    @property
    def url(self) -> str:
        """What judges open."""
        host = f"[{self.shown_host}]" if ":" in self.shown_host else self.shown_host
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")


def serve(session: JudgingSession, address: Address, **options: Any) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    session : JudgingSession
        Closed at the end.
    address : Address
        Bound already, so that a port in use is known before.
    options
        Of `rankwise.judge.app.judging_app`.
    """
    app = judging_app(session, hosts=address.hosts, token=address.token, **options)
    config = uvicorn.Config(app, log_level="error", access_log=False, server_header=False)
    try:
        uvicorn.Server(config).run(sockets=[address.socket])
    except KeyboardInterrupt:
        pass
    finally:
        session.close()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once, without the 40 ms of Nagle's rule, only if TCP is named here
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(128)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise ValueError(
                f"port {port} is in use, perhaps by another rankwise judge; take another, port=0 "
                "for any that is free."
            ) from error
        raise ValueError(f"cannot serve at {host}:{port}: {error.strerror or error}.") from error
    except OverflowError as error:
        bound.close()
        raise ValueError(f"a port is a number from 0 to 65535; got {port}.") from error
    return bound


def _own_addresses() -> set[str]:
    """Addresses of this computer in its networks, loopback aside."""
    try:
        found = socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return set()
    hosts = {str(entry[4][0]) for entry in found}
    return {host for host in hosts if not ipaddress.ip_address(host.split("%")[0]).is_loopback}
