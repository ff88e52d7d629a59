"""Small pictures on one sheet, which is a PNG inside the page: a file that needs nothing but itself."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Pixels of a sheet: what a phone decodes, and about as many bytes as can be sent by mail.
MOST_PIXELS = 2**23
MOST_SIDE = 64

Bytes = NDArray[np.uint8]


class Range(NamedTuple):
    """The values that are black and white."""

    low: float
    high: float


def checked_pictures(images: ArrayLike, n_pictures: int | None = None) -> NDArray[Any]:
    """Pictures as an array of shape (n, height, width, 1 or 3)."""
    found = np.asarray(images)
    told = "(n_points, height, width) or (n_points, height, width, 3)"
    if found.dtype.kind not in "biuf" or found.ndim not in (3, 4) or (found.ndim == 4 and found.shape[3] not in (1, 3)):
        raise ValueError(f"images must be an array of numbers of shape {told}, got {found.dtype} of {found.shape}")
    if n_pictures is not None and len(found) != n_pictures:
        raise ValueError(f"images must have one picture for each of the {n_pictures} points, got {len(found)}")
    if 0 in found.shape[1:]:
        raise ValueError(f"images must have at least one pixel each, got the shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError("images must hold finite values, got NaN or infinity")
    return found[..., None] if found.ndim == 3 else found


def range_of(pictures: NDArray[Any]) -> Range:
    """Bytes are from 0 to 255, Booleans from 0 to 1, other numbers from the least to the greatest."""
    if pictures.dtype == np.uint8:
        return Range(0.0, 255.0)
    if pictures.dtype == np.bool_ or not pictures.size:
        return Range(0.0, 1.0)
    return Range(float(pictures.min()), float(pictures.max()))


def as_bytes(pictures: NDArray[Any], values: Range) -> Bytes:
    """Pictures with 0 for black and 255 for white; what is outside of the range is cut.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.report.pictures import Range, as_bytes
    >>> as_bytes(np.array([-9.0, 0.0, 0.5, 1.0]), Range(0.0, 1.0)).tolist()
    [0, 0, 128, 255]
    """
    extent = values.high - values.low
    scaled = (np.asarray(pictures, dtype=np.float64) - values.low) * (255.0 / extent if extent > 0 else 0.0)
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)


def thumbnails(pictures: NDArray[Any], values: Range, *, most_pixels: int = MOST_PIXELS) -> Bytes:
    """Pictures in bytes, made so small that all of them have room on a sheet.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.report.pictures import range_of, thumbnails
    >>> pictures = np.zeros((10, 128, 64, 1))
    >>> thumbnails(pictures, range_of(pictures)).shape
    (10, 64, 32, 1)
    """
    n_pictures, height, width, channels = pictures.shape
    share = min(1.0, MOST_SIDE / max(height, width), np.sqrt(most_pixels / max(n_pictures * height * width, 1)))
    if share == 1.0:
        return as_bytes(pictures, values)
    small_height, small_width = max(1, int(height * share)), max(1, int(width * share))
    down, across = _averages(height, small_height), _averages(width, small_width)
    small = np.empty((n_pictures, small_height, small_width, channels), dtype=np.uint8)
    for first in range(0, n_pictures, 256):  # floating-point copies of all of them at once would need much memory
        part = np.asarray(pictures[first : first + 256], dtype=np.float64)
        part = np.einsum("ah,nhwc->nawc", down, part, optimize=True)
        small[first : first + 256] = as_bytes(np.einsum("bw,nawc->nabc", across, part, optimize=True), values)
    return small


def _averages(n_from: int, n_to: int) -> NDArray[np.float64]:
    """Rows average over the pixels that a larger pixel covers, those at its ends by the part that it covers."""
    edges = np.arange(n_to + 1) * (n_from / n_to)
    begin, end = np.arange(n_from), np.arange(1, n_from + 1)
    covered = np.minimum(end, edges[1:, None]) - np.maximum(begin, edges[:-1, None])
    return np.maximum(covered, 0.0) / (n_from / n_to)


def sprite_sheet(pictures: Bytes) -> dict[str, Any]:
    """One PNG as a data address, and where each picture is on it: number k in row k // columns."""
    n_pictures, height, width, channels = pictures.shape
    columns = max(1, min(n_pictures, round(np.sqrt(n_pictures * height / width))))
    rows = max(1, -(-n_pictures // columns))
    sheet = np.zeros((rows * columns, height, width, channels), dtype=np.uint8)
    sheet[:n_pictures] = pictures
    sheet = sheet.reshape(rows, columns, height, width, channels).transpose(0, 2, 1, 3, 4)
    address = base64.b64encode(png(sheet.reshape(rows * height, columns * width, channels))).decode()
    return {
        "sheet": f"data:image/png;base64,{address}",
        "columns": columns,
        "width": width,
        "height": height,
        "count": n_pictures,
    }


def png(pixels: Bytes) -> bytes:
    r"""A picture of shape (height, width, 1 or 3) as a PNG file.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.report.pictures import png
    >>> png(np.zeros((2, 3, 1), dtype=np.uint8))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    height, width, channels = pixels.shape
    lines = np.ascontiguousarray(pixels).reshape(height, width * channels)
    left, above = np.zeros_like(lines), np.zeros_like(lines)
    left[:, channels:] = lines[:, :-channels]
    above[1:] = lines[:-1]
    # Differences compress photographs better, values themselves flat pictures; bytes go round from 255 to 0.
    ways = [(0, lines), (1, lines - left), (2, lines - above)]
    packed = [
        zlib.compress(np.hstack([np.full((height, 1), way, dtype=np.uint8), values]).tobytes(), 9)
        for way, values in ways
    ]
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", min(packed, key=len)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
