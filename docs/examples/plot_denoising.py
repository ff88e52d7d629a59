"""
A picture without its noise: beta-process dictionaries
======================================================

A photograph in noise whose strength nobody tells: a dictionary is learned from the overlapping patches of the noisy
picture itself, and what it cannot say is noise. Beside the restored picture there is a standard deviation for every
pixel.
"""

# %%
# A photograph and its noise
# --------------------------
# A flower that comes with scikit-learn, made grey and smaller, with noise of standard deviation 0.1 on a scale from
# black, 0, to white, 1.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from pluri.factors import ImageDenoiser, inpaint_image
from pluri.plotting import DictionaryMosaicDisplay, RestorationDisplay

flower = load_sample_image("flower.jpg")[40:360, 160:480].mean(axis=2) / 255
clean = flower.reshape(160, 2, 160, 2).mean(axis=(1, 3))
rng = np.random.default_rng(0)
noisy = clean + rng.normal(0, 0.1, clean.shape)

# %%
# Learn and restore
# -----------------

model = ImageDenoiser(128, n_patches=8000, random_state=0).fit(noisy)
restored, std = model.denoise(noisy, return_std=True)
low, high = model.noise_interval_
print(f"noise of standard deviation {model.noise_sd_:.3f} ({low:.3f} to {high:.3f}); it was 0.1")
print(f"90 % intervals cover {(np.abs(restored - clean) < 1.645 * std).mean():.0%} of the pixels")

RestorationDisplay(noisy, restored, truth=clean).plot()
plt.show()

# %%
# What it has learned
# -------------------
# Atoms that are used most come first: edges in several directions, then finer ones.

DictionaryMosaicDisplay.from_estimator(model, n_atoms=100)
plt.show()

# %%
# A quarter of the pixels
# -----------------------
# Pixels may also be missing: here three quarters of the picture are, without noise.

missing = rng.random(clean.shape) < 0.75
filled, std = inpaint_image(clean, missing, n_components=96, n_patches=6000, random_state=0, return_std=True)
RestorationDisplay(np.where(missing, np.nan, clean), filled, truth=clean).plot()
plt.show()
