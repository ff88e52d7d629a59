"""
A map of pictures, and the way back: SNE and spectral regression
================================================================

Handwritten digits on a map: neighbours stay together (`~pluri.embedding.SNE`), new pictures are placed without moving
the others, and `~pluri.embedding.SpectralRegression` also goes back, from a place on its map to a picture that nobody
wrote.
"""

# %%
# Neighbours
# ----------
# 600 pictures are mapped, 200 others are placed on that map afterwards (rings).

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from pluri.embedding import SNE, SpectralRegression
from pluri.plotting import CutDisplay, EmbeddingDisplay

digits = load_digits()
X, y = digits.data / 16.0, digits.target
model = SNE(perplexity=20, random_state=0).fit(X[:600])
figure, ax = plt.subplots(figsize=(7, 6), layout="constrained")
EmbeddingDisplay.from_estimator(model, y[:600], ax=ax)
places = model.transform(X[600:800])
ax.scatter(*places.T, s=36, facecolors="none", edgecolors="black", linewidths=0.6)
nearest = np.linalg.norm(places[:, None] - model.embedding_, axis=2).argmin(axis=1)
right = np.mean(y[nearest] == y[600:800])
ax.set_title(f"new pictures fall beside a picture of the same digit in {100 * right:.0f} % of 200 cases")

# %%
# Back from the map
# -----------------
# Only the threes, on a map of two coordinates. Along a straight line between two of them the pictures between are made
# up: each is the mean of all pictures that the model thinks belong there.

threes = X[y == 3]
reversible = SpectralRegression(2, 4, n_warmup=100, n_draws=100, random_state=0).fit(threes)
ends = np.argsort(reversible.embedding_[:, 0])[[2, -3]]
CutDisplay.from_estimator(reversible, int(ends[0]), int(ends[1]), n_steps=9, picture_shape=(8, 8))
plt.show()
