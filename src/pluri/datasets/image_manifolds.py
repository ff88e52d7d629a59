"""Images that vary along few directions: one face with many expressions, and objects on a turntable.

References
----------
.. [1] S. T. Roweis and L. K. Saul, "Nonlinear dimensionality reduction by locally linear embedding", Science 290, 2000
   (frames of the face of Brendan Frey).
.. [2] S. A. Nene, S. K. Nayar and H. Murase, "Columbia object image library (COIL-20)", CUCS-005-96, 1996.
"""

from __future__ import annotations

import os

import numpy as np

from pluri.datasets.digits_and_papers import LabelledRows
from pluri.datasets.home import find_file

FACES_ADVICE = "Store the 1965 frames as an npz file with the array X (n, 28, 20)."
OBJECTS_ADVICE = (
    "Store the images, 72 views of each object in order, as an npz file with the arrays X (n, 32, 32) and y."
)


def load_frey_faces(data_home: str | os.PathLike[str] | None = None) -> LabelledRows:
    """Load the Frey faces: 1965 frames of 28 x 20 grey values from 0 to 255, in the order of time, all of one class.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_frey_faces
    >>> load_frey_faces().X.shape  # doctest: +SKIP
    (1965, 560)
    """
    path = find_file(("frey_faces.npz",), data_home, FACES_ADVICE)
    with np.load(path, allow_pickle=False) as file:
        if "X" not in file.files or file["X"].ndim != 3:
            raise ValueError(f"{path.name} must hold the array X of images (n, height, width), got {file.files}")
        X = file["X"]
    return LabelledRows(X.reshape(len(X), -1), np.zeros(len(X), dtype=np.int64), ("face",), X.shape[1:])


def load_coil20(data_home: str | os.PathLike[str] | None = None) -> LabelledRows:
    """Load COIL-20: 72 views, five degrees apart, of each of 20 objects, 32 x 32 grey values from 0 to 255.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_coil20
    >>> load_coil20().X.shape  # doctest: +SKIP
    (1440, 1024)
    """
    path = find_file(("coil20_32x32.npz",), data_home, OBJECTS_ADVICE)
    with np.load(path, allow_pickle=False) as file:
        if not {"X", "y"} <= set(file.files) or file["X"].ndim != 3 or len(file["X"]) != len(file["y"]):
            raise ValueError(
                f"{path.name} must hold the arrays X of images (n, height, width) and y (n,), got {file.files}"
            )
        X, y = file["X"], file["y"].astype(np.int64)
    names = tuple(f"object {number}" for number in range(int(y.max(initial=-1)) + 1))
    return LabelledRows(X.reshape(len(X), -1), y, names, X.shape[1:])
