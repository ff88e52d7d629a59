"""Autoregressive hidden Markov model: each state is a linear regression on the last observations.

    p(x_t | x_(t-1), ..., x_(t-r), state i) = N(x_t | b_i + A_i1 x_(t-1) + ... + A_ir x_(t-r), S_i)

References
----------
Hamilton (1989), A new approach to the economic analysis of nonstationary time series and the business cycle,
Econometrica 57. Poritz (1982), Linear predictive hidden Markov models and the speech signal, ICASSP.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.sequences.driven.columns import Layout
from pluri.sequences.driven.switching_regression import SwitchingRegression
from pluri.sequences.fitting import Prior
from pluri.sequences.online import OnlineFilter
from pluri.validation import Allowed, RandomState, Whole, as_generator, is_source

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class AutoregressiveHMM(SwitchingRegression):
    """Hidden Markov model whose emissions regress on the last observations, with other coefficients in each state.

    x_t = b_i + A_i1 x_(t-1) + ... + A_ir x_(t-r) (+ C_i u_t) + noise in state i: a switching vector autoregression.

    The first `order` observations of a sequence are conditioned on: they are regressors of what follows, and their own
    steps carry no information (log density 0), while their states are inferred from what comes after. A sequence of at
    most `order` observations has log-likelihood 0.

    Parameters
    ----------
    n_components : int, default=1
        Number of states.
    order : int, default=1
        Number of last observations that each one regresses on.
    inputs : list of int or str, default=None
        Columns of X that are inputs, known before each step, on which the observations regress too; see
        `RegressionHMM`. The other columns are the series.
    covariance_type : {"spherical", "diag", "full", "tied"}, default="diag"
        Covariances of the noise; see `GaussianHMM`.
    alpha : float, default=1e-3
        Weight of the prior that draws coefficients to zero, in observations; see `RegressionHMM`.
    min_covar, covars_prior, covars_weight : default="auto", "auto" and 1
        See `GaussianHMM`; "auto" is relative to the variances of the series.
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
    coef_ : array of shape (n_components, n_outputs, order * n_outputs + n_inputs)
        Those of x_(t-1) first, then x_(t-2) and so on, then those of the inputs.
    intercept_ : array of shape (n_components, n_outputs)
    covars_ : array of shape (n_components, n_outputs, n_outputs)
    feature_mean_, feature_variance_ : arrays of shape (n_outputs,)
    regressor_mean_, regressor_variance_ : arrays of shape (order * n_outputs + n_inputs,)
    history_, converged_, n_iter_, log_det_, state_occupancy_, n_features_in_
        See `GaussianHMM`.

    Notes
    -----
    A step at which anything is missing (NaN) of the observation, of the last `order` ones or of the inputs carries no
    information: its log density is 0 in all states, and it takes no part in the estimation of emissions. One missing
    value thus silences ``order + 1`` steps. X is held in memory with its lagged copies, ``1 + order`` times its size;
    a source of batches is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import AutoregressiveHMM
    >>> rng, x = np.random.default_rng(0), np.zeros((600, 1))
    >>> for t in range(1, 600):
    ...     x[t] = (0.9 if t // 200 % 2 else -0.5) * x[t - 1] + rng.normal()
    >>> model = AutoregressiveHMM(n_components=2, random_state=0).fit(x)
    >>> sorted(model.coef_.ravel().round(1).tolist())
    [-0.5, 0.9]
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {**SwitchingRegression._parameters, "order": Whole(1)}

    def __init__(
        self,
        n_components: int = 1,
        order: int = 1,
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
        self.order = order
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

    def _order(self) -> int:
        return int(self.order)

    def _source(self, X: Any, lengths: Any, sequence_weight: Any, labels: Any = None) -> Any:
        if is_source(X):
            raise TypeError(
                f"X must be an array or a list of sequences, got a {type(X).__name__}: the last observations are set "
                "beside each one in memory"
            )
        longest = int(super()._sequences(X, lengths, fitting=True)[1].max())
        if longest <= self.order:
            raise ValueError(
                f"X must hold a sequence of more samples than order ({self.order}), got at most {longest} "
                f"sample{'s' * (longest != 1)} in a sequence"
            )
        return super()._source(X, lengths, sequence_weight, labels)

    def filter(self) -> OnlineFilter:
        """Begin a new sequence that arrives one observation at a time.

        Returns
        -------
        online : `OnlineFilter`
            ``online.update(x)`` gives the state probabilities after each observation; it remembers the last ones.
        """
        emission, parameters = self._model()
        return OnlineFilter(emission, parameters, _RowWithLags(copy.copy(self)))

    def sample(
        self,
        n_samples: int = 1,
        random_state: RandomState = None,
        currstate: int | None = None,
        *,
        inputs: ArrayLike | None = None,
        history: ArrayLike | None = None,
    ) -> tuple[Array, Integers]:
        """Draw a sequence from the model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : optional
            The model's own if None.
        currstate : int, optional
            State of the first sample; drawn from `startprob_` if None.
        inputs : array of shape (n_samples, n_inputs), optional
            In the order in which the model's `inputs` lists them; None if it has none.
        history : array of shape (order, n_outputs), optional
            Observations before the first one, oldest first; if None, all are the mean of the data of the fit, or zero
            if parameters were set by hand.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            In the columns that `fit` takes.
        states : array of shape (n_samples,)
        """
        rng = as_generator(self.random_state if random_state is None else random_state)
        states = self._draw_states(n_samples, rng, currstate)
        return self._emit(states, rng, inputs=inputs, history=history), states


class _RowWithLags:
    """Turns observations that arrive one at a time into rows with the last ones beside them; remembers these."""

    def __init__(self, model: AutoregressiveHMM) -> None:
        self._model = model
        self._layout: Layout = model._layout()
        self._last = np.full(self._layout.order * len(self._layout.outputs), np.nan)

    def __call__(self, x: Any) -> NDArray[Any]:
        row = self._model._observations(np.asarray(x).reshape(1, -1), None)[0]
        row[:, self._layout.n_features :] = self._last
        self._last = np.concatenate([row[0, self._layout.outputs], self._last])[: len(self._last)]
        return row
