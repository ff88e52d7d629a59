"""Hidden Markov model whose transitions depend on inputs, over the emissions of any other one.

    P(state_t = j | state_{t-1} = i, u_t) = A_ij exp(w_ij . (u_t - m)) / sum_l A_il exp(w_il . (u_t - m))

is a multinomial logistic regression for each row, with A the transition matrix at the mean inputs m: the model with
time-varying transition probabilities of econometrics, the input-output HMM with plain emissions.

References
----------
Diebold, Lee and Weinbach (1994), Regime switching with time-varying transition probabilities. Bengio and Frasconi
(1995), An input output HMM architecture, NIPS 7. Zucchini, MacDonald and Langrock (2016), Hidden Markov models for
time series, section 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from pluri.priors.protocol import PseudoCountPrior
from pluri.sequences.driven.driven_learning import DrivenParameters, DrivenProblem, InputScale, with_reference
from pluri.sequences.driven.driven_queries import DrivenQueries
from pluri.sequences.driven.effects import TransitionEffects, transition_effects
from pluri.sequences.driven.logistic_rows import RowPriors
from pluri.sequences.hmm import HiddenMarkovModel
from pluri.sequences.learning import HiddenMarkovProblem, HMMParameters, count_observed
from pluri.validation import (
    Allowed,
    Number,
    Stored,
    check_parameters,
    check_value,
    is_source,
    restored_on_failure,
)
from pluri.validation.sequences import (
    BOUNDARIES,
    check_sequence_weight,
    offsets_of,
    sequence_lengths,
    weight_by_either_name,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class DrivenHMM(DrivenQueries):
    """Hidden Markov model whose transition probabilities depend on inputs (covariates).

    The inputs are columns of X, so that they pass through pipelines, searches, cross-validation and lists of sequences
    together with the observations; the other columns go to `hmm`, which may be of any family. The inputs of row t act
    on the transition from row t - 1 to row t; those of the first row of a sequence drive nothing, and may be missing.
    To have them act on the next transition, shift the columns by one row.

    Parameters
    ----------
    hmm : hidden Markov model of `pluri.sequences`, default=None
        Emissions, number of states, priors, topology, starting values and how to fit; None is ``GaussianHMM()``. Its
        columns are those of X without the inputs, numbered from 0. `diversity` must be None, and `transmat_prior` a
        Dirichlet or sticky prior without concentrations below 1: its pseudo-counts are transitions at mean inputs.
    transition_inputs : list of int or str, default=None
        Columns of X that drive the transitions, by number or, for a data frame, by name. With none this is `hmm`.
    alpha : float, default=0.1
        Weight of the squared coefficients, with inputs in units of their standard deviations: a normal prior of
        variance 1 / alpha.

    Attributes
    ----------
    hmm_ : hidden Markov model
        The fitted emissions and start, and the transitions at mean inputs.
    transition_coef_ : array of shape (n_components, n_components, n_inputs)
        Entry (i, j, d): what one more unit of input d adds to the log odds of going from i to j rather than staying in
        i (or going to the first state allowed, if the topology forbids to stay); 0 for staying itself.
    input_mean_, input_scale_ : arrays of shape (n_inputs,)
        Means and standard deviations of the inputs in `fit`.
    startprob_, transmat_ : arrays
        Those of `hmm_`: `transmat_` is the transition matrix at the mean inputs.
    history_, converged_, n_iter_, objective_, state_occupancy_, n_features_in_
        See `GaussianHMM`.

    Notes
    -----
    One E-step takes a pass forwards and one backwards in log space, in each of which the matrix of every step is made
    anew; it holds about three arrays of n_samples x n_components, and none of n_samples x n_components^2.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import DrivenHMM, GaussianHMM
    >>> rng = np.random.default_rng(0)
    >>> u, state, x = rng.normal(size=2000), 0, []
    >>> for t in range(2000):
    ...     leave = 1 / (1 + np.exp(2 - 1.5 * u[t]))  # the input makes the chain switch
    ...     state = 1 - state if rng.random() < leave else state
    ...     x.append(rng.normal(4 * state))
    >>> X = np.column_stack([x, u])
    >>> model = DrivenHMM(GaussianHMM(2, random_state=0), transition_inputs=[1]).fit(X)
    >>> bool(np.all(np.abs(model.transition_coef_[[0, 1], [1, 0], 0] - 1.5) < 0.5))
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {"alpha": Number(least=0)}
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "transition_coef_": Stored("n_states", "n_states", "n_inputs"),
        "input_mean_": Stored("n_inputs"),
        "input_scale_": Stored("n_inputs", least=0),
    }
    _instead_of_y = "pass lengths of sequences as lengths="
    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES

    input_scale_: Array

    def __init__(
        self, hmm: HiddenMarkovModel | None = None, transition_inputs: Any = None, *, alpha: float = 0.1
    ) -> None:
        self.hmm = hmm
        self.transition_inputs = transition_inputs
        self.alpha = alpha

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._template()).input_tags
        return tags

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
        """Estimate the parameters by generalised EM, which never lowers the objective.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
            Observations and inputs, side by side. NaN marks a missing observation.
        y : ignored
        lengths, groups, sequence_weight : arrays, optional
            See `GaussianHMM.fit`.

        Returns
        -------
        self : object
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        check_parameters(self)
        template = self._template()
        if is_source(X):
            raise TypeError(
                f"X must be an array or a list of sequences, got a {type(X).__name__}: transitions that depend on "
                "inputs are learned in memory"
            )
        with restored_on_failure(self):
            lengths = self._boundaries(X, y, lengths, groups)
            data, counts = self._sequences(X, lengths, fitting=True)
            if len(data) < template.n_components:
                raise ValueError(
                    f"X must hold at least as many samples as hmm has states ({template.n_components}), got "
                    f"{len(data)} sample{'s' * (len(data) != 1)}"
                )
            rest, inputs = self._split(data, counts)
            hmm = clone(template)
            for name in template._hand_set():
                stored = name if name in vars(template) else f"_{name}"  # a property reads other shapes than it takes
                setattr(hmm, stored, vars(template)[stored])
            source, n_samples = hmm._source(rest, counts, sequence_weight)
            weight = check_sequence_weight(sequence_weight, counts)
            scale = InputScale.of(inputs, offsets_of(counts), weight)
            hmm._check_settings()
            n_observed = count_observed(source)
            if n_observed == 0:
                raise ValueError("X must hold at least one observation that is not missing, got none")
            problem = self._driven(hmm._problem(hmm._chain_prior(), hmm._given()), scale)
            learned = hmm._run(
                problem,
                source.with_array(np.column_stack([source.X, inputs])),
                self._start(template, scale),
                f"{n_samples} {self.transition_inputs} {self.alpha}",
            )
            hmm._warn_of_few(n_observed)
            self._keep(hmm, learned, scale)
        return self

    def _driven(self, plain: HiddenMarkovProblem[Any], scale: InputScale) -> DrivenProblem[Any]:
        """The problem of a plain chain with inputs that drive its transitions."""
        k, prior = plain.n_components, plain.prior
        if prior.diversity is not None:
            raise ValueError(
                "diversity of hmm must be None: a determinantal prior is on one transition matrix, and here there is "
                "one for every step"
            )
        extra = prior.transition.pseudo_counts((k, k)) if isinstance(prior.transition, PseudoCountPrior) else None
        if extra is None or (extra < 0).any():
            raise ValueError(
                "transmat_prior of hmm must be a Dirichlet or sticky prior without concentrations below 1 where inputs "
                f"drive the transitions, got {prior.transition!r}"
            )
        priors = RowPriors(np.asarray(extra, dtype=np.float64), float(self.alpha), scale.reach)
        return DrivenProblem.over(plain, scale, priors)

    def _start(self, template: HiddenMarkovModel, scale: InputScale) -> DrivenParameters[Any] | None:
        """With `warm_start`, the parameters of the last fit in units of the new data."""
        if not template.warm_start or not hasattr(self, "transition_coef_"):
            return None
        _, found = self._model()
        moved = np.asarray(self.transition_coef_) @ (scale.mean - self.input_mean_)
        with np.errstate(divide="ignore"):
            logits = np.log(found.transition) + moved
        transition = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        coef = found.coef * scale.scale
        return DrivenParameters(found.start, transition, found.emission, found.occupancy, coef)

    def _keep(self, hmm: HiddenMarkovModel, learned: HMMParameters[Any], scale: InputScale) -> None:
        assert isinstance(learned, DrivenParameters)
        self.hmm_ = hmm
        self.transition_coef_ = with_reference(learned.transition, learned.coef) / scale.scale
        self.input_mean_, self.input_scale_ = scale.mean, scale.scale
        self.history_, self.converged_ = hmm.history_, hmm.converged_
        self.n_iter_, self.objective_ = hmm.n_iter_, hmm.objective_
        self.state_occupancy_ = hmm.state_occupancy_

    def transition_effects(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        level: float = 0.95,
    ) -> TransitionEffects:
        """Effects of the inputs with standard errors and intervals, from the observed information.

        The information is minus the second derivative of the objective (log-likelihood plus log prior) in the
        transitions, the effects and the emissions together, found by differences of its exact gradient (by Fisher's
        identity, from one E-step); the start distribution is held fixed. Intervals are normal, for fits near a maximum
        (a small `tol`) of enough data.

        Parameters
        ----------
        X, lengths, groups, sequence_weight
            The data of the fit.
        level : float, default=0.95
            Coverage of the intervals.

        Returns
        -------
        effects : `TransitionEffects`
            Estimates, standard errors and the bounds of intervals, each like `transition_coef_`.
        """
        check_value(level, "level", Number(above=0, below=1))
        _, found = self._model()
        lengths = sequence_lengths(X, lengths, groups)
        data, counts = self._observations(X, lengths)
        rest, inputs = self._split(data, counts)
        rows = self.hmm_._observations(rest, counts)[0]
        scale = InputScale(np.asarray(self.input_mean_), np.asarray(self.input_scale_), np.zeros(inputs.shape[1]))
        problem = self._driven(self.hmm_._problem(self.hmm_._chain_prior(), {}), scale)
        weight = check_sequence_weight(sequence_weight, counts)
        parameters = DrivenParameters(**vars(found) | {"coef": found.coef * scale.scale})
        errors = transition_effects(problem, np.column_stack([rows, inputs]), counts, weight, parameters)
        return TransitionEffects.at(self.transition_coef_, errors / scale.scale, level)

    def _check_fitted_state(self) -> None:
        if hasattr(self, "hmm_") and hasattr(self, "transition_coef_"):
            self._model()
            width = self._n_features_of_parameters()
            if getattr(self, "n_features_in_", width) != width:
                raise ValueError(
                    f"n_features_in_ must be {width}, as the parameters have it, got {self.n_features_in_}"
                )
