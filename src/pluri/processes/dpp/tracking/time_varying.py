r"""Determinantal point processes whose items change from one time step to the next, followed by sequential Monte Carlo.

At every time step t the subsets have the distribution :math:`P_t(x) = \det(L_{t,x}) / \det(L_t + I)` over the items of
that moment. Between time steps only a few items change, so that weighted subsets of the last time step can be carried
to the next one for less than fresh draws cost: projected on the items that stay, weighted by the ratio of the two
marginal distributions, extended by an exact draw of the items that are new, resampled when the weights have become
uneven, and moved. See :mod:`pluri.processes.dpp.tracking.tracker` for the formulas.

References
----------
.. [1] P. Del Moral, A. Doucet and A. Jasra, "Sequential Monte Carlo samplers", JRSS B 68, 2006.
.. [2] A. Kulesza and B. Taskar, "Determinantal point processes for machine learning", Foundations and Trends in Machine
   Learning 5, 2012.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from pluri.inference.smc.resampling import check_method
from pluri.processes.dpp.kernel_forms import Array
from pluri.processes.dpp.tracking.answers import Follower
from pluri.processes.dpp.tracking.changes import TrackerSettings
from pluri.processes.dpp.tracking.state import Stamp
from pluri.processes.dpp.tracking.stream import SubsetStream
from pluri.processes.dpp.tracking.tracker import Tracker
from pluri.validation import Allowed, Number, Only, RandomState, Whole, check_parameters


class TimeVaryingDPP(SubsetStream):
    r"""Diverse subsets of items that come, go and change: weighted subsets that follow the process through time.

    Parameters
    ----------
    n_particles : int, default=100
        Number of weighted subsets.
    ess_threshold : float, default=0.5
        Resample when the effective sample size is below this share of the particles.
    weights : {"marginal", "slot"}, default="marginal"
        What happens to an item whose content changed. With "marginal" the old content leaves and the new one enters by
        an exact draw: low variance, and subsets that were impossible before are reached. With "slot" the place in the
        subset is kept and the weight is multiplied by the ratio of the determinants, the published rule. Items whose
        ids come or go, or that become possible (L_ii > 0) or impossible, are always treated by the exact rule.
    n_moves : int or "auto", default="auto"
        Moves of each particle at each time step. "auto" makes one for every ten items (one for every item after
        resampling, when many particles are copies), and goes on until the mean size of the subsets agrees with the
        exact one within three standard errors, up to two moves for every item.
    move : {"heat_bath", "metropolis"}, default="heat_bath"
        How a proposal to add or drop an item is accepted; Metropolis is made lazy.
    init : {"exact", "mcmc"}, default="exact"
        How subsets are drawn at the first time step and after a restart: independently by eigenvectors, or along a
        chain.
    resampling : {"systematic", "stratified", "residual", "multinomial"}, default="systematic"
    expected_size : float, optional
        Scale the kernel at each time step so that a subset has this many items on average. It costs the eigenvalues of
        the kernel at each time step.
    psd_repair : {"raise", "clip", "shift"}, default="raise"
        What to do with a whole kernel that is not positive semi-definite.
    restart_fraction : float, default=0.5
        Draw anew when more than this share of the items is replaced at once.
    on_collapse : {"restart", "raise"}, default="restart"
        What to do when all particles have become impossible; only the slot rule can come to this.
    kernel : {"cosine", "exponential_cosine", "linear", "rbf"} or callable, default="cosine"
        Kernel of features, for `update`. A callable takes two sets of rows and gives the matrix between them; what it
        gives is checked at every time step, at the cost of a factorisation.
    kernel_params : dict, optional
        Parameters of a kernel given by name: ``alpha`` of "exponential_cosine", ``length_scale`` of "rbf".
    random_state : int, Generator, RandomState or None
    verbose : int, default=0
        1 shows progress of `fit`.

    Attributes
    ----------
    particles_ : list of tuples
        Ids of the items of each subset.
    weights_ : ndarray (n_particles,)
    item_ids_ : tuple
        Ids of the present items; `inclusion_probabilities` are in this order.
    ess_ : float
        Effective sample size after the last weighing, before any resampling.
    ess_history_ : list of float
    resampled_at_, restarts_ : list of int
        Time steps, from 0, at which the particles were resampled, or drawn anew.
    log_normalizer_ratio_, log_normalizer_ratio_exact_ : float
        Change of ``log det(L + I)`` at the last time step: as the particles estimate it, and computed (NaN above 2000
        items). At the first time step it is the log normaliser itself.
    log_normalizer_ : float
        Estimate of ``log det(L + I)``: the sum of the ratios.
    expected_size_ : float
        Exact mean size of a subset; NaN above 2000 items.
    history_ : list of Stamp
        One record for each time step: numbers of items and changes, effective sample size, moves, sizes, seconds.

    Notes
    -----
    The subsets of successive time steps resemble each other, so that a front page changes little. This is a property of
    the sampler and not of the model, in which the time steps are independent: particles keep what the moves do not
    change. With ``n_moves=0`` nothing but the changed items changes; with about as many moves as items the resemblance
    falls to that of independent draws. Too few moves, on the other hand, let errors persist.

    A time step costs :math:`O(P (k^2 n + k n^2 + n^3))` for P particles of k items and n changed ones. Independent
    draws cost an eigendecomposition, :math:`O(M^3)` for M items, and :math:`O(P k^3)`: they are the alternative
    (`SeparateDPP`) when many items change.

    A time step that fails, or is interrupted, leaves the estimator as it was.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.tracking.time_varying import TimeVaryingDPP
    >>> rng = np.random.default_rng(0)
    >>> front_page = TimeVaryingDPP(n_particles=50, kernel="cosine", random_state=0)
    >>> first = front_page.update(["a", "b", "c", "d"], rng.normal(size=(4, 3)))
    >>> second = front_page.update(["e"], rng.normal(size=(1, 3)), leaving=["b"])
    >>> len(second), front_page.item_ids_, len(front_page.history_)
    (50, ('a', 'e', 'c', 'd'), 2)
    >>> bool(np.abs(front_page.inclusion_probabilities() - front_page.inclusion_probabilities(exact=True)).max() < 0.2)
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_particles": Whole(1),
        "n_moves": Whole(0) | Only("auto"),
        "ess_threshold": Number(least=0, most=1),
        "restart_fraction": Number(least=0, most=1),
        "weights": Only("marginal", "slot"),
        "move": Only("heat_bath", "metropolis"),
        "init": Only("exact", "mcmc"),
        "on_collapse": Only("restart", "raise"),
    }

    def __init__(
        self,
        n_particles: int = 100,
        ess_threshold: float = 0.5,
        weights: str = "marginal",
        n_moves: int | str = "auto",
        move: str = "heat_bath",
        init: str = "exact",
        resampling: str = "systematic",
        expected_size: float | None = None,
        psd_repair: str = "raise",
        restart_fraction: float = 0.5,
        on_collapse: str = "restart",
        kernel: str | Callable[..., Any] = "cosine",
        kernel_params: Mapping[str, Any] | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_particles = n_particles
        self.ess_threshold = ess_threshold
        self.weights = weights
        self.n_moves = n_moves
        self.move = move
        self.init = init
        self.resampling = resampling
        self.expected_size = expected_size
        self.psd_repair = psd_repair
        self.restart_fraction = restart_fraction
        self.on_collapse = on_collapse
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.random_state = random_state
        self.verbose = verbose

    @property
    def log_normalizer_ratio_exact_(self) -> float:
        """Change of the log normaliser at the last time step, computed."""
        return self._latest().log_normalizer_ratio_exact

    @property
    def log_normalizer_ratio_(self) -> float:
        """Change of the log normaliser at the last time step, as the particles estimate it."""
        return self._latest().log_normalizer_ratio

    @property
    def log_normalizer_(self) -> float:
        """Estimate of the log normaliser: the sum of the estimated ratios."""
        self._present()
        return math.fsum(stamp.log_normalizer_ratio for stamp in self.history_)

    @property
    def ess_(self) -> float:
        """Effective sample size after the last weighing, before any resampling."""
        return self._latest().ess

    @property
    def ess_history_(self) -> list[float]:
        """Effective sample size at each time step."""
        return [stamp.ess for stamp in self.history_]

    @property
    def resampled_at_(self) -> list[int]:
        """Time steps at which the particles were resampled."""
        return [t for t, stamp in enumerate(self.history_) if stamp.resampled]

    @property
    def restarts_(self) -> list[int]:
        """Time steps, after the first, at which the particles were drawn anew."""
        return [t for t, stamp in enumerate(self.history_) if stamp.restarted]

    def _latest(self) -> Stamp:
        self._present()
        return self.history_[-1]

    def _begin(self, kernel: Array, n_items: int, rng: np.random.Generator) -> Follower:
        tracker = Tracker(kernel, n_items, self._settings(), rng)
        expected = tracker.expected_size
        if expected < 0.5 or expected > 0.9 * n_items:
            warnings.warn(
                f"subsets have {expected:.3g} of {n_items} items on average: set expected_size to the number wanted",
                UserWarning,
                stacklevel=4,
            )
        return tracker

    def _settings(self) -> TrackerSettings:
        """The parameters, checked."""
        check_parameters(self)
        check_method(self.resampling, "resampling")
        return TrackerSettings(
            int(self.n_particles),
            float(self.ess_threshold),
            self.n_moves if self.n_moves == "auto" else int(self.n_moves),
            self.move == "metropolis",
            self.resampling,
            self.init,
            float(self.restart_fraction),
            self.on_collapse == "restart",
        )

    def _is_by_slot(self) -> bool:
        return self.weights == "slot"
