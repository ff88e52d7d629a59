"""Topic models that are learned by chains of a Gibbs sampler: how the chains run, and what all models keep of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.inference import mcmc
from pluri.topics.topic_model import TopicModel, n_sweeps, verdict_of_topics, warn_if_interrupted
from pluri.validation import RandomState, as_generator


class SampledTopics(mcmc.Sampled, TopicModel):
    """Base: a kernel whose states count their sweeps, and whose `record` says what is kept of a position."""

    n_warmup: int
    n_draws: int
    thin: int
    n_chains: int
    random_state: RandomState
    n_jobs: int | None
    verbose: int
    callback: Callable[[mcmc.Trace], bool | None] | None
    log_joint_: NDArray[np.float64]
    converged_: bool
    n_iter_: int
    #: Where chains run if `n_jobs` is not 1.
    _backend: ClassVar[Literal["processes", "threads"]] = "processes"

    def _sample(self, kernel: Any, initial: Any) -> mcmc.Trace:
        """Run the chains and keep their draws; the trace that is returned knows their last states too.

        After Ctrl-C during the warm-up it has one draw, of where the chains were.
        """
        trace = mcmc.sample(
            kernel, initial, record=kernel.record, n_draws=self.n_draws, n_warmup=self.n_warmup,
            n_chains=self.n_chains, thin=self.thin, random_state=as_generator(self.random_state), n_jobs=self.n_jobs,
            backend=self._backend, verbose=int(self.verbose), callback=self.callback, warn=False,
            draw_if_interrupted=True,
        )  # fmt: skip
        self.log_joint_ = np.asarray(trace.stats["log_density"])
        # The place of each token at the end is as large as the documents, and of no use without them.
        self.trace_ = replace(trace, ends=())
        self.converged_ = verdict_of_topics(trace).settled
        self.n_iter_ = n_sweeps(trace)
        warn_if_interrupted(trace.interrupted, type(self).__name__, self.n_iter_)
        return trace
