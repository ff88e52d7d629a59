"""Chains of the HDP sampler, and what is told of them: how many topics there are, and the likeliest of the states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference import mcmc
from pluri.topics.documents import tokens_of
from pluri.topics.hdp.gibbs import TopicGibbs
from pluri.topics.hdp.settings import HDPSettings
from pluri.topics.hdp.starts import chain_inits, draw_start
from pluri.topics.topic_model import n_sweeps, verdict_of_topics

Array = NDArray[np.float64]
#: What chains are compared by: numbers of topics that differ by less than one say the same.
NUMBERS = {"n_topics": 1.0, "n_large_topics": 1.0}


@dataclass(frozen=True, eq=False)
class GibbsFit:
    """What is left of the chains.

    Attributes
    ----------
    trace : Trace
    inits : start of each chain
    components : (n_topics, n_words): counts of words plus their prior in the likeliest state, the largest topic first
    weight, prior : (n_topics,): share of the tokens, and alpha times the stick, of each topic
    log_joint : log density of that state
    """

    trace: mcmc.Trace
    inits: list[str]
    components: Array
    weight: Array
    prior: Array
    log_joint: float

    def numbers(self, name: str) -> dict[str, Any]:
        """Mode, times of each number and 95 % interval of a whole number in the trace, over all chains."""
        draws = self.trace.flat(name)
        values, times = np.unique(draws, return_counts=True)
        low, high = np.quantile(draws, (0.025, 0.975), method="inverted_cdf")
        return {
            f"{name}_": int(values[np.argmax(times)]),
            f"{name}_posterior_": {int(value): int(n) for value, n in zip(values, times)},
            f"{name}_interval_": (int(low), int(high)),
        }

    def verdict(self) -> mcmc.Verdict:
        """Whether the chains agree on the numbers of topics and the log joint density."""
        return verdict_of_topics(self.trace, **NUMBERS)

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator, but for its topics."""
        return {
            **self.numbers("n_topics"),
            **self.numbers("n_large_topics"),
            "trace_": self.trace.detached(),
            "log_joint_": np.asarray(self.trace.stats["log_density"]),
            "r_hat_": {name: self.trace.verdict(name).r_hat for name in (*NUMBERS, "log_density")},
            "n_iter_": n_sweeps(self.trace),
            "topic_concentration_": float(self.trace.flat("gamma").mean()),
            "doc_concentration_": float(self.trace.flat("alpha").mean()),
            "topic_word_prior_": float(self.trace.flat("eta").mean()),
            "bound_": self.log_joint,
            "converged_": self.verdict().settled,
        }

    def seen(self) -> str:
        """Numbers of topics that chains of each start have seen, and those on which all agree."""
        parts = []
        for init in dict.fromkeys(self.inits):
            own = self.trace["n_topics"][[kind == init for kind in self.inits]]
            low, high = np.quantile(own, (0.025, 0.975))
            parts.append(f"{low:.0f} to {high:.0f} from init={init!r}")
        told = f"The intervals only hold what the chains have seen so far (topics: {'; '.join(parts)})"
        if self.verdict().name == "n_topics" and self.trace.verdict("n_large_topics", limit=mcmc.LATENT_R_HAT_LIMIT):
            told += "; n_large_topics_interval_ is one on which they agree"
        return told


def fit_chains(model: HDPSettings, counts: Any, rng: np.random.Generator) -> GibbsFit:
    """Run chains with the settings of an :class:`HDPTopicModel`."""
    gamma, alpha, eta = model.hyperparameters()
    kernel = TopicGibbs(tokens_of(counts), alpha, gamma, eta)
    inits = chain_inits(model.init, int(model.n_chains))
    starts = [
        draw_start(own, kernel, init, int(model.max_topics)) for init, own in zip(inits, rng.spawn(int(model.n_chains)))
    ]
    trace = mcmc.sample(
        kernel, starts, record=kernel.record, n_draws=int(model.n_draws), n_warmup=int(model.n_warmup),
        n_chains=int(model.n_chains), thin=int(model.thin), random_state=rng, n_jobs=model.n_jobs,
        backend="threads", verbose=int(model.verbose), callback=model.callback, warn=False,
        draw_if_interrupted=True,
    )  # fmt: skip
    best = max((end.state for end in trace.ends), key=lambda state: state.best_log_density)
    table, sizes = kernel.word_counts(best.best)
    order = np.argsort(-sizes, kind="stable")
    return GibbsFit(
        trace,
        inits,
        table.T[order].astype(np.float64) + float(best.best["eta"]),
        sizes[order] / sizes.sum(),
        float(best.best["alpha"]) * best.best["weights"][:-1][order],
        float(best.best_log_density),
    )
