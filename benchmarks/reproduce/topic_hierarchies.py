"""Trees and graphs of topics beside latent Dirichlet allocation, the nested Chinese restaurant process and pachinko.

Two papers, one table. [1] compares a Markov tree of topics in which a word has one scale (SD) with one in which it may
have any (NSD): Psychological Review abstracts, 3000 posts to newsgroups, 1740 NIPS papers and 3000 Reuters stories,
words in fewer than six documents left out, three scales, eta = 1, five folds, 2500 sweeps and then 500. [2] compares a
graph of concepts with hLDA (the nested process) and hPAM (pachinko), three levels and 25 nodes in each, on 518 articles
about machine learning that are not distributed, 9000 sweeps and then 10 draws. Here all of them learn from the same
documents and are scored on the same words:

- completion: each word of one half of a document, as the next word after the other half (a probability; the score to
  go by, which neither paper has);
- empirical: the mean probability of the whole document over 2000 documents that the model makes up, as in [2]. It is
  too low for models whose documents vary much, such as LDA and hPAM, and rises with the number;
- left to right: each word given those before it, as in [2], by particles that carry their weights. Only where documents
  are short (--left-to-right);
- given scales: the score of [1], which is no probability: for words with one scale it sums to three over the vocabulary
  (see `pluri.topics.tree.evaluation`).

Trees are averaged over up to ten draws, as in [1]; LDA has its topics averaged along the chain; graphs, hLDA and hPAM
are scored at one draw, as in [2], and graphs once more averaged over draws. Published orderings: SD above NSD given
scales; graph as good as hLDA and above hPAM by empirical likelihood, below both from left to right.

Which posts and stories were drawn is not published, nor the words that were left out: vocabularies differ (ours is
printed). Words are stemmed if snowballstemmer is there.

    python benchmarks/reproduce/topic_hierarchies.py --quick                 # one fold, 150 sweeps
    python benchmarks/reproduce/topic_hierarchies.py --folds 5 --warmup 500
    python benchmarks/reproduce/topic_hierarchies.py --corpora psychology --models SD NSD LDA --left-to-right

Needs the files of `load_psychological_review`, `load_newsgroups`, `load_nips_papers`, `load_reuters` and `load_ap_news`
in PLURI_DATA.

References
----------
[1] Chen, H., Dunson, D. B. and Carin, L. (2011). Topic modeling with nonparametric Markov tree. ICML.
[2] Chambers, A., Smyth, P. and Steyvers, M. (2010). Learning concept graphs from text with stick-breaking priors. NIPS.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from typing import Any

import numpy as np
from published import Report, run_if_data

from pluri.datasets import (
    WordCounts,
    count_words,
    load_ap_news,
    load_newsgroups,
    load_nips_papers,
    load_psychological_review,
    load_reuters,
)
from pluri.topics import (
    ConceptGraph,
    HierarchicalLDA,
    HierarchicalPachinko,
    LatentDirichletAllocation,
    TreeTopicModel,
)
from pluri.topics.held_out import split_documents

#: Words in fewer documents are left out, in all corpora.
LEAST_DOCUMENTS = 6
N_SAMPLED = 3000
#: Published scores given scales [1], SD and NSD, and sizes of the vocabulary. News of the Associated Press are ours.
PUBLISHED: dict[str, tuple[float | None, float | None, int | None]] = {
    "psychology": (-5.4734, -5.7530, 1971),
    "reuters": (-5.3746, -5.6575, 1671),
    "newsgroups": (-6.2952, -6.6949, 5957),
    "nips": (-6.4665, -6.8962, 7546),
    "ap": (None, None, None),
}
TREES = {"SD": (True, 1.0), "NSD": (False, 1.0), "SD, prior 0.1": (True, 0.1), "NSD, prior 0.1": (False, 0.1)}
MODELS = (*TREES, "graph", "graph, prior learned", "LDA", "hLDA", "hPAM", "hPAM, prior 0.01")
SCORES = ("completion", "completion, averaged", "empirical", "empirical, averaged", "left to right", "given scales")


def corpus(name: str) -> WordCounts:
    if name == "psychology":
        data = load_psychological_review()
    elif name in ("nips", "ap"):
        data = load_nips_papers() if name == "nips" else load_ap_news()
    else:
        texts = load_newsgroups() if name == "newsgroups" else load_reuters()
        data = count_words(texts, min_documents=1, max_share=1.0, stem=find_spec("snowballstemmer") is not None)
        data = data.documents(np.random.default_rng(0).permutation(len(data))[:N_SAMPLED])
    data = data.common_words(min_documents=LEAST_DOCUMENTS)
    n_words = PUBLISHED[name][2]
    # Stop words and stems differ: keep as many words as were used, those that occur most often.
    if n_words is not None and data.counts.shape[1] > n_words:
        data = data.common_words(min_documents=LEAST_DOCUMENTS, max_words=n_words)
    return data.documents(np.asarray(data.counts.sum(axis=1)).ravel() >= 2)


def make(name: str, fold: int, options: Any) -> Any:
    """A model with the settings of its paper, and topics' prior 0.1 where [2] has that among others."""
    sweeps = {"n_warmup": options.warmup, "n_draws": options.draws, "thin": options.thin, "random_state": fold}
    if name in TREES:
        dependent, prior = TREES[name]
        return TreeTopicModel(
            max_depth=3, max_nodes=tuple(options.nodes), scale_dependent=dependent, doc_concentration=1.0,
            topic_word_prior=prior, n_trees=min(10, options.draws), **sweeps,
        )  # fmt: skip
    if name.startswith("graph"):
        prior = {} if name.endswith("learned") else {"topic_word_prior": 0.1}
        return ConceptGraph(n_levels=3, max_nodes_per_level=25, **prior, **sweeps)
    if name == "LDA":
        n_topics = sum(options.nodes)
        return LatentDirichletAllocation(
            n_topics, inference="gibbs", doc_topic_prior="learn", topic_word_prior="learn", **sweeps
        )  # fmt: skip
    if name == "hLDA":
        return HierarchicalLDA(3, topic_word_prior=0.1, **sweeps)
    return HierarchicalPachinko(25, 25, topic_word_prior=0.01 if name.endswith("0.01") else 0.1, **sweeps)


def describe(tree: TreeTopicModel) -> None:
    terms, covering = tree.terms_per_topic(), tree.terms_per_topic(coverage=0.95)
    print(f"    nodes {tree.nodes_per_scale_}, words of each scale {np.bincount(tree.word_scale_).tolist()}, ", end="")
    print(f"{len(tree.shared_children())} children with two parents or more (> 0.05)")
    for s in range(1, tree.depth_):
        print(
            f"    terms per topic at scale {s + 1}: {terms[s].mean():.1f} with a token, {covering[s].mean():.1f} for "
            f"95 % of the tokens ({len(terms[s])} nodes)"
        )


def show_shared(tree: TreeTopicModel, vocabulary: Any, n: int = 6) -> None:
    words = tree.name_words(vocabulary).top_words(6)
    starts = np.concatenate([[0], np.cumsum(tree.nodes_per_scale_)])
    shared = sorted(tree.shared_children(), key=lambda child: -tree.tree_.passed[child.scale][child.node])
    for child in shared[:n]:
        print(f"    {{{', '.join(words[starts[child.scale] + child.node])}}} below")
        for parent, share in zip(child.parents[:3], child.shares):
            print(f"       {share:.2f} {{{', '.join(words[starts[child.scale - 1] + parent])}}}")


def scores_of(model: Any, test: Any, halves: tuple[Any, Any], left_to_right: bool) -> dict[str, float]:
    observed, scored = halves
    options: dict[str, Any] = {"random_state": 0}
    one_draw = options | ({"averaged": False} if isinstance(model, ConceptGraph) else {})
    found = {
        "completion": model.held_out(scored, observed=observed, **one_draw).per_word,
        "empirical": model.held_out(test, "empirical", n_samples=2000, **one_draw).per_word,
    }
    if isinstance(model, ConceptGraph):
        found["completion, averaged"] = model.held_out(scored, observed=observed, **options).per_word
        found["empirical, averaged"] = model.held_out(test, "empirical", n_samples=2000, **options).per_word
    if left_to_right:
        found["left to right"] = model.held_out(test, "left_to_right", **one_draw).per_word
    if isinstance(model, TreeTopicModel):
        found["given scales"] = model.held_out(test, "conditional_scale", random_state=0).per_word
    return found


def run(name: str, options: Any) -> None:
    data = corpus(name)
    n_documents, n_words = data.counts.shape
    report = Report(
        f"{name}: {n_documents} documents, {n_words} words (published {PUBLISHED[name][2] or '-'}), "
        f"{int(data.counts.sum())} tokens"
    )
    rng = np.random.default_rng(1)
    fold_of = rng.permutation(n_documents) % 5
    found: dict[tuple[str, str], list[float]] = {}
    terms: dict[str, list[float]] = {}
    for fold in range(options.folds):
        train, test = data.counts[fold_of != fold], data.counts[fold_of == fold]
        halves = split_documents(test, rng)
        for model_name in options.models:
            began = time.perf_counter()
            model = make(model_name, fold, options).fit(train)
            fitted = time.perf_counter()
            scores = scores_of(model, test, halves, options.left_to_right)
            seconds, scoring = fitted - began, time.perf_counter() - fitted
            shown = ", ".join(f"{score} {value:.4f}" for score, value in scores.items())
            print(
                f"  fold {fold}, {model_name}: {len(model.topic_word_)} nodes, {model.n_iter_} sweeps in "
                f"{seconds:.0f} s, {seconds / model.n_iter_:.3f} s each, scored in {scoring:.0f} s: {shown}",
                flush=True,
            )
            for score, value in scores.items():
                found.setdefault((model_name, score), []).append(value)
            if model_name in TREES:
                describe(model)
                terms.setdefault(model_name, []).append(float(model.terms_per_topic()[-1].mean()))
                if fold == 0 and model_name.startswith("SD"):
                    show_shared(model, data.vocabulary)
    summarise(report, name, n_words, found, terms)
    report.close()


def summarise(report: Report, name: str, n_words: int, found: dict[tuple[str, str], list[float]], terms: Any) -> None:
    """The table, and which of the published orderings it has."""
    published = {("SD", "given scales"): PUBLISHED[name][0], ("NSD", "given scales"): PUBLISHED[name][1]}
    mean = {key: float(np.mean(values)) for key, values in found.items()}
    for score in SCORES:
        for model in MODELS:
            if (model, score) in found:
                values = found[model, score]
                spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
                report.row(f"{score}, per word: {model}", published.get((model, score)), mean[model, score], spread)
    uniform = -float(np.log(n_words))
    report.row("uniform distribution", None, uniform)

    def say(sentence: str, *needed: tuple[str, str], holds: Any) -> None:
        if all(key in mean for key in needed):
            held, gap = holds(*(mean[key] for key in needed))
            report.note(f"  {'yes' if held else 'NO '}  {sentence} ({gap:+.3f})")

    def above(least: float, most: float = np.inf) -> Any:
        return lambda ours, theirs: (least <= ours - theirs <= most, ours - theirs)

    report.note("Orderings: difference in brackets")
    for prior in ("", ", prior 0.1"):
        sd, nsd = f"SD{prior}", f"NSD{prior}"
        say(f"{sd} above {nsd} given scales, by 0.2 to 0.5", (sd, "given scales"), (nsd, "given scales"),
            holds=above(0.2, 0.5))  # fmt: skip
        for tree in (sd, nsd):
            say(f"{tree} within 0.15 of LDA by completion, or better", (tree, "completion"), ("LDA", "completion"),
                holds=above(-0.15))  # fmt: skip
            say(f"{tree} above uniform by 1, by completion", (tree, "completion"),
                holds=lambda ours: (ours > uniform + 1, ours - uniform))  # fmt: skip
        if sd in terms and nsd in terms:
            ratio = float(np.mean(np.divide(terms[sd], terms[nsd])))
            report.note(f"  {'yes' if ratio <= 0.5 else 'NO '}  {sd} has half the terms of {nsd} at the last scale "
                        f"(ratio {ratio:.2f})")  # fmt: skip
    for graph in ("graph", "graph, prior learned"):
        say(f"{graph} within 0.05 of hLDA, empirical", (graph, "empirical"), ("hLDA", "empirical"), holds=above(-0.05))
        say(f"{graph} below hLDA, left to right", (graph, "left to right"), ("hLDA", "left to right"),
            holds=above(-np.inf, 0.0))  # fmt: skip
        for pachinko in ("hPAM", "hPAM, prior 0.01"):
            say(f"{graph} above {pachinko}, empirical", (graph, "empirical"), (pachinko, "empirical"), holds=above(0.0))
            say(f"{graph} below {pachinko}, left to right", (graph, "left to right"), (pachinko, "left to right"),
                holds=above(-np.inf, 0.0))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--folds", type=int, default=1, help="of five")
    parser.add_argument("--warmup", type=int, default=500)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--thin", type=int, default=5)
    parser.add_argument("--nodes", type=int, nargs=3, default=[1, 20, 40], help="of trees, at most, scale by scale")
    parser.add_argument("--left-to-right", action="store_true")
    parser.add_argument("--quick", action="store_true", help="100 sweeps, then 50")
    options = parser.parse_args()
    if options.quick:
        options.warmup = 100
    for name in options.corpora:
        run(name, options)


if __name__ == "__main__":
    run_if_data(main)
