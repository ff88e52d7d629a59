"""Small runs of what is no estimator: particle filters, determinantal point processes, samplers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pluri.cli.compiling.tiny_data import kernels, numbers


def _particle_filter() -> Any:
    from pluri.inference.smc import StochasticVolatility, particle_filter

    model = StochasticVolatility(level=-1.0, persistence=0.95, scale=0.3)
    return particle_filter(model, numbers()[:, :1], 100, random_state=0)


def _linear_particle_filter() -> Any:
    from pluri.inference.smc import LinearGaussianModel, particle_filter

    model = LinearGaussianModel(0.9, 1.0, 1.0, 0.25, 0.0, 5.0)
    return particle_filter(model, numbers()[:, :1], 100, random_state=0)


def _dpp() -> Any:
    from pluri.processes.dpp import DPP

    return DPP(kernels()[0]).sample(5, random_state=0)


def _dpp_of_features() -> Any:
    from pluri.processes.dpp import DPP

    return DPP(features=numbers()).sample(5, random_state=0)


def _fixed_size_dpp() -> Any:
    from pluri.processes.dpp import KDPP

    return KDPP(kernels()[0], size=2).sample(5, random_state=0)


def _sampler(name: str, *, gradient: bool) -> Callable[[], Any]:
    """A few draws of a standard normal distribution by one kernel of a Markov chain."""

    def run() -> Any:
        from pluri.inference import mcmc

        def log_density(x: Any) -> Any:
            value = -0.5 * float(x @ x)
            return (value, -x) if gradient else value

        kernel = getattr(mcmc, name)(log_density)
        return mcmc.sample(
            kernel, lambda rng: rng.normal(size=3), n_draws=20, n_warmup=20, n_chains=2, random_state=0, warn=False
        )

    return run


#: What is no estimator: its package and how it is run.
RUNS: Mapping[str, tuple[str, Callable[[], Any]]] = {
    "particle_filter": ("pluri.inference.smc", _particle_filter),
    "particle_filter of a linear model": ("pluri.inference.smc", _linear_particle_filter),
    "DPP": ("pluri.processes.dpp", _dpp),
    "DPP of features": ("pluri.processes.dpp", _dpp_of_features),
    "KDPP": ("pluri.processes.dpp", _fixed_size_dpp),
    "NUTS": ("pluri.inference.mcmc", _sampler("NUTS", gradient=True)),
    "HMC": ("pluri.inference.mcmc", _sampler("HMC", gradient=True)),
    "Slice": ("pluri.inference.mcmc", _sampler("Slice", gradient=False)),
    "RandomWalk": ("pluri.inference.mcmc", _sampler("RandomWalk", gradient=False)),
}
