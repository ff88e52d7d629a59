"""Paths through a flow: step by step, back and forth across gaps, and from one task into another."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.regions.flow import (
    Flow,
    agreement,
    log_density_of_places,
    log_density_of_steps,
    log_shares,
    next_means,
    spread_of_places,
    steps_of,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: A path that is so many times farther from the centre than any training row has left the flow.
FAR = 3.0
#: Ways forth and back across a gap do not meet if they are so many times farther apart than places usually are from
#: their mean; two places that have nothing to do with each other are 1.4 times as far apart. How well those gaps of
#: recorded motions are filled, and all others, is printed by `benchmarks/reproduce/motion_gaps.py`.
APART = 2.0


class Bounds(NamedTuple):
    """Where training rows were: their centre (K,), and the distance of the farthest."""

    center: Array
    reach: float

    def left(self, x: Array) -> bool:
        """Whether a row is far from all of them."""
        away = float(np.abs(x - self.center).max())
        return not away <= FAR * max(self.reach, 1e-12)


class HandOver(NamedTuple):
    """A path that passes from one task into another.

    Attributes
    ----------
    path : (n_steps, n_columns): rows after the first one, which was given
    switched_at : the row of the path that is the first of the other task; None if the tasks never met
    regime : the regime that both had there; None if they never met, or were not asked to meet by regime
    """

    path: Array
    switched_at: int | None
    regime: int | None


def mean_path(flow: Flow, x: Array, n_steps: int, bounds: Bounds) -> Array:
    """Expected rows after x (K,), each given the one before: (n_steps, K); NaN once the path has left the flow."""
    path = np.full((n_steps, len(x)), np.nan)
    row = x[None]
    for step in range(n_steps):
        row = next_means(flow, row)
        if bounds.left(row[0]):
            warn_of_leaving(step, n_steps)
            break
        path[step] = row[0]
    return path


def drawn_paths(rng: np.random.Generator, flow: Flow, x: Array, n_steps: int, bounds: Bounds) -> Array:
    """Random paths from the rows of x (n, K), each by a draw of its own: (n, n_steps, K); NaN once it has left."""
    paths = np.full((len(x), n_steps, x.shape[1]), np.nan)
    own = rng.integers(len(flow.firsts), size=len(x))
    n_left, first_left = 0, n_steps
    for draw in np.unique(own).tolist():
        regions = flow.of_draw(draw)
        going = np.flatnonzero(own == draw)
        rows = x[going]
        for step in range(n_steps):
            rows = _drawn_step(rng, regions, rows)
            stays = np.array([not bounds.left(row) for row in rows], dtype=bool)
            if not stays.all():
                n_left, first_left = n_left + int((~stays).sum()), min(first_left, step)
                going, rows = going[stays], rows[stays]
            paths[going, step] = rows
    if n_left:
        warn_of_leaving(first_left, n_steps)
    return paths


def _drawn_step(rng: np.random.Generator, regions: Flow, rows: Array) -> Array:
    """Next rows, by the regions of one draw."""
    if not len(rows):
        return rows
    edges = np.exp(log_shares(regions, rows)).cumsum(axis=0)
    chosen = np.minimum((edges <= rng.random(len(rows)) * edges[-1]).sum(axis=0), len(edges) - 1)
    noise = rng.standard_normal(rows.shape) * np.sqrt(regions.variances[chosen])[:, None]
    return np.asarray(steps_of(regions, rows)[chosen, np.arange(len(rows))] + noise)


def warn_of_leaving(step: int, n_steps: int) -> None:
    """Say that a path has gone where no flow was learned."""
    warnings.warn(
        f"a path left the flow after {step} of {n_steps} steps: it went {FAR:g} times farther than any training row, "
        "where a regime that expands (an eigenvalue above one) was continued; what follows is NaN",
        UserWarning,
        stacklevel=4,
    )


def fill_gaps(flow: Flow, back: Flow, rows: Array, missing: NDArray[np.bool_], bridge: bool, bounds: Bounds) -> Array:
    """Rows of one sequence with those that are missing filled by paths.

    A gap is crossed forward from the row before it; with `bridge` also back, by another flow, from the row after it,
    and the two are blended linearly; where they do not meet rows are NaN, with a warning. At the ends of a sequence
    there is one way only.
    """
    found, n_unmet = np.where(missing[:, None], np.nan, rows), 0
    edges = np.flatnonzero(np.diff(np.concatenate([[False], missing, [False]]).astype(np.int8)))
    for begin, end in edges.reshape(-1, 2).tolist():
        n, has_before, has_after = end - begin, begin > 0, end < len(rows)
        forth = mean_path(flow, rows[begin - 1], n, bounds) if has_before else None
        home = mean_path(back, rows[end], n, bounds)[::-1] if has_after and (bridge or not has_before) else None
        if forth is None:
            assert home is not None
            found[begin:end] = home
        elif home is None:
            found[begin:end] = forth
        else:
            share = (np.arange(1, n + 1) / (n + 1))[:, None]
            if (np.linalg.norm(forth - home, axis=1) > APART * spread_of_places(flow)).any():
                n_unmet += 1
                continue
            blend = (1 - share) * forth + share * home
            found[begin:end] = np.where(np.isnan(forth), home, np.where(np.isnan(home), forth, blend))
    if n_unmet:
        warnings.warn(
            f"the flow does not lead across {n_unmet} of the {len(edges) // 2} gaps of a sequence: the way forward and "
            "the way back do not meet, and a straight line takes their place",
            UserWarning,
            stacklevel=4,
        )
    return found


def followed(flow: Flow, rows: Array, missing: NDArray[np.bool_]) -> Array:
    """Rows of one sequence, missing entries replaced by what was expected of the rows before them."""
    found = rows.copy()
    start = np.exp(flow.log_weights) @ flow.centers / len(flow.firsts)
    for t in np.flatnonzero(missing).tolist():
        expected = next_means(flow, found[t - 1 : t])[0] if t else start
        found[t] = np.where(np.isnan(rows[t]), expected, rows[t])
    return found


def handed_over(first: Flow, second: Flow, x: Array, n_steps: int, bounds: Bounds) -> HandOver:
    """A mean path of one task that goes on with another from where most draws give both the same matrix."""
    path = np.full((n_steps, len(x)), np.nan)
    row, flow, switched_at, regime = x[None], first, None, None
    for step in range(n_steps):
        if switched_at is None:
            share, name = agreement(first, second, row)
            if share > 0.5:
                flow, switched_at, regime = second, step, name
        row = next_means(flow, row)
        if bounds.left(row[0]):
            warn_of_leaving(step, n_steps)
            break
        path[step] = row[0]
    return HandOver(path, switched_at, regime)


def handed_over_where_probable(first: Flow, second: Flow, x: Array, n_steps: int, bounds: Bounds) -> HandOver:
    """A mean path of one task that goes on with another from the row of its first half that suits the other best.

    That is the row at which the path has the highest density under the other task: of the place, and of the next step.
    """
    path = mean_path(first, x, max(1, n_steps // 2), bounds)
    rows = np.vstack([x, path])
    rows = rows[: int(np.isfinite(rows).all(axis=1).sum())]  # after a path has left there is nothing
    if len(rows) < 2:
        return HandOver(np.full((n_steps, len(x)), np.nan), None, None)
    suits = log_density_of_places(second, rows[:-1]) + log_density_of_steps(second, rows[:-1], rows[1:])
    at = int(suits.argmax())
    return HandOver(np.vstack([path[:at], mean_path(second, rows[at], n_steps - at, bounds)]), at, None)
