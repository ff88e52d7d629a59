"""Ising denoising of a synthetic image: error rates of mean field and of Gibbs sampling for several couplings.

A 128 x 128 image of a disc, a frame and bars (28.5 % white) with normal noise, ten noise draws. "Published" are the
reference values for fifteen checkerboard sweeps of mean field with damping 0.5; Gibbs has none: 200 sweeps after 100.

    python benchmarks/reproduce/ising_denoising.py [figure]
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from published import Report, figure_path
from scipy.stats import norm

from pluri.processes.ising import IsingDenoiser

N_RUNS = 10
PUBLISHED = {
    (1.0, 0.25): 0.0470, (1.0, 0.5): 0.0085, (1.0, 1.0): 0.0035, (1.0, 2.0): 0.0034,
    (2.0, 0.25): 0.1073, (2.0, 0.5): 0.0226, (2.0, 1.0): 0.0192, (2.0, 2.0): 0.0234,
}  # fmt: skip


def picture() -> NDArray[np.float64]:
    """The image without noise, -1 and +1."""
    i, j = np.indices((128, 128))
    white = (i - 40) ** 2 + (j - 40) ** 2 <= 28**2
    for rows, columns in (((75, 109), (60, 114)), ((8, 13), (80, 119)), ((84, 119), (20, 25))):
        white[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1] = True
    white[92:96, 66:108] = False
    return np.where(white, 1.0, -1.0)


def error(labels: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float((labels != truth).mean())


def denoiser(sigma: float, coupling: float, inference: str, seed: int) -> IsingDenoiser:
    sweeps = {"max_iter": 15, "tol": -1.0} if inference == "vb" else {"n_warmup": 100, "n_draws": 200}
    return IsingDenoiser(coupling, sigma=sigma, inference=inference, n_chains=1, random_state=seed, **sweeps)


def main() -> None:
    truth = picture()
    report = Report(f"Ising denoising, share of wrong pixels ({(truth > 0).mean():.1%} white), {N_RUNS} noise draws")
    for sigma in (1.0, 2.0):
        noisy = [truth + sigma * np.random.default_rng(seed).normal(size=truth.shape) for seed in range(N_RUNS)]
        threshold = [error(np.sign(image), truth) for image in noisy]
        report.row(f"sigma {sigma:g}: threshold", float(norm.cdf(-1 / sigma)), float(np.mean(threshold)))
        for coupling in (0.25, 0.5, 1.0, 2.0):
            for inference, published in (("vb", PUBLISHED[sigma, coupling]), ("gibbs", None)):
                errors = [
                    error(denoiser(sigma, coupling, inference, seed).fit(image).labels_, truth)
                    for seed, image in enumerate(noisy)
                ]
                spread = float(np.std(errors, ddof=1))
                report.row(f"sigma {sigma:g}, J {coupling:g}: {inference}", published, float(np.mean(errors)), spread)
    report.note("Published threshold errors are Phi(-1 / sigma). Marginals of Gibbs are those of the model itself.")
    report.close()
    if "figure" in sys.argv[1:]:
        draw(truth)


def draw(truth: NDArray[np.float64]) -> None:
    """Observed, denoised and certainty, with the bound and the entropy of mean field."""
    import matplotlib.pyplot as plt

    noisy = truth + 2.0 * np.random.default_rng(0).normal(size=truth.shape)
    field = denoiser(2.0, 1.0, "vb", 0).fit(noisy)
    gibbs = denoiser(2.0, 0.5, "gibbs", 0).fit(noisy)
    figure, axes = plt.subplots(2, 3, figsize=(10, 6.6), layout="constrained")
    panels = {
        "truth": truth,
        "seen, sigma 2": noisy,
        f"mean field, J 1: {error(field.labels_, truth):.1%} wrong": field.labels_,
        f"Gibbs, J 0.5: {error(gibbs.labels_, truth):.1%} wrong": gibbs.labels_,
        "Gibbs: probability of white": gibbs.proba_[..., 1],
    }
    for axis, (title, image) in zip(axes.flat, panels.items()):
        axis.imshow(image, cmap="gray", interpolation="nearest")
        axis.set(title=title, xticks=[], yticks=[])
    bound, entropy = axes[1, 2], axes[1, 2].twinx()
    bound.plot(field.elbo_, color="C0")
    entropy.plot(field.entropy_, color="C3")
    bound.set(title="mean field", xlabel="sweep")
    bound.set_ylabel("bound", color="C0")
    entropy.set_ylabel("mean entropy (nats)", color="C3")
    path = figure_path("ising_denoising.png")
    figure.savefig(path, dpi=120)
    print(f"figure: {path}")


if __name__ == "__main__":
    main()
