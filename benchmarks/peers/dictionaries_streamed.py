"""A dictionary from a stream of patches: memory and time, and how well it does beside variational Bayes in memory.

Patches of 8 x 8 of scikit-learn's two sample pictures are cut when they are asked for, 10,000 at a time, and never
kept: 100,000 and then 1,000,000 of them, 128 atoms, one pass of steps (the stream is also read for the mean square of
the rows, for their number, and for the bound). Printed are CPU seconds (set OPENBLAS_NUM_THREADS=1 for those of one
thread), the peak of the memory of the process before and after, and the relative error with which held-out patches are
reconstructed; last, that of variational Bayes on 5,000 patches.

    python benchmarks/peers/dictionaries_streamed.py            # about three minutes
    python benchmarks/peers/dictionaries_streamed.py --quick    # 20,000 and 100,000 patches
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_sample_images

from pluri.engine import IterableSource
from pluri.factors import BetaProcessDictionary

AT_A_TIME, SIDE, N_ATOMS = 10_000, 8, 128
PICTURES = [picture.mean(axis=2) for picture in load_sample_images().images]
SETTINGS = {"n_components": N_ATOMS, "init": "svd", "center": "sample", "dtype": "float32", "random_state": 0}
STEPS = {"batch_size": 256, "learning_decay": 0.6, "learning_offset": 2.0}


def patches(n: int, seed: int) -> np.ndarray:
    """Patches from anywhere in the pictures."""
    rng = np.random.default_rng(seed)
    windows = [np.lib.stride_tricks.sliding_window_view(picture, (SIDE, SIDE)) for picture in PICTURES]
    halves = [w[rng.integers(w.shape[0], size=n // 2), rng.integers(w.shape[1], size=n // 2)] for w in windows]
    return rng.permutation(np.concatenate(halves).reshape(-1, SIDE**2))


def stream(n: int) -> IterableSource:
    def batches() -> Iterator[tuple[np.ndarray, None]]:
        for number in range(n // AT_A_TIME):
            yield patches(AT_A_TIME, 1 + number), None

    return IterableSource(batches)


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def held_out_error(model: BetaProcessDictionary) -> float:
    X = patches(2000, 10**6)
    centred = X - X.mean(axis=1, keepdims=True)
    return float(np.linalg.norm(X - model.reconstruct(X)) / np.linalg.norm(centred))


def main() -> None:
    warnings.simplefilter("ignore")
    quick = "--quick" in sys.argv[1:]
    BetaProcessDictionary(inference="svi", max_iter=1, **SETTINGS, **STEPS).fit(stream(AT_A_TIME))  # compiles
    for n in (20_000, 100_000) if quick else (100_000, 1_000_000):
        before, begin = megabytes(), time.process_time()
        model = BetaProcessDictionary(inference="svi", max_iter=1, **SETTINGS, **STEPS).fit(stream(n))
        spent, after = time.process_time() - begin, megabytes()
        print(
            f"{n:9,d} patches streamed: {spent:6.1f} s, peak memory {before:.0f} -> {after:.0f} MB, held-out error "
            f"{held_out_error(model):.4f}, noise sd {model.noise_variance_**0.5:.2f}",
            flush=True,
        )
    X, begin = patches(5000, 0), time.process_time()
    whole = BetaProcessDictionary(inference="vb", max_iter=60, **SETTINGS).fit(X)
    print(
        f"    5,000 patches by vb:   {time.process_time() - begin:6.1f} s, {'':27s} held-out error "
        f"{held_out_error(whole):.4f}, noise sd {whole.noise_variance_**0.5:.2f}"
    )


if __name__ == "__main__":
    main()
