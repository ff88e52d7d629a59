"""Dirichlet processes that depend on time: atoms live on, move, vanish, and new ones come.

A gamma process ``G_t`` with base measure ``mu_t`` is thinned (each atom is kept with probability q), its atoms are
moved by a Markov kernel T, and an independent gamma process with base measure ``alpha H`` is added. All three keep it a
gamma process, with ``mu_t = T(q mu_{t-1}) + alpha H``; so that ``D_t = G_t / G_t(everything)`` is, at each time by
itself, a Dirichlet process with concentration ``|mu_t|`` and base ``mu_t / |mu_t|``. The concentration tends to
``alpha / (1 - q)``.

References
----------
.. [1] Lin, D., Grimson, E. and Fisher, J. (2010). Construction of dependent Dirichlet processes based on Poisson
   processes. Advances in Neural Information Processing Systems 23.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.processes.base_measure import draw_from_base
from pluri.processes.dirichlet_process import DiscreteMeasure
from pluri.processes.stick_breaking import StickBreaking, check_tail_mass
from pluri.validation import RandomState, as_generator, check_count, check_positive

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeasurePath:
    """Random distributions at successive times; a sequence of `DiscreteMeasure`.

    Attributes
    ----------
    measures : tuple of DiscreteMeasure
    identities : tuple of int arrays (n_atoms,)
        Numbers of the atoms: the same number at different times is the same atom.
    masses : array of shape (n_times,)
        Total mass of the gamma process at each time.
    """

    measures: tuple[DiscreteMeasure, ...]
    identities: tuple[NDArray[np.int64], ...]
    masses: Array

    def __len__(self) -> int:
        return len(self.measures)

    def __getitem__(self, step: int) -> DiscreteMeasure:
        return self.measures[step]

    def __iter__(self) -> Iterator[DiscreteMeasure]:
        return iter(self.measures)

    def sample_observations(
        self, sizes: int | ArrayLike, random_state: RandomState = None
    ) -> tuple[list[NDArray[Any]], list[NDArray[np.int64]]]:
        """Draw atoms at each time, with repetition: their values and their identities, a list entry for each time."""
        rng = as_generator(random_state)
        values, owners = [], []
        for measure, names, size in zip(self.measures, self.identities, np.broadcast_to(sizes, len(self))):
            chosen = DiscreteMeasure(np.arange(len(names)), measure.weights).rvs(int(size), rng)
            values.append(measure.atoms[chosen])
            owners.append(names[chosen])
        return values, owners

    def __repr__(self) -> str:
        return f"<MeasurePath of {len(self)} steps, {len(np.unique(np.concatenate(self.identities)))} atoms>"


@dataclass(frozen=True)
class DependentDirichletProcess:
    """Markov chain of Dirichlet processes.

    Parameters
    ----------
    concentration : float
        Concentration at the first time.
    base : object with ``rvs(size, random_state)``, or callable ``base(rng, n)``
        Distribution of new atoms.
    survival : float or callable, default=0.9
        Probability that an atom lives on to the next time; ``survival(atoms) -> (n_atoms,)`` if it depends on where
        the atom is.
    transition : callable, optional
        ``transition(rng, atoms) -> atoms``: how they move; they stay by default.
    innovation : float, optional
        Concentration of what is added at each time; `concentration` by default, 0 if nothing is.

    Examples
    --------
    >>> from scipy import stats
    >>> from pluri.processes.dependent_dirichlet import DependentDirichletProcess
    >>> process = DependentDirichletProcess(
    ...     2.0, stats.norm(0, 5), survival=0.8, transition=lambda rng, atoms: atoms + rng.normal(0, 0.1, atoms.shape)
    ... )
    >>> path = process.sample(10, random_state=0)
    >>> len(path), bool(abs(path[9].weights.sum() - 1) < 1e-12)
    (10, True)
    >>> round(process.concentration_at(1), 6), round(process.concentration_at(1000), 6)
    (3.6, 10.0)
    """

    concentration: float
    base: Any
    survival: float | Callable[[NDArray[Any]], ArrayLike] = 0.9
    transition: Callable[[np.random.Generator, NDArray[Any]], NDArray[Any]] | None = None
    innovation: float | None = None

    def __post_init__(self) -> None:
        check_positive(self.concentration, "concentration")
        if self.innovation is not None and self.innovation != 0:
            check_positive(self.innovation, "innovation")
        if not callable(self.survival):
            _check_probabilities(self.survival, ())
        if self.transition is not None and not callable(self.transition):
            raise ValueError(f"transition must be a function of a generator and atoms, got {self.transition!r}")

    def concentration_at(self, step: int) -> float:
        """Concentration of the Dirichlet process at a time, from 0; the survival must not depend on the atom."""
        check_count(step, "step", 0)
        if callable(self.survival):
            raise ValueError("survival must be a number for the concentration to be known, got a function")
        q, added = float(self.survival), self._added
        kept = q**step * self.concentration
        return kept + added * (step if q == 1 else (1 - q**step) / (1 - q))

    def variance_at(self, step: int, probability: ArrayLike) -> Any:
        """Variance at a time of the probability of an event, whose mean at that time is given."""
        mean = np.asarray(probability, dtype=np.float64)
        value = mean * (1 - mean) / (self.concentration_at(step) + 1)
        return float(value) if value.ndim == 0 else value

    @property
    def _added(self) -> float:
        return float(self.concentration if self.innovation is None else self.innovation)

    def sample(self, n_samples: int, *, tail_mass: float = 1e-6, random_state: RandomState = None) -> MeasurePath:
        """Draw the distributions at successive times.

        Parameters
        ----------
        n_samples : int
            Number of times.
        tail_mass : float, default=1e-6
            Of each process that is added, atoms are broken off until less than this share is left, which then goes to
            one more atom.
        random_state : int, Generator or None

        Returns
        -------
        MeasurePath
        """
        check_count(n_samples, "n_samples")
        check_tail_mass(tail_mass)
        rng = as_generator(random_state)
        atoms, sizes = self._new(rng, self.concentration, tail_mass)
        names, next_name = np.arange(len(sizes)), len(sizes)
        measures, identities, masses = [], [], []
        for step in range(n_samples):
            if step:
                alive = rng.random(len(sizes)) < self._survival(atoms)
                atoms, sizes, names = self._moved(rng, atoms[alive]), sizes[alive], names[alive]
                if self._added > 0:
                    fresh, new_sizes = self._new(rng, self._added, tail_mass)
                    atoms, sizes = np.concatenate([atoms, fresh]), np.concatenate([sizes, new_sizes])
                    names = np.concatenate([names, next_name + np.arange(len(fresh))])
                    next_name += len(fresh)
                if not sizes.sum() > 0:
                    raise ValueError(
                        f"no atom is left at time {step}: innovation must be positive if survival is below 1"
                    )
            masses.append(sizes.sum())
            measures.append(DiscreteMeasure(atoms, sizes / sizes.sum()))
            identities.append(names)
        return MeasurePath(tuple(measures), tuple(identities), np.array(masses))

    def _new(self, rng: np.random.Generator, concentration: float, tail_mass: float) -> tuple[NDArray[Any], Array]:
        """Atoms of a gamma process: shares of a Dirichlet process, and a gamma total that does not depend on them."""
        weights, left = StickBreaking(concentration).sample_until(tail_mass, random_state=rng)
        sizes = rng.gamma(concentration) * np.append(weights, left)
        return draw_from_base(self.base, rng, len(sizes)), sizes

    def _survival(self, atoms: NDArray[Any]) -> Any:
        if not callable(self.survival):
            return self.survival
        return _check_probabilities(self.survival(atoms), (len(atoms),))

    def _moved(self, rng: np.random.Generator, atoms: NDArray[Any]) -> NDArray[Any]:
        if self.transition is None:
            return atoms
        moved = np.asarray(self.transition(rng, atoms))
        if moved.shape != atoms.shape:
            raise ValueError(f"transition must give atoms of shape {atoms.shape}, got {moved.shape}")
        return moved


def _check_probabilities(values: Any, shape: tuple[int, ...]) -> Array:
    given = np.asarray(values, dtype=np.float64) if not isinstance(values, str) else np.full((), np.nan)
    if given.shape not in ((), shape) or not ((given >= 0) & (given <= 1)).all():
        raise ValueError(f"survival must be a probability, or give one for each atom, got {values!r}")
    return given
