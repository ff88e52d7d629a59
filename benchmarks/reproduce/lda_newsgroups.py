"""Latent Dirichlet allocation on 20 Newsgroups: online variational Bayes as published, then all engines and two peers.

Published: 11,314 training posts, vocabulary of 1,000 words, 20 topics, batches of 512; perplexity falls with the
passes, and top words of topics name information, sports, computers and school. (The published perplexities, 1953 after
one pass and 1829 after five, are of tf-idf weights and mean nothing; of counts they are to be well below 1,000.)

Then each engine, tomotopy and scikit-learn learn 20 topics from the same documents, and the topics are scored by the
same code: perplexity of one half of each test document given the other, left-to-right perplexity of some, and coherence
of the top ten words on the test part. Last, bars: how many of the ten topics each engine finds.

Needs ``newsgroups20_bydate.jsonl.gz`` in PLURI_DATA.

    python benchmarks/reproduce/lda_newsgroups.py            # three minutes
    python benchmarks/reproduce/lda_newsgroups.py --quick    # an eighth of the documents
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from published import run_if_data

from pluri.datasets import WordCounts, count_words, load_newsgroups, make_bars, train_test
from pluri.metrics import match_topics, topic_coherence, topic_uniqueness
from pluri.topics import LatentDirichletAllocation
from pluri.topics.held_out import completion, left_to_right, split_documents

N_TOPICS, N_WORDS, BATCH = 20, 1000, 512
ALPHA = ETA = 1.0 / N_TOPICS
#: What names each theme: a topic is counted for the theme that most of its top 20 words belong to.
THEMES = {
    "information": "information available mail list send address file internet anonymous faq email ftp",
    "sports": "game team games season hockey players play win league year baseball nhl",
    "computers": "windows drive card disk software computer dos scsi mac pc memory program window",
    "school": "university edu school students research science institute college department dept state",
}
ENGINES: dict[str, dict[str, Any]] = {
    "gibbs": {"n_warmup": 200, "n_draws": 10, "thin": 10},
    "gibbs, learned priors": {
        "n_warmup": 200,
        "n_draws": 10,
        "thin": 10,
        "doc_topic_prior": "learn",
        "topic_word_prior": "learn",
    },
    "vb": {"max_iter": 50},
    "vb, learned priors": {"max_iter": 50, "doc_topic_prior": "learn"},
    "svi": {"max_iter": 10, "batch_size": BATCH},
    "svi, learned priors": {"max_iter": 10, "batch_size": BATCH, "doc_topic_prior": "learn"},
    "em": {"max_iter": 100},
}


def documents(quick: bool) -> tuple[WordCounts, WordCounts]:
    """The 1,000 most frequent words that are no stop words, in training and test part."""
    train, test = train_test(count_words(load_newsgroups(), min_documents=2, max_share=0.95, max_words=N_WORDS), None)
    if quick:
        train, test = train.documents(np.arange(0, len(train), 8)), test.documents(np.arange(0, len(test), 8))
    return train, test


def as_published(train: WordCounts, test: WordCounts) -> None:
    """Online variational Bayes, one pass after another."""
    order = np.random.default_rng(0).permutation(len(train))  # the file has group after group
    counts = train.counts[order]
    model = LatentDirichletAllocation(
        N_TOPICS,
        inference="svi",
        batch_size=BATCH,
        total_samples=len(train),
        random_state=0,
        vocabulary=train.vocabulary,
    )
    print(f"online variational Bayes, {N_TOPICS} topics, batches of {BATCH}")
    for passes in range(1, 6):
        begun = time.perf_counter()
        model.partial_fit(counts)
        seconds = time.perf_counter() - begun
        print(
            f"  pass {passes}, {model.n_batch_iter_ - 1} updates: perplexity of training documents "
            f"{model.perplexity(counts):.1f}, of test documents {model.perplexity(test.counts):.1f} ({seconds:.1f} s)",
            flush=True,
        )
    tops = model.top_words(20)
    for theme, words in THEMES.items():
        common = [len(set(words.split()) & set(top)) for top in tops]
        best = int(np.argmax(common))
        print(f"  {theme} ({common[best]} of its words in topic {best}): {' '.join(tops[best])}")
    shares = train.counts.multiply(1.0 / np.maximum(train.counts.sum(axis=1), 1)).tocsr()
    rarity = np.log(len(train) / np.maximum(np.bincount(train.counts.indices, minlength=N_WORDS), 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.perplexity(shares.multiply(rarity).tocsr())
    print(f"  warning when counts are replaced by tf-idf: {caught[0].message if caught else 'NONE'}")


def tomotopy_topics(train: WordCounts) -> tuple[np.ndarray, np.ndarray]:
    """Topics and alpha of tomotopy's collapsed Gibbs sampler after 300 sweeps on one core."""
    import tomotopy

    model = tomotopy.LDAModel(k=N_TOPICS, alpha=ALPHA, eta=ETA, seed=1)
    model.optim_interval = 0
    for row in train.counts:
        if row.nnz:
            model.add_doc([str(word) for word in np.repeat(row.indices, row.data)])
    model.train(300, workers=1)
    found = np.full((N_TOPICS, N_WORDS), 1e-12)
    used = [int(word) for word in model.used_vocabs]
    found[:, used] = [model.get_topic_word_dist(k) for k in range(N_TOPICS)]
    return found / found.sum(axis=1, keepdims=True), np.full(N_TOPICS, ALPHA)


def scikit_learn_topics(train: WordCounts) -> tuple[np.ndarray, np.ndarray]:
    """Topics of scikit-learn's batch variational Bayes, as many passes as ours."""
    from sklearn.decomposition import LatentDirichletAllocation as Theirs

    model = Theirs(N_TOPICS, max_iter=ENGINES["vb"]["max_iter"], random_state=0).fit(train.counts)
    return model.components_ / model.components_.sum(axis=1, keepdims=True), np.full(N_TOPICS, ALPHA)


def our_topics(name: str, train: WordCounts) -> tuple[np.ndarray, np.ndarray]:
    model = LatentDirichletAllocation(
        N_TOPICS, inference=name.split(",")[0], random_state=0, **ENGINES[name]
    ).fit(train.counts)  # fmt: skip
    return model.topic_word_, np.broadcast_to(model.doc_topic_prior_, N_TOPICS)


def compare(train: WordCounts, test: WordCounts) -> None:
    observed, scored = split_documents(test.counts, 0)
    some = test.counts[::40]
    print(
        f"\n{'':<24s}{'completion':>11s}{'left to right':>15s}{'NPMI':>8s}{'distinct':>10s}{'cpu s':>8s}{'wall s':>8s}"
    )
    learners = {name: lambda name=name: our_topics(name, train) for name in ENGINES}
    learners |= {"scikit-learn": lambda: scikit_learn_topics(train), "tomotopy": lambda: tomotopy_topics(train)}
    for name, learn in learners.items():
        begun, processor = time.perf_counter(), time.process_time()
        try:
            topics, alpha = learn()
        except ImportError as missing:
            print(f"{name:<24s}left out: {missing}")
            continue
        wall, processor = time.perf_counter() - begun, time.process_time() - processor
        alpha = np.maximum(alpha, 1e-3)
        halves = completion(topics, alpha, scored, 0, observed=observed, inference="pseudo_counts").perplexity
        whole = left_to_right(topics, alpha, some, 0, n_particles=5, resample=False).perplexity
        npmi = topic_coherence(topics, test.counts).mean
        print(
            f"{name:<24s}{halves:11.1f}{whole:15.1f}{npmi:8.3f}{topic_uniqueness(topics):10.2f}{processor:8.1f}{wall:8.1f}",
            flush=True,
        )


def bars() -> None:
    print("\nbars, 5 x 5, 1,000 documents of 100 words: topics found of 10 (cosine above 0.95), five random states")
    made = make_bars(5, 1000, 100, 0.1, random_state=0)
    print(f"  perplexity of the truth {made.true_perplexity:.2f}")
    for name in ("gibbs", "vb", "svi", "em"):
        found, perplexities = [], []
        for state in range(5):
            options = ENGINES[name] | ({"batch_size": 64} if name == "svi" else {})
            model = LatentDirichletAllocation(
                10, inference=name, doc_topic_prior=0.1, topic_word_prior=0.1, random_state=state, **options
            ).fit(made.counts)
            found.append(match_topics(model.topic_word_, made.topic_word).n_above(0.95))
            perplexities.append(model.bound_)
        print(f"  {name:<6s} found {found}, perplexity by the bound {np.round(perplexities, 1)}", flush=True)


def main() -> None:
    quick = "--quick" in sys.argv
    warnings.simplefilter("ignore")
    begun = time.perf_counter()
    train, test = documents(quick)
    print(f"train: {train}, test: {test}")
    as_published(train, test)
    compare(train, test)
    bars()
    print(f"({time.perf_counter() - begun:.0f} s)")


if __name__ == "__main__":
    run_if_data(main)
