"""A recovery by chains of the Gibbs sampler, or by variational Bayes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.factors.dictionaries.gibbs import FLAT
from pluri.factors.dictionaries.records import Array, DictionaryState
from pluri.factors.dictionaries.sensing.gibbs import RecoveryChain, RecoveryGibbs
from pluri.factors.dictionaries.sensing.measurements import Measurements
from pluri.factors.dictionaries.usage.beta_process import BetaProcessUsage
from pluri.factors.dictionaries.usage.clusters import settled_within
from pluri.factors.dictionaries.usage.code_classes import CodeClasses
from pluri.factors.dictionaries.usage.protocol import UsagePrior
from pluri.inference import mcmc
from pluri.validation import as_generator

if TYPE_CHECKING:
    from pluri.factors.dictionaries.sensing.recovery import CompressiveRecovery


@dataclass(frozen=True, eq=False)
class Recovered:
    """What a recovery gives, in the units of `Measurements`.

    Attributes
    ----------
    components, codes, usage : the dictionary, the means of the codes, and the share of the rows that use each atom
    mean, variance : of the rows without noise
    noise_variance, weight_variance : float
    labels : cluster of each row, or None
    trace, bound : of chains, or of an ascent
    """

    components: Array
    codes: Array
    usage: Array
    mean: Array
    variance: Array
    noise_variance: float
    weight_variance: float
    converged: bool
    n_iter: int
    interrupted: bool
    labels: NDArray[np.intp] | None = None
    trace: Any = None
    bound: list[float] | None = None


def usage_of(model: CompressiveRecovery, data: Measurements, n_components: int, locations: Any) -> UsagePrior:
    """The prior of which row uses which atom that an estimator asks for."""
    n = len(data.values)
    a, b = float(data.values.shape[1] if model.a is None else model.a), float(model.b)
    if model.usage_prior == "beta_process":
        return BetaProcessUsage(n, n_components, a, b)
    if model.usage_prior == "dp":
        from pluri.factors.dictionaries.usage.dirichlet_process import DirichletProcessUsage

        return DirichletProcessUsage(n, n_components, a, b, int(model.n_clusters))
    from pluri.factors.dictionaries.usage.probit_sticks import ProbitStickUsage, check_locations

    return ProbitStickUsage(check_locations(locations, n), n_components, a, b, int(model.n_clusters))


def known_usage(model: CompressiveRecovery, data: Measurements, classes: CodeClasses, locations: Any) -> UsagePrior:
    """The prior with what a fitted dictionary knows of codes."""
    from pluri.factors.dictionaries.usage.known_classes import KnownDirichlet, KnownProbit

    known = classes.pooled() if model.usage_prior == "beta_process" else classes
    L, K = known.usage.shape
    n = len(data.values)
    if model.usage_prior == "psbp":
        from pluri.factors.dictionaries.usage.probit_sticks import ProbitStickUsage, check_locations

        return KnownProbit(known, ProbitStickUsage(check_locations(locations, n), K, n_clusters=L))
    from pluri.factors.dictionaries.usage.dirichlet_process import DirichletProcessUsage

    return KnownDirichlet(known, DirichletProcessUsage(n, K, n_clusters=L))


def recover_by_gibbs(
    model: CompressiveRecovery, data: Measurements, atoms: Array | None, locations: Any,
    classes: CodeClasses | None = None,
) -> Recovered:  # fmt: skip
    """Run the chains of an estimator."""
    K = int(model.n_components) if atoms is None else len(atoms)
    if classes is None:
        usage = usage_of(model, data, K, locations)
    else:
        usage = known_usage(model, data, classes, locations)
    kernel = RecoveryGibbs(
        data, usage, K if atoms is None else atoms, model.noise_prior or FLAT, model.weight_prior or FLAT
    )

    def start(rng: np.random.Generator) -> DictionaryState:
        state = kernel.start(rng)
        return replace(state, usage=settled_within(state.usage, int(model.n_warmup)))

    trace = mcmc.sample(
        kernel, start, record=kernel.record, n_draws=int(model.n_draws), n_warmup=int(model.n_warmup),
        n_chains=int(model.n_chains), thin=int(model.thin), random_state=as_generator(model.random_state),
        n_jobs=model.n_jobs, backend="threads", verbose=int(model.verbose), warn=False,
    )  # fmt: skip
    states: list[RecoveryChain] = [end.state for end in trace.ends]
    best = max(states, key=lambda state: state.best_log_density)
    chosen = best.best
    each = [state.totals for state in states if state.totals.n_draws]
    if not each:  # interrupted in the warm-up
        rows = data.whole(chosen.weights @ chosen.components)
        each = [best.totals.plus(chosen, rows, chosen.weights, rows)]
    n_draws = sum(part.n_draws for part in each)
    mean = sum(part.values for part in each) / n_draws
    drawn = sum(part.drawn for part in each) / n_draws
    variance = np.maximum(sum(part.squares for part in each) / n_draws - drawn**2, 0.0)
    noise_variance = sum(part.noise_variance for part in each) / n_draws
    if data.spread is not None:
        variance = variance + noise_variance * data.spread[:, None]
    codes = sum(part.codes for part in each) / n_draws
    verdict = trace.verdict("log_density", limit=mcmc.LATENT_R_HAT_LIMIT)
    return Recovered(
        components=chosen.components.copy(),
        codes=chosen.weights.copy() if atoms is None else codes,
        usage=(chosen.used.mean(axis=0) if atoms is None else sum(p.used for p in each).mean(axis=0) / n_draws),
        mean=mean,
        variance=variance,
        noise_variance=noise_variance,
        weight_variance=_weight_variance(kernel, chosen, sum(part.weight_variance for part in each) / n_draws),
        converged=verdict.settled,
        n_iter=int(model.n_warmup) + trace.n_draws * int(model.thin),
        interrupted=trace.interrupted,
        labels=None if model.usage_prior == "beta_process" else chosen.usage.labels,
        trace=replace(trace.detached(), ends=()),  # an end holds codes of all the data
    )


def _weight_variance(kernel: RecoveryGibbs, position: DictionaryState, variance: float) -> float:
    """Mean variance of the weights in use."""
    if kernel.classes is None:
        return variance
    relative = kernel.relative_variances(position.usage)
    return variance * float((relative * position.used).sum() / max(position.used.sum(), 1))


def recover_by_vb(
    model: CompressiveRecovery, data: Measurements, atoms: Array | None, locations: Any,
    classes: CodeClasses | None = None,
) -> Recovered:  # fmt: skip
    """Raise the bound of an estimator; classes of codes are not made use of."""
    from pluri.factors.dictionaries.variational import recover_codes

    assert atoms is not None  # the estimator has refused it
    Phi = np.swapaxes(data.measured(atoms), -1, -2)
    found = recover_codes(
        data.values, Phi, n_clusters=int(model.n_clusters) if model.usage_prior == "dp" else 1,
        a=None if model.a is None else float(model.a), b=float(model.b), noise_prior=model.noise_prior or FLAT,
        weight_prior=model.weight_prior or FLAT, random_state=model.random_state, max_iter=int(model.max_iter),
        tol=float(model.tol), verbose=int(model.verbose),
    )  # fmt: skip
    noise_variance = float(found.noise_variance[0])
    mean, std = found.reconstruct(atoms, return_std=True)
    variance = std**2
    if data.gain is not None and data.spread is not None:
        variance = _variance_with_constant(found, data, atoms) + noise_variance * data.spread[:, None]
    return Recovered(
        components=atoms.copy(),
        codes=found.codes,
        usage=found.used.mean(axis=0),
        mean=data.whole(mean),
        variance=variance,
        noise_variance=noise_variance,
        weight_variance=found.weight_variance,
        converged=found.converged,
        n_iter=found.n_iter,
        interrupted=found.interrupted,
        labels=found.labels if model.usage_prior == "dp" else None,
        bound=found.trace.tolist(),
    )


def _variance_with_constant(found: Any, data: Measurements, atoms: Array) -> Array:
    """Variances of rows whose constant moves with them: those of atoms from which what it takes up is subtracted."""
    gain = np.asarray(data.gain)
    if len(gain) == 1:
        moved = atoms - (atoms @ gain[0])[:, None]
        return np.asarray(found.reconstruct(moved, return_std=True)[1] ** 2)
    variance = np.empty((len(gain), atoms.shape[1]))
    for i, each in enumerate(gain):
        one = slice(i, i + 1)
        measured = type(found.data.measured)(found.data.measured.values[one], found.data.measured.atoms[one])
        alone = replace(
            found, codes=found.codes[one], data=replace(found.data, measured=measured, groups=found.data.groups[one]),
            beliefs=replace(found.beliefs, codes=type(found.beliefs.codes)(*(p[one] for p in found.beliefs.codes))),
        )  # fmt: skip
        variance[i] = alone.reconstruct(atoms - (atoms @ each)[:, None], return_std=True)[1][0] ** 2
    return variance
