"""
Where to put sensors, and how good that is: submodular selection
================================================================

Twelve sensors are to watch a field of 196 places. Entropy spreads them to the border, where they look outside; mutual
information asks what they tell about the places without a sensor.
"""

# %%
# Two criteria
# ------------
# Numbers are the order of choice; dark places are known well.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF

from pluri.decisions import SensorPlacement
from pluri.plotting import SelectionValueDisplay, SensorMapDisplay

rng = np.random.default_rng(0)
grid = np.stack(np.meshgrid(np.arange(14.0), np.arange(14.0)), axis=-1).reshape(-1, 2)
places = grid + rng.uniform(-0.25, 0.25, grid.shape)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
for ax, criterion in zip(axes, ("mutual_information", "entropy")):
    model = SensorPlacement(12, criterion, kernel=RBF(2.5), noise_variance=0.1).fit(places)
    left = model.posterior_variance_.mean()
    title = f"{criterion.replace('_', ' ')}: mean variance {left:.2f}"
    SensorMapDisplay.from_estimator(model, places, ax=ax, title=title)

# %%
# What is proved
# --------------
# No placement lies above the dashed line. The usual bound, value / (1 - 1/e), is drawn for the information about the
# field, which is monotone; for mutual information it would not be valid, and is not drawn.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for ax, criterion in zip(axes, ("mutual_information", "information_gain")):
    model = SensorPlacement(30, criterion, kernel=RBF(2.5), noise_variance=0.1).fit(places)
    title = f"{criterion.replace('_', ' ')}: at least {100 * model.certificate_:.0f} % of the optimum"
    SelectionValueDisplay.from_estimator(model, ax=ax, title=title, ylabel="nats")

# %%
# A budget
# --------
# Places in the east cost five times as much: with money for four of them, twenty in the west tell more.

costs = np.where(places[:, 0] > 6.5, 5.0, 1.0)
bought = SensorPlacement(None, kernel=RBF(2.5), budget=20.0).fit(places, costs=costs)
SensorMapDisplay.from_estimator(bought, places, title=f"{len(bought.selected_)} sensors for {bought.cost_:g}")
plt.show()
