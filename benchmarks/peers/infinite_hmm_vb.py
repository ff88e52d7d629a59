"""A sweep of the variational infinite hidden Markov model beside a sweep of EM with as many states, on one thread.

    python benchmarks/peers/infinite_hmm_vb.py [--quick]

Both go once through the same Gaussian rows (full covariances) and update all parameters; the shortest of several sweeps
of each, taken in turn, in CPU seconds. The sweep of EM is that of `GaussianHMM`, of which `benchmarks/peers/hmm.py`
tells how it compares with other libraries.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from pluri.engine import Batch  # noqa: E402
from pluri.sequences import GaussianHMM  # noqa: E402
from pluri.sequences.infinite.families import learn_model  # noqa: E402
from pluri.sequences.infinite.transitions import Hyperparameters, HyperPriors  # noqa: E402
from pluri.sequences.infinite.variational_problem import VariationalInfiniteHMM  # noqa: E402
from pluri.sequences.infinite.variational_start import FIRST_STEPS, first_beliefs  # noqa: E402
from pluri.sequences.learning import ChainPrior, HiddenMarkovProblem  # noqa: E402


def compare(n_steps: int, n_states: int, repeats: int) -> None:
    """Print one line."""
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(n_states, size=n_steps // 20), 20)
    X = 4.0 * rng.normal(size=(n_states, 4))[states] + rng.normal(size=(len(states), 4))
    batch = Batch(X, [len(X)])
    model = learn_model("gaussian", None, X, np.array([0, len(X)]))
    problem = VariationalInfiniteHMM(model, Hyperparameters(3.0, 5.0, 0.5), HyperPriors())
    first = X[:FIRST_STEPS]
    beliefs = first_beliefs(problem, first, np.array([0, len(first)]), n_states, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        emission, parameters = GaussianHMM(n_states, "full", n_iter=1, random_state=0).fit(X)._model()
    plain = HiddenMarkovProblem(n_states, emission, ChainPrior())
    sweeps = (
        lambda: plain.maximize(plain.expect(parameters, batch), parameters),
        lambda: problem.maximize(problem.expect(beliefs, batch), beliefs),
    )
    seconds = np.full(2, np.inf)
    for _ in range(repeats + 1):  # the first one compiles
        for place, sweep in enumerate(sweeps):
            began = time.process_time()
            sweep()
            seconds[place] = min(seconds[place], time.process_time() - began)
    em, vb = 1e3 * seconds
    print(
        f"{len(X):7} x 4, {n_states:3} states: EM {em:7.0f} ms, variational {vb:7.0f} ms, {vb / em:.2f} times as long"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    for n_steps, n_states in [(10_000, 10)] if quick else [(10_000, 10), (100_000, 10), (100_000, 50)]:
        compare(n_steps, n_states, 2 if quick else 5)


if __name__ == "__main__":
    main()
