"""Inhibition between neurons, learned from which of them fire together: places of neurons in a hidden space.

Each bin's set of firing neurons is drawn from a determinantal point process whose similarity falls with the distance of
the neurons in the hidden space; close neurons rarely fire together. See `spike_likelihood` for the formulas.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pluri.inference.ascent import climb
from pluri.processes.dpp.finite import DPP
from pluri.processes.dpp.learning.spike_likelihood import (
    SpikeObjective,
    SpikeParameters,
    bin_log_probabilities,
    similarity_of,
)
from pluri.processes.gp_inference.learning import one_thread_if_small
from pluri.validation import Allowed, Number, Stored, Whole, as_generator, check_parameters
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import Interrupted

Array = NDArray[np.float64]


class LatentInhibition(Estimator):
    """Places of neurons in a hidden space, such that close ones inhibit each other.

    Parameters
    ----------
    n_dimensions : int, default=2
        Of the hidden space.
    place_scale : float, default=3.0
        Standard deviation of the normal prior of places; distances are measured in units of the inhibition's reach.
    alpha : float, default=1.0
        Penalty ``alpha / 2 |w|^2`` of the weights of covariates, beside the log-likelihood of all bins.
    n_init : int, default=10
        Number of random starts: there are local maxima.
    max_iter : int, default=500
    tol : float, default=1e-9
        A run ends when an iteration raises the mean log-likelihood by less.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    places_ : array of shape (n_neurons, n_dimensions)
        Known up to rotation and shift.
    similarity_ : array of shape (n_neurons, n_neurons)
        1 for neurons that never fire together, 0 for those that do not care.
    intercept_ : array of shape (n_neurons,)
        Log odds of firing, without inhibition.
    coef_ : array of shape (n_neurons, n_covariates)
    log_likelihood_, independent_log_likelihood_ : float
        Mean over bins, of the model and of neurons that fire independently given the covariates.
    history_ : `pluri.inference.History`
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    Neurons 0 and 1 never fire in the same bin; neuron 2 fires as it likes.

    >>> import numpy as np
    >>> from pluri.processes.dpp.learning import LatentInhibition
    >>> spikes = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0], [0, 0, 1]] * 20)
    >>> model = LatentInhibition(random_state=0).fit(spikes)
    >>> bool(model.similarity_[0, 1] > 0.9), bool(model.similarity_[0, 2] < 0.5)
    (True, True)
    >>> model.log_likelihood_ > model.independent_log_likelihood_
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_dimensions": Whole(1),
        "place_scale": Number(above=0),
        "alpha": Number(least=0),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "places_": Stored("n_features_in_", None),
        "similarity_": Stored("n_features_in_", "n_features_in_"),
        "intercept_": Stored("n_features_in_"),
        "coef_": Stored("n_features_in_", None),
    }

    def __init__(
        self,
        n_dimensions: int = 2,
        *,
        place_scale: float = 3.0,
        alpha: float = 1.0,
        n_init: int = 10,
        max_iter: int = 500,
        tol: float = 1e-9,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_dimensions = n_dimensions
        self.place_scale = place_scale
        self.alpha = alpha
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, covariates: ArrayLike | None = None) -> Self:
        """Learn places and rates; Ctrl-C keeps the best so far.

        Parameters
        ----------
        X : array of shape (n_bins, n_neurons)
            1 where a neuron fired, 0 where it did not.
        covariates : array of shape (n_bins, n_covariates), optional
            What drives the rates: stimuli, or what fired before.

        Returns
        -------
        self : object
        """
        check_parameters(self)
        spikes, drives = _check_bins(X, covariates)
        rng = as_generator(self.random_state)
        settings = (float(self.place_scale), float(self.alpha))
        frequency = np.clip(spikes.mean(axis=0), 0.5 / len(spikes), 1 - 0.5 / len(spikes))
        rates = np.concatenate([np.log(frequency / (1 - frequency)), np.zeros(spikes.shape[1] * drives.shape[1])])
        with one_thread_if_small(spikes.shape[1]):
            baseline = SpikeObjective.of(spikes, drives, *settings, 0)
            independent = climb(baseline, [rates], max_iter=self.max_iter, tol=self.tol)
            if independent.interrupted:
                raise Interrupted  # there are no places yet
            objective = SpikeObjective.of(spikes, drives, *settings, int(self.n_dimensions))
            n_places = spikes.shape[1] * int(self.n_dimensions)
            starts = [
                np.append(stream.normal(0, 1.5, n_places), independent.point) for stream in rng.spawn(self.n_init)
            ]
            top = climb(objective, starts, max_iter=self.max_iter, tol=self.tol, verbose=self.verbose)
        found = objective.split(top.point)
        self.places_ = found.places - found.places.mean(axis=0)
        self.similarity_ = similarity_of(found.places)
        self.intercept_, self.coef_ = found.intercept, found.coef
        self.n_features_in_ = spikes.shape[1]
        self.log_likelihood_ = float(bin_log_probabilities(self._spike_parameters(), spikes, drives).mean())
        shrunk = baseline.split(independent.point).coef
        self.independent_log_likelihood_ = independent.objective + settings[1] * float((shrunk**2).sum()) / (
            2 * len(spikes)
        )
        self.history_, self.n_iter_, self.converged_ = top.history, top.n_iter, top.converged
        if top.reason in ("max_iter", "stopped"):
            warnings.warn(
                f"the likelihood still rose after {top.n_iter} iterations: raise max_iter ({self.max_iter}) or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _spike_parameters(self) -> SpikeParameters:
        check_is_fitted(self, "places_")
        return SpikeParameters(self.places_, self.intercept_, self.coef_)

    def _bins(self, X: ArrayLike, covariates: ArrayLike | None) -> tuple[NDArray[np.bool_], Array]:
        check_is_fitted(self, "places_")
        spikes, drives = _check_bins(X, covariates)
        for name, given, wanted in (
            ("X", spikes.shape[1], self.n_features_in_),
            ("covariates", drives.shape[1], self.coef_.shape[1]),
        ):
            if given != wanted:
                raise ValueError(f"{name} must have {wanted} columns, got {given}")
        return spikes, drives

    def log_prob(self, X: ArrayLike, covariates: ArrayLike | None = None) -> Array:
        """Log-probability of each bin: (n_bins,)."""
        return bin_log_probabilities(self._spike_parameters(), *self._bins(X, covariates))

    def score(self, X: ArrayLike, covariates: ArrayLike | None = None) -> float:
        """Mean log-likelihood of bins."""
        return float(self.log_prob(X, covariates).mean())

    def dpp(self, covariates: ArrayLike = ()) -> DPP:
        """The process of a bin with these covariates, (n_covariates,)."""
        parameters = self._spike_parameters()
        drives = np.asarray(covariates, dtype=np.float64)
        if drives.shape != (self.coef_.shape[1],):
            raise ValueError(f"covariates must have {self.coef_.shape[1]} entries, got shape {drives.shape}")
        quality = np.exp(parameters.scores(drives[None])[0] / 2)
        return DPP(self.similarity_, quality=quality)


def _check_bins(X: ArrayLike, covariates: ArrayLike | None) -> tuple[NDArray[np.bool_], Array]:
    spikes = np.asarray(X)
    if spikes.ndim != 2 or not spikes.size:
        raise ValueError(f"X must be a matrix (n_bins, n_neurons), got shape {spikes.shape}")
    if spikes.dtype.kind not in "biuf" or not np.isin(spikes, (0, 1)).all():
        raise ValueError("X must hold only 0 and 1: whether a neuron fired in a bin")
    if covariates is None:
        return spikes.astype(np.bool_), np.zeros((len(spikes), 0))
    drives = np.asarray(covariates, dtype=np.float64)
    if drives.ndim != 2 or len(drives) != len(spikes):
        raise ValueError(f"covariates must be a matrix with one row per bin ({len(spikes)}), got shape {drives.shape}")
    if not np.isfinite(drives).all():
        raise ValueError("covariates must be finite, got NaN or infinity")
    return spikes.astype(np.bool_), drives
