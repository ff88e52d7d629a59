"""Picture files, read and written by Pillow, which Matplotlib brings along."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIXES = (".png",)


class PictureFile(NamedTuple):
    """A picture (height, width) or (height, width, 3) of uint8 or uint16, and its alpha channel if it has one."""

    pixels: NDArray[Any]
    alpha: NDArray[Any] | None


def pillow() -> Any:
    """Pillow's module of images."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("picture files need Pillow: pip install pillow") from error
    return Image


def read_picture(path: Path, option: str = "IMAGE") -> PictureFile:
    """Read a picture; what has a palette becomes colours, and black and white become bytes."""
    import numpy as np

    Image = pillow()
    try:
        with Image.open(path) as image:
            image.load()
            if image.mode in ("I;16", "I;16B", "I;16L", "I"):
                pixels = np.asarray(image)
                if pixels.min() < 0 or pixels.max() > 65535:
                    raise ValueError(f"{option} must have 8 or 16 bits, got {path.name!r} with more")
                return PictureFile(pixels.astype(np.uint16), None)
            has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
            is_grey = image.mode in ("1", "L", "LA")
            found = np.asarray(image.convert(("L" if is_grey else "RGB") + "A" * has_alpha))
    except (Image.UnidentifiedImageError, SyntaxError, EOFError) as error:
        raise ValueError(
            f"{option} must be a picture, got {path.name!r}, which is none that Pillow can read"
        ) from error
    if not has_alpha:
        return PictureFile(found, None)
    pixels = found[..., 0] if is_grey else found[..., :3]
    return PictureFile(np.ascontiguousarray(pixels), found[..., -1])


def write_picture(path: Path, values: NDArray[Any], like: PictureFile, option: str = "--output") -> None:
    """Write numbers from 0 to 1 with as many bits as a picture came with, and with its alpha channel."""
    import numpy as np

    from pluri.validation import replacing

    Image = pillow()
    dtype = like.pixels.dtype
    found = np.rint(np.clip(values, 0, 1) * np.iinfo(dtype).max).astype(dtype)
    if like.alpha is not None:
        found = np.dstack([found, like.alpha])
    with replacing(path, option) as file:
        Image.fromarray(found).save(file, format="PNG")
