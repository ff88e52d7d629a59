"""Which files change together: all rankers on all histories at hand, and a published experiment.

**Rankers.** Each history is split at three quarters of its commits (files with at least 5 commits in the earlier
part, as ``pluri cochange evaluate`` has it). From each later commit of more known files, one file or three are shown,
the same for every ranker; printed are the recall at ten (share of the other files among the first ten suggestions)
with the difference to the default model and its 95 % interval (paired bootstrap over commits), the share of complete
later commits in which ``pluri cochange check`` would raise a false alarm, the share of commits with one file taken out
in which it names that file, and the mean distance of stated probabilities above 0.05 from what happened. Histories are
GIMP, scikit-learn and whatever is given as ``--history NAME=PATH``, where PATH is a git repository (a work tree or a
bare one) or a file of JSON lines with ``time`` and ``files``, gzipped or not.

**Published** (Hu, van der Maaten, Cho, Saul & Lerner 2010): f-measure and correct prediction ratio (CPR) of frequent
itemsets, Bernoulli mixtures, a Bayesian Bernoulli mixture, a restricted Boltzmann machine and logistic PCA, where one
or three files of each later commit are shown. Their GIMP data are gone: ours, mined from a mirror over the same
period, have fewer files, so that their figures stand beside ours for orientation only.

Commits of at most 100 files, files with at least 10 commits in the first two thirds, which are learnt from. Settings
and thresholds are chosen on the last fifth of these (macro f-measure). Files are shown at random, five times over.

GIMP kept a ChangeLog in three of four commits until it moved to git in spring 2009, shortly before the test period:
what is learnt of these files is wrong afterwards, for every model. A file that falls silent like this within the
training period is not suggested (``drop_silent``, for all models alike). GIMP is also run without files of this name.

Baselines: "itemsets, fixed" suggests everything that some frequent itemset (support 10) has together with the files
shown; "itemsets" chooses support and threshold; "co-occurrence" counts commits that have all files shown, with a
chosen threshold; "pairwise" averages the confidences of the single files shown, and is stronger than what was
published.

Needs ``gimp_transactions_2007-11_2010-05.jsonl.gz`` and ``scikit_learn_transactions.jsonl.gz`` in PLURI_DATA; the
times at the end, and histories that are repositories, need git. A minute or two for each history.

    python benchmarks/reproduce/cochange_histories.py [--rankers-only] [--quick] [--skip-times]
        [--history flask=/path/to/flask --history redis=/path/to/redis.jsonl.gz ...]
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from published import run_if_data
from sklearn.base import clone

from pluri.cochange import CommitHistory, FileRecommender, FrequentItemsets, evaluate, tune
from pluri.datasets.commits import load_transactions, make_commits

SUPPORT, N_SHOWN, N_REPEATS = 10, (1, 3), 5
#: GIMP at support 10: f and CPR with one file shown and with three.
PUBLISHED = {
    "itemsets, fixed": ((0.020, 0.116), (0.016, 0.176)),
    "mixture": ((0.129, 0.177), (0.084, 0.152)),
    "bayesian": ((0.114, 0.174), (0.104, 0.177)),
    "rbm": ((0.074, 0.137), (0.028, 0.194)),
    "logistic_pca": ((0.123, 0.187), (0.148, 0.263)),
}
#: Models that count first, the default among them; the others are fitted to histories of moderate size only.
COUNTERS = ("popular", "itemsets", "counter", "cooccurrence", "pairwise", "neighbors")
FITTED = ("mixture", "bayesian", "dp")
DEFAULT = FileRecommender().model
RANKING_SUPPORT, RANKING_SPLIT, MODERATE, N_BOOTSTRAP = 5, 0.75, 6_000, 2_000
BASELINES = ("itemsets, fixed", "itemsets", "cooccurrence")


@dataclass(frozen=True)
class Ranking:
    """Recall at ten of each later commit with one file shown and with three, and what a check would have done."""

    recalls: tuple[dict[str, float], ...]
    false_alarms: float
    caught: float
    calibration_error: float
    seconds: float


def read(path: str) -> CommitHistory:
    """A history from a repository or from a file of JSON lines."""
    if Path(path).is_dir():
        return CommitHistory.from_git(path, min_support=RANKING_SUPPORT)
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as lines:
        return CommitHistory.from_records(map(json.loads, lines), min_support=RANKING_SUPPORT)


def rank(name: str, train: CommitHistory, test: CommitHistory) -> Ranking:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains of many clusters are never long enough, and say so
        fitted = FileRecommender(name, random_state=0).fit(train)
        seconds = time.perf_counter() - began
        found = [evaluate(fitted, None, test, n_start=shown, random_state=0) for shown in N_SHOWN]
    recalls = tuple(dict(zip(item.table["commit"], item.table["recall_at_10"])) for item in found)
    first = found[0]
    return Ranking(recalls, first.false_alarms, first.caught, first.calibration_error, seconds)


def difference(recalls: dict[str, float], default: dict[str, float]) -> tuple[float, float, float]:
    """Mean difference to the default over the commits asked about, and its interval."""
    values = np.array([recalls[commit] - default[commit] for commit in default])
    rng = np.random.default_rng(0)
    means = [rng.choice(values, len(values)).mean() for _ in range(N_BOOTSTRAP)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


def rankers(title: str, history: CommitHistory, quick: bool) -> tuple[bool, float]:
    """The table of one history: whether no ranker is better than the default beyond noise, and its false alarms."""
    train, test = history.split(RANKING_SPLIT)
    names = [*COUNTERS, *(FITTED if not quick and len(train) <= MODERATE else ())]
    found = {DEFAULT: rank(DEFAULT, train, test)}
    asked = [len(recalls) for recalls in found[DEFAULT].recalls]
    print(f"\n{title}: {train!r}, {len(test)} later commits, {asked[0]} and {asked[1]} asked about")
    print(f"{'':<14}{'R@10, 1 shown':^31}{'R@10, 3 shown':^31}{'alarms':>8}{'caught':>8}{'calib.':>8}{'seconds':>9}")
    best = True
    for name in names:
        found[name] = found.get(name) or rank(name, train, test)
        row, line = found[name], ""
        for recalls, default in zip(row.recalls, found[DEFAULT].recalls):
            mean, low, high = difference(recalls, default)
            best &= low <= 0
            beside = "the default" if name == DEFAULT else f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
            line += f"{np.mean([*recalls.values()]):>7.3f} {beside:<23}"
        print(
            f"{name:<14}{line}{100 * row.false_alarms:>7.1f}%{100 * row.caught:>7.1f}%{row.calibration_error:>8.3f}"
            f"{row.seconds:>9.1f}",
            flush=True,
        )
    return best, found[DEFAULT].false_alarms


@dataclass(frozen=True)
class Contender:
    """A model and the settings to choose from."""

    recommender: FileRecommender
    grid: Mapping[str, Sequence[Any]]


def contenders(quick: bool, large: bool) -> dict[str, Contender]:
    found = {
        "popular": Contender(FileRecommender("popular"), {}),
        "itemsets, fixed": Contender(FileRecommender(FrequentItemsets(SUPPORT), threshold=0.0), {}),
        "itemsets": Contender(FileRecommender("itemsets"), {"min_support": (2, 3, 5, 10)}),
        "cooccurrence": Contender(FileRecommender("cooccurrence"), {"measure": ("confidence", "support")}),
        "pairwise": Contender(FileRecommender("pairwise"), {}),
        "neighbors": Contender(FileRecommender("neighbors"), {}),
        "mixture": Contender(
            FileRecommender("mixture"), {"n_components": (200,) if quick or large else (100, 200, 400)}
        ),
        "bayesian": Contender(
            FileRecommender("bayesian"),
            {"n_components": (400,), "weight_concentration": (200.0,) if quick else (50.0, 200.0, 1000.0)},
        ),
        "dp": Contender(FileRecommender("dp"), {"weight_concentration": (200.0,)}),
    }
    if not quick and not large:  # their time grows with the number of commits times the number of files
        found["rbm"] = Contender(FileRecommender("rbm"), {"n_components": (50,)})
        found["logistic_pca"] = Contender(
            FileRecommender("logistic_pca"), {"n_components": (20,), "alpha": (1.0, 3.0, 10.0)}
        )
    return found


@dataclass(frozen=True)
class Row:
    f: float
    cpr: float
    error_f: float
    error_cpr: float
    empty: float
    chosen: str
    seconds: float


def compare(title: str, history: CommitHistory, quick: bool, published: bool) -> bool:
    train, test = history.split()
    print(f"\n{title}\n{'-' * len(title)}\nlearnt from {train!r}\nasked about {test!r}")
    accepted = True
    for place, shown in enumerate(N_SHOWN):
        rows: dict[str, Row] = {}
        for name, contender in contenders(quick, len(train) > 10_000).items():
            rows[name] = judge(contender, train, test, shown)
            show(name, rows[name], shown, PUBLISHED.get(name, ((None, None),) * 2)[place] if published else None)
        if shown == 3:
            best = {what: max(getattr(rows[name], what) for name in BASELINES) for what in ("f", "cpr")}
            ours = rows["bayesian"]
            accepted = ours.f > best["f"] and ours.cpr > best["cpr"]
            print(
                f"  three files shown: Bayesian mixture f {ours.f:.3f} / CPR {ours.cpr:.3f}, best of itemsets and "
                f"co-occurrence {best['f']:.3f} / {best['cpr']:.3f}: {'better' if accepted else 'NOT BETTER'} in both"
            )
    return accepted


def judge(contender: Contender, train: CommitHistory, test: CommitHistory, shown: int) -> Row:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains of many clusters are never long enough, and say so
        asked = clone(contender.recommender).set_params(n_start=shown, random_state=0)
        chosen = tune(asked, train, contender.grid, random_state=0)
        fitted = chosen.recommender.fit(train)
        seconds = time.perf_counter() - began
        found = [evaluate(fitted, None, test, n_start=shown, random_state=number) for number in range(N_REPEATS)]
    tables = {what: np.mean([item.table[what] for item in found], axis=0) for what in ("f", "cpr")}
    error = {what: values.std(ddof=1) / np.sqrt(len(values)) for what, values in tables.items()}
    settings = ", ".join(f"{name}={value}" for name, value in chosen.best_params.items())
    return Row(
        f=float(tables["f"].mean()),
        cpr=float(tables["cpr"].mean()),
        error_f=float(error["f"]),
        error_cpr=float(error["cpr"]),
        empty=float(np.mean([item.empty for item in found])),
        chosen=f"{settings or '-'}, threshold {fitted.threshold_:.3g}",
        seconds=seconds,
    )


def show(name: str, row: Row, shown: int, published: Any) -> None:
    if name == "popular":
        head = f"{'f':>14}{'CPR':>16}{'empty':>9}{'seconds':>9}   {'published f / CPR' if published else ''}"
        print(f"\n{f'{shown} shown':<18}{head}")
    beside = f"{published[0]:.3f} / {published[1]:.3f}   " if published and published[0] is not None else ""
    print(
        f"{name:<18}{row.f:>7.3f} +- {row.error_f:.3f}{row.cpr:>8.3f} +- {row.error_cpr:.3f}{row.empty:>8.2f}"
        f"{row.seconds:>9.1f}   {beside if beside else ' ' * 16 if published else ''}{row.chosen}",
        flush=True,
    )


def times(n_commits: int) -> None:
    """A repository with many commits: reading it, learning from it, asking it."""
    if shutil.which("git") is None:
        print("\nno git: times are not measured")
        return
    print(f"\na repository of {n_commits} commits\n{'-' * 30}")
    commits = make_commits(n_commits, 2000, 400, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        write_repository(Path(folder), commits.records())
        began = time.perf_counter()
        history = CommitHistory.from_git(folder, support_on="all")
        mined = time.perf_counter() - began
        print(f"{history!r} read in {mined:.1f} s")
        for name in (DEFAULT, "pairwise", "bayesian"):
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = FileRecommender(name, random_state=0).fit(history)
            learnt = time.perf_counter() - began
            waits = []
            for files in (commits.records()[number]["files"][:3] for number in range(0, n_commits, n_commits // 20)):
                began = time.perf_counter()
                fitted.recommend(files)
                waits.append(time.perf_counter() - began)
            print(
                f"{name:<10} learnt in {learnt:5.1f} s, with reading {mined + learnt:5.1f} s (at most 60 wanted: "
                f"{'yes' if mined + learnt < 60 else 'NO'}); a suggestion in {1e3 * np.median(waits):.1f} ms, at worst "
                f"{1e3 * max(waits):.1f} ms (at most 100 wanted: {'yes' if max(waits) < 0.1 else 'NO'})"
            )


def write_repository(folder: Path, records: list[dict[str, Any]]) -> None:
    lines = []
    for number, record in enumerate(records):
        person = f"A <a@example.org> {record['time']} +0000"
        lines += ["commit refs/heads/main", f"author {person}", f"committer {person}", "data 1", "x"]
        for file in record["files"]:
            lines += [f"M 100644 inline {file}", f"data {len(str(number))}", str(number)]
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", folder], check=True)
    subprocess.run(["git", "-C", folder, "fast-import", "--quiet"], input="\n".join(lines).encode() + b"\n", check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer models and settings; publication: no scikit-learn")
    parser.add_argument("--skip-times", action="store_true", help="do not make the repository of 30,000 commits")
    parser.add_argument("--rankers-only", action="store_true", help="neither the published experiment nor the times")
    parser.add_argument("--history", action="append", default=[], metavar="NAME=PATH", help="one more history")
    options = parser.parse_args()
    given = dict(item.split("=", 1) for item in options.history)
    histories = {
        "GIMP": lambda: CommitHistory.from_records(load_transactions("gimp"), min_support=RANKING_SUPPORT),
        "scikit-learn": lambda: CommitHistory.from_records(
            load_transactions("scikit-learn"), min_support=RANKING_SUPPORT
        ),
        **{name: lambda path=path: read(path) for name, path in given.items()},
    }
    verdicts = {name: rankers(name, make(), options.quick) for name, make in histories.items()}
    print()
    for name, (best, alarms) in verdicts.items():
        print(
            f"{name}: {DEFAULT} {'best, or within noise of the best' if best else 'NOT THE BEST'}; "
            f"{100 * alarms:.1f} % false alarms ({'at most 2 % wanted' if alarms <= 0.02 else 'MORE THAN 2 %'})"
        )
    if not options.rankers_only:
        published_experiment(options)


def published_experiment(options: argparse.Namespace) -> None:
    gimp = load_transactions("gimp")
    runs = [
        ("GIMP, as it is", CommitHistory.from_records(gimp, min_support=SUPPORT), True),
        (
            "GIMP without ChangeLog files",
            CommitHistory.from_records(gimp, min_support=SUPPORT, exclude="ChangeLog*"),
            True,
        ),
    ]
    if not options.quick:
        whole = CommitHistory.from_records(load_transactions("scikit-learn"), min_support=SUPPORT)
        runs.append(("scikit-learn", whole, False))
    accepted = {title: compare(title, history, options.quick, published) for title, history, published in runs}
    if not options.skip_times:
        times(30_000)
    print()
    for title, passed in accepted.items():
        print(f"{title}: three files shown, Bayesian mixture better than itemsets and co-occurrence: {passed}")


if __name__ == "__main__":
    run_if_data(main)
