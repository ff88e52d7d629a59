"""Files under their latest names: a file that was renamed keeps its history.

Commits are followed from the oldest to the newest. A name leads to a file (a number); renaming gives the file a new
name and keeps the old one as an alias, because commits of parallel branches may still use it. A file that is added
under a name that another has left is a new file; one that comes back after it was deleted is the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from pluri.cochange.repository.git_log import Change


class FileIdentities:
    """Numbers for files, whatever they are called at the time.

    Examples
    --------
    >>> from pluri.cochange.repository.git_log import Change
    >>> from pluri.cochange.repository.identities import FileIdentities
    >>> files = FileIdentities()
    >>> files.apply([Change("A", "old.py"), Change("A", "other.py")])
    [0, 1]
    >>> files.apply([Change("R", "new.py", "old.py")])
    [0]
    >>> files.names(), files.alive()
    (['new.py', 'other.py'], [True, True])
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._alive: list[bool] = []
        self._merged: dict[int, int] = {}

    def apply(self, changes: Iterable[Change]) -> list[int]:
        """Follow the changes of one commit; return the files that it touched, each once."""
        changes = list(changes)
        moved = [(change.path, self._number(change.old)) for change in changes if change.kind == "R" and change.old]
        sources = {change.old for change in changes if change.kind == "R"}
        touched = [self._rename(path, number, sources) for path, number in moved]
        for change in changes:
            if change.kind == "R" and change.old:
                continue
            number = self._added(change.path) if change.kind in "AC" else self._number(change.path)
            self._alive[number] = change.kind != "D"
            touched.append(number)
        return list(dict.fromkeys(self._root(number) for number in touched))

    def names(self) -> list[str]:
        """The latest name of each file; of files that became one, the same."""
        return [self._names[self._root(number)] for number in range(len(self._names))]

    def alive(self) -> list[bool]:
        """Whether each file still exists."""
        return [self._alive[self._root(number)] for number in range(len(self._names))]

    def root(self, number: int) -> int:
        """The file that a file has become: two are one when a rename ends at a name that was taken before."""
        return self._root(number)

    def _number(self, path: str) -> int:
        if path not in self._numbers:
            self._numbers[path] = len(self._names)
            self._names.append(path)
            self._alive.append(True)
        return self._root(self._numbers[path])

    def _added(self, path: str) -> int:
        number = self._number(path)
        if self._names[number] != path:  # only an alias: that file has moved on
            del self._numbers[path]
            number = self._number(path)
        return number

    def _rename(self, path: str, number: int, sources: set[str | None]) -> int:
        taken = self._numbers.get(path)
        if taken is not None and path not in sources and self._names[self._root(taken)] == path:
            other = self._root(taken)
            if other != self._root(number):
                self._merged[other] = self._root(number)
        number = self._root(number)
        self._numbers[path] = number
        self._names[number] = path
        self._alive[number] = True
        return number

    def _root(self, number: int) -> int:
        while number in self._merged:
            number = self._merged[number]
        return number
