"""Which optimiser of SNE gives the lowest cost in how much time, on data that none was developed on.

    PLURI_DATA=folder python benchmarks/accuracy/sne_optimizers.py [--quick]

Up to 800 rows of five sets, three seeds, perplexity 15, default settings of each optimiser. Costs are above the lowest
of all runs on the same data, in percent of it; seconds are CPU seconds. ``--quick``: one seed, without wormholes.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer

from pluri.datasets import data_home
from pluri.embedding import SNE

SETTINGS = {
    "lbfgs": {},
    "lbfgs, random start": {"init": "random"},
    "lbfgs, annealed perplexity": {"perplexity_start": 200.0},
    "lbfgs, an extra dimension": {"extra_dimensions": 1},
    "spectral": {"optimizer": "spectral"},
    "momentum": {"optimizer": "momentum"},
    "jitter": {"optimizer": "jitter"},
    "wormholes": {"optimizer": "wormholes"},
}
FILES = {"phoneme_esl": "X", "vowel_esl": "X_train", "oil_flow": "X_train", "coil20_32x32": "X"}
N_ROWS = 800


def tables() -> dict[str, np.ndarray]:
    """Rows of each set, standardised by the largest standard deviation of a column."""
    rng = np.random.default_rng(0)
    found = {"breast cancer": load_breast_cancer().data}
    for name, key in FILES.items():
        path = data_home() / f"{name}.npz"
        if path.is_file():
            with np.load(path, allow_pickle=False) as file:
                X = file[key]
            found[name] = X.reshape(len(X), -1).astype(float)
    scaled = {}
    for name, X in found.items():
        X = X[rng.permutation(len(X))[:N_ROWS]]
        deviations = X.std(axis=0)
        scaled[name] = X / np.where(deviations > 0, deviations, 1.0) if X.shape[1] < 100 else X / X.std()
    return scaled


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    names = [name for name in SETTINGS if not (quick and name == "wormholes")]
    excess: dict[str, list[float]] = {name: [] for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    SNE(random_state=0).fit(np.random.default_rng(0).normal(size=(60, 3)))  # compiles
    for title, X in tables().items():
        costs: dict[str, list[float]] = {name: [] for name in names}
        for seed in range(1 if quick else 3):
            for name in names:
                began = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = SNE(perplexity=15, random_state=seed, **SETTINGS[name]).fit(X)
                seconds[name].append(time.process_time() - began)
                costs[name].append(model.kl_divergence_)
        least = min(min(values) for values in costs.values())
        print(f"\n{title}: {X.shape[0]} rows, {X.shape[1]} columns, lowest cost {least:.2f}")
        for name in names:
            above = 100 * (np.array(costs[name]) / least - 1)
            excess[name] += above.tolist()
            print(f"  {name:<28s} {above.mean():6.2f} % above (largest {above.max():6.2f} %)", flush=True)
    print(f"\n{'all sets':<30s} {'mean':>8s} {'largest':>9s} {'seconds':>9s}")
    for name in names:
        print(f"{name:<30s} {np.mean(excess[name]):6.2f} % {np.max(excess[name]):7.2f} % {np.mean(seconds[name]):9.2f}")


if __name__ == "__main__":
    main()
