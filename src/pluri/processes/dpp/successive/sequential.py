r"""Sequential determinantal point processes: summaries of a stream that is cut into segments.

From each segment t, with items :math:`G_t`, a subset is chosen that is diverse by itself and differs from the choice
before it:

.. math:: P(y_t \mid y_{t-1}) = \frac{\det \Omega_{y_{t-1} \cup y_t}}{\det(\Omega + I_t)}

where :math:`\Omega` is the kernel on :math:`y_{t-1} \cup G_t` and :math:`I_t` the identity on :math:`G_t` only. The
cost is cubic in the length of a segment, whatever the length of the stream. With nothing chosen before, it is a DPP.

References
----------
.. [1] B. Gong, W.-L. Chao, K. Grauman and F. Sha, "Diverse sequential subset selection for supervised video
   summarization", NeurIPS 2014.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.finite import DPP
from pluri.processes.dpp.kernel_checks import check_kernel, check_quality
from pluri.processes.dpp.kernel_forms import Array, DenseKernel, IntArray, as_subset
from pluri.processes.dpp.similarity import as_similarity
from pluri.processes.dpp.successive.markov import schur_complement
from pluri.validation import Number, Only, RandomState, Whole, as_generator, check_value
from pluri.validation.interruption import holding, interruptible


class SequentialDPP:
    """A process over the segments of a stream.

    Parameters
    ----------
    segments : list of array_like (n_items of the segment, n_features)
        Rows of data, one for each item.
    kernel : {"linear", "rbf", "cosine", "exponential_cosine"} or callable, default="linear"
        Similarity of two sets of rows.
    quality : list of array_like (n_items of the segment,), optional
        Non-negative factors.
    ridge : float, default=0.0
        Added to the kernel of every item with itself; above 0 every subset is possible.
    **parameters
        Of the kernel, such as ``length_scale=0.1``.

    Examples
    --------
    Two segments that begin with the same scene: it is seldom chosen twice.

    >>> import numpy as np
    >>> from pluri.processes.dpp.successive.sequential import SequentialDPP
    >>> scenes = 2 * np.eye(4)
    >>> process = SequentialDPP([scenes[[0, 0, 1]], scenes[[1, 2, 2]]])
    >>> [chosen.tolist() for chosen in process.map()]
    [[0, 2], [1]]
    """

    def __init__(
        self,
        segments: Sequence[ArrayLike],
        kernel: str | Callable[..., Any] = "linear",
        quality: Sequence[ArrayLike] | None = None,
        *,
        ridge: float = 0.0,
        **parameters: Any,
    ) -> None:
        self.segments = [check_segment(rows, t) for t, rows in enumerate(segments)]
        if not self.segments:
            raise ValueError("segments must hold at least one segment, got none")
        widths = {rows.shape[1] for rows in self.segments}
        if len(widths) > 1:
            raise ValueError(f"segments must have the same number of columns, got {sorted(widths)}")
        check_value(ridge, "ridge", Number(least=0))
        self.ridge = float(ridge)
        self._similarity = as_similarity(kernel, **parameters)
        if quality is not None and len(quality) != len(self.segments):
            raise ValueError(f"quality must be given for each of {len(self.segments)} segments, got {len(quality)}")
        self._quality = [
            np.ones(len(rows)) if quality is None else check_quality(quality[t], len(rows))
            for t, rows in enumerate(self.segments)
        ]

    @property
    def n_segments(self) -> int:
        """Number of segments."""
        return len(self.segments)

    def transition(self, t: int, previous: ArrayLike = ()) -> DPP:
        """The distribution of the choice from segment ``t`` given the choice ``previous`` from the segment before it.

        Items are numbered within their segment. ValueError if ``previous`` is impossible.
        """
        if not 0 <= t < self.n_segments:
            raise ValueError(f"t must lie between 0 and {self.n_segments - 1}, got {t!r}")
        if t == 0 and np.size(previous):
            raise ValueError("previous must be empty for the first segment")
        before = as_subset(previous, len(self.segments[t - 1]), "previous") if t else np.empty(0, dtype=np.int64)
        rows = np.concatenate([self.segments[t - 1][before], self.segments[t]])
        quality = np.concatenate([self._quality[t - 1][before], self._quality[t]])
        kernel = np.array(self._similarity(rows, rows), dtype=np.float64) * quality * quality[:, None]
        kernel.flat[:: len(kernel) + 1] += self.ridge
        kernel = check_kernel(kernel, f"kernel of segment {t}")
        places = np.arange(len(kernel))
        try:
            return DPP(DenseKernel(schur_complement(kernel, places[: before.size], places[before.size :])))
        except np.linalg.LinAlgError:
            raise ValueError("previous must have a positive probability, got items that depend on each other") from None

    def log_likelihood(self, sequence: Sequence[ArrayLike]) -> float:
        """Log probability of a choice from each of the first segments."""
        total = 0.0
        previous: IntArray = np.empty(0, dtype=np.int64)
        for t, items in enumerate(self._check_sequence(sequence)):
            total += self.transition(t, previous).log_prob(items)
            if total == -np.inf:
                return -np.inf
            previous = items
        return total

    @interruptible
    def sample(self, n_samples: int | None = None, random_state: RandomState = None) -> list[IntArray]:
        """Draw a choice from each of the first ``n_samples`` segments (all by default), one after the other."""
        steps = self._check_steps(n_samples, "n_samples")
        rng = as_generator(random_state)
        chosen: list[IntArray] = []
        with holding(lambda: f"interrupted after {len(chosen)} of {steps} segments, which are kept", chosen):
            for t in range(steps):
                chosen.append(self.transition(t, chosen[-1] if chosen else ()).sample(random_state=rng))
        return chosen

    def map(self, n_segments: int | None = None, beam_width: int = 1) -> list[IntArray]:
        """A choice of high probability from each segment.

        Parameters
        ----------
        n_segments : int, optional
            Number of segments; all by default.
        beam_width : int, default=1
            How many partial sequences, and how many subsets of each size, are followed. 1 is greedy: the best item
            is added while that raises the probability. A width of all subsets is exact.

        Returns
        -------
        list of ndarray
        """
        steps = self._check_steps(n_segments, "n_segments")
        check_value(beam_width, "beam_width", Whole(1))
        beams: list[tuple[float, list[IntArray]]] = [(0.0, [])]
        for t in range(steps):
            longer = []
            for value, chosen in beams:
                law = self.transition(t, chosen[-1] if chosen else ())
                for log_volume, items in _best_subsets(law.L, int(beam_width)):
                    longer.append((value + log_volume - law.log_normalizer, [*chosen, items]))
            longer.sort(key=lambda pair: -pair[0])
            beams = longer[: int(beam_width)]
        return beams[0][1]

    def _check_steps(self, wanted: int | None, name: str) -> int:
        check_value(wanted, name, Whole(0, self.n_segments) | Only(None))
        return self.n_segments if wanted is None else int(wanted)

    def _check_sequence(self, sequence: Sequence[ArrayLike]) -> list[IntArray]:
        if len(sequence) > self.n_segments:
            raise ValueError(f"sequence must have at most {self.n_segments} choices, got {len(sequence)}")
        return [as_subset(items, len(self.segments[t]), f"sequence[{t}]") for t, items in enumerate(sequence)]

    def __repr__(self) -> str:
        return f"SequentialDPP(n_segments={self.n_segments})"


def check_segment(rows: ArrayLike, t: int) -> Array:
    """Finite rows of a segment."""
    segment = np.array(rows, dtype=np.float64)
    if segment.ndim != 2 or 0 in segment.shape:
        raise ValueError(f"segments[{t}] must be a matrix with a row for each item, got shape {segment.shape}")
    if not np.isfinite(segment).all():
        raise ValueError(f"segments[{t}] must be finite, got NaN or infinity")
    return segment


def _best_subsets(kernel: Array, width: int) -> list[tuple[float, IntArray]]:
    """The best subsets by ``log det``, at most ``width``, among those that grow from the best of each size."""
    n_items = len(kernel)
    found: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    front = list(found)
    while front:
        grown: dict[tuple[int, ...], float] = {}
        candidates = {tuple(sorted((*items, i))) for _, items in front for i in range(n_items) if i not in items}
        ordered = sorted(candidates)
        if not ordered:
            break
        index = np.array(ordered)
        sign, log_volume = np.linalg.slogdet(kernel[index[:, :, None], index[:, None, :]])
        scale = np.log(np.maximum(np.diagonal(kernel)[index], np.finfo(float).tiny)).sum(axis=1)
        # Items that depend on each other have a volume by rounding only.
        possible = (sign > 0) & (log_volume > scale + np.log(1e-13))
        for items, value, fine in zip(ordered, log_volume, possible):
            if fine:
                grown[items] = float(value)
        front = sorted(((value, items) for items, value in grown.items()), key=lambda pair: -pair[0])[:width]
        if width == 1 and front and front[0][0] <= found[-1][0]:
            break  # greedy ends where the next item does not pay
        found.extend(front)
    found.sort(key=lambda pair: -pair[0])
    return [(value, np.array(items, dtype=np.int64)) for value, items in found[:width]]
