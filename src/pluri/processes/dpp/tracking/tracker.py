r"""Particles of subsets that follow a determinantal point process through changes of its kernel.

Between two time steps items leave (D), enter (N), or stay (C). A weighted particle x of the old process is projected on
C, :math:`c = x \cap C`, its weight is multiplied by

.. math:: \tilde w = \frac{\det L'_c}{\det L_c} \frac{\det(I + R'_N(c))}{\det(I + R_D(c))}, \qquad
   R_N(c) = L_{NN} - L_{Nc} L_c^{-1} L_{cN},

and items of N are added by an exact draw from the process with kernel :math:`R'_N(c)`. This is the ratio of the two
marginal distributions of c: items that enter, which no reweighting could reach, are there with the right probability,
and the weighted mean of :math:`\tilde w` estimates the ratio of the normalisers, :math:`\det(L' + I) / \det(L + I)`. An
item whose content changed counts as one that leaves and one that enters (the marginal rule), or it stays where it is
and is paid for by the first ratio (the slot rule). Then follow resampling, if the effective sample size is small, and
add-or-drop moves that leave the new process invariant.

References
----------
.. [1] P. Del Moral, A. Doucet and A. Jasra, "Sequential Monte Carlo samplers", JRSS B 68, 2006.
.. [2] B. Kang, "Fast determinantal point process sampling with application to clustering", NeurIPS 2013.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from time import perf_counter
from typing import ClassVar

import numpy as np

from pluri.inference.smc.resampling import draw_ancestors
from pluri.inference.smc.weights import ParticleDegeneracyError
from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.tracking.changes import Change, Proposal, TrackerSettings
from pluri.processes.dpp.tracking.draws import (
    NONE,
    draw_by_moves,
    draw_exactly,
    loops,
    next_resolvent,
    settled,
    solve_resolvent,
)
from pluri.processes.dpp.tracking.state import (
    ACCEPTED,
    BLOCK,
    EFFECTIVE,
    LARGEST_SIZE,
    LOG_RATIO,
    MEAN_SIZE,
    SIZE_VARIANCE,
    Particles,
    Stamp,
    Workspace,
)
from pluri.validation import Stored

#: Moves of each particle in one compiled call: a subset can grow by no more.
MOVES_AT_A_TIME = 16
#: Below this effective share of the particles a change of the whole kernel is too large to follow.
HOPELESS = 0.1


class Tracker:
    """Weighted particles of subsets, and the kernel that they follow.

    A step is made in two parts, so that a step that fails or is interrupted can leave everything as it was: `propose`
    computes the next state beside the present one, and `accept` puts it in place. The kernel alone is changed at once,
    and put back by `reject`.

    Parameters
    ----------
    kernel : ndarray (n_slots, n_slots)
        The first kernel; owned by the tracker from now on. Rows of zeros are empty slots.
    n_items : int
        Number of items, empty slots not counted.
    settings : TrackerSettings
    rng : Generator
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "kernel": Stored("n_slots_", "n_slots_"),
        "resolvent": Stored("n_slots_", "n_slots_"),
        "weights": Stored("n_all", least=0),
        "ancestors": Stored("n_all", whole=True, least=-1, below="n_all"),
    }

    def __init__(self, kernel: Array, n_items: int, settings: TrackerSettings, rng: np.random.Generator) -> None:
        started = perf_counter()
        n = settings.n_particles
        self.kernel, self.settings, self.rng, self.n_items = kernel, settings, rng, n_items
        self.weights = np.full(n, 1.0 / n)
        self.ancestors: IntArray = np.full(n, -1, dtype=np.int64)
        self.resolvent, self.log_normalizer = solve_resolvent(kernel)
        self.particles, self.log_normalizer = self._draw(self.log_normalizer)
        self._spare_resolvent: Array | None = None
        self._make_room()
        self._resolvent_age = 0
        self._before: tuple[IntArray, Array] | None = None
        self.stamp = Stamp(
            n_items, n_items, float(n), False, False, 0, math.nan, self.log_normalizer, self.log_normalizer,
            self.expected_size, float(self.particles.sizes.mean()), perf_counter() - started,
        )  # fmt: skip

    @property
    def n_slots(self) -> int:
        """Number of slots, empty ones among them."""
        return len(self.kernel)

    @property
    def expected_size(self) -> float:
        """Exact mean size of a subset, tr K; NaN when there are too many items."""
        return math.nan if self.resolvent is None else self.n_slots - float(self.resolvent.trace())

    def rearrange(self, kept: IntArray, n_slots: int) -> None:
        """Make the slots `kept` the first of `n_slots`; others must be empty, and are forgotten."""
        kernel = np.zeros((n_slots, n_slots))
        inside = np.ix_(kept, kept)
        kernel[: kept.size, : kept.size] = self.kernel[inside]
        if self.resolvent is not None:
            resolvent = np.eye(n_slots)
            resolvent[: kept.size, : kept.size] = self.resolvent[inside]
            self.resolvent, self._spare_resolvent = resolvent, None
        self.particles = self.particles.on_slots(kept, n_slots)
        self._spare = Particles.empty(self.settings.n_particles, self.particles.room, n_slots)
        self.kernel = kernel

    def propose(self, change: Change) -> Proposal:
        """The state after a change of the kernel; see the module's docstring."""
        started = perf_counter()
        settings, n = self.settings, self.settings.n_particles
        work = self._workspace_for(change)
        report = work.report
        self._before = change.slots, self.kernel[change.slots]
        leaving, first = change.leaving.size, work.panel.shape[1] // 2
        work.panel[:, :leaving] = self.kernel[:, change.leaving]
        loops().write_rows(self.kernel, change.slots, change.rows)
        work.panel[:, first : first + change.entering.size] = self.kernel[:, change.entering]
        resolvent, age, log_normalizer = next_resolvent(
            self.kernel, change.slots, self.resolvent, self._resolvent_age, self.log_normalizer, self._spare_resolvent
        )
        expected = math.nan if resolvent is None else self.n_slots - float(resolvent.trace())
        weights, ancestors = self._spare_weights, self._identity
        resampled, restarted = False, change.turnover > settings.restart_fraction
        if not restarted:
            particles = self._carry(change)
            ratio, ess = float(report[LOG_RATIO]), float(report[EFFECTIVE])
            if ess == 0.0:
                self._collapse()
                restarted = True
            # No reweighing can follow a kernel that has become another altogether: most particles are then worthless.
            elif ess < HOPELESS * n and change.reweighed.size > settings.restart_fraction * change.n_items:
                restarted = True
        if restarted:
            particles, log_normalizer = self._draw(log_normalizer)
            weights = np.full(n, 1.0 / n)
            ess, ratio = float(n), log_normalizer - self.log_normalizer
            ancestors = np.full(n, -1, dtype=np.int64)
            report[LARGEST_SIZE] = particles.sizes.max()
        elif ess < settings.ess_threshold * n:
            ancestors = particles.resample(draw_ancestors(self.rng, weights, settings.resampling, n))
            weights = np.full(n, 1.0 / n)
            resampled = True
        report[ACCEPTED] = 0.0
        candidates = np.flatnonzero(self.kernel.diagonal() > 0)
        particles, n_moves = self._move(particles, candidates, weights, expected, restarted, resampled)
        acceptance = float(report[ACCEPTED]) / (n_moves * n) if n_moves else math.nan
        stamp = Stamp(
            change.n_items, change.n_changed, ess, resampled, restarted, n_moves, acceptance, ratio,
            log_normalizer - self.log_normalizer, expected, float(report[MEAN_SIZE]), perf_counter() - started,
        )  # fmt: skip
        return Proposal(
            particles, self.particles, weights, self.weights, resolvent, self.resolvent, age, log_normalizer,
            ancestors, change.n_items, stamp,
        )  # fmt: skip

    def accept(self, proposal: Proposal) -> None:
        """Make a proposal the present state; done twice, it is as if done once."""
        (
            self.particles, self._spare, self.weights, self._spare_weights, self.resolvent, self._spare_resolvent,
            self._resolvent_age, self.log_normalizer, self.ancestors, self.n_items, self.stamp,
        ) = proposal  # fmt: skip
        self._before = None

    def reject(self) -> None:
        """Put the kernel back to what it was before the last proposal; done twice, it is as if done once."""
        if self._before is not None:
            loops().write_rows(self.kernel, *self._before)
            self._before = None

    def _make_room(self) -> None:
        """Buffers to work in, which are not part of the state."""
        n = self.settings.n_particles
        self._work = Workspace.empty(len(self.kernel), 0, self.particles.room)
        self._spare = Particles.empty(n, self.particles.room, len(self.kernel))
        self._spare_weights = np.empty(n)
        self._identity: IntArray = np.arange(n)
        self._spare_resolvent = None

    def _check_fitted_state(self) -> None:
        if self.particles.places.shape != (self.settings.n_particles, len(self.kernel)):
            raise ValueError(
                f"particles must have places for {len(self.kernel)} slots, got {self.particles.places.shape}"
            )
        if len(self.weights) != self.settings.n_particles or len(self.ancestors) != self.settings.n_particles:
            raise ValueError(f"weights and ancestors must be {self.settings.n_particles}, one for each particle")
        self._before = None
        self._make_room()  # whatever a file says of them

    def _workspace_for(self, change: Change) -> Workspace:
        n_moved = max(change.leaving.size, change.entering.size)
        wanted = self.n_slots, n_moved, max(self.particles.room, self._spare.room)
        if not self._work.fits(*wanted):
            self._work = Workspace.empty(*wanted)
        return self._work

    def _carry(self, change: Change) -> Particles:
        """Weigh and extend the particles into the spare buffers."""
        uniforms = self.rng.random((self.settings.n_particles, change.entering.size))
        spare = self._spare
        while not loops().carry(
            self.kernel, change.leaving, change.entering, change.reweighed, change.factor, self.particles, self.weights,
            uniforms, spare, self._spare_weights, self._work,
        ):  # fmt: skip
            spare = self._widened(spare, spare.room + BLOCK)
        return spare

    def _widened(self, particles: Particles, room: int) -> Particles:
        """The particles with more room, and a workspace to match."""
        particles = particles.widened(room)
        if particles.room > self._work.column.size:
            self._work = self._work.widened(particles.room)
        return particles

    def _collapse(self) -> None:
        what = f"all {self.settings.n_particles} subsets have become impossible under the new kernel"
        if not self.settings.restart_on_collapse:
            raise ParticleDegeneracyError(what + ': use weights="marginal", or on_collapse="restart"')
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(what + ": they are drawn anew", ConvergenceWarning, stacklevel=5)

    def _move(
        self, particles: Particles, candidates: IntArray, weights: Array, expected: float, fresh: bool, copied: bool
    ) -> tuple[Particles, int]:
        """Move the particles; with "auto", on until their mean size agrees with the exact one.

        After resampling many are copies of each other: "auto" then begins with a move for every item.
        """
        n_moves = self.settings.n_moves
        if isinstance(n_moves, int) or fresh or not candidates.size:
            n = n_moves if isinstance(n_moves, int) and not fresh and candidates.size else 0
            return self._move_by(particles, candidates, weights, n), n
        batch = max(1, -(-candidates.size // 10))
        now, done = candidates.size if copied else batch, 0
        report = self._work.report
        while True:
            particles = self._move_by(particles, candidates, weights, now)
            done, now = done + now, batch
            error = abs(float(report[MEAN_SIZE]) - expected)
            if not error > 3 * math.sqrt(max(float(report[SIZE_VARIANCE]), 1e-12)):
                return particles, done
            if done >= 2 * candidates.size:
                from sklearn.exceptions import ConvergenceWarning

                warnings.warn(
                    f"after {done} moves of each particle the mean size of the subsets is {report[MEAN_SIZE]:.3g}, not "
                    f"{expected:.3g}: use more particles or a lower restart_fraction",
                    ConvergenceWarning,
                    stacklevel=5,
                )
                return particles, done

    def _move_by(self, particles: Particles, candidates: IntArray, weights: Array, n_moves: int) -> Particles:
        while True:
            now = min(n_moves, MOVES_AT_A_TIME)
            if now and particles.room < self.n_slots:
                needed = min(int(self._work.report[LARGEST_SIZE]) + now, self.n_slots)
                if needed > particles.room:
                    particles = self._widened(particles, needed)
            uniforms = self.rng.random((self.settings.n_particles * now, 2))
            work = self._work
            loops().move_all(
                self.kernel, candidates, now, uniforms, self.settings.metropolis, particles, weights, work.report,
                work.column, work.image,
            )  # fmt: skip
            n_moves -= now
            if not n_moves:
                return particles

    def _draw(self, log_normalizer: float) -> tuple[Particles, float]:
        """Particles drawn anew from the process of the present kernel, and its log normaliser."""
        if self.settings.init == "exact":
            subsets, exact = draw_exactly(self.kernel, self.settings.n_particles, self.rng)
            log_normalizer = exact if math.isnan(log_normalizer) else log_normalizer
        else:
            drawn = draw_by_moves(self.kernel, self.settings.n_particles, self.rng, self.settings.metropolis)
            subsets = [NONE] * self.settings.n_particles if drawn is None else drawn.subsets
        return settled(self.kernel, subsets), log_normalizer
