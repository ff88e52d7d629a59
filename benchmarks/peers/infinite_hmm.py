"""The samplers of the infinite hidden Markov model: seconds of a sweep, beside a sweep of EM of the same size.

No other library that still installs samples this model, so that the measure is our own EM: 100,000 steps of four
Gaussian columns, the weak limit with 50 states against `GaussianHMM` with 50 states and full covariances; and a beam
sweep of as many steps with twenty states in use. Times are those of the processor, the least of several sweeps, and
the two of a ratio are taken in turn.

    python benchmarks/peers/infinite_hmm.py           # about two minutes
    python benchmarks/peers/infinite_hmm.py --quick   # a tenth of the steps
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
import warnings

import numpy as np

from pluri.sequences import GaussianHMM
from pluri.sequences.infinite.beam import BeamSampler
from pluri.sequences.infinite.direct import DirectSampler
from pluri.sequences.infinite.families import learn_model
from pluri.sequences.infinite.fitting import CONCENTRATION, STICKINESS, WEIGHT_CONCENTRATION
from pluri.sequences.infinite.state_posterior import as_position
from pluri.sequences.infinite.transitions import Hyperparameters, HyperPriors
from pluri.sequences.infinite.weak_limit import WeakLimitSampler

N_REPEATS = 5
N_STATES = 20
HYPER = Hyperparameters(5.0, 3.0, 0.5)
PRIORS = HyperPriors(CONCENTRATION, WEIGHT_CONCENTRATION, STICKINESS)


def simulate(n_steps: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Twenty states that last about twenty steps each, on four columns."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(0.0, 5.0, size=(N_STATES, 4))
    lengths = rng.geometric(0.05, size=n_steps)
    states = np.repeat(rng.integers(N_STATES, size=n_steps), lengths)[:n_steps]
    return centers[states] + rng.normal(size=(n_steps, 4)), states


def seconds(run: object, *arguments: object) -> float:
    begin = time.process_time()
    run(*arguments)  # type: ignore[operator]
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    n_steps = 10_000 if parser.parse_args().quick else 100_000
    warnings.simplefilter("ignore")
    X, states = simulate(n_steps)
    offsets = np.array([0, n_steps])
    rng = np.random.default_rng(1)
    labels = np.unique(states, return_inverse=True)[1].astype(np.int64)
    shares = np.bincount(labels) / n_steps
    model = learn_model("gaussian", None, X, offsets)

    beam = BeamSampler(model, X, offsets, HYPER, PRIORS)
    state = beam.init(rng, as_position(labels, np.append(shares * 0.95, 0.05), HYPER))
    direct = DirectSampler(model, X, offsets, HYPER, PRIORS)
    collapsed = direct.init(rng, state.position)
    weak = WeakLimitSampler(model, X, offsets, HYPER, PRIORS, 50)
    wide = weak.init(rng, weak.sample_start(rng, 50))
    em = GaussianHMM(50, covariance_type="full", n_iter=1, tol=-np.inf, random_state=0, init_params="")
    start = GaussianHMM(50, covariance_type="full", n_iter=1, tol=-np.inf, random_state=0).fit(X)
    em.startprob_, em.transmat_, em.means_, em.covars_ = start.startprob_, start.transmat_, start.means_, start.covars_
    times: dict[str, list[float]] = {"beam": [], "direct": [], "weak limit": [], "EM": []}
    for _ in range(N_REPEATS):
        times["EM"].append(seconds(em.fit, X))
        times["weak limit"].append(seconds(weak.step, rng, wide))
        times["beam"].append(seconds(beam.step, rng, state))
        times["direct"].append(seconds(direct.step, rng, collapsed))
    _, info = beam.step(rng, state)
    best = {name: min(values) for name, values in times.items()}
    print(f"{n_steps} steps of four Gaussian columns; seconds of one sweep, the least of {N_REPEATS}")
    print(f"EM, 50 states                {best['EM']:8.3f}")
    print(f"weak limit, 50 states        {best['weak limit']:8.3f}   {best['weak limit'] / best['EM']:.2f} x EM")
    print(
        f"beam, {N_STATES} states in use      {best['beam']:8.3f}   {info['n_sticks']:.0f} sticks, "
        f"{info['pairs_per_step']:.1f} pairs a step"
    )
    print(f"direct, {N_STATES} states in use    {best['direct']:8.3f}")


if __name__ == "__main__":
    main()
