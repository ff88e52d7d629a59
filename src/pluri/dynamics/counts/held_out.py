"""Leave one neuron out: how well the counts of a neuron are predicted from those of all others at the same times."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.dynamics.counts.learning import infer_paths
from pluri.dynamics.counts.paths import PathPosterior
from pluri.dynamics.counts.prediction import ThetaDistribution, expected_counts, predictive_log_probability
from pluri.dynamics.counts.records import SystemParameters
from pluri.dynamics.counts.regression import ImpossibleCountWarning

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LeaveOneNeuronOut:
    """Predictions of each neuron from the others.

    Attributes
    ----------
    mean : array of shape (n_samples, n_features)
        Expected counts.
    log_probability : array of shape (n_samples, n_features)
        Of the counts that were seen; NaN where one is missing or its neuron was silent in the fit.
    squared_error : array of shape (n_samples, n_features)
        NaN in the same places.
    baseline_log_probability, baseline_squared_error : arrays of shape (n_samples, n_features)
        Those of Poisson counts whose rate does not change: the mean of the neuron in the fit.
    """

    mean: Array
    log_probability: Array
    squared_error: Array
    baseline_log_probability: Array
    baseline_squared_error: Array

    @property
    def mse(self) -> float:
        """Mean squared error."""
        return float(np.nanmean(self.squared_error))

    @property
    def nll(self) -> float:
        """Mean negative log predictive probability of a count."""
        return -float(np.nanmean(self.log_probability))

    @property
    def mse_reduction(self) -> float:
        """Per cent by which the mean squared error is below that of the baseline."""
        return 100.0 * (1.0 - self.mse / float(np.nanmean(self.baseline_squared_error)))

    @property
    def nll_reduction(self) -> float:
        """Per cent by which the negative log probability is below that of the baseline."""
        return 100.0 * (1.0 - self.nll / -float(np.nanmean(self.baseline_log_probability)))


def leave_one_neuron_out(
    problem: Any, params: SystemParameters, counts: Array, offsets: Integers, mean_counts: Array
) -> LeaveOneNeuronOut:
    """Predict each column of `counts`, as `CountProblem.prepare` gives them, with the column left out."""
    model, observation = problem.model, params.observation
    whole: PathPosterior = problem.posterior(params, counts, offsets)
    mean, log_probability = np.full(counts.shape, np.nan), np.full(counts.shape, np.nan)
    for i in range(counts.shape[1]):
        if problem.silent[i]:
            mean[:, i] = 0.0
            continue
        others = counts.copy()
        others[:, i] = np.nan
        found, _ = infer_paths(model, problem.inference, params, others, offsets, near=whole)
        theta = ThetaDistribution.of(observation.loadings[i : i + 1], found.mean, found.covariance)
        one = _only(observation, i)
        mean[:, i] = expected_counts(one, theta).mean[:, 0]
        log_probability[:, i] = predictive_log_probability(
            observation, i, counts[:, i], theta.mean[:, 0], theta.variance[:, 0]
        )
    if np.isneginf(log_probability).any():
        t, i = np.argwhere(np.isneginf(log_probability))[0]
        warnings.warn(
            f"X holds counts that the model holds for impossible, such as {counts[t, i]:g} in column {i}: fit with a "
            "larger max_count and a positive smoothness",
            ImpossibleCountWarning,
            stacklevel=3,
        )
    rate = np.where(mean_counts > 0, mean_counts, np.nan)
    baseline = counts * np.log(rate) - rate - gammaln(counts + 1.0)
    return LeaveOneNeuronOut(mean, log_probability, (counts - mean) ** 2, baseline, (counts - rate) ** 2)


def _only(observation: Any, neuron: int) -> Any:
    """The record of one neuron."""
    arrays = {name: value[neuron : neuron + 1] for name, value in vars(observation).items()}
    return type(observation)(**arrays)
