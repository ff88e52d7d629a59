"""Active learning beside scikit-activeml: the same scores, and the time that a run of queries takes.

A ratio is printed only where both ask for the same rows, or give the same scores.

    python benchmarks/peers/decisions_active.py            # pool of 2,000
    python benchmarks/peers/decisions_active.py --quick    # pool of 500
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import QueryByCommittee as PeerCommittee
from skactiveml.pool import UncertaintySampling
from skactiveml.utils import MISSING_LABEL
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from pluri.decisions import ActiveLearner, Committee, committee_scores

N_START, N_QUERIES = 20, 30


def ours(X: np.ndarray, y: np.ndarray, strategy: str) -> tuple[list[int], float]:
    """Rows of the pool in the order of queries, and CPU seconds."""
    begun = time.process_time()
    learner = ActiveLearner(LogisticRegression(max_iter=1000), strategy, n_queries=N_QUERIES, random_state=0)
    learner.fit(X[:N_START], y[:N_START]).run(X[N_START:], y[N_START:])
    return (learner.queried_ + N_START).tolist(), time.process_time() - begun


def theirs(X: np.ndarray, y: np.ndarray, method: str) -> tuple[list[int], float]:
    begun = time.process_time()
    known = np.full(len(y), MISSING_LABEL)
    known[:N_START] = y[:N_START]
    strategy, asked = UncertaintySampling(method=method, random_state=0), []
    model = SklearnClassifier(LogisticRegression(max_iter=1000), classes=np.unique(y))
    for _ in range(N_QUERIES):
        row = int(strategy.query(X=X, y=known, clf=model)[0])
        known[row] = y[row]
        asked.append(row)
    return asked, time.process_time() - begun


def main() -> None:
    warnings.simplefilter("ignore")
    n_pool = 500 if "--quick" in sys.argv else 2000
    X, y = make_classification(n_pool, 20, n_informative=8, n_classes=4, random_state=0)
    print(f"{N_QUERIES} queries one by one from a pool of {n_pool}, logistic regression, 4 classes")
    print(f"{'strategy':<18}{'ours, s':>9}{'theirs, s':>11}   ours / theirs")
    for name, method in (("least_confident", "least_confident"), ("margin", "margin_sampling"), ("entropy", "entropy")):
        mine, seconds = ours(X, y, name)
        peer, other = theirs(X, y, method)
        same = sum(a == b for a, b in zip(mine, peer))
        verdict = f"{seconds / other:.2f}x" if same == N_QUERIES else f"DISAGREES after {same} of {N_QUERIES} queries"
        print(f"{name:<18}{seconds:9.2f}{other:11.2f}   {verdict}", flush=True)
    committee = Committee(LogisticRegression(max_iter=1000), random_state=0).fit(X[:100], y[:100])
    members = [SklearnClassifier(one, classes=np.unique(y)) for one in committee.estimators_]
    for member, one in zip(members, committee.estimators_):
        member.fit(X[:100], y[:100])
        member.estimator_ = one
    P = np.stack([member.predict_proba(X[100:]) for member in members])
    for kind, method in (("kl", "KL_divergence"), ("vote_entropy", "vote_entropy")):
        begun = time.process_time()
        mine_scores = committee_scores(P, kind)
        seconds = time.process_time() - begun
        peer_scores = PeerCommittee(method=method, random_state=0)
        begun = time.process_time()
        _, found = peer_scores.query(
            X=X, y=np.where(np.arange(len(y)) < 100, y, MISSING_LABEL), ensemble=members, fit_ensemble=False,
            candidates=X[100:], return_utilities=True,
        )  # fmt: skip
        other = time.process_time() - begun
        gap = float(np.nanmax(np.abs(found[0] - mine_scores)))
        print(f"{kind:<18}{seconds:9.4f}{other:11.4f}   largest difference of scores {gap:.1e} (theirs predicts too)")


if __name__ == "__main__":
    main()
