"""Missing pixels of a picture filled, with a standard deviation for each.

References
----------
Zhou, Chen, Paisley, Ren, Li, Xing, Dunson, Sapiro and Carin (2012), Nonparametric Bayesian dictionary learning for
analysis of noisy and incomplete images, IEEE Transactions on Image Processing.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.factors.dictionaries.images.pixels import as_picture
from pluri.factors.dictionaries.images.restorer import PatchRestorer

Array = NDArray[np.float64]


class ImageInpainter(PatchRestorer):
    """Fill the missing pixels of a picture by a dictionary learned from its patches, of what there is of them.

    The model is that of :class:`ImageDenoiser`; missing pixels have no part in it. Scattered pixels are filled well, up
    to most of the picture; of holes larger than a patch nothing is known but what is around them, and they come out
    smooth.

    Parameters
    ----------
    n_components : int, default=128
        Largest number of atoms.
    patch_size : int, default=8
        Pixels of a side of a patch.
    n_patches : int, default=8000
        Patches that the dictionary is learned from, drawn from all of them.
    a, b : float, default=10.0 and 1.0
        Of the beta process: a patch uses about ``a / b`` atoms a priori.
    keep_known : bool, default=True
        Whether pixels that are there are given back as they came; False takes noise away from them.
    n_draws, n_warmup : int, default=10 and 30
        Sweeps of the chain that learns the dictionary, kept and before. In the first half of the warm-up the noise is
        held at a robust guess.
    n_chains : int, default=1
        Chains that learn; the dictionary is that of the chain that ends at the highest density.
    n_predictive : int, default=10
        Sweeps over each patch that are averaged.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    noise_sd_ : float
        Standard deviation of the noise, in units of the picture; integers count as scaled to [0, 1].
    noise_interval_ : array of shape (2,)
        Interval of 90 % for it, if the model is right. Fine texture is easily taken for noise.
    components_ : array of shape (n_components, n_features_in_)
        Atoms, most used first.
    usage_ : array of shape (n_components,)
        Probability that a patch uses each of them.
    weight_sd_ : float
        Standard deviation of the weights of atoms, in units of the picture.
    scale_ : float
        Root mean square of the patches less their means.
    n_channels_ : int
        1 for grey, 3 for colour.
    n_features_in_ : int
        Numbers in a patch.
    trace_ : `pluri.inference.mcmc.Trace`
        ``noise_sd``, ``atoms_per_patch`` and ``n_used`` by draw.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors import ImageInpainter
    >>> rng = np.random.default_rng(0)
    >>> clean = np.outer(np.sin(np.arange(40) / 3), np.cos(np.arange(40) / 5)) / 2 + 0.5
    >>> missing = rng.random(clean.shape) < 0.5
    >>> restored = ImageInpainter(16, random_state=0).fit(clean, mask=missing).inpaint(clean, missing)
    >>> bool(np.abs(restored - clean)[missing].max() < 0.2)
    True
    """

    def __init__(
        self,
        n_components: int = 128,
        *,
        patch_size: int = 8,
        n_patches: int = 8000,
        a: float = 10.0,
        b: float = 1.0,
        keep_known: bool = True,
        n_draws: int = 10,
        n_warmup: int = 30,
        n_chains: int = 1,
        n_predictive: int = 10,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.patch_size = patch_size
        self.n_patches = n_patches
        self.a = a
        self.b = b
        self.keep_known = keep_known
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.n_predictive = n_predictive
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, image: ArrayLike, y: Any = None, *, mask: ArrayLike | None = None) -> Self:
        """Learn a dictionary from the pixels that are there.

        Parameters
        ----------
        image : array-like of shape (height, width) or (height, width, 3)
            uint8, uint16 or Boolean, which are scaled to [0, 1], or floating point, taken as it is. NaN marks a missing
            pixel. An alpha channel is refused.
        y : ignored
        mask : array-like of shape (height, width), optional
            Where it is not 0, the pixel is missing, as in scikit-image.

        Returns
        -------
        self : object
        """
        self._fit(as_picture(image, mask))
        return self

    def transform(self, image: ArrayLike) -> Array:
        """Fill the pixels of a picture that are NaN; see :meth:`inpaint`.

        Parameters
        ----------
        image : array-like of shape (height, width) or (height, width, 3)

        Returns
        -------
        array of the same shape
        """
        values: Array = self.inpaint(image)
        return values

    def inpaint(self, image: ArrayLike, mask: ArrayLike | None = None, return_std: bool = False) -> Any:
        """Fill the missing pixels of a picture: the one fitted, or another of its kind.

        Parameters
        ----------
        image : array-like of shape (height, width) or (height, width, 3)
            As for :meth:`fit`.
        mask : array-like of shape (height, width), optional
            Where it is not 0, the pixel is missing.
        return_std : bool, default=False
            Whether to give the standard deviation of each pixel too; it is 0 for pixels that are kept.

        Returns
        -------
        restored : array of float of the same shape
            Between 0 and 1 if integers came, in the units of the picture otherwise.
        std : array of the same shape
            Only if `return_std`.
        """
        picture = as_picture(image, mask)
        restored = self._restore(picture, with_std=return_std, as_seen=bool(self.keep_known))
        values, std = restored.values, restored.std
        if self.keep_known:
            values = np.where(picture.missing, values, picture.values)
            std = np.where(picture.missing, std, 0.0)
        filled = picture.restore(values)
        return (filled, std.reshape(picture.shape)) if return_std else filled


def inpaint_image(image: ArrayLike, mask: ArrayLike | None = None, *, return_std: bool = False, **options: Any) -> Any:
    """Fill the missing pixels of a picture.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        uint8, uint16 or Boolean, which are scaled to [0, 1], or floating point, taken as it is. NaN marks a missing
        pixel. An alpha channel is refused.
    mask : array-like of shape (height, width), optional
        Where it is not 0, the pixel is missing, as in scikit-image.
    return_std : bool, default=False
        Whether to give the standard deviation of each pixel too; it is 0 for pixels that are kept.
    **options
        Parameters of :class:`ImageInpainter`.

    Returns
    -------
    restored : array of float of the same shape
        Between 0 and 1 if integers came, in the units of the picture otherwise.
    std : array of the same shape
        Only if `return_std`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors import inpaint_image
    >>> image = np.full((20, 20), 100, dtype=np.uint8)
    >>> mask = np.zeros((20, 20), dtype=bool)
    >>> mask[8:12, 8:12] = True
    >>> restored = inpaint_image(image, mask, n_components=8, random_state=0)
    >>> bool(np.allclose(restored, 100 / 255))
    True
    """
    model = ImageInpainter(**options).fit(image, mask=mask)
    return model.inpaint(image, mask, return_std=return_std)
