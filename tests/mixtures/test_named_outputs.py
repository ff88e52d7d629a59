"""Every transformer gives data frames with named columns where `set_output` asks for them."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

RNG = np.random.default_rng(0)
REAL = np.concatenate([RNG.normal(size=(20, 4)), RNG.normal(size=(20, 4)) + 4.0])
BINARY = (REAL.mean(axis=0) < REAL).astype(float)
SETTINGS: dict[str, dict[str, Any]] = {
    "BinaryRBM": {"n_components": 2},
    "ExponentialFamilyPCA": {"n_components": 2},
    "ExponentialFamilyPCAMixture": {"n_components": 2, "n_latent": 1, "max_iter": 20},
    "FlowDensity": {"max_iter": 2, "n_layers": 1, "hidden": (4,)},
    "IBPLinearGaussian": {"max_features": 3, "max_iter": 20, "n_init": 1},
    "LogisticPCA": {"n_components": 2},
}
BITS = ("BinaryRBM", "LogisticPCA")
TAKE_PICTURES = ("ImageDenoiser", "ImageInpainter", "IsingDenoiser", "PatchCompressor", "PatchExtractor")


def transformers() -> list[type]:
    """Every public transformer of tables in these families."""
    found = []
    for family in ("mixtures", "factors", "processes"):
        module = importlib.import_module(f"pluri.{family}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) and hasattr(value, "transform") and name not in TAKE_PICTURES:
                found.append(value)
    return found


@pytest.mark.parametrize("cls", transformers())
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
def test_set_output_reaches_transform_and_fit_transform(cls: type) -> None:
    X = pd.DataFrame(BINARY if cls.__name__ in BITS else REAL, columns=list("abcd"), index=np.arange(40) + 7)
    options = SETTINGS.get(cls.__name__, {})
    model = cls(**{**options, "random_state": 0} if "random_state" in inspect.signature(cls).parameters else options)
    model.set_output(transform="pandas").fit(X)
    framed = model.transform(X)
    assert isinstance(framed, pd.DataFrame)
    assert list(framed.columns) == list(model.get_feature_names_out())
    assert list(framed.index) == list(X.index)
    np.testing.assert_allclose(framed.to_numpy(), model.set_output(transform="default").transform(X))
    again = clone(model).set_output(transform="pandas").fit_transform(X)
    assert isinstance(again, pd.DataFrame)
    assert len(again) == len(X)
