"""Documents from files: JSON Lines, tables, folders of text, or a pipe.

Text should be UTF-8. A document in another encoding is read as Windows-1252 (which holds Latin-1), in which every old
mail and page can be read, and counted. Documents without text are left out, and counted too.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from pluri.cli.registry import UsageError

JSON_LINES, TABLES, LINES = (".jsonl", ".ndjson", ".json"), (".csv", ".tsv"), (".txt",)
#: Characters of a document that stand for a title that it does not have.
TITLE = 80
#: A cell of a table may hold a whole book.
MOST_CELL = 1 << 30


#: What a corpus has for each document.
COLUMNS = ("texts", "titles", "names", "dates", "ratings")


@dataclass(frozen=True)
class Corpus:
    """Documents with text.

    Attributes
    ----------
    texts, titles : one for each document
    names : of each document, what its field for names says, its file, or its place in the corpus, from 1
    n_empty : documents left out because they have no text
    n_recoded : documents that were not UTF-8
    dates, ratings : what the fields for them say, as text; None if there are no such fields
    """

    texts: list[str]
    titles: list[str]
    names: list[str]
    n_empty: int = 0
    n_recoded: int = 0
    dates: list[str] | None = None
    ratings: list[str] | None = None

    def only(self, rows: Iterable[int]) -> Corpus:
        """Some of the documents."""
        kept = list(rows)
        columns = {
            name: None if column is None else [column[row] for row in kept]
            for name, column in {name: getattr(self, name) for name in COLUMNS}.items()
        }
        return Corpus(**columns)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Fields:
    """Names of the fields of records: of the text, the title, the name, the date and the rating of a document."""

    text: str = "text"
    title: str | None = None
    name: str | None = None
    date: str | None = None
    rating: str | None = None


@dataclass
class Document:
    """One document as it was read."""

    text: str
    title: str
    recoded: bool = False
    name: str = ""
    date: str = ""
    rating: str = ""


def read_corpus(place: str, fields: Fields, pattern: str = "*.txt") -> Corpus:
    r"""All documents of a file or folder; ``-`` is JSON Lines on standard input.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pluri.cli.topics.reading import Fields, read_corpus
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.txt").write_text("Ice\n\nThe puck is cold.")
    ...     corpus = read_corpus(folder, Fields())
    >>> corpus.titles, len(corpus.texts)
    (['Ice'], 1)
    """
    found: dict[str, list[str]] = {name: [] for name in COLUMNS}
    n_empty, n_recoded = 0, 0
    for number, document in enumerate(documents_of(place, fields, pattern), 1):
        n_recoded += document.recoded
        if not document.text.strip():
            n_empty += 1
            continue
        found["texts"].append(document.text)
        found["names"].append(document.name or str(number))
        found["titles"].append(title_of(document))
        found["dates"].append(document.date)
        found["ratings"].append(document.rating)
    if not found["texts"]:
        raise ValueError(f"CORPUS must hold documents with text, got {n_empty} without any in {place!r}")
    return Corpus(
        found["texts"], found["titles"], found["names"], n_empty, n_recoded,
        found["dates"] if fields.date else None, found["ratings"] if fields.rating else None,
    )  # fmt: skip


def title_of(document: Document) -> str:
    """The title of a document, or how it begins; one that is long is cut."""
    title = " ".join(document.title[: 4 * TITLE].split())
    return _cut(title) if title else _beginning(document.text)


def documents_of(place: str, fields: Fields, pattern: str) -> Iterator[Document]:
    if place == "-":
        stdin = getattr(sys.stdin, "buffer", None)
        lines: Iterable[bytes] = stdin if stdin is not None else io.BytesIO(sys.stdin.read().encode())
        return _from_records(_json_lines(lines, "standard input"), fields, "standard input")
    path = Path(place)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = bool(suffixes) and suffixes[-1] == ".gz"
    kind = (suffixes[:-1] if zipped else suffixes)[-1:] or [""]
    for option, field in (("--date", fields.date), ("--rating", fields.rating)):
        if field is not None and (path.is_dir() or kind[0] in LINES):
            raise UsageError(f"{option} must name a field of records, got {field!r} for {place!r}, which has none")
    if path.is_dir():
        return _from_folder(path, pattern)
    if not path.is_file():
        raise FileNotFoundError(f"CORPUS must name a file or folder, got {place!r}, which does not exist")
    if kind[0] in JSON_LINES:
        return _from_records(_json_lines(_lines(path, zipped), str(path)), fields, str(path))
    if kind[0] in TABLES:
        return _from_records(_rows(path, zipped, kind[0]), fields, str(path))
    if kind[0] in LINES:
        return (Document(text, "", recoded) for text, recoded in map(_decoded, _lines(path, zipped)))
    raise UsageError(
        f"CORPUS must be a folder or a file of type {', '.join((*JSON_LINES, *TABLES, *LINES))} (or one of these with "
        f".gz), got {path.name!r}"
    )


def _from_folder(folder: Path, pattern: str) -> Iterator[Document]:
    files = sorted(path for path in folder.rglob(pattern) if path.is_file())
    if not files:
        raise ValueError(f"CORPUS must be a folder with files {pattern!r}, got none in {str(folder)!r}: see --pattern")
    for path in files:
        text, recoded = _decoded(path.read_bytes())
        first = text.strip().split("\n", 1)[0].strip() if text.strip() else ""
        yield Document(text, first, recoded, path.relative_to(folder).as_posix())


def _from_records(records: Iterable[tuple[dict[str, Any], bool]], fields: Fields, place: str) -> Iterator[Document]:
    known: dict[str, None] = {}
    found_text = False
    for record, recoded in records:
        known.update(dict.fromkeys(map(str, record)))
        found_text = found_text or fields.text in record
        title = _text(record.get("title" if fields.title is None else fields.title))
        name = "" if fields.name is None else " ".join(_text(record.get(fields.name)).split())
        date = "" if fields.date is None else _text(record.get(fields.date))
        rating = "" if fields.rating is None else _text(record.get(fields.rating))
        yield Document(_text(record.get(fields.text)), title or name, recoded, name, date, rating)
    for option, field in (
        ("--text-field", fields.text), ("--title-field", fields.title), ("--id-field", fields.name),
        ("--date", fields.date), ("--rating", fields.rating),
    ):  # fmt: skip
        if known and field is not None and field not in known:
            raise UsageError(f"{option} must name a field of {place}, got {field!r}: there are {', '.join(known)}")


def _text(value: Any) -> str:
    """A field as text: lists are joined, numbers written, and nothing is empty."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json_lines(lines: Iterable[bytes], place: str) -> Iterator[tuple[dict[str, Any], bool]]:
    begun = False
    rest = iter(lines)
    for number, line in enumerate(rest, 1):
        text, recoded = _decoded(line)
        if not text.strip():
            continue
        if not begun and text.lstrip().startswith("["):  # all records in one list
            whole, recoded = _decoded(b"".join([line, *rest]))
            yield from _json_list(whole, place, recoded)
            return
        begun = True
        yield _record(_parsed(text, f"line {number} of {place} must be a JSON object"), number, place), recoded


def _json_list(text: str, place: str, recoded: bool) -> Iterator[tuple[dict[str, Any], bool]]:
    for number, record in enumerate(_parsed(text, f"{place} must be a list of JSON objects"), 1):
        yield _record(record, number, place), recoded
        recoded = False  # the file is one text


def _parsed(text: str, wanted: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{wanted}, got {text.strip()[:40]!r}") from error


def _record(record: Any, number: int, place: str) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise ValueError(f"line {number} of {place} must be a JSON object, got {json.dumps(record)[:40]!r}")
    return record


def _rows(path: Path, zipped: bool, kind: str) -> Iterator[tuple[dict[str, Any], bool]]:
    encoding, recoded = _encoding(path, zipped)
    limit = csv.field_size_limit(MOST_CELL)
    try:
        with _opened(path, zipped) as file, io.TextIOWrapper(file, encoding, "replace", newline="") as text:
            first = text.readline()
            delimiter = "\t" if kind == ".tsv" else max(",;\t", key=first.count)
            for row in csv.DictReader(chain([first], text), delimiter=delimiter):
                yield {str(name): value for name, value in row.items() if name is not None}, recoded
                recoded = False  # the file is one text
    except csv.Error as error:
        raise ValueError(f"{path} must be a table of comma-separated values: {error}") from error
    finally:
        csv.field_size_limit(limit)


def _encoding(path: Path, zipped: bool) -> tuple[str, bool]:
    """The encoding of a file, which is read once for it, and whether it is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        with _opened(path, zipped) as file:
            while piece := file.read(1 << 20):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "cp1252", True
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} must be a whole gzip file, got a damaged one: {error}") from error
    return "utf-8-sig", False


def _lines(path: Path, zipped: bool) -> Iterator[bytes]:
    with _opened(path, zipped) as file:
        try:
            yield from file
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} must be a whole gzip file, got a damaged one: {error}") from error


def _opened(path: Path, zipped: bool) -> BinaryIO:
    return gzip.open(path, "rb") if zipped else open(path, "rb")  # type: ignore[return-value]


def _decoded(data: bytes) -> tuple[str, bool]:
    """Text, and whether it was not UTF-8."""
    try:
        return data.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), True


def _beginning(text: str) -> str:
    """The first line of a text, cut."""
    line = text.strip()[: 4 * TITLE].split("\n", 1)[0]
    return _cut(" ".join(line.split()))


def _cut(words: str) -> str:
    return words if len(words) <= TITLE else words[: TITLE - 1].rstrip() + "…"
