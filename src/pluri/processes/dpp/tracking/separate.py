"""Fresh draws at every time step: what following a process through time is compared with.

`SeparateDPP` ignores the last time step and draws independent subsets from the kernel of the present one: exactly, by
its eigenvectors, or along a chain of add-or-drop moves with warm-up and thinning, as was published.

References
----------
.. [1] B. Kang, "Fast determinantal point process sampling with application to clustering", NeurIPS 2013.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from pluri.inference.mcmc import Sampled, Trace
from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.samplers.chain_draws import verdict_of
from pluri.processes.dpp.tracking.answers import Follower
from pluri.processes.dpp.tracking.changes import Change
from pluri.processes.dpp.tracking.draws import NONE, draw_by_moves, draw_exactly, loops, settled, solve_resolvent
from pluri.processes.dpp.tracking.state import Particles, Stamp
from pluri.processes.dpp.tracking.stream import SubsetStream
from pluri.validation import Allowed, Only, RandomState, Stored, check_parameters


class Drawing(NamedTuple):
    """How subsets are drawn; see `SeparateDPP`."""

    method: str
    n_draws: int
    metropolis: bool
    n_warmup: int
    thin: int
    n_chains: int

    @property
    def n_subsets(self) -> int:
        """Of all chains."""
        return self.n_draws * (self.n_chains if self.method == "mcmc" else 1)

    def draw(self, kernel: Array, rng: np.random.Generator) -> tuple[list[IntArray], Trace | None]:
        """Subsets, as slots, and the trace of the chains if there are any."""
        if self.method == "exact":
            return draw_exactly(kernel, self.n_draws, rng)[0], None
        drawn = draw_by_moves(kernel, self.n_draws, rng, self.metropolis, self.n_warmup, self.thin, self.n_chains)
        return ([NONE] * self.n_subsets, None) if drawn is None else drawn


class FreshDraws:
    """Subsets that are drawn anew whenever the kernel changes.

    Parameters
    ----------
    kernel : ndarray (n_slots, n_slots)
    n_items : int
    drawing : Drawing
    rng : Generator
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "kernel": Stored("n_slots_", "n_slots_"),
        "resolvent": Stored("n_slots_", "n_slots_"),
        "weights": Stored("n_all", least=0),
        "ancestors": Stored("n_all", whole=True, least=-1, below="n_all"),
    }

    def __init__(self, kernel: Array, n_items: int, drawing: Drawing, rng: np.random.Generator) -> None:
        self.kernel, self.drawing, self.rng = kernel, drawing, rng
        self.weights = np.full(drawing.n_subsets, 1.0 / drawing.n_subsets)
        self.ancestors: IntArray = np.full(drawing.n_subsets, -1, dtype=np.int64)
        self.log_normalizer = 0.0
        self._before: tuple[IntArray, Array] | None = None
        started = perf_counter()
        drawn = drawing.draw(kernel, rng)
        self.accept(self._proposal(*drawn, n_items, n_items, perf_counter() - started))

    def _check_fitted_state(self) -> None:
        if self.particles.places.shape != (len(self.weights), len(self.kernel)):
            raise ValueError(
                f"particles must have places for {len(self.kernel)} slots, got {self.particles.places.shape}"
            )
        self._before = None

    def propose(self, change: Change) -> FreshProposal:
        """Draw from the new kernel."""
        started = perf_counter()
        self._before = change.slots, self.kernel[change.slots]
        loops().write_rows(self.kernel, change.slots, change.rows)
        drawn = self.drawing.draw(self.kernel, self.rng)
        return self._proposal(*drawn, change.n_items, change.n_changed, perf_counter() - started)

    def _proposal(
        self, subsets: list[IntArray], trace: Trace | None, n_items: int, n_changed: int, seconds: float
    ) -> FreshProposal:
        """The record of a draw; what only the record needs is not part of the time."""
        resolvent, log_normalizer = solve_resolvent(self.kernel)
        expected = math.nan if resolvent is None else len(self.kernel) - float(resolvent.trace())
        ratio = log_normalizer - self.log_normalizer
        size = float(np.mean([subset.size for subset in subsets]))
        acceptance = math.nan if trace is None else float(trace.stats["accepted"].mean())
        stamp = Stamp(
            n_items, n_changed, float(len(subsets)), False, True, 0, acceptance, ratio, ratio, expected, size, seconds
        )
        return FreshProposal(settled(self.kernel, subsets), resolvent, log_normalizer, stamp, trace)

    def accept(self, proposal: FreshProposal) -> None:
        """Make the draws the present ones; done twice, it is as if done once."""
        self.particles, self.resolvent, self.log_normalizer, self.stamp, self.trace = proposal
        self._before = None

    def reject(self) -> None:
        """Put the kernel back; done twice, it is as if done once."""
        if self._before is not None:
            loops().write_rows(self.kernel, *self._before)
            self._before = None

    def rearrange(self, kept: IntArray, n_slots: int) -> None:
        """Make the slots `kept` the first of `n_slots`."""
        kernel = np.zeros((n_slots, n_slots))
        kernel[: kept.size, : kept.size] = self.kernel[np.ix_(kept, kept)]
        self.particles = self.particles.on_slots(kept, n_slots)
        self.resolvent = solve_resolvent(kernel)[0]
        self.kernel = kernel


class FreshProposal(NamedTuple):
    """What `FreshDraws.accept` takes."""

    particles: Particles
    resolvent: Array | None
    log_normalizer: float
    stamp: Stamp
    trace: Trace | None


class SeparateDPP(Sampled, SubsetStream):
    """Independent draws at every time step; the baseline of `TimeVaryingDPP`, with the same methods.

    Parameters
    ----------
    method : {"exact", "mcmc"}, default="exact"
        Draw by the eigenvectors of the kernel, or along chains of add-or-drop moves that begin with the empty set.
    n_warmup : int, default=10000
        Moves of a chain before its first subset.
    thin : int, default=80
        Moves from one subset to the next.
    n_draws : int, default=100
        Number of subsets; of each chain with "mcmc".
    n_chains : int, default=1
        Of "mcmc".
    move : {"heat_bath", "metropolis"}, default="heat_bath"
    expected_size, psd_repair, kernel, kernel_params, random_state, verbose
        As in `TimeVaryingDPP`.

    Attributes
    ----------
    particles_ : list of tuples
        Ids of the items of each subset.
    weights_ : ndarray (n_subsets,), all equal
    item_ids_ : tuple
    expected_size_ : float
    history_ : list of Stamp
        One record for each time step; its time is that of the draws alone.
    trace_ : pluri.inference.mcmc.Trace
        Of "mcmc" at the last time step: log determinants (``"log_det"``), sizes (``"size"``) and a random weighting of
        the items (``"items"``) of the subsets.
    converged_ : bool
        Whether the chains agree on these; True for exact draws, and if 100 draws or fewer do not tell.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.tracking.separate import SeparateDPP
    >>> fresh = SeparateDPP(n_draws=200, random_state=0).partial_fit(np.diag([1.0, 3.0]))
    >>> fresh.inclusion_probabilities(exact=True)
    array([0.5 , 0.75])
    >>> bool(np.abs(fresh.inclusion_probabilities() - [0.5, 0.75]).max() < 0.15)
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "method": Only("exact", "mcmc"),
        "move": Only("heat_bath", "metropolis"),
    }

    def __init__(
        self,
        method: str = "exact",
        n_warmup: int = 10_000,
        thin: int = 80,
        n_draws: int = 100,
        n_chains: int = 1,
        move: str = "heat_bath",
        expected_size: float | None = None,
        psd_repair: str = "raise",
        kernel: str | Callable[..., Any] = "cosine",
        kernel_params: Mapping[str, Any] | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.n_warmup = n_warmup
        self.thin = thin
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.move = move
        self.expected_size = expected_size
        self.psd_repair = psd_repair
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.random_state = random_state
        self.verbose = verbose

    def _begin(self, kernel: Array, n_items: int, rng: np.random.Generator) -> Follower:
        check_parameters(self)
        drawing = Drawing(
            self.method, int(self.n_draws), self.move == "metropolis", int(self.n_warmup), int(self.thin),
            int(self.n_chains),
        )  # fmt: skip
        return FreshDraws(kernel, n_items, drawing, rng)

    def _note_best(self) -> None:
        """Also what the chains of the time step tell."""
        super()._note_best()
        self.__dict__.pop("trace_", None)
        self.converged_ = True
        trace = cast(FreshDraws, self._follower).trace
        if trace is not None:
            self.trace_, verdict = trace, verdict_of(trace)
            self.converged_ = verdict.settled
            verdict.warn(stacklevel=6)
