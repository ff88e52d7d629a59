"""pluri's linear dynamical systems beside statsmodels, pykalman, filterpy and dynamax, in one process.

Smoothing: 5,000 steps, 4 hidden dimensions, 10 outputs, known parameters; a ratio is printed only after the smoothed
means agree to 1e-6. EM: ten sweeps from the same start on the same data, all parts learned, no prior; a ratio is
printed only after the log-likelihoods agree. Threads: 1,000 ragged sequences on one and on two. A library that is not
installed is left out; dynamax runs in double precision, and its first call includes compiling, as ours does on an empty
cache.

    python benchmarks/peers/dynamics_linear.py              # about four minutes, most of them of the peers
    python benchmarks/peers/dynamics_linear.py --quick      # fewer repeats
    python benchmarks/peers/dynamics_linear.py --held-out   # which covariance_type has the highest held-out likelihood
    python benchmarks/peers/dynamics_linear.py --ascents    # plain and accelerated EM: iterations, objectives, seconds
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

N_STEPS, N_STATES, N_OUTPUTS, N_SWEEPS = 5000, 4, 10, 10


def make_case() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Matrices by their letters, and observations."""
    from pluri.dynamics import LinearGaussianModel

    rng = np.random.default_rng(0)
    case = {
        "A": 0.95 * np.linalg.qr(rng.normal(size=(N_STATES, N_STATES)))[0],
        "Q": 0.3 * np.eye(N_STATES),
        "C": rng.normal(size=(N_OUTPUTS, N_STATES)),
        "R": np.diag(rng.uniform(0.5, 2.0, size=N_OUTPUTS)),
        "m": np.zeros(N_STATES),
        "P": np.eye(N_STATES),
    }
    model = LinearGaussianModel(*(case[letter] for letter in "AQCRmP"))
    return case, model.sample(N_STEPS, random_state=0)[1]


def best_of(run: Callable[[], object], n_repeats: int) -> float:
    times = []
    for _ in range(n_repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def smoothers(case: dict[str, np.ndarray], Y: np.ndarray) -> dict[str, tuple[Callable[[], np.ndarray], int]]:
    """By library: a function that gives the smoothed means, and how often it is run."""
    from pluri.dynamics import LinearGaussianModel, kalman_smoother

    model = LinearGaussianModel(*(case[letter] for letter in "AQCRmP"))
    found: dict[str, tuple[Callable[[], np.ndarray], int]] = {"pluri": (lambda: kalman_smoother(model, Y).mean, 30)}
    try:
        for collapsed in (False, True):
            theirs = statsmodels_smoother(case, Y, collapsed)
            found["statsmodels" + ", collapsed" * collapsed] = (theirs, 10)
    except ImportError:
        print("statsmodels is not installed")
    try:
        from pykalman import KalmanFilter

        kalman = KalmanFilter(*(case[letter] for letter in "ACQR"), initial_state_mean=case["m"],
                              initial_state_covariance=case["P"])  # fmt: skip
        found["pykalman"] = (lambda: kalman.smooth(Y)[0], 2)
    except ImportError:
        print("pykalman is not installed")
    try:
        import filterpy.kalman

        def by_filterpy() -> np.ndarray:
            one = filterpy.kalman.KalmanFilter(N_STATES, N_OUTPUTS)
            one.x, one.P, one.F, one.Q = case["m"][:, None], case["P"], case["A"], case["Q"]
            one.H, one.R = case["C"], case["R"]
            mean, covariance, _, _ = one.batch_filter(Y[:, :, None], update_first=True)
            return np.asarray(one.rts_smoother(mean, covariance)[0])[:, :, 0]

        found["filterpy"] = (by_filterpy, 1)
    except ImportError:
        print("filterpy is not installed")
    try:
        by_dynamax = dynamax_smoother(case, Y)
        found["dynamax, second call"] = (by_dynamax, 5)
    except ImportError:
        print("dynamax is not installed")
    return found


def statsmodels_smoother(case: dict[str, np.ndarray], Y: np.ndarray, collapsed: bool) -> Callable[[], np.ndarray]:
    from statsmodels.tsa.statespace.kalman_smoother import SMOOTHER_STATE, SMOOTHER_STATE_COV, KalmanSmoother

    theirs = KalmanSmoother(k_endog=N_OUTPUTS, k_states=N_STATES)
    theirs.bind(Y.copy())
    theirs["design"], theirs["obs_cov"] = case["C"], case["R"]
    theirs["transition"], theirs["selection"], theirs["state_cov"] = case["A"], np.eye(N_STATES), case["Q"]
    theirs.initialize_known(case["m"], case["P"])
    theirs.set_filter_method(filter_collapsed=collapsed)
    theirs.set_smoother_output(SMOOTHER_STATE | SMOOTHER_STATE_COV)
    return lambda: theirs.smooth().smoothed_state.T


def dynamax_model(case: dict[str, np.ndarray]) -> tuple:
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import jax.random as jr
    from dynamax.linear_gaussian_ssm import LinearGaussianSSM

    model = LinearGaussianSSM(N_STATES, N_OUTPUTS, has_dynamics_bias=False, has_emissions_bias=False)
    params, props = model.initialize(
        jr.PRNGKey(0), initial_mean=jnp.array(case["m"]), initial_covariance=jnp.array(case["P"]),
        dynamics_weights=jnp.array(case["A"]), dynamics_covariance=jnp.array(case["Q"]),
        emission_weights=jnp.array(case["C"]), emission_covariance=jnp.array(case["R"]),
    )  # fmt: skip
    return model, params, props


def dynamax_smoother(case: dict[str, np.ndarray], Y: np.ndarray) -> Callable[[], np.ndarray]:
    import jax

    model, params, _ = dynamax_model(case)
    smooth = jax.jit(model.smoother)
    begin = time.perf_counter()
    np.asarray(smooth(params, Y).smoothed_means)
    print(f"dynamax, first call of its smoother: {time.perf_counter() - begin:.2f} s")
    return lambda: np.asarray(smooth(params, Y).smoothed_means)


def compare_smoothing(case: dict[str, np.ndarray], Y: np.ndarray, quick: bool) -> None:
    found = smoothers(case, Y)
    ours = found["pluri"][0]()
    print(f"\nsmoothing {N_STEPS} steps, {N_STATES} hidden dimensions, {N_OUTPUTS} outputs, known parameters")
    seconds = {name: best_of(run, 1 if quick and repeats < 5 else repeats) for name, (run, repeats) in found.items()}
    seconds["pluri"] = min(seconds["pluri"], best_of(found["pluri"][0], 30))  # before and after the others
    for name, (run, _) in found.items():
        gap = float(np.abs(np.asarray(run()) - ours).max())
        ratio = f"{seconds[name] / seconds['pluri']:8.1f} x pluri" if gap < 1e-6 else "means do not agree"
        print(f"  {name:26} {1e3 * seconds[name]:10.2f} ms   {ratio}   (largest difference {gap:.1e})")


def start_of(case: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A start away from the truth, for EM."""
    rng = np.random.default_rng(1)
    return case | {
        "A": 0.8 * np.eye(N_STATES),
        "C": case["C"] + 0.5 * rng.normal(size=case["C"].shape),
        "R": 2.0 * np.eye(N_OUTPUTS),
    }


def our_em(start: dict[str, np.ndarray], Y: np.ndarray):
    from pluri.dynamics import LinearDynamicalSystem

    return LinearDynamicalSystem(
        N_STATES, covariance_type="full", covars_prior=0.0, initial_prior=0.0, params="mPAQCR", max_iter=N_SWEEPS,
        tol=-np.inf, acceleration=None, initial_mean_init=start["m"], initial_covariance_init=start["P"],
        transition_matrix_init=start["A"], transition_covariance_init=start["Q"], observation_matrix_init=start["C"],
        observation_covariance_init=start["R"], observation_offset_init=np.zeros(N_OUTPUTS),
    ).fit(Y)  # fmt: skip


def compare_em(case: dict[str, np.ndarray], Y: np.ndarray, quick: bool) -> None:
    start = start_of(case)
    print(f"\n{N_SWEEPS} EM sweeps on the same data, all of m, P, A, Q, C, R learned")
    begin = time.perf_counter()
    model = our_em(start, Y)
    first = time.perf_counter() - begin
    ours = best_of(lambda: our_em(start, Y), 3 if quick else 10)
    score = model.score(Y)
    print(f"  {'pluri':26} {1e3 * ours:10.1f} ms   log-likelihood {score:.3f}; first call {first:.2f} s")
    try:
        from pykalman import KalmanFilter

        kalman = KalmanFilter(*(start[letter] for letter in "ACQR"), initial_state_mean=start["m"],
                              initial_state_covariance=start["P"])  # fmt: skip
        names = ["transition_matrices", "observation_matrices", "transition_covariance", "observation_covariance",
                 "initial_state_mean", "initial_state_covariance"]  # fmt: skip
        begin = time.perf_counter()
        learned = kalman.em(Y, n_iter=N_SWEEPS, em_vars=names)
        seconds = time.perf_counter() - begin
        report("pykalman", seconds, ours, float(learned.loglikelihood(Y)), score)
    except ImportError:
        print("  pykalman is not installed")
    try:
        theirs, params, props = dynamax_model(start)
        import jax.numpy as jnp

        for call in ("first", "second"):
            begin = time.perf_counter()
            learned, scores = theirs.fit_em(params, props, jnp.array(Y), num_iters=N_SWEEPS, verbose=False)
            np.asarray(scores)
            seconds = time.perf_counter() - begin
            found = float(theirs.marginal_log_prob(learned, jnp.array(Y)))
            report(f"dynamax, {call} call", seconds, first if call == "first" else ours, found, score)
    except ImportError:
        print("  dynamax is not installed")


def report(name: str, seconds: float, ours: float, found: float, score: float) -> None:
    agrees = abs(found - score) < 1e-3 * abs(score)
    ratio = f"{seconds / ours:8.1f} x pluri" if agrees else "log-likelihoods do not agree"
    print(f"  {name:26} {1e3 * seconds:10.1f} ms   {ratio}; log-likelihood {found:.3f}")


def compare_threads(case: dict[str, np.ndarray], quick: bool) -> None:
    from pluri.dynamics import LinearDynamicalSystem, LinearGaussianModel

    rng = np.random.default_rng(2)
    model = LinearGaussianModel(*(case[letter] for letter in "AQCRmP"))
    lengths = rng.integers(100, 400, size=1000)
    X = model.sample(int(lengths.sum()), random_state=1)[1]
    with_holes = np.where(rng.random(X.shape) < 0.05, np.nan, X)

    def sweep(rows: np.ndarray, n_jobs: int) -> float:
        """Shortest time of a sweep: the first one of a fit includes its start."""
        model = LinearDynamicalSystem(N_STATES, max_iter=6, tol=-np.inf, acceleration=None, n_jobs=n_jobs).fit(
            rows, lengths=lengths
        )
        return float(model.history_.seconds[1:].min())

    print(f"\n1,000 ragged sequences, {len(X)} rows: an EM sweep")
    for title, rows in (("all values seen", X), ("5 % missing", with_holes)):
        times = [(sweep(rows, 1), sweep(rows, 2)) for _ in range(2 if quick else 5)]
        one, two = (min(column) for column in zip(*times))
        print(f"  {title}: one thread {1e3 * one:.0f} ms, two {1e3 * two:.0f} ms, {one / two:.2f} times as fast")


def ascents() -> None:
    """Iterations, objective and CPU seconds of EM with default settings, plain and accelerated."""
    from pluri.dynamics import LinearDynamicalSystem, LinearGaussianModel

    def made(n_steps: int, n_states: int, n_outputs: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        A = 0.95 * np.linalg.qr(rng.normal(size=(n_states, n_states)))[0]
        C = rng.normal(size=(n_outputs, n_states))
        noise, start = 0.09 * np.eye(n_states), np.eye(n_states)
        model = LinearGaussianModel(A, noise, C, 0.25 * np.eye(n_outputs), np.zeros(n_states), start)
        return model.sample(n_steps, random_state=seed)[1]

    turn = np.arange(300) / 8
    circle = np.stack([np.sin(turn), np.cos(turn), np.sin(turn + 1)], axis=1)
    cases = {"a circle in noise": (circle + 0.1 * np.random.default_rng(0).normal(size=circle.shape), 2)}
    for seed, size in enumerate([(500, 3, 6), (200, 2, 3), (40, 2, 4), (5000, 4, 10)], start=1):
        cases[f"made, {size[0]} steps, {size[2]} outputs"] = (made(size[0], size[1], size[2], seed), size[1])
    if "PLURI_DATA" in os.environ:
        file = np.load(Path(os.environ["PLURI_DATA"]) / "mocap_cmu_35_16.npz")
        walk = file["X"][: file["length"][0]]
        walk = walk[:, walk.std(axis=0) > 1e-6]
        cases["a walk"] = ((walk - walk.mean(axis=0)) / walk.std(axis=0), 4)
    for name, (X, n_components) in cases.items():
        print(f"{name}:")
        for acceleration in (None, "squarem", "anderson"):
            begin = time.process_time()
            model = LinearDynamicalSystem(n_components, acceleration=acceleration, max_iter=2000).fit(X)
            seconds = time.process_time() - begin
            print(
                f"  {acceleration or 'plain':9} {model.n_iter_:5} iterations to {model.objective_:.2f}, {seconds:.2f} s"
            )


def held_out() -> None:
    """Log-likelihood for each held-out row, under each covariance_type."""
    from pluri.dynamics import LinearDynamicalSystem

    cases = held_out_data(Path(os.environ["PLURI_DATA"]))
    for (name, (everything, test)), few in ((case, few) for case in cases.items() for few in (False, True)):
        train = (
            everything[:: len(everything) // 4][:4] if few and len(everything) > 4 else everything[: 1 if few else None]
        )
        n_rows, n_train = sum(map(len, test)), sum(map(len, train))
        print(f"\n{name}: {len(train)} sequences ({n_train} rows) to learn from, {train[0].shape[1]} outputs")
        for n_components in (2, 5, 8):
            scores = []
            for kind in ("diag", "full", "spherical"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = LinearDynamicalSystem(
                        n_components, covariance_type=kind, max_iter=100, acceleration="squarem"
                    ).fit(train)
                scores.append(f"{kind} {model.score(test) / n_rows:.3f}")
            print(f"  {n_components} hidden dimensions: " + ", ".join(scores), flush=True)


def held_out_data(folder: Path) -> dict[str, tuple[list[np.ndarray], list[np.ndarray]]]:
    def cut(X: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
        return np.split(np.asarray(X, dtype=float), np.cumsum(lengths)[:-1])

    vowels = np.load(folder / "japanese_vowels.npz")
    digits = np.load(folder / "fsdd_mfcc13.npz")
    chosen, is_test = digits["digit"] == 3, digits["index"] < 5
    spoken = cut(digits["X"], digits["length"])
    mocap = np.load(folder / "mocap6_exercise.npz")
    motions = np.split(mocap["X"], mocap["doc_range"][1:-1])
    return {
        "Japanese vowels": (cut(vowels["X_train"], vowels["len_train"]), cut(vowels["X_test"], vowels["len_test"])),
        "spoken digit three": (
            [spoken[i] for i in np.flatnonzero(chosen & ~is_test)],
            [spoken[i] for i in np.flatnonzero(chosen & is_test)],
        ),
        "six exercise routines": (motions[:4], motions[4:]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--ascents", action="store_true")
    options = parser.parse_args()
    if options.held_out:
        held_out()
        return
    if options.ascents:
        ascents()
        return
    case, Y = make_case()
    compare_smoothing(case, Y, options.quick)
    compare_em(case, Y, options.quick)
    compare_threads(case, options.quick)


if __name__ == "__main__":
    main()
