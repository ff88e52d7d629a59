"""Subsets through time, as users meet them: streams, restarts, interruptions, wrong input, the published stand-ins."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from pluri import on_interrupt
from pluri.inference.smc.weights import ParticleDegeneracyError
from pluri.priors.kernels import repair_kernel, shortest_path_kernel
from pluri.processes.dpp.tracking import draws as tracking_draws
from pluri.processes.dpp.tracking.separate import SeparateDPP
from pluri.processes.dpp.tracking.time_varying import TimeVaryingDPP


def news_stream(n_stamps, random_state=0, n_words=300, n_slots=33, n_replaced=5):
    """Word counts of the newest article in each of 33 slots, of which 5 are replaced at every stamp."""
    rng = np.random.default_rng(random_state)
    topics = rng.dirichlet(np.full(n_words, 0.05), 13)
    category = rng.integers(13, size=n_slots)

    def article(slot):
        story = rng.dirichlet(np.full(n_words, 0.02))
        return rng.multinomial(200, 0.7 * topics[category[slot]] + 0.3 * story).astype(float)

    yield list(range(n_slots)), np.array([article(slot) for slot in range(n_slots)])
    for _ in range(n_stamps - 1):
        slots = rng.choice(n_slots, n_replaced, replace=False).tolist()
        yield slots, np.array([article(slot) for slot in slots])


def mail_network(n_days, random_state=0, n_nodes=60, n_blocks=4, n_window=30):
    """Kernels of who wrote to whom in the last 30 days, in three regimes: most rows change every day."""
    rng = np.random.default_rng(random_state)
    block = rng.integers(n_blocks, size=n_nodes)
    activity = rng.gamma(0.4, 1.0, n_nodes)
    rates, changes = (1.0, 1.6, 2.4), (0, n_days // 2, 5 * n_days // 6)
    days, kernels, regime = [], [], 0
    for day in range(n_days + n_window - 1):
        if regime < 2 and day - n_window + 1 >= changes[regime + 1]:
            regime += 1
            activity = 0.5 * activity + 0.5 * rng.gamma(0.4, 1.0, n_nodes)
        intensity = 0.01 * rates[regime] ** 2 * np.outer(activity, activity) * (1 + 4 * np.equal.outer(block, block))
        edges = np.triu(rng.random((n_nodes, n_nodes)) < -np.expm1(-intensity), 1)
        days.append(edges | edges.T)
        if len(days) >= n_window:
            window = np.any(days[-n_window:], axis=0)
            kernels.append(repair_kernel(1.03 * shortest_path_kernel(window, 1.0, quality="degree")))
    return kernels


def test_news_are_followed_as_well_as_by_fresh_draws():
    model = TimeVaryingDPP(kernel="exponential_cosine", random_state=0)
    errors, sizes = [], []
    for changed, features in news_stream(200):
        model.update(changed, features)
        exact = model.inclusion_probabilities(exact=True)
        errors.append(np.abs(model.inclusion_probabilities() - exact).mean())
        # The mean absolute error of 100 independent draws, by the normal approximation.
        sizes.append(np.sqrt(2 / np.pi * exact * (1 - exact) / 100).mean())
    assert np.mean(errors) < 1.4 * np.mean(sizes)
    assert np.mean(model.ess_history_) > 60
    assert max(model.history_[t].n_moves for t in range(1, 200)) <= 66
    estimate, exact = (
        np.array([getattr(stamp, name) for stamp in model.history_[1:]])
        for name in ("log_normalizer_ratio", "log_normalizer_ratio_exact")
    )
    # One ratio of 100 particles has a standard deviation of about 0.04.
    assert np.abs(estimate - exact).max() < 0.3
    assert abs(np.mean(estimate - exact)) < 0.02


def test_a_network_that_changes_everywhere_is_followed():
    kernels = mail_network(40)
    changed = np.mean([(np.abs(a - b) > 1e-12).any(axis=1).sum() for a, b in pairwise(kernels)])
    assert changed > 20  # of 60 rows: no few-rows shortcut
    model = TimeVaryingDPP(random_state=0).fit(kernels)
    sizes = np.array([(stamp.estimated_size, stamp.expected_size) for stamp in model.history_])
    assert abs(np.mean(sizes[:, 0] - sizes[:, 1])) < 0.1
    assert len(model.restarts_) < 10
    assert abs(model.log_normalizer_ - np.linalg.slogdet(kernels[-1] + np.eye(60))[1]) < 1.0


def test_streams_of_features_and_whole_kernels_tell_the_same():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(7, 3))
    stream, by_kernel = (TimeVaryingDPP(3000, kernel="rbf", random_state=seed) for seed in (0, 1))
    ids = list("abcdefg")
    stream.update(ids, features)
    for t in range(10):
        new = rng.normal(size=(2, 3))
        gone = ids[:1] if t % 3 else ids[:2]
        come = [f"new {t}", f"newer {t}"]
        keep = [i for i, item in enumerate(ids) if item not in gone]
        ids, features = [ids[i] for i in keep] + come, np.vstack([features[keep], new])
        stream.update(come, new, leaving=gone)
        squares = ((features[:, None] - features) ** 2).sum(axis=2)
        by_kernel.partial_fit(np.exp(-0.5 * squares), ids)
        assert set(stream.item_ids_) == set(ids) == set(by_kernel.item_ids_)
        order = [stream.item_ids_.index(item) for item in by_kernel.item_ids_]
        np.testing.assert_allclose(
            stream.inclusion_probabilities(exact=True)[order], by_kernel.inclusion_probabilities(exact=True), atol=1e-10
        )
        for model in (stream, by_kernel):
            # Standard deviation below 0.012: a false alarm is more than five of them away.
            np.testing.assert_allclose(
                model.inclusion_probabilities(), model.inclusion_probabilities(exact=True), atol=0.07
            )


def test_a_ground_set_may_grow_and_shrink():
    rng = np.random.default_rng(2)
    model = TimeVaryingDPP(500, kernel="cosine", random_state=0)
    model.update(range(4), rng.normal(size=(4, 6)))
    for i in range(4, 90):
        model.update([i], rng.normal(size=(1, 6)))
    assert len(model.item_ids_) == 90
    for i in range(85):
        model.update([], np.empty((0, 6)), leaving=[i])
    assert model.item_ids_ == tuple(range(85, 90))
    assert len(model._items.slot_ids) < 40
    assert all(set(subset) <= set(range(85, 90)) for subset in model.particles_)
    np.testing.assert_allclose(model.inclusion_probabilities(), model.inclusion_probabilities(exact=True), atol=0.12)


def test_sequences_of_features_are_fitted_like_updates():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(9, 4))
    matrices = []
    for t in range(6):
        matrices.append(features.copy())
        features[t] = rng.normal(size=4)
    fitted = TimeVaryingDPP(50, random_state=0).fit(matrices, features=True)
    updated = TimeVaryingDPP(50, random_state=0)
    updated.update(range(9), matrices[0])
    for t in range(1, 6):
        updated.update([t - 1], matrices[t][[t - 1]])
    assert fitted.particles_ == updated.particles_
    np.testing.assert_array_equal(fitted.weights_, updated.weights_)
    assert [stamp.n_changed for stamp in fitted.history_] == [9, 1, 1, 1, 1, 1]


def test_most_items_replaced_at_once_means_a_restart():
    rng = np.random.default_rng(4)
    model = TimeVaryingDPP(60, random_state=0)
    model.update(range(10), rng.normal(size=(10, 8)))
    cloud = model.update(range(6), rng.normal(size=(6, 8)))
    assert model.restarts_ == [1]
    assert (cloud.ancestors == -1).all()
    np.testing.assert_array_equal(cloud.weights, np.full(60, 1 / 60))
    assert model.log_normalizer_ratio_ == pytest.approx(model.log_normalizer_ratio_exact_)
    model.update(range(3), rng.normal(size=(3, 8)))
    assert model.restarts_ == [1]


def test_a_kernel_that_became_another_means_a_restart():
    model = TimeVaryingDPP(100, random_state=0)
    good = np.arange(30) % 2 == 0
    for t in range(3):
        model.partial_fit(np.diag(np.where(good == (t % 2 == 0), 20.0, 0.05)))
    assert model.restarts_ == [1, 2]
    assert np.abs(model.inclusion_probabilities() - model.inclusion_probabilities(exact=True)).max() < 0.15


def test_a_collapse_restarts_with_a_warning_or_raises():
    apart, twins = 6.0 * np.eye(8), np.ones((8, 8))
    for on_collapse in ("restart", "raise"):
        model = TimeVaryingDPP(
            30, weights="slot", on_collapse=on_collapse, restart_fraction=1.0, random_state=0, n_moves=0
        )
        model.partial_fit(apart)
        assert all(len(subset) >= 2 for subset in model.particles_)
        if on_collapse == "restart":
            with pytest.warns(ConvergenceWarning, match="all 30 subsets have become impossible"):
                model.partial_fit(twins, changed=range(8))
            assert model.restarts_ == [1]
            assert all(len(subset) <= 1 for subset in model.particles_)
        else:
            before = copy.deepcopy(model.particles_)
            with pytest.raises(ParticleDegeneracyError, match="have become impossible"):
                model.partial_fit(twins, changed=range(8))
            assert model.particles_ == before
            np.testing.assert_array_equal(model._follower.kernel, apart)


def test_some_dead_particles_do_not_harm():
    model = TimeVaryingDPP(2000, weights="slot", random_state=0, n_moves=3, restart_fraction=1.0, ess_threshold=0.0)
    model.partial_fit(np.eye(3) * 2.0)
    twins = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    model.partial_fit(twins, changed=[0, 1])
    dead = model.weights_ == 0
    assert 0 < dead.sum() < 2000
    model.partial_fit(twins + np.diag([0.1, 0.1, 0.0]), changed=[0, 1])
    assert (model.weights_[dead] == 0).all()
    assert model.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("target", ["carry", "move_all", "replace_in_resolvent", "write_rows", "after"])
def test_an_interrupted_stamp_leaves_everything_as_it_was(monkeypatch, target):
    rng = np.random.default_rng(6)
    model = TimeVaryingDPP(40, kernel="cosine", random_state=0)
    model.update(range(12), rng.normal(size=(12, 5)))
    model.update([0, 3], rng.normal(size=(2, 5)))

    def state():
        follower, items = model._follower, model._items
        arrays = [follower.kernel, follower.weights, follower.resolvent, items.features, *follower.particles[:3]]
        return [array.copy() for array in arrays], dict(items.slot_of), list(items.slot_ids), list(model.history_)

    def compare(first, second):
        for a, b in zip(first[0], second[0]):
            np.testing.assert_array_equal(a, b)
        assert first[1:] == second[1:]

    before = state()

    def interrupt(*args):
        monkeypatch.undo()  # once: the rows are put back by the same function
        raise KeyboardInterrupt

    if target == "after":
        original = type(model._follower)._move

        def move_and_interrupt(self, *args):
            original(self, *args)
            raise KeyboardInterrupt

        monkeypatch.setattr(type(model._follower), "_move", move_and_interrupt)
    else:
        monkeypatch.setattr(tracking_draws.loops(), target, interrupt)
    new = rng.normal(size=(2, 5))
    with pytest.raises(KeyboardInterrupt):
        model.update([1, "x"], new, leaving=[5])
    compare(state(), before)
    monkeypatch.undo()
    model.update([1, "x"], new, leaving=[5])
    assert len(model.history_) == 3
    assert set(model.item_ids_) == {*range(12), "x"} - {5}
    np.testing.assert_allclose(model._follower.resolvent, np.linalg.inv(model._follower.kernel + np.eye(12)), atol=1e-9)


def test_ctrl_c_in_fit_keeps_the_stamps_so_far():
    def kernels():
        yield np.eye(4)
        yield np.eye(4) * 2
        raise KeyboardInterrupt

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted: 2 time steps were processed"):
        model = TimeVaryingDPP(20, random_state=0).fit(kernels())
    assert len(model.history_) == 2


def test_answers_about_the_last_stamp():
    rng = np.random.default_rng(7)
    features = rng.normal(size=(6, 6))
    ids = list("abcdef")
    model = TimeVaryingDPP(300, kernel="linear", random_state=0)
    cloud = model.update(ids, features)
    kernel = features @ features.T
    best = model.best_subset()
    assert best == cloud.best
    assert model.score(best) == pytest.approx(max(model.score(subset) for subset in model.particles_))
    where = [ids.index(item) for item in best]
    exact = np.linalg.slogdet(kernel[np.ix_(where, where)])[1] - np.linalg.slogdet(kernel + np.eye(6))[1]
    assert model.score(best) == pytest.approx(exact)
    assert model.score(model.best_subset("greedy")) >= model.score(best) - 1.0
    assert model.score([]) == pytest.approx(-np.linalg.slogdet(kernel + np.eye(6))[1])
    draws = model.sample(4000, random_state=1)
    shares = [np.mean([item in draw for draw in draws]) for item in ids]
    # Standard deviation 0.008.
    np.testing.assert_allclose(shares, model.inclusion_probabilities(), atol=0.04)
    assert isinstance(model.sample(), tuple)
    assert model.expected_size_ == pytest.approx(model.inclusion_probabilities(exact=True).sum())


def test_the_same_random_state_gives_the_same_subsets_also_after_a_copy():
    def run(model):
        for changed, features in news_stream(12):
            model.update(changed, features)
        return model

    first, second = (run(TimeVaryingDPP(30, random_state=3)) for _ in range(2))
    assert first.particles_ == second.particles_
    twin = pickle.loads(pickle.dumps(first))
    changed, features = [0, 1], np.random.default_rng(0).random((2, 300))
    assert first.update(changed, features).subsets == twin.update(changed, features).subsets
    assert not hasattr(clone(first), "history_")


def test_moves_decide_how_much_successive_subsets_resemble_each_other():
    overlaps = []
    for n_moves in (0, 33):
        model = TimeVaryingDPP(50, n_moves=n_moves, random_state=0, ess_threshold=0.0, kernel="exponential_cosine")
        previous, values = None, []
        for changed, features in news_stream(20):
            cloud = model.update(changed, features)
            if previous is not None:
                stay = [set(a) - set(changed) for a in previous], [set(a) - set(changed) for a in cloud.subsets]
                values.append(np.mean([len(a & b) / max(len(a | b), 1) for a, b in zip(*stay)]))
            previous = cloud.subsets
        overlaps.append(np.mean(values))
    assert overlaps[0] == 1.0
    assert overlaps[1] < 0.6


def test_a_chain_can_make_the_first_subsets_and_metropolis_the_moves():
    rng = np.random.default_rng(8)
    model = TimeVaryingDPP(2000, init="mcmc", move="metropolis", kernel="linear", random_state=0, n_moves=10)
    model.update(range(6), rng.normal(size=(6, 4)))
    for t in range(5):
        model.update([t], rng.normal(size=(1, 4)))
    # Subsets 80 moves apart are nearly independent: standard deviation 0.012.
    np.testing.assert_allclose(model.inclusion_probabilities(), model.inclusion_probabilities(exact=True), atol=0.07)
    assert 0.1 < model.history_[-1].acceptance < 0.6


def test_sizes_that_nobody_wants_are_told():
    with pytest.warns(UserWarning, match="set expected_size"):
        TimeVaryingDPP(10, random_state=0).partial_fit(0.01 * np.eye(5))
    with pytest.warns(UserWarning, match="set expected_size"):
        TimeVaryingDPP(10, random_state=0).partial_fit(100.0 * np.eye(5))
    model = TimeVaryingDPP(10, expected_size=3, random_state=0).partial_fit(0.01 * np.eye(5))
    assert model.expected_size_ == pytest.approx(3.0)


def begun(**settings):
    model = TimeVaryingDPP(10, random_state=0, **settings)
    model.update(list("abc"), np.eye(3))
    return model


@pytest.mark.parametrize(
    ("kernel", "ids", "message"),
    [
        ([[1.0, 0.5], [0.2, 1.0]], None, "kernel must be symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], None, "kernel must be positive semi-definite, got the eigenvalue -1"),
        ([[1.0, np.nan], [np.nan, 1.0]], None, "kernel must be finite, got NaN or infinity"),
        (np.eye(2), ["a", "a"], "item_ids must not name an item twice, got 'a' more than once"),
        (np.eye(2), ["a"], "item_ids must name each of the 2 items of the kernel, got 1"),
        (np.eye(2), "ab", "item_ids must be a list of ids, got the string 'ab'"),
        (np.ones((2, 3)), None, r"kernel must be a square matrix, got shape \(2, 3\)"),
        (np.empty((0, 0)), None, "at least one item"),
    ],
)
def test_wrong_kernels_are_named(kernel, ids, message):
    later = TimeVaryingDPP(10, random_state=0).partial_fit(np.eye(3))
    for model in (TimeVaryingDPP(10, random_state=0), later):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(kernel, ids)
    assert len(later.history_) == 1
    later.partial_fit(np.eye(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], [[np.nan, 0, 0]]), "features must be finite, got NaN or infinity"),
        ((["a"], [[1.0, 0.0]]), "features must have 3 columns as before, got 2"),
        ((["a", "b"], [[1.0, 0.0, 0.0]]), "features must have a row for each of the 2 changed items, got 1"),
        ((["a", "a"], np.eye(3)[:2]), "changed_ids must not name an item twice, got 'a'"),
        ((["a"], [1.0, 0.0, 0.0]), "features must have a row for each changed item"),
        (([], np.empty((0, 3)), ["z"]), "leaving must name present items, got the unknown id 'z'"),
        ((["a"], np.eye(3)[:1], ["a"]), "an item cannot both change and leave, got 'a'"),
        (([], np.empty((0, 3)), ["a", "b", "c"]), "at least one item must stay or enter"),
    ],
)
def test_wrong_updates_are_named_and_change_nothing(arguments, message):
    model = begun()
    features, kernel = model._items.features.copy(), model._follower.kernel.copy()
    changed, rows, *leaving = arguments
    with pytest.raises(ValueError, match=message):
        model.update(changed, rows, leaving=leaving[0] if leaving else ())
    np.testing.assert_array_equal(model._items.features, features)
    np.testing.assert_array_equal(model._follower.kernel, kernel)
    assert model.item_ids_ == ("a", "b", "c")
    model.update(["d"], np.ones((1, 3)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_particles": 0}, "n_particles must be an integer of at least 1, got 0"),
        ({"n_moves": "many"}, "n_moves must be an integer of at least 0 or 'auto', got 'many'"),
        ({"ess_threshold": -1}, "ess_threshold must be a number of at least 0 and at most 1, got -1"),
        ({"restart_fraction": 1.5}, "restart_fraction must be a number of at least 0 and at most 1, got 1.5"),
        ({"weights": "equal"}, "weights must be one of 'marginal', 'slot', got 'equal'"),
        ({"move": "swap"}, "move must be one of 'heat_bath', 'metropolis', got 'swap'"),
        ({"init": "greedy"}, "init must be one of 'exact', 'mcmc', got 'greedy'"),
        ({"on_collapse": "cry"}, "on_collapse must be one of 'restart', 'raise', got 'cry'"),
        ({"resampling": "fair"}, "resampling must be one of"),
        ({"psd_repair": "pray"}, "psd_repair must be one of 'raise', 'clip', 'shift', got 'pray'"),
        ({"expected_size": -1}, "expected_size must be a positive number or None, got -1"),
        ({"expected_size": 7}, r"expected_size must be above 0 and below the rank of the kernel \(3\), got 7"),
        ({"kernel": "tanh"}, "kernel must be one of"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        TimeVaryingDPP(**({"random_state": 0} | settings)).update(range(3), np.eye(3))


def test_other_mistakes_are_named():
    with pytest.raises(NotFittedError, match="has seen no time step yet"):
        TimeVaryingDPP().sample()
    with pytest.raises(ValueError, match="kernels must have at least one time step"):
        TimeVaryingDPP().fit([])
    with pytest.raises(ValueError, match="item_ids must have an entry for each kernel, got only 1"):
        TimeVaryingDPP(10, random_state=0).fit([np.eye(2), np.eye(2)], [["a", "b"]])
    with pytest.raises(ValueError, match="begun with features"):
        begun().partial_fit(np.eye(3))
    model = TimeVaryingDPP(10, random_state=0).partial_fit(np.eye(3))
    with pytest.raises(ValueError, match="begun with a kernel"):
        model.update([0], np.eye(3)[:1])
    with pytest.raises(ValueError, match="changed must name items of this time step, got the unknown id 9"):
        model.partial_fit(np.eye(3), changed=[9])
    with pytest.raises(ValueError, match="changed must name every item whose row of the kernel changed, it lacks 2"):
        model.partial_fit(np.diag([1.0, 2.0, 3.0]), changed=[1])
    with pytest.raises(ValueError, match="subset must name present items, got the unknown id 'z'"):
        model.score(["z"])
    with pytest.raises(ValueError, match="method must be one of 'particle', 'greedy', got 'lazy'"):
        model.best_subset("lazy")


def test_kernels_of_a_function_are_checked_at_every_stamp():
    distance = lambda a, b: np.abs(a[:, :1] - b[:, 0])  # noqa: E731
    with pytest.raises(ValueError, match="the kernel of the features must hold similarities"):
        TimeVaryingDPP(10, kernel=distance, random_state=0).update(range(2), [[0.0], [1.0]])
    late = lambda a, b: 1.0 * np.equal.outer(a[:, 0], b[:, 0]) + 5.0 * np.outer(a[:, 0] > 9, b[:, 0] <= 9)  # noqa: E731
    model = TimeVaryingDPP(10, kernel=lambda a, b: late(a, b) + late(b, a).T, random_state=0)
    model.update(range(3), [[0.0], [1.0], [2.0]])
    with pytest.raises(ValueError, match="the kernel of the features must be positive semi-definite"):
        model.update([1], [[10.0]])
    np.testing.assert_array_equal(model._items.features[:, 0], [0.0, 1.0, 2.0])
    model.update([1], [[5.0]])


def test_an_indefinite_kernel_can_be_repaired():
    kernel = [[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]]
    model = TimeVaryingDPP(10, psd_repair="clip", random_state=0).partial_fit(kernel)
    np.testing.assert_allclose(model._follower.kernel, repair_kernel(kernel))


def test_quality_scales_the_rows_of_the_kernel():
    rng = np.random.default_rng(3)
    first, later = rng.normal(size=(9, 5)), rng.normal(size=(2, 5))
    quality, new_quality = rng.uniform(0.5, 2.0, size=9), np.array([0.0, 1.5])
    asked = TimeVaryingDPP(40, kernel="linear", random_state=0)
    scaled = TimeVaryingDPP(40, kernel="linear", random_state=0)
    asked.update(range(9), first, quality=quality)
    scaled.update(range(9), first * quality[:, None])
    asked.update([2, 9], later, quality=new_quality, leaving=[4])
    scaled.update([2, 9], later * new_quality[:, None], leaving=[4])
    asked.update([3], later[:1])  # of quality 1
    scaled.update([3], later[:1])
    assert asked.particles_ == scaled.particles_
    np.testing.assert_allclose(asked.weights_, scaled.weights_)
    np.testing.assert_allclose(asked.inclusion_probabilities(exact=True), scaled.inclusion_probabilities(exact=True))


def test_quality_works_with_a_kernel_that_is_no_product_of_rows():
    rng = np.random.default_rng(4)
    features, quality = rng.normal(size=(6, 3)), rng.uniform(0.5, 2.0, size=6)
    model = TimeVaryingDPP(10, kernel="rbf", kernel_params={"length_scale": 1.0}, random_state=0)
    model.update(range(6), features, quality=quality)
    squares = ((features[:, None] - features) ** 2).sum(axis=-1)
    L = np.exp(-0.5 * squares) * quality * quality[:, None]
    np.testing.assert_allclose(model.inclusion_probabilities(exact=True), np.diag(L @ np.linalg.inv(L + np.eye(6))))


def test_quality_must_be_given_from_the_first_stamp_on_and_be_sensible():
    features = np.eye(3)
    model = TimeVaryingDPP(10, random_state=0)
    with pytest.raises(ValueError, match="quality must be 3 finite, non-negative numbers"):
        model.update(range(3), features, quality=[1.0, -1.0, 1.0])
    model.update(range(3), features)
    with pytest.raises(ValueError, match="quality must be given from the first time step on"):
        model.update([1], features[:1], quality=[2.0])
    assert len(model.history_) == 1


def test_each_stamp_remembers_its_best_subset():
    model = TimeVaryingDPP(30, random_state=0)
    for t, ids in enumerate(("abcd", "e", "f")):
        model.update(list(ids), np.random.default_rng(t).normal(size=(len(ids), 3)))
        assert model.history_[-1].best == model.best_subset()


def test_the_best_subset_has_the_size_asked_for():
    features = np.random.default_rng(5).normal(size=(40, 30))
    model = TimeVaryingDPP(200, expected_size=6, random_state=0)
    cloud = model.update(range(40), features)
    assert "200 weighted subsets of 40 items" in repr(cloud)
    assert len(model.best_subset()) == 6 == len(model.history_[-1].best)
    assert len(model.best_subset("greedy")) == 6
    assert len(model.best_subset("greedy", size=3)) == 3
    log_dets = [model.score(subset) for subset in cloud.subsets if len(subset) == 6]
    assert model.score(model.best_subset()) == pytest.approx(max(log_dets))
    with pytest.raises(ValueError, match="size must be from 0 to 40 or None, got 41"):
        model.best_subset(size=41)


LOOKED_UP = "must hold ids that can be looked up, such as numbers, strings or tuples of them, got"
ROWS = np.random.default_rng(0).normal(size=(4, 3))
MISTAKES = [
    (lambda model: model.fit(1.0), r"kernels must have an entry for each time step, got 1\.0"),
    (lambda model: model.fit(None), "kernels must have an entry for each time step, got None"),
    (lambda model: model.fit([np.eye(3)], item_ids=3), "item_ids must have an entry for each time step, got 3"),
    (lambda model: model.fit([np.eye(3)], item_ids=[3]), "item_ids must be a list of ids, got 3"),
    (lambda model: model.fit([[[1.0, 0.0], [0.0]]]), "kernel must hold numbers only, in rows of one length"),
    (lambda model: model.fit(np.ones(3), features=True), r"features of shape \(n_items, n_features\), got shape \(\)"),
    (lambda model: model.fit([1.0], features=True), r"features of shape \(n_items, n_features\), got shape \(\)"),
    (lambda model: model.fit(ROWS, features=True), r"features of shape \(n_items, n_features\), got shape \(3,\)"),
    (lambda model: model.partial_fit(np.eye(3), [[1], [2], [3]]), rf"item_ids {LOOKED_UP} \[1\]"),
    (lambda model: model.partial_fit(np.eye(3), [1, 2, ([],)]), rf"item_ids {LOOKED_UP} \(\[\],\)"),
    (lambda model: model.partial_fit(np.eye(3), np.ones((3, 2))), r"a list of ids, got an array of shape \(3, 2\)"),
    (lambda model: model.partial_fit(np.eye(3), 3), "item_ids must be a list of ids, got 3"),
    (lambda model: model.partial_fit(np.eye(3)).partial_fit(np.eye(3), changed=3), "changed must be a list of ids"),
    (lambda model: model.partial_fit(np.eye(3)).partial_fit(np.eye(3), changed=[[1]]), f"changed {LOOKED_UP}"),
    (lambda model: model.update([[1], [2], [3], [4]], ROWS), f"changed_ids {LOOKED_UP}"),
    (lambda model: model.update(4, ROWS), "changed_ids must be a list of ids, got 4"),
    (lambda model: model.update("abcd", ROWS), "changed_ids must be a list of ids, got the string 'abcd'"),
    (lambda model: model.update(range(4), [["a"]] * 4), "features must hold numbers only"),
    (lambda model: model.update(range(4), [[1.0], [1.0, 2.0]]), "features must hold numbers only"),
    (lambda model: model.update(range(4), ROWS, leaving=None), "leaving must be a list of ids, got None"),
    (lambda model: begin(model).score([[1]]), f"subset {LOOKED_UP}"),
    (lambda model: begin(model).score(None), "subset must be a list of ids, got None"),
    (lambda model: begin(model).sample(-1), "n_samples must be an integer of at least 0 or None, got -1"),
    (lambda model: begin(model).sample(1.5), r"n_samples must be an integer of at least 0 or None, got 1\.5"),
    (lambda model: begin(model).best_subset(size=[1]), r"size must be from 0 to 4 or None, got \[1\]"),
    (lambda model: begin(model).best_subset(size=np.nan), "size must be from 0 to 4 or None, got nan"),
    (lambda model: begin(model.set_params(expected_size=[1])), "expected_size must be a positive number or None"),
    (lambda model: begin(model.set_params(kernel_params=3)), "kernel_params must be a dictionary or None, got 3"),
    (lambda model: begin(model.set_params(kernel_params={"z": 1})), r"the kernel 'cosine' takes the parameters \[\]"),
]


def begin(model):
    model.update(range(4), ROWS)
    return model


@pytest.mark.parametrize(("mistake", "sentence"), MISTAKES)
@pytest.mark.parametrize("make", [lambda: TimeVaryingDPP(5, random_state=0), lambda: SeparateDPP(n_draws=5)])
def test_a_mistake_in_ids_or_numbers_is_named_in_a_sentence(make, mistake, sentence):
    with pytest.raises(ValueError, match=sentence):
        mistake(make())
