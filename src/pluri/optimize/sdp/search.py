"""A search for the minimum of a semidefinite programme: phases of the perceptron, with both bounds kept all along."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.sdp.certificates import Certificate
from pluri.optimize.sdp.matrices import MatrixFamily
from pluri.optimize.sdp.oracles import OracleName, is_positive_definite, make_oracle
from pluri.optimize.sdp.perceptron import Perceptron
from pluri.optimize.sdp.rescaling import improve
from pluri.optimize.sdp.result import Journal, Reason, SDPProgress
from pluri.progress import Step
from pluri.progress.bar import Report

Array = NDArray[np.float64]
Strategy = Literal["threshold", "bisection"]

#: Updates of a phase after which it is said to stall, for the first time; then after twice as many, and so on.
STALL = 2_000
#: Both bounds are computed each time that the updates have grown by this share, and at least by so many.
CHECK_SHARE, CHECK_LEAST = 0.1, 100
#: The objective is said to fall without bound when a lower point lies in a direction that never leaves the set, or when
#: it is this many times the size of the first one, below zero.
OBJECTIVE_LIMIT = 1e8
#: Steps of one attempt to rescale; the number in theory is beyond all patience.
RESCALING_STEPS = 2_000


@dataclass(frozen=True)
class Settings:
    """What a search is asked to do; see `solve_sdp`."""

    oracle: OracleName = "auto"
    strategy: Strategy = "threshold"
    tau: float | str = "auto"
    tol: float = 1e-2
    max_updates: int = 1_000_000
    rho_min: float = 1e-6
    rescale: bool = False
    memory: int = 100
    lowest: float = -math.inf
    highest: float = math.inf


class Search:
    """State of a search: the perceptron, the best point, the best bound.

    Parameters
    ----------
    family : MatrixFamily
        F_0, ..., F_n, with F_1, ..., F_n of Frobenius norm one.
    c : ndarray of shape (n,)
        Objective in these units.
    settings : Settings
    rng : Generator
        For rescaling.
    report : callable
        Shows progress.
    callback : callable, optional
        Called with an `SDPProgress` each time the bounds are computed; True ends the search.
    """

    def __init__(
        self,
        family: MatrixFamily,
        c: Array,
        settings: Settings,
        rng: np.random.Generator,
        report: Report,
        callback: Callable[[SDPProgress], bool | None] | None = None,
    ) -> None:
        self.family, self.c, self.settings, self.rng = family, c, settings, rng
        self.report, self.callback = report, callback
        self.oracle = make_oracle(settings.oracle)
        self.pure = not c.any()
        self.certificate = Certificate(family, c)
        self.journal = Journal()
        self.x: Array | None = None
        self.fun, self.first_fun, self.lowest = math.inf, math.nan, settings.lowest
        self.c0, self.tau = math.inf, math.inf
        self.phase, self.next_check = 0, CHECK_LEAST
        self.reason: Reason | None = None
        self.direction: Array | None = None
        self.perceptron = self._new_perceptron(None)
        self.units: Array = np.ones(len(c))

    def _new_perceptron(self, stretch: Array | None) -> Perceptron:
        objective = None if self.pure else np.concatenate([[0.0], -self.c])
        return Perceptron(self.family, objective, memory=self.settings.memory, stretch=stretch)

    @property
    def gap(self) -> float:
        """Relative distance of both bounds."""
        if self.pure:
            return 0.0 if self.x is not None else math.inf
        return (self.fun - self.certificate.bound) / max(1.0, abs(self.fun)) if self.x is not None else math.inf

    def run(self) -> None:
        """Search until there is a reason to end."""
        given = self.settings.tau
        if math.isfinite(self.settings.highest) and not self.pure:
            slack = float(given) if given != "auto" and self.settings.strategy == "threshold" else 0.0
            self.ask(self.settings.highest, slack, restart=False)
        if not self.find_feasible(math.inf):
            return
        if self.pure:
            self.reason = "feasible"
        elif self.settings.strategy == "threshold":
            self._lower_by_threshold()
        else:
            self._bisect()

    def _lower_by_threshold(self) -> None:
        """Ask for a value lower than the last by a slack of tau, and go on from where the perceptron is."""
        given = self.settings.tau
        while self.reason is None:
            natural = 0.5 * math.hypot(self.fun, float(np.linalg.norm(self.c)))
            # After phases that stalled the slack grows again, but slowly.
            tau = float(given) if given != "auto" else min(natural, 2 * self.tau or math.inf)
            self.ask(self.fun, tau, restart=False)
            self.find_feasible(math.inf)

    def _bisect(self) -> None:
        """Halve the interval between what is attained and what is proved, or believed, to be out of reach."""
        step = max(1.0, abs(self.fun))
        probe = max(self.settings.max_updates // 20, 1_000)
        while self.reason is None:
            low = max(self.lowest, self.certificate.bound)
            if self.fun - low <= 0.1 * self.settings.tol * max(1.0, abs(self.fun)):  # believed, but not proved
                self.reason = "margin"
                return
            c0 = 0.5 * (self.fun + low) if math.isfinite(low) else self.fun - step
            step *= 2
            self.ask(c0, 0.0, restart=True)
            if not self.find_feasible(probe) and self.reason is None:
                self.lowest = max(self.lowest, c0)

    def ask(self, c0: float, tau: float, *, restart: bool) -> None:
        """Begin a phase: from now on look for a point with ``c_0 x_0 - c'x > tau``."""
        self.phase, self.c0, self.tau = self.phase + 1, c0, tau
        if restart:
            self.perceptron.restart()
        self.perceptron.set_objective(c0, tau)
        self.perceptron.begin_phase()

    def find_feasible(self, limit: float) -> bool:
        """Run the perceptron until its point is feasible; False if it cannot be, or not within the limit."""
        begun, stall = self.perceptron.n_updates, STALL
        while self.reason is None:
            perceptron = self.perceptron
            left = min(self.next_check, self.settings.max_updates) - perceptron.n_updates
            found = perceptron.search(self.oracle, max(left, 1))
            if found == "feasible":
                self._accept()
                return True
            if found == "degenerate":
                self.direction = perceptron.vectors[perceptron.slot].copy()
                self.reason = "infeasible" if self.x is None else "margin"
            made = perceptron.n_updates - begun
            if perceptron.n_updates >= self.next_check or perceptron.n_updates >= self.settings.max_updates:
                self.check()
            if perceptron.margin_bound < self.settings.rho_min and made > 1:
                if self.settings.strategy == "bisection" and self.x is not None:
                    return False
                self.reason = self.reason or ("infeasible" if self.x is None else "margin")
            if self.settings.strategy == "bisection" and self.certificate.bound >= self.c0:
                return False
            if made >= limit:
                return False
            if made >= stall:
                stall *= 2
                self._stalled()
        return False

    def _stalled(self) -> None:
        """A phase is long: ask for less, begin the dual matrix anew, stretch the cone if that is wanted."""
        if self.settings.tau == "auto" and math.isfinite(self.c0) and self.settings.strategy == "threshold":
            self.tau /= 2
            self.perceptron.set_objective(self.c0, self.tau)
        self._improve_bound()
        self.perceptron.begin_dual()
        if self.settings.rescale:
            self._stretch()

    def _stretch(self) -> None:
        rows = [np.eye(self.family.n)[0]]
        if math.isfinite(self.c0):
            rows.append(np.concatenate([[self.c0], -self.c]))
        old = self.perceptron
        stretch = np.eye(self.family.n) if old.stretch is None else old.stretch
        y = improve(self.family, self.rng, stretch=stretch, rows=rows, max_steps=RESCALING_STEPS)
        if y is None:
            return
        self.perceptron = self._new_perceptron(stretch + np.outer(stretch @ y, y))
        self.perceptron.n_updates, self.perceptron.n_oracle = old.n_updates, old.n_oracle
        if math.isfinite(self.c0):
            self.perceptron.set_objective(self.c0, self.tau)
        self.perceptron.begin_phase()

    def _accept(self) -> None:
        """The point is strictly feasible: keep it if it is the best."""
        point = self.perceptron.point[1:]
        value = float(self.c @ point)
        falls = value < self.fun and self.x is not None and self._recedes(point - self.x)
        if value < self.fun:
            self.x, self.fun = point, value
        if math.isnan(self.first_fun):
            self.first_fun = value
        self.check()
        if not self.pure and (falls or self.fun < -OBJECTIVE_LIMIT * max(1.0, abs(self.first_fun))):
            self.reason = "unbounded"

    def _recedes(self, step: Array) -> bool:
        """Whether one can go on in this direction for ever: ``sum_i step_i F_i`` is positive definite."""
        return is_positive_definite(self.family.combine(np.concatenate([[0.0], step])))

    def _improve_bound(self) -> None:
        if not self.pure:
            self.certificate.improve(*self.perceptron.dual())

    def check(self) -> None:
        """Compute the bound, write both down, show them, and see whether that is enough."""
        self._improve_bound()
        n_updates = self.perceptron.n_updates
        self.next_check = int((n_updates * (1 + CHECK_SHARE) + CHECK_LEAST) // CHECK_LEAST * CHECK_LEAST)
        now = self.progress()
        if not self.pure and self.gap <= self.settings.tol:
            self.reason = "gap"
        elif n_updates >= self.settings.max_updates:
            self.reason = "max_updates"
        self.journal.add(now)
        if self.callback is not None and self.callback(now) and self.reason is None:
            self.reason = "stopped"
        self.report(Step(n_updates, self.settings.max_updates, self.fun, gain=-self.gap, reason=self.reason))

    def progress(self) -> SDPProgress:
        """Where the search stands."""
        bound = self.certificate.bound if not self.pure else (0.0 if self.x is not None else -math.inf)
        return SDPProgress(
            self.perceptron.n_updates,
            self.perceptron.n_oracle,
            self.phase,
            self.c0,
            None if self.x is None else self.x / self.units,
            self.fun,
            bound,
            self.gap,
            self.certificate.Y,
            self.perceptron.margin_bound,
        )
