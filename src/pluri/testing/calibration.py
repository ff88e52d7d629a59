"""Simulation-based calibration: over many data sets drawn from the model, true values rank uniformly among the draws.

If theta* ~ p(theta), y ~ p(y | theta*) and theta_1 .. theta_L are independent draws from p(theta | y), then for any
f(theta, y) the number of f(theta_l, y) below f(theta*, y) is uniform on 0 .. L [1]_. A posterior that is too narrow
piles ranks up at both ends, too wide in the middle, shifted at one end. Ranks of parameters alone miss a sampler that
ignores the data; the log-likelihood, which depends on them, does not [2]_.

Unlike Geweke's test this one tries the whole sampler, with its warm-up and whatever else it does to a data set.

References
----------
.. [1] Talts, S., Betancourt, M., Simpson, D., Vehtari, A. and Gelman, A. (2018). Validating Bayesian inference
   algorithms with simulation-based calibration. arXiv:1804.06788.
.. [2] Modrak, M. et al. (2023). Simulation-based calibration checking for Bayesian computation: the choice of test
   quantities shapes sensitivity. Bayesian Analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.testing.comparison import Outcome, overall_p_value
from pluri.testing.geweke import DataModel, Prior, rank_among, rank_comparisons
from pluri.testing.long_chains import thinning
from pluri.testing.quantities import Statistics, stack, summarising
from pluri.testing.replications import LEAST_REPLICATIONS, replicate
from pluri.testing.uniformity import envelope
from pluri.validation import Only, RandomState, Whole, as_generator, check_count, check_value
from pluri.validation.interruption import interruptible

#: ``sampler(rng, y, n_draws)``: draws from the posterior of y.
Sampler = Callable[[np.random.Generator, Any, int], Any]
#: Simulations from which the thinning is learned.
N_PILOTS = 3
#: Draws of each of them, as a multiple of what is asked for.
PILOT_LENGTH = 4


@dataclass(frozen=True, repr=False)
class CalibrationResult(Outcome):
    """Ranks of the true values among posterior draws.

    Attributes
    ----------
    ranks : dict of str to ndarray of shape (n_simulations,)
        Between 0 and `n_draws`.
    n_draws : int
        Draws that each true value was ranked among.
    thin : int
        Draws that the sampler made for each of them.
    """

    ranks: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    n_draws: int = 0
    thin: int = 1

    def plot(self, ax: Any = None, *, coverage: float = 0.95) -> Any:
        """Empirical distribution of the ranks less the uniform one, with the band it should stay in."""
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        n_ranks = len(next(iter(self.ranks.values())))
        places, lower, upper = envelope(n_ranks, self.n_draws + 1, coverage)
        ax.fill_between(places, lower - places, upper - places, color="0.85", label=f"{coverage:.0%} of all curves")
        for name, ranks in self.ranks.items():
            below = np.searchsorted(np.sort(ranks), places * (self.n_draws + 1) - 0.5) / n_ranks
            ax.plot(places, below - places, drawstyle="steps-mid", label=name)
        ax.set(xlabel="rank / (number of draws + 1)", ylabel="ECDF difference")
        ax.legend(frameon=False)
        return ax


@interruptible
def simulation_based_calibration(
    prior: Prior,
    data: DataModel,
    sampler: Sampler,
    *,
    n_simulations: int = 200,
    n_draws: int = 99,
    quantities: Statistics | None = None,
    log_likelihood: Callable[[Any, Any], float] | None = None,
    thin: int | Literal["ess"] = "ess",
    alpha: float = 0.01,
    random_state: RandomState = None,
) -> CalibrationResult:
    """Draw data from the model many times, and rank the truth among the posterior draws.

    Parameters
    ----------
    prior : callable
        ``prior(rng) -> theta``.
    data : callable
        ``data(rng, theta) -> y``.
    sampler : callable
        ``sampler(rng, y, n_draws) -> draws``: an array or dict of arrays with `n_draws` rows, a list of thetas, or a
        `pluri.inference.mcmc.Trace`, in the order in which a chain made them.
    n_simulations : int, default=200
    n_draws : int, default=99
        Draws to rank among, after thinning.
    quantities : callable, optional
        ``quantities(theta, y) -> dict``; all numbers in theta by default.
    log_likelihood : callable, optional
        ``log_likelihood(theta, y) -> float``: ranked too, and worth having.
    thin : int or "ess", default="ess"
        Keep one of so many draws; "ess" finds out how many it takes until they are about independent, from the
        effective number of draws in the first simulations.
    alpha : float, default=0.01
        The result passes if the p-value, corrected for all tests, is above.
    random_state : int, Generator or None

    Returns
    -------
    CalibrationResult

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.testing import simulation_based_calibration
    >>> def prior(rng):
    ...     return {"mean": rng.normal()}
    >>> def data(rng, theta):
    ...     return rng.normal(theta["mean"], 1.0, size=3)
    >>> def sampler(rng, y, n_draws):
    ...     return {"mean": rng.normal(y.sum() / 4, 0.5, size=n_draws)}
    >>> result = simulation_based_calibration(prior, data, sampler, random_state=0)
    >>> result.passed, result.ranks["mean"].shape
    (True, (200,))
    """
    for name, value, least in (("n_simulations", n_simulations, LEAST_REPLICATIONS), ("n_draws", n_draws, 1)):
        check_count(value, name, least)
    check_value(thin, "thin", Only("ess") | Whole(1))
    rng = as_generator(random_state)
    summarise = summarising(quantities, log_likelihood, with_data=False)

    def draw(rng: np.random.Generator, y: Any, n: int) -> dict[str, NDArray[np.float64]]:
        thetas = as_positions(sampler(rng, y, n))
        if len(thetas) != n:
            raise ValueError(f"sampler must give the {n} draws it was asked for, got {len(thetas)}")
        return stack([summarise(theta, y) for theta in thetas])

    step = int(thin) if thin != "ess" else _learned_thinning(prior, data, draw, n_draws, rng)

    def simulate(rng: np.random.Generator) -> dict[str, float]:
        theta = prior(rng)
        y = data(rng, theta)
        draws = draw(rng, y, n_draws * step)
        truth = summarise(theta, y)
        return {name: rank_among(value, draws[name][step - 1 :: step], rng) for name, value in truth.items()}

    rows, stopped = replicate(simulate, n_simulations, rng)
    ranks = {name: values.astype(np.int64) for name, values in stack(rows).items()}
    comparisons = rank_comparisons(ranks, n_draws + 1)
    passed = overall_p_value(comparisons) > alpha
    return CalibrationResult(comparisons, passed, alpha, stopped, ranks, n_draws, step)


def _learned_thinning(prior: Prior, data: DataModel, draw: Any, n_draws: int, rng: np.random.Generator) -> int:
    n = max(PILOT_LENGTH * n_draws, 200)
    pilots = [draw(rng, data(rng, prior(rng)), n) for _ in range(N_PILOTS)]
    return int(np.ceil(max(np.mean([thinning(draws[name][None, :]) for draws in pilots]) for name in pilots[0])))


def as_positions(draws: Any) -> Sequence[Any]:
    """Draws as a list of positions: rows of an array or of a dict of arrays, draws of a trace, or a list as it is."""
    from pluri.inference.mcmc import Trace

    if isinstance(draws, Trace):
        names = list(draws.draws)
        draws = draws.flat(names[0]) if names == ["x"] else {name: draws.flat(name) for name in names}
    if isinstance(draws, Mapping):
        length = len(next(iter(draws.values())))
        return [{name: values[i] for name, values in draws.items()} for i in range(length)]
    return list(draws)
