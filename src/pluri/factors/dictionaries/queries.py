"""What a fitted dictionary says of rows: their codes, the rows without noise, and how likely they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pluri.factors.dictionaries.preparation import center_of, check_present
from pluri.factors.dictionaries.reconstruction import KnownDictionary, infer_codes
from pluri.factors.dictionaries.records import Array, Rows
from pluri.validation import as_generator, check_count


class DictionaryQueries(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of a fitted dictionary."""

    n_predictive: int
    center: str | None
    random_state: Any
    components_: Array
    usage_: Array
    noise_variance_: Any
    weight_variance_: float
    mean_: Array
    scale_: float
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

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
            self.scale_**2 / self.weight_variance_,
        )  # fmt: skip
        return Rows.of((data - offset) / self.scale_), offset, known

    def transform(self, X: Any) -> Array:
        """Codes of rows, (n_samples, n_components): means over `n_predictive` sweeps with the atoms fixed."""
        rows, _, known = self._open(X)
        return infer_codes(as_generator(self.random_state), rows, known, int(self.n_predictive)).mean * self.scale_

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
