"""Samplers of the infinite hidden Markov model against every partition of a few steps, Geweke's test and calibration.

Each report has a false-alarm rate of at most 1e-6.
"""

from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chisquare

from pluri.priors import Beta, Gamma
from pluri.processes import (
    BetaBernoulli,
    DirichletMultinomial,
    GammaPoisson,
    MatrixNormalInverseWishart,
    NormalGamma,
    NormalInverseWishart,
)
from pluri.sequences.infinite import beam as beam_module
from pluri.sequences.infinite import direct as direct_module
from pluri.sequences.infinite._direct_kernels import resample_states
from pluri.sequences.infinite.beam import BeamSampler
from pluri.sequences.infinite.direct import DirectSampler, rows_of
from pluri.sequences.infinite.observations import ObservationModel
from pluri.sequences.infinite.state_posterior import as_position, in_order
from pluri.sequences.infinite.transitions import Hyperparameters, HyperPriors, count_transitions, log_path
from pluri.sequences.infinite.weak_limit import WeakLimitSampler, draw_path
from pluri.testing import SamplerProblem, check_sampler, simulation_based_calibration

# The table of all samplers loads this file from elsewhere.
_spec = spec_from_file_location("every_partition", Path(__file__).parent / "every_partition.py")
every_partition = module_from_spec(_spec)
_spec.loader.exec_module(every_partition)

OFFSETS = np.array([0, 3, 3, 5])  # one of three sequences is empty
PLAIN, STICKY = Hyperparameters(1.3, 0.9, 0.0), Hyperparameters(1.7, 0.8, 0.4)
SYMBOLS = ObservationModel(
    "categorical", (DirichletMultinomial(2, 0.4), DirichletMultinomial(3, (0.5, 1.0, 0.7))), ((0,), (1,))
)
TWO = ((0, 1),)
MODELS = {
    "categorical": SYMBOLS,
    "gaussian": ObservationModel(
        "gaussian", (NormalInverseWishart([0.5, -0.5], 0.3, 5.0, [[2.0, 0.5], [0.5, 1.5]]),), TWO
    ),
    "diag": ObservationModel("diag", (NormalGamma(2, (0.5, -1.0), 0.3, 2.0, (1.5, 0.5)),), TWO),
    "poisson": ObservationModel("poisson", (GammaPoisson(2, 1.5, (0.5, 1.0)),), TWO),
    "bernoulli": ObservationModel("bernoulli", (BetaBernoulli(2, (0.5, 1.0), 1.5),), TWO),
    "autoregressive": ObservationModel(
        "autoregressive",
        (MatrixNormalInverseWishart([[0.2, 0.3]], [[1.0, 0.2], [0.2, 2.0]], 4.0, [[1.5]]),), ((0,),), 1,
    ),
}  # fmt: skip
DATA = {
    "categorical": np.array([[0, 2], [0, np.nan], [1, 0], [np.nan, np.nan], [0, 1]]),
    "gaussian": np.array([[0.0, 0.1], [0.2, -0.1], [3.0, 3.0], [np.nan, np.nan], [2.5, 2.8]]),
    "diag": np.array([[0.0, -1.0], [0.2, np.nan], [3.0, 1.0], [np.nan, np.nan], [2.5, 0.8]]),
    "poisson": np.array([[0.0, 1.0], [1.0, np.nan], [6.0, 3.0], [np.nan, np.nan], [5.0, 4.0]]),
    "bernoulli": np.array([[0.0, 1.0], [0.0, np.nan], [1.0, 0.0], [np.nan, np.nan], [1.0, 0.0]]),
    "autoregressive": np.array([[0.5], [0.7], [-2.0], [1.0], [0.9]]),
}
SAMPLERS = {"beam": (BeamSampler, 200), "direct": (DirectSampler, 200), "weak_limit": (WeakLimitSampler, 4)}
PRIORS = HyperPriors(Gamma(3.0, 2.0), Gamma(2.0, 1.5), Beta(1.5, 2.0))


def make_kernel(sampler, family, hyper, priors=HyperPriors()):  # noqa: B008
    kernel, width = SAMPLERS[sampler]
    return kernel(MODELS[family], DATA[family], OFFSETS, hyper, priors, width)


def enumeration_problem(sampler, family, hyper):
    """Every partition of five steps of two sequences; weights begin at exact draws."""
    kernel = make_kernel(sampler, family, hyper)
    width = kernel.max_components if sampler == "weak_limit" else None

    def move(rng, labels):
        weights = every_partition.draw_exact_weights(rng, labels, OFFSETS, hyper, width)
        return in_order(kernel.sweep(rng, as_position(labels, weights, hyper), kernel.data)["labels"])[0]

    posterior = every_partition.exact_posterior(kernel, width)
    return SamplerProblem(f"{sampler}, {family}", kernel=move, posterior=posterior, n_steps=2)


def joint_problem(sampler, family):
    """States, weights, hyper-parameters and data together; the kernel's own prior, data and sweep."""
    kernel = make_kernel(sampler, family, STICKY, PRIORS)

    def statistics(position, X):
        labels = in_order(np.asarray(position["labels"]))[0]
        sizes = np.bincount(labels)
        there = np.nan_to_num(X)
        return {
            "log concentration": np.log(position["concentration"]),
            "log weight concentration": np.log(position["weight_concentration"]),
            "stickiness": float(position["stickiness"]),
            "n states": len(sizes),
            "squared sizes": (sizes**2).sum(),
            "stays": float(labels[1] == labels[0]),
            "first steps": float(labels[0] == labels[3]),
            "weight of the first": float(np.log(position["weights"][np.asarray(position["labels"])[0]])),
            "within states": sum(float(there[labels == k].var(axis=0).sum() * n) for k, n in enumerate(sizes)),
            "mean": float(there.mean()),
        }

    return SamplerProblem(
        f"{sampler}, {family}", prior=kernel.sample_prior, data=kernel.sample_data, transition=kernel.sweep,
        statistics=statistics, log_likelihood=kernel.log_likelihood, n_steps=3,
    )  # fmt: skip


@pytest.mark.parametrize("hyper", [PLAIN, STICKY], ids=["plain", "sticky"])
def test_probabilities_of_all_partitions_sum_to_one(hyper):
    for width in (None, 3):
        partitions = every_partition.set_partitions(5, width)
        total = sum(np.exp(every_partition.log_prior(labels, OFFSETS, hyper, width)) for labels in partitions)
        assert np.isclose(total, 1.0)


def test_probability_of_a_partition_is_its_mean_over_weights():
    """Mean over 1,500 weights of every naming of the states, within 5 standard errors."""
    labels, rng, width = np.array([0, 0, 1, 1, 0]), np.random.default_rng(0), 3
    chances = []
    for _ in range(1500):
        beta = rng.dirichlet(np.full(width, STICKY.weight_concentration / width))
        counts = every_partition.transitions(labels, OFFSETS)
        pairs = [(i, j) for i, j in product(range(width), repeat=2) if i != j]
        chances.append(sum(np.exp(log_path(counts, STICKY, np.maximum(beta[[i, j]], 1e-300))) for i, j in pairs))
    exact = np.exp(every_partition.log_prior(labels, OFFSETS, STICKY, width))
    assert abs(np.mean(chances) - exact) < 5 * np.std(chances) / np.sqrt(len(chances))


@pytest.mark.parametrize("hyper", [PLAIN, STICKY], ids=["plain", "sticky"])
@pytest.mark.parametrize("family", MODELS)
def test_one_step_is_assigned_with_its_conditional_probabilities(family, hyper):
    """The states that 201 equally spaced uniform numbers choose, against the joint probability of every choice."""
    model, offsets = MODELS[family], np.array([0, 6, 6, 10])
    data = np.resize(DATA[family], (10, DATA[family].shape[1]))
    labels, weights = np.array([0, 0, 1, 0, 0, 0, 1, 1, 2, 2]), np.array([0.3, 0.25, 0.2, 0.25])
    rows, observations = rows_of(model, data, offsets), model.prepare(data, offsets)
    for t in range(10):
        logs = []
        for k in range(4):  # the last is a state without steps, which has the rest of the weights
            path = np.where(np.arange(10) == t, k, labels)
            logs.append(log_path(count_transitions(path, offsets, 4), hyper, weights))
            logs[-1] += observations.log_marginal(observations.sums(path, 4))
        chosen = [_chosen_state(rows, labels, offsets, weights, hyper, t, (u + 0.5) / 201) for u in range(201)]
        assert np.allclose(np.bincount(chosen, minlength=4) / 201, softmax(logs), atol=1 / 200)


def _chosen_state(rows, labels, offsets, weights, hyper, t, uniform):
    paths = direct_module._paths(labels.copy(), offsets, weights, 8, np.full((len(labels), 2), uniform))
    emitted = direct_module._emitted(rows, labels, 8)
    resample_states(rows, emitted, paths, np.array(hyper), t, np.empty(rows.values.shape[1]), np.empty(8))
    return min(paths.labels[t], 3)


@pytest.mark.parametrize("hyper", [PLAIN, STICKY], ids=["plain", "sticky"])
@pytest.mark.parametrize(("sampler", "family"), [
    ("beam", "categorical"), ("beam", "gaussian"), ("direct", "categorical"), ("direct", "gaussian"),
    ("weak_limit", "categorical"), ("weak_limit", "diag"),
])  # fmt: skip
def test_each_sampler_leaves_the_exact_posterior_invariant(sampler, family, hyper):
    """False-alarm rate 1e-6 for each problem."""
    problem = enumeration_problem(sampler, family, hyper)
    check_sampler(problem, alpha=1e-6, max_stages=5, n_replications=200, random_state=1).raise_if_failed()


#: With what is enumerated, each sampler and each family; all pairs are tested by `make test-thorough`.
PAIRS = [
    ("beam", "autoregressive"), ("beam", "poisson"), ("direct", "diag"), ("direct", "autoregressive"),
    ("weak_limit", "bernoulli"),
]  # fmt: skip


@pytest.mark.parametrize(("sampler", "family"), [
    pytest.param(*pair, marks=[] if pair in PAIRS else [pytest.mark.thorough]) for pair in product(SAMPLERS, MODELS)
])  # fmt: skip
def test_data_and_states_keep_their_joint_law(sampler, family):
    """False-alarm rate 1e-6 for each pair; those marked thorough have others of the same family and sampler beside."""
    problem = joint_problem(sampler, family)
    checks = ["repeats itself", "input untouched", "moves", "geweke"]
    check_sampler(problem, alpha=1e-6, max_stages=5, n_replications=80, checks=checks, random_state=0).raise_if_failed()


@pytest.mark.thorough
def test_sticks_without_stickiness_are_noticed(monkeypatch):
    """The power of `test_each_sampler_leaves_the_exact_posterior_invariant`, which is quicker: a wrong beam sampler."""
    right = beam_module.BeamSampler._break_sticks

    def careless(self, rng, weights, rows, hyper, lowest):
        return right(self, rng, weights, rows, hyper._replace(stickiness=0.0), lowest)

    monkeypatch.setattr(beam_module.BeamSampler, "_break_sticks", careless)
    hyper = Hyperparameters(3.0, 2.0, 0.8)
    problem = enumeration_problem("beam", "categorical", hyper)
    assert not check_sampler(problem, n_replications=2000, checks=["enumeration"], random_state=1).passed


def test_paths_are_drawn_from_their_exact_posterior():
    """Every path of four steps of three states: false-alarm rate 1e-6."""
    rng = np.random.default_rng(0)
    rows, log_density = rng.dirichlet(np.ones(3), size=4), rng.normal(size=(4, 3))
    paths = list(product(range(3), repeat=4))
    chances = np.array([
        rows[3, p[0]] * np.prod([rows[a, b] for a, b in pairwise(p)])
        * np.exp(sum(log_density[t, k] for t, k in enumerate(p)))
        for p in paths
    ])  # fmt: skip
    n = 4000
    offsets = np.arange(0, 4 * n + 1, 4)
    drawn = draw_path(rng, rows, np.tile(log_density, (n, 1)), offsets).reshape(n, 4)
    seen = np.zeros(len(paths))
    np.add.at(seen, drawn @ [27, 9, 3, 1], 1)
    assert chisquare(seen, n * chances / chances.sum()).pvalue > 1e-6


def test_underflow_is_left_to_logarithms():
    """Densities that leave one path alone, by factors that no float can hold."""
    rows = np.full((3, 2), 0.5)
    rows[0], rows[1] = [1 - 1e-290, 1e-290], [1e-290, 1 - 1e-290]
    log_density = np.array([[0.0, -2100.0], [-2100.0, 0.0], [0.0, -2100.0], [-2100.0, 0.0]])
    states = draw_path(np.random.default_rng(0), rows, log_density, np.array([0, 4]))
    assert states.tolist() == [0, 1, 0, 1]


def test_slices_at_zero_leave_the_whole_chain():
    """With slices at zero and rows of equal entries, beam sampling is forward filtering, backward sampling."""
    rng = np.random.default_rng(1)
    n, log_density = 3000, rng.normal(size=(3, 2))
    offsets = np.arange(0, 3 * n + 1, 3)
    rows = np.full((3, 2), 0.5)
    args = np.full(3 * n, 0.0), np.tile(log_density, (n, 1)), offsets
    drawn, _ = beam_module._draw_path(rng, rows, *args)
    shares = np.exp(log_density) / np.exp(log_density).sum(axis=1, keepdims=True)
    seen = drawn.reshape(n, 3).mean(axis=0)
    assert (np.abs(seen - shares[:, 1]) < 5 * np.sqrt(shares[:, 0] * shares[:, 1] / n)).all()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_states_are_merged_where_that_raises_the_density_and_only_in_the_warm_up(sampler):
    """Ten steps of one kind in two states, and five of another."""
    model = MODELS["poisson"]
    X, offsets = np.repeat([[2.0, 3.0], [40.0, 50.0]], [10, 5], axis=0), np.array([0, 15])
    kernel = SAMPLERS[sampler][0](model, X, offsets, PLAIN, HyperPriors(), 4)
    labels = np.repeat([0, 1, 2], 5)
    position = as_position(labels, np.full(4, 0.25), PLAIN)
    merged = kernel._merged(position)
    assert in_order(merged["labels"])[0].tolist() == [0] * 10 + [1] * 5
    assert np.isclose(merged["weights"].sum(), 1.0)
    assert kernel.log_joint(merged) > kernel.log_joint(position)
    assert in_order(kernel._merged(merged)["labels"])[0].tolist() == [0] * 10 + [1] * 5
    rule, merges = kernel.adaptation(10), []
    moved = rule.start(None, kernel, None)
    for _ in range(10):
        merges.append(moved.merges)
        moved = rule.update(None, moved, None, None)
    assert merges == [False] * 5 + [True] * 4 + [False]
    assert not rule.finish(moved).merges


@pytest.mark.thorough
@pytest.mark.parametrize(("sampler", "family"), list(product(SAMPLERS, MODELS)))
def test_calibrated(sampler, family):
    """Ranks of prior draws among posterior ones: false-alarm rate 1e-5 for each of the 18 pairs.

    `test_data_and_states_keep_their_joint_law` is quicker.
    """
    kernel = make_kernel(sampler, family, STICKY, PRIORS)

    def draws(rng, data, n_draws):
        position, kept = kernel.sample_prior(rng), []
        for _ in range(20 + 5 * n_draws):
            position = kernel.sweep(rng, position, data)
            kept.append(position)
        return kept[24::5]

    def quantities(position, X):
        return {
            "log c": np.log(position["concentration"]),
            "log gamma": np.log(position["weight_concentration"]),
            "rho": float(position["stickiness"]),
            "log joint": kernel.log_joint(position, X),
        }

    result = simulation_based_calibration(
        kernel.sample_prior, kernel.sample_data, draws, quantities=quantities, n_simulations=200, n_draws=19, thin=1,
        alpha=1e-5, random_state=0,
    )  # fmt: skip
    assert result.passed, str(result)
