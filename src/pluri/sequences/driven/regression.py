"""Hidden Markov model whose emissions regress on inputs: p(x_t | u_t, state i) = N(x_t | b_i + B_i u_t, S_i)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.sequences.driven.switching_regression import SwitchingRegression
from pluri.sequences.fitting import Prior
from pluri.validation import RandomState, as_generator

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class RegressionHMM(SwitchingRegression):
    """Hidden Markov model whose emissions regress on inputs, with coefficients of their own in each state.

    The inputs are columns of X, so that they pass through pipelines, searches, cross-validation, lists of sequences
    and files together with the observations; the other columns are the outputs that the model describes.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    inputs : list of int or str, default=None
        Columns of X that are inputs, by number or, for a data frame, by name; none if None.
    covariance_type : {"spherical", "diag", "full", "tied"}, default="diag"
        Covariances of the noise; see `GaussianHMM`.
    alpha : float, default=1e-3
        Weight of the prior that draws coefficients to zero, in observations: the squared coefficients count in units
        of the inputs' variances and of the state's noise. Intercepts are left alone.
    min_covar, covars_prior, covars_weight : default="auto", "auto" and 1
        See `GaussianHMM`; "auto" is relative to the variances of the outputs.
    startprob_prior, transmat_prior, algorithm, random_state, n_iter, tol, verbose, implementation
        See `GaussianHMM`.
    params, init_params : str, default="stwic"
        s (start), t (transitions), w (coefficients), i (intercepts), c (covariances).
    startprob_init, transmat_init, coef_init, intercept_init, covars_init : arrays, optional
        Starting values, whatever `init_params` says; see `GaussianHMM`.
    topology, diversity, n_init, warm_start, acceleration, checkpoint, engine, n_jobs
        See `GaussianHMM`.

    Attributes
    ----------
    startprob_ : array of shape (n_components,)
    transmat_ : array of shape (n_components, n_components)
    coef_ : array of shape (n_components, n_outputs, n_inputs)
        Inputs in the order in which `inputs` lists them.
    intercept_ : array of shape (n_components, n_outputs)
    covars_ : array of shape (n_components, n_outputs, n_outputs)
    feature_mean_, feature_variance_ : arrays of shape (n_outputs,)
    regressor_mean_, regressor_variance_ : arrays of shape (n_inputs,)
    history_, converged_, n_iter_, log_det_, state_occupancy_, n_features_in_
        See `GaussianHMM`.

    Notes
    -----
    A step at which an output or an input is missing (NaN) carries no information: its log density is 0 in all states,
    and it takes no part in the estimation of emissions.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import RegressionHMM
    >>> rng = np.random.default_rng(0)
    >>> u = rng.normal(size=(400, 1))
    >>> slope = np.repeat([[2.0], [-1.0]], 200, axis=0)
    >>> X = np.column_stack([slope * u + 0.1 * rng.normal(size=(400, 1)), u])
    >>> model = RegressionHMM(n_components=2, inputs=[1], random_state=0).fit(X)
    >>> sorted(model.coef_.ravel().round(1).tolist())
    [-1.0, 2.0]
    """

    def __init__(
        self,
        n_components: int = 1,
        inputs: Any = None,
        covariance_type: str = "diag",
        alpha: float = 1e-3,
        min_covar: float | str = "auto",
        startprob_prior: Prior = 1.0,
        transmat_prior: Prior = 1.0,
        covars_prior: ArrayLike | str = "auto",
        covars_weight: ArrayLike = 1,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 100,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "stwic",
        init_params: str = "stwic",
        implementation: str = "scaling",
        *,
        startprob_init: ArrayLike | None = None,
        transmat_init: ArrayLike | None = None,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
        covars_init: ArrayLike | None = None,
        topology: Any = "ergodic",
        diversity: Any = None,
        n_init: int = 1,
        warm_start: bool = False,
        acceleration: str | None = None,
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.inputs = inputs
        self.covariance_type = covariance_type
        self.alpha = alpha
        self.min_covar = min_covar
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.covars_prior = covars_prior
        self.covars_weight = covars_weight
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.verbose = verbose
        self.params = params
        self.init_params = init_params
        self.implementation = implementation
        self.startprob_init = startprob_init
        self.transmat_init = transmat_init
        self.coef_init = coef_init
        self.intercept_init = intercept_init
        self.covars_init = covars_init
        self.topology = topology
        self.diversity = diversity
        self.n_init = n_init
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def sample(
        self,
        n_samples: int = 1,
        random_state: RandomState = None,
        currstate: int | None = None,
        *,
        inputs: ArrayLike | None = None,
    ) -> tuple[Array, Integers]:
        """Draw a sequence from the model, given its inputs.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : optional
            The model's own if None.
        currstate : int, optional
            State of the first sample; drawn from `startprob_` if None.
        inputs : array of shape (n_samples, n_inputs)
            In the order in which the model's `inputs` lists them; None if it has none.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            Inputs and outputs, in the columns that `fit` takes.
        states : array of shape (n_samples,)
        """
        rng = as_generator(self.random_state if random_state is None else random_state)
        states = self._draw_states(n_samples, rng, currstate)
        return self._emit(states, rng, inputs=inputs), states
