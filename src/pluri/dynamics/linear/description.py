"""A linear dynamical system beyond its rows: forecasts, draws, its size, a filter that waits, itself on a page."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.dynamics.linear.forecasts import Forecast, forecast_after, future_rows
from pluri.dynamics.linear.input_rows import input_rows
from pluri.dynamics.linear.online import OnlineKalmanFilter
from pluri.dynamics.linear.parameters import LETTERS, root_of, spectral_radius
from pluri.dynamics.linear.queries import LinearQueries
from pluri.validation import Number, RandomState, as_generator, check_count, check_value
from pluri.validation.sequences import check_sequence_weight, sequence_lengths, weight_by_either_name

Array = NDArray[np.float64]


class LinearDescription(LinearQueries):
    """Further methods of a fitted linear dynamical system, or of one whose parameters were set by hand."""

    params: str
    covariance_type: str
    random_state: Any
    n_iter_: int
    objective_: float

    def forecast(
        self,
        X: Any,
        horizon: int,
        lengths: ArrayLike | None = None,
        *,
        level: float = 0.9,
        groups: ArrayLike | None = None,
        inputs: Any = None,
        future_inputs: Any = None,
    ) -> Forecast:
        """What comes after each sequence, with intervals.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        horizon : int
            Number of steps.
        lengths, groups, inputs : optional
            See `score_sequences`.
        level : float, default=0.9
            Probability that an output lies in its interval. The uncertainty of the parameters is not in it.
        future_inputs : array of shape (horizon, n_inputs), or list of such, optional
            u of the steps to come, the same for all sequences or one array for each, if the model has inputs.

        Returns
        -------
        forecast : `Forecast`
        """
        check_count(horizon, "horizon")
        check_value(level, "level", Number(above=0, below=1))
        parameters, _, used, result = self._filtered(X, lengths, groups, inputs)
        future = future_rows(future_inputs, len(result.offsets) - 1, int(horizon), parameters.B.shape[1])
        return forecast_after(parameters, result, used, future, level)

    def filter(self) -> OnlineKalmanFilter:
        """Begin a new sequence that arrives one row at a time.

        Returns
        -------
        online : `OnlineKalmanFilter`
            ``online.update(x)`` gives the mean of the state after each row.
        """
        return OnlineKalmanFilter(self._model())

    def sample(
        self, n_samples: int = 1, random_state: RandomState = None, *, inputs: Any = None
    ) -> tuple[Array, Array]:
        """Draw a sequence from the model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : optional
            The model's own if None.
        inputs : array of shape (n_samples, n_inputs), optional
            u, if the model has inputs.

        Returns
        -------
        X : array of shape (n_samples, n_features)
        states : array of shape (n_samples, n_components)
        """
        p = self._model()
        check_count(n_samples, "n_samples")
        rng = as_generator(self.random_state if random_state is None else random_state)
        used = input_rows(inputs, np.array([n_samples], dtype=np.int64), p.B.shape[1])
        noise = rng.standard_normal((n_samples, len(p.m)))
        states = np.empty_like(noise)
        drift, root = p.b + used @ p.B.T, root_of(p.Q)
        states[0] = p.m + root_of(p.P) @ noise[0]
        for t in range(1, n_samples):
            states[t] = p.A @ states[t - 1] + drift[t - 1] + root @ noise[t]
        error = rng.standard_normal((n_samples, len(p.c))) @ root_of(p.full_noise).T
        return states @ p.C.T + p.c + used @ p.D.T + error, states

    def n_free_parameters(self) -> int:
        """Number of free scalar parameters among those that `params` learns.

        If all of A, C, Q, m and P are learned, the states may be replaced by any invertible linear map of them without
        a trace in the data: n_components squared parameters less.
        """
        p = self._model()
        d, n = len(p.m), len(p.c)
        total = 0
        for letter in LETTERS:
            if letter not in self.params:
                continue
            if letter in "PQ":
                total += d * (d + 1) // 2
            elif letter == "R":
                total += {"spherical": 1, "diag": n, "full": n * (n + 1) // 2}[self.covariance_type]
            else:
                total += int(getattr(p, letter).size)
        return total - d * d * (set("ACQmP") <= set(self.params))

    def aic(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        inputs: Any = None,
        **aliases: Any,
    ) -> float:
        """Akaike's information criterion, -2 log-likelihood + 2 n_free; lower is better. Arguments as in `score`."""
        weight = weight_by_either_name(sequence_weight, aliases)
        log_likelihood = self.score(X, lengths=lengths, groups=groups, sequence_weight=weight, inputs=inputs)
        return -2.0 * log_likelihood + 2.0 * self.n_free_parameters()

    def bic(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        inputs: Any = None,
        **aliases: Any,
    ) -> float:
        """Bayesian information criterion, -2 log-likelihood + n_free log(n_samples); lower is better.

        Arguments as in `score`; rows count by the weight of their sequence.
        """
        lengths = sequence_lengths(X, lengths, groups)
        weight = weight_by_either_name(sequence_weight, aliases)
        log_likelihood = self.score(X, lengths=lengths, sequence_weight=weight, inputs=inputs)
        counts = self._observations(X, lengths)[1]
        checked = check_sequence_weight(weight, counts)
        n_samples = float(counts.sum() if checked is None else checked @ counts)
        return -2.0 * log_likelihood + self.n_free_parameters() * float(np.log(n_samples))

    def summary(self) -> str:
        """The model on one page of text: how fast each mode of the dynamics fades and turns, and what is noise.

        Returns
        -------
        text : str
        """
        p = self._model()
        d, q, n = len(p.m), p.B.shape[1], len(p.c)
        lines = [f"{type(self).__name__}: {d} states, {n} outputs, {q} inputs", ""]
        if hasattr(self, "converged_"):
            state = "converged" if self.converged_ else "not converged"
            lines.append(f"{state} after {self.n_iter_} iterations; objective {self.objective_:.4f}")
        else:
            lines.append("parameters set by hand, not fitted")
        radius = spectral_radius(p.A)
        lines += [f"spectral radius of A: {radius:.4f} ({'stable' if radius < 1 else 'not stable'})", ""]
        lines.append("mode  modulus  half-life  period")
        values = np.linalg.eigvals(p.A)
        values = values[np.argsort(-np.abs(values), kind="stable")]
        for i, value in enumerate(values[values.imag >= 0][:20]):
            size, angle = abs(value), abs(np.angle(value))
            half = f"{np.log(0.5) / np.log(size):.3g}" if 0 < size < 1 else "-"
            period = f"{2 * np.pi / angle:.3g}" if angle > 1e-9 else "-"
            lines.append(f"{i:<4}  {size:<7.4f}  {half:<9}  {period}")
        lines += ["", "half-life and period in steps; states are known only up to an invertible linear map"]
        return "\n".join(lines)
