"""
Asking for the right labels: active learning
============================================

A pool of points without labels, ten labels to begin with, and twenty that may be asked for. Where does a learner ask,
and is that better than asking at random? The first question has a picture; the second needs repeats.
"""

# %%
# Where it asks
# -------------
# The numbers are the order. A learner that asks where it is torn goes to the boundary, and corrects it from there.
# Random questions are spread over everything, also over what is known already.

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from pluri.decisions import ActiveLearner, compare_strategies
from pluri.plotting import LearningCurvesDisplay, QueriedPointsDisplay

X, y = make_moons(400, noise=0.22, random_state=1)
model = make_pipeline(PolynomialFeatures(3, include_bias=False), StandardScaler(), LogisticRegression(max_iter=1000))

figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", sharex=True, sharey=True)
for ax, strategy in zip(axes, ("margin", "random")):
    learner = ActiveLearner(model, strategy, n_queries=20, random_state=0).fit(X[:10], y[:10])
    learner.run(X[10:200], y[10:200], X[200:], y[200:])
    title = f"{strategy}: {100 * learner.history_['score'][-1]:.0f} % right on held-out points"
    QueriedPointsDisplay.from_estimator(learner, X[10:200], ax=ax, title=title)
axes[0].get_legend().remove()

# %%
# Is it better?
# -------------
# One run of each proves nothing: other first labels give other curves. Twenty repeats, in each of which all strategies
# get the same points to begin with and to be judged by, give an interval of the difference. Bands of the curves are
# standard errors, those of the differences 95 % intervals.

strategies = {"margin": "margin", "Fisher information": "fisher_a"}
found = compare_strategies(model, X, y, strategies, n_queries=20, batch_size=2, n_repeats=20, random_state=0)
LearningCurvesDisplay.from_comparison(found, score_name="held-out accuracy")
print(found.summary())

# %%
# Where the interval holds zero, nothing was shown, whatever the curves look like.

plt.show()
