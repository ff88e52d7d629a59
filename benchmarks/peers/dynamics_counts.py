"""How long EM iterations of count dynamical systems take: 80 neurons, 56 sequences of 21 steps, 5 hidden dimensions.

    python benchmarks/peers/dynamics_counts.py              # a minute
    python benchmarks/peers/dynamics_counts.py --quick      # the Poisson system alone

No other library that installs today has these models (`ssm` and `pylds` do not; dynamax has no Poisson system that is
learned), so that there is no ratio: CPU and wall seconds of an iteration (E-step and M-step), after the first.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from pluri.dynamics import CountDynamicalSystem, PoissonDynamicalSystem

N_NEURONS, N_SEQUENCES, N_STEPS, N_STATES = 80, 56, 21, 5


def simulate(seed: int = 0) -> np.ndarray:
    """Poisson counts of rates between 0.1 and 3 or so: (56, 21, 80)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N_SEQUENCES, N_STEPS, N_STATES))
    for t in range(1, N_STEPS):
        x[:, t] = 0.95 * x[:, t - 1] + np.sqrt(1 - 0.95**2) * x[:, t]
    C, d = 0.4 * rng.normal(size=(N_NEURONS, N_STATES)), rng.uniform(-1.0, 0.5, N_NEURONS)
    return np.minimum(rng.poisson(np.exp(x @ C.T + d)), 10).astype(float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    trials = list(simulate())
    cases = {"PoissonDynamicalSystem": PoissonDynamicalSystem, "... inference='laplace'": PoissonDynamicalSystem}
    if not options.quick:
        cases |= {f"CountDynamicalSystem {kind!r}": CountDynamicalSystem for kind in ("full", "simple", "linear")}
    for name, kind in cases.items():
        settings = {"inference": "laplace"} if "laplace" in name else {}
        if kind is CountDynamicalSystem:
            settings["observation"] = name.split("'")[1]
        model = kind(N_STATES, max_iter=1, tol=0.0, warm_start=True, random_state=0, **settings).fit(trials)
        model.set_params(max_iter=4)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(trials)
        wall, cpu = (time.perf_counter() - wall) / 4, (time.process_time() - cpu) / 4
        print(f"{name:32s} an EM iteration {cpu:6.3f} CPU s   {wall:6.3f} s", flush=True)


if __name__ == "__main__":
    main()
