"""A server of the page for labels."""

from __future__ import annotations

from http import HTTPStatus

from pluri.decisions.labelling.session import LabelSession
from pluri.report.labelling.page import labelling_page
from pluri.report.local_server import LocalHandler, LocalServer, Refusal


class LabelServer(LocalServer):
    """Serve a session of labelling.

    Parameters
    ----------
    session : LabelSession
    title : str
        Heading of the page.
    port : int, default=0
        0 for any that is free.

    Attributes
    ----------
    token : str
        What every address must carry.
    url : str
        Address of the page, with the token.
    """

    def __init__(self, session: LabelSession, title: str, port: int = 0) -> None:
        self.session = session
        super().__init__(labelling_page(title, session.classes, str(session.journal.path)), LabelHandler, port)


class LabelHandler(LocalHandler):
    """Answers one request."""

    server: LabelServer
    program, taken = "pluri label", "labels are"

    def get(self, path: str, query: dict[str, list[str]]) -> None:
        """The state of the session."""
        if path != "/state":
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")
        self._send_json(self.server.session.state())

    def change(self, path: str) -> None:
        """A label, a skipped item, or one that is taken back."""
        session = self.server.session
        if path not in ("/label", "/skip", "/undo"):
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")
        content = self._content()
        try:
            if path == "/undo":
                self._send_json(session.take_back())
                return
            row, label = content.get("row"), content.get("label") if path == "/label" else None
            if type(row) is not int or (path == "/label" and not isinstance(label, str)):
                raise Refusal(HTTPStatus.BAD_REQUEST, "row must be an integer and label a text")
            self._send_json(session.answer(row, label))
        except LookupError:  # another window was faster: here is what is asked for now
            self._send_json(session.state(), HTTPStatus.CONFLICT)
        except ValueError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, str(error)) from error
        except ConnectionError:
            raise
        except OSError as error:
            sentence = f"the label could not be written: {error.strerror}"
            raise Refusal(HTTPStatus.INSUFFICIENT_STORAGE, sentence) from error
