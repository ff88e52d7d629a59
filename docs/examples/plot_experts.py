"""
Noise that changes with the input: mixtures of experts
======================================================

A curve that bends twice, hardly any noise on the left and a lot on the right. Most regressions have one noise level for
all inputs; their bands are too wide on one side and too narrow on the other. A mixture of experts gives each region its
own straight line and its own noise, and learns where the regions are and how many of them there are.
"""

# %%
# Three pieces
# ------------
# The data are made here, so that the true mean and spread are known.

import matplotlib.pyplot as plt
import numpy as np

from pluri.mixtures import InfiniteMixtureOfExperts
from pluri.plotting import state_colors
from pluri.processes import GaussianProcessRegressor


def mean_of(x):
    return np.select([x < 4, x < 7], [0.2 * x, 0.8 + 1.2 * (x - 4)], 4.4 - 0.5 * (x - 7))


def spread_of(x):
    return np.select([x < 4, x < 7], [0.1, 0.25], 0.9)


rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, size=200))
y = mean_of(x) + spread_of(x) * rng.normal(size=200)

# %%
# Two regressions, two bands
# --------------------------
# Gibbs sampling of at most 20 experts. Their noise has a gamma prior: with ``noise_prior=Gamma(1, 1)`` no expert would
# believe in very little noise; the default lets it.

experts = InfiniteMixtureOfExperts(n_warmup=700, random_state=0).fit(x[:, None], y)
process = GaussianProcessRegressor(random_state=0).fit(x[:, None], y)
print(experts.summary())

grid = np.linspace(0, 10, 201)
expert_mean, expert_band = experts.predict(grid[:, None], return_interval=0.9)
process_mean, process_std = process.predict(grid[:, None], return_std=True, include_noise=True)
process_band = process_mean[:, None] + 1.645 * process_std[:, None] * [-1, 1]

figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), sharey=True, layout="constrained")
for ax, name, mean, band in (
    (axes[0], "Gaussian process, one noise level", process_mean, process_band),
    (axes[1], "mixture of experts", expert_mean, expert_band),
):
    ax.fill_between(grid, *band.T, color="#0072B2", alpha=0.2, lw=0, label="90 % of y")
    ax.plot(x, y, ".", ms=4, color="0.35")
    ax.plot(grid, mean, color="#0072B2", lw=2, label="mean")
    ax.plot(grid, mean_of(grid), color="#D55E00", lw=1, ls="--", label="true mean")
    ax.set(xlabel="x", title=name)
axes[0].set(ylabel="y")
axes[0].legend(frameon=False, loc="upper left")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Where the bands are right
# -------------------------
# Share of new observations inside the band, region by region. One noise level for all can only be right on average.

new = np.sort(rng.uniform(0, 10, size=1000))
values = mean_of(new) + spread_of(new) * rng.normal(size=1000)
edges = ((0, 4), (4, 7), (7, 10))
mean, std = process.predict(new[:, None], return_std=True, include_noise=True)
bands = {
    "Gaussian process": mean[:, None] + 1.645 * std[:, None] * [-1, 1],
    "experts": experts.predict(new[:, None], return_interval=0.9)[1],
}
for name, band in bands.items():
    inside = (values >= band[:, 0]) & (values <= band[:, 1])
    shares = [f"{inside[(new >= low) & (new < high)].mean():.0%}" for low, high in edges]
    print(f"{name:>16}: {', '.join(shares)}; in all {inside.mean():.0%}")

# %%
# Who speaks where, and what is said
# ----------------------------------
# Weights of the experts by input, and the whole density of y at four inputs. Between two regions the density is a
# mixture: the model is not sure which line holds.

weights = experts.weights(grid[:, None])
active = np.flatnonzero(weights.max(axis=0) > 0.05)
figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
for number, color in zip(active, state_colors(len(active))):
    axes[0].plot(grid, weights[:, number], color=color, lw=2)
axes[0].set(xlabel="x", ylabel="weight", title="experts")
levels = np.linspace(-1, 7, 400)
places = np.array([2.0, 6.0, 7.6, 9.0])
densities = experts.predict_density(places[:, None], levels)
for place, density, color in zip(places, densities, state_colors(4)):
    axes[1].plot(levels, density, color=color, lw=2, label=f"x = {place:g}")
axes[1].set(xlabel="y", ylabel="density", title="density of y")
axes[1].legend(frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)

# sphinx_gallery_thumbnail_number = 1
