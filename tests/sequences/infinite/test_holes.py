"""Rows of Gaussian and autoregressive states of which only a part is missing."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, multivariate_t

from pluri.metrics import one_to_one_accuracy
from pluri.priors import Beta, Gamma
from pluri.processes import MatrixNormalInverseWishart, NormalInverseWishart
from pluri.sequences import InfiniteHMM
from pluri.sequences.infinite.beam import BeamSampler
from pluri.sequences.infinite.observations import ObservationModel, expected_sums, lagged_rows
from pluri.sequences.infinite.state_posterior import in_order
from pluri.sequences.infinite.transitions import Hyperparameters, HyperPriors
from pluri.sequences.infinite.weak_limit import WeakLimitSampler
from pluri.testing import SamplerProblem, check_sampler

nan = np.nan
OFFSETS = np.array([0, 3, 3, 6])
X = np.array([[0.5, nan, 1.0], [0.2, -0.1, 0.4], [nan, nan, 2.0], [1.0, 0.3, nan], [nan] * 3, [2.5, nan, 0.1]])
REGRESSION = MatrixNormalInverseWishart(
    [[0.1, 0.5, 0.0], [0.0, 0.2, -0.4]], np.diag([1.0, 2.0, 1.5]), 5.0, [[1.5, 0.4], [0.4, 1.0]]
)
MODELS = {
    "gaussian": ObservationModel(
        "gaussian",
        (NormalInverseWishart([0.5, -0.5, 0.0], 0.4, 6.0, np.array([[2.0, 0.5, 0.3], [0.5, 1.5, 0], [0.3, 0, 1]])),),
        ((0, 1, 2),),
    ),
    "autoregressive": ObservationModel("autoregressive", (REGRESSION,), ((0, 1),), 1),
}
DATA = {
    "gaussian": X,
    "autoregressive": np.array([[0.5, 1.0], [0.4, nan], [0.1, 0.3], [1.0, -0.5], [nan, 0.2], [0.7, 0.6]]),
}


def prepared(family):
    return MODELS[family].prepare(DATA[family], OFFSETS)


def means_of(family, location, t):
    past = np.concatenate([[1.0], DATA[family][t - 1]]) if family == "autoregressive" else None
    return location if past is None else location @ past


@pytest.mark.parametrize(("family", "step"), [("gaussian", 0), ("gaussian", 2), ("gaussian", 5), ("autoregressive", 1)])
def test_density_is_that_of_the_columns_that_are_there(family, step):
    observations = prepared(family)
    parameters = observations.draw(np.random.default_rng(0), [np.asarray(MODELS[family].likelihoods[0].empty(2))])
    table = observations.log_density(parameters)
    there = ~np.isnan(DATA[family][step])
    for k in range(2):
        location, root = (array[k] for array in parameters[0])
        covariance = (root @ root.T)[np.ix_(there, there)]
        mean = means_of(family, location, step)[there]
        expected = multivariate_normal(mean, covariance).logpdf(DATA[family][step, there])
        assert np.isclose(table[step, k], expected)


def test_which_rows_of_a_regression_have_a_density():
    """Not the first of each sequence, nor those after a row in which something is missing."""
    observations = prepared("autoregressive")
    parameters = observations.draw(np.random.default_rng(0), [np.asarray(REGRESSION.empty(1))])
    assert np.flatnonzero(observations.log_density(parameters)[:, 0]).tolist() == [1, 4]


@pytest.mark.parametrize("family", MODELS)
def test_predictive_density_is_a_marginal_of_that_of_whole_rows(family):
    """The density of a whole row, summed over the one value that is missing."""
    likelihood, rng = MODELS[family].likelihoods[0], np.random.default_rng(1)
    whole = rng.normal(size=(9, likelihood.n_features))
    sums = likelihood.statistics(whole).sum(axis=0)[None]
    step = 0 if family == "gaussian" else 1
    row = DATA[family][step] if family == "gaussian" else lagged_rows(DATA[family], OFFSETS, 1)[step]
    column = int(np.flatnonzero(np.isnan(row))[0])

    def density(value):
        filled = row.copy()
        filled[column] = value
        return float(np.exp(likelihood.log_predictive(sums[0], filled)))

    part = prepared(family).parts[0]
    assert np.isclose(np.exp(part.log_predictive(sums, sums[:, 0])[step, 0]), quad(density, -60, 60, limit=200)[0])


def test_predictive_density_of_a_gaussian_row_is_students():
    likelihood = MODELS["gaussian"].likelihoods[0]
    sums = likelihood.statistics(np.random.default_rng(2).normal(size=(7, 3))).sum(axis=0)[None]
    k, df, center, scatter = (array[0] for array in likelihood._posterior(sums))
    found = prepared("gaussian").parts[0].log_predictive(sums, sums[:, 0])
    shape = scatter[2:, 2:] * (k + 1) / (k * (df - 2))
    assert np.isclose(found[2, 0], multivariate_t((likelihood.mean + center)[2:], shape, df - 2).logpdf([2.0]))
    assert found[4, 0] == 0.0


@pytest.mark.parametrize("family", MODELS)
def test_missing_values_are_drawn_from_their_conditional_distribution(family):
    """Means and covariances of 4,000 draws within 5 standard errors."""
    observations, n = prepared(family), 4000
    parameters = observations.draw(np.random.default_rng(3), [np.asarray(MODELS[family].likelihoods[0].empty(2))])
    labels = np.array([0, 1, 1, 0, 1, 0])
    rng = np.random.default_rng(4)
    drawn = np.array([observations.draw_filled(rng, parameters, labels) for _ in range(n)])
    step, columns = (2, slice(1, 3)) if family == "gaussian" else (1, slice(0, 1))
    location, root = (array[labels[step]] for array in parameters[0])
    covariance, mean = root @ root.T, means_of(family, location, step)
    there = ~np.isnan(DATA[family][step])
    slope = covariance[np.ix_(~there, there)] @ np.linalg.inv(covariance[np.ix_(there, there)])
    expected = mean[~there] + slope @ (DATA[family][step, there] - mean[there])
    rest = covariance[np.ix_(~there, ~there)] - slope @ covariance[np.ix_(there, ~there)]
    own = drawn[:, columns]
    assert (np.abs(own.mean(axis=0) - expected) < 5 * np.sqrt(np.diag(rest) / n)).all()
    products = (own - expected)[:, :, None] * (own - expected)[:, None, :]
    assert (np.abs(products.mean(axis=0) - rest) < 5 * products.std(axis=0) / np.sqrt(n)).all()


def joint_problem(sampler, family):
    """Geweke's test: whole rows are drawn given the states, and the sweep sees the part that is there."""
    kernel = sampler(
        MODELS[family], DATA[family], OFFSETS, Hyperparameters(1.7, 0.8, 0.4),
        HyperPriors(Gamma(3.0, 2.0), Gamma(2.0, 1.5), Beta(1.5, 2.0)), 4 if sampler is WeakLimitSampler else 200,
    )  # fmt: skip
    holes = np.isnan(DATA[family])
    # A row that is missing as a whole stays so; of a regression, what has no density is given.
    given = np.where(holes & ~holes.all(axis=1, keepdims=True), 0.0, DATA[family])
    first = kernel._observations(kernel._prepared).parts[0]

    def sweep(rng, position, data):
        seen = np.where(holes, nan, data)
        steps = np.arange(len(data)) if first.where is None else first.where
        return kernel.sweep(rng, {**position, "filled": data[steps][first.holes]}, seen)

    def whole_rows(rng, position):
        return replace(kernel, data=given).sample_data(rng, position)

    def statistics(position, data):
        labels = in_order(np.asarray(position["labels"]))[0]
        sizes, there = np.bincount(labels), np.where(holes, 0.0, data)
        return {
            "log concentration": np.log(position["concentration"]),
            "stickiness": float(position["stickiness"]),
            "n states": len(sizes),
            "stays": float(labels[1] == labels[0]),
            "far": float(labels[0] == labels[5]),
            "within states": sum(float(there[labels == k].var(axis=0).sum() * n) for k, n in enumerate(sizes)),
            "mean": float(there.mean()),
        }

    return SamplerProblem(
        f"{sampler.__name__}, {family} with holes", prior=kernel.sample_prior, data=whole_rows, transition=sweep,
        statistics=statistics, n_steps=3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sampler", "family"),
    [(BeamSampler, "gaussian"), (WeakLimitSampler, "gaussian"), (BeamSampler, "autoregressive")],
)
def test_data_and_states_keep_their_joint_law(sampler, family):
    """False-alarm rate 1e-6 for each."""
    problem = joint_problem(sampler, family)
    found = check_sampler(problem, alpha=1e-6, max_stages=5, n_replications=80, checks=["geweke"], random_state=0)
    found.raise_if_failed()


def test_statistics_of_known_states_are_means_over_the_missing_values():
    """One state: the mean of the second column moves with the first, on which it depends strongly."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=400)
    data = np.column_stack([first, 3.0 * first + 0.1 * rng.normal(size=400)])
    data[first > 0, 1] = nan
    model = ObservationModel("gaussian", (NormalInverseWishart([0.0, 0.0], 0.01, 4.0, np.eye(2)),), ((0, 1),))
    labels, offsets = np.zeros(400, dtype=np.int64), np.array([0, 400])
    (sums,) = expected_sums(rng, model.prepare(data, offsets), labels, 1, n_draws=300)
    # 3 times the sum of the first column; means of columns in place of what is missing are 480 away.
    assert abs(sums[0, 2] - 3.0 * first.sum()) < 60


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("inference", ["beam", "weak_limit"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:the states reached")
def test_states_are_found_in_rows_with_holes(family, inference):
    """States so far apart that a part of the cells may be missing."""
    rng, states = np.random.default_rng(0), np.repeat([0, 1, 2, 0, 2, 1], 25)
    data = rng.normal(size=(150, 3)) + 9.0 * np.eye(3)[states]
    if family == "autoregressive":
        for t in range(1, 150):
            past = np.roll(data[t - 1], 1) if states[t] == 2 else data[t - 1]
            data[t] = [0.97, -0.97, 0.97][states[t]] * past + rng.normal(size=3)
    data[rng.random(data.shape) < (0.3 if family == "gaussian" else 0.05)] = nan
    model = InfiniteHMM(family, inference=inference, n_draws=20, n_warmup=60, n_chains=2, random_state=0)
    model.fit(data, lengths=[75, 75])
    assert one_to_one_accuracy(states, model.labels_) > 0.85
    assert np.isfinite(model.score(data, lengths=[75, 75]))
    assert one_to_one_accuracy(states, model.predict(data, lengths=[75, 75])) > 0.8


@pytest.mark.parametrize("inference", ["direct", "vb"])
@pytest.mark.parametrize("family", MODELS)
def test_holes_are_refused_by_name_where_they_are_not_taken(family, inference):
    data = np.random.default_rng(0).normal(size=(20, 2))
    data[5, 1] = nan
    with pytest.raises(ValueError, match=f"family='{family}' with inference='{inference}', got NaN in a part of a row"):
        InfiniteHMM(family, inference=inference).fit(data)
