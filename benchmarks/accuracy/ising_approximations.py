"""How far mean field and belief propagation are from exact marginals of 3 x 4 grids, and when mean field is warned of.

Run as `python benchmarks/accuracy/ising_approximations.py`; it takes three minutes.
"""

import warnings

import numpy as np

from pluri.inference.variational import ApproximationWarning
from pluri.processes import IsingDenoiser

N_IMAGES, N_SETS = 200, 10


def image(seed, sigma):
    rng = np.random.default_rng(seed)
    truth = rng.choice([-1.0, 1.0], size=(3, 4)) if seed % 2 else np.full((3, 4), rng.choice([-1.0, 1.0]))
    return truth + sigma * rng.normal(size=(3, 4))


def main():
    warnings.simplefilter("ignore", ApproximationWarning)
    verdicts = []
    print("coupling sigma  belief propagation (mean, largest)  mean field (mean, largest)  worst ratio of 20 images")
    for coupling in (-1.0, -0.4, 0.2, 0.4, 0.6, 1.0, 1.5):
        for sigma in (1.0, 1.5):
            errors = []
            for seed in range(100, 100 + N_IMAGES):
                fits = {
                    way: IsingDenoiser(coupling, sigma=sigma, levels=(-1, 1), inference=way, max_iter=2000)
                    .fit(image(seed, sigma))
                    for way in ("bethe", "vb", "exact")
                }  # fmt: skip
                errors.append([np.abs(fits[way].proba_ - fits["exact"].proba_).max() for way in ("bethe", "vb")])
                verdicts.append((errors[-1][1], bool(fits["vb"].diagnose())))
            bethe, mean_field = np.transpose(errors)
            sets = np.split(bethe, N_SETS), np.split(mean_field, N_SETS)
            ratio = max(one.mean() / other.mean() for one, other in zip(*sets))
            print(f"{coupling:8} {sigma:5}  {bethe.mean():.3f} {bethe.max():.3f}  {mean_field.mean():.3f} "
                  f"{mean_field.max():.3f}  {ratio:.2f}", flush=True)  # fmt: skip
    error, warned = np.transpose(verdicts)
    for low, high in ((0, 0.05), (0.05, 0.1), (0.1, 0.15), (0.15, 0.2), (0.2, 0.3), (0.3, 1.0)):
        inside = (error >= low) & (error < high)
        print(f"mean field off by {low} to {high}: {inside.sum()} fits, {warned[inside].mean():.1%} of them warned of")


if __name__ == "__main__":
    main()
