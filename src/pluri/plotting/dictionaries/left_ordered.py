"""Which rows use which atoms, atoms in left-ordered form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import single_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage


class LeftOrderedDisplay:
    """The binary matrix of rows and atoms, columns sorted as binary numbers whose first row counts most.

    Left of each row's new atoms are those that rows before it use already, as in the Indian buffet process: how the
    number of atoms grows with the rows is seen in the stairs. Atoms that no row uses are left out.

    Parameters
    ----------
    used : array-like of shape (n_samples, n_components)
        Zeros and ones.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : AxesImage
    atoms_ : array of int
        Atoms from left to right.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import LeftOrderedDisplay
    >>> display = LeftOrderedDisplay([[0, 1, 0], [1, 0, 0], [1, 1, 0]]).plot()
    >>> display.atoms_.tolist()
    [1, 0]
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    image_: AxesImage

    def __init__(self, used: ArrayLike) -> None:
        given = np.asarray(used)
        if given.ndim != 2 or not given.size or not np.isin(given, (0, 1)).all():
            raise ValueError(
                f"used must hold zeros and ones and have shape (n_samples, n_components), got shape {given.shape}"
            )
        self.used = given.astype(np.int8)
        some = np.flatnonzero(self.used.any(axis=0))
        # lexsort takes its last key first: rows are given from the bottom up, negated for descending order.
        self.atoms_ = some[np.lexsort(-self.used[::-1, some])] if some.size else some

    @classmethod
    def from_estimator(cls, model: Any, X: ArrayLike, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw which atoms of a fitted dictionary rows use.

        A row counts as using an atom if what the atom adds to it, its code times the length of the atom, is larger than
        the standard deviation of the noise in one value: less than that is hardly told from noise.

        Parameters
        ----------
        model : estimator
            Fitted, with ``components_``, ``noise_variance_`` and ``transform``.
        X : array-like of shape (n_samples, n_features)
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        LeftOrderedDisplay
        """
        if not hasattr(model, "components_") or not hasattr(model, "noise_variance_"):
            raise ValueError(f"model must be a fitted dictionary with noise_variance_, got {type(model).__name__}")
        added = np.abs(np.asarray(model.transform(X))) * np.linalg.norm(model.components_, axis=1)
        return cls(added > np.sqrt(np.mean(model.noise_variance_))).plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, cmap: str = "Greys") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        cmap : str, default="Greys"

        Returns
        -------
        LeftOrderedDisplay
            Itself.
        """
        shown = self.used[:, self.atoms_] if self.atoms_.size else np.zeros((len(self.used), 1), dtype=np.int8)
        size = (min(max(2.0 + 0.08 * shown.shape[1], 3.5), 10.0), min(max(1.4 + 0.03 * len(shown), 3.0), 8.0))
        self.figure_, self.ax_ = single_axes(ax, size)
        self.image_ = self.ax_.imshow(shown, vmin=0, vmax=1, cmap=cmap, aspect="auto", interpolation="nearest")
        self.ax_.tick_params(length=0)
        self.ax_.set(xlabel=f"{len(self.atoms_)} atoms, in left-ordered form", ylabel="row", xticks=[])
        return self
