"""BVH files: a skeleton in braces, then a line of channels for each frame.

What programs write differs in small things, all of which are read: ends of lines, tabs, a missing last one, names with
spaces, brackets on the line of the name, small and capital letters, empty lines. What cannot be meant is refused with
the number of the line.

References
----------
.. [1] M. Meredith and S. Maddock, "Motion capture file formats explained", University of Sheffield, CS-01-11, 2001.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.motion.record import Motion
from pluri.datasets.motion.skeleton import POSITIONS, ROTATIONS, Skeleton

Array = NDArray[np.float64]
CHANNELS = {name.lower(): name for name in [*POSITIONS, *ROTATIONS]}


@dataclass
class Draft:
    """A skeleton while it is read; joints that are still open are in the stack."""

    joints: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    offsets: list[list[float] | None] = field(default_factory=list)
    channels: list[tuple[str, ...] | None] = field(default_factory=list)
    end_parents: list[int] = field(default_factory=list)
    end_offsets: list[list[float] | None] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)
    in_end: bool = False


def read_bvh(path: str | os.PathLike[str]) -> Motion:
    """Read a BVH file, as motion-capture systems and animation programs write them.

    Parameters
    ----------
    path : path

    Returns
    -------
    Motion
        Named as the file, without ``.bvh``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pluri.datasets import read_bvh
    >>> _ = Path("nod.bvh").write_text('''HIERARCHY
    ... ROOT Neck
    ... {
    ...     OFFSET 0 0 0
    ...     CHANNELS 1 Xrotation
    ...     End Site
    ...     {
    ...         OFFSET 0 2 0
    ...     }
    ... }
    ... MOTION
    ... Frames: 2
    ... Frame Time: 0.04
    ... 0
    ... 90
    ... ''')
    >>> motion = read_bvh("nod.bvh")
    >>> motion
    Motion('nod', 2 frames of 0.04 s, 1 joints, 1 channels)
    >>> motion.positions(ends=True)[1, 1].round(6).tolist()
    [0.0, 0.0, 2.0]
    """
    file = Path(path)
    content = file.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    # Ends of lines as editors count them: splitlines would also cut at characters that a name may hold.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    try:
        start = next((row for row, line in enumerate(lines) if line.strip().lower() == "motion"), None)
        if start is None:
            raise ValueError(f"must have a line MOTION, got none in {len(lines)} lines")
        skeleton = _read_skeleton(lines[:start])
        frames, frame_time = _read_frames(lines, start + 1, skeleton.n_channels)
        return Motion(skeleton, frames, frame_time, file.stem)
    except ValueError as error:
        raise ValueError(f"{file.name} is no BVH file that can be read: it {error}") from None


def _statements(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Numbers of lines, and in them the brackets and what stands between them."""
    for number, line in enumerate(lines, start=1):
        for part in re.split(r"([{}])", line):
            if part.strip():
                yield number, part.strip()


def _read_skeleton(lines: list[str]) -> Skeleton:
    draft = Draft()
    statements = _statements(lines)
    number, first = next(statements, (1, "nothing"))
    if first.lower() != "hierarchy":
        raise ValueError(f"must begin with HIERARCHY, got {first[:40]!r} in line {number}")
    expected_bracket = False
    for number, statement in statements:
        if expected_bracket != (statement == "{"):
            expected = "an opening bracket after the name of a joint" if expected_bracket else "no opening bracket"
            raise ValueError(f"must have {expected} in line {number}, got {statement[:40]!r}")
        expected_bracket = False
        if statement == "}":
            _close(draft, number)
        elif statement != "{":
            expected_bracket = _read_statement(draft, number, statement)
    if not draft.joints:
        raise ValueError("must have a ROOT, got none")
    if draft.stack or expected_bracket:
        raise ValueError(f"must close all brackets before MOTION, got {len(draft.stack)} open")
    return Skeleton(
        tuple(draft.joints),
        np.array(draft.parents),
        np.array(draft.offsets, dtype=np.float64),
        tuple(channels or () for channels in draft.channels),
        np.array(draft.end_parents, dtype=np.int64),
        np.array(draft.end_offsets, dtype=np.float64).reshape(-1, 3),
    )


def _read_statement(draft: Draft, number: int, statement: str) -> bool:
    """Add what a line says to the draft (which is changed); whether an opening bracket must follow."""
    word, _, rest = re.sub(r"\s+", " ", statement).partition(" ")
    kind = word.lower()
    if kind in ("root", "joint"):
        if (kind == "root") != (not draft.joints) or draft.in_end or (kind == "joint" and not draft.stack):
            raise ValueError(f"must have one ROOT with JOINTs inside it, got {statement[:40]!r} in line {number}")
        draft.parents.append(draft.stack[-1] if draft.stack else -1)
        draft.stack.append(len(draft.joints))
        draft.joints.append(rest or f"joint {len(draft.joints)}")
        draft.offsets.append(None)
        draft.channels.append(None)
        return True
    if kind == "end" and draft.stack and not draft.in_end:
        draft.end_parents.append(draft.stack[-1])
        draft.end_offsets.append(None)
        draft.in_end = True
        return True
    if kind == "offset" and draft.stack:
        offsets, place = (draft.end_offsets, -1) if draft.in_end else (draft.offsets, draft.stack[-1])
        if offsets[place] is not None:
            raise ValueError(f"must have one OFFSET for each joint, got another in line {number}")
        offsets[place] = _numbers(rest.split(), 3, number).tolist()
    elif kind == "channels" and draft.stack and not draft.in_end:
        draft.channels[draft.stack[-1]] = _read_channels(rest.split(), number)
    else:
        raise ValueError(
            "must have ROOT, JOINT, End Site, OFFSET or CHANNELS where they belong, got "
            f"{statement[:40]!r} in line {number}"
        )
    return False


def _close(draft: Draft, number: int) -> None:
    """Close the innermost joint or end (the draft is changed)."""
    if not draft.stack:
        raise ValueError(f"must close no more brackets than it opens, got another in line {number}")
    offset = draft.end_offsets[-1] if draft.in_end else draft.offsets[draft.stack[-1]]
    if offset is None:
        raise ValueError(f"must have an OFFSET in each pair of brackets, got none in those that end in line {number}")
    if draft.in_end:
        draft.in_end = False
    else:
        draft.stack.pop()


def _read_channels(words: list[str], number: int) -> tuple[str, ...]:
    names = tuple(CHANNELS.get(word.lower(), "") for word in words[1:])
    count = words[0] if words else ""
    if not count.isdecimal() or int(count) != len(names) or "" in names or len(set(names)) != len(names):
        raise ValueError(
            f"must have CHANNELS, their number and as many different names such as Xrotation, got "
            f"{' '.join(words)[:80]!r} in line {number}"
        )
    return names


def _read_frames(lines: list[str], start: int, n_channels: int) -> tuple[Array, float]:
    rows = [(number, line.split()) for number, line in enumerate(lines[start:], start + 1) if line.strip()]
    header: dict[str, tuple[int, str]] = {}
    while rows and rows[0][1][0][:1].isalpha() and rows[0][1][0].lower() not in ("nan", "inf", "infinity"):
        number, words = rows.pop(0)
        name, _, value = " ".join(words).partition(":")
        header[" ".join(name.lower().split())] = (number, value.strip())
    for name, shown in (("frames", "Frames"), ("frame time", "Frame Time")):
        if name not in header:
            raise ValueError(f"must have a line '{shown}: ...' after MOTION, got none")
    number, said = header["frames"]
    if not said.isdecimal() or int(said) == 0:
        raise ValueError(f"must say how many frames there are, a positive number, got {said[:40]!r} in line {number}")
    line_of_time, time = header["frame time"]
    frame_time = float(_numbers(time.split(), 1, line_of_time)[0])
    if frame_time <= 0:
        raise ValueError(f"must have a positive Frame Time, got {time} in line {line_of_time}")
    if len(rows) != int(said):
        last = rows[-1][0] if rows else len(lines)
        raise ValueError(f"must have {said} frames, as line {number} says, got {len(rows)}, the last in line {last}")
    return np.array([_numbers(words, n_channels, row) for row, words in rows]), frame_time


def _numbers(words: list[str], count: int, line: int) -> Array:
    if len(words) != count:
        raise ValueError(f"must have {count} number{'s' * (count != 1)} in line {line}, got {len(words)}")
    try:
        found = np.array(words, dtype=np.float64)
    except ValueError:
        found = np.array([np.nan])
    if not np.isfinite(found).all():
        wrong = next(word for word in words if not _is_finite(word))
        raise ValueError(f"must have finite numbers in line {line}, got {wrong[:40]!r}")
    return found


def _is_finite(word: str) -> bool:
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return False
