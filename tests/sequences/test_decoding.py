"""Best paths, sampled paths, the filter, and what the order and the weights of sequences mean."""

import numpy as np
import pytest
from scipy import stats

from pluri.sequences import CategoricalHMM, GaussianHMM, PoissonHMM

FAMILIES = ("gaussian-full", "gmm-tied", "categorical", "bernoulli", "poisson", "multinomial")


@pytest.mark.parametrize("zeros", [False, True], ids=["dense", "zeros"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_k_best_paths_equal_enumeration(enumeration, family, zeros):
    case = enumeration.make_case(family, zeros=zeros, n_samples=5)
    truth = case.enumerate()
    possible = int(np.isfinite(truth.log_joint).sum())
    for n_paths in (1, 2, 7, 3**5 + 5):
        scores, paths = case.model.best_paths(case.X, n_paths)
        assert len(scores) == len(paths) == min(n_paths, possible)
        np.testing.assert_allclose(scores, truth.log_joint[: len(scores)], rtol=1e-11, atol=1e-11)
        assert len({tuple(path) for path in paths.tolist()}) == len(paths)
        joint = enumeration.log_joint_of(
            case.model.startprob_, case.model.transmat_, case.log_density(case.X), paths.astype(int)
        )
        np.testing.assert_allclose(scores, joint, rtol=1e-11, atol=1e-11)
    score, states = case.model.decode(case.X)
    np.testing.assert_allclose(score, truth.log_joint[0], rtol=1e-12)
    np.testing.assert_array_equal(states, truth.paths[0])


@pytest.mark.parametrize("zeros", [False, True], ids=["dense", "zeros"])
@pytest.mark.parametrize("family", ["gaussian-diag", "categorical"])
def test_sampled_paths_have_the_frequencies_of_the_posterior(enumeration, family, zeros):
    # Chi-square over the paths, rare ones together: a false alarm once in 1e6 seeds for each of the four cases.
    case = enumeration.make_case(family, zeros=zeros, n_samples=4, seed=3)
    truth = case.enumerate()
    probability = np.exp(truth.log_joint - truth.log_likelihood)
    n_paths = 20_000
    drawn = case.model.sample_paths(case.X, n_paths=n_paths, random_state=0)
    codes = {tuple(path): i for i, path in enumerate(truth.paths.tolist())}
    counts = np.bincount([codes[tuple(path)] for path in drawn.tolist()], minlength=len(probability))
    assert not counts[probability == 0].any()
    common = probability * n_paths >= 10
    observed, expected = np.append(counts[common], counts[~common].sum()), np.append(probability[common], 0.0)
    expected[-1] = 1.0 - expected[:-1].sum()
    if expected[-1] * n_paths < 5:
        observed, expected = observed[:-1], expected[:-1] / expected[:-1].sum()
        observed = observed.astype(float)
        expected = expected * observed.sum() / n_paths
    statistic = ((observed - n_paths * expected) ** 2 / (n_paths * expected)).sum()
    assert stats.chi2.sf(statistic, len(observed) - 1) > 1e-6


@pytest.mark.parametrize("family", FAMILIES)
def test_the_online_filter_equals_the_filter_of_the_whole_sequence(enumeration, family):
    case = enumeration.make_case(family, n_samples=40, missing="rows")
    online = case.model.filter()
    answers = np.stack([online.update(x) for x in case.X])
    np.testing.assert_allclose(answers, case.model.filter_proba(case.X), atol=1e-12)
    np.testing.assert_allclose(online.log_likelihood, case.model.score(case.X), rtol=1e-12)
    np.testing.assert_allclose(answers[-1], case.model.predict_proba(case.X)[-1], atol=1e-12)


def random_sequences(family, n=6, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 15, size=n)
    if family is CategoricalHMM:
        return [rng.integers(3, size=(length, 1)) for length in lengths]
    if family is PoissonHMM:
        return [rng.poisson(3.0, size=(length, 2)) for length in lengths]
    return [rng.normal(size=(length, 2)) for length in lengths]


def given_start(family, sequences):
    """A model that starts from the same values whatever is done to the sequences."""
    first = family(3, random_state=0, n_iter=0).fit(sequences)
    model = family(3, n_iter=8, tol=-np.inf, init_params="")
    for name in ("startprob_", "transmat_", *family._emission_attributes.values()):
        setattr(model, name, getattr(first, "_covars_" if name == "covars_" else name))
    return model


def assert_close_models(one, other, family):
    for name in ("startprob_", "transmat_", *family._emission_attributes.values()):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(one.history_.objective, other.history_.objective, rtol=1e-10)


families = pytest.mark.parametrize("family", [GaussianHMM, CategoricalHMM, PoissonHMM])


@families
def test_the_order_of_the_sequences_does_not_matter(family):
    sequences = random_sequences(family)
    order = [3, 0, 5, 1, 4, 2]
    there = given_start(family, sequences).fit(sequences)
    back = given_start(family, sequences).fit([sequences[n] for n in order])
    assert_close_models(there, back, family)
    np.testing.assert_allclose(
        there.score_sequences(sequences)[order], there.score_sequences([sequences[n] for n in order]), rtol=1e-12
    )


@families
def test_a_weight_of_two_is_a_sequence_twice_and_zero_is_its_removal(family):
    sequences = random_sequences(family)
    weighted = given_start(family, sequences).fit(sequences, sequence_weight=[1, 2, 0, 1, 3, 1])
    repeated = [sequences[n] for n in (0, 1, 1, 3, 4, 4, 4, 5)]
    plain = given_start(family, sequences).fit(repeated)
    assert_close_models(weighted, plain, family)


@families
def test_a_list_of_sequences_equals_lengths(family):
    sequences = random_sequences(family)
    joined, lengths = np.concatenate(sequences), [len(sequence) for sequence in sequences]
    model = family(3, random_state=0, n_iter=4, tol=-np.inf).fit(sequences)
    other = family(3, random_state=0, n_iter=4, tol=-np.inf).fit(joined, lengths=lengths)
    np.testing.assert_array_equal(model.transmat_, other.transmat_)
    np.testing.assert_array_equal(model.predict(sequences), other.predict(joined, lengths))
    for n, sequence in enumerate(sequences):
        np.testing.assert_allclose(model.score(sequence), model.score_sequences(sequences)[n], rtol=1e-12)


def test_ties_go_to_the_lowest_state():
    model = GaussianHMM(3)
    model.startprob_, model.transmat_ = np.full(3, 1 / 3), np.full((3, 3), 1 / 3)
    model.means_, model.covars_ = np.zeros((3, 1)), np.ones((3, 1))
    assert not model.predict(np.zeros((5, 1))).any()
    assert not model.decode(np.zeros((5, 1)), algorithm="map")[1].any()
