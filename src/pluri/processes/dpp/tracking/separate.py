"""Fresh draws at every time step: what following a process through time is compared with.

`SeparateDPP` ignores the last time step and draws independent subsets from the kernel of the present one: exactly, by
its eigenvectors, or along a chain of add-or-drop moves with burn-in and thinning, as was published. `compare_streams`
puts the two side by side.

References
----------
.. [1] B. Kang, "Fast determinantal point process sampling with application to clustering", NeurIPS 2013.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.tracking.draws import draw_by_moves, draw_exactly, loops, settled, solve_resolvent
from pluri.processes.dpp.tracking.state import Particles, Stamp
from pluri.processes.dpp.tracking.stream import Follower, SubsetStream
from pluri.processes.dpp.tracking.tracker import Change
from pluri.validation import RandomState, Stored


class Drawing(NamedTuple):
    """How subsets are drawn; see `SeparateDPP`."""

    sampler: str
    n_draws: int
    metropolis: bool
    burn_in: int
    thin: int

    def draw(self, kernel: Array, rng: np.random.Generator) -> tuple[list[IntArray], float]:
        """Subsets, as slots, and the share of moves accepted (NaN if there are none)."""
        if self.sampler == "exact":
            return draw_exactly(kernel, self.n_draws, rng)[0], math.nan
        return draw_by_moves(kernel, self.n_draws, rng, self.metropolis, self.burn_in, self.thin)


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
        self.weights = np.full(drawing.n_draws, 1.0 / drawing.n_draws)
        self.ancestors: IntArray = np.full(drawing.n_draws, -1, dtype=np.int64)
        self.log_normalizer = 0.0
        self._before: tuple[IntArray, Array] | None = None
        started = perf_counter()
        subsets, acceptance = drawing.draw(kernel, rng)
        self.accept(self._proposal(subsets, acceptance, n_items, n_items, perf_counter() - started))

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
        subsets, acceptance = self.drawing.draw(self.kernel, self.rng)
        return self._proposal(subsets, acceptance, change.n_items, change.n_changed, perf_counter() - started)

    def _proposal(
        self, subsets: list[IntArray], acceptance: float, n_items: int, n_changed: int, seconds: float
    ) -> FreshProposal:
        """The record of a draw; what only the record needs is not part of the time."""
        resolvent, log_normalizer = solve_resolvent(self.kernel)
        expected = math.nan if resolvent is None else len(self.kernel) - float(resolvent.trace())
        ratio = log_normalizer - self.log_normalizer
        size = float(np.mean([subset.size for subset in subsets]))
        stamp = Stamp(
            n_items, n_changed, float(len(subsets)), False, True, 0, acceptance, ratio, ratio, expected, size, seconds
        )
        return FreshProposal(settled(self.kernel, subsets), resolvent, log_normalizer, stamp)

    def accept(self, proposal: FreshProposal) -> None:
        """Make the draws the present ones; done twice, it is as if done once."""
        self.particles, self.resolvent, self.log_normalizer, self.stamp = proposal
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


class SeparateDPP(SubsetStream):
    """Independent draws at every time step; the baseline of `TimeVaryingDPP`, with the same methods.

    Parameters
    ----------
    sampler : {"exact", "mcmc"}, default="exact"
        Draw by the eigenvectors of the kernel, or along a chain of add-or-drop moves that begins with the empty set.
    burn_in : int, default=10000
        Moves of the chain before the first subset.
    thin : int, default=80
        Moves from one subset to the next.
    n_samples : int, default=100
        Number of subsets.
    move : {"heat-bath", "metropolis"}, default="heat-bath"
    target_size, psd_repair, kernel, kernel_params, random_state, verbose
        As in `TimeVaryingDPP`.

    Attributes
    ----------
    particles_ : list of tuples
        Ids of the items of each subset.
    weights_ : ndarray (n_samples,), all equal
    item_ids_ : tuple
    expected_size_ : float
    history_ : list of Stamp
        One record for each time step; its time is that of the draws alone.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.tracking.separate import SeparateDPP
    >>> fresh = SeparateDPP(n_samples=200, random_state=0).partial_fit(np.diag([1.0, 3.0]))
    >>> fresh.inclusion_probabilities(exact=True)
    array([0.5 , 0.75])
    >>> bool(np.abs(fresh.inclusion_probabilities() - [0.5, 0.75]).max() < 0.15)
    True
    """

    def __init__(
        self,
        sampler: str = "exact",
        burn_in: int = 10_000,
        thin: int = 80,
        n_samples: int = 100,
        move: str = "heat-bath",
        target_size: float | None = None,
        psd_repair: str = "raise",
        kernel: str | Callable[..., Any] = "cosine",
        kernel_params: Mapping[str, Any] | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.sampler = sampler
        self.burn_in = burn_in
        self.thin = thin
        self.n_samples = n_samples
        self.move = move
        self.target_size = target_size
        self.psd_repair = psd_repair
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.random_state = random_state
        self.verbose = verbose

    def _begin(self, kernel: Array, n_items: int, rng: np.random.Generator) -> Follower:
        if self.sampler not in ("exact", "mcmc"):
            raise ValueError(f"sampler must be one of exact, mcmc, got {self.sampler!r}")
        if self.move not in ("heat-bath", "metropolis"):
            raise ValueError(f"move must be one of heat-bath, metropolis, got {self.move!r}")
        for name, least in (("burn_in", 0), ("thin", 1), ("n_samples", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        drawing = Drawing(
            self.sampler, int(self.n_samples), self.move == "metropolis", int(self.burn_in), int(self.thin)
        )
        return FreshDraws(kernel, n_items, drawing, rng)


class Comparison(NamedTuple):
    """How two or more estimators did on the same stream.

    Attributes
    ----------
    log_probability : (n_estimators, n_stamps), exact log probability of the best subset
    similarity : (n_estimators, n_stamps), mean cosine of the pairs inside the best subset; NaN below two items
    seconds : (n_estimators, n_stamps), accumulated time of the samplers
    overlap : (n_estimators, n_stamps), Jaccard overlap of the best subset with that of the time step before; NaN at
    first
    inclusion_error : (n_estimators, n_stamps), mean absolute error of the inclusion probabilities
    """

    log_probability: Array
    similarity: Array
    seconds: Array
    overlap: Array
    inclusion_error: Array


def jaccard_overlap(first: Iterable[Any], second: Iterable[Any]) -> float:
    """Share of the items of either set that are in both; 1 for two empty sets.

    Examples
    --------
    >>> from pluri.processes.dpp.tracking.separate import jaccard_overlap
    >>> jaccard_overlap([1, 2, 3], [2, 3, 4])
    0.5
    """
    a, b = set(first), set(second)
    return len(a & b) / len(a | b) if a or b else 1.0


def inner_similarity(model: SubsetStream, subset: Sequence[Any]) -> float:
    """Mean of ``L_ij / sqrt(L_ii L_jj)`` over the pairs of a subset; NaN below two items."""
    if len(subset) < 2:
        return math.nan
    slots = [model._items.slot_of[item] for item in subset]
    block = model._present().kernel[np.ix_(slots, slots)]
    roots = np.sqrt(np.diagonal(block))
    return float((block / np.outer(roots, roots))[np.triu_indices(len(slots), 1)].mean())


def compare_streams(
    models: Sequence[SubsetStream], stream: Iterable[tuple[Any, ...]], callback: Callable[..., None] | None = None
) -> Comparison:
    """Let estimators take in the same stream, and compare what they show.

    Parameters
    ----------
    models : sequence of TimeVaryingDPP and SeparateDPP
        Not begun yet.
    stream : iterable of (changed_ids, features) or (changed_ids, features, leaving)
        What `update` takes at each time step.
    callback : callable, optional
        Called after each time step with its number.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.tracking.separate import SeparateDPP, compare_streams
    >>> from pluri.processes.dpp.tracking.time_varying import TimeVaryingDPP
    >>> rng = np.random.default_rng(0)
    >>> stream = [(range(8), rng.normal(size=(8, 4)))] + [([t], rng.normal(size=(1, 4))) for t in range(5)]
    >>> result = compare_streams([TimeVaryingDPP(random_state=0), SeparateDPP(random_state=0)], stream)
    >>> result.log_probability.shape, bool(np.isfinite(result.log_probability).all())
    ((2, 6), True)
    """
    columns = []
    shown: list[tuple[Any, ...] | None] = [None] * len(models)
    for t, (changed, features, *rest) in enumerate(stream):
        column = []
        for m, model in enumerate(models):
            model.update(changed, features, leaving=rest[0] if rest else ())
            best = model.best_subset()
            error = model.inclusion_probabilities() - model.inclusion_probabilities(exact=True)
            before = shown[m]
            column.append(
                (
                    model.score(best),
                    inner_similarity(model, best),
                    model.history_[-1].seconds,
                    math.nan if before is None else jaccard_overlap(before, best),
                    float(np.abs(error).mean()),
                )
            )
            shown[m] = best
        columns.append(column)
        if callback is not None:
            callback(t)
    if not columns:
        raise ValueError("stream must have at least one time step, got none")
    table = np.array(columns).transpose(2, 1, 0)
    return Comparison(table[0], table[1], np.cumsum(table[2], axis=1), table[3], table[4])
