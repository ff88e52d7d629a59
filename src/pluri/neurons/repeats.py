"""Several simulations at once, each on a thread of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from joblib import Parallel, delayed

from pluri.neurons.result import SimulationResult, result_of
from pluri.neurons.simulation import Simulation
from pluri.neurons.tree.errors import SimulationError
from pluri.validation import Number

#: Seconds of work from which threads pay; to start them takes some hundredths
#: (``python benchmarks/peers/neurons.py --run "two threads"``).
WORTH_THREADS = 0.3


def run_all(simulations: Sequence[Simulation], duration: float, n_jobs: int | None = None) -> list[SimulationResult]:
    """Run simulations side by side, such as repeats with different random states.

    The compiled loops let other threads run: several are moved on at the same time. Each gives what it gives
    alone. The first steps of the first one tell how much work there is; below a third of a second all run on this
    thread, since it would take longer to start others.

    Parameters
    ----------
    simulations : sequence of Simulation
        All different.
    duration : float
        In ms.
    n_jobs : int or None, default=None
        Number of threads, as in joblib.

    Returns
    -------
    list of SimulationResult

    Examples
    --------
    >>> from pluri.neurons import Simulation, run_all
    >>> def poisson(seed):
    ...     sim = Simulation(random_state=seed)
    ...     _ = sim.create("random_spikes", "/source", rate=100.0)
    ...     return sim
    >>> results = run_all([poisson(seed) for seed in range(3)], 200.0, n_jobs=2)
    >>> len({len(result.spikes("/source")) for result in results}) > 1
    True
    """
    if len({id(one) for one in simulations}) < len(simulations):
        raise ValueError("simulations must all be different: one cannot run on two threads")
    if not Number(least=0).holds(duration):
        raise SimulationError(f"duration must be {Number(least=0)}, got {duration!r}")
    begins = [one.n_steps for one in simulations]
    ends = [begin + math.floor(float(duration) / one.dt + 0.5) for begin, one in zip(begins, simulations)]

    def finish(one: Simulation, begin: int, end: int) -> SimulationResult:
        one.step(end - one.n_steps)
        return result_of(one, begin)

    if n_jobs not in (None, 1) and simulations and _work(simulations[0], ends[0]) * len(simulations) < WORTH_THREADS:
        n_jobs = 1
    jobs = [delayed(finish)(*each) for each in zip(simulations, begins, ends)]
    return list(Parallel(n_jobs=n_jobs, prefer="threads")(jobs))


def _work(simulation: Simulation, end: int) -> float:
    """Seconds that a simulation will take, from its next steps, which are made."""
    n_steps = end - simulation.n_steps
    simulation.step(min(n_steps, 1))  # compiles, if that is still to be done
    tried = min(n_steps // 20, 400)
    began = time.perf_counter()
    simulation.step(tried)
    return (time.perf_counter() - began) / tried * n_steps if tried else 0.0
