"""
How many states does a series have? Infinite hidden Markov models
=================================================================

A series switches between three ways of moving: two autoregressions with the same mean, and a noisy level. Neither their
number nor their parameters are given to `~pluri.sequences.InfiniteHMM`, which samples all of it, with a stretch of the
series missing.
"""

# %%
# A series of three regimes
# -------------------------

import matplotlib.pyplot as plt
import numpy as np

from pluri.metrics import align_states
from pluri.plotting import CoClusteringDisplay, SampledStatesDisplay, state_colors
from pluri.sequences import InfiniteHMM

rng = np.random.default_rng(3)
regimes = np.repeat([0, 1, 2, 0, 2, 1], [60, 50, 70, 60, 40, 70])
slope, level, noise = np.array([0.97, -0.85, 0.0]), np.array([0.0, 0.0, 6.0]), np.array([0.3, 0.5, 1.0])
X = np.zeros((len(regimes), 1))
for t in range(1, len(regimes)):
    k = regimes[t]
    X[t] = level[k] + slope[k] * X[t - 1] + noise[k] * rng.normal()
X[210:225] = np.nan

# %%
# Sample the states
# -----------------
# Each row is regressed on the row before it (``order=1``). Stickiness is learned: states that last are what a series
# like this has.

model = InfiniteHMM("autoregressive", order=1, n_draws=200, n_warmup=200, n_chains=4, random_state=0).fit(X)
print(model.summary())

# %%
# The consensus segmentation beside the truth; the missing stretch has the states that its neighbours suggest.

figure, axes = plt.subplots(3, 1, figsize=(8.0, 4.0), height_ratios=[4, 1, 1], sharex=True, layout="constrained")
axes[0].plot(X[:, 0], color="0.4", linewidth=0.9)
axes[0].set_ylabel("series")
colors = state_colors(max(model.n_states_, 3))
found = align_states(regimes, model.labels_).mapping[model.labels_]  # the names that fit the true ones best
for ax, labels, name in ((axes[1], found, "found"), (axes[2], regimes, "true")):
    for k in range(labels.max() + 1):
        ax.fill_between(np.arange(len(X)), 0, 1, where=labels == k, color=colors[k], linewidth=0, step="mid")
    ax.set_ylabel(name, rotation=0, ha="right", va="center")
    ax.set_yticks([])
axes[2].set_xlabel("step")

# %%
# How sure it is: the share of draws in which two steps are in one state, and the chains on one page.

CoClusteringDisplay.from_estimator(model, title="share of draws in which two steps are in one state")
SampledStatesDisplay.from_estimator(model)
plt.show()
