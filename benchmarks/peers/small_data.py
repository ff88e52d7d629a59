"""Whole fits of small data beside scikit-learn and hmmlearn, on one thread.

    python benchmarks/peers/small_data.py [--quick]

A ratio is the time of the peer over ours, from the shortest of several fits of each, taken in turn; sums over data
sets. All settings are the defaults, except that both Dirichlet process mixtures have at most 20 components (ours tries
about 14 starts and merges, scikit-learn's has one start). hmmlearn stops after ten iterations, ours goes on until the
log-likelihood settles. So hidden Markov models have three lines: the defaults, with the log-likelihoods that both
reach; ours only until it is as good as what hmmlearn's default gives; and ten iterations each.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
from scipy import sparse  # noqa: E402
from sklearn.datasets import make_blobs  # noqa: E402

REPEATS = 5


def ratio(theirs, ours, data_sets, repeats=REPEATS):
    """Seconds of both, summed over the data sets: of each the shortest of several fits."""
    total = np.zeros(2)
    for X in data_sets:
        best = np.full(2, np.inf)
        for _ in range(repeats + 1):  # the first one compiles
            for place, make in enumerate((theirs, ours)):
                began = time.process_time()
                make().fit(X)
                best[place] = min(best[place], time.process_time() - began)
        total += best
    return total


def as_good(theirs, ours, X, reached, repeats=REPEATS):
    """Seconds of both, ours with as many iterations as the log-likelihood `reached` takes; None if it never is."""
    history = ours(3, random_state=0).fit(X).history_
    # That of an iteration is of the parameters before it.
    enough = np.flatnonzero(np.append(history.log_likelihood, ours(3, random_state=0).fit(X).score(X)) >= reached)
    if not enough.size:
        return None
    n_iter = max(1, int(enough[0]))
    return ratio(
        lambda: theirs(3, random_state=0), lambda: ours(3, n_iter=n_iter, tol=-np.inf, random_state=0), [X], repeats
    )


def report(name, size, total, note=""):
    """One line."""
    text = f"{name:34s} {size:>14s}  {1e3 * total[0]:9.1f} ms {1e3 * total[1]:9.1f} ms {total[0] / total[1]:6.2f}"
    print(f"{text}  {note}".rstrip(), flush=True)


def blobs(n, d, k, n_sets):
    """Clusters that overlap a little."""
    return [make_blobs(n, d, centers=k, cluster_std=2.0, random_state=seed)[0] for seed in range(n_sets)]


def mixtures(n_sets):
    """Gaussian mixtures, and Dirichlet process mixtures by variational inference."""
    from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

    import pluri.mixtures as ours

    for n, d, k in ((50, 2, 3), (200, 2, 3), (200, 5, 4), (500, 3, 3), (2000, 5, 4), (1000, 100, 5), (10_000, 10, 5)):
        total = ratio(
            lambda k=k: GaussianMixture(k, random_state=0),
            lambda k=k: ours.GaussianMixture(k, random_state=0),
            blobs(n, d, k, n_sets),
        )
        report("GaussianMixture", f"{n} x {d}", total)
    for n, d, k in ((50, 2, 3), (200, 2, 3), (2000, 5, 4)):
        total = ratio(
            lambda: BayesianGaussianMixture(n_components=20, random_state=0),
            lambda: ours.DirichletProcessMixture(inference="vb", max_components=20, random_state=0),
            blobs(n, d, k, n_sets),
            repeats=2,
        )
        report("DirichletProcessMixture vb", f"{n} x {d}", total)


def hidden_markov_models(n_sets):
    """Three emission families."""
    from hmmlearn import hmm

    from pluri.sequences import CategoricalHMM, GaussianHMM, PoissonHMM

    for n in (50, 500, 5000):
        state = (np.arange(n) // 25) % 3
        streams = [np.random.default_rng(seed) for seed in range(n_sets)]
        gaussian = [rng.normal(size=(n, 2)) + 3.0 * state[:, None] for rng in streams]
        counts = [rng.poisson(3 + 4 * state)[:, None] for rng in streams]
        symbols = [((state + rng.integers(0, 2, n)) % 4)[:, None] for rng in streams]
        cases = (
            ("GaussianHMM", hmm.GaussianHMM, GaussianHMM, gaussian),
            ("PoissonHMM", hmm.PoissonHMM, PoissonHMM, counts),
            ("CategoricalHMM", hmm.CategoricalHMM, CategoricalHMM, symbols),
        )
        for name, theirs, ours, data in cases:
            total = ratio(lambda c=theirs: c(3, random_state=0), lambda c=ours: c(3, random_state=0), data)
            reached = [[c(3, random_state=0).fit(X).score(X) for X in data] for c in (theirs, ours)]
            report(name, str(n), total, "log-likelihoods {:.1f} and {:.1f}".format(*np.mean(reached, axis=1)))
            pairs = [as_good(theirs, ours, X, peer) for X, peer in zip(data, reached[0])]
            n_never = sum(pair is None for pair in pairs)
            total = sum((pair for pair in pairs if pair is not None), np.zeros(2))
            report(f"{name}, until as good", str(n), total, f"{n_never} of {len(pairs)} never" if n_never else "")
            total = ratio(
                lambda c=theirs: c(3, n_iter=10, tol=0.0, random_state=0),
                lambda c=ours: c(3, n_iter=10, tol=0.0, random_state=0),
                data,
            )
            report(f"{name}, ten iterations", str(n), total)


def topics(n_sets):
    """Latent Dirichlet allocation with ten topics, against scikit-learn's batch variational Bayes."""
    from sklearn.decomposition import LatentDirichletAllocation as Theirs

    from pluri.topics import LatentDirichletAllocation as Ours

    for n, vocabulary in ((50, 300), (200, 1000)):
        data = []
        for seed in range(n_sets):
            rng = np.random.default_rng(seed)
            words = rng.dirichlet(np.full(vocabulary, 0.05), 10)
            shares = rng.dirichlet(np.full(10, 0.2), n)
            data.append(sparse.csr_matrix(np.stack([rng.multinomial(80, share @ words) for share in shares])))
        for inference in ("gibbs", "vb", "svi"):
            total = ratio(
                lambda: Theirs(10, random_state=0),
                lambda how=inference: Ours(10, inference=how, random_state=0),
                data,
                repeats=1,
            )
            report(f"LDA {inference}", f"{n} documents", total)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one data set of each size")
    n_sets = 1 if parser.parse_args().quick else 5
    warnings.simplefilter("ignore")
    print(f"{'model':34s} {'size':>14s}  {'peer':>12s} {'ours':>12s} {'ratio':>6s}")
    mixtures(n_sets)
    hidden_markov_models(n_sets)
    topics(n_sets)


if __name__ == "__main__":
    main()
