"""What a decoder of sequences reads and answers: outputs, their probabilities, and how often they are wrong."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_is_fitted

from pluri.networks.batches import pad
from pluri.networks.decoder_fit import lengths_of
from pluri.networks.decoder_queries import Candidate
from pluri.networks.design import Design
from pluri.networks.error_rates import Scores, edit_distances
from pluri.networks.examples import (
    Examples,
    check_sequences,
    check_tokens,
    encode,
    learn_vocabulary,
    source_kind,
    standardisation,
    with_end,
)
from pluri.networks.recurrent_decoder import RecurrentDecoder
from pluri.validation import Number, as_generator, check_count, check_value


class SequenceQueries(RecurrentDecoder):
    """Queries of `pluri.networks.SequenceDecoder`."""

    random_state: Any
    vocabulary_: NDArray[Any]
    input_vocabulary_: NDArray[Any] | None
    mean_: NDArray[np.float64] | None
    scale_: NDArray[np.float64] | None
    max_length_: int

    def _read(
        self, X: Any, kind: str, learned: dict[str, Any] | None
    ) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64] | None, dict[str, Any]]:
        """Inputs as padded arrays, lengths of sequences, and what is learned of them unless it is known already."""
        known = learned or {"n_inputs": None, "mean": None, "scale": None, "words": None}
        if kind == "tokens":
            words = check_tokens(X, "X", empty=False)
            known = learned or {**known, "words": learn_vocabulary(words, "X")}
            known["n_inputs"] = len(known["words"])
            values, mask = pad(encode(words, known["words"], known["n_inputs"], "X"))
            return {"source": values.astype(np.int32), "source_mask": mask}, mask.sum(axis=1), known
        if kind == "vector":
            rows = check_array(X, dtype=np.float64, input_name="X")
            arrays = [rows]
            if known["n_inputs"] not in (None, rows.shape[1]):
                raise ValueError(f"X must have {known['n_inputs']} features, got {rows.shape[1]}")
        else:
            arrays = check_sequences(X, known["n_inputs"])
        if learned is None:
            mean, scale = standardisation(np.concatenate(arrays))
            known = {**known, "n_inputs": arrays[0].shape[1], "mean": mean, "scale": scale}
        standard = [((array - known["mean"]) / known["scale"]).astype(np.float32) for array in arrays]
        if kind == "vector":
            return {"vectors": standard[0]}, None, known
        values, mask = pad(standard)
        return {"source": values, "source_mask": mask}, mask.sum(axis=1), known

    def _examples(self, X: Any, y: Any = None, design: Design | None = None) -> Examples:
        """Examples to ask a fitted decoder about."""
        design = self._design() if design is None else design
        kind = source_kind(X)
        if kind != design.source:
            said = {"vector": "vectors", "sequence": "sequences of vectors", "tokens": "lists of tokens"}
            raise ValueError(f"X must hold {said[design.source]} as in fit, got {said[kind]}")
        known = {
            "n_inputs": design.n_inputs, "mean": self.mean_, "scale": self.scale_, "words": self.input_vocabulary_
        }  # fmt: skip
        inputs, sources, _ = self._read(X, kind, known)
        n = len(next(iter(inputs.values())))
        if y is None:
            return Examples(inputs, np.ones(n, dtype=np.int64), None, sources)
        tokens = check_tokens(y, "y", empty=True)
        if len(tokens) != n:
            raise ValueError(f"y must have one sequence for each of {n} inputs, got {len(tokens)}")
        encoded = encode(tokens, self.vocabulary_, design.unknown_token, "y")
        targets, lengths = with_end(encoded, design.n_outputs - 1)
        return Examples(inputs, lengths, targets, sources)

    def _check_vocabulary(self) -> None:
        design = self._design()
        if len(self.vocabulary_) + 1 != design.n_outputs:
            raise ValueError(f"vocabulary_ must hold {design.n_outputs - 1} tokens, got {len(self.vocabulary_)}")
        n_words = 0 if self.input_vocabulary_ is None else len(self.input_vocabulary_)
        if design.source == "tokens" and n_words != design.n_inputs:
            raise ValueError(f"input_vocabulary_ must hold {design.n_inputs} tokens, got {n_words}")

    def _words(self, tokens: NDArray[np.int64]) -> list[Any]:
        return self.vocabulary_[tokens].tolist()

    def decode(
        self, X: Any, *, n_best: int = 1, beam_size: int | None = None, max_length: int | None = None,
        length_penalty: float = 0.0,
    ) -> list[list[Candidate]]:  # fmt: skip
        """The best outputs that a beam search finds for each input, with their log-probabilities.

        Parameters
        ----------
        X : as in `fit`
        n_best : int, default=1
            Candidates to return, at most `beam_size`.
        beam_size, max_length : int, optional
            In place of the settings.
        length_penalty : float, default=0.0
            Candidates are ranked by their log-probability divided by their length to this power.

        Returns
        -------
        list of lists of Candidate
            Best first; fewer than `n_best` where there are no more outputs.
        """
        check_is_fitted(self, "params_")
        length = check_count(self.max_length_ if max_length is None else max_length, "max_length")
        found = self._beams(self._examples(X), beam_size, n_best, length, length_penalty)
        return [[Candidate(self._words(tokens), float(score), cut) for tokens, cut, score in best] for best in found]

    def predict(self, X: Any, *, beam_size: int | None = None, max_length: int | None = None) -> list[list[Any]]:
        """The most probable output that a beam search finds for each input; 1 as `beam_size` is greedy decoding.

        Parameters
        ----------
        X : as in `fit`
        beam_size, max_length : int, optional
            In place of the settings.

        Returns
        -------
        list of lists of tokens
            Outputs that were cut off at `max_length` are counted in a warning; `decode` tells which.
        """
        best = [found[0] for found in self.decode(X, beam_size=beam_size, max_length=max_length)]
        n_cut = sum(one.truncated for one in best)
        if n_cut:
            warnings.warn(
                f"{n_cut} of {len(best)} outputs did not end within max_length and are cut off",
                UserWarning,
                stacklevel=2,
            )
        return [one.tokens for one in best]

    def sample(
        self, X: Any, n_samples: int = 1, *, temperature: float = 1.0, max_length: int | None = None,
        random_state: Any = None,
    ) -> list[list[list[Any]]]:  # fmt: skip
        """Draw outputs.

        Parameters
        ----------
        X : as in `fit`
        n_samples : int, default=1
            Draws for each input.
        temperature : float, default=1.0
            Log-probabilities are divided by it: lower ones give likelier outputs.
        max_length : int, optional
        random_state : int, numpy Generator, RandomState or None
            None: that of the estimator.

        Returns
        -------
        list of lists of lists of tokens
            `n_samples` outputs for each input.
        """
        check_is_fitted(self, "params_")
        check_count(n_samples, "n_samples")
        check_value(temperature, "temperature", Number(above=0))
        length = check_count(self.max_length_ if max_length is None else max_length, "max_length")
        rng = as_generator(self.random_state if random_state is None else random_state)
        data, end = self._examples(X), self._design().n_outputs - 1
        found: list[list[list[Any]]] = [[] for _ in range(len(data))]
        for _ in range(n_samples):
            for rows, steps in self._free(data, length, rng, float(temperature)):
                tokens = np.asarray(steps.tokens)
                lengths = lengths_of(tokens, end)
                for place, row in enumerate(rows.tolist()):
                    found[row].append(self._words(tokens[place, : lengths[place]]))
        return found

    def predict_proba(self, X: Any, y: Any) -> list[NDArray[np.float64]]:
        """Probabilities of all tokens at each step, given the true tokens before it.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        list of arrays of shape (n_steps + 1, n_tokens + 1)
            Columns are `vocabulary_`, then the end; the last row is the step after the last token.
        """
        check_is_fitted(self, "params_")
        data = self._examples(X, y)
        found: list[Any] = [None] * len(data)
        for rows, steps in self._forced(data):
            probabilities = np.exp(np.asarray(steps.all_log_probs, dtype=np.float64))
            for place, row in enumerate(rows.tolist()):
                found[row] = probabilities[place, : data.lengths[row]]
        return found

    def attention_weights(self, X: Any, y: Any) -> list[NDArray[np.float64]]:
        """Weight of each step of the input at each step of the output, given the true tokens before it.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        list of arrays of shape (n_steps + 1, n_input_steps)
            Averaged over the members; the last row is the end.
        """
        check_is_fitted(self, "params_")
        if not self._design().attention:
            raise ValueError("attention_weights needs a decoder with attention=True")
        data = self._examples(X, y)
        found: list[Any] = [None] * len(data)
        for rows, steps in self._forced(data):
            weights = np.asarray(steps.attention, dtype=np.float64)
            for place, row in enumerate(rows.tolist()):
                found[row] = weights[place, : data.lengths[row], : data.source_lengths[row]]  # type: ignore[index]
        return found

    def evaluate(self, X: Any, y: Any) -> Scores:
        """Both errors and the perplexity.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        Scores
            ``teacher_forced_error``, ``free_running_error`` (of greedy decoding) and ``perplexity``.
        """
        check_is_fitted(self, "params_")
        return self._evaluated(self._examples(X, y))

    def score(self, X: Any, y: Any) -> float:
        """One minus the free-running error of `predict`: the edits for each true token that its outputs need."""
        data = self._examples(X, y)
        outputs = self._beams(data, None, 1, int(self.max_length_), 0.0)
        found, mask = pad([best[0][0] for best in outputs])
        wrong = edit_distances(data.targets, data.lengths - 1, found, mask.sum(axis=1))  # type: ignore[arg-type]
        return float(1.0 - wrong.sum() / max(1, (data.lengths - 1).sum()))

    def score_teacher_forced(self, X: Any, y: Any) -> float:
        """Share of the tokens that are most probable given the true ones before them."""
        return 1.0 - self.evaluate(X, y).teacher_forced_error

    def perplexity(self, X: Any, y: Any) -> float:
        """Exponential of the mean negative log-probability of the true tokens, ends included."""
        return self.evaluate(X, y).perplexity

    def errors_by_position(self, X: Any, y: Any) -> dict[str, NDArray[np.float64]]:
        """Error rate at each place of the output, "teacher-forced" and "free-running" (greedy, place by place).

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        dict of str to array of shape (n_positions,)
            The last place of an output is its end.
        """
        check_is_fitted(self, "params_")
        return self._errors_by_position(self._examples(X, y))

    def beam_tree(
        self, x: Any, *, beam_size: int | None = None, max_length: int | None = None
    ) -> tuple[NDArray[Any], list[list[str]], NDArray[Any]]:
        """The beams of one vector or sequence `x`, step by step, for `pluri.plotting.BeamTreeDisplay`.

        Returns
        -------
        parents : array of shape (n_steps, beam_size)
        tokens : list of lists of str
            "end" where a candidate ends, and "" where an ended one is only kept.
        log_probs : array of shape (n_steps, beam_size)
        """
        check_is_fitted(self, "params_")
        given = np.asarray(x)[None] if self._design().source == "vector" else [x]
        length = check_count(self.max_length_ if max_length is None else max_length, "max_length")
        beams, n_steps = self._tree(self._examples(given), beam_size, length)
        names = [*map(str, self.vocabulary_.tolist()), "end"]
        tokens = []
        for t in range(n_steps):
            kept = beams.finished[t - 1][beams.parents[t]] if t else np.zeros_like(beams.finished[0])
            tokens.append(["" if over else names[token] for token, over in zip(beams.tokens[t], kept)])
        return beams.parents[:n_steps], tokens, beams.scores[:n_steps]
