"""A flow learned from one kind of sequences, whose regions have regressions of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from pluri.dynamics.regions.learning import PARAMETERS, LearnsFlows
from pluri.priors import Gamma
from pluri.validation import Allowed, restored_on_failure


class LatentDynamics(LearnsFlows):
    """Flow of paths in a space of coordinates: a mixture of linear steps, chosen by where a path is.

    The next row is a linear function of this one, plus noise; which function depends on the region that this row lies
    in, and regions are Gaussian, as many as are needed. There is no memory beyond the row itself: unlike in a switching
    system the regime does not depend on the one before. Each step is a pair of rows that is modelled by itself.

    Priors are for rows that are centred and divided by one number, so that a change of units changes nothing.

    Parameters
    ----------
    n_regimes : int, default=80
        Largest number of regions. Sampling begins with so many (of ten steps each at least) and empties those that are
        not needed; a region that is empty is rarely filled again.
    fit_intercept : bool, default=True
        Whether steps are linear functions with a constant; without it regions far from the centre of the data bend
        their matrices to have one.
    concentration : float, `pluri.priors.Gamma` prior or "learn", default="learn"
        Of the Dirichlet process of the regions; "learn" is Gamma(1, 1).
    relevance_prior : `pluri.priors.Gamma` prior or None, default=None
        Of the precisions of the columns of the matrices; None is Gamma(1.0, 1.0).
    noise_prior : `pluri.priors.Gamma` prior or None, default=None
        Of the precision of the noise; None is Gamma(1.0, 1e-6).
    embedding : object with ``transform`` and ``inverse_transform``, or None, default=None
        Fitted; translates between rows of data and the coordinates that the flow is learned from, where a method is
        asked for ``space="data"``. `fit` does not use it. scikit-learn's ``clone`` makes an unfitted copy of it, unless
        it is wrapped in ``sklearn.frozen.FrozenEstimator``.
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
    weights_, centers_, precisions_, matrices_, intercepts_, regimes_, draw_index_, task_index_ : arrays
        Regions of the kept draws that have steps: weights, centres and precisions of rows, and the step
        ``matrices_ @ row + intercepts_``; the regime by a name that draws share, the draw and the task of each.
    back_centers_, back_precisions_, back_matrices_, back_intercepts_ : arrays
        The same for the way back, from the end of a step to its start, by which gaps are bridged.
    noise_variances_ : array of shape (n_kept, n_tasks)
    regime_usage_ : array of shape (n_tasks, n_regimes)
        Share of the steps of each task that each regime has, over the kept draws; the largest of the best draw is
        regime 0.
    n_active_regimes_, n_active_regions_ : int
        Most frequent numbers of regimes and regions that have steps.
    tasks_ : array of shape (n_tasks,)
        Names of the tasks; one here.
    trace_ : `pluri.inference.mcmc.Trace`
        Numbers of regions and regimes, noise, relevances and concentrations by chain and draw; its statistic
        ``log_density`` is the log-likelihood of the steps, for rows in units in which they are of order one.
    log_likelihood_ : float
        Highest log-likelihood of the steps of a draw.
    converged_ : bool
    n_iter_ : int
    n_features_in_ : int

    See Also
    --------
    MultiTaskDynamics : several kinds of motion that share regimes.

    Examples
    --------
    Paths around a circle:

    >>> import numpy as np
    >>> from pluri.dynamics import LatentDynamics
    >>> rng = np.random.default_rng(0)
    >>> angle = 0.2 * np.arange(150)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.01 * rng.normal(size=(150, 2))
    >>> model = LatentDynamics(6, random_state=0).fit(X)
    >>> path = model.simulate(100, X[-1])
    >>> bool(np.abs(np.linalg.norm(path, axis=1) - 1).max() < 0.1)
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = PARAMETERS

    def __init__(
        self,
        n_regimes: int = 80,
        *,
        fit_intercept: bool = True,
        concentration: float | Gamma | str = "learn",
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
        self.fit_intercept = fit_intercept
        self.concentration = concentration
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
        """Learn the flow of sequences.

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
        tasks : None
            Several tasks are what `MultiTaskDynamics` is for.

        Returns
        -------
        self : object
        """
        if tasks is not None:
            raise ValueError("tasks must be None for LatentDynamics, which has one; MultiTaskDynamics learns several")
        with restored_on_failure(self):
            self._learn(X, y, lengths, groups, None, None)
        return self
