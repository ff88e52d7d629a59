"""Recurrent cells of equinox (LSTM, GRU) and a plain tanh cell, stacked, in one direction or both, with dropout.

A cell maps an input and its state to a new state. LSTM: ``[i; f; g; o] = W x + R h + b``,
``c = sigmoid(f) c + sigmoid(i) tanh(g)``, ``h = sigmoid(o) tanh(c)``; tanh cell: ``h = tanh(W x + R h + b)``. Weights
begin uniform within ``1 / sqrt(hidden_size)``, the bias of the forget gate at 1. Dropout keeps one mask for all steps
of a sequence.

References
----------
Hochreiter and Schmidhuber (1997), Long short-term memory, Neural Computation 9.
Cho et al. (2014), Learning phrase representations using RNN encoder-decoder, EMNLP (the GRU).
Gal and Ghahramani (2016), A theoretically grounded application of dropout in recurrent neural networks, NeurIPS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pluri.networks.backend import equinox, jax, jnp

#: Names of the cells.
CELLS = ("lstm", "gru", "rnn")


class TanhCell(equinox.Module):
    """The plain recurrent cell, which equinox does not have; called as its others are."""

    weight_ih: Any
    weight_hh: Any
    bias: Any

    def __init__(self, input_size: int, hidden_size: int, *, key: Any) -> None:
        limit = hidden_size**-0.5
        first, second, third = jax.random.split(key, 3)
        self.weight_ih = jax.random.uniform(first, (hidden_size, input_size), minval=-limit, maxval=limit)
        self.weight_hh = jax.random.uniform(second, (hidden_size, hidden_size), minval=-limit, maxval=limit)
        self.bias = jax.random.uniform(third, (hidden_size,), minval=-limit, maxval=limit)

    def __call__(self, input: Any, hidden: Any, *, key: Any = None) -> Any:
        return jnp.tanh(self.weight_ih @ input + self.weight_hh @ hidden + self.bias)


def make_cell(kind: str, input_size: int, hidden_size: int, key: Any) -> Any:
    """A cell by its name in `CELLS`."""
    if kind == "lstm":
        cell = equinox.nn.LSTMCell(input_size, hidden_size, key=key)
        bias = cell.bias.at[hidden_size : 2 * hidden_size].set(1.0)
        return equinox.tree_at(lambda one: one.bias, cell, bias)
    if kind == "gru":
        return equinox.nn.GRUCell(input_size, hidden_size, key=key)
    if kind == "rnn":
        return TanhCell(input_size, hidden_size, key=key)
    raise ValueError(f"cell must be one of {CELLS}, got {kind!r}")


def hidden_size_of(cell: Any) -> int:
    """Number of units."""
    return int(cell.weight_hh.shape[-1])


def zero_state(cell: Any, n_rows: int) -> Any:
    """State before the first step: a tuple (h, c) for an LSTM, h otherwise."""
    h = jnp.zeros((n_rows, hidden_size_of(cell)), cell.weight_hh.dtype)
    return (h, h) if isinstance(cell, equinox.nn.LSTMCell) else h


def with_output(cell: Any, h: Any) -> Any:
    """A state with a given output; the memory of an LSTM is empty."""
    return (h, jnp.zeros_like(h)) if isinstance(cell, equinox.nn.LSTMCell) else h


def output_of(state: Any) -> Any:
    """The output h of a state."""
    return state[0] if isinstance(state, tuple) else state


class Masks(NamedTuple):
    """Dropout masks of a layer, one row a sequence, already divided by the probability to stay; None for no dropout.

    Attributes
    ----------
    input : (n_rows, input_size)
    hidden : (n_rows, hidden_size), on the output that comes back to the cell
    """

    input: Any = None
    hidden: Any = None


def draw_mask(key: Any, rate: float, n_rows: int, size: int) -> Any:
    """A dropout mask: ones with probability ``1 - rate``, divided by it."""
    return jax.random.bernoulli(key, 1.0 - rate, (n_rows, size)) / jnp.asarray(1.0 - rate)


def draw_masks(key: Any, cells: Sequence[Any], n_rows: int, rate: float, recurrent_rate: float = 0.0) -> list[Masks]:
    """Masks for a stack of cells; all None where a rate is 0."""
    found = []
    for cell, one in zip(cells, jax.random.split(key, max(1, len(cells)))):
        first, second = jax.random.split(one)
        input_mask = draw_mask(first, rate, n_rows, cell.weight_ih.shape[-1]) if rate > 0 else None
        hidden_mask = draw_mask(second, recurrent_rate, n_rows, hidden_size_of(cell)) if recurrent_rate > 0 else None
        found.append(Masks(input_mask, hidden_mask))
    return found


def step(cell: Any, state: Any, inputs: Any, masks: Masks | None = None) -> Any:
    """New state of a batch: `inputs` (n_rows, input_size), `state` as `zero_state` has it."""
    if masks is not None and masks.input is not None:
        inputs = inputs * masks.input
    if masks is not None and masks.hidden is not None:
        dropped = output_of(state) * masks.hidden
        state = (dropped, state[1]) if isinstance(state, tuple) else dropped
    return jax.vmap(cell)(inputs, state)


def scan(cell: Any, inputs: Any, mask: Any, masks: Masks | None = None, reverse: bool = False) -> tuple[Any, Any]:
    """Run a cell along sequences; where `mask` is False the state stays as it is.

    Parameters
    ----------
    cell : cell
    inputs : array of shape (n_rows, length, input_size)
    mask : bool array of shape (n_rows, length)
    masks : Masks, optional
    reverse : bool
        From the end to the beginning; the padding comes first and changes nothing.

    Returns
    -------
    outputs : array of shape (n_rows, length, hidden_size)
        Zero where `mask` is False.
    last : array of shape (n_rows, hidden_size)
        Output at the last step of each sequence, or the first one if `reverse`.
    """

    def move(state: Any, seen: Any) -> Any:
        values, here = seen
        new = step(cell, state, values, masks)
        state = jax.tree.map(lambda one, other: jnp.where(here[:, None], one, other), new, state)
        return state, jnp.where(here[:, None], output_of(state), 0.0)

    along = (jnp.swapaxes(inputs, 0, 1), jnp.swapaxes(mask, 0, 1))
    last, outputs = jax.lax.scan(move, zero_state(cell, inputs.shape[0]), along, reverse=reverse)
    return jnp.swapaxes(outputs, 0, 1), output_of(last)


class Encoder(equinox.Module):
    """A stack of recurrent layers over whole sequences, in one direction or both.

    Parameters
    ----------
    kind : {"lstm", "gru", "rnn"}
    input_size, hidden_size, n_layers : int
        `hidden_size` units for each direction.
    bidirectional : bool
        Outputs of the two directions are joined, and are the input of the next layer.
    key : JAX key
    """

    forward: tuple[Any, ...]
    backward: tuple[Any, ...]

    def __init__(
        self, kind: str, input_size: int, hidden_size: int, n_layers: int, bidirectional: bool, *, key: Any
    ) -> None:
        keys = jax.random.split(key, 2 * n_layers)
        width = hidden_size * (2 if bidirectional else 1)
        sizes = [input_size] + [width] * (n_layers - 1)
        self.forward = tuple(make_cell(kind, size, hidden_size, one) for size, one in zip(sizes, keys[:n_layers]))
        self.backward = ()
        if bidirectional:
            self.backward = tuple(make_cell(kind, size, hidden_size, one) for size, one in zip(sizes, keys[n_layers:]))

    @property
    def width(self) -> int:
        """Size of the outputs."""
        return hidden_size_of(self.forward[0]) * (2 if self.backward else 1)

    def __call__(self, inputs: Any, mask: Any, masks: Sequence[Masks] | None = None) -> tuple[Any, Any]:
        """Outputs (n_rows, length, width) of the last layer, and (n_rows, width) at the end of each direction.

        `masks` are those of all cells, forward ones first, as ``draw_masks(key, (*forward, *backward), ...)`` gives.
        """
        n_layers = len(self.forward)
        last = None
        for layer in range(n_layers):
            outputs, last = scan(self.forward[layer], inputs, mask, masks[layer] if masks else None)
            if self.backward:
                other = masks[n_layers + layer] if masks else None
                back, first = scan(self.backward[layer], inputs, mask, other, reverse=True)
                outputs, last = jnp.concatenate([outputs, back], axis=-1), jnp.concatenate([last, first], axis=-1)
            inputs = outputs
        return inputs, last
