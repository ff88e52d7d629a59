"""LIDAR measurements: how much light of a laser comes back from a distance, 221 of them.

The response falls and its noise grows with the distance, which makes it the usual example for regression with noise
that depends on the input. The file is read from the data folder and not shipped.

References
----------
.. [1] Ruppert, D., Wand, M. P. and Carroll, R. J. (2003). Semiparametric regression. Cambridge University Press.
"""

from __future__ import annotations

import csv
import gzip
import os

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file

LIDAR_FILE = "lidar.tsv.gz"
ADVICE = "The table is tab-separated with the columns range and logratio; it is in the R package SemiPar."


def load_lidar(data_home: str | os.PathLike[str] | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Load the distance travelled and the log ratio of the light received from two lasers.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``lidar.tsv.gz``; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    X : ndarray of shape (221, 1)
        Distances, 390 to 720.
    y : ndarray of shape (221,)
        Log ratios.

    Examples
    --------
    >>> from pluri.datasets import load_lidar
    >>> X, y = load_lidar()  # doctest: +SKIP
    >>> X.shape, round(float(y.mean()), 5)  # doctest: +SKIP
    ((221, 1), -0.29116)
    """
    path = find_file((LIDAR_FILE,), data_home, ADVICE)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        table = csv.DictReader(stream, delimiter="\t")
        if not {"range", "logratio"} <= set(table.fieldnames or ()):
            raise ValueError(f"{path.name} must have the columns range and logratio, got {table.fieldnames}")
        rows = [(float(row["range"]), float(row["logratio"])) for row in table]
    if not rows:
        raise ValueError(f"{path.name} must hold at least one row, got none")
    values = np.array(rows)
    return values[:, :1].copy(), values[:, 1].copy()
