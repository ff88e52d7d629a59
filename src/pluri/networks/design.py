"""The network behind all decoders: what it is made of, one step of it, and what it reads before the first step.

At step t a stack of cells sees the embedding of the previous token, the frame of the step if there are frames, and the
context of the last step if there is attention:

    h_t = cells(h_(t-1), [E[y_(t-1)]; x_t; k_(t-1)]),   log p(y_t) = log_softmax(V [h_t; k_t] + b).

A vector is fed in place of the first token's embedding. A sequence is read by an encoder with outputs e_1 .. e_M, whose
last output gives the first state; attention is ``u_m = v' tanh(A e_m + B h_t)``, ``k_t = sum_m softmax(u)_m e_m``.

References
----------
Bahdanau, Cho and Bengio (2015), Neural machine translation by jointly learning to align and translate, ICLR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pluri.networks.backend import equinox, jax, jnp
from pluri.networks.cells import Encoder, Masks, draw_mask, draw_masks, make_cell, output_of, step, with_output
from pluri.networks.parameters import structure_of

#: Where a decoder's input comes from: a vector, frames aligned with the output, or a sequence of vectors or tokens.
SOURCES = ("vector", "frames", "sequence", "tokens")


class Attention(equinox.Module):
    """Weights of the attention: A of the encoder's outputs, B of the decoder's, and v."""

    of_memory: Any
    of_state: Any
    score: Any

    def __init__(self, memory_size: int, hidden_size: int, *, key: Any) -> None:
        first, second, third = jax.random.split(key, 3)
        self.of_memory = equinox.nn.Linear(memory_size, hidden_size, use_bias=False, key=first)
        self.of_state = equinox.nn.Linear(hidden_size, hidden_size, use_bias=False, key=second)
        limit = hidden_size**-0.5
        self.score = jax.random.uniform(third, (hidden_size,), minval=-limit, maxval=limit)

    def __call__(self, h: Any, memory: Memory) -> tuple[Any, Any]:
        """Context (n_rows, width) and weights (n_rows, n_memory)."""
        found = jnp.tanh(memory.keys + jax.vmap(self.of_state)(h)[:, None]) @ self.score
        weights = jax.nn.softmax(jnp.where(memory.mask, found, -jnp.inf), axis=-1)
        return jnp.einsum("nm,nmw->nw", weights, memory.outputs), weights


class Memory(NamedTuple):
    """What the encoder has read.

    Attributes
    ----------
    outputs : (n_rows, n_memory, width)
    keys : (n_rows, n_memory, hidden_size): A e_m
    mask : (n_rows, n_memory)
    """

    outputs: Any
    keys: Any
    mask: Any


class Network(equinox.Module):
    """The parameters of a decoder; see `Design`."""

    embedding: Any
    cells: tuple[Any, ...]
    output: Any
    first: Any = None
    words: Any = None
    encoder: Any = None
    bridge: Any = None
    attention: Any = None


@dataclass(frozen=True)
class Design:
    """What a decoder is made of; compared by value, so that equal designs share compiled programs.

    Parameters
    ----------
    source : {"vector", "frames", "sequence", "tokens"}
    n_inputs : int
        Features of a vector, a frame or a step of the sequence; number of different tokens with tokens.
    n_outputs : int
        Tokens to choose from, the end of the sequence included if there is one (it is the last).
    cell, hidden_size, n_layers, embedding_size
    attention, bidirectional : bool
        Only with a sequence or tokens.
    """

    source: str
    n_inputs: int
    n_outputs: int
    cell: str = "lstm"
    hidden_size: int = 128
    n_layers: int = 1
    embedding_size: int = 64
    attention: bool = False
    bidirectional: bool = False

    @property
    def start_token(self) -> int:
        """Row of the embedding that is fed at the first step."""
        return self.n_outputs

    @property
    def unknown_token(self) -> int:
        """Row of the embedding of tokens that were not seen in training: zeros."""
        return self.n_outputs + 1

    @property
    def ends(self) -> bool:
        """Whether a sequence ends by a token of its own."""
        return self.source != "frames"

    @property
    def reads(self) -> bool:
        """Whether there is an encoder."""
        return self.source in ("sequence", "tokens")

    def make(self, key: Any) -> Network:
        """A network with random parameters, by JAX's generator; see also `initialize`."""
        keys = iter(jax.random.split(key, 7 + self.n_layers))
        e, h = self.embedding_size, self.hidden_size
        embedding = jax.random.normal(next(keys), (self.n_outputs + 2, e)).at[self.unknown_token].set(0.0)
        first = equinox.nn.Linear(self.n_inputs, e, key=next(keys)) if self.source == "vector" else None
        words = encoder = bridge = attention = None
        width = 0
        if self.reads:
            read = self.n_inputs
            if self.source == "tokens":
                words = jax.random.normal(next(keys), (self.n_inputs + 1, e)).at[-1].set(0.0)
                read = e
            encoder = Encoder(self.cell, read, h, self.n_layers, self.bidirectional, key=next(keys))
            bridge = equinox.nn.Linear(encoder.width, h * self.n_layers, key=next(keys))
            if self.attention:
                width = encoder.width
                attention = Attention(width, h, key=next(keys))
        sizes = [e + width + (self.n_inputs if self.source == "frames" else 0)] + [h] * (self.n_layers - 1)
        cells = tuple(make_cell(self.cell, size, h, next(keys)) for size in sizes)
        output = equinox.nn.Linear(h + width, self.n_outputs, key=next(keys))
        return Network(embedding, cells, output, first, words, encoder, bridge, attention)


def initialize(design: Design, rng: np.random.Generator) -> Network:
    """A network with random parameters, distributed as those of `Design.make`, without compiling anything.

    Embeddings are normal, with zeros for unknown tokens; weights uniform within ``1 / sqrt(n)``, where n is the number
    of units in recurrent cells and the number of inputs elsewhere; the bias of an LSTM's forget gate is 1.
    """
    kind = np.dtype(jnp.zeros(0).dtype)
    paths, structure = jax.tree_util.tree_flatten_with_path(structure_of(design.make))
    shapes = {jax.tree_util.keystr(path).lstrip("."): leaf.shape for path, leaf in paths}
    h = design.hidden_size

    def draw(name: str, shape: tuple[int, ...]) -> Any:
        if name in ("embedding", "words"):
            array = rng.standard_normal(shape)
            array[-1] = 0.0
            return array
        recurrent = name.startswith(("cells", "encoder")) or name == "attention.score"
        inputs = h if recurrent else shapes[name.replace("bias", "weight")][-1]
        array = rng.uniform(-(inputs**-0.5), inputs**-0.5, shape)
        if design.cell == "lstm" and recurrent and name.endswith("bias"):
            array[h : 2 * h] = 1.0
        return array

    leaves = [jnp.asarray(draw(name, shape).astype(kind)) for name, shape in shapes.items()]
    return jax.tree_util.tree_unflatten(structure, leaves)


class Drops(NamedTuple):
    """Dropout masks of a batch, one for all steps of a sequence: of the encoder, of the cells, of the output."""

    encoder: list[Masks]
    cells: list[Masks]
    output: Any


def draw_drops(network: Network, n_rows: int, rate: float, key: Any) -> Drops | None:
    """Masks on all connections that are not recurrent; None for no dropout."""
    if rate == 0:
        return None
    first, second, third = jax.random.split(key, 3)
    encoder = network.encoder
    read = [] if encoder is None else draw_masks(first, (*encoder.forward, *encoder.backward), n_rows, rate)
    width = network.output.weight.shape[1]
    return Drops(read, draw_masks(second, network.cells, n_rows, rate), draw_mask(third, rate, n_rows, width))


class State(NamedTuple):
    """Where a decoder is.

    Attributes
    ----------
    cells : states of the stack
    context : (n_rows, width) of the attention; None without it
    weights : (n_rows, n_memory) of the attention; None without it
    """

    cells: tuple[Any, ...]
    context: Any = None
    weights: Any = None


class Beginning(NamedTuple):
    """What a decoder knows before its first step.

    Attributes
    ----------
    state : State
    fed : (n_rows, embedding_size): embedding of the start, or of the vector
    memory : Memory, or None
    """

    state: State
    fed: Any
    memory: Any


def begin(network: Network, design: Design, batch: Any, drops: Drops | None = None) -> Beginning:
    """Read the input of a batch.

    `batch` is a dict with the arrays of the source: "vectors" (n_rows, n_inputs); "frames" (n_rows, length, n_inputs);
    "source" (n_rows, n_memory, n_inputs), or (n_rows, n_memory) whole numbers with tokens, and "source_mask".
    """
    h, n_layers = design.hidden_size, design.n_layers
    n_rows = next(batch[name] for name in ("vectors", "frames", "source") if name in batch).shape[0]
    memory = context = weights = None
    if design.reads:
        read = network.words[batch["source"]] if design.source == "tokens" else batch["source"]
        outputs, last = network.encoder(read, batch["source_mask"], drops.encoder if drops else None)
        start = jnp.tanh(jax.vmap(network.bridge)(last)).reshape(n_rows, n_layers, h)
        cells = tuple(with_output(cell, start[:, layer]) for layer, cell in enumerate(network.cells))
        if design.attention:
            keys = jax.vmap(jax.vmap(network.attention.of_memory))(outputs)
            memory = Memory(outputs, keys, batch["source_mask"])
            context = jnp.zeros((n_rows, outputs.shape[-1]), outputs.dtype)
            weights = jnp.zeros(outputs.shape[:2], outputs.dtype)
    else:
        zero = jnp.zeros((n_rows, h), network.embedding.dtype)
        cells = tuple(with_output(cell, zero) for cell in network.cells)
    if design.source == "vector":
        fed = jax.vmap(network.first)(batch["vectors"])
    else:
        fed = jnp.broadcast_to(network.embedding[design.start_token], (n_rows, design.embedding_size))
    return Beginning(State(cells, context, weights), fed, memory)


def advance(
    network: Network, state: State, fed: Any, frame: Any, memory: Memory | None, drops: Drops | None = None
) -> tuple[State, Any]:
    """One step: the new state, and the features (n_rows, ...) that `logits` turns into scores of tokens."""
    parts = [part for part in (fed, frame, state.context) if part is not None]
    signal, cells = jnp.concatenate(parts, axis=-1), []
    for layer, cell in enumerate(network.cells):
        new = step(cell, state.cells[layer], signal, drops.cells[layer] if drops else None)
        signal = output_of(new)
        cells.append(new)
    if memory is None:
        return State(tuple(cells)), signal if drops is None else signal * drops.output
    context, weights = network.attention(signal, memory)
    features = jnp.concatenate([signal, context], axis=-1)
    return State(tuple(cells), context, weights), features if drops is None else features * drops.output


def logits(network: Network, features: Any) -> Any:
    """Scores of all tokens, for features with any leading axes."""
    return features @ network.output.weight.T + network.output.bias
