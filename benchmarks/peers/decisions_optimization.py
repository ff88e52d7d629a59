"""Bayesian optimisation beside bayesian-optimization, Optuna and SciPy: regret after 30 evaluations, and time.

Branin (2 real parameters), Hartmann-6 (6), and a mixed problem (a real number, an integer, a choice of four and a
rate that is searched on a logarithmic scale), over 20 seeds. Every library has its own defaults; bayesian-optimization
has no logarithmic scale and is given the logarithm itself. Seconds are of the processor, of one run, with one thread;
the function itself costs next to nothing.

    OMP_NUM_THREADS=1 python benchmarks/peers/decisions_optimization.py            # all three, 20 seeds
    OMP_NUM_THREADS=1 python benchmarks/peers/decisions_optimization.py --quick    # 4 seeds
    ... --only branin --seeds 20 --peers pluri bayes_opt optuna scipy random
    ... --batches            # how points under way are best taken into account: batches of 5
"""

from __future__ import annotations

import argparse
import math
import time
import warnings

import numpy as np

from pluri.decisions import BayesianOptimizer, Categorical, Integer, Real

N_CALLS = 30
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


METHODS = {"pluri": by_pluri, "bayes_opt": by_bayes_opt, "optuna": by_optuna, "scipy": by_scipy, "random": by_random}


def compare(name: str, methods: list[str], n_seeds: int) -> None:
    f, space, optimum = PROBLEMS[name]
    lowest = optimum()
    print(f"\n{name}: regret after {N_CALLS} evaluations, {n_seeds} seeds")
    print(f"{'':>12} {'median':>10} {'quartiles':>21} {'s of a run':>11} {'ours / theirs':>14}")
    ours = math.nan
    for method in methods:
        METHODS[method](f, space, 1000)  # imports and first calls
        regrets, begun = [], time.process_time()
        for seed in range(n_seeds):
            regrets.append(METHODS[method](f, space, seed) - lowest)
        seconds = (time.process_time() - begun) / n_seeds
        ours = seconds if method == "pluri" else ours
        low, median, high = np.quantile(regrets, [0.25, 0.5, 0.75])
        print(
            f"{method:>12} {median:10.4g} {low:10.4g} {high:10.4g} {seconds:11.2f} {ours / seconds:13.2f}x", flush=True
        )


def compare_batches(n_seeds: int) -> None:
    print(f"\nbatches of 5, {N_CALLS} evaluations, {n_seeds} seeds: median regret")
    for name, (f, space, optimum) in PROBLEMS.items():
        lowest = optimum()
        for pending in ("kriging_believer", "constant_liar", "thompson"):
            regrets = []
            for seed in range(n_seeds):
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
    parser.add_argument("--peers", nargs="*", default=list(METHODS))
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
