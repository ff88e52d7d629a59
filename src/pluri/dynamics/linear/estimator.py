"""The linear dynamical system as an estimator.

x_1 ~ N(m, P),    x_{t+1} = A x_t + B u_t + b + w_t,    w ~ N(0, Q),
y_t = C x_t + D u_t + c + v_t,    v ~ N(0, R).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from pluri.components.gaussian import check_magnitude
from pluri.dynamics.linear.description import LinearDescription
from pluri.dynamics.linear.fitting import FittedLinearSystem
from pluri.dynamics.linear.parameters import LETTERS, LinearParameters, checked_part, shapes
from pluri.dynamics.linear.queries import REQUESTS
from pluri.dynamics.linear.sources import FitData, fit_data
from pluri.engine import Batch
from pluri.progress.callbacks import CallbackSupport, fit_callbacks, with_callbacks
from pluri.validation import Stored, restored_on_failure
from pluri.validation.sequences import weight_by_either_name

Array = NDArray[np.float64]

#: Letters of the parts that a model set by hand may leave out: they are zero then.
OPTIONAL = "BbDc"


class LinearDynamicalSystem(LinearDescription, CallbackSupport, FittedLinearSystem):
    """Hidden states with linear dynamics, seen through a linear map in Gaussian noise; learned by EM.

    Any value of X may be missing (NaN), sequences may have different lengths, and known inputs u_t may act on states
    and outputs. The states are not identified: for an invertible T the states T x with T A T^-1, C T^-1 and so on give
    the same outputs. What is learned is one of these; nothing is rotated or rescaled afterwards. Eigenvalues of A,
    predictions, forecasts and the likelihood do not depend on it.

    Parameters
    ----------
    n_components : int, default=2
        Number of hidden dimensions.
    covariance_type : {"diag", "full", "spherical"}, default="diag"
        R: a variance for each output, a matrix, or one variance for all. On three data sets with 12 and 13 outputs
        "full" had the higher held-out likelihood after learning from 1,000 rows and more (9 of 9 comparisons, by 0.3
        to 2.5 a row), "diag" after learning from 67 to 382 rows (6 of 9, by up to 49 a row; "full" by 1.3 at most):
        ``benchmarks/peers/dynamics_linear.py --held-out``.
    stable : bool, default=False
        Whether the spectral radius of A is kept below 1 in all iterations (at most 0.9999). Each M-step goes from the
        current A towards the best one only as far as that, which never lowers the objective.
    covars_prior : float, array of shape (n_features,) or "auto", default="auto"
        Scale of the inverse-gamma (full: inverse-Wishart) prior of R, added to the sum of the squared residuals; it
        keeps R from collapsing on small data. "auto" is a thousandth of each output's variance; 0 is none.
    initial_prior : float, default=1.0
        Weight of the prior of m and P: as if so many further sequences had been seen, whose first states are spread as
        the states of the first start are. 0 is none; a fit to a single sequence then ends with P = 0.
    random_state : int, numpy Generator, RandomState or None, default=None
        Seed of the further starts and of `sample`. The first start is a function of the data.
    max_iter : int, default=300
        Largest number of EM iterations of a run.
    tol : float, default=1e-2
        EM stops when the objective (log-likelihood plus log prior) gains less than this.
    n_init : int, default=1
        Number of runs: the first from states found by subspace identification, the others from random changes of
        that; the best one is kept.
    params, init_params : str, default="mPABQCDcR" and "mPABbQCDcR"
        Which parts EM learns, and which are set from the data first, in the letters of the formula. b is 0 unless it
        is asked for: c makes it superfluous where A has no eigenvalue 1. Set the parts that are known as attributes
        before `fit`, or better by the next ten arguments.
    initial_mean_init, initial_covariance_init : arrays, optional
        Starting values of m and P, whatever `init_params` says; a part that is not in `params` keeps them. Unlike
        attributes they survive `clone`, and so cross-validation and searches.
    transition_matrix_init, transition_input_init, transition_offset_init, transition_covariance_init : arrays, optional
        A, B, b and Q. Covariances of the state may be singular.
    observation_matrix_init, observation_input_init, observation_offset_init, observation_covariance_init : optional
        C, D, c and R, which may be a number or variances.
    warm_start : bool, default=False
        Go on from the parameters of the last `fit`.
    acceleration : {"squarem", "anderson"} or None, default="anderson"
        Extrapolate the EM steps; the objective still never falls. Plain EM (None) needed up to eleven times as
        many iterations on the data of ``benchmarks/peers/dynamics_linear.py --ascents``, and nowhere ended higher.
    checkpoint : path or None, default=None
        File in which to keep the state of the fit; a fit that finds it goes on from there.
    engine : {"serial", "threads", "dask"}, `distributed.Client` or None, default=None
        Where the E-step runs.
    n_jobs : int or None, default=None
        Number of threads; -1 is all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    initial_mean_, initial_covariance_ : arrays of shape (d,), (d, d)
        m and P; d is n_components.
    transition_matrix_, transition_input_, transition_offset_ : arrays of shape (d, d), (d, n_inputs), (d,)
        A, B and b.
    transition_covariance_ : array of shape (d, d)
        Q.
    observation_matrix_, observation_input_, observation_offset_ : arrays of shape (n, d), (n, n_inputs), (n,)
        C, D and c; n is the number of features.
    observation_covariance_ : array of shape (n, n)
        R, a matrix whatever `covariance_type` is.
    history_ : `pluri.inference.History`
        Objective, log-likelihood and seconds of every iteration of every run.
    converged_ : bool
    n_iter_ : int
    objective_ : float
    feature_variance_ : array of shape (n,)
        What "auto" is relative to.
    prior_mean_, prior_covariance_ : arrays of shape (d,), (d, d)
        Of the prior of m and P.
    n_inputs_, n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.dynamics import LinearDynamicalSystem
    >>> turn = 2 * np.pi * np.arange(200) / 25
    >>> X = np.stack([np.sin(turn), np.cos(turn), np.sin(turn + 1)], axis=1)
    >>> X += 0.1 * np.random.default_rng(0).normal(size=X.shape)
    >>> X[60:70] = np.nan  # nothing was seen
    >>> model = LinearDynamicalSystem(n_components=2, max_iter=200, tol=0.1).fit(X)
    >>> round(float(2 * np.pi / np.angle(np.linalg.eigvals(model.transition_matrix_)).max()))  # steps of a turn
    25
    >>> bool(np.abs(model.impute(X)[60:70, 0] - np.sin(turn[60:70])).max() < 0.2)
    True
    >>> model.forecast(X, horizon=10, level=0.9)
    <Forecast: 1 sequences, 10 steps, 3 features, intervals of 0.9>
    """

    _instead_of_y = "known inputs are passed as inputs=, and lengths of sequences as lengths="
    __metadata_request__fit: ClassVar[dict[str, bool]] = REQUESTS
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "initial_mean_": Stored("n_components"),
        "initial_covariance_": Stored("n_components", "n_components"),
        "transition_matrix_": Stored("n_components", "n_components"),
        "transition_input_": Stored("n_components", "n_inputs_"),
        "transition_offset_": Stored("n_components"),
        "transition_covariance_": Stored("n_components", "n_components"),
        "observation_matrix_": Stored("n_features_in_", "n_components"),
        "observation_input_": Stored("n_features_in_", "n_inputs_"),
        "observation_offset_": Stored("n_features_in_"),
        "observation_covariance_": Stored("n_features_in_", "n_features_in_"),
        "prior_mean_": Stored("n_components"),
        "prior_covariance_": Stored("n_components", "n_components"),
        "feature_variance_": Stored("n_features_in_", least=0.0),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        covariance_type: str = "diag",
        stable: bool = False,
        covars_prior: ArrayLike | str = "auto",
        initial_prior: float = 1.0,
        random_state: Any = None,
        max_iter: int = 300,
        tol: float = 1e-2,
        n_init: int = 1,
        params: str = "mPABQCDcR",
        init_params: str = "mPABbQCDcR",
        initial_mean_init: ArrayLike | None = None,
        initial_covariance_init: ArrayLike | None = None,
        transition_matrix_init: ArrayLike | None = None,
        transition_input_init: ArrayLike | None = None,
        transition_offset_init: ArrayLike | None = None,
        transition_covariance_init: ArrayLike | None = None,
        observation_matrix_init: ArrayLike | None = None,
        observation_input_init: ArrayLike | None = None,
        observation_offset_init: ArrayLike | None = None,
        observation_covariance_init: ArrayLike | None = None,
        warm_start: bool = False,
        acceleration: str | None = "anderson",
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.stable = stable
        self.covars_prior = covars_prior
        self.initial_prior = initial_prior
        self.random_state = random_state
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.params = params
        self.init_params = init_params
        self.initial_mean_init = initial_mean_init
        self.initial_covariance_init = initial_covariance_init
        self.transition_matrix_init = transition_matrix_init
        self.transition_input_init = transition_input_init
        self.transition_offset_init = transition_offset_init
        self.transition_covariance_init = transition_covariance_init
        self.observation_matrix_init = observation_matrix_init
        self.observation_input_init = observation_input_init
        self.observation_offset_init = observation_offset_init
        self.observation_covariance_init = observation_covariance_init
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def _n_features_of_parameters(self) -> int:
        return int(np.shape(self.observation_matrix_)[0])

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        return check_magnitude(self._validated(X, fitting))

    def _check_batch(self, batch: Batch) -> None:
        if batch.lengths is None:
            raise ValueError("X, a source of batches, must give the lengths of its sequences")
        if batch.X.shape[1] <= self.n_inputs_:
            raise ValueError(
                f"X, a source of batches, must have more columns than inputs ({self.n_inputs_}), got {batch.X.shape[1]}"
            )
        self._check_data(batch.X[:, : batch.X.shape[1] - self.n_inputs_], fitting=True)

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        inputs: Any = None,
        **aliases: Any,
    ) -> Self:
        """Learn the parameters by EM (MAP-EM under the prior of the noise).

        Ctrl-C ends the fit with a warning and keeps the best parameters so far.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), list of sequences, or `pluri.engine.Source`
            NaN marks a missing value.
        y : ignored
            For scikit-learn; `lengths` may be passed here.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X, which sum to n_samples; one sequence if neither `lengths` nor `groups` is
            given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`: rows with the same value next to each other are one
            sequence.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence; also taken under the name ``sample_weight``.
        inputs : array of shape (n_samples, n_inputs), list of such, or int, optional
            u, one row for each row of X; nothing may be missing. If X is a source of batches: how many of its last
            columns are inputs.

        Returns
        -------
        self : object
        """
        weight = weight_by_either_name(sequence_weight, aliases)
        self._check_settings()
        with restored_on_failure(self):
            lengths = self._boundaries(X, y, lengths, groups)
            data = fit_data(self, FitData(X, lengths, weight, inputs))
            with fit_callbacks(
                self, max_iter=self.max_iter, n_init=self.n_init, X=X, attributes=self._attributes
            ) as on_iteration:
                self._learn(data.source, self.n_features_in_, n_samples=data.n_samples, on_iteration=on_iteration)
        return self

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        inputs: Any = None,
        **aliases: Any,
    ) -> Any:
        """`fit`, then `transform` of the same sequences; arguments as in `fit`."""
        weight = weight_by_either_name(sequence_weight, aliases)
        self.fit(X, y, lengths, groups=groups, sequence_weight=weight, inputs=inputs)
        return self.transform(X, lengths, groups=groups, inputs=inputs)

    def _model(self) -> LinearParameters:
        missing = [name for letter, name in LETTERS.items() if letter not in OPTIONAL and not hasattr(self, name)]
        if missing and len(missing) < len(LETTERS) - len(OPTIONAL):
            raise NotFittedError(f"this {type(self).__name__} is not fitted and lacks {', '.join(missing)}: set it too")
        check_is_fitted(self, "observation_matrix_")
        C = np.asarray(self.observation_matrix_, dtype=np.float64)
        if C.ndim != 2:
            raise ValueError(f"observation_matrix_ must have two axes, got shape {C.shape}")
        inputs = getattr(self, "transition_input_", None)
        inputs = getattr(self, "observation_input_", None) if inputs is None else inputs
        sizes = shapes(self.n_components, len(C), 0 if inputs is None else np.shape(inputs)[-1])
        values = {letter: getattr(self, name, np.zeros(sizes[letter])) for letter, name in LETTERS.items()}
        kind = self.covariance_type
        return LinearParameters(
            **{letter: checked_part(letter, values[letter], sizes[letter], kind) for letter in LETTERS}
        )

    def _check_fitted_state(self) -> None:
        """The checks of hand-set parameters, for those that come from a file."""
        if hasattr(self, "history_"):
            self._model()
