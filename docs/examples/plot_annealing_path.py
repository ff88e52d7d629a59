"""
Two modes and the way between them: annealed sampling
=====================================================

A posterior with two well separated modes, of unequal width and weight, in two dimensions. Chains that start in one mode
stay there and look fine. Annealed importance sampling walks from a wide prior to the target through a path of
distributions on which the modes are still connected; its weights say how much mass each mode has, and give the
normalising constant on top.
"""

# %%
# The target
# ----------
# A mixture of two Gaussians, times :math:`e^{5}`: the log constant to be found is 5.

import matplotlib.pyplot as plt
import numpy as np

from pluri.inference import ais, mcmc
from pluri.inference.variational import MixtureDensity
from pluri.plotting import AnnealingPathDisplay

mixture = MixtureDensity([0.3, 0.7], [[-3.0, -2.0], [3.0, 2.5]], [0.4 * np.eye(2), [[0.5, 0.3], [0.3, 0.5]]])


def log_target(x):
    """Rows of x to log densities."""
    return 5.0 + mixture(x)


def log_prior(x):
    return -0.5 * (x**2).sum(axis=1) / 16 - np.log(2 * np.pi * 16)


def sample_prior(rng, n):
    return 4 * rng.standard_normal((n, 2))


# %%
# What a chain says
# -----------------
# Four chains of NUTS, all started at the left mode, agree with each other, and no diagnostic complains.

kernel = mcmc.NUTS(mixture.value_and_gradient, vectorized=True)
trace = mcmc.sample(kernel, np.array([-3.0, -2.0]), n_draws=300, n_warmup=300, random_state=0)
right = (trace.flat("x")[:, 0] > 0).mean()
print(f"share of the right mode: {right:.2f} (should be 0.70); problems found: {trace.diagnose() or 'none'}")

# %%
# The path
# --------
# Log weights of 400 runs against the inverse temperature. They spread as the target takes shape, and the mean weight
# (orange) ends at the truth. Below, how many of the runs still count.

sampler = ais.AnnealedImportanceSampler(
    log_target, log_prior, sample_prior, schedule="geometric", n_temperatures=150, n_runs=400, random_state=0
)
samples = sampler.run()
print(samples.summary())
AnnealingPathDisplay.from_samples(samples, log_z=5.0)

# %%
# Both modes
# ----------
# Points by weight, over the contours of the target.

share = samples.expect(lambda x: (x[:, 0] > 0).astype(float))
print(f"share of the right mode: {share.value:.2f}, 99 % interval {share.low:.2f} to {share.high:.2f}")

u, v = np.meshgrid(np.linspace(-6, 6, 120), np.linspace(-5, 5.5, 105))
height = np.exp(log_target(np.stack([u.ravel(), v.ravel()], axis=1)).reshape(u.shape))
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharex=True, sharey=True, layout="constrained")
for ax in axes:
    ax.contour(u, v, height, levels=8, colors="0.75", linewidths=0.8)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].plot(*trace.flat("x").T, ".", ms=3, color="#E69F00", alpha=0.4)
axes[1].scatter(*samples.x.T, s=400 * 12 * samples.weights, color="#0072B2", alpha=0.4, lw=0)
axes[0].set_title("four chains from the left mode")
axes[1].set_title("annealed, area by weight")

# %%
# Haste
# -----
# The same with fewer temperatures, and with more. The estimate of the constant is unbiased with any number of them;
# what haste costs is its spread.

steps = [3, 10, 30, 100, 300]
runs = []
for n_temperatures in steps:
    settings = {"schedule": "geometric", "n_temperatures": n_temperatures, "n_runs": 200, "keep_paths": False}
    runs.append(
        ais.AnnealedImportanceSampler(log_target, log_prior, sample_prior, random_state=1, warn=False, **settings).run()
    )
figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
ax.errorbar(steps, [run.log_z for run in runs], [2 * run.log_z_se for run in runs], fmt="o", color="#0072B2", capsize=3)
ax.axhline(5.0, color="black", ls="--", lw=1)
ax.set(xscale="log", xlabel="temperatures", ylabel="log constant", title="200 runs each, two standard errors")
ax.set_xticks(steps, steps)
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)

# sphinx_gallery_thumbnail_number = 2
