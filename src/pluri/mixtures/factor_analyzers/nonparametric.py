"""Mixture of factor analysers that finds the number of components and the rank of each.

Weights are those of a (truncated) Dirichlet process, and a beta process decides which factors a component uses. Data
that lie near curved surfaces are covered by planes of the dimension they have there.

References
----------
Chen, Silva, Paisley, Wang, Dunson and Carin (2010), Compressive sensing on manifolds using a nonparametric mixture of
factor analyzers, IEEE Transactions on Signal Processing 58.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.engine import ArraySource
from pluri.factors.low_rank_gaussian import LowRankGaussians, Patterns, draw, log_density
from pluri.inference import expectation_maximization, mcmc
from pluri.mixtures.factor_analyzers.beliefs import FactorMixtureBeliefs
from pluri.mixtures.factor_analyzers.merging import LEAST_ROWS, merge_components
from pluri.mixtures.factor_analyzers.nonparametric_gibbs import (
    FactorMixtureGibbs,
    FactorMixturePriors,
    Position,
    as_law,
)
from pluri.mixtures.factor_analyzers.nonparametric_mean_field import FactorMixtureMeanField, normalized
from pluri.mixtures.factor_analyzers.queries import FactorMixtureQueries
from pluri.priors import BetaProcess, Gamma
from pluri.priors.hyperpriors import as_hyperparameter
from pluri.validation import (
    Allowed,
    Made,
    Only,
    Stored,
    Whole,
    as_generator,
    check_count,
    check_parameters,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import Interrupted, held, holding

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

UNIT = Gamma(1.0, 1.0)
PRECISION = Made(Gamma, "a prior (Gamma)") | Only(None)
#: Larger data could not be squared and summed.
LARGEST = 1e100


class NonparametricFactorAnalyzerMixture(mcmc.Sampled, FactorMixtureQueries, DensityMixin, Estimator):
    """Mixture of factor analysers with inferred number of components and ranks.

    Priors are for data that are centred and divided by one number, so that their mean variance is one.

    Parameters
    ----------
    max_components : int, default=10
        Largest number of components.
    max_factors : int, default=5
        Largest rank of a component; never more than the number of features.
    inference : {"vb", "gibbs"}, default="vb"
        Mean field with merge moves, which is fast; or Gibbs sampling, each chain of which starts from a mean field fit
        of its own. Components are merged there, before the first sweep; the sweeps themselves move rows one by one
        (and factors), and join or divide components only slowly. So several chains (`n_chains`) are needed to know how
        sure the number of components is: if they end with different ones, `converged_` is False and a warning says so.
    support_prior : `pluri.priors.BetaProcess` prior or None, default=None
        Of which factors are in use: the expected rank is about a / b; None is BetaProcess(1.0, 1.0).
    concentration : float, `pluri.priors.Gamma` prior or "learn", default="learn"
        Of the Dirichlet process. A number is fixed; a prior is what it is learned under; "learn" is Gamma(1, 1).
    noise_prior : `pluri.priors.Gamma` prior or None, default=None
        Of the precision (one over the variance) of the noise; None is Gamma(1.0, 1e-3).
    factor_prior, loading_prior, mean_precision_prior : `pluri.priors.Gamma` prior or None, default=None
        Of the precisions of factors, loadings and means; None is Gamma(1.0, 1.0).
    merge : bool, default=True
        Whether merge moves follow variational inference; without them, too many components are left.
    n_init : int, default=1
        Number of starts of variational inference, of which the best is kept.
    max_iter : int, default=500
        Largest number of sweeps of a variational run.
    tol : float, default=1e-4
        A variational run ends when a sweep raises the bound by less for each row.
    n_draws, n_warmup : int, default=300 and 200
        Draws kept of each chain, and sweeps before them.
    n_chains : int, default=1
        Chains of Gibbs sampling. The first begins with the clusters of k-means, those after it with clusters about
        random rows, so that chains that agree have come from different places.
    n_jobs : int or None, default=None
        Chains run at a time, in threads.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    n_components_ : int
        Number of components that have rows.
    ranks_ : array of shape (n_components_,)
        Number of factors that each of them uses. For Gibbs sampling all attributes are those of the draw of highest
        density; how sure the numbers are is in `trace_`.
    weights_ : array of shape (n_components_,)
        Largest first.
    means_ : array of shape (n_components_, n_features)
    loadings_ : array of shape (n_components_, n_features, n_factors)
        For factors of variance one, zero where `support_` is False; up to a rotation of the factors in use.
    support_ : bool array of shape (n_components_, n_factors)
    noise_precision_ : float
        One over the variance of the noise, the same for all features and components.
    concentration_ : float
        That of the Dirichlet process.
    labels_ : int array of shape (n_samples,)
        Most probable component of each row of the data.
    elbo_ : list of float
        Lower bound by sweep, of the best start; sweeps after a merge from when it had paid off. Variational only.
    trace_ : `pluri.inference.mcmc.Trace`
        Number of components (``n_components``), their sizes (``counts``) and ranks (``ranks``, -1 for no rows), largest
        first, and precisions, by chain and draw; Gibbs sampling only.
    log_joint_ : float
        Log density of the data and of the parameters that are kept; Gibbs sampling only.
    converged_ : bool
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    A line and a plane in five dimensions:

    >>> import numpy as np
    >>> from pluri.mixtures.factor_analyzers import NonparametricFactorAnalyzerMixture
    >>> rng = np.random.default_rng(0)
    >>> line = rng.normal(size=(150, 1)) @ rng.normal(size=(1, 5)) + 2
    >>> plane = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 5)) - 2
    >>> X = np.vstack([line, plane]) + 0.05 * rng.normal(size=(300, 5))
    >>> model = NonparametricFactorAnalyzerMixture(max_components=6, max_factors=4, random_state=0).fit(X)
    >>> model.n_components_, sorted(model.ranks_.tolist())
    (2, [1, 2])
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "weights_": Stored("n_components_", simplex=True),
        "means_": Stored("n_components_", "n_features_in_"),
        "loadings_": Stored("n_components_", "n_features_in_", "n_directions"),
        "support_": Stored("n_components_", "n_directions", whole=True),
        "ranks_": Stored("n_components_", whole=True, least=0),
        "labels_": Stored("n_rows", whole=True, least=0, below="n_components_"),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "max_components": Whole(1),
        "max_factors": Whole(1),
        "inference": Only("vb", "gibbs"),
        "support_prior": Made(BetaProcess, "a prior (BetaProcess)") | Only(None),
        "noise_prior": PRECISION,
        "factor_prior": PRECISION,
        "loading_prior": PRECISION,
        "mean_precision_prior": PRECISION,
    }

    def __init__(
        self,
        max_components: int = 10,
        max_factors: int = 5,
        *,
        inference: str = "vb",
        support_prior: BetaProcess | None = None,
        concentration: float | Gamma | str = "learn",
        noise_prior: Gamma | None = None,
        factor_prior: Gamma | None = None,
        loading_prior: Gamma | None = None,
        mean_precision_prior: Gamma | None = None,
        merge: bool = True,
        n_init: int = 1,
        max_iter: int = 500,
        tol: float = 1e-4,
        n_draws: int = 300,
        n_warmup: int = 200,
        n_chains: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_components = max_components
        self.max_factors = max_factors
        self.inference = inference
        self.support_prior = support_prior
        self.concentration = concentration
        self.noise_prior = noise_prior
        self.factor_prior = factor_prior
        self.loading_prior = loading_prior
        self.mean_precision_prior = mean_precision_prior
        self.merge = merge
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _priors(self) -> FactorMixturePriors:
        value, prior = as_hyperparameter(self.concentration, "concentration", UNIT)
        return FactorMixturePriors(
            self.support_prior or BetaProcess(1.0, 1.0), value if prior is None else prior,
            self.noise_prior or Gamma(1.0, 1e-3), self.factor_prior or UNIT, self.loading_prior or UNIT,
            self.mean_precision_prior or UNIT,
        )  # fmt: skip

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find components and factors.

        After Ctrl-C the model is that of the sweeps so far, with a warning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : object
        """
        check_parameters(self)
        with restored_on_failure(self):
            data = validate_data(self, X, dtype=np.float64)
            if float(np.abs(data).max()) > LARGEST:
                raise ValueError(f"X must not exceed {LARGEST:g} in size, got {np.abs(data).max():.3g}; rescale it")
            center = data.mean(axis=0)
            variance = float(((data - center) ** 2).mean())
            scale = math.sqrt(variance) if variance > 0 else 1.0
            standard = (data - center) / scale
            model = FactorMixtureMeanField(
                int(self.max_components), min(int(self.max_factors), data.shape[1]), self._priors()
            )
            for name in {"trace_", "log_joint_", "elbo_"} & set(vars(self)):
                delattr(self, name)
            rng = as_generator(self.random_state)
            run = self._fit_gibbs if self.inference == "gibbs" else self._fit_vb
            position, counts = run(model, standard, rng)
            self._store(position, counts, center, scale)
            self.labels_ = np.asarray(self._log_joint_of(data).argmax(axis=1), dtype=np.int64)
        return self

    def _mean_field(
        self,
        model: FactorMixtureMeanField,
        X: Array,
        rng: np.random.Generator,
        n_init: int,
        start: FactorMixtureBeliefs | None = None,
    ) -> tuple[FactorMixtureBeliefs, list[float], Any]:
        """Coordinate ascent, then merge moves: beliefs, bounds by sweep, and the result of the last run."""
        tol, max_iter, source = float(self.tol) * len(X), int(self.max_iter), ArraySource(X)
        coarse = 10 * tol if self.merge else tol  # merges change much, so that there is no need to be exact before
        result = expectation_maximization(
            model,
            source,
            rng=rng,
            max_iter=max_iter,
            tol=coarse,
            n_init=n_init,
            start=start,
            verbose=int(self.verbose),
        )
        bounds = result.history.run(result.restart).objective.tolist()

        def note(found: Any) -> None:
            for bound in found.history.run(found.restart).objective.tolist():
                if bound > bounds[-1]:
                    bounds.append(bound)

        if self.merge and not result.interrupted:
            beliefs, bound = merge_components(
                model, X, result.params, result.objective, rng=rng, max_iter=max_iter, tol=coarse, on_merge=note
            )
            result = dataclasses.replace(result, params=beliefs, objective=bound)
            with holding("fit interrupted; the merged components are kept"):
                result = expectation_maximization(model, source, rng=rng, start=beliefs, max_iter=max_iter, tol=tol)
                note(result)
        if held():
            result = dataclasses.replace(result, interrupted=True)
        return result.params, bounds, result

    def _fit_vb(self, model: FactorMixtureMeanField, X: Array, rng: np.random.Generator) -> tuple[Position, Array]:
        beliefs, self.elbo_, result = self._mean_field(model, X, rng, int(self.n_init))
        self.converged_, self.n_iter_ = bool(result.converged), len(self.elbo_)
        if result.reason == "max_iter" and float(self.tol) > 0:
            warnings.warn(
                f"the bound still rises after max_iter={self.max_iter} sweeps; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        shares, _ = normalized(model.local(beliefs, X)[0])
        counts = np.where(shares.sum(axis=0) > LEAST_ROWS, shares.sum(axis=0), 0.0)
        return beliefs.position(shares.argmax(axis=1).astype(np.int64)), counts

    def _fit_gibbs(self, model: FactorMixtureMeanField, X: Array, rng: np.random.Generator) -> tuple[Position, Array]:
        kernel = FactorMixtureGibbs(X, model.max_components, model.max_factors, model.priors)
        n_begun = 0

        def start(stream: np.random.Generator) -> Position:
            # A chain needs long to join the pieces that a random start makes of a plane; a rough fit has done so.
            # But each chain has a fit of its own, from other pieces: if they agree, it is not for their start.
            nonlocal n_begun
            beginning = model.scattered(X, stream) if n_begun else None
            n_begun += 1
            beliefs, _, result = self._mean_field(model, X, stream, 1, beginning)
            if result.interrupted:
                raise Interrupted
            return beliefs.position(normalized(model.local(beliefs, X)[0])[0].argmax(axis=1).astype(np.int64))

        trace = mcmc.sample(
            kernel, start, record=kernel.record, n_draws=self.n_draws, n_warmup=self.n_warmup,
            n_chains=self.n_chains, random_state=rng, n_jobs=self.n_jobs, backend="threads",
            verbose=int(self.verbose), warn=False,
        )  # fmt: skip
        self.trace_ = trace.detached()  # a kernel holds all the data
        chain = int(np.argmax([end.state.best_log_density for end in trace.ends]))
        state = trace.ends[chain].state
        self.log_joint_ = float(state.best_log_density)
        self.n_iter_ = int(self.n_warmup) + trace.n_draws
        self.converged_ = self._chains_agree(trace)
        counts = np.bincount(state.best["labels"], minlength=model.max_components).astype(np.float64)
        return state.best, counts

    @staticmethod
    def _chains_agree(trace: mcmc.Trace) -> bool:
        """Whether the chains have settled, and at the same number of components; a warning says what is not so."""
        verdict = trace.verdict("log_density", "n_components", limit=mcmc.LATENT_R_HAT_LIMIT)
        if not trace.interrupted:
            density, numbers = trace.stats["log_density"], trace["n_components"]
            found = ", ".join(f"{np.bincount(k).argmax()} ({v.max():.1f})" for k, v in zip(numbers, density))
            verdict.warn(f"Numbers of components, and log densities that the chains reached: {found}", stacklevel=5)
        return verdict.settled

    def _store(self, position: Position, counts: Array, center: Array, scale: float) -> None:
        law = as_law(position)
        weights = np.where(counts > 0, np.exp(position["log_weights"]), 0.0)
        order = np.argsort(-weights, kind="stable")[: int((counts > 0).sum())]
        self.n_components_ = len(order)
        self.weights_ = weights[order] / weights[order].sum()
        self.means_ = law.means[order] * scale + center
        self.loadings_ = np.ascontiguousarray(law.loadings[order] * scale)
        self.support_ = position["support"][order] > 0
        self.ranks_ = self.support_.sum(axis=1)
        self.noise_precision_ = float(position["noise_precision"]) / scale**2
        self.concentration_ = float(position["concentration"])

    # Queries ----------------------------------------------------------------------------------------------------

    def _mixture(self) -> tuple[Array, LowRankGaussians]:
        check_is_fitted(self, "weights_")
        noise = np.full(self.means_.shape, 1 / self.noise_precision_)
        return self.weights_, LowRankGaussians(self.means_, self.loadings_, noise)

    def _log_joint(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self, "weights_")
        data = validate_data(self, X, dtype=np.float64, reset=False)
        return data, self._log_joint_of(data)

    def _log_joint_of(self, data: Array) -> Array:
        weights, law = self._mixture()
        return np.asarray(log_density(law, Patterns.of(data)) + np.log(weights))

    def _rows_and_posterior(self, X: Any) -> tuple[Array, Array]:
        data, log_joint = self._log_joint(X)
        return data, normalized(log_joint)[0]

    def score_samples(self, X: Any) -> Array:
        """Log density of each row: (n_samples,)."""
        return np.asarray(logsumexp(self._log_joint(X)[1], axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        return float(self.score_samples(X).mean())

    def predict(self, X: Any) -> Integers:
        """Most probable component of each row: (n_samples,)."""
        return np.asarray(self._log_joint(X)[1].argmax(axis=1), dtype=np.int64)

    def fit_predict(self, X: Any, y: Any = None) -> Integers:
        """Fit, then give the most probable component of each row."""
        return self.fit(X).labels_

    def predict_proba(self, X: Any) -> Array:
        """Probability of each component for each row: (n_samples, n_components_)."""
        return self._rows_and_posterior(X)[1]

    def sample(self, n_samples: int = 1) -> tuple[Array, Integers]:
        """Draw rows from the fitted mixture, ordered by component: rows (n_samples, n_features) and components."""
        weights, law = self._mixture()
        check_count(n_samples, "n_samples")
        rng = as_generator(self.random_state)
        labels = np.repeat(np.arange(len(weights)), rng.multinomial(int(n_samples), weights))
        return draw(law, labels, rng), labels

    def summary(self) -> str:
        """The fitted mixture on one page of plain text."""
        weights, law = self._mixture()
        state = "converged" if self.converged_ else "not converged"
        value = f"log density {self.log_joint_:.6g}" if hasattr(self, "log_joint_") else f"bound {self.elbo_[-1]:.6g}"
        lines = [
            f"{type(self).__name__}: {self.n_components_} of at most {self.max_components} components, "
            f"{self.n_features_in_} features",
            f"{self.inference}: {state} after {self.n_iter_} sweeps; {value}",
            f"noise standard deviation {self.noise_precision_**-0.5:.4g}, concentration {self.concentration_:.3g}",
            "",
            "component  weight  rank  standard deviations along the factors",
        ]
        for j in range(len(weights)):
            axes = np.linalg.svd(law.loadings[j], compute_uv=False)[: self.ranks_[j]]
            lines.append(f"{j:<9d}  {weights[j]:<6.3f}  {self.ranks_[j]:<4d}  {' '.join(f'{a:.4g}' for a in axes)}")
        return "\n".join(lines)
