"""Simulated annealing: its law at a constant temperature, its limits, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from pluri.optimize import Proposal, SimulatedAnnealing
from pluri.optimize.annealing import ExponentialDecay, LinearDecay, LogarithmicDecay
from pluri.optimize.annealing.moves import IntegerSteps

ENERGIES = np.array([0.0, 0.7, 0.2, 1.5, 0.4])


def on_a_ring(rng, state):
    return (state + (1 if rng.random() < 0.5 else -1)) % 5


def upwards_mostly(rng, state):
    # Up with probability 0.8, down with 0.2: the reverse of a step up has a quarter of its probability.
    up = rng.random() < 0.8
    return Proposal((state + (1 if up else -1)) % 5, log_ratio=math.log(0.25) if up else math.log(4.0))


def without_its_ratio(rng, state):
    return upwards_mostly(rng, state).state


def thinned(moves, temperature=0.5, n_steps=60_000, every=30):
    """States of a chain so far apart that they are nearly independent (the second eigenvalue is below 0.7)."""
    search = SimulatedAnnealing(
        moves=moves, initial_temperature=temperature, cooling=1.0, max_iter=n_steps, keep_states=True, random_state=3
    )
    states = search.minimize(lambda state: float(ENERGIES[state]), 0).states
    return np.bincount(states[every - 1 :: every], minlength=5)


@pytest.mark.parametrize("moves", [on_a_ring, upwards_mostly])
def test_at_a_constant_temperature_states_follow_boltzmann(moves):
    weights = np.exp(-ENERGIES / 0.5)
    counts = thinned(moves)
    assert chisquare(counts, counts.sum() * weights / weights.sum()).pvalue > 1e-6  # false alarm: one in a million


def test_the_ratio_of_asymmetric_moves_is_needed():
    weights = np.exp(-ENERGIES / 0.5)
    counts = thinned(without_its_ratio)
    assert chisquare(counts, counts.sum() * weights / weights.sum()).pvalue < 1e-6


@pytest.mark.parametrize(("temperature", "cooling"), [(0.0, 1.0), (1e-300, 0.5)])
def test_at_temperature_zero_nothing_worse_is_accepted(temperature, cooling):
    search = SimulatedAnnealing(initial_temperature=temperature, cooling=cooling, max_iter=500, random_state=1)
    energy = search.minimize(lambda x: float(np.sin(5 * x[0]) + x[0] ** 2), [2.0]).trace["energy"]
    assert (np.diff(energy) <= 0).all()
    assert energy[-1] < energy[0]


@pytest.mark.parametrize("schedule", ["exponential", "linear", "logarithmic", "adaptive", LinearDecay(0.002)])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_never_rises_and_is_what_is_returned(schedule, seed):
    search = SimulatedAnnealing(
        schedule=schedule, max_iter=400, bounds=[(-3, 3)] * 2, n_init=3, random_state=seed, keep_states=True
    )
    seen = []

    def f(x):
        seen.append((float(np.cos(3 * x).sum() + x @ x), x.copy()))
        return seen[-1][0]

    result = search.minimize(f)
    assert (np.diff(result.trace["best"]) <= 0).all()
    assert (result.trace["best"] <= result.trace["energy"]).all()
    lowest = min(seen, key=lambda one: one[0])
    assert result.fun == lowest[0] == result.funs.min()
    np.testing.assert_array_equal(result.x, lowest[1])
    assert result.nfev == len(seen)
    assert result.nit == 3 * 400
    assert all((np.abs(x) <= 3).all() for _, x in seen)
    assert (np.abs(np.array(result.states)) <= 3).all()


def test_temperatures_follow_their_formulas():
    def temperatures(**settings):
        search = SimulatedAnnealing(initial_temperature=2.0, max_iter=100, random_state=0, **settings)
        return search.minimize(lambda x: float(x @ x), [1.0]).trace["temperature"]

    level = np.arange(100) // 10
    np.testing.assert_allclose(temperatures(cooling=0.8, n_per_temperature=10), 2 * 0.8**level)
    np.testing.assert_allclose(temperatures(schedule="linear"), 2 - np.arange(100) / 50)
    np.testing.assert_allclose(temperatures(schedule="logarithmic"), 2 / np.log(np.arange(100) + math.e))
    np.testing.assert_allclose(temperatures(schedule=lambda i: 1 / (1 + i)), 2 / (1 + np.arange(100)))
    slow = temperatures(schedule=ExponentialDecay(0.5, minimum=0.25), n_per_temperature=50)
    np.testing.assert_allclose(slow, np.repeat([2.0, 1.0], 50))
    assert (temperatures(schedule=LogarithmicDecay(0.3)) >= 0.6).all()


def test_the_adaptive_temperature_keeps_the_wanted_acceptance():
    search = SimulatedAnnealing(schedule="adaptive", max_iter=20_000, initial_temperature=50.0, random_state=0)
    trace = search.minimize(lambda x: float(x @ x), np.ones(3)).trace
    middle = trace["accepted"][6000:12_000].mean()
    assert 0.4 < middle < 0.48  # 0.44; a binomial rate of 6000 has a standard deviation of 0.007
    assert trace["accepted"][-1000:].mean() < 0.1


def test_the_initial_temperature_is_the_median_rise_over_log_two():
    # Steps of a straight line rise by |N(0, 1)|, whose median is 0.6745, half of the time.
    drawn = [
        SimulatedAnnealing(max_iter=1, random_state=seed).minimize(lambda x: float(x[0]), [0.0]).initial_temperature
        for seed in range(50)
    ]
    # The median of about 50 half normals has a standard deviation of 0.11; of the mean of 50 of them 0.023.
    assert abs(np.mean(drawn) - 0.6745 / math.log(2)) < 5 * 0.023


def test_half_of_the_rises_are_accepted_at_the_initial_temperature():
    search = SimulatedAnnealing(max_iter=5000, cooling=1.0, random_state=2, bounds=[(-5, 5)] * 2)
    result = search.minimize(lambda x: float(np.abs(x).sum()))
    assert 0.4 < result.acceptance_rate < 0.95


def test_integer_steps_are_symmetric_at_the_bounds():
    bounds = np.array([[0, 3]])
    rng, steps = np.random.default_rng(0), IntegerSteps(bounds)
    table = np.array(
        [
            np.bincount([steps(rng, np.array([i]), np.array([1.0]))[0] for _ in range(4000)], minlength=4)
            for i in range(4)
        ]
    )
    difference, total = table - table.T, table + table.T
    pairs = np.triu_indices(4, 1)
    statistic = (difference[pairs] ** 2 / total[pairs]).sum()
    assert statistic < 38  # chi-square with 6 degrees of freedom: false alarm one in a million


def test_integers_stay_integers_and_the_optimum_is_found():
    search = SimulatedAnnealing(moves="integer", bounds=[(-10, 10)] * 3, max_iter=3000, n_init=3, random_state=0)
    result = search.minimize(lambda x: float(((x - [3, -7, 0]) ** 2).sum()))
    assert result.x.dtype == np.int64
    assert result.x.tolist() == [3, -7, 0]


def test_long_steps_shrink_and_short_steps_grow():
    def lengths(step):
        search = SimulatedAnnealing(
            step_size=step, adapt_steps=True, cooling=1.0, initial_temperature=1.0, max_iter=3000, random_state=0
        )
        return search.minimize(lambda x: float(x @ x), np.zeros(4)).trace

    for step in (1e-4, 1e3):
        trace = lengths(step)
        assert 0.1 < trace["step_size"][-1] < 3.0
        assert 0.15 < trace["accepted"][-1000:].mean() < 0.6


def test_a_move_of_ones_own_may_take_a_step_size_and_bring_the_energy():
    calls = []

    def moves(rng, x, step_size):
        calls.append(step_size)
        new = x + step_size * rng.normal()
        return Proposal(new, energy=new**2)

    search = SimulatedAnnealing(moves=moves, step_size=0.5, adapt_steps=True, max_iter=300, random_state=0)
    asked = []
    result = search.minimize(lambda x: asked.append(x) or x**2, 3.0)
    assert asked == [3.0]  # only the beginning
    assert result.nfev == 1
    assert abs(result.x) < 0.3
    assert len(set(calls)) > 1


def test_the_same_seed_gives_the_same_search_and_runs_do_not_depend_on_their_number():
    def found(**settings):
        return SimulatedAnnealing(max_iter=200, bounds=[(-3, 3)], **settings).minimize(
            lambda x: float(np.cos(4 * x[0]))
        )

    first, second = found(random_state=5, n_init=4), found(random_state=5, n_init=4)
    np.testing.assert_array_equal(first.trace["energy"], second.trace["energy"])
    assert first.x == second.x
    np.testing.assert_array_equal(found(random_state=5, n_init=2).funs, first.funs[:2])
    assert found(random_state=6).fun != first.fun


def test_a_run_ends_when_it_is_told_to():
    search = SimulatedAnnealing(max_iter=10_000, random_state=0, bounds=[(-1, 1)])

    def f(x):
        return float(x[0] ** 2)

    cold = replace(search, min_temperature=0.5, initial_temperature=1.0, cooling=0.9).minimize(f)
    assert cold.nit == 7  # 0.9^6 = 0.53 is the last temperature above
    patient = replace(search, n_iter_no_change=50).minimize(f)
    assert patient.nit < 10_000
    assert (patient.trace["best"][-51:] == patient.fun).all()
    stopped = replace(search, callback=lambda now: now.iteration == 9, n_init=3).minimize(f)
    assert (stopped.nit, stopped.message) == (10, "callback ended it")


def test_ctrl_c_keeps_the_best():
    import pluri

    def f(x):
        f.count += 1
        if f.count == 300:
            raise KeyboardInterrupt
        return float(x @ x)

    f.count = 0
    search = SimulatedAnnealing(random_state=0, bounds=[(-1, 1)] * 2)
    with pytest.raises(KeyboardInterrupt, match="the best state so far") as caught:
        search.minimize(f)
    result = caught.value.result
    assert result.interrupted
    assert result.fun == float(result.x @ result.x)
    f.count = 0
    pluri.on_interrupt("keep")
    try:
        with pytest.warns(UserWarning, match="interrupted after"):
            assert search.minimize(f).fun == result.fun
    finally:
        pluri.on_interrupt("raise")


def test_states_without_finite_energy_are_left_and_never_entered():
    def f(x):
        return math.nan if abs(x[0]) > 1 else float(x[0])

    search = SimulatedAnnealing(random_state=0, max_iter=300)
    result = search.minimize(f, [1.5])  # NaN at first
    assert -1 <= result.x[0] < -0.5
    nowhere = search.minimize(lambda x: math.inf, [0.0])
    assert not nowhere.success
    assert nowhere.message == "no state of finite energy was found"


def peaks(x, y):
    return (
        3 * (1 - x) ** 2 * np.exp(-(x**2) - (y + 1) ** 2)
        - 10 * (x / 5 - x**3 - y**5) * np.exp(-(x**2) - y**2)
        - np.exp(-((x + 1) ** 2) - y**2) / 3
    )


def test_ten_runs_find_the_highest_of_the_peaks():
    axis = np.linspace(-3, 3, 49)
    heights = peaks(axis[None, :], axis[:, None])

    def f(place):
        row, column = round(place[0]), round(place[1])
        return -heights[row, column] if 0 <= row < 49 and 0 <= column < 49 else math.inf

    found = 0
    for seed in range(20):
        search = SimulatedAnnealing(step_size=2.0, initial_temperature=1.0, max_iter=1000, n_init=10, random_state=seed)
        found += search.minimize(f, [24.0, 24.0]).fun < -heights.max() + 1e-9
    # One run succeeds with probability 0.42 to 0.5, ten with 0.996: more than two failures have probability 1e-4.
    assert found >= 18


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"bounds": [(1, 0)]}, r"bounds must be finite, low before high, got \(1.0, 0.0\) as pair 0"),
        ({"bounds": [(0, math.nan)]}, "bounds must be finite"),
        ({"bounds": []}, "bounds must be pairs"),
        ({"bounds": "ab"}, "bounds must be pairs"),
        ({"bounds": [(0.2, 0.8)], "moves": "integer"}, "bounds must hold an integer in each pair"),
        ({"cooling": 0.0}, "cooling must be a number above 0"),
        ({"cooling": 1.1}, "cooling must be a number above 0"),
        ({"schedule": "fast"}, "schedule must be one of 'exponential', .* or a function, got 'fast'"),
        ({"moves": "swap"}, "moves must be one of 'gaussian', 'integer' or a function, got 'swap'"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1, got 0"),
        ({"n_init": 1.5}, "n_init must be an integer"),
        ({"initial_temperature": -1}, "initial_temperature must be a number of at least 0"),
        ({"initial_temperature": "hot"}, "initial_temperature must be"),
        ({"n_per_temperature": 0}, "n_per_temperature must be"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be"),
        ({"callback": 3}, "callback must be a function or None, got 3"),
        ({"adapt_steps": 1}, "adapt_steps must be True or False"),
        ({"moves": on_a_ring, "bounds": [(0, 1)]}, "bounds are for moves="),
        ({"moves": on_a_ring, "adapt_steps": True}, "adapt_steps needs a step_size"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        SimulatedAnnealing(**settings)


def in_place(rng, x):
    x[0] += 1
    return x


@pytest.mark.parametrize(
    ("settings", "f", "x0", "sentence"),
    [
        ({}, "f", [0.0], "f must be a function, got 'f'"),
        ({}, lambda x: "low", [0.0], "f must return a number, got 'low'"),
        ({}, lambda x: None, [0.0], "f must return a number, got None"),
        ({}, lambda x: x, [0.0, 1.0], "f must return a number, got array"),
        ({}, lambda x: 0.0, None, "x0 must be given if there are no bounds"),
        ({}, lambda x: 0.0, [], "x0 must be finite numbers with one axis"),
        ({}, lambda x: 0.0, [math.nan], "x0 must be finite numbers"),
        ({}, lambda x: 0.0, "here", "x0 must be numbers"),
        ({"moves": "integer"}, lambda x: 0.0, [0.5], "x0 must be integers"),
        ({"bounds": [(0, 1)]}, lambda x: 0.0, [2.0], "x0 must lie within the bounds"),
        ({"bounds": [(0, 1)]}, lambda x: 0.0, [0.5, 0.5], "x0 must have 1 coordinates"),
        ({"step_size": -1.0}, lambda x: 0.0, [0.5], "step_size must be positive"),
        ({"step_size": [1.0, 2.0]}, lambda x: 0.0, [0.5], "step_size must be a number or one for each of 1"),
        ({"moves": on_a_ring}, lambda x: 0.0, None, "x0 must be a state, or a function"),
        ({"moves": in_place}, lambda x: 0.0, [0], "moves must return a new state"),
        ({"moves": lambda rng, x: Proposal(x, log_ratio="a")}, lambda x: 0.0, 0, "log_ratio of a Proposal"),
        ({"schedule": lambda i: -1.0}, lambda x: 0.0, [0.0], "schedule must give numbers of at least 0, got -1.0"),
    ],
)
def test_what_cannot_be_searched_is_refused(settings, f, x0, sentence):
    with pytest.raises(ValueError, match=sentence):
        SimulatedAnnealing(**settings).minimize(f, x0)


def test_progress_is_shown_and_beginnings_may_be_drawn(capsys):
    starts = []

    def draw(rng):
        starts.append(rng.normal(size=2))
        return starts[-1]

    SimulatedAnnealing(max_iter=100, n_init=2, verbose=1, random_state=0).minimize(lambda x: float(x @ x), draw)
    assert not np.array_equal(starts[-1], starts[-2])
    assert "run 2/2  iteration 100/100" in capsys.readouterr().err


def test_one_point_between_equal_bounds_is_found():
    for moves in ("gaussian", "integer"):
        search = SimulatedAnnealing(moves=moves, bounds=[(2, 2)], max_iter=20, random_state=0)
        assert search.minimize(lambda x: float(x[0])).x.tolist() == [2]


def test_an_energy_of_minus_infinity_is_no_energy():
    def logarithm_of_zero(x):
        return -math.inf if x[0] < 0.5 else float(x[0])

    search = SimulatedAnnealing(bounds=[(0, 1)], max_iter=300, random_state=0)
    for start in ([0.9], [0.45]):
        result = search.minimize(logarithm_of_zero, start)
        assert result.success
        assert 0.5 <= result.x[0] == result.fun < 0.6
