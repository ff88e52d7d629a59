r"""Denoising of binary and label images with an Ising or Potts prior: neighbours tend to be equal.

    p(x) proportional to exp(J sum_{s~t} x_s x_t),  x in {-1, +1}        (two labels: Ising)
    p(x) proportional to exp(J sum_{s~t} 1[x_s = x_t])                   (more labels: Potts)

and each pixel y_i is seen through noise, p(y_i | x_i). The posterior is approximated by mean field, by belief
propagation or by exact sums over strips, sampled by Gibbs sweeps, or, on narrow grids, summed exactly. Mean field is
fast and over-confident: on the square grid it sees order from J = 1/4 on, where the truth is J = 0.4407; what belief
propagation makes of the same image tells how far it is off, as strips tell of belief propagation. Its bound is on
log p(y) + log Z(J), so it does not compare couplings.

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
from pluri.inference.variational import ApproximationWarning, coordinate_ascent
from pluri.processes.ising.bethe import bethe_marginals
from pluri.processes.ising.check import MeanFieldCheck, check_mean_field
from pluri.processes.ising.exact import exact_marginals
from pluri.processes.ising.gibbs import LabelGibbs, LabelState
from pluri.processes.ising.grid import GridMeanField, LabelField, entropies, observed_field
from pluri.processes.ising.noise import checked_levels, noise_of, warn_of_other_levels
from pluri.processes.ising.strips import BeliefCheck, check_beliefs, strip_marginals
from pluri.validation import Allowed, Number, Only, RandomState, Whole, as_generator, check_parameters
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
    inference : {"vb", "bethe", "strips", "gibbs", "exact"}, default="vb"
        How marginals are found: by mean field; by belief propagation, which takes longer and is closer; by exact sums
        over strips of the image between its messages, closer again; by sampling; or by sums over all of the image.
        "exact" takes grids of at most 16 pixels across (two labels).
    damping : float, default=0.5
        Share of the new value in a mean-field update, in (0, 1].
    schedule : {"checkerboard", "parallel"}, default="checkerboard"
        Order of mean-field updates; "parallel" (all pixels at a time) may oscillate and is here for comparison.
    max_iter : int, default=50
        Largest number of sweeps of mean field, or of messages from each start.
    tol : float, default=1e-4
        Relative change of the bound at which mean field stops, or change of a marginal at which messages do.
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
        Whether the bound or the messages had settled, or the chains agreed.
    check_ : MeanFieldCheck or BeliefCheck
        Mean field: how far belief propagation and other starts are from `proba_`; belief propagation: how far exact
        sums over strips are; see `diagnose`.
    history_ : History
        Mean field: bound and duration of each sweep.
    trace_ : pluri.inference.mcmc.Trace
        Gibbs: share of each label and log density after each sweep.

    Warns
    -----
    ApproximationWarning
        Mean field and belief propagation: if more than 5 % of the marginals are probably off by more than 0.1;
        `diagnose` gives the figures.

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
        "inference": Only("vb", "bethe", "strips", "gibbs", "exact"),
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
        check_parameters(self)
        self.levels_ = checked_levels(self.levels, self.n_labels)
        noise = noise_of(self.noise_model, self.levels_, self.sigma, self.flip_prob)
        if self.levels is None and self.n_labels == 2 and self.noise_model == "gaussian":
            warn_of_other_levels(Y)
        field = observed_field(Y, self.neighbors, noise, self.n_labels, float(self.coupling))
        for name in ("elbo_", "history_", "trace_", "check_"):
            self.__dict__.pop(name, None)
        ways = {"gibbs": self._gibbs, "exact": self._exact, "vb": self._mean_field}
        proba = ways.get(self.inference, self._messages)(field)
        self.proba_ = proba.reshape(*np.shape(Y), self.n_labels)
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

    def diagnose(self) -> list[str]:
        """What a careful reader should know before using the marginals, a sentence each; empty if all is well."""
        check_is_fitted(self)
        if self.inference == "gibbs":
            verdict = self.trace_.verdict("log_density", limit=mcmc.LATENT_R_HAT_LIMIT)
            return [] if verdict.settled else [str(verdict)]
        problems = [] if self.converged_ else [f"not settled after {self.n_iter_} sweeps: raise max_iter or tol"]
        if self.inference in ("vb", "bethe"):
            problems += self.check_.problems()
            if not self.check_.checked:
                what = "mean field" if self.inference == "vb" else "belief propagation"
                problems.append(f"the image is too large for {what} to be checked: fit a part of it, and look there")
        return problems

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
        self.check_: MeanFieldCheck | BeliefCheck = check_mean_field(field, result.params)
        if not result.interrupted:
            for problem in self.check_.problems():
                warnings.warn(problem, ApproximationWarning, stacklevel=3)
        return result.params

    def _messages(self, field: LabelField) -> Array:
        """Belief propagation, and strips between its messages."""
        found = bethe_marginals(field, int(self.max_iter), float(self.tol))
        proba = found.proba if self.inference == "bethe" else strip_marginals(field, found)
        self.entropy_ = [float(entropies(proba).mean())]
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        if not found.converged:
            message = f"messages had not settled after {found.n_iter} sweeps; raise max_iter or tol, or use 'gibbs'"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        if self.inference == "bethe":
            self.check_ = check_beliefs(field, found)
            for problem in self.check_.problems():
                warnings.warn(problem, ApproximationWarning, stacklevel=3)
        return proba

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

    def _check_fitted_state(self) -> None:
        if hasattr(self, "proba_"):
            for name, shape in (("mean_", self.proba_.shape[:-1]), ("labels_", self.proba_.shape[:-1]),
                                ("levels_", self.proba_.shape[-1:])):  # fmt: skip
                if np.shape(getattr(self, name)) != shape:
                    raise ValueError(f"{name} must have shape {shape}, got {np.shape(getattr(self, name))}")
