"""Markov chain Monte Carlo: one driver, kernels with one skeleton, and draws that know how good they are.

``sample(kernel, initial)`` runs chains of any kernel and gives a `Trace`. Gradient-based: `NUTS`, `HMC`.
"""

from pluri.inference.mcmc.diagnostics import (
    autocorrelation,
    ess_bulk,
    ess_mean,
    ess_tail,
    highest_density_interval,
    mcse_mean,
    mcse_sd,
    r_hat,
)
from pluri.inference.mcmc.driver import resume, sample
from pluri.inference.mcmc.hmc import HMC
from pluri.inference.mcmc.kernel import Adaptation, Info, Kernel, State
from pluri.inference.mcmc.nuts import NUTS
from pluri.inference.mcmc.summary import Summary
from pluri.inference.mcmc.trace import ChainEnd, Trace

__all__ = [
    "HMC",
    "NUTS",
    "Adaptation",
    "ChainEnd",
    "Info",
    "Kernel",
    "State",
    "Summary",
    "Trace",
    "autocorrelation",
    "ess_bulk",
    "ess_mean",
    "ess_tail",
    "highest_density_interval",
    "mcse_mean",
    "mcse_sd",
    "r_hat",
    "resume",
    "sample",
]
