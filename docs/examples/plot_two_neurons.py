"""
Two neurons: a simulation
=========================

A current makes the first neuron fire. Each spike runs along its axon for five milliseconds and opens a synapse on the
dendrite of the second one, which fires in turn. With a weaker synapse it does not.
"""

import matplotlib.pyplot as plt

from pluri.neurons.models import two_neurons

figure, axes = plt.subplots(3, 1, figsize=(8, 6), sharex=True, height_ratios=[3, 3, 1.5], layout="constrained")
for gmax, style in ((0.005, "-"), (0.001, ":")):
    sim = two_neurons(gmax=gmax)
    sim.record("/net/*/soma", "Vm")
    sim.record("/net/b/dend/syn", "g")
    result = sim.run(80.0)
    for ax, name, colour in zip(axes, "ab", ("C0", "C1")):
        ax.plot(result.time, result[f"/net/{name}/soma", "Vm"], style, color=colour, label=f"gmax = {gmax:g} uS")
        ax.plot(
            result.spikes(f"/net/{name}/axon"), [52.0] * len(result.spikes(f"/net/{name}/axon")), "|", color="black"
        )
    axes[2].plot(result.time, 1e3 * result["/net/b/dend/syn", "g"], style, color="C2")
axes[0].axvspan(5, 55, color="0.93", zorder=0)
axes[0].set(ylabel="first soma (mV)", title="0.2 nA into the first neuron from 5 to 55 ms; ticks are spikes")
axes[1].set(ylabel="second soma (mV)")
axes[1].legend(loc="upper right", bbox_to_anchor=(1.0, 0.85))
axes[2].set(xlabel="time (ms)", ylabel="synapse (nS)")
plt.show()

# %%
# How fast does a cell fire?
# --------------------------
# Twenty patches of squid axon run side by side, each with a current of its own. Below a threshold there is silence;
# above it, the rate jumps to about 50 Hz: the axon has no slow rhythm.

import numpy as np

from pluri.neurons.models import hodgkin_huxley_patch

densities = np.linspace(2, 20, 20)
patches = hodgkin_huxley_patch(n_cells=len(densities), dt=0.02)
for i, density in enumerate(densities):
    patches.set(f"/patch[{i}]", "inject", 0.01 * density)  # 1000 um^2: 1 uA/cm^2 is 0.01 nA
result = patches.run(1000.0)
rates = []
for i in range(len(densities)):
    late = result.spikes(f"/patch[{i}]/axon")
    late = late[late > 500]
    rates.append(1000 / np.diff(late).mean() if len(late) > 1 else 0.0)
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(densities, rates, "o-")
ax.set(xlabel="current (uA/cm^2)", ylabel="rate (Hz)", title="Firing rate of the Hodgkin-Huxley patch")
plt.show()
