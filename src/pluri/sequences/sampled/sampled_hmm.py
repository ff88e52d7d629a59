"""What hidden Markov models that are sampled have in common: their chains, of which the best is kept and judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pluri.inference import mcmc
from pluri.priors import LogUniform
from pluri.priors.hyperpriors import Hyperparameter, as_hyperparameter
from pluri.progress.callbacks import fit_callbacks
from pluri.sequences.categorical import CategoricalHMM
from pluri.validation import as_generator


class SampledHMM(mcmc.Sampled, CategoricalHMM):
    """Base of the sampled hidden Markov models; not to be used by itself.

    Chains find different modes, and call the same state differently: what is averaged over, and judged, is the chain
    with the highest mean log density of its draws. The others are starts that were given up.
    """

    n_draws: int
    n_warmup: int
    n_chains: int

    def _hyperparameter(self, name: str, prior: LogUniform, first: float) -> Hyperparameter:
        """A concentration: a number, or learned under a prior; `prior`, from `first`, if it is "learn"."""
        value = getattr(self, name)
        return as_hyperparameter(value, name, prior, kinds=LogUniform, start=first if isinstance(value, str) else None)

    def _sample_chains(self, kernel: Any, X: Any, store: Callable[[mcmc.Trace], None]) -> mcmc.Trace:
        """Run the chains, and `store` what they found before callbacks see the end."""
        thin = getattr(self, "thin", 1)
        with fit_callbacks(self, max_iter=self.n_warmup + self.n_draws * thin, X=X) as on_step:
            trace = mcmc.sample(
                kernel, kernel.sample_start, record=kernel.record, n_draws=self.n_draws, n_warmup=self.n_warmup,
                n_chains=self.n_chains, thin=thin, random_state=as_generator(self.random_state), n_jobs=self.n_jobs,
                backend="threads", verbose=int(self.verbose), warn=False, draw_if_interrupted=True, on_step=on_step,
            )  # fmt: skip
            self.best_chain_ = int(trace.stats["log_density"].mean(axis=1).argmax())
            self.n_iter_ = trace.ends[self.best_chain_].state.n_sweeps
            for name in ("transition_concentration", "emission_concentration"):
                setattr(self, f"{name}_", float(trace[name][self.best_chain_].mean()))
            self.trace_ = trace.detached()
            store(trace)
        return trace

    def _judge(self, trace: mcmc.Trace, negligible: float, advice: str) -> None:
        """Set `converged_`; warn unless the log density of the best chain has settled, up to `negligible`."""
        density = {"log_density": trace.stats["log_density"][[self.best_chain_]]}
        verdict = mcmc.judge(density, mcmc.LATENT_R_HAT_LIMIT, {"log_density": negligible})
        self.converged_ = verdict.settled
        if not trace.interrupted:
            verdict.warn(advice, stacklevel=5)
