"""
A coreset for a mixture: determinantal point processes
======================================================

Fitting a model to a few dozen rows instead of all is tempting, and with rows drawn uniformly it is a gamble: small
groups get one row, or none. A determinantal point process draws rows that are spread out, and weights turn them back
into a fair picture of the whole: a row that was likely to be drawn counts for little. Here are 1200 points in four
groups, the smallest of which has three points in a hundred.
"""

# %%
# Forty of 1200
# -------------
# :func:`~pluri.processes.dpp.coreset` returns rows and weights. Dots are as large as their weights: in the thick of a
# group one row stands for many, at its rim for few. Beside it are forty rows drawn uniformly, 30 for each to stand
# for; some nearly coincide, and elsewhere there is none for a long way.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp

from pluri.plotting import state_colors
from pluri.processes.dpp import DPP, coreset

rng = np.random.default_rng(3)
centres = np.array([[0.0, 0.0], [4.0, 1.0], [-3.0, 3.5], [2.0, -4.5]])
groups = rng.choice(4, size=1200, p=[0.55, 0.30, 0.12, 0.03])
X = centres[groups] + np.array([1.2, 0.8, 0.6, 0.4])[groups, None] * rng.normal(size=(1200, 2))

few = coreset(X, 40, normalize=True, random_state=0)
uniform = rng.choice(1200, size=40, replace=False)

colors = np.array(state_colors(4))
figure, axes = plt.subplots(1, 2, figsize=(9, 4.7), sharex=True, sharey=True, layout="constrained")
for ax, name, rows, weights in (
    (axes[0], "coreset", few.indices, few.weights),
    (axes[1], "uniform", uniform, np.full(40, 30.0)),
):
    ax.scatter(*X.T, s=3, color="0.8", linewidths=0)
    ax.scatter(*X[rows].T, s=2.5 * weights, color=colors[groups[rows]], alpha=0.85, linewidths=0)
    ax.set(title=name, xticks=[], yticks=[])
    ax.set_aspect("equal")
    ax.spines[:].set_color("0.85")

# %%
# A mixture of weighted rows
# --------------------------
# EM for a Gaussian mixture needs one change: responsibilities are multiplied by the weights. All fits start from the
# same place, near the truth, so that they differ by their rows alone, and are judged by the mean log-likelihood of
# *all* rows.


def log_joint(X, mixture):
    shares, means, variances = mixture
    squares = ((X[:, None] - means) ** 2 / variances).sum(axis=2)
    return np.log(shares) - 0.5 * squares - 0.5 * np.log(2 * np.pi * variances).sum(axis=1)


def fit_mixture(X, weights, n_iter=100):
    mixture = np.full(4, 0.25), centres + 0.5, np.ones((4, 2))
    for _ in range(n_iter):
        logs = log_joint(X, mixture)
        parts = weights[:, None] * np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        counts = parts.sum(axis=0) + 1e-9
        means = parts.T @ X / counts[:, None]
        variances = np.einsum("ik,ikd->kd", parts, (X[:, None] - means) ** 2) / counts[:, None] + 0.05
        mixture = counts / counts.sum(), means, variances
    return mixture


def score(mixture):
    return logsumexp(log_joint(X, mixture), axis=1).mean()


best = score(fit_mixture(X, np.ones(1200)))
print(f"all 1200 rows: {best:.3f}; the coreset above: {score(fit_mixture(X[few.indices], few.weights)):.3f}")

# %%
# The spread over repeats
# -----------------------
# One draw proves nothing. For many it pays to do by hand what ``coreset`` does: one process, decomposed once, serves
# all draws of all sizes, and the weights are the inverse inclusion probabilities. "Greedy" is ``method="map"``: always
# the same rows, each with the number of rows that resemble it most as its weight. On this problem it is the best of
# all; but its error is a bias, which no repetition reveals.

process = DPP.from_kernel(X, "rbf", length_scale=0.7)
sizes, n_repeats = (30, 60, 120), 50
losses = {"uniform": [], "coreset": []}
greedy = []


def loss(rows, weights):
    return best - score(fit_mixture(X[rows], weights))


for size in sizes:
    law = process.fixed_size(size)
    weights = 1 / law.inclusion_probabilities()
    diverse = law.sample(n_repeats, random_state=1)
    uniform = [rng.choice(1200, size=size, replace=False) for _ in range(n_repeats)]
    losses["coreset"].append([loss(rows, weights[rows]) for rows in diverse])
    losses["uniform"].append([loss(rows, np.ones(size)) for rows in uniform])
    chosen = coreset(X, size, method="map")
    greedy.append(loss(chosen.indices, chosen.weights))
    missed = [np.mean([(groups[rows] == 3).sum() < 2 for rows in drawn]) for drawn in (uniform, diverse)]
    print(f"{size} rows: fewer than two of the smallest group in {missed[0]:.0%} (uniform), {missed[1]:.0%} (coreset)")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for place, (name, color) in enumerate((("uniform", "#E69F00"), ("coreset", "#0072B2"))):
    for column, values in enumerate(losses[name]):
        middle = column + 0.3 * place - 0.15
        spread = middle + rng.uniform(-0.07, 0.07, size=n_repeats)
        ax.plot(spread, values, "o", ms=4, mew=0, alpha=0.45, color=color, label=name if column == 0 else None)
        ax.plot([middle - 0.1, middle + 0.1], [np.median(values)] * 2, color=color, lw=2.5)
ax.plot(np.arange(3), greedy, "D", ms=6, color="#009E73", label="greedy")
ax.set_yscale("log")
ax.set_xticks(range(3), [f"{size} rows" for size in sizes])
ax.set(xlim=(-0.5, 2.5), ylabel="log-likelihood lost, per row", title=f"{n_repeats} draws each, and their medians")
ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower left")

# %%
# What it does not do
# -------------------
# The coreset is better here because the likelihood is smooth compared to the spacing of the rows, and because a small
# group matters. A plain *average* of something that is nearly constant is a different matter: for the function 1 a
# uniform sample makes no error at all, while the weights of a draw add up to 1200 only on average. That is what
# ``normalize=True`` is for. And decomposing the kernel of all rows costs more than fitting a small mixture to all of
# them: a coreset pays when it is used many times, or when each evaluation is expensive.

law = process.fixed_size(60)
totals = [(1 / law.inclusion_probabilities()[rows]).sum() for rows in law.sample(50, random_state=0)]
print(f"sum of the weights of 60 rows: {np.mean(totals):.0f} +- {np.std(totals):.0f}")

# sphinx_gallery_thumbnail_number = 2
