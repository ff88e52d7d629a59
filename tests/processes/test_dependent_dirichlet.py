"""Chains of Dirichlet processes: the law at each time, what is shared between times, and the limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pluri.processes import DirichletProcess
from pluri.processes.dependent_dirichlet import DependentDirichletProcess


def below_zero(measure):
    return measure.probability(lambda atoms: atoms <= 0)


def test_at_each_time_it_is_a_dirichlet_process():
    # D_t((-inf, 0]) ~ Beta(|mu_t| / 2, |mu_t| / 2), for base and moves are symmetric: Kolmogorov at 1e-6, three times.
    process = DependentDirichletProcess(
        1.5, stats.norm(), 0.7, lambda rng, atoms: 0.6 * atoms + 0.8 * rng.normal(size=atoms.shape)
    )
    rng = np.random.default_rng(0)
    paths = [process.sample(5, tail_mass=1e-4, random_state=rng) for _ in range(1200)]
    for step in (0, 4):
        half = process.concentration_at(step) / 2
        seen = np.array([below_zero(path[step]) for path in paths])
        assert stats.kstest(seen, stats.beta(half, half).cdf).pvalue > 1e-6
        # The variance within 5.5 standard errors.
        squares = (seen - 0.5) ** 2
        assert abs(squares.mean() - process.variance_at(step, 0.5)) < 5.5 * squares.std() / np.sqrt(len(seen))
    assert process.concentration_at(0) == 1.5
    assert process.concentration_at(4) == pytest.approx(1.5 * (1 + 0.7 + 0.7**2 + 0.7**3 + 0.7**4))
    # Total masses are gamma distributed with that shape.
    assert stats.kstest([path.masses[4] for path in paths], stats.gamma(process.concentration_at(4)).cdf).pvalue > 1e-6


def test_two_draws_at_a_time_are_equal_as_often_as_they_should_be():
    # 1 / (1 + |mu_t|), 2500 paths, 5.5 standard errors.
    process = DependentDirichletProcess(0.8, stats.norm(), 0.5)
    rng = np.random.default_rng(1)
    equal = []
    for _ in range(2500):
        _, owners = process.sample(3, tail_mass=1e-4, random_state=rng).sample_observations([0, 0, 2], rng)
        equal.append(owners[2][0] == owners[2][1])
    expected = 1 / (1 + process.concentration_at(2))
    assert abs(np.mean(equal) - expected) < 5.5 * np.sqrt(expected * (1 - expected) / len(equal))


def test_without_survival_times_are_independent():
    # Correlation of 1500 pairs within 5.5 standard errors of zero; no atom is seen twice; the law is the first one's.
    process, rng = DependentDirichletProcess(2.0, stats.norm(), 0.0), np.random.default_rng(2)
    paths = [process.sample(2, tail_mass=1e-4, random_state=rng) for _ in range(1500)]
    pairs = np.array([[below_zero(measure) for measure in path] for path in paths])
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 5.5 / np.sqrt(1500)
    assert not np.intersect1d(*paths[0].identities).size
    assert stats.kstest(pairs[:, 1], stats.beta(1, 1).cdf).pvalue > 1e-6


def test_with_certain_survival_and_nothing_new_nothing_changes():
    process = DependentDirichletProcess(2.0, stats.norm(), 1.0, innovation=0)
    path = process.sample(6, random_state=3)
    for measure in path:
        assert (measure.atoms == path[0].atoms).all()
        assert (measure.weights == path[0].weights).all()
    assert process.concentration_at(5) == 2.0
    assert np.ptp(path.masses) == 0


def test_neighbouring_times_share_what_survives():
    # Shares of surviving atoms keep their proportions, and moved atoms their identity.
    process = DependentDirichletProcess(
        3.0, lambda rng, n: rng.normal(size=(n, 2)), 0.8, lambda rng, atoms: atoms + 1.0
    )
    path = process.sample(4, random_state=4)
    for step in range(3):
        _, before, after = np.intersect1d(path.identities[step], path.identities[step + 1], return_indices=True)
        assert path[step + 1].atoms[after] == pytest.approx(path[step].atoms[before] + 1.0)
        sizes = [path[t].weights[own] * path.masses[t] for t, own in ((step, before), (step + 1, after))]
        assert sizes[0] == pytest.approx(sizes[1])
    assert path.identities[3].max() > path.identities[0].max()
    values, owners = path.sample_observations([3, 0, 2, 5], random_state=0)
    assert [len(value) for value in values] == [3, 0, 2, 5]
    assert (values[3] == path[3].atoms[[np.flatnonzero(path.identities[3] == name)[0] for name in owners[3]]]).all()
    assert repr(path).startswith("<MeasurePath of 4 steps")


def test_survival_may_depend_on_the_place():
    process = DependentDirichletProcess(2.0, stats.norm(), lambda atoms: (atoms > 0).astype(float), innovation=0.5)
    path = process.sample(2, random_state=5)
    kept = np.isin(path.identities[0], path.identities[1])
    assert (kept == (path[0].atoms > 0)).all()
    with pytest.raises(ValueError, match="survival must be a number"):
        process.concentration_at(1)


def test_the_first_time_is_a_plain_process():
    # Mean number of distinct values among 20 draws, 800 times each: 5.5 standard errors of the exact mean.
    process, rng = DependentDirichletProcess(1.3, stats.norm()), np.random.default_rng(6)
    distinct = [
        len(set(process.sample(1, tail_mass=1e-5, random_state=rng).sample_observations(20, rng)[1][0].tolist()))
        for _ in range(800)
    ]
    plain = DirichletProcess(1.3, stats.norm())
    error = np.sqrt(plain.variance_n_clusters(20) / len(distinct))
    assert abs(np.mean(distinct) - plain.expected_n_clusters(20)) < 5.5 * error


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DependentDirichletProcess(0.0, stats.norm()), "concentration must be a positive number"),
        (lambda: DependentDirichletProcess(1.0, stats.norm(), 1.2), "survival must be a probability"),
        (lambda: DependentDirichletProcess(1.0, stats.norm(), "long"), "survival must be a probability"),
        (lambda: DependentDirichletProcess(1.0, stats.norm(), innovation=-1.0), "innovation must be a positive number"),
        (lambda: DependentDirichletProcess(1.0, stats.norm(), transition=3), "transition must be a function"),
        (lambda: DependentDirichletProcess(1.0, stats.norm()).sample(0), "n_samples must be an integer of at least 1"),
        (lambda: DependentDirichletProcess(1.0, stats.norm(), 0.0, innovation=0).sample(2), "no atom is left"),
        (
            lambda: DependentDirichletProcess(1.0, stats.norm(), 1.0, lambda rng, a: a[:1]).sample(3, random_state=0),
            "transition must give atoms",
        ),
        (lambda: DependentDirichletProcess(1.0, stats.norm(), lambda a: a[:1] * 9).sample(3), "survival must be"),
    ],
)
def test_wrong_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
