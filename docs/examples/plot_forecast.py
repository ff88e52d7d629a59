"""
A gap filled, and what comes next: linear dynamical systems
===========================================================

Two sensors see one swing, in noise. One of them fails for sixty steps; values are missing here and there. A linear
dynamical system fills the gap from what the other sensor saw, and forecasts with intervals.
"""

# %%
# The gap
# -------

import matplotlib.pyplot as plt
import numpy as np

from pluri.dynamics import LinearDynamicalSystem
from pluri.plotting import ForecastDisplay, TrajectoryDisplay

rng = np.random.default_rng(0)
t = np.arange(340)
swing = np.stack([np.sin(t / 9), np.cos(t / 9)], axis=1) * (1 + 0.3 * np.sin(t / 70))[:, None]
truth = swing @ [[1.0, 0.5], [0.3, -1.0]] + [20.0, 5.0]
readings = truth + 0.2 * rng.normal(size=truth.shape)
X = readings.copy()
X[rng.random(X.shape) < 0.15] = np.nan
X[120:180, 0] = np.nan

model = LinearDynamicalSystem(n_components=2, random_state=0).fit(X[:300])
filled, std = model.impute(X[:300], return_std=True)
figure, ax = plt.subplots(figsize=(10, 3.6), layout="constrained")
ax.plot(t[:300], X[:300, 0], ".", color="0.5", markersize=3, label="seen")
ax.plot(t[:300], truth[:300, 0], color="black", linewidth=0.8, label="truth")
gap = slice(120, 180)
ax.plot(t[gap], filled[gap, 0], color="C1", label="filled")
ax.fill_between(t[gap], *(filled[gap, 0] + sign * 1.645 * std[gap, 0] for sign in (-1, 1)), color="C1", alpha=0.3)
ax.legend(ncols=3, loc="upper left")
inside = np.abs(filled - readings[:300])[gap, 0] < 1.645 * std[gap, 0]
ax.set_title(f"{100 * inside.mean():.0f} % of the readings that were lost lie within the 90 % interval")

# %%
# The forecast
# ------------
# Forty steps that the model has not seen, with intervals of 50, 80 and 95 %.

ForecastDisplay.from_estimator(model, X[:300], 40, truth=readings[300:, 0], n_shown=120)

# %%
# The state behind it
# -------------------
# Both sensors see the same two numbers move.

TrajectoryDisplay.from_estimator(model, X[:300])
plt.show()
