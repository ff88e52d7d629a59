"""A server of one page: for this computer, this user and this page alone.

It listens on 127.0.0.1 only. Every address carries a random token, which only the person who started it has seen; a
request whose ``Host`` is another name (a name that was bent to this address), or a change whose ``Origin`` is another
page, is refused, so that no web site that is open in the same browser can read or change anything.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pluri.report.markup import allowed_in

LOOPBACK = "127.0.0.1"
#: Bytes that a request may bring.
MOST_BYTES = 10_000
#: Sent with everything, beside a policy of contents.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class LocalServer(ThreadingHTTPServer):
    """Serve a page to this computer.

    Parameters
    ----------
    page : str
        What is at the address of the server.
    handler : type
        Answers the requests.
    port : int, default=0
        0 for any that is free.

    Attributes
    ----------
    token : str
        What every address must carry.
    url : str
        Address of the page, with the token.
    """

    daemon_threads = True
    # A port that was just left may be taken again; on Windows that would let others take one that is in use.
    allow_reuse_address = True

    def __init__(self, page: str, handler: type[LocalHandler], port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        self.page = page.encode("utf-8", "replace")
        # The policy that is written in the page; that no other page may frame it can be said in a header only.
        written = page.split('Content-Security-Policy" content="')[1].split('"')[0]
        self.policy = f"{written}; frame-ancestors 'none'"
        super().__init__((LOOPBACK, port), handler)

    def server_bind(self) -> None:
        """Bind without asking the network for the name of this computer."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    @property
    def hosts(self) -> tuple[str, str]:
        """What a browser calls this server."""
        return f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.hosts[0]}/?token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no error."""


class Refusal(Exception):
    """Why a request is not answered."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class LocalHandler(BaseHTTPRequestHandler):
    """Answers one request; a subclass says what is asked for (`get`) and what is changed (`change`)."""

    server: Any
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "pluri", ""
    timeout = 60
    #: In refusals: who printed the token, and what is taken from the page.
    program, taken = "pluri", "changes are"

    def get(self, path: str, query: dict[str, list[str]]) -> None:
        """Answer what was asked for at a path."""
        raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")

    def change(self, path: str) -> None:
        """Do what was asked for at a path."""
        raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")

    def do_GET(self) -> None:
        """The page, or what it asks for."""
        try:
            path, query = self._checked_path(changes=False)
            if path == "/":
                self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
            else:
                self.get(path, query)
        except Refusal as refusal:
            self._refuse(refusal)

    def do_POST(self) -> None:
        """A change."""
        try:
            self.change(self._checked_path(changes=True)[0])
        except Refusal as refusal:
            self._refuse(refusal)

    def _checked_path(self, *, changes: bool) -> tuple[str, dict[str, list[str]]]:
        """The path that is asked for, by one who may ask, and what comes after the question mark."""
        hosts = self.server.hosts
        if self.headers.get_all("Host", []) not in ([hosts[0]], [hosts[1]]):
            raise Refusal(HTTPStatus.FORBIDDEN, "this server answers to its own name only")
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        given = query.get("token", [""])[-1]
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.server.token.encode()):
            raise Refusal(HTTPStatus.FORBIDDEN, f"the address must have the token that {self.program} printed")
        if changes or self.headers.get("Origin") is not None:
            origins = [f"http://{host}" for host in hosts]
            ours = self.headers.get_all("Origin", []) in ([origins[0]], [origins[1]])
            if not ours or self.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
                raise Refusal(HTTPStatus.FORBIDDEN, f"{self.taken} taken from this page only")
        return parts.path, query

    def _content(self) -> dict[str, Any]:
        """What was sent, as JSON."""
        if self.headers.get("Content-Type", "").split(";")[0].strip() != "application/json":
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "only JSON is taken")
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > MOST_BYTES:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_BYTES} bytes are taken")
        try:
            content = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise Refusal(HTTPStatus.BAD_REQUEST, "an object of JSON is taken")
        return content

    def _refuse(self, refusal: Refusal) -> None:
        self.close_connection = True  # what was not read must not be taken for the next request
        self._send_json({"error": refusal.sentence}, refusal.status)

    def _send_json(self, content: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        text = json.dumps(allowed_in(content), allow_nan=False).encode("utf-8")
        self._send(status, text, "application/json; charset=utf-8")

    def _send(self, status: HTTPStatus, content: bytes, kind: str, more: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        policy = self.server.policy if kind.startswith("text/html") else "default-src 'none'"
        own = {"Content-Type": kind, "Content-Length": str(len(content)), "Content-Security-Policy": policy}
        for name, value in {**own, **HEADERS, **(more or {})}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: addresses carry the token."""


def serve_in_background(server: LocalServer) -> threading.Thread:
    """Serve in a thread, for tests and notebooks; ``server.shutdown()`` ends it."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    return thread
