"""One hidden Markov model a class: `SequenceClassifier` beside a loop over hmmlearn's models, on one thread.

    python benchmarks/peers/sequence_classifier.py [--quick]

Both libraries start from the same parameters in every class and do the same number of EM sweeps. A ratio (CPU seconds
of hmmlearn over ours, the shortest of several runs of each, taken in turn) is printed only if the log-likelihoods of
all held-out sequences under all classes agree to 1e-6. Sequences are simulated, of the size of spoken digits: ten
classes, about 40 steps of 13 features.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

N_CLASSES, N_FEATURES, N_SWEEPS = 10, 13, 20


def simulated(rng: np.random.Generator, n_each: int, k: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Sequences that pass through the levels of their class."""
    levels = np.random.default_rng(0).normal(size=(N_CLASSES, k, N_FEATURES))
    X, y = [], np.repeat(np.arange(N_CLASSES), n_each)
    for label in y:
        length = int(rng.integers(25, 60))
        X.append(levels[label, np.arange(length) * k // length] + rng.normal(size=(length, N_FEATURES)))
    return X, y


def starting_values(X: list[np.ndarray], k: int, kind: str) -> dict[str, np.ndarray]:
    rows = np.concatenate(X)
    spread = {"diag": np.tile(rows.var(axis=0), (k, 1)), "full": np.tile(np.cov(rows.T), (k, 1, 1))}[kind]
    return {
        "startprob_": np.full(k, 1 / k),
        "transmat_": np.full((k, k), 0.2 / k) + 0.8 * np.eye(k),
        "means_": rows[:: len(rows) // k][:k],
        "covars_": spread,
    }


class OneModelAClass:
    """What one writes with hmmlearn."""

    def __init__(self, k: int, kind: str, start: dict[str, np.ndarray]) -> None:
        self.k, self.kind, self.start = k, kind, start

    def fit(self, X: list[np.ndarray], y: np.ndarray) -> OneModelAClass:
        from hmmlearn.hmm import GaussianHMM

        self.models = []
        for label in np.unique(y):
            own = [item for item, each in zip(X, y) if each == label]
            model = GaussianHMM(self.k, self.kind, n_iter=N_SWEEPS, tol=-np.inf, init_params="", covars_prior=0.0,
                                covars_weight=0.0)  # fmt: skip
            for name, value in self.start.items():
                setattr(model, name, value)
            self.models.append(model.fit(np.concatenate(own), [len(item) for item in own]))
        return self

    def log_likelihoods(self, X: list[np.ndarray]) -> np.ndarray:
        return np.array([[model.score(item) for model in self.models] for item in X])


def ours(k: int, kind: str, start: dict[str, np.ndarray]) -> Any:
    from pluri.sequences import GaussianHMM, SequenceClassifier

    given = {f"{name}init": value for name, value in start.items()}
    return SequenceClassifier(
        GaussianHMM(k, kind, n_iter=N_SWEEPS, tol=-np.inf, covars_prior=0.0, covars_weight=0.0, **given)
    )


def compare(k: int, kind: str, n_each: int, repeats: int) -> None:
    rng = np.random.default_rng(1)
    (X, y), (test, _) = simulated(rng, n_each, k), simulated(rng, n_each // 2, k)
    start = starting_values(X, k, kind)
    makes = [lambda: OneModelAClass(k, kind, start), lambda: ours(k, kind, start)]
    seconds, answers = np.full((2, 2), np.inf), [np.empty(0), np.empty(0)]
    for _ in range(repeats + 1):  # the first one compiles
        for place, make in enumerate(makes):
            began = time.process_time()
            model = make().fit(X, y)
            middle = time.process_time()
            answers[place] = model.log_likelihoods(test)
            seconds[place] = np.minimum(seconds[place], [middle - began, time.process_time() - middle])
    size = f"{kind}, {k} states, {len(X)} sequences"
    if not np.allclose(*answers, rtol=1e-6):
        print(f"{size}: answers differ by {np.abs(answers[0] - answers[1]).max():.2g}: no ratio", flush=True)
        return
    for place, work in enumerate((f"fit, {N_SWEEPS} sweeps a class", "log-likelihoods of held-out sequences")):
        peer, own = seconds[:, place]
        print(f"{size:34} {work:40} {1e3 * peer:9.0f} ms {1e3 * own:9.0f} ms {peer / own:6.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(f"{'data':34} {'work':40} {'hmmlearn':>12} {'pluri':>12} {'ratio':>6}")
    for kind in ("diag", "full"):
        compare(5, kind, 20 if quick else 100, 1 if quick else 3)


if __name__ == "__main__":
    main()
