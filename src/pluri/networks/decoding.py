"""What trained decoders are asked: probabilities of given tokens, greedy and sampled decoding, and beam search.

Members of an ensemble are networks stacked along a first axis; their probabilities are averaged at each step. All
functions here are compiled once for a design and a shape.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.networks.backend import jax, jnp
from pluri.networks.design import Design, advance, begin, logits

#: Where nothing is drawn.
NO_KEY = np.zeros(2, dtype=np.uint32)


class Steps(NamedTuple):
    """A decoding step by step.

    Attributes
    ----------
    tokens : (n_rows, length); what comes after the end of a sequence means nothing
    log_probs : (n_rows, length) of those tokens
    all_log_probs : (n_rows, length, n_outputs), or None if it was not asked for
    attention : (n_rows, length, n_memory), or None: weights, averaged over the members
    """

    tokens: Any
    log_probs: Any
    all_log_probs: Any
    attention: Any


def _begin(members: Any, design: Design, batch: Any) -> Any:
    return jax.vmap(lambda network: begin(network, design, batch))(members)


def _next(members: Any, design: Design, state: Any, fed: Any, frame: Any, memory: Any) -> tuple[Any, Any]:
    """New states, and log-probabilities of all tokens averaged over the members: (n_rows, n_outputs)."""

    def one(network: Any, state: Any, fed: Any, memory: Any) -> Any:
        state, features = advance(network, state, fed, frame, memory)
        return state, jax.nn.log_softmax(logits(network, features), axis=-1)

    state, found = jax.vmap(one)(members, state, fed, memory)
    return state, jax.nn.logsumexp(found, axis=0) - jnp.log(found.shape[0])


def _embed(members: Any, tokens: Any) -> Any:
    return jax.vmap(lambda network: network.embedding[tokens])(members)


def _frames(design: Design, batch: Any) -> Any:
    return jnp.swapaxes(batch["frames"], 0, 1) if design.source == "frames" else None


@partial(jax.jit, static_argnames=("design", "full"))
def teacher_forced(members: Any, design: Design, batch: Any, full: bool = False) -> Steps:
    """The most probable token at each step given the true ones before it, and the log-probability of the true token.

    `batch` has "targets"; with `full` the probabilities of all tokens too.
    """
    start = _begin(members, design, batch)
    targets = jnp.swapaxes(batch["targets"], 0, 1)

    def move(carry: Any, seen: Any) -> Any:
        state, fed = carry
        target, frame = seen
        state, found = _next(members, design, state, fed, frame, start.memory)
        known = jnp.minimum(target, design.n_outputs - 1)
        right = jnp.take_along_axis(found, known[:, None], axis=-1)[:, 0]
        return (state, _embed(members, target)), _seen(state, jnp.argmax(found, axis=-1), right, found, full)

    _, found = jax.lax.scan(move, (start.state, start.fed), (targets, _frames(design, batch)))
    return _rows_first(found)


@partial(jax.jit, static_argnames=("design", "length", "full", "sampled"))
def free_running(
    members: Any, design: Design, batch: Any, length: int, key: Any, temperature: Any, sampled: bool = False,
    full: bool = False,
) -> Steps:  # fmt: skip
    """Tokens that the network chooses one after the other: the most probable ones, or draws if `sampled`."""
    start = _begin(members, design, batch)
    n_rows = start.fed.shape[1]
    shape = (length, n_rows, design.n_outputs)
    noise = jax.random.gumbel(key, shape, start.fed.dtype) if sampled else None

    def move(carry: Any, seen: Any) -> Any:
        state, fed = carry
        frame, extra = seen
        state, found = _next(members, design, state, fed, frame, start.memory)
        token = jnp.argmax(found / temperature + extra if sampled else found, axis=-1)
        chosen = jnp.take_along_axis(found, token[:, None], axis=-1)[:, 0]
        return (state, _embed(members, token)), _seen(state, token, chosen, found, full)

    _, steps = jax.lax.scan(move, (start.state, start.fed), (_frames(design, batch), noise), length=length)
    return _rows_first(steps)


def _seen(state: Any, token: Any, log_prob: Any, found: Any, full: bool) -> Steps:
    weights = None if state.weights is None or not full else state.weights.mean(axis=0)
    return Steps(token, log_prob, found if full else None, weights)


def _rows_first(steps: Steps) -> Steps:
    return jax.tree.map(lambda part: jnp.swapaxes(part, 0, 1), steps)


class Beams(NamedTuple):
    """The candidates of a beam search after each step; all arrays have shape (length, n_rows, beam_size).

    Attributes
    ----------
    parents : place of each candidate in the beam before
    tokens : the token it was extended by
    scores : its log-probability
    finished : whether it has ended
    """

    parents: NDArray[Any]
    tokens: NDArray[Any]
    scores: NDArray[Any]
    finished: NDArray[Any]


@partial(jax.jit, static_argnames=("design", "length", "beam_size"))
def beam_search(
    members: Any, design: Design, batch: Any, length: int, beam_size: int, n_steps: Any, length_penalty: Any
) -> Beams:
    """The best candidates of each row, side by side for all rows; a finished candidate keeps its place.

    Parameters
    ----------
    members, design, batch
    length : int
        Steps at most.
    beam_size : int
        Candidates that are kept of each row.
    n_steps : array of shape (n_rows,)
        Steps of each row, after which its candidates are finished.
    length_penalty : float
        Candidates are ranked by their log-probability divided by the number of tokens to this power.
    """
    start = _begin(members, design, batch)
    n_rows, m, ends = start.fed.shape[1], beam_size, design.ends
    n_best = min(m, design.n_outputs)

    def spread(part: Any) -> Any:  # one copy of a row for each candidate
        return jnp.repeat(part, m, axis=1)

    state, fed, memory = jax.tree.map(spread, (start.state, start.fed, start.memory))
    frames = _frames(design, batch)
    kind = start.fed.dtype
    # All candidates are the empty sequence at first: only one of them may be extended.
    scores = jnp.where(jnp.arange(m) == 0, 0.0, -jnp.inf).astype(kind) * jnp.ones((n_rows, 1), kind)
    shape = (length, n_rows, m)
    kept = Beams(
        jnp.broadcast_to(jnp.arange(m), shape), jnp.full(shape, design.n_outputs - 1), jnp.zeros(shape, kind),
        jnp.ones(shape, bool),
    )  # fmt: skip

    def unfinished(carry: Any) -> Any:
        return (carry[0] < length) & ~jnp.all(carry[4])

    def move(carry: Any) -> Any:
        t, state, fed, scores, finished, counts, kept = carry
        frame = None if frames is None else jnp.repeat(frames[t], m, axis=0)
        new, found = _next(members, design, state, fed, frame, memory)
        found = found.reshape(n_rows, m, -1)
        best, tokens = jax.lax.top_k(found, n_best)
        # A finished candidate has one continuation, itself.
        alone = jnp.where(jnp.arange(n_best) == 0, 0.0, -jnp.inf).astype(kind)
        best = jnp.where(finished[..., None], alone, best)
        tokens = jnp.where(finished[..., None], design.n_outputs - 1, tokens)
        total = scores[..., None] + best
        longer = counts + ~finished
        rank = total / jnp.maximum(longer, 1)[..., None].astype(kind) ** length_penalty
        _, places = jax.lax.top_k(rank.reshape(n_rows, -1), m)
        parents = places // n_best
        scores = jnp.take_along_axis(total.reshape(n_rows, -1), places, axis=1)
        tokens = jnp.take_along_axis(tokens.reshape(n_rows, -1), places, axis=1)
        finished = jnp.take_along_axis(finished, parents, axis=1) | (t + 1 >= n_steps)[:, None]
        if ends:
            finished = finished | (tokens == design.n_outputs - 1)
        counts = jnp.take_along_axis(longer, parents, axis=1)
        rows = (jnp.arange(n_rows)[:, None] * m + parents).reshape(-1)
        state = jax.tree.map(lambda part: part[:, rows], new)
        kept = Beams(*(whole.at[t].set(part) for whole, part in zip(kept, (parents, tokens, scores, finished))))
        return t + 1, state, _embed(members, tokens.reshape(-1)), scores, finished, counts, kept

    finished = jnp.broadcast_to((n_steps <= 0)[:, None], (n_rows, m))
    counts = jnp.zeros((n_rows, m), jnp.int32)
    end = jax.lax.while_loop(unfinished, move, (0, state, fed, scores, finished, counts, kept))
    # Steps that were not needed repeat the last one.
    steps = jnp.arange(length)[:, None, None]
    last = jnp.take(end[6].scores, jnp.maximum(end[0] - 1, 0), axis=0)
    return end[6]._replace(scores=jnp.where(steps < end[0], end[6].scores, last))


def follow_back(beams: Beams) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Tokens (n_rows, beam_size, length), log-probabilities and lengths of the final candidates.

    A length counts the tokens before the end of the sequence was reached, that of the end included.
    """
    parents, tokens, scores, finished = (np.asarray(part) for part in beams)
    length, n_rows, m = parents.shape
    found = np.zeros((n_rows, m, length), dtype=np.int64)
    alive = np.zeros((n_rows, m, length), dtype=bool)  # whether the candidate was extended at this step
    place = np.broadcast_to(np.arange(m), (n_rows, m))
    for t in range(length - 1, -1, -1):
        found[:, :, t] = np.take_along_axis(tokens[t], place, axis=1)
        place = np.take_along_axis(parents[t], place, axis=1)
        before = finished[t - 1] if t else np.zeros_like(finished[0])
        alive[:, :, t] = ~np.take_along_axis(before, place, axis=1)
    return found, scores[-1] if length else np.zeros((n_rows, m)), alive.sum(axis=2)
