"""Which hidden Markov model a class should have by default: spoken vowels and spoken digits.

Accuracy of `SequenceClassifier` on sequences that were not learned from: the nine speakers of the Japanese vowels (270
utterances to learn from, 370 others), and the ten digits of the spoken digits, each speaker left out in turn. Columns
are numbers of states, rows are forms of the covariances; the first number of the first row is what ``GaussianHMM()``
gives, one Gaussian a class.

    PLURI_DATA=folder python benchmarks/reproduce/sequence_classifier.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from published import run_if_data

from pluri.sequences import GaussianHMM, SequenceClassifier

Sequences = list[np.ndarray]
Split = tuple[Sequences, np.ndarray, Sequences, np.ndarray]
STATES = (1, 2, 3, 5, 8)
KINDS = ("diag", "tied", "full")


def vowels(folder: Path) -> Iterator[Split]:
    """The published split."""
    data = np.load(folder / "japanese_vowels.npz")
    parts = [
        np.split(data[f"X_{part}"].astype(float), np.cumsum(data[f"len_{part}"])[:-1]) for part in ("train", "test")
    ]
    yield parts[0], data["y_train"], parts[1], data["y_test"]


def digits(folder: Path, every: int = 1) -> Iterator[Split]:
    """Each speaker left out in turn; `every` so many recordings."""
    data = np.load(folder / "fsdd_mfcc13.npz")
    sequences = np.split(data["X"].astype(float), np.cumsum(data["length"])[:-1])
    kept = np.arange(0, len(sequences), every)
    for speaker in np.unique(data["speaker"]):
        held_out = data["speaker"][kept] == speaker
        train, test = kept[~held_out], kept[held_out]
        yield ([sequences[n] for n in train], data["digit"][train], [sequences[n] for n in test], data["digit"][test])


def first_of_each(split: Split, n: int) -> Split:
    """A split with the first so many training sequences of each class."""
    train, y_train, test, y_test = split
    kept = np.concatenate([np.flatnonzero(y_train == label)[:n] for label in np.unique(y_train)])
    return [train[place] for place in kept], y_train[kept], test, y_test


def accuracy(model: SequenceClassifier, splits: list[Split]) -> float:
    """Share of right answers over all splits."""
    right = []
    for train, y_train, test, y_test in splits:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(train, y_train)
        right.append(model.predict(test) == y_test)
    return float(np.concatenate(right).mean())


def table(name: str, splits: list[Split]) -> None:
    """Print the accuracies of one data set."""
    print(f"\n{name}: accuracy in per cent by number of states")
    print(f"{'covariances':12}" + "".join(f"{k:8}" for k in STATES) + f"{'CPU seconds':>13}")
    for kind in KINDS:
        began = time.process_time()
        found = [
            accuracy(SequenceClassifier(GaussianHMM(k, covariance_type=kind, random_state=0)), splits) for k in STATES
        ]
        line = "".join(f"{100 * value:8.2f}" for value in found)
        print(f"{kind:12}{line}{time.process_time() - began:13.1f}", flush=True)
    print(f"default: {100 * accuracy(SequenceClassifier(), splits):.2f}", flush=True)


def main(folder: Path) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="every tenth recording of the digits")
    quick = parser.parse_args().quick
    for split in vowels(folder):
        table("Japanese vowels, speakers", [split])
        table("the same, six utterances of each to learn from", [first_of_each(split, 6)])
    table("spoken digits, each speaker left out", list(digits(folder, 10 if quick else 1)))


if __name__ == "__main__":
    run_if_data(lambda: main(Path(os.environ["PLURI_DATA"])))
