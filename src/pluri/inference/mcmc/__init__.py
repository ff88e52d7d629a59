"""Markov chain Monte Carlo: one driver, kernels with one skeleton, and draws that know how good they are.

``sample(kernel, initial)`` runs chains of any kernel and gives a `Trace`. With a gradient: `NUTS`, `HMC`, `Langevin`.
Without: `RandomWalk`, `ComponentWise`, `Slice`, `EllipticalSlice` (Gaussian priors), `Independence`,
`MetropolisHastings` (a proposal of your own), `DiscreteFlip`. Put together: `Gibbs`, `KernelCycle`, `KernelMixture`.
`Space` turns constrained parameters into the vectors that kernels move. ``sample_blackjax`` runs a JAX density.
"""

from pluri.inference.mcmc.accept_reject.component_wise import ComponentWise
from pluri.inference.mcmc.accept_reject.independence import Independence
from pluri.inference.mcmc.accept_reject.metropolis_hastings import MetropolisHastings
from pluri.inference.mcmc.accept_reject.proposals import DiscreteFlip, Langevin
from pluri.inference.mcmc.accept_reject.random_walk import RandomWalk
from pluri.inference.mcmc.blackjax_adapter import sample_blackjax
from pluri.inference.mcmc.composition import KernelCycle, KernelMixture
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
from pluri.inference.mcmc.elliptical import EllipticalSlice
from pluri.inference.mcmc.gibbs import Conditional, Gibbs
from pluri.inference.mcmc.hamiltonian.hmc import HMC
from pluri.inference.mcmc.hamiltonian.nuts import NUTS
from pluri.inference.mcmc.health import LATENT_R_HAT_LIMIT, R_HAT_LIMIT, Verdict, judge
from pluri.inference.mcmc.kernel import Adaptation, Info, Kernel, State
from pluri.inference.mcmc.slice_sampling import Slice
from pluri.inference.mcmc.step_health import e_bfmi
from pluri.inference.mcmc.trace import ChainEnd, Sampled, Summary, Trace
from pluri.inference.mcmc.transforms.space import (
    Correlation,
    CorrelationCholesky,
    Covariance,
    CovarianceCholesky,
    Interval,
    LowerBound,
    Ordered,
    Positive,
    PositiveOrdered,
    Real,
    Simplex,
    Space,
    UpperBound,
)

__all__ = [
    "HMC",
    "LATENT_R_HAT_LIMIT",
    "NUTS",
    "R_HAT_LIMIT",
    "Adaptation",
    "ChainEnd",
    "ComponentWise",
    "Conditional",
    "Correlation",
    "CorrelationCholesky",
    "Covariance",
    "CovarianceCholesky",
    "DiscreteFlip",
    "EllipticalSlice",
    "Gibbs",
    "Independence",
    "Info",
    "Interval",
    "Kernel",
    "KernelCycle",
    "KernelMixture",
    "Langevin",
    "LowerBound",
    "MetropolisHastings",
    "Ordered",
    "Positive",
    "PositiveOrdered",
    "RandomWalk",
    "Real",
    "Sampled",
    "Simplex",
    "Slice",
    "Space",
    "State",
    "Summary",
    "Trace",
    "UpperBound",
    "Verdict",
    "autocorrelation",
    "e_bfmi",
    "ess_bulk",
    "ess_mean",
    "ess_tail",
    "highest_density_interval",
    "judge",
    "mcse_mean",
    "mcse_sd",
    "r_hat",
    "resume",
    "sample",
    "sample_blackjax",
]
