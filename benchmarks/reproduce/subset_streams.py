"""Following several samplers of subsets through one stream of kernels, in step, and what is measured on the way."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.processes.dpp import DPP

Array = NDArray[np.float64]
FIGURES = ("ms", "own ms", "best", "mean", "cosine", "overlap", "own overlap", "error", "independent", "size", "shown")


class Moment:
    """The exact answers at one step: log normaliser and inclusion probabilities."""

    def __init__(self, kernel: Array) -> None:
        self.kernel = kernel
        resolvent = np.linalg.inv(kernel + np.eye(len(kernel)))
        self.log_normalizer = float(np.linalg.slogdet(kernel + np.eye(len(kernel)))[1])
        self.inclusion: Array = 1.0 - np.diagonal(resolvent)

    @property
    def expected_size(self) -> float:
        return float(self.inclusion.sum())

    def log_probabilities(self, masks: NDArray[np.bool_]) -> Array:
        """Log probabilities of subsets given as rows of truth values."""
        # All as large as the largest: the kernel of the members beside the identity has the determinant of the members.
        largest = max(int(masks.sum(axis=1).max()), 1)
        order = np.argsort(~masks, axis=1, kind="stable")[:, :largest]
        member = np.take_along_axis(masks, order, axis=1)
        blocks = self.kernel[order[:, :, None], order[:, None, :]]
        blocks = np.where(member[:, :, None] & member[:, None, :], blocks, np.eye(largest))
        sign, logs = np.linalg.slogdet(blocks)
        return np.where(sign > 0, logs, -np.inf) - self.log_normalizer

    def independent_error(self, n_draws: int) -> float:
        """Mean absolute error that the frequencies of so many independent draws have (normal approximation)."""
        return float(np.sqrt(2 / np.pi * self.inclusion * (1 - self.inclusion) / n_draws).mean())


class Followed:
    """One sampler, and its figures at each step it was run.

    Parameters
    ----------
    name : str
    stream : TimeVaryingDPP or SeparateDPP
    every : int, default=1
        Run it only at every so many steps (the slow ones).
    """

    def __init__(self, name: str, stream: Any, every: int = 1) -> None:
        self.name, self.stream, self.every = name, stream, every
        self.figures: dict[str, list[float]] = {key: [] for key in FIGURES}
        self.shown: list[frozenset[int]] = []
        self.inclusion: list[Array] = []
        self._before: tuple[NDArray[np.bool_], NDArray[np.int64]] | None = None

    def step(self, number: int, moment: Moment, changed: Any, items: NDArray[np.int64], similarity: Array) -> None:
        """Take the kernel in, measuring how long that takes; then look at the subsets."""
        if number % self.every:
            return
        started = time.perf_counter()
        if number == 0 or self.every > 1:
            self.stream.partial_fit(moment.kernel)
        else:
            self.stream.partial_fit(moment.kernel, changed=changed)
        self.figures["ms"].append(1e3 * (time.perf_counter() - started))
        self.figures["own ms"].append(1e3 * self.stream.history_[-1].seconds)
        self._measure(moment, items, similarity)

    def _measure(self, moment: Moment, items: NDArray[np.int64], similarity: Array) -> None:
        figures, weights = self.figures, self.stream.weights_
        masks = np.zeros((weights.size, len(moment.kernel)), dtype=np.bool_)
        for row, subset in zip(masks, self.stream.particles_):
            row[list(subset)] = True
        logs = moment.log_probabilities(masks)
        alive = np.where(weights > 0, logs, -np.inf)
        best = masks[int(np.argmax(alive))]
        figures["best"].append(float(alive.max()))
        figures["mean"].append(float(weights[weights > 0] @ logs[weights > 0]))
        pairs = similarity[np.ix_(best, best)][np.triu_indices(int(best.sum()), 1)]
        figures["cosine"].append(float(pairs.mean()) if pairs.size else np.nan)
        figures["shown"].append(float(best.sum()))
        # What is shown are the items themselves: a slot with a new content is another one.
        now = frozenset(items[best].tolist())
        if self.shown:
            figures["overlap"].append(jaccard(now, self.shown[-1]))
        self.shown.append(now)
        self._follow_particles(masks, items)
        inclusion = weights @ masks
        self.inclusion.append(inclusion)
        figures["error"].append(float(np.abs(inclusion - moment.inclusion).mean()))
        figures["independent"].append(moment.independent_error(weights.size))
        figures["size"].append(float(inclusion.sum()))

    def _follow_particles(self, masks: NDArray[np.bool_], items: NDArray[np.int64]) -> None:
        """Overlap of each particle with itself at the last step (by place, so only when none was resampled)."""
        if self._before is not None and not getattr(self.stream.history_[-1], "resampled", False):
            old, old_items = self._before
            stayed = old_items == items
            both = (masks & old & stayed).sum(axis=1)
            either = masks.sum(axis=1) + old.sum(axis=1) - both
            self.figures["own overlap"].append(float(np.where(either > 0, both / np.maximum(either, 1), 1.0).mean()))
        self._before = masks, items.copy()

    def average(self, key: str, part: slice = slice(None)) -> float:
        values = np.array(self.figures[key][part])
        return float(np.nanmean(values)) if values.size else np.nan

    @property
    def milliseconds(self) -> float:
        """Median time that the sampler took for a step, the first one left out (it compiles and draws afresh)."""
        return float(np.median(self.figures["own ms"][1:]))

    @property
    def milliseconds_of_call(self) -> float:
        """Median time of the whole call: with the checks of the kernel, and the records for later questions."""
        return float(np.median(self.figures["ms"][1:]))


class FreshDraws:
    """`DPP.sample` at each step, and nothing else: the plainest way to have independent subsets."""

    def __init__(self, n_draws: int, seed: int) -> None:
        self.n_draws, self.rng = n_draws, np.random.default_rng(seed)
        self.seconds: list[float] = []

    def step(self, kernel: Array) -> None:
        started = time.perf_counter()
        DPP(kernel).sample(self.n_draws, random_state=self.rng)
        self.seconds.append(time.perf_counter() - started)

    @property
    def milliseconds(self) -> float:
        return 1e3 * float(np.median(self.seconds[1:]))


def plain_chain(kernel: Array, n_steps: int, rng: np.random.Generator) -> float:
    """Milliseconds of add-or-drop steps written in NumPy, with the inverse of the members' kernel kept up to date.

    What a person writes without a compiler: an item drawn at random is added with probability s / (1 + s), where s is
    the ratio of the determinants, or dropped with 1 / (1 + s).
    """
    started = time.perf_counter()
    members: list[int] = []
    inverse = np.zeros((0, 0))
    for item, level in zip(rng.integers(len(kernel), size=n_steps).tolist(), rng.random(n_steps)):
        if item in members:
            place = members.index(item)
            rest = [other for other in range(len(members)) if other != place]
            if level * (1.0 + inverse[place, place]) < inverse[place, place]:
                column = inverse[rest, place]
                inverse = inverse[np.ix_(rest, rest)] - np.outer(column, column) / inverse[place, place]
                del members[place]
            continue
        beside = kernel[members, item]
        image = inverse @ beside
        gain = kernel[item, item] - beside @ image
        if gain > 1e-10 * kernel[item, item] and level * (1.0 + gain) < gain:
            larger = np.empty((len(members) + 1, len(members) + 1))
            larger[:-1, :-1] = inverse + np.outer(image, image) / gain
            larger[-1, :-1] = larger[:-1, -1] = -image / gain
            larger[-1, -1] = 1.0 / gain
            inverse = larger
            members.append(item)
    return 1e3 * (time.perf_counter() - started)


def jaccard(first: frozenset[int], second: frozenset[int]) -> float:
    """Shared items over all items; 1 for two empty sets."""
    return len(first & second) / len(first | second) if first or second else 1.0
