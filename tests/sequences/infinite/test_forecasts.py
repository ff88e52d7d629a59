"""Forecasts of infinite hidden Markov models: all paths, all segmentations, closed forms, and what is kept of draws."""

from importlib.util import module_from_spec, spec_from_file_location
from itertools import groupby, pairwise, product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare, poisson

import pluri.io
from pluri.priors import Gamma
from pluri.processes import DirichletMultinomial, MatrixNormalInverseWishart, NormalGamma, NormalInverseWishart
from pluri.sequences import GaussianHMM, InfiniteHMM, PoissonHMM
from pluri.sequences.infinite.beam import BeamSampler
from pluri.sequences.infinite.explicit_durations.durations import PoissonDurations
from pluri.sequences.infinite.explicit_durations.segments import draw_continuations, segment_law
from pluri.sequences.infinite.forecasts.kept_draws import draw_sums
from pluri.sequences.infinite.observations import ObservationModel
from pluri.sequences.infinite.transitions import Hyperparameters, HyperPriors, prior_rows
from pluri.sequences.infinite.weak_limit import WeakLimitSampler

_spec = spec_from_file_location("every_partition", Path(__file__).parent / "every_partition.py")
every_partition = module_from_spec(_spec)
_spec.loader.exec_module(every_partition)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:the states reached")

SMALL = {"n_draws": 10, "n_warmup": 20, "n_chains": 1, "random_state": 0}
#: So many observations of everything leave no doubt about it: draws are then off by 1e-6 or so.
SURE = 1e13
START, ROWS = np.array([0.6, 0.3, 0.1]), np.array([[0.8, 0.15, 0.05], [0.1, 0.6, 0.3], [0.25, 0.05, 0.7]])
OTHER_START, OTHER_ROWS = np.array([0.5, 0.5]), np.array([[0.3, 0.7], [0.6, 0.4]])


def sure(start, rows):
    return SURE * np.vstack([rows, start])


def symbols_after(start, rows, table, symbols, horizon):
    """Probabilities of the symbols of the next steps, by every path; NaN is missing."""
    k, n = len(start), len(symbols)
    out = np.zeros((horizon, table.shape[1]))
    for path in product(range(k), repeat=n + horizon):
        chance = start[path[0]] * np.prod([rows[a, b] for a, b in pairwise(path)])
        chance *= np.prod([table[z, int(x)] for z, x in zip(path, symbols) if not np.isnan(x)])
        out += chance * table[list(path[n:])]
    return out / out.sum(axis=1, keepdims=True)


def test_symbols_to_come_are_a_mean_over_draws_of_sums_over_all_paths():
    table = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])
    other = np.array([[0.2, 0.2, 0.6], [0.5, 0.4, 0.1]])
    X = np.array([[0.0], [1.0], [2.0], [np.nan], [0.0]])
    model = InfiniteHMM("categorical", **SMALL).fit(X)
    model.posterior_draws_ = [
        {"rows": sure(START, ROWS), "sums": [SURE * table]},
        {"rows": sure(OTHER_START, OTHER_ROWS), "sums": [SURE * other]},
    ]
    found = model.forecast(X, horizon=2, lengths=[3, 2], n_predictive=2).probabilities
    for n, own in enumerate((X[:3, 0], X[3:, 0])):
        expected = symbols_after(START, ROWS, table, own, 2) + symbols_after(OTHER_START, OTHER_ROWS, other, own, 2)
        np.testing.assert_allclose(found[n], expected / 2, atol=1e-4)


def test_sure_gaussian_states_are_those_of_the_model_that_knows_them():
    rng = np.random.default_rng(0)
    means, roots = rng.normal(size=(3, 2)), np.tril(rng.normal(size=(3, 2, 2)))
    covariances = roots @ np.swapaxes(roots, 1, 2) + 0.2 * np.eye(2)
    known = GaussianHMM(3, covariance_type="full")
    known.startprob_, known.transmat_, known.means_, known.covars_ = START, ROWS, means, covariances
    X, _ = known.sample(20, random_state=1)
    X[4, 1] = np.nan
    model = InfiniteHMM(**SMALL).fit(X)
    likelihood = model.model_.likelihoods[0]
    sums = np.array([
        np.concatenate([[SURE], SURE * (m - likelihood.mean), (SURE * (c + np.outer(m - likelihood.mean,
                                                                                    m - likelihood.mean))).ravel()])
        for m, c in zip(means, covariances)
    ])  # fmt: skip
    model.posterior_draws_ = [{"rows": sure(START, ROWS), "sums": [sums]}]
    found, expected = (one.forecast(X, horizon=3, level=0.8) for one in (model, known))
    for name in ("mean", "std", "lower", "upper"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=2e-4)


def test_sure_counts_have_the_bounds_of_the_model_that_knows_them():
    known = PoissonHMM(3)
    known.startprob_, known.transmat_, known.lambdas_ = START, ROWS, np.array([[1.5, 40.0], [8.0, 3.0], [30.0, 0.5]])
    X, _ = known.sample(20, random_state=1)
    model = InfiniteHMM("poisson", inference="weak_limit", **SMALL).fit(X)
    size = model.state_sums_[0].shape[1]
    sums = [np.column_stack([np.full(3, SURE), np.zeros((3, size - 2)), SURE * known.lambdas_[:, f]]) for f in (0, 1)]
    model.posterior_draws_ = [{"rows": sure(START, ROWS), "sums": sums}]
    found, expected = (one.forecast(X, horizon=3) for one in (model, known))
    np.testing.assert_array_equal(found.lower, expected.lower)
    np.testing.assert_array_equal(found.upper, expected.upper)
    np.testing.assert_allclose(found.std, expected.std, atol=1e-3)


def path_of_segments(path, start, rows, rates):
    """Probability of a path of states whose last segment may go on."""
    segments = [(state, len(list(group))) for state, group in groupby(path)]
    chance = start[segments[0][0]] * np.prod([rows[a, b] for (a, _), (b, _) in pairwise(segments)])
    ended = [poisson(rates[state]).pmf(lasts - 1) for state, lasts in segments[:-1]]
    return chance * np.prod(ended) * poisson(rates[segments[-1][0]]).sf(segments[-1][1] - 2)


def states_after_segments(start, rows, rates, density, horizon):
    """Probabilities of the states of the next steps, (horizon, K), and of their paths, by every path."""
    n, k = density.shape
    out, of_paths = np.zeros((horizon, k)), np.zeros((k,) * horizon)
    for path in product(range(k), repeat=n + horizon):
        chance = path_of_segments(path, start, rows, rates) * np.prod(density[range(n), path[:n]])
        out[range(horizon), path[n:]] += chance
        of_paths[path[n:]] += chance
    return out / out.sum(axis=1, keepdims=True), of_paths / of_paths.sum()


def test_states_with_durations_are_sums_over_all_segmentations():
    rows, rates = np.array([[0.0, 0.7, 0.3], [0.2, 0.0, 0.8], [0.9, 0.1, 0.0]]), np.array([0.7, 2.5, 1.2])
    table = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])
    X = np.array([[0.0], [0.0], [1.0], [2.0]])
    settings = {"inference": "weak_limit", "durations": "poisson", **SMALL}
    model = InfiniteHMM("categorical", **settings).fit(X)
    model.posterior_draws_ = [{"rows": sure(START, rows), "sums": [SURE * table], "durations": rates[:, None]}]
    found = model.forecast(X, horizon=3, lengths=[1, 3], n_predictive=1).probabilities
    for n, own in enumerate((X[:1, 0], X[1:, 0])):
        states, _ = states_after_segments(START, rows, rates, table[:, own.astype(int)].T, 3)
        np.testing.assert_allclose(found[n], states @ table, atol=1e-4)


def test_continuations_are_drawn_with_the_probabilities_of_their_paths():
    """Every path of two further steps of three states: false-alarm rate 1e-6."""
    rows, rates = np.array([[0.0, 0.7, 0.3], [0.2, 0.0, 0.8], [0.9, 0.1, 0.0]]), np.array([0.7, 2.5, 1.2])
    density = np.array([[0.5, 0.2, 0.9], [0.4, 0.9, 0.3], [0.1, 0.6, 0.8]])
    law = segment_law(START, rows, PoissonDurations(Gamma(1.0, 1.0)).tables(rates[:, None], 5))
    _, chances = states_after_segments(START, rows, rates, density, 2)
    drawn = draw_continuations(np.random.default_rng(0), law, np.log(density), 2, 5000)
    seen = np.bincount(drawn @ [3, 1], minlength=9)
    assert chisquare(seen, 5000 * chances.ravel()).pvalue > 1e-6


@pytest.mark.parametrize("sampler", ["beam", "weak_limit"])
@pytest.mark.parametrize("hyper", [Hyperparameters(1.3, 0.9, 0.0), Hyperparameters(1.7, 0.8, 0.4)])
def test_rows_are_kept_with_weights_from_their_exact_posterior(sampler, hyper):
    """Means over 1,000 draws beside those of exact draws: 5.5 standard errors, 1e-6 for all entries together."""
    labels, offsets, rng = np.array([0, 1, 0, 0, 2, 2, 1]), np.array([0, 4, 4, 7]), np.random.default_rng(0)
    likelihood, width = DirichletMultinomial(2, 0.4), 6 if sampler == "weak_limit" else 200
    made = {"beam": BeamSampler, "weak_limit": WeakLimitSampler}[sampler]
    model = ObservationModel("categorical", (likelihood,), ((0,),))
    kernel = made(model, np.zeros((7, 1)), offsets, hyper, HyperPriors(), width)
    found = np.array([kernel.draw_of_rows(rng, labels, hyper)["rows"] for _ in range(1000)])
    counts = every_partition.transitions(labels, offsets)
    exact = np.array([
        prior_rows(hyper, every_partition.draw_exact_weights(
            rng, labels, offsets, hyper, width if sampler == "weak_limit" else None)[:3]) + counts
        for _ in range(1000)
    ])  # fmt: skip
    errors = np.sqrt((found.var(axis=0) + exact.var(axis=0)) / 1000)
    assert (np.abs(found.mean(axis=0) - exact.mean(axis=0)) < 5.5 * errors + 1e-12).all()


ONE_STATE = {"inference": "weak_limit", "max_components": 1, **SMALL}
#: Five standard errors, at most, of a mean of probabilities over 2,000 draws.
CLOSE = 5.0 * np.sqrt(0.025 * 0.975 / 2000)


@pytest.mark.parametrize("family", ["gaussian", "diag"])
def test_bounds_of_one_state_are_those_of_a_student_t(family):
    """Three rows: the bounds of a Gaussian whose parameters are taken as known would have too little outside."""
    X = np.array([[0.3], [-1.2], [2.1]])
    likelihood = NormalInverseWishart([0.2], 0.1, 1.4, [[0.3]]) if family == "gaussian" else NormalGamma(
        1, 0.2, 0.1, 0.7, 0.15)  # fmt: skip
    model = InfiniteHMM(likelihood, **ONE_STATE).fit(X)
    coming = model.forecast(X, level=0.95, n_predictive=2000)
    grid = np.linspace(-60.0, 60.0, 60_001)
    density = np.exp([float(likelihood.log_predictive(likelihood.statistics(X).sum(axis=0), np.array([x])))
                      for x in grid[::10]])  # fmt: skip
    reached = np.cumsum(np.interp(grid, grid[::10], density)) * (grid[1] - grid[0])
    assert abs(np.interp(coming.lower[0, 0, 0], grid, reached) - 0.025) < CLOSE
    assert abs(np.interp(coming.upper[0, 0, 0], grid, reached) - 0.975) < CLOSE
    known = X.mean() - 1.96 * X.std()
    assert abs(np.interp(known, grid, reached) - 0.025) > CLOSE


def test_regressions_are_carried_on():
    """One state that is sure: ``x_{t+1} ~ N(a + b x_t, s^2)``, then ``N(a + b a + b^2 x_t, s^2 (1 + b^2))``."""
    a, b, s, last = 0.5, -0.7, 0.3, 2.0
    likelihood = MatrixNormalInverseWishart([[0.0, 0.0]], np.eye(2), 3.0, [[1.0]])
    X = np.array([[0.1], [1.5], [last]])
    model = InfiniteHMM(likelihood, **ONE_STATE).fit(X)
    second = np.array([[1.0, 0.0], [0.0, 2.0]])
    coefficients = np.array([[a, b]])
    whole = np.block([
        [second, second @ coefficients.T], [coefficients @ second, coefficients @ second @ coefficients.T + s**2]
    ])  # fmt: skip
    model.posterior_draws_ = [{"rows": np.full((2, 1), SURE), "sums": [SURE * np.append(1.0, whole.ravel())[None]]}]
    coming = model.forecast(X, horizon=2, n_predictive=200)
    mean = np.array([a + b * last, a + b * (a + b * last)])
    std = s * np.sqrt([1.0, 1 + b**2])
    np.testing.assert_allclose(coming.mean[0, :, 0], mean, atol=5 * std.max() / np.sqrt(10_000))
    np.testing.assert_allclose(coming.std[0, :, 0], std, atol=5 * std.max() / np.sqrt(2 * 10_000))
    np.testing.assert_allclose(coming.upper[0, :, 0], mean + 1.645 * std, atol=5 * 2.2 * std.max() / 100)


def test_the_last_rows_come_newest_first():
    """Two past rows of two columns: coefficients that copy the second newest row, and no noise to speak of."""
    copied = np.hstack([np.zeros((2, 1)), np.zeros((2, 2)), np.eye(2)])
    likelihood = MatrixNormalInverseWishart(copied, 1e9 * np.eye(5), 1e6, 1e-6 * np.eye(2))
    X = np.arange(12.0).reshape(6, 2)
    model = InfiniteHMM(likelihood, **ONE_STATE).fit(X[:2])
    np.testing.assert_allclose(model.forecast(X, horizon=3).mean[0], [X[4], X[5], X[4]], atol=1e-2)


def test_what_is_missing_in_a_part_of_a_row_is_drawn_for_each_draw():
    """Mean statistics of one Gaussian state: the missing value has the mean of a Student t given its neighbour."""
    rng = np.random.default_rng(0)
    likelihood = NormalInverseWishart([0.0, 0.0], 1.0, 10.0, [[5.0, 4.0], [4.0, 5.0]])
    model = ObservationModel("gaussian", (likelihood,), ((0, 1),))
    observed = model.prepare(np.array([[2.0, np.nan]]), np.array([0, 1]))
    values = np.array([draw_sums(rng, observed, np.zeros(1, dtype=np.int64), 1)[0][0, 2] for _ in range(400)])
    # A row has the density t(8 df + 1, 0, 2 scale / 9): given its first entry the mean is that of a regression on it.
    assert abs(values.mean() - 0.8 * 2.0) < 5 * values.std() / np.sqrt(400)
    assert values.std() > 0.3


FAMILIES = {
    "gaussian": {}, "diag": {"inference": "direct"}, "poisson": {"inference": "weak_limit"}, "bernoulli": {},
    "categorical": {}, "autoregressive": {}, "vb": {"inference": "vb", "n_init": 1},
    "durations": {"inference": "weak_limit", "durations": "negative_binomial"},
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_forecasts_of_each_family_survive_a_file(name, tmp_path):
    states = np.repeat([0, 1, 0, 1], 12)
    X = np.random.default_rng(0).poisson(np.array([[1, 20], [15, 3]])[states]).astype(float)
    X = np.minimum(X, 1.0) if name == "bernoulli" else X
    family = name if name in ("gaussian", "diag", "poisson", "bernoulli", "categorical", "autoregressive") else "diag"
    model = InfiniteHMM(family, **SMALL | FAMILIES[name]).fit(X)
    pluri.io.save(model, tmp_path / "model.pluri")
    again = pluri.io.load(tmp_path / "model.pluri")
    coming, same = (one.forecast([X[:30], X[30:]], horizon=2, random_state=1) for one in (model, again))
    assert coming.states.shape == (2, 2, model.n_states_)
    np.testing.assert_allclose(coming.states.sum(axis=-1), 1.0)
    if family == "categorical":
        assert [table.shape[:2] for table in coming.probabilities] == [(2, 2), (2, 2)]
        np.testing.assert_array_equal(coming.probabilities[0], same.probabilities[0])
    else:
        assert ((coming.lower <= coming.upper) & (coming.std >= 0)).all()
        np.testing.assert_array_equal(coming.mean, same.mean)
    if model.inference != "vb":
        assert len(model.posterior_draws_) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, "horizon must be"),
        ({"level": 1.0}, "level must be"),
        ({"n_predictive": 0}, "n_predictive must be"),
        ({"lengths": [50, 0]}, "the last 1 rows of sequence 1 must be complete"),
    ],
)
def test_bad_questions_are_named(arguments, message):
    X = np.random.default_rng(0).normal(size=(50, 1)).cumsum(axis=0)
    model = InfiniteHMM("autoregressive", **SMALL).fit(X)
    with pytest.raises(ValueError, match=message):
        model.forecast(X, **arguments)
    X[-1] = np.nan
    with pytest.raises(ValueError, match="must be complete for a forecast"):
        model.forecast(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": np.ones((2, 2))}, "rows of the shape"),
        ({"sums": []}, "sums of the shapes"),
        ({"rows": np.full((3, 2), np.nan)}, "finite numbers"),
        ({"durations": np.ones((1, 1))}, "durations of 2 states"),
    ],
)
def test_draws_that_do_not_fit_are_refused(change, message):
    model = InfiniteHMM("diag", **SMALL).fit(np.repeat([[0.0], [9.0]], 20, axis=0))
    k = model.model_.likelihoods[0].n_statistics
    draw = {"rows": np.ones((3, 2)), "sums": [np.ones((2, k))]}
    model.posterior_draws_ = [draw]
    model._check_fitted_state()
    model.posterior_draws_ = [draw | change]
    with pytest.raises(ValueError, match=message):
        model._check_fitted_state()
