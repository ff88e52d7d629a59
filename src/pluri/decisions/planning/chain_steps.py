r"""Which step of a sequence to observe: information about the hidden path of a Markov model.

An observation at step t depends on the path through its state alone, so that

.. math:: I(z_{1:T}; x_t \mid \text{seen}) = I(z_t; x_t \mid \text{seen}),

which needs the posterior of one state. What a second step adds to a first is averaged over
drawn outcomes of the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.planning.mixture_information import label_information, normal_information
from pluri.decisions.planning.scenarios import _draw

Array = NDArray[np.float64]


class StepPlanner:
    """Information about the states of a sequence, from steps that are not observed.

    Parameters
    ----------
    model : fitted hidden Markov model
    sequence : (n_steps, n_features)
        Rows that are not observed are NaN.
    table : (k, v) or None
        Distribution of the symbol in each state.
    normal : ((k,), (k,)) or None
        Mean and variance of a single number in each state.
    """

    def __init__(
        self, model: Any, sequence: Array, *, table: Array | None, normal: tuple[Array, Array] | None,
        n_samples: int, rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.model, self.table, self.normal, self.n_samples, self.rng = model, table, normal, n_samples, rng
        self.sequences = np.asarray(sequence, dtype=np.float64)[None]
        self.candidates = [int(step) for step in np.flatnonzero(np.isnan(self.sequences[0]).any(axis=1))]
        self._infer()

    def _infer(self) -> None:
        n_drawn, n_steps, n_features = self.sequences.shape
        flat = self.sequences.reshape(-1, n_features)
        shares = self.model.predict_proba(flat, lengths=np.full(n_drawn, n_steps))
        self.shares = np.asarray(shares).reshape(n_drawn, n_steps, -1)

    def gains(self, steps: list[int]) -> tuple[Array, Array]:
        """Information of each step given what is planned, and its standard error."""
        each = np.array([self._information(self.shares[:, step]) for step in steps]).reshape(len(steps), -1)
        if each.shape[1] == 1:
            return each[:, 0], np.zeros(len(steps))
        return each.mean(axis=1), each.std(axis=1, ddof=1) / np.sqrt(each.shape[1])

    def _information(self, shares: Array) -> Array:
        if self.table is not None:
            return label_information(shares, self.table)
        means, variances = self.normal  # type: ignore[misc]
        return normal_information(shares, np.broadcast_to(means, shares.shape), variances)

    def add(self, step: int) -> None:
        """Change the drawn sequences: the step is observed in each."""
        if len(self.sequences) == 1:
            self.sequences = np.repeat(self.sequences, self.n_samples, axis=0)
            self.shares = np.repeat(self.shares, self.n_samples, axis=0)
        states = _draw(self.shares[:, step], self.rng)
        if self.table is not None:
            values = _draw(self.table[states], self.rng).astype(np.float64)
        else:
            means, variances = self.normal  # type: ignore[misc]
            values = means[states] + np.sqrt(variances[states]) * self.rng.standard_normal(len(states))
        self.sequences[:, step, 0] = values
        self._infer()
