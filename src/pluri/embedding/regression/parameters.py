"""What parameters and fitted arrays of both reversible embeddings may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pluri.embedding.regression.providers import NAMES
from pluri.priors import BetaProcess, Gamma
from pluri.validation import Allowed, Flag, Made, Only, Stored, Whole

PRECISION = Made(Gamma, "a prior (Gamma)") | Only(None)


class Provider:
    """What `spectral` may be: a name, an estimator with `fit_transform`, or an array of coordinates."""

    def holds(self, value: Any) -> bool:
        """Whether coordinates can be had of it."""
        return value in NAMES if isinstance(value, str) else hasattr(value, "fit_transform") or np.ndim(value) == 2

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, NAMES))}, an estimator with fit_transform or an array of two axes"


#: What fitted arrays of both embeddings look like.
LAYOUT: Mapping[str, Stored] = {
    "weights_": Stored("n_stored", least=0),
    "draw_index_": Stored("n_stored", whole=True, least=0, below="n_stored"),
    "centers_": Stored("n_stored", "n_axes"),
    "variances_": Stored("n_stored", "n_axes", least=0),
    "means_": Stored("n_stored", "n_directions"),
    "loadings_": Stored("n_stored", "n_directions", "n_axes"),
    "noise_variances_": Stored("n_stored", least=0),
    "basis_": Stored("n_features_in_", "n_directions"),
    "offset_": Stored("n_features_in_"),
    "embedding_": Stored("n_rows", "n_axes"),
    "labels_": Stored("n_rows", whole=True, least=0),
    "local_dimension_": Stored("n_rows", least=0),
    "local_effective_rank_": Stored("n_rows", least=0),
    "dimension_posterior_": Stored("n_axes+1", simplex=True),
}
#: What the parameters of both embeddings may be.
PARAMETERS: Mapping[str, Allowed] = {
    "n_coordinates": Whole(1),
    "n_components": Whole(1),
    "spectral": Provider(),
    "n_neighbors": Whole(1),
    "support": Only("cluster", "shared"),
    "scale": Only("spectral", "learned"),
    "reduce": Only("auto") | Flag(),
    "support_prior": Made(BetaProcess, "a prior (BetaProcess)") | Only(None),
    "noise_prior": PRECISION,
    "coordinate_prior": PRECISION,
    "loading_prior": PRECISION,
    "mean_precision_prior": PRECISION,
}
