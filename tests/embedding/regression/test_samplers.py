"""Gibbs samplers of reversible embeddings draw from their posteriors; the table of samplers has the joint tests."""

import numpy as np
import pytest

from pluri.embedding import AlignedGibbs, SpectralRegressionGibbs
from pluri.embedding.regression import RegressionPriors
from pluri.embedding.regression.aligned_gibbs import anchor_terms
from pluri.embedding.regression.conditionals import log_joint_rows
from pluri.inference import mcmc
from pluri.priors import BetaProcess, Gamma
from pluri.testing import SamplerProblem, simulation_based_calibration

PRIORS = RegressionPriors(BetaProcess(1.0, 1.0), Gamma(2.0, 2.0), *[Gamma(3.0, 2.0)] * 4)
SCALES = np.array([1.0, 0.7])
WALK = np.array([
    [0.6, 0.2, 0.0, 0.0, 0.2],
    [0.2, 0.5, 0.3, 0.0, 0.0],
    [0.0, 0.3, 0.4, 0.3, 0.0],
    [0.0, 0.0, 0.3, 0.7, 0.0],
    [0.3, 0.0, 0.0, 0.0, 0.7],
])  # fmt: skip


def spectral_kernel(shared=False, learned=False):
    scales = None if learned else SCALES
    return SpectralRegressionGibbs(np.zeros((5, 2)), np.zeros((5, 3)), 2, PRIORS, shared, scales)


def aligned_kernel(shared=False, learned=False):
    return AlignedGibbs(np.zeros((5, 3)), WALK, 2, 2, PRIORS, shared, None if learned else SCALES)


def spectral_problem(shared, learned):
    """Entry for the table of samplers."""
    kernel = spectral_kernel(shared, learned)
    return SamplerProblem(
        "SpectralRegressionGibbs", prior=kernel.sample_prior, data=kernel.sample_data, transition=kernel.sweep,
        n_steps=3,
    )  # fmt: skip


def aligned_problem(shared, learned):
    """Entry for the table of samplers."""
    kernel = aligned_kernel(shared, learned)
    return SamplerProblem(
        "AlignedGibbs", prior=kernel.sample_prior, data=kernel.sample_data, transition=kernel.sweep, n_steps=3
    )


# A second opinion: `test_every_sampler` tries the same kernels.
@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("make", [spectral_kernel, aligned_kernel])
def test_the_samplers_are_calibrated(make):
    """Two independent runs that both fail at 1e-3 are a false alarm in a million."""
    kernel = make()

    def draws(rng, y, n_draws):
        position, found = kernel.sample_prior(rng), []
        for i in range(40 + n_draws):
            position = kernel.sweep(rng, position, y)
            if i >= 40:
                found.append(position)
        return found

    def quantities(theta, y):
        return {
            "clusters": len(set(theta["labels"].tolist())),
            "coordinates in use": theta["support"].sum(),
            "noise": theta["noise_precision"].sum(),
            "centers": (theta["centers"] ** 2).sum(),
            "means": (theta["means"] ** 2).sum(),
            "concentration": theta["concentration"],
        }

    def calibration(random_state):
        return simulation_based_calibration(
            kernel.sample_prior, kernel.sample_data, draws, quantities=quantities, n_simulations=80, n_draws=19,
            thin=2, alpha=1e-3, random_state=random_state,
        )  # fmt: skip

    result = calibration(0)
    result = result if result.passed else calibration(1)
    assert result.passed, result.summary()


@pytest.mark.parametrize("make", [spectral_kernel, aligned_kernel])
def test_a_step_of_the_driver_is_a_sweep(make):
    kernel = make()
    rng = np.random.default_rng(0)
    position = kernel.sample_prior(rng)
    data = kernel.sample_data(rng, position)
    if isinstance(kernel, AlignedGibbs):
        kernel = AlignedGibbs(data, WALK, 2, 2, PRIORS, scales=SCALES)
    else:
        kernel = SpectralRegressionGibbs(data[:, :2], data[:, 2:], 2, PRIORS, scales=SCALES)
    state, info = kernel.step(np.random.default_rng(1), kernel.init(rng, position))
    expected = kernel.sweep(np.random.default_rng(1), position, data)
    for name, value in expected.items():
        np.testing.assert_array_equal(state.position[name], value, err_msg=name)
    assert info["n_clusters"] == len(set(expected["labels"]))


def test_positions_are_kept_after_the_warm_up_only_and_at_equal_distances():
    rng = np.random.default_rng(2)
    kernel = SpectralRegressionGibbs(rng.normal(size=(9, 2)), rng.normal(size=(9, 3)), 2, PRIORS, scales=SCALES)
    kernel = type(kernel)(**{**vars(kernel), "keep_every": 4})
    trace = mcmc.sample(kernel, kernel.sample_prior, record=kernel.record, n_draws=10, n_warmup=7, n_chains=1,
                        random_state=0, warn=False)  # fmt: skip
    state = trace.ends[0].state
    assert (len(state.kept), state.n_counted) == (2, 10)
    np.testing.assert_allclose(
        state.ranks.mean(axis=1) / 10, [trace["dimension"].mean(), trace["effective_rank"].mean()]
    )


def test_anchors_have_their_conditional():
    """All but one anchor given: the log joint has no slope at the mean of the draw and its curvature there."""
    rng = np.random.default_rng(3)
    kernel = aligned_kernel(learned=True)
    position = dict(kernel.sample_prior(rng))
    position["support"] = np.ones((2, 2), dtype=np.int8)
    position["loadings"] = rng.normal(size=(2, 2, 3))
    position["labels"] = np.array([0, 1, 0, 1, 1])
    rows = kernel.sample_data(rng, position)
    terms = anchor_terms(position, rows, np.zeros((5, 2)))
    for k in range(5):
        label = position["labels"][k]
        precision = np.diag(position["precisions"][label])
        for i in range(5):
            precision = precision + WALK[i, k] ** 2 * terms.inner[position["labels"][i]]
        # Without noise the draw of anchor k is its conditional mean given those before it, drawn already.
        drawn = kernel.drawn_anchors(_Silent(), position, rows)
        before = np.concatenate([drawn[:k], position["anchors"][k:]])

        def density(anchor, k=k, before=before):
            anchors = before.copy()
            anchors[k] = anchor
            joint = log_joint_rows(position, WALK @ anchors, rows, anchors)
            return joint[np.arange(5), position["labels"]].sum()

        top = density(drawn[k])
        for _ in range(3):
            e = rng.normal(size=2)
            up, down = density(drawn[k] + e), density(drawn[k] - e)
            assert up - down == pytest.approx(0.0, abs=1e-7 * (1 + abs(top)))
            assert up + down - 2 * top == pytest.approx(-e @ precision @ e, rel=1e-7)


class _Silent:
    """A generator whose normal numbers are zero."""

    def standard_normal(self, shape):
        return np.zeros(shape)


def test_a_walk_that_stays_is_a_mixture_whose_rows_have_coordinates_of_their_own():
    """With W = I an anchor sees its own row only: the conditional is that of a factor analyser with offsets."""
    rng = np.random.default_rng(4)
    kernel = AlignedGibbs(np.zeros((5, 3)), np.eye(5), 2, 2, PRIORS, scales=SCALES)
    position = kernel.sample_prior(rng)
    rows = kernel.sample_data(rng, position)
    found = kernel.drawn_anchors(_Silent(), position, rows)
    for i, j in enumerate(position["labels"]):
        W = (position["loadings"][j] * SCALES[:, None]).T
        spread = np.diag(1 / position["precisions"][j])
        noise = np.eye(3) / position["noise_precision"][j]
        gain = spread @ W.T @ np.linalg.inv(W @ spread @ W.T + noise)
        expected = position["centers"][j] + gain @ (rows[i] - position["means"][j])
        np.testing.assert_allclose(found[i], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SpectralRegressionGibbs(np.zeros((3, 2)), np.zeros((4, 2))), "rows must be as many as coordinates"),
        (lambda: SpectralRegressionGibbs(np.zeros((3, 2)), np.full((3, 2), np.nan)), "rows must be a finite matrix"),
        (lambda: SpectralRegressionGibbs(np.zeros((3, 2)), np.zeros((3, 2)), 0), "n_components must be"),
        (lambda: AlignedGibbs(np.zeros((3, 2)), np.eye(4)), "walk must have shape"),
        (lambda: AlignedGibbs(np.zeros((3, 2)), 2 * np.eye(3)), "rows that sum to one"),
        (lambda: AlignedGibbs(np.zeros((3, 0)), np.eye(3)), "rows must be a finite matrix"),
    ],
)
def test_bad_data_of_the_samplers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
