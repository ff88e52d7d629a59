r"""Denoising of binary and label images with an Ising or Potts prior: neighbours tend to be equal.

    p(x) proportional to exp(J sum_{s~t} x_s x_t),  x in {-1, +1}        (two labels: Ising)
    p(x) proportional to exp(J sum_{s~t} 1[x_s = x_t])                   (more labels: Potts)

and each pixel y_i is seen through noise, p(y_i | x_i). The posterior is approximated by mean field, sampled by Gibbs
sweeps, or, on narrow grids, summed exactly. Mean field is fast and over-confident: on the square grid it sees order
from J = 1/4 on, where the truth is J = 0.4407. Its bound is on log p(y) + log Z(J), so it does not compare couplings.

References
----------
Geman and Geman (1984), Stochastic relaxation, Gibbs distributions, and the Bayesian restoration of images, IEEE PAMI 6.
Onsager (1944) for the critical coupling.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pluri.inference import History, mcmc
from pluri.inference.variational import coordinate_ascent
from pluri.processes.ising_exact import exact_marginals
from pluri.processes.ising_gibbs import LabelGibbs, LabelState
from pluri.processes.ising_grid import (
    GridMeanField,
    LabelField,
    LogLikelihood,
    as_grids,
    entropies,
    flip_noise,
    gaussian_noise,
    n_edges,
    warn_of_other_levels,
)
from pluri.validation import Allowed, Number, Only, RandomState, Whole, as_generator, check_parameters, check_value
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


class IsingDenoiser(mcmc.Sampled, Estimator):
    """Posterior of the labels of a noisy image under an Ising or Potts prior.

    Parameters
    ----------
    coupling : float, default=1.0
        J: how much neighbours like to be equal; negative if they like to differ.
    noise_model : {"gaussian", "flip"} or callable, default="gaussian"
        Normal noise around each label's level; levels replaced at random by others; or a function that gives
        log p(y | label), an array of the shape of y with an axis of `n_labels` added.
    sigma : float, default=2.0
        Standard deviation of normal noise.
    flip_prob : float, optional
        Probability that a level is replaced, for ``noise_model="flip"``.
    n_labels : int, default=2
        Number of labels.
    levels : array of shape (n_labels,), optional
        What each label looks like without noise; by default -1 and 1 for two labels, else 0, 1, 2, ...
    inference : {"vb", "gibbs", "exact"}, default="vb"
        How marginals are found: by mean field, by sampling, or by sums. "exact" takes grids of at most 16 pixels
        across (two labels).
    damping : float, default=0.5
        Share of the new value in a mean-field update, in (0, 1].
    schedule : {"checkerboard", "parallel"}, default="checkerboard"
        Order of mean-field updates; "parallel" (all pixels at a time) may oscillate and is here for comparison.
    max_iter : int, default=50
        Largest number of mean-field sweeps.
    tol : float, default=1e-4
        Relative change of the bound at which mean field stops.
    n_draws, n_warmup, n_chains : int, default=500, 100 and 2
        Gibbs: sweeps that count in each chain, sweeps before them, chains.
    neighbors : {2, 4, 6}, default=4
        4: pixels of a plane; an array of three axes is a stack of separate images. 6: voxels; four axes are a stack.
        2: points on a line.
    random_state : int, numpy Generator, RandomState or None, default=None
        Of the Gibbs chains.
    n_jobs : int, optional
        Gibbs chains that run at a time, in threads.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : array of the shape of Y
        The level of the most probable label of each pixel: the denoised image.
    proba_ : array of the shape of Y and n_labels
        Posterior probability of each label.
    mean_ : array of the shape of Y
        Posterior mean level; between -1 and 1 for two labels.
    levels_ : array of shape (n_labels,)
    elbo_ : list of float
        Mean field: the bound before each sweep and after the last. Exact: log p(y) + log Z(J) itself.
    entropy_ : list of float
        Mean entropy of a pixel's marginal in nats, likewise; Gibbs has the last value only.
    n_iter_ : int
        Sweeps of mean field, or of each chain.
    converged_ : bool
        Whether the bound had settled, or the chains agreed.
    history_ : History
        Mean field: bound and duration of each sweep.
    trace_ : pluri.inference.mcmc.Trace
        Gibbs: share of each label and log density after each sweep.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.ising import IsingDenoiser
    >>> truth = -np.ones((32, 32))
    >>> truth[8:24, 8:24] = 1.0
    >>> noisy = truth + np.random.default_rng(0).normal(size=truth.shape)
    >>> model = IsingDenoiser(coupling=1.0, sigma=1.0).fit(noisy)
    >>> round(float((np.sign(noisy) != truth).mean()), 3), round(float((model.labels_ != truth).mean()), 3)
    (0.151, 0.0)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "coupling": Number(),
        "n_labels": Whole(2),
        "inference": Only("vb", "gibbs", "exact"),
        "damping": Number(above=0, most=1),
        "schedule": Only("checkerboard", "parallel"),
        "tol": Number(),
    }

    def __init__(
        self,
        coupling: float = 1.0,
        noise_model: Any = "gaussian",
        sigma: float = 2.0,
        flip_prob: float | None = None,
        n_labels: int = 2,
        levels: ArrayLike | None = None,
        inference: str = "vb",
        damping: float = 0.5,
        schedule: str = "checkerboard",
        max_iter: int = 50,
        tol: float = 1e-4,
        n_draws: int = 500,
        n_warmup: int = 100,
        n_chains: int = 2,
        neighbors: int = 4,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.coupling = coupling
        self.noise_model = noise_model
        self.sigma = sigma
        self.flip_prob = flip_prob
        self.n_labels = n_labels
        self.levels = levels
        self.inference = inference
        self.damping = damping
        self.schedule = schedule
        self.max_iter = max_iter
        self.tol = tol
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.neighbors = neighbors
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, Y: ArrayLike, y: Any = None) -> Self:
        """Find the posterior of the labels of Y.

        Parameters
        ----------
        Y : array of shape (height, width), or (n_images, height, width)
            Noisy images; NaN where nothing was seen. One axis more with ``neighbors=6``.
        y : ignored
        """
        self._check_settings()
        self.levels_ = self._checked_levels()
        if self.levels is None and self.n_labels == 2 and self.noise_model == "gaussian":
            warn_of_other_levels(Y)
        field, shape = self._field(Y)
        for name in ("elbo_", "history_", "trace_"):
            self.__dict__.pop(name, None)
        proba = {"vb": self._mean_field, "gibbs": self._gibbs, "exact": self._exact}[self.inference](field)
        self.proba_ = proba.reshape(*shape, self.n_labels)
        self.mean_ = self.proba_ @ self.levels_
        self.labels_ = self.levels_[self.proba_.argmax(axis=-1)]
        return self

    def fit_transform(self, Y: ArrayLike, y: Any = None) -> Array:
        """Fit, and give the denoised images."""
        return self.fit(Y).labels_

    def transform(self, Y: ArrayLike) -> Array:
        """Denoise other images with the same settings; those of `fit` are not learned from."""
        check_is_fitted(self)
        return type(self)(**self.get_params()).fit(Y).labels_

    def predict_proba(self, Y: ArrayLike | None = None) -> Array:
        """Posterior probability of each label; of the images of `fit` if none are given."""
        check_is_fitted(self)
        return self.proba_ if Y is None else type(self)(**self.get_params()).fit(Y).proba_

    def _mean_field(self, field: LabelField) -> Array:
        model = GridMeanField(field, float(self.damping), parallel=self.schedule == "parallel")
        mean_entropies: list[float] = [float(entropies(model.initialize(None, as_generator(0))).mean())]
        result = coordinate_ascent(
            model,
            rng=as_generator(self.random_state),
            max_iter=self.max_iter,
            tol=self.tol,
            may_fall=model.parallel,
            verbose=self.verbose,
            on_iteration=lambda state: mean_entropies.append(float(entropies(state.params).mean())),
        )
        self.elbo_ = [float(value) for value in result.trace]
        self.entropy_ = mean_entropies
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        self.history_: History = result.history
        if not (result.converged or result.interrupted):
            message = f"the bound had not settled after {result.n_iter} sweeps; raise max_iter or tol"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return result.params

    def _gibbs(self, field: LabelField) -> Array:
        kernel = LabelGibbs(field)
        trace = mcmc.sample(
            kernel, kernel.start, n_draws=int(self.n_draws), n_warmup=int(self.n_warmup),
            n_chains=int(self.n_chains), record=kernel.record, random_state=as_generator(self.random_state),
            n_jobs=self.n_jobs, backend="threads", verbose=self.verbose, warn=False,
        )  # fmt: skip
        states: list[LabelState] = [end.state for end in trace.ends]
        proba: Array = np.sum([state.conditional for state in states], axis=0)
        proba /= sum(state.n_sweeps for state in states)
        verdict = trace.verdict("log_density", limit=mcmc.LATENT_R_HAT_LIMIT)
        self.trace_, self.converged_ = trace.detached(), verdict.settled
        self.n_iter_ = int(self.n_warmup) + trace.n_draws
        self.entropy_ = [float(entropies(proba).mean())]
        if not trace.interrupted:
            verdict.warn(stacklevel=4)
        return proba

    def _exact(self, field: LabelField) -> Array:
        proba, log_sum = exact_marginals(field)
        self.elbo_, self.entropy_ = [log_sum], [float(entropies(proba).mean())]
        self.n_iter_, self.converged_ = 1, True
        return proba

    def _field(self, Y: ArrayLike) -> tuple[LabelField, tuple[int, ...]]:
        """The posterior to be approximated, and the shape of what came."""
        grids, shape = as_grids(Y, self.neighbors)
        log_likelihood = np.array(self._noise_model()(grids), dtype=np.float64)
        if log_likelihood.shape != (*grids.shape, self.n_labels):
            raise ValueError(
                f"noise_model must give {self.n_labels} log-likelihoods for each pixel, shape "
                f"{(*grids.shape, self.n_labels)}, got {log_likelihood.shape}"
            )
        log_likelihood[np.isnan(grids)] = 0.0
        if np.isnan(log_likelihood).any() or not np.isfinite(log_likelihood.max(axis=-1)).all():
            raise ValueError("noise_model must leave each pixel a possible label, got NaN, +inf or only -inf")
        coupling = float(self.coupling)
        if self.n_labels > 2:
            return LabelField(log_likelihood, coupling), shape
        return LabelField(log_likelihood, 2.0 * coupling, -coupling * n_edges(grids.shape)), shape

    def _noise_model(self) -> LogLikelihood:
        if callable(self.noise_model):
            model: LogLikelihood = self.noise_model
            return model
        if self.noise_model == "gaussian":
            return gaussian_noise(self.levels_, float(self.sigma))
        return flip_noise(self.levels_, float(self.flip_prob))  # type: ignore[arg-type]

    def _checked_levels(self) -> Array:
        if self.levels is None:
            return np.array([-1.0, 1.0]) if self.n_labels == 2 else np.arange(float(self.n_labels))
        levels = np.asarray(self.levels, dtype=np.float64)
        if levels.shape != (self.n_labels,) or not np.isfinite(levels).all() or len(np.unique(levels)) < len(levels):
            raise ValueError(f"levels must be {self.n_labels} different numbers, got {self.levels!r}")
        return levels

    def _check_settings(self) -> None:
        check_parameters(self)
        if not callable(self.noise_model) and self.noise_model not in ("gaussian", "flip"):
            raise ValueError(f"noise_model must be 'gaussian', 'flip' or a function, got {self.noise_model!r}")
        if self.noise_model == "gaussian":
            check_value(self.sigma, "sigma", Number(above=0))
        if self.noise_model == "flip":
            check_value(self.flip_prob, "flip_prob", Number(above=0, below=1))

    def _check_fitted_state(self) -> None:
        if hasattr(self, "proba_"):
            for name, shape in (("mean_", self.proba_.shape[:-1]), ("labels_", self.proba_.shape[:-1]),
                                ("levels_", self.proba_.shape[-1:])):  # fmt: skip
                if np.shape(getattr(self, name)) != shape:
                    raise ValueError(f"{name} must have shape {shape}, got {np.shape(getattr(self, name))}")
