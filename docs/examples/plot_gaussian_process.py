"""
How sure is a smooth curve? Gaussian processes
==============================================

A Gaussian process puts a prior on functions; data turn it into a posterior with error bars. How smooth the functions
are, and how noisy the data, is up to a few hyper-parameters. With twenty points these are not known well, and a curve
fitted at their most likely values looks surer than it should. Here they are sampled.
"""

# %%
# Functions before and after five points
# --------------------------------------
# Noise-free observations: every function drawn from the posterior passes through them, and the band (two standard
# deviations) opens in between.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF

from pluri.priors.hyperpriors import LogUniform, Uniform
from pluri.processes import GaussianProcessClassifier, GaussianProcessRegressor

BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
grid = np.linspace(-5, 5, 200)[:, None]


def band(ax, x, mean, std, color, label=None):
    ax.fill_between(x[:, 0], mean - 2 * std, mean + 2 * std, color=color, alpha=0.18, lw=0)
    ax.plot(x[:, 0], mean, color=color, lw=2, label=label)


def bare(ax, **labels):
    ax.spines[["top", "right"]].set_visible(False)
    ax.set(**labels)


points = np.array([[-4.0], [-3.0], [-1.0], [0.5], [2.0]])
exact = GaussianProcessRegressor(RBF(1.0), noise_variance=0.0, hyper_inference="fixed")
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
band(axes[0], grid, np.zeros(200), np.ones(200), BLUE)
axes[0].plot(grid, exact.sample_prior(grid, 3, random_state=4), lw=1, color="0.35")
exact.fit(points, np.sin(points[:, 0]))
band(axes[1], grid, *exact.predict(grid, return_std=True), BLUE)
axes[1].plot(grid, exact.sample_y(grid, 3, random_state=4), lw=1, color="0.35")
axes[1].plot(points, np.sin(points), "o", color="black")
bare(axes[0], title="prior", xlabel="x", ylabel="f(x)")
bare(axes[1], title="posterior", xlabel="x")

# %%
# Two ways to read the same seven points
# --------------------------------------
# A short length-scale with little noise makes the mean wiggle: it is worth 5.8 parameters. A long one with much noise
# is worth 1.5, and calls the wiggles noise.

seven = np.linspace(-6, 6, 7)[:, None]
values = np.array([-0.4, 0.9, -0.6, -1.1, 0.8, 1.2, -0.3])
wide = np.linspace(-7, 7, 200)[:, None]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, length, noise in zip(axes, (1.0, 10.0), (0.2, 0.8)):
    model = GaussianProcessRegressor(RBF(length), noise_variance=noise, hyper_inference="fixed").fit(seven, values)
    band(ax, wide, *model.predict(wide, return_std=True, include_noise=True), BLUE)
    ax.plot(seven, values, "o", color="black")
    title = f"length-scale {length:g}, noise {noise:g}: {model.effective_degrees_of_freedom_:.1f} degrees of freedom"
    bare(ax, xlabel="x")
    ax.set_title(title, fontsize=10)
axes[0].set_ylabel("y")

# %%
# Hyper-parameters with error bars
# --------------------------------
# Twenty points of a function with length-scale 0.3, signal variance 1 and noise variance 0.01.
# ``hyper_inference="nuts"`` runs four chains over the three hyper-parameters; the function itself is integrated out.
# The lines are the true values.

rng = np.random.default_rng(1)
X = np.sort(3 * rng.random(20))[:, None]
covariance = np.exp(-0.5 * (X - X.T) ** 2 / 0.3**2) + 0.01 * np.eye(20)
y = np.linalg.cholesky(covariance) @ rng.normal(size=20)
priors = {
    "length_scale": Uniform(0, 10),
    "signal_variance": LogUniform(np.exp(-10), np.exp(5)),
    "noise_variance": LogUniform(np.exp(-10), np.exp(5)),
}
sampled = GaussianProcessRegressor(hyper_inference="nuts", priors=priors, random_state=0).fit(X, y)
print(sampled.summary())

truth = {"length_scale": 0.3, "signal_variance": 1.0, "noise_variance": 0.01}
figure, axes = plt.subplots(2, 3, figsize=(9, 4.6), layout="constrained", height_ratios=[1, 1.2])
for (histogram, trace), (name, value) in zip(axes.T, truth.items()):
    draws = sampled.trace_[name]
    logs = np.log10(draws)
    histogram.hist(logs.ravel(), bins=60, color=BLUE, alpha=0.7)
    histogram.axvline(np.log10(value), color=ORANGE, lw=2)
    histogram.set_yticks([])
    bare(histogram, xlabel=f"log10 {name}")
    trace.plot(logs.T, lw=0.3, alpha=0.8)
    trace.axhline(np.log10(value), color=ORANGE, lw=2)
    bare(trace, xlabel="draw")

# %%
# What the point estimate hides
# -----------------------------
# The same data with the hyper-parameters at the maximum of the marginal likelihood, and averaged over their
# posterior. Where there are no data the two differ most.

best = GaussianProcessRegressor(hyper_inference="ml2", n_init=6, random_state=0).fit(X, y)
ahead = np.linspace(-0.4, 3.8, 250)[:, None]
figure, (ax, lower) = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained", height_ratios=[2, 1])
for model, color, label in ((sampled, BLUE, "averaged over the draws"), (best, ORANGE, "at the maximum")):
    mean, std = model.predict(ahead, return_std=True)
    band(ax, ahead, mean, std, color, label)
    lower.plot(ahead, std, color=color, lw=2)
ax.plot(X, y, "o", color="black", ms=4)
bare(ax, ylabel="f(x)")
bare(lower, xlabel="x", ylabel="standard deviation", ylim=(0, None))
ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)

# %%
# Classes instead of numbers
# --------------------------
# The same prior behind a sigmoid. Left: the probability of the second class under expectation propagation; away from
# the data it returns to one half. Right: how unsure the latent function is, with the data on top.

rng = np.random.default_rng(3)
angle = rng.uniform(0, np.pi, 60)
moons = np.stack([np.cos(angle), np.sin(angle)], axis=1)
moons[30:] = np.array([1.0, 0.4]) - moons[30:]
moons += 0.3 * rng.normal(size=(60, 2))
labels = np.repeat([0, 1], 30)
classifier = GaussianProcessClassifier(inference="ep").fit(moons, labels)
print(classifier.summary())

u, v = np.meshgrid(np.linspace(-2.5, 3.5, 90), np.linspace(-2, 2.5, 70))
field = np.stack([u.ravel(), v.ravel()], axis=1)
chance = classifier.predict_proba(field)[:, 1].reshape(u.shape)
spread = classifier.decision_function(field, return_std=True)[1].reshape(u.shape)
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.6), sharey=True, layout="constrained")
image = axes[0].contourf(u, v, chance, levels=np.linspace(0, 1, 21), cmap="RdBu_r")
axes[0].contour(u, v, chance, levels=[0.5], colors="black", linewidths=1)
figure.colorbar(image, ax=axes[0], ticks=[0, 0.5, 1], label="probability")
image = axes[1].contourf(u, v, spread, levels=15, cmap="viridis")
figure.colorbar(image, ax=axes[1], label="standard deviation")
for ax in axes:
    for label, color in ((0, BLUE), (1, ORANGE)):
        ax.scatter(*moons[labels == label].T, color=color, edgecolor="white", s=22, lw=0.6)
    ax.set(xlabel="first feature")
axes[0].set_ylabel("second feature")

# sphinx_gallery_thumbnail_number = 4
