"""Files of hierarchies: small, and the same model again."""

import numpy as np
import pytest
from scipy import sparse

from pluri.io import load, save
from pluri.topics import HierarchicalLDA, HierarchicalPachinko

OPTIONS = {"n_warmup": 3, "n_draws": 5, "random_state": 0}
MODELS = [
    HierarchicalLDA(3, topic_word_prior=[0.3, 0.2, 0.1], **OPTIONS),
    HierarchicalLDA(2, topic_word_prior="learn", concentration="learn", **OPTIONS),
    HierarchicalPachinko(4, 6, **OPTIONS),
]


def documents(n_documents=60, n_words=20_000, length=30):
    rng = np.random.default_rng(0)
    return sparse.csr_matrix(rng.multinomial(length, rng.dirichlet(np.full(n_words, 0.005)), size=n_documents))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}, {model.topic_word_prior}")
def test_a_file_is_as_large_as_the_tokens_not_as_topics_times_words(tmp_path, model):
    """Two numbers for each word that a node has, and a page of settings; dense topics would be far more."""
    X = documents()
    model.fit(X)
    path = tmp_path / "model.pluri"
    save(model, path)
    limit = 40_000 + 8 * int(X.sum()) + 8 * X.shape[0] * 3
    assert path.stat().st_size < limit
    assert model.topic_word_.nbytes + model.components_.nbytes > 5 * limit
    again = load(path)
    for name in ("topic_word_", "components_", "topic_weight_", "log_joint_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    for method in ("completion", "left_to_right"):
        scores = [one.held_out(X[:5], method=method, random_state=0).per_word for one in (model, again)]
        assert scores[0] == scores[1]
    assert again.summary() == model.summary()


def test_topics_that_were_changed_by_hand_are_kept_as_they_are(tmp_path):
    model = HierarchicalPachinko(2, 2, **OPTIONS).fit(documents(10, 20))
    model.components_ = model.components_ * 1.5
    save(model, tmp_path / "model.pluri")
    np.testing.assert_array_equal(load(tmp_path / "model.pluri").components_, model.components_)
