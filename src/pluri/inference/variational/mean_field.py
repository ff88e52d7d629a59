r"""Mean field for discrete factor graphs: the best product q(x) = prod_j q_j(x_j), with a bound on log Z.

Coordinate ascent on ELBO(q) = sum_f E_q[log psi_f] + sum_j H(q_j) <= log Z, one factor of q at a time:

    log q_j(x_j) = sum_{f containing j} E_{q without j}[log psi_f(x_f)] + const.

Variables that share no factor may be updated together, which is still exact coordinate ascent. A damped update,
q_j <- (1 - damping) q_j + damping q_j_new, also never lowers the bound, which is concave in each q_j.

References
----------
Wainwright and Jordan (2008), Graphical models, exponential families, and variational inference, chapter 5.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.variational.coordinate_ascent import CoordinateAscentResult, coordinate_ascent
from pluri.inference.variational.factor_graph import LOG_ZERO, FactorGraph
from pluri.validation import Only, RandomState, as_generator, check_value
from pluri.validation.interruption import interruptible

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

SCHEDULES = ("sequential", "coloring", "parallel")
#: Share of Dirichlet noise in a random start; the rest is uniform.
NOISE = 0.1
#: Largest change of a marginal in a sweep for parallel updates to count as settled.
STILL = 1e-2


@dataclass(frozen=True)
class _Messages:
    """Messages of some factors of a stack to the variables on one of their axes; `targets` are rows of the block."""

    stack: int
    axis: int
    rows: Integers
    targets: Integers


class FactorMeanField:
    """The variational model that `coordinate_ascent` runs; q is an array (n_variables, largest cardinality).

    Entries beyond a variable's own number of states are zero.
    """

    def __init__(self, graph: FactorGraph, blocks: Sequence[Integers], damping: float) -> None:
        self.graph, self.damping, self.sets = graph, damping, blocks
        self.allowed = np.arange(graph.cardinalities.max()) < graph.cardinalities[:, None]
        self.plans = _plans(graph, blocks)

    def initialize(self, data: None, rng: np.random.Generator) -> Array:
        """Nearly uniform."""
        q = np.zeros(self.allowed.shape)
        for row, size in zip(q, self.graph.cardinalities):
            row[:size] = (1.0 - NOISE) / size + NOISE * rng.dirichlet(np.ones(size))
        return q

    def update(self, q: Array, data: None = None) -> Array:
        """One sweep over the blocks."""
        q = q.copy()
        for variables, plan in zip(self.sets, self.plans):
            log_q = np.where(self.allowed[variables], 0.0, -np.inf)
            for messages in plan:
                stack = self.graph.stacks[messages.stack]
                received = _expected(stack.log_tables[messages.rows], stack.variables[messages.rows], q, messages.axis)
                # A variable may hear from several factors of the same stack.
                np.add.at(log_q[:, : received.shape[1]], messages.targets, received)
            log_q -= log_q.max(axis=1, keepdims=True)
            optimum = np.exp(log_q)
            optimum /= optimum.sum(axis=1, keepdims=True)
            q[variables] = (1.0 - self.damping) * q[variables] + self.damping * optimum
        return q

    def elbo(self, q: Array, data: None = None) -> float:
        """Expected log potentials plus entropies."""
        energy = sum(float(_expected(stack.log_tables, stack.variables, q, None).sum()) for stack in self.graph.stacks)
        return energy - float((q * np.log(np.where(q > 0, q, 1.0))).sum())


def _expected(log_tables: Array, variables: Integers, q: Array, keep: int | None) -> Array:
    """E_q of stacked tables over all axes but `keep`: (F, S_keep), or (F,) if all are summed over."""
    result = log_tables
    for axis in reversed(range(variables.shape[1])):
        if axis != keep:
            others = q[variables[:, axis], : log_tables.shape[axis + 1]]
            result = np.einsum("f...s,fs->f...", np.moveaxis(result, axis + 1, -1), others)
    return result


def _plans(graph: FactorGraph, blocks: Sequence[Integers]) -> list[list[_Messages]]:
    block_of = np.empty(len(graph.variables), dtype=np.int64)
    place = np.empty_like(block_of)
    for number, variables in enumerate(blocks):
        block_of[variables] = number
        place[variables] = np.arange(len(variables))
    plans: list[list[_Messages]] = [[] for _ in blocks]
    for index, stack in enumerate(graph.stacks):
        for axis in range(stack.variables.shape[1]):
            receivers = stack.variables[:, axis]
            order = np.argsort(block_of[receivers], kind="stable")
            numbers, starts = np.unique(block_of[receivers[order]], return_index=True)
            for number, rows in zip(numbers, np.split(order, starts[1:])):
                plans[number].append(_Messages(index, axis, rows, place[receivers[rows]]))
    return plans


class MeanFieldInference:
    """Approximate marginals of a discrete factor graph, and a lower bound of its log normaliser.

    Parameters
    ----------
    schedule : {"sequential", "coloring", "parallel"}, default="sequential"
        One variable at a time; sets of variables that share no factor at a time, found by greedy colouring (as exact,
        and much faster on large sparse graphs); or all at a time, which may oscillate and warns.
    damping : float, default=1.0
        Share of the new value in an update, in (0, 1].
    max_iter : int, default=100
        Largest number of sweeps.
    tol : float, default=1e-6
        Relative change of the bound at which to stop.
    n_init : int, default=1
        Number of random starts; the highest bound wins.
    random_state : int, numpy Generator, RandomState or None, default=None
        Of the starts.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    marginals_ : dict of arrays
        q_j by variable.
    map_ : dict of int
        The most probable state of each variable under q.
    elbo_ : list of float
        The bound before each sweep of the best run, and after the last.
    n_iter_ : int
    converged_ : bool
    history_ : History
        All sweeps of all runs.

    Notes
    -----
    A log potential of -inf is replaced by -1e300, so that q may have exact zeros. If q cannot avoid impossible
    configurations (a product cannot say "these two differ" without deciding which is which), the bound is of that
    size, and a warning says so.

    Examples
    --------
    Two coins that like to agree, the first of which leans to heads.

    >>> import numpy as np
    >>> from pluri.inference.variational import MeanFieldInference, enumerate_exactly
    >>> factors = [((0,), [0.0, 1.0]), ((0, 1), [[0.5, 0.0], [0.0, 0.5]])]
    >>> model = MeanFieldInference(random_state=0).fit(factors)
    >>> model.marginals_[0].round(3), model.map_
    (array([0.257, 0.743]), {0: 1, 1: 1})
    >>> model.elbo_[-1] < enumerate_exactly(factors).log_normalizer
    True
    """

    def __init__(
        self,
        schedule: str = "sequential",
        damping: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.schedule = schedule
        self.damping = damping
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose

    @interruptible(method=True)
    def fit(
        self,
        factors: FactorGraph | Iterable[tuple[Sequence[Hashable], ArrayLike]],
        init: Mapping[Any, ArrayLike] | None = None,
    ) -> Self:
        """Find q.

        Parameters
        ----------
        factors : FactorGraph or list of (variables, log potentials)
            An axis of the log potentials for each variable.
        init : dict of arrays, optional
            Marginals to start the first run from, by variable.
        """
        check_value(self.schedule, "schedule", Only(*SCHEDULES))
        if not isinstance(self.damping, Real) or not 0 < self.damping <= 1:
            raise ValueError(f"damping must lie in (0, 1], got {self.damping!r}")
        graph = FactorGraph.of(factors)
        everything = np.arange(len(graph.variables))
        if self.schedule == "sequential":
            blocks = list(everything[:, None])
        elif self.schedule == "coloring":
            blocks = graph.independent_sets()
        else:
            blocks = [everything]
            warnings.warn(
                "schedule='parallel' updates neighbours at the same time, which may oscillate and lower the bound; "
                "'coloring' is as fast and never does",
                UserWarning,
                stacklevel=2,
            )
        model = FactorMeanField(graph, blocks, float(self.damping))
        result = coordinate_ascent(
            model,
            rng=as_generator(self.random_state),
            max_iter=self.max_iter,
            tol=self.tol,
            n_init=self.n_init,
            start=None if init is None else _as_start(graph, init, model.allowed),
            may_fall=self.schedule == "parallel",
            verbose=self.verbose,
        )
        # Two neighbours that take turns have a constant bound: only a still q has settled.
        still = float(np.abs(model.update(result.params) - result.params).max()) < STILL
        self._store(graph, result, result.converged and (still or self.schedule != "parallel"))
        return self

    def _store(self, graph: FactorGraph, result: CoordinateAscentResult[Array], converged: bool) -> None:
        named = zip(graph.variables, graph.cardinalities, result.params)
        self.marginals_ = {name: row[:size] for name, size, row in named}
        self.map_ = {name: int(marginal.argmax()) for name, marginal in self.marginals_.items()}
        self.elbo_ = [float(value) for value in result.trace]
        self.n_iter_ = result.n_iter
        self.converged_ = converged
        self.history_ = result.history
        if result.elbo < LOG_ZERO * 1e-100:
            warnings.warn(
                "q gives probability to configurations that the factors forbid; start from marginals that avoid them "
                "(init) or from several places (n_init)",
                RuntimeWarning,
                stacklevel=3,
            )
        if not self.converged_ and not result.interrupted:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"the bound had not settled after {self.n_iter_} sweeps; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    def __repr__(self) -> str:
        return f"MeanFieldInference(schedule={self.schedule!r}, damping={self.damping})"


def _as_start(graph: FactorGraph, init: Mapping[Any, ArrayLike], allowed: NDArray[np.bool_]) -> Array:
    q = np.zeros(allowed.shape)
    for row, name, size in zip(q, graph.variables, graph.cardinalities):
        marginal = np.asarray(init[name], dtype=np.float64) if name in init else np.full(size, 1.0 / size)
        if marginal.shape != (size,) or not (marginal >= 0).all() or not np.isclose(marginal.sum(), 1.0):
            raise ValueError(f"init must give {size} probabilities for variable {name!r}, got {marginal}")
        row[:size] = marginal
    return q
