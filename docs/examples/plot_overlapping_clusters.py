"""
Clusters that overlap: Gaussian mixtures
========================================

EM for a Gaussian mixture has two weaknesses where clusters overlap. It is slow: each step moves a little, and a loose
tolerance stops it half-way. And with more components than clusters it uses them all: several share one cluster. A
second-order solver helps with the first, a prior that keeps the means apart with the second. Neither is for free.
"""

# %%
# Slow, and less slow
# -------------------
# Five components in five dimensions, whose means are closer to each other than the components are wide. All fits start
# from the true means with the covariance of all data, so that they climb the same hill, and count passes over the data.
# ``acceleration="squarem"`` extrapolates the steps of EM; ``inference="riemannian"`` lets EM lead for a while and then
# goes on with L-BFGS on the manifold of positive definite matrices.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from pluri.datasets import make_separated_gaussians
from pluri.mixtures import GaussianMixture
from pluri.plotting import EllipsesDisplay

data = make_separated_gaussians(3000, 5, 5, separation=0.5, eccentricity=10.0, random_state=4)
start = {
    "weights_init": np.full(5, 0.2),
    "means_init": data.means,
    "precisions_init": np.tile(np.linalg.inv(np.cov(data.X.T)), (5, 1, 1)),
}
ways = {
    "EM": {},
    "EM with SQUAREM": {"acceleration": "squarem"},
    "Riemannian L-BFGS": {"inference": "riemannian"},
}
fits = {
    name: GaussianMixture(5, tol=1e-7, max_iter=2000, **start, **options).fit(data.X) for name, options in ways.items()
}
for name, model in fits.items():
    passes = getattr(model, "n_evaluations_", model.n_iter_)
    print(f"{name}: {passes} passes, mean log-likelihood {model.score(data.X):.5f}")

# %%
# What is left to the best value that any of them found, after each pass. The default tolerance, a gain of 0.001 for
# each row, ends EM long before that (cross). How much is gained differs from data set to data set; where clusters are
# well apart (``separation=2``) half a dozen passes of EM are enough, and nothing is to be gained.

best = max(max(model.lower_bounds_) for model in fits.values())
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, model), color in zip(fits.items(), ("#E69F00", "#0072B2", "#009E73")):
    gap = best - np.array(model.lower_bounds_)
    ax.plot(np.arange(1, len(gap) + 1), np.maximum(gap, 1e-9), color=color, lw=2, label=name)
ax.set_yscale("log")
ax.set(xlabel="passes over the data", ylabel="mean log-likelihood, gap to the best", ylim=(1e-8, 1))
early = GaussianMixture(5, **start).fit(data.X)
ax.plot(early.n_iter_, best - early.lower_bounds_[-1], "X", ms=9, color="#E69F00", mec="w", label="EM, tol=1e-3")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)

# %%
# Too many components
# -------------------
# Three clusters in the plane, and six components to fit them with. EM uses all six. With ``diversity=`` the objective
# has a further term, a weight times the log determinant of the similarities of the means: components that are not
# needed move out to the edge and keep hardly any rows (those of weight below 0.02 are not drawn).

rng = np.random.default_rng(0)
means = np.array([[0.0, 0.0], [2.6, 0.0], [1.3, 2.2]])
covariances = np.array([[[1.0, 0.6], [0.6, 1.0]], [[1.0, -0.6], [-0.6, 1.0]], [[1.2, 0.0], [0.0, 0.5]]])
clusters = rng.choice(3, size=600, p=[0.4, 0.3, 0.3])
X = means[clusters] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariances)[clusters], rng.normal(size=(600, 2)))

settings = {"tol": 1e-5, "max_iter": 1000, "random_state": 1}
plain = GaussianMixture(6, **settings).fit(X)
apart = GaussianMixture(6, diversity=100.0, **settings).fit(X)
right = GaussianMixture(3, **settings).fit(X)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.9), sharex=True, sharey=True, layout="constrained")
for ax, model, name in zip(axes, (plain, apart, right), ("six components", "six, diversity=100", "three components")):
    used = int((model.weights_ >= 0.02).sum())
    rand = adjusted_rand_score(clusters, model.predict(X))
    EllipsesDisplay.from_estimator(
        model, X, ax=ax, n_std=(1.5,), least_weight=0.02, title=f"{name}\n{used} in use, Rand index {rand:.2f}"
    )
    ax.set(xlim=(-3.5, 6.0), ylim=(-3.5, 5.0))
for ax in axes[1:]:
    ax.set(ylabel="")

# %%
# What it costs
# -------------
# The strength is absolute, like a count of rows. If the number of components is right to begin with, the prior has
# nothing to give: it pushes the means outwards, and labels get worse.


def truth(n, seed):
    """New rows of the same mixture."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, size=n, p=[0.4, 0.3, 0.3])
    noise = np.einsum("nij,nj->ni", np.linalg.cholesky(covariances)[labels], rng.normal(size=(n, 2)))
    return means[labels] + noise


new = truth(5000, 1)
print("components  diversity  in use  Rand index  log-likelihood of new rows")
for k in (3, 6):
    for strength in (0.0, 10.0, 100.0):
        model = GaussianMixture(k, diversity=strength, **settings).fit(X)
        used = int((model.weights_ >= 0.02).sum())
        rand = adjusted_rand_score(clusters, model.predict(X))
        print(f"{k:10d}  {strength:9.0f}  {used:6d}  {rand:10.2f}  {model.score(new):26.3f}")

# %%
# Held-out likelihood tells three components from six better than the prior does, and ``n_init`` costs less. The prior
# is for the case where few distinct components are wanted for their own sake, such as a summary that people read.

# sphinx_gallery_thumbnail_number = 2
