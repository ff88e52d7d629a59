"""Held-out log-likelihood of flows with normal and with learned tails, beside a Gaussian and a kernel density.

Run as `python benchmarks/accuracy/flow_tails.py`; it takes two minutes. Mean over 2000 new rows, and the lowest one;
1000 rows of training, two seeds.
"""

import warnings

import numpy as np
from scipy import stats
from sklearn.neighbors import KernelDensity

from pluri.processes import FlowDensity


def student(rng, n):
    normal = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=n)
    return normal / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)


def banana(rng, n):
    x = rng.normal(size=n)
    return np.column_stack([x, x**2 + 0.3 * rng.normal(size=n)])


TABLES = {
    "normal": lambda rng, n: rng.normal(size=(n, 1)),
    "uniform": lambda rng, n: rng.random((n, 1)),
    "two normals": lambda rng, n: (rng.choice([-3, 3], size=n) + rng.normal(size=n))[:, None],
    "banana": banana,
    "log-normal": lambda rng, n: np.exp(rng.normal(size=(n, 1))),
    "Student's t, v = 3, two columns": student,
    "Student's t, v = 2": lambda rng, n: rng.standard_t(2, size=(n, 1)),
    "Cauchy": lambda rng, n: rng.standard_cauchy((n, 1)),
}


def by_kernels(train, test):
    """Scores of a kernel density whose width is the best of seven on a fifth of the rows."""
    cut = len(train) * 4 // 5
    widths = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2)
    best = max(widths, key=lambda h: KernelDensity(bandwidth=h).fit(train[:cut]).score(train[cut:]))
    return KernelDensity(bandwidth=best).fit(train).score_samples(test)


def main():
    warnings.simplefilter("ignore")
    for name, draw in TABLES.items():
        figures = []
        for seed in range(2):
            rng = np.random.default_rng(seed)
            train, test = draw(rng, 1000), draw(rng, 2000)
            settings = {"random_state": 0, "max_iter": 60, "n_iter_no_change": 8}
            scores = [FlowDensity(tails=t, **settings).fit(train).score_samples(test) for t in ("normal", "auto")]
            scores.append(stats.multivariate_normal(train.mean(axis=0), np.cov(train.T)).logpdf(test))
            scores.append(by_kernels(train, test))
            figures.append([(score.mean(), score.min()) for score in scores])
        pairs = zip(("flow, normal tails", "flow", "Gaussian", "kernels"), np.mean(figures, axis=0))
        print(f"{name:32}", ", ".join(f"{way} {mean:.2f} ({least:.0f})" for way, (mean, least) in pairs), flush=True)


if __name__ == "__main__":
    main()
