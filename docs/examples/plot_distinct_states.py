"""
States that stay distinct: the diversity prior, and what it is worth
====================================================================

Five Gaussian states, 300 sequences of six steps: the toy problem of the diversified hidden Markov model
(`~pluri.datasets.make_toy_hmm`). A plain HMM and one with a diversity prior are fitted from the same poor starting
values, on six data sets. The prior does what it says, it keeps the rows of the transition matrix apart. Whether that
labels the data better is another question, and the answer here is: hardly.
"""

# %%
# The same poor start for both
# ----------------------------
# Means drawn from N(0, 1), although the true ones are 1 to 5, and variances from a gamma distribution. This is the
# start of the published experiment; it is bad on purpose.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from pluri.datasets import make_toy_hmm
from pluri.metrics import align_states, one_to_one_accuracy
from pluri.plotting import DiversitySweepDisplay, TransitionDisplay
from pluri.sequences import GaussianHMM


def fit_from_poor_start(toy, diversity, seed):
    rng = np.random.default_rng(seed)
    model = GaussianHMM(5, diversity=diversity, n_iter=200, init_params="")
    model.startprob_ = rng.dirichlet(np.full(5, 3.0))
    model.transmat_ = rng.dirichlet(np.full(5, 3.0), size=5)
    model.means_ = rng.normal(size=(5, 1))
    model.covars_ = rng.gamma(1.0, size=(5, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such a start may lose a state, or need more iterations
        return model.fit(toy.X, lengths=toy.lengths)


toys = [make_toy_hmm(random_state=seed) for seed in range(6)]
fits = {
    strength: [fit_from_poor_start(toy, strength, seed) for seed, toy in enumerate(toys)]
    for strength in (0.0, 1.0, 10.0, 100.0, 1000.0)
}


def accuracy(toy, model):
    return one_to_one_accuracy(toy.states, model.predict(toy.X, toy.lengths))


# %%
# One of the six
# --------------
# The learned states are renumbered to agree best with the true ones. A log determinant far below 0 says that some rows
# of the transition matrix are alike, or nearly a mixture of others.

chosen = 1
toy = toys[chosen]

figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
TransitionDisplay.from_matrix(toy.transmat, ax=axes[0], title="truth", colorbar=False)
for ax, strength, name in ((axes[1], 0.0, "plain HMM"), (axes[2], 1.0, "diversity 1")):
    model = fits[strength][chosen]
    order = align_states(toy.states, model.predict(toy.X, toy.lengths), n_pred=5).order
    title = f"{name}: log det {model.log_det_:.1f}, accuracy {accuracy(toy, model):.2f}"
    TransitionDisplay.from_estimator(
        model, order=order, state_names=np.argsort(order), ax=ax, title=title, colorbar=ax is axes[2]
    )
for ax in axes:
    ax.title.set_fontsize(10)

# %%
# The strength of the prior
# -------------------------
# The log determinant of the rows' kernel rises towards 0, where the rows have nothing in common: the transition matrix
# is then a permutation, whatever the data say, and the accuracy falls. Small strengths neither help nor hurt beyond the
# spread over data sets (bars: one standard deviation). Rows that are alike to rounding have the log determinant minus
# infinity; here they are drawn at -15.

strengths = list(fits)
DiversitySweepDisplay.from_results(
    strengths,
    [[accuracy(toy, model) for toy, model in zip(toys, fits[strength])] for strength in strengths],
    log_det=[[max(model.log_det_, -15.0) for model in fits[strength]] for strength in strengths],
    ylabel="one-to-one accuracy",
    title="six data sets, poor start",
)

# %%
# A better start beats a better prior
# -----------------------------------
# Left to itself, `~pluri.sequences.GaussianHMM` starts from k-means and can be run several times (``n_init``),
# keeping the run with the best objective. That solves this problem, with or without the prior.

for strength in (0.0, 1.0):
    models = [
        GaussianHMM(5, diversity=strength, n_init=3, n_iter=200, random_state=0).fit(toy.X, lengths=toy.lengths)
        for toy in toys
    ]
    scores = [accuracy(toy, model) for toy, model in zip(toys, models)]
    print(f"diversity {strength:g}: mean accuracy {np.mean(scores):.3f}, lowest {min(scores):.3f}")

# sphinx_gallery_thumbnail_number = 2
