"""Bayesian optimisation beside bayesian-optimization, Optuna and SciPy: regret after 30 evaluations, and time.

Branin (2 real parameters), Hartmann-6 (6), and a mixed problem (a real number, an integer, a choice of four and a
rate that is searched on a logarithmic scale), over 20 seeds. Every library has its own defaults; bayesian-optimization
has no logarithmic scale and is given the logarithm itself. Seconds are of one run with one thread, of the processor and
of the clock; the libraries take turns at each seed, and the function itself costs next to nothing. The prior of our
length scales was chosen on Hartmann-6 with seeds 0 to 7, so seeds begin at 100.

    OMP_NUM_THREADS=1 python benchmarks/peers/decisions_optimization.py            # all three, 20 seeds, 13 CPU minutes
    OMP_NUM_THREADS=1 python benchmarks/peers/decisions_optimization.py --quick    # 4 seeds
    ... --only branin --seeds 20 --peers pluri bayes_opt optuna scipy random
    ... --only branin hartmann6 --seeds 10 --peers pluri botorch    # which needs torch
    ... --batches            # how points under way are best taken into account: batches of 5
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings

import numpy as np

from pluri.decisions import BayesianOptimizer, Categorical, Integer, Real

N_CALLS = 30
FIRST_SEED = 100
HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_SCALES = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN_CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
SHIFTS = {"a": 0.0, "b": 1.5, "c": 4.0, "d": 8.0}


def branin(params: dict) -> float:
    x, y = params["x"], params["y"]
    return float(
        (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
    )


def hartmann(params: dict) -> float:
    x = np.array([params[f"x{j}"] for j in range(6)])
    return -float(HARTMANN_WEIGHTS @ np.exp(-(HARTMANN_SCALES * (x - HARTMANN_CENTRES) ** 2).sum(axis=1)))


def mixed(params: dict) -> float:
    """Branin with an integer, a choice that adds a constant, and a rate whose best value is 10^-2.5."""
    wrong = 1 + (params["kind"] != "a")
    return branin(params) + SHIFTS[params["kind"]] + 2 * wrong * (math.log10(params["rate"]) + 2.5) ** 2


def mixed_optimum() -> float:
    return min(branin({"x": x, "y": y}) for y in range(16) for x in np.linspace(-5, 10, 20_001))


PROBLEMS = {
    "branin": (branin, {"x": Real(-5, 10), "y": Real(0, 15)}, lambda: 0.397887),
    "hartmann6": (hartmann, {f"x{j}": Real(0, 1) for j in range(6)}, lambda: -3.32237),
    "mixed": (
        mixed,
        {
            "x": Real(-5, 10),
            "y": Integer(0, 15),
            "kind": Categorical(["a", "b", "c", "d"]),
            "rate": Real(1e-5, 1, log=True),
        },
        mixed_optimum,
    ),
}


def by_pluri(f, space, seed, **settings) -> float:
    optimizer = BayesianOptimizer(space, random_state=seed, **settings)
    return optimizer.optimize(f, N_CALLS).fun


def by_random(f, space, seed) -> float:
    from pluri.decisions.bayesian_optimization.space import Space

    whole = Space.of(space)
    return min(f(whole.params(row)) for row in whole.sample(np.random.default_rng(seed), N_CALLS))


def by_bayes_opt(f, space, seed) -> float:
    from bayes_opt import BayesianOptimization

    bounds, logs = {}, set()
    for name, one in space.items():
        if isinstance(one, Categorical):
            bounds[name] = tuple(one.choices)
        elif isinstance(one, Integer):
            bounds[name] = (one.low, one.high, int)
        elif one.log:
            bounds[name] = (math.log10(one.low), math.log10(one.high))
            logs.add(name)
        else:
            bounds[name] = (one.low, one.high)

    def target(**params):
        return -f({name: 10.0**value if name in logs else value for name, value in params.items()})

    search = BayesianOptimization(target, bounds, random_state=seed, verbose=0)
    search.maximize(init_points=5, n_iter=N_CALLS - 5)
    return -search.max["target"]


def by_botorch(f, space, seed) -> float:
    """Its standard Gaussian process and log expected improvement, as in its introduction; real parameters alone."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from botorch.utils.sampling import draw_sobol_samples
    from gpytorch.mlls import ExactMarginalLogLikelihood

    if any(not isinstance(one, Real) or one.log for one in space.values()):
        return math.nan
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    low, high = (np.array([getattr(one, end) for one in space.values()]) for end in ("low", "high"))
    cube = torch.tensor(np.stack([np.zeros(len(low)), np.ones(len(low))]))

    def values(points):
        return [[-f(dict(zip(space, (low + (high - low) * row).tolist())))] for row in points.numpy()]

    X = draw_sobol_samples(cube, n=max(5, len(low) + 1), q=1, seed=seed).squeeze(1)
    Y = torch.tensor(values(X), dtype=torch.float64)
    while len(Y) < N_CALLS:
        model = SingleTaskGP(X, Y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        worth = LogExpectedImprovement(model, best_f=Y.max())
        point, _ = optimize_acqf(worth, bounds=cube, q=1, num_restarts=5, raw_samples=256)
        X, Y = torch.cat([X, point]), torch.cat([Y, torch.tensor(values(point), dtype=torch.float64)])
    return -float(Y.max())


def by_optuna(f, space, seed) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        params = {}
        for name, one in space.items():
            if isinstance(one, Categorical):
                params[name] = trial.suggest_categorical(name, list(one.choices))
            elif isinstance(one, Integer):
                params[name] = trial.suggest_int(name, one.low, one.high)
            else:
                params[name] = trial.suggest_float(name, one.low, one.high, log=one.log)
        return f(params)

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(objective, n_trials=N_CALLS)
    return float(study.best_value)


def by_scipy(f, space, seed) -> float:
    """Dual annealing of the codes, without its local search, which alone would take more evaluations than there are."""
    from scipy.optimize import dual_annealing

    from pluri.decisions.bayesian_optimization.space import Space

    whole = Space.of(space)

    def target(shares):
        return f(whole.params(whole.spread(np.clip(shares, 0, 1)[None])[0]))

    result = dual_annealing(target, [(0, 1)] * whole.n_dimensions, maxfun=N_CALLS, no_local_search=True, seed=seed)
    return float(result.fun)


METHODS = {
    "pluri": by_pluri,
    "bayes_opt": by_bayes_opt,
    "optuna": by_optuna,
    "scipy": by_scipy,
    "random": by_random,
    "botorch": by_botorch,
}


def compare(name: str, methods: list[str], n_seeds: int) -> None:
    f, space, optimum = PROBLEMS[name]
    lowest = optimum()
    for method in methods:
        METHODS[method](f, space, 1000)  # imports and first calls
    regrets: dict[str, list[float]] = {method: [] for method in methods}
    seconds = {method: np.zeros(2) for method in methods}
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        for method in methods:
            begun = np.array([time.process_time(), time.perf_counter()])
            regrets[method].append(METHODS[method](f, space, seed) - lowest)
            seconds[method] += np.array([time.process_time(), time.perf_counter()]) - begun
        shown = ", ".join(f"{method} {regrets[method][-1]:.4g}" for method in methods)
        print(f"  {name}, seed {seed}: {shown}", file=sys.stderr, flush=True)
    print(f"\n{name}: regret after {N_CALLS} evaluations, {n_seeds} seeds from {FIRST_SEED}")
    print(
        f"{'':>12} {'median':>10} {'quartiles':>21} {'CPU s':>9} {'wall s':>9} {'ours / theirs, CPU':>20} {'wall':>7}"
    )
    for method in methods:
        low, median, high = np.quantile(regrets[method], [0.25, 0.5, 0.75])
        cpu, wall = seconds[method] / n_seeds
        share_cpu, share_wall = seconds.get("pluri", np.full(2, math.nan)) / seconds[method]
        print(
            f"{method:>12} {median:10.4g} {low:10.4g} {high:10.4g} {cpu:9.2f} {wall:9.2f} {share_cpu:19.2f}x "
            f"{share_wall:6.2f}x",
            flush=True,
        )


def compare_batches(n_seeds: int) -> None:
    print(f"\nbatches of 5, {N_CALLS} evaluations, {n_seeds} seeds: median regret")
    for name, (f, space, optimum) in PROBLEMS.items():
        lowest = optimum()
        for pending in ("kriging_believer", "constant_liar", "thompson"):
            regrets = []
            for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
                optimizer = BayesianOptimizer(space, random_state=seed, pending=pending)
                regrets.append(optimizer.optimize(f, N_CALLS, batch_size=5).fun - lowest)
            low, median, high = np.quantile(regrets, [0.25, 0.5, 0.75])
            print(f"{name:>12} {pending:>18} {median:10.4g} {low:10.4g} {high:10.4g}", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--peers", nargs="*", default=list(METHODS)[:-1])
    parser.add_argument("--batches", action="store_true")
    given = parser.parse_args()
    n_seeds = 4 if given.quick else given.seeds
    if given.batches:
        compare_batches(n_seeds)
        return
    for name in given.only:
        compare(name, given.peers, n_seeds)


if __name__ == "__main__":
    main()
