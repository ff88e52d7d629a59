"""Whether chains of the HDP sampler agree, and have arrived; if not, one sentence that says what to do.

The number of topics moves slowly in a large corpus. An interval is to be believed if chains from few topics and from
many have come to the same: their R-hat is near one. One start alone always agrees with itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from pluri.inference import mcmc

Array = NDArray[np.float64]

#: R-hat from which on chains disagree. Numbers of topics are correlated over many sweeps, so that the customary 1.01
#: needs thousands of draws.
R_HAT_LIMIT = 1.2
#: Share of a mean by which chains may differ: less does not matter, however surely it is so.
TRIFLE = 1e-3


def r_hat(draws: Array) -> float:
    """R-hat of the draws of some chains; infinite if each stands still, at another value."""
    if len(draws) < 2 or draws.shape[1] < 4:
        return float("nan")
    if np.ptp(draws) == 0:
        return 1.0
    if (np.ptp(draws, axis=1) == 0).all():
        return float("inf")
    return mcmc.r_hat(draws)


def still_rising(log_joint: Array) -> bool:
    """Whether the last third of the draws is above the first, by more than chance and more than a trifle."""
    third = log_joint.shape[1] // 3
    if third < 5:
        return False
    first, last = log_joint[:, :third], log_joint[:, -third:]
    rise = float((last.mean(axis=1) - first.mean(axis=1)).mean())
    spread = float(np.sqrt(first.var(axis=1).mean() + last.var(axis=1).mean()))
    return rise > 2.0 * spread and rise > TRIFLE * abs(float(last.mean()))


def apart(draws: dict[str, Array], values: dict[str, float]) -> dict[str, float]:
    """R-hat of what the chains disagree on: it is too large, and their means differ by more than a trifle."""
    trifles = {name: TRIFLE * abs(float(chains.mean())) for name, chains in draws.items()}
    # Numbers of topics that differ by less than one say the same.
    trifles |= {name: max(1.0, trifle) for name, trifle in trifles.items() if name != "log_joint"}
    return {
        name: values[name]
        for name, chains in draws.items()
        if values[name] > R_HAT_LIMIT and np.ptp(chains.mean(axis=1)) > trifles[name]
    }


def warn_of_disagreement(draws: dict[str, Array], values: dict[str, float], inits: Sequence[str]) -> None:
    """Give a ConvergenceWarning if chains disagree about the number of topics, or the log joint density.

    Parameters
    ----------
    draws : dict of arrays of shape (n_chains, n_draws)
        Of "n_topics", "n_large_topics" and "log_joint".
    values : dict
        R-hat of each.
    inits : list of str
        Start of each chain.
    """
    differing = apart(draws, values)
    if not differing:
        return
    seen = []
    for init in dict.fromkeys(inits):
        low, high = np.quantile(draws["n_topics"][[kind == init for kind in inits]], (0.025, 0.975))
        seen.append(f"{low:.0f} to {high:.0f} from init={init!r}")
    listed = ", ".join(f"{name} {value:.2f}" for name, value in differing.items())
    hint = "raise n_warmup and n_draws"
    if "n_topics" in differing and "n_large_topics" not in differing:
        hint += ", or quote n_large_topics_interval_, on which they agree"
    warnings.warn(
        f"the chains disagree (R-hat: {listed}; {R_HAT_LIMIT} is allowed; topics: {'; '.join(seen)}), so that the "
        f"intervals only hold what the chains have seen so far; {hint}",
        ConvergenceWarning,
        stacklevel=5,
    )
