"""The restricted Boltzmann machine against sums over all states, on machines small enough for that."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, logsumexp
from sklearn.utils.estimator_checks import check_estimator

from pluri import on_interrupt
from pluri.factors import rbm_training
from pluri.factors.binary_completion import pattern
from pluri.factors.binary_rbm import BinaryRBM
from pluri.factors.rbm_chains import ClampedGibbs
from pluri.factors.rbm_energy import JointPath, Machine, contrastive_gradient
from pluri.io import load, save

RNG = np.random.default_rng(0)
D, H = 6, 4
MACHINE = Machine(RNG.normal(size=(D, H)), 0.5 * RNG.normal(size=D), 0.5 * RNG.normal(size=H))
VISIBLE = np.array(list(product([0.0, 1.0], repeat=D)))
HIDDEN = np.array(list(product([0.0, 1.0], repeat=H)))


def log_joint(machine=MACHINE):
    """(2^D, 2^H)."""
    W, b, c = machine
    return VISIBLE @ W @ HIDDEN.T + (VISIBLE @ b)[:, None] + HIDDEN @ c


def grouped(n=120, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    return ((rng.random((n, 6)) < 0.9) & (groups[np.arange(n) % 2] == 1)).astype(float)


def fitted(data=None, k=4, **settings):
    given = {"n_iter": 60, "batch_size": 10, "random_state": 0} | settings
    return BinaryRBM(k, **given).fit(grouped() if data is None else data)


def as_model(machine=MACHINE, **settings):
    """An estimator that has these parameters."""
    model = fitted(np.eye(D), n_iter=1, **settings)
    model.components_, model.intercept_visible_, model.intercept_hidden_ = machine.weights.T, *list(machine)[1:]
    return model


def test_free_energy_and_partition_equal_sums_over_hidden_states():
    joint = log_joint()
    np.testing.assert_allclose(-MACHINE.free_energy(VISIBLE), logsumexp(joint, axis=1), atol=1e-12)
    assert MACHINE.log_partition() == pytest.approx(logsumexp(joint), abs=1e-12)
    other = Machine(MACHINE.weights.T, MACHINE.hidden, MACHINE.visible)
    assert other.log_partition() == pytest.approx(logsumexp(joint), abs=1e-12)
    with pytest.raises(ValueError, match="16 units"):
        Machine(np.zeros((20, 20)), np.zeros(20), np.zeros(20)).log_partition()


@pytest.mark.parametrize("scale", [1.0, 80.0, 2000.0])
def test_log_odds_are_exact_conditionals(scale):
    """Every unit of every state, against the difference of the free energies of the two states."""
    machine = Machine(scale * MACHINE.weights, MACHINE.visible, MACHINE.hidden)
    odds = machine.log_odds(machine.field(VISIBLE), VISIBLE.astype(bool))
    for i in range(D):
        on, off = VISIBLE.copy(), VISIBLE.copy()
        on[:, i], off[:, i] = 1.0, 0.0
        exact = machine.free_energy(off) - machine.free_energy(on)
        np.testing.assert_allclose(odds[:, i], exact, rtol=1e-10, atol=1e-12 * scale)


def test_query_is_the_conditional_with_all_others_absent():
    model = as_model(inference="factorised")
    joint = logsumexp(log_joint(), axis=1)
    for present in ([], [2], [0, 5], [1, 2, 3]):
        answer = model.predict_missing(present)
        for i in set(range(D)) - set(present):
            row = np.zeros(D)
            row[present] = 1.0
            off = joint[(row == VISIBLE).all(axis=1)][0]
            row[i] = 1.0
            on = joint[(row == VISIBLE).all(axis=1)][0]
            assert answer[i] == pytest.approx(expit(on - off), abs=1e-12)
        assert (answer[present] == 1.0).all()


def test_gibbs_query_equals_the_sum_over_completions():
    """Twenty chains of 2000 steps, standard error about 0.003: false-alarm rate below 1e-6."""
    joint = np.exp(logsumexp(log_joint(), axis=1))
    fits = (VISIBLE[:, 1] == 1) & (VISIBLE[:, 4] == 0)
    exact = joint[fits] @ VISIBLE[fits] / joint[fits].sum()
    means = as_model(n_chains=20, n_warmup=100, n_draws=2000).predict_missing([1], [4])
    np.testing.assert_allclose(means, exact, atol=0.02)
    model = as_model(inference="gibbs", n_warmup=600, n_draws=600)
    np.testing.assert_allclose(model.predict_missing([1], [4]), exact, atol=0.06)


def test_chains_that_step_together_are_those_that_step_alone(monkeypatch):
    settings = {"n_chains": 3, "n_warmup": 4, "n_draws": 30}
    together = as_model(**settings)
    assert (together.trace_.n_chains, together.trace_.n_draws) == (3, 30)
    answer = together.predict_missing([1], [4])
    monkeypatch.delattr(ClampedGibbs, "advance_together")
    np.testing.assert_allclose(as_model(**settings).predict_missing([1], [4]), answer, atol=1e-12)


def test_unknown_columns_are_not_taken_as_zero_by_default():
    """The two answers are far apart here; 5 chains of 400 steps, false-alarm rate below 1e-4."""
    machine = Machine(np.full((D, 1), 2.0), np.full(D, -1.0), np.array([-3.0]))
    joint = np.exp(logsumexp(VISIBLE @ machine.weights @ HIDDEN[:, :1].T + (VISIBLE @ machine.visible)[:, None]
                             + HIDDEN[:, :1] @ machine.hidden, axis=1))  # fmt: skip
    exact = joint[VISIBLE[:, 0] == 1] @ VISIBLE[VISIBLE[:, 0] == 1] / joint[VISIBLE[:, 0] == 1].sum()
    model = as_model(machine, n_warmup=400, n_draws=400)
    answer = model.predict_missing([0])
    np.testing.assert_allclose(answer, exact, atol=0.06)
    assert (answer == model.predict_missing([0])).all()
    assert exact[1] - as_model(machine, inference="factorised").predict_missing([0])[1] > 0.2


def test_many_steps_of_contrastive_divergence_give_the_exact_gradient():
    """40,000 chains, standard error at most 0.0025: 28 entries within 0.0125, false-alarm rate below 1e-4."""
    data = VISIBLE[np.random.default_rng(2).integers(len(VISIBLE), size=40_000)]
    gradient, activity, _ = contrastive_gradient(MACHINE, pattern(data), 60, np.random.default_rng(3))
    model = np.exp(log_joint() - logsumexp(log_joint()))
    hidden = expit(MACHINE.field(data))
    np.testing.assert_allclose(gradient.weights, data.T @ hidden / len(data) - VISIBLE.T @ model @ HIDDEN, atol=0.0125)
    np.testing.assert_allclose(gradient.visible, data.mean(axis=0) - model.sum(axis=1) @ VISIBLE, atol=0.0125)
    np.testing.assert_allclose(gradient.hidden, hidden.mean(axis=0) - model.sum(axis=0) @ HIDDEN, atol=0.0125)
    np.testing.assert_allclose(activity, hidden.mean(axis=0), atol=1e-12)


def test_pseudo_likelihood_equals_the_sum_of_exact_conditionals():
    model = as_model()
    joint = logsumexp(log_joint(), axis=1)
    place = {tuple(row): value for row, value in zip(VISIBLE, joint)}
    for row, score in zip(VISIBLE[::7], model.score_samples(VISIBLE[::7])):
        total = 0.0
        for i in range(D):
            other = row.copy()
            other[i] = 1 - row[i]
            total += place[tuple(row)] - np.logaddexp(place[tuple(row)], place[tuple(other)])
        assert score == pytest.approx(total, abs=1e-10)


def test_annealed_estimate_of_the_partition_agrees_with_the_sum():
    """Within four standard errors, and these are small."""
    model = as_model()
    exact, none = model.log_partition()
    assert exact == pytest.approx(logsumexp(log_joint()))
    assert none == 0.0
    value, error = model.log_partition(exact=False, n_runs=300, n_temperatures=200, random_state=1)
    assert error < 0.1
    assert abs(value - exact) < 4 * error


def test_steps_of_the_path_leave_its_points_invariant():
    """Exact draws at t = 0.6 stay exact after a step: means over 40,000 within five standard errors."""
    path, t = JointPath(MACHINE, np.linspace(-1, 1, D)), 0.6
    W, b, c = MACHINE
    bent = Machine(t * W, (1 - t) * path.base + t * b, t * c)
    law = np.exp(log_joint(bent) - logsumexp(log_joint(bent)))
    rng = np.random.default_rng(4)
    which = rng.choice(law.size, size=40_000, p=law.ravel())
    states = np.concatenate([VISIBLE[which // len(HIDDEN)], HIDDEN[which % len(HIDDEN)]], axis=1)
    moved = path.move(rng, states, t)
    pairs = moved[:, :D].T @ moved[:, D:] / len(moved)
    np.testing.assert_allclose(pairs, VISIBLE.T @ law @ HIDDEN, atol=0.0125)
    tempered = (1 - t) * path.log_start(states) + t * path.log_end(states)
    x, y = states[:, :D], states[:, D:]
    direct = ((x @ bent.weights) * y).sum(axis=1) + x @ bent.visible + y @ bent.hidden
    assert np.ptp(tempered - direct) < 1e-10


def test_training_raises_the_exact_likelihood_and_completes_groups():
    data = grouped()
    before, after = fitted(n_iter=1), fitted(n_iter=150)
    likelihoods = [-(model.free_energy(data).mean() + model.log_partition()[0]) for model in (before, after)]
    assert likelihoods[1] > likelihoods[0] + 0.5
    answer = after.predict_missing([0, 1])
    assert answer[2] > 0.5 > 0.2 > answer[3:].max()  # .82 +- .04 over twelve seeds
    assert after.reconstruction_errors_[-1] < after.reconstruction_errors_[0]
    drawn = after.sample(200, n_warmup=100)
    assert (drawn[:, :3].any(axis=1) & drawn[:, 3:].any(axis=1)).mean() < 0.3


def test_number_of_steps_grows_as_said(monkeypatch):
    seen = []

    def watched(machine, rows, n_steps, rng):
        seen.append(n_steps)
        return contrastive_gradient(machine, rows, n_steps, rng)

    monkeypatch.setattr(rbm_training, "contrastive_gradient", watched)
    fitted(n_iter=30, batch_size=1000)
    assert seen == [1 + 8 * e // 29 for e in range(30)]


def test_a_sparsity_target_lowers_the_activity():
    free, held = fitted(n_iter=40), fitted(n_iter=40, sparsity_target=0.05, sparsity_cost=2.0)
    assert held.transform(grouped()).mean() < free.transform(grouped()).mean()


def test_divergence_halves_the_learning_rate():
    model = fitted(learning_rate=1e30, n_iter=8, weight_decay=1.0, momentum=0.0)
    assert model.learning_rate_ < 1e30
    assert np.isfinite(model.components_).all()


def test_scikit_learn_accepts_it():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(BinaryRBM(3, n_iter=10))


def test_kinds_of_input_give_the_same_fit():
    data = grouped(30)
    model = fitted(data)
    for same in (
        data.tolist(), data.astype(bool), data.astype(np.float32), data.astype(object), sparse.csr_matrix(data),
        sparse.coo_array(data),
    ):  # fmt: skip
        np.testing.assert_array_equal(fitted(same).components_, model.components_)
    np.testing.assert_allclose(model.transform(sparse.csr_array(data)), model.transform(data))
    np.testing.assert_allclose(model.free_energy(sparse.csr_array(data)), model.free_energy(data))
    row = np.array([[1.0, np.nan, np.nan, 0.0, np.nan, np.nan]])
    np.testing.assert_allclose(model.predict_missing_rows(row)[0], model.predict_missing([0], [3]))
    with pytest.raises(ValueError, match="NaN"):
        fitted(row)
    assert fitted(data[:1]).transform(data[:1]).shape == (1, 4)
    assert model.inverse_transform(model.transform(data)).shape == data.shape


def test_a_saved_model_answers_as_before(tmp_path):
    model = fitted()
    save(model, tmp_path / "model.skops", trusted=[BinaryRBM])
    other = load(tmp_path / "model.skops", trusted=[BinaryRBM])
    np.testing.assert_array_equal(other.predict_missing([1]), model.predict_missing([1]))
    assert "unit" in other.summary()


def test_ctrl_c_keeps_what_is_there(monkeypatch):
    calls = []

    def stops(*arguments):
        calls.append(0)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return contrastive_gradient(*arguments)

    monkeypatch.setattr(rbm_training, "contrastive_gradient", stops)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model = fitted()
    assert model.n_iter_ == 2
    assert model.predict_missing([0]).shape == (6,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"n_components": 0}, "n_components"), ({"cd_end": 0}, "cd_end"), ({"cd_start": 5, "cd_end": 2}, "cd_end"),
     ({"learning_rate": 0.0}, "learning_rate"), ({"momentum": 1.0}, "momentum"), ({"inference": "exact"}, "inference"),
     ({"sparsity_target": 0.0}, "sparsity_target"), ({"weight_decay": -1}, "weight_decay"),
     ({"batch_size": 2.5}, "batch_size")],
)  # fmt: skip
def test_wrong_settings_get_a_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        BinaryRBM(**{"n_iter": 1} | settings).fit(grouped())
