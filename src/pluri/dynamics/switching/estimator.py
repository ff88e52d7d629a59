"""Switching dynamical systems, learned by variational EM or set by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.em_estimator import EMEstimator
from pluri.dynamics.switching.fitting import FittedSwitching
from pluri.dynamics.switching.known import SwitchingLinearModel
from pluri.dynamics.switching.parameters import SwitchingParameters, attributes_of
from pluri.validation import Allowed, Flag, Number, Only, RandomState, Whole, as_generator, check_count
from pluri.validation.sequences import BOUNDARIES

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class SwitchingDynamicalSystem(FittedSwitching):
    r"""A linear Gaussian system whose matrices follow a hidden Markov chain of regimes.

    z_t is a Markov chain, x_t = A(z_t) x_{t-1} + b(z_t) + w, w ~ N(0, Q(z_t)), and y_t = C x_t + c + v, v ~ N(0, R);
    y may have holes. Learned by variational EM: states and regimes are independent in the posterior that is used, each
    a whole chain, and what rises with every iteration is a lower bound of the log-likelihood.

    Parameters
    ----------
    n_regimes : int, default=2
        Number of regimes.
    n_components : int, default=2
        Dimension of the state.
    emission_type : {"shared", "regime"}, default="shared"
        Whether C, c and R are the same in all regimes.
    noise_type : {"diag", "isotropic", "full"}, default="diag"
        R: a variance for each feature, one for all, or a matrix. "full" cannot learn from rows seen in part.
    startprob_prior, transmat_prior : float, array or prior object, default=1.0
        As in hidden Markov models; `transmat_prior` also takes `pluri.priors.Sticky`.
    dynamics_prior : float, default=10.0
        Pseudo-steps of a random walk that A, b and Q of each regime are drawn to; a tenth as long as the steps of the
        principal components that the fit starts from, in the mean square.
    emission_prior : float, default=1e-3
        Pseudo-rows with the features' variances that C and R are drawn to.
    params : str, default="staqcri"
        What is learned: s (start), t (transitions), a (A and b), q (Q), c (C and c), r (R), i (the first state). The
        others keep their starting values.
    startprob_init, transmat_init : arrays, optional
        Starting values of the chain; a probability of zero stays zero.
    dynamics_init, dynamics_offset_init, dynamics_covariance_init : arrays, optional
        Starting values of A (n_regimes, n_components, n_components), b and Q; without the axis of regimes: for all.
    emission_init, emission_offset_init, emission_covariance_init : arrays, optional
        Starting values of C, c and R, with a first axis of 1, or of n_regimes for ``emission_type="regime"``.
    initial_mean_init, initial_covariance_init : arrays, optional
        Starting values of mean and covariance of the first state; learned ones are the same for all regimes.
    n_init : int, default=1
        Number of runs from different starting values; the best one is kept.
    max_iter : int, default=500
        Largest number of EM iterations of a run.
    tol : float, default=1e-2
        EM stops when the objective (bound plus log prior) gains less than this.
    n_particles : int, default=500
        Particles of the filter behind `forecast`, `filter` and `log_likelihood`.
    random_state : int, numpy Generator, RandomState or None, default=None
        Seed of starting values, draws and particles.
    warm_start : bool, default=False
        Go on from the parameters of the last `fit`.
    acceleration : {"squarem", "anderson"} or None, default="anderson"
        Extrapolate the EM steps; the objective still never falls.
    checkpoint : path or None, default=None
        File in which to keep the state of the fit; a fit that finds it goes on from there.
    verbose : int, default=0
        1 shows a progress bar.
    engine : {"serial", "threads", "dask"}, `distributed.Client` or None, default=None
        Where the E-step runs.
    n_jobs : int or None, default=None
        Number of threads; -1 is all cores.

    Attributes
    ----------
    startprob_, transmat_ : arrays of shape (n_regimes,) and (n_regimes, n_regimes)
    dynamics_, dynamics_offset_, dynamics_covariance_ : arrays
        A (n_regimes, n_components, n_components), b and Q.
    emission_, emission_offset_, emission_covariance_ : arrays
        C (1 or n_regimes, n_features, n_components), c and R.
    initial_mean_, initial_covariance_ : arrays
        Of the first state in each regime.
    history_ : `pluri.inference.History`
        Objective, bound and seconds of every iteration of every run.
    converged_ : bool
    n_iter_ : int
    objective_ : float
    regime_occupancy_ : array of shape (n_regimes,)
        Expected number of steps in each regime.
    n_features_in_ : int

    Examples
    --------
    >>> from pluri.dynamics import SwitchingDynamicalSystem, make_maneuvering_target
    >>> target = make_maneuvering_target()
    >>> _, X = target.sample(60, random_state=0)
    >>> known = SwitchingDynamicalSystem.from_model(target, random_state=0)
    >>> known.predict(X).shape, known.transform(X).shape
    ((60,), (60, 4))
    >>> known.forecast(X, 5).mean.shape
    (1, 5, 4)
    >>> learned = SwitchingDynamicalSystem(2, 2, max_iter=10, tol=5.0, random_state=0).fit(X)
    >>> learned.dynamics_.shape
    (2, 2, 2)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_regimes": Whole(1),
        "n_components": Whole(1),
        "emission_type": Only("shared", "regime"),
        "noise_type": Only("diag", "isotropic", "full"),
        "dynamics_prior": Number(above=0),
        "emission_prior": Number(above=0),
        "n_particles": Whole(1),
        "acceleration": Only(None, "squarem", "anderson"),
        "verbose": Whole(0) | Flag(),
    }
    _free_of_checkpoint = EMEstimator._free_of_checkpoint | {"n_particles"}
    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES

    startprob_: Array
    transmat_: Array

    def __init__(
        self,
        n_regimes: int = 2,
        n_components: int = 2,
        *,
        emission_type: str = "shared",
        noise_type: str = "diag",
        startprob_prior: Any = 1.0,
        transmat_prior: Any = 1.0,
        dynamics_prior: float = 10.0,
        emission_prior: float = 1e-3,
        params: str = "staqcri",
        startprob_init: ArrayLike | None = None,
        transmat_init: ArrayLike | None = None,
        dynamics_init: ArrayLike | None = None,
        dynamics_offset_init: ArrayLike | None = None,
        dynamics_covariance_init: ArrayLike | None = None,
        emission_init: ArrayLike | None = None,
        emission_offset_init: ArrayLike | None = None,
        emission_covariance_init: ArrayLike | None = None,
        initial_mean_init: ArrayLike | None = None,
        initial_covariance_init: ArrayLike | None = None,
        n_init: int = 1,
        max_iter: int = 500,
        tol: float = 1e-2,
        n_particles: int = 500,
        random_state: Any = None,
        warm_start: bool = False,
        acceleration: str | None = "anderson",
        checkpoint: Any = None,
        verbose: int = 0,
        engine: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_regimes = n_regimes
        self.n_components = n_components
        self.emission_type = emission_type
        self.noise_type = noise_type
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.dynamics_prior = dynamics_prior
        self.emission_prior = emission_prior
        self.params = params
        self.startprob_init = startprob_init
        self.transmat_init = transmat_init
        self.dynamics_init = dynamics_init
        self.dynamics_offset_init = dynamics_offset_init
        self.dynamics_covariance_init = dynamics_covariance_init
        self.emission_init = emission_init
        self.emission_offset_init = emission_offset_init
        self.emission_covariance_init = emission_covariance_init
        self.initial_mean_init = initial_mean_init
        self.initial_covariance_init = initial_covariance_init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_particles = n_particles
        self.random_state = random_state
        self.warm_start = warm_start
        self.acceleration = acceleration
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.engine = engine
        self.n_jobs = n_jobs

    @classmethod
    def from_model(cls, model: SwitchingLinearModel, **settings: Any) -> Self:
        """An estimator with the parameters of a known model, ready to be asked.

        Parameters
        ----------
        model : SwitchingLinearModel
            Its inputs must not change over time.
        **settings
            Other arguments of the constructor.

        Returns
        -------
        estimator : SwitchingDynamicalSystem
            `fit` would go on from the known parameters, and learn what ``params=`` asks for: nothing by default.
        """
        if not isinstance(model, SwitchingLinearModel):
            raise TypeError(f"model must be a SwitchingLinearModel, got {type(model).__name__}")
        values = attributes_of(model)
        k, d = values["dynamics_offset_"].shape
        given = {f"{name}init": value for name, value in values.items()}
        estimator = cls(k, d, emission_type="regime", **{"params": "", "noise_type": "full"} | given | settings)
        for name, value in values.items():
            setattr(estimator, name, value)
        return estimator

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[Array, Integers]:
        """Draw a sequence from the model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : optional
            The model's own if None.

        Returns
        -------
        X : array of shape (n_samples, n_features)
        regimes : array of shape (n_samples,)
        """
        check_count(n_samples, "n_samples")
        rng = as_generator(self.random_state if random_state is None else random_state)
        return draw_sequence(self._model(), int(n_samples), rng)

    def summary(self) -> str:
        """The model on one page of text.

        Returns
        -------
        text : str
        """
        parameters = self._model()
        k, d, m = parameters.sizes
        lines = [f"{type(self).__name__}: {k} regimes, {d} components, {m} features", ""]
        if hasattr(self, "converged_"):
            state = "converged" if self.converged_ else "not converged"
            lines.append(f"{state} after {self.n_iter_} iterations; objective {self.objective_:.4f}")
        else:
            lines.append("parameters set by hand, not fitted")
        occupancy = getattr(self, "regime_occupancy_", np.full(k, np.nan))
        lines += ["", "regime  start  steps      stay   slowest  noise"]
        for z in range(k):
            stay = 1.0 / max(1.0 - parameters.transition[z, z], 1e-300)
            slowest = np.abs(np.linalg.eigvals(parameters.dynamics[z])).max()
            noise = np.sqrt(np.trace(parameters.dynamics_covariance[z]) / d)
            lines.append(
                f"{z:<6}  {parameters.start[z]:.3f}  {occupancy[z]:<9.1f}  {stay:<5.3g}  {slowest:<7.3g}  {noise:.3g}"
            )
        lines += [
            "",
            "stay: expected duration; slowest: largest modulus of the eigenvalues of A; noise: root mean variance",
        ]
        return "\n".join(lines)


def draw_sequence(parameters: SwitchingParameters, n: int, rng: np.random.Generator) -> tuple[Array, Integers]:
    """Observations (n, m) and regimes (n,) of one sequence."""
    k, d, m = parameters.sizes
    factors = [
        np.linalg.cholesky(covariance)
        for covariance in (
            parameters.initial_covariance,
            parameters.dynamics_covariance,
            parameters.emission_covariance,
        )
    ]
    X, regimes, state = np.empty((n, m)), np.empty(n, dtype=np.int64), np.zeros(d)
    for t in range(n):
        z = int(rng.choice(k, p=parameters.start if t == 0 else parameters.transition[regimes[t - 1]]))
        if t == 0:
            state = parameters.initial_mean[z] + factors[0][z] @ rng.standard_normal(d)
        else:
            state = parameters.dynamics[z] @ state + parameters.dynamics_offset[z]
            state = state + factors[1][z] @ rng.standard_normal(d)
        g = z if len(parameters.emission) > 1 else 0
        X[t] = parameters.emission[g] @ state + parameters.emission_offset[g] + factors[2][g] @ rng.standard_normal(m)
        regimes[t] = z
    return X, regimes
