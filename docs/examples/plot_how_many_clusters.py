"""
How many clusters? Dirichlet process mixtures
=============================================

A mixture with a Dirichlet process prior does not choose a number of clusters: it samples partitions, each with its own
number, and answers with probabilities. That is more than one number, and it has to be read with care: the posterior of
the number of clusters counts tiny ones too, and depends on the prior more than one would like. What the draws agree on
is who belongs together.
"""

# %%
# Four clusters, two of them hard to tell apart
# ---------------------------------------------
# 150 points in the plane. The prior says how large clusters are (its default comes from the data); the concentration,
# which says how many to expect, is learned with the rest. Two chains of collapsed Gibbs sweeps, with split and merge
# moves.

import matplotlib.pyplot as plt
import numpy as np

from pluri.metrics import credible_ball
from pluri.mixtures import DirichletProcessMixture, DPMeans
from pluri.plotting import CoClusteringDisplay, ComponentCountDisplay, state_colors

rng = np.random.default_rng(4)
centres = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 3.2], [3.0, 4.9]])
truth = np.sort(rng.choice(4, size=150, p=[0.35, 0.3, 0.2, 0.15]))  # sorted only for the picture below
X = centres[truth] + np.array([0.8, 0.7, 0.6, 0.6])[truth, None] * rng.normal(size=(150, 2))

model = DirichletProcessMixture(random_state=0).fit(X)
print(model.summary())

# %%
# The posterior of the number
# ---------------------------
# All clusters count on the left, clusters with at least 5 % of the rows on the right: draws have a habit of putting
# single points aside. Report the second, or both.

draws = model.trace_.flat("labels")
large = [(np.bincount(labels) >= 0.05 * len(X)).sum() for labels in draws]
figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.2), sharey=True, layout="constrained")
ComponentCountDisplay.from_estimator(model, ax=axes[0], title="all clusters")
display = ComponentCountDisplay(large).plot(ax=axes[1], title="clusters of at least 5 % of the rows")
display.ax_.yaxis.label.set_visible(False)

# %%
# Who belongs together
# --------------------
# The share of the draws in which two rows are in one cluster does not depend on numbers of clusters at all. The frames
# are those of the point estimate, ``labels_``: the partition of smallest expected distance (variation of information)
# from the draws. In one frame the posterior hesitates: one cluster or two.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
CoClusteringDisplay.from_estimator(model, ax=axes[0], title="in one cluster, share of the draws")
for label, color in enumerate(state_colors(model.n_clusters_)):
    mine = model.labels_ == label
    axes[1].scatter(*X[mine].T, s=18, color=color, label=f"cluster {label}: {mine.sum()} rows")
axes[1].set(title="point estimate", xlabel="feature 0", ylabel="feature 1", ylim=(-2.5, 7.5))
axes[1].legend(frameon=False, loc="upper left", ncols=2, handletextpad=0.1)
axes[1].spines[["top", "right"]].set_visible(False)

# %%
# How sure is it?
# ---------------
# The ball around the point estimate that holds 95 % of the draws: on its border lie the partitions with the most and
# with the fewest clusters that are still credible.

ball = credible_ball(model.labels_, draws, mass=0.95)
print(f"radius {ball.radius:.2f} nats; clusters in the point estimate: {model.n_clusters_}")
print("coarsest credible partition:", np.bincount(ball.coarsest))
print("finest credible partition:  ", np.bincount(ball.finest))

# %%
# The answer depends on the question
# ----------------------------------
# ``scale`` of the prior says how wide clusters are. Smaller clusters, more of them; the data have the last word only if
# clusters are well apart. DP-means, the limit of vanishing variance, shows it most plainly: its one parameter is the
# price of a cluster. Numbers of clusters:

spread = np.diag(X.var(axis=0))
for share in (0.05, 0.5):  # the default, above, is 20 %
    other = DirichletProcessMixture(component_prior={"scale": share * spread}, n_warmup=500, random_state=0).fit(X)
    means = other.n_clusters_trace_.mean()
    print(f"prior variance {share:.0%} of that of the data: {means:.1f} on average, estimate {other.n_clusters_}")
for penalty in (2.0, 5.0, 15.0, 40.0):
    print(f"DP-means, price {penalty:.0f}: {DPMeans(penalty, random_state=0).fit(X).n_clusters_}")

# sphinx_gallery_thumbnail_number = 2
