"""
Channel densities from a trace: a simulator as a likelihood
===========================================================

A voltage was recorded from a patch of membrane. How many sodium and potassium channels does it have? The simulator
becomes a likelihood, and sequential Monte Carlo takes a cloud of guesses from what we believed before to what the trace
allows. The trace is simulated here, so that the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np

from pluri.inference.smc import SMCSampler, random_walk_kernel
from pluri.neurons import SimulatorLikelihood
from pluri.neurons.models import hodgkin_huxley_patch

truth = np.array([120.0, 36.0])  # mS/cm^2 of sodium and potassium
patch = hodgkin_huxley_patch(10.0, dt=0.05)
patch.record("/patch", "Vm")
simulator = SimulatorLikelihood(
    patch,
    "/patch",
    {"gNa": (".", "gNa"), "gK": (".", "gK")},
    summary=lambda result, path: result[path, "Vm"][::20],
    duration=20.0,
    noise=3.0,
)
observed = simulator.simulate([truth], random_state=0)[0]

# %%
# From the prior to the posterior
# -------------------------------
# The prior is log-normal. Its logarithm, standardised, is ``z``; ten steps raise the likelihood from nearly nothing to
# all of it. In each, all particles are simulated side by side, as copies of the patch in one network.

middle, width = np.log([100.0, 30.0]), 0.3


def densities(z):
    return np.exp(middle + width * z)


def tempered(power):
    def log_target(z):
        return -0.5 * (z**2).sum(axis=1) + power * simulator.log_likelihood(densities(z), observed)

    return log_target


sampler = SMCSampler(
    [tempered(power) for power in np.geomspace(1e-3, 1, 10)],
    random_walk_kernel(),
    lambda rng, n: rng.normal(size=(n, 2)),
    n_particles=100,
    n_moves=2,
    random_state=0,
).run()
posterior, weights = densities(sampler.particles_), sampler.weights_
prior = densities(np.random.default_rng(1).normal(size=(100, 2)))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=[2, 3], layout="constrained")
left.scatter(*prior.T, s=12, color="0.75", label="prior")
left.scatter(*posterior.T, s=12, color="C0", alpha=0.6, label="posterior")
left.plot(*truth, "k+", markersize=14, markeredgewidth=2, label="truth")
left.set(xlabel="sodium (mS/cm²)", ylabel="potassium (mS/cm²)", title="What the trace allows")
left.legend()

times = np.arange(len(observed))  # one in twenty of steps of 0.05 ms
for cloud, colour in ((prior[:30], "0.8"), (posterior[:30], "C0")):
    for trace in simulator.summaries(cloud)[:, 0]:
        right.plot(times, trace, color=colour, linewidth=0.8, alpha=0.7)
right.plot(times, observed, "k.", markersize=6, label="observed")
right.set(xlabel="time (ms)", ylabel="voltage (mV)", title="Traces of thirty draws each")
right.legend()
plt.show()

# %%
# A trace as states
# -----------------
# The same traces are sequences for a hidden Markov model. A half-centre oscillator (two cells that inhibit each other
# and rebound from it) takes turns; three states find the turns in its two voltages without being told of them.

from pluri.neurons.models import half_centre
from pluri.sequences import GaussianHMM

oscillator = half_centre(dt=0.05)
oscillator.set_clock(1, 1.0)
oscillator.record("/*", "Vm", clock=1)
run = oscillator.run(600.0)
voltages = np.column_stack([run["/left", "Vm"], run["/right", "Vm"]])
states = GaussianHMM(3, random_state=0, n_init=5).fit(voltages).predict(voltages)

figure, ax = plt.subplots(figsize=(10, 3), layout="constrained")
for name, colour in (("left", "C0"), ("right", "C3")):
    ax.plot(run.time, run[f"/{name}", "Vm"], color=colour, label=f"{name} cell")
for state in range(3):
    ax.fill_between(
        run.time, -82, -10, where=states == state, step="mid", alpha=0.15, color=f"C{state + 4}", linewidth=0
    )
ax.set(xlabel="time (ms)", ylabel="voltage (mV)", ylim=(-82, -10), title="Two cells that take turns; shades are states")
ax.legend(loc="upper right")
plt.show()
