"""The two classifiers of token sequences: their networks against other computations, and what users do with them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer

import pluri
from pluri.networks import BiLSTMClassifier, TextCNNClassifier, UnknownTokenWarning
from pluri.networks.backend import double_precision, jax, jnp
from pluri.networks.classifiers.networks import (
    Batch,
    ConvolutionalDesign,
    CrossEntropy,
    RecurrentDesign,
    first_network,
    logits,
)

KEY = jax.random.PRNGKey(0)
COMMON = {"n_tokens": 6, "input_size": 3, "n_classes": 3, "dropout": 0.5}
DESIGNS = {
    "recurrent": RecurrentDesign(
        **COMMON, cell="rnn", hidden_size=2, n_layers=1, pooling="mean", recurrent_dropout=0.3
    ),
    "convolutional": ConvolutionalDesign(**COMMON, n_filters=4, kernel_size=3, n_layers=2, hidden_size=2),
}
TOKENS = np.array([[1, 5, 2, 0], [3, 0, 0, 0], [4, 4, 1, 2]], dtype=np.int32)
MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
#: Small and equal settings, so that fits share their programs.
SMALL = {"embedding_size": 4, "batch_size": 8, "max_epochs": 2, "validation_fraction": 0, "random_state": 0}
KINDS = {
    "bilstm": lambda **given: BiLSTMClassifier(**{"hidden_size": 3, "cell": "rnn"} | SMALL | given),
    "cnn": lambda **given: TextCNNClassifier(**{"n_filters": 8, "hidden_size": 8, "kernel_size": 3} | SMALL | given),
}
TEXTS = ["good film", "a good film", "bad film", "a bad film here"] * 4
LABELS = np.array(["yes", "yes", "no", "no"] * 4)


def made(design):
    return first_network(design, np.random.default_rng(0))


def batch(weight=(1.0, 1.0, 1.0), rows=slice(None)):
    weight = np.array(weight, dtype=np.float64)
    codes = np.array([0, 2, 1], dtype=np.int32)
    return Batch(TOKENS[rows], MASK[rows], codes[rows], weight[rows], float(len(weight[rows])), None)


@pytest.mark.parametrize("name", DESIGNS)
def test_gradients_with_dropout_are_those_of_finite_differences(name):
    """Along three random directions, in double precision; the masks of dropout are those of one key."""
    with double_precision():
        design = DESIGNS[name]
        loss = CrossEntropy(design)
        network = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float64)), made(design))
        value = jax.jit(lambda one: loss(one, batch(), KEY))
        gradient = jax.jit(jax.grad(lambda one: loss(one, batch(), KEY)))(network)
        rng = np.random.default_rng(0)
        for _ in range(3):
            direction = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), network)
            ahead, behind = (
                value(jax.tree.map(lambda leaf, way: leaf + sign * 1e-5 * way, network, direction))  # noqa: B023
                for sign in (1, -1)
            )
            slope = sum(jax.tree.leaves(jax.tree.map(lambda one, way: (one * way).sum(), gradient, direction)))
            assert_allclose((ahead - behind) / 2e-5, slope, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", DESIGNS)
def test_padding_changes_nothing(name):
    design = DESIGNS[name]
    network = made(design)
    expected = logits(design, network, TOKENS, MASK, None)
    wide = np.pad(TOKENS, ((0, 1), (0, 3)), constant_values=5), np.pad(MASK, ((0, 1), (0, 3)))
    assert_allclose(logits(design, network, *wide, None)[:3], expected, rtol=2e-5, atol=1e-6)


def test_the_convolutional_network_is_what_it_says():
    design = DESIGNS["convolutional"]
    network = made(design)
    found = np.asarray(logits(design, network, TOKENS, MASK, None))
    for row in range(3):
        length = MASK[row].sum()
        values = np.asarray(network.table)[TOKENS[row, :length]]
        for convolution in network.layers["convolutions"]:
            weight, bias = np.asarray(convolution.weight), np.asarray(convolution.bias)[:, 0]
            padded = np.pad(values, ((1, 1), (0, 0)))
            values = np.stack([np.einsum("oik,ki->o", weight, padded[t : t + 3]) + bias for t in range(length)])
            values = np.maximum(values, 0)
        hidden, output = network.layers["hidden"], network.layers["output"]
        code = np.maximum(np.asarray(hidden.weight) @ values.max(axis=0) + np.asarray(hidden.bias), 0)
        assert_allclose(found[row], np.asarray(output.weight) @ code + np.asarray(output.bias), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pooling", ["mean", "max", "last"])
def test_the_recurrent_network_pools_the_outputs_of_its_encoder(pooling):
    design = RecurrentDesign(**COMMON, cell="rnn", hidden_size=2, n_layers=1, pooling=pooling, recurrent_dropout=0.3)
    network = made(design)
    outputs, last = network.layers["encoder"](network.table[TOKENS] * MASK[..., None], MASK)
    lengths = MASK.sum(axis=1)
    rows = [np.asarray(one)[:n] for one, n in zip(outputs, lengths)]
    code = {"mean": [r.mean(axis=0) for r in rows], "max": [r.max(axis=0) for r in rows], "last": last}[pooling]
    output = network.layers["output"]
    expected = np.asarray(code) @ np.asarray(output.weight).T + np.asarray(output.bias)
    assert_allclose(logits(design, network, TOKENS, MASK, None), expected, rtol=1e-5, atol=1e-6)


def test_weights_count_rows_as_often_as_they_say_and_zero_not_at_all():
    design = DESIGNS["convolutional"]
    network = made(design)
    compiled = jax.jit(CrossEntropy(design).__call__)

    def loss(*given):
        return compiled(*given, None)

    single = [float(loss(network, batch(rows=slice(row, row + 1)))) for row in range(3)]
    assert float(loss(network, batch())) == pytest.approx(np.mean(single), rel=1e-5)
    weighted = float(loss(network, batch((2.0, 1.0, 0.0))))
    assert weighted == pytest.approx((2 * single[0] + single[1]) / 3, rel=1e-5)


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture(scope="module")
def model(kind):
    return kind().fit(TEXTS, LABELS)


def test_rows_of_weight_zero_are_as_if_they_were_not_there(kind, model):
    weighted = kind().fit([*TEXTS, "never seen"], [*LABELS, "other"], sample_weight=[3.0] * 16 + [0.0])
    assert weighted.classes_.tolist() == ["no", "yes"]
    assert "never" not in weighted.vocabulary_
    for name, value in model.params_.items():
        assert_array_equal(weighted.params_[name], value)


def test_texts_tokens_and_numbers_are_the_same_to_a_network(kind, model):
    place = {word: number for number, word in enumerate(model.vocabulary_.tolist())}
    tokens = [text.split() for text in TEXTS]
    numbers = [[place[word] for word in row] for row in tokens]
    table = np.full((16, 4), -1)
    for row, one in enumerate(numbers):
        table[row, : len(one)] = one
    expected = model.predict_proba(TEXTS)
    for X in (tokens, numbers, table):
        assert_array_equal(kind().fit(X, LABELS).predict_proba(X), expected)


def test_probabilities_sum_to_one_and_do_not_depend_on_the_company(model):
    found = model.predict_proba(TEXTS)
    assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert_allclose(model.predict_proba(TEXTS[3:4]), found[3:4], rtol=1e-5)
    assert_array_equal(model.predict(TEXTS), model.classes_[found.argmax(axis=1)])


def test_draws_by_dropout_differ_and_without_dropout_do_not(kind, model):
    drawn = model.predict_proba_samples(TEXTS, 4)
    assert drawn.shape == (4, 16, 2)
    assert_allclose(drawn.sum(axis=-1), 1, rtol=1e-12)
    assert (drawn[0] != drawn[1]).any()
    assert_array_equal(model.predict_proba_samples(TEXTS, 4), drawn)
    assert (model.predict_proba_samples(TEXTS, 4, random_state=1) != drawn).any()
    found = model.uncertainty(TEXTS, 4)
    assert (found.mutual_information <= found.entropy).all()
    assert_array_equal(model.acquisition(TEXTS, "bald", 4), found.mutual_information)
    settings = {"dropout": 0.0} | ({"recurrent_dropout": 0.0} if "recurrent_dropout" in model.get_params() else {})
    sure = kind(**settings).fit(TEXTS, LABELS)
    same = sure.predict_proba_samples(TEXTS, 3)
    assert_array_equal(same, np.broadcast_to(same[0], same.shape))
    assert_allclose(sure.uncertainty(TEXTS, 3).mutual_information, 0, atol=1e-12)


def test_unknown_tokens_are_counted_at_prediction(model):
    with pytest.warns(UnknownTokenWarning, match="2 of 3 tokens of X are unknown to the vocabulary"):
        model.predict(["splendid good thing"])


def test_the_order_of_words_can_be_learned(kind):
    """Two words in two orders, which no bag of words tells apart."""
    X, y = [["a", "b"], ["b", "a"]] * 16, [0, 1] * 16
    model = kind(hidden_size=16, learning_rate=0.02, max_epochs=60, dropout=0.0, embedding_size=8).fit(X, y)
    assert model.score(X, y) == 1
    assert model.score(X, y, sample_weight=np.arange(32.0)) == 1
    assert len(model.loss_history_) == model.n_iter_ == 60


def test_given_embeddings_stay_frozen_and_all_their_words_are_known(kind):
    rng = np.random.default_rng(0)
    words, vectors = ["good", "bad", "splendid"], rng.normal(size=(3, 4))
    with pytest.warns(UnknownTokenWarning, match="embeddings have no vector for 28 of 44 tokens of X"):
        model = kind(embeddings=(words, vectors)).fit(TEXTS, LABELS)
    assert_array_equal(model.embeddings_, np.vstack([np.zeros(4), vectors[[1, 0, 2]]]).astype(np.float32))
    assert model.vocabulary_.tolist() == ["bad", "good", "splendid"]
    assert model.n_unknown_ == 4 * (1 + 2 + 1 + 3)
    assert not any("table" in name for name in model.params_)
    model.predict(["splendid"])  # without a warning
    learned = kind(embeddings=(words, vectors), freeze_embeddings=False, learning_rate=1e-9, weight_decay=0.0)
    learned.fit(TEXTS, LABELS)
    assert learned.vocabulary_.tolist() == ["a", "bad", "film", "good", "here", "splendid"]
    assert_allclose(learned.params_["table"][[2, 4, 6]], vectors[[1, 0, 2]], atol=1e-5)


def test_a_validation_loss_chooses_the_epoch(kind):
    model = kind(validation_fraction=0.25, max_epochs=4, learning_rate=0.05).fit(TEXTS, LABELS)
    assert len(model.validation_history_) == model.n_iter_
    assert model.best_epoch_ == model.validation_history_.argmin() + 1
    assert np.isfinite(model.validation_history_).all()


def test_groups_are_on_one_side_of_the_validation(kind):
    model, groups = kind(validation_fraction=0.3), np.repeat(np.arange(10), 5)
    codes = np.arange(50) % 2
    learned, held = model._split(codes, groups, np.random.default_rng(0))
    assert not set(groups[learned]) & set(groups[held])
    assert len(held) == 15
    learned, held = model._split(codes, None, np.random.default_rng(0))
    assert np.bincount(codes[held]).tolist() == [7, 7]
    with pytest.raises(ValueError, match="groups must be one for each of 16 sequences"):
        model.fit(TEXTS, LABELS, groups=[1, 2])


def test_an_unfinished_fit_goes_on_from_its_checkpoint(kind, tmp_path):
    path = tmp_path / "fit.npz"
    kind(max_epochs=1, checkpoint=path).fit(TEXTS, LABELS)
    resumed = kind(max_epochs=3, checkpoint=path).fit(TEXTS, LABELS)
    whole = kind(max_epochs=3).fit(TEXTS, LABELS)
    assert_array_equal(resumed.loss_history_, whole.loss_history_)
    assert_array_equal(resumed.predict_proba(TEXTS), whole.predict_proba(TEXTS))
    with pytest.raises(ValueError, match="belongs to another fit"):
        kind(checkpoint=path).fit(TEXTS[:-1], LABELS[:-1])


def test_models_with_vectorizers_and_embeddings_come_back_from_files(kind, tmp_path):
    embeddings = (np.array(["bad", "film", "good", "here"]), np.eye(4))
    model = kind(vectorizer=CountVectorizer(), embeddings=embeddings).fit(TEXTS, LABELS)
    pluri.save(model, tmp_path / "model.skops")
    loaded = pluri.load(tmp_path / "model.skops")
    assert_array_equal(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert_array_equal(loaded.predict_proba_samples(TEXTS, 2), model.predict_proba_samples(TEXTS, 2))


@pytest.mark.parametrize("change", ["shape", "NaN", "missing", "vocabulary"])
def test_a_damaged_model_is_refused(model, change, tmp_path):
    import copy

    wrong = copy.deepcopy(model)
    name = sorted(wrong.params_)[0]
    if change == "vocabulary":
        wrong.vocabulary_ = wrong.vocabulary_[::-1].copy()
    elif change == "missing":
        del wrong.params_[name]
    elif change == "shape":
        wrong.params_[name] = wrong.params_[name][:-1].copy()
    else:
        wrong.params_[name] = np.full_like(wrong.params_[name], np.nan)
    with pytest.raises(ValueError, match=r"is damaged: (params_|vocabulary_)"):
        pluri.save(wrong, tmp_path / "model.skops")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (["a", ""], [0, 1], "at least one token in each sequence, got none in sequence 1"),
        ([["a"], []], [0, 1], "got none in sequence 1"),
        (["a", "b"], [1, 1], "y must hold at least two classes, got one class"),
        (["a", "b"], [0, 1, 1], "inconsistent"),
        (["a", "b"], None, "requires y"),
        (["a", "b"], [0.5, 1.25], "Unknown label type"),
        ([[np.nan], [1]], [0, 1], "whole token numbers, got nan"),
        (np.array([[-1, -1], [1, 2]]), [0, 1], "got none in sequence 0"),
    ],
)
def test_bad_data_are_refused_and_nothing_is_half_fitted(kind, X, y, message):
    model = kind()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"dropout": 1.0}, "dropout must be a number of at least 0 and below 1"),
        ({"max_epochs": 0}, "max_epochs must be an integer of at least 1"),
        ({"validation_fraction": -0.1}, "validation_fraction must be"),
        ({"learning_rate": 0.0}, "learning_rate must be a positive number"),
        ({"embedding_size": 0}, "embedding_size must be"),
        ({"min_count": 0}, "min_count must be"),
        ({"max_length": 0}, "max_length must be"),
        ({"freeze_embeddings": "yes"}, "freeze_embeddings must be True or False"),
        ({"checkpoint": 3}, "checkpoint must be a path"),
        ({"embeddings": np.eye(3)}, "embeddings must be of words, as X is"),
    ],
)
def test_impossible_settings_are_refused(kind, setting, message):
    with pytest.raises(ValueError, match=message):
        kind(**setting).fit(TEXTS, LABELS)


def test_questions_before_a_fit_and_of_another_kind_are_refused(kind, model):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        kind().predict(TEXTS)
    with pytest.raises(ValueError, match="X must hold words, as the data of fit did, got numbers"):
        model.predict([[1, 2]])
    with pytest.raises(ValueError, match="got none in sequence 0"):
        model.predict([""])
    with pytest.raises(ValueError, match="n_predictive must be"):
        model.predict_proba_samples(TEXTS, 0)


def test_long_sequences_are_cut_where_that_is_asked_for(kind):
    model = kind(max_length=2).fit(TEXTS, LABELS)
    assert_array_equal(model.predict_proba(["good film"]), model.predict_proba(["good film a here"]))
