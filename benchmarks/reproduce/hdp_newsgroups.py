"""Topics of twenty newsgroups without choosing their number: the hierarchical Dirichlet process.

Published: the 11,314 posts of the training part, a dictionary of 4,000 stems (in at least 5 posts, in at most half of
them), at most 20 topics and 8 in a post, concentrations 1.0 and 0.1; among the topics autos, politics and for-sale. No
likelihood is given. Here: the same, by variational Bayes; minibatches; and the sampler with learned concentrations from
two starts, with an interval of the number of topics and the R-hat of both. A theme is found if one topic has at least 5
of its 10 likeliest words among the 100 words with the largest chi-square statistic of that group of posts, and the same
is told of latent Dirichlet allocation. Half of the words of every fourth post of the test part are scored given the
other half. Times are those of the processor.

Needs ``newsgroups20_bydate.jsonl.gz`` in PLURI_DATA.

    python benchmarks/reproduce/hdp_newsgroups.py                # about ten minutes of one core
    python benchmarks/reproduce/hdp_newsgroups.py quick          # a fifth of the posts and of the sweeps
    python benchmarks/reproduce/hdp_newsgroups.py long           # four times the sweeps, and a larger truncation
    python benchmarks/reproduce/hdp_newsgroups.py Gibbs          # only the fits whose name has this word
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from published import run_if_data
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import chi2

from pluri.datasets import count_words, load_newsgroups, train_test
from pluri.inference import mcmc
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
    forms = {"quick": (5, 0.2), "long": (1, 4.0)}
    form = next((word for word in sys.argv[1:] if word in forms), "")
    chosen = [word for word in sys.argv[1:] if word not in forms]
    step, sweeps = forms.get(form, (1, 1.0))
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
    best = -np.inf

    def report(name: str, topic_word: np.ndarray, prior: Any, begin: float) -> float:
        score = completion(topic_word, prior, scored, 0, observed=observed).per_word
        gap = f", {100 * (1 - score / best):+.1f} % of the best LDA's" if np.isfinite(best) else ""
        print(f"{name:<40s} per word {score:.4f}{gap}  ({time.process_time() - begin:.0f} s)", flush=True)
        return score

    def show_themes(topic_word: np.ndarray) -> None:
        top = words[np.argsort(-topic_word, axis=1)[:, :10]]
        for theme, known in themes.items():
            hits = [len(set(row) & known) for row in top]
            print(f"    {theme:<9s} {max(hits):2d} of 10  {' '.join(top[int(np.argmax(hits))])}", flush=True)

    begin = time.process_time()
    frequency = np.asarray(X.sum(axis=0)).ravel() + 0.01
    report("unigram", frequency[None] / frequency.sum(), 1.0, begin)
    scores = []
    for n in (10, 20, 50):
        begin = time.process_time()
        lda = LatentDirichletAllocation(
            n,
            inference="gibbs",
            doc_topic_prior="learn",
            topic_word_prior="learn",
            n_warmup=int(150 * sweeps),
            n_draws=2,
            thin=5,
            random_state=0,
        ).fit(X)
        scores.append(report(f"LDA, {n} topics", lda.topic_word_, lda.doc_topic_prior_, begin))
        show_themes(lda.topic_word_)
    best = max(scores)
    published = {"max_topics": 20, "max_doc_topics": 8, "topic_concentration": 1.0, "doc_concentration": 0.1}
    fits: dict[str, dict[str, Any]] = {
        "HDP as published, variational": {"inference": "vb", "max_iter": int(50 * min(sweeps, 1.0)), **published},
        "HDP, minibatches, 50 topics at most": {
            "inference": "svi", "max_topics": 50, "max_iter": 3, "learning_offset": 1.0, "learning_decay": 0.7,
        },
    }  # fmt: skip
    if form == "long":
        fits["HDP, variational, 100 topics at most"] = {"inference": "vb", "max_topics": 100, "max_iter": 30}
    for name, settings in fits.items():
        if chosen and not any(word in name for word in chosen):
            continue
        begin = time.process_time()
        model = HDPTopicModel(random_state=0, **settings).fit(X)
        report(name, model.topic_word_, model.doc_topic_prior_, begin)
        print(f"    {model.n_topics_} topics, {model.n_large_topics_} of at least 1 %; bound {model.bound_:.0f}")
        show_themes(model.topic_word_)
    for eta in (0.05, 0.01):
        if chosen and not any(word in "HDP, Gibbs" for word in chosen):
            continue
        chains = []
        for init in ("sequential", "documents"):
            begin = time.process_time()
            model = HDPTopicModel(
                init=init, n_chains=1, n_warmup=int(100 * sweeps), n_draws=int(50 * sweeps), topic_word_prior=eta,
                random_state=0,
            ).fit(X)  # fmt: skip
            report(f"HDP, Gibbs, eta {eta}, {init}", model.topic_word_, model.doc_topic_prior_, begin)
            numbers = f"{model.n_topics_interval_}, of at least 1 %: {model.n_large_topics_interval_}"
            print(f"    topics in 95 % of the draws {numbers}; log joint density {model.log_joint_.mean():.0f}")
            show_themes(model.topic_word_)
            chains.append(model)
        for name in ("n_topics", "n_large_topics"):
            draws = np.concatenate([model.trace_[name] for model in chains])
            low, high = np.quantile(draws, (0.025, 0.975), method="inverted_cdf")
            print(f"    both starts: {name} {low} to {high}, R-hat {mcmc.r_hat(draws):.2f}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    run_if_data(main)
