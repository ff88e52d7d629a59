"""Topics with and without a diversity prior: 20 Newsgroups, 50 topics, five random starts.

The claim: the mean overlap of pairs of topics falls and their coherence does not. Topics are learned from the training
part of the split by date, by EM and by variational Bayes, with and without the prior from the same random states.
Coherence (10 words) and perplexity (document completion) are those of the test part, which the topics have not seen.
Differences are paired; "+-" is the standard error of their mean.

The strength of the prior is a share of the mean number of tokens of a topic. It was chosen from a few values between
0.01 and 1 on random states 100 to 104 (`--choose` compares some), as the largest tried at which the mean of the
normalised mutual information did not fall, and not changed after the states that are reported had been run.

Needs ``newsgroups20_bydate.jsonl.gz`` in PLURI_DATA.

    python benchmarks/reproduce/topic_diversity.py              # ten minutes on one core
    python benchmarks/reproduce/topic_diversity.py --quick      # fewer documents, passes and starts
    python benchmarks/reproduce/topic_diversity.py --choose     # the strengths, on other random states
"""

from __future__ import annotations

import sys
import time

import numpy as np
from published import run_if_data

from pluri.datasets import WordCounts, count_words, load_newsgroups, train_test
from pluri.metrics import topic_coherence, topic_overlap, topic_uniqueness
from pluri.topics import LatentDirichletAllocation

N_TOPICS, N_WORDS = 50, 5000
PASSES = {"em": 60, "vb": 30}
SHARE = {"em": 0.03, "vb": 0.05}
CHOICES = (0.02, 0.03, 0.05, 0.1)
MEASURES = {
    "overlap, cosine": "falls", "overlap, Bhattacharyya": "falls", "overlap, top 10 words": "falls",
    "distinct top words": "rises", "coherence, NPMI": "stays", "coherence, UMass": "stays",
    "coherence, NPMI, training": "stays", "perplexity": "", "seconds of a pass": "",
}  # fmt: skip


def documents(quick: bool) -> tuple[WordCounts, WordCounts]:
    """Words of at least five documents and at most half of them, no stop words; the most frequent 5,000."""
    train, test = train_test(count_words(load_newsgroups(), min_documents=5, max_share=0.5, max_words=N_WORDS), None)
    if quick:
        train, test = train.documents(np.arange(0, len(train), 4)), test.documents(np.arange(0, len(test), 4))
    return train, test


def scores(train: WordCounts, test: WordCounts, engine: str, state: int, share: float, quick: bool) -> list[float]:
    """Every measure of one fit."""
    passes = PASSES[engine] // (3 if quick else 1)
    begun = time.process_time()
    model = LatentDirichletAllocation(
        N_TOPICS, inference=engine, max_iter=passes, diversity=share or None, random_state=state
    ).fit(train.counts)
    seconds = (time.process_time() - begun) / model.n_iter_
    topics = model.topic_word_
    return [
        topic_overlap(topics).mean,
        topic_overlap(topics, "bhattacharyya").mean,
        topic_overlap(topics, "jaccard").mean,
        topic_uniqueness(topics),
        topic_coherence(topics, test.counts).mean,
        topic_coherence(topics, test.counts, "umass", epsilon=1.0 / len(test)).mean,
        topic_coherence(topics, train.counts).mean,
        model.held_out(test.counts[::5], random_state=0, inference="pseudo_counts").perplexity,
        seconds,
    ]


def compare(train: WordCounts, test: WordCounts, engine: str, states: range, share: float, quick: bool) -> None:
    begun = time.perf_counter()
    plain, diverse = (
        np.array([scores(train, test, engine, state, value, quick) for state in states]) for value in (0.0, share)
    )
    print(
        f"\n{engine}: strength {share} of the tokens of a topic = {share * train.counts.sum() / N_TOPICS:.0f}, "
        f"random states {states[0]} to {states[-1]} ({time.perf_counter() - begun:.0f} s)"
    )
    print(f"{'':<28s}{'without':>10s}{'with':>10s}{'difference':>12s}{'+-':>9s}   each")
    for column, (name, claim) in enumerate(MEASURES.items()):
        gap = diverse[:, column] - plain[:, column]
        error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
        each = " ".join(f"{value:+.4f}" for value in gap)
        means = plain[:, column].mean(), diverse[:, column].mean()
        print(
            f"{name:<28s}{means[0]:10.4f}{means[1]:10.4f}{gap.mean():+12.4f}{error:9.4f}   {each}  {claim}", flush=True
        )


def main() -> None:
    quick = "--quick" in sys.argv
    train, test = documents(quick)
    print(f"train: {train}, test: {test}")
    choose = "--choose" in sys.argv
    states = range(100, 104) if choose else range(2 if quick else 5)
    for engine in PASSES:
        for share in CHOICES if choose else (SHARE[engine],):
            compare(train, test, engine, states, share, quick)


if __name__ == "__main__":
    run_if_data(main)
