"""Trees of topics on four corpora: words with one scale (SD) against words at every scale (NSD).

Published [1]: Psychological Review abstracts, 3000 posts to newsgroups, 1740 NIPS papers and 3000 Reuters stories,
words in fewer than six documents left out, three scales, eta = 1, five folds, 2500 sweeps and then 500. The score is
that of words *given their scales*, which is no probability: for words with one scale it sums to three over the
vocabulary (see `pluri.topics.tree.evaluation`). So the proper score, half of a document given the other half, stands
beside it, with LDA on the same halves; the nested Chinese restaurant process (--nested) halves the same documents anew.

Which posts and stories were drawn is not published, nor the words that were left out: vocabularies differ (ours is
printed). Words are stemmed if snowballstemmer is there.

    python benchmarks/reproduce/tree_topics.py --quick    # one fold, 300 sweeps and then 100
    python benchmarks/reproduce/tree_topics.py --folds 5 --warmup 2500 --draws 100

Needs the files of `load_psychological_review`, `load_newsgroups`, `load_nips_papers` and `load_reuters` in PLURI_DATA.

References
----------
[1] Chen, H., Dunson, D. B. and Carin, L. (2011). Topic modeling with nonparametric Markov tree. ICML.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec

import numpy as np
from published import Report, run_if_data

from pluri.datasets import (
    count_words,
    load_newsgroups,
    load_nips_papers,
    load_psychological_review,
    load_reuters,
)
from pluri.topics.held_out import split_documents
from pluri.topics.hierarchical import HierarchicalLDA
from pluri.topics.lda import LatentDirichletAllocation
from pluri.topics.tree import TreeTopicModel

#: Words in fewer documents are left out, in all corpora.
LEAST_DOCUMENTS = 6
N_SAMPLED = 3000
#: Published scores by (4.7): NSD and SD; published sizes of the vocabulary.
PUBLISHED = {
    "psychology": (-5.7530, -5.4734, 1971),
    "newsgroups": (-6.6949, -6.2952, 5957),
    "nips": (-6.8962, -6.4665, 7546),
    "reuters": (-5.6575, -5.3746, 1671),
}


def corpus(name: str):
    if name == "psychology":
        data = load_psychological_review()
    elif name == "nips":
        data = load_nips_papers()
    else:
        texts = load_newsgroups() if name == "newsgroups" else load_reuters()
        data = count_words(texts, min_documents=1, max_share=1.0, stem=find_spec("snowballstemmer") is not None)
        data = data.documents(np.random.default_rng(0).permutation(len(data))[:N_SAMPLED])
    data = data.common_words(min_documents=LEAST_DOCUMENTS)
    _, _, n_words = PUBLISHED[name]
    # Stop words and stems differ: keep as many words as were used, those that occur most often.
    if data.counts.shape[1] > n_words:
        data = data.common_words(min_documents=LEAST_DOCUMENTS, max_words=n_words)
    return data.documents(np.asarray(data.counts.sum(axis=1)).ravel() >= 2)


def describe(model, vocabulary, label):
    terms = model.terms_per_topic()
    covering = model.terms_per_topic(coverage=0.95)
    print(f"  {label}: nodes {model.nodes_per_scale_}, words of each scale {np.bincount(model.word_scale_).tolist()}")
    for s in range(1, model.depth_):
        print(
            f"    terms per topic at scale {s + 1}: {terms[s].mean():.1f} with a token, {covering[s].mean():.1f} for "
            f"95 % of the tokens ({len(terms[s])} nodes)"
        )
    print(f"    children with at least two parents (> 0.05): {len(model.shared_children())}")
    return [numbers.mean() for numbers in terms]


def show_shared(model, vocabulary, n=8):
    words = model.name_words(vocabulary).top_words(6)
    starts = np.concatenate([[0], np.cumsum(model.nodes_per_scale_)])
    shared = sorted(model.shared_children(), key=lambda child: -model.tree_.passed[child.scale][child.node])
    for child in shared[:n]:
        print(f"    {{{', '.join(words[starts[child.scale] + child.node])}}} below")
        for parent, share in zip(child.parents[:3], child.shares):
            print(f"       {share:.2f} {{{', '.join(words[starts[child.scale - 1] + parent])}}}")


def run(name: str, options) -> None:
    data = corpus(name)
    n_documents, n_words = data.counts.shape
    nsd_published, sd_published, words_published = PUBLISHED[name]
    report = Report(
        f"{name}: {n_documents} documents, {n_words} words (published {words_published}), "
        f"{int(data.counts.sum())} tokens"
    )
    rng = np.random.default_rng(1)
    fold_of = rng.permutation(n_documents) % 5
    found: dict[str, list[float]] = {}
    for fold in range(options.folds):
        train, test = data.counts[fold_of != fold], data.counts[fold_of == fold]
        observed, scored = split_documents(test, rng)
        terms = {}
        for label, dependent in (("SD", True), ("NSD", False)):
            began = time.perf_counter()
            model = TreeTopicModel(
                max_depth=3, max_nodes=tuple(options.nodes), scale_dependent=dependent, doc_concentration=1.0,
                topic_word_prior=options.prior, n_warmup=options.warmup, n_draws=options.draws, thin=options.thin,
                n_trees=options.trees, random_state=fold, collapsed=not options.explicit,
            ).fit(train)  # fmt: skip
            seconds = time.perf_counter() - began
            print(
                f"  {label}, fold {fold}: {model.n_iter_} sweeps in {seconds:.0f} s, "
                f"{seconds / model.n_iter_:.3f} s each"
            )
            terms[label] = describe(model, data.vocabulary, label)
            if fold == 0:
                show_shared(model, data.vocabulary)
            conditional = model.held_out(test, "conditional_scale", random_state=0).per_word
            proper = model.held_out(scored, observed=observed, random_state=0).per_word
            found.setdefault(f"{label} (4.7)", []).append(conditional)
            found.setdefault(f"{label} completion", []).append(proper)
            if dependent:
                n_nodes = sum(model.nodes_per_scale_)
        for s in (1, 2):
            found.setdefault(f"terms {s + 1}", []).append(terms["SD"][s] / terms["NSD"][s])
        lda = LatentDirichletAllocation(
            n_nodes, inference="gibbs", doc_topic_prior=50 / n_nodes, topic_word_prior=0.1, learn_priors=True,
            n_warmup=options.warmup, n_draws=options.trees, random_state=fold,
        ).fit(train)  # fmt: skip
        found.setdefault("LDA completion", []).append(lda.held_out(scored, observed=observed, random_state=0).per_word)
        if options.nested:
            nested = HierarchicalLDA(n_levels=3, n_warmup=options.warmup, n_draws=options.draws, random_state=fold)
            nested.fit(train)
            found.setdefault("nested CRP completion", []).append(nested.held_out(test, random_state=0).per_word)
    mean = {key: (float(np.mean(v)), float(np.std(v)) if len(v) > 1 else None) for key, v in found.items()}
    uniform = -float(np.log(n_words))
    report.row("given scales (4.7), per word: words with one scale (SD)", sd_published, *mean["SD (4.7)"])
    report.row("given scales (4.7), per word: all words everywhere (NSD)", nsd_published, *mean["NSD (4.7)"])
    report.row("SD - NSD by (4.7)", sd_published - nsd_published, mean["SD (4.7)"][0] - mean["NSD (4.7)"][0])
    for label in ("SD", "NSD", "LDA", "nested CRP"):
        if f"{label} completion" in mean:
            report.row(f"half of a document given the other, per word: {label}", None, *mean[f"{label} completion"])
    report.row("the same of a uniform distribution", None, uniform)
    for s in (2, 3):
        report.row(f"terms per topic at scale {s}, SD / NSD", None, *mean[f"terms {s}"])
    checks = {
        "SD above NSD by 0.2 to 0.5 given scales": 0.2 <= mean["SD (4.7)"][0] - mean["NSD (4.7)"][0] <= 0.5,
        "SD within 0.3 of the table": abs(mean["SD (4.7)"][0] - sd_published) <= 0.3,
        "both above uniform by 1": min(mean["SD completion"][0], mean["NSD completion"][0]) > uniform + 1,
        "SD within 0.15 of LDA or better": mean["SD completion"][0] > mean["LDA completion"][0] - 0.15,
        "NSD within 0.15 of LDA or better": mean["NSD completion"][0] > mean["LDA completion"][0] - 0.15,
        "half as many terms at scale 3": mean["terms 3"][0] <= 0.5,
    }
    for sentence, holds in checks.items():
        report.note(f"  {'yes' if holds else 'NO '}  {sentence}")
    report.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    parser.add_argument("--folds", type=int, default=1, help="of five")
    parser.add_argument("--warmup", type=int, default=2500)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--thin", type=int, default=5)
    parser.add_argument("--trees", type=int, default=10, help="draws that predictions are averaged over")
    parser.add_argument("--nodes", type=int, nargs=3, default=[1, 20, 40])
    parser.add_argument("--prior", type=float, default=1.0, help="of topics; published: 1")
    parser.add_argument("--explicit", action="store_true", help="draw tokens given topics, as published")
    parser.add_argument("--nested", action="store_true", help="the nested Chinese restaurant process too")
    parser.add_argument("--quick", action="store_true", help="300 sweeps, then 20 draws")
    options = parser.parse_args()
    if options.quick:
        options.warmup, options.draws = 300, 20
    for name in options.corpora:
        run(name, options)


if __name__ == "__main__":
    run_if_data(main)
