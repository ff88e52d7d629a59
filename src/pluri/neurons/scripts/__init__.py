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
    """What a script says of itself in its first line, if that is a comment."""
    with open(path, encoding="utf-8", errors="replace") as file:
        line = file.readline(1000)
    return line.removeprefix("//").strip() if line.startswith("//") else ""


def title_of(path: Path) -> str:
    """A heading for a script: the beginning of its first comment, or the name of the file.

    Examples
    --------
    >>> from pluri.neurons.scripts import shipped_scripts, title_of
    >>> title_of(shipped_scripts()["half_centre"])
    'Half-centre oscillator'
    """
    told = first_comment(path).partition(":")[0]
    return told if 0 < len(told) <= 80 and told != "genesis" else path.stem.replace("_", " ")
