"""Decoders as estimators: what they report, decode and store, held against what their probabilities say."""

import signal
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import pluri
from pluri.networks import (
    ConstantRate,
    EpochRamp,
    FrameTagger,
    InverseSigmoidDecay,
    SequenceDecoder,
    SequenceParser,
    UnknownTokenWarning,
)
from pluri.networks.error_rates import edit_distances
from pluri.networks.sequence_parser import _tree_over, linear_trees
from pluri.plotting import AttentionDisplay

pytestmark = pytest.mark.filterwarnings("ignore:the free-running error rose")
RNG = np.random.default_rng(0)


def sticky(n, length=10, seed=0):
    """Noisy frames of labels that seldom change."""
    rng = np.random.default_rng(seed)
    y = [np.repeat(rng.integers(3, size=length // 2), 2) for _ in range(n)]
    return [np.eye(3)[labels] + 0.5 * rng.normal(size=(length, 3)) for labels in y], y


def tagger(**settings):
    return FrameTagger("rnn", **{"hidden_size": 8, "embedding_size": 3, "batch_size": 8, "max_epochs": 4,
                                 "random_state": 0} | settings)  # fmt: skip


X, Y = sticky(24)
LONG = [*X[:4], RNG.normal(size=(6, 3))]


@pytest.fixture(scope="module")
def tagged():
    return tagger().fit(X, Y)


def test_both_errors_are_reported_and_are_those_of_the_probabilities(tagged):
    scores = tagged.evaluate(X, Y)
    truth = np.concatenate(Y)
    forced = tagged.predict_proba(X, Y)
    assert_allclose(forced.sum(axis=1), 1.0)
    assert scores.teacher_forced_error == pytest.approx(np.mean(forced.argmax(axis=1) != truth))
    assert scores.perplexity == pytest.approx(np.exp(-np.log(forced[np.arange(len(truth)), truth]).mean()), rel=1e-4)
    greedy = tagged.predict(X, beam_size=1)
    assert scores.free_running_error == pytest.approx(np.mean(greedy != truth))
    assert_array_equal(greedy, tagged.predict_proba(X).argmax(axis=1))
    assert tagged.score(X, Y) == pytest.approx(np.mean(tagged.predict(X) == truth))
    assert tagged.score_teacher_forced(X, Y) == pytest.approx(1 - scores.teacher_forced_error)
    assert tagged.perplexity(X, Y) == pytest.approx(scores.perplexity)
    assert {"teacher_forced_error", "free_running_error", "perplexity", "held_out"} == set(tagged.scores_)
    assert tagged.scores_["held_out"]
    for name in ("loss", "teacher_forced", "free_running", "perplexity", "epsilon"):
        assert getattr(tagged, f"{name}_history_").shape == (1, tagged.n_iter_)
    assert_allclose(tagged.epsilon_history_[0], [0.5, 0.45, 0.4, 0.35][: tagged.n_iter_])
    best = tagged.best_epoch_[0] - 1
    assert tagged.free_running_history_[0, best] == tagged.free_running_history_.min()
    assert tagged.scores_["free_running_error"] == pytest.approx(tagged.free_running_history_[0, best])
    assert "free-running error" in tagged.summary()


def test_candidates_are_sorted_and_have_the_probabilities_of_their_paths(tagged):
    found = tagged.decode(LONG, n_best=3, beam_size=5)
    assert [len(best) for best in found] == [3] * 5
    for x, best in zip(LONG, found):
        log_probs = [one.log_prob for one in best]
        assert log_probs == sorted(log_probs, reverse=True)
        path = np.array(best[0].tokens)
        steps = tagged.predict_proba([x], [path])
        assert_allclose(np.log(steps[np.arange(len(path)), path]).sum(), log_probs[0], rtol=1e-3)
    assert_array_equal(np.concatenate([best[0].tokens for best in found]), tagged.predict(LONG, beam_size=5))
    parents, labels, scores = tagged.beam_tree(LONG[0], beam_size=5)
    assert scores[-1].max() == pytest.approx(found[0][0].log_prob, rel=1e-4)
    assert parents.shape == (10, 5)
    assert len(labels) == 10


def test_errors_by_position_average_to_the_errors(tagged):
    found, scores = tagged.errors_by_position(X, Y), tagged.evaluate(X, Y)
    assert found["free-running"].mean() == pytest.approx(scores.free_running_error)
    assert found["teacher-forced"].mean() == pytest.approx(scores.teacher_forced_error)


def test_draws_follow_the_probabilities_and_cold_ones_are_greedy(tagged):
    cold = tagged.sample(X[:4], 2, temperature=1e-3, random_state=0)
    assert_array_equal(cold[1], tagged.predict(X[:4], beam_size=1))
    drawn = tagged.sample(X[:4], 300, random_state=1)[:, ::10]  # the first frame of each sequence
    expected = tagged.predict_proba(X[:4])[::10]
    shares = np.stack([(drawn == label).mean(axis=0) for label in tagged.classes_], axis=1)
    # 4.4 standard errors for each of 12 shares: a false alarm in 8,000 seeds.
    assert (np.abs(shares - expected) < 4.4 * np.sqrt(expected * (1 - expected) / 300) + 1e-6).all()


def test_a_seed_fixes_a_fit_and_an_ensemble_averages_its_members(tagged):
    again = tagger().fit(X, Y)
    assert all(np.array_equal(again.params_[name], value) for name, value in tagged.params_.items())
    both = tagger(n_members=2, max_epochs=2).fit(X, Y)
    assert both.loss_history_.shape == (2, 2)
    alone = []
    for member in range(2):
        one = clone(both).set_params(n_members=1)
        vars(one).update({name: value for name, value in vars(both).items() if name.endswith("_")})
        one.n_members_ = 1
        one.params_ = {name: value[member : member + 1] for name, value in both.params_.items()}
        alone.append(one.predict_proba(X, Y))
    assert np.abs(alone[0] - alone[1]).max() > 1e-3
    assert_allclose(both.predict_proba(X, Y), (alone[0] + alone[1]) / 2, rtol=1e-4, atol=1e-6)


class StopsOnce:
    """A schedule during which Ctrl-C comes, the first time."""

    def __init__(self, at):
        self.at = at

    def __call__(self, i):
        if i == self.at:
            self.at = None
            signal.raise_signal(signal.SIGINT)
        return 0.5


def test_ctrl_c_keeps_the_best_epoch_and_a_checkpoint_goes_on_to_the_last_bit(tmp_path):
    schedule = StopsOnce(8)  # in the third of epochs of three minibatches; 0 and the last are asked for first
    model = tagger(schedule=schedule, checkpoint=tmp_path / "fit.npz", early_stopping=None)
    with pytest.raises(KeyboardInterrupt) as stop:
        model.fit(X, Y)
    assert stop.value.result is model
    assert model.n_iter_ == 2
    assert np.isfinite(model.predict_proba(X)).all()
    resumed = clone(model).set_params(schedule=schedule).fit(X, Y)
    whole = tagger(schedule=ConstantRate(0.5), early_stopping=None).fit(X, Y)
    assert resumed.n_iter_ == 4
    assert_array_equal(resumed.loss_history_, whole.loss_history_)
    assert all(np.array_equal(resumed.params_[name], value) for name, value in whole.params_.items())
    with pytest.raises(ValueError, match="belongs to another fit"):
        clone(model).set_params(schedule=schedule).fit(X[:-1], Y[:-1])


def test_a_warm_start_goes_on_from_what_was_learned(tagged):
    model = tagger(warm_start=True, max_epochs=1, early_stopping=None).fit(X, Y)
    first = model.loss_history_[0, 0]
    assert model.fit(X, Y).loss_history_[0, 0] < first
    with pytest.raises(ValueError, match="warm_start needs"):
        model.fit(X, [labels + 1 for labels in Y])
    with pytest.raises(ValueError, match="warm_start needs"):
        model.set_params(hidden_size=4).fit(X, Y)


def words_of(row):
    return ["red", "green", "blue"][int(row.argmax())], "dot"


V = np.repeat(np.eye(3), 8, axis=0)
W = [["a", *words_of(row)] for row in V]


def decoder(**settings):
    return SequenceDecoder("gru", **{"hidden_size": 12, "embedding_size": 6, "batch_size": 8, "max_epochs": 25,
                                     "learning_rate": 0.02, "random_state": 0} | settings)  # fmt: skip


@pytest.fixture(scope="module")
def captioned():
    return decoder().fit(V, W)


def test_a_decoder_learns_to_write_and_reports_both_errors(captioned):
    assert captioned.predict(np.eye(3)) == [["a", "red", "dot"], ["a", "green", "dot"], ["a", "blue", "dot"]]
    assert captioned.score(V, W) == 1.0
    scores = captioned.evaluate(V, W)
    assert scores.free_running_error == scores.teacher_forced_error == 0.0
    steps = captioned.predict_proba(np.eye(3), W[::8])
    assert [part.shape for part in steps] == [(4, 6)] * 3
    best = captioned.decode(np.eye(3)[:1], n_best=2)[0]
    true = [*captioned.vocabulary_.tolist()].index
    log_probs = [np.log(part[np.arange(4), [*map(true, words), 5]]) for part, words in zip(steps, W[::8])]
    assert_allclose(log_probs[0].sum(), best[0].log_prob, rtol=1e-3, atol=1e-4)
    assert scores.perplexity == pytest.approx(np.exp(-np.mean(log_probs)), rel=1e-4)
    assert captioned.sample(np.eye(3), 2, temperature=1e-3, random_state=0)[1] == [["a", "green", "dot"]] * 2
    assert set(captioned.errors_by_position(V, W)) == {"teacher-forced", "free-running"}
    _, tokens, _ = captioned.beam_tree(np.eye(3)[0], beam_size=2)
    assert tokens[0][0] == "a"


def test_what_is_cut_off_is_said(captioned):
    with pytest.warns(UserWarning, match="1 of 1 outputs did not end within max_length"):
        assert captioned.predict(np.eye(3)[:1], max_length=2) == [["a", "red"]]
    assert captioned.decode(np.eye(3)[:1], max_length=2)[0][0].truncated


def test_unknown_tokens_are_counted_and_wrong(captioned):
    strange = [["a", "pink", "dot"]] * 3
    with pytest.warns(UnknownTokenWarning, match="3 of 9 tokens"):
        scores = captioned.evaluate(np.eye(3), strange)
    assert scores.free_running_error == pytest.approx(1 / 3)
    assert np.isfinite(scores.perplexity)


def test_files_hold_decoders(captioned, tagged, tmp_path):
    for model, question in ((captioned, np.eye(3)), (tagged, X)):
        pluri.save(model, tmp_path / "model.skops")
        again = pluri.load(tmp_path / "model.skops")
        assert_array_equal(again.predict(question), model.predict(question))
    scheduled = clone(captioned).set_params(schedule=InverseSigmoidDecay(20.0))
    pluri.save(scheduled, tmp_path / "model.skops")
    assert pluri.load(tmp_path / "model.skops").schedule == InverseSigmoidDecay(20.0)


def test_a_parser_reads_words_and_writes_trees():
    sentences = [["the", "cat", "sleeps"], ["dogs", "sleep"]] * 12
    trees = ["(S (NP the cat) (VP sleeps))", "(S (NP dogs) (VP sleep))"] * 12
    settings = {"hidden_size": 12, "embedding_size": 6, "batch_size": 8, "max_epochs": 25, "learning_rate": 0.02}
    parser = SequenceParser("gru", bidirectional=False, random_state=0, **settings).fit(sentences, trees)
    assert parser.predict_trees(sentences[:2]) == trees[:2]
    assert parser.score(sentences, trees) == 1.0
    assert parser.bracket_scores(sentences, trees).n_invalid == 0
    with pytest.warns(UnknownTokenWarning, match="1 of 2 tokens"):
        parser.predict([["dogs", "bark"]])
    weights = parser.attention_weights(sentences[:2], linear_trees(trees[:2]))
    assert [part.shape for part in weights] == [(10, 3), (9, 2)]
    assert_allclose(weights[0].sum(axis=1), 1.0, rtol=1e-5)
    display = AttentionDisplay.from_estimator(parser, sentences[0], trees[0])  # a tree, as everywhere in a parser
    assert display.weights.shape == (10, 3)
    with pytest.raises(ValueError, match="matching brackets"):
        clone(parser).fit(sentences, ["(S the cat"] * 24)


def test_trees_and_tokens_go_both_ways():
    tree = "(S (NP the (ADJ big) cat) (VP sleeps))"
    (tokens,) = linear_trees([tree])
    assert _tree_over(["the", "big", "cat", "sleeps"], tokens) == tree
    assert linear_trees([tokens]) == [tokens]
    assert _tree_over(["the", "cat"], tokens) is None
    assert _tree_over(["the", "big", "cat", "sleeps"], tokens[:-1]) is None


def distance(first, second):
    """The definition of the edit distance."""
    if not first or not second:
        return len(first) + len(second)
    return min(
        distance(first[1:], second) + 1,
        distance(first, second[1:]) + 1,
        distance(first[1:], second[1:]) + (first[0] != second[0]),
    )


@pytest.mark.parametrize("seed", range(5))
def test_edit_distances_follow_their_definition(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(3, size=(6, 4)), rng.integers(3, size=(6, 5))
    n, m = rng.integers(5, size=6), rng.integers(6, size=6)
    expected = [distance(tuple(a[:i]), tuple(b[:j])) for a, i, b, j in zip(one, n, other, m)]
    assert_array_equal(edit_distances(one, n, other, m), expected)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: decoder().fit(V, ["a red dot"] * 24), "y must hold sequences of tokens, got 'a red dot' at 0"),
        (lambda: decoder().fit(V, W[:-1]), "y must have one sequence for each of 24 inputs, got 23"),
        (lambda: decoder().fit(V, [[]] * 24), "y must hold at least one token"),
        (lambda: decoder().fit(V, [["a"], [1], *W[2:]]), "tokens of one kind"),
        (lambda: decoder().fit(V, [[1.5]] * 24), "tokens that are strings or integers, got 1.5"),
        (lambda: decoder().fit([[], *W[1:]], W), "X must hold sequences of at least one token, got an empty one at 0"),
        (lambda: decoder().fit([np.ones((0, 2)), np.ones((3, 2))], W[:2]), "sequences of at least one vector"),
        (lambda: decoder().fit([np.ones((2, 2)), np.ones((3, 1))], W[:2]), "with 2 features, got 1 at 1"),
        (lambda: decoder().fit(["a b", "c"], W[:2]), "split strings into tokens first"),
        (lambda: decoder(attention=True).fit(V, W), "attention must be False where X holds vectors"),
        (lambda: decoder(schedule=lambda i: 1.0 + i).fit(V, W), "probabilities from 0 to 1"),
        (lambda: decoder(schedule="cosine").fit(V, W), "schedule must be one of"),
        (lambda: decoder(feedback="beam").fit(V, W), "feedback must be one of"),
        (lambda: decoder(dropout=1.0).fit(V, W), "dropout must be a number"),
        (lambda: decoder(min_epochs=99).fit(V, W), "min_epochs must be at most max_epochs"),
        (lambda: decoder().fit(np.full((24, 3), np.nan), W), "Input X contains NaN"),
        (lambda: tagger().fit(X, [np.zeros(10, int)] * 24), "y must have at least two classes, got one: 0"),
        (lambda: tagger().fit(X, Y[:-1]), "y must have one label for each of 240 samples"),
        (lambda: tagger().fit([np.empty((0, 3))], [[]]), "only empty sequences"),
        (lambda: tagger().fit(X, None), "requires y"),
    ],
)
def test_bad_input_gets_a_sentence_and_leaves_nothing_behind(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_questions_of_another_kind_are_refused(captioned, tagged):
    with pytest.raises(ValueError, match="X must hold vectors as in fit, got lists of tokens"):
        captioned.predict([["a"]])
    with pytest.raises(ValueError, match="X must have 3 features, got 2"):
        captioned.predict(np.ones((1, 2)))
    with pytest.raises(ValueError, match="attention=True"):
        captioned.attention_weights(V, W)
    with pytest.raises(ValueError, match="n_best must be from 1 to 10"):
        captioned.decode(np.eye(3), n_best=11)
    with pytest.raises(ValueError, match="beam_size must be"):
        tagged.predict(X, beam_size=0)


def test_empty_sequences_have_empty_answers(tagged):
    found = tagged.decode([X[0], np.empty((0, 3)), X[1]])
    assert [len(best[0].tokens) for best in found] == [10, 0, 10]


def test_schedules_that_are_hardly_meant_are_warned_of():
    with pytest.warns(UserWarning, match="schedule begins at 0: below 0.25"):
        decoder(schedule=ConstantRate(0.0), max_epochs=1).fit(V, W)
    with pytest.warns(UserWarning, match="schedule does not decay"):
        decoder(schedule=InverseSigmoidDecay(1e6), max_epochs=1).fit(V, W)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger(schedule=EpochRamp(0.0, 0.0), max_epochs=1).fit(X, Y)
