r"""Mixtures whose local subspaces repel each other and drop directions that they do not need.

The weights of component k are :math:`W_k = U_k \Phi_k` with orthonormal columns and a diagonal of scales, and

.. math:: \log p(W) = \lambda \log\det S(U_1, \dots, U_K) - \kappa \sum_k \lVert \Phi_k \rVert_1
   - \tfrac12 \sum_{ki} \alpha_{ki} \phi_{ki}^2

with one of the similarities S of :class:`pluri.priors.kernels.SubspaceKernel`. The expected log-likelihood is expanded
to second order around the loadings, feature by feature; the expansion, which no longer looks at the data, is maximised
over frames (line searches on the manifold) and scales (soft thresholds); if the likelihood itself did not rise, the
curvature is enlarged and the step repeated.

The l1 penalty on scales with a normal prior on the latents is not convex: after the best choice of scale it acts on
:math:`t_n = \phi y_n` as :math:`\frac32 \kappa^{2/3} (\sum_n t_n^2)^{1/3}`: all or nothing, and a scale of zero is
always a local optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pluri.factors.exponential_family.latents import Latents, Loadings
from pluri.factors.exponential_family.learning import ComponentsModel, Fitted, State, balanced
from pluri.factors.exponential_family.loadings import FLOOR, Regression, RowExpansion
from pluri.factors.exponential_family.observations import Observations
from pluri.mixtures.exponential_family_pca.frames import Quadratic, climb_frame, climb_scales, orthonormal
from pluri.priors.determinantal import DeterminantalPrior
from pluri.priors.kernels import SubspaceKernel

Array = NDArray[np.float64]

#: How often the curvature is enlarged before the old place is kept.
MOST_ENLARGEMENTS = 8
#: Rounds of frame and scales on one expansion.
ROUNDS = 4
#: Added to similarities before they are inverted.
JITTER = 1e-10


@dataclass(frozen=True)
class Neighbours:
    r"""The other components, as one component sees them while it moves.

    With the similarities s to the others and B the inverse of the similarities among them, :math:`\log\det S = \log(1 -
    s^\top B s)` up to a constant: nothing but s changes, and neither a determinant nor a check of all frames is needed.

    Attributes
    ----------
    frames : (n_others, n_features, n_latent)
    inverse : (n_others, n_others)
    rho : float
    projection : whether the similarity is that of projections
    """

    frames: Array
    inverse: Array
    rho: float
    projection: bool

    @classmethod
    def of(cls, frames: Array, component: int, kernel: SubspaceKernel) -> Neighbours:
        """All but one component."""
        others = np.delete(frames, component, axis=0)
        inverse = np.zeros((len(others), len(others)))
        if len(others):
            inverse = np.asarray(np.linalg.inv(kernel(others) + JITTER * np.eye(len(others))))
        return cls(others, inverse, kernel.rho, kernel.kernel == "projection")

    def _similarities(self, frame: Array) -> tuple[Array, Array]:
        """Similarities (n_others,), and the slope of the exponent of each in the frame, over rho."""
        width = frame.shape[1]
        if self.projection:
            inner = np.swapaxes(self.frames, 1, 2) @ frame
            return np.exp(self.rho * ((inner**2).sum(axis=(1, 2)) - width)), 2.0 * (self.frames @ inner)
        sums = self.frames.sum(axis=2)
        return np.exp(self.rho * (sums @ frame.sum(axis=1) - width)), np.repeat(sums[:, :, None], width, axis=2)

    def log_determinant(self, frame: Array) -> float:
        """Log determinant of all similarities with this frame, relative to that of the others."""
        if not len(self.frames):
            return 0.0
        near, _ = self._similarities(frame)
        rest = 1.0 - float(near @ self.inverse @ near)
        return float(np.log(rest)) if rest > 0 else -np.inf

    def slope(self, frame: Array) -> Array:
        """Its gradient in the surrounding space."""
        if not len(self.frames):
            return np.zeros_like(frame)
        near, slopes = self._similarities(frame)
        pull = self.inverse @ near
        rest = max(1.0 - float(near @ pull), JITTER)
        return np.asarray(np.tensordot(-2.0 * self.rho * pull * near / rest, slopes, axes=1))


@dataclass(frozen=True)
class DiversifiedModel(ComponentsModel):
    """A mixture with frames and scales.

    Attributes
    ----------
    diversity, sparsity : float
        Strengths of the two priors.
    rho : float
    similarity : "projection" or "sum_cosine"
    manifold : "stiefel" or "grassmann"
    """

    diversity: float = 0.0
    sparsity: float = 0.0
    rho: float = 0.1
    similarity: str = "projection"
    manifold: str = "stiefel"

    @property
    def kernel(self) -> SubspaceKernel:
        return SubspaceKernel(self.rho, self.similarity)

    @property
    def repulsion(self) -> DeterminantalPrior:
        """The determinantal prior of the frames."""
        return DeterminantalPrior(self.kernel, self.diversity)

    def begin(self, fitted: Fitted, data: Observations, responsibilities: Array | None = None) -> State:
        """State at given parameters, whose weights are turned to principal axes."""
        if fitted.frames is None:
            parts = [frame_and_scales(loadings.weights) for loadings in fitted.loadings]
            frames, scales = np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])
            if self.diversity > 0:
                frames = self._apart(frames)
            loadings = tuple(Loadings(u * s, old.intercept) for u, s, old in zip(frames, scales, fitted.loadings))
            fitted = replace(fitted, loadings=loadings, frames=frames, scales=scales)
        state = super().begin(fitted, data, responsibilities)
        return replace(state, log_det=self.kernel.log_determinant(frames_of(state.fitted)[0]))

    def _apart(self, frames: Array) -> Array:
        """Frames of which no two coincide: there the density of the prior is zero and its slope undefined."""
        rng = np.random.default_rng(0)
        for _ in range(10):
            if np.isfinite(self.kernel.log_determinant(frames)):
                break
            noise = rng.normal(size=frames.shape) / np.sqrt(frames.shape[1])
            frames = np.stack([orthonormal(frame + 0.1 * step) for frame, step in zip(frames, noise)])
        return frames

    def maximize(self, state: State, data: Observations) -> State:
        """New frames, scales and intercepts, one component after the other."""
        fitted = state.fitted
        frames, scales = (values.copy() for values in frames_of(fitted))
        loadings, alpha = list(fitted.loadings), fitted.alpha.copy()
        curvatures: list[Array] = []
        for k in range(self.n_components):
            regression = self.regression(data, state.latents, state.responsibilities, k)
            expanded = regression.expand(loadings[k])
            frames[k], scales[k], intercept = self._climb(
                regression, expanded, frames, scales[k], loadings[k], alpha[k], k
            )
            loadings[k] = Loadings(frames[k] * scales[k], intercept)
            alpha[k] = self.weight_prior.learned(alpha[k], loadings[k].weights, expanded.precision)
            curvatures.append(expanded.precision)
        latents = state.latents
        if self.inference == "map":
            scales, latents = self._balance(scales, alpha, latents, state.responsibilities, data)
            loadings = [Loadings(u * s, old.intercept) for u, s, old in zip(frames, scales, loadings)]
        new = Fitted(self.new_weights(state, data), tuple(loadings), alpha, frames, scales)
        log_det = self.kernel.log_determinant(frames)
        return replace(state, fitted=new, latents=latents, curvature=tuple(curvatures), log_det=log_det)

    def _climb(
        self,
        regression: Regression,
        expanded: RowExpansion,
        frames: Array,
        scales: Array,
        loadings: Loadings,
        alpha: Array,
        component: int,
    ) -> tuple[Array, Array, Array]:
        """New frame, scales and intercept of one component."""
        width = len(scales)
        cross, own = expanded.precision[:, :width, -1], np.maximum(expanded.precision[:, -1, -1], FLOOR)
        lean = cross / own[:, None]
        gradient = expanded.gradient[:, :width] - lean * expanded.gradient[:, -1:]
        precision = expanded.precision[:, :width, :width] - lean[:, :, None] * cross[:, None, :]

        neighbours = Neighbours.of(frames, component, self.kernel)

        def priors(frame: Array, sizes: Array) -> float:
            return self._penalty(sizes, alpha) + self.diversity * neighbours.log_determinant(frame)

        bound = regression.expansion.is_bound
        before = float(expanded.values.sum()) + priors(frames[component], scales)
        factor = 1.0
        for _ in range(MOST_ENLARGEMENTS):
            model = Quadratic(loadings.weights, gradient, factor * precision)
            frame, sizes = self._climb_model(model, neighbours, frames[component], scales, alpha)
            step = frame * sizes - loadings.weights
            change = expanded.gradient[:, -1] / (factor * own) - np.einsum("ji,ji->j", lean, step)
            intercept = loadings.intercept + change if regression.intercept_prior.fitted else loadings.intercept
            moved = Loadings(frame * sizes, intercept)
            if bound or float(regression.values(moved, expanded.spread).sum()) + priors(frame, sizes) >= before:
                if self.similarity == "projection":  # the sign of a column may move to its scale and back
                    frame, sizes = frame * np.where(sizes < 0, -1.0, 1.0), np.abs(sizes)
                return frame, sizes, intercept
            factor *= 4.0
        return frames[component], scales, loadings.intercept

    def _climb_model(
        self, model: Quadratic, neighbours: Neighbours, frame: Array, scales: Array, alpha: Array
    ) -> tuple[Array, Array]:
        """Maximise a quadratic model of the likelihood with the priors, in turn over the frame and the scales."""
        curve = float(np.abs(model.precision.diagonal(axis1=1, axis2=2)).max(initial=0.0))
        values = [self.diversity * neighbours.log_determinant(frame) + self._penalty(scales, alpha)]
        for _ in range(ROUNDS):
            sizes = scales

            def value(u: Array, sizes: Array = sizes) -> float:
                return model.value(u * sizes) + self.diversity * neighbours.log_determinant(u)

            def slope(u: Array, sizes: Array = sizes) -> Array:
                return model.slope(u * sizes) * sizes + self.diversity * neighbours.slope(u)

            push = max(curve * float(np.max(sizes**2, initial=0.0)), 1e-12)
            frame = climb_frame(value, slope, frame, manifold=self.manifold, n_steps=5, size=1.0 / push)
            scales = climb_scales(model, frame, scales, np.maximum(alpha, 0.0), self.sparsity)
            values.append(value(frame, scales) + self._penalty(scales, alpha))
            if values[-1] - values[-2] <= 0.02 * (values[-1] - values[0]):
                break  # the model itself is not worth more
        return frame, scales

    def _penalty(self, scales: Array, alpha: Array) -> float:
        return -0.5 * float(alpha @ scales**2) - self.sparsity * float(np.abs(scales).sum())

    def _balance(
        self, scales: Array, alpha: Array, latents: tuple[Latents, ...], responsibilities: Array, data: Observations
    ) -> tuple[Array, tuple[Latents, ...]]:
        """Shift size between scales and latents where the priors like it better; the likelihood does not change."""
        square, size = alpha * scales**2, self.sparsity * np.abs(scales)
        weights = responsibilities * data.weight[:, None]
        if self.latent == "shared":
            energy = data.weight @ latents[0].mean ** 2
            factor = balanced(energy, square.sum(axis=0), size.sum(axis=0))
            return scales * factor, (replace(latents[0], mean=latents[0].mean / factor),)
        factors = np.stack(
            [balanced(weights[:, k] @ latents[k].mean ** 2, square[k], size[k]) for k in range(self.n_components)]
        )
        moved = tuple(replace(old, mean=old.mean / factor) for old, factor in zip(latents, factors))
        return scales * factors, moved

    def log_prior(self, state: State) -> float:
        """Log prior with the repulsion of the frames and the absolute scales."""
        frames, scales = frames_of(state.fitted)
        absolute = self.sparsity * float(np.abs(scales).sum())
        return super().log_prior(state) + self.repulsion.log_density(frames) - absolute


def frames_of(fitted: Fitted) -> tuple[Array, Array]:
    """Frames and scales of all components, from the weights where the fit does not carry them."""
    if fitted.frames is not None and fitted.scales is not None:
        return fitted.frames, fitted.scales
    parts = [frame_and_scales(loadings.weights) for loadings in fitted.loadings]
    return np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])


def frame_and_scales(weights: Array) -> tuple[Array, Array]:
    """Orthonormal directions and lengths of the columns of weights turned to principal axes, largest first."""
    frame, scales, _ = np.linalg.svd(weights, full_matrices=False)
    return frame, scales
