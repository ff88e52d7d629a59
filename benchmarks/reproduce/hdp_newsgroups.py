"""Topics of twenty newsgroups without choosing their number: the hierarchical Dirichlet process.

Published: the 11,314 posts of the training part, a dictionary of 4,000 stems (in at least 5 posts, in at most half of
them), at most 20 topics and 8 in a post, concentrations 1.0 and 0.1; among the topics autos, politics and for-sale. No
likelihood is given. Here: the same, by variational Bayes; and the sampler and a larger truncation with learned
concentrations, the former with an interval of the number of topics. A theme is found if one topic has at least 5 of its
10 likeliest words among the 100 words with the largest chi-square statistic of that group of posts. Half of the words
of each post of the test part are scored given the other half, for latent Dirichlet allocation with 10, 20 and 50 topics
as well.

Needs ``newsgroups20_bydate.jsonl.gz`` in PLURI_DATA.

    python benchmarks/reproduce/hdp_newsgroups.py                # about a quarter of an hour
    python benchmarks/reproduce/hdp_newsgroups.py quick          # a fifth of the posts and of the sweeps
    python benchmarks/reproduce/hdp_newsgroups.py Gibbs          # only the fits whose name has this word
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from published import run_if_data
from sklearn.feature_selection import chi2

from pluri.datasets import count_words, load_newsgroups, train_test
from pluri.topics.hdp import HDPTopicModel
from pluri.topics.held_out import completion, split_documents
from pluri.topics.lda import LatentDirichletAllocation

THEMES = {"autos": ("rec.autos",), "politics": ("talk.politics",), "for sale": ("misc.forsale",)}


def theme_words(X: Any, labels: np.ndarray, words: np.ndarray, groups: tuple[str, ...]) -> set[str]:
    """The 100 words that tell these groups best, of those that are more frequent in them."""
    inside = np.array([label.startswith(groups) for label in labels])
    statistic = chi2(X, inside)[0]
    share = np.asarray(X[inside].mean(axis=0)).ravel() > np.asarray(X[~inside].mean(axis=0)).ravel()
    return set(words[np.argsort(-np.where(share, np.nan_to_num(statistic), -1.0))[:100]])


def main() -> None:
    quick, chosen = "quick" in sys.argv[1:], [word for word in sys.argv[1:] if word != "quick"]
    step, sweeps = (5, 0.2) if quick else (1, 1.0)
    posts = load_newsgroups()
    train, test = train_test(count_words(posts, min_documents=5, max_share=1.0, stem=True), None)
    train = train.common_words(min_documents=5, max_share=0.5, max_words=4000)
    place = {word: column for column, word in enumerate(test.vocabulary)}
    X, words = train.X[::step], np.asarray(train.vocabulary)
    labels = np.asarray(posts.labels)[~posts.is_test][::step]
    new = test.X[:, [place[word] for word in words]][:: 4 * step]
    observed, scored = split_documents(new, 0)
    print(f"{X.shape[0]} posts, {X.shape[1]} words, {int(X.sum())} tokens; {int(scored.sum())} words scored")
    themes = {name: theme_words(X, labels, words, groups) for name, groups in THEMES.items()}

    def per_word(topic_word: np.ndarray, prior: Any) -> float:
        return completion(topic_word, prior, scored, 0, observed=observed).per_word

    frequency = np.asarray(X.sum(axis=0)).ravel() + 0.01
    print(f"{'unigram':<44s} per word {per_word(frequency[None] / frequency.sum(), 1.0):.4f}", flush=True)
    best = -np.inf
    for n in (10, 20, 50):
        begin = time.perf_counter()
        lda = LatentDirichletAllocation(
            n, inference="gibbs", learn_priors=True, n_warmup=int(200 * sweeps), n_draws=2, thin=5, random_state=0
        ).fit(X)
        score = per_word(lda.topic_word_, lda.doc_topic_prior_)
        best = max(best, score)
        print(f"{f'LDA, {n} topics':<44s} per word {score:.4f}  ({time.perf_counter() - begin:.0f} s)", flush=True)
    published = {"max_topics": 20, "max_doc_topics": 8, "topic_concentration": 1.0, "doc_concentration": 0.1}
    for name, settings in {
        "HDP as published, variational": {"inference": "vb", "max_iter": int(50 * sweeps), **published},
        "HDP, variational, 100 topics at most": {"inference": "vb", "max_topics": 100, "max_iter": int(30 * sweeps)},
        "HDP, minibatches, 100 topics at most": {
            "inference": "svi", "max_topics": 100, "max_iter": 5, "learning_offset": 1.0, "learning_decay": 0.7,
        },
        "HDP, Gibbs, eta 0.05": {"n_warmup": int(200 * sweeps), "n_draws": int(100 * sweeps), "topic_word_prior": 0.05},
        "HDP, Gibbs, eta 0.01": {"n_warmup": int(200 * sweeps), "n_draws": int(100 * sweeps)},
    }.items():  # fmt: skip
        if chosen and not any(word in name for word in chosen):
            continue
        begin = time.perf_counter()
        model = HDPTopicModel(random_state=0, n_chains=2, n_jobs=2, **settings).fit(X).name_words(words)
        score = per_word(model.topic_word_, model.doc_topic_prior_)
        print(
            f"{name:<44s} per word {score:.4f}, {100 * (score / best - 1):+.1f} % of the best LDA's loss  "
            f"({time.perf_counter() - begin:.0f} s)"
        )
        print(f"    {model.n_topics_} topics, {model.n_large_topics_} of at least 1 % of the tokens", end="")
        if hasattr(model, "n_topics_interval_"):
            low, high = model.n_topics_interval_
            print(f"; 95 % of the draws: {low} to {high}, large ones {model.n_large_topics_interval_}", end="")
        print()
        for theme, known in themes.items():
            hits = [len(set(top) & known) for top in model.top_words(10)]
            top = " ".join(model.top_words(10)[int(np.argmax(hits))])
            print(f"    {theme:<9s} {max(hits):2d} of 10  {top}", flush=True)


if __name__ == "__main__":
    run_if_data(main)
