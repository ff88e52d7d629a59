"""Models by name and parameters by text."""

from __future__ import annotations

import math
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pluri.mixtures
from pluri.cli.families import FACTORS, FAMILIES, OTHERS, family_of
from pluri.cli.registry import (
    UsageError,
    build_model,
    explained,
    find_model,
    models,
    parameters,
    parse_value,
    summary_line,
)
from pluri.factors import LogisticPCA
from pluri.mixtures import DPMeans, DynamicMeans, GaussianMixture
from pluri.processes import GaussianProcessRegressor
from pluri.sequences import GaussianHMM


def families_and_names():
    return [(family, name) for family in FAMILIES for name, _ in family.models()]


def test_all_public_models_are_there_and_bases_are_not():
    found = models()
    assert {"GaussianHMM", "CategoricalHMM", "GMMHMM", "BernoulliHMM", "PoissonHMM", "MultinomialHMM"} <= set(found)
    assert "HiddenMarkovModel" not in found
    assert "ConvergenceMonitor" not in found
    assert all(getattr(import_module(family.package), name) is found[name] for family, name in families_and_names())
    assert all(summary_line(kind) and "\n" not in summary_line(kind) for kind in found.values())


def test_every_public_mixture_is_listed_unless_its_data_are_no_table():
    public = {name for name in pluri.mixtures.__all__ if hasattr(getattr(pluri.mixtures, name), "fit")}
    listed = {name for family, name in families_and_names() if family.package == "pluri.mixtures"}
    assert public - listed == {"DependentDirichletMixture", "DynamicMeans", "InfiniteMixtureOfExperts"}
    assert listed <= public
    assert len(families_and_names()) == len(models()), "each model is in one family"


def test_a_model_knows_its_family():
    units = [family_of(kind()).unit for kind in (GaussianHMM, GaussianMixture, DynamicMeans, DPMeans)]
    assert units == ["state", "component", "component", "cluster"]
    assert family_of(LogisticPCA()) is FACTORS
    assert family_of(GaussianProcessRegressor()) is OTHERS


def test_names_are_found_whatever_their_case_and_near_misses_are_named():
    assert find_model("gaussianhmm") is GaussianHMM
    with pytest.raises(UsageError, match=r"MODEL must be .* \(did you mean GaussianHMM\?\): pluri models"):
        find_model("GausianHMM")


literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=50)
@given(literals)
def test_python_literals_come_back(value):
    assert parse_value(repr(value)) == value


@given(st.text())
def test_any_text_gives_a_value_and_never_an_error(text):
    parse_value(text)


def test_words_are_text_and_nothing_is_evaluated():
    assert parse_value("full") == "full"
    assert parse_value("'5'") == "5"
    assert parse_value("__import__('os').system('true')") == "__import__('os').system('true')"
    assert parse_value("(1).__class__") == "(1).__class__"
    assert parse_value("[" * 10_000) == "[" * 10_000
    assert parse_value("-inf") == -math.inf
    assert math.isnan(parse_value("nan"))
    assert parse_value("true") is True
    assert parse_value("None") is None


def test_parameters_reach_the_model():
    model = build_model("GaussianHMM", ["n_components=5", "diversity = 1.5", "covariance_type=full", "tol=-inf"])
    assert (model.n_components, model.diversity, model.covariance_type) == (5, 1.5, "full")
    assert model.tol == -math.inf
    assert build_model("GaussianHMM", ["checkpoint=a=b.npz"]).checkpoint == "a=b.npz"


def test_unknown_parameters_list_the_valid_ones():
    with pytest.raises(UsageError, match=r"'n_component' \(did you mean n_components\?\): valid are .*warm_start"):
        build_model("GaussianHMM", ["n_component=5"])
    for setting in ("n_components", "=5", ""):
        with pytest.raises(UsageError, match="--set must have the form name=value, got"):
            build_model("GaussianHMM", [setting])


def test_a_model_can_be_part_of_another():
    model = build_model("HMMClassifier", ["hmm__diversity=2", "hmm=PoissonHMM", "anchor=0.5"])
    assert type(model.hmm).__name__ == "PoissonHMM"
    assert (model.hmm.diversity, model.anchor) == (2, 0.5)


def test_a_required_part_is_asked_for():
    with pytest.raises(UsageError, match="--set must give estimator to HMMSearchCV, as in --set estimator=GaussianHMM"):
        build_model("HMMSearchCV", ["cv=3"])
    model = build_model("HMMSearchCV", ["estimator__tol=0", "estimator=GaussianHMM", "diversity=[0, 1]"])
    assert (model.estimator.tol, model.diversity) == (0, [0, 1])


def test_every_parameter_of_every_model_is_explained():
    for name, kind in models().items():
        entries = explained(kind)
        assert sorted(word for entry in entries for word in entry.names) == sorted(parameters(kind)), name
        assert all(entry.allowed or entry.meaning for entry in entries), name
