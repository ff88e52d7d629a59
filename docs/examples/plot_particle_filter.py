"""
Following a state that is seen through its square: particle filters
===================================================================

The growth model is the classic trial of nonlinear filters: the state jumps between two wells, and what is observed is
its *square* in noise, so that an observation leaves the sign open. A Kalman filter is lost here; a cloud of particles
keeps both possibilities until the dynamics decide.
"""

# %%
# The model
# ---------
# :math:`x_t = x_{t-1}/2 + 25 x_{t-1}/(1 + x_{t-1}^2) + 8 \cos(1.2 t) + N(0, 10)` and :math:`y_t = x_t^2/20 + N(0, 1)`.
# Functions of a single particle are compiled; their loop over time and particles is then too.

import matplotlib.pyplot as plt
import numpy as np

from pluri.inference import smc
from pluri.plotting import ParticleCloudDisplay


def initial(rng, parameters, state):
    state[0] = np.sqrt(10.0) * rng.standard_normal()


def transition(rng, t, parameters, old, new):
    drift = old[0] / 2 + 25 * old[0] / (1 + old[0] ** 2) + 8 * np.cos(1.2 * t)
    new[0] = drift + np.sqrt(10.0) * rng.standard_normal()


def log_density(t, parameters, observation, state):
    return -0.5 * (observation[0] - state[0] ** 2 / 20) ** 2


model = smc.CompiledModel(initial, transition, log_density)

rng = np.random.default_rng(7)
n_steps = 60
states = np.empty(n_steps)
states[0] = np.sqrt(10.0) * rng.standard_normal()
for t in range(1, n_steps):
    drift = states[t - 1] / 2 + 25 * states[t - 1] / (1 + states[t - 1] ** 2) + 8 * np.cos(1.2 * t)
    states[t] = drift + np.sqrt(10.0) * rng.standard_normal()
observations = states**2 / 20 + rng.standard_normal(n_steps)

# %%
# The cloud
# ---------
# Particles, as large as their weights, with the filtered mean and the true state. Where the cloud has two parts the
# mean lies between them, at a place where the state surely is not: a mean is not always an answer. Below, the effective
# number of particles after each observation.

result = smc.particle_filter(model, observations, n_particles=1000, random_state=0)
display = ParticleCloudDisplay.from_result(result, truth=states, max_particles=150, title="1000 particles")
display.axes_[0].legend(frameon=False, ncols=3, loc="lower center", fontsize=8)
display.axes_[0].set_ylim(-30, 26)

# %%
# One step, closely
# -----------------
# The filtering distribution at the step where it is widest.

weights = np.exp(result.log_weights)
step = int(result.variance[:, 0].argmax())
figure, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
ax.hist(result.particles[step, :, 0], bins=np.linspace(-18, 18, 73), weights=weights[step], color="#56B4E9")
ax.axvline(states[step], color="black", ls="--", lw=1.2, label="true state")
ax.axvline(result.mean[step, 0], color="#0072B2", lw=1.6, label="filtered mean")
ax.set(xlabel="state", ylabel="probability", title=f"step {step}")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

# %%
# How many particles?
# -------------------
# The log evidence is a sum over all steps, and its spread over repeated runs is the most sensitive sign of too few
# particles. With a hundred, a run now and then loses the state; with enough, the spread falls as one over the root of
# their number (dotted).

sizes = [100, 400, 1600, 6400]
spread = {}
for scheme in ("multinomial", "systematic"):
    options = {"resampling": scheme, "store": "moments"}
    runs = [
        [
            smc.particle_filter(model, observations, size, random_state=seed, **options).log_evidence
            for seed in range(30)
        ]
        for size in sizes
    ]
    spread[scheme] = np.std(runs, axis=1)

figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
for (scheme, values), color, marker in zip(spread.items(), ("#E69F00", "#0072B2"), "so"):
    ax.loglog(sizes, values, color=color, marker=marker, label=scheme)
ax.loglog(sizes, spread["systematic"][-1] * np.sqrt(sizes[-1] / np.array(sizes)), color="0.6", ls=":")
ax.set(xlabel="particles", ylabel="spread of the log evidence", title="standard deviation of 30 runs")
ax.set_xticks(sizes, sizes)
ax.set_yticks([0.3, 1, 3], [0.3, 1, 3])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
