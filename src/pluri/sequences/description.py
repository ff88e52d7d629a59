"""A hidden Markov model whatever was observed: its samples, its size, a filter that waits, and itself on a page."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.components.chain import _path_kernels as kernels
from pluri.sequences.online import OnlineFilter
from pluri.sequences.queries import ChainQueries
from pluri.validation import RandomState, as_generator, check_count
from pluri.validation.sequences import check_sequence_weight, sequence_lengths, weight_by_either_name

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Rows of the table of states that `summary` shows.
MOST_STATES = 20


class ModelDescription(ChainQueries):
    """Further methods of a fitted hidden Markov model (or of one whose parameters were set by hand)."""

    startprob_: Array
    transmat_: Array
    n_iter_: int
    objective_: float

    def _n_features_of_parameters(self) -> int:
        """Number of columns of X that the parameters describe."""
        raise NotImplementedError  # abstract

    def filter(self) -> OnlineFilter:
        """Begin a new sequence that arrives one observation at a time.

        Returns
        -------
        online : `OnlineFilter`
            ``online.update(x)`` gives the state probabilities after each observation.
        """
        emission, parameters = self._model()
        # A copy: the filter goes on with this model even if the estimator is fitted again.
        return OnlineFilter(emission, parameters, partial(_checked_row, copy.copy(self)))

    def sample(
        self, n_samples: int = 1, random_state: RandomState = None, currstate: int | None = None
    ) -> tuple[NDArray[Any], Integers]:
        """Draw a sequence from the model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : optional
            The model's own if None.
        currstate : int, optional
            State of the first sample; drawn from `startprob_` if None.

        Returns
        -------
        X : array of shape (n_samples, n_features)
        states : array of shape (n_samples,)
        """
        rng = as_generator(self.random_state if random_state is None else random_state)
        states = self._draw_states(n_samples, rng, currstate)
        return self._emit(states, rng), states

    def _emit(self, states: Integers, rng: np.random.Generator) -> NDArray[Any]:
        """Observations of a path of states."""
        emission, parameters = self._model()
        return emission.sample(parameters.emission, states, rng)

    def _draw_states(self, n_samples: int, rng: np.random.Generator, currstate: int | None) -> Integers:
        """A path of the chain, from the state `currstate` if it is given."""
        parameters = self._model()[1]
        check_count(n_samples, "n_samples")
        if currstate is not None and not 0 <= currstate < len(parameters.start):
            raise ValueError(f"currstate must be between 0 and {len(parameters.start) - 1}, got {currstate}")
        states = np.empty(n_samples, dtype=np.int64)
        kernels.sample_chain(
            np.cumsum(parameters.start),
            np.cumsum(parameters.transition, axis=1),
            rng.random(n_samples),
            -1 if currstate is None else int(currstate),
            states,
        )
        return states

    def get_stationary_distribution(self) -> Array:
        """Distribution p of the states with p A = p; the average over time if the chain is periodic.

        Returns
        -------
        stationary : array of shape (n_components,)
        """
        check_is_fitted(self, "transmat_")
        transition = np.asarray(self.transmat_, dtype=np.float64)
        k = len(transition)
        system = np.concatenate([transition.T - np.eye(k), np.ones((1, k))])
        solution = np.linalg.lstsq(system, np.concatenate([np.zeros(k), [1.0]]), rcond=None)[0]
        solution = np.maximum(solution, 0.0)
        return solution / solution.sum()

    def n_free_parameters(self) -> int:
        """Number of free scalar parameters: start, transitions and emissions."""
        emission, parameters = self._model()
        return self._n_free_chain(len(parameters.start)) + emission.n_free(parameters.emission)

    def _n_free_chain(self, k: int) -> int:
        """Number of free start and transition probabilities."""
        return k - 1 + k * (k - 1)

    def aic(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        **aliases: Any,
    ) -> float:
        """Akaike's information criterion, -2 log-likelihood + 2 n_free; lower is better. Arguments as in `score`."""
        weight = weight_by_either_name(sequence_weight, aliases)
        log_likelihood = self.score(X, lengths=lengths, groups=groups, sequence_weight=weight)
        return -2.0 * log_likelihood + 2.0 * self.n_free_parameters()

    def bic(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        **aliases: Any,
    ) -> float:
        """Bayesian information criterion, -2 log-likelihood + n_free log(n_samples); lower is better.

        Arguments as in `score`; samples count by the weight of their sequence.
        """
        lengths = sequence_lengths(X, lengths, groups)
        weight = weight_by_either_name(sequence_weight, aliases)
        log_likelihood = self.score(X, lengths=lengths, sequence_weight=weight)
        counts = self._observations(X, lengths)[1]
        checked = check_sequence_weight(weight, counts)
        n_samples = float(counts.sum() if checked is None else checked @ counts)
        return -2.0 * log_likelihood + self.n_free_parameters() * float(np.log(n_samples))

    def summary(self) -> str:
        """The fitted model on one page of text.

        Returns
        -------
        text : str
        """
        self._model()
        k = len(self.startprob_)
        n_features = self._n_features_of_parameters()
        lines = [f"{type(self).__name__}: {_plural(k, 'state')}, {_plural(n_features, 'feature')}", ""]
        lines += _fit_lines(self)
        stationary = self.get_stationary_distribution()
        occupancy = getattr(self, "state_occupancy_", None)
        with np.errstate(divide="ignore"):
            stay = 1.0 / (1.0 - np.diag(self.transmat_))
        header = ["state", "start", "share", "samples", "stay", "next", "emission"]
        rows = []
        for i in range(min(k, MOST_STATES)):
            after = self.transmat_[i].copy()
            after[i] = -1.0
            following = int(np.argmax(after))
            rows.append(
                [
                    str(i),
                    f"{self.startprob_[i]:.3f}",
                    f"{stationary[i]:.3f}",
                    "-" if occupancy is None else f"{occupancy[i]:.1f}",
                    f"{stay[i]:.3g}",
                    f"{following} ({after[following]:.2f})" if k > 1 else "-",
                    _emission_text(self, i),
                ]
            )
        widths = [max(len(row[c]) for row in [header, *rows]) for c in range(len(header))]
        lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [header, *rows]]
        if k > MOST_STATES:
            lines.append(f"... and {k - MOST_STATES} more states")
        lines += [
            "",
            "share: stationary probability; stay: expected duration; next: likeliest other state (probability)",
        ]
        return "\n".join(lines)


def _checked_row(model: ChainQueries, x: Any) -> NDArray[Any]:
    """One observation as a row."""
    return model._observations(np.asarray(x).reshape(1, -1), None)[0]


def _plural(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def _fit_lines(model: ModelDescription) -> list[str]:
    if not hasattr(model, "converged_"):
        return ["parameters set by hand, not fitted", ""]
    state = "converged" if model.converged_ else "not converged"
    lines = [f"{state} after {model.n_iter_} iterations; objective {model.objective_:.4f}"]
    if hasattr(model, "log_det_"):
        lines.append(f"diversity of the transition rows: log det {model.log_det_:.3f} (0: a permutation, -inf: twins)")
    return [*lines, ""]


def _emission_text(model: ModelDescription, state: int) -> str:
    if hasattr(model, "weights_"):
        return "weights " + _numbers(model.weights_[state])
    means, covars = getattr(model, "means_", None), getattr(model, "covars_", None)
    if means is not None and covars is not None:
        return f"mean {_numbers(means[state])} sd {_numbers(np.sqrt(np.diagonal(covars[state])))}"
    intercept, coef = getattr(model, "intercept_", None), getattr(model, "coef_", None)
    if intercept is not None and coef is not None and covars is not None:
        spread = np.sqrt(np.diagonal(covars[state]))
        return f"intercept {_numbers(intercept[state])} coef {_numbers(np.ravel(coef[state]))} sd {_numbers(spread)}"
    for name, label in (("lambdas_", "rate"), ("probs_", "p")):
        if hasattr(model, name):
            return f"{label} {_numbers(getattr(model, name)[state])}"
    probabilities: Any = getattr(model, "emissionprob_", None)
    table = probabilities if isinstance(probabilities, np.ndarray) else probabilities[0]
    vocabulary = getattr(model, "vocabulary_", None)
    words = vocabulary[0] if vocabulary is not None else np.arange(table.shape[1])
    top = np.argsort(-table[state], kind="stable")[:5]
    return " ".join(f"{words[v]}:{table[state, v]:.2f}" for v in top)


def _numbers(values: NDArray[np.float64], most: int = 4) -> str:
    shown = " ".join(f"{value:.3g}" for value in values[:most])
    return f"[{shown}{' ...' if len(values) > most else ''}]"
