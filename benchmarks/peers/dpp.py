"""pluri's determinantal point processes against DPPy: same kernels, sizes and number of steps.

A ratio is printed only after the mean size and the mean log determinant of both packages' draws agree. Times are the
best of several repeats taken in turn, with one BLAS thread; first draws count the construction and the decomposition.

    python benchmarks/peers/dpp.py                    # all parts, about five minutes
    python benchmarks/peers/dpp.py size process       # single parts, by name

Parts: size (k-DPP), process (DPP), features (100,000 items), chain (exchange), greedy (most probable subset),
candidates (exact draws without a decomposition).
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

N_ITEMS, SIZE, MEAN_SIZE, N_CHECKED = 2000, 20, 88.0, 300


def best_times(n_repeats: int, *runs: Callable[[], object]) -> list[float]:
    """Shortest of several repeats of each, taken in turn: what the machine can do when nobody disturbs it."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(n_repeats):
        for run, record in zip(runs, times):
            begin = time.perf_counter()
            run()
            record.append(time.perf_counter() - begin)
    return [min(record) for record in times]


def line(part: str, title: str, ours: float, theirs: float) -> None:
    times = f"pluri {1e3 * ours:9.3f} ms   DPPy {1e3 * theirs:9.3f} ms"
    print(f"{part:<11s} {title:<52s} {times}   ratio {theirs / ours:8.1f}", flush=True)


def closeness(a: np.ndarray, b: np.ndarray | None = None, rate: float = 30.0) -> np.ndarray:
    b = a if b is None else np.atleast_2d(b)
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.exp(-rate * np.maximum(squares, 0.0))


def points(n_items: int) -> np.ndarray:
    return np.random.default_rng(0).random((n_items, 2))


def full_rank() -> np.ndarray:
    """A kernel of full rank, scaled to the wanted mean size."""
    from pluri.processes.dpp import DPP

    return DPP(closeness(points(N_ITEMS), rate=5000.0)).with_expected_size(MEAN_SIZE).L


def rank_100() -> np.ndarray:
    """100 features of each item, scaled to the wanted mean size."""
    from pluri.processes.dpp import DPP

    features = np.random.default_rng(1).normal(size=(N_ITEMS, 100))
    return DPP(features=features).with_expected_size(MEAN_SIZE).kernel.features


def theirs_of(**kernel: np.ndarray):
    from dppy.finite_dpps import FiniteDPP

    with contextlib.redirect_stdout(None):
        return FiniteDPP("likelihood", **kernel)


def agree(
    part: str, log_det: Callable[[np.ndarray], float], ours: Sequence, theirs: Sequence, peer: str = "DPPy"
) -> None:
    """Mean sizes and log determinants within four standard errors, or no ratio."""
    for name, value in (("size", len), ("log determinant", log_det)):
        a, b = (np.array([value(np.asarray(draw)) for draw in draws], dtype=float) for draws in (ours, theirs))
        error = np.sqrt(a.var() / len(a) + b.var() / len(b)) + 1e-12
        print(f"{part:<11s} mean {name:<16s} pluri {a.mean():9.3f}   {peer} {b.mean():9.3f}   (se {error:.3f})")
        if abs(a.mean() - b.mean()) > 4 * error:
            raise SystemExit(f"{part}: mean {name} differs by {a.mean() - b.mean():.3f}, no ratio")


def log_det_of(L: np.ndarray) -> Callable[[np.ndarray], float]:
    return lambda draw: float(np.linalg.slogdet(L[np.ix_(draw, draw)])[1])


def compare(part: str, name: str, size: int | None, L: np.ndarray, ours_given: dict, theirs_given: dict) -> None:
    """First draw, later draws one at a time, and later draws by the hundred."""
    from pluri.processes.dpp import DPP, KDPP

    def make():
        return DPP(**ours_given) if size is None else KDPP(**ours_given, size=size)

    def draw_theirs(theirs):
        return theirs.sample_exact() if size is None else theirs.sample_exact_k_dpp(size)

    ours, theirs = make(), theirs_of(**theirs_given)
    rng = np.random.default_rng(0)
    agree(part, log_det_of(L), ours.sample(N_CHECKED, rng), [draw_theirs(theirs) for _ in range(N_CHECKED)])
    first = best_times(3, lambda: make().sample(random_state=rng), lambda: draw_theirs(theirs_of(**theirs_given)))
    line(part, f"{name}: first draw", *first)
    # Twenty at a time: the best single draw of random size would be the smallest subset.
    one = best_times(
        5,
        lambda: [ours.sample(random_state=rng) for _ in range(20)],
        lambda: [draw_theirs(theirs) for _ in range(20)],
    )
    line(part, f"{name}: later, one call each", one[0] / 20, one[1] / 20)
    (batch,) = best_times(5, lambda: ours.sample(100, random_state=rng))
    line(part, f"{name}: later, batch of 100", batch / 100, one[1] / 20)


def compare_both(part: str, title: str, size: int | None) -> None:
    L, F = full_rank(), rank_100()
    compare(part, f"{title}, full rank", size, L, {"L": L}, {"L": L})
    compare(part, f"{title}, 100 features", size, F @ F.T, {"features": F}, {"L_gram_factor": F.T})


def part_size() -> None:
    compare_both("size", f"{SIZE} of {N_ITEMS}", SIZE)


def part_process() -> None:
    compare_both("process", f"mean {MEAN_SIZE:.0f} of {N_ITEMS}", None)


def part_features() -> None:
    """First draw from 100 features of 100,000 items in a fresh process; the kernel would take 80 GB."""
    for who in ("pluri", "DPPy"):
        with tempfile.TemporaryDirectory() as folder:
            for state in ("nothing compiled", "from the cache") if who == "pluri" else ("",):
                environment = os.environ | {"NUMBA_CACHE_DIR": folder}
                command = [sys.executable, __file__, "--first", who]
                output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                seconds, later, before, peak, size = (float(value) for value in output.split()[-5:])
                print(
                    f"features    {who:<6s}{state:<17s} first draw {seconds:6.2f} s, later {1e3 * later:8.2f} ms each, "
                    f"peak {peak:5.0f} MB ({before:.0f} MB before, features among them), {size:.0f} items",
                    flush=True,
                )


def peak_memory() -> float:
    """Megabytes; by the kernel's own mark where there is one, since ru_maxrss begins with that of the parent."""
    try:
        with open("/proc/self/status") as status:
            return next(float(row.split()[1]) for row in status if row.startswith("VmHWM")) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def first_of_features(who: str) -> None:
    rng = np.random.default_rng(0)
    F = rng.normal(size=(100_000, 100)) * 0.01
    if who == "DPPy":
        from dppy.finite_dpps import FiniteDPP
    else:
        from pluri.processes.dpp import DPP
    before = peak_memory()
    begin = time.perf_counter()
    if who == "DPPy":
        theirs = FiniteDPP("likelihood", L_gram_factor=F.T)
        draw = theirs.sample_exact
    else:
        process = DPP(features=F)
        draw = lambda: process.sample(random_state=rng)  # noqa: E731
    subset = draw()
    seconds = time.perf_counter() - begin
    peak = peak_memory()
    (later,) = best_times(5, draw)
    print(seconds, later, before, peak, len(subset))


def part_chain() -> None:
    """1,000 exchange steps from the same subset; neither counts a check of the kernel."""
    from pluri.processes.dpp import DenseKernel, DPPMarkovChain, Exchange

    L = full_rank()
    theirs = theirs_of(L=L)
    begin = np.arange(0, N_ITEMS, N_ITEMS // SIZE)[:SIZE]
    chain = DPPMarkovChain(DenseKernel(L), move="exchange", size=SIZE, start=begin)
    counter = iter(range(10**9))

    def walk_ours(n_steps: int = 1000):
        return chain.sample(1, n_warmup=n_steps - 1, thin=1, random_state=next(counter))[-1]

    included = np.zeros(N_ITEMS, dtype=np.int8)
    included[begin] = 1
    kernel, rng = Exchange(DenseKernel(L), n_inner=1000), np.random.default_rng(0)
    states = [kernel.init(rng, {"included": included})]

    def step_ours() -> None:
        states[0], _ = kernel.step(rng, states[0])

    def walk_theirs(n_steps: int = 1000):
        theirs.flush_samples()
        theirs.sample_mcmc_k_dpp(size=SIZE, nb_iter=n_steps, s_init=begin.tolist(), random_state=next(counter))
        return theirs.list_of_samples[-1][-1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree("chain", log_det_of(L), [walk_ours() for _ in range(100)], [walk_theirs() for _ in range(100)])
        step_ours()
        stepped, walked, theirs_walked = best_times(30, step_ours, walk_ours, walk_theirs)
        line("chain", f"1,000 exchanges, {SIZE} of {N_ITEMS}: the steps", stepped, theirs_walked)
        line("chain", "the same with start, records and diagnostics", walked, theirs_walked)


def part_greedy() -> None:
    """No peer in DPPy: the time, and the log determinant against that of a random subset."""
    from pluri.processes.dpp import FeatureKernel, greedy_map

    rng = np.random.default_rng(0)
    F = rng.normal(size=(20_000, 100))
    greedy_map(FeatureKernel(F[:200]), size=5)
    (seconds,) = best_times(3, lambda: greedy_map(FeatureKernel(F), size=100))
    found = greedy_map(FeatureKernel(F), size=100)
    chance = F[rng.choice(len(F), 100, replace=False)]
    values = f"log det {found.log_det:.1f}, of a random subset {np.linalg.slogdet(chance @ chance.T)[1]:.1f}"
    print(f"greedy      100 of 20,000 from 100 features: {seconds:.3f} s; {values}", flush=True)


def part_candidates() -> None:
    """A smooth kernel of points in the square: preparation and draws, against the decomposition and DPPy's dpp-vfx."""
    from dppy.finite_dpps import FiniteDPP

    from pluri.processes.dpp import DPP, FunctionKernel
    from pluri.processes.dpp.samplers.intermediate import IntermediateSampler

    for n_items in (5_000, 20_000, 100_000):
        X = points(n_items)
        # The mean size stays the same while the points grow denser.
        quality = np.sqrt(200 / n_items)
        kernel = FunctionKernel(closeness, X, np.full(n_items, quality))
        rng = np.random.default_rng(0)

        def log_det(draw, kernel=kernel):
            return float(np.linalg.slogdet(kernel.block(draw, draw))[1])

        begin = time.perf_counter()
        sampler = IntermediateSampler(kernel)
        preparation = time.perf_counter() - begin
        n_draws = 60
        begin = time.perf_counter()
        ours = sampler.draw(n_draws, rng)
        later = (time.perf_counter() - begin) / n_draws
        print(
            f"candidates  {n_items:>7,d} items: preparation {preparation:6.2f} s, each draw {1e3 * later:7.1f} ms "
            f"({len(sampler.landmarks)} landmarks, {sampler.expected_candidates:.0f} candidates, "
            f"{sampler.acceptance:.0%} accepted, mean size {np.mean([len(draw) for draw in ours]):.1f})",
            flush=True,
        )
        if n_items == 5_000:
            process = DPP(kernel)
            begin = time.perf_counter()
            process.sample(random_state=rng, method="spectral")
            seconds = time.perf_counter() - begin
            agree("candidates", log_det, ours, process.sample(N_CHECKED, rng, method="spectral"), "by the spectrum")
            print(f"candidates  {n_items:>7,d} items: first draw from the spectrum {seconds:6.2f} s")
        if n_items <= 20_000:
            evaluate = lambda a, b=None, q=quality: q * q * closeness(np.atleast_2d(a), b)  # noqa: E731
            theirs = FiniteDPP("likelihood", L_eval_X_data=(evaluate, X))
            begin = time.perf_counter()
            draws = [theirs.sample_exact("vfx", random_state=0, verbose=False)]
            first = time.perf_counter() - begin
            draws += [theirs.sample_exact("vfx", random_state=i, verbose=False) for i in range(1, 10)]
            theirs_later = (time.perf_counter() - begin - first) / 9
            agree("candidates", log_det, ours, draws)
            line("candidates", f"{n_items:,d} items: first draw (DPPy: dpp-vfx)", preparation + later, first)
            line("candidates", f"{n_items:,d} items: later draw (DPPy: dpp-vfx)", later, theirs_later)


PARTS = {
    "size": part_size,
    "process": part_process,
    "features": part_features,
    "chain": part_chain,
    "greedy": part_greedy,
    "candidates": part_candidates,
}


def main() -> None:
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--first"]:
        first_of_features(sys.argv[2])
        return
    unknown = set(sys.argv[1:]) - set(PARTS)
    if unknown:
        raise SystemExit(f"parts are {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    np.random.seed(0)  # noqa: NPY002 (the peer draws from NumPy's global stream)
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
