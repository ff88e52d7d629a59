"""Dynamical systems of counts: Poisson counts, and counts whose dispersion is learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.counts.count_model import KINDS, CountModel, hermite_nodes
from pluri.dynamics.counts.learning import CountProblem
from pluri.dynamics.counts.poisson_model import PoissonModel
from pluri.dynamics.counts.records import CountObservation, PoissonObservation, SystemParameters
from pluri.dynamics.counts.survey import Survey
from pluri.dynamics.counts.system import CountSystem
from pluri.dynamics.counts.tables import in_tables, reaching
from pluri.validation import Allowed, Number, Only, Stored, Whole

Array = NDArray[np.float64]


class PoissonDynamicalSystem(CountSystem):
    """Poisson linear dynamical system: counts whose log rates are linear in hidden states that move on in time.

    x_1 ~ N(mu_1, Q_1), x_t+1 ~ N(A x_t + b_t, Q), and the count of neuron i at step t is Poisson with the log rate
    c_i' x_t + d_i. Fitted by variational EM, whose objective, a lower bound of the log-likelihood, never falls.

    Parameters
    ----------
    n_components : int, default=2
        Number of hidden dimensions.
    inference : {"vb", "laplace"}, default="vb"
        Variational EM, in which expectations are exact for Poisson counts, or EM with Laplace's approximation, which is
        a little faster and whose objective may fall; it then stops with the best parameters so far.
    init : {"nuclear", "pca"}, default="nuclear"
        Starting values: log rates of small nuclear norm, or principal components of log(count + 1/2), smoothed.
    time_varying_mean : bool, default=False
        Whether the mean of the states varies in time, in the same way in all sequences (b_t is learned). They must
        then all have the same length.
    max_iter, tol : int and float, default=300 and 1e-5
        EM stops when the objective gains less than `tol` for each observed count, or after so many iterations.
    n_init : int, default=1
        Number of starts. More than one are disturbed at random.
    warm_start : bool, default=False
        Whether `fit` goes on from the parameters of the last one.
    random_state : int, numpy Generator, RandomState or None, default=None
    checkpoint : path, optional
        File to go on from, and to save the fit to while it runs.
    engine, n_jobs : optional
        Where the E-step runs; see `pluri.engine`. The M-step holds the posteriors of all sequences in memory.
    verbose : int, default=0

    Attributes
    ----------
    transition_matrix_, transition_covariance_ : arrays of shape (n_components, n_components)
        A and Q. States are told in coordinates with unit covariance on average, in which loadings are orthogonal.
    transition_offset_ : array of shape (n_steps - 1, n_components)
        b_t; (0, n_components) without `time_varying_mean`.
    initial_mean_, initial_covariance_ : arrays of shape (n_components,) and (n_components, n_components)
    observation_matrix_ : array of shape (n_features, n_components)
        Loadings C, the largest column first.
    observation_offset_ : array of shape (n_features,)
        d: log rates where the state is 0.
    mean_counts_ : array of shape (n_features,)
        Of the data that were fitted; 0 for silent neurons, which are left out.
    history_ : `pluri.inference.History`
    converged_, n_iter_, objective_ : bool, int and float
    typical_length_, n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.dynamics import PoissonDynamicalSystem
    >>> rng = np.random.default_rng(0)
    >>> time, phase = np.arange(50), rng.uniform(0, 6, (20, 1, 1))
    >>> rates = np.exp(np.sin(0.2 * time[:, None] + phase) * rng.normal(size=12))  # 20 trials x 50 bins x 12 neurons
    >>> trials = list(rng.poisson(rates))
    >>> model = PoissonDynamicalSystem(2, random_state=0).fit(trials)
    >>> model.transform(trials[0]).shape
    (50, 2)
    >>> model.leave_one_neuron_out(trials).nll_reduction > 5  # per cent, beside constant rates
    True
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = CountSystem._state_layout | {
        "observation_offset_": Stored("n_features_in_")
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        inference: str = "vb",
        init: str = "nuclear",
        time_varying_mean: bool = False,
        max_iter: int = 300,
        tol: float = 1e-5,
        n_init: int = 1,
        warm_start: bool = False,
        random_state: Any = None,
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.inference = inference
        self.init = init
        self.time_varying_mean = time_varying_mean
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.warm_start = warm_start
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _model(self, survey: Survey | None) -> PoissonModel:
        return PoissonModel()

    def _observation(self) -> PoissonObservation:
        return PoissonObservation(
            np.ascontiguousarray(self.observation_matrix_), np.ascontiguousarray(self.observation_offset_)
        )

    def _store_observation(self, observation: PoissonObservation) -> None:
        self.observation_offset_ = observation.intercept


class CountDynamicalSystem(CountSystem):
    """Generalized count linear dynamical system: counts that vary less or more than Poisson ones, around hidden states.

    As `PoissonDynamicalSystem`, but the count of neuron i is a `GeneralizedCount` with theta = c_i' x_t and a shape g_i
    that is learned: concave where counts vary less than Poisson, convex where more.

    Parameters
    ----------
    n_components : int, default=2
    observation : {"full", "simple", "linear"}, default="full"
        A shape for each neuron; one for all, with a slope for each; or slopes alone, which are Poisson counts cut off
        at the largest one. Use "simple" where data are few.
    inference : {"vb", "laplace"}, default="vb"
        See `PoissonDynamicalSystem`.
    elbo : {"quadrature", "jensen"}, default="quadrature"
        How variational inference takes the expected log normalizer: by quadrature, or by Jensen's inequality, whose
        optimum is certified by a dual problem (`posterior` tells the gap) but which is far below the log-likelihood
        for counts above ten or so.
    max_count : int, optional
        Largest possible count: larger ones in other data have probability 0, and their sequences scores of -inf. By
        default the shape of each neuron is learned up to its largest count ("simple": of all neurons); where other
        data have larger ones it goes on as a line, a Poisson tail.
    smoothness : float, default=1e-2
        Pulls shapes towards lines, which are Poisson; see `GeneralizedCountRegression`. With 0, counts that a neuron
        did not have are impossible, unless `observation` is "linear".
    n_quadrature : int, default=15
        Nodes of the quadrature.
    init, time_varying_mean, max_iter, tol, n_init, warm_start, random_state, checkpoint, engine, n_jobs, verbose
        See `PoissonDynamicalSystem`. It starts from a few iterations of that.

    Attributes
    ----------
    g_ : array of shape (n_features, K + 1)
        Shapes, with g(0) = 0, and -inf where a count is impossible.
    transition_matrix_, transition_covariance_, transition_offset_, initial_mean_, initial_covariance_
        See `PoissonDynamicalSystem`.
    observation_matrix_ : array of shape (n_features, n_components)
    mean_counts_, history_, converged_, n_iter_, objective_, typical_length_, n_features_in_
        See `PoissonDynamicalSystem`; the objective is less the penalty on bent shapes.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.dynamics import CountDynamicalSystem
    >>> rng = np.random.default_rng(0)
    >>> time, phase = np.arange(40), rng.uniform(0, 6, (15, 1, 1))
    >>> chance = 1 / (1 + np.exp(-2 * np.sin(0.2 * time[:, None] + phase) * rng.normal(size=8)))
    >>> trials = list(rng.binomial(5, chance))  # less variance than Poisson counts
    >>> model = CountDynamicalSystem(2, random_state=0).fit(trials)
    >>> bool(np.mean(np.diff(model.g_[:, :5], 2)) < -0.05)  # concave
    True
    """

    _parameters: ClassVar[dict[str, Allowed]] = CountSystem._parameters | {
        "observation": Only(*KINDS),
        "elbo": Only("quadrature", "jensen"),
        "max_count": Whole(1) | Only(None),
        "smoothness": Number(least=0),
        "n_quadrature": Whole(2, 100),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = CountSystem._state_layout | {
        "g_": Stored("n_features_in_", None, finite=False)
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        observation: str = "full",
        inference: str = "vb",
        elbo: str = "quadrature",
        max_count: int | None = None,
        smoothness: float = 1e-2,
        n_quadrature: int = 15,
        init: str = "nuclear",
        time_varying_mean: bool = False,
        max_iter: int = 300,
        tol: float = 1e-5,
        n_init: int = 1,
        warm_start: bool = False,
        random_state: Any = None,
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.observation = observation
        self.inference = inference
        self.elbo = elbo
        self.max_count = max_count
        self.smoothness = smoothness
        self.n_quadrature = n_quadrature
        self.init = init
        self.time_varying_mean = time_varying_mean
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.warm_start = warm_start
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _model(self, survey: Survey | None) -> CountModel:
        # Laplace's approximation has no bound: its M-step takes expectations by quadrature.
        jensen = self.elbo == "jensen" and self.inference == "vb"
        nodes = None if jensen else hermite_nodes(self.n_quadrature)
        if survey is None:
            support = np.isfinite(self.g_)
            return CountModel(self.observation, nodes, support, np.zeros(len(support)))
        support = self._support(survey)
        kappa = self.smoothness * survey.n_seen / support.shape[1]
        return CountModel(self.observation, nodes, support, kappa)

    def _support(self, survey: Survey) -> NDArray[np.bool_]:
        """Counts that are possible: (n_features, K + 1)."""
        occurs = survey.occurs
        seen = occurs.shape[1] - 1
        if self.max_count is not None and self.max_count < seen:
            raise ValueError(f"max_count must be at least the largest count in X ({seen}), got {self.max_count}")
        K = max(seen if self.max_count is None else int(self.max_count), 1)
        present = np.zeros((len(occurs), K + 1), dtype=bool)
        present[:, : seen + 1] = occurs
        if self.observation == "simple":
            present[:] = present.any(axis=0)
        if self._has_gaps():
            if self.max_count is not None and self.max_count > seen:
                raise ValueError(
                    "smoothness must be positive when max_count is above the largest count in X: nothing else tells "
                    "how probable counts between are"
                )
            support = present
        elif self.max_count is not None:
            support = np.ones_like(present)
        else:
            highest = present.shape[1] - 1 - present[:, ::-1].argmax(axis=1)
            support = np.arange(K + 1) <= np.where(present.any(axis=1), highest, 0)[:, None]
        support[:, 0] = True
        return support

    def _has_gaps(self) -> bool:
        """Whether counts that were not seen are impossible: nothing tells how probable they are."""
        return self.smoothness == 0 and self.observation != "linear"

    def _with_room(
        self, params: SystemParameters, problem: CountProblem, counts: Array
    ) -> tuple[SystemParameters, CountProblem]:
        limited = self.max_count is not None or self._has_gaps()
        return (params, problem) if limited else reaching(params, problem, counts)

    def _started(self, start: SystemParameters, problem: CountProblem) -> SystemParameters:
        start = super()._started(start, problem)
        return in_tables(start, problem.model.support, self.mean_counts_)  # type: ignore[union-attr]

    def _observation(self) -> CountObservation:
        return CountObservation(np.ascontiguousarray(self.observation_matrix_), np.ascontiguousarray(self.g_))

    def _store_observation(self, observation: CountObservation) -> None:
        self.g_ = observation.g

    def _check_fitted_state(self) -> None:
        super()._check_fitted_state()
        g = getattr(self, "g_", None)
        if g is not None and (np.isnan(g).any() or (g == np.inf).any() or (g[:, :1] != 0).any() or not g.shape[1]):
            raise ValueError("g_ must be 0 for a count of 0, and finite or -inf otherwise")
