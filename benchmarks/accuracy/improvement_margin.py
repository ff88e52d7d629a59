"""What the probability of improvement should ask for: regret on five functions, by share of the values' spread.

``python benchmarks/accuracy/improvement_margin.py`` prints the median and the largest regret over seeds after 30
evaluations, for each share of the standard deviation of the values, and that of expected improvement beside them.
"""

from __future__ import annotations

import argparse

import numpy as np

from pluri.decisions import BayesianOptimizer, Real
from pluri.decisions.bayesian_optimization import choosing

SHARES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)


def branin(params):
    x, y = params["x0"], params["x1"]
    valley = (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2
    return valley + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10 - 0.397887


def camel(params):
    x, y = params["x0"], params["x1"]
    return (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (-4 + 4 * y**2) * y**2 + 1.031628


def ackley(params):
    x = np.array(list(params.values()))
    return -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2))) - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20 + np.e


def levy(params):
    w = 1 + (np.array(list(params.values())) - 1) / 4
    middle = ((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2)).sum()
    return np.sin(np.pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)


def bowl(params):
    return sum((i + 1) * (value - 0.3) ** 2 for i, value in enumerate(params.values()))


#: Function, its smallest value being 0, and the bounds of each dimension.
FUNCTIONS = {
    "branin": (branin, ((-5, 10), (0, 15))),
    "camel": (camel, ((-2, 2), (-1, 1))),
    "ackley, 2-D": (ackley, ((-4, 5),) * 2),
    "levy, 3-D": (levy, ((-6, 7),) * 3),
    "bowl, 4-D": (bowl, ((-1, 1),) * 4),
}


def regrets(name: str, n_seeds: int, **settings) -> np.ndarray:
    function, bounds = FUNCTIONS[name]
    space = {f"x{i}": Real(*limits) for i, limits in enumerate(bounds)}
    return np.array(
        [BayesianOptimizer(space, random_state=seed, **settings).optimize(function, 30).fun for seed in range(n_seeds)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="three seeds")
    arguments = parser.parse_args()
    n_seeds = 3 if arguments.quick else arguments.seeds
    print(f"regret after 30 evaluations, median (largest) of {n_seeds} seeds")
    print(f"{'function':14}" + "".join(f"{f'pi, {share:g} sd':>18}" for share in SHARES) + f"{'ei':>18}")
    for name in FUNCTIONS:
        cells = []
        for share in SHARES:
            choosing.MARGIN = share
            cells.append(regrets(name, n_seeds, acquisition="pi"))
        cells.append(regrets(name, n_seeds))
        print(f"{name:14}" + "".join(f"{f'{np.median(c):.4f} ({c.max():.3f})':>18}" for c in cells), flush=True)


if __name__ == "__main__":
    main()
