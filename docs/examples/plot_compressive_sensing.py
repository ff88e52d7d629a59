"""
A picture from 25 of 64 measurements: compressive sensing
=========================================================

A picture is cut into tiles of 8 x 8 pixels, of which only 25 random projections are known, other ones for each tile.
Cosines are the dictionary: smooth tiles need few of them, and which ones are common is learned from all tiles together.
"""

# %%
# A picture with a slope, a disc, stripes and a little text of squares.
import matplotlib.pyplot as plt
import numpy as np
from scipy.fft import idctn

from pluri.factors import BasisPursuit, CompressiveRecovery, PatchCompressor
from pluri.factors.dictionaries.sensing import sparse_codes
from pluri.plotting import MeasurementErrorDisplay

side = 96
row, column = np.mgrid[:side, :side] / side
picture = 0.3 + 0.4 * row
picture[(row - 0.35) ** 2 + (column - 0.3) ** 2 < 0.05] = 0.9
stripes = (row > 0.55) & (column > 0.5)
picture[stripes] += 0.2 * np.sin(60 * (row + 0.5 * column))[stripes]
picture[8:40:8, 60:88] = 0.1

# %%
# Measure, and recover. `center="sample"` leaves the brightness of each tile out of the prior; 24 measurements are left
# for the 63 cosines.
cosines = np.array([idctn(unit.reshape(8, 8), norm="ortho").ravel() for unit in np.eye(64)])
compressor = PatchCompressor(8, n_measurements=25, random_state=0).fit(picture)
Y, S = compressor.transform(picture), compressor.projections_
model = CompressiveRecovery(cosines[1:], usage_prior="dp", center="sample", random_state=0).fit(Y, S)
tiles, std = model.recover(return_std=True)
recovered, deviation = compressor.inverse_transform(tiles), compressor.inverse_transform(std)

# %%
# Without a prior, the measurements only tell the nearest picture in the directions that they saw.
nearest = compressor.inverse_transform(np.matmul(np.linalg.pinv(S), Y[:, :, None])[:, :, 0])
figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained")
titles = ("the picture", "nearest to the measurements", "recovered", "standard deviation")
for ax, image, title in zip(axes, (picture, nearest, recovered, deviation), titles):
    limits = {"cmap": "magma"} if title.startswith("standard") else {"cmap": "gray", "vmin": 0, "vmax": 1}
    ax.imshow(image, **limits)
    ax.set_title(title)
    ax.axis("off")


# %%
# The error by number of measurements, beside basis pursuit, which takes each tile by itself.
def error(rows):
    return np.linalg.norm(compressor.inverse_transform(rows) - picture) / np.linalg.norm(picture)


numbers, errors = [8, 16, 24, 32, 48], {"all tiles together, in clusters": [], "basis pursuit": []}
for n in numbers:
    compressor = PatchCompressor(8, n_measurements=n, random_state=0).fit(picture)
    Y, S = compressor.transform(picture), compressor.projections_
    errors["all tiles together, in clusters"].append(error(model.fit(Y, S).recover()))
    errors["basis pursuit"].append(error(sparse_codes(BasisPursuit(), Y, S @ cosines.T) @ cosines))
display = MeasurementErrorDisplay(numbers, errors).plot()
plt.show()
