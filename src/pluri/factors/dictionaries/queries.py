"""What a fitted dictionary says of rows: their codes, the rows without noise, and how likely they are."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pluri.factors.dictionaries.preparation import center_of, check_present, scaled
from pluri.factors.dictionaries.reconstruction import KnownDictionary, infer_codes, log_density_bounds
from pluri.factors.dictionaries.records import Array, Rows
from pluri.factors.dictionaries.sizes import ALIKE, merged
from pluri.factors.dictionaries.usage.code_classes import forget_classes
from pluri.validation import Number, as_generator, check_count, check_value
from pluri.validation.interruption import interruptible

#: Atoms that a summary lists.
N_SHOWN = 20


class DictionaryQueries(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of a fitted dictionary."""

    n_predictive: int
    center: str | None
    random_state: Any
    components_: Array
    component_covariance_: Array
    usage_: Array
    noise_variance_: Any
    weight_variance_: float
    mean_: Array
    scale_: float
    n_features_in_: int
    n_iter_: int
    inference: str
    usage_prior: str
    effective_size_: dict[str, int]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_fitted_state(self) -> None:
        """Variances and probabilities that come from a file must be some."""
        for name in ("noise_variance_", "weight_variance_", "scale_"):
            value = np.asarray(getattr(self, name, 1.0), dtype=np.float64)
            if not ((value > 0) & np.isfinite(value)).all():
                raise ValueError(f"{name} must be positive and finite, got {value.min()}")
        if np.max(getattr(self, "usage_", 0.0), initial=0.0) > 1:
            raise ValueError(f"usage_ must be probabilities, got {np.max(self.usage_)}")

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _open(self, X: Any) -> tuple[Rows, Array, KnownDictionary]:
        """Rows in the units of the fit, what was subtracted from them, and the dictionary."""
        check_is_fitted(self, "components_")
        data = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        check_present(data)
        offset = center_of(data, self.center, self.mean_ if self.center == "feature" else None)
        noise = float(np.mean(self.noise_variance_)) / self.scale_**2
        known = KnownDictionary(
            self.components_, np.log(self.usage_) - np.log1p(-self.usage_), 1 / noise,
            self.scale_**2 / self.weight_variance_, getattr(self, "component_covariance_", None),
        )  # fmt: skip
        return Rows.of(scaled(data, offset, self.scale_)), offset, known

    def transform(self, X: Any) -> Array:
        """Codes of rows, (n_samples, n_components): means over `n_predictive` sweeps with the atoms fixed."""
        rows, _, known = self._open(X)
        return infer_codes(as_generator(self.random_state), rows, known, int(self.n_predictive))[0] * self.scale_

    def reconstruct(self, X: Any, *, return_std: bool = False, include_noise: bool = False) -> Any:
        """Rows without noise, missing values filled in: means over `n_predictive` sweeps with the atoms fixed.

        For the rows of the fit, ``reconstruction_`` is better: its draws are of the atoms too.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN marks a missing value.
        return_std : bool, default=False
            Whether standard deviations are wanted too.
        include_noise : bool, default=False
            Whether they are those of a new measurement; otherwise, of the row without noise.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
        std : array of shape (n_samples, n_features)
            If `return_std`. That the atoms are uncertain is in it; that the variances are, and how often each atom is
            used, is not.
        """
        rows, offset, known = self._open(X)
        rng = as_generator(self.random_state)
        codes, std = infer_codes(rng, rows, known, int(self.n_predictive), with_std=return_std)
        mean = codes @ self.components_ * self.scale_ + offset
        if std is None:
            return mean
        variance = (std * self.scale_) ** 2 + (np.mean(self.noise_variance_) if include_noise else 0.0)
        return mean, np.sqrt(variance)

    def score_samples(self, X: Any) -> Array:
        """Lower bound of the log density of each row, of the values that are there: (n_samples,).

        Which atoms a row uses is summed over by mean field. With ``center="sample"`` it is that of the centred rows.
        """
        rows, _, known = self._open(X)
        return log_density_bounds(rows, known) - rows.n_observed * np.log(self.scale_)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`: higher is better."""
        return float(self.score_samples(X).mean())

    def inverse_transform(self, X: Any) -> Array:
        """Rows that codes of shape (n_samples, n_components) stand for, without noise.

        With ``center="sample"`` the mean of a row is no part of its code: the rows come out around zero, and
        :meth:`reconstruct` puts the means back.
        """
        check_is_fitted(self, "components_")
        codes = check_array(X, dtype=np.float64)
        if codes.shape[1] != len(self.components_):
            raise ValueError(f"X must have {len(self.components_)} columns, one per atom, got {codes.shape[1]}")
        return np.asarray(codes @ self.components_ + self.mean_)

    def summary(self) -> str:
        """The fitted model on one page of plain text."""
        check_is_fitted(self, "components_")
        sizes, noise = self.effective_size_, np.sqrt(self.noise_variance_)
        spread = f"{float(noise):.4g}" if np.ndim(noise) == 0 else f"{noise.min():.4g} to {noise.max():.4g}"
        lines = [
            f"{type(self).__name__}: {len(self.components_)} atoms of {self.n_features_in_} features",
            f"{self.inference}: {self.n_iter_} iterations, usage prior {self.usage_prior}",
            f"atoms used at all {sizes['used']}, by 1 % of the rows {sizes['one_percent']}, of which distinct "
            f"{sizes['distinct']}, for 99 % of the power {sizes['power']}",
            f"standard deviation of the noise {spread}, of the weights {self.weight_variance_**0.5:.4g}",
            f"atoms per row {self.usage_.sum():.3g}",
            "",
            "atom  probability of use  length",
        ]
        lengths = np.linalg.norm(self.components_, axis=1)
        lines += [f"{k:<4d}  {self.usage_[k]:<18.3f}  {lengths[k]:.4g}" for k in range(min(len(lengths), N_SHOWN))]
        if len(lengths) > N_SHOWN:
            lines.append(f"and {len(lengths) - N_SHOWN} that are used less")
        return "\n".join(lines)

    @interruptible(method=True)
    def merge_duplicates(self, least_cosine: float = ALIKE) -> Self:
        """Make one atom of atoms that are alike, up to sign, and change ``components_`` and ``usage_`` to those.

        A tidying step after the chain, not a part of it: codes and reconstructions of the fit stay as they are.

        Parameters
        ----------
        least_cosine : float, default=0.99
            Atoms whose angle has a larger cosine are alike.

        Returns
        -------
        self : object
        """
        check_is_fitted(self, "components_")
        check_value(least_cosine, "least_cosine", Number(above=0, most=1))
        mixing, self.usage_ = merged(self.components_, self.usage_, float(least_cosine))
        self.components_ = mixing @ self.components_
        if hasattr(self, "component_covariance_"):
            self.component_covariance_ = mixing @ self.component_covariance_ @ mixing.T
        if hasattr(self, "statistics_"):  # those of the atoms before
            del self.statistics_
        forget_classes(self)
        return self

    def sample(self, n_samples: int = 1) -> Array:
        """Draw rows from the fitted model: (n_samples, n_features)."""
        check_is_fitted(self, "components_")
        check_count(n_samples, "n_samples")
        rng, K = as_generator(self.random_state), len(self.components_)
        used = rng.random((n_samples, K)) < self.usage_
        codes = used * rng.standard_normal((n_samples, K)) * np.sqrt(self.weight_variance_)
        spread = np.sqrt(np.mean(self.noise_variance_))
        return np.asarray(
            codes @ self.components_ + self.mean_ + spread * rng.standard_normal((n_samples, self.n_features_in_))
        )
