"""Flows of several tasks, whose regions share regressions, and the way from one task into another."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.dynamics.regions.learning import PARAMETERS, LearnsFlows
from pluri.dynamics.regions.rollouts import HandOver, handed_over, handed_over_where_probable, mean_path
from pluri.dynamics.regions.spaces import to_space
from pluri.priors import Gamma
from pluri.validation import Allowed, Number, Only, Whole, check_count, check_value, restored_on_failure

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class SharedRegimes(NamedTuple):
    """Regimes that two tasks both use, most shared first.

    Attributes
    ----------
    regimes : (n,): columns of ``regime_usage_``
    shares : (n, 2): the share of the steps of each of the two tasks that they have
    """

    regimes: Integers
    shares: Array


class MultiTaskDynamics(LearnsFlows):
    """Flows of several tasks (motions, subjects) that share their regimes.

    As in `LatentDynamics` the region that a path is in decides how it goes on. Each task has its own regions, but the
    matrices that regions point to are common to all tasks: what one task shows about a regime, the others know, and a
    path can pass from one task into another where both have the same regime.

    Parameters
    ----------
    n_regimes : int, default=80
        Largest number of regimes, which all tasks share.
    n_regions : int, default=40
        Largest number of regions of each task.
    fit_intercept : bool, default=True
        Whether steps are linear functions with a constant.
    concentration, regime_concentration : float, `pluri.priors.Gamma` prior or "learn", default="learn"
        Of the Dirichlet processes of regions and of regimes; "learn" is Gamma(1, 1).
    relevance_prior, noise_prior, embedding
        See `LatentDynamics`.
    n_draws, n_warmup : int, default=100 and 200
        Draws of each chain, and sweeps before them.
    thin : int, default=1
        Sweeps from one draw to the next.
    n_chains : int, default=1
        Chains. The first begins with regions of k-means of rows and steps, those after it about random rows.
    n_predictive : int, default=20
        Draws, of all chains together, that predictions average over.
    n_jobs : int or None, default=None
        Chains run at a time, in threads.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    tasks_ : array of shape (n_tasks,)
        Names of the tasks, sorted.
    regime_usage_ : array of shape (n_tasks, n_regimes)
        Share of the steps of each task that each regime has, over the kept draws; the largest of the best draw is
        regime 0.
    trace_ : `pluri.inference.mcmc.Trace`
        Numbers of regions and regimes, noise, relevances and concentrations by chain and draw.
    weights_, centers_, precisions_, matrices_, intercepts_, regimes_, draw_index_, task_index_ : arrays
        See `LatentDynamics`.
    noise_variances_ : array of shape (n_kept, n_tasks)
    n_active_regimes_, n_active_regions_, n_iter_, n_features_in_ : int
        See `LatentDynamics`; regions are those of all tasks.
    log_likelihood_ : float
    converged_ : bool

    Examples
    --------
    Two tasks that turn alike on the left and differ on the right:

    >>> from pluri.datasets import make_switching_flow
    >>> from pluri.dynamics import MultiTaskDynamics
    >>> data = make_switching_flow(random_state=0)
    >>> model = MultiTaskDynamics(10, 10, n_warmup=50, n_draws=50, random_state=0).fit(data.X, tasks=data.tasks)
    >>> model.regime_usage_.shape[0]
    2
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {**PARAMETERS, "n_regions": Whole(1)}

    def __init__(
        self,
        n_regimes: int = 80,
        n_regions: int = 40,
        *,
        fit_intercept: bool = True,
        concentration: float | Gamma | str = "learn",
        regime_concentration: float | Gamma | str = "learn",
        relevance_prior: Gamma | None = None,
        noise_prior: Gamma | None = None,
        embedding: Any = None,
        n_draws: int = 100,
        n_warmup: int = 200,
        thin: int = 1,
        n_chains: int = 1,
        n_predictive: int = 20,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_regimes = n_regimes
        self.n_regions = n_regions
        self.fit_intercept = fit_intercept
        self.concentration = concentration
        self.regime_concentration = regime_concentration
        self.relevance_prior = relevance_prior
        self.noise_prior = noise_prior
        self.embedding = embedding
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.thin = thin
        self.n_chains = n_chains
        self.n_predictive = n_predictive
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
    ) -> Self:
        """Learn the flows of sequences.

        After Ctrl-C the model is that of the draws so far, with a warning.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
            Coordinates. Steps from or to a row with a missing value (NaN) are left out.
        y : ignored
            For scikit-learn; a program written for hmmlearn may pass `lengths` here.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X, which sum to n_samples; one sequence if neither `lengths` nor `groups` is
            given. No step leads from one sequence to the next.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`.
        tasks : array of shape (n_sequences,), optional
            The task of each sequence, an integer or a name; one for each row is taken too, if it does not change
            within a sequence. None is one task.

        Returns
        -------
        self : object
        """
        with restored_on_failure(self):
            self._learn(X, y, lengths, groups, tasks, int(self.n_regions) if Whole(1).holds(self.n_regions) else 1)
        return self

    def shared_atoms(self, task_a: Any, task_b: Any, *, min_share: float = 0.01) -> SharedRegimes:
        """Regimes that two tasks both use.

        Parameters
        ----------
        task_a, task_b : names of tasks
        min_share : float, default=0.01
            Share of the steps of a task, over the kept draws, from which on it uses a regime.

        Returns
        -------
        SharedRegimes
            With fields ``regimes`` and ``shares``, those first whose smaller share is largest.
        """
        check_value(min_share, "min_share", Number(least=0, most=1))
        usage = self.regime_usage_[[self._task(task_a, "task_a"), self._task(task_b, "task_b")]].T
        order = np.argsort(-usage.min(axis=1), kind="stable")
        chosen = order[usage[order].min(axis=1) > min_share]
        return SharedRegimes(chosen.astype(np.int64), usage[chosen])

    def hand_over(
        self,
        x0: ArrayLike,
        task_a: Any,
        task_b: Any,
        n_steps: int,
        *,
        meet: str = "regime",
        n_blend: int = 0,
        space: str = "latent",
    ) -> HandOver:
        """Go on from a row with one task, and then with another.

        Parameters
        ----------
        x0 : array of shape (n_features,)
            The row to begin with, which is not part of the path.
        task_a, task_b : names of tasks
        n_steps : int
        meet : {"regime", "density"}, default="regime"
            Where the path passes over. "regime": before the first step at which, in more than half of the kept draws,
            both tasks have more than half of their weight at the place of the path on the same regime; a warning says
            if that never happens. "density": from the row of its first half at which the path is most probable under
            the other task, which is also there for tasks that have nothing in common.
        n_blend : int, default=0
            Rows after the hand-over in which the first task goes on, and fades into the second; with none there is a
            jump if the tasks lie apart.
        space : {"latent", "data"}, default="latent"
            What `x0` and the path are: coordinates, or rows of data, which `embedding` translates.

        Returns
        -------
        HandOver
            With fields ``path``, ``switched_at`` and ``regime``.
        """
        check_count(n_steps, "n_steps")
        check_count(n_blend, "n_blend", least=0)
        check_value(meet, "meet", Only("regime", "density"))
        flows = [self._flow(self._task(task, name)) for task, name in ((task_a, "task_a"), (task_b, "task_b"))]
        passing = handed_over if meet == "regime" else handed_over_where_probable
        begin = self._row(x0, space)
        found = passing(flows[0], flows[1], begin, n_steps, self._bounds())
        path = to_space(self, found.path, space)
        if found.switched_at is None:
            warnings.warn(
                f"the path never came to a regime that {task_a!r} and {task_b!r} share there: it is one of {task_a!r} "
                "all the way; meet='density' passes over in any case",
                UserWarning,
                stacklevel=2,
            )
        elif n_blend:
            at = found.switched_at
            last = found.path[at - 1] if at else begin
            n = min(int(n_blend), n_steps - at)
            going_on = to_space(self, mean_path(flows[0], last, n, self._bounds()), space)
            share = (np.arange(1, n + 1) / (n_blend + 1))[:, None]
            path[at : at + n] = (1 - share) * going_on + share * path[at : at + n]
        return found._replace(path=path)
