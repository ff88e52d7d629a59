"""Blocks: a sequence smoothed piece by piece, kept or computed again, has the numbers of one smoothed whole."""

import numpy as np
import pytest

from pluri.components.chain import forward_backward
from pluri.engine import ArraySource, NpySource
from pluri.inference import flatten
from pluri.sequences import GaussianHMM

N = 60
#: Steps of a block, and the length from which blocks are computed twice.
CUTS = {"kept": (7, 10**6), "twice": (7, 10), "one-step": (1, 10), "even": (15, 10), "one-left": (59, 10)}
FAMILIES = ("gaussian-full", "gaussian-diag", "gmm-diag", "categorical", "bernoulli", "poisson", "multinomial")
cuts = pytest.mark.parametrize("cut", CUTS)


@pytest.fixture
def blocks(monkeypatch):
    def cut(name):
        block, long = CUTS[name]
        monkeypatch.setattr(forward_backward, "BLOCK", block)
        monkeypatch.setattr(forward_backward, "LONG", long)

    return cut


def assert_same_statistics(one, other):
    left, right = flatten(one), flatten(other)
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-12, atol=1e-12, err_msg=name)


@cuts
@pytest.mark.parametrize("zeros", [False, True], ids=["dense", "zeros"])
@pytest.mark.parametrize("family", FAMILIES)
def test_expected_counts_of_blocks_equal_those_of_the_whole(enumeration, e_step, blocks, family, zeros, cut):
    case = enumeration.make_case(family, n_samples=N, zeros=zeros, missing="features")
    whole = e_step(case.model, case.X, weight=[1.7])
    blocks(cut)
    assert_same_statistics(e_step(case.model, case.X, weight=[1.7]), whole)


@cuts
def test_known_states_reach_into_every_block(enumeration, e_step, blocks, cut):
    case = enumeration.make_case("gaussian-diag", n_samples=N)
    labels = np.full(N, -1)
    labels[[0, 6, 7, 14, 59]] = [0, 1, 2, 0, 1]
    whole = e_step(case.model, case.X, labels=labels, in_log_space=True)
    blocks(cut)
    assert_same_statistics(e_step(case.model, case.X, labels=labels), whole)


@cuts
@pytest.mark.parametrize("zeros", [False, True], ids=["dense", "zeros"])
@pytest.mark.parametrize("family", ["gaussian-full", "categorical"])
def test_queries_in_blocks_equal_those_of_the_whole(enumeration, blocks, family, zeros, cut):
    case = enumeration.make_case(family, n_samples=N, zeros=zeros)
    lengths = [3, 25, 0, 1, 31]
    questions = [
        lambda: case.model.score(case.X),
        lambda: case.model.score_sequences(case.X, lengths),
        lambda: case.model.predict_proba(case.X),
        lambda: case.model.predict_proba(case.X, lengths),
        lambda: case.model.score_samples(case.X, lengths)[0],
        lambda: case.model.decode(case.X, lengths)[0],
        lambda: case.model.predict(case.X, lengths),
        lambda: case.model.filter_proba(case.X, lengths),
        lambda: case.model.sample_paths(case.X, lengths, random_state=0),
    ]
    whole = [ask() for ask in questions]
    blocks(cut)
    for ask, answer in zip(questions, whole, strict=True):
        np.testing.assert_allclose(ask(), answer, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("cut", ["kept", "twice"])
def test_an_underflow_inside_a_block_falls_back_to_log_space(e_step, blocks, cut):
    # The state that all later samples need is made impossible to doubles, and only to them, in the first block.
    model = GaussianHMM(2)
    model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.array([[1.0, 0.0], [0.5, 0.5]])
    model.means_, model.covars_ = np.array([[0.0], [60.0]]), np.ones((2, 1))
    X = np.zeros((N, 1))
    X[30:] = 60.0
    truth = e_step(model, X, in_log_space=True)
    blocks(cut)
    assert_same_statistics(e_step(model, X), truth)
    np.testing.assert_allclose(model.score(X), truth.log_likelihood, rtol=1e-12)
    model.set_params(implementation="log")
    posterior = model.predict_proba(X)
    np.testing.assert_allclose(model.set_params(implementation="scaling").predict_proba(X), posterior, atol=1e-12)


@pytest.mark.parametrize("cut", ["kept", "twice"])
def test_an_impossible_block_is_reported(enumeration, e_step, blocks, cut):
    case = enumeration.make_case("categorical", n_samples=N)
    table = np.array(case.model.emissionprob_)
    table[:, 0] = 0.0
    case.model.emissionprob_ = table / table.sum(axis=1, keepdims=True)
    X = np.ones((N, 1), dtype=int)
    X[20] = 0
    blocks(cut)
    assert case.model.score(X) == -np.inf
    with pytest.raises(ValueError, match="probability zero"):
        e_step(case.model, X)
    with pytest.raises(ValueError, match="probability zero"):
        case.model.predict_proba(X)


@pytest.mark.parametrize("cut", ["kept", "twice"])
def test_a_fit_from_a_mapped_file_in_blocks_equals_one_in_memory(blocks, tmp_path, cut):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 3.0 * rng.integers(2, size=(300, 1))
    lengths = [90, 1, 120, 2, 87]
    np.save(tmp_path / "X.npy", X)
    options = {"n_iter": 5, "tol": -np.inf, "random_state": 0}
    plain = GaussianHMM(2, "full", **options).fit(X, lengths=lengths)
    blocks(cut)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    fits = [
        GaussianHMM(2, "full", **options).fit(mapped, lengths=lengths),
        GaussianHMM(2, "full", **options).fit(NpySource(tmp_path / "X.npy", lengths, batch_size=20)),
        GaussianHMM(2, "full", **options).fit(ArraySource(mapped, lengths, batch_size=20)),
    ]
    for other in fits:
        for name in ("startprob_", "transmat_", "means_", "covars_"):
            np.testing.assert_allclose(getattr(other, name), getattr(plain, name), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(other.score(mapped, lengths=lengths), plain.score(X, lengths=lengths), rtol=1e-11)
    np.testing.assert_array_equal(fits[0].predict(mapped, lengths), plain.predict(X, lengths))
