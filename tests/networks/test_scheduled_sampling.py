"""The loss of scheduled sampling and decoding, held against NumPy, enumeration, closed forms and finite differences."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.networks.backend import double_precision, jax
from pluri.networks.decoder_fit import stack
from pluri.networks.decoding import NO_KEY, beam_search, follow_back, free_running, teacher_forced
from pluri.networks.design import Design, initialize
from pluri.networks.parameters import structure_of, to_arrays
from pluri.networks.scheduled_sampling import SampledLoss
from pluri.networks.training import train

FRAMES = Design("frames", 2, 3, hidden_size=4, embedding_size=3)
VECTOR = Design("vector", 2, 4, cell="rnn", hidden_size=5, embedding_size=3)


def a_batch(design, n_rows=4, length=6, eps=0.5, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.arange(length) < rng.integers(2, length + 1, size=n_rows)[:, None]
    batch = {
        "targets": np.where(mask, rng.integers(design.n_outputs, size=(n_rows, length)), 0),
        "mask": mask,
        "eps": np.float32(eps),
    }
    if design.source == "frames":
        return batch | {"frames": rng.normal(size=(n_rows, length, design.n_inputs)).astype(np.float32)}
    if design.source == "vector":
        return batch | {"vectors": rng.normal(size=(n_rows, design.n_inputs)).astype(np.float32)}
    source_mask = np.arange(5) < np.array([5, 3, 1, 4])[:n_rows, None]
    if design.source == "tokens":
        return batch | {"source": rng.integers(design.n_inputs, size=(n_rows, 5)), "source_mask": source_mask}
    values = rng.normal(size=(n_rows, 5, design.n_inputs)).astype(np.float32)
    return batch | {"source": values, "source_mask": source_mask}


def network_of(design, seed=3):
    return initialize(design, np.random.default_rng(seed))


def with_chance(loss, batch, seed=1):
    """A batch with its random numbers."""
    n_rows, length = batch["targets"].shape
    return batch | loss.draw(np.random.default_rng(seed), length, n_rows)


def fed_by(loss, network, batch, seed=1):
    """The tokens that are fed after each step, (length, n_rows)."""
    return np.asarray(jax.jit(loss.run)(network, with_chance(loss, batch, seed), NO_KEY)[1])


def value_and_gradient(loss, network, batch):
    return jax.jit(jax.value_and_grad(loss))(network, with_chance(loss, batch), NO_KEY)


def greedy(network, design, batch, length, n_members=1, full=False):
    members = stack([network] * n_members)
    return free_running(members, design, batch, length, NO_KEY, np.float32(1.0), full=full)


def test_first_parameters_are_uniform_within_their_limits():
    design = Design("tokens", 40, 30, hidden_size=30, embedding_size=20, attention=True, bidirectional=True)
    arrays = to_arrays(network_of(design))
    expected = dict(jax.tree_util.tree_flatten_with_path(structure_of(design.make))[0])
    assert [array.shape for array in arrays.values()] == [leaf.shape for leaf in expected.values()]
    assert_array_equal(arrays["embedding"][-1], 0.0)
    assert_array_equal(arrays["cells[0].bias"][30:60], 1.0)
    # By the fans of equinox: inputs of a linear map, units of a cell. The largest of n uniform numbers is below 0.8 of
    # the limit with probability 0.8^n: at n = 900, never.
    for name, n in (("output.weight", 90), ("bridge.weight", 60), ("attention.of_memory.weight", 60),
                    ("cells[0].weight_hh", 30), ("encoder.backward[0].weight_ih", 30)):  # fmt: skip
        assert 0.8 * n**-0.5 < np.abs(arrays[name]).max() <= n**-0.5, name


def test_eps_of_one_is_teacher_forcing_to_the_last_bit():
    design = FRAMES
    network, batch = network_of(design), a_batch(design, eps=1.0)
    forced = value_and_gradient(SampledLoss(design, feedback=None), network, batch)
    for options in ({}, {"feedback": "uniform", "coin": "sequence"}, {"feedback": "argmax", "confidence": True}):
        sampled = value_and_gradient(SampledLoss(design, **options), network, batch)
        for one, other in zip(jax.tree.leaves(sampled), jax.tree.leaves(forced)):
            assert_array_equal(one, other)


def loss_in_numpy(arrays, batch, fed):
    """The loss of an LSTM on frames when these tokens are fed, written anew."""

    def sigmoid(a):
        return 1 / (1 + np.exp(-a))

    n_rows, length = batch["targets"].shape
    h = c = np.zeros((n_rows, 4))
    previous, total = np.full(n_rows, 3), 0.0
    for t in range(length):
        x = np.concatenate([arrays["embedding"][previous], batch["frames"][:, t]], axis=1)
        gates = x @ arrays["cells[0].weight_ih"].T + h @ arrays["cells[0].weight_hh"].T + arrays["cells[0].bias"]
        i, f, g, o = np.split(gates, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        scores = h @ arrays["output.weight"].T + arrays["output.bias"]
        log_probs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        total -= (log_probs[np.arange(n_rows), batch["targets"][:, t]] * batch["mask"][:, t]).sum()
        previous = fed[t]
    return total / batch["mask"].sum()


def test_the_gradient_takes_sampled_tokens_as_they_are():
    loss = SampledLoss(FRAMES)
    with double_precision():
        network, batch = network_of(FRAMES), a_batch(FRAMES, eps=0.3)
        fed = fed_by(loss, network, batch)
        assert (fed != batch["targets"].T).mean() > 0.2
        value, gradient = value_and_gradient(loss, network, batch)
        arrays, slopes = to_arrays(network), to_arrays(gradient)
        assert arrays["output.weight"].dtype == np.float64
    assert_allclose(value, loss_in_numpy(arrays, batch, fed), rtol=1e-10)
    for name, array in arrays.items():
        found = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            sides = []
            for sign in (1, -1):
                moved = array.copy()
                moved[place] += sign * 1e-6
                sides.append(loss_in_numpy(arrays | {name: moved}, batch, fed))
            found[place] = (sides[0] - sides[1]) / 2e-6
        assert_allclose(slopes[name], found, rtol=1e-5, atol=1e-8, err_msg=name)


def test_the_gumbel_option_lets_gradients_through_and_feeds_the_same_tokens():
    network, batch = network_of(VECTOR), a_batch(VECTOR, eps=0.0)
    plain, through = SampledLoss(VECTOR), SampledLoss(VECTOR, sampling_grad="gumbel", temperature=0.5)
    assert_array_equal(fed_by(plain, network, batch), fed_by(through, network, batch))
    first, second = (value_and_gradient(loss, network, batch) for loss in (plain, through))
    assert_allclose(first[0], second[0], rtol=1e-5)
    assert not np.allclose(first[1].output.weight, second[1].output.weight, rtol=1e-3)


MANY = Design("vector", 1, 50, cell="rnn", hidden_size=2, embedding_size=1)


@pytest.mark.parametrize("eps", [0.2, 0.7])
def test_the_share_of_true_tokens_is_eps_and_coins_are_independent(eps):
    n_rows, length = 100, 100
    batch = {
        "targets": np.zeros((n_rows, length), int), "mask": np.ones((n_rows, length), bool), "eps": np.float32(eps),
        "vectors": np.zeros((n_rows, 1), np.float32),
    }  # fmt: skip
    loss = SampledLoss(MANY, feedback="uniform")
    own = fed_by(loss, network_of(MANY), batch) != 0
    share = (1 - eps) * 49 / 50
    error = np.sqrt(share * (1 - share) / own.size)
    # Normal quantiles: 4.4 standard errors are passed once in 100,000 seeds, for each of the three numbers.
    assert abs(own.mean() - share) < 4.4 * error
    centred = (own - share) / np.sqrt(share * (1 - share))
    assert abs((centred[1:] * centred[:-1]).mean()) < 4.4 / np.sqrt(own.size - n_rows)
    assert abs((centred[:, 1:] * centred[:, :-1]).mean()) < 4.4 / np.sqrt(own.size - length)
    # What is fed does not depend on the network.
    assert_array_equal(own, fed_by(loss, network_of(MANY, seed=9), batch) != 0)
    whole = fed_by(SampledLoss(MANY, feedback="uniform", coin="sequence"), network_of(MANY), batch) != 0
    assert set(np.unique(whole.any(axis=0))) == {False, True}
    assert whole[:, whole.any(axis=0)].mean() > 0.9  # of a row that takes its own tokens, all are


def test_confidence_feeds_own_tokens_less_often():
    batch = a_batch(VECTOR, n_rows=64, length=20, eps=0.0)
    network, loss = network_of(VECTOR), SampledLoss(VECTOR, confidence=True)
    features, fed = jax.jit(loss.run)(network, with_chance(loss, batch), NO_KEY)
    scores = np.asarray(features) @ np.asarray(network.output.weight).T + np.asarray(network.output.bias)
    shares = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    of_truth = np.take_along_axis(shares, batch["targets"].T[..., None], -1)[..., 0]
    expected = shares.max(axis=-1) * (1 - of_truth)
    is_own = np.asarray(fed) != batch["targets"].T
    # 4.4 standard errors: one false alarm in 100,000 seeds.
    assert abs(is_own.mean() - expected.mean()) < 4.4 * np.sqrt(expected.mean() / is_own.size)


@pytest.mark.parametrize(
    "design",
    [
        FRAMES, VECTOR,
        Design("tokens", 7, 4, cell="gru", hidden_size=4, n_layers=2, embedding_size=3, attention=True,
               bidirectional=True),
        Design("sequence", 2, 4, hidden_size=4, embedding_size=3),
    ],
    ids=lambda design: design.source,
)  # fmt: skip
def test_always_feeding_the_best_token_is_greedy_decoding(design):
    network, batch = network_of(design), a_batch(design, eps=0.0)
    fed = fed_by(SampledLoss(design, feedback="argmax"), network, batch)
    steps = greedy(network, design, batch, 6)
    assert_array_equal(steps.tokens, fed.T)
    # An ensemble of equal members is one of them.
    both = greedy(network, design, batch, 6, n_members=3, full=True)
    assert_array_equal(both.tokens, steps.tokens)
    assert_allclose(both.log_probs, steps.log_probs, rtol=1e-4, atol=1e-5)
    assert_allclose(np.exp(both.all_log_probs).sum(axis=-1), 1.0, rtol=1e-5)
    if design.attention:
        assert_allclose(np.asarray(both.attention).sum(axis=-1), 1.0, rtol=1e-5)
        assert (np.asarray(both.attention)[2, :, 1:] == 0).all()  # that source has one token
    # Given its own tokens as true ones, the network says the same of them.
    forced = teacher_forced(stack([network]), design, batch | {"targets": steps.tokens})
    assert_allclose(forced.log_probs, steps.log_probs, rtol=1e-4, atol=1e-5)


def candidates(network, design, batch, length, beam_size, penalty=0.0):
    n_rows = len(batch["targets"])
    beams = beam_search(
        stack([network]), design, batch, length, beam_size, np.full(n_rows, length), np.float32(penalty)
    )
    return follow_back(beams)


@pytest.mark.parametrize("design", [FRAMES, VECTOR], ids=["frames", "vector"])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_of_one_is_greedy_decoding(design, seed):
    network, batch = network_of(design, seed), a_batch(design, seed=seed)
    tokens, scores, lengths = candidates(network, design, batch, 6, 1)
    steps = greedy(network, design, batch, 6)
    for row in range(4):
        assert_array_equal(tokens[row, 0, : lengths[row, 0]], steps.tokens[row, : lengths[row, 0]])
        assert_allclose(scores[row, 0], np.asarray(steps.log_probs)[row, : lengths[row, 0]].sum(), rtol=1e-4)


def all_sequences(design, length):
    """Every output of at most `length` tokens; the last token ends it."""
    n, end = design.n_outputs, design.n_outputs - 1
    if not design.ends:
        return [list(one) for one in itertools.product(range(n), repeat=length)]
    found = []
    for size in range(1, length + 1):
        for one in itertools.product(range(end), repeat=size - 1):
            found.append([*one, end])
            if size == length:
                found += [[*one, last] for last in range(end)]  # cut off
    return found


@pytest.mark.parametrize("design", [Design("frames", 2, 4, "gru", 4, 1, 3), VECTOR], ids=["frames", "vector"])
def test_a_full_beam_is_exhaustive_search_and_wider_beams_are_not_worse(design):
    network, batch = network_of(design, 5), a_batch(design, n_rows=1, length=3)
    network = jax.tree.map(lambda part: 3.0 * np.asarray(part), network)  # opinions strong enough to be misled by
    every = all_sequences(design, 3)
    assert len(every) == 64 if not design.ends else 40
    one = {name: np.repeat(part, len(every), axis=0) for name, part in batch.items() if name != "eps"}
    targets = np.array([[*sequence, *[0] * (3 - len(sequence))] for sequence in every])
    found = np.asarray(teacher_forced(stack([network]), design, one | {"targets": targets}).log_probs)
    exact = np.array([row[: len(sequence)].sum() for row, sequence in zip(found, every)])
    assert_allclose(np.exp(exact).sum(), 1.0, rtol=1e-4)
    order = np.argsort(-exact)
    tokens, scores, lengths = candidates(network, design, batch, 3, 64)
    real = np.isfinite(scores[0])
    assert real.sum() == len(every)
    assert_allclose(scores[0][real], exact[order], rtol=1e-3, atol=1e-4)
    for rank in range(10):
        if np.diff(exact[order])[rank] < -1e-3:
            assert tokens[0, rank, : lengths[0, rank]].tolist() == every[order[rank]]
        else:
            break
    best = [candidates(network, design, batch, 3, m)[1][0, 0] for m in (1, 4, 64)]
    assert (np.diff(best) >= -1e-5).all()


TOY = Design("vector", 1, 2, cell="rnn", hidden_size=8, embedding_size=2)


def test_two_tokens_reach_the_closed_form():
    """Sequences 00 and 11: P(y_2 = a | a) is (1 + eps) / 2 at the optimum."""
    n = 1024
    targets = np.repeat([[0, 0], [1, 1]], n // 2, axis=0)
    batch = {"targets": targets, "mask": np.ones((n, 2), bool), "vectors": np.zeros((n, 1), np.float32)}
    loss = SampledLoss(TOY)
    for eps in (1.0, 0.5, 0.0):

        def epoch(number, first, rng, eps=eps):
            return (batch | loss.draw(rng, 2, n) | {"eps": np.float32(eps)} for _ in range(25))

        params = network_of(TOY)
        for rate in (0.05, 0.01, 0.002):
            params = train(params, loss, epoch, learning_rate=rate, max_epochs=10, rng=np.random.default_rng(0)).params
        steps = teacher_forced(stack([params]), TOY, batch)
        # Over twenty seeds the root mean square of the error was 0.0046 at eps = 0.5, and less at the others: 0.02 is
        # passed once in 70,000.
        assert_allclose(np.exp(steps.log_probs[:, 1]), (1 + eps) / 2, atol=0.02)
