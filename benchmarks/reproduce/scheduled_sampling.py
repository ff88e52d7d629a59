"""Scheduled sampling: decoders that meet their own mistakes in training, against ones that never do.

Five experiments over three seeds, each with the mean and half the width of its 95 % interval (t distribution over the
seeds: with three of them, 2.5 standard deviations):

- sticky frames, with the figures of a prototype (a tanh network with one-hot labels) beside ours, and whether each
  seed shows the pattern that was published for speech: feeding true labels gives the lowest error with true labels
  before each and the highest without, and 0.5 -> 0 lowers the latter by a quarter;
- two tokens: P(y_2 = a | a) after training with a constant share eps of true tokens, which is (1 + eps) / 2;
- brackets, a stand-in for parsing: F1 of labelled brackets, in per cent, and invalid trees;
- captions of shapes, a stand-in for captions of pictures: BLEU-4, exact-match METEOR and CIDEr of greedy decoding, of
  the epoch with the lowest validation loss of 100;
- spoken digits as frames, a stand-in for TIMIT (`PLURI_DATA` is the folder of the data files).

Bengio, Vinyals, Jaitly and Shazeer (2015), Scheduled sampling for sequence prediction with recurrent neural networks,
NeurIPS.

    PLURI_DATA=folder python benchmarks/reproduce/scheduled_sampling.py [--only sticky toy brackets captions digits]
        [--seeds 0 1 2] [--quick] [--results table.jsonl]      # goes on where it was stopped
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from published import Report, half_width, kept, run_if_data

from pluri.datasets import load_spoken_digit_frames, make_bracketed_sentences, make_shape_captions, make_sticky_frames
from pluri.metrics import bleu_score, cider_score, exact_meteor_score
from pluri.networks import ConstantRate, EpochRamp, FrameTagger, SequenceDecoder, SequenceParser

#: Schedules of the speech experiment, and the prototype's errors on sticky frames: next step, greedy, beam of 5.
RAMPS: dict[str, tuple[Any, tuple[float, float, float]]] = {
    "always sampling": (EpochRamp(0.0, 0.0), (0.184, 0.237, 0.227)),
    "0.25 -> 0": (EpochRamp(0.25, 0.0), (0.172, 0.237, 0.221)),
    "0.5 -> 0": (EpochRamp(0.5, 0.0), (0.165, 0.231, 0.217)),
    "0.9 -> 0.5": (EpochRamp(0.9, 0.5), (0.100, 0.304, 0.238)),
    "true labels": (None, (0.088, 0.413, 0.325)),
}
#: Frame errors of the speech experiment: next step (validation), decoding (test).
TIMIT = {
    "always sampling": (0.346, 0.358),
    "0.25 -> 0": (0.343, 0.345),
    "0.5 -> 0": (0.341, 0.350),
    "0.9 -> 0.5": (0.198, 0.420),
    "true labels": (0.150, 0.460),
}


def tagger_errors(model: FrameTagger, X: list[Any], y: list[Any], beam_size: int) -> tuple[float, float, float]:
    """Errors with the true labels before each, greedily, and by a beam."""
    scores = model.evaluate(X, y)
    beam = float(np.mean(model.predict(X, beam_size=beam_size) != np.concatenate(y)))
    return scores.teacher_forced_error, scores.free_running_error, beam


#: What an experiment is told: seeds, whether it is the short form, and where results are kept.
Given = argparse.Namespace


def result(given: Given, experiment: str, way: str, seed: int, compute: Callable[[], Any]) -> Any:
    """What one fit comes to, from the file of results if it is there."""
    which = {"experiment": experiment, "way": way, "seed": seed, "quick": given.quick}
    return kept(given.results, which, compute)


def sticky(given: Given) -> None:
    """The table of sticky frames, and its pattern in each seed."""
    report = Report("Sticky frames: error rates of a tanh network with 48 units")
    n, n_held = (60, 20) if given.quick else (300, 100)
    held, test = slice(n, n + n_held), slice(n + n_held, None)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in RAMPS}
    for seed in given.seeds:
        data = make_sticky_frames(n + 2 * n_held, random_state=seed)
        cuts = np.cumsum(data.lengths)[:-1]
        X, y = np.split(data.X, cuts), np.split(data.states, cuts)
        for name, (schedule, _) in RAMPS.items():
            model = FrameTagger(
                "rnn", hidden_size=48, embedding_size=10, schedule=schedule, batch_size=30, max_epochs=25,
                min_epochs=11, n_iter_no_change=25, learning_rate=3e-3, random_state=seed,
            )  # fmt: skip

            def errors(model: FrameTagger = model, X: Any = X, y: Any = y) -> tuple[float, float, float]:
                model.fit(X[:n], y[:n], validation_set=(X[held], y[held]))
                return tagger_errors(model, X[test], y[test], 5)

            found[name].append(result(given, "sticky", name, seed, errors))
    for name, (_, published) in RAMPS.items():
        for place, what in enumerate(("next step", "greedy", "beam of 5")):
            ours = [row[place] for row in found[name]]
            report.row(f"{name}, {what}", published[place], float(np.mean(ours)), half_width(ours))
    for number, seed in enumerate(given.seeds):
        at = {name: rows[number] for name, rows in found.items()}
        true = at["true labels"]
        lowest = all(true[0] <= row[0] for row in at.values())
        highest = all(true[1] >= row[1] for row in at.values())
        fall = 1 - at["0.5 -> 0"][1] / true[1]
        gap = (at["always sampling"][1] - at["always sampling"][0]) / (true[1] - true[0])
        report.note(
            f"seed {seed}: true labels have the lowest next-step error: {lowest}; the highest greedy error: {highest}; "
            f"0.5 -> 0 lowers the greedy error by {fall:.0%} (wanted: 25%); gap of always sampling is {gap:.2f} of "
            f"theirs (wanted: below 0.33)"
        )
    report.close()


def toy(given: Given) -> None:
    """Two tokens: the closed form."""
    report = Report("Two tokens: probability of repeating the first one")
    y = [["0", "0"], ["1", "1"]] * 128
    X = np.zeros((256, 1))
    for eps in (1.0, 0.5, 0.0):
        found = []
        for seed in given.seeds:
            settings = {"hidden_size": 8, "embedding_size": 4, "batch_size": 256, "schedule": ConstantRate(eps),
                        "early_stopping": None, "validation_fraction": 0.0, "random_state": seed}  # fmt: skip
            model = SequenceDecoder("rnn", learning_rate=0.02, max_epochs=200, warm_start=True, **settings).fit(X, y)
            model.set_params(learning_rate=0.002, max_epochs=300).fit(X, y)
            steps = model.predict_proba(X[:2], y[:2])
            repeated = [steps[row][1, row] / steps[row][1, :2].sum() for row in range(2)]
            found.append(float(np.mean(repeated)))
        report.row(f"eps = {eps}", (1 + eps) / 2, float(np.mean(found)), half_width(found))
    report.close()


def brackets(given: Given) -> None:
    """Trees from words."""
    report = Report("Brackets: trees from words (F1 in per cent; the published ones are of the Wall Street Journal)")
    n = 200 if given.quick else 1000
    ways: dict[str, tuple[dict[str, Any], float | None]] = {
        "true tokens": ({"schedule": None}, 86.54),
        "true tokens, dropout": ({"schedule": None, "dropout": 0.2}, 87.0),
        "scheduled sampling": ({}, 88.08),
        "scheduled sampling, dropout": ({"dropout": 0.2}, 88.68),
    }
    for name, (settings, published) in ways.items():
        f1, invalid = [], []
        for seed in given.seeds:

            def scores(seed: int = seed, settings: dict[str, Any] = settings) -> tuple[float, float]:
                data = make_bracketed_sentences(n + 300, random_state=seed)
                X, y = [list(x) for x in data.X], [list(tree) for tree in data.Y]
                model = SequenceParser(
                    hidden_size=48, embedding_size=24, max_epochs=4 if given.quick else 25, n_iter_no_change=25,
                    random_state=seed, **settings,
                ).fit(X[:n], y[:n], validation_set=(X[n : n + 100], y[n : n + 100]))  # fmt: skip
                found = model.bracket_scores(X[n + 100 :], y[n + 100 :], beam_size=1)
                return 100 * found.f1, float(found.n_invalid)

            one = result(given, "brackets", name, seed, scores)
            f1.append(one[0])
            invalid.append(one[1])
        report.row(f"{name}, F1", published, float(np.mean(f1)), half_width(f1))
        report.row(f"{name}, invalid trees of 200", None, float(np.mean(invalid)), half_width(invalid))
    report.close()


def captions(given: Given) -> None:
    """Captions of shapes."""
    report = Report("Captions of shapes: greedy decoding (the published ones are of MSCOCO, on its 5,000 pictures)")
    n = 200 if given.quick else 800
    ways: dict[str, tuple[dict[str, Any], tuple[float, float, float] | None]] = {
        "true tokens": ({"schedule": None}, (28.8, 24.2, 0.895)),
        "true tokens, dropout": ({"schedule": None, "dropout": 0.2}, (28.1, 23.9, 0.870)),
        "always sampling": ({"schedule": ConstantRate(0.0)}, (11.2, 15.7, 0.497)),
        "scheduled sampling": ({}, (30.6, 24.3, 0.921)),
        "uniform scheduled sampling": ({"feedback": "uniform"}, (29.2, 24.2, 0.909)),
        "coin for a sequence": ({"coin": "sequence"}, None),
    }
    found: dict[str, list[tuple[float, float, float]]] = {}
    for name, (settings, published) in ways.items():
        for seed in given.seeds:

            def scores(seed: int = seed, settings: dict[str, Any] = settings) -> tuple[float, float, float]:
                data = make_shape_captions(n + 300, random_state=seed)
                y = [list(caption) for caption in data.Y]
                model = SequenceDecoder(
                    hidden_size=48, embedding_size=24, max_epochs=4 if given.quick else 100, n_iter_no_change=100,
                    early_stopping="teacher_forced", random_state=seed, **settings,
                ).fit(data.X[:n], y[:n], validation_set=(data.X[n : n + 100], y[n : n + 100]))  # fmt: skip
                outputs = model.predict(data.X[n + 100 :], beam_size=1)
                references = [list(map(list, one)) for one in data.references[n + 100 :]]
                return (100 * bleu_score(outputs, references), 100 * exact_meteor_score(outputs, references),
                        cider_score(outputs, references))  # fmt: skip

            found.setdefault(name, []).append(result(given, "captions, 100 epochs", name, seed, scores))
        for place, what in enumerate(("BLEU-4", "METEOR (exact)", "CIDEr (of 10)")):
            ours = [row[place] for row in found[name]]
            shown = None if published is None else published[place]
            report.row(f"{name}, {what}", shown, float(np.mean(ours)), half_width(ours))
    better = sum(one[0] > other[0] for one, other in zip(found["scheduled sampling"], found["true tokens"]))
    report.note(f"scheduled sampling has the higher BLEU-4 in {better} of {len(given.seeds)} seeds (wanted: most)")
    report.close()


def digits(given: Given) -> None:
    """Frames of spoken digits."""
    data = load_spoken_digit_frames(random_state=0)
    report = Report("Spoken digits as frames: error rates (the published ones are of TIMIT)")
    cuts = np.cumsum(data.lengths)[:-1]
    X, y = np.split(data.X, cuts), np.split(data.states, cuts)
    for name, (schedule, _) in RAMPS.items():
        rows = []
        for seed in given.seeds:

            def errors(seed: int = seed, schedule: Any = schedule) -> tuple[float, float, float]:
                order = np.random.default_rng(seed).permutation(len(X))[: 80 if given.quick else 400]
                parts = np.split(order, [int(0.7 * len(order)), int(0.85 * len(order))])
                train, held, test = ([X[n] for n in part] for part in parts)
                y_train, y_held, y_test = ([y[n] for n in part] for part in parts)
                model = FrameTagger(
                    "gru", hidden_size=48, schedule=schedule, max_epochs=4 if given.quick else 20,
                    n_iter_no_change=20, min_epochs=1 if given.quick else 11, random_state=seed,
                ).fit(train, y_train, validation_set=(held, y_held))  # fmt: skip
                return tagger_errors(model, test, y_test, 10)

            rows.append(result(given, "digits", name, seed, errors))
        for place, what in enumerate(("next step", "greedy", "beam of 10")):
            ours = [row[place] for row in rows]
            published = {0: TIMIT[name][0], 2: TIMIT[name][1]}.get(place)
            report.row(f"{name}, {what}", published, float(np.mean(ours)), half_width(ours))
    report.close()


EXPERIMENTS = {"sticky": sticky, "toy": toy, "brackets": brackets, "captions": captions, "digits": digits}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--results", type=Path, default=None, help="file that keeps results, a line for each fit")
    given = parser.parse_args()
    if given.quick:
        given.seeds = given.seeds[:1]
    for name in given.only:
        run_if_data(lambda name=name: EXPERIMENTS[name](given))


if __name__ == "__main__":
    main()
