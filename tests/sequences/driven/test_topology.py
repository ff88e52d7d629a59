"""A topology is exact zeros: in every family, through every way of fitting, and for ever."""

import numpy as np
import pytest
from sklearn.base import clone

from pluri.io import load, save
from pluri.sequences import (
    GMMHMM,
    AutoregressiveHMM,
    BernoulliHMM,
    CategoricalHMM,
    GaussianHMM,
    HMMClassifier,
    MultinomialHMM,
    PoissonHMM,
    RegressionHMM,
)

MASK = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0]])
ALLOWED = {
    "left-right": np.triu(np.ones((3, 3), dtype=bool)),
    "cyclic": np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool),
    "mask": MASK.astype(bool),
}
LENGTHS = [40, 25, 35]


def observations(family):
    rng = np.random.default_rng(3)
    level = np.concatenate([np.repeat(np.arange(3), [n // 3, n // 3, n - 2 * (n // 3)]) for n in LENGTHS])[:, None]
    if family in (GaussianHMM, GMMHMM, AutoregressiveHMM, RegressionHMM):
        return rng.normal(size=(100, 2)) + 4.0 * level
    if family is BernoulliHMM:
        return (rng.random((100, 3)) < 0.1 + 0.4 * level).astype(float)
    if family is CategoricalHMM:
        return (rng.integers(2, size=(100, 1)) + level).astype(float)
    return rng.poisson(1.0 + 5.0 * level, size=(100, 3)).astype(float)


def as_argument(name):
    return MASK if name == "mask" else name


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::pluri.sequences.DeadStateWarning")
@pytest.mark.filterwarnings("ignore:.*free parameters were learned")
@pytest.mark.parametrize("acceleration", [None, "squarem"])
@pytest.mark.parametrize("name", list(ALLOWED))
@pytest.mark.parametrize(
    "family",
    [GaussianHMM, GMMHMM, CategoricalHMM, BernoulliHMM, PoissonHMM, MultinomialHMM, AutoregressiveHMM, RegressionHMM],
)
def test_what_is_forbidden_stays_exactly_zero(family, name, acceleration):
    model = family(3, topology=as_argument(name), random_state=0, n_init=2, n_iter=15, acceleration=acceleration)
    model.fit(observations(family), lengths=LENGTHS)
    assert (model.transmat_[~ALLOWED[name]] == 0).all()
    np.testing.assert_allclose(model.transmat_.sum(axis=1), 1.0)
    if name == "left-right":
        np.testing.assert_array_equal(model.startprob_, [1, 0, 0])
    for restart in (0, 1):
        climb = [row.objective for row in model.history_ if row.restart == restart]
        assert (np.diff(climb) > -1e-9 * np.abs(climb[1:])).all()


def test_a_topology_is_what_starting_values_with_these_zeros_are():
    X = observations(GaussianHMM)
    start, transition = np.array([1.0, 0, 0]), np.array([[0.7, 0.2, 0.1], [0, 0.6, 0.4], [0, 0, 1.0]])
    given = {"startprob_init": start, "transmat_init": transition, "means_init": [[0, 0], [4, 4], [8, 8]]}
    plain = GaussianHMM(3, random_state=0, **given).fit(X, lengths=LENGTHS)
    masked = GaussianHMM(3, random_state=0, topology="left-right", **given).fit(X, lengths=LENGTHS)
    np.testing.assert_array_equal(plain.transmat_, masked.transmat_)
    np.testing.assert_array_equal(plain.means_, masked.means_)


def test_a_left_right_chain_finds_the_parts_in_their_order():
    # Levels 6 standard deviations apart: a step is misplaced with probability below 0.003, and 20 of 100 never are.
    X = np.random.default_rng(3).normal(size=(100, 1))
    truth = np.concatenate([np.repeat(np.arange(4), n // 4 + 1)[:n] for n in LENGTHS])
    X = X + 6.0 * np.array([2.0, 0.0, 3.0, 1.0])[truth][:, None]
    model = GaussianHMM(4, topology="left-right", random_state=0, n_init=3).fit(X, lengths=LENGTHS)
    assert (model.predict(X, lengths=LENGTHS) == truth).mean() > 0.8
    assert (np.diff(model.predict(X[:40])) >= 0).all()


def test_it_survives_clone_warm_start_and_a_file(tmp_path):
    X = observations(GaussianHMM)
    model = clone(GaussianHMM(3, topology=MASK, random_state=0, warm_start=True, n_iter=2, tol=0.0))
    model.fit(X, lengths=LENGTHS)
    before = model.objective_
    model.fit(X, lengths=LENGTHS)
    assert model.objective_ >= before
    assert (model.transmat_[MASK == 0] == 0).all()
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.topology, MASK)
    assert again.score(X, lengths=LENGTHS) == model.score(X, lengths=LENGTHS)


def test_free_parameters_are_those_that_may_be_positive():
    X = observations(GaussianHMM)
    emission = 3 * 2 + 3 * 2
    for topology, chain in (("ergodic", 2 + 6), ("left-right", 0 + 3), ("cyclic", 2 + 3), (MASK, 2 + 2)):
        model = GaussianHMM(3, topology=topology, random_state=0, n_iter=0).fit(X, lengths=LENGTHS)
        assert model.n_free_parameters() == chain + emission


def test_a_determinantal_prior_holds_with_zeros():
    X = observations(GaussianHMM)
    model = GaussianHMM(3, topology="cyclic", diversity=2.0, random_state=0).fit(X, lengths=LENGTHS)
    assert (model.transmat_[~ALLOWED["cyclic"]] == 0).all()
    climb = model.history_.to_dict()["objective"]
    assert (np.diff(climb) > -1e-9 * np.abs(climb[1:])).all()
    with pytest.raises(ValueError, match="diversity must be None with this topology"):
        GaussianHMM(3, topology=[[1, 0, 0], [1, 0, 0], [1, 1, 1]], diversity=2.0).fit(X)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"topology": "circular"}, "topology must be one of"),
        ({"topology": None}, "topology must be one of"),
        ({"topology": np.ones((2, 2))}, r"topology, a mask, must have shape \(3, 3\)"),
        ({"topology": np.full((3, 3), 0.5)}, "nothing but 0 and 1"),
        ({"topology": [[1, 0, 0], [0, 0, 0], [0, 0, 1]]}, "a transition from every state, got none from state 1"),
        (
            {"topology": "left-right", "transmat_init": np.full((3, 3), 1 / 3)},
            "transmat_ must be zero where topology forbids a transition, got 0.333333 from state 1 to state 0",
        ),
        ({"topology": "left-right", "startprob_init": [0.5, 0.5, 0]}, "startprob_ must be zero where topology"),
    ],
)
def test_what_does_not_fit_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        GaussianHMM(3, **settings).fit(observations(GaussianHMM))


def test_parameters_set_by_hand_must_fit_too():
    model = GaussianHMM(2, topology="left-right")
    model.startprob_, model.transmat_ = np.array([1.0, 0.0]), np.full((2, 2), 0.5)
    model.means_, model.covars_ = np.zeros((2, 1)), np.ones((2, 1))
    with pytest.raises(ValueError, match="transmat_ must be zero where topology"):
        model.score(np.zeros((3, 1)))


def test_a_classifier_takes_its_transitions_from_labels():
    with pytest.raises(ValueError, match="topology of hmm must be 'ergodic', got 'cyclic'"):
        HMMClassifier(GaussianHMM(topology="cyclic")).fit(np.zeros((4, 1)), [0, 1, 0, 1])
