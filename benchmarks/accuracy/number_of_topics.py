"""How many topics: the recommendation of TopicSearchCV beside the truth, and on text.

Documents are drawn from latent Dirichlet allocation with 5, 10, 20 and 50 topics, in four ways: topics of equal size;
of unequal sizes (the weights of alpha are Dirichlet(5)); with words that are common to all topics (the prior of the
topics falls as rank ** -0.8); short documents of 30 words. The rule was made on draws of the first and the third way
with other seeds; the second and the fourth had no part in it. Printed is the share of draws within 20 % of the truth,
and beside it what two other rules make of the same fits: the number of best held-out likelihood, and the smallest
within a standard error of it. Then 20 Newsgroups and the NIPS papers: the table of all numbers, and recommendations
from other parts of the documents and other seeds.

Text needs ``newsgroups20_bydate.jsonl.gz`` and ``nips_uci_bow.npz`` in PLURI_DATA.

    python benchmarks/accuracy/number_of_topics.py                       # ten draws of each, and text: an hour of CPU
    python benchmarks/accuracy/number_of_topics.py --quick               # two draws of the smaller ones
    python benchmarks/accuracy/number_of_topics.py --ways unequal --topics 20 --draws 3
    python benchmarks/accuracy/number_of_topics.py --text nips --repeats 2
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from pluri.datasets import count_words, load_newsgroups, load_nips_papers, train_test
from pluri.topics import TopicSearchCV

WAYS = ("equal", "unequal", "common", "short")
WITHIN = 0.2


def simulated(way: str, n_topics: int, seed: int) -> Any:
    """Counts of words of documents."""
    rng = np.random.default_rng([7, seed, n_topics, WAYS.index(way)])
    n_documents, length, n_words = {
        "equal": (1000, 100, 1000), "unequal": (1500, 80, 2000), "common": (2000, 100, 2000), "short": (3000, 30, 1000),
    }[way]  # fmt: skip
    alpha, eta = np.full(n_topics, 0.1), np.full(n_words, 0.05)
    if way == "unequal":
        alpha, eta = 2.0 * rng.dirichlet(np.full(n_topics, 5.0)), np.full(n_words, 0.03)
    elif way == "common":
        alpha, falling = np.full(n_topics, 3.0 / n_topics), 1.0 / np.arange(1, n_words + 1) ** 0.8
        eta = 0.05 * n_words * falling / falling.sum()
    elif way == "short":
        alpha = np.full(n_topics, 0.05)
    topics, shares = rng.dirichlet(eta, n_topics), rng.dirichlet(alpha, n_documents)
    lengths = np.maximum(rng.poisson(length, n_documents), 5)
    return sparse.csr_matrix([rng.multinomial(n, row / row.sum()) for n, row in zip(lengths, shares @ topics)])


def other_rules(search: TopicSearchCV) -> tuple[int, int]:
    """The number of best held-out likelihood, and the smallest that is not clearly worse than the next larger ones."""
    table = search.cv_results_
    numbers, scores = table["param_n_components"], table["mean_test_score"]
    gains, errors = table["gain_per_topic"], table["gain_error"]
    simple = numbers[0]
    for number, gain, error in zip(numbers[1:], gains[1:], errors[1:]):
        simple = number if gain > error else simple
    return int(numbers[scores.argmax()]), int(simple)


def print_simulated(ways: list[str], topics: list[int], n_draws: int, first_seed: int = 0) -> None:
    print(f"{'documents':>10} {'topics':>6} {'within 20 %':>11} {'best':>5} {'1 s.e.':>6}  recommended")
    for way in ways:
        for n_topics in topics:
            began, found, others = time.process_time(), [], []
            for seed in range(first_seed, first_seed + n_draws):
                search = TopicSearchCV(refit=False, random_state=seed).fit(simulated(way, n_topics, seed))
                found.append(search.n_components_)
                others.append(other_rules(search))
            seconds = (time.process_time() - began) / n_draws
            good = np.abs(np.array([found, *zip(*others)]) / n_topics - 1) <= WITHIN + 1e-9
            shares = good.mean(axis=1)
            print(
                f"{way:>10} {n_topics:>6} {shares[0]:>11.0%} {shares[1]:>5.0%} {shares[2]:>6.0%}  "
                f"{' '.join(map(str, found))}  ({seconds:.0f} CPU s each)",
                flush=True,
            )


def corpus(name: str) -> Any:
    """Counts of words of a real corpus: English, without stop words, words of five documents or more."""
    if name == "nips":
        return load_nips_papers("uci").X
    train, _ = train_test(count_words(load_newsgroups(), min_documents=5, max_share=0.5), None)
    return train.common_words(min_documents=5, max_share=0.5, max_words=10_000).X


def print_text(name: str, n_repeats: int, max_components: int, first_seed: int = 0) -> None:
    X = corpus(name)
    print(f"\n{name}: {X.shape[0]} documents, {X.shape[1]} words, {int(X.sum())} tokens")
    found = []
    for seed in range(first_seed, first_seed + n_repeats):
        began = time.process_time()
        search = TopicSearchCV(refit=False, max_components=max_components, random_state=seed, verbose=1).fit(X)
        if seed == first_seed:
            print(search.summary())
        row = search.best_index_
        share = search.cv_results_["found_again_share"][row]
        found.append(search.n_components_)
        print(
            f"seed {seed}: {search.n_components_} topics ({share:.0%} of "
            f"{search.cv_results_['param_n_components'][row]} found again), {time.process_time() - began:.0f} CPU s",
            flush=True,
        )
    print(f"{name}: recommended {' '.join(map(str, found))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--ways", nargs="*", default=None, choices=WAYS)
    parser.add_argument("--topics", nargs="*", type=int, default=[5, 10, 20, 50])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0, help="the rule was made on draws 0 to 11")
    parser.add_argument("--text", nargs="*", default=None, choices=["news", "nips"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-components", type=int, default=200)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    alone = given.text is not None and given.ways is None
    if given.quick:
        print_simulated(["equal", "unequal"], [5, 10], 2)
        return
    if not alone:
        print_simulated(given.ways or list(WAYS), given.topics, given.draws, given.first_seed)
    for name in ["news", "nips"] if given.text is None and given.ways is None else given.text or []:
        try:
            print_text(name, given.repeats, given.max_components, given.first_seed)
        except FileNotFoundError as missing:
            print(f"{name} is left out: {missing}")


if __name__ == "__main__":
    main()
