"""Clusters of documents without choosing their number: a Dirichlet process mixture on NIPS papers.

Published: 300 papers, 5,000 words of vocabulary, 130,000 tokens, two clusters at the start, concentration 1: converged
after 20 sweeps to 11 clusters, among them neural networks, mixtures and Bayesian methods, vision, and reinforcement
learning. Which papers, and the smoothing of the words, are not given. Here: 300 papers at random, their 5,000 most
frequent words, thinned to the same number of tokens; smoothing 0.05, 0.1 and 0.5. Rows alone are sampled, as published,
and with split and merge moves.

Needs ``nips_uci_bow.npz`` in PLURI_DATA.

    python benchmarks/reproduce/dp_documents.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from published import run_if_data
from scipy import sparse

from pluri.datasets import data_home
from pluri.mixtures import DirichletProcessMixture

N_PAPERS, N_WORDS, N_TOKENS = 300, 5000, 130_000


def papers(seed: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    archive = np.load(data_home() / "nips_uci_bow.npz")
    X = sparse.csr_matrix((archive["data"], archive["indices"], archive["indptr"]), shape=archive["shape"])
    rng = np.random.default_rng(seed)
    X = X[np.sort(rng.choice(X.shape[0], N_PAPERS, replace=False))]
    kept = np.sort(np.argsort(-np.asarray(X.sum(axis=0)).ravel())[:N_WORDS])
    X = X[:, kept].tocsr()
    X.data = rng.binomial(X.data.astype(np.int64), min(1.0, N_TOKENS / X.sum())).astype(np.float64)
    X.eliminate_zeros()
    return X, archive["vocab"][kept]


def main() -> None:
    warnings.simplefilter("ignore")
    for seed in range(2):
        X, words = papers(seed)
        print(f"\nsample {seed}: {X.shape[0]} papers, {X.shape[1]} words, {int(X.sum())} tokens")
        for smoothing in (0.05, 0.1, 0.5):
            for moves in (False, True):
                model = DirichletProcessMixture(
                    "multinomial",
                    component_prior={"concentration": smoothing},
                    concentration=1.0,
                    init_clusters=2,
                    n_draws=50,
                    n_warmup=0,
                    thin=1,
                    n_chains=2,
                    split_merge=5 if moves else 0,
                    random_state=seed,
                )
                begun = time.perf_counter()
                model.fit(X)
                counts = np.atleast_2d(model.n_clusters_trace_)
                print(
                    f"  smoothing {smoothing:<4} {'split-merge' if moves else 'rows only  '}: clusters after 20 sweeps "
                    f"{counts[:, 19].tolist()}, after 50 {counts[:, -1].tolist()}; point estimate {model.n_clusters_} "
                    f"(published: 11); {time.perf_counter() - begun:.1f} s",
                    flush=True,
                )
        sizes = np.bincount(model.labels_)
        for j in np.argsort(-sizes)[:8]:
            top = np.argsort(-lift(X, model.labels_ == j))[:10]
            print(f"    {sizes[j]:3d} papers: {' '.join(words[top])}")


def lift(X: sparse.csr_matrix, members: np.ndarray) -> np.ndarray:
    """How much more often a cluster has a word than all papers, weighed by how often that is."""
    inside, overall = np.asarray(X[members].sum(axis=0)).ravel(), np.asarray(X.sum(axis=0)).ravel()
    inside, overall = inside / inside.sum(), overall / overall.sum()
    return inside * np.log(np.maximum(inside, 1e-12) / overall)


if __name__ == "__main__":
    run_if_data(main)
