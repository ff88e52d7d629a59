"""Infinite mixture of experts on LIDAR: 221 measurements, at most 20 experts, probit sticks.

The published figure shows three regressions with noticeable weight and a 95 % band that follows the noise. Figures in
the first column were measured with an independent Gibbs sampler (two chains of 1500 sweeps, 500 thrown away) and the
same priors. A smaller rate of the prior of the precisions narrows the band where there is little noise. The first table
has the share of new values inside bands of 50 % and 90 %, with the published rate of 1 and with the default, 0.01. The
default was chosen on simulated data of the kinds below (other draws of them); LIDAR had no part in the choice.

    PLURI_DATA=folder python benchmarks/reproduce/lidar_experts.py
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter

import numpy as np
from published import Report, run_if_data
from sklearn.exceptions import ConvergenceWarning

from pluri.datasets.lidar import load_lidar
from pluri.mixtures.experts import InfiniteMixtureOfExperts
from pluri.priors import Gamma

KNOWN = {
    "experts with noticeable weight": 3.0,
    "greatest weight of the first": 1.0,
    "of the second": 1.0,
    "of the third": 0.92,
    "of the fourth": 0.007,
    "log likelihood (standardised y)": 16.9,
    "its standard deviation": 5.7,
    "share of points inside the 95 % band": 0.991,
    "width of the band, first 50 points": 0.70,
    "width of the band, last 50 points": 1.89,
    "root mean squared error of the mean": 0.277,
}


def measure(model: InfiniteMixtureOfExperts, X: np.ndarray, y: np.ndarray) -> list[float]:
    mean, band = model.predict(X, return_interval=0.95)
    width = (band[:, 1] - band[:, 0]) / y.std()
    weights = model.weights(X).max(axis=0)
    log_likelihood = model.trace_.stats["log_likelihood"]
    return [
        model.n_active_, *weights[:4], log_likelihood.mean(), log_likelihood.std(),
        np.mean((y >= band[:, 0]) & (y <= band[:, 1])), width[:50].mean(), width[-50:].mean(),
        np.sqrt(np.mean((y - mean) ** 2)) / y.std(),
    ]  # fmt: skip


def falling(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and noise of the LIDAR kind: flat and quiet, then falling and loud."""
    return -0.05 - 0.7 / (1 + np.exp(-14 * (x - 0.62))), 0.012 + 0.12 * np.clip((x - 0.45) / 0.55, 0, 1)


def crashing(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The motorcycle kind: still, then a blow, a rebound and noise."""
    bump = -110 * np.exp(-(((x - 0.38) / 0.09) ** 2)) + 45 * np.exp(-(((x - 0.6) / 0.1) ** 2))
    return np.where(x < 0.25, 0.0, bump), np.where(x < 0.24, 1.5, np.where(x < 0.75, 24.0, 12.0))


def straight(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A line with much noise."""
    return x, np.full_like(x, 0.6)


def shares_inside(model: InfiniteMixtureOfExperts, X: np.ndarray, y: np.ndarray) -> list[float]:
    bands = model.predict_quantiles(X, (0.05, 0.25, 0.75, 0.95))
    inside = [(y >= bands[:, i]) & (y <= bands[:, 3 - i]) for i in (1, 0)]
    return [float(np.mean(each)) for each in inside]


def held_out(rate: float, X: np.ndarray, y: np.ndarray) -> list[float]:
    found = []
    for fold in range(5):
        test = np.arange(len(y)) % 5 == fold
        model = InfiniteMixtureOfExperts(noise_prior=Gamma(1.0, rate), random_state=fold).fit(X[~test], y[~test])
        found.append(shares_inside(model, X[test], y[test]))
    return np.mean(found, axis=0).tolist()


def simulated(rate: float, kind: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], n: int) -> list[float]:
    found = []
    for number in range(4):
        rng = np.random.default_rng(number)
        x = rng.uniform(size=n + 600)
        mean, noise = kind(x)
        y = mean + noise * rng.standard_normal(len(x))
        model = InfiniteMixtureOfExperts(noise_prior=Gamma(1.0, rate), random_state=number).fit(x[:n, None], y[:n])
        found.append(shares_inside(model, x[n:, None], y[n:]))
    return np.mean(found, axis=0).tolist()


def coverage(X: np.ndarray, y: np.ndarray) -> None:
    report = Report("share of new values inside bands of 50 % and 90 %: rate 1 (first column), rate 0.01 (second)")
    cases: dict[str, Callable[[float], list[float]]] = {
        "LIDAR, five folds": lambda rate: held_out(rate, X, y),
        "simulated, LIDAR kind": lambda rate: simulated(rate, falling, 221),
        "simulated, motorcycle kind": lambda rate: simulated(rate, crashing, 133),
        "simulated, noisy line": lambda rate: simulated(rate, straight, 100),
    }
    for name, measured in cases.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            before, now = measured(1.0), measured(0.01)
        for level, old, new in zip(("50 %", "90 %"), before, now):
            report.row(f"{name}: {level}", old, new)
    report.close()


def main() -> None:
    X, y = load_lidar()
    coverage(X, y)
    for rate in (1.0, 0.01):
        report = Report(f"LIDAR: precisions ~ Gamma(1, {rate}), two chains of 1000 draws after 500, five runs")
        rows, seconds = [], []
        for number in range(5):
            started = perf_counter()
            model = InfiniteMixtureOfExperts(noise_prior=Gamma(1.0, rate), n_draws=1000, random_state=number).fit(X, y)
            seconds.append(perf_counter() - started)
            rows.append(measure(model, X, y))
        values = np.array(rows)
        for (what, known), column in zip(KNOWN.items(), values.T):
            report.row(what, known if rate == 1.0 else None, column.mean(), column.std(ddof=1))
        report.row("seconds", None, float(np.mean(seconds)))
        report.close()


if __name__ == "__main__":
    run_if_data(main)
