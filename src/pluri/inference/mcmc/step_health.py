"""What the steps of chains tell about them: divergences, energies, acceptance, and blocks that stand still."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from pluri.inference.mcmc.trace import Trace

#: Halves of a chain shorter than four draws have no effective size.
LEAST_DRAWS = 8
#: E-BFMI of a chain below which its energy moves too slowly, and draws from which it can be told.
E_BFMI_LIMIT, E_BFMI_DRAWS = 0.3, 100
#: Healthy mean acceptance of a kernel that says nothing of its own: all but the refusal of almost everything.
ANY_ACCEPTANCE = (0.02, 1.0)
#: Mean acceptance below which a block that never changed did so because its proposals were refused.
ALL_REFUSED = 1e-3


def e_bfmi(energy: ArrayLike) -> NDArray[np.float64]:
    """Energy Bayesian fraction of missing information of each chain: how far one step moves along the energy [1]_.

    ``sum (E_t - E_{t-1})^2 / sum (E_t - mean)^2``, about 1 for a normal target. Below 0.3 the momenta, drawn anew at
    each step, change the energy by so little that the tails of the target are hardly reached.

    Parameters
    ----------
    energy : array-like of shape (n_chains, n_draws)
        ``trace.stats["energy"]`` of a Hamiltonian kernel, not thinned.

    Returns
    -------
    ndarray of shape (n_chains,)
        NaN for a chain whose energy never changes.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc import e_bfmi
    >>> noise = np.random.default_rng(0).normal(size=(1, 10_000))
    >>> e_bfmi(noise).round(1), e_bfmi(noise.cumsum(axis=1)) < 0.01
    (array([2.]), array([ True]))

    References
    ----------
    .. [1] Betancourt, M. (2016). Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte Carlo.
       arXiv:1604.00695.
    """
    values = np.atleast_2d(np.asarray(energy, dtype=np.float64))
    spread = ((values - values.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    moved = (np.diff(values, axis=1) ** 2).sum(axis=1)
    return np.divide(moved, spread, out=np.full(len(values), np.nan), where=spread > 0)


def about_steps(trace: Trace) -> list[str]:
    """What the steps of whole chains tell, a sentence for each problem."""
    problems = []
    stats = trace.stats
    divergent = int((np.asarray(stats.get("divergent", 0)) > 0).sum())
    if divergent:
        problems.append(
            f"{divergent} of {trace.n_chains * trace.n_draws} trajectories diverged: parts of the target are too "
            "curved for the step size, and draws near them are missing. Raise target_accept, or reparameterise."
        )
    problems += _about_energy(trace)
    undefined = int((np.asarray(stats.get("undefined", 0)) > 0).sum())
    if undefined:
        problems.append(f"The log density was NaN at the proposals of {undefined} draws; they were refused.")
    values = np.asarray(stats.get("log_density", ()))
    if values.size > 1 and np.ptp(values) == 0 and "accepted" in stats and np.all(stats["accepted"] == 1):
        problems.append(
            "The log density is the same at every draw and nothing was refused: a flat target on the whole space "
            "cannot be normalised, and the chains wander off."
        )
    limits = {end.kernel.max_tree_depth for end in trace.ends if hasattr(end.kernel, "max_tree_depth")}
    if limits and "tree_depth" in stats:
        full = int((stats["tree_depth"] >= min(limits)).sum())
        if full > 0.05 * stats["tree_depth"].size:
            problems.append(
                f"{full} trajectories reached the greatest depth {min(limits)}: they are cut short. Rescale the "
                "variables, learn a dense metric, or raise max_tree_depth."
            )
    for end in trace.ends[:1]:
        limits_of_kernel = getattr(end.kernel, "healthy_acceptance", (0.0, 1.0))
        problems += _about_acceptance("", stats.get("acceptance"), limits_of_kernel)
    return problems


def _about_energy(trace: Trace) -> list[str]:
    """Whether the energy of Hamiltonian chains moves too slowly; means over several steps cannot tell."""
    energy = np.asarray(trace.stats.get("energy", ()))
    if energy.ndim != 2 or energy.shape[1] < E_BFMI_DRAWS or trace.thin > 1:
        return []
    found = e_bfmi(energy)
    n_low = int((found < E_BFMI_LIMIT).sum())
    if not n_low:
        return []
    return [
        f"The energy moves slowly in {n_low} of {trace.n_chains} chains: E-BFMI is {np.nanmin(found):.2f}, below "
        f"{E_BFMI_LIMIT:g}, so that the tails of the target, or the neck of a funnel, are hardly reached. "
        "Reparameterise (non-centred effects, a logarithm for a scale), or give heavy tails a tighter prior."
    ]


def about_blocks(trace: Trace) -> list[str]:
    """What the steps of the parts of a kernel tell: blocks that never change, and acceptance block by block."""
    kernel: Any = trace.ends[0].kernel if trace.ends else None
    stats = {
        name[len("acceptance[") : -1]: values for name, values in trace.stats.items() if name[:11] == "acceptance["
    }
    blocks: Mapping[str, tuple[str, ...]] = kernel.block_names() if hasattr(kernel, "block_names") else {}
    blocks = {label: (label,) for label in stats} | dict(blocks)
    limits: Mapping[str, tuple[float, float]] = {}
    if hasattr(kernel, "healthy_acceptances"):
        limits = kernel.healthy_acceptances(trace.ends[0].position)
    problems = []
    for label, names in blocks.items():
        told = stats[label][~np.isnan(stats[label])] if label in stats else np.empty(0)
        refused = told.size > 0 and float(told.mean()) < ALL_REFUSED
        still = _still_chains(trace, names, refused)
        if still:
            where = f"all {trace.n_chains} chains" if still == trace.n_chains else f"{still} of {trace.n_chains} chains"
            problems.append(f"Block {label!r} never changed in {where}: {_what_to_do(label in stats, refused)}")
        elif label in stats:
            problems += _about_acceptance(label, stats[label], limits.get(label, ANY_ACCEPTANCE))
    return problems


def _still_chains(trace: Trace, names: tuple[str, ...], refused: bool) -> int:
    """In how many chains a block has the same values at all draws.

    That a whole number does not change is no fault, as its posterior may be one value, unless its proposals were all
    refused.
    """
    values = [trace.draws[name] for name in names if name in trace.draws]
    if trace.n_draws < LEAST_DRAWS or not all(part.size and (refused or part.dtype.kind in "fc") for part in values):
        return 0
    if not values:  # not recorded
        return trace.n_chains if refused else 0
    moved = [(part != part[:, :1]).reshape(trace.n_chains, -1).any(axis=1) for part in values]
    return int((~np.any(moved, axis=0)).sum())


def _what_to_do(has_kernel: bool, refused: bool) -> str:
    if refused:
        return (
            "every proposal of its kernel was refused. Give its kernel shorter steps, let the warm-up learn them "
            "(n_warmup above 0, adapt=True), or take a kernel that cannot be refused (Slice)."
        )
    if has_kernel:
        return "its kernel stands still. Give it shorter steps and a longer warm-up, or take another kernel (Slice)."
    return (
        "its function must return a new draw from the conditional distribution each time, with the rng that it is "
        "given, and not the value that was there."
    )


def _about_acceptance(label: str, acceptance: Any, limits: tuple[float, float]) -> list[str]:
    """Whether the mean acceptance of a kernel, or of one block, is too low or too high."""
    low, high = limits
    values = np.asarray(() if acceptance is None else acceptance, dtype=np.float64)
    values = values[~np.isnan(values)]
    if not values.size or low <= (rate := float(values.mean())) <= high:
        return []
    whose, its, a_kernel = (f" of block {label!r}", "its", "its kernel") if label else ("", "the", "the kernel")
    bad, better = ("long", "shorter") if rate < low else ("short", "longer")
    return [
        f"The mean acceptance{whose} is {rate:.2g}, outside {low:g} to {high:g}: {its} steps are too {bad}. Give "
        f"{a_kernel} {better} ones, or a longer warm-up to learn them."
    ]
