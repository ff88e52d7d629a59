"""
What makes the regime change: transitions that depend on inputs
===============================================================

A pump runs in two regimes, quiet and rough. Heat makes it leave the quiet regime, and coolant brings it back. A
`~pluri.sequences.DrivenHMM` learns regimes and reasons together; the plain model sees the regimes, but not why.
"""

# %%
# A simulated year
# ----------------
# Vibration is a first-order autoregression in each regime. Heat swings over the weeks; coolant comes in pulses.

import matplotlib.pyplot as plt
import numpy as np

from pluri.sequences import AutoregressiveHMM, DrivenHMM

rng = np.random.default_rng(2)
n_steps = 1500
heat = 1.5 * np.sin(np.arange(n_steps) / 60.0) + 0.5 * rng.normal(size=n_steps)
coolant = (rng.random(n_steps) < 0.3).astype(float)
vibration, states, state = np.zeros(n_steps), np.zeros(n_steps, dtype=int), 0
for t in range(1, n_steps):
    odds = -3.5 + 1.5 * heat[t] if state == 0 else -3.0 + 2.5 * coolant[t]
    state = 1 - state if rng.random() < 1.0 / (1.0 + np.exp(-odds)) else state
    states[t] = state
    vibration[t] = (0.3, 0.9)[state] * vibration[t - 1] + (0.5, 1.0)[state] * rng.normal()
X = np.column_stack([vibration, heat, coolant])

# %%
# Effects with intervals
# ----------------------
# States are put in the order of their autoregressive coefficients. Heat should act on quiet -> rough, coolant on the
# way back; the other two effects are zero.

model = DrivenHMM(AutoregressiveHMM(2, random_state=0, n_init=3, n_iter=300, tol=1e-3), transition_inputs=[1, 2]).fit(X)
quiet, rough = np.argsort(model.hmm_.coef_[:, 0, 0])
effects = model.transition_effects(X)
names = ["heat, quiet to rough", "coolant, quiet to rough", "heat, rough to quiet", "coolant, rough to quiet"]
places = [(quiet, rough, 0), (quiet, rough, 1), (rough, quiet, 0), (rough, quiet, 1)]
truth = [1.5, 0.0, 0.0, 2.5]
for name, place, true in zip(names, places, truth, strict=True):
    print(f"{name:25s} {effects.lower[place]:6.2f} to {effects.upper[place]:5.2f}   truth {true}")

# %%
# The probability of change, step by step
# ---------------------------------------

figure, (top, middle, bottom) = plt.subplots(3, 1, figsize=(8, 6.5), layout="constrained")
window = slice(0, 600)
steps = np.arange(n_steps)[window]
top.plot(steps, vibration[window], color="0.4", linewidth=0.8, label="vibration")
top.fill_between(
    steps,
    -12,
    12,
    where=model.predict(X)[window] == rough,
    color="C1",
    alpha=0.3,
    linewidth=0,
    label="decoded as rough",
)
top.set(ylim=(-12, 12), ylabel="vibration")
top.legend(loc="lower left", ncols=2)
matrices = model.transition_matrices(X[:, 1:])
middle.plot(steps, matrices[window, quiet, rough], label="quiet to rough", color="C1")
middle.plot(steps, matrices[window, rough, quiet], label="rough to quiet", color="C0", linewidth=0.6)
middle.set(ylabel="probability", xlabel="step")
middle.legend(loc="upper right", ncols=2)
heights = np.arange(4)
estimates = np.array([effects.estimate[place] for place in places])
half = np.array([effects.upper[place] for place in places]) - estimates
bottom.errorbar(estimates, heights, xerr=half, fmt="o", color="black", capsize=3, label="estimate, 95 %")
bottom.plot(truth, heights, "x", color="C3", label="truth")
bottom.axvline(0.0, color="0.7", linewidth=0.8)
bottom.set(yticks=heights, yticklabels=names, xlabel="effect on the log odds of change")
bottom.invert_yaxis()
bottom.legend(loc="lower left")
plt.show()
