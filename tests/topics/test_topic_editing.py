"""Edits of topics against closed forms: what is added, moved and kept; the way back; files and their abuse."""

import copy
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from pluri import io
from pluri.datasets import make_topic_documents
from pluri.topics import HDPTopicModel, HierarchicalLDA, LatentDirichletAllocation, SupervisedLDA, apply_edits
from pluri.topics.editing import read_edits, regrouping
from pluri.topics.held_out.exact import exact_likelihood

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*max_topics")
SHORT = {"n_warmup": 10, "n_draws": 3, "thin": 1, "random_state": 0}
MODELS = {
    "gibbs": LatentDirichletAllocation(6, inference="gibbs", **SHORT),
    "learned priors": LatentDirichletAllocation(
        6, inference="gibbs", doc_topic_prior="learn", topic_word_prior="learn", **SHORT
    ),
    "vb": LatentDirichletAllocation(6, inference="vb", random_state=0),
    "em": LatentDirichletAllocation(6, inference="em", random_state=0),
    "seeded": LatentDirichletAllocation(6, inference="gibbs", seed_words={0: [1, 2], 5: [7]}, **SHORT),
    "hdp": HDPTopicModel(**SHORT),
    "hdp vb": HDPTopicModel("vb", max_topics=6, max_doc_topics=3, max_iter=5, random_state=0),
}
WORDS = [f"w{column}" for column in range(20)]
EDITS = {
    "rename": lambda model, X: model.rename(1, "second"),
    "merge": lambda model, X: model.merge([0, 2], name="both"),
    "drop": lambda model, X: model.drop(1),
    "drop with documents": lambda model, X: model.drop(1, X),
    "split": lambda model, X: model.split(0, X, random_state=1),
    "pin": lambda model, X: model.pin(1, ["w3", "w5"], strength=7.0),
    "reduce": lambda model, X: model.reduce(2),
    "reduce by likelihood": lambda model, X: model.reduce(2, cost="likelihood"),
    "label": lambda model, X: model.label_with(lambda node: node.words[0]),
}


@pytest.fixture(scope="module")
def corpus():
    return make_topic_documents(
        n_documents=40, n_words_per_document=25, n_words=20, n_topics=4, doc_topic_prior=0.3, topic_word_prior=0.1,
        random_state=3,
    ).counts  # fmt: skip


@pytest.fixture(scope="module")
def models(corpus):
    return {name: clone(made).fit(corpus).name_words(WORDS) for name, made in MODELS.items()}


def edited(models, name, edit, corpus):
    return EDITS[edit](copy.deepcopy(models[name]), corpus)


def state(model):
    names = ("components_", "topic_word_", "topic_weight_", "doc_topic_prior_", "topic_word_prior_")
    return {name: np.array(getattr(model, name)) for name in names}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", MODELS)
def test_what_was_edited_holds_together_and_comes_back_to_the_last_bit(models, name, edit, corpus, tmp_path):
    before = models[name]
    model = edited(models, name, edit, corpus)
    model._check_fitted_state()
    assert_allclose(model.topic_word_, model.components_ / model.components_.sum(axis=1, keepdims=True), rtol=1e-9)
    assert_allclose(model.topic_weight_.sum(), 1.0)
    assert_allclose(model.transform(corpus).sum(axis=1), 1.0)
    assert np.isfinite(model.held_out(corpus, random_state=0).total)
    assert len(model.top_words(3)) == len(model.topic_word_) == model.transform(corpus[:2]).shape[1]
    if edit != "pin" or name not in ("em", "hdp", "hdp vb"):  # there a pinned word counts as seen
        assert_allclose(model._word_counts().sum(axis=0), before._word_counts().sum(axis=0), rtol=1e-9, atol=1e-6)
    io.save(model, tmp_path / "model.skops")
    loaded = io.load(tmp_path / "model.skops")
    assert loaded.edits_ == model.edits_
    for found in (model.undo(), loaded.undo()):
        for key, value in state(before).items():
            assert_array_equal(getattr(found, key), value, err_msg=key)
        assert not hasattr(found, "topic_names_")
        assert found.edits_ == []
    with pytest.raises(ValueError, match="undo must follow an edit"):
        model.undo()


@pytest.mark.parametrize("edit", [*(edit for edit in EDITS if edit != "split"), "undo"])
def test_ctrl_c_at_any_line_of_an_edit_leaves_the_model_as_it_was(models, edit, corpus, press_at_line):
    edits = EDITS | {"undo": lambda model, X: model.undo()}
    line = interrupted = 0
    while interrupted == line:
        model = copy.deepcopy(models["vb"]).merge([3, 4])
        before = copy.deepcopy(vars(model))
        with press_at_line(line, "editable.py", "named.py", "history.py"):
            try:
                edits[edit](model, corpus)
            except KeyboardInterrupt:
                interrupted += 1
        if interrupted > line:
            assert set(vars(model)) == set(before)
            for name, value in before.items():
                np.testing.assert_equal(getattr(model, name), value, err_msg=name)
        line += 1
    assert line > 5


@pytest.mark.parametrize("name", MODELS)
def test_a_merger_adds_tokens_shares_and_priors(models, name, corpus):
    before, model = models[name], edited(models, name, "merge", corpus)
    counts, alpha = before._word_counts(), before._prior_vector()
    assert_allclose(model._word_counts()[0], counts[0] + counts[2], atol=1e-9)
    assert_allclose(model._prior_vector()[0], alpha[0] + alpha[2])
    assert_allclose(model.topic_weight_[0], before.topic_weight_[[0, 2]].sum())
    assert_array_equal(model.topic_word_[1:], before.topic_word_[[1, *range(3, len(counts))]])
    # A document without words has the prior mean, which a merger adds up.
    empty = np.zeros((1, 20))
    assert_allclose(model.transform(empty)[0, 0], before.transform(empty)[0, [0, 2]].sum())
    assert model.topic_graph().nodes[0].label == "both"


def made_by_hand(topic_word, alpha, tokens=1e9):
    """A model whose topics are known; so many tokens that priors do not count."""
    model = LatentDirichletAllocation(len(topic_word), inference="gibbs", random_state=0)
    model.components_ = tokens * np.asarray(topic_word)
    model.topic_word_, model.topic_word_prior_ = np.asarray(topic_word), 1e-8
    model.topic_weight_ = np.full(len(topic_word), 1 / len(topic_word))
    model.doc_topic_prior_, model.n_features_in_ = np.asarray(alpha), len(topic_word[0])
    return model


def test_merging_equal_topics_changes_no_likelihood_and_adds_their_shares():
    """Sums of entries of a Dirichlet vector are Dirichlet, with the parameters added."""
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.ones(5), 2)
    X = rng.integers(0, 2, (6, 5))
    before = made_by_hand([first, second, first], [0.3, 0.5, 0.4])
    model = copy.deepcopy(before).merge([0, 2])
    apart, together = (
        exact_likelihood(one.topic_word_, one._prior_vector(), X).log_likelihood for one in (before, model)
    )
    assert_allclose(together, apart, rtol=1e-7)
    for one in (before, model):
        one.set_params(mean_change_tol=1e-12, max_doc_update_iter=5000)
    # The expected counts are an approximation, but one word has an exact posterior.
    single = np.eye(5)
    assert_allclose(model.transform(single)[:, 0], before.transform(single)[:, [0, 2]].sum(axis=1), rtol=1e-6)


def test_tokens_of_a_dropped_topic_go_by_bayes_rule(models, corpus):
    before, model = models["gibbs"], edited(models, "gibbs", "drop", corpus)
    counts, left = before._word_counts(), [0, 2, 3, 4, 5]
    chance = before.topic_weight_[left, None] * before.topic_word_[left]
    expected = counts[left] + counts[1] * chance / chance.sum(axis=0)
    assert_allclose(model._word_counts(), expected, atol=1e-9)
    assert_allclose(model.topic_weight_, expected.sum(axis=1) / expected.sum(), rtol=1e-9)
    assert_allclose(model.doc_topic_prior_, before._prior_vector()[left])


def test_tokens_of_a_dropped_topic_go_to_the_topics_of_their_documents():
    """Two documents share a word of the topic that is dropped; each has one other topic, which takes it."""
    words = np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    X = np.array([[50, 0, 50], [0, 50, 20]])
    counts = np.array([[50, 0, 5], [0, 50, 5], [0, 0, 60.0]])
    shares = np.array([[0.5, 0.0, 0.5], [0.0, 0.7, 0.3]])
    without = np.array([[1.0, 0.0], [0.0, 1.0]])
    weight = np.array([0.4, 0.3, 0.3])
    moved = regrouping.moved_by_documents(counts, words, weight, 2, sparse.csr_matrix(X), shares, without)
    own = np.array([50 * 0.5 / (0.5 * 0.5 + 0.5), 20 * 0.3 / (0.7 * 0.5 + 0.3)])
    assert_allclose(moved[:, 2], 60 * own / own.sum())
    assert_allclose(moved[:, :2], 0.0)
    # Without documents the two topics, which have the word alike, share it by their sizes.
    assert_allclose(regrouping.moved_by_words(counts, words, weight, 2)[:, 2], 60 * np.array([4, 3]) / 7)


def test_a_split_finds_the_two_subjects_that_were_one_topic():
    """Documents are of one of two subjects that share no word: their tokens can only be divided one way."""
    rng = np.random.default_rng(0)
    X = np.zeros((60, 9), dtype=int)
    for row in range(60):
        X[row, 3 * (row % 3) : 3 * (row % 3) + 3] = rng.multinomial(40, np.full(3, 1 / 3))
    laws = np.kron(np.eye(3), np.full(3, 1 / 3))
    model = made_by_hand([(laws[0] + laws[1]) / 2 * 0.999 + 0.001 / 9, laws[2] * 0.999 + 0.001 / 9], [0.1, 0.1], 2400)
    whole = model._word_counts()[0]
    model.split(0, X, random_state=0)
    parts = model._word_counts()[[0, 2]]
    assert_allclose(parts.sum(axis=0), whole)
    assert sorted(part[:6].argmax() // 3 for part in parts) == [0, 1]
    assert (parts[:, :6].reshape(2, 2, 3).sum(axis=2).max(axis=1) > 0.99 * parts[:, :6].sum(axis=1)).all()
    assert_allclose(model._prior_vector()[[0, 2]].sum(), 0.1)


def test_pinned_words_count_as_seen_so_often(models):
    before, model = models["gibbs"], edited(models, "gibbs", "pin", None)
    expected = before.components_.copy()
    expected[1, [3, 5]] += 7.0
    assert_allclose(model.components_, expected)
    assert_allclose(model._word_counts(), before._word_counts())
    assert_allclose(model.topic_word_prior_[1, [2, 3]], before.topic_word_prior_ + np.array([0.0, 7.0]))
    assert model.topic_word_[1, 3] > before.topic_word_[1, 3]


def test_reduce_merges_what_the_tree_of_mergers_says(models):
    from pluri.topics import TopicTree

    before = models["gibbs"]
    groups = TopicTree.of(before, least_share=0.0).groups(3)
    model = copy.deepcopy(before).reduce(3)
    assert_allclose(model.topic_weight_, [before.topic_weight_[group].sum() for group in groups])
    mergers = [{"edit": "merge", "topics": group} for group in groups if len(group) > 1]
    one_by_one = apply_edits(copy.deepcopy(before), mergers)
    order = np.lexsort(one_by_one.components_.T), np.lexsort(model.components_.T)
    assert_allclose(one_by_one.components_[order[0]], model.components_[order[1]], rtol=1e-9)


def test_learning_goes_on_with_the_topics_as_they_were_edited(models, corpus):
    for name in ("gibbs", "vb", "seeded"):
        model = edited(models, name, "merge", corpus)
        n_tokens = model._word_counts().sum()
        model.partial_fit(corpus)
        assert model.topic_word_.shape == (5, 20)
        assert model.topic_names_[0] == "both"
        assert name == "vb" or np.isclose(model._word_counts().sum(), n_tokens + corpus.sum())
        with pytest.raises(ValueError, match="undo must follow an edit"):
            model.undo()


def test_a_new_fit_forgets_edits(models, corpus):
    model = edited(models, "gibbs", "merge", corpus).fit(corpus)
    assert not hasattr(model, "topic_names_")
    assert not getattr(model, "edits_", [])


def test_online_hdp_does_not_go_on_from_edited_topics(corpus):
    model = HDPTopicModel("svi", max_topics=6, max_doc_topics=3, max_iter=2, random_state=0).fit(corpus)
    with pytest.warns(UserWarning, match="their names are forgotten"):
        model.rename(0, "first").partial_fit(corpus)
    with pytest.raises(ValueError, match="partial_fit must not follow edits"):
        model.merge([0, 1]).partial_fit(corpus)
    assert model.undo().partial_fit(corpus).topic_word_.shape[1] == 20


def test_topics_of_a_file_are_counted_as_before_all_its_edits(models, tmp_path):
    before = models["gibbs"]
    edits = [
        {"edit": "merge", "topics": [1, 4]},
        {"edit": "drop", "topic": 0},
        {"edit": "rename", "topic": 5, "name": "five"},
        {"edit": "rename", "topic": 4, "name": "one and four"},
        {"edit": "merge", "topics": [2, 3], "name": "two and three"},
    ]
    path = tmp_path / "edits.json"
    path.write_text(json.dumps({"topics": 6, "edits": edits}))
    model = apply_edits(copy.deepcopy(before), path)
    assert model.topic_names_ == ["one and four", "two and three", "five"]
    # Dropping 0 comes after the merger, which changed the shares that its tokens go by.
    by_hand = copy.deepcopy(before).merge([1, 4]).drop(0).merge([1, 2])
    assert_array_equal(model.components_, by_hand.components_)
    for _ in edits:
        model.undo()
    assert_array_equal(model.components_, before.components_)


def test_edits_are_applied_all_or_none(models):
    model = copy.deepcopy(models["gibbs"])
    good = [{"edit": "merge", "topics": [0, 1]}, {"edit": "drop", "topic": 2}]
    for bad, told in [
        ({"edit": "rename", "topic": 2, "name": "gone"}, r"edit 3 \(rename\): topic 2 must not be named after"),
        ({"edit": "rename", "topic": 9, "name": "far"}, r"edit 3 \(rename\): topics must be whole numbers from 0 to 5"),
        ({"edit": "merge", "topics": [0, 1]}, r"edit 3 \(merge\): topics must be at least two different topics"),
        ({"edit": "split", "topic": 3}, r"edit 3 \(split\): a topic can be split only with documents"),
        ({"edit": "pin", "topic": 3, "words": ["nowhere"]}, r"edit 3 \(pin\): words names 'nowhere', which is not"),
        ({"edit": "rename", "topic": 3, "name": " "}, r"edit 3 \(rename\): name must be a text"),
    ]:
        with pytest.raises(ValueError, match=told):
            apply_edits(model, [*good, bad])
        assert len(model.topic_word_) == model.n_components == 6
        assert not getattr(model, "edits_", [])


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ([{"edit": "merge", "topics": 3}], "topics must be a list of numbers of topics, got 3"),
        ([{"edit": "drop", "topic": -1}], "topic must be the number of a topic, got -1"),
        ([{"edit": "drop", "topic": True}], "topic must be the number of a topic, got True"),
        ([{"edit": "drop"}], r"edit 1 \(drop\) must have topic, got \[\]"),
        ([{"edit": "drop", "topic": 1, "why": "junk"}], "got .'topic', 'why'."),
        ([["drop", 1]], "edit 1 must be an object"),
        ({"edit": "drop"}, "a file of edits must have edits"),
        ("{", "the file of edits must be JSON"),
    ],
)
def test_files_that_are_no_edits_are_refused(edits, told, tmp_path):
    if isinstance(edits, str):
        (tmp_path / "edits.json").write_text(edits)
        edits = tmp_path / "edits.json"
    with pytest.raises(ValueError, match=told):
        read_edits(edits)


def test_edits_of_another_model_are_refused(models):
    with pytest.raises(ValueError, match="must be of a model with 6 topics, as this one, got edits of 8"):
        apply_edits(copy.deepcopy(models["gibbs"]), {"topics": 8, "edits": []})


def test_models_that_cannot_be_edited_have_names_all_the_same(corpus):
    tree = HierarchicalLDA(**SHORT).fit(corpus)
    assert apply_edits(tree, [{"edit": "rename", "topic": 0, "name": "all"}]).topic_graph().nodes[0].label == "all"
    rated = SupervisedLDA(3, **SHORT).fit(corpus, np.arange(40.0))
    with pytest.raises(TypeError, match=r"edit 1 \(merge\): words and numbers of topics can be edited of Latent"):
        apply_edits(rated, [{"edit": "merge", "topics": [0, 1]}])


def test_wrong_edits_say_what_is_allowed(models, corpus):
    model = models["gibbs"]
    for attempt, told in [
        (lambda: model.merge([0]), "topics must be at least two different topics"),
        (lambda: model.merge([0, 6]), "topics must be a whole number from 0 to 5, got 6"),
        (lambda: model.drop("0"), "topic must be a whole number from 0 to 5, got '0'"),
        (lambda: model.split(0, corpus, into=1), "into must be"),
        (lambda: model.pin(0, "w1"), "words must be a list of words"),
        (lambda: model.pin(0, []), "words must have at least one word"),
        (lambda: model.pin(0, [99]), "words names column 99"),
        (lambda: model.reduce(7), "n_topics must be at most the number of topics"),
        (lambda: model.rename(0, ""), "name must be a text that is not empty"),
        (lambda: model.label_with(lambda node: 3), "name_topic must return a text"),
    ]:
        with pytest.raises(ValueError, match=told):
            attempt()
    assert not getattr(model, "edits_", [])


CHANGES = {
    "became out of range": lambda step: step["became"].__setitem__(0, 99),
    "two topics in one place": lambda step: step["became"].__setitem__(3, step["became"][4]),
    "rows of another width": lambda step: step.__setitem__("components", step["components"][:, :-1]),
    "too few rows": lambda step: step.__setitem__("components", step["components"][:-1]),
    "totals of others": lambda step: step.__setitem__("totals", step["totals"] * 2),
    "a negative prior": lambda step: step.__setitem__("doc_topic_prior", -step["doc_topic_prior"]),
    "no number": lambda step: step["topic_weight"].__setitem__(0, np.nan),
    "kept is text": lambda step: step.__setitem__("kept", "all"),
    "names too few": lambda step: step.__setitem__("names", ["a"]),
    "a missing key": lambda step: step.pop("topic_word_prior"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_steps_that_were_changed_in_a_file_are_refused(models, change):
    model = copy.deepcopy(models["gibbs"]).rename(0, "a").merge([1, 2])
    model._check_fitted_state()
    CHANGES[change](model._undo_steps[-1])
    with pytest.raises(ValueError, match="_undo_steps"):
        model._check_fitted_state()


def test_names_that_were_changed_in_a_file_are_refused(models):
    for names in (["a"], "text", [1] * 6):
        model = copy.deepcopy(models["gibbs"]).rename(0, "a")
        model.topic_names_ = names
        with pytest.raises(ValueError, match="topic_names_ must be"):
            model._check_fitted_state()
    model = copy.deepcopy(models["gibbs"]).rename(0, "a")
    model.edits_ = []
    with pytest.raises(ValueError, match="_undo_steps must have 0 entries"):
        model._check_fitted_state()


def test_examples_of_merged_topics_are_those_of_both(models, corpus):
    model = copy.deepcopy(models["gibbs"]).keep_examples(corpus, [f"title {row}" for row in range(40)])
    both = {example[3] for topic in (0, 2) for example in model.examples_[topic]}
    model.merge([0, 2])
    assert {example[3] for example in model.examples_[0]} <= both
    assert len(model.examples_) == 5
    assert len(model.undo().examples_) == 6
