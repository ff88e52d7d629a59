"""Noise taken away from a picture, its level inferred, with a standard deviation for each pixel.

References
----------
Zhou, Chen, Paisley, Ren, Li, Xing, Dunson, Sapiro and Carin (2012), Nonparametric Bayesian dictionary learning for
analysis of noisy and incomplete images, IEEE Transactions on Image Processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.factors.dictionaries.images.pixels import as_picture
from pluri.factors.dictionaries.images.restorer import PatchRestorer
from pluri.validation import Allowed, Only, Whole

Array = NDArray[np.float64]


class ImageDenoiser(PatchRestorer):
    """Denoise a picture by a dictionary learned from its patches; the noise level is inferred.

    A dictionary with a beta process prior (:class:`BetaProcessDictionary`) is learned from some of the overlapping
    patches, whose means are taken away. Then each patch is restored by a short chain given the dictionary, and a pixel
    is the average over the patches that have it, those that are surer counting more. The noise is taken for normal,
    with one variance everywhere.

    Parameters
    ----------
    n_components : int, default=256
        Largest number of atoms.
    patch_size : int or "auto", default="auto"
        Pixels of a side of a patch. "auto" is 8, or 10 where noise is more than two thirds of what varies within
        patches of 8: larger patches average more of it.
    n_patches : int, default=15000
        Patches that the dictionary is learned from, drawn from all of them.
    a, b : float, default=10.0 and 1.0
        Of the beta process: a patch uses about ``a / b`` atoms a priori.
    n_draws, n_warmup : int, default=10 and 40
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
    patch_size_ : int
        Pixels of a side of a patch.
    trace_ : `pluri.inference.mcmc.Trace`
        ``noise_sd``, ``atoms_per_patch`` and ``n_used`` by draw.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors import ImageDenoiser
    >>> rng = np.random.default_rng(0)
    >>> clean = np.outer(np.sin(np.arange(40) / 3), np.cos(np.arange(40) / 5)) / 2 + 0.5
    >>> noisy = clean + rng.normal(0, 0.1, clean.shape)
    >>> model = ImageDenoiser(16, random_state=0).fit(noisy)
    >>> bool(0.09 < model.noise_sd_ < 0.11)
    True
    >>> restored, std = model.denoise(noisy, return_std=True)
    >>> bool(np.abs(restored - clean).mean() < 0.4 * np.abs(noisy - clean).mean())
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **PatchRestorer._parameters,
        "patch_size": Whole(2) | Only("auto"),
    }

    def __init__(
        self,
        n_components: int = 256,
        *,
        patch_size: int | str = "auto",
        n_patches: int = 15000,
        a: float = 10.0,
        b: float = 1.0,
        n_draws: int = 10,
        n_warmup: int = 40,
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
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.n_predictive = n_predictive
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, image: ArrayLike, y: Any = None) -> Self:
        """Learn a dictionary and the noise level.

        Parameters
        ----------
        image : array-like of shape (height, width) or (height, width, 3)
            uint8, uint16 or Boolean, which are scaled to [0, 1], or floating point, taken as it is. NaN marks a missing
            pixel. An alpha channel is refused.
        y : ignored

        Returns
        -------
        self : object
        """
        self._fit(as_picture(image))
        return self

    def transform(self, image: ArrayLike) -> Array:
        """Denoise a picture; see :meth:`denoise`.

        Parameters
        ----------
        image : array-like of shape (height, width) or (height, width, 3)

        Returns
        -------
        array of the same shape
        """
        values: Array = self.denoise(image)
        return values

    def denoise(self, image: ArrayLike, return_std: bool = False) -> Any:
        """Denoise a picture: the one fitted, or another of the same noise and kind.

        Parameters
        ----------
        image : array-like of shape (height, width) or (height, width, 3)
            As for :meth:`fit`. Missing pixels (NaN) are filled.
        return_std : bool, default=False
            Whether to give the standard deviation of each pixel too.

        Returns
        -------
        restored : array of float of the same shape
            Between 0 and 1 if integers came, in the units of the picture otherwise.
        std : array of the same shape
            Only if `return_std`.
        """
        picture = as_picture(image)
        restored = self._restore(picture, with_std=return_std)
        values = picture.restore(restored.values)
        return (values, restored.std.reshape(picture.shape)) if return_std else values


def denoise_image(image: ArrayLike, *, return_std: bool = False, **options: Any) -> Any:
    """Denoise a picture without being told how noisy it is.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, 3)
        uint8, uint16 or Boolean, which are scaled to [0, 1], or floating point, taken as it is. NaN marks a missing
        pixel. An alpha channel is refused.
    return_std : bool, default=False
        Whether to give the standard deviation of each pixel too.
    **options
        Parameters of :class:`ImageDenoiser`.

    Returns
    -------
    restored : array of float of the same shape
        Between 0 and 1 if integers came, in the units of the picture otherwise.
    std : array of the same shape
        Only if `return_std`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors import denoise_image
    >>> rng = np.random.default_rng(0)
    >>> noisy = np.clip(128 + rng.normal(0, 20, (32, 32)), 0, 255).astype(np.uint8)
    >>> restored = denoise_image(noisy, n_components=8, random_state=0)
    >>> bool(np.abs(restored - 128 / 255).max() < 0.05)
    True
    """
    return ImageDenoiser(**options).fit(image).denoise(image, return_std=return_std)
