"""Flows learned from sequences: what is recovered, which questions are refused, what is saved."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import adjusted_rand_score

import pluri
from pluri.datasets import make_switching_flow
from pluri.dynamics import LatentDynamics, MultiTaskDynamics
from pluri.priors import Gamma

#: Chains are short here on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:the chains have not settled")

QUICK = {"n_warmup": 60, "n_draws": 60, "n_predictive": 10}


@pytest.fixture(scope="module")
def flow():
    return make_switching_flow(random_state=0)


@pytest.fixture(scope="module")
def model(flow):
    return MultiTaskDynamics(20, 10, random_state=0, **QUICK).fit(flow.X, tasks=flow.tasks)


def simulated_linear_system(rng, n=300):
    M, b = np.array([[0.9, 0.2, 0.0], [-0.2, 0.9, 0.1], [0.0, -0.1, 0.8]]), np.array([0.3, -0.1, 0.2])
    x = np.zeros((n, 3))
    for t in range(1, n):
        x[t] = M @ x[t - 1] + b + 0.1 * rng.normal(size=3)
    return M, b, x


def test_a_linear_system_is_recovered_within_its_error_bars():
    """One region: posterior means of twelve coefficients against least squares and its standard errors.

    The posterior mean is pulled to zero by less than a standard error and has Monte Carlo noise of a tenth of one;
    coefficients of least squares that are 4.5 standard errors from the truth are a false alarm in about 1e4.
    """
    rng = np.random.default_rng(0)
    M, b, x = simulated_linear_system(rng)
    model = LatentDynamics(1, n_warmup=50, n_draws=100, n_predictive=100, random_state=0).fit(x)
    t = np.column_stack([x[:-1], np.ones(len(x) - 1)])
    coefficients, residual, *_ = np.linalg.lstsq(t, x[1:], rcond=None)
    variance = residual.sum() / (3 * len(t) - 12)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(t.T @ t)))[:, None]
    found = np.vstack([model.matrices_.mean(axis=0).T, model.intercepts_.mean(axis=0)])
    assert (np.abs(found - coefficients) < 2 * errors).all()
    assert (np.abs(coefficients - np.vstack([M.T, b])) < 4.5 * errors).all()
    # The standard deviation of the posterior is the standard error; 100 draws tell it to 7 %, 4.5 sd are a third.
    spread = model.matrices_.std(axis=0).T
    np.testing.assert_allclose(spread, np.broadcast_to(errors[:3], (3, 3)), rtol=0.35)
    assert model.noise_variances_.mean() == pytest.approx(variance, rel=0.1)


def test_two_tasks_share_the_rotation_and_nothing_else(flow, model):
    """Regimes are the true ones (ARI > 0.8), and one has a tenth of the steps of both tasks: the rotation.

    Over twenty data sets the smallest ARI was 0.99, and one had two more regimes in common, with few steps.
    """
    labels = model.predict_regime(flow.X, tasks=flow.tasks)
    assert adjusted_rand_score(np.concatenate(flow.regimes), labels) > 0.8
    regimes, shares = model.shared_atoms(0, 1, min_share=0.1)
    assert regimes.shape == (1,)
    turning = [[part[:-1] == 0 for part, own in zip(flow.regimes, flow.tasks) if own == task] for task in (0, 1)]
    np.testing.assert_allclose(shares[0], np.mean(turning, axis=(1, 2)), atol=0.1)


def test_a_window_averages_over_the_neighbours_in_a_sequence(flow, model):
    alone, told = model.predict_regime_proba(flow.X, tasks=flow.tasks), {"tasks": flow.tasks}
    ends = np.cumsum([len(X) for X in flow.X])
    expected = np.concatenate([
        [part[max(t - 3, 0) : t + 4].mean(axis=0) for t in range(len(part))] for part in np.split(alone, ends[:-1])
    ])  # fmt: skip
    np.testing.assert_allclose(model.predict_regime_proba(flow.X, **told, window=3), expected, atol=1e-12)
    np.testing.assert_array_equal(model.predict_regime(flow.X, **told, window=3), expected.argmax(axis=1))
    with pytest.raises(ValueError, match="window must be"):
        model.predict_regime(flow.X, **told, window=-1)


def private_and_shared(rng):
    """Sequences of two rows: two tasks with four matrices in common and one each of their own."""
    matrices = rng.normal(size=(6, 2, 3))
    X, tasks, truth = [], [], []
    for task in range(2):
        for regime in (0, 1, 2, 3, 4 + task):
            center = 3 * rng.normal(size=2)
            for _ in range(40):
                x = center + 0.7 * rng.normal(size=2)
                X.append(np.array([x, matrices[regime] @ [*x, 1.0] + 0.05 * rng.normal(size=2)]))
                tasks.append(task)
                truth.append(regime)
    return X, tasks, np.array(truth)


def test_shared_matrices_are_found_across_tasks():
    """Four shared and two private matrices: co-assignment ARI > 0.8 in two of three data sets.

    Over twenty data sets the smallest ARI was 0.93: two of three below 0.8 would be a rare accident.
    """
    found = []
    for seed in range(3):
        X, tasks, truth = private_and_shared(np.random.default_rng(seed))
        model = MultiTaskDynamics(20, 10, random_state=seed, **QUICK).fit(X, tasks=tasks)
        found.append(adjusted_rand_score(truth, model.predict_regime(X, tasks=tasks)[::2]))
    assert np.sum(np.array(found) > 0.8) >= 2, found


def test_one_task_predicts_as_the_single_layer_does(flow):
    """Held-out steps: log density per step of the two models within a tenth of each other, for one task."""
    held_out = make_switching_flow(random_state=1)
    own = [X for X, task in zip(flow.X, flow.tasks) if task == 0]
    others = [X for X, task in zip(held_out.X, held_out.tasks) if task == 0]
    n_steps = sum(len(X) - 1 for X in others)
    scores = [kind(20, random_state=0, **QUICK).fit(own).score(others) / n_steps for kind in
              (LatentDynamics, MultiTaskDynamics)]  # fmt: skip
    assert abs(scores[0] - scores[1]) < 0.15
    assert min(scores) > 4.5  # at most 4.99 with the true parameters


def test_an_intercept_is_worth_having(flow):
    held_out = make_switching_flow(random_state=1)
    scores = [
        MultiTaskDynamics(20, 10, fit_intercept=choice, random_state=0, **QUICK)
        .fit(flow.X, tasks=flow.tasks)
        .score(held_out.X, tasks=held_out.tasks)
        for choice in (True, False)
    ]
    assert scores[0] > scores[1]


def test_the_order_of_sequences_and_the_units_do_not_matter(flow):
    """The same steps in other units: predictions are the same up to the units, scores up to the change of volume."""
    settings = {"n_warmup": 10, "n_draws": 10, "random_state": 0}
    first = LatentDynamics(10, **settings).fit(flow.X)
    other = LatentDynamics(10, **settings).fit([100 * X - 7 for X in flow.X])
    np.testing.assert_allclose(other.predict([100 * X - 7 for X in flow.X]), 100 * first.predict(flow.X) - 7, rtol=1e-5)
    n_steps = sum(len(X) - 1 for X in flow.X)
    assert other.score([100 * X - 7 for X in flow.X]) == pytest.approx(
        first.score(flow.X) - 2 * n_steps * np.log(100), rel=1e-6
    )


def test_scores_are_sums_over_steps_within_sequences(flow, model):
    scores = model.score_sequences(flow.X, tasks=flow.tasks)
    assert model.score(flow.X, tasks=flow.tasks) == pytest.approx(scores.sum())
    alone = [model.score([X], tasks=[task]) for X, task in zip(flow.X[:3], flow.tasks)]
    np.testing.assert_allclose(scores[:3], alone)
    weights = np.zeros(len(flow.X))
    weights[:2] = [1.0, 2.0]
    weighted = model.score(flow.X, tasks=flow.tasks, sequence_weight=weights)
    assert weighted == pytest.approx(scores[0] + 2 * scores[1])
    holes = [X.copy() for X in flow.X[:1]]
    holes[0][5] = np.nan
    parts = [flow.X[0][:5], flow.X[0][6:]]
    assert model.score(holes, tasks=[0]) == pytest.approx(model.score(parts, tasks=[0, 0]))


def test_gaps_are_filled_better_than_by_a_straight_line(flow, model):
    """Gaps of eight steps across the border of two regimes, in sixty sequences: half the error of a straight line."""
    truth, tasks = np.concatenate(flow.X), flow.tasks
    lengths = [len(X) for X in flow.X]
    holes = [X.copy() for X in flow.X]
    line = []
    for X, filled in zip(flow.X, holes):
        filled[4:12] = np.nan
        share = (np.arange(1, 9) / 9)[:, None]
        line.append((1 - share) * X[3] + share * X[12])
    missing = np.isnan(np.concatenate(holes)).any(axis=1)
    errors = {}
    for bridge in (True, False):
        found = model.impute(holes, tasks=tasks, bridge=bridge)
        np.testing.assert_array_equal(found[~missing], truth[~missing])
        errors[bridge] = np.sqrt(((found - truth)[missing] ** 2).mean())
    straight = np.sqrt(((np.concatenate(line) - truth[missing]) ** 2).mean())
    assert errors[True] < 0.5 * straight
    assert errors[True] < errors[False]
    assert found.shape == (sum(lengths), 2)


def test_a_gap_that_the_flow_does_not_lead_across_is_said():
    """Points go round in circles of radius one; one of them is half a turn further, and farther out, after its gap."""
    rng = np.random.default_rng(0)

    def walk(begin, n=60):
        angle = begin + 0.2 * np.arange(n)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.02 * rng.normal(size=(n, 2))

    model = LatentDynamics(8, random_state=0, **QUICK).fit([walk(begin) for begin in range(6)])
    good = walk(0.5)
    good[20:32] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.impute(good)
    bad = good.copy()
    bad[32:] *= -1.5
    with pytest.warns(UserWarning, match="does not lead across 1 of the 1 gaps"):
        filled = model.impute(bad)
    np.testing.assert_allclose(np.diff(filled[19:33], n=2, axis=0), 0.0, atol=1e-12)  # a straight line


def test_a_hand_over_goes_to_the_target_of_the_other_task(flow, model):
    """A path of task 0 begins on the left and would go to (2, 0); handed over it goes to (2, 2)."""
    x0 = np.array([-1.5, 0.2])
    alone = model.simulate(60, x0, task=0)
    found = model.hand_over(x0, 0, 1, 60)
    np.testing.assert_allclose(alone[-1], [2, 0], atol=0.2)
    np.testing.assert_allclose(found.path[-1], [2, 2], atol=0.2)
    assert found.switched_at < 10
    assert found.regime == model.shared_atoms(0, 1).regimes[0]
    with pytest.warns(UserWarning, match="never came to a regime"):
        other = model.hand_over([2.0, 0.0], 0, 1, 3)
    assert other.switched_at is None
    apart = model.hand_over([2.0, 0.0], 0, 1, 60, meet="density")
    np.testing.assert_allclose(apart.path[-1], [2, 2], atol=0.2)
    at = apart.switched_at
    blended = model.hand_over([2.0, 0.0], 0, 1, 60, meet="density", n_blend=3).path
    before = apart.path[at - 1] if at else np.array([2.0, 0.0])
    share = np.array([[0.25], [0.5], [0.75]])
    expected = (1 - share) * model.simulate(3, before, task=0) + share * apart.path[at : at + 3]
    np.testing.assert_allclose(blended[at : at + 3], expected)
    np.testing.assert_array_equal(
        np.delete(blended, slice(at, at + 3), axis=0), np.delete(apart.path, slice(at, at + 3), axis=0)
    )


def test_random_paths_and_the_field(model):
    paths = model.simulate(5, [-1.5, 0.2], task=0, mode="draw", n_paths=3, random_state=1)
    assert paths.shape == (3, 5, 2)
    np.testing.assert_array_equal(paths, model.simulate(5, [-1.5, 0.2], task=0, mode="draw", n_paths=3, random_state=1))
    assert np.abs(paths - model.simulate(5, [-1.5, 0.2], task=0)).max() < 0.5
    assert model.simulate(4, task=1).shape == (4, 2)
    points = np.array([[-1.0, 0.5], [1.0, 1.0]])
    np.testing.assert_allclose(
        model.vector_field(points, task=0) + points, model.predict([points[:1], points[1:]], tasks=[0, 0])
    )


def test_rows_of_data_come_back_through_an_embedding(flow, tmp_path):
    rng = np.random.default_rng(3)
    frame = rng.normal(size=(2, 6))
    rows = [X @ frame + 1 for X in flow.X]
    pca = PCA(2).fit(np.concatenate(rows))
    frozen = FrozenEstimator(pca)
    coordinates = [pca.transform(X) for X in rows]
    model = LatentDynamics(10, embedding=pca, random_state=0, **QUICK).fit(coordinates)
    path = model.simulate(5, rows[0][0], space="data")
    np.testing.assert_allclose(path, pca.inverse_transform(model.simulate(5, coordinates[0][0])))
    holes = [X.copy() for X in rows]
    holes[0][4:8] = np.nan
    holes[1][3, 2] = np.nan
    found = model.impute(holes, space="data")
    expected = model.impute([np.where(np.isnan(X).any(axis=1)[:, None], np.nan, x) for X, x in zip(holes, coordinates)])
    whole = np.where(np.isnan(np.concatenate(holes)), pca.inverse_transform(expected), np.concatenate(holes))
    np.testing.assert_allclose(found, whole, atol=1e-8)  # nothing to carry across: the rows lie in the plane
    assert clone(LatentDynamics(embedding=frozen)).embedding is frozen
    assert not hasattr(clone(model).embedding, "components_")
    for embedding in (pca, frozen):
        pluri.save(model.set_params(embedding=embedding), tmp_path / "model.skops")
        loaded = pluri.load(tmp_path / "model.skops")
        np.testing.assert_array_equal(loaded.simulate(5, rows[0][0], space="data"), path)
    with pytest.raises(ValueError, match="embedding must give the 2 coordinates"):
        model.set_params(embedding=PCA(3).fit(np.concatenate(rows))).impute(holes, space="data")


def test_what_an_embedding_leaves_is_carried_across_a_gap():
    rng = np.random.default_rng(4)
    angle = 0.3 * np.arange(60)
    plane = np.column_stack([np.cos(angle), np.sin(angle)])
    rows = np.column_stack([plane, 5.0 + 0.01 * np.arange(60)])

    class Plane:
        def transform(self, X):
            return X[:, :2]

        def inverse_transform(self, x):
            return np.column_stack([x, np.zeros(len(x))])

    model = LatentDynamics(5, embedding=Plane(), random_state=0, **QUICK).fit(plane + 1e-3 * rng.normal(size=(60, 2)))
    holes = rows.copy()
    holes[20:30] = np.nan
    np.testing.assert_allclose(model.impute(holes, space="data")[20:30, 2], rows[20:30, 2], atol=1e-9)
    np.testing.assert_allclose(model.impute(holes, space="data", seamless=False)[20:30, 2], 0.0)


def test_names_of_tasks_may_be_words(flow):
    names = np.array(["walk", "run"])[flow.tasks]
    model = MultiTaskDynamics(5, 5, n_warmup=5, n_draws=5, random_state=0).fit(flow.X, tasks=names)
    assert model.tasks_.tolist() == ["run", "walk"]
    assert model.simulate(2, [0.0, 1.0], task="walk").shape == (2, 2)
    rows = np.repeat(names, [len(X) for X in flow.X])
    lengths = [len(X) for X in flow.X]
    assert model.score(np.concatenate(flow.X), lengths=lengths, tasks=rows) == model.score(flow.X, tasks=names)


def test_constant_coordinates_are_no_obstacle():
    rng = np.random.default_rng(5)
    X = np.column_stack([np.sin(0.3 * np.arange(60)) + 0.01 * rng.normal(size=60), np.full(60, 3.0)])
    model = LatentDynamics(4, n_warmup=10, n_draws=10, random_state=0).fit(X)
    np.testing.assert_allclose(model.predict(X)[:, 1], 3.0, atol=0.05)
    model = LatentDynamics(4, n_warmup=10, n_draws=10, random_state=0).fit(np.full((20, 2), 7.0))
    np.testing.assert_allclose(model.predict(np.full((3, 2), 7.0)), 7.0, atol=0.1)


def fitted_with(X=None, kind=LatentDynamics, tasks=None, **settings):
    X = np.random.default_rng(6).normal(size=(20, 2)) if X is None else X
    return kind(**({"n_warmup": 2, "n_draws": 2, "random_state": 0} | settings)).fit(X, tasks=tasks)


BAD = {
    "too few rows": (lambda: fitted_with(np.zeros((4, 2))), "at least 4 pairs of complete rows"),
    "single rows": (lambda: fitted_with([np.zeros((1, 2))] * 9), "at least 4 pairs"),
    "a task without steps": (
        lambda: fitted_with([np.eye(9, 2), np.ones((1, 2))], MultiTaskDynamics, tasks=["a", "b"]), "task 'b' has none",
    ),
    "infinite": (lambda: fitted_with(np.full((20, 2), np.inf)), "infinity"),
    "huge": (lambda: fitted_with(np.full((20, 2), 1e200)), "must not exceed"),
    "tasks of a single layer": (lambda: fitted_with(tasks=[0]), "MultiTaskDynamics learns several"),
    "no regimes": (lambda: fitted_with(n_regimes=0), "n_regimes must be"),
    "no regions": (lambda: fitted_with(kind=MultiTaskDynamics, n_regions=0), "n_regions must be"),
    "text for a prior": (lambda: fitted_with(noise_prior="vague"), "noise_prior must be a prior"),
    "half an embedding": (lambda: fitted_with(embedding=object()), "embedding must be an object with transform"),
    "negative concentration": (lambda: fitted_with(concentration=-1.0), "concentration"),
    "intercept": (lambda: fitted_with(fit_intercept="yes"), "fit_intercept must be"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_data_and_settings_are_refused(case):
    make, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_questions_are_refused(flow, model):
    for question, message in (
        (lambda: model.simulate(3, [0.0, 0.0]), "task must be one of 0, 1, got None"),
        (lambda: model.simulate(3, [0.0, 0.0], task="x"), "task must be one of"),
        (lambda: model.simulate(0, [0.0, 0.0], task=0), "n_steps"),
        (lambda: model.simulate(3, [0.0], task=0), "x0 must have 2 entries"),
        (lambda: model.simulate(3, np.zeros((2, 2)), task=0), "x0 must be one row"),
        (lambda: model.simulate(3, [0.0, 0.0], task=0, mode="best"), "mode must be one of"),
        (lambda: model.simulate(3, [0.0, 0.0], task=0, n_paths=2), "n_paths must be 1"),
        (lambda: model.simulate(3, [0.0, 0.0], task=0, space="data"), "embedding must be a fitted object"),
        (lambda: model.simulate(3, [0.0, 0.0], task=0, space="pixels"), "space must be one of"),
        (lambda: model.score(flow.X), "tasks must be one of"),
        (lambda: model.score(flow.X, tasks=np.full(len(flow.X), 2)), "tasks must be one of"),
        (lambda: model.impute([np.full((3, 2), np.nan)], tasks=[0]), "complete row in each sequence"),
        (lambda: model.vector_field([[1.0]], task=0), "points must have 2 columns"),
        (lambda: model.hand_over([0.0, 0.0], 0, "x", 3), "task_b must be one of"),
        (lambda: model.hand_over([0.0, 0.0], 0, 1, 3, meet="halfway"), "meet must be one of"),
        (lambda: model.hand_over([0.0, 0.0], 0, 1, 3, n_blend=-1), "n_blend"),
        (lambda: model.shared_atoms(0, 1, min_share=2), "min_share must be"),
    ):
        with pytest.raises(ValueError, match=message):
            question()
    with pytest.raises(TypeError, match="sequence_weight"):
        LatentDynamics().fit(flow.X, sequence_weight=np.ones(len(flow.X)))
    with pytest.raises(NotFittedError):
        LatentDynamics().simulate(3)


def test_hyper_parameters_are_fixed_or_learned(flow):
    model = MultiTaskDynamics(
        5, 5, concentration=2.0, regime_concentration=Gamma(2.0, 1.0), n_warmup=2, n_draws=5, random_state=0
    ).fit(flow.X, tasks=flow.tasks)
    assert (model.trace_["concentration"] == 2.0).all()
    assert len(np.unique(model.trace_["regime_concentration"])) == 5


def test_chains_and_threads_do_not_change_what_a_seed_means(flow):
    settings = {"n_warmup": 5, "n_draws": 5, "n_chains": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = (LatentDynamics(6, n_jobs=n, **settings).fit(flow.X) for n in (1, 2))
    np.testing.assert_array_equal(first.matrices_, second.matrices_)
    assert len(np.unique(first.draw_index_)) == 10  # of twenty that were asked for


def test_flows_made_for_examples_are_what_they_say():
    data = make_switching_flow(4, 15, noise_scale=0.0, random_state=1)
    assert repr(data) == "SwitchingFlow(8 sequences, 120 rows)"
    turn = np.array([[np.cos(0.2), -np.sin(0.2)], [np.sin(0.2), np.cos(0.2)]])
    for X, task, regimes in zip(data.X, data.tasks, data.regimes):
        target = np.array([[2.0, 0.0], [2.0, 2.0]])[task]
        for x, y, regime in zip(X, X[1:], regimes):
            assert regime == (0 if x[0] < 0 else 1 + task)
            np.testing.assert_allclose(y, turn @ x if regime == 0 else target + 0.9 * (x - target))
    with pytest.raises(ValueError, match="n_steps"):
        make_switching_flow(n_steps=1)
