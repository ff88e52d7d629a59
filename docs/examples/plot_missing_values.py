"""
Decoding through gaps: Gaussian hidden Markov models
====================================================

Two sensors watch a machine that is idle, working or overheating. Now and then one of them drops out, and for a while
both do. A missing value is NaN; it is integrated out exactly, in fitting and in decoding: nothing is filled in.
"""

# %%
# A record with holes
# -------------------
# The model that made the data is set by hand. A tenth of the single values is lost, and all of steps 60 to 74.

import matplotlib.pyplot as plt
import numpy as np

from pluri.metrics import align_states, one_to_one_accuracy
from pluri.plotting import DecodedSequenceDisplay
from pluri.sequences import GaussianHMM

truth = GaussianHMM(3, covariance_type="full")
truth.startprob_ = np.array([1.0, 0.0, 0.0])
truth.transmat_ = np.array([[0.95, 0.05, 0.0], [0.04, 0.92, 0.04], [0.10, 0.0, 0.90]])
truth.means_ = np.array([[0.0, 0.0], [3.0, 1.0], [4.0, 4.0]])
truth.covars_ = np.array([[[1.0, 0.6], [0.6, 1.0]], [[1.0, -0.7], [-0.7, 1.0]], [[0.6, 0.0], [0.0, 0.6]]])
complete, states = truth.sample(600, random_state=5)

rng = np.random.default_rng(0)
X = np.where(rng.random(complete.shape) < 0.1, np.nan, complete)
X[60:75] = np.nan
print(f"{np.isnan(X).mean():.0%} of the values are missing, {np.isnan(X).any(axis=1).mean():.0%} of the rows touched")

# %%
# Fit and decode
# --------------
# The first 150 steps: sensor values, posterior probabilities of the states, the decoded states and the true ones. In
# the long gap only the transition matrix speaks, and the posterior says how sure it is. Ten starts, as the best of
# three splits the idle state in two and merges the others.

model = GaussianHMM(3, covariance_type="full", n_init=10, n_iter=300, random_state=0).fit(X)
names = ["idle", "working", "hot"]
alignment = align_states(states, model.predict(X))
posterior = np.empty((len(X), 3))
posterior[:, alignment.mapping] = model.predict_proba(X)
display = DecodedSequenceDisplay.from_labels(
    alignment.relabel(model.predict(X))[:150],
    X[:150],
    y_true=states[:150],
    posterior=posterior[:150],
    state_names=names,
    title="two sensors, 15 steps without either",
)
display.panels_["observations"].axvspan(59.5, 74.5, color="0.93", zorder=0)

# %%
# What the other ways cost
# ------------------------
# Filling the holes with the feature's mean tells the model something that is not true. The accuracy is counted over
# all rows, the touched ones included.


def filled_with_means(values):
    return np.where(np.isnan(values), np.nanmean(values, axis=0), values)


def fitted_accuracy(values):
    fitted = GaussianHMM(3, covariance_type="full", n_init=10, n_iter=300, random_state=0).fit(values)
    return one_to_one_accuracy(states, fitted.predict(values))


shares = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
curves = {"NaN, integrated out": [], "filled with the mean": []}
for share in shares:
    holes = np.random.default_rng(1).random(complete.shape) < share
    punched = np.where(holes, np.nan, complete)
    curves["NaN, integrated out"].append(fitted_accuracy(punched))
    curves["filled with the mean"].append(fitted_accuracy(filled_with_means(punched)))

figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
for (name, values), color, marker in zip(curves.items(), ("#0072B2", "#E69F00"), "os"):
    ax.plot(shares, values, color=color, marker=marker, label=name)
ax.set(xlabel="share of values missing", ylabel="accuracy", title="600 steps, two sensors, three states")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
