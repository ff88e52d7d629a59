"""Subsets through time: laws against enumeration, exact identities, and the rate of the error."""

from itertools import combinations

import numpy as np
import pytest

from pluri.processes.dpp.tracking.time_varying import TimeVaryingDPP

N_ITEMS = 6


def kernel_of(features):
    return 0.6 * features @ features.T + 0.1 * np.eye(len(features))


def window(n_stamps, random_state=0, n_items=N_ITEMS):
    """A sliding window on a stream: one item out, one item in at each stamp."""
    features = np.random.default_rng(random_state).normal(size=(n_items + n_stamps, 4))
    return [(list(range(t, t + n_items)), kernel_of(features[t : t + n_items])) for t in range(n_stamps)]


def all_subsets(ids):
    return [subset for k in range(len(ids) + 1) for subset in combinations(ids, k)]


def law(kernel, ids):
    """Probability of every subset by enumeration."""
    positions = {item: i for i, item in enumerate(ids)}
    weights = {}
    for subset in all_subsets(ids):
        where = [positions[item] for item in subset]
        weights[frozenset(subset)] = np.linalg.det(kernel[np.ix_(where, where)]) if where else 1.0
    total = sum(weights.values())
    return {subset: weight / total for subset, weight in weights.items()}


def estimated_law(subsets, weights):
    estimate = {}
    for subset, weight in zip(subsets, weights):
        estimate[frozenset(subset)] = estimate.get(frozenset(subset), 0.0) + weight
    return estimate


def total_variation(estimate, exact):
    return 0.5 * sum(abs(estimate.get(subset, 0.0) - p) for subset, p in exact.items())


def independent_floor(exact, n, n_repeats, rng):
    """Mean total variation of as many independent draws."""
    probabilities = np.array(list(exact.values()))
    counts = rng.multinomial(n, probabilities / probabilities.sum(), size=n_repeats)
    return float((0.5 * np.abs(counts / n - probabilities).sum(axis=1)).mean())


def follow(stream, **settings):
    """The estimator after each stamp."""
    model = TimeVaryingDPP(**({"random_state": 0} | settings))
    for ids, kernel in stream:
        yield model.partial_fit(kernel, ids)


@pytest.mark.parametrize("n_moves", [0, 1, "auto"])
def test_items_that_enter_and_leave_keep_the_enumerated_law(n_moves):
    stream, n = window(12), 5000
    rng = np.random.default_rng(1)
    distances, floors = [], []
    for (ids, kernel), model in zip(stream, follow(stream, n_particles=n, n_moves=n_moves)):
        exact = law(kernel, ids)
        distances.append(total_variation(estimated_law(model.particles_, model.weights_), exact))
        floors.append(independent_floor(exact, n, 50, rng))
        assert np.abs(model.inclusion_probabilities() - model.inclusion_probabilities(exact=True)).max() < 0.03
    # Over 40 random states the ratio was 1.08 to 1.12 with a standard deviation of 0.05: 1.4 is more than
    # five of these away. The rule that drops items and waits for moves to add new ones has a ratio of 3 and more.
    assert np.mean(distances) < 1.4 * np.mean(floors)
    assert abs(model.log_normalizer_ - np.linalg.slogdet(kernel + np.eye(N_ITEMS))[1]) < 0.1


@pytest.mark.parametrize("weights", ["marginal", "slot"])
@pytest.mark.parametrize("n_moves", [0, 6])
def test_replaced_slots_keep_the_enumerated_law(weights, n_moves):
    rng = np.random.default_rng(2)
    features = rng.normal(size=(N_ITEMS, 4))
    stream = []
    for t in range(10):
        if t:
            features[rng.integers(N_ITEMS)] = rng.normal(size=4)
        stream.append((list(range(N_ITEMS)), kernel_of(features)))
    distances = []
    for (ids, kernel), model in zip(stream, follow(stream, n_particles=5000, n_moves=n_moves, weights=weights)):
        distances.append(total_variation(estimated_law(model.particles_, model.weights_), law(kernel, ids)))
    # Over 60 random states: 0.040 to 0.042 with a standard deviation below 0.003, as 5000 independent draws have,
    # and 0.083 with 0.008 for slot weights without moves, which are right but uneven. Five standard deviations.
    assert np.mean(distances) < (0.125 if (weights, n_moves) == ("slot", 0) else 0.055)
    error = np.abs(model.inclusion_probabilities() - model.inclusion_probabilities(exact=True)).max()
    assert error < (0.12 if (weights, n_moves) == ("slot", 0) else 0.05)
    assert abs(model.log_normalizer_ - np.linalg.slogdet(kernel + np.eye(N_ITEMS))[1]) < 0.2


@pytest.mark.parametrize("weights", ["marginal", "slot"])
def test_a_kernel_that_changes_everywhere_keeps_the_enumerated_law(weights):
    rng = np.random.default_rng(3)
    features = rng.normal(size=(N_ITEMS, 4))
    features[5] = 0.0  # becomes possible later
    stream = []
    for t in range(8):
        features += 0.08 * rng.normal(size=features.shape)
        features[5] *= t >= 3
        features[0] *= t < 6
        stream.append((list("abcdef"), 0.6 * features @ features.T + 0.1 * np.diag((features**2).sum(axis=1) > 0)))
    distances = []
    for (ids, kernel), model in zip(stream, follow(stream, n_particles=5000, n_moves=0, weights=weights)):
        distances.append(total_variation(estimated_law(model.particles_, model.weights_), law(kernel, ids)))
    assert np.mean(distances) < 0.065
    assert not model.restarts_
    assert model.inclusion_probabilities()[0] == 0 < model.inclusion_probabilities()[5]


def test_scaling_to_a_target_size_keeps_the_enumerated_law():
    stream = window(8, random_state=4)
    model = TimeVaryingDPP(n_particles=5000, n_moves=1, expected_size=2.0, random_state=0)
    distances = []
    for ids, kernel in stream:
        model.partial_fit(kernel, ids)
        values = np.linalg.eigvalsh(kernel)
        scales = np.logspace(-3, 3, 6001)
        sizes = (scales[:, None] * values / (1 + scales[:, None] * values)).sum(axis=1)
        scaled = kernel * np.interp(2.0, sizes, scales)
        distances.append(total_variation(estimated_law(model.particles_, model.weights_), law(scaled, ids)))
        assert model.expected_size_ == pytest.approx(2.0, abs=1e-9)
    assert np.mean(distances) < 0.06


def test_the_error_falls_with_the_root_of_the_number_of_particles():
    stream = window(6, random_state=5)
    exact = np.diag(np.linalg.inv(np.linalg.inv(stream[-1][1]) + np.eye(N_ITEMS)))
    sizes = [200, 800, 3200, 12800]
    errors = []
    for n in sizes:
        squares = []
        for repeat in range(40):
            *_, model = follow(stream, n_particles=n, n_moves=1, random_state=repeat)
            squares.append(np.square(model.inclusion_probabilities() - exact).mean())
        errors.append(np.sqrt(np.mean(squares)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    # Each error is known to about 5 percent (240 squares, some correlated), the slope to 0.02: a false alarm is five
    # standard deviations away.
    assert -0.6 < slope < -0.4


def test_one_stamp_is_plain_sampling():
    ids, kernel = window(1)[0]
    model = TimeVaryingDPP(n_particles=20_000, random_state=0).partial_fit(kernel, ids)
    exact = law(kernel, ids)
    counts = estimated_law(model.particles_, np.full(20_000, 1.0))
    expected = np.array([20_000 * exact[subset] for subset in exact])
    observed = np.array([counts.get(subset, 0.0) for subset in exact])
    large = expected > 5
    # Chi-square with about 60 degrees of freedom: above 135 less than once in a million.
    assert (np.square(observed - expected)[large] / expected[large]).sum() < 135
    assert model.history_[0].log_normalizer_ratio == pytest.approx(np.linalg.slogdet(kernel + np.eye(N_ITEMS))[1])


@pytest.mark.parametrize("weights", ["marginal", "slot"])
def test_a_stamp_without_change_leaves_the_weights_to_the_last_bit(weights):
    stream = window(4)
    *_, model = follow(stream, n_particles=300, weights=weights)
    before = model.weights_
    assert np.ptp(before) > 0
    model.partial_fit(stream[-1][1], stream[-1][0])
    np.testing.assert_array_equal(model.weights_, before)
    assert model.log_normalizer_ratio_ == 0.0
    assert model.log_normalizer_ratio_exact_ == 0.0


@pytest.mark.parametrize("n_changed", [1, 3, 9])
def test_the_slot_weight_is_the_ratio_of_determinants(n_changed):
    rng = np.random.default_rng(6)
    features = rng.normal(size=(14, 20))
    model = TimeVaryingDPP(n_particles=50, weights="slot", n_moves=0, ess_threshold=0.0, random_state=0,
                           restart_fraction=1.0, kernel="linear")  # fmt: skip
    first = model.update(range(14), features)
    changed = rng.choice(14, n_changed, replace=False)
    after = features.copy()
    after[changed] = rng.normal(size=(n_changed, 20))
    second = model.update(changed, after[changed])
    ratios = []
    for subset in first.subsets:
        old, new = (np.linalg.slogdet(x[list(subset)] @ x[list(subset)].T)[1] for x in (features, after))
        ratios.append(new - old)
    expected = np.exp(ratios - np.max(ratios))
    assert second.subsets == first.subsets
    np.testing.assert_allclose(second.weights, expected / expected.sum(), rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(
        second.log_determinants,
        [np.linalg.slogdet(after[list(s)] @ after[list(s)].T)[1] for s in second.subsets],
        atol=1e-10,
    )
    assert second.log_normalizer_ratio == pytest.approx(np.log(np.mean(np.exp(ratios))), abs=1e-10)


def test_the_marginal_weight_is_the_ratio_of_the_marginal_laws():
    rng = np.random.default_rng(7)
    features = rng.normal(size=(9, 12))
    model = TimeVaryingDPP(n_particles=40, n_moves=0, ess_threshold=0.0, random_state=0, kernel="linear")
    first = model.update(range(9), features)
    new = rng.normal(size=(2, 12))
    second = model.update([9, 10], new, leaving=[1, 4, 6])
    stay, leave, everything = [0, 2, 3, 5, 7, 8], [1, 4, 6], np.vstack([features, new])
    kernel = everything @ everything.T

    def restricted(others):
        inner = np.linalg.inv(kernel[np.ix_(others, others)] + np.eye(len(others)))
        return kernel[np.ix_(stay, stay)] - kernel[np.ix_(stay, others)] @ inner @ kernel[np.ix_(others, stay)]

    before, after = restricted(leave), restricted([9, 10])
    ratios = []
    for subset in first.subsets:
        where = [stay.index(item) for item in subset if item in stay]
        block = np.ix_(where, where)
        ratios.append(np.linalg.slogdet(after[block])[1] - np.linalg.slogdet(before[block])[1])
    expected = np.exp(ratios - np.max(ratios))
    np.testing.assert_allclose(second.weights, expected / expected.sum(), rtol=1e-9)
    for old, extended in zip(first.subsets, second.subsets):
        assert set(old) & set(stay) == set(extended) & set(stay)
        assert not set(extended) & set(leave)


def test_the_order_of_the_items_does_not_matter():
    stream = window(5, random_state=8)
    rng = np.random.default_rng(0)
    straight, shuffled = TimeVaryingDPP(4000, random_state=0), TimeVaryingDPP(4000, random_state=1)
    for ids, kernel in stream:
        order = rng.permutation(N_ITEMS)
        straight.partial_fit(kernel, ids)
        shuffled.partial_fit(kernel[np.ix_(order, order)], [f"item {ids[i]}" for i in order])
    assert shuffled.item_ids_ == tuple(f"item {stream[-1][0][i]}" for i in order)
    # The two estimates differ by 0.011 in standard deviation at most: 0.06 is five of them.
    np.testing.assert_allclose(straight.inclusion_probabilities()[order], shuffled.inclusion_probabilities(), atol=0.06)
    np.testing.assert_allclose(
        straight.inclusion_probabilities(exact=True)[order], shuffled.inclusion_probabilities(exact=True), atol=1e-12
    )


def test_an_item_and_its_copy_are_never_chosen_together():
    rng = np.random.default_rng(9)
    features = rng.normal(size=(8, 5))
    model = TimeVaryingDPP(400, kernel="cosine", random_state=0, n_moves=20)
    model.update(range(8), features)
    for t in range(30):
        cloud = model.update([t % 8], features[[(t + 3) % 8]])  # becomes a copy of another
        features[t % 8] = features[(t + 3) % 8]
        for subset in cloud.subsets:
            assert len(np.unique(features[list(subset)], axis=0)) == len(subset)
        features[t % 8] = rng.normal(size=5)
        model.update([t % 8], features[[t % 8]])


@pytest.mark.parametrize("weights", ["marginal", "slot"])
def test_inverses_do_not_drift_in_a_thousand_stamps(weights):
    rng = np.random.default_rng(10)
    model = TimeVaryingDPP(20, kernel="exponential_cosine", weights=weights, random_state=0, n_moves=10)
    model.update(range(20), rng.gamma(0.3, size=(20, 8)))
    for _ in range(1000):
        model.update(rng.choice(20, 3, replace=False), rng.gamma(0.3, size=(3, 8)))
    tracker = model._follower
    particles = tracker.particles
    for p in range(20):
        k = particles.sizes[p]
        x = particles.members[p, :k]
        block = tracker.kernel[np.ix_(x, x)]
        assert np.abs(particles.inverses[p, :k, :k] @ block - np.eye(k)).max(initial=0.0) < 1e-6
        assert particles.log_determinants[p] == pytest.approx(np.linalg.slogdet(block)[1], abs=1e-6)
        assert sorted(np.flatnonzero(particles.places[p] >= 0)) == sorted(x)
    np.testing.assert_allclose(tracker.resolvent, np.linalg.inv(tracker.kernel + np.eye(20)), atol=1e-10)
    assert tracker.log_normalizer == pytest.approx(np.linalg.slogdet(tracker.kernel + np.eye(20))[1], abs=1e-8)
