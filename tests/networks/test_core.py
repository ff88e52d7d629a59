"""Batches, cells and the training loop, held against other ways of computing the same."""

import signal
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.inference.checkpoint import Checkpoint
from pluri.networks.backend import double_precision, jax, jnp
from pluri.networks.batches import (
    bucket_edges,
    chunks,
    minibatches,
    pad,
    rounded_length,
    rounded_rows,
    rows_of_batches,
)
from pluri.networks.cells import CELLS, Encoder, draw_masks, make_cell, scan, step, zero_state
from pluri.networks.parameters import from_arrays, to_arrays
from pluri.networks.training import Optimizer, train

KEY = jnp.asarray(np.array([0, 1], dtype=np.uint32))


@pytest.mark.parametrize("seed", range(5))
def test_minibatches_hold_every_sequence_once_and_few_shapes(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 50, size=rng.integers(1, 80))
    edges = bucket_edges(lengths, 8)
    assert len(edges) <= 3
    assert edges[-1] == lengths.max()
    batches = minibatches(lengths, 8, edges, rng)
    assert_array_equal(np.sort(np.concatenate([batch.rows for batch in batches])), np.arange(len(lengths)))
    for batch in batches:
        assert len(batch.rows) <= 8
        assert lengths[batch.rows].max() <= batch.length


def test_what_is_asked_has_few_shapes():
    found = {chunk.length: chunk.rows.tolist() for chunk in chunks([60, 58, 7, 130], 10, known=[30, 60])}
    assert found == {30: [2], 60: [0, 1], 192: [3]}
    assert [rounded_rows(n, 256) for n in (1, 16, 17, 200, 256)] == [16, 16, 64, 256, 256]
    assert len({rounded_length(length) for length in range(1, 1000)}) <= 20


def test_padding_is_masked():
    values, mask = pad([np.ones((2, 3)), np.ones((1, 3))], length=4, n_rows=3)
    assert values.shape == (3, 4, 3)
    assert_array_equal(mask.sum(axis=1), [2, 1, 0])
    assert_array_equal(values.sum(axis=(1, 2)), [6.0, 3.0, 0.0])
    with pytest.raises(ValueError, match="length must be at least"):
        pad([[1, 2, 3]], length=2)


@pytest.mark.parametrize("kind", CELLS)
def test_cells_follow_their_formulas(kind):
    with double_precision():
        cell = make_cell(kind, 3, 4, KEY)
        rng = np.random.default_rng(0)
        x, h, c = rng.normal(size=3), rng.normal(size=4), rng.normal(size=4)
        W, R, b = (np.asarray(part) for part in (cell.weight_ih, cell.weight_hh, cell.bias))

        def sigmoid(a):
            return 1 / (1 + np.exp(-a))

        if kind == "lstm":
            i, f, g, o = np.split(W @ x + R @ h + b, 4)
            memory = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            expected = sigmoid(o) * np.tanh(memory)
            found = cell(jnp.asarray(x), (jnp.asarray(h), jnp.asarray(c)))[0]
            assert_array_equal(b[4:8], 1.0)
        elif kind == "gru":
            (r, z, n), (hr, hz, hn) = np.split(W @ x + b, 3), np.split(R @ h, 3)
            new = np.tanh(n + sigmoid(r + hr) * (hn + np.asarray(cell.bias_n)))
            expected = (1 - sigmoid(z + hz)) * new + sigmoid(z + hz) * h
            found = cell(jnp.asarray(x), jnp.asarray(h))
        else:
            expected = np.tanh(W @ x + R @ h + b)
            found = cell(jnp.asarray(x), jnp.asarray(h))
        assert_allclose(found, expected, rtol=1e-12)
        assert np.abs(R).max() <= 0.5


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_padded_batch_gives_what_each_sequence_gives_alone(kind, reverse):
    rng = np.random.default_rng(1)
    cell = make_cell(kind, 2, 3, KEY)
    sequences = [rng.normal(size=(length, 2)).astype(np.float32) for length in (5, 2, 4)]
    values, mask = pad(sequences, length=7)
    outputs, last = scan(cell, jnp.asarray(values), jnp.asarray(mask), reverse=reverse)
    for row, sequence in enumerate(sequences):
        state, alone = zero_state(cell, 1), []
        for x in sequence[::-1] if reverse else sequence:
            state = step(cell, state, jnp.asarray(x[None]))
            alone.append(np.asarray(state[0] if kind == "lstm" else state)[0])
        assert_allclose(last[row], alone[-1], rtol=1e-5, atol=1e-6)
        assert_allclose(outputs[row, : len(sequence)], alone[::-1] if reverse else alone, rtol=1e-5, atol=1e-6)
        assert_array_equal(outputs[row, len(sequence) :], 0.0)


def test_both_directions_are_joined_and_dropout_has_one_mask_a_sequence():
    encoder = Encoder("gru", 2, 3, 2, True, key=KEY)
    assert encoder.width == 6
    values = jnp.asarray(np.random.default_rng(0).normal(size=(4, 5, 2)), dtype=jnp.float32)
    mask = jnp.ones((4, 5), bool)
    outputs, last = encoder(values, mask)
    assert_allclose(last[:, :3], outputs[:, -1, :3], rtol=1e-6)
    assert_allclose(last[:, 3:], outputs[:, 0, 3:], rtol=1e-6)
    cells = (*encoder.forward, *encoder.backward)
    masks = draw_masks(KEY, cells, 4, 0.5, 0.5)
    assert {float(value) for value in np.unique(masks[0].input)} <= {0.0, 2.0}
    dropped, _ = encoder(values, mask, masks)
    # One mask a sequence: the first layer sees inputs multiplied by the same numbers at all steps.
    by_hand, _ = scan(encoder.forward[0], values * masks[0].input[:, None], mask, masks[0]._replace(input=None))
    first, _ = scan(encoder.forward[0], values, mask, masks[0])
    assert_allclose(first, by_hand, rtol=1e-6)
    assert not np.allclose(dropped, outputs)
    assert_allclose(encoder(values, mask, draw_masks(KEY, cells, 4, 0.0))[0], outputs)


def test_parameters_come_back_from_arrays_and_others_are_refused():
    def make(key):
        return Encoder("lstm", 2, 3, 1, True, key=key)

    network = make(KEY)
    arrays = to_arrays(network)
    again = from_arrays(arrays, make)
    assert jax.tree.structure(again) == jax.tree.structure(network)
    assert all(np.array_equal(one, other) for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(network)))
    name = next(iter(arrays))
    for wrong, said in (
        ({**arrays, name: arrays[name][:-1]}, "must have shape"),
        ({**arrays, name: np.full_like(arrays[name], np.nan)}, "must be finite"),
        ({**arrays, "more": arrays[name]}, "must not hold 'more'"),
        ({key: value for key, value in arrays.items() if key != name}, "lacks"),
    ):
        with pytest.raises(ValueError, match=said):
            from_arrays(wrong, make)


@dataclass(frozen=True)
class Squares:
    """Least squares: the answer is known."""

    def __call__(self, params, batch, key):
        X, y = batch
        return jnp.mean((X @ params["w"] - y) ** 2)


RNG = np.random.default_rng(3)
X = RNG.normal(size=(64, 3)).astype(np.float32)
Y = X @ np.array([1.0, -2.0, 0.5], dtype=np.float32)
START = {"w": jnp.zeros(3)}


def epochs(number, first, rng):
    order = rng.permutation(64)
    return [(X[order[k : k + 16]], Y[order[k : k + 16]]) for k in range(0, 64, 16)]


def test_training_finds_least_squares_and_keeps_the_best_epoch():
    errors = iter([3.0, 1.0, 2.0, 2.0, 2.0, 0.5])
    seen = []

    def validate(params):
        seen.append(params)
        return next(errors)

    done = train(START, Squares(), epochs, rng=np.random.default_rng(0), validate=validate, n_iter_no_change=3)
    assert (done.best_epoch, len(done.losses), done.converged) == (2, 5, True)
    assert_array_equal(done.params["w"], seen[1]["w"])
    done = train(START, Squares(), epochs, rng=np.random.default_rng(0), learning_rate=0.05, max_epochs=60)
    assert_allclose(done.params["w"], [1.0, -2.0, 0.5], atol=1e-2)
    later = iter([0.1, 3.0, 1.0, 2.0, 2.0, 2.0])
    done = train(
        START, Squares(), epochs, rng=np.random.default_rng(0), validate=lambda params: next(later), min_epochs=2,
        n_iter_no_change=2,
    )  # fmt: skip
    assert (done.best_epoch, len(done.losses)) == (3, 5)


def test_gradients_are_clipped_as_a_whole():
    def one(number, first, rng):
        return [(X, 1e4 * Y)]

    options = {"rng": np.random.default_rng(0), "learning_rate": 1.0, "max_epochs": 1}
    done = train(START, Squares(), one, optimizer=Optimizer("sgd", clip_norm=0.1), **options)
    assert np.linalg.norm(done.params["w"]) == pytest.approx(0.1, rel=1e-5)


def test_a_training_goes_on_from_its_checkpoint_to_the_last_bit(tmp_path):
    options = {"validate": lambda params: float(jnp.sum(params["w"])), "n_iter_no_change": 99}
    whole = train(START, Squares(), epochs, rng=np.random.default_rng(5), max_epochs=8, **options)
    place = Checkpoint(tmp_path / "fit.npz", every=2)
    train(START, Squares(), epochs, rng=np.random.default_rng(5), max_epochs=3, checkpoint=place, **options)
    # Another generator: what counts is in the file.
    resumed = train(START, Squares(), epochs, rng=np.random.default_rng(7), max_epochs=8, checkpoint=place, **options)
    assert_array_equal(resumed.params["w"], whole.params["w"])
    assert (resumed.losses, resumed.errors, resumed.n_steps) == (whole.losses, whole.errors, whole.n_steps)
    other = Checkpoint(tmp_path / "fit.npz", fingerprint="other data")
    with pytest.raises(ValueError, match="belongs to another fit"):
        train(START, Squares(), epochs, rng=np.random.default_rng(5), checkpoint=other, **options)


def test_ctrl_c_keeps_the_best_and_goes_on(tmp_path):
    place = Checkpoint(tmp_path / "fit.npz", every=100)
    calls = []

    def interrupted(number, first, rng):
        order = rng.permutation(64)
        for k in range(0, 64, 16):
            if number == 3 and k == 32 and not calls:
                calls.append(1)
                signal.raise_signal(signal.SIGINT)
            yield X[order[k : k + 16]], Y[order[k : k + 16]]

    with pytest.raises(KeyboardInterrupt) as stop:
        train(START, Squares(), interrupted, rng=np.random.default_rng(5), max_epochs=8, checkpoint=place)
    kept = stop.value.result
    assert kept.interrupted
    assert len(kept.losses) == 3
    three = train(START, Squares(), epochs, rng=np.random.default_rng(5), max_epochs=3)
    assert_array_equal(kept.params["w"], three.params["w"])
    resumed = train(START, Squares(), interrupted, rng=np.random.default_rng(5), max_epochs=8, checkpoint=place)
    whole = train(START, Squares(), epochs, rng=np.random.default_rng(5), max_epochs=8)
    assert_array_equal(resumed.params["w"], whole.params["w"])


def test_a_training_that_diverges_says_so():
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        train(START, Squares(), lambda *_: [(X, np.full(64, np.inf, np.float32))], rng=np.random.default_rng(0))


def test_few_sequences_make_small_batches_so_that_an_epoch_has_steps():
    sizes = [rows_of_batches("auto", n) for n in (1, 15, 16, 40, 127, 128, 255, 256, 10_000)]
    assert sizes == [1, 1, 2, 4, 8, 16, 16, 32, 32]
    assert rows_of_batches(5, 7) == 5
