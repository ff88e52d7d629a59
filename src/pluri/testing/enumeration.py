"""Posteriors of small discrete problems by brute force: every configuration, its probability, and what follows.

p(z | y) = p(z, y) / sum_z' p(z', y);      the sum is the evidence p(y).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.testing.agreement import compare_counts
from pluri.testing.comparison import Comparison
from pluri.testing.goodness import FitResult
from pluri.testing.long_chains import effective_draws
from pluri.validation import RandomState, as_generator

Array = NDArray[np.float64]
#: A product with more configurations than this is a mistake.
MOST_CONFIGURATIONS = 2_000_000


def configuration_key(configuration: Any) -> Any:
    """Hashable form of a configuration: arrays and lists become tuples, mappings their sorted items."""
    if isinstance(configuration, np.ndarray | np.generic):
        configuration = configuration.tolist()
    if isinstance(configuration, Mapping):
        return tuple((name, configuration_key(configuration[name])) for name in sorted(configuration))
    if isinstance(configuration, list | tuple):
        return tuple(configuration_key(item) for item in configuration)
    return configuration


@dataclass(frozen=True)
class DiscretePosterior:
    """A distribution over finitely many configurations.

    Attributes
    ----------
    configurations : list
    log_probability : ndarray of shape (n_configurations,)
    log_evidence : float
        Logarithm of the sum of the joint probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.testing import enumerate_posterior
    >>> chain = enumerate_posterior(lambda z: 0.7 * np.sum(z[1:] == z[:-1]), [[-1, 1]] * 3)
    >>> round(chain.expectation(lambda z: z[0] * z[2]), 4)  # tanh(0.35)^2
    0.1131
    >>> chain.marginal(0)
    {-1: 0.5, 1: 0.5}
    """

    configurations: list[Any]
    log_probability: Array
    log_evidence: float

    @property
    def probabilities(self) -> Array:
        """Probability of each configuration."""
        probabilities: Array = np.exp(self.log_probability)
        return probabilities

    def probability(self, configuration: Any) -> float:
        """Probability of one configuration; 0 for one that is not there."""
        return float(self.distribution().get(configuration_key(configuration), 0.0))

    def distribution(self, function: Callable[[Any], Any] | None = None) -> dict[Any, float]:
        """Probability of each value of a function of the configuration (of itself by default)."""
        total: dict[Any, float] = {}
        for configuration, p in zip(self.configurations, self.probabilities):
            key = configuration_key(configuration if function is None else function(configuration))
            total[key] = total.get(key, 0.0) + float(p)
        return total

    def marginal(self, which: Any) -> dict[Any, float]:
        """Distribution of one entry of the configuration, by index or name."""
        return self.distribution(lambda configuration: configuration[which])

    def expectation(self, function: Callable[[Any], Any]) -> Any:
        """Mean of a function of the configuration: a float, or an array."""
        values = np.array([function(configuration) for configuration in self.configurations], dtype=np.float64)
        mean = np.tensordot(self.probabilities, values, axes=1)
        return float(mean) if mean.ndim == 0 else mean

    def sample(self, random_state: RandomState = None, size: int | None = None) -> Any:
        """One exact draw, or a list of `size`."""
        rng = as_generator(random_state)
        cumulative = np.cumsum(self.probabilities)
        uniforms = rng.random(1 if size is None else size) * cumulative[-1]
        chosen = np.minimum(np.searchsorted(cumulative, uniforms, side="right"), len(cumulative) - 1)
        drawn = [self.configurations[i] for i in chosen]
        return drawn[0] if size is None else drawn

    def compare(
        self, draws: Iterable[Any], *, function: Callable[[Any], Any] | None = None, independent: bool = False,
        alpha: float = 0.01,
    ) -> FitResult:  # fmt: skip
        """Chi-square test that draws have this distribution.

        Parameters
        ----------
        draws : iterable of configurations
            In the order in which a chain made them.
        function : callable, optional
            Compare the values of a function instead, such as a canonical form or a count.
        independent : bool, default=False
            Draws are known to be independent; otherwise the effective number of draws is used.
        alpha : float, default=0.01

        Returns
        -------
        FitResult
        """
        expected = self.distribution(function)
        keys = [configuration_key(draw if function is None else function(draw)) for draw in draws]
        if not keys:
            raise ValueError("draws must not be empty")
        places = {key: i for i, key in enumerate(expected)}
        shares = np.array(list(expected.values()))
        codes = np.array([places.get(key, -1) for key in keys])
        size = float(len(keys))
        if (codes < 0).any():  # a configuration that cannot be
            comparison = Comparison("configuration", "chi-square", float("inf"), 0.0)
        else:
            if not independent:
                # As many as the indicator of each of the likeliest values, and their log probability, allow.
                likeliest = np.argsort(shares)[::-1][:20]
                columns = [(codes == i).astype(np.float64) for i in likeliest] + [
                    np.log(np.maximum(shares, 1e-300))[codes]
                ]
                size = min(effective_draws(column[None, :]) for column in columns)
            counts = np.bincount(codes, minlength=len(shares)).astype(np.float64)
            values = compare_counts(counts, shares, None if independent else size)
            comparison = Comparison("configuration", "chi-square", *values)
        return FitResult((comparison,), comparison.p_value > alpha, alpha, n_effective=size)


def enumerate_posterior(
    log_joint: Callable[[Any], float],
    support: Sequence[Iterable[Any]] | Mapping[str, Iterable[Any]] | None = None,
    *,
    configurations: Iterable[Any] | None = None,
) -> DiscretePosterior:
    """Evaluate a log joint density everywhere and normalise it.

    Parameters
    ----------
    log_joint : callable
        Configuration to log p(z, y); -inf is allowed, NaN and +inf are not.
    support : sequence or mapping of iterables, optional
        Values of each variable; the configurations are their product, as arrays (or dicts, if names are given).
    configurations : iterable, optional
        All configurations themselves, such as `set_partitions` gives.

    Returns
    -------
    DiscretePosterior

    Examples
    --------
    >>> from math import log
    >>> from pluri.testing import enumerate_posterior
    >>> coin = enumerate_posterior(lambda z: log(0.2 if z["fair"] else 0.8) + 3 * log(0.5 if z["fair"] else 0.9),
    ...                            {"fair": [True, False]})
    >>> round(coin.marginal("fair")[True], 4), round(coin.log_evidence, 4)
    (0.0411, -0.4973)
    """
    if (support is None) == (configurations is None):
        raise ValueError("exactly one of support and configurations must be given")
    every = list(configurations) if configurations is not None else _product(support)
    if not every:
        raise ValueError("there must be at least one configuration")
    values = np.array([float(log_joint(configuration)) for configuration in every])
    wrong = np.isnan(values) | (values == np.inf)
    if wrong.any():
        where = int(np.argmax(wrong))
        raise ValueError(f"log_joint must be finite or -inf, got {values[where]} at {every[where]!r}")
    largest = values.max()
    if largest == -np.inf:
        raise ValueError("log_joint is -inf at every configuration")
    log_evidence = float(largest + np.log(np.exp(values - largest).sum()))
    return DiscretePosterior(every, values - log_evidence, log_evidence)


def _product(support: Any) -> list[Any]:
    names = list(support) if isinstance(support, Mapping) else None
    values = [list(support[name]) for name in names] if names is not None else [list(item) for item in support]
    total = float(np.prod([float(len(item)) for item in values]))
    if total > MOST_CONFIGURATIONS:
        raise ValueError(f"support must have at most {MOST_CONFIGURATIONS} configurations, got {total:.3g}")
    if names is not None:
        return [dict(zip(names, combination)) for combination in product(*values)]
    return [np.array(combination) for combination in product(*values)]
