r"""A sequential Monte Carlo sampler: weighted particles that follow any sequence of distributions.

The distributions :math:`\pi_t = \gamma_t / Z_t` are known up to their normalisers. With moves that leave :math:`\pi_t`
invariant, and the backward kernel that belongs to them, the weight of a particle at time step t is multiplied by

.. math:: \tilde w_t = \frac{\gamma_t(x_{t-1})}{\gamma_{t-1}(x_{t-1})},

which does not depend on where it moves next; its weighted mean estimates :math:`Z_t / Z_{t-1}`. So particles can be
resampled *before* they move, which costs nothing and keeps more of them distinct. The weights are right only where
:math:`\gamma_{t-1} = 0` implies :math:`\gamma_t = 0`: what becomes possible at t cannot be reached by reweighting.

References
----------
.. [1] P. Del Moral, A. Doucet and A. Jasra, "Sequential Monte Carlo samplers", JRSS B 68, 2006.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.smc.random_walk_moves import Floats, LogTarget, MoveKernel, evaluate_target
from pluri.inference.smc.resampling import check_method, draw_ancestors
from pluri.inference.smc.weights import ParticleDegeneracyError, effective_sample_size, normalize_log_weights
from pluri.validation import Number, Only, RandomState, Whole, as_generator, check_value
from pluri.validation.interruption import holding, interruptible

__all__ = ["ParticleCollapseError", "SMCSampler"]
ORDERS = ("resample_move", "move_resample")


class ParticleCollapseError(ParticleDegeneracyError):
    """No particle is possible under the next target."""


class SMCSampler:
    """Follow a sequence of distributions with weighted particles.

    Parameters
    ----------
    log_targets : iterable of callables, or None
        Log densities, each of particles (n, ...) to (n,), up to a constant; -inf where impossible. With None, targets
        are given one at a time to `step`.
    kernel : callable
        ``kernel(rng, particles, log_densities, log_target)`` moves all particles once so that the target stays
        invariant, and returns new particles, their log densities, and the share that was accepted. It must not write
        into what it is given. See `random_walk_kernel`.
    initial : callable
        ``initial(rng, n)`` draws the first particles, an array (n, ...).
    log_initial : callable, optional
        Log density from which they are drawn, normalised. By default the first target itself: they have equal weights.
    n_particles : int, default=100
    ess_threshold : float, default=0.5
        Resample when the effective sample size is below this share of the particles.
    resampling : {"systematic", "stratified", "residual", "multinomial"}, default="systematic"
    n_moves : int, default=1
        Moves of every particle at each step.
    order : {"resample_move", "move_resample"}, default="resample_move"
        Resample before the moves; or, as was published, move first and move again after resampling.
    on_collapse : {"raise", "restart"}, default="raise"
        What to do when no particle is possible under the next target: raise `ParticleCollapseError`, or draw anew from
        `initial`, which then needs `log_initial`.
    random_state : int, Generator, RandomState or None
    verbose : int, default=0
        1 shows progress of `run`.

    Attributes
    ----------
    particles_ : ndarray (n_particles, ...)
    weights_, log_weights_ : ndarray (n_particles,)
        They add up to one.
    ess_history_ : list of float
        Effective sample size after each weighing, before any resampling.
    log_normalizer_ratios_ : list of float
        Estimates of log Z_t / Z_{t-1}; the first is log Z_1 if `log_initial` is given, and otherwise 0.
    log_normalizer_ : float
        Their sum.
    resampled_at_ : list of int
        Steps, from 0, at which the particles were resampled.
    ancestors_ : list of ndarray (n_particles,)
        From which particle of the step before each one comes.
    acceptance_rates_ : list of float
        Mean share of accepted moves at each step; NaN without moves.
    n_distinct_ : int
        Number of distinct particles now.
    interrupted_ : bool
        Whether Ctrl-C ended `run`.

    Examples
    --------
    From a standard normal density to one with mean 3 and standard deviation 0.5:

    >>> import numpy as np
    >>> from pluri.inference.smc import SMCSampler, random_walk_kernel
    >>> def target(b):
    ...     return lambda x: -0.5 * (1 - b) * x[:, 0] ** 2 - 2.0 * b * (x[:, 0] - 3) ** 2
    >>> sampler = SMCSampler(
    ...     [target(b) for b in np.linspace(0, 1, 21)], random_walk_kernel(), lambda rng, n: rng.normal(size=(n, 1)),
    ...     n_particles=2000, n_moves=3, random_state=0,
    ... )
    >>> _ = sampler.run()
    >>> bool(abs(sampler.weights_ @ sampler.particles_[:, 0] - 3) < 0.1)
    True
    >>> bool(abs(sampler.log_normalizer_ - np.log(0.5)) < 0.2)
    True
    """

    particles_: NDArray[Any]
    weights_: Floats
    log_weights_: Floats
    _densities: Floats

    def __init__(
        self,
        log_targets: Iterable[LogTarget] | None,
        kernel: MoveKernel,
        initial: Callable[[np.random.Generator, int], Any],
        log_initial: LogTarget | None = None,
        *,
        n_particles: int = 100,
        ess_threshold: float = 0.5,
        resampling: str = "systematic",
        n_moves: int = 1,
        order: str = "resample_move",
        on_collapse: str = "raise",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        check_value(n_particles, "n_particles", Whole(1))
        check_value(n_moves, "n_moves", Whole(0))
        check_value(ess_threshold, "ess_threshold", Number(least=0, most=1))
        check_method(resampling, "resampling")
        check_value(order, "order", Only(*ORDERS))
        check_value(on_collapse, "on_collapse", Only("raise", "restart"))
        if on_collapse == "restart" and log_initial is None:
            raise ValueError("on_collapse='restart' draws anew from initial, and needs log_initial to weigh the draws")
        self.log_targets = log_targets
        self.kernel = kernel
        self.initial = initial
        self.log_initial = log_initial
        self.n_particles = int(n_particles)
        self.ess_threshold = float(ess_threshold)
        self.resampling = resampling
        self.n_moves = int(n_moves)
        self.order = order
        self.on_collapse = on_collapse
        self.verbose = verbose
        self._rng = as_generator(random_state)
        self.ess_history_: list[float] = []
        self.log_normalizer_ratios_: list[float] = []
        self.resampled_at_: list[int] = []
        self.ancestors_: list[NDArray[np.int64]] = []
        self.acceptance_rates_: list[float] = []
        self.interrupted_ = False
        self._warned = False

    @property
    def log_normalizer_(self) -> float:
        """Estimate of log Z_t / Z_1, or of log Z_t if `log_initial` is given."""
        return math.fsum(self.log_normalizer_ratios_)

    @property
    def n_distinct_(self) -> int:
        """Number of distinct particles."""
        return len(np.unique(self.particles_.reshape(len(self.particles_), -1), axis=0))

    @interruptible
    def run(self) -> SMCSampler:
        """Go through all targets. Ctrl-C keeps the steps made so far."""
        from pluri.progress import Step, open_progress

        if self.log_targets is None:
            raise ValueError("log_targets is None: give the targets one at a time to step")
        targets = list(self.log_targets)
        if not targets:
            raise ValueError("log_targets must have at least one target, got none")
        n, done = len(targets), 0
        message = lambda: f"interrupted after {done} of {n} steps, which are kept"  # noqa: E731
        with open_progress(self.verbose) as report, holding(message, having=self.ess_history_) as block:
            for log_target in targets:
                self.step(log_target)
                done += 1
                report(Step(done, n, self.log_normalizer_, reason="max_iter" if done == n else None))
        self.interrupted_ |= block.interrupted
        return self

    def step(self, log_target: LogTarget) -> SMCSampler:
        """Go on to the next target. If it fails, the sampler stays as it was."""
        t = len(self.ess_history_)
        if t == 0:
            particles, densities, log_weights = self._begin(log_target)
            ancestors = np.full(self.n_particles, -1, dtype=np.int64)
        else:
            particles, ancestors = self.particles_, np.arange(self.n_particles)
            densities = evaluate_target(log_target, particles, self.n_particles)
            log_weights = np.full(self.n_particles, -math.inf)
            alive = self.log_weights_ > -math.inf  # a dead particle stays dead: there is nothing to divide
            log_weights[alive] = self.log_weights_[alive] + (densities[alive] - self._densities[alive])
        unchanged = t > 0 and np.array_equal(densities, self._densities)
        if not (log_weights > -math.inf).any():
            if self.on_collapse == "raise":
                raise ParticleCollapseError(f"no particle is possible under target {t}: all weights are zero", t=t)
            warnings.warn(
                f"no particle was possible under target {t}: drawn anew", _convergence_warning(), stacklevel=2
            )
            particles, densities, log_weights = self._begin(log_target)
            ancestors = np.full(self.n_particles, -1, dtype=np.int64)
            # The draws are weighed by normalised densities: their mean is Z_t itself.
            weights, log_z = normalize_log_weights(log_weights)
            ratio = log_z - self.log_normalizer_
        elif unchanged:
            weights, ratio = self.weights_, 0.0
        else:
            weights, ratio = normalize_log_weights(log_weights)
            if t == 0 and self.log_initial is None:
                ratio = 0.0
        ess = effective_sample_size(weights)
        rates: list[float] = []
        if self.order == "move_resample":
            particles, densities = self._move(particles, densities, log_target, rates)
        resampled = ess < self.ess_threshold * self.n_particles
        if resampled:
            chosen = draw_ancestors(self._rng, weights, self.resampling, self.n_particles)
            particles, densities, ancestors = particles[chosen], densities[chosen], ancestors[chosen]
            weights = np.full(self.n_particles, 1.0 / self.n_particles)
        if self.order == "resample_move" or resampled:
            particles, densities = self._move(particles, densities, log_target, rates)
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
        self.particles_, self._densities = particles, densities
        self.weights_, self.log_weights_ = weights, log_weights
        self.ess_history_.append(ess)
        self.log_normalizer_ratios_.append(ratio)
        self.ancestors_.append(ancestors)
        self.acceptance_rates_.append(float(np.mean(rates)) if rates else math.nan)
        if resampled:
            self.resampled_at_.append(t)
        self._look_for_copies()
        return self

    def _begin(self, log_target: LogTarget) -> tuple[NDArray[Any], Floats, Floats]:
        """The first particles, their log densities, and their log weights, whose total is the mean weight."""
        particles = np.asarray(self.initial(self._rng, self.n_particles))
        if particles.ndim == 0 or len(particles) != self.n_particles:
            raise ValueError(f"initial must draw {self.n_particles} particles, got shape {particles.shape}")
        densities = evaluate_target(log_target, particles, self.n_particles)
        log_weights = np.full(self.n_particles, -math.log(self.n_particles))
        if self.log_initial is not None:
            log_weights += densities - evaluate_target(self.log_initial, particles, self.n_particles, "log_initial")
        else:
            log_weights[densities == -math.inf] = -math.inf
        return particles, densities, log_weights

    def _move(
        self, particles: NDArray[Any], densities: Floats, log_target: LogTarget, rates: list[float]
    ) -> tuple[NDArray[Any], Floats]:
        for _ in range(self.n_moves):
            particles, densities, rate = self.kernel(self._rng, particles, densities, log_target)
            rates.append(float(rate))
        return particles, densities

    def _look_for_copies(self) -> None:
        if not self._warned and self.n_particles >= 10 and self.n_distinct_ < self.n_particles / 10:
            self._warned = True
            warnings.warn(
                f"only {self.n_distinct_} of {self.n_particles} particles are distinct: make more moves, or use a "
                "kernel that accepts more of them",
                _convergence_warning(),
                stacklevel=3,
            )


def _convergence_warning() -> type[Warning]:
    from sklearn.exceptions import ConvergenceWarning

    warning: type[Warning] = ConvergenceWarning
    return warning
