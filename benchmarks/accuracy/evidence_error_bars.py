"""Error bars of the evidence on eight models whose evidence is known: rms z over seeds should be near 1.

z is the error of the log evidence by its stated standard error. The columns "before" were measured once, over 20 seeds,
with the defaults before moves went on until particles forget (five steps of a random walk at each temperature; annealed
importance sampling: 100 equal steps of the temperature, one move at each): they are documented here, not run.

    python benchmarks/accuracy/evidence_error_bars.py            # 40 seeds; ten minutes on one core
    python benchmarks/accuracy/evidence_error_bars.py --quick    # 10 seeds
    python benchmarks/accuracy/evidence_error_bars.py --only smc waste_free --first 1000
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from known_evidence import MODELS, Model

from pluri.inference import mcmc
from pluri.inference.ais import log_evidence
from pluri.inference.comparison import bridge_sampling
from pluri.inference.smc import Cooling, tempered_smc

#: rms z and thousands of evaluations before, in the order of MODELS.
BEFORE = {
    "smc": (
        (2.47, 46.5), (5.23, 31.0), (2.43, 38.8), (45.6, 83.8), (3.34, 52.8), (3.91, 51.5), (2.63, 31.0), (1.32, 11.0),
    ),
    "waste_free": (
        (12.4, 8.5), (10.4, 5.8), (7.95, 7.2), (272.0, 15.1), (20.7, 9.6), (21.8, 9.5), (7.42, 5.8), (1.22, 2.6),
    ),
    "ais": (
        (4.56, 100.0), (1.91, 100.0), (1.45, 100.0), (94.2, 100.0), (6.60, 100.0), (3.60, 100.0), (1.38, 100.0),
        (0.97, 100.0),
    ),
}  # fmt: skip


def by_particles(model: Model, seed: int, **cooling):
    found = tempered_smc(*model.parts, cooling=Cooling(**cooling), random_state=seed, warn=False)
    return found.log_z, found.log_z_se, found.n_evaluations, bool(found.diagnose())


def by_annealing(model: Model, seed: int):
    found = log_evidence(*model.parts, random_state=seed, warn=False)
    return found.value, found.standard_error, found.samples.n_evaluations, bool(found.samples.diagnose())


def by_bridge(model: Model, seed: int):
    """Chains of a slice sampler begin at particles, so that both modes have some."""
    start = tempered_smc(*model.parts, n_particles=300, random_state=seed, warn=False)
    kernel = mcmc.Slice(lambda x: float(model.log_density(x[None])[0]))
    trace = mcmc.sample(
        kernel, start.x[:4], n_draws=500, n_warmup=100, random_state=seed + 1, warn=False, n_jobs=1
    )  # fmt: skip
    found = bridge_sampling(trace, model.log_density, vectorized=True, warp=True, random_state=seed + 2, warn=False)
    return found.log_z, found.log_z_se, found.n_evaluations, bool(found.diagnose())


METHODS = {
    "smc": by_particles,
    "waste_free": lambda model, seed: by_particles(model, seed, waste_free=True),
    "ais": by_annealing,
    "bridge": by_bridge,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="10 seeds")
    parser.add_argument("--only", nargs="+", choices=METHODS, default=["smc", "waste_free", "ais"])
    parser.add_argument("--models", nargs="+", default=[""], help="words in their names")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    options = parser.parse_args()
    seeds = range(options.first, options.first + (10 if options.quick else 40))
    for method in options.only:
        print(f"\n{method}, {len(seeds)} seeds: rms z and thousands of evaluations of the density")
        titles = (("before", 8), ("now", 8), ("error", 8), ("stated", 8), ("before", 10), ("now", 10), ("warned", 8))
        print(" " * 28 + "".join(f"{title:>{width}s}" for title, width in titles) + "  s/run")
        for make, before in zip(MODELS, BEFORE.get(method, ((np.nan, np.nan),) * len(MODELS))):
            if any(word in make.__name__ for word in options.models):
                row(METHODS[method], make(), seeds, before)


def row(estimate, model: Model, seeds, before) -> None:
    started = time.process_time()
    log_z, stated, evaluations, warned = np.array([estimate(model, seed) for seed in seeds]).T
    seconds = (time.process_time() - started) / len(seeds)
    errors = log_z - model.log_z
    rms = np.sqrt(np.mean(np.square(errors / stated)))
    spread = np.sqrt(np.mean(np.square(errors)))
    print(
        f"{model.name:28s}{before[0]:8.2f}{rms:8.2f}{spread:8.3f}{np.median(stated):8.3f}{before[1]:10.1f}"
        f"{evaluations.mean() / 1000:10.1f}{int(warned.sum()):8d}{seconds:7.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
