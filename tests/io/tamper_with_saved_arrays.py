"""Every public estimator with every array of its file tampered with: an error or an answer, never a dead interpreter.

Compiled loops do not look where they read and write, so an array of another shape, or an index out of range, can end
the process that uses it. This program finds the estimators by introspection, fits each to a few rows, saves it,
replaces one array of the file after the other, loads the file and asks the model everything. Each case is announced on
stdout before it is tried: the last line of a process that died says what killed it.

    python tests/io/tamper_with_saved_arrays.py                    # all of it: many minutes
    python tests/io/tamper_with_saved_arrays.py --quick 8          # eight arrays of each estimator, in one way each
    python tests/io/tamper_with_saved_arrays.py --only GaussianHMM,DPMeans --verbose
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import importlib
import inspect
import io
import json
import pkgutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

import pluri
from pluri.io import load, save

#: A case that takes longer ends its process: an endless loop is as bad as a crash. Compiling takes a while, too.
SECONDS = 300
#: Memory of a process of this program: an array that announces a huge size must end in MemoryError, not in swapping.
MEMORY = 16 * 2**30

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2)) + 4 * RNG.integers(2, size=(24, 1))
BINARY = RNG.integers(2, size=(24, 4)).astype(float)
COUNTS = RNG.poisson(1.0, size=(24, 6)) + np.eye(6, dtype=int)[np.arange(24) % 6]
Y = X[:, 0] - X[:, 1] + 0.1 * RNG.normal(size=24)
LABELS = np.arange(24) % 2
SEQUENCES = [np.array(["the", "dog", "runs", "a", "cat"], dtype=object)[RNG.integers(5, size=(6, 1))] for _ in range(4)]
OUTPUTS = [["low"] if label else ["high", "high"] for label in LABELS]
SENTENCES, TREES = [["a", "b"], ["a", "c", "b"]] * 6, ["(S a (T b))", "(S a (T c b))"] * 6
#: Settings that make a fit short, for whatever estimator has them.
SHORT = {
    "n_components": 2, "n_iter": 3, "max_iter": 3, "n_draws": 6, "n_warmup": 4, "n_chains": 2, "n_samples": 6,
    "burn_in": 4, "n_burn_in": 4, "n_sweeps": 6, "keep": 3, "n_init": 1, "max_topics": 5, "max_features": 2,
    "max_components": 4, "max_factors": 2, "n_factors": 1, "max_nodes": 8, "n_levels": 2, "n_super": 2, "n_sub": 3,
    "n_layers": 1, "random_state": 0, "max_epochs": 2, "hidden_size": 4, "embedding_size": 3, "beam_size": 2,
}  # fmt: skip


def estimators():
    """Every public estimator with a constructor of its own (bases have none), by name."""
    found = {}
    for module in pkgutil.walk_packages(pluri.__path__, "pluri."):
        if module.ispkg:
            package = importlib.import_module(module.name)
            for name in getattr(package, "__all__", ()):
                kind = getattr(package, name)
                known = inspect.isclass(kind) and issubclass(kind, BaseEstimator) and "__init__" in vars(kind)
                if known and hasattr(kind, "fit"):  # a kernel is an estimator in its settings only
                    found[name] = kind
    found["Popularity"] = importlib.import_module("pluri.cochange").Popularity  # it has no parameters
    return dict(sorted(found.items()))


def history():
    from pluri.cochange import CommitHistory

    commits = [["a", "b"], ["a", "b", "c"], ["b", "c"], ["a", "d"], ["c", "d"], ["a", "b"]] * 6
    records = [{"id": str(number), "time": 1000.0 * number, "files": files} for number, files in enumerate(commits)]
    return CommitHistory.from_records(records, min_support=1)


def subsets():
    from pluri.processes.dpp import DPP

    return DPP(features=np.random.default_rng(0).normal(size=(5, 3))).sample(30, random_state=0)


def followed(model):
    features = np.random.default_rng(1).normal(size=(10, 4))
    model.update([*"abcdefgh"], features[:8])
    model.update(["i"], features[8:9], leaving=["a"])
    return model


PICTURE = np.random.default_rng(0).random((12, 14))
PROJECTION = np.random.default_rng(0).normal(size=(4, 6))
#: Estimators whose data are of a kind of their own: how they are fitted, and what they are asked about.
OWN = {
    "BayesSearchCV": lambda make: (
        make(estimators()["GaussianMixture"](), {"n_components": [1, 2]}, n_iter=2, cv=2).fit(X),
        [X],
    ),
    "CompressiveRecovery": lambda make: (make(np.eye(6)).fit(COUNTS @ PROJECTION.T, PROJECTION), []),
    "ConditionalDPP": lambda make: (make().fit((X[:5], np.eye(5)), subsets()), [(X[:5], np.eye(5))]),
    "DPPKernelLearner": lambda make: (make().fit(subsets(), 5), [subsets()[:5]]),
    "FileRecommender": lambda make: (make().fit(history()), [["a"]]),
    "GaussianProcessClassifier": lambda make: (make(inference="ess", hyper_inference="fixed").fit(X, LABELS), [X]),
    "HMMClassifier": lambda make: (make(estimators()["GaussianHMM"]()).fit(X, LABELS), [X, LABELS]),
    "HMMSearchCV": lambda make: (
        make(estimators()["GaussianHMM"](n_iter=3), n_components=[1, 2], cv=2).fit(X, lengths=[8] * 3),
        [X],
    ),
    "ImageDenoiser": lambda make: (make(8, n_warmup=4).fit(PICTURE), [PICTURE]),
    "ImageInpainter": lambda make: (make(8, n_warmup=4).fit(PICTURE), [PICTURE]),
    "LatentInhibition": lambda make: (make(n_dimensions=2).fit(BINARY), [BINARY]),
    "PatchCompressor": lambda make: (make(4, 3).fit(PICTURE), [PICTURE]),
    "PatchExtractor": lambda make: (make().fit(PICTURE), [PICTURE]),
    "SeparateDPP": lambda make: (followed(make(n_draws=8)), []),
    "SequenceClassifier": lambda make: (
        make(estimators()["GaussianHMM"](2, n_iter=3)).fit(X, LABELS[:4], lengths=[6] * 4),
        [[X[:6], X[6:]]],
    ),
    "SequenceDecoder": lambda make: (make().fit(X, OUTPUTS), [X, OUTPUTS]),
    "SequenceParser": lambda make: (make().fit(SENTENCES, TREES), [SENTENCES, TREES]),
    "SequentialDPPLearner": lambda make: (
        make().fit([[X[:4], X[4:8]]] * 2, [[[0, 1], [2]]] * 2),
        [[X[:4], X[4:8]]],
    ),
    "TimeVaryingDPP": lambda make: (followed(make(8)), []),
}  # fmt: skip
#: Kinds of data that are tried in turn for all others, the most telling first.
KINDS = {
    "words": ((SEQUENCES,), [SEQUENCES]),
    "counts": ((COUNTS,), [COUNTS]),
    "binary": ((BINARY,), [BINARY]),
    "rows": ((X,), [X]),
    "labels": ((COUNTS, LABELS), [COUNTS, LABELS]),
    "numbers": ((X, Y), [X, Y]),
}
FIRST = {"Mixture": "rows", "HMM": "rows", "Means": "rows", "Bernoulli": "binary", "RBM": "binary",
         "Multinomial": "counts", "Poisson": "counts", "Categorical": "words", "Symbol": "words",
         "Gaussian": "rows", "Factor": "rows", "IBP": "rows", "Flow": "rows", "Ising": "rows"}  # fmt: skip


def fitted(name, kind):
    """A fitted model, and what to ask it about."""

    def make(*given, **settings):
        known = inspect.signature(kind).parameters
        taken = list(known)[: len(given)]
        short = {key: value for key, value in SHORT.items() if key in known and key not in taken}
        return kind(*given, **(short | settings))

    if name in OWN:
        return OWN[name](make)
    likely = [data for part, data in FIRST.items() if part in name]
    failures = []
    for data in dict.fromkeys([*likely[::-1], *KINDS]):
        arguments, questions = KINDS[data]
        try:
            return make().fit(*arguments), questions
        except Exception as error:  # not the kind of data that it takes
            failures.append(f"{data}: {error}")
    raise AssertionError(f"{name} could be fitted to nothing, add it to OWN: {failures}")


def other_arrays(array):
    """Arrays to put in the place of one, by what was done to it; those that kill most often first."""
    numeric = array.dtype.kind in "iuf"
    most = np.iinfo(array.dtype).max if array.dtype.kind in "iu" else np.finfo(float).max
    if array.dtype.kind in "iu":
        yield "huge", np.full_like(array, min(2**40, most))
    if array.ndim and array.size:
        yield "truncated", array[: len(array) // 2]
    if array.dtype.kind == "f":
        yield "huge", np.full_like(array, 2.0**40)
    if array.dtype.kind in "if":
        yield "negative", np.full_like(array, -1 - 2 ** (20 if array.dtype.itemsize > 2 else 5))
        yield "minus one", np.full_like(array, -1)
    if numeric:
        yield "largest", np.full_like(array, most)
    if array.dtype.kind == "f":
        yield "missing", np.full_like(array, np.nan)
        yield "infinite", np.full_like(array, np.inf)
    if array.ndim and array.size:
        yield "empty", array[:0]
        yield "longer", np.concatenate([array] * 3)
    if array.ndim > 1 and array.size:
        yield "narrow", np.ascontiguousarray(array[..., :-1])
        yield "turned", np.ascontiguousarray(array.T)
        yield "flat", array.ravel()
    if numeric:
        yield "other type", array.astype(np.int8 if array.dtype.kind == "f" else np.float32)
        yield "complex", array.astype(complex)
        yield "text", array.astype(str)
        yield "big-endian", array.astype(array.dtype.newbyteorder(">"))


def cases(members, quick):
    """Name of a member, what is done to it, and the array in its place.

    With `quick` so many for each estimator, and integers (labels, indices, pointers) come first.
    """
    arrays = {
        name: np.load(io.BytesIO(content), allow_pickle=False)
        for name, content in sorted(members.items())
        if name.endswith(".npy")
    }
    if not quick:
        return ((name, *case) for name, array in arrays.items() for case in other_arrays(array))
    where = places(members)
    # Draws and histories are read by no compiled loop.
    telling = {name: array for name, array in arrays.items() if ".trace" not in where[name]}
    first = sorted(telling.items(), key=lambda item: item[1].dtype.kind not in "iu")
    return ((name, *next(other_arrays(array))) for name, array in first[:quick])


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def places(members):
    """Where each array of a file is in the model."""
    found = {}
    waiting = [("model", json.loads(members["schema.json"]))]
    while waiting:
        place, node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("file"), str):
                found.setdefault(node["file"], place)
            silent = ("content", "attrs")
            waiting += [(place if key in silent else f"{place}.{key}", item) for key, item in node.items()]
        elif isinstance(node, list):
            waiting += [(f"{place}[{number}]", item) for number, item in enumerate(node)]
    return found


def ask(model, questions):
    """Everything that a model can be asked; what each question ends in."""
    first = questions[:1]
    answers = {
        "predict": first, "predict_proba": first, "transform": first, "inverse_transform": None, "score": questions,
        "score_samples": first, "sample": [5], "decode": first, "recommend": first, "summary": [], "log_prob": first,
        "predict_missing": [[0]], "support": [[0]], "to_arviz": [], "top_words": [], "held_out": first,
        "update": [["z"], np.ones((1, 4))], "partial_fit": questions,
    }  # fmt: skip
    outcomes, rows = {}, None
    for method, arguments in answers.items():
        if not hasattr(type(model), method) or (arguments is None and rows is None):
            continue
        try:
            answer = getattr(model, method)(*([rows] if arguments is None else arguments))
            rows = answer if method == "transform" else rows
            outcomes[method] = "answer"
        except Exception as error:
            outcomes[method] = type(error).__name__
    return outcomes


def tamper(name, folder, quick, skip):
    """Go through all arrays of one estimator; cases up to number `skip` have been seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        model, questions = fitted(name, estimators()[name])
        good = folder / "good.skops"
        save(model, good)
        with zipfile.ZipFile(good) as archive:
            members = {member: archive.read(member) for member in archive.namelist()}
        if not skip:
            print("sound", name, ask(load(good), questions), flush=True)
        number = 0
        where = places(members)
        for member, what, other in cases(members, quick):
            number += 1
            if number <= skip:
                continue
            print("case", name, number, what, where.get(member, member), flush=True)
            faulthandler.dump_traceback_later(SECONDS, exit=True)  # also out of a compiled loop
            with zipfile.ZipFile(folder / "bad.skops", "w") as archive:
                for key, content in members.items():
                    archive.writestr(key, npy(other) if key == member else content)
            try:
                changed = load(folder / "bad.skops")
            except ValueError as error:
                print("refused", error, flush=True)
                continue
            print("loaded", ask(changed, questions), flush=True)
    faulthandler.cancel_dump_traceback_later()
    print("done", name, number, flush=True)


def limit_memory():
    with contextlib.suppress(ImportError, ValueError, OSError):  # not every system has it
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run(names, quick, report):
    """Tamper in processes of their own, one more after each death; return the cases that killed."""
    deaths, names, skip = [], list(names), 0
    while names:
        command = [sys.executable, __file__, "--child", ",".join(names), "--skip", str(skip)]
        child = subprocess.run([*command, "--quick", str(quick)], capture_output=True, text=True)
        lines = child.stdout.splitlines()
        report(lines)
        done = [line.split()[1] for line in lines if line.startswith("done")]
        names = [name for name in names if name not in done]
        if not names:
            break
        cases = [line for line in lines if line.startswith("case") and line.split()[1] == names[0]]
        if not cases:
            raise AssertionError(f"{names[0]} died before anything was tampered with: {child.stderr[-2000:]}")
        deaths.append(f"{cases[-1]} ended with code {child.returncode} {child.stderr.strip()[-300:]}")
        skip = int(cases[-1].split()[2])
    return deaths


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--quick", type=int, default=0, metavar="N", help="only N arrays of each estimator, in one way each"
    )
    parser.add_argument("--only", help="names of estimators between commas")
    parser.add_argument("--verbose", action="store_true", help="tell what each case ended in")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--skip", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        limit_memory()
        with tempfile.TemporaryDirectory() as folder:
            skip = given.skip
            for name in given.child.split(","):
                tamper(name, Path(folder), given.quick, skip)
                skip = 0
        return 0

    def report(lines):
        counts = collections.Counter(line.split()[0] for line in lines)
        print(f"{counts['case']} cases: {counts['refused']} refused, {counts['loaded']} loaded", flush=True)
        if given.verbose:
            print("\n".join(lines), flush=True)

    deaths = run(given.only.split(",") if given.only else estimators(), given.quick, report)
    print("".join(f"DEAD {death}\n" for death in deaths) + f"{len(deaths)} deaths")
    return bool(deaths)


if __name__ == "__main__":
    sys.exit(main())
