"""How far approximations are from exact marginals of grids, and when they are warned of.

Run as `python benchmarks/accuracy/ising_approximations.py`; it takes three minutes. First 3 x 4 grids by mean field and
by belief propagation; then grids of 10 to 15 pixels across by belief propagation and by strips between its messages.
"""

import itertools
import warnings

import numpy as np

from pluri.inference.variational import ApproximationWarning
from pluri.processes import IsingDenoiser

N_IMAGES, N_SETS = 200, 10


def image(seed, sigma):
    rng = np.random.default_rng(seed)
    truth = rng.choice([-1.0, 1.0], size=(3, 4)) if seed % 2 else np.full((3, 4), rng.choice([-1.0, 1.0]))
    return truth + sigma * rng.normal(size=(3, 4))


def of_verdicts(name, verdicts, edges=(0, 0.05, 0.1, 0.15, 0.2, 0.3, 1.0), what="off by"):
    """How many fits of each size of error are warned of."""
    error, warned = np.transpose(verdicts)
    for low, high in itertools.pairwise(edges):
        inside = (error >= low) & (error < high)
        share = warned[inside].mean() if inside.any() else 0.0
        print(f"{name} {what} {low} to {high}: {inside.sum()} fits, {share:.1%} of them warned of")


def small_grids():
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
    of_verdicts("mean field", verdicts)


def larger_grids(n_images=8):
    """Wider than a strip, so that strips are an approximation too."""
    verdicts, strips_worse = [], 0
    print("coupling sigma  mean error: belief propagation, strips  largest  pixels off by more than 0.1")
    for coupling in (-0.7, -0.5, 0.35, 0.42, 0.48, 0.55, 0.7, 1.0):
        for sigma in (1.5, 3.0):
            errors = []
            for seed in range(n_images):
                rng = np.random.default_rng([seed, 20])
                shape = ((10, 10), (12, 30), (15, 11), (13, 13))[seed % 4]
                truth = rng.choice([-1.0, 1.0], size=shape) if seed < n_images // 2 else np.ones(shape)
                Y = truth + sigma * rng.normal(size=shape)
                fits = {
                    way: IsingDenoiser(coupling, sigma=sigma, levels=(-1, 1), inference=way, max_iter=2000).fit(Y)
                    for way in ("bethe", "strips", "exact")
                }
                gaps = [np.abs(fits[way].proba_ - fits["exact"].proba_).max(-1) for way in ("bethe", "strips")]
                errors.append([f(gap) for f in (np.mean, np.max, lambda gap: (gap > 0.1).mean()) for gap in gaps])
                verdicts.append((errors[-1][4], bool(fits["bethe"].diagnose())))
                strips_worse += errors[-1][1] > errors[-1][0]
            mean = np.mean(errors, axis=0)
            largest = np.max(errors, axis=0)
            print(f"{coupling:8} {sigma:5}  {mean[0]:.4f} {mean[1]:.4f}  {largest[2]:.3f} {largest[3]:.3f}  "
                  f"{mean[4]:.1%} {mean[5]:.1%}", flush=True)  # fmt: skip
    print(f"strips further off on average in {strips_worse} of {len(verdicts)} images")
    of_verdicts(
        "belief propagation", verdicts, (0, 0.01, 0.05, 0.1, 0.2, 1.01), "with a share of marginals off by 0.1,"
    )


def main():
    warnings.simplefilter("ignore", ApproximationWarning)
    small_grids()
    larger_grids()


if __name__ == "__main__":
    main()
