"""How strong the default prior of the variances of a Gaussian HMM should be, on data that had no part in the choice.

Log-likelihood of held-out sequences, in nats a frame, of diagonal and full covariances learned from few and from more
sequences, in the units of the files and with all columns divided by a thousand. Each row is one learning set; its
columns are priors: a share of each feature's variance (the default is 1e-3), hmmlearn's 1e-2 in squared units, none.

What was seen: from 24 sequences, hmmlearn's constant costs 3 to 35 nats a frame in the small unit, where a share
changes nothing, and all shares up to 0.1 are within 0.1 nat of each other for diagonal covariances. From four
sequences, and for full covariances (there a warning tells that there are too many parameters), stronger priors
predict better, up to ten observations' worth. The default stays weak for the sake of states that are much narrower
than the data as a whole: a share s adds s / n of the variance of the data to that of a state of n rows, whatever its
own is.

    PLURI_DATA=folder python benchmarks/reproduce/hmm_variance_prior.py
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from published import run_if_data

from pluri.sequences import GaussianHMM

Sequences = list[np.ndarray]
SHARES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
N_STATES = 6


def data_sets(folder: Path) -> Iterator[tuple[str, Sequences]]:
    """Sequences of speech and motion, in random order."""
    vowels = np.load(folder / "japanese_vowels.npz")
    yield "vowels", np.split(vowels["X_train"], np.cumsum(vowels["len_train"])[:-1])
    digits = np.load(folder / "fsdd_mfcc13.npz")
    yield "digits", np.split(digits["X"], np.cumsum(digits["length"])[:-1])[::5]
    walks = np.load(folder / "mocap_cmu_35_16.npz")
    moving = walks["X"][:, walks["X"].std(axis=0) > 1e-6][:, ::6]
    yield "walks", np.split(moving, np.cumsum(walks["length"])[:-1])


def held_out(train: Sequences, test: Sequences, kind: str, prior: float | np.ndarray | str) -> float:
    """Log-likelihood a frame of sequences that were not learned from; starts and states are the same for all priors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = GaussianHMM(N_STATES, covariance_type=kind, covars_prior=prior, n_iter=50, random_state=0).fit(
                train
            )
            return float(model.score(test)) / sum(map(len, test))
        except (ValueError, FloatingPointError):  # without a prior a variance may vanish
            return np.nan


def of_share(share: float, train: Sequences, kind: str) -> np.ndarray:
    """The prior that is a share of each feature's variance."""
    variance = share * np.concatenate(train).var(axis=0)
    return variance if kind == "diag" else np.broadcast_to(np.diag(variance), (N_STATES, len(variance), len(variance)))


def main(folder: Path) -> None:
    print(
        f"{'data':8} {'covars':6} {'learned':>7} {'units':>6}  " + "".join(f"{share:9.0e}" for share in SHARES), end=""
    )
    print(f"{'hmmlearn':>10}{'none':>9}{'default':>9}")
    for name, sequences in data_sets(folder):
        order = np.random.default_rng(0).permutation(len(sequences))
        for kind in ("diag", "full"):
            for n_train in (4, 24):
                for unit in (1.0, 1e-3):
                    scaled = [unit * sequences[i].astype(float) for i in order]
                    train, test = scaled[:n_train], scaled[24:72]
                    priors = [of_share(share, train, kind) for share in SHARES]
                    found = [held_out(train, test, kind, prior) for prior in (*priors, 1e-2, 0.0, "auto")]
                    shift = np.log(unit) * sequences[0].shape[1]  # densities in the units of the file
                    line = "".join(f"{value + shift:9.2f}" for value in found)
                    print(f"{name:8} {kind:6} {n_train:7} {unit:6g}  {line}", flush=True)


if __name__ == "__main__":
    run_if_data(lambda: main(Path(os.environ["PLURI_DATA"])))
