"""How the chains of an infinite hidden Markov model are run, and what is kept of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from pluri.inference import mcmc
from pluri.metrics.partition_posterior import minimize_expected_loss
from pluri.priors.hyperpriors import Beta, Gamma, Hyperparameter, as_hyperparameter
from pluri.progress.callbacks import fit_callbacks
from pluri.sequences.infinite.answers import StateAnswers
from pluri.sequences.infinite.beam import BeamSampler
from pluri.sequences.infinite.direct import DirectSampler
from pluri.sequences.infinite.explicit_durations.durations import (
    duration_model,
    expected_parameters,
    expected_segment_rows,
    segment_counts,
)
from pluri.sequences.infinite.forecasts.kept_draws import check_draws, keep_draws
from pluri.sequences.infinite.observations import Array, Integers, ObservationModel, Observations, expected_sums
from pluri.sequences.infinite.state_parameters import state_parameters
from pluri.sequences.infinite.state_posterior import StatePosterior
from pluri.sequences.infinite.transitions import (
    Hyperparameters,
    HyperPriors,
    count_transitions,
    expected_rows,
    least_weights,
)
from pluri.sequences.infinite.weak_limit import WeakLimitSampler
from pluri.validation import Made, Number, Only, as_generator, check_value

SAMPLERS: Mapping[str, type[StatePosterior]] = {
    "beam": BeamSampler, "direct": DirectSampler, "weak_limit": WeakLimitSampler,
}  # fmt: skip
#: What the hyper-parameters are learned under unless something else is said.
CONCENTRATION, WEIGHT_CONCENTRATION, STICKINESS = Gamma(4.0, 2.0), Gamma(3.0, 6.0), Beta(1.0, 1.0)
#: What `stickiness` may be.
STICKINESS_VALUES = Number(0, below=1) | Only("learn") | Made((Beta,), "a prior (Beta)")
#: What an earlier fit of another kind may have left behind.
OF_OTHER_FITS = ("lower_bound_", "common_weights_", "state_occupancy_", "history_", "duration_parameters_")
#: Draws that the search for a point estimate looks at.
MOST_DRAWS = 100
#: Nats by which halves of a chain may differ in their log density: the weights alone move it by as much.
NEGLIGIBLE = 1.0


class FitsStates(StateAnswers):
    """The part of `InfiniteHMM` that runs chains and stores what they found."""

    concentration: Any
    weight_concentration: Any
    stickiness: Any
    inference: str
    duration_prior: Any
    n_draws: int
    n_warmup: int
    thin: int
    n_chains: int
    init_components: int
    point_estimate: str
    n_jobs: int | None
    verbose: int

    def _hyperparameters(self) -> tuple[Hyperparameters, HyperPriors]:
        """Where the hyper-parameters begin, and the priors of those that are learned."""
        check_value(self.stickiness, "stickiness", STICKINESS_VALUES)
        if self.durations is not None:
            self._check_durations()
            rho = Hyperparameter(0.0)
        elif self.duration_prior is not None:
            raise ValueError(f"duration_prior must be None without durations, got {self.duration_prior!r}")
        elif isinstance(self.stickiness, str | Beta):
            prior = STICKINESS if isinstance(self.stickiness, str) else self.stickiness
            rho = Hyperparameter(prior.mean, prior)
        else:
            rho = Hyperparameter(float(self.stickiness))
        given = (
            as_hyperparameter(self.concentration, "concentration", CONCENTRATION),
            as_hyperparameter(self.weight_concentration, "weight_concentration", WEIGHT_CONCENTRATION),
            rho,
        )
        return Hyperparameters(*(each.value for each in given)), HyperPriors(*(each.prior for each in given))

    def _check_durations(self) -> None:
        """Refuse what has no meaning for a model with durations."""
        if self.inference != "weak_limit":
            raise ValueError(f"durations={self.durations!r} needs inference='weak_limit', got {self.inference!r}")
        if self.stickiness not in ("learn", 0):
            raise ValueError(
                f"stickiness must be 0, or 'learn', which is then 0, with durations={self.durations!r}, got "
                f"{self.stickiness!r}: how long a state lasts is said by its durations"
            )

    def _kernel(
        self,
        model: ObservationModel,
        data: Array,
        offsets: Integers,
        settings: tuple[Hyperparameters, HyperPriors],
        most: int,
    ) -> StatePosterior:
        hyper, priors = settings
        if self.durations is None:
            return SAMPLERS[self.inference](model, data, offsets, hyper, priors, most)
        from pluri.sequences.infinite.explicit_durations.sampler import SemiMarkovSampler

        lasting = duration_model(self.durations, self.duration_prior, offsets)
        return SemiMarkovSampler(model, data, offsets, hyper, priors, most, durations=lasting)

    def _sample_chains(self, kernel: StatePosterior, X: Any) -> mcmc.Trace:
        rng = as_generator(self.random_state)
        n_states = min(int(self.init_components), kernel.max_components)
        # Blocks lead to states that last, steps at random to states that do not: the best chain is kept.
        streams = rng.spawn(int(self.n_chains))
        start = [kernel.sample_start(own, n_states, by_blocks=c % 2 == 0) for c, own in enumerate(streams)]
        with fit_callbacks(self, max_iter=self.n_warmup + self.n_draws * self.thin, X=X) as on_step:
            trace = mcmc.sample(
                kernel, start, record=kernel.record, n_draws=self.n_draws, n_warmup=self.n_warmup,
                n_chains=self.n_chains, thin=self.thin, random_state=rng, n_jobs=self.n_jobs, backend="threads",
                verbose=int(self.verbose), warn=False, draw_if_interrupted=True, on_step=on_step,
            )  # fmt: skip
            self.best_chain_ = int(trace.stats["log_density"].mean(axis=1).argmax())
            end = trace.ends[self.best_chain_].state
            self.n_iter_ = end.n_sweeps
            self.objective_ = end.best_log_density
            self.best_labels_ = kernel.record(end.best)["labels"].astype(np.int64)
            for name in Hyperparameters._fields:
                setattr(self, f"{name}_", float(trace[name][self.best_chain_].mean()))
            draws = trace["labels"][self.best_chain_].astype(np.int64)
            self.trace_ = trace.detached()
            labels = self._point_estimate(draws, rng)
            observations = self._store_states(kernel, labels, end.best.get("filled"), rng)
            hyper = np.column_stack([trace[name][self.best_chain_] for name in Hyperparameters._fields])
            self.posterior_draws_ = keep_draws(rng, kernel, observations, draws, hyper)
        return trace

    def _point_estimate(self, draws: Integers, rng: np.random.Generator) -> Integers:
        """States of the consensus, the largest first."""
        labels = self.best_labels_
        self.expected_loss_ = float("nan")
        if self.point_estimate != "map":
            kept = draws[np.unique(np.linspace(0, len(draws) - 1, min(len(draws), MOST_DRAWS)).astype(np.int64))]
            n_starts = 8 if draws.shape[1] <= 2000 else 2
            found = minimize_expected_loss(kept, loss=self.point_estimate, n_starts=n_starts, random_state=rng)
            self.expected_loss_, labels = found.expected_loss, found.labels
        rank = np.argsort(np.argsort(-np.bincount(labels), kind="stable"), kind="stable")
        return np.asarray(rank[labels], dtype=np.int64)

    def _store_states(
        self, kernel: StatePosterior, labels: Integers, filled: Array | None, rng: np.random.Generator
    ) -> Observations:
        """Store what follows from the consensus, and return the data.

        `filled` are likely values of what is missing in parts of rows.
        """
        for name in OF_OTHER_FITS:
            self.__dict__.pop(name, None)
        data, offsets = kernel.data, kernel.offsets
        self.labels_ = labels
        self.n_states_ = int(labels.max()) + 1
        hyper = Hyperparameters(self.concentration_, self.weight_concentration_, self.stickiness_)
        if self.durations is None:
            counts = count_transitions(labels, offsets, self.n_states_)
            rows = expected_rows(counts, hyper, least_weights(counts, hyper))
        else:
            counts = segment_counts(labels, offsets, self.n_states_)
            rows = expected_segment_rows(counts, hyper.concentration, least_weights(counts, hyper))
            lasting = duration_model(self.durations, self.duration_prior, offsets)
            self.duration_parameters_ = expected_parameters(rng, lasting, labels, offsets)
        self.startprob_, self.transmat_ = rows[-1], rows[:-1]
        # One likelihood for each column, so that new rows may be missing in part.
        self.model_ = kernel.model.by_column()
        observations = self.model_.prepare(data, offsets)
        observations = observations if filled is None else observations.with_filled(filled)
        self.state_sums_ = expected_sums(rng, observations, labels, self.n_states_)
        self.state_parameters_ = state_parameters(self.model_, self.state_sums_)
        there = ~np.isnan(data)
        total: Array = np.where(there, data, 0.0).sum(axis=0)
        self.data_mean_ = total / np.maximum(there.sum(axis=0), 1)
        return observations

    def _judge(self, trace: mcmc.Trace, most: int) -> None:
        density = {"log_density": trace.stats["log_density"][[self.best_chain_]]}
        verdict = mcmc.judge(density, mcmc.LATENT_R_HAT_LIMIT, {"log_density": NEGLIGIBLE})
        self.converged_ = verdict.settled
        if trace.interrupted:
            return
        verdict.warn("A longer warm-up or other starts may help", stacklevel=4)
        if trace.stats["capped"][self.best_chain_].any():
            warnings.warn(
                f"the states reached max_components={most}: raise it unless the number of states is meant to be cut",
                UserWarning,
                stacklevel=4,
            )

    def _check_fitted_state(self) -> None:
        if not hasattr(self, "model_"):
            return
        if self.model_.n_features != self.n_features_in_:
            raise ValueError(f"model_ must have {self.n_features_in_} features, got {self.model_.n_features}")
        shapes = [(self.n_states_, each.n_statistics) for each in self.model_.likelihoods]
        if [np.shape(sums) for sums in self.state_sums_] != shapes:
            raise ValueError(f"state_sums_ must have the shapes {shapes}")
        check_draws(self.posterior_draws_, self.model_)
        if self.durations is not None:
            self._check_stored_durations()

    def _check_stored_durations(self) -> None:
        for name, values in self.duration_parameters_.items():
            array = np.asarray(values)
            if array.shape != (self.n_states_,) or not np.isfinite(array).all() or not (array > 0).all():
                raise ValueError(f"duration_parameters_[{name!r}] must be {self.n_states_} positive numbers")
