"""Handwritten digits and machine-learning papers: labelled rows for clustering binary data.

References
----------
.. [1] J. J. Hull, "A database for handwritten text recognition research", IEEE PAMI 16, 1994 (USPS digits).
.. [2] Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, "Gradient-based learning applied to document recognition",
   Proceedings of the IEEE 86, 1998 (MNIST digits).
.. [3] P. Sen, G. Namata, M. Bilgic, L. Getoor, B. Gallagher and T. Eliassi-Rad, "Collective classification in network
   data", AI Magazine 29, 2008 (Cora papers).
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file
from pluri.validation import Only, check_value

CORA_CLASSES = (
    "Theory",
    "Reinforcement Learning",
    "Genetic Algorithms",
    "Neural Networks",
    "Probabilistic Methods",
    "Case Based",
    "Rule Learning",
)
N_WORDS = 1433
USPS_ADVICE = "USPS digits come with The Elements of Statistical Learning, as zip.train.gz and zip.test.gz."
MNIST_ADVICE = "Store the first test digits as an npz file with the arrays X (n, 28, 28) and y."
CORA_ADVICE = "Store the packed bits of the 1433 words as an npz file with the arrays X and y."


@dataclass(frozen=True, eq=False, repr=False)
class LabelledRows:
    """Rows of features with a class each.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Class of each row, from 0.
    class_names : tuple of str
    image_shape : tuple of int or None
        How to fold a row into a picture.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.datasets.digits_and_papers import LabelledRows
    >>> LabelledRows(np.zeros((3, 4)), np.zeros(3, dtype=np.int64), ("zero",), (2, 2))
    LabelledRows(X=float64[3, 4], y=int64[3], classes=1)
    """

    X: NDArray[Any]
    y: NDArray[np.int64]
    class_names: tuple[str, ...]
    image_shape: tuple[int, int] | None = None

    def keys(self) -> list[str]:
        """Names of the fields."""
        return ["X", "y", "class_names", "image_shape"]

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def __repr__(self) -> str:
        """Kind and shape of the fields instead of their values."""
        shape, kind = list(self.X.shape), self.X.dtype
        return f"LabelledRows(X={kind}{shape}, y={self.y.dtype}{list(self.y.shape)}, classes={len(self.class_names)})"


def load_usps(subset: str = "train", data_home: str | os.PathLike[str] | None = None) -> LabelledRows:
    """Load USPS digits: 16 x 16 grey values from -1 to 1.

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        7291 or 2007 digits.
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets.digits_and_papers import load_usps
    >>> load_usps("test").X.shape  # doctest: +SKIP
    (2007, 256)
    """
    check_value(subset, "subset", Only("train", "test"))
    path = find_file((f"usps_{subset}.txt.gz", f"zip.{subset}.gz"), data_home, USPS_ADVICE)
    with gzip.open(path, "rt", encoding="ascii") as file:
        table = np.loadtxt(file)
    if table.ndim != 2 or table.shape[1] != 257:
        raise ValueError(f"{path.name} must have 257 columns, a digit and 256 pixels, got shape {table.shape}")
    return LabelledRows(table[:, 1:], table[:, 0].astype(np.int64), tuple("0123456789"), (16, 16))


def load_mnist_test(data_home: str | os.PathLike[str] | None = None) -> LabelledRows:
    """Load the first 8000 test digits of MNIST: 28 x 28 grey values from 0 to 255.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets.digits_and_papers import load_mnist_test
    >>> load_mnist_test().X.shape  # doctest: +SKIP
    (8000, 784)
    """
    path = find_file(("mnist_t10k_first8000.npz",), data_home, MNIST_ADVICE)
    X, y = _arrays(path)
    return LabelledRows(X.reshape(len(X), -1), y, tuple("0123456789"), (28, 28))


def load_cora_binary(data_home: str | os.PathLike[str] | None = None) -> LabelledRows:
    """Load the Cora papers: which of 1433 words occur, in 2708 papers of seven classes.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets.digits_and_papers import load_cora_binary
    >>> load_cora_binary().X.shape  # doctest: +SKIP
    (2708, 1433)
    """
    path = find_file(("cora_binary_7class.npz",), data_home, CORA_ADVICE)
    packed, y = _arrays(path)
    if packed.ndim != 2 or packed.shape[1] * 8 < N_WORDS:
        raise ValueError(f"{path.name} must hold packed bits of {N_WORDS} words in each row, got shape {packed.shape}")
    return LabelledRows(np.unpackbits(packed, axis=1)[:, :N_WORDS], y, CORA_CLASSES)


def _arrays(path: Path) -> tuple[NDArray[Any], NDArray[np.int64]]:
    with np.load(path, allow_pickle=False) as file:
        missing = {"X", "y"} - set(file.files)
        if missing:
            raise ValueError(f"{path.name} must hold the arrays X and y, got none named {sorted(missing)}")
        X, y = file["X"], file["y"].astype(np.int64)
    if len(X) != len(y):
        raise ValueError(f"{path.name} must hold a class for each row, got {len(X)} rows and {len(y)} classes")
    return X, y
