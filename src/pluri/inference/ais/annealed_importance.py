"""Annealed importance sampling: weights from a bridge of distributions between a prior and a target.

Along ``log f_b = (1 - b) log f_prior + b log f_target``, ``0 = b_0 < ... < b_n = 1``, each run draws from the prior and

    for j = 1, ..., n:   log w += (b_j - b_(j-1)) (log f_target(x) - log f_prior(x));   if j < n:  x ~ T_(b_j)(x, .)

where ``T_b`` leaves ``f_b`` invariant. The weight is taken *before* each move, the first one at the initial draw;
leaving that first factor out, as some printed versions do, gives a wrong answer at any n. The mean weight is an
unbiased estimate of ``Z_target / Z_prior`` however badly the moves mix: bad moves cost variance, not bias.

References
----------
.. [1] Neal, R. M. (2001). Annealed importance sampling. Statistics and Computing 11, 125-139.
.. [2] Grosse, R. B., Ghahramani, Z. and Adams, R. P. (2015). Sandwiching the marginal likelihood using bidirectional
   Monte Carlo. arXiv:1511.02543.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.ais.log_densities import SHARE, LogDensity, Sampler
from pluri.inference.ais.pilot import AnnealingPlan, make_plan
from pluri.inference.ais.samples import AnnealedSamples, ReverseSamples
from pluri.inference.ais.schedule import make_schedule
from pluri.inference.ais.tempered_path import Cloud, Gradient, TemperedPath
from pluri.inference.ais.transitions import as_moves
from pluri.inference.ais.weighted_samples import warn_of_weights
from pluri.progress import Step, open_progress
from pluri.validation import RandomState, as_generator, check_count, check_value
from pluri.validation.interruption import holding, interruptible, kept

__all__ = ["AnnealedImportanceSampler", "AnnealedSamples", "Evidence", "ReverseSamples", "log_evidence"]

#: Moves at each temperature of an adaptive schedule, unless a number is given.
ADAPTIVE_STEPS = 4


Array = NDArray[np.float64]


def anneal(
    rng: np.random.Generator,
    path: TemperedPath,
    plan: AnnealingPlan,
    cloud: Cloud,
    n_steps: int,
    *,
    reverse: bool = False,
    keep_paths: bool = True,
    verbose: int = 0,
    started: float | None = None,
) -> AnnealedSamples:
    """Carry a cloud from one end of the path to the other.

    The cloud must have been drawn from the density at the beginning. Ctrl-C keeps the weights and points of the last
    temperature that is complete; before the first it goes through.
    """
    started = perf_counter() if started is None else started
    order = -1 if reverse else 1
    betas, moves = plan.betas[::order], plan.moves[::order]
    log_weights = np.zeros(len(cloud.x))
    records = [_look(cloud, log_weights)]
    rates, paths = [np.nan], [log_weights]
    counts = np.array([len(cloud.x), 0, 0])
    reached: tuple[int, Cloud, Array] = 0, cloud, log_weights
    with holding(having=lambda: reached[0] > 0) as block, open_progress(verbose) as report:
        for j in range(1, len(betas)):
            log_weights = log_weights + (betas[j] - betas[j - 1]) * cloud.gain
            if not (log_weights < np.inf).all():
                raise ValueError(f"at beta = {betas[j - 1]:.4g} the transition moved runs to where the target is zero")
            record = _look(cloud, log_weights)
            if verbose:
                report(Step(j, len(betas) - 1, record[1], reason="max_iter" if j == len(betas) - 1 else None))
            records.append(record)
            rates.append(np.nan)
            if keep_paths:
                paths.append(log_weights)
            # The weighted points are right for this temperature before the move and after it.
            reached = j, cloud, log_weights
            if j < len(betas) - 1:
                moved = moves[j].move(rng, path, float(betas[j]), cloud, n_steps)
                rates[j], cloud = moved.acceptance, moved.cloud
                counts = counts + np.array([moved.n_evaluations, moved.undefined, moved.uncovered])
                reached = j, cloud, log_weights
    j, cloud, log_weights = reached
    ess, log_z, mean_gain = np.array(records[: j + 1]).T
    kind = ReverseSamples if reverse else AnnealedSamples
    return kind(
        cloud.x, log_weights, block.interrupted, betas[: j + 1].copy(), np.array(rates[: j + 1]), ess, log_z, mean_gain,
        np.stack(paths[: j + 1], axis=1) if keep_paths else None, plan, int(counts[0]), int(counts[1]),
        int(counts[2]), perf_counter() - started,
    )  # fmt: skip


def _look(cloud: Cloud, log_weights: Array) -> tuple[float, float, float]:
    """Effective sample size, log mean weight and weighted mean gain."""
    largest = log_weights.max()
    if largest == -np.inf:
        raise ValueError("every run has weight zero: the target is -inf wherever the runs are")
    weights = np.exp(log_weights - largest)
    total = weights.sum()
    used = weights > 0
    gain = float(weights[used] @ cloud.gain[used] / total)
    return float(total**2 / np.square(weights).sum()), float(largest + np.log(total / len(weights))), gain


class AnnealedImportanceSampler:
    """Annealed importance sampling, all runs at a time.

    Parameters
    ----------
    log_target : callable or None
        Points (n, d) to log densities (n,), up to a constant; None if `log_likelihood` is given.
    log_prior : callable
        The same for the start of the path. If it is normalised, ``log_z`` is the log constant of the target itself.
    sample_prior : callable
        ``sample_prior(rng, n)`` draws points (n, d) from it.
    log_likelihood : callable, optional
        In place of `log_target`, which then is prior times likelihood: ``log_z`` is the log evidence.
    transition : {"pcn", "mh", "slice", "hmc", "identity"}, Moves or callable, default="pcn"
        What moves the points at each temperature: Crank-Nicolson steps in the shape of the cloud, random-walk
        Metropolis, slice sampling, Hamiltonian Monte Carlo (needs the gradients); a record such as
        ``RandomWalkMoves((0.1, 1.0))``; a function ``(rng, x, beta) -> x`` of all points, for any kind of state; or a
        function ``beta -> kernel`` of :mod:`pluri.inference.mcmc`.
    n_temperatures : int, optional
        Steps from the prior to the target, of a schedule by name; 100 by default. 1 is plain importance sampling.
    schedule : {"adaptive", "linear", "geometric", "sigmoid", "mixed"} or array, optional
        Inverse temperatures. "adaptive" finds them in the pilot, so that each step leaves `conditional_ess` of the
        points effective, and is the default unless `n_temperatures` is given; then "linear" is, equal steps. "mixed"
        goes to 0.01 in equal steps and on by a constant factor.
    n_steps_per_temperature : int, optional
        Moves at each; by default 4 with "adaptive", else 1.
    n_runs : int, default=1000
    conditional_ess : float, default=0.99
    n_pilot : int, optional
        Points of the pilot that finds temperatures and step sizes, where needed; 100 to 500 by default.
    tune : bool, default=True
        Whether moves that adapt are tuned in the pilot. All settings are frozen afterwards.
    grad_log_target, grad_log_prior, grad_log_likelihood : callable, optional
        Points (n, d) to gradients (n, d), for "hmc".
    vectorized : bool, default=True
        False if log densities and gradients take one point (d,) at a time.
    keep_paths : bool, default=True
        Whether to keep every run's weight at every temperature.
    random_state : int, Generator, RandomState or None
    verbose : int, default=0
        1 shows progress.
    warn : bool, default=True
        Give a ConvergenceWarning for each problem that ``diagnose()`` finds.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.ais.annealed_importance import AnnealedImportanceSampler
    >>> sampler = AnnealedImportanceSampler(
    ...     lambda x: -((x[:, 0] - 3) ** 2) / 0.5,
    ...     lambda x: -(x[:, 0] ** 2) / 2,
    ...     lambda rng, n: rng.normal(size=(n, 1)),
    ...     n_steps_per_temperature=2,
    ...     random_state=0,
    ... )
    >>> samples = sampler.run()
    >>> bool(abs(np.exp(samples.log_z) - 0.5) < 0.05)  # ratio of the two widths
    True
    >>> bool(abs(samples.expect().value[0] - 3) < 0.1)
    True
    """

    def __init__(
        self,
        log_target: LogDensity | None,
        log_prior: LogDensity,
        sample_prior: Sampler,
        *,
        log_likelihood: LogDensity | None = None,
        transition: Any = "pcn",
        n_temperatures: int | None = None,
        schedule: str | ArrayLike | None = None,
        n_steps_per_temperature: int | None = None,
        n_runs: int = 1000,
        conditional_ess: float = 0.99,
        n_pilot: int | None = None,
        tune: bool = True,
        grad_log_target: Gradient | None = None,
        grad_log_prior: Gradient | None = None,
        grad_log_likelihood: Gradient | None = None,
        vectorized: bool = True,
        keep_paths: bool = True,
        random_state: RandomState = None,
        verbose: int = 0,
        warn: bool = True,
    ) -> None:
        if (log_target is None) == (log_likelihood is None):
            raise ValueError("give either log_target or log_likelihood, not both and not neither")
        is_likelihood = log_likelihood is not None
        self.path = TemperedPath(
            log_prior,
            log_likelihood if log_likelihood is not None else log_target,  # type: ignore[arg-type]
            is_likelihood,
            vectorized,
            grad_log_prior,
            grad_log_likelihood if is_likelihood else grad_log_target,
        )
        self.sample_prior = sample_prior
        self.moves = as_moves(transition)
        if schedule is None:
            schedule = "adaptive" if n_temperatures is None else "linear"
        self.betas = make_schedule(schedule, 100 if n_temperatures is None else n_temperatures)
        if n_steps_per_temperature is None:
            n_steps_per_temperature = ADAPTIVE_STEPS if self.betas is None else 1
        self.n_steps_per_temperature = check_count(n_steps_per_temperature, "n_steps_per_temperature")
        self.n_runs = check_count(n_runs, "n_runs")
        check_value(conditional_ess, "conditional_ess", SHARE)
        self.conditional_ess = float(conditional_ess)
        self.n_pilot = max(100, min(n_runs // 2, 500)) if n_pilot is None else check_count(n_pilot, "n_pilot", 2)
        self.tune = tune
        self.keep_paths = keep_paths
        self.random_state = random_state
        self.verbose = verbose
        self.warn = warn

    def _streams(self) -> list[np.random.Generator]:
        """Independent streams for the pilot, the forward and the reverse run: none looks at another's draws."""
        return as_generator(self.random_state).spawn(3)

    def make_plan(self) -> AnnealingPlan:
        """Temperatures and moves: as given, or found in a pilot. May be used again in several runs."""
        return self._plan(self._streams()[0])

    def _plan(self, rng: np.random.Generator) -> AnnealingPlan:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return make_plan(
                rng, self.path, self.sample_prior, self.betas, self.moves, n_pilot=self.n_pilot,
                n_steps=max(self.n_steps_per_temperature, self.moves.n_tunings), share=self.conditional_ess,
                tune=self.tune,
            )  # fmt: skip

    @interruptible
    def run(self, plan: AnnealingPlan | None = None) -> AnnealedSamples:
        """Anneal draws of the prior to the target.

        Parameters
        ----------
        plan : AnnealingPlan, optional
            Temperatures and moves of an earlier run (``samples.plan``); made anew by default.

        Returns
        -------
        AnnealedSamples
            Weighted for the target; ``log_z`` estimates ``log(Z_target / Z_prior)``. After Ctrl-C, weighted for the
            temperature reached, which is not an estimate for the target.
        """
        pilot, rng, _ = self._streams()
        return self._anneal(rng, self._plan(pilot) if plan is None else plan, None)

    @interruptible
    def run_reverse(self, draws: ArrayLike, plan: AnnealingPlan | None = None) -> ReverseSamples:
        """Anneal exact draws of the target back to the prior, a run for each.

        Parameters
        ----------
        draws : array (n, d)
            Draws of the target. Those of a Markov chain make the bound hold only as far as the chain has converged,
            and its error too small if they are correlated.
        plan : AnnealingPlan, optional
            Temperatures and moves of an earlier run.

        Returns
        -------
        ReverseSamples
            ``exp(log_inverse_z)`` is an unbiased estimate of ``Z_prior / Z_target``; ``log_z`` is an upper bound on
            average.
        """
        pilot, _, rng = self._streams()
        samples = self._anneal(rng, self._plan(pilot) if plan is None else plan, draws)
        assert isinstance(samples, ReverseSamples)
        return samples

    def _anneal(self, rng: np.random.Generator, plan: AnnealingPlan, draws: Any) -> AnnealedSamples:
        started = perf_counter()
        vectors = any(moves.vectors for moves in plan.moves)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if draws is None:
                cloud = self.path.start(self.sample_prior, rng, self.n_runs, vectors=vectors)
            else:
                cloud = self.path.finish(draws, vectors=vectors)
            samples = anneal(
                rng, self.path, plan, cloud, self.n_steps_per_temperature, reverse=draws is not None,
                keep_paths=self.keep_paths, verbose=self.verbose, started=started,
            )  # fmt: skip
        if samples.interrupted:
            kept(samples.diagnose()[0])
        elif self.warn:
            warn_of_weights(samples, stacklevel=4)
        return samples


class Evidence(NamedTuple):
    """Log evidence, its standard error, and the samples behind it (weighted for the posterior)."""

    value: float
    standard_error: float
    samples: AnnealedSamples


@interruptible
def log_evidence(log_prior: LogDensity, log_likelihood: LogDensity, sample_prior: Sampler, **settings: Any) -> Evidence:
    """Log marginal likelihood of a model, ``log integral prior(x) likelihood(x) dx``, by annealing.

    Parameters
    ----------
    log_prior : callable
        *Normalised* log density of the prior, points (n, d) to (n,).
    log_likelihood : callable
        Points (n, d) to (n,).
    sample_prior : callable
        ``sample_prior(rng, n)`` draws points (n, d).
    **settings
        Of :class:`AnnealedImportanceSampler`.

    Returns
    -------
    Evidence
        ``value``, ``standard_error``, ``samples``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.ais.annealed_importance import log_evidence
    >>> normal = lambda x, y: -0.5 * (y - x[:, 0]) ** 2 - 0.5 * np.log(2 * np.pi)
    >>> evidence = log_evidence(
    ...     lambda x: normal(x, 0.0), lambda x: normal(x, 1.5), lambda rng, n: rng.normal(size=(n, 1)), random_state=0
    ... )
    >>> exact = -0.25 * 1.5**2 - 0.5 * np.log(4 * np.pi)
    >>> bool(abs(evidence.value - exact) < 4 * evidence.standard_error)
    True
    """
    sampler = AnnealedImportanceSampler(None, log_prior, sample_prior, log_likelihood=log_likelihood, **settings)
    samples = sampler.run()
    return Evidence(samples.log_z, samples.log_z_se, samples)
