"""Script files as text."""

from __future__ import annotations

from pathlib import Path

from pluri.neurons.language.places import Place, ScriptError

LARGEST_FILE = 10_000_000


def read_source(path: Path, place: Place | None = None) -> str:
    """The text of a script file; what is wrong with the file is told where it was asked for."""
    try:
        if path.is_file() and path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"a script must have at most {LARGEST_FILE} bytes, got {path.name} with more")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        sentence = f"a script must be text in UTF-8, got {path.name}"
    except (OSError, ValueError) as error:
        sentence = f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    raise ScriptError(sentence, place or Place(path.name, 1, 1), path.name) from None
