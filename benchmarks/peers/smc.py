"""pluri's particle filter against the `particles` package: same model, data, number of particles and resampling.

Both run the bootstrap filter with 1,000 particles over 1,000 observations and resample when the effective sample size
falls below half. A ratio is printed only after both log evidences agree with each other (stochastic volatility) or
with the Kalman filter (linear Gaussian). pluri keeps filtered means and variances, which particles does not; the line
"all clouds kept" also keeps every particle and weight, as particles does with ``store_history=True``.

    python benchmarks/peers/smc.py            # about a minute
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

N_PARTICLES, N_STEPS, N_REPEATS, N_RUNS = 1000, 1000, 15, 100


def best_times(*runs: Callable[[], object]) -> list[float]:
    """Shortest of several repeats of each, taken in turn: what the machine can do when nobody disturbs it."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(N_REPEATS):
        for run, record in zip(runs, times):
            begin = time.perf_counter()
            run()
            record.append(time.perf_counter() - begin)
    return [min(record) for record in times]


def our_model(name: str) -> object:
    from pluri.dynamics import LinearGaussianModel, StochasticVolatility

    if name == "volatility":
        return StochasticVolatility(level=-1.0, persistence=0.95, scale=0.3)
    return LinearGaussianModel(0.9, 1.0, 1.0, 0.25, 0.0, 1 / (1 - 0.9**2))


def run_ours(name: str, observations: np.ndarray, resampling: str, random_state: int, store: str = "moments") -> float:
    from pluri.inference.smc import particle_filter

    return particle_filter(
        our_model(name), observations, N_PARTICLES, resampling, random_state=random_state, store=store
    ).log_evidence


def run_theirs(name: str, observations: np.ndarray, resampling: str, store: bool = False) -> float:
    import particles
    from particles import kalman, state_space_models

    if name == "volatility":
        model = state_space_models.StochVol(mu=-1.0, rho=0.95, sigma=0.3)
    else:
        model = kalman.LinearGauss(sigmaX=1.0, sigmaY=0.5, rho=0.9, sigma0=1 / np.sqrt(1 - 0.9**2))
    bootstrap = state_space_models.Bootstrap(ssm=model, data=observations[:, 0])
    run = particles.SMC(fk=bootstrap, N=N_PARTICLES, resampling=resampling, ESSrmin=0.5, store_history=store)
    run.run()
    return float(run.logLt)


def spread(values: np.ndarray) -> str:
    return f"mean {values.mean():10.3f}  sd {values.std(ddof=1):.3f}"


def agree(name: str, observations: np.ndarray) -> None:
    """Both estimates over many runs; exp of the difference to the truth has mean one."""
    from pluri.dynamics import kalman_filter

    ours = np.array([run_ours(name, observations, "systematic", i) for i in range(N_RUNS)])
    np.random.seed(0)  # noqa: NPY002 (the peer draws from NumPy's global stream)
    theirs = np.array([run_theirs(name, observations, "systematic") for _ in range(N_RUNS)])
    print(f"{name:<12s} log evidence over {N_RUNS} runs   pluri {spread(ours)}   particles {spread(theirs)}")
    # The logarithm is low by about half its variance, in both.
    corrected = ours.mean() + ours.var(ddof=1) / 2
    if name == "linear":
        exact = kalman_filter(our_model(name), observations).log_evidence
        error = np.sqrt(ours.var(ddof=1) / N_RUNS + ours.var(ddof=1) ** 2 / (2 * N_RUNS))
        print(f"{'':<12s} Kalman filter {exact:.3f}   pluri's mean + variance / 2  {corrected:.3f}  (se {error:.3f})")
    else:
        exact = theirs.mean() + theirs.var(ddof=1) / 2
        error = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / N_RUNS)
    if abs(corrected - exact) > 4 * error:
        raise SystemExit(f"{name}: log evidences differ by {corrected - exact:.3f}, no ratio")


def compare(name: str, observations: np.ndarray) -> None:
    def line(title: str, ours: float, theirs: float) -> None:
        times = f"{1e3 * ours:7.1f} ms  particles {1e3 * theirs:7.1f} ms"
        print(f"{name:<12s} {title:<28s} {times}  ratio {theirs / ours:5.1f}")

    for resampling in ("systematic", "stratified", "residual", "multinomial"):
        ours, theirs = best_times(
            lambda: run_ours(name, observations, resampling, 0),  # noqa: B023
            lambda: run_theirs(name, observations, resampling),  # noqa: B023
        )
        line(resampling, ours, theirs)
    ours, theirs = best_times(
        lambda: run_ours(name, observations, "systematic", 0, "paths"),
        lambda: run_theirs(name, observations, "systematic", True),
    )
    line("systematic, all clouds kept", ours, theirs)


def first_calls(name: str) -> None:
    """Seconds of the first run in a fresh process: loops compiled from nothing, and taken from the cache."""
    for who in ("ours", "theirs"):
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"NUMBA_CACHE_DIR": folder}
            command = [sys.executable, __file__, "--first", who, name]
            seconds = [
                float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
                for _ in range(2)
            ]
        label = "pluri" if who == "ours" else "particles"
        print(f"{name:<12s} first call, {label:<9s} {seconds[0]:6.2f} s   in the next process {seconds[1]:6.2f} s")


def data(name: str) -> np.ndarray:
    return our_model(name).sample(N_STEPS, random_state=0)[1]


def main() -> None:
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1 and sys.argv[1] == "--first":
        _, _, who, name = sys.argv
        observations = data(name)
        begin = time.perf_counter()
        if who == "ours":
            run_ours(name, observations, "systematic", 0)
        else:
            run_theirs(name, observations, "systematic")
        print(time.perf_counter() - begin)
        return
    print(f"{N_PARTICLES} particles, {N_STEPS} observations; best of {N_REPEATS}")
    for name in ("linear", "volatility"):
        observations = data(name)
        agree(name, observations)
        compare(name, observations)
        first_calls(name)


if __name__ == "__main__":
    main()
