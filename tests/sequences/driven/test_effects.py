"""Standard errors of effects: the information against second differences, and intervals that cover as they say."""

import numpy as np
import pytest
from scipy import stats

from pluri.sequences import DrivenHMM, GaussianHMM, PoissonHMM

N_SEEDS, N_SAMPLES, TRUTH = 40, 800, (1.5, -1.0)


def fitted(two_states, seed):
    rng = np.random.default_rng(1000 + seed)
    u, states = two_states(rng, N_SAMPLES, TRUTH)
    X = np.column_stack([rng.normal(size=N_SAMPLES) + 2.5 * states, u])
    hmm = GaussianHMM(2, random_state=0, tol=1e-5, n_iter=1000, means_init=[[0.0], [2.5]])
    model = DrivenHMM(hmm, [1, 2], alpha=1e-3).fit(X)
    return model, X


def test_two_effects_are_recovered_with_intervals_that_cover_as_they_say(two_states):
    """Four effects in each of 40 samples, two of them zero.

    Under intervals of 95 % the misses are about binomial(160, 0.05), and squares of errors over standard errors sum to
    about chi-squared(160); each bound has a false-alarm rate of 1e-4.
    """
    truth = np.zeros((2, 2, 2))
    truth[0, 1, 0], truth[1, 0, 1] = TRUTH
    moved = np.array([[False, True], [True, False]])
    ratios, misses = [], 0
    for seed in range(N_SEEDS):
        model, X = fitted(two_states, seed)
        effects = model.transition_effects(X)
        misses += int(((truth < effects.lower) | (truth > effects.upper))[moved].sum())
        ratios.append(((effects.estimate - truth)[moved] / effects.standard_error[moved]).ravel())
        np.testing.assert_array_equal(effects.standard_error[~moved], 0.0)
    n = 4 * N_SEEDS
    assert misses <= stats.binom.ppf(1 - 1e-4, n, 0.05)
    total = float((np.concatenate(ratios) ** 2).sum())
    assert stats.chi2.ppf(1e-4, n) < total < stats.chi2.ppf(1 - 1e-4, n)


def test_the_information_is_minus_the_second_derivative(two_states):
    """The whole Hessian of log-likelihood plus log prior by second differences of the score alone."""
    rng = np.random.default_rng(7)
    u, states = two_states(rng, 400)
    X = np.column_stack([rng.poisson(2.0 + 6.0 * states), u[:, 0]])
    model = DrivenHMM(PoissonHMM(2, random_state=0, tol=1e-8, n_iter=500), [1], alpha=0.5).fit(X)
    effects = model.transition_effects(X)
    hmm, scale = model.hmm_, model.input_scale_[0]
    coef, rates, transition = model.transition_coef_.copy(), hmm.lambdas_.copy(), hmm.transmat_.copy()
    odds = np.log(transition[[0, 1], [1, 0]] / np.diagonal(transition))

    def objective(v):
        leave = 1.0 / (1.0 + np.exp(-(odds + v[:2])))
        hmm.transmat_ = np.array([[1 - leave[0], leave[0]], [leave[1], 1 - leave[1]]])
        model.transition_coef_ = coef.copy()
        model.transition_coef_[[0, 1], [1, 0], 0] += v[2:4]
        hmm.lambdas_ = rates * np.exp(v[4:, None])
        return model.score(X) - 0.25 * (scale * model.transition_coef_) ** 2 @ np.ones(1) @ np.ones(2) @ np.ones(2)

    steps, hessian = np.full(6, 2e-3), np.empty((6, 6))
    for a, b in np.ndindex(6, 6):
        signs = [(s, t) for s in (1, -1) for t in (1, -1)]
        values = [
            s * t * objective(s * steps * (np.arange(6) == a) + t * steps * (np.arange(6) == b)) for s, t in signs
        ]
        hessian[a, b] = sum(values) / (4.0 * steps[a] * steps[b])
    expected = np.sqrt(np.diagonal(np.linalg.inv(-hessian)))[2:4]
    np.testing.assert_allclose(effects.standard_error[[0, 1], [1, 0], 0], expected, rtol=1e-3)


def test_a_transition_that_never_happens_has_no_bounds():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat([0.0, 9.0], 60) + 0.1 * rng.normal(size=120), rng.normal(size=120)])
    hmm = GaussianHMM(2, means_init=[[0.0], [9.0]], covars_init=[[1.0], [1.0]], random_state=0)
    model = DrivenHMM(hmm.set_params(transmat_init=[[0.9, 0.1], [0.1, 0.9]]), [1]).fit(X)
    effects = model.transition_effects(X)
    assert effects.standard_error[1, 0, 0] == np.inf
    assert effects.lower[1, 0, 0] == -np.inf
    with pytest.raises(ValueError, match="level must be a number above 0 and below 1, got 95"):
        model.transition_effects(X, level=95)
