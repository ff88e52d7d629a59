"""Normalizing flows on the four densities of Rezende and Mohamed (2015), table 1 and figure 3.

    python benchmarks/reproduce/flows_four_densities.py                      # two starts of everything, draws flows.png
    python benchmarks/reproduce/flows_four_densities.py --starts 1 --quick   # a quarter of the iterations
    python benchmarks/reproduce/flows_four_densities.py --output figure.png

Prints KL(q || p) in nats, from 50,000 samples and the normaliser by quadrature; of several starts, the mean and the
best, which is drawn. The paper shows pictures and no such numbers. The last three densities cannot be normalised as
they stand, and have a soft box around |z1| < 4 here.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from pluri.inference.variational.flows import FlowDesign, FlowResult, fit_flow
from pluri.inference.variational.flows.energies import ENERGIES, log_normalizer

DESIGNS: dict[str, FlowDesign] = {
    "normal, 0": FlowDesign(n_layers=0, base="learned"),
    "planar, 2": FlowDesign("planar", 2),
    "planar, 8": FlowDesign("planar", 8),
    "planar, 16": FlowDesign("planar", 16),
    "mixed, 8": FlowDesign("mixed", 8),
    "coupling, 8": FlowDesign("coupling", 8),
    "spline, 4": FlowDesign("spline", 4, hidden=(16,)),
}
DRAWN = ("planar, 2", "planar, 8", "coupling, 8", "spline, 4")
HALF_WIDTH = 5.0


def fits(name: str, design: FlowDesign, max_iter: int, n_starts: int) -> list[FlowResult]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a lost mode shows in the table
        return [fit_flow(ENERGIES[name], 2, design, max_iter=max_iter, random_state=start) for start in range(n_starts)]


def draw(results: dict[tuple[str, str], tuple[float, FlowResult]], output: Path) -> None:
    line = np.linspace(-HALF_WIDTH, HALF_WIDTH, 250)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    figure, axes = plt.subplots(
        len(ENERGIES), 1 + len(DRAWN), figsize=(2.1 * (1 + len(DRAWN)), 8.8), layout="constrained", squeeze=False
    )
    for index, (row, (name, density)) in enumerate(zip(axes, ENERGIES.items())):
        truth = np.exp(density(grid)[0] - log_normalizer(density))
        panels = [("density", None, truth)]
        for setting in DRAWN:
            divergence, result = results[name, setting]
            panels.append((setting, divergence, np.exp(result.log_prob(grid))))
        for ax, (title, divergence, values) in zip(row, panels):
            ax.imshow(
                values.reshape(len(line), -1), origin="lower", extent=2 * (-HALF_WIDTH, HALF_WIDTH), vmax=truth.max()
            )
            ax.set(xticks=[], yticks=[], xlabel="" if divergence is None else f"KL {divergence:.3f}")
            if index == 0:
                ax.set_title(f"{title} layers" if divergence is not None else title)
        row[0].set_ylabel(name.replace("_", " "))
    figure.savefig(output, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("flows.png"), help="where the figure goes")
    parser.add_argument("--starts", type=int, default=2, help="number of starts")
    parser.add_argument("--quick", action="store_true", help="2,000 iterations in place of 8,000")
    options = parser.parse_args()
    started = time.perf_counter()
    normalizers = {name: log_normalizer(density) for name, density in ENERGIES.items()}
    print(f"{'KL(q || p), mean / best of starts':<34s}" + "".join(f"{name:>18s}" for name in ENERGIES))
    print(f"{'log normaliser':<34s}" + "".join(f"{value:>18.4f}" for value in normalizers.values()))
    results: dict[tuple[str, str], tuple[float, FlowResult]] = {}
    for setting, values in DESIGNS.items():
        cells = []
        for name in ENERGIES:
            found = fits(name, values, 2000 if options.quick else 8000, options.starts)
            divergences = [result.kl_estimate(normalizers[name], 50_000, random_state=0) for result in found]
            best = int(np.argmin(divergences))
            results[name, setting] = (divergences[best], found[best])
            cells.append(f"{np.mean(divergences):.3f} / {divergences[best]:.3f}")
        print(f"{setting + ' layers':<34s}" + "".join(f"{cell:>18s}" for cell in cells), flush=True)
    draw(results, options.output)
    print(f"drew {options.output} ({time.perf_counter() - started:.0f} s)")


if __name__ == "__main__":
    main()
