"""Photographs that papers on denoising, inpainting and compressive sensing use.

References
----------
.. [1] M. Elad and M. Aharon, "Image denoising via sparse and redundant representations over learned dictionaries", IEEE
   Transactions on Image Processing 15, 2006 (boat, house and others; the usual test pictures).
.. [2] D. Martin, C. Fowlkes, D. Tal and J. Malik, "A database of human segmented natural images", ICCV 2001 (Berkeley
   segmentation data set, for research that is not commercial).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file

Pictures = dict[str, NDArray[np.uint8]]
ADVICE = "Store the pictures as an npz file with an array of uint8 for each, under its name."


def load_test_images(data_home: str | os.PathLike[str] | None = None) -> Pictures:
    """Load the grey test pictures: barbara, boat, man (512 x 512), cameraman, house, parrots, peppers (256 x 256).

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    dict of arrays of uint8 of shape (height, width)
        By name.

    Examples
    --------
    >>> from pluri.datasets import load_test_images
    >>> sorted(load_test_images())  # doctest: +SKIP
    ['barbara', 'boat', 'cameraman', 'house', 'man', 'parrots', 'peppers']
    """
    found = _pictures("test_images_gray.npz", data_home, 2)
    return {name.rstrip("0123456789"): picture for name, picture in found.items()}


def load_bsds_gray(data_home: str | os.PathLike[str] | None = None) -> Pictures:
    """Load 24 grey photographs of the Berkeley segmentation data set, 321 x 481 or 481 x 321 pixels.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    dict of arrays of uint8 of shape (height, width)
        By name, ``"img00"`` to ``"img23"``.

    Examples
    --------
    >>> from pluri.datasets import load_bsds_gray
    >>> load_bsds_gray()["img00"].shape  # doctest: +SKIP
    (321, 481)
    """
    return _pictures("bsds68_gray_first24.npz", data_home, 2)


def load_bsds_color(data_home: str | os.PathLike[str] | None = None) -> Pictures:
    """Load three colour photographs of the Berkeley segmentation data set: castle, horses and mushroom.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    dict of arrays of uint8 of shape (height, width, 3)
        By name.

    Examples
    --------
    >>> from pluri.datasets import load_bsds_color
    >>> load_bsds_color()["castle"].shape  # doctest: +SKIP
    (481, 321, 3)
    """
    return _pictures("bsds_color_castle_horses_mushroom.npz", data_home, 3)


def _pictures(file_name: str, data_home: str | os.PathLike[str] | None, n_axes: int) -> Pictures:
    path = find_file((file_name,), data_home, ADVICE)
    with np.load(path, allow_pickle=False) as file:
        found: dict[str, NDArray[Any]] = {name: file[name] for name in file.files}
    for name, picture in found.items():
        if picture.dtype != np.uint8 or picture.ndim != n_axes or (n_axes == 3 and picture.shape[2] != 3):
            shape = "(height, width)" if n_axes == 2 else "(height, width, 3)"
            raise ValueError(
                f"{path.name} must hold pictures of uint8 of shape {shape}, "
                f"got {picture.dtype} of {picture.shape} for {name}"
            )
    return found
