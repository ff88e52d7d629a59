"""Standard errors of the effects of inputs on transitions, from the observed information.

The gradient of the log-likelihood is that of the expected log-likelihood of the complete data (Fisher's identity), and
one pass of forward-backward gives it exactly for the transitions; for the emissions, whatever their family, it is found
by differences of their expected log density. Differences of this gradient give the information of all parameters
together, so that what is not known about emissions and intercepts widens the intervals of the effects.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from pluri.components.chain.driven import DrivenChain, smooth
from pluri.engine.aligned import padded_width
from pluri.sequences.driven.driven_learning import DrivenParameters, DrivenProblem, with_reference
from pluri.sequences.driven.logistic_rows import full_curvature, references
from pluri.validation.sequences import offsets_of

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Transitions expected less often tell nothing of what drives them: their standard errors are infinite.
LEAST_SEEN = 0.1
#: Steps of differences, in standard errors that complete data would give.
STEP = 0.05
#: Eigenvalues of the information, with ones on its diagonal, below which a direction is not identified.
SINGULAR = 1e-6


class TransitionEffects(NamedTuple):
    """Effects of inputs on log odds of transitions, each array (n_components, n_components, n_inputs).

    Attributes
    ----------
    estimate : like `DrivenHMM.transition_coef_`
    standard_error : 0 for the reference (staying), infinite for a transition that was hardly ever, or never, seen
    lower, upper : bounds of the intervals
    """

    estimate: Array
    standard_error: Array
    lower: Array
    upper: Array

    @classmethod
    def at(cls, estimate: Array, standard_error: Array, level: float) -> Self:
        """Normal intervals with this coverage."""
        half = float(norm.ppf(0.5 + 0.5 * level)) * standard_error
        return cls(estimate, standard_error, estimate - half, estimate + half)


class _Data(NamedTuple):
    """Prepared rows of the emissions, inputs in standard units, and the sequences' places and weights."""

    rows: NDArray[Any]
    inputs: Array
    offsets: Integers
    weight: Array


def transition_effects(
    problem: DrivenProblem[Any],
    X: NDArray[Any],
    lengths: Integers,
    weight: Array | None,
    parameters: DrivenParameters[Any],
) -> Array:
    """Standard errors of the coefficients in standard units: (k, k, q)."""
    data = _Data(*problem.split(X), offsets_of(lengths), np.ones(len(lengths)) if weight is None else weight)
    parameters = dataclasses.replace(parameters, coef=with_reference(parameters.transition, parameters.coef))
    result = _smoothed(problem, data, parameters)
    pairs, n_inputs = result.sums.pairs, parameters.coef.shape[2]
    errors = np.full(parameters.coef.shape, np.inf)
    reference = references(parameters.transition)
    errors[np.arange(len(reference)), reference] = 0.0
    expected = pairs - result.sums.gradient[:, :, 0]
    free = (parameters.transition > 0) & (np.minimum(pairs, expected) > LEAST_SEEN)
    free[np.arange(len(reference)), reference] = False
    if not n_inputs or not free.any():
        return errors
    gradient, vector, steps = _gradient_of(
        problem, data, parameters, free, full_curvature(result.sums.curvature, n_inputs)
    )
    information = np.empty((len(vector), len(vector)))
    for c in range(len(vector)):
        moved = np.zeros(len(vector))
        moved[c] = steps[c]
        information[c] = (gradient(vector - moved) - gradient(vector + moved)) / (2.0 * steps[c])
    variances = _variances(0.5 * (information + information.T))
    found = np.sqrt(variances[: int(free.sum()) * (1 + n_inputs)]).reshape(-1, 1 + n_inputs)
    errors[free] = found[:, 1:]
    return errors


def _variances(information: Array) -> Array:
    """Diagonal of the inverse, without directions that nothing depends on."""
    root = np.sqrt(np.maximum(np.diagonal(information), 0.0))
    safe = np.where(root > 0, root, 1.0)
    values, vectors = np.linalg.eigh(information / (safe[:, None] * safe))
    if values[0] < -0.01:
        warnings.warn(
            "the objective bends upwards at these parameters, so that standard errors are not to be trusted: fit the "
            "model to the same data with a smaller tol",
            UserWarning,
            stacklevel=4,
        )
    inverse = np.where(values > SINGULAR, 1.0 / np.maximum(values, SINGULAR), 0.0)
    return np.where(root > 0, (vectors**2 @ inverse) / safe**2, np.inf)


def _smoothed(problem: DrivenProblem[Any], data: _Data, parameters: DrivenParameters[Any]) -> Any:
    chain = DrivenChain.from_probabilities(parameters.start, parameters.transition, parameters.coef)
    log_emission = np.empty((len(data.rows), padded_width(len(parameters.start))))
    problem.emission.log_prob(parameters.emission, data.rows, log_emission)
    return smooth(chain, log_emission, data.inputs, data.offsets, data.weight)


def _gradient_of(
    problem: DrivenProblem[Any],
    data: _Data,
    parameters: DrivenParameters[Any],
    free: NDArray[np.bool_],
    curvature: Array,
) -> tuple[Callable[[Array], Array], Array, Array]:
    """The gradient of the objective as a function of a vector, the vector of the parameters, and steps along it.

    First come log odds and coefficients of the free transitions, then what the emission family packs and updates.
    """
    emission, width = problem.emission, parameters.coef.shape[2] + 1
    packed = emission.pack(parameters.emission)
    rows, columns = np.nonzero(free)
    n_chain = len(rows) * width
    extra = np.where(parameters.transition > 0, problem.priors.pseudo_counts, 0.0)
    expected_density = _expected_log_density(problem, data)
    posterior = _smoothed(problem, data, parameters).posterior
    used, emission_steps = _emission_steps(packed, lambda v: expected_density(v, posterior, parameters.emission))

    def unpacked(vector: Array) -> DrivenParameters[Any]:
        chain = vector[:n_chain].reshape(-1, width)
        with np.errstate(divide="ignore"):
            logits = np.log(parameters.transition)
        coef = parameters.coef.copy()
        logits[rows, columns], coef[rows, columns] = chain[:, 0], chain[:, 1:]
        transition = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        whole = packed.copy()
        whole[used] = vector[n_chain:]
        record = emission.unpack(whole, parameters.emission)
        return DrivenParameters(parameters.start, transition, record, parameters.occupancy, coef)

    def gradient(vector: Array) -> Array:
        here = unpacked(vector)
        result = _smoothed(problem, data, here)
        slope = result.sums.gradient.copy()
        slope[:, :, 0] += extra - extra.sum(axis=1, keepdims=True) * here.transition
        slope[:, :, 1:] -= problem.priors.alpha * here.coef
        whole = packed.copy()
        whole[used] = vector[n_chain:]
        parts = [slope[rows, columns].ravel()]
        for c, step in zip(used, emission_steps, strict=True):
            sides = []
            for sign in (1.0, -1.0):
                moved = whole.copy()
                moved[c] += sign * step
                sides.append(expected_density(moved, result.posterior, here.emission))
            parts.append(np.array([(sides[0] - sides[1]) / (2.0 * step)]))
        return np.concatenate(parts)

    chain = np.column_stack([np.log(parameters.transition[rows, columns]), parameters.coef[rows, columns]])
    bend = curvature[rows, columns, columns][:, np.arange(width), np.arange(width)]
    chain_steps = STEP / np.sqrt(np.maximum(bend, 1.0))
    return (
        gradient,
        np.concatenate([chain.ravel(), packed[used]]),
        np.concatenate([chain_steps.ravel(), emission_steps]),
    )


def _expected_log_density(problem: DrivenProblem[Any], data: _Data) -> Callable[[Array, Array, Any], float]:
    """Expected log density of the observations, plus log prior, as a function of what the emission family packs."""
    emission = problem.emission

    def value(packed: Array, posterior: Array, like: Any) -> float:
        record = emission.unpack(packed, like)
        out = np.empty_like(posterior)
        emission.log_prob(record, data.rows, out)
        return float(np.where(posterior > 0, posterior * np.where(posterior > 0, out, 0.0), 0.0).sum()) + float(
            emission.log_prior(record)
        )

    return value


def _emission_steps(packed: Array, value: Callable[[Array], float]) -> tuple[Integers, Array]:
    """Places of the packed parameters that matter, and steps along them, in standard errors of complete data."""
    middle = value(packed)
    used, steps = [], []
    for c in np.flatnonzero(np.isfinite(packed)):
        step = 1e-3 * max(abs(float(packed[c])), 1e-3)
        for _ in range(60):
            moved = packed.copy()
            moved[c] += step
            above = value(moved)
            moved[c] -= 2.0 * step
            drop = middle - 0.5 * (above + value(moved))
            if np.isfinite(drop) and 0.05 <= drop <= 5.0:
                used.append(int(c))
                steps.append(STEP * step / np.sqrt(2.0 * drop))
                break
            step *= 0.2 if not np.isfinite(drop) or drop > 5.0 else 4.0
    return np.array(used, dtype=np.int64), np.array(steps)
