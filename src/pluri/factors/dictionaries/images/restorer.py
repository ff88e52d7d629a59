"""What denoising and inpainting share: a dictionary learned from the patches of a picture, and its use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pluri.factors.dictionaries.images.calibration import calibrated_missing, calibrated_noisy
from pluri.factors.dictionaries.images.learning import (
    Learning,
    PatchModel,
    cosine_atoms,
    learn_patches,
    robust_noise,
    suitable_size,
)
from pluri.factors.dictionaries.images.patches import PatchGrid
from pluri.factors.dictionaries.images.pixels import Picture, as_observed
from pluri.factors.dictionaries.images.restoration import Restored, fill_smoothly, noise_variance, patch_means, restore
from pluri.inference import mcmc
from pluri.validation import Allowed, Number, Stored, Whole, as_generator, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]
#: Of the normal distribution: 90 % of it are nearer to its mean than so many standard deviations.
NINETY = 1.645


class PatchRestorer(mcmc.Sampled, TransformerMixin, Estimator):
    """Base of estimators that learn the patches of a picture."""

    n_components: int
    patch_size: int | str
    n_patches: int
    a: float
    b: float
    n_warmup: int
    n_draws: int
    n_chains: int
    n_predictive: int
    random_state: Any
    verbose: int

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "patch_size": Whole(2),
        "n_patches": Whole(2),
        "a": Number(above=0),
        "b": Number(above=0),
        "n_draws": Whole(2),
        "n_predictive": Whole(2),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "components_": Stored("n_atoms", "n_features_in_"),
        "usage_": Stored("n_atoms", least=0),
        "noise_interval_": Stored(2, least=0),
    }

    def _fit(self, picture: Picture) -> None:
        check_parameters(self)
        as_observed(picture)
        rng, c = as_generator(self.random_state), picture.values.shape[2]
        missing = picture.missing
        filled = fill_smoothly(picture.values) if missing.any() else picture.values
        noise = robust_noise(picture.values)
        size = suitable_size(filled, noise) if self.patch_size == "auto" else int(self.patch_size)
        grid = PatchGrid.of(picture.values.shape, size)
        which = np.sort(rng.permutation(grid.n_patches)[: int(self.n_patches)])
        patches = grid.extract(filled, which)
        patches = np.asarray(patches - patch_means(patches, c))
        if missing.any():
            patches[grid.extract(missing, which)] = np.nan
            patches = patches[~np.isnan(patches).all(axis=1)]
        settings = Learning(
            int(self.n_components), float(self.a), float(self.b), int(self.n_warmup), int(self.n_draws),
            int(self.n_chains), int(self.verbose),
        )  # fmt: skip
        start = cosine_atoms(settings.n_components, grid.size, c)
        model, trace = learn_patches(rng, patches, start, noise, settings)
        self._store(model, trace, c, int((~missing).sum()))

    def _store(self, model: PatchModel, trace: mcmc.Trace, c: int, n_observed: int) -> None:
        order = np.argsort(-model.log_odds, kind="stable")
        self.components_ = np.ascontiguousarray(model.components[order])
        self.usage_ = 1 / (1 + np.exp(-model.log_odds[order]))
        self.n_features_in_ = int(self.components_.shape[1])
        self.n_channels_ = c
        self.weight_sd_ = float(model.scale / math.sqrt(model.weight_precision))
        self.scale_ = float(model.scale)
        self.noise_sd_ = math.sqrt(noise_variance(model, self.n_features_in_, c))
        drawn = np.asarray(trace["noise_sd"])
        # The chain takes patches that overlap for different ones: it knows no more than the pixels do.
        spread = math.sqrt(float(drawn.var()) + self.noise_sd_**2 / (2 * n_observed))
        self.noise_interval_ = np.maximum(self.noise_sd_ + NINETY * spread * np.array([-1.0, 1.0]), 0)
        self.trace_ = trace

    @property
    def patch_size_(self) -> int:
        """Pixels of a side of a patch."""
        check_is_fitted(self)
        return math.isqrt(self.n_features_in_ // self.n_channels_)

    def _model(self) -> PatchModel:
        """As it was learned, in units of `scale_`."""
        P, c = self.n_features_in_, self.n_channels_
        log_odds = np.log(self.usage_) - np.log1p(-self.usage_)
        noise = self.noise_sd_**2 * max(P - c, 1) / P
        return PatchModel(
            self.components_, log_odds, self.scale_**2 / noise, (self.scale_ / self.weight_sd_) ** 2, self.scale_
        )

    def _restore(self, picture: Picture, *, with_std: bool = True, as_seen: bool = False) -> Restored:
        """A picture without noise; with its standard deviations calibrated, if they are wanted.

        `as_seen`: those of missing pixels are of what would have been seen there, noise included, and those of the
        others are not needed.
        """
        check_is_fitted(self)
        as_observed(picture)
        if picture.values.shape[2] != self.n_channels_:
            kind = "grey, (height, width)" if self.n_channels_ == 1 else "in colour, (height, width, 3)"
            raise ValueError(f"image must be {kind}, as the one fitted, got shape {picture.shape}")
        grid = PatchGrid.of(picture.values.shape, self.patch_size_)
        rng, model, n_sweeps = as_generator(self.random_state), self._model(), int(self.n_predictive)
        restored = restore(rng, picture.values, grid, model, n_sweeps, int(self.verbose))
        if not with_std:
            return restored
        noise, rest = float(self.noise_sd_) ** 2, (grid, model, n_sweeps)
        if not as_seen:
            restored = calibrated_noisy(rng, picture.values, restored, *rest, noise)
        if picture.missing.any():
            restored = calibrated_missing(rng, picture.values, restored, *rest, 0.0 if as_seen else noise)
        return restored
