"""Which Gaussian approximations are called poor: fits warned of, with Pareto k, effective share and divergence.

Run as `python benchmarks/accuracy/black_box_verdicts.py`; it takes five minutes.
"""

import warnings

import numpy as np
from scipy.special import expit

from pluri.inference.variational import ApproximationWarning, fit_black_box
from pluri.inference.variational.black_box_result import is_poor

N_SEEDS = 12


def log_gamma(shape):
    """Logarithms of gamma variables: skewed, with a left tail like exp(shape z)."""
    return lambda z: ((shape * z - shape * np.exp(z)).sum(axis=1), shape - shape * np.exp(z))


def funnel(z):
    v, x = z[:, 0], z[:, 1:]
    squares, spread = (x * x).sum(axis=1), np.exp(-v)
    slope = -v / 9 + 0.5 * spread * squares - 0.5 * x.shape[1]
    return -v * v / 18 - 0.5 * spread * squares - 0.5 * x.shape[1] * v, np.column_stack([slope, -spread[:, None] * x])


def banana(z):
    gap = z[:, 1] - z[:, 0] ** 2
    return -0.5 * z[:, 0] ** 2 - 2 * gap**2, np.column_stack([-z[:, 0] + 8 * z[:, 0] * gap, -4 * gap])


def correlated(r):
    precision = np.linalg.inv([[1.0, r], [r, 1.0]])
    return lambda z: (-0.5 * ((z @ precision) * z).sum(axis=1), -z @ precision)


def logistic(n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, n_features))
    y = rng.random(100) < expit(X[:, :4].sum(axis=1))

    def density(w):
        score = w @ X.T
        value = (y * score - np.logaddexp(0, score)).sum(axis=1) - (w * w).sum(axis=1) / 8
        return value, (y - expit(score)) @ X - w / 4

    return density


CASES = [
    ("Gaussian, r = 0.9", correlated(0.9), 2, "full_rank"),
    ("log gamma, shape 20", log_gamma(20.0), 1, "full_rank"),
    ("log gamma, shape 20", log_gamma(20.0), 3, "full_rank"),
    ("logistic regression", logistic(4), 4, "full_rank"),
    ("log gamma, shape 3", log_gamma(3.0), 1, "full_rank"),
    ("Gaussian, r = 0.5", correlated(0.5), 2, "mean_field"),
    ("Gaussian, r = 0.7", correlated(0.7), 2, "mean_field"),
    ("Gaussian, r = 0.9", correlated(0.9), 2, "mean_field"),
    ("banana", banana, 2, "full_rank"),
    ("funnel", funnel, 2, "full_rank"),
    ("funnel", funnel, 3, "full_rank"),
    ("funnel", funnel, 5, "full_rank"),
]


def main():
    warnings.simplefilter("ignore", ApproximationWarning)
    print(f"{'density':22} dim {'family':10} warned  k above 0.7  Pareto k     effective    divergence")
    for name, density, dim, family in CASES:
        fits = [fit_black_box(density, dim, family, random_state=seed) for seed in range(N_SEEDS)]
        k = np.array([fit.pareto_k for fit in fits])
        share = np.array([fit.evidence.effective_sample_size / fit.evidence.n_samples for fit in fits])
        divergence = np.array([fit.divergence for fit in fits])
        warned = np.mean([is_poor(fit.evidence) for fit in fits])
        ranges = "  ".join(f"{low:5.2f}-{high:5.2f}" for low, high in ((v.min(), v.max()) for v in (k, share)))
        print(f"{name:22} {dim:3} {family:10} {warned:6.0%} {(k > 0.7).mean():12.0%}  {ranges}  "
              f"{divergence.min():.3f}-{divergence.max():.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
