"""Time-varying determinantal point process on the mail of Enron: diverse people of a network that changes each day.

A network of 156 employees for each day, with an edge between two who wrote to each other in the last 30 days. The
published kernel is d_i exp(-lambda dist(i, j)) d_j with degrees d and shortest paths, which is not positive
semi-definite in general. Here lambda is 1, negative eigenvalues are set to zero and the diagonal is restored, and one
scale for the whole period makes subsets of 7 people on average (published ones have 6 to 8). The degree is taken over
the largest one of the day, and then once more over the largest one of the period, because the largest of a day jumps
whenever a mailing to half the company enters or leaves the window. Unlike news, nearly all rows of the kernel change
each day, so that every particle is weighted by its determinant, by whichever rule.

First 1 August to 1 December 2001: sizes, errors, and where the process changes most. Then the year 2001: times.

Needs ``enron_messages.tsv.gz`` and ``enron_employees.tsv.gz`` in PLURI_DATA. About a minute.

    python benchmarks/reproduce/tvdpp_enron.py [--figure enron.png]
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from published import run_if_data
from scipy.optimize import brentq
from subset_streams import Array, Followed, Moment, plain_chain
from threadpoolctl import threadpool_limits

from pluri.datasets import Correspondence, Snapshots, communication_snapshots, load_enron
from pluri.priors.kernels import repair_kernel, shortest_path_kernel
from pluri.processes.dpp import SeparateDPP, TimeVaryingDPP

N_PARTICLES, TARGET, WINDOW, DECAY = 100, 7.0, 30, 1.0
N_WARMUP, THIN, EVERY, N_REPEATS = 10_000, 80, 20, 10
SEPARATE, CHAIN = "separate, exact", "separate, chain"
FEW, MAIN = "followed, moves 1", "followed, moves auto"
PUBLISHED_CHANGES = ("2001-10-01", "2001-11-10")
PUBLISHED_DAYS = {
    "2001-09-10": "N/A, N/A, Trader, Vice President, Vice President, Senior Analyst",
    "2001-10-20": "N/A, Trader, Managing Director UK, Vice President, Employee, Senior Analyst, Senior Specialist",
    "2001-11-20": "N/A, Manager, Employee, Director, CEO, Vice President, President, Senior Analyst",
}


def daily_kernels(snapshots: Snapshots, *, by_day: bool) -> tuple[list[Array], list[float]]:
    """Kernels of all days with one scale, and the smallest eigenvalue of each before the repair, over the largest."""
    kernels, smallest, odds = [], [], []
    degrees = snapshots.adjacency.sum(axis=2).astype(np.float64)
    largest = degrees.max(axis=1, keepdims=True) if by_day else degrees.max()
    for network, quality in zip(snapshots.adjacency, degrees / largest):
        raw = shortest_path_kernel(network, decay=DECAY, quality=quality)
        values = np.linalg.eigvalsh(raw)
        smallest.append(float(values[0] / values[-1]))
        kernels.append(repair_kernel(raw, "clip"))
        odds.append(np.maximum(np.linalg.eigvalsh(kernels[-1]), 0.0))
    spectra = np.array(odds)

    def excess(log_scale: float) -> float:
        scaled = np.exp(log_scale) * spectra
        return float((scaled / (1 + scaled)).sum(axis=1).mean()) - TARGET

    scale = float(np.exp(brentq(excess, -10.0, 10.0)))
    print(f"scale {scale:.3f} for a mean size of {TARGET:g}")
    return [scale * kernel for kernel in kernels], smallest


def rows_changed(kernels: list[Array]) -> float:
    """Median number of rows that differ from the day before."""
    return float(np.median([(~np.isclose(a, b).all(axis=1)).sum() for a, b in pairwise(kernels)]))


def follow(runs: list[Followed], kernels: list[Array]) -> list[Moment]:
    moments = [Moment(kernel) for kernel in kernels]
    people = np.arange(len(kernels[0]))
    for number, moment in enumerate(moments):
        roots = np.sqrt(np.maximum(np.diagonal(moment.kernel), 1e-300))
        for run in runs:
            run.step(number, moment, None, people, moment.kernel / np.outer(roots, roots))
    return moments


def tracked(moves: int | str) -> Followed:
    return Followed(f"followed, moves {moves}", TimeVaryingDPP(N_PARTICLES, n_moves=moves, random_state=0))


def separate(every: int) -> list[Followed]:
    chain = SeparateDPP("mcmc", n_warmup=N_WARMUP, thin=THIN, n_draws=N_PARTICLES, random_state=0)
    return [
        Followed(SEPARATE, SeparateDPP("exact", n_draws=N_PARTICLES, random_state=0)),
        Followed(CHAIN, chain, every=every),
    ]


def window(mail: Correspondence, figure: str | None, *, by_day: bool) -> None:
    snapshots = communication_snapshots(mail, WINDOW, start="2001-08-01", stop="2001-12-01")
    title = f"{snapshots!r}, degree over the largest of the {'day' if by_day else 'period'}"
    print(f"\n{title}\n{'-' * len(title)}")
    kernels, smallest = daily_kernels(snapshots, by_day=by_day)
    print(
        f"before the repair {sum(value < -1e-10 for value in smallest)} of {len(smallest)} days have a negative "
        f"eigenvalue, at worst {min(smallest):.4f} of the largest; {rows_changed(kernels):.0f} of {len(kernels[0])} "
        "rows differ from the day before (median)\n"
    )
    runs = [tracked(moves) for moves in (1, 10, 50, "auto")] + separate(EVERY)
    moments = follow(runs, kernels)
    table(runs, moments)
    repeated(kernels, moments)
    by_name = {run.name: run for run in runs}
    changes(snapshots, moments, by_name)
    people(mail, snapshots, by_name[MAIN], moments)
    if figure is not None:
        draw(snapshots, by_name, figure)


def table(runs: list[Followed], moments: list[Moment]) -> None:
    exact = np.array([moment.expected_size for moment in moments])
    log_z = np.array([moment.log_normalizer for moment in moments])
    reference = next(run for run in runs if run.name == SEPARATE).milliseconds
    first = ("E|x|", "off by", "error", "ideal", "best", "overlap", "ESS", "resampled", "restarts", "d log Z")
    columns = (*first, "call, ms", "own, ms", "speed")
    print(f"{'':<24s}" + "".join(f"{column:>10s}" for column in columns))
    for run in runs:
        sizes, days = np.array(run.figures["size"]), slice(None, None, run.every)
        history = run.stream.history_
        is_tracked = hasattr(run.stream, "n_particles")
        counts = [sum(getattr(stamp, what, False) for stamp in history[1:]) for what in ("resampled", "restarted")]
        ratio = sum(stamp.log_normalizer_ratio for stamp in history[1:]) if is_tracked else np.nan
        shown = [f"{count:>10d}" if is_tracked else f"{'-':>10s}" for count in counts]
        print(
            f"{run.name:<24s}{sizes.mean():>10.3f}{(sizes - exact[days]).mean():>+10.3f}"
            f"{1e3 * run.average('error'):>10.1f}{1e3 * run.average('independent'):>10.1f}{run.average('best'):>10.2f}"
            f"{run.average('overlap') if run.every == 1 else np.nan:>10.3f}"
            f"{np.mean([stamp.ess for stamp in history[1:]]) if is_tracked else np.nan:>10.1f}{''.join(shown)}"
            f"{ratio:>10.2f}{run.milliseconds_of_call:>10.3f}{run.milliseconds:>10.3f}"
            f"{reference / run.milliseconds:>9.2f}x"
        )
    print(
        f"{'exact':<24s}{exact.mean():>10.3f}{'':>80s}{log_z[-1] - log_z[0]:>10.2f}\n\n"
        "E|x|: mean size, and its difference from tr K; error: mean absolute error of inclusion probabilities,\n"
        "x 1000, and that of 100 independent draws; best: log probability of the best subset; overlap: Jaccard index\n"
        "of the best subsets of successive days; d log Z: change of the log normaliser over the period; call: median\n"
        "time of the whole call, with the checks of the kernel; own: of the sampler alone; speed: relative to 100\n"
        "separate exact draws, own.\n"
    )


def repeated(kernels: list[Array], moments: list[Moment]) -> None:
    """Is a difference of the mean size chance, or does it stay when the run is repeated?"""
    exact = np.array([moment.expected_size for moment in moments])
    print(f"E|x| - tr K, mean over the days, in {N_REPEATS} runs")
    for moves in (1, 10, 50, "auto"):
        gaps, numbers = [], []
        for seed in range(N_REPEATS):
            stream = TimeVaryingDPP(N_PARTICLES, n_moves=moves, random_state=seed).fit(kernels)
            gaps.append(float(np.mean([stamp.estimated_size for stamp in stream.history_] - exact)))
            numbers.append(float(np.mean([stamp.n_moves for stamp in stream.history_[1:]])))
        spread = np.std(gaps, ddof=1)
        print(
            f"  moves {moves!s:<6s} {np.mean(gaps):+.3f} +- {spread / np.sqrt(N_REPEATS):.3f} "
            f"(one run +- {spread:.3f}, {np.mean(numbers):.1f} moves)"
        )
    print()


def changes(snapshots: Snapshots, moments: list[Moment], runs: dict[str, Followed]) -> None:
    """Where the process itself changes, and where particles were resampled."""
    days = snapshots.days
    inclusion = np.array([moment.inclusion for moment in moments])
    log_z = np.array([moment.log_normalizer for moment in moments])
    show_peaks("|log Z_t - log Z_{t-1}|", days[1:], np.abs(np.diff(log_z)))
    most = snapshots.adjacency.sum(axis=2).max(axis=1)
    steps = np.argsort(-np.abs(np.diff(log_z)), kind="stable")[:6] + 1
    print(f"{'  largest degree there':<32s}" + ", ".join(f"{most[step - 1]} -> {most[step]}" for step in steps))
    show_peaks("L1 of successive diag K", days[1:], np.abs(np.diff(inclusion, axis=0)).sum(axis=1))
    week = 7
    middles = np.arange(week, len(days) - week + 1)
    shifts = np.array([inclusion[t : t + week].mean(axis=0) - inclusion[t - week : t].mean(axis=0) for t in middles])
    show_peaks("L1 of weekly means of diag K", days[middles], np.abs(shifts).sum(axis=1), apart=week)
    estimated = np.array(runs[MAIN].inclusion)
    show_peaks("L1 of successive estimates", days[1:], np.abs(np.diff(estimated, axis=0)).sum(axis=1))
    for name in (FEW, MAIN):
        history = runs[name].stream.history_
        when = [str(days[number]) for number, stamp in enumerate(history) if number and stamp.resampled]
        print(f"{'resampled: ' + name:<32s}{', '.join(day[5:] for day in when) or 'never'}")
    print(f"published stages begin around {' and '.join(PUBLISHED_CHANGES)}\n")


def show_peaks(name: str, days: NDArray[np.datetime64], values: Array, apart: int = 1, count: int = 6) -> None:
    """The days of the largest values, no two of them closer than so many days."""
    chosen: list[int] = []
    for place in np.argsort(-values, kind="stable").tolist():
        if all(abs(place - other) >= apart for other in chosen):
            chosen.append(place)
        if len(chosen) == count:
            break
    peaks = ", ".join(f"{str(days[place])[5:]} ({values[place]:.2f})" for place in chosen)
    print(f"{name:<32s}{peaks}; median {np.median(values):.2f}")


def people(mail: Correspondence, snapshots: Snapshots, run: Followed, moments: list[Moment]) -> None:
    """Who is displayed on the published days, and how central they are."""
    for day, published in PUBLISHED_DAYS.items():
        number = int(np.flatnonzero(snapshots.days == np.datetime64(day))[0])
        degrees = snapshots.adjacency[number].sum(axis=1)
        shown = sorted(run.shown[number], key=lambda person: -degrees[person])
        likely = np.argsort(-moments[number].inclusion)[:8]
        print(f"{day}: displayed {'; '.join(f'{mail.titles[person]} ({degrees[person]})' for person in shown)}")
        print(f"{'':<12s}most probable {'; '.join(f'{mail.titles[person]} ({degrees[person]})' for person in likely)}")
        print(f"{'':<12s}published {published}")
    degrees = snapshots.adjacency.sum(axis=2)
    inclusion = np.array([moment.inclusion for moment in moments])
    drawn = (inclusion * degrees).sum(axis=1) / inclusion.sum(axis=1)
    connected = np.array([row[row > 0].mean() for row in degrees])
    print(
        f"mean degree of a person drawn {drawn.mean():.1f}, of a connected person {connected.mean():.1f}, largest "
        f"{degrees.max(axis=1).mean():.1f} (in brackets: degrees)\n"
    )


def year(mail: Correspondence) -> None:
    snapshots = communication_snapshots(mail, WINDOW, start="2001-01-01", stop="2001-12-31")
    print(f"{snapshots!r}: times")
    kernels, _ = daily_kernels(snapshots, by_day=True)
    runs = [tracked(1), tracked("auto"), *separate(EVERY)]
    follow(runs, kernels)
    n_steps = N_WARMUP + THIN * N_PARTICLES
    plain = np.median([plain_chain(kernel, n_steps, np.random.default_rng(0)) for kernel in kernels[::150]])
    print(f"{'':<24s}{'own ms/step':>12s}{'year, s':>12s}{'chain over it':>16s}{'exact over it':>16s}")
    times = {run.name: run.milliseconds for run in runs}
    for name, each in times.items():
        print(
            f"{name:<24s}{each:>12.3f}{each * len(kernels) / 1e3:>12.2f}{times[CHAIN] / each:>15.1f}x"
            f"{times[SEPARATE] / each:>15.2f}x"
        )
    print(
        f"the chain in plain NumPy: {plain:.0f} ms a step, {plain / times[MAIN]:.0f} times {MAIN!r}\n"
        "published: 57 s a step by the chain, less than 0.2 s followed, so 285 times; no exact sampler was tried"
    )


def draw(snapshots: Snapshots, runs: dict[str, Followed], path: str) -> None:
    """People displayed each day, followed with few moves, with many, and sampled separately."""
    import matplotlib.pyplot as plt

    from pluri.plotting import TimelineDisplay

    chosen = [runs[FEW], runs[MAIN], runs[SEPARATE]]
    everyone = sorted(set().union(*(subset for run in chosen for subset in run.shown)))
    figure, axes = plt.subplots(3, 1, figsize=(9, 15), layout="constrained")
    for ax, run in zip(axes, chosen):
        stamps = run.stream.history_ if run.name != SEPARATE else None
        TimelineDisplay(
            run.shown,
            item_ids=everyone,
            times=snapshots.days,
            ess=None if stamps is None else [stamp.ess for stamp in stamps],
            resampled=None if stamps is None else [stamp.resampled for stamp in stamps],
        ).plot(
            ax=ax, title=run.name, marks=PUBLISHED_CHANGES, ylabel="person",
            n_particles=None if stamps is None else N_PARTICLES,
        )  # fmt: skip
    figure.savefig(path, dpi=120)
    print(f"figure: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", help="file for a picture of who is displayed")
    options = parser.parse_args()
    mail = load_enron()
    print(repr(mail))
    # The matrices are small: more threads would only wait for each other.
    with threadpool_limits(1):
        window(mail, options.figure, by_day=True)
        window(mail, None, by_day=False)
        year(mail)


if __name__ == "__main__":
    run_if_data(main)
