"""Sequential Monte Carlo: clouds of weighted particles that follow a sequence of distributions."""

from pluri.inference.smc.cloud import Cloud
from pluri.inference.smc.compiled_model import CompiledModel
from pluri.inference.smc.filter import ParticleFilterResult, particle_filter
from pluri.inference.smc.model import StateSpaceModel
from pluri.inference.smc.online import ParticleFilter
from pluri.inference.smc.particle_gibbs import ParticleGibbs
from pluri.inference.smc.particle_metropolis import ParticleMarginalMetropolis
from pluri.inference.smc.random_walk_moves import random_walk_kernel
from pluri.inference.smc.resampling import RESAMPLING_METHODS, resample
from pluri.inference.smc.sampler import ParticleCollapseError, SMCSampler
from pluri.inference.smc.simulate import simulate
from pluri.inference.smc.smoothing import ancestral_paths, backward_simulation, fixed_lag_smoother
from pluri.inference.smc.tempered import Cooling, TemperedResult, tempered_smc
from pluri.inference.smc.weights import ParticleDegeneracyError, effective_sample_size, normalize_log_weights

__all__ = [
    "RESAMPLING_METHODS",
    "Cloud",
    "CompiledModel",
    "Cooling",
    "ParticleCollapseError",
    "ParticleDegeneracyError",
    "ParticleFilter",
    "ParticleFilterResult",
    "ParticleGibbs",
    "ParticleMarginalMetropolis",
    "SMCSampler",
    "StateSpaceModel",
    "TemperedResult",
    "ancestral_paths",
    "backward_simulation",
    "effective_sample_size",
    "fixed_lag_smoother",
    "normalize_log_weights",
    "particle_filter",
    "random_walk_kernel",
    "resample",
    "simulate",
    "tempered_smc",
]
