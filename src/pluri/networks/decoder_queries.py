"""What every fitted decoder can be asked, in numbers: its networks, their steps with true tokens and without, beams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.networks.backend import jax
from pluri.networks.decoder_fit import asked, evaluate
from pluri.networks.decoding import NO_KEY, Beams, beam_search, follow_back, free_running, teacher_forced
from pluri.networks.design import Design
from pluri.networks.error_rates import Scores, errors_by_position
from pluri.networks.examples import Examples
from pluri.networks.parameters import from_arrays, key_from
from pluri.validation import Number, Whole, check_value
from pluri.validation.estimator import Estimator


class Candidate(NamedTuple):
    """An output that a beam search has found.

    Attributes
    ----------
    tokens : list of tokens, without the end
    log_prob : float, log-probability of the tokens and of the end
    truncated : whether the end was not reached
    """

    tokens: list[Any]
    log_prob: float
    truncated: bool


class FittedDecoder(Estimator):
    """Decoder with its networks; estimators turn inputs into `Examples` and numbers into tokens."""

    beam_size: int
    settings_: dict[str, Any]
    params_: dict[str, NDArray[Any]]
    n_members_: int

    def _design(self) -> Design:
        """The network's design, from what was fitted."""
        return Design(**self.settings_)

    def _members(self) -> Any:
        """The fitted networks side by side."""
        check_is_fitted(self, "params_")
        design, n_members = self._design(), int(self.n_members_)
        return from_arrays(self.params_, lambda key: jax.vmap(design.make)(jax.random.split(key, n_members)))

    def _check_fitted_state(self) -> None:
        if hasattr(self, "params_"):
            for name, value in self.settings_.items():
                allowed = Whole(1, 2**20) if isinstance(value, int) and not isinstance(value, bool) else None
                if allowed is not None:
                    check_value(value, f"settings_[{name!r}]", allowed)
            check_value(self.n_members_, "n_members_", Whole(1, 2**12))
            self._members()
            self._check_vocabulary()

    def _check_vocabulary(self) -> None:
        """Refuse a vocabulary that does not belong to the network."""
        raise NotImplementedError  # abstract

    def _beams(
        self, data: Examples, beam_size: int | None, n_best: int, length: int | None, length_penalty: float
    ) -> list[list[tuple[NDArray[np.int64], bool, float]]]:
        """The best candidates of each example: numbers of tokens, whether it was cut off, log-probability."""
        m = self.beam_size if beam_size is None else beam_size
        check_value(m, "beam_size", Whole(1))
        check_value(n_best, "n_best", Whole(1, int(m)))
        check_value(length_penalty, "length_penalty", Number(least=0))
        members, design = self._members(), self._design()
        found: list[Any] = [None] * len(data)
        for rows, edge, n_rows, sources in asked(data, self._known_lengths()):
            steps = edge if length is None else length
            n_steps = np.zeros(n_rows, dtype=np.int32)
            n_steps[: len(rows)] = data.lengths[rows] if length is None else length
            batch = data.batch(rows, edge, n_rows, sources)
            beams = beam_search(members, design, batch, steps, int(m), n_steps, np.float32(length_penalty))
            tokens, scores, lengths = follow_back(beams)
            for place, row in enumerate(rows.tolist()):
                found[row] = [
                    (*_trimmed(tokens[place, k], int(lengths[place, k]), int(n_steps[place]), design), scores[place, k])
                    for k in range(n_best)
                    if np.isfinite(scores[place, k])
                ]
        return found

    def _known_lengths(self) -> Any:
        return getattr(self, "lengths_", ())

    def _forced(self, data: Examples) -> Iterator[tuple[NDArray[np.int64], Any]]:
        """Rows, and their steps with the true tokens before each."""
        members, design = self._members(), self._design()
        longest = data.targets.shape[1] if data.targets is not None else 0
        for rows, edge, n_rows, sources in asked(data, self._known_lengths()):
            length = edge if data.source_lengths is None else longest
            yield rows, teacher_forced(members, design, data.batch(rows, length, n_rows, sources), full=True)

    def _free(
        self, data: Examples, length: int | None, rng: np.random.Generator | None = None, temperature: float = 1.0
    ) -> Iterator[tuple[NDArray[np.int64], Any]]:
        """Rows, and the steps that the network takes by itself: the best ones, or draws with a generator."""
        members, design = self._members(), self._design()
        for rows, edge, n_rows, sources in asked(data, self._known_lengths()):
            key = NO_KEY if rng is None else key_from(rng)
            batch = data.batch(rows, edge, n_rows, sources)
            yield rows, free_running(
                members, design, batch, edge if length is None else length, key, np.float32(temperature),
                sampled=rng is not None, full=rng is None,
            )  # fmt: skip

    def _evaluated(self, data: Examples) -> Scores:
        return evaluate(self._members(), self._design(), data)

    def _errors_by_position(self, data: Examples) -> dict[str, NDArray[np.float64]]:
        """Error rates at each place, with the true tokens before it and without them."""
        targets = np.asarray(data.targets)
        longest = targets.shape[1]
        found = {name: np.zeros((len(data), longest), dtype=np.int64) for name in ("teacher-forced", "free-running")}
        for rows, steps in self._forced(data):
            _put(found["teacher-forced"], rows, steps.tokens)
        free = None if not self._design().ends else longest
        for rows, steps in self._free(data, free):
            _put(found["free-running"], rows, steps.tokens)
        return {name: errors_by_position(targets, data.lengths, tokens)[0] for name, tokens in found.items()}

    def _tree(self, data: Examples, beam_size: int | None, length: int | None) -> tuple[Beams, int]:
        """The beams of one example after each step, and the number of steps that were needed."""
        m = self.beam_size if beam_size is None else beam_size
        check_value(m, "beam_size", Whole(1))
        rows, edge, n_rows, sources = next(asked(data))
        steps = int(data.lengths[0]) if length is None else length
        batch = data.batch(rows, edge, n_rows, sources)
        n_steps = np.full(n_rows, steps, dtype=np.int32)
        beams = beam_search(self._members(), self._design(), batch, steps, int(m), n_steps, np.float32(0.0))
        parts = Beams(*(np.asarray(part)[:, 0] for part in beams))
        over = parts.finished.all(axis=1)
        return parts, int(over.argmax()) + 1 if over.any() else steps


def _put(table: NDArray[np.int64], rows: NDArray[np.int64], tokens: Any) -> None:
    """Write tokens into the rows of a table; changes `table`."""
    found = np.asarray(tokens)[: len(rows), : table.shape[1]]
    table[rows, : found.shape[1]] = found


def _trimmed(tokens: NDArray[np.int64], length: int, n_steps: int, design: Design) -> tuple[NDArray[np.int64], bool]:
    """Tokens without the end and what comes after it, and whether there was no end."""
    if not design.ends:
        return tokens[:n_steps], False
    ended = length > 0 and tokens[length - 1] == design.n_outputs - 1
    return tokens[: length - 1] if ended else tokens[:length], not ended
