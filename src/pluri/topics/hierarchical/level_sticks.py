"""How the tokens of a document spread over the levels of its path.

A stick is broken at each level but the last: ``v_l ~ Beta(before_l, after_l)`` of what is left stays at level l. With
counts m_l of a document's tokens and m_{>l} of those further down,

    p(levels) = prod_l B(before_l + m_l, after_l + m_{>l}) / B(before_l, after_l).

``after_l = sum_{k > l} before_k`` gives shares that are Dirichlet(before_0, ..., before_{L-1}); the same pair of
parameters at every level gives the first levels of a two-parameter GEM distribution [1]_.

References
----------
.. [1] Blei, D., Griffiths, T. and Jordan, M. (2010). The nested Chinese restaurant process and Bayesian nonparametric
   inference of topic hierarchies. Journal of the ACM 57(2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

Array = NDArray[np.float64]


class LevelSticks(NamedTuple):
    """Parameters of the sticks of all levels but the last; both have shape (n_levels - 1,)."""

    before: Array
    after: Array

    @classmethod
    def dirichlet(cls, alpha: Array) -> LevelSticks:
        """Sticks of Dirichlet shares."""
        tails = np.cumsum(alpha[::-1])[::-1]
        return cls(np.ascontiguousarray(alpha[:-1]), np.ascontiguousarray(tails[1:]))

    @classmethod
    def gem(cls, mean: float, precision: float, n_levels: int) -> LevelSticks:
        """Sticks with ``E v = mean``, the same at every level, and ``before + after = precision``."""
        return cls(np.full(n_levels - 1, mean * precision), np.full(n_levels - 1, (1.0 - mean) * precision))

    def mean(self) -> Array:
        """Expected share of each level."""
        return self.shares(self.before / (self.before + self.after))

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Shares of the levels of some documents: (size, n_levels)."""
        return self.shares(rng.beta(self.before, self.after, size=(size, len(self.before))))

    @staticmethod
    def shares(broken: Array) -> Array:
        """What breaking a stick at these fractions gives; the last level gets what is left."""
        left = np.cumprod(1.0 - broken, axis=-1)
        ones = np.ones((*broken.shape[:-1], 1))
        shares: Array = np.concatenate([broken, ones], axis=-1) * np.concatenate([ones, left], axis=-1)
        return shares

    def log_marginal(self, counts: NDArray[Any]) -> float:
        """Log probability of the levels of all tokens, from their numbers (n_documents, n_levels)."""
        if not len(self.before):
            return 0.0
        below = counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
        values = betaln(self.before + counts[:, :-1], self.after + below) - betaln(self.before, self.after)
        return float(values.sum())


def level_sticks(level_prior: Any, n_levels: int, mean: float, precision: float) -> LevelSticks:
    """Check a prior over levels: a number, a number for each level, or "gem"."""
    if isinstance(level_prior, str):
        if level_prior != "gem":
            raise ValueError(f"level_prior must be a number, one for each level, or 'gem', got {level_prior!r}")
        return LevelSticks.gem(float(mean), float(precision), n_levels)
    return LevelSticks.dirichlet(per_level(level_prior, n_levels, "level_prior"))


def per_level(value: Any, n_levels: int, name: str) -> Array:
    """Check a positive number, or one for each level; gives one for each."""
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if values.shape not in ((), (n_levels,)) or not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(f"{name} must be a positive number, or one for each of {n_levels} levels, got {value!r}")
    return np.array(np.broadcast_to(values, n_levels))
