"""The estimator shell that every hidden Markov model fitted by EM shares: check, run, store.

A family subclasses `HiddenMarkovModel` with its constructor and four small methods that translate between fitted
attributes and the records of its emission model; see `pluri.sequences.gaussian` for the pattern.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pluri.components.em_estimator import EMEstimator, refuse_dates
from pluri.components.family import ComponentFamily
from pluri.engine import ArraySource, Batch, Source, resolve_engine
from pluri.inference import Checkpoint, EMResult, History, IterationState, expectation_maximization
from pluri.priors import RowPrior, as_diversity, as_row_prior, log_determinant, warn_if_permutation
from pluri.progress.callbacks import CallbackSupport, fit_callbacks, with_callbacks
from pluri.sequences.boundaries import called_by_scikit_learn, check_not_lost, sequence_lengths
from pluri.sequences.inputs import (
    check_sequence_lengths,
    check_sequence_weight,
    is_sequence_list,
    join_sequences,
    lengths_in_second_place,
    may_be_rows,
    refuse_streams,
    weight_by_either_name,
)
from pluri.sequences.learning import ChainPrior, HiddenMarkovProblem, HMMParameters, count_observed, prepare_once
from pluri.sequences.monitor import ConvergenceMonitor
from pluri.sequences.queries import ALGORITHMS, BOUNDARIES, ChainQueries
from pluri.sequences.summary import summarize
from pluri.validation import (
    Allowed,
    Flag,
    Number,
    Only,
    Stored,
    Whole,
    as_generator,
    check_distributions,
    check_parameters,
    check_width,
    is_source,
    restored_on_failure,
    unmasked,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Prior = ArrayLike | RowPrior


class DeadStateWarning(UserWarning):
    """A state of the fitted model explains no observation."""


class TooManyParametersWarning(UserWarning):
    """The model has more free parameters than the data have numbers."""


class HiddenMarkovModel(ChainQueries, CallbackSupport, EMEstimator):
    """Base of the EM-fitted hidden Markov models; not to be used by itself."""

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "n_iter": Whole(0),
        "tol": Number(finite=False),
        "algorithm": Only(*ALGORITHMS),
        "verbose": Whole(0) | Flag(),
    }
    _free_of_checkpoint = EMEstimator._free_of_checkpoint | {"n_iter", "algorithm"}
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"state_occupancy_": Stored("n_components", finite=False)}
    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES

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
    diversity: Any
    n_init: int
    warm_start: bool
    acceleration: str | None
    engine: Any
    n_jobs: int | None

    # What a family provides -------------------------------------------------------------------------------------

    def _emission(self, given: dict[str, Any]) -> ComponentFamily[Any, Any]:
        """The emission family with this estimator's hyper-parameters; `given` are attributes to start from."""
        raise NotImplementedError  # abstract

    def _emission_parameters(self, emission: Any) -> Any:
        """The family's record of the fitted (or hand-set) attributes, checked."""
        raise NotImplementedError  # abstract

    def _store_emission(self, parameters: Any) -> None:
        """Set the fitted attributes from the family's record."""
        raise NotImplementedError  # abstract

    def _n_features_of_parameters(self) -> int:
        """Number of columns of X that the parameters describe."""
        raise NotImplementedError  # abstract

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        """X as a two-dimensional array that the family accepts; NaN marks a missing value."""
        return self._validated(X, fitting)

    # Input ------------------------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """Number of features: hmmlearn's name of `n_features_in_`."""
        fitted = getattr(self, "n_features_in_", None)
        return self._n_features_of_parameters() if fitted is None else int(fitted)

    @n_features.setter
    def n_features(self, value: int) -> None:
        self.n_features_in_ = int(value)

    def _validated(self, X: Any, fitting: bool, **options: Any) -> NDArray[Any]:
        options = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"} | options
        refuse_dates(X)
        if fitting or hasattr(self, "n_features_in_"):
            return np.asarray(validate_data(self, X, reset=fitting, **options))
        # Parameters set by hand: nothing was fitted that could tell the number of features.
        data = np.asarray(check_array(X, **options))
        check_width(data, self._n_features_of_parameters())
        return data

    def _sequences(self, X: Any, lengths: ArrayLike | None, *, fitting: bool) -> tuple[NDArray[Any], Integers]:
        refuse_streams(X)
        X = unmasked(X)
        if is_sequence_list(X) and not self._are_rows(X, lengths, fitting):
            if lengths is not None:
                raise ValueError("lengths must be None when X is a list of sequences")
            X, lengths = join_sequences(X)
        data = self._check_data(X, fitting=fitting)
        return data, check_sequence_lengths(lengths, len(data))

    def _are_rows(self, X: Any, lengths: ArrayLike | None, fitting: bool) -> bool:
        """Whether a list of plain lists is a matrix: where it cannot be meant as sequences of one feature."""
        if not may_be_rows(X):
            return False
        if lengths is not None or (not fitting and self._known_width() == len(X[0])):
            return True
        if fitting and not get_tags(self).input_tags.categorical and not isinstance(X[0][0], str):
            warnings.warn(
                f"X, a list of {len(X)} lists of {len(X[0])} numbers, is read as {len(X)} sequences with one feature: "
                "for the rows of a matrix pass numpy.array(X), for sequences a list of arrays",
                UserWarning,
                stacklevel=6,
            )
        return False

    def _known_width(self) -> int | None:
        """Number of features of a model that is fitted or set by hand; None for any other."""
        width = getattr(self, "n_features_in_", None)
        try:
            return self._n_features_of_parameters() if width is None else int(width)
        except (AttributeError, IndexError):  # none set, or of a shape that is refused later
            return None

    def _observations(self, X: Any, lengths: ArrayLike | None) -> tuple[NDArray[Any], Integers]:
        return self._sequences(X, lengths, fitting=False)

    # Parameters -------------------------------------------------------------------------------------------------

    def _check_chain(self) -> tuple[Array, Array]:
        k = self.n_components
        start = np.asarray(self.startprob_, dtype=np.float64)
        transition = np.asarray(self.transmat_, dtype=np.float64)
        if start.shape != (k,):
            raise ValueError(f"startprob_ must have length n_components ({k}), got shape {start.shape}")
        if transition.shape != (k, k):
            raise ValueError(
                f"transmat_ must have shape (n_components, n_components) = ({k}, {k}), got {transition.shape}"
            )
        check_distributions("startprob_", start)
        check_distributions("transmat_", transition)
        return start, transition

    def _model(self) -> tuple[ComponentFamily[Any, Any], HMMParameters[Any]]:
        names = ["startprob_", "transmat_", *self._emission_attributes.values()]
        missing = [name for name in names if not hasattr(self, name)]
        if missing and len(missing) < len(names):
            raise NotFittedError(f"this {type(self).__name__} is not fitted and lacks {', '.join(missing)}: set it too")
        check_is_fitted(self, names)
        start, transition = self._check_chain()
        emission = self._emission({})
        unknown = np.full(self.n_components, np.nan)
        return emission, HMMParameters(start, transition, self._emission_parameters(emission), unknown)

    def _store(self, parameters: HMMParameters[Any]) -> None:
        self.startprob_ = parameters.start
        self.transmat_ = parameters.transition
        self._store_emission(parameters.emission)

    # Fitting ----------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        **aliases: Any,
    ) -> Self:
        """Estimate the parameters by EM (MAP-EM under priors).

        Ctrl-C ends the fit with a warning and keeps the best parameters so far.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), list of sequences, or `pluri.engine.Source`
            NaN marks a missing value.
        y : ignored
            For scikit-learn; a program written for hmmlearn may pass `lengths` here. To learn from known states, see
            `HMMClassifier`; labels passed here are ignored with a warning.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X, which sum to n_samples; one sequence if neither `lengths` nor `groups` is
            given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`: rows with the same value next to each other are one
            sequence. This is what reaches the model through scikit-learn's cross-validation, with metadata routing.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence. Also taken under the name ``sample_weight``, which elsewhere means a weight for
            each row: a Markov chain has no meaning for a row that counts more than its neighbours.

        Returns
        -------
        self : object
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        self._check_settings()
        with restored_on_failure(self):
            lengths = self._boundaries(X, y, lengths, groups)
            source, n_samples = self._source(X, lengths, sequence_weight)
            with fit_callbacks(
                self, max_iter=max(self.n_iter, 1), n_init=self.n_init, X=X, attributes=self._attributes
            ) as on_iteration:
                self._learn(source, self._chain_prior(), n_samples=n_samples, on_iteration=on_iteration)
                self._warn_of_few(count_observed(source))
        return self

    def _boundaries(self, X: Any, y: Any, lengths: ArrayLike | None, groups: ArrayLike | None) -> ArrayLike | None:
        """Lengths of the sequences that `fit` was given in one of three ways; says so if `y` holds labels."""
        given = sequence_lengths(X, lengths, groups)
        found = lengths_in_second_place(y, given, X)
        if y is not None and (found is None or found is given) and not called_by_scikit_learn():
            warnings.warn(
                f"y is ignored: {type(self).__name__} learns its states without labels; to learn from them use "
                f"HMMClassifier({type(self).__name__}()), and pass lengths of sequences as lengths=",
                UserWarning,
                stacklevel=5,
            )
        check_not_lost(X, found, fitting=True)
        return found

    def _source(
        self, X: Any, lengths: ArrayLike | None, sequence_weight: ArrayLike | None, labels: Integers | None = None
    ) -> tuple[Source, int | None]:
        if is_source(X):
            if lengths is not None or sequence_weight is not None:
                raise ValueError("lengths and sequence_weight must be None when X is a source: it holds them")
            return self._checked_source(X), None
        data, counts = self._sequences(X, lengths, fitting=True)
        weight = check_sequence_weight(sequence_weight, counts)
        if self.n_components > len(data):
            raise ValueError(
                f"n_components must be at most the number of samples ({len(data)}), got {self.n_components}"
            )
        return ArraySource(data, counts, sample_weight=weight, labels=labels), len(data)

    def _check_batch(self, batch: Batch) -> None:
        if batch.lengths is None:
            raise ValueError("X, a source of batches, must give the lengths of its sequences")
        self._check_data(batch.X, fitting=True)

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

    def _parameter_names(self) -> dict[str, str]:
        """Letters of `params`, and the attributes they stand for."""
        return {"s": "startprob_", "t": "transmat_"} | self._emission_attributes

    def _hand_set(self) -> dict[str, Any]:
        """Attributes that were set and that `init_params` does not ask to initialise."""
        names, initialized = self._parameter_names(), getattr(self, "init_params", "".join(self._parameter_names()))
        return {
            name: getattr(self, name)
            for letter, name in names.items()
            if letter not in initialized and hasattr(self, name)
        }

    def _given(self) -> dict[str, Any]:
        """Starting values: constructor arguments, which are set as attributes, and attributes set by hand."""
        names = self._parameter_names()
        arguments = {name: getattr(self, f"{name}init", None) for name in names.values()}
        arguments = {name: value for name, value in arguments.items() if value is not None}
        lost = [
            name
            for letter, name in names.items()
            if hasattr(self, name) and letter in self.init_params and name not in arguments
        ]
        if hasattr(self, "history_"):
            if self.warm_start:
                return self._hand_set()  # the fit goes on from what it found
        elif lost:
            warnings.warn(
                f"{', '.join(lost)} were set but will be overwritten during initialization: take their letters out of "
                f"init_params ({self.init_params!r}) to start from them",
                UserWarning,
                stacklevel=6,
            )
        for name, value in arguments.items():
            setattr(self, name, copy.deepcopy(value))
        return self._hand_set() | {name: getattr(self, name) for name in arguments}

    def _problem(self, prior: ChainPrior, given: dict[str, Any]) -> HiddenMarkovProblem[Any]:
        start, transition = given.get("startprob_"), given.get("transmat_")
        k = self.n_components
        for name, value, shape in (("startprob_", start, (k,)), ("transmat_", transition, (k, k))):
            if value is not None:
                if np.shape(value) != shape:
                    raise ValueError(f"{name} must have shape {shape}, got {np.shape(value)}")
                check_distributions(name, np.asarray(value))
        return HiddenMarkovProblem(
            n_components=k,
            emission=self._emission(given),
            prior=prior,
            update_start="s" in self.params,
            update_transition="t" in self.params,
            start=None if start is None else np.asarray(start, dtype=np.float64),
            transition=None if transition is None else np.asarray(transition, dtype=np.float64),
            in_log_space=self._in_log_space,
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
        problem, source = prepare_once(self._problem(prior, self._given()), source)
        if start is None and self.warm_start and hasattr(self, "history_"):
            start = self._model()[1]
        if self.n_iter == 0:
            # The stream of the first run: the values that a longer fit with this seed would start from.
            stream = as_generator(self.random_state).spawn(1)[0]
            self._store(problem.initialize(source, stream) if start is None else start)
            self.history_, self.converged_, self.n_iter_, self.objective_ = History(), False, 0, np.nan
            self.log_det_ = log_determinant(self.transmat_)
            self.state_occupancy_ = np.full(self.n_components, np.nan)
            return
        monitor, own_rule = self._open_monitor()

        def watch(state: IterationState[HMMParameters[Any]]) -> bool:
            if state.iteration == 1:
                monitor._reset()
            monitor.report(state.objective)
            stop = own_rule and monitor.converged
            return bool(on_iteration(state) if on_iteration else False) or stop

        place = self.checkpoint and Checkpoint(self.checkpoint, fingerprint=self._fingerprint(source, n_samples))
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
        warn_if_permutation(self.transmat_, prior.diversity)

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

    def _warn_of_few(self, n_observed: int | None) -> None:
        """Say so if the parameters that were learned are more than the numbers they were learned from."""
        emission, parameters = self._model()
        k = self.n_components
        learned = (k - 1) * ("s" in self.params)
        learned += (int((self.transmat_ > 0).sum()) - k) * ("t" in self.params)
        learned += emission.n_free(parameters.emission) * any(
            letter in self.params for letter in self._emission_attributes
        )
        if n_observed is not None and learned > n_observed:
            warnings.warn(
                f"{learned} free parameters were learned from {n_observed} numbers, which tells little of other data: "
                "use fewer states, a simpler covariance_type, priors or more data",
                TooManyParametersWarning,
                stacklevel=4,
            )

    def summary(self) -> str:
        """The fitted model on one page of text.

        Returns
        -------
        text : str
        """
        self._model()
        return summarize(self)

    def _check_fitted_state(self) -> None:
        """The checks of hand-set parameters, for those that come from a file."""
        names = ["startprob_", "transmat_", *self._emission_attributes.values()]
        if not all(hasattr(self, name) for name in names):
            return
        self._model()
        width = self._n_features_of_parameters()
        if getattr(self, "n_features_in_", width) != width:
            raise ValueError(f"n_features_in_ must be {width}, as the parameters have it, got {self.n_features_in_}")
