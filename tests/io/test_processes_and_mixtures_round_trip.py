"""Models of the other families come back from their files and predict the same."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

import pluri.embedding
import pluri.factors
import pluri.mixtures
import pluri.processes
from pluri.factors import IBPLinearGaussian
from pluri.io import load, save
from pluri.io.trusted import MODELS, type_name
from pluri.mixtures import MetropolisGaussianMixture, NaiveBayes
from pluri.priors.hyperpriors import LogNormal
from pluri.priors.kernels import RBFKernel
from pluri.processes import (
    BayesianLinearRegression,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    IsingDenoiser,
    dpp,
)
from pluri.processes.dpp import learning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = X[:, 0] - X[:, 1] + 0.1 * RNG.normal(size=30)
LABELS = (Y > 0).astype(int)
CHAINS = {"n_draws": 15, "n_warmup": 15, "n_chains": 2, "random_state": 0}


@pytest.mark.parametrize(
    ("model", "data", "method"),
    [
        (BayesianLinearRegression(), (X, Y), "predict"),
        (BayesianLinearRegression("learn", "learn"), (X, Y), "predict"),
        (NaiveBayes(family="gaussian"), (X, LABELS), "predict_proba"),
        (NaiveBayes(family=["bernoulli", "categorical"]), ((X > 0).astype(int), LABELS), "predict_proba"),
        (GaussianProcessRegressor(ConstantKernel() * RBF() + DotProduct(), hyper_inference="fixed"), (X, Y), "predict"),
        (GaussianProcessRegressor(Matern() + WhiteKernel(), hyper_inference="fixed"), (X, Y), "predict"),
        (
            GaussianProcessRegressor(hyper_inference="nuts", priors={"length_scale": LogNormal(0, 1)}, **CHAINS),
            (X, Y),
            "predict",
        ),
        (GaussianProcessClassifier(), (X, LABELS), "predict_proba"),
        (GaussianProcessClassifier(inference="ess", hyper_inference="fixed", **CHAINS), (X, LABELS), "predict_proba"),
        (IsingDenoiser(), (X,), "transform"),
        (IsingDenoiser(inference="gibbs", random_state=0), (X[:4],), None),
        (IBPLinearGaussian(max_features=2, n_init=1, random_state=0), (X,), "transform"),
        (
            IBPLinearGaussian(max_features=2, inference="gibbs", n_draws=9, n_warmup=3, random_state=0),
            (X,),
            "transform",
        ),
        (MetropolisGaussianMixture(**CHAINS), (X,), "score_samples"),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, BaseEstimator) else "",
)
def test_a_loaded_model_predicts_the_same(model, data, method, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*data)
        save(model, tmp_path / "model.skops")
        again = load(tmp_path / "model.skops")
        assert type(again) is type(model)
        if method is not None:
            # Arrays may come back in another order of memory, in which products are rounded differently.
            assert_allclose(getattr(again, method)(data[0]), getattr(model, method)(data[0]), rtol=1e-12, atol=1e-12)
    if hasattr(model, "trace_"):
        assert_array_equal(again.trace_.summary().values, model.trace_.summary().values)


@pytest.mark.parametrize("family", [pluri.mixtures, pluri.factors, pluri.embedding, pluri.processes, dpp, learning])
def test_every_public_estimator_can_be_saved(family):
    public = [getattr(family, name) for name in family.__all__]
    estimators = {type_name(kind) for kind in public if isinstance(kind, type) and issubclass(kind, BaseEstimator)}
    assert estimators <= MODELS


@pytest.mark.parametrize(
    "stream",
    [dpp.TimeVaryingDPP(20, random_state=0), dpp.SeparateDPP("exact", n_draws=20, random_state=0)],
    ids=["followed", "separate"],
)
def test_a_loaded_stream_of_subsets_goes_on_as_the_saved_one(stream, tmp_path):
    features = np.random.default_rng(1).normal(size=(12, 4))
    stream.update([*"abcdefgh"], features[:8])
    stream.update(["i"], features[8:9], leaving=["a"])
    save(stream, tmp_path / "stream.skops")
    again = load(tmp_path / "stream.skops")
    for model in (stream, again):
        model.update(["b", "j"], features[10:])
    assert again.particles_ == stream.particles_
    assert_array_equal(again.weights_, stream.weights_)
    assert [stamp[:5] for stamp in again.history_] == [stamp[:5] for stamp in stream.history_]


SUBSETS = dpp.DPP(features=RNG.normal(size=(5, 3))).sample(40, random_state=0)


@pytest.mark.parametrize(
    ("model", "data", "attribute"),
    [
        (dpp.DPPSelector(4, kernel=RBFKernel(0.5), random_state=0), (X,), "selected_indices_"),
        (learning.DPPKernelLearner(), (SUBSETS, 5), "L_"),
        (learning.ConditionalDPP(), ((X[:5], np.eye(5)), SUBSETS), "coef_"),
        (learning.DPPVariableSelection(n_draws=20, n_warmup=20, random_state=0), (X, Y), "inclusion_"),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, BaseEstimator) else "",
)
def test_models_of_subsets_survive(model, data, attribute, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(model.fit(*data), tmp_path / "model.skops")
    assert_array_equal(getattr(load(tmp_path / "model.skops"), attribute), getattr(model, attribute))
