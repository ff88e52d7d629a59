"""Chains of the HDP sampler, and what is told of them: how many topics there are, and the likeliest of the states."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from pluri.inference import mcmc
from pluri.processes.concentration import check_gamma_prior
from pluri.topics.documents import tokens_of
from pluri.topics.hdp.agreement import r_hat, still_rising, warn_of_disagreement
from pluri.topics.hdp.gibbs import TopicGibbs
from pluri.topics.hdp.settings import LEARNED, given, is_learned
from pluri.topics.hdp.starts import chain_inits, draw_start
from pluri.topics.interrupts import n_sweeps

Array = NDArray[np.float64]


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

    def draws(self) -> dict[str, Array]:
        """What chains are compared by, (n_chains, n_draws) each."""
        numbers = {name: np.asarray(self.trace[name], dtype=float) for name in ("n_topics", "n_large_topics")}
        return {**numbers, "log_joint": np.asarray(self.trace.stats["log_density"])}

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator, but for its topics."""
        draws = self.draws()
        return {
            **self.numbers("n_topics"),
            **self.numbers("n_large_topics"),
            "trace_": self.trace.detached(),
            "log_joint_": draws["log_joint"],
            "r_hat_": {name: r_hat(chains) for name, chains in draws.items()},
            "n_iter_": n_sweeps(self.trace),
            "topic_concentration_": float(self.trace.flat("gamma").mean()),
            "doc_concentration_": float(self.trace.flat("alpha").mean()),
            "topic_word_prior_": float(self.trace.flat("eta").mean()),
            "bound_": self.log_joint,
            "converged_": not still_rising(draws["log_joint"]),
        }

    def warn(self, found: dict[str, Any]) -> None:
        """Tell if chains rise still, or disagree; `found` are the attributes."""
        if self.trace.interrupted:
            return
        if not found["converged_"]:
            warnings.warn(
                f"the log joint density still rises after {found['n_iter_']} sweeps; raise n_warmup",
                ConvergenceWarning,
                stacklevel=4,
            )
        warn_of_disagreement(self.draws(), found["r_hat_"], self.inits)


def kernel_of(model: Any, counts: Any) -> TopicGibbs:
    """The sampler with the settings of an :class:`HDPTopicModel`."""
    gamma, alpha, eta = (given(model, name) for name in LEARNED)
    learn_gamma, learn_alpha, learn_eta = (is_learned(model, name) for name in LEARNED)
    prior = check_gamma_prior(model.concentration_prior, "concentration_prior")
    return TopicGibbs(tokens_of(counts), alpha, gamma, eta, learn_alpha, learn_gamma, learn_eta, prior)


def fit_chains(kernel: TopicGibbs, model: Any, rng: np.random.Generator) -> GibbsFit:
    """Run chains with the settings of an :class:`HDPTopicModel`."""
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
