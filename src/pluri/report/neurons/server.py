"""A server of the page about a simulation that runs, for this computer alone."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pluri.report.local_server import LocalHandler, LocalServer, Refusal
from pluri.report.neurons.page import film_page, live_page
from pluri.report.neurons.session import LiveSession

#: What the page may ask for, and the kinds of what comes with it.
ACTIONS: dict[str, dict[str, tuple[type, ...]]] = {
    "start": {},
    "pause": {},
    "reset": {},
    "step": {"duration": (int, float)},
    "speed": {"value": (int, float)},
    "widget": {"path": (str,), "value": (int, float, str, type(None))},
    "command": {"text": (str,)},
}


class NeuronServer(LocalServer):
    """Serve a simulation.

    Parameters
    ----------
    session : LiveSession
    port : int, default=0
        0 for any that is free.

    Attributes
    ----------
    token : str
        What every address must carry.
    url : str
        Address of the page, with the token.
    """

    def __init__(self, session: LiveSession, port: int = 0) -> None:
        self.session = session
        super().__init__(live_page(session.title, session.layout), NeuronHandler, port)


class NeuronHandler(LocalHandler):
    """Answers one request."""

    server: NeuronServer
    program, taken = "pluri neurons", "commands are"

    def get(self, path: str, query: dict[str, list[str]]) -> None:
        """What is new since the page last asked, or the page as a film."""
        session = self.server.session
        if path == "/state":
            self._send_json(session.state(_number(query, "after"), _number(query, "epoch"), _number(query, "version")))
        elif path == "/film":
            layout, film = session.film()
            page = film_page(session.title, layout, film).encode("utf-8", "replace")
            self._send(HTTPStatus.OK, page, "text/html; charset=utf-8", {"Content-Disposition": ATTACHED})
        else:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")

    def change(self, path: str) -> None:
        """Start, pause, step, reset, the speed, a widget, or a command."""
        if path != "/act":
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")
        content = self._content()
        action = content.pop("action", None)
        if not isinstance(action, str) or action not in ACTIONS:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"action must be one of {', '.join(ACTIONS)}")
        _check(content, ACTIONS[action])
        try:
            self.server.session.act(action, **content)
        except ValueError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, " ".join(str(error).split())) from error
        self._send_json({"done": True})


ATTACHED = 'attachment; filename="simulation.html"'


def _number(query: dict[str, list[str]], name: str) -> int:
    text = query.get(name, ["-1"])[-1]
    return int(text) if text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 16 else -1


def _check(content: dict[str, Any], kinds: dict[str, tuple[type, ...]]) -> None:
    for name, value in content.items():
        if name not in kinds or isinstance(value, bool) or not isinstance(value, kinds[name]):
            raise Refusal(HTTPStatus.BAD_REQUEST, f"{name} is not what this action takes")
    missing = [name for name, allowed in kinds.items() if name not in content and type(None) not in allowed]
    if missing:
        raise Refusal(HTTPStatus.BAD_REQUEST, f"{missing[0]} must be given")
