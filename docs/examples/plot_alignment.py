"""
Aligned sequences, and a support vector machine on them
=======================================================

Three kinds of curves, drawn at changing speed. A kernel aligns each two of them
(`~pluri.sequences.TimeAlignmentKernel`), and a support vector machine learns the kinds from the similarities alone
(`~pluri.sequences.SequenceSVC`).
"""

# %%
# Curves of any length
# --------------------
# The second and the third kind differ only in what comes first.

import matplotlib.pyplot as plt
import numpy as np

from pluri.plotting import AlignmentDisplay, GramBlocksDisplay
from pluri.sequences import SequenceSVC, TimeAlignmentKernel


def draw(n, seed):
    rng = np.random.default_rng(seed)
    kinds = np.array(["one bump", "up, down", "down, up"])[np.arange(n) % 3]
    X = []
    for kind in kinds:
        time = np.linspace(0, 1, rng.integers(25, 60)) ** rng.uniform(0.5, 2.0)
        shape = {"one bump": np.sin(np.pi * time), "up, down": np.sin(2 * np.pi * time)}
        curve = shape.get(kind, -np.sin(2 * np.pi * time))
        X.append(np.column_stack([curve, np.gradient(curve) * len(curve) / 6]) + 0.15 * rng.normal(size=(len(time), 2)))
    return X, kinds


X, kinds = draw(60, seed=0)

# %%
# The best alignment of two curves
# --------------------------------
# Bright cells are pairs of frames that resemble each other; the path goes through as much of that as it can, and never
# back. Both curves are in the margins.

kernel = TimeAlignmentKernel(sigma=0.7)
AlignmentDisplay.from_kernel(kernel, X[1], X[4], names=("a slow curve", "a fast one"))

# %%
# All similarities
# ----------------
# The sum over all alignments is positive definite, the best alignment alone is not: eigenvalues of its matrix are
# negative.

soft = TimeAlignmentKernel("sum", sigma="median", normalize=True).resolve(X)
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.3), layout="constrained")
for ax, one, name in ((axes[0], kernel, "best alignment"), (axes[1], soft, "all alignments")):
    gram = one(X)
    lowest = np.linalg.eigvalsh(gram)[0]
    GramBlocksDisplay(gram, kinds).plot(ax=ax, show_labels=True, title=f"{name}, lowest eigenvalue {lowest:.2g}")

# %%
# Few sequences are enough
# ------------------------
# Of the training sequences only the support vectors are kept.

held_out, answers = draw(300, seed=1)
for n in (9, 18, 30, 60):
    model = SequenceSVC(soft, C=10).fit(X[:n], kinds[:n])
    accuracy = model.score(held_out, answers)
    print(f"{n} sequences: accuracy {accuracy:.3f}, {len(model.support_)} support vectors")

# sphinx_gallery_thumbnail_number = 1
