"""
Cleaning an image with its neighbours: the Ising model
======================================================

A black and white image in heavy noise. Pixel by pixel little can be said, but neighbours are usually equal: an Ising
prior says so, and the posterior of the image is then a matter of inference. Three ways of it, and what their answers
have in common.
"""

# %%
# An image and its noise
# ----------------------
# Levels are -1 and 1, the noise has a standard deviation of 1.5.

import time

import matplotlib.pyplot as plt
import numpy as np

from pluri.processes import IsingDenoiser

row, column = np.mgrid[:72, :120]
truth = -np.ones((72, 120))
truth[(row - 36) ** 2 + (column - 34) ** 2 < 24**2] = 1.0
truth[(row - 36) ** 2 + (column - 34) ** 2 < 11**2] = -1.0
truth[(np.abs(row - 36) < 24) & (np.abs(column - 92) < 5)] = 1.0
truth[(np.abs(row - 36) < 5) & (np.abs(column - 92) < 20)] = 1.0
noisy = truth + 1.5 * np.random.default_rng(0).normal(size=truth.shape)

# %%
# Mean field and sampling
# -----------------------
# Mean field gives each pixel a probability of its own and moves these to the best bound, on the two colours of a
# checkerboard in turn. Gibbs sampling draws whole images, and averages.

started = time.perf_counter()
mean_field = IsingDenoiser(coupling=0.5, sigma=1.5).fit(noisy)
between = time.perf_counter()
gibbs = IsingDenoiser(coupling=0.5, sigma=1.5, inference="gibbs", random_state=0).fit(noisy)
print(f"mean field: {between - started:.2f} s, Gibbs: {time.perf_counter() - between:.2f} s")


def wrong(labels):
    return f"{(labels != truth).mean():.1%} wrong"


pictures = {
    "truth": truth,
    f"noisy, sign {wrong(np.sign(noisy))}": np.clip(noisy, -3, 3),
    f"mean field, {wrong(mean_field.labels_)}": mean_field.mean_,
    f"Gibbs, {wrong(gibbs.labels_)}": gibbs.mean_,
}
figure, axes = plt.subplots(2, 2, figsize=(9, 5.8), layout="constrained")
for ax, (title, image) in zip(axes.flat, pictures.items()):
    ax.imshow(image, cmap="gray", vmin=-abs(image).max(), vmax=abs(image).max())
    ax.set_title(title)
    ax.set_axis_off()

# %%
# How sure may they be?
# ---------------------
# Grey in the lower pictures is doubt. On a strip of twelve rows the posterior can be had exactly, by sums over slice
# after slice, and so the error of the others. Sampling is right but for its noise. Mean field, a product of single
# pixels, is too sure on either side: the points make an S, and a warning says so where it is a strong one. Belief
# propagation, which knows that neighbours are correlated, comes close; exact sums over strips of eight rows between its
# messages come closer.

strip = noisy[30:42]
settings = {"coupling": 0.5, "sigma": 1.5, "random_state": 0}
exact = IsingDenoiser(inference="exact", **settings).fit(strip)
figure, axes = plt.subplots(1, 4, figsize=(10, 3.0), sharex=True, sharey=True, layout="constrained")
names = ("mean field", "belief propagation", "strips", "Gibbs")
for ax, inference, name, color in zip(
    axes, ("vb", "bethe", "strips", "gibbs"), names, ("#E69F00", "#009E73", "#CC79A7", "#0072B2"), strict=True
):
    other = IsingDenoiser(inference=inference, **settings).fit(strip)
    ax.plot([0, 1], [0, 1], color="0.6", ls=":")
    ax.plot(exact.proba_[..., 1].ravel(), other.proba_[..., 1].ravel(), ".", ms=4, color=color, alpha=0.5)
    ax.set(xlabel="exact probability of white", title=name)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("approximate")

# %%
# How much should neighbours agree?
# ---------------------------------
# Too weak a coupling leaves speckles. From 0.5 on it hardly matters here, as the shapes are large: the prior is a crude
# one, and what is left are mistakes along the edges.

couplings = [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0]
shares = [(IsingDenoiser(coupling=c, sigma=1.5).fit(noisy).labels_ != truth).mean() for c in couplings]
figure, ax = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
ax.plot(couplings, shares, color="#E69F00", marker="s")
ax.set(xlabel="coupling", ylabel="share of wrong pixels", ylim=(0, None), title="mean field")
ax.spines[["top", "right"]].set_visible(False)
