"""Do draws have the distribution they should have? By its distribution function, by other draws, or by its gradient.

Draws of a Markov chain are worth fewer independent ones. Kolmogorov-Smirnov and Cramer-von Mises use all draws with
their effective number in place of their number; permutation and Stein tests use draws far enough apart to be about
independent. The first two see shifts and hardly see a wrong variance. So ``u = F(x)``, which should be uniform, is also
put through Legendre polynomials of order 1 to 4 (*location*, *spread*, *skewness*, *tails*: the parts of Neyman's
smooth test [2]_), and through the normal quantile function, whose squares should have the mean 1 (*variance*).

Cramer and von Mises' statistic ``n int (F_n - F)^2 dF`` has in the limit the distribution function [1]_

    1 / (pi^(3/2) x^(1/2)) sum_k G(k + 1/2) / k! (4k + 1)^(1/2) exp(-z_k) K_1/4(z_k),      z_k = (4k + 1)^2 / (16 x).

Two samples in many dimensions are compared by permutation, of the energy distance [3]_ or the maximum mean discrepancy
[4]_:

    energy = 2 E|x - y| - E|x - x'| - E|y - y'|,      mmd^2 = E k(x, x') + E k(y, y') - 2 E k(x, y)

(k Gaussian, its width the median distance). Both are zero only for equal distributions. If the draws of both sets are
independent and equally distributed, all ways of dealing the pooled draws into two sets are equally likely, so that the
share of deals that give as large a value is an exact p-value.

References
----------
.. [1] Csorgo, S. and Faraway, J. J. (1996). The exact and asymptotic distributions of Cramer-von Mises statistics.
   JRSS B 58, 221-234.
.. [2] Neyman, J. (1937). "Smooth test" for goodness of fit. Skandinavisk Aktuarietidskrift 20, 149-199.
.. [3] Szekely, G. J. and Rizzo, M. L. (2013). Energy statistics. Journal of Statistical Planning and Inference 143.
.. [4] Gretton, A. et al. (2012). A kernel two-sample test. JMLR 13, 723-773.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import chdtr, chdtrc, erfc, eval_legendre, gammaln, kolmogorov, kv, ndtr, ndtri

from pluri.testing.agreement import compare_counts
from pluri.testing.comparison import Comparison, Outcome, overall_p_value
from pluri.testing.long_chains import effective_draws, thinning
from pluri.testing.power import power_of_variance
from pluri.testing.stein import numerical_score, stein_test
from pluri.validation import RandomState, as_generator

Array = NDArray[np.float64]
#: Values of a distribution function are kept so far from 0 and 1 before normal quantiles are taken.
EXTREME = 1e-16


Distance = Literal["energy", "mmd"]


def permutation_test(
    first: Array, second: Array, rng: np.random.Generator, distance: Distance = "energy", n_permutations: int = 999
) -> tuple[float, float]:
    """Distance of two sets of independent points (n, d) and (m, d), and its exact p-value."""
    pooled = np.concatenate([first, second])
    scale = pooled.std(axis=0)
    pooled = pooled / np.where(scale > 0, scale, 1.0)
    gaps = np.sqrt(np.maximum(((pooled[:, None, :] - pooled[None, :, :]) ** 2).sum(axis=2), 0.0))
    if distance == "mmd":
        positive = gaps[gaps > 0]
        width = float(np.median(positive)) if len(positive) else 1.0
        gaps = -np.exp(-0.5 * (gaps / width) ** 2)
    n, total = len(first), len(pooled)
    # A deal is the vector w = 1/n on the first set, -1/m on the second; both distances are -w' gaps w.
    deal = np.where(np.arange(total) < n, 1.0 / n, -1.0 / (total - n))
    deals = np.column_stack([deal, *(rng.permutation(deal) for _ in range(n_permutations))])
    values = -(deals * (gaps @ deals)).sum(axis=0)
    # Deals that give the same value up to rounding count as ties.
    as_large = int((values[1:] >= values[0] - 1e-12 * abs(values[0])).sum())
    return float(values[0]), (1 + as_large) / (n_permutations + 1)


@dataclass(frozen=True, repr=False)
class FitResult(Outcome):
    """How well draws fit.

    Attributes
    ----------
    n_effective : float
        Least effective number of draws over the coordinates.
    """

    n_effective: float = 0.0

    def power(self, error: float = 0.1) -> float:
        """Probability that a variance too large by this share would have been noticed; NaN without `cdf`."""
        if not any(one.test == "variance" for one in self.comparisons):
            return float("nan")
        return power_of_variance(
            error, self.n_effective, n_comparisons=len(self.comparisons), alpha=self.alpha, efficiency=1.0
        )

    def headline(self) -> str:
        """One line about all."""
        noticed = self.power()
        told = "" if np.isnan(noticed) else f"; a variance wrong by 10 % is noticed with probability {noticed:.2g}"
        return super().headline() + told


def goodness_of_fit(
    draws: ArrayLike,
    *,
    cdf: Any = None,
    probabilities: Any = None,
    reference: ArrayLike | None = None,
    gradient: Callable[[Array], Any] | None = None,
    log_density: Callable[[Array], float] | None = None,
    independent: bool = False,
    distance: Distance = "energy",
    n_permutations: int = 999,
    max_points: int = 500,
    alpha: float = 0.01,
    random_state: RandomState = None,
) -> FitResult:
    """Test draws against a known target; every description of it that is given is used.

    Parameters
    ----------
    draws : array-like of shape (n,), (n, d) or (n_chains, n, d)
    cdf : callable or frozen `scipy.stats` distribution, or a sequence of them, optional
        Distribution function of each coordinate (None in a sequence leaves one out).
    probabilities : array-like or mapping, optional
        Probabilities of the values 0, 1, .. or of the keys, for draws of one coordinate.
    reference : array-like of shape (m,) or (m, d), optional
        Independent draws from the target.
    gradient : callable, optional
        Gradient of the log density at a point (d,).
    log_density : callable, optional
        Log density up to a constant; used by finite differences if there is no gradient.
    independent : bool, default=False
        Draws are known to be independent; otherwise their dependence is estimated and allowed for.
    distance : {"energy", "mmd"}, default="energy"
        How draws are compared with the reference.
    n_permutations : int, default=999
        Of permutation and bootstrap tests, whose least p-value is ``1 / (n_permutations + 1)``.
    max_points : int, default=500
        Draws used by the tests that look at all pairs.
    alpha : float, default=0.01
    random_state : int, Generator or None

    Returns
    -------
    FitResult

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from pluri.testing import goodness_of_fit
    >>> draws = np.random.default_rng(0).normal(size=2000)
    >>> goodness_of_fit(draws, cdf=stats.norm, gradient=lambda x: -x, random_state=0).passed
    True
    >>> goodness_of_fit(draws, cdf=stats.norm(0.15, 1.0)).passed
    False
    """
    if all(given is None for given in (cdf, probabilities, reference, gradient, log_density)):
        raise ValueError("one of cdf, probabilities, reference, gradient and log_density must be given")
    chains = as_chains(draws)
    n_chains, n_draws, dim = chains.shape
    rng = as_generator(random_state)
    sizes = [float(n_chains * n_draws) if independent else effective_draws(chains[:, :, j]) for j in range(dim)]
    found: list[Comparison] = []
    if cdf is not None:
        found += _by_cdf(chains, cdf, sizes, independent)
    if probabilities is not None:
        found.append(_by_probabilities(chains, probabilities, sizes, independent))
    if reference is not None or gradient is not None or log_density is not None:
        stride = 1 if independent else int(np.ceil(max(thinning(chains[:, :, j]) for j in range(dim))))
        points = chains[:, stride - 1 :: stride].reshape(-1, dim)
        points = points[np.linspace(0, len(points) - 1, min(len(points), max_points)).astype(np.int64)]
        if len(points) < 10:
            raise ValueError(f"draws must hold at least ten nearly independent points, got {len(points)}")
        if reference is not None:
            others = as_chains(reference).reshape(-1, as_chains(reference).shape[2])
            if others.shape[1] != dim:
                raise ValueError(f"reference must have {dim} coordinates like draws, got {others.shape[1]}")
            others = others[np.linspace(0, len(others) - 1, min(len(others), max_points)).astype(np.int64)]
            values = permutation_test(points, others, rng, distance, n_permutations)
            found.append(Comparison("all coordinates", distance, *values))
        if gradient is None and log_density is not None:
            gradient = numerical_score(log_density)
        if gradient is not None:
            found.append(Comparison("all coordinates", "stein", *stein_test(points, gradient, rng, n_permutations)))
    return FitResult(tuple(found), overall_p_value(found) > alpha, alpha, n_effective=min(sizes))


def as_chains(draws: ArrayLike) -> Array:
    """Draws as (n_chains, n_draws, d)."""
    values = np.asarray(draws, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or values.size == 0:
        raise ValueError(f"draws must have shape (n,), (n, d) or (n_chains, n, d), got {np.shape(draws)}")
    if not np.isfinite(values).all():
        raise ValueError("draws must be finite")
    return values


def _by_cdf(chains: Array, cdf: Any, sizes: Sequence[float], independent: bool) -> list[Comparison]:
    functions = list(cdf) if isinstance(cdf, Sequence) and not isinstance(cdf, str) else [cdf]
    for function in functions:
        if not (function is None or callable(function) or hasattr(function, "cdf")):
            raise ValueError(f"cdf must be a function, or a distribution such as scipy.stats.norm(), got {function!r}")
    if len(functions) != chains.shape[2]:
        raise ValueError(f"cdf must be given for each of {chains.shape[2]} coordinates, got {len(functions)}")
    found = []
    for j, function in enumerate(functions):
        if function is None:
            continue
        name = f"x[{j}]"
        evaluate = function.cdf if hasattr(function, "cdf") else function
        places = np.clip(np.asarray(evaluate(chains[:, :, j].ravel()), dtype=np.float64), 0.0, 1.0)
        found += _overall(name, np.sort(places), sizes[j], independent)
        found += _by_moments(name, places.reshape(chains.shape[:2]), sizes[j], independent)
    return found


def _overall(name: str, uniform: Array, size: float, independent: bool) -> list[Comparison]:
    """Kolmogorov-Smirnov and Cramer-von Mises, of the values of the distribution function in order."""
    if independent:
        ks, cvm = stats.kstest(uniform, "uniform"), stats.cramervonmises(uniform, "uniform")
        return [
            Comparison(name, "ks", float(ks.statistic), float(ks.pvalue)),
            Comparison(name, "cramer-von-mises", float(cvm.statistic), float(cvm.pvalue)),
        ]
    n = len(uniform)
    places = (2.0 * np.arange(1, n + 1) - 1.0) / (2.0 * n)
    distance = float(np.abs(uniform - places).max() + 0.5 / n)
    # The mean square of the difference, of which the statistic is so many times as there are draws.
    squared = float(((uniform - places) ** 2).mean() + 1.0 / (12.0 * n**2)) * size
    return [
        Comparison(name, "ks", distance, float(kolmogorov(np.sqrt(size) * distance))),
        Comparison(name, "cramer-von-mises", squared, cramer_von_mises_tail(squared)),
    ]


def _by_moments(name: str, uniform: Array, size: float, independent: bool) -> list[Comparison]:
    """Legendre polynomials of what should be uniform, (n_chains, n_draws), and squares of what should be normal."""
    from pluri.inference.mcmc import ess_mean

    def effective(values: Array) -> float:
        if independent or np.ptp(values) == 0:
            return size
        found = ess_mean(values)
        return float(min(found, values.size)) if np.isfinite(found) else size

    found = []
    for order, test in enumerate(("location", "spread", "skewness", "tails"), start=1):
        values = eval_legendre(order, 2.0 * uniform - 1.0) * np.sqrt(2.0 * order + 1.0)
        z = float(values.mean() * np.sqrt(effective(values)))
        found.append(Comparison(name, test, z, float(2.0 * ndtr(-abs(z)))))
    squares = ndtri(np.clip(uniform, EXTREME, 1.0 - EXTREME)) ** 2
    n = effective(squares)
    total = float(squares.mean() * n)
    p_value = 2.0 * min(float(chdtrc(n, total)), float(chdtr(n, total)))
    return [*found, Comparison(name, "variance", total / n, min(p_value, 1.0))]


def cramer_von_mises_tail(x: float) -> float:
    """Probability that Cramer and von Mises' statistic exceeds `x`, for many draws."""
    if x < 0.01:
        return 1.0
    k = np.arange(40.0)
    z = (4.0 * k + 1.0) ** 2 / (16.0 * x)
    terms = np.exp(gammaln(k + 0.5) - gammaln(k + 1.0) - z) * np.sqrt(4.0 * k + 1.0) * kv(0.25, z)
    below = float(terms.sum() / (np.pi**1.5 * np.sqrt(x)))
    if x > 2.0:  # one minus the sum is lost to rounding: the tail of sum_j chi^2_1 / (j pi)^2 is that of its first term
        return float(np.sqrt(2.0) * erfc(np.pi * np.sqrt(x / 2.0)))
    return min(max(1.0 - below, 0.0), 1.0)


def _by_probabilities(chains: Array, probabilities: Any, sizes: Sequence[float], independent: bool) -> Comparison:
    if chains.shape[2] != 1:
        raise ValueError(f"probabilities need draws of one coordinate, got {chains.shape[2]}")
    if isinstance(probabilities, Mapping):
        values = np.array(list(probabilities), dtype=np.float64)
        shares = np.array(list(probabilities.values()), dtype=np.float64)
    else:
        shares = np.asarray(probabilities, dtype=np.float64)
        values = np.arange(len(shares), dtype=np.float64)
    if not (shares >= 0).all() or not np.isclose(shares.sum(), 1.0):
        raise ValueError(f"probabilities must be at least 0 and sum to 1, got a sum of {shares.sum():.6g}")
    drawn, counts = np.unique(chains, return_counts=True)
    if not np.isin(drawn, values).all():
        return Comparison("x[0]", "chi-square", float("inf"), 0.0)
    together = np.array([counts[drawn == value].sum() for value in values], dtype=np.float64)
    return Comparison("x[0]", "chi-square", *compare_counts(together, shares, None if independent else min(sizes)))
