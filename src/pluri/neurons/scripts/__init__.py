"""Scripts that come with the library: models to run, to look into and to change."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def shipped_scripts() -> dict[str, Path]:
    """Names and files of the scripts that come with the library.

    Examples
    --------
    >>> from pluri.neurons.scripts import shipped_scripts
    >>> shipped_scripts()["two_neurons"].name
    'two_neurons.g'
    """
    return {path.stem: path for path in sorted(FOLDER.glob("*.g"))}


def first_comment(path: Path) -> str:
    """What a script says of itself in its first line."""
    with open(path, encoding="utf-8") as file:
        return file.readline().removeprefix("//").strip()
