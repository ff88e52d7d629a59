"""The two networks that classify sequences of tokens: recurrent in both directions, and convolutional.

Both begin with a table of embeddings (learned, or given and frozen, which is then no parameter) and end with a linear
layer. Dropout has one mask for all steps of a sequence.

*BiLSTM*: recurrent layers forwards and backwards, then the mean of the outputs over time, their maximum, or the last
output of each direction, then dropout and the linear layer.
*CNN* [1]_: convolution, ReLU, dropout, convolution, ReLU, maximum over time, a layer of ReLUs, dropout, linear layer.

A design is the settings of a network: hashable, and compared by value, so that equal ones share compiled programs.

References
----------
.. [1] Kim, Y. (2014). Convolutional neural networks for sentence classification. EMNLP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pluri.networks.backend import equinox, jax, jnp
from pluri.networks.cells import Encoder, draw_mask, draw_masks
from pluri.networks.parameters import structure_of

#: Standard deviation of embeddings before the first step.
EMBEDDING_SCALE = 0.1


class Batch(NamedTuple):
    """Padded sequences with what the loss needs.

    Attributes
    ----------
    tokens : (n_rows, length): rows of the table
    mask : (n_rows, length)
    codes : (n_rows,): numbers of the true classes
    weight : (n_rows,): 0 for rows that are padding
    n_rows : number of rows that are none
    table : (n_tokens, size): frozen embeddings, or None if they are parameters
    """

    tokens: Any
    mask: Any
    codes: Any
    weight: Any
    n_rows: Any
    table: Any


class Network(equinox.Module):
    """Parameters: the table of embeddings (None if frozen) and the layers by name."""

    table: Any
    layers: dict[str, Any]


@dataclass(frozen=True)
class Design:
    """Settings that both networks have.

    Attributes
    ----------
    n_tokens : rows of the learned table; 0 if it is frozen
    input_size : length of an embedding
    n_classes : int
    dropout : rate on embeddings (one mask a sequence) and before the last layer
    """

    n_tokens: int
    input_size: int
    n_classes: int
    dropout: float

    def make(self, key: Any) -> Network:
        """A network with its first parameters."""
        first, second = jax.random.split(key)
        table = None
        if self.n_tokens:
            table = EMBEDDING_SCALE * jax.random.normal(first, (self.n_tokens, self.input_size))
        return Network(table, self._layers(second))

    def logits(self, network: Network, tokens: Any, mask: Any, table: Any, key: Any = None) -> Any:
        """Unnormalised log-probabilities (n_rows, n_classes); with a key, after dropout."""
        vectors = (network.table if table is None else table)[tokens]
        if key is not None and self.dropout:
            key, own = jax.random.split(key)
            vectors = vectors * draw_mask(own, self.dropout, len(vectors), self.input_size)[:, None]
        return self._classify(network.layers, vectors * mask[..., None], mask, key)

    def _layers(self, key: Any) -> dict[str, Any]:
        raise NotImplementedError  # abstract

    def _classify(self, layers: Mapping[str, Any], vectors: Any, mask: Any, key: Any) -> Any:
        raise NotImplementedError  # abstract

    def _dropped(self, values: Any, key: Any) -> Any:
        if key is None or not self.dropout:
            return values
        return values * draw_mask(key, self.dropout, *values.shape)


@dataclass(frozen=True)
class RecurrentDesign(Design):
    """Settings of the recurrent network."""

    cell: str
    hidden_size: int
    n_layers: int
    pooling: str
    recurrent_dropout: float

    def _layers(self, key: Any) -> dict[str, Any]:
        first, second = jax.random.split(key)
        encoder = Encoder(self.cell, self.input_size, self.hidden_size, self.n_layers, True, key=first)
        return {"encoder": encoder, "output": equinox.nn.Linear(encoder.width, self.n_classes, key=second)}

    def _classify(self, layers: Mapping[str, Any], vectors: Any, mask: Any, key: Any) -> Any:
        encoder, masks, last_key = layers["encoder"], None, None
        if key is not None:
            between, last_key = jax.random.split(key)
            cells = (*encoder.forward, *encoder.backward)
            masks = draw_masks(between, cells, len(vectors), 0.0, self.recurrent_dropout)
        outputs, last = encoder(vectors, mask, masks)
        if self.pooling == "last":
            code = last
        elif self.pooling == "mean":
            code = outputs.sum(axis=1) / jnp.maximum(mask.sum(axis=1), 1)[:, None]
        else:
            code = _largest(outputs, mask)
        return jax.vmap(layers["output"])(self._dropped(code, last_key))


@dataclass(frozen=True)
class ConvolutionalDesign(Design):
    """Settings of the convolutional network."""

    n_filters: int
    kernel_size: int
    n_layers: int
    hidden_size: int

    def _layers(self, key: Any) -> dict[str, Any]:
        keys = jax.random.split(key, self.n_layers + 2)
        sizes = [self.input_size] + [self.n_filters] * self.n_layers
        convolutions = tuple(
            equinox.nn.Conv1d(before, after, self.kernel_size, padding="SAME", key=one)
            for before, after, one in zip(sizes, sizes[1:], keys)
        )
        return {
            "convolutions": convolutions,
            "hidden": equinox.nn.Linear(self.n_filters, self.hidden_size, key=keys[-2]),
            "output": equinox.nn.Linear(self.hidden_size, self.n_classes, key=keys[-1]),
        }

    def _classify(self, layers: Mapping[str, Any], vectors: Any, mask: Any, key: Any) -> Any:
        values = jnp.swapaxes(vectors, 1, 2)
        keys = [None] * (self.n_layers + 1) if key is None else jax.random.split(key, self.n_layers + 1)
        for number, convolution in enumerate(layers["convolutions"]):
            if number and keys[number] is not None and self.dropout:
                values = values * draw_mask(keys[number], self.dropout, *values.shape[:2])[..., None]
            # What a convolution writes beyond the end of a sequence must not come back into it.
            values = jax.nn.relu(jax.vmap(convolution)(values)) * mask[:, None]
        code = _largest(jnp.swapaxes(values, 1, 2), mask)
        hidden = jax.nn.relu(jax.vmap(layers["hidden"])(code))
        return jax.vmap(layers["output"])(self._dropped(hidden, keys[0]))


def _largest(values: Any, mask: Any) -> Any:
    """Maximum over the steps that are there; 0 for an empty row."""
    largest = jnp.where(mask[..., None], values, -jnp.inf).max(axis=1)
    return jnp.where(mask.any(axis=1)[:, None], largest, 0.0)


@dataclass(frozen=True)
class CrossEntropy:
    """Weighted mean of minus the log-probability of the true classes."""

    design: Design

    def __call__(self, network: Network, batch: Batch, key: Any) -> Any:
        logits = self.design.logits(network, batch.tokens, batch.mask, batch.table, key)
        log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), batch.codes[:, None], axis=1)[:, 0]
        return -(batch.weight * log_prob).sum() / batch.n_rows


def first_network(design: Design, rng: np.random.Generator) -> Network:
    """A network before the first step, distributed as those of `Design.make`, without compiling anything.

    Embeddings are normal; weights uniform within ``1 / sqrt(n)``, where n is the number of units in recurrent cells and
    the number of inputs of a unit elsewhere; the bias of an LSTM's forget gate is 1.
    """
    paths, structure = jax.tree_util.tree_flatten_with_path(structure_of(design.make))
    shapes = {jax.tree_util.keystr(path): leaf.shape for path, leaf in paths}

    def draw(name: str, shape: tuple[int, ...]) -> Any:
        if name == ".table":
            return EMBEDDING_SCALE * rng.standard_normal(shape)
        if not ("encoder" in name and isinstance(design, RecurrentDesign)):
            n_inputs = int(np.prod(shapes[name.replace("bias", "weight")][1:]))
            return rng.uniform(-(n_inputs**-0.5), n_inputs**-0.5, shape)
        array = rng.uniform(-(design.hidden_size**-0.5), design.hidden_size**-0.5, shape)
        if design.cell == "lstm" and name.endswith("bias"):
            array[design.hidden_size : 2 * design.hidden_size] = 1.0
        return array

    leaves = [jnp.asarray(draw(name, shape).astype(np.float32)) for name, shape in shapes.items()]
    return jax.tree_util.tree_unflatten(structure, leaves)


@partial(jax.jit, static_argnames="design")
def logits(design: Design, network: Network, tokens: Any, mask: Any, table: Any) -> Any:
    """Without dropout: (n_rows, n_classes)."""
    return design.logits(network, tokens, mask, table)


@partial(jax.jit, static_argnames="design")
def dropped_logits(design: Design, network: Network, tokens: Any, mask: Any, table: Any, key: Any) -> Any:
    """With dropout: (n_rows, n_classes)."""
    return design.logits(network, tokens, mask, table, key)
