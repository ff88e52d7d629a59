"""Dirichlet process: a random discrete distribution around a base, and its posterior.

``G ~ DP(alpha, H)`` gives every finite partition Dirichlet shares ``(G(A_1), ..., G(A_r)) ~ Dir(alpha H(A_1), ...)``;
``E G(A) = H(A)`` and ``Var G(A) = H(A) (1 - H(A)) / (alpha + 1)``. After observations t_1..t_n it is
``DP(alpha + n, (alpha H + sum_i delta_{t_i}) / (alpha + n))``: with ``V ~ Beta(n, alpha)``, a share V is spread over
the distinct observations by ``Dir(n_1, ..., n_m)`` and the rest is a fresh draw of ``DP(alpha, H)``.

References
----------
Ferguson (1973), A Bayesian analysis of some nonparametric problems, Annals of Statistics 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.processes.base_measure import base_cdf, draw_from_base
from pluri.processes.chinese_restaurant import ChineseRestaurantProcess
from pluri.processes.dirichlet import Dirichlet
from pluri.processes.stick_breaking import StickBreaking, check_tail_mass
from pluri.validation import RandomState, as_generator, check_count, check_positive

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DiscreteMeasure:
    """Weights on atoms.

    Attributes
    ----------
    atoms : (n_atoms,) or (n_atoms, n_features)
    weights : (n_atoms,), which sum to one

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import DiscreteMeasure
    >>> coin = DiscreteMeasure(np.array([0.0, 1.0]), np.array([0.25, 0.75]))
    >>> coin.cdf([-1.0, 0.0, 2.0])
    array([0.  , 0.25, 1.  ])
    """

    atoms: NDArray[Any]
    weights: Array

    def cdf(self, values: ArrayLike) -> Array:
        """Distribution function; only for atoms that are numbers."""
        if self.atoms.ndim != 1:
            raise ValueError(f"atoms must be numbers for a distribution function, got shape {self.atoms.shape}")
        order = np.argsort(self.atoms, kind="stable")
        total = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        return np.asarray(total[np.searchsorted(self.atoms[order], np.asarray(values), side="right")])

    def mean(self) -> Any:
        """Mean of the atoms."""
        return self.weights @ self.atoms

    def variance(self) -> Any:
        """Variance of the atoms, of each feature by itself."""
        return self.weights @ (self.atoms - self.mean()) ** 2

    def probability(self, event: Any) -> float:
        """Probability that `event`, a function from atoms to truth values, is true."""
        return float(self.weights @ np.asarray(event(self.atoms), dtype=np.float64))

    def rvs(self, size: int = 1, random_state: RandomState = None) -> NDArray[Any]:
        """Draw atoms, with repetition."""
        rng = as_generator(random_state)
        total = np.cumsum(self.weights)
        chosen = np.searchsorted(total, rng.random(size) * total[-1], side="right")
        return np.asarray(self.atoms[np.minimum(chosen, len(total) - 1)])


@dataclass(frozen=True)
class DirichletProcess:
    """Dirichlet process, before or after observations.

    Parameters
    ----------
    alpha : float
        Concentration of the prior.
    base : object with ``rvs(size, random_state)``, or callable ``base(rng, n)``
        Base distribution, for instance one of `scipy.stats`; `cdf` is needed only for `mean_cdf`.
    observed : array of shape (n,) or (n, n_features), optional
        What has been drawn from the unknown distribution; see `posterior`.

    Examples
    --------
    >>> from scipy import stats
    >>> from pluri.processes import DirichletProcess
    >>> process = DirichletProcess(2.0, stats.norm())
    >>> draw = process.sample(random_state=0)
    >>> bool(abs(draw.weights.sum() - 1) < 1e-12)
    True
    >>> process.posterior([0.3, 0.3, 5.0]).mean_cdf(1.0)
    0.7365379
    """

    alpha: float
    base: Any
    observed: Any = None

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")

    @property
    def concentration(self) -> float:
        """Concentration now: that of the prior plus one for each observation."""
        return self.alpha + (0 if self.observed is None else len(self.observed))

    def posterior(self, observations: ArrayLike) -> DirichletProcess:
        """Process after (further) draws from the unknown distribution were seen."""
        new = np.asarray(observations)
        if new.ndim not in (1, 2) or not len(new):
            raise ValueError(f"observations must have shape (n,) or (n, n_features), n at least 1, got {new.shape}")
        if new.dtype.kind == "f" and not np.isfinite(new).all():
            raise ValueError("observations must be finite, got NaN or infinity")
        return replace(self, observed=new if self.observed is None else np.concatenate([self.observed, new]))

    def sample(self, *, tail_mass: float = 1e-6, random_state: RandomState = None) -> DiscreteMeasure:
        """Draw a distribution.

        Parameters
        ----------
        tail_mass : float, default=1e-6
            The stick is broken until less than this is left, which then goes to one more atom.
        random_state : int, Generator or None
        """
        rng = as_generator(random_state)
        weights, left = StickBreaking(self.alpha).sample_until(check_tail_mass(tail_mass), random_state=rng)
        weights = np.append(weights, left)
        atoms = draw_from_base(self.base, rng, len(weights))
        if self.observed is not None:
            distinct, counts = np.unique(self.observed, axis=0, return_counts=True)
            if distinct.shape[1:] != atoms.shape[1:]:
                raise ValueError(
                    f"observations must look like the atoms of base, shape (n, *{atoms.shape[1:]}), "
                    f"got (n, *{distinct.shape[1:]})"
                )
            share = rng.beta(len(self.observed), self.alpha)
            weights = np.concatenate([share * rng.dirichlet(counts), (1 - share) * weights])
            atoms = np.concatenate([distinct, atoms])
        return DiscreteMeasure(atoms, weights / weights.sum())

    def sample_observations(self, n: int, random_state: RandomState = None) -> NDArray[Any]:
        """Draw n (further) observations with the distribution integrated out, by the urn."""
        check_count(n, "n", 0)
        rng = as_generator(random_state)
        fresh = draw_from_base(self.base, rng, n)
        before = fresh[:0] if self.observed is None else np.asarray(self.observed)
        balls = np.concatenate([before, fresh])
        start = len(before)
        coins, guides = rng.random(n), rng.random(n)
        for i in range(start, start + n):
            if coins[i - start] * (self.alpha + i) >= self.alpha:
                balls[i] = balls[int(guides[i - start] * i)]
        return balls[start:]

    def mean_cdf(self, values: ArrayLike) -> Any:
        """Distribution function of the mean distribution, which is also that of the next observation."""
        points = np.asarray(values, dtype=np.float64)
        total = self.alpha * base_cdf(self.base, points)
        if self.observed is not None:
            total = total + np.searchsorted(np.sort(self.observed), points, side="right")
        result = np.asarray(total / self.concentration)
        return float(result) if result.ndim == 0 else result

    def variance_cdf(self, values: ArrayLike) -> Any:
        """Variance of the random distribution function at each value."""
        mean = self.mean_cdf(values)
        return mean * (1 - mean) / (self.concentration + 1)

    def partition_law(self, edges: ArrayLike) -> Dirichlet:
        """Distribution of the probabilities of the intervals that `edges` cut the line into: Dirichlet.

        Parameters
        ----------
        edges : array-like of shape (r,)
            Increasing; intervals are closed on the right, ``(-inf, e_1], (e_1, e_2], ..., (e_r, inf)``.

        Returns
        -------
        Dirichlet
            Of r + 1 outcomes.
        """
        cuts = np.asarray(edges, dtype=np.float64)
        if cuts.ndim != 1 or not (np.diff(cuts) > 0).all():
            raise ValueError(f"edges must be one axis of increasing numbers, got {edges!r}")
        below = np.concatenate([[0.0], np.atleast_1d(self.mean_cdf(cuts)), [1.0]])
        return Dirichlet(self.concentration * np.diff(below))

    def expected_n_clusters(self, n: int) -> float:
        """Mean number of distinct values among n draws from the prior; the base must have no atoms."""
        return ChineseRestaurantProcess(self.alpha).expected_n_tables(n)

    def variance_n_clusters(self, n: int) -> float:
        """Variance of the number of distinct values among n draws from the prior."""
        return ChineseRestaurantProcess(self.alpha).variance_n_tables(n)

    def pmf_n_clusters(self, n: int) -> Array:
        """Probabilities of 0, ..., n distinct values among n draws from the prior."""
        return ChineseRestaurantProcess(self.alpha).pmf_n_tables(n)
