"""Infinite mixture of experts on LIDAR: 221 measurements, at most 20 experts, probit sticks.

The published figure shows three regressions with noticeable weight and a 95 % band that follows the noise. Figures in
the first column were measured with an independent Gibbs sampler (two chains of 1500 sweeps, 500 thrown away) and the
same priors. A smaller rate of the prior of the precisions narrows the band where there is little noise.

    PLURI_DATA=folder python benchmarks/reproduce/lidar_experts.py
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from published import Report, run_if_data

from pluri.datasets.lidar import load_lidar
from pluri.mixtures.experts import InfiniteMixtureOfExperts

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


def main() -> None:
    X, y = load_lidar()
    for rate in (1.0, 0.1):
        report = Report(f"LIDAR: precisions ~ Gamma(1, {rate}), two chains of 1000 draws after 500, five runs")
        rows, seconds = [], []
        for number in range(5):
            started = perf_counter()
            model = InfiniteMixtureOfExperts(noise_prior=(1.0, rate), n_draws=1000, random_state=number).fit(X, y)
            seconds.append(perf_counter() - started)
            rows.append(measure(model, X, y))
        values = np.array(rows)
        for (what, known), column in zip(KNOWN.items(), values.T):
            report.row(what, known if rate == 1.0 else None, column.mean(), column.std(ddof=1))
        report.row("seconds", None, float(np.mean(seconds)))
        report.close()


if __name__ == "__main__":
    run_if_data(main)
