r"""The penalised M-step of a stochastic matrix: one objective, and the function that climbs it.

.. math:: F(A) = \sum_{ij} C_{ij} \log A_{ij} + \underbrace{\sum_{ij} b_{ij} \log A_{ij}
   + \alpha \log\det \tilde K_A - w \lVert A - A^0 \rVert^2}_{\text{log density of the rows}}

with expected counts :math:`C`, pseudo-counts :math:`b` of a Dirichlet or sticky prior (``base``), a determinantal prior
of strength :math:`\alpha` (``diversity``) and an anchor :math:`A^0` of weight :math:`w`. A model that reports
:func:`log_density_rows` and updates by :func:`maximize_rows` has an objective that EM never lowers.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pluri.priors.determinant import WORST_CONDITION, DiversityWarning, condition_number, log_determinant, unit_rows
from pluri.priors.dirichlet import Dirichlet, Sticky
from pluri.priors.protocol import (
    BoolArray,
    FloatArray,
    PseudoCountPrior,
    RowPrior,
    check_counts,
    check_rows,
    log_likelihood_of_counts,
)
from pluri.priors.row_solvers import SOLVERS, RowProblem, solve_anchored, solve_lbfgs

if TYPE_CHECKING:
    from pluri.priors.diversity import Diversity

FLAT = Dirichlet(1.0)


def log_density_rows(
    rows: ArrayLike,
    *,
    base: RowPrior | None = None,
    diversity: Diversity | None = None,
    anchor: ArrayLike | None = None,
    anchor_weight: float = 0.0,
    support: BoolArray | None = None,
) -> float:
    """Log density of the rows under all priors together, up to a constant: what EM adds to the log-likelihood.

    The arguments are those of :func:`maximize_rows`.

    Examples
    --------
    >>> from pluri.priors import Dirichlet, Diversity, log_density_rows
    >>> log_density_rows([[0.9, 0.1], [0.2, 0.8]], base=Dirichlet(2.0), diversity=Diversity(10.0))
    -11.171999
    """
    values = check_rows("rows", rows)
    density = 0.0
    if base is not None:
        density += base.log_density(values, support=support)
    if diversity is not None:
        density += diversity.log_density(values)
    if anchor is not None and anchor_weight > 0:
        density -= anchor_weight * float(np.sum((values - check_rows("anchor", anchor, values.shape)) ** 2))
    return density


def rows_objective(
    counts: ArrayLike,
    rows: ArrayLike,
    *,
    base: RowPrior | None = None,
    diversity: Diversity | None = None,
    anchor: ArrayLike | None = None,
    anchor_weight: float = 0.0,
    support: BoolArray | None = None,
) -> float:
    """Objective of the M-step: ``sum(counts * log(rows))`` plus :func:`log_density_rows`.

    Examples
    --------
    >>> from pluri.priors import rows_objective
    >>> rows_objective([[9.0, 1.0], [2.0, 8.0]], [[0.9, 0.1], [0.2, 0.8]])
    -8.254854
    """
    observed = check_counts(counts, support)
    values = check_rows("rows", rows, observed.shape)
    return log_likelihood_of_counts(observed, values) + log_density_rows(
        values, base=base, diversity=diversity, anchor=anchor, anchor_weight=anchor_weight, support=support
    )


def maximize_rows(
    counts: ArrayLike,
    start: ArrayLike,
    *,
    base: RowPrior | None = None,
    diversity: Diversity | None = None,
    anchor: ArrayLike | None = None,
    anchor_weight: float = 0.0,
    support: BoolArray | None = None,
    rng: np.random.Generator | None = None,
) -> FloatArray:
    """Rows that maximise the expected log-likelihood of ``counts`` plus the log density of the priors.

    Without diversity the answer is exact (with an anchor and a sparse base: a local maximum). With it, the objective
    has several local maxima: the solver climbs from ``start``, then from the answer without diversity, and the better
    one is returned, never one below ``start``.

    Parameters
    ----------
    counts : array_like, shape (n_rows, n_columns)
        Expected counts.
    start : array_like, shape (n_rows, n_columns)
        The rows before this step.
    base : RowPrior, optional
        Prior on each row by itself, :class:`Dirichlet` or :class:`Sticky`; none is flat.
    diversity : Diversity, optional
        Determinantal prior that pushes the rows apart.
    anchor : array_like, shape (n_rows, n_columns), optional
        Rows to stay near, with a penalty of ``anchor_weight`` times the squared distance.
    anchor_weight : float, default=0.0
        Weight of the anchor.
    support : ndarray of bool, shape (n_rows, n_columns), optional
        Entries that may be positive; the others are kept at zero and do not enter the density of ``base``.
    rng : numpy.random.Generator, optional
        Used only when ``start`` has coinciding rows, to tell them apart; the default has a fixed seed.

    Returns
    -------
    ndarray, shape (n_rows, n_columns)

    Examples
    --------
    >>> from pluri.priors import Diversity, maximize_rows
    >>> counts, start = [[6.0, 4.0], [4.0, 6.0]], [[0.6, 0.4], [0.3, 0.7]]
    >>> maximize_rows(counts, start)
    array([[0.6, 0.4],
           [0.4, 0.6]])
    >>> maximize_rows(counts, start, diversity=Diversity(5.0)).round(4)
    array([[0.8239, 0.1761],
           [0.1761, 0.8239]])
    """
    observed = check_counts(counts, support)
    before = check_rows("start", start, observed.shape, support)
    if not (np.isfinite(anchor_weight) and anchor_weight >= 0):
        raise ValueError(f"anchor_weight must be a non-negative number, got {anchor_weight!r}")
    target = None if anchor is None or anchor_weight == 0 else check_rows("anchor", anchor, observed.shape, support)
    diverse = diversity if diversity is not None and diversity.strength > 0 else None
    if diverse is not None and observed.ndim == 2 and observed.shape[0] > 1:
        unit_rows(before, diverse.rho)  # refuses more rows than columns
    else:
        diverse = None
    if target is None and diverse is None:
        return (base or FLAT).maximize(observed, before, support=support)

    problem = _problem(observed, base, diverse, target, anchor_weight, support)

    def objective(rows: FloatArray) -> float:
        return log_likelihood_of_counts(observed, rows) + log_density_rows(
            rows, base=base, diversity=diverse, anchor=target, anchor_weight=anchor_weight, support=support
        )

    plain = _without_diversity(problem, base, observed, before, support)
    if diverse is None:
        return plain if objective(plain) >= objective(before) else before.copy()
    climb = SOLVERS[diverse.solver]
    best, best_value = before.copy(), objective(before)
    starts = [_told_apart(_lifted(before, problem), diverse, problem, rng, warn=True)]
    if not (np.abs(plain - before) <= 1e-3 * before + 1e-6).all():
        starts.append(_told_apart(_lifted(plain, problem), diverse, problem, rng, warn=False))
    for begin in starts:
        rows = climb(problem, begin, diverse.max_iter, diverse.tol)
        value = objective(rows)
        if value > best_value:
            best, best_value = rows, value
    return best


def warn_if_permutation(rows: ArrayLike, diversity: Diversity | None) -> None:
    """Warn with :class:`DiversityWarning` if the rows have become disjoint, once at the end of a fit.

    Parameters
    ----------
    rows : array_like, shape (n_rows, n_columns)
        The fitted rows.
    diversity : Diversity, optional
        The prior that they were fitted with; none or one of strength 0 is never to blame.

    Examples
    --------
    >>> from pluri.priors import Diversity, warn_if_permutation
    >>> warn_if_permutation([[0.9, 0.1], [0.2, 0.8]], Diversity(2.0))
    """
    if diversity is None or diversity.strength == 0 or np.ndim(rows) != 2 or np.shape(rows)[0] < 2:
        return
    if log_determinant(rows, diversity.rho) > -1e-3:
        warnings.warn(
            "the rows have become disjoint (a square matrix is then a permutation): the diversity strength "
            f"{diversity.strength:g} outweighs the counts; use a smaller one",
            DiversityWarning,
            stacklevel=2,
        )


def _problem(
    observed: FloatArray,
    base: RowPrior | None,
    diverse: Diversity | None,
    target: FloatArray | None,
    anchor_weight: float,
    support: BoolArray | None,
) -> RowProblem:
    prior = FLAT if base is None else base
    # The protocol alone would do, but asking it is slower than an iteration of the solver.
    if not isinstance(prior, Dirichlet | Sticky | PseudoCountPrior):
        raise TypeError(
            f"base must offer pseudo_counts to be combined with diversity or an anchor, got {type(base).__name__}"
        )
    table = observed.reshape(-1, observed.shape[-1])
    extra = prior.pseudo_counts(observed.shape).reshape(table.shape)
    allowed = np.ones(table.shape, dtype=bool) if support is None else support.reshape(table.shape)
    evidence = table + np.where(allowed, extra, 0.0)
    floor = max(prior.floor if (extra < 0).any() else 0.0, 1e-12 if diverse is None else diverse.floor)
    if not floor * table.shape[1] < 1:
        raise ValueError(f"floor must be below 1 / n_columns ({table.shape[1]} columns), got {floor}")
    return RowProblem(
        evidence=evidence,
        strength=0.0 if diverse is None else diverse.strength,
        rho=0.5 if diverse is None else diverse.rho,
        anchor=np.zeros(table.shape) if target is None else target.reshape(table.shape),
        anchor_weight=0.0 if target is None else float(anchor_weight),
        floor=floor,
        support=allowed,
    )


def _without_diversity(
    problem: RowProblem, base: RowPrior | None, observed: FloatArray, before: FloatArray, support: BoolArray | None
) -> FloatArray:
    """Answer for diversity strength 0."""
    if problem.anchor_weight == 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a row that vanishes here need not vanish in the answer
            return (base or FLAT).maximize(observed, before, support=support)
    if (problem.evidence >= 0).all():
        rows = solve_anchored(problem.evidence, problem.anchor, problem.anchor_weight, problem.support)
    else:
        alone = RowProblem(**{**vars(problem), "strength": 0.0})
        rows = solve_lbfgs(alone, _lifted(before.reshape(problem.anchor.shape), problem), 500, 1e-12)
    return rows.reshape(observed.shape)


def _lifted(rows: FloatArray, problem: RowProblem) -> FloatArray:
    """Rows strictly above the floor on the support, where logits exist."""
    lifted = np.where(problem.support, np.maximum(rows, 2.0 * problem.floor), 0.0)
    lifted /= lifted.sum(axis=1, keepdims=True)
    return np.where(problem.support, np.maximum(lifted, 1.5 * problem.floor), 0.0)


def _told_apart(
    rows: FloatArray, diverse: Diversity, problem: RowProblem, rng: np.random.Generator | None, *, warn: bool
) -> FloatArray:
    """Rows mixed with a Dirichlet draw if they are linearly dependent to rounding, else as they are."""
    # The squared singular values of unit rows sum to n_rows, so the smallest is at least |det U| / sqrt(e): a
    # decomposition is needed only when the determinant is tiny.
    if log_determinant(rows, diverse.rho) > -48.0:
        return rows
    if condition_number(unit_rows(rows, diverse.rho)) < WORST_CONDITION:
        return rows
    if warn:
        warnings.warn(
            "the rows of start are linearly dependent, where the diversity prior has no gradient: they are jittered",
            DiversityWarning,
            stacklevel=3,
        )
    generator = np.random.default_rng(0) if rng is None else rng
    noise = np.where(problem.support, generator.standard_exponential(rows.shape), 0.0)
    mixed = _lifted(0.9 * rows + 0.1 * noise / noise.sum(axis=1, keepdims=True), problem)
    if log_determinant(mixed, diverse.rho) == -np.inf:
        raise ValueError("support must allow linearly independent rows for a diversity prior, got one that does not")
    return mixed
