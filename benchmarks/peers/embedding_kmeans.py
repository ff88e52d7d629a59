"""SpectralKMeans beside scikit-learn's KMeans and SpectralClustering on 20 Newsgroups: seconds, inertia, certificate.

All 18,846 posts as sparse tf-idf rows of unit length, 20,000 words, 20 clusters. All fits are in one process with one
thread, KMeans with ten starts (its best) and with one; CPU seconds of the whole fit. SpectralClustering needs a matrix
of all similarities: it is given a sample of 2,000 posts, and so are the others once more. It minimises another cost.

Needs ``newsgroups20_bydate.jsonl.gz`` in PLURI_DATA.

    python benchmarks/peers/embedding_kmeans.py            # about two minutes of CPU
    python benchmarks/peers/embedding_kmeans.py --quick    # the sample alone
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

from pluri.datasets import load_newsgroups
from pluri.embedding import SpectralKMeans
from pluri.metrics import one_to_one_accuracy

K = 20


def cost(X: Any, labels: np.ndarray) -> float:
    means = [np.asarray(X[labels == one].sum(axis=0)).ravel() for one in np.unique(labels)]
    sizes = [(labels == one).sum() for one in np.unique(labels)]
    total = float(X.multiply(X).sum())
    return total - sum(float(mean @ mean) / size for mean, size in zip(means, sizes))


def compare(X: Any, y: np.ndarray, models: dict[str, Any]) -> None:
    print(f"\n{X.shape[0]} posts, {X.shape[1]} words, {X.nnz} entries")
    seconds = {}
    for name, model in models.items():
        begun = time.process_time()
        model.fit(X)
        seconds[name] = time.process_time() - begun
        gap = f", certified to {100 * model.gap_:.2f} %" if hasattr(model, "gap_") else ""
        print(
            f"  {name:44}: {seconds[name]:6.2f} s, inertia {cost(X, model.labels_):.2f}, "
            f"accuracy {100 * one_to_one_accuracy(y, model.labels_):.1f} %{gap}",
            flush=True,
        )
    ours = seconds["SpectralKMeans"]
    for name in ("KMeans, 10 starts, seed 0", "SpectralClustering, cosine"):
        if name in seconds:
            print(f"  ratio to {name}: {seconds[name] / ours:.1f}")


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    documents = load_newsgroups()
    X = TfidfVectorizer(max_features=20_000, sublinear_tf=True, stop_words="english").fit_transform(documents.texts)
    full = np.asarray(X.sum(axis=1)).ravel() > 0
    X, y = X[full], documents.labels[full]
    sample = np.random.default_rng(0).permutation(X.shape[0])[:2000]
    with threadpool_limits(1):
        common = {
            "SpectralKMeans": SpectralKMeans(K, random_state=0),
            "SpectralKMeans, kmeans on the coordinates": SpectralKMeans(K, assign="kmeans", random_state=0),
            "SpectralKMeans, centred": SpectralKMeans(K, assign="pqr", center=True),
            "KMeans, 10 starts, seed 0": KMeans(K, n_init=10, random_state=0),
        }
        spectral = SpectralClustering(K, affinity="cosine", assign_labels="cluster_qr", random_state=0)
        compare(X[sample], y[sample], common | {"SpectralClustering, cosine": spectral})
        if not quick:
            more = {
                "KMeans, 10 starts, seed 1": KMeans(K, n_init=10, random_state=1),
                "KMeans, 1 start": KMeans(K, n_init=1, random_state=0),
            }
            compare(X, y, common | more)


if __name__ == "__main__":
    main("--quick" in sys.argv)
