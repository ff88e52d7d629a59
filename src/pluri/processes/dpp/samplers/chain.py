r"""Subsets from a Markov chain that measures itself: how long to wait, how far apart to draw, what draws are worth.

An item joins or leaves at a step, or is exchanged for another where the size is fixed; steps cost :math:`O(|Y|^2)` and
need no eigenvectors [1]_. The log determinant, the size and a random weighting of the items are followed. The gap
between draws is the first lag at which all their autocorrelations are below 0.02; the steps in which it was measured,
about a hundred gaps, come before the first draw. Bounds on the mixing time [2]_ are too wide to replace it.

References
----------
.. [1] B. Kang, "Fast determinantal point process sampling with application to clustering", NeurIPS 2013.
.. [2] N. Anari, S. Oveis Gharan and A. Rezaei, "Monte Carlo Markov chain algorithms for sampling strongly Rayleigh
   distributions and determinantal point processes", COLT 2016.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from pluri.inference.mcmc import autocorrelation, ess_mean, r_hat
from pluri.processes.dpp.kernel_forms import Array, IntArray, as_kernel_form, as_subset
from pluri.processes.dpp.samplers.chain_walk import (
    Records,
    Steps,
    Target,
    Walk,
    run_walk,
    start_walk,
    target_of,
)
from pluri.processes.dpp.search.greedy import greedy_map
from pluri.validation import RandomState, as_generator
from pluri.validation.interruption import hold, interruptible

#: Autocorrelation below which draws count as independent.
THRESHOLD = 0.02
#: Gaps that the steps behind an estimate of the gap should span, and those below which it is not to be trusted.
ENOUGH_GAPS, FEW_GAPS = 50, 10
#: Steps looked at first, at least and for each item; and at most, at least and for each item.
FIRST_STEPS, FIRST_SWEEPS, MOST_STEPS, MOST_SWEEPS = 5000, 20, 3_000_000, 40
#: Draws that should be worth this many independent ones, and those below which nothing can be said.
ENOUGH_DRAWS, LEAST_DRAWS = 100, 8
#: Products of two entries of a kernel below this would no longer be numbers of full precision.
SMALLEST_SCALE = 1e-140

Move = Literal["auto", "heat-bath", "metropolis", "exchange", "mixed"]
STEPS = {
    "heat-bath": ("flip", "heat-bath"),
    "metropolis": ("flip", "metropolis"),
    "exchange": ("swap", "metropolis"),
    "mixed": ("flip or swap", "heat-bath"),
}


class DPPMarkovChain:
    """A Markov chain whose distribution is a determinantal point process, or one of fixed size.

    Parameters
    ----------
    kernel : KernelForm or array-like of shape (n_items, n_items)
        The kernel L. Features (:class:`FeatureKernel`) and functions are evaluated only where the chain goes.
    move : {"auto", "heat-bath", "metropolis", "exchange", "mixed"}, default="auto"
        Add or delete an item by heat bath or by Metropolis; exchange an item for another (which keeps the size);
        or a mixture of heat bath and exchanges. "auto" is the heat bath, or exchange if a size is given.
    lazy : bool, default=False
        Do nothing half of the time. For Metropolis near the identity, which would otherwise change the parity of the
        size at every step.
    size : int, optional
        Number of items of every subset: the chain of a k-DPP.
    start : subset, optional
        Where chains begin: with nothing, or with the greedy choice if a size is given.

    Attributes
    ----------
    thin_, burn_in_ : int
        Steps from one draw to the next, and before the first, in each chain.
    acf_ : dict of arrays
        Autocorrelation of ``"log_det"``, ``"size"``, ``"items"`` (a random weighting of the items) and ``"det"`` at the
        lags ``lags_``, in steps. What never changes is left out.
    autocorrelation_time_ : dict
        Integrated autocorrelation times, in steps.
    ess_, r_hat_ : dict
        Effective number of draws, and agreement of the chains.
    acceptance_rate_ : float
        Share of the steps that changed the set.
    log_dets_, sizes_ : (n_chains, n)
        Of the draws.
    interrupted_ : bool
        Whether Ctrl-C ended the run.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import DPPMarkovChain
    >>> chain = DPPMarkovChain(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> draws = chain.sample(4000, random_state=0)
    >>> bool(abs(np.mean([len(draw) for draw in draws]) - 1.25) < 0.05)
    True
    """

    def __init__(
        self, kernel: Any, move: Move = "auto", lazy: bool = False, size: int | None = None,
        start: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        self.kernel = as_kernel_form(kernel)
        self.move = move
        self.lazy = lazy
        self.size = size
        self.start = start

    @cached_property
    def _target(self) -> Target:
        """The kernel as the steps want it, made once: its diagonal alone touches as many pages as there are items."""
        return target_of(self.kernel)

    def __repr__(self) -> str:
        return f"DPPMarkovChain(move={self.move!r}, lazy={self.lazy!r}, size={self.size!r})"

    @interruptible
    def sample(
        self, n: int, burn_in: int | Literal["auto"] = "auto", thin: int | Literal["auto"] = "auto", *,
        n_chains: int = 1, random_state: RandomState = None,
    ) -> list[IntArray]:  # fmt: skip
        """Draw subsets.

        Parameters
        ----------
        n : int
            Draws of each chain.
        burn_in : int or "auto", default="auto"
            Steps before the first draw.
        thin : int or "auto", default="auto"
            Steps from one draw to the next.
        n_chains : int, default=1
            Chains; with more than one, `r_hat_` tells whether they agree.
        random_state : int, Generator or None

        Returns
        -------
        list of int64 arrays
            Sorted subsets, all of the first chain before those of the second. After Ctrl-C, those made until then
            are the attribute ``result`` of the ``KeyboardInterrupt``.
        """
        for name, value, least in (("n", n, 1), ("n_chains", n_chains, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
            if name in ("burn_in", "thin") and isinstance(value, str) and value == "auto":
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                also = " or 'auto'" if name in ("burn_in", "thin") else ""
                raise ValueError(f"{name} must be a whole number of at least {least}{also}, got {value!r}")
        target = self._target
        steps, begin = self._steps(), self._begin(target)
        rng = as_generator(random_state)
        rngs = [rng] if n_chains == 1 else rng.spawn(n_chains)
        self.interrupted_ = False
        movable = len(target.candidates) > 0 and not (steps.moves == "swap" and len(begin) in (0, target.n_items))
        if not movable:
            return self._stand_still(begin, n, n_chains)
        marks = rng.random(target.n_items)
        walks = [start_walk(target, begin, marks) for _ in rngs]
        self.burn_in_, self.thin_ = 0, 1
        self.acf_: dict[str, Array] = {}
        self.lags_ = np.zeros(0, dtype=np.int64)
        self.autocorrelation_time_: dict[str, float] = {}
        if burn_in != "auto":
            for walk, rng in zip(walks, rngs, strict=True):
                run_walk(target, walk, steps, int(burn_in), rng)
            self.burn_in_ = int(burn_in)
        if burn_in == "auto" or thin == "auto":
            self._tune(target, walks, steps, rngs, n)
        if thin != "auto":
            self.thin_ = int(thin)
        return self._draw(target, walks, steps, rngs, n)

    def _steps(self) -> Steps:
        move = self.move
        if move == "auto":
            move = "heat-bath" if self.size is None else "exchange"
        if move not in STEPS:
            raise ValueError(f"move must be 'auto', {', '.join(map(repr, STEPS))}, got {self.move!r}")
        if self.size is not None and move != "exchange":
            raise ValueError(f"move must be 'exchange' to keep the size {self.size!r}, got {move!r}")
        if move == "exchange" and self.size is None and self.start is None:
            raise ValueError("size must be given for the move 'exchange', or a subset to start with")
        return Steps(*STEPS[move], bool(self.lazy))

    def _begin(self, target: Target) -> IntArray:
        if self.start is not None:
            begin = as_subset(self.start, target.n_items, "start")
            if self.size is not None and len(begin) != self.size:
                raise ValueError(f"start must have size={self.size} items, got {len(begin)}")
            return begin
        if self.size is None:
            return np.empty(0, dtype=np.int64)
        largest = float(target.diagonal.max(initial=0.0))
        if largest and not SMALLEST_SCALE < largest < 1 / SMALLEST_SCALE:
            raise ValueError(
                f"kernel must have a diagonal between {SMALLEST_SCALE:g} and {1 / SMALLEST_SCALE:g} for a chain, got "
                f"{largest:.3g}: scale it, the law of a fixed size does not change"
            )
        return greedy_map(target.form, self.size).items

    def _stand_still(self, begin: IntArray, n: int, n_chains: int) -> list[IntArray]:
        """There is only one subset that the chain can be in."""
        self.burn_in_, self.thin_, self.acceptance_rate_ = 0, 1, 0.0
        self.acf_, self.lags_, self.autocorrelation_time_ = {}, np.zeros(0, dtype=np.int64), {}
        self.ess_: dict[str, float] = {}
        self.r_hat_: dict[str, float] = {}
        self.sizes_, self.log_dets_ = np.full((n_chains, n), len(begin)), np.zeros((n_chains, n))
        return [np.sort(begin) for _ in range(n * n_chains)]

    def _tune(self, target: Target, walks: list[Walk], steps: Steps, rngs: list[np.random.Generator], n: int) -> None:
        """Run until the autocorrelation is known well enough; these steps are part of the burn-in."""
        n_candidates = len(target.candidates)
        stride = max(1, n_candidates // 50)
        total, done = max(FIRST_STEPS, FIRST_SWEEPS * n_candidates), 0
        most = max(MOST_STEPS, MOST_SWEEPS * n_candidates)
        traces: list[list[Records]] = [[] for _ in walks]
        while True:
            n_records = (total - done) // stride
            for walk, rng, trace in zip(walks, rngs, traces, strict=True):
                trace.append(Records.empty(n_records))
                run_walk(target, walk, steps, n_records * stride, rng, stride, trace[-1])
            done += n_records * stride
            # The first half may still remember the start.
            statistics = {name: values[:, values.shape[1] // 2 :] for name, values in _statistics(traces).items()}
            self._measure(statistics, stride)
            gap = self.thin_
            if done // 2 >= ENOUGH_GAPS * gap or 2 * total > most:
                break
            total *= 2
        if done // 2 < FEW_GAPS * gap:
            warnings.warn(
                f"the chain forgets its state slowly: autocorrelations were above {THRESHOLD} for {gap} of {done} "
                "steps. Give larger burn_in and thin, try move='mixed', or draw exactly",
                ConvergenceWarning,
                stacklevel=3,
            )
            self.thin_ = max(1, min(gap, most // n))  # a gap that is not known is not worth waiting for
        self.burn_in_ += done

    def _measure(self, statistics: dict[str, Array], stride: int) -> None:
        """Autocorrelations, their times, and the gap at which they are small."""
        n_records = next(iter(statistics.values())).shape[1]
        gap = 1
        self.acf_, self.autocorrelation_time_ = {}, {}
        for name, values in statistics.items():
            if np.ptp(values) <= 1e-9 * max(1.0, np.abs(values).max()):
                continue
            correlations = autocorrelation(values).mean(axis=0)
            self.acf_[name] = correlations
            effective = ess_mean(values)
            self.autocorrelation_time_[name] = stride * values.size / effective
            if name != "det":  # a few small sets may have nearly all of it
                below = np.flatnonzero(correlations < THRESHOLD)
                gap = max(gap, int(below[0]) if len(below) else n_records)
        if not self.acf_:  # the marks of two sets are never equal: nothing has moved
            gap = n_records
        shown = min(n_records, 4 * gap + 1)
        self.acf_ = {name: correlations[:shown] for name, correlations in self.acf_.items()}
        self.lags_ = stride * np.arange(shown)
        self.thin_ = gap * stride

    def _draw(
        self, target: Target, walks: list[Walk], steps: Steps, rngs: list[np.random.Generator], n: int
    ) -> list[IntArray]:
        traces = [[Records.empty(n, with_items=True, expected_size=walk.size)] for walk in walks]
        try:
            for walk, rng, (records,) in zip(walks, rngs, traces, strict=True):
                run_walk(target, walk, steps, n * self.thin_, rng, self.thin_, records)
        except KeyboardInterrupt as stop:
            self.interrupted_ = True
            if not any(records.made for (records,) in traces):
                raise
            made = ", ".join(str(records.made) for (records,) in traces)
            hold(stop, f"interrupted after {made} draws of {n} of each chain; they are kept")
        traces = [trace for trace in traces if trace[0].made]
        shortest = min(trace[0].made for trace in traces)
        statistics = {name: values[:, :shortest] for name, values in _statistics(traces, shortest).items()}
        self.log_dets_, self.sizes_ = statistics["log_det"], statistics["size"].astype(np.int64)
        if not self.acf_ and shortest >= LEAST_DRAWS:
            gap = self.thin_
            self._measure(statistics, gap)
            self.thin_ = gap
        moving = {name: values for name, values in statistics.items() if name in self.acf_ and shortest >= LEAST_DRAWS}
        self.ess_ = {name: ess_mean(values) for name, values in moving.items()}
        self.r_hat_ = {name: r_hat(values) for name, values in moving.items()}
        n_steps = sum(walk.n_steps for walk in walks)
        self.acceptance_rate_ = sum(walk.n_accepted for walk in walks) / max(n_steps, 1)
        self._warn_of_few(shortest * len(traces))
        return [subset for (records,) in traces for subset in records.subsets()]

    def _warn_of_few(self, n_draws: int) -> None:
        """A few draws are few by wish; many that are worth few are a surprise."""
        worth = {name: value for name, value in self.ess_.items() if name != "det" and np.isfinite(value)}
        if not worth or n_draws < ENOUGH_DRAWS:
            return
        name = min(worth, key=lambda key: worth[key])
        if worth[name] < min(ENOUGH_DRAWS, 0.25 * n_draws):
            warnings.warn(
                f"{n_draws} draws are worth only {worth[name]:.0f} independent ones as to {name}: give a larger thin "
                f"than {self.thin_}, or ask for more draws",
                ConvergenceWarning,
                stacklevel=4,
            )


def _statistics(traces: list[list[Records]], n: int | None = None) -> dict[str, Array]:
    """What is followed, each (n_chains, n)."""
    shortest = min(sum(records.made for records in trace) for trace in traces) if n is None else n

    def joined(name: str) -> Array:
        return np.stack([
            np.concatenate([getattr(records, name)[: records.made] for records in trace])[:shortest] for trace in traces
        ]).astype(np.float64)  # fmt: skip

    log_dets = joined("log_dets")
    return {
        "log_det": log_dets,
        "size": joined("sizes"),
        "items": joined("mark_sums"),
        "det": np.exp(log_dets - log_dets.max()),
    }


def draw_by_chain(
    kernel: Any, n_draws: int, rng: np.random.Generator, size: int | None = None, burn_in: int | None = None,
    thin: int | None = None,
) -> list[IntArray]:  # fmt: skip
    """Subsets from one Markov chain; burn-in and gap are measured unless they are given.

    Parameters
    ----------
    kernel : KernelForm or array-like of shape (n_items, n_items)
    n_draws : int
    rng : numpy.random.Generator
    size : int, optional
        Number of items of every subset.
    burn_in, thin : int, optional
        Steps before the first draw, and from one to the next.

    Returns
    -------
    list of int64 arrays

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import draw_by_chain
    >>> draws = draw_by_chain(np.eye(4), 3, np.random.default_rng(0), size=2)
    >>> [len(draw) for draw in draws]
    [2, 2, 2]
    """
    chain = DPPMarkovChain(kernel, size=size)
    return chain.sample(
        n_draws, "auto" if burn_in is None else burn_in, "auto" if thin is None else thin, random_state=rng
    )
