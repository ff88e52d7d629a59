"""Going on with topics: what is forgotten, and the alarm when documents do not fit."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA

from pluri.topics import HDPTopicModel, LatentDirichletAllocation, TopicMonitor, forget
from pluri.topics.updating.monitor import LEAST_HISTORY, STRANGE, Ratio

TOPICS = np.kron(np.eye(3), np.full(5, 0.2)) * 0.97 + 0.03 / 15


def documents(rng, kinds, n_documents, length=20):
    return rng.multinomial(length, TOPICS[rng.choice(kinds, n_documents)])


@pytest.fixture(scope="module")
def model():
    X = documents(np.random.default_rng(0), [0, 1], 400)
    return LatentDirichletAllocation(2, inference="gibbs", n_warmup=50, random_state=0).fit(X)


def test_forgetting_takes_its_share_of_the_counts():
    rng = np.random.default_rng(0)
    X, new = documents(rng, [0, 1], 100), documents(rng, [0, 1], 30)
    fitted = LatentDirichletAllocation(2, inference="gibbs", topic_word_prior=0.1, n_warmup=20, random_state=0).fit(X)
    before = fitted.components_ - 0.1
    going = forget(fitted, 0.25)
    np.testing.assert_allclose(going.components_ - 0.1, 0.75 * before)
    assert going.n_documents_seen_ == 75
    going.partial_fit(new)
    assert (going.components_ - 0.1).sum() == pytest.approx(0.75 * X.sum() + new.sum())


@pytest.mark.parametrize("inference", ["vb", "svi"])
def test_online_learning_that_forgets_follows_faster(inference):
    rng = np.random.default_rng(1)
    X = documents(rng, [0, 1], 300)
    first = LatentDirichletAllocation(3, inference=inference, max_iter=20, batch_size=50, random_state=0).fit(X)
    step = (first.learning_offset + first.n_batch_iter_) ** -first.learning_decay
    other = clone(first).fit(X)
    forget(other, 0.5)
    # The number of steps is whole: its rounding moves the size of the next by less than a tenth.
    assert (other.learning_offset + other.n_batch_iter_) ** -other.learning_decay == pytest.approx(2 * step, rel=0.1)
    new = documents(rng, [2], 150)
    for batch in np.split(new, 3):
        first.partial_fit(batch)
        other.partial_fit(batch)
    share = [topics.components_[:, 10:].sum() / topics.components_.sum() for topics in (first, other)]
    assert share[1] > share[0]


def test_a_process_forgets_too_and_other_models_say_that_they_do_not():
    X = documents(np.random.default_rng(0), [0, 1], 60)
    process = HDPTopicModel(inference="svi", max_topics=5, batch_size=30, random_state=0)
    process.partial_fit(X[:30]).partial_fit(X[30:])
    before = process.variational_["topic_word"] - process.topic_word_prior_
    forget(process, 0.5)
    np.testing.assert_allclose(process.variational_["topic_word"] - process.topic_word_prior_, 0.5 * before)
    assert process.n_documents_seen_ == 30
    process.partial_fit(X[:30])
    with pytest.raises(ValueError, match="share must be at least 0 and below 1, got 1"):
        forget(process, 1)
    other = SklearnLDA(2, max_iter=1).fit(X)
    with pytest.raises(TypeError, match="to forget, got LatentDirichletAllocation"):
        forget(other, 0.1)


def test_a_ratio_has_the_variance_of_the_delta_method():
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 40, 200)
    found = [Ratio.of(rng.binomial(lengths, 0.3), lengths) for _ in range(400)]
    values = np.array([ratio.value for ratio in found])
    # 400 variances of 200 documents: the ratio is within 25 % with a chance of all but 1e-5.
    assert np.mean([ratio.variance for ratio in found]) == pytest.approx(values.var(), rel=0.25)


@pytest.mark.parametrize("n_weeks", [0, LEAST_HISTORY, 20])
def test_p_values_are_uniform_or_too_large_if_nothing_changes(model, n_weeks):
    """Weekly values drawn from their own distribution: p-values below 1 % have a chance of 1 %, or less."""
    rng = np.random.default_rng(n_weeks)
    small = 0
    for _ in range(1000):
        monitor = TopicMonitor(model)
        past = [Ratio(float(rng.normal(-2, 0.05)), 0.05**2, 100) for _ in range(n_weeks)]
        monitor.history = {"per_word": [Ratio(float(rng.normal(-2, 0.05)), 0.05**2, 100), *past]}
        small += monitor._p_value("per_word", Ratio(float(rng.normal(-2, 0.05)), 0.05**2, 100)) <= 0.01
    # With weeks as many as eight the extra spread is found by chance half of the time; then the p-value is too large.
    assert small <= stats.binom.isf(1e-6, 1000, 0.013)
    assert small >= 1 or n_weeks


def test_documents_about_something_else_and_unknown_words_raise_the_alarm(model):
    rng = np.random.default_rng(1)
    monitor = TopicMonitor(model).start(
        documents(rng, [0, 1], 200), rng.binomial(20, 0.05, 200), np.full(200, 20), random_state=0
    )
    for week in range(LEAST_HISTORY + 2):
        batch = documents(rng, [0, 1], 80)
        look = monitor.check(batch, rng.binomial(20, 0.05, 80), np.full(80, 20), random_state=week)
        assert not look.alarm
    assert len(monitor.history["per_word"]) == LEAST_HISTORY + 3
    strange = monitor.check(documents(rng, [2], 80), rng.binomial(20, 0.05, 80), np.full(80, 20), random_state=0)
    assert strange.alarm
    assert "harder to predict" in strange.reason
    assert "unknown" not in strange.reason
    unknown = monitor.check(documents(rng, [0, 1], 80), rng.binomial(20, 0.3, 80), np.full(80, 20), random_state=0)
    assert "more words are unknown (" in unknown.reason
    assert len(monitor.history["per_word"]) == LEAST_HISTORY + 3  # what does not fit is not remembered
    again = TopicMonitor.from_dict(model, json.loads(json.dumps(monitor.to_dict())))
    assert again.history == monitor.history


def test_nothing_is_said_before_there_is_anything_to_compare_with(model):
    look = TopicMonitor(model).check(documents(np.random.default_rng(0), [2], 30), random_state=0)
    assert not look.alarm
    assert "nothing yet" in look.reason
    with pytest.raises(ValueError, match="must be given together"):
        TopicMonitor(model).check(documents(np.random.default_rng(0), [2], 3), [1, 1, 1])
    with pytest.raises(ValueError, match="false_alarm_rate must lie between 0 and 1"):
        TopicMonitor(model, false_alarm_rate=0)


@pytest.mark.parametrize("n_held_out", [60, 500])
def test_counts_of_surprising_documents_have_the_chance_that_is_told(model, n_held_out):
    """Whatever the surprise looks like: values drawn from a distribution with long tails, 2,000 times."""
    rng = np.random.default_rng(n_held_out)
    m, small = max(1, int(STRANGE * n_held_out)), 0
    for _ in range(2000):
        bar = np.sort(rng.standard_cauchy(n_held_out))[-m]
        monitor = TopicMonitor(model)
        monitor.history = {"strange": [Ratio(m / n_held_out, 0.0, n_held_out)]}
        share = float((rng.standard_cauchy(80) >= bar).mean())
        small += monitor._p_value("strange", Ratio(share, 0.0, 80)) <= 0.05
    assert small <= stats.binom.isf(1e-6, 2000, 0.05)


def test_a_tenth_of_documents_about_something_else_raises_the_alarm_and_weeks_that_differ_raise_the_bar(model):
    rng = np.random.default_rng(2)
    monitor = TopicMonitor(model).start(documents(rng, [0, 1], 500), random_state=0)
    mixed = np.vstack([documents(rng, [0, 1], 90), documents(rng, [2], 10)])
    look = monitor.check(mixed, random_state=0)
    assert look.alarm
    assert look.strange >= 0.08
    assert "more documents are surprising" in look.reason
    again = TopicMonitor.from_dict(model, json.loads(json.dumps(monitor.to_dict())))
    assert again.check(mixed, random_state=0).p_strange == look.p_strange
    before = look.p_strange
    monitor.history["strange"] += [Ratio(share, 0.0, 100) for share in (0.0, 0.1) * 5]
    assert monitor.check(mixed, random_state=0).p_strange > 100 * before
