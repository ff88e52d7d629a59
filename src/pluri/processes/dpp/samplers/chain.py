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

from pluri.inference import mcmc
from pluri.inference.mcmc import ess_mean, r_hat
from pluri.processes.dpp.kernel_forms import IntArray, as_kernel_form, as_subset
from pluri.processes.dpp.samplers.chain_draws import ChainDraws, SubsetWalk, draw_chains, verdict_of
from pluri.processes.dpp.samplers.chain_gap import (
    THRESHOLD,
    Gap,
    measure_gap,
    most_steps,
    run_until_known,
    with_determinants,
)
from pluri.processes.dpp.samplers.chain_walk import Steps, Target, target_of
from pluri.processes.dpp.search.greedy import greedy_map
from pluri.validation import Only, RandomState, Whole, as_generator, check_value
from pluri.validation.interruption import interruptible

#: Draws below which nothing can be said about them.
LEAST_DRAWS = 8
#: Products of two entries of a kernel below this would no longer be numbers of full precision.
SMALLEST_SCALE = 1e-140

Move = Literal["auto", "heat_bath", "metropolis", "exchange", "mixed"]
STEPS = {
    "heat_bath": ("flip", "heat_bath"),
    "metropolis": ("flip", "metropolis"),
    "exchange": ("swap", "metropolis"),
    "mixed": ("flip or swap", "heat_bath"),
}


class DPPMarkovChain(mcmc.Sampled):
    """A Markov chain whose distribution is a determinantal point process, or one of fixed size.

    Parameters
    ----------
    kernel : KernelForm or array-like of shape (n_items, n_items)
        The kernel L. Features (:class:`FeatureKernel`) and functions are evaluated only where the chain goes.
    move : {"auto", "heat_bath", "metropolis", "exchange", "mixed"}, default="auto"
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
    trace_ : pluri.inference.mcmc.Trace
        Of ``"log_det"``, ``"size"`` and ``"items"`` (a random weighting of the items).
    converged_ : bool
        Whether the chains agree on these; True also if there are fewer than 100 draws of each, which is too few to
        tell. False as well if the gap between draws was to be found and the chain was too slow for that.
    thin_, n_warmup_ : int
        Steps from one draw to the next, and before the first, in each chain.
    acf_ : dict of arrays
        Autocorrelation of ``"log_det"``, ``"size"``, ``"items"`` and ``"det"`` at the lags ``lags_``, in steps. What
        never changes is left out.
    autocorrelation_time_ : dict
        Integrated autocorrelation times, in steps.
    ess_, r_hat_ : dict
        Effective number of draws, and agreement of the chains.
    acceptance_rate_ : float
        Share of the steps that changed the set.
    log_dets_, sizes_ : (n_chains, n_samples)
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
        self, n_samples: int, n_warmup: int | Literal["auto"] = "auto", thin: int | Literal["auto"] = "auto", *,
        n_chains: int = 1, random_state: RandomState = None,
    ) -> list[IntArray]:  # fmt: skip
        """Draw subsets.

        Parameters
        ----------
        n_samples : int
            Draws of each chain.
        n_warmup : int or "auto", default="auto"
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
        subsets = self._draw(n_samples, n_warmup, thin, n_chains, as_generator(random_state))
        if self._unknown_gap:
            warnings.warn(
                f"the chain forgets its state slowly: autocorrelations were above {THRESHOLD} for {self._unknown_gap} "
                f"of {self.n_warmup_} steps. Give larger n_warmup and thin, try move='mixed', or draw exactly",
                ConvergenceWarning,
                stacklevel=2,
            )
        elif not self.interrupted_:
            self._verdict.warn(f"Give a larger thin than {self.thin_}", stacklevel=3)
        return subsets

    def _draw(
        self, n_samples: int, n_warmup: int | Literal["auto"], thin: int | Literal["auto"], n_chains: int,
        rng: np.random.Generator,
    ) -> list[IntArray]:  # fmt: skip
        """Subsets, without a warning of chains that have not settled (`converged_`)."""
        check_value(n_samples, "n_samples", Whole(1))
        check_value(n_warmup, "n_warmup", Whole(0) | Only("auto"))
        check_value(thin, "thin", Whole(1) | Only("auto"))
        check_value(n_chains, "n_chains", Whole(1))
        target = self._target
        steps, begin = self._steps(), self._begin(target)
        self._unknown_gap = 0
        if not len(target.candidates) or (steps.moves == "swap" and len(begin) in (0, target.n_items)):
            return self._stand_still(begin, n_samples, n_chains)
        marks = rng.random(target.n_items)
        gap = Gap(1, np.zeros(0, dtype=np.int64), {}, {})
        n_given = 0 if n_warmup == "auto" else int(n_warmup)
        initial, n_steps = SubsetWalk(target, steps, 1, marks).warm(begin, n_given), n_given
        if "auto" in (n_warmup, thin):
            # Chains have streams of their own; these are for the steps in which the gap is measured.
            streams = rng.spawn(n_chains)
            walks = [initial(stream) for stream in streams]
            gap, n_measured, is_known = run_until_known(target, walks, steps, streams)
            ready = iter(walks)
            initial, n_steps = (lambda _: next(ready)), n_given + n_measured
            if not is_known:  # a gap that is not known is not worth waiting for
                self._unknown_gap = gap.steps
                gap = gap._replace(steps=max(1, min(gap.steps, most_steps(target) // n_samples)))
        kernel = SubsetWalk(target, steps, gap.steps if thin == "auto" else int(thin), marks)
        drawn = draw_chains(kernel, initial, n_samples, n_steps, n_chains, rng)
        self._report(drawn, gap)
        return drawn.subsets

    def _report(self, drawn: ChainDraws, gap: Gap) -> None:
        """What the chains tell about themselves."""
        self.trace_ = trace = drawn.trace
        self.n_warmup_, self.thin_ = trace.n_warmup, trace.thin
        self.interrupted_ = trace.interrupted
        self.log_dets_, self.sizes_ = trace["log_det"], trace["size"]
        self.acceptance_rate_ = float(trace.stats["accepted"].mean())
        statistics = with_determinants(trace.draws)
        enough = trace.n_draws >= LEAST_DRAWS
        if not gap.acf and enough:
            gap = measure_gap(statistics, self.thin_)
        self.acf_, self.lags_, self.autocorrelation_time_ = gap.acf, gap.lags, gap.times
        moving = {name: values for name, values in statistics.items() if name in self.acf_ and enough}
        self.ess_ = {name: ess_mean(values) for name, values in moving.items()}
        self.r_hat_ = {name: r_hat(values) for name, values in moving.items()}
        self._verdict = verdict_of(trace)
        self.converged_ = not self._unknown_gap and self._verdict.settled

    def _stand_still(self, begin: IntArray, n_samples: int, n_chains: int) -> list[IntArray]:
        """There is only one subset that the chain can be in."""
        nothing = np.zeros((n_chains, n_samples))
        draws = {"log_det": nothing, "size": np.full(nothing.shape, len(begin)), "items": nothing}
        subsets = [np.sort(begin) for _ in range(nothing.size)]
        trace = mcmc.Trace(draws, {"accepted": nothing})
        self._report(ChainDraws(subsets, trace), Gap(1, np.zeros(0, dtype=np.int64), {}, {}))
        return subsets

    def _steps(self) -> Steps:
        check_value(self.move, "move", Only("auto", *STEPS))
        move = self.move
        if move == "auto":
            move = "heat_bath" if self.size is None else "exchange"
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
                f"{largest:.3g}: scale it, the distribution of a fixed size does not change"
            )
        return greedy_map(target.form, self.size).items


def draw_by_chain(
    kernel: Any, n_draws: int, rng: np.random.Generator, size: int | None = None, n_warmup: int | None = None,
    thin: int | None = None,
) -> list[IntArray]:  # fmt: skip
    """Subsets from one Markov chain; warm-up and gap are measured unless they are given.

    Parameters
    ----------
    kernel : KernelForm or array-like of shape (n_items, n_items)
    n_draws : int
    rng : numpy.random.Generator
    size : int, optional
        Number of items of every subset.
    n_warmup, thin : int, optional
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
        n_draws, "auto" if n_warmup is None else n_warmup, "auto" if thin is None else thin, random_state=rng
    )
