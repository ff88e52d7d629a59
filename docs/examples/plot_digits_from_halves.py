"""
The other half of a digit: mixtures of factor analysers
=======================================================

Images of handwritten digits, 8 by 8 pixels. Each way of writing a digit varies in a few directions only: slant,
width, the length of a stroke. A mixture of factor analysers has a mean and a few such directions for each component,
instead of a whole covariance matrix of 64 by 64. Given the upper half of a digit it says what the lower half may look
like; and it can be learned from images with holes.
"""

# %%
# Means and directions
# --------------------
# Ten components with four factors each, fitted to 1000 of scikit-learn's digits without their labels. One column for
# each component: its mean, and where two steps along its strongest factors lead, to one side and to the other.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from pluri.mixtures import FactorAnalyzerMixture

pixels, digits = load_digits(return_X_y=True)
pixels = pixels / 16.0
order = np.random.default_rng(0).permutation(len(pixels))
train, test = order[:1000], order[1000:]

# Pixels at the border are nearly constant: a floor keeps their noise away from zero.
settings = {"noise_floor": 1e-2, "tol": 1e-2, "random_state": 0}
model = FactorAnalyzerMixture(10, n_factors=4, **settings).fit(pixels[train])
rand = adjusted_rand_score(digits[test], model.predict(pixels[test]))
print(f"Rand index of components and digits, new images: {rand:.2f}")

figure, axes = plt.subplots(5, 10, figsize=(9.0, 4.7), layout="constrained")
by_size = np.argsort(-model.weights_)
for column, component in zip(axes.T, by_size):
    mean, factors = model.means_[component], model.loadings_[component].T
    images = [mean, mean - 2 * factors[0], mean + 2 * factors[0], mean - 2 * factors[1], mean + 2 * factors[1]]
    for ax, image in zip(column, images):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
for ax, name in zip(axes[:, 0], ("mean", "factor 1, $-2$", "factor 1, $+2$", "factor 2, $-2$", "factor 2, $+2$")):
    ax.set_ylabel(name, rotation=0, ha="right", va="center")

# %%
# Completing
# ----------
# The lower half of new images is made NaN. ``reconstruct`` gives the mean of all pixels given those that are there: it
# asks which components the upper half speaks for, and where along their factors it lies. Nothing has to be trained for
# this question; any set of pixels can be missing. Where the upper half leaves open what follows, the answer is a blend.

half = pixels[test].copy()
half[:, 32:] = np.nan
completed = model.reconstruct(half)

figure, axes = plt.subplots(3, 12, figsize=(9.0, 2.5), layout="constrained")
for column, row in zip(axes.T, range(12)):
    for ax, image in zip(column, (half[row], completed[row], pixels[test][row])):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[], facecolor="#F3E3C3")
for ax, name in zip(axes[:, 0], ("given", "completed", "true")):
    ax.set_ylabel(name, rotation=0, ha="right", va="center")

# %%
# Learning with holes
# -------------------
# The same from training images of which 40 % of the pixels are lost at random. A missing value is integrated out
# exactly; it is not filled in. Errors are root mean squares of the lower half of new images.


def error(answer):
    return np.sqrt(np.mean((answer - pixels[test])[:, 32:] ** 2))


print(f"the mean image: {error(np.broadcast_to(pixels[train].mean(axis=0), pixels[test].shape)):.3f}")
for k, q in ((10, 0), (1, 8)):
    fitted = FactorAnalyzerMixture(k, n_factors=q, **settings).fit(pixels[train])
    print(f"{k} components, {q} factors: {error(fitted.reconstruct(half)):.3f}")
print(f"10 components, 4 factors: {error(completed):.3f}")

holes = np.random.default_rng(1).random((1000, 64)) < 0.4
fitted = FactorAnalyzerMixture(10, n_factors=4, **settings).fit(np.where(holes, np.nan, pixels[train]))
print(f"the same, learned with 40 % of the pixels lost: {error(fitted.reconstruct(half)):.3f}")

# sphinx_gallery_thumbnail_number = 2
