"""Several simulations at once, each on a thread of its own."""

from __future__ import annotations

from collections.abc import Sequence

from joblib import Parallel, delayed

from pluri.neurons.result import SimulationResult
from pluri.neurons.simulation import Simulation


def run_all(simulations: Sequence[Simulation], duration: float, n_jobs: int | None = None) -> list[SimulationResult]:
    """Run simulations side by side, such as repeats with different random states.

    The compiled loops let other threads run: several are moved on at the same time. Each gives what it gives
    alone.

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
    # The first one compiles, if that is still to be done, while the others would only wait.
    return list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one.run)(duration) for one in simulations))
