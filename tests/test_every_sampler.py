"""Every sampler of the library is put through `pluri.testing.check_sampler`.

Each report has a false-alarm rate of at most 1e-3 over all its checks, whatever the number of quantities; random states
are fixed. A sampler that is not in the table below fails the last two tests.
"""

import pkgutil
import re
from dataclasses import is_dataclass
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import invwishart

import pluri
from pluri.dynamics import LinearGaussianModel
from pluri.factors.dictionaries.gibbs import DictionaryGibbs
from pluri.factors.dictionaries.reconstruction import CodeGibbs, KnownDictionary
from pluri.factors.dictionaries.records import Rows
from pluri.factors.dictionaries.sensing.gibbs import RecoveryGibbs
from pluri.factors.dictionaries.sensing.measurements import Measurements
from pluri.factors.dictionaries.usage import BetaProcessUsage
from pluri.factors.dictionaries.usage.code_classes import CodeClasses
from pluri.factors.dictionaries.usage.dirichlet_process import DirichletProcessUsage
from pluri.factors.dictionaries.usage.known_classes import KnownClasses, KnownDirichlet, KnownProbit
from pluri.factors.dictionaries.usage.probit_sticks import ProbitStickUsage
from pluri.factors.ibp_gibbs import IndianBuffetGibbs
from pluri.factors.ibp_likelihood import collapsed_log_likelihood
from pluri.factors.rbm_chains import ClampedGibbs
from pluri.factors.rbm_energy import Machine
from pluri.inference import mcmc
from pluri.inference.mcmc import slice_intervals
from pluri.inference.smc import ParticleGibbs, ParticleMarginalMetropolis
from pluri.mixtures.dirichlet_process import collapsed_gibbs as mixtures_gibbs
from pluri.mixtures.gaussian.posterior import MixturePosterior, MixturePrior
from pluri.priors import Gamma
from pluri.processes import DirectAssignmentGibbs, FranchiseGibbs, NormalGamma, grouped_mixture
from pluri.processes.dpp.continuous.domains import NormalBase
from pluri.processes.dpp.continuous.gaussian import GaussianContinuousDPP
from pluri.processes.dpp.continuous.point_gibbs import PointGibbs
from pluri.processes.dpp.samplers.chain_draws import SubsetWalk
from pluri.processes.dpp.samplers.chain_kernels import AddDelete, Exchange
from pluri.processes.gp_inference.polya_gamma import PolyaGammaGibbs
from pluri.processes.ising.gibbs import LabelGibbs
from pluri.processes.ising.grid import LabelField
from pluri.sequences.sampled import collapsed_gibbs, symbol_class_sampler
from pluri.sequences.sampled.hidden_states_gibbs import HiddenStatesGibbs
from pluri.sequences.sampled.symbol_class_gibbs import SymbolClassGibbs, concentrations_of, position_of
from pluri.testing import SamplerProblem, check_sampler, enumerate_posterior, kernel_transition
from pluri.topics.lda.sampling import gibbs as lda_gibbs

#: Name to a function that makes the problem.
TABLE = {}
#: Kernel classes, and modules, that the table covers.
COVERED = set()


def modules(pattern):
    for module in pkgutil.walk_packages(pluri.__path__, "pluri."):
        if re.search(pattern, module.name) and not module.name.startswith("pluri.testing"):
            yield module.name


def kernel_classes():
    """Public classes of records that can start and step."""
    for name in modules(
        r"^pluri\.(inference\.(mcmc|smc)|processes|factors|mixtures|topics|sequences|embedding|dynamics)\."
    ):
        for value in vars(import_module(name)).values():
            own = isinstance(value, type) and is_dataclass(value) and value.__module__ == name
            if own and hasattr(value, "init") and hasattr(value, "step") and not value.__name__.startswith("_"):
                yield value


KERNELS = {kernel.__name__: kernel for kernel in kernel_classes()}
RandomWalk, ComponentWise, Langevin, DiscreteFlip, Independence, MetropolisHastings = (
    KERNELS[name]
    for name in ("RandomWalk", "ComponentWise", "Langevin", "DiscreteFlip", "Independence", "MetropolisHastings")
)
Slice, EllipticalSlice, Gibbs, KernelMixture, KernelCycle = (
    KERNELS[name] for name in ("Slice", "EllipticalSlice", "Gibbs", "KernelMixture", "KernelCycle")
)
Conditional = vars(import_module(Gibbs.__module__))["Conditional"]


def sampler(name, *covers):
    COVERED.update(covers)

    def add(make):
        TABLE[name] = make
        return make

    return add


# Kernels on vectors: a linear Gaussian model for Geweke's test, and a bent funnel that can be drawn from ------------

PRIOR_COVARIANCE = np.array([[1.0, 0.6], [0.6, 2.0]])
PRIOR_ROOT, PRIOR_PRECISION = np.linalg.cholesky(PRIOR_COVARIANCE), np.linalg.inv(PRIOR_COVARIANCE)
DESIGN = np.array([[1.0, 0.5], [0.0, 1.0], [1.0, -1.0]])


def draw_coefficients(rng):
    return PRIOR_ROOT @ rng.standard_normal(2)


def draw_responses(rng, theta):
    return DESIGN @ theta + 0.8 * rng.standard_normal(3)


def log_responses(theta, y):
    return -0.5 * float(((y - DESIGN @ theta) ** 2).sum()) / 0.64


def linear_posterior(y):
    def value_and_grad(theta):
        residual, pull = y - DESIGN @ theta, PRIOR_PRECISION @ theta
        return float(-0.5 * theta @ pull - 0.5 * residual @ residual / 0.64), DESIGN.T @ residual / 0.64 - pull

    value_and_grad.responses = y
    return value_and_grad


def compiled_posterior(theta, gradient, data):
    y, design, precision = data
    value = 0.0
    for j in range(2):
        gradient[j] = -(precision[j, 0] * theta[0] + precision[j, 1] * theta[1])
        value += 0.5 * gradient[j] * theta[j]
    for i in range(3):
        residual = y[i] - design[i, 0] * theta[0] - design[i, 1] * theta[1]
        value -= 0.5 * residual * residual / 0.64
        for j in range(2):
            gradient[j] += design[i, j] * residual / 0.64
    return value


def compiled_funnel(position, gradient):
    x, y = position[0], position[1]
    gap, weight = y - 0.5 * x**2, np.exp(-x)
    gradient[0], gradient[1] = -x - 0.5 + gap * x * weight + 0.5 * gap**2 * weight, -gap * weight
    return -0.5 * x**2 - 0.5 * x - 0.5 * gap**2 * weight


def compiled_kernel(kind, value_and_grad, **settings):
    """A kernel for a compiled function with the values of one of the two plain ones."""
    if value_and_grad is funnel:
        return kind(compiled_funnel, compiled=True, **settings)
    data = (value_and_grad.responses, DESIGN, PRIOR_PRECISION)
    return kind(compiled_posterior, compiled=True, data=data, **settings)


def compiled_log_posterior(theta, data):
    y, design, precision = data
    value = 0.0
    for j in range(2):
        value -= 0.5 * (precision[j, 0] * theta[0] + precision[j, 1] * theta[1]) * theta[j]
    for i in range(3):
        residual = y[i] - design[i, 0] * theta[0] - design[i, 1] * theta[1]
        value -= 0.5 * residual * residual / 0.64
    return value


def compiled_log_funnel(position):
    x, y = position[0], position[1]
    return -0.5 * x**2 - 0.5 * x - 0.5 * (y - 0.5 * x**2) ** 2 * np.exp(-x)


def compiled_slice(value_and_grad, **settings):
    """A slice sampler for a compiled function with the values of one of the two plain ones."""
    if value_and_grad is funnel:
        return Slice(compiled_log_funnel, compiled=True, **settings)
    data = (value_and_grad.responses, DESIGN, PRIOR_PRECISION)
    return Slice(compiled_log_posterior, compiled=True, data=data, **settings)


def draw_funnel(rng):
    x = rng.standard_normal()
    return np.array([x, 0.5 * x**2 + np.exp(0.5 * x) * rng.standard_normal()])


def funnel(position):
    x, y = position
    gap = y - 0.5 * x**2
    weight = np.exp(-x)
    value = -0.5 * x**2 - 0.5 * x - 0.5 * gap**2 * weight
    return float(value), np.array([-x - 0.5 + gap * x * weight + 0.5 * gap**2 * weight, -gap * weight])


def vector_problem(name, make, *, reversible=True, n_steps=3, n_convergence=40, gradient=False):
    """`make` turns a function for value and gradient into a kernel."""
    return SamplerProblem(
        name,
        prior=draw_coefficients,
        data=draw_responses,
        transition=kernel_transition(lambda y: make(linear_posterior(y))),
        log_likelihood=log_responses,
        kernel=make(funnel),
        exact_draws=draw_funnel,
        reversible=reversible,
        n_steps=n_steps,
        initial=np.array([-1.0, 3.0]),
        n_convergence=n_convergence,
        value_and_grad=funnel if gradient else None,
        positions=[np.array([0.3, -1.0]), np.array([-2.0, 1.0])] if gradient else (),
    )


def value_of(value_and_grad):
    return lambda x: value_and_grad(x)[0]


VECTOR_KERNELS = {
    "NUTS": (lambda f: mcmc.NUTS(f, step_size=0.6), {"n_steps": 2, "n_convergence": 15, "gradient": True}),
    # A metric that is not that of the funnel: 15 steps still remember the start (p = 1e-6 with 2000 runs), 40 do not.
    "NUTS, dense metric": (
        lambda f: mcmc.NUTS(f, step_size=0.6, inverse_mass=PRIOR_COVARIANCE), {"n_steps": 2, "n_convergence": 80},
    ),
    "HMC": (
        lambda f: mcmc.HMC(f, step_size=0.4, n_leapfrog=4), {"n_steps": 2, "n_convergence": 30, "gradient": True},
    ),
    "NUTS, compiled": (
        lambda f: compiled_kernel(mcmc.NUTS, f, step_size=0.6), {"n_steps": 2, "n_convergence": 15},
    ),
    "NUTS, compiled, dense metric": (
        lambda f: compiled_kernel(mcmc.NUTS, f, step_size=0.6, inverse_mass=PRIOR_COVARIANCE),
        {"n_steps": 2, "n_convergence": 80},
    ),
    "HMC, compiled": (
        lambda f: compiled_kernel(mcmc.HMC, f, step_size=0.4, n_leapfrog=4), {"n_steps": 2, "n_convergence": 30},
    ),
    "Langevin": (lambda f: Langevin(f, step_size=0.8), {"n_convergence": 100, "gradient": True}),
    "Langevin, dense metric": (
        lambda f: Langevin(f, step_size=0.8, inverse_mass=PRIOR_COVARIANCE), {"n_convergence": 100},
    ),
    "RandomWalk": (lambda f: RandomWalk(value_of(f), step_size=1.2), {"n_convergence": 150}),
    "RandomWalk, covariance": (
        lambda f: RandomWalk(value_of(f), step_size=1.2, covariance=PRIOR_COVARIANCE), {"n_convergence": 150},
    ),
    "ComponentWise": (
        lambda f: ComponentWise(value_of(f), step_size=np.array([1.0, 2.0])),
        {"reversible": False, "n_convergence": 80},
    ),
    "Slice, coordinates": (lambda f: Slice(value_of(f), width=0.7), {"reversible": False}),
    "Slice, coordinates, few steps out": (
        lambda f: Slice(value_of(f), width=0.7, max_steps=2), {"reversible": False, "n_convergence": 120},
    ),
    "Slice, coordinates, doubling": (
        lambda f: Slice(value_of(f), width=0.3, expansion="double", max_steps=5), {"reversible": False},
    ),
    "Slice, direction": (lambda f: Slice(value_of(f), mode="direction"), {"n_convergence": 60}),
    "Slice, direction, doubling": (
        lambda f: Slice(value_of(f), width=0.5, mode="direction", expansion="double"), {"n_convergence": 50},
    ),
    "Slice, box": (lambda f: Slice(value_of(f), width=4.0, mode="box"), {"n_convergence": 60}),
    "Slice, compiled, coordinates": (lambda f: compiled_slice(f, width=0.7), {"reversible": False}),
    "Slice, compiled, direction, doubling": (
        lambda f: compiled_slice(f, width=0.5, mode="direction", expansion="double"), {"n_convergence": 50},
    ),
    "Slice, compiled, box": (lambda f: compiled_slice(f, width=4.0, mode="box"), {"n_convergence": 60}),
    "KernelMixture": (
        lambda f: KernelMixture(
            [RandomWalk(value_of(f), step_size=0.7), Slice(value_of(f), mode="box", width=3.0)], weights=[0.6, 0.4]
        ),
        {"n_convergence": 80},
    ),
    "KernelCycle": (
        lambda f: KernelCycle([mcmc.HMC(f, step_size=0.4, n_leapfrog=3), RandomWalk(value_of(f), step_size=0.7)]),
        {"reversible": False, "n_convergence": 30},
    ),
}  # fmt: skip
for _name, (_make, _settings) in VECTOR_KERNELS.items():
    TABLE[_name] = partial(vector_problem, _name, _make, **_settings)
COVERED.update({mcmc.NUTS, mcmc.HMC, Langevin, RandomWalk, ComponentWise, Slice, KernelMixture, KernelCycle})
COVERED.update({"pluri.inference.mcmc.slice_sampling"})
# Its subsets are compared with enumeration, and its steps with those of AddDelete, in tests/processes/dpp.
COVERED.add(SubsetWalk)


def draw_modes(rng):
    return np.array([rng.normal(0.0, 0.1) if rng.random() < 0.5 else rng.normal(4.0, 1.0)])


def log_modes(x):
    return float(np.logaddexp(np.log(10.0) - 50.0 * x[0] ** 2, -0.5 * (x[0] - 4.0) ** 2))


def compiled_log_modes(x):
    return np.logaddexp(np.log(10.0) - 50.0 * x[0] ** 2, -0.5 * (x[0] - 4.0) ** 2)


def modes_problem(name, **settings):
    """A narrow mode and a wide one: where doubling goes wrong without asking whether the way back is open."""
    kernel = Slice(compiled_log_modes if settings.get("compiled") else log_modes, **settings)
    return SamplerProblem(name, kernel=kernel, exact_draws=draw_modes, reversible=True, n_steps=15)


for _mode in ("coordinate", "direction"):
    for _expansion in ("step", "double"):
        _name = f"Slice, two modes, {_mode}, {_expansion}"
        TABLE[_name] = partial(modes_problem, _name, width=1.0, mode=_mode, expansion=_expansion)
TABLE["Slice, two modes, compiled"] = partial(
    modes_problem, "Slice, two modes, compiled", width=1.0, expansion="double", compiled=True
)


@sampler("MetropolisHastings, asymmetric", MetropolisHastings, "pluri.inference.mcmc.accept_reject.metropolis_hastings")
def asymmetric():
    """Gamma-Poisson: proposals multiply, so that they are not symmetric."""

    def posterior(y):
        def log_density(x):
            return float(np.log(x[0]) - 1.5 * x[0] + (y * np.log(x[0]) - x[0]).sum()) if x[0] > 0 else -np.inf

        return MetropolisHastings(
            log_density,
            propose=lambda rng, x: x * np.exp(0.7 * rng.standard_normal(1) - 0.2),
            log_proposal=lambda new, old: float(-np.log(new[0]) - (np.log(new[0] / old[0]) + 0.2) ** 2 / 0.98),
        )

    return SamplerProblem(
        "MetropolisHastings",
        prior=lambda rng: rng.gamma(2.0, 1 / 1.5, size=1),
        data=lambda rng, x: rng.poisson(x[0], size=2),
        transition=kernel_transition(posterior),
        kernel=posterior(np.array([1, 4])),
        exact_draws=lambda rng: rng.gamma(7.0, 1 / 3.5, size=1),
        reversible=True,
        n_steps=3,
        initial=np.array([8.0]),
        n_convergence=60,
    )


@sampler("Independence", Independence)
def independence():
    def make(value_and_grad):
        return Independence(
            value_of(value_and_grad),
            sample=lambda rng: np.array([0.0, 0.7]) + 2.0 * rng.standard_t(5, size=2),
            log_proposal=lambda x: float(-3.0 * np.log1p(((x - [0.0, 0.7]) / 2.0) ** 2 / 5.0).sum()),
        )

    return vector_problem("Independence", make, n_convergence=80)


@sampler("EllipticalSlice", EllipticalSlice)
def elliptical():
    def posterior(y):
        return EllipticalSlice(lambda theta: log_responses(theta, y), covariance=PRIOR_COVARIANCE)

    y = np.array([1.0, -0.5, 0.3])
    covariance = np.linalg.inv(PRIOR_PRECISION + DESIGN.T @ DESIGN / 0.64)
    mean, root = covariance @ DESIGN.T @ y / 0.64, np.linalg.cholesky(covariance)
    return SamplerProblem(
        "EllipticalSlice",
        prior=draw_coefficients,
        data=draw_responses,
        transition=kernel_transition(posterior),
        log_likelihood=log_responses,
        kernel=posterior(y),
        exact_draws=lambda rng: mean + root @ rng.standard_normal(2),
        reversible=True,
        n_steps=2,
        initial=np.array([4.0, -4.0]),
        n_convergence=40,
    )


@sampler("EllipticalSlice, mean and factor", EllipticalSlice)
def elliptical_with_mean():
    mean = np.array([1.0, -2.0])

    def posterior(y):
        return EllipticalSlice(lambda theta: log_responses(theta, y), cholesky=PRIOR_ROOT, mean=mean)

    return SamplerProblem(
        "EllipticalSlice with a mean",
        prior=lambda rng: mean + draw_coefficients(rng),
        data=draw_responses,
        transition=kernel_transition(posterior),
        log_likelihood=log_responses,
        n_steps=3,
        n_convergence=40,
    )


def normal_gibbs(y, scan, by_slice):
    """Mean and precision of normal data, both under independent conjugate priors."""

    def mean(rng, position):
        precision = 1.0 + len(y) * position["precision"]
        return rng.normal(position["precision"] * y.sum() / precision, precision**-0.5)

    def precision(rng, position):
        return rng.gamma(2.0 + 0.5 * len(y)) / (1.0 + 0.5 * ((y - position["mean"]) ** 2).sum())

    def precision_by_slice(rest):
        shape, rate = 2.0 + 0.5 * len(y), 1.0 + 0.5 * float(((y - rest["mean"]) ** 2).sum())
        return Slice(lambda x: float((shape - 1.0) * np.log(x[0]) - rate * x[0]), bounds=(0.0, np.inf))

    blocks = {"mean": mean, "precision": Conditional(precision_by_slice) if by_slice else precision}
    return Gibbs(blocks, scan=scan)


def gibbs_problem(name, scan, by_slice):
    return SamplerProblem(
        name,
        prior=lambda rng: {"mean": np.asarray(rng.standard_normal()), "precision": np.asarray(rng.gamma(2.0))},
        data=lambda rng, p: rng.normal(p["mean"], p["precision"] ** -0.5, size=3),
        transition=kernel_transition(partial(normal_gibbs, scan=scan, by_slice=by_slice)),
        n_steps=3,
        n_convergence=10 if by_slice else 40,
    )


for _scan in ("fixed", "random"):
    for _by_slice in (False, True):
        _name = f"Gibbs, {_scan} scan{', slice within' if _by_slice else ''}"
        TABLE[_name] = partial(gibbs_problem, _name, _scan, _by_slice)
COVERED.update({Gibbs, "pluri.inference.mcmc.gibbs"})

COUPLING = np.array([[0.0, 0.8, -0.5], [0.8, 0.0, 0.3], [-0.5, 0.3, 0.0]])


def spin_energy(x):
    return float(0.5 * x @ COUPLING @ x + 0.4 * x[0])


@sampler("DiscreteFlip", DiscreteFlip)
def discrete_flip():
    posterior = enumerate_posterior(spin_energy, [[0, 1], [0, 1, 2], [0, 1]])
    return SamplerProblem(
        "DiscreteFlip", kernel=DiscreteFlip(spin_energy, n_values=[2, 3, 2]), posterior=posterior, n_steps=4
    )


# Hidden Markov models ------------------------------------------------------------------------------------------------


def draw_from_urn(rng, seen, weight):
    cumulative = np.cumsum(seen + weight)
    outcome = min(int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")), len(seen) - 1)
    seen[outcome] += 1
    return outcome


LENGTHS, N_STATES, N_SYMBOLS = (4, 1, 3), 3, 3


def as_sequences(codes):
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)
    return collapsed_gibbs.SymbolSequences(
        np.asarray(codes, dtype=np.int64)[:, None], offsets, np.array([0, N_SYMBOLS])
    )


def draw_chain(rng, learn):
    """Concentrations and states by urns: no probability is ever drawn, so none underflows."""
    a, b = (collapsed_gibbs.LEARNED.sample(rng) for _ in range(2)) if learn else (0.4, 0.6)
    seen, states = np.zeros((N_STATES + 1, N_STATES)), []
    for length in LENGTHS:
        state = N_STATES
        for _ in range(length):
            state = draw_from_urn(rng, seen[state], 0.8 if state == N_STATES else a)
            states.append(state)
    return {"states": np.array(states), "transition_concentration": a, "emission_concentration": b}


def draw_symbols(rng, theta):
    seen = np.zeros((N_STATES, N_SYMBOLS))
    return np.array([draw_from_urn(rng, seen[state], theta["emission_concentration"]) for state in theta["states"]])


def chain_kernel(codes, learn):
    priors = collapsed_gibbs.ConcentrationPriors() if learn else collapsed_gibbs.ConcentrationPriors(None, None)
    weights = collapsed_gibbs.Concentrations(0.8, 0.4, 0.6)
    return HiddenStatesGibbs(as_sequences(codes), N_STATES, weights, priors)


def chain_statistics(theta, codes):
    counts = collapsed_gibbs.count(as_sequences(codes), theta["states"], N_STATES)
    found = {
        "stays": np.trace(counts.transition[:N_STATES]),
        "departures": (counts.departures**2).sum(),
        "symbols of states": (counts.emission**2).sum(),
        "transitions": (counts.transition**2).sum(),
        "first state": theta["states"][0],
    }
    a, b = theta["transition_concentration"], theta["emission_concentration"]
    if a != 0.4:
        found |= {"log a": np.log(a), "log b": np.log(b)}
    return found


@sampler("BayesianCategoricalHMM", "pluri.sequences.sampled.collapsed_gibbs", "pluri.sequences.sampled._gibbs_kernels",
         "pluri.sequences.sampled.hidden_states_gibbs", HiddenStatesGibbs)  # fmt: skip
def hidden_chain():
    return SamplerProblem(
        "collapsed Gibbs of a categorical HMM",
        prior=partial(draw_chain, learn=True),
        data=draw_symbols,
        transition=kernel_transition(partial(chain_kernel, learn=True)),
        statistics=chain_statistics,
        n_steps=3,
    )


@sampler("BayesianCategoricalHMM, fixed concentrations")
def hidden_chain_enumerated():
    codes = np.array([0, 1, 0, 2, 1, 0, 0, 1])
    weights = collapsed_gibbs.Concentrations(0.8, 0.4, 0.6)

    def log_joint(states):
        """By urns, one token after the other."""
        total, seen, shown = 0.0, np.zeros((N_STATES + 1, N_STATES)), np.zeros((N_STATES, N_SYMBOLS))
        firsts = set(np.cumsum((0, *LENGTHS[:-1])).tolist())
        for t, (state, code) in enumerate(zip(states, codes)):
            row, weight = (N_STATES, weights.start) if t in firsts else (states[t - 1], weights.transition)
            total += np.log((seen[row, state] + weight) / (seen[row].sum() + N_STATES * weight))
            total += np.log(
                (shown[state, code] + weights.emission) / (shown[state].sum() + N_SYMBOLS * weights.emission)
            )
            seen[row, state] += 1
            shown[state, code] += 1
        return total

    posterior = enumerate_posterior(log_joint, [range(N_STATES)] * len(codes))

    transition = kernel_transition(partial(chain_kernel, learn=False))

    def kernel(rng, states):
        theta = {"states": states, "transition_concentration": 0.4, "emission_concentration": 0.6}
        return transition(rng, theta, codes)["states"]

    return SamplerProblem("collapsed Gibbs against enumeration", kernel=kernel, posterior=posterior, n_steps=2)


N_CLASSES, N_TYPES, N_FEATURES = 2, 3, 2


def draw_class_tokens(rng, classes, weights, n_sequences=2, longest=7):
    """Tokens by urns, given that no state without symbols is met, no sequence is empty and all are short; or None."""
    boundary = N_CLASSES
    moves = np.zeros((N_CLASSES + 1, N_CLASSES + 1))
    uses = {c: np.zeros(int((classes == c).sum())) for c in range(N_CLASSES)}
    sequences = []
    for _ in range(n_sequences):
        tokens, state = [], boundary
        while True:
            state = draw_from_urn(rng, moves[state], weights.transition)
            if state == boundary:
                break
            if len(uses[state]) == 0 or len(tokens) == longest:
                return None
            tokens.append(int(np.flatnonzero(classes == state)[draw_from_urn(rng, uses[state], weights.emission)]))
        if not tokens:
            return None
        sequences.append(tokens)
    features, seen = [], np.zeros((N_CLASSES, N_FEATURES))
    for c in classes:
        features.append(draw_from_urn(rng, seen[c], weights.features[0]))
    return sequences, features


def draw_classes(rng):
    """Classes and concentrations, from the prior given that the tokens can be drawn: refused together with them."""
    while True:
        a, b, g, e = (prior.sample(rng) for prior in symbol_class_sampler.LEARNED)
        weights = symbol_class_sampler.Concentrations(a, b, g, (e,))
        seen = np.zeros(N_CLASSES)
        classes = np.array([draw_from_urn(rng, seen, g) for _ in range(N_TYPES)])
        if draw_class_tokens(rng, classes, weights) is not None:
            return {"classes": classes, "weights": weights}


def draw_corpus(rng, theta):
    while True:
        tokens = draw_class_tokens(rng, theta["classes"], theta["weights"])
        if tokens is not None:
            return tokens


def class_transition(rng, theta, y):
    sequences, features = y
    corpus = symbol_class_sampler.Corpus.from_codes(
        np.concatenate(sequences).astype(np.int64), np.array([len(s) for s in sequences]),
        np.array(features)[:, None], np.array([N_FEATURES]),
    )  # fmt: skip
    kernel = SymbolClassGibbs(corpus, N_CLASSES, theta["weights"])
    state, _ = kernel.step(rng, kernel.init(rng, position_of(theta["classes"], theta["weights"])))
    return {"classes": state.position["classes"], "weights": concentrations_of(state.position)}


def class_statistics(theta, y):
    sequences, features = y
    classes, weights = theta["classes"], theta["weights"]
    states = [classes[np.array(s)] for s in sequences]
    return {
        "log weights": np.log(weights.as_tuple()),
        "together": float(classes[0] == classes[1]),
        "sizes": (np.bincount(classes, minlength=2) ** 2).sum(),
        "stays": sum(int((s[1:] == s[:-1]).sum()) for s in states),
        "ends alike": float(states[0][-1] == states[1][-1]),
        "n tokens": sum(map(len, sequences)),
        "frequent": np.bincount(np.concatenate(sequences)).max(),
        "features agree": float((features[0] == features[1]) == (classes[0] == classes[1])),
    }


@sampler(
    "SymbolClassHMM",
    "pluri.sequences.sampled.symbol_class_sampler",
    "pluri.sequences.sampled.symbol_class_gibbs",
    SymbolClassGibbs,
)
def symbol_classes():
    return SamplerProblem(
        "Gibbs on the classes of symbols",
        prior=draw_classes,
        data=draw_corpus,
        transition=class_transition,
        statistics=class_statistics,
        n_steps=3,
    )


# Processes -----------------------------------------------------------------------------------------------------------

GROUPS = np.array([0, 0, 1, 0, 1, 1])


def grouped_problem(name, kernel_class):
    kernel = kernel_class(
        NormalGamma(1, shape=2.0, rate=2.0, strength=0.3), np.zeros((6, 1)), GROUPS,
        alpha=Gamma(2.0, 1.0), gamma=Gamma(2.0, 1.5),
    )  # fmt: skip

    def statistics(position, data):
        labels = kernel.labels(position)
        sizes = np.bincount(labels)
        extra = {}
        if "weights" in position:
            extra = {"rest": position["weights"][-1], "squared weights": (position["weights"] ** 2).sum()}
        else:
            extra = {"n tables": len(position["dishes"])}
        return extra | {
            "log alpha": np.log(position["alpha"]),
            "log gamma": np.log(position["gamma"]),
            "n clusters": len(sizes),
            "squared sizes": (sizes**2).sum(),
            "within a group": float(labels[0] == labels[1]),
            "across groups": float(labels[0] == labels[2]),
            "within clusters": sum(float(data[labels == k].var() * (labels == k).sum()) for k in range(len(sizes))),
            "mean": float(data.mean()),
        }

    return SamplerProblem(
        name,
        prior=kernel.sample_prior,
        data=kernel.sample_data,
        transition=kernel.sweep,
        statistics=statistics,
        log_likelihood=kernel.log_likelihood,
        n_steps=3,
    )


for _class in (DirectAssignmentGibbs, FranchiseGibbs):
    TABLE[_class.__name__] = partial(grouped_problem, _class.__name__, _class)
COVERED.update({
    DirectAssignmentGibbs, FranchiseGibbs, "pluri.processes.direct_assignment", "pluri.processes.franchise_gibbs",
})  # fmt: skip


@sampler("MetropolisGaussianMixture", "pluri.mixtures.gaussian.metropolis")
def gaussian_mixture():
    """The posterior that it samples, Jacobians and all, by HMC of a given step size."""
    prior = MixturePrior(2.0, np.array([0.5, -0.5]), 0.8, 6.0, np.array([[4.0, 1.0], [1.0, 3.0]]))

    def draw_components(rng):
        covariances = invwishart.rvs(prior.degrees_of_freedom, prior.scale, size=2, random_state=rng)
        means = [rng.multivariate_normal(prior.mean, covariance / 0.8) for covariance in covariances]
        return {
            "weights": rng.dirichlet([2.0, 2.0]), "means": np.array(means), "factors": np.linalg.cholesky(covariances),
        }  # fmt: skip

    def draw_rows(rng, theta):
        labels = (rng.random(4) > theta["weights"][0]).astype(int)
        noise = rng.standard_normal((4, 2))
        return theta["means"][labels] + np.einsum("nij,nj->ni", theta["factors"][labels], noise)

    def move(rng, theta, X):
        posterior = MixturePosterior(X, prior, 2)
        space = posterior.space
        kernel = mcmc.HMC(space.value_and_grad(posterior), step_size=0.3, n_leapfrog=4, check_gradient=False)
        state = kernel.init(rng, space.unconstrain(theta))
        state, _ = kernel.step(rng, state)
        return {name: np.asarray(value) for name, value in space.constrain(state.position).items()}

    def statistics(theta, X):
        first, second = theta["factors"]
        return {
            "log odds": np.log(theta["weights"][0] / theta["weights"][1]),
            "log determinant": np.log(np.diagonal(first)).sum(),
            "slope": first[1, 0] / first[1, 1],
            "log scale": np.log(second[0, 0]),
            "means": theta["means"],
            "data": X.mean(axis=0),
        }

    X = np.random.default_rng(0).normal(size=(4, 2))
    posterior = MixturePosterior(X, prior, 2)
    start = posterior.space.unconstrain(draw_components(np.random.default_rng(1)))
    return SamplerProblem(
        "posterior of a Gaussian mixture", prior=draw_components, data=draw_rows, transition=move,
        statistics=statistics, n_steps=2, value_and_grad=posterior.space.value_and_grad(posterior), positions=[start],
    )  # fmt: skip


def dictionary_statistics(state, X):
    codes = state.weights * state.used
    clean = codes @ state.components
    return {
        "ones": int(state.used.sum()),
        "shared": int((state.used[0] * state.used[1]).sum()),
        "first atom": int(state.used[:, 0].sum()),
        "log noise": np.log(state.noise_precision),
        "log weights": np.log(state.weight_precision),
        "length": float((state.components**2).sum()),
        "power": np.log1p(float((codes**2).sum())),
        "size": np.log1p(float((clean**2).sum())),
        "fit": np.arctan(float((clean * X).sum())),
        "data": np.log1p(float((X**2).sum())),
    }


def dictionary_problem(name, **settings):
    observed = np.arange(15).reshape(5, 3) % 4 > 0 if settings.pop("missing", False) else None
    group = np.arange(5) % 2 if settings.pop("per_group", False) else np.zeros(5, dtype=np.intp)
    rows = Rows(np.zeros((5, 3)), observed, group.astype(np.intp), int(group.max()) + 1)
    kernel = DictionaryGibbs(
        rows, BetaProcessUsage(5, 4, 2.0, 1.0), 4, noise_prior=Gamma(2.0, 2.0), weight_prior=Gamma(2.0, 2.0), **settings
    )
    return SamplerProblem(
        name, prior=kernel.sample_prior, data=kernel.sample_data, transition=kernel.sweep,
        statistics=dictionary_statistics, n_steps=3,
    )  # fmt: skip


for _name, _settings in {
    "DictionaryGibbs": {},
    "DictionaryGibbs, weights not integrated out": {"collapsed": False},
    "DictionaryGibbs, missing values and two kinds of noise": {"missing": True, "per_group": True},
}.items():
    TABLE[_name] = partial(dictionary_problem, _name, **_settings)
COVERED.update({DictionaryGibbs, "pluri.factors.dictionaries.gibbs"})


@sampler("CodeGibbs", CodeGibbs)
def dictionary_codes():
    atoms = np.array([[1.0, 0.4], [0.2, -0.8], [-0.5, 0.6]])
    known = KnownDictionary(atoms, np.array([0.5, -0.5, -1.0]), 2.0, 1.0)

    def prior(rng):
        on = rng.random((1, 3)) < 1 / (1 + np.exp(-known.log_odds))
        return on * rng.standard_normal((1, 3))

    def data(rng, codes):
        return codes @ atoms + rng.standard_normal((1, 2)) / np.sqrt(2.0)

    def move(rng, codes, X):
        kernel = CodeGibbs(Rows.of(X), known)
        return kernel.step(rng, kernel.init(rng, codes))[0].position

    def statistics(codes, X):
        return {"on": (codes[0] != 0).astype(int), "codes": codes[0], "fit": float((codes @ atoms * X).sum())}

    return SamplerProblem(
        "codes given a dictionary", prior=prior, data=data, transition=move, statistics=statistics, n_steps=3,
    )  # fmt: skip


@sampler("IndianBuffetGibbs", IndianBuffetGibbs, "pluri.factors.ibp_gibbs")
def indian_buffet():
    kernel = IndianBuffetGibbs(
        np.zeros((3, 2)), Gamma(3.0, 3.0), noise_prior=Gamma(3.0, 2.0), feature_prior=Gamma(3.0, 2.0), bias_variance=0.5
    )

    def statistics(position, data):
        Z = position["Z"].astype(float)
        owners = Z.sum(axis=0)
        return {
            "features": Z.shape[1],
            "ones": Z.sum(),
            "shared": float(Z[0] @ Z[1]),
            "owned by all": int((owners == 3).sum()),
            "singles": int((owners == 1).sum()),
            "log alpha": np.log(position["concentration"]),
            "log noise": np.log(position["noise_variance"]),
            "log size": np.log(position["feature_variance"]),
            "squares": float((data**2).sum()),
            "gap": float(((data[0] - data[1]) ** 2).sum()),
        }

    return SamplerProblem(
        "collapsed Gibbs of the Indian buffet", prior=kernel.sample_prior, data=kernel.sample_data,
        transition=kernel.sweep, statistics=statistics, n_steps=3, n_convergence=15,
        log_likelihood=lambda p, X: collapsed_log_likelihood(
            X, p["Z"], float(p["noise_variance"]), float(p["feature_variance"]), 0.5
        ),
    )  # fmt: skip


@sampler("RecoveryGibbs", RecoveryGibbs, "pluri.factors.dictionaries.sensing.gibbs")
def recovery():
    return recovery_problem("a known dictionary, a projection for each row", known=True, shared=False, clustered=False)


@sampler("RecoveryGibbs, blind")
def blind_recovery():
    return recovery_problem("a dictionary from measurements alone", known=False, shared=False, clustered=False)


@sampler("RecoveryGibbs, blind and clustered, one projection")
def blind_recovery_of_clusters():
    return recovery_problem("one projection, clusters of rows", known=False, shared=True, clustered=True)


@sampler("RecoveryGibbs, known classes")
def recovery_of_known_classes():
    sticks = DirichletProcessUsage(4, 3, n_clusters=3)
    return recovery_problem("classes of codes are known", known=True, prior=KnownDirichlet(three_classes(), sticks))


@sampler("RecoveryGibbs, known classes with locations")
def recovery_of_located_classes():
    places = np.array([[0.0], [0.5], [2.0], [3.0]])
    sticks = ProbitStickUsage(
        places, 3, n_clusters=3, precision_prior=Gamma(3.0, 2.0), centers=places[:2], widths=[0.5, 2.0]
    )
    return recovery_problem("known classes with locations", known=True, prior=KnownProbit(three_classes(), sticks))


def three_classes():
    usage = np.array([[0.8, 0.3, 0.1], [0.2, 0.7, 0.5], [0.5, 0.1, 0.6]])
    variances = np.array([[0.5, 1.0, 2.0], [3.0, 0.7, 1.0], [0.2, 0.3, 0.4]])
    return CodeClasses(np.array([0.5, 0.3, 0.2]), usage, variances, 0.1)


def recovery_problem(name, *, known, shared=False, clustered=False, prior=None):
    rng = np.random.default_rng(0)
    n_rows, n, P, K = 4, 2, 3, 3
    projections = rng.normal(size=(n, P) if shared else (n_rows, n, P))
    if prior is None:
        prior = DirichletProcessUsage(n_rows, K, 2.0, 1.0, 2) if clustered else BetaProcessUsage(n_rows, K, 2.0, 1.0)
    kernel = RecoveryGibbs(
        Measurements(np.zeros((n_rows, n)), projections), prior, rng.normal(size=(K, P)) if known else K,
        Gamma(3.0, 2.0), Gamma(3.0, 2.0),
    )  # fmt: skip
    known_classes = isinstance(prior, KnownClasses)

    def statistics(position, data):
        signals = position.weights @ position.components
        return {
            "ones": position.used.sum(),
            "all of row 0": position.used[0].sum(),
            "rows alike": float((position.used[0] == position.used[1]).sum()),
            "log noise": float(np.log(position.noise_precision[0])),
            "log weights": np.log(position.weight_precision),
            "signal": float(signals[0, 0]),
            "power": float((signals**2).sum()),
            "atoms": float((position.components**2).sum()),
            "cross": float((signals[1] * position.components[0]).sum()),
            "squares": float((data**2).sum()),
            "data and signal": float((data[:, 0] * signals[:, 0]).sum()),
        } | ({"class of row 0": position.usage.labels[0]} if known_classes else {})

    def log_likelihood(position, data):
        squares = float(((data - kernel.data.seen(position.weights @ position.components)) ** 2).sum())
        noise = float(position.noise_precision[0])
        return 0.5 * data.size * np.log(noise) - 0.5 * noise * squares

    return SamplerProblem(
        name, prior=kernel.sample_prior, data=kernel.sample_data, transition=kernel.sweep, statistics=statistics,
        n_steps=3, n_convergence=15, log_likelihood=log_likelihood,
    )  # fmt: skip


@sampler("Ising", LabelGibbs, "pluri.processes.ising.gibbs")
def ising():
    rng = np.random.default_rng(0)
    field = LabelField(rng.normal(size=(1, 1, 2, 3, 2)), agreement=0.7)
    shape = (1, 1, 2, 3)
    posterior = enumerate_posterior(lambda z: field.log_density(z.reshape(shape).astype(np.int8)), [[0, 1]] * 6)
    kernel = LabelGibbs(field)

    def move(rng, labels):
        state = kernel.init(rng, {"labels": labels.reshape(shape)})
        return kernel.step(rng, state)[0].position["labels"].reshape(-1)

    return SamplerProblem("Ising Gibbs", kernel=move, posterior=posterior, n_steps=2)


@sampler("ClampedGibbs", ClampedGibbs, "pluri.factors.rbm_chains")
def boltzmann_machine():
    """Five visible units, one of them held at one."""
    rng = np.random.default_rng(1)
    machine = Machine(rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=3))
    posterior = enumerate_posterior(
        lambda free: float(-machine.free_energy(np.append(free, 1.0)[None])[0]), [[0, 1]] * 4
    )
    kernel = ClampedGibbs(machine, np.arange(5)[None] == 4)

    def move(rng, free):
        state = kernel.init(rng, {"visible": np.append(free, 1.0)[None]})
        return kernel.step(rng, state)[0].visible[0, :4].astype(np.int64)

    return SamplerProblem("Boltzmann machine Gibbs", kernel=move, posterior=posterior, n_steps=2)


@sampler("PolyaGammaGibbs", PolyaGammaGibbs)
def polya_gamma():
    """Latent functions of a classifier and their labels."""
    covariance = np.array([[1.5, 0.8, 0.2], [0.8, 1.5, 0.8], [0.2, 0.8, 1.5]])
    root = np.linalg.cholesky(covariance)
    return SamplerProblem(
        "Polya-Gamma Gibbs",
        prior=lambda rng: root @ rng.standard_normal(3),
        data=lambda rng, f: np.where(rng.random(3) < 1.0 / (1.0 + np.exp(-f)), 1.0, -1.0),
        transition=kernel_transition(lambda labels: PolyaGammaGibbs(covariance, root, labels)),
        n_steps=3,
        n_convergence=20,
    )


# State-space models --------------------------------------------------------------------------------------------------


def walk(drift):
    return LinearGaussianModel(float(drift), 1.0, 1.0, 0.5, 0.0, 1.0)


def draw_path(rng, drift, n_steps=3):
    path = [rng.standard_normal()]
    while len(path) < n_steps:
        path.append(drift * path[-1] + rng.standard_normal())
    return np.array(path)[:, None]


def draw_readings(rng, path):
    return path[:, 0] + np.sqrt(0.5) * rng.standard_normal(len(path))


def particle_gibbs(name, ancestor_sampling):
    """Paths and the drift of a walk, whose conditional is normal; with few particles mistakes are plain."""

    def update(rng, path, parameters):
        before, after = path[:-1, 0], path[1:, 0]
        precision = 1.0 + before @ before
        return rng.normal(before @ after / precision, precision**-0.5, size=1)

    def prior(rng):
        drift = rng.standard_normal(1)
        return {"path": draw_path(rng, drift[0]), "parameters": drift}

    def kernel(y):
        return ParticleGibbs(
            lambda parameters: walk(parameters[0]), y, update, n_particles=3, ancestor_sampling=ancestor_sampling
        )

    def fit(theta, y):
        steps = theta["path"][1:, 0] - theta["parameters"][0] * theta["path"][:-1, 0]
        return float(-0.5 * steps @ steps - ((y - theta["path"][:, 0]) ** 2).sum())

    return SamplerProblem(
        name, prior=prior, data=lambda rng, theta: draw_readings(rng, theta["path"]),
        transition=kernel_transition(kernel), log_likelihood=fit, n_steps=3,
    )  # fmt: skip


for _ancestors in (True, False):
    _name = f"ParticleGibbs{', ancestor sampling' if _ancestors else ''}"
    TABLE[_name] = partial(particle_gibbs, _name, _ancestors)
COVERED.update({ParticleGibbs, "pluri.inference.smc.particle_gibbs"})


@sampler("ParticleMarginalMetropolis", ParticleMarginalMetropolis, "pluri.inference.smc.particle_metropolis")
def particle_metropolis():
    """Chains begin with an estimate that is not one of their stationary distribution; fifty particles hide that."""

    def kernel(y):
        return ParticleMarginalMetropolis(
            lambda theta: walk(theta[0]), lambda theta: -0.5 * float(theta @ theta), y, n_particles=50, step_size=1.0
        )

    return SamplerProblem(
        "ParticleMarginalMetropolis",
        prior=lambda rng: rng.standard_normal(1),
        data=lambda rng, theta: draw_readings(rng, draw_path(rng, theta[0])),
        transition=kernel_transition(kernel, n_steps=10),
        n_steps=1,
    )


# Subsets of a determinantal point process -----------------------------------------------------------------------------

SUBSET_KERNEL = np.array([[1.5, 0.9, 0.2, 0.0], [0.9, 1.0, 0.5, 0.3], [0.2, 0.5, 0.8, -0.4], [0.0, 0.3, -0.4, 2.0]])


def subset_problem(name, kernel, size=None):
    """All subsets, or those of one size, with their determinants."""

    def log_determinant(included):
        items = np.flatnonzero(included)
        return float(np.linalg.slogdet(SUBSET_KERNEL[np.ix_(items, items)])[1]) if len(items) else 0.0

    def move(rng, included):
        return kernel.step(rng, kernel.init(rng, {"included": included}))[0].included.astype(int)

    sizes = range(5) if size is None else [size]
    sets = [np.isin(np.arange(4), items).astype(int) for k in sizes for items in combinations(range(4), k)]
    posterior = enumerate_posterior(log_determinant, configurations=sets)
    return SamplerProblem(name, kernel=move, posterior=posterior, reversible=True, n_steps=2)


for _name, _kernel, _size in (
    ("AddDelete", AddDelete(SUBSET_KERNEL, n_inner=3), None),
    ("AddDelete, Metropolis", AddDelete(SUBSET_KERNEL, rule="metropolis", n_inner=3), None),
    ("AddDelete, lazy Metropolis", AddDelete(SUBSET_KERNEL, rule="metropolis", lazy=True, n_inner=3), None),
    ("AddDelete, swaps", AddDelete(SUBSET_KERNEL, swaps=True, n_inner=3), None),
    ("Exchange", Exchange(SUBSET_KERNEL, n_inner=3), 2),
    ("Exchange, heat bath", Exchange(SUBSET_KERNEL, rule="heat_bath", n_inner=3), 3),
):
    TABLE[_name] = partial(subset_problem, _name, _kernel, _size)
COVERED.update({AddDelete, Exchange})


@sampler("PointGibbs", PointGibbs, "pluri.processes.dpp.continuous.point_gibbs")
def repelling_points():
    """Three points in the plane that repel each other, against exact draws by Hermite functions."""
    process = GaussianContinuousDPP([0.8, 0.5], [1.0, 0.7])
    return SamplerProblem(
        "Gibbs on the points of a continuous k-DPP",
        kernel=PointGibbs(process.kernel, NormalBase([0.0, 0.0], [1.0, 0.7]), bound=1.0),
        exact_draws=lambda rng: {"points": process.sample(size=3, random_state=rng)},
        reversible=True,
        n_steps=1,
        initial={"points": np.array([[3.0, 3.0], [-3.0, 3.0], [0.0, -3.0]])},
        n_convergence=15,
    )


# Problems that are kept beside the other tests of their sampler ------------------------------------------------------


def elsewhere(name, file, function, *arguments, covers=()):
    """Put the problem that a function of another test file makes into the table."""

    @sampler(name, *covers)
    def problem():
        spec = spec_from_file_location(Path(file).stem, Path(__file__).parent / file)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, function)(*arguments)

    return problem


elsewhere(
    "ExpertsGibbs", "mixtures/test_experts.py", "sampler_problem",
    covers=(KERNELS["ExpertsGibbs"], "pluri.mixtures.experts.gibbs"),
)  # fmt: skip
elsewhere(
    "DependentClusterGibbs", "mixtures/test_dependent_dirichlet_mixture.py", "sampler_problem",
    covers=(KERNELS["DependentClusterGibbs"], "pluri.mixtures.batches.dependent_gibbs"),
)  # fmt: skip
elsewhere(
    "FactorMixtureGibbs", "mixtures/test_factor_analyzers_nonparametric.py", "factor_mixture_problem",
    covers=(KERNELS["FactorMixtureGibbs"], "pluri.mixtures.factor_analyzers.nonparametric_gibbs"),
)  # fmt: skip
for noise, rank in product(("diag", "isotropic"), ("fixed", "inferred")):
    elsewhere(
        f"FactorAnalysisGibbs, {noise}, {rank}", "factors/test_factor_analysis.py", "factor_analysis_problem",
        noise, rank, covers=(KERNELS["FactorAnalysisGibbs"], "pluri.factors.factor_analysis_gibbs"),
    )  # fmt: skip

for kind in ("dp", "psbp"):
    elsewhere(
        f"DictionaryGibbs, {kind}", "factors/dictionaries/usage/test_clustered_dictionaries.py", "dictionary_problem",
        kind, covers=(KERNELS["DictionaryGibbs"], "pluri.factors.dictionaries.gibbs"),
    )  # fmt: skip
elsewhere(
    "PatternGibbs", "factors/dictionaries/usage/test_patterns.py", "pattern_problem", covers=(KERNELS["PatternGibbs"],)
)
elsewhere("clusters of a dictionary, dp", "factors/dictionaries/usage/test_clusters.py", "dirichlet_problem")
elsewhere("clusters of a dictionary, psbp", "factors/dictionaries/usage/test_probit_sticks.py", "probit_problem")
for n_centers in (2, 8):
    elsewhere(
        f"surfaces of sticks, {n_centers} centers", "factors/dictionaries/usage/test_probit_sticks.py",
        "surface_problem", n_centers,
    )  # fmt: skip

for shared, learned in product((False, True), repeat=2):
    for kernel, function, module in (
        ("SpectralRegressionGibbs", "spectral_problem", "gibbs"), ("AlignedGibbs", "aligned_problem", "aligned_gibbs"),
    ):  # fmt: skip
        elsewhere(
            f"{kernel}, {'shared' if shared else 'own'} support, {'learned' if learned else 'fixed'} scales",
            "embedding/regression/test_samplers.py", function, shared, learned,
            covers=(KERNELS[kernel], f"pluri.embedding.regression.{module}"),
        )  # fmt: skip

for shared, intercept in ((True, True), (False, True), (False, False)):
    elsewhere(
        f"RegionGibbs, {'shared' if shared else 'own'} matrices, {'with' if intercept else 'without'} intercept",
        "dynamics/regions/test_sampler.py", "region_problem", shared, intercept,
        covers=(KERNELS["RegionGibbs"], "pluri.dynamics.regions.gibbs"),
    )  # fmt: skip

for title, function, arguments in (
    ("three components", "finite_problem", ()),
    ("a process", "process_problem", ()),
    ("three components, concentration learned", "joint_problem", (3,)),
    ("a process, concentration learned", "joint_problem", (None,)),
    ("holes", "problem_with_holes", ()),
):
    elsewhere(
        f"BernoulliGibbs, {title}", "mixtures/test_bayesian_bernoulli.py", function, *arguments,
        covers=(
            KERNELS["BernoulliGibbs"], "pluri.mixtures.bayesian_bernoulli.gibbs",
            "pluri.mixtures.bayesian_bernoulli._gibbs_kernels",
        ),
    )  # fmt: skip

for family, kind in (("gaussian", "restricted split-merge"), ("multinomial", "slices")):
    elsewhere(
        f"partitions, {family}, {kind}", "mixtures/test_dirichlet_process_samplers.py", "partition_problem",
        family, kind,
        covers=(
            mixtures_gibbs.CollapsedGibbs, KERNELS["SliceGibbs"], KERNELS["PartitionPosterior"],
            "pluri.mixtures.dirichlet_process.collapsed_gibbs", "pluri.mixtures.dirichlet_process.slice_gibbs",
        ),
    )  # fmt: skip

INFINITE = (KERNELS["BeamSampler"], KERNELS["DirectSampler"], KERNELS["WeakLimitSampler"], KERNELS["StatePosterior"])
for kind, family in (("beam", "diag"), ("direct", "categorical"), ("weak_limit", "poisson")):
    elsewhere(
        f"InfiniteHMM, {kind}, {family}", "sequences/infinite/test_samplers.py", "joint_problem", kind, family,
        covers=INFINITE,
    )  # fmt: skip

for name in ("poisson", "negative_binomial"):
    elsewhere(
        f"InfiniteHMM, durations, {name}", "sequences/infinite/test_durations.py", "joint_problem", name,
        covers=(KERNELS["SemiMarkovSampler"],),
    )  # fmt: skip

# Topic models --------------------------------------------------------------------------------------------------------

for method, arguments in (("dense", ()), ("sparse", ()), ("sparse", ((3,),)), ("dense", ((2, 3),))):
    elsewhere(
        f"topics, {method} {arguments}", "topics/test_lda_gibbs.py", "enumeration_problem", method, *arguments,
        covers=(lda_gibbs.CollapsedGibbs, lda_gibbs.__name__, "pluri.topics.lda.sampling._gibbs_kernels"),
    )  # fmt: skip
for method, arguments in (("dense", ()), ("sparse", ()), ("dense", (True,))):
    elsewhere(f"topics, joint, {method} {arguments}", "topics/test_lda_gibbs.py", "joint_problem", method, *arguments)
HDP_GIBBS = (KERNELS["TopicGibbs"], *(f"pluri.topics.hdp.{name}" for name in ("gibbs", "_gibbs_kernels", "gibbs_fit")))
for n_proposals in (0, 2):
    elsewhere(
        f"HDP topics, {n_proposals} splits and merges", "topics/test_hdp_gibbs.py", "enumeration_problem", n_proposals,
        covers=HDP_GIBBS,
    )  # fmt: skip
elsewhere("HDP topics, joint", "topics/test_hdp_gibbs.py", "joint_problem")
for case in ("nsd", "sd", "slice sd"):
    elsewhere(
        f"TreeGibbs, {case}", "topics/test_tree_topics_sampler.py", "tree_problem", case,
        covers=(KERNELS["TreeGibbs"], "pluri.topics.tree.gibbs"),
    )  # fmt: skip
GRAPH_GIBBS = (
    KERNELS["ConceptGraphGibbs"],
    *(f"pluri.topics.concept_graph.sampling.{name}" for name in ("gibbs", "path_sampler")),
)  # fmt: skip
for kind in ("learned", "dirichlet"):
    elsewhere(
        f"ConceptGraphGibbs, {kind}", "topics/test_concept_graph_sampler.py", "concept_graph_problem", kind,
        covers=GRAPH_GIBBS,
    )  # fmt: skip
for kind in ("dirichlet", "gem"):
    elsewhere(
        f"NestedCRPGibbs, {kind}", "topics/test_hierarchical_lda.py", "enumeration_problem", kind,
        covers=(KERNELS["NestedCRPGibbs"], "pluri.topics.hierarchical.nested_crp_gibbs"),
    )  # fmt: skip
for learn in (True, False):
    elsewhere(f"NestedCRPGibbs, joint, {learn}", "topics/test_hierarchical_lda.py", "joint_problem", learn)
for function in ("enumeration_problem", "joint_problem"):
    elsewhere(
        f"PachinkoGibbs, {function}", "topics/test_pachinko.py", function,
        covers=(KERNELS["PachinkoGibbs"], "pluri.topics.hierarchical.pachinko_gibbs"),
    )  # fmt: skip
for kernel, function in (("RatingsGibbs", "ratings_problem"), ("ClassesGibbs", "classes_problem")):
    elsewhere(
        kernel, "topics/test_supervised_lda.py", function,
        covers=(KERNELS[kernel], "pluri.topics.supervised.gibbs", "pluri.topics.supervised._gibbs_kernels"),
    )  # fmt: skip


# The tests -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLE)
def test_sampler_is_correct(name):
    """False-alarm rate 1e-6 for each sampler, 1e-4 for the whole table; more stages keep the power."""
    check_sampler(TABLE[name](), alpha=1e-6, max_stages=6, n_replications=100, random_state=0).raise_if_failed()


# A second opinion: four times the draws in the first stage, which then finds smaller mistakes.
@pytest.mark.thorough
@pytest.mark.parametrize("name", TABLE)
def test_sampler_is_correct_seen_closely(name):
    check_sampler(TABLE[name](), alpha=1e-6, max_stages=5, n_replications=400, random_state=1).raise_if_failed()


def _other_prior(log_density, x, rng, **settings):
    return SLICE_SAMPLE(lambda value: log_density(value) + value, x, rng, **settings)


def _one_table_less(rng, alpha, sizes, n_tables, prior):
    return DRAW_GROUP_CONCENTRATION(rng, alpha, sizes, n_tables - 1, prior)


SLICE_SAMPLE = collapsed_gibbs.slice_sample
DRAW_GROUP_CONCENTRATION = grouped_mixture.draw_group_concentration
#: Sampler, module, name in it, and a wrong function to put there.
MUTANTS = {
    "doubling without the way back": (
        "Slice, two modes, coordinate, double", slice_intervals, "_reaches", lambda *arguments: True,
    ),
    "a flat prior of the concentrations": ("BayesianCategoricalHMM", collapsed_gibbs, "slice_sample", _other_prior),
    "one table less": ("FranchiseGibbs", grouped_mixture, "draw_group_concentration", _one_table_less),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_table_would_notice_a_mistake(mutant, monkeypatch):
    name, module, function, wrong = MUTANTS[mutant]
    monkeypatch.setattr(module, function, wrong)
    assert not check_sampler(TABLE[name](), alpha=1e-3, n_replications=400, random_state=0).passed


def test_every_kernel_is_in_the_table():
    found = set(KERNELS.values())
    assert {mcmc.NUTS, mcmc.HMC, Slice, Gibbs} <= found
    assert found <= COVERED, f"not tested: {sorted(kernel.__name__ for kernel in found - COVERED)}"


def test_every_gibbs_sampler_is_in_the_table():
    found = set(modules(r"gibbs|_sampler$|metropolis|direct_assignment|slice_sampling"))
    assert "pluri.sequences.sampled.collapsed_gibbs" in found
    assert found <= COVERED, f"not tested: {sorted(found - COVERED)}"
