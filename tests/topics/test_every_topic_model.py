"""What holds for every topic model: odd corpora, wrong input, names, graphs, files, scores, and Ctrl-C."""

import inspect

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import pluri.topics
from pluri import io, on_interrupt
from pluri.datasets import make_topic_documents
from pluri.inference.mcmc import rounds
from pluri.report import topic_report, tree_text
from pluri.topics import (
    ConceptGraph,
    HDPTopicModel,
    HierarchicalLDA,
    HierarchicalPachinko,
    LatentDirichletAllocation,
    SupervisedLDA,
    SupervisedLDAClassifier,
    TopicModel,
    TreeTopicModel,
)
from pluri.topics.held_out import split_documents

SHORT = {"n_warmup": 8, "n_draws": 4, "thin": 1, "random_state": 0}
MODELS = {
    "LatentDirichletAllocation gibbs": LatentDirichletAllocation(4, inference="gibbs", **SHORT),
    "LatentDirichletAllocation vb": LatentDirichletAllocation(4, inference="vb", random_state=0),
    "LatentDirichletAllocation svi": LatentDirichletAllocation(4, inference="svi", random_state=0),
    "LatentDirichletAllocation em": LatentDirichletAllocation(4, inference="em", random_state=0),
    "HDPTopicModel gibbs": HDPTopicModel(inference="gibbs", **SHORT),
    "HDPTopicModel vb": HDPTopicModel(inference="vb", max_topics=6, max_doc_topics=3, max_iter=8, random_state=0),
    "HDPTopicModel svi": HDPTopicModel(inference="svi", max_topics=6, max_doc_topics=3, max_iter=2, random_state=0),
    "HierarchicalLDA": HierarchicalLDA(**SHORT),
    "HierarchicalPachinko": HierarchicalPachinko(2, 3, **SHORT),
    "ConceptGraph": ConceptGraph(**SHORT),
    "TreeTopicModel": TreeTopicModel(max_nodes=(1, 3, 5), **SHORT),
    "TreeTopicModel, every word at every scale": TreeTopicModel(max_nodes=(1, 3, 5), scale_dependent=False, **SHORT),
    "SupervisedLDA": SupervisedLDA(3, **SHORT),
    "SupervisedLDAClassifier": SupervisedLDAClassifier(3, **SHORT),
}
SAMPLED = [name for name, made in MODELS.items() if getattr(made, "inference", "gibbs") not in ("vb", "svi", "em")]
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no words"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*max_topics"),
]
WORDS = np.array([f"w{column}" for column in range(12)])


def fitted(name, counts):
    made = clone(MODELS[name])
    n_documents = np.shape(counts)[0] if hasattr(counts, "shape") else len(counts)
    if isinstance(made, SupervisedLDAClassifier):
        return made.fit(counts, np.arange(n_documents) % 2)
    if isinstance(made, SupervisedLDA):
        return made.fit(counts, np.linspace(-1, 1, n_documents))
    return made.fit(counts)


@pytest.fixture(scope="module")
def corpus():
    return make_topic_documents(
        n_documents=25, n_words_per_document=20, n_words=12, n_topics=3, doc_topic_prior=0.3, topic_word_prior=0.2,
        random_state=0,
    ).counts  # fmt: skip


def test_the_table_has_every_topic_model():
    public = {getattr(pluri.topics, name) for name in pluri.topics.__all__}
    models = {kind for kind in public if inspect.isclass(kind) and issubclass(kind, TopicModel)} - {TopicModel}
    assert models == {type(made) for made in MODELS.values()}


@pytest.mark.parametrize("name", MODELS)
def test_topics_are_distributions_and_so_are_shares(name, corpus):
    model = fitted(name, corpus)
    for rows in (model.topic_word_, model.transform(corpus)):
        assert rows.min() >= 0
        np.testing.assert_allclose(rows.sum(axis=1), 1)
    np.testing.assert_allclose(model.topic_weight_.sum(), 1)
    assert model.components_.shape == model.topic_word_.shape
    assert model.transform(corpus).shape == (25, len(model.get_feature_names_out()))


@pytest.mark.parametrize("name", MODELS)
def test_the_input_may_come_in_any_form_and_is_not_changed(name, corpus):
    forms = [
        corpus.toarray(),
        corpus.toarray().astype(np.float32),
        sparse.csc_matrix(corpus),
        corpus.toarray().tolist(),
    ]
    first = fitted(name, corpus).topic_word_
    for form in forms:
        before = form.copy() if hasattr(form, "copy") else None
        np.testing.assert_array_equal(
            fitted(name, form if not isinstance(form, list) else np.array(form)).topic_word_, first
        )
        if isinstance(form, np.ndarray):
            np.testing.assert_array_equal(form, before)


@pytest.mark.parametrize("name", MODELS)
def test_words_graph_outline_and_page(name, corpus):
    model = fitted(name, corpus).name_words(WORDS).keep_examples(corpus, [f"<b>{row}</b>" for row in range(25)])
    graph = model.topic_graph(3)
    assert len(graph.nodes) == len(model.topic_word_)
    assert all(node.words[0] in WORDS for node in graph.nodes)
    depth = {node.index: node.depth for node in graph.nodes}
    assert all(depth[edge.parent] < depth[edge.child] for edge in graph.edges)
    assert graph.nodes[0].words[0] in tree_text(graph)
    page = topic_report(model)
    assert "<b>0</b>" not in page


@pytest.mark.parametrize("name", MODELS)
def test_held_out_scores_are_finite_and_repeatable(name, corpus):
    model = fitted(name, corpus)
    for method in ("completion", "left_to_right"):
        score = model.held_out(corpus[:6], method, random_state=1)
        again = model.held_out(corpus[:6], method, random_state=1)
        np.testing.assert_array_equal(score.log_likelihood, again.log_likelihood)
        assert -4 < score.per_word < 0
    with pytest.raises(ValueError, match="method"):
        model.held_out(corpus[:6], "guess")


@pytest.mark.parametrize("name", MODELS)
def test_files_keep_everything(name, corpus, tmp_path):
    model = fitted(name, corpus).name_words(WORDS)
    io.save(model, tmp_path / "model.skops")
    again = io.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.transform(corpus), model.transform(corpus))
    assert again.topic_graph(3) == model.topic_graph(3)
    assert again.held_out(corpus[:3], random_state=0).total == model.held_out(corpus[:3], random_state=0).total


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "counts",
    [
        np.array([[3, 0, 1], [0, 2, 2]]),
        np.array([[3], [2]]),
        np.array([[1, 0], [0, 1]]),
        np.array([[2, 0, 1], [0, 0, 0], [1, 0, 2]]),
    ],
    ids=["two documents", "one word", "more topics than words", "empty document and unused word"],
)
def test_odd_corpora_have_topics(name, counts):
    if name == "TreeTopicModel" and counts.shape[1] == 1:
        with pytest.raises(ValueError, match="at least 2 words, one below the root"):
            fitted(name, counts)
        return
    model = fitted(name, counts)
    assert np.isfinite(model.topic_word_).all()
    np.testing.assert_allclose(model.transform(counts).sum(axis=1), 1)
    np.testing.assert_allclose(model.transform(np.zeros((1, counts.shape[1]))).sum(), 1)


@pytest.mark.parametrize("name", MODELS)
def test_wrong_counts_are_refused_and_nothing_is_lost(name, corpus):
    model = fitted(name, corpus)
    before = model.topic_word_
    y = None if not isinstance(model, SupervisedLDA | SupervisedLDAClassifier) else np.arange(25) % 2
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(-corpus, y)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.fit(np.full((25, 12), np.nan), y)
    assert model.topic_word_ is before
    with pytest.raises(ValueError, match="features"):
        model.transform(corpus[:, :5])
    if name in SAMPLED:
        with pytest.raises(ValueError, match="whole counts"):
            model.fit(corpus * 0.5, y)
        assert model.topic_word_ is before


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("when", [3, 10])
def test_control_c_keeps_the_topics_so_far(name, when, corpus, monkeypatch):
    advance = rounds.advance
    stopped = []

    def interrupted(chains, n_steps, n_warmup, thin, record=None):
        """Steps one by one; at the given one, the person at the keyboard has had enough."""
        if chains[0].done + n_steps < when:
            return advance(chains, n_steps, n_warmup, thin, record)
        segments = advance(chains, max(when - chains[0].done, 0), n_warmup, thin, record)
        stopped.append(1)
        return [type(segment)(segment.chain, segment.draws, segment.stats, True) for segment in segments]

    monkeypatch.setattr(rounds, "advance", interrupted)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted") as told:
        model = fitted(name, corpus)
    assert stopped
    (said,) = [str(warning.message) for warning in told if "interrupted" in str(warning.message)]
    assert said.startswith(f"{type(model).__name__}: interrupted after {when} sweeps")
    assert model.n_iter_ == when
    np.testing.assert_allclose(model.topic_word_.sum(axis=1), 1)
    np.testing.assert_allclose(model.transform(corpus).sum(axis=1), 1)


@pytest.mark.parametrize("name", MODELS)
def test_documents_without_any_word_have_no_topics(name):
    nothing = np.zeros((4, 3))
    if name in ("LatentDirichletAllocation vb", "LatentDirichletAllocation svi"):  # as in scikit-learn
        np.testing.assert_allclose(fitted(name, nothing).transform(nothing).sum(axis=1), 1)
        return
    with pytest.raises(ValueError, match=r"\.fit needs at least one word, got empty documents only"):
        fitted(name, nothing)


@pytest.mark.parametrize("name", MODELS)
def test_texts_are_told_from_counts(name, corpus):
    model = fitted(name, corpus)
    long = "a game of ice hockey that went on and on until nobody was left"
    for texts in (
        [long, "law"],
        np.array([long, "law"]),
        pd.Series([long, "law"], index=[7, 8]),
        [long.split(), ["b"]],
    ):
        for asked in (model.transform, lambda X: fitted(name, X), model.held_out):
            with pytest.raises(ValueError, match=r"X must be counts of words, got texts .*CountVectorizer") as told:
                asked(texts)
            assert "nobody" not in str(told.value)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_summary_with_its_words(name, corpus):
    model = fitted(name, corpus).name_words(WORDS)
    page = model.summary()
    assert page.startswith(type(model).__name__)
    largest = int(model.topic_weight_.argmax())
    assert model.top_words(1)[largest][0] in page


@pytest.mark.parametrize("name", MODELS)
def test_models_are_compared_on_the_same_halves_of_documents(name, corpus):
    model = fitted(name, corpus)
    observed, scored = split_documents(corpus, 0)
    score = model.held_out(scored, observed=observed.toarray(), random_state=0)
    np.testing.assert_array_equal(score.n_tokens, np.asarray(scored.sum(axis=1)).ravel())
    assert score.method == "completion"
    # The other half of the same document helps more than half of another one; not at all where there is one topic.
    assert score.per_word >= model.held_out(scored, observed=observed[::-1], random_state=0).per_word
    with pytest.raises(ValueError, match="observed and X must have equally many documents, got 3 and 25"):
        model.held_out(scored, observed=observed[:3])


@pytest.mark.parametrize("name", MODELS)
def test_the_mean_over_made_up_documents_approaches_the_likelihood_from_left_to_right(name, corpus):
    """Documents of three words: the mean over many draws is near the truth; tolerance about five standard errors."""
    model = fitted(name, corpus)
    short = np.zeros((4, 12))
    short[[0, 0, 0, 1, 1, 2, 3], [0, 4, 7, 1, 2, 5, 11]] = [1, 1, 1, 2, 1, 3, 1]
    empirical = model.held_out(short, "empirical", n_samples=20000, random_state=1)
    in_turn = model.held_out(short, "left_to_right", n_particles=2000, random_state=1)
    np.testing.assert_allclose(empirical.log_likelihood, in_turn.log_likelihood, atol=0.12)
    with pytest.raises(ValueError, match="n_samples"):
        model.held_out(short, "empirical", n_samples=0)


@pytest.mark.parametrize("name", MODELS)
def test_settings_are_checked_without_documents_as_in_a_fit(name, corpus):
    model = clone(MODELS[name])
    model.check_settings()
    wrong = clone(model).set_params(topic_word_prior=-1.0)
    with pytest.raises(ValueError) as asked:
        wrong.check_settings()
    with pytest.raises(ValueError) as learned:
        wrong.fit(corpus, np.arange(25) % 2)
    assert str(asked.value) == str(learned.value)
    assert not hasattr(wrong, "topic_word_")
