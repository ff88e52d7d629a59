r"""Exact draws by way of a small random set of candidates, for kernels too large to decompose.

Let every item be a candidate independently with probability :math:`\pi_i`, and let
:math:`\tilde L_{ij} = L_{ij} / \sqrt{\pi_i \pi_j}` on the candidates :math:`\sigma`. Then
:math:`E \det(I + \tilde L_\sigma) = \det(I + L)`, and if :math:`\sigma` is weighted by this determinant, a draw from
the process with kernel :math:`\tilde L_\sigma` is an exact draw from the process with kernel L: each subset S is among
the candidates with probability :math:`\prod_S \pi_i`, and then has the weight :math:`\det L_S / \prod_S \pi_i`.

The weighting is done by rejection. With landmarks whose rows of L give an approximation :math:`\hat L \preceq L`, and

.. math::

   l_i = L_{ii} - \hat L_{ii} + [\hat L (I + \hat L)^{-1}]_{ii}, \qquad
   \hat s = \mathrm{tr}\, \hat L (I + \hat L)^{-1},

concavity of the log determinant bounds it by
:math:`\log\det(I + \hat L) - \hat s + \sum_{i \in \sigma} l_i / \pi_i`, whose exponential factorises over the items.
The cost of a draw depends on the expected size of the subset, not on the number of items.

References
----------
.. [1] M. Derezinski, D. Calandriello and M. Valko, "Exact sampling of determinantal point processes with sublinear time
   preprocessing", NeurIPS 2019. Candidates there are drawn with replacement; independent candidates are fewer and are
   accepted more often.
.. [2] D. Calandriello, M. Derezinski and M. Valko, "Sampling from a k-DPP without looking at all items", NeurIPS 2020.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import brentq

from pluri.processes.dpp.kernel_forms import Array, FeatureKernel, IntArray, KernelForm
from pluri.processes.dpp.samplers.landmarks import Approximation, approximate_below, more_landmarks, scale_for_size
from pluri.processes.dpp.samplers.sequential import WORTH_THREADS, decide_items, decide_rows
from pluri.validation.interruption import holding, interruptible

#: What the landmarks may leave of the trace of L; the acceptance falls by at most exp(-this).
LEFT_OVER = 0.2
#: Landmarks that "auto" stops at, and candidates whose kernel is still written out.
MOST_LANDMARKS, MOST_CANDIDATES = 2000, 10_000
#: Rejections in a row after which the landmarks are judged too few.
PATIENCE = 1000
#: What is left of an item below this share of its own L_ii is not known well enough to draw it for.
EXPLAINED = 1e-8
#: Items that would be candidates with at least this probability always are.
ALWAYS = 0.999


def tilt(leverage: Array, ratio: float) -> tuple[Array, Array, float]:
    """Candidate probabilities ``ratio * leverage``, those proposed, and the log of how often that fails at best.

    Proposed are the probabilities tilted by ``exp(leverage / probability)``, an item's share of the bound.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        probabilities = np.where(leverage > 0, np.minimum(ratio * leverage, 1.0), 0.0)
        probabilities[probabilities >= ALWAYS] = 1.0
        hits = np.log(probabilities) + np.where(leverage > 0, leverage / probabilities, 0.0)
        log_total = np.logaddexp(np.log1p(-probabilities), hits)
        tilted = np.where(probabilities == 1.0, 1.0, np.exp(hits - log_total))
    return probabilities, tilted, float((log_total - leverage).sum())


def identity_plus(matrix: Array) -> tuple[Array, float]:
    """Lower Cholesky factor of the identity plus a matrix, which is overwritten, and the log of its determinant."""
    matrix.flat[:: len(matrix) + 1] += 1.0
    factor, failed = dpotrf(matrix.T, lower=1, overwrite_a=1)
    if failed:
        raise ValueError("the kernel must be positive semi-definite, got a block of it that is not")
    return factor, 2.0 * float(np.log(np.diagonal(factor)).sum())


class IntermediateSampler:
    """Exact draws whose cost depends on the size of the subsets and not on the number of items.

    The preparation looks at the items in a few passes, O(n_items * n_landmarks^2), and keeps numbers, not rows, of
    each; no matrix of all items is made. The number of candidates grows with the square of the expected size: this is
    for many items and subsets of at most about a hundred (``python benchmarks/peers/dpp.py candidates``).

    Parameters
    ----------
    kernel : KernelForm
        `DenseKernel`, `FeatureKernel` or `FunctionKernel`. Features up to 2,000 in number need no landmarks.
    size : int, optional
        Number of items of each subset; None for the process without a fixed size.
    n_landmarks : int or "auto", default="auto"
        Rows of the kernel that the bound is made of. "auto" doubles them until they explain the kernel.
    n_candidates : float or "auto", default="auto"
        Mean number of candidates before weighting; "auto" weighs the work for each against the acceptance.

    Attributes
    ----------
    landmarks : ndarray or None
        The items whose rows were used; None if the features were used as they are.
    expected_candidates : float
        Mean number of candidates that are proposed.
    acceptance : float
        Share of the proposals accepted so far; NaN before the first.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import FunctionKernel, IntermediateSampler
    >>> points = np.linspace(0.0, 1.0, 2000)[:, None]
    >>> closeness = FunctionKernel(lambda a, b: np.exp(-50 * (a - b.T) ** 2), points)
    >>> sampler = IntermediateSampler(closeness, size=5)
    >>> subset, = sampler.draw(1, np.random.default_rng(0))
    >>> subset.size, bool(sampler.expected_candidates < 200)
    (5, True)
    """

    def __init__(
        self,
        kernel: KernelForm,
        size: int | None = None,
        n_landmarks: int | Literal["auto"] = "auto",
        n_candidates: float | Literal["auto"] = "auto",
    ) -> None:
        if size is not None and not 0 <= size <= kernel.n_items:
            raise ValueError(f"size must be between 0 and the number of items ({kernel.n_items}), got {size}")
        if n_landmarks != "auto" and not 1 <= n_landmarks <= kernel.n_items:
            raise ValueError(
                f"n_landmarks must be 'auto' or between 1 and the number of items ({kernel.n_items}), "
                f"got {n_landmarks!r}"
            )
        if n_candidates != "auto" and not n_candidates > 0:
            raise ValueError(f"n_candidates must be 'auto' or a positive number, got {n_candidates!r}")
        if not np.isfinite(kernel.diagonal()).all():
            raise ValueError("kernel must have a finite, non-negative diagonal")
        self.kernel, self.size, self.n_landmarks, self.n_candidates = kernel, size, n_landmarks, n_candidates
        self.n_proposed = self.n_accepted = 0
        self._enough = LEFT_OVER
        self._prepare()

    @property
    def acceptance(self) -> float:
        """Share of the proposals accepted so far."""
        return self.n_accepted / self.n_proposed if self.n_proposed else float("nan")

    @property
    def landmarks(self) -> IntArray | None:
        """Items whose rows the bound is made of."""
        return self._approximation.landmarks

    @interruptible
    def draw(self, n_draws: int, rng: np.random.Generator) -> list[IntArray]:
        """Independent subsets, each sorted; those made so far if interrupted."""
        from threadpoolctl import threadpool_limits

        subsets: list[IntArray] = []
        # On so few candidates threads only wait for each other.
        limit = threadpool_limits(1 if self.expected_candidates < WORTH_THREADS else None, user_api="blas")
        kept = holding(lambda: f"interrupted after {len(subsets)} of {n_draws} draws, which are kept", subsets)
        with kept, limit:
            subsets.extend(self._draw_one(rng) for _ in range(n_draws))
        return subsets

    def _prepare(self) -> None:
        """Landmarks, then for each item how likely it is a candidate and what it adds to the bound."""
        self._approximation = approximation = self._approximate()
        total = float(approximation.left_over.sum())
        self._is_empty = self.size == 0 or (approximation.eigenvalues.size == 0 and total == 0.0)
        self._scale = 1.0
        if self.size:
            self._refuse_dependent(approximation)
            self._scale = scale_for_size(approximation.eigenvalues, total, self.size)
        scaled = self._scale * approximation.eigenvalues
        # log det(I + Lhat) - tr Lhat (I + Lhat)^-1
        self._log_bound = float((np.log1p(scaled) - scaled / (1 + scaled)).sum())
        leverage = approximation.leverage(self._scale)
        ratio = self._best_ratio(leverage) if self.n_candidates == "auto" else self._given_ratio(leverage)
        probabilities, tilted, _ = tilt(leverage, ratio)
        self._probabilities = probabilities
        self._cost = np.divide(leverage, probabilities, out=np.zeros_like(leverage), where=probabilities > 0)
        self._certain = np.flatnonzero(tilted == 1.0)
        # Independent candidates from a Poisson number of trials: an item is hit at least once with its probability.
        rates = -np.log1p(-np.where(tilted < 1.0, tilted, 0.0))
        self._cumulative = np.cumsum(rates)
        self.expected_candidates = float(tilted.sum())
        self._all_certain = bool((probabilities[leverage > 0] == 1.0).all())
        if self.expected_candidates > MOST_CANDIDATES and not self._uses_features:
            raise ValueError(
                f"the expected size of about {leverage.sum():.0f} would need {self.expected_candidates:.0f} candidates "
                f"at a time, of at most {MOST_CANDIDATES}; scale the kernel down or give it by features"
            )

    def _approximate(self) -> Approximation:
        """The features themselves, or landmarks: as many as asked for, or doubled until they explain the kernel."""
        kernel, n_items = self.kernel, self.kernel.n_items
        wants_features = isinstance(kernel, FeatureKernel) and self.n_landmarks == "auto"
        if wants_features and kernel.features.shape[1] <= min(n_items, MOST_LANDMARKS):  # type: ignore[attr-defined]
            return approximate_below(kernel, None)
        most = min(n_items, MOST_LANDMARKS) if self.n_landmarks == "auto" else self.n_landmarks
        current = approximate_below(kernel, np.empty(0, dtype=np.int64))
        while True:
            assert current.landmarks is not None
            known, total = current.landmarks.size, float(current.left_over.sum())
            scale = 1.0
            if self.size and total + current.eigenvalues.sum() > 0:
                scale = scale_for_size(current.eigenvalues, total, self.size)
            if known >= most or total == 0.0 or (self.n_landmarks == "auto" and scale * total <= self._enough):
                return current
            wanted = max(32, known) if self.n_landmarks == "auto" else most - known
            enough = self._enough / (2 * scale) if self.n_landmarks == "auto" else 0.0
            landmarks = more_landmarks(current, min(wanted, most - known), enough)
            if landmarks.size == known:
                return current
            current = approximate_below(kernel, landmarks)

    def _refuse_dependent(self, approximation: Approximation) -> None:
        """ValueError if items beyond the landmarks are wanted, though these explain all others up to rounding."""
        known, left = approximation.landmarks, approximation.left_over
        if known is None or self.size is None or self.size <= known.size or self.n_landmarks != "auto":
            return
        dependent = left < EXPLAINED * self.kernel.diagonal()
        if known.size < MOST_LANDMARKS and left[dependent].sum() > 0.5 * left.sum() > 0:
            raise ValueError(
                f"size must be at most the number of items that differ to working precision (about {known.size}), got "
                f"{self.size}; a draw from the spectrum may tell a few more apart"
            )

    def _best_ratio(self, leverage: Array) -> float:
        """The ratio of candidate probability to leverage at which an exact draw is cheapest."""
        positive = leverage[leverage > 0]
        best, cheapest, rank = np.inf, np.inf, len(self._approximation.gram)
        for ratio in [*np.geomspace(0.05, 2 * positive.sum() + 2, 40), np.inf]:
            _, tilted, log_loss = tilt(positive, ratio)
            count, tries = tilted.sum() + 1.0, np.exp(min(log_loss, 50.0))
            in_features = (count + rank / 3) * rank**2
            written_out = count**3 / 3 + 50 * count**2
            if self._uses_features:
                work = (tries + 1) * in_features
            elif ratio == np.inf:
                work = 3 * written_out
            else:
                work = tries * min(in_features + 50 * count * rank, written_out) + 3 * written_out
            if work < cheapest:
                best, cheapest = ratio, work
        return float(best)

    def _given_ratio(self, leverage: Array) -> float:
        """The ratio with the mean number of candidates that was asked for."""
        assert self.n_candidates != "auto"
        positive, wanted = leverage[leverage > 0], float(self.n_candidates)
        if wanted >= positive.size:
            return np.inf
        smallest = float(np.log(wanted / positive.sum())) - 1.0
        largest = float(-np.log(positive.min()))
        return float(np.exp(brentq(lambda a: np.minimum(1.0, np.exp(a) * positive).sum() - wanted, smallest, largest)))

    @property
    def _uses_features(self) -> bool:
        return self._approximation.landmarks is None

    def _draw_one(self, rng: np.random.Generator) -> IntArray:
        rejected = missed = 0
        while not self._is_empty:
            candidates = self._candidates(rng)
            # Where all items are candidates there is nothing to weigh.
            threshold = -np.inf
            if not self._all_certain:
                threshold = self._log_bound + float(self._cost[candidates].sum()) + np.log(1.0 - rng.random())
            self.n_proposed += 1
            kept = self._weigh(candidates, threshold, rng)
            if kept is None:
                rejected += 1
                if rejected >= PATIENCE:
                    self._improve()
                    rejected = 0
                continue
            rejected = 0
            self.n_accepted += 1
            if self.size is None or kept.size == self.size:
                return candidates[kept]
            missed += 1
            if missed >= PATIENCE:
                raise RuntimeError(
                    f"none of the last {PATIENCE} subsets had the size of {self.size}: fewer items may differ to "
                    "working precision; ask for a smaller size or more landmarks (n_landmarks), or draw from the "
                    "spectrum"
                )
        return np.empty(0, dtype=np.int64)

    def _candidates(self, rng: np.random.Generator) -> IntArray:
        """Independent candidates in time that does not depend on the number of items; sorted."""
        total = self._cumulative[-1]
        trials = rng.random(rng.poisson(total)) * total
        hit = np.searchsorted(self._cumulative, trials, side="right")
        return np.unique(np.concatenate([self._certain, np.minimum(hit, self._cumulative.size - 1)]))

    def _weigh(self, candidates: IntArray, threshold: float, rng: np.random.Generator) -> IntArray | None:
        """Positions among the candidates of an exact draw; None if their log determinant is below the threshold."""
        if candidates.size == 0:
            return candidates if threshold <= 0.0 else None
        lengths = np.sqrt(self._scale / self._probabilities[candidates])
        if candidates.size > len(self._approximation.gram) and threshold > -np.inf:
            rows = self._approximation.rows(candidates) * lengths[:, None]
            factor, log_determinant = identity_plus(rows.T @ rows)
            # The determinant of L itself is larger by a factor of at most the exponential of what is left of its trace.
            missing = float((self._approximation.left_over[candidates] * lengths**2).sum())
            if log_determinant + missing < threshold:
                return None
            if self._uses_features:
                # B (I + B^T B)^-1 B^T
                inverse = dpotri(factor, lower=1, overwrite_c=1)[0]
                return decide_rows(rows, np.tril(inverse) + np.tril(inverse, -1).T, rng)
        matrix = self.kernel.block(candidates, candidates) * lengths[:, None]
        matrix *= lengths
        factor, log_determinant = identity_plus(matrix)
        if log_determinant < threshold:
            return None
        # I - (I + L)^-1, in the lower triangle
        marginal = dpotri(factor, lower=1, overwrite_c=1)[0]
        np.negative(marginal, out=marginal)
        marginal.T.flat[:: len(marginal) + 1] += 1.0
        return decide_items(marginal, np.empty_like(marginal), rng)

    def _improve(self) -> None:
        """More landmarks after too many rejections, or an error if there can be none."""
        left = self._scale * float(self._approximation.left_over.sum())
        known = self._approximation.landmarks
        can_grow = known is not None and self.n_landmarks == "auto" and known.size < MOST_LANDMARKS and left > 0
        if can_grow:
            before, self._enough = self._approximation, min(self._enough, left) / 8
            self._prepare()
            if self._approximation.gram.shape != before.gram.shape:
                return
        raise RuntimeError(
            f"none of the last {PATIENCE} proposals of about {self.expected_candidates:.0f} candidates was accepted: "
            f"{0 if known is None else known.size} landmarks leave {left:.3g} of the trace of the kernel; ask for more "
            "landmarks (n_landmarks) or candidates (n_candidates), or draw from the spectrum"
        )


def draw_intermediate(
    kernel: KernelForm,
    n_draws: int,
    rng: np.random.Generator,
    size: int | None = None,
    n_landmarks: int | Literal["auto"] = "auto",
) -> list[IntArray]:
    """Independent exact draws by way of candidates; see `IntermediateSampler`, which keeps its preparation for more.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import DenseKernel, draw_intermediate
    >>> subsets = draw_intermediate(DenseKernel(np.eye(50)), 3, np.random.default_rng(0), size=10)
    >>> [subset.size for subset in subsets]
    [10, 10, 10]
    """
    return IntermediateSampler(kernel, size, n_landmarks).draw(n_draws, rng)
