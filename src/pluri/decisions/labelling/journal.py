"""The file of labels: one line of JSON for each answer, added at the end and on the disk before anything else happens.

Nothing in it is ever changed: taking a label back is another line. A process that is killed loses nothing but, at
worst, half of the line that it was writing, which was not confirmed to anybody; it is cut off when the file is opened
again. The first line says which items the labels are of, and which classes there are.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO, Any, NamedTuple

from pluri.validation import check_writable

FORMAT = "pluri labels 1"


class Answer(NamedTuple):
    """A label of a row, or None if it was skipped."""

    row: int
    label: str | None


class LabelJournal:
    """Labels in a file.

    Parameters
    ----------
    path : path
        File to go on with, if it exists, or to make.
    pool : str
        Digest of the items: a file of other items is refused.
    classes : list of str
        A file of other classes is refused, unless these are all of its classes and more.

    Attributes
    ----------
    answers : list of Answer
        In the order in which they were given, without those that were taken back.
    curve : list of (int, float, float)
        Number of labels, and what a model of them scored: mean and standard error.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pluri.decisions.labelling.journal import LabelJournal
    >>> place = pathlib.Path(tempfile.mkdtemp(), "labels.jsonl")
    >>> journal = LabelJournal(place, "a digest", ["spam", "ham"])
    >>> journal.add(3, "spam"), journal.add(5, None)
    (None, None)
    >>> journal.close()
    >>> again = LabelJournal(place, "a digest", ["spam", "ham"])
    >>> again.labels()
    {3: 'spam'}
    >>> again.close()
    """

    def __init__(self, path: str | os.PathLike[str], pool: str, classes: list[str]) -> None:
        self.path = Path(path)
        self.answers: list[Answer] = []
        self.curve: list[tuple[int, float, float]] = []
        check_writable(path, "labels")
        self._file = open(self.path, "ab")  # noqa: SIM115 - open as long as the journal is
        try:
            self._go_on(pool, list(classes))
        except BaseException:
            self._file.close()
            raise

    def _go_on(self, pool: str, classes: list[str]) -> None:
        _lock(self._file, self.path)
        lines = self._whole_lines()
        begun = bool(lines)
        if begun:
            self._check_head(lines[0], pool, classes)
            for number, line in enumerate(lines[1:], start=2):
                self._replay(line, number)
        if not begun or lines[0].get("classes") != classes:
            self._append({"format": FORMAT, "pool": pool, "classes": classes})

    def labels(self) -> dict[int, str]:
        """The labels of rows."""
        return {answer.row: answer.label for answer in self.answers if answer.label is not None}

    def add(self, row: int, label: str | None) -> None:
        """Write a label, or that a row was skipped; it is on the disk when this returns."""
        self._append({"row": row, "label": label} if label is not None else {"row": row, "skip": True})
        self.answers.append(Answer(row, label))

    def take_back(self) -> Answer | None:
        """Take the last answer back; gives what it was, or None if there is none."""
        if not self.answers:
            return None
        self._append({"undo": self.answers[-1].row})
        return self.answers.pop()

    def add_point(self, n_labels: int, mean: float, error: float) -> None:
        """Write a point of the learning curve."""
        self._append({"n_labels": n_labels, "mean": mean, "error": error})
        self.curve.append((n_labels, mean, error))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, content: dict[str, Any]) -> None:
        self._file.write(json.dumps(content).encode("utf-8") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _whole_lines(self) -> list[dict[str, Any]]:
        """What is in the file; half a line at its end is cut off."""
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        try:
            lines = [json.loads(line) for line in content[:end].splitlines()]
            good = all(isinstance(line, dict) for line in lines) and (not lines or lines[0].get("format") == FORMAT)
        except ValueError:
            good = False
        # Something else that has no end of line is not half a line of ours.
        if not good or (not end and content and not b'{"format": "pluri labels'.startswith(content[:24])):
            raise ValueError(f"labels must be a file of labels, got {os.fspath(self.path)!r}, which is another")
        if end < len(content):
            with open(self.path, "r+b") as file:
                file.truncate(end)
        return lines

    def _check_head(self, head: dict[str, Any], pool: str, classes: list[str]) -> None:
        if head.get("pool") != pool:
            raise ValueError(
                f"labels must be of these items, got {os.fspath(self.path)!r}, whose labels are of others: name "
                "another file, or give the items as they were"
            )
        missing = [name for name in head.get("classes", []) if name not in classes]
        if missing:
            raise ValueError(
                f"classes must have all of those in {os.fspath(self.path)!r}, got none named {', '.join(missing)}"
            )

    def _replay(self, line: dict[str, Any], number: int) -> None:
        try:
            if "undo" in line:
                self.answers.pop()
            elif "n_labels" in line:
                self.curve.append((int(line["n_labels"]), float(line["mean"]), float(line["error"])))
            elif "row" in line:
                label = None if line.get("skip") else str(line["label"])
                self.answers.append(Answer(int(line["row"]), label))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"line {number} of {os.fspath(self.path)!r} must be an answer, got {line!r}") from error


def _lock(file: IO[bytes], path: Path) -> None:
    """Refuse a file that another process is writing; a lock ends with the process that has it, however that ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ValueError(f"labels must be a file of one process, got {os.fspath(path)!r}, which is in use") from error
