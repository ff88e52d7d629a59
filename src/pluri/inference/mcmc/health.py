"""What is wrong with a set of chains, said in words with what to do about it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from pluri.inference.mcmc import diagnostics
from pluri.inference.mcmc.summary import each_number

if TYPE_CHECKING:
    from pluri.inference.mcmc.trace import Trace

R_HAT_LIMIT = 1.01
ESS_PER_CHAIN = 100
#: Halves of a chain shorter than four draws have no effective size.
LEAST_DRAWS = 8
#: Numbers looked at, so that a trace of a large latent array does not take longer to check than to make.
MOST_NUMBERS = 2000


def find_problems(trace: Trace) -> list[str]:
    """One sentence for each thing that should make a reader careful."""
    problems = _about_steps(trace)
    if 0 < trace.n_draws < LEAST_DRAWS:
        problems.append(
            f"There are only {trace.n_draws} draws of each chain: at least {LEAST_DRAWS} are needed to tell whether "
            "chains agree, and many more to use them."
        )
    still, apart, few = [], [], []
    checked = 0
    for name, values in each_number(trace.draws):
        checked += 1
        if checked > MOST_NUMBERS:
            break
        if values.size == 0:
            continue
        if not np.isfinite(values).all():
            problems.append(f"{name} is not finite at {int((~np.isfinite(values)).sum())} draws.")
            continue
        if np.ptp(values) == 0:
            still.append(name)
            continue
        if trace.n_chains > 1:
            value = diagnostics.r_hat(values)
            if value > R_HAT_LIMIT:
                apart.append((value, name))
        worth = min(diagnostics.ess_bulk(values), diagnostics.ess_tail(values))
        if worth < ESS_PER_CHAIN * trace.n_chains:
            few.append((worth, name))
    if apart:
        value, name = max(apart)
        problems.append(
            f"The chains disagree about {_count(len(apart))}: R-hat of {name} is {value:.3f}, above {R_HAT_LIMIT}. Run "
            "longer chains, or look whether the target has several modes."
        )
    if few:
        worth, name = min(few)
        problems.append(
            f"Too few effective draws of {_count(len(few))}: {name} has {worth:.0f}, fewer than {ESS_PER_CHAIN} a "
            f"chain ({ESS_PER_CHAIN * trace.n_chains}). Draw more, or reparameterise."
        )
    if still and len(still) == checked and trace.n_draws > 1:
        problems.append("Nothing moved: every variable has the same value in all draws.")
    return problems


def _about_steps(trace: Trace) -> list[str]:
    problems = []
    stats = trace.stats
    divergent = int((np.asarray(stats.get("divergent", 0)) > 0).sum())
    if divergent:
        problems.append(
            f"{divergent} of {trace.n_chains * trace.n_draws} trajectories diverged: parts of the target are too "
            "curved for the step size, and draws near them are missing. Raise target_accept, or reparameterise."
        )
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
        low, high = getattr(end.kernel, "healthy_acceptance", (0.0, 1.0))
        if "acceptance" in stats and stats["acceptance"].size:
            rate = float(np.mean(stats["acceptance"]))
            if not low <= rate <= high:
                problems.append(
                    f"The mean acceptance is {rate:.2f}, outside {low:g} to {high:g}: the steps are too "
                    f"{'long' if rate < low else 'short'}."
                )
    return problems


def _count(number: int) -> str:
    return "1 number" if number == 1 else f"{number} numbers"


def warn_of_problems(trace: Trace) -> None:
    """Give each problem as a ConvergenceWarning."""
    problems = find_problems(trace)
    if problems:
        from sklearn.exceptions import ConvergenceWarning

        for problem in problems:
            warnings.warn(problem, ConvergenceWarning, stacklevel=4)
