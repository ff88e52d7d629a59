"""Fitting a hidden Markov model by EM: starting values, priors, the loop, and what to say when it is over."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from pluri.components.em_estimator import EMEstimator
from pluri.components.family import ComponentFamily
from pluri.components.sequence_model import StartingValues
from pluri.engine import Source, resolve_engine
from pluri.inference import Checkpoint, EMResult, History, IterationState, expectation_maximization
from pluri.priors import RowPrior, as_diversity, as_row_prior, log_determinant, warn_if_permutation
from pluri.sequences.driven.topology import Topology, as_topology, check_diverse
from pluri.sequences.learning import ChainPrior, HiddenMarkovProblem, HMMParameters, count_observed, prepare_once
from pluri.validation import as_generator, check_distributions, check_parameters

Array = NDArray[np.float64]
Prior = ArrayLike | RowPrior


class DeadStateWarning(UserWarning):
    """A state of the fitted model explains no observation."""


class ConvergenceMonitor:
    """Collects the objective of each iteration.

    To stop EM by a rule of your own, subclass it, override `converged`, and set the model's ``monitor_`` before `fit`.

    Parameters
    ----------
    tol : float
        EM has converged when the objective gains less than this.
    n_iter : int
        Largest number of iterations.
    verbose : bool
        Kept for compatibility; progress is shown by the model.

    Examples
    --------
    >>> from pluri.sequences import ConvergenceMonitor
    >>> monitor = ConvergenceMonitor(tol=0.1, n_iter=10, verbose=False)
    >>> for objective in (-5.0, -4.0, -3.95):
    ...     monitor.report(objective)
    >>> monitor.converged, monitor.iter
    (True, 3)
    """

    def __init__(self, tol: float, n_iter: int, verbose: bool) -> None:
        self.tol = tol
        self.n_iter = n_iter
        self.verbose = verbose
        self.history: deque[float] = deque()
        self.iter = 0

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(history={list(self.history)}, iter={self.iter}, n_iter={self.n_iter}, "
            f"tol={self.tol}, verbose={self.verbose})"
        )

    def _reset(self) -> None:
        self.iter = 0
        self.history.clear()

    def report(self, log_prob: float) -> None:
        """Add the objective of one more iteration."""
        self.history.append(log_prob)
        self.iter += 1

    @property
    def converged(self) -> bool:
        """Whether EM should stop."""
        if self.iter == self.n_iter:
            return True
        return len(self.history) >= 2 and self.history[-1] - self.history[-2] < self.tol


class FittedByEM(StartingValues, EMEstimator):
    """The part of `HiddenMarkovModel` that learns; a family provides the methods that come first."""

    #: Letters of `params` and `init_params` and the attributes they stand for, besides s and t.
    _emission_attributes: ClassVar[dict[str, str]]

    n_components: int
    startprob_prior: Prior
    transmat_prior: Prior
    n_iter: int
    tol: float
    verbose: int
    params: str
    init_params: str
    topology: Any
    diversity: Any
    n_init: int
    warm_start: bool
    acceleration: str | None
    engine: Any
    n_jobs: int | None
    implementation: str
    random_state: Any
    startprob_: Array
    transmat_: Array

    def _emission(self, given: dict[str, Any]) -> ComponentFamily[Any, Any]:
        """The emission family with this estimator's hyper-parameters; `given` are attributes to start from."""
        raise NotImplementedError  # abstract

    def _emission_parameters(self, emission: Any) -> Any:
        """The family's record of the fitted (or hand-set) attributes, checked."""
        raise NotImplementedError  # abstract

    def _store_emission(self, parameters: Any) -> None:
        """Set the fitted attributes from the family's record."""
        raise NotImplementedError  # abstract

    def _model(self) -> tuple[ComponentFamily[Any, Any], HMMParameters[Any]]:
        """Emission family and parameters of a fitted model, checked."""
        raise NotImplementedError  # abstract

    def _topology(self) -> Topology | None:
        """The transitions that are allowed; None if all are, as in a family without the argument."""
        given = getattr(self, "topology", "ergodic")
        return None if isinstance(given, str) and given == "ergodic" else as_topology(given, self.n_components)

    def _chain_prior(self) -> ChainPrior:
        return ChainPrior(
            start=as_row_prior("startprob_prior", self.startprob_prior, (self.n_components,)),
            transition=as_row_prior("transmat_prior", self.transmat_prior, (self.n_components, self.n_components)),
            diversity=as_diversity(self.diversity),
        )

    def _check_settings(self) -> None:
        letters = "st" + "".join(self._emission_attributes)
        for name in ("params", "init_params"):
            value = getattr(self, name)
            if not isinstance(value, str) or not set(value) <= set(letters):
                raise ValueError(f"{name} must be made of the letters {letters!r}, got {value!r}")
        check_parameters(self)
        topology = self._topology()
        if topology is not None and as_diversity(self.diversity) is not None:
            check_diverse(topology)

    def _parameter_names(self) -> dict[str, str]:
        """Letters of `params`, and the attributes they stand for."""
        return {"s": "startprob_", "t": "transmat_"} | self._emission_attributes

    def _problem(self, prior: ChainPrior, given: dict[str, Any]) -> HiddenMarkovProblem[Any]:
        start, transition = given.get("startprob_"), given.get("transmat_")
        k = self.n_components
        for name, value, shape in (("startprob_", start, (k,)), ("transmat_", transition, (k, k))):
            if value is not None:
                if np.shape(value) != shape:
                    raise ValueError(f"{name} must have shape {shape}, got {np.shape(value)}")
                check_distributions(name, np.asarray(value))
        topology = self._topology()
        if topology is not None:
            topology.refuse_outside(
                None if start is None else np.asarray(start), None if transition is None else np.asarray(transition)
            )
        emissions = set(self._emission_attributes.values())
        return HiddenMarkovProblem(
            n_components=k,
            emission=self._emission(given),
            prior=prior,
            update_start="s" in self.params,
            update_transition="t" in self.params,
            start=None if start is None else np.asarray(start, dtype=np.float64),
            transition=None if transition is None else np.asarray(transition, dtype=np.float64),
            in_log_space=self.implementation == "log",
            topology=topology,
            segments=topology is not None and topology.one_way and not given.keys() & emissions,
        )

    def _learn(
        self,
        source: Source,
        prior: ChainPrior,
        *,
        n_samples: int | None,
        on_iteration: Callable[[Any], bool] | None = None,
        start: HMMParameters[Any] | None = None,
    ) -> None:
        """Run EM and store what it finds; with ``n_iter=0``, store the starting values."""
        self._check_settings()
        if count_observed(source) == 0:
            raise ValueError("X must hold at least one value that is not missing, got none")
        problem = self._problem(prior, self._given())
        if start is None and self.warm_start and hasattr(self, "history_"):
            start = self._model()[1]
        self._run(problem, source, start, str(n_samples), on_iteration)

    def _run(
        self,
        problem: HiddenMarkovProblem[Any],
        source: Source,
        start: HMMParameters[Any] | None,
        about: str,
        on_iteration: Callable[[Any], bool] | None = None,
    ) -> HMMParameters[Any]:
        """EM for a problem that may be more than that of the plain chain; stores what it finds, and returns it.

        `about` is what a checkpoint must agree on besides the settings of this model and the data.
        """
        problem, source = prepare_once(problem, source)
        if self.n_iter == 0:
            # The stream of the first run: the values that a longer fit with this seed would start from.
            stream = as_generator(self.random_state).spawn(1)[0]
            start = problem.initialize(source, stream) if start is None else start
            self._store(start)
            self.history_, self.converged_, self.n_iter_, self.objective_ = History(), False, 0, np.nan
            self.log_det_ = log_determinant(self.transmat_)
            self.state_occupancy_ = np.full(self.n_components, np.nan)
            return start
        monitor, own_rule = self._open_monitor()

        def watch(state: IterationState[HMMParameters[Any]]) -> bool:
            if state.iteration == 1:
                monitor._reset()
            monitor.report(state.objective)
            stop = own_rule and monitor.converged
            return bool(on_iteration(state) if on_iteration else False) or stop

        place = self.checkpoint and Checkpoint(self.checkpoint, fingerprint=self._fingerprint(source, about))
        result = expectation_maximization(
            problem,
            source,
            rng=as_generator(self.random_state),
            max_iter=self.n_iter,
            tol=-np.inf if own_rule else self.tol,
            n_init=self.n_init,
            start=start,
            engine=resolve_engine(self.engine, self.n_jobs),
            acceleration=self.acceleration,
            checkpoint=place,
            verbose=int(self.verbose),
            on_iteration=watch,
        )
        self._store(result.params)
        self._monitor = monitor
        self.history_ = result.history
        self.converged_ = result.converged or (own_rule and monitor.converged)
        self.n_iter_ = result.n_iter
        self.objective_ = result.objective
        self.log_det_ = log_determinant(self.transmat_)
        self.state_occupancy_ = result.params.occupancy
        self._warn(result)
        warn_if_permutation(self.transmat_, problem.prior.diversity)
        return result.params

    def _open_monitor(self) -> tuple[ConvergenceMonitor, bool]:
        """The monitor, and whether it is one of the user's own that decides when to stop."""
        own = getattr(self, "_monitor", None)
        if own is not None and type(own) is not ConvergenceMonitor:
            return own, True
        return ConvergenceMonitor(self.tol, self.n_iter, bool(self.verbose)), False

    @property
    def monitor_(self) -> ConvergenceMonitor:
        """Objectives of the last run in hmmlearn's form; set one of your own before `fit` to stop by its rule."""
        own: ConvergenceMonitor | None = getattr(self, "_monitor", None)
        return ConvergenceMonitor(self.tol, self.n_iter, bool(self.verbose)) if own is None else own

    @monitor_.setter
    def monitor_(self, monitor: ConvergenceMonitor) -> None:
        self._monitor = monitor

    def _warn(self, result: EMResult[HMMParameters[Any]]) -> None:
        if result.reason == "max_iter" and self.n_iter > 1 and self.tol > 0 and not self.converged_:
            warnings.warn(
                f"EM did not converge in n_iter={self.n_iter} iterations: raise n_iter or tol, or try "
                "acceleration='squarem'",
                ConvergenceWarning,
                stacklevel=5,
            )
        dead = np.flatnonzero(self.state_occupancy_ < 1e-10)
        if dead.size:
            warnings.warn(
                f"states {dead.tolist()} explain no observation: use fewer states or other starting values (n_init)",
                DeadStateWarning,
                stacklevel=5,
            )
