r"""Learning one or several exponential-family PCAs: the sweep that the estimators of this folder and mixtures share.

.. math:: z_n \sim \pi, \quad y_n \sim N(0, I_d), \quad
   x_{nj} \mid y_n, z_n = k \sim \text{family}\bigl( w_{kj}^\top y_n + b_{kj} \bigr)

A sweep fits the loadings to the beliefs about the latents (Newton steps, feature by feature), the precisions of their
prior, the weights; then the beliefs to the loadings, and the responsibilities :math:`q_{nk} \propto \pi_k
e^{\ell_{nk}}` from the log evidences :math:`\ell_{nk}`. The objective is :math:`\sum_n \log \sum_k \pi_k e^{\ell_{nk}}`
plus the log prior. With Laplace's approximation it is no bound and may fall; the best sweep is kept. With point
estimates ("map") and with variational bounds it rises with every sweep as long as precisions are not learned.
`pluri.inference.variational.coordinate_ascent` runs it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from pluri.factors.exponential_family.expansion import expansions
from pluri.factors.exponential_family.families import Family
from pluri.factors.exponential_family.latents import UNTIL_SETTLED, Latents, Loadings, infer_latents
from pluri.factors.exponential_family.loadings import InterceptPrior, Regression, climb_rows
from pluri.factors.exponential_family.observations import Observations
from pluri.factors.exponential_family.relevance import WeightPrior
from pluri.factors.exponential_family.starts import latent_classes, start_weights

Array = NDArray[np.float64]

LATENTS = ("per_component", "shared")
#: Newton steps of the latents per sweep, and before the first.
STEPS, FIRST_STEPS = 3, 10


@dataclass(frozen=True)
class Fitted:
    """Parameters of all components.

    Attributes
    ----------
    weights : (n_components,): probabilities of the components
    loadings : one `Loadings` per component
    alpha : (n_components, n_latent): precisions of the columns
    frames, scales : (n_components, n_features, n_latent) and (n_components, n_latent), or None
        The weights as orthonormal columns times scales, where a model is fitted in that form.
    """

    weights: Array
    loadings: tuple[Loadings, ...]
    alpha: Array
    frames: Array | None = None
    scales: Array | None = None


@dataclass(frozen=True)
class State:
    """Parameters, the beliefs that belong to them, and the objective there.

    Attributes
    ----------
    fitted : Fitted
    latents : one `Latents` per component, or a single one that all share
    responsibilities : (n_samples, n_components)
    curvature : curvature of the rows of loadings for each component
    log_likelihood : log evidence of the data (a bound for shared latents)
    objective : with the priors
    log_det : log determinant of the similarities of the components; 0 where nobody asks for it
    """

    fitted: Fitted
    latents: tuple[Latents, ...]
    responsibilities: Array
    curvature: tuple[Array, ...]
    log_likelihood: float
    objective: float
    log_det: float = 0.0


@dataclass(frozen=True)
class ComponentsModel:
    """One or several PCAs as `coordinate_ascent` sees them.

    Attributes
    ----------
    family : Family
    inference : "laplace", "vb" or "map"
    n_components, n_latent : int
    weight_prior : WeightPrior
    intercept_prior : InterceptPrior
    latent : "per_component" or "shared"
    init : "svd" or "random"
    """

    family: Family
    inference: str
    n_components: int
    n_latent: int
    weight_prior: WeightPrior
    intercept_prior: InterceptPrior
    latent: str = "per_component"
    init: str = "svd"

    # Beginning ----------------------------------------------------------------------------------------------------

    def initialize(self, data: Observations, rng: np.random.Generator) -> State:
        """Start from a mixture without latent dimensions, softened."""
        classes = latent_classes(data, self.n_components, self.intercept_prior, rng)
        soft = classes if self.n_components == 1 else 0.9 * classes + 0.1 / self.n_components
        loadings = []
        for k in range(self.n_components):
            weight = soft[:, k] * data.weight
            # The mean of few rows is drawn towards that of all.
            count, prior = data.counts(weight), self.intercept_prior
            towards = np.maximum(prior.count, 1e-3)
            mean = (weight @ data.statistic + towards * prior.mean) / (count + towards)
            intercept = self.family.natural(mean) if prior.fitted else np.zeros(data.n_features)
            loadings.append(Loadings(start_weights(data, weight, intercept, self.n_latent, self.init, rng), intercept))
        shares = soft.T @ data.weight
        alpha = np.tile(self.weight_prior.start(self.n_latent), (self.n_components, 1))
        return self.begin(Fitted(shares / shares.sum(), tuple(loadings), alpha), data, soft)

    def begin(self, fitted: Fitted, data: Observations, responsibilities: Array | None = None) -> State:
        """State at given parameters."""
        latents, found, log_likelihood = self.believe(fitted, data, responsibilities, None, FIRST_STEPS)
        curvature: list[Array] = []
        for k in range(self.n_components):
            if self.weight_prior.kind == "ard":
                curvature.append(self.regression(data, latents, found, k).expand(fitted.loadings[k]).precision)
            else:
                curvature.append(np.zeros((data.n_features, self.n_latent + 1, self.n_latent + 1)))
        return self.weighed(State(fitted, latents, found, tuple(curvature), log_likelihood, 0.0))

    # The two halves of a sweep ------------------------------------------------------------------------------------

    def update(self, state: State, data: Observations) -> State:
        """One sweep."""
        moved = self.maximize(state, data)
        latents, responsibilities, log_likelihood = self.believe(
            moved.fitted, data, state.responsibilities, moved.latents, STEPS
        )
        return self.weighed(
            replace(moved, latents=latents, responsibilities=responsibilities, log_likelihood=log_likelihood)
        )

    def elbo(self, state: State, data: Observations) -> float:
        """The objective, which every state carries."""
        return state.objective

    def maximize(self, state: State, data: Observations) -> State:
        """New parameters from the beliefs."""
        fitted = state.fitted
        loadings, alphas, curvatures, latents = [], [], [], list(state.latents)
        for k in range(self.n_components):
            regression = self.regression(data, state.latents, state.responsibilities, k)
            found, expanded = climb_rows(regression, fitted.loadings[k], fitted.alpha[k])
            curvature = expanded.precision
            if self.weight_prior.kind == "ard" and self.latent == "per_component":
                found, latents[k], curvature = to_principal_axes(found, latents[k], curvature)
            if self.inference == "map" and self.latent == "per_component":
                ridge = fitted.alpha[k] * np.einsum("ji,ji->i", found.weights, found.weights)
                energy = np.einsum("n,ni->i", regression.weight, latents[k].mean ** 2)
                factor = balanced(energy, ridge, np.zeros_like(ridge))
                found = Loadings(found.weights * factor, found.intercept)
                latents[k] = replace(latents[k], mean=latents[k].mean / factor)
            alphas.append(self.weight_prior.learned(fitted.alpha[k], found.weights, curvature))
            loadings.append(found)
            curvatures.append(curvature)
        new = Fitted(self.new_weights(state, data), tuple(loadings), np.stack(alphas))
        return replace(state, fitted=new, latents=tuple(latents), curvature=tuple(curvatures))

    def new_weights(self, state: State, data: Observations) -> Array:
        """Share of each component."""
        shares = state.responsibilities.T @ data.weight
        return shares / shares.sum()

    def regression(
        self, data: Observations, latents: tuple[Latents, ...], responsibilities: Array, component: int
    ) -> Regression:
        """What the loadings of a component are fitted to."""
        beliefs = latents[0] if self.latent == "shared" else latents[component]
        weight = responsibilities[:, component] * data.weight
        return Regression(expansions(self.family, self.inference)[1], data, beliefs, weight, self.intercept_prior)

    def believe(
        self,
        fitted: Fitted,
        data: Observations,
        responsibilities: Array | None,
        start: tuple[Latents, ...] | None,
        n_steps: int = UNTIL_SETTLED,
    ) -> tuple[tuple[Latents, ...], Array, float]:
        """Beliefs about latents and components, and the log evidence of the data."""
        expansion, point = expansions(self.family, self.inference)[0], self.inference == "map"
        with np.errstate(divide="ignore"):
            log_weights = np.log(fitted.weights)
        if self.latent == "shared":
            if responsibilities is None:
                responsibilities = np.tile(fitted.weights, (data.n_samples, 1))
            first = None if start is None else start[0]
            both = infer_latents(
                expansion, data, fitted.loadings, shares=responsibilities, start=first, n_steps=n_steps, point=point
            )
            latents: tuple[Latents, ...] = (both,)
            joint, divergence = latents[0].values + log_weights, latents[0].divergence
        else:
            latents = tuple(
                infer_latents(
                    expansion, data, (loadings,), start=None if start is None else start[k], n_steps=n_steps,
                    point=point,
                )
                for k, loadings in enumerate(fitted.loadings)
            )  # fmt: skip
            joint = np.column_stack([beliefs.evidence for beliefs in latents]) + log_weights
            divergence = np.zeros(data.n_samples)
        total = logsumexp(joint, axis=1)
        return latents, np.exp(joint - total[:, None]), float(data.weight @ (total - divergence))

    def weighed(self, state: State) -> State:
        """The state with its objective."""
        return replace(state, objective=state.log_likelihood + self.log_prior(state))

    def log_prior(self, state: State) -> float:
        """Log prior of the parameters, up to a constant."""
        expansion = expansions(self.family, self.inference)[1]
        total = 0.0
        for k, loadings in enumerate(state.fitted.loadings):
            total += self.weight_prior.log_density(state.fitted.alpha[k], loadings.weights, state.curvature[k])
            total += float(self.intercept_prior.log_density(expansion, loadings.intercept).sum())
        return total


def balanced(energy: Array, square: Array, size: Array) -> Array:
    """Factors c by which scales grow and latents shrink, so that the penalty is least; the products do not change.

    Minimises ``energy / (2 c^2) + square c^2 / 2 + size c`` for each column: the penalty of the latents, of a ridge and
    of absolute values. Alternating updates would crawl along this valley.
    """
    usable = (energy > 0) & (square + size > 0)
    logs = np.zeros_like(energy)
    for _ in range(60):
        c = np.exp(logs)
        pull, push = energy / c**2, square * c**2 + size * c
        slope = pull - push
        curve = 2 * pull + 2 * square * c**2 + size * c
        step = np.where(usable, np.clip(slope / np.where(usable, curve, 1.0), -1.0, 1.0), 0.0)
        logs = logs + step
        if np.abs(step).max(initial=0.0) < 1e-14:
            break
    return np.exp(logs)


def to_principal_axes(loadings: Loadings, latents: Latents, curvature: Array) -> tuple[Loadings, Latents, Array]:
    """Turn the latent space so that the columns of weights are orthogonal.

    The latent variables are isotropic, so the likelihood stays what it was; the precisions of the columns can tell
    directions apart only when no column is a blend of others. The order of the columns is kept.
    """
    width = loadings.weights.shape[1]
    if width < 2:
        return loadings, latents, curvature
    _, turn = np.linalg.eigh(loadings.weights.T @ loadings.weights)
    _, order = linear_sum_assignment(-np.abs(turn))
    turn = turn[:, order]
    turn = turn * np.where(np.diagonal(turn) < 0, -1.0, 1.0)
    wide = np.eye(width + 1)
    wide[:width, :width] = turn
    return (
        Loadings(loadings.weights @ turn, loadings.intercept),
        replace(latents, mean=latents.mean @ turn, covariance=turn.T @ latents.covariance @ turn),
        wide.T @ curvature @ wide,
    )
