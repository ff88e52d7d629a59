"""hmmlearn's convergence monitor: a record of the objective that a program may subclass to stop EM its own way."""

from __future__ import annotations

from collections import deque


class ConvergenceMonitor:
    """Collects the objective of each iteration.

    To stop EM by a rule of your own, subclass it, override `converged`, and set the model's ``monitor_`` before `fit`.

    Parameters
    ----------
    tol : float
        EM has converged when the objective gains less than this.
    n_iter : int
        Largest number of iterations.
    verbose : bool
        Kept for compatibility; progress is shown by the model.

    Examples
    --------
    >>> from pluri.sequences import ConvergenceMonitor
    >>> monitor = ConvergenceMonitor(tol=0.1, n_iter=10, verbose=False)
    >>> for objective in (-5.0, -4.0, -3.95):
    ...     monitor.report(objective)
    >>> monitor.converged, monitor.iter
    (True, 3)
    """

    def __init__(self, tol: float, n_iter: int, verbose: bool) -> None:
        self.tol = tol
        self.n_iter = n_iter
        self.verbose = verbose
        self.history: deque[float] = deque()
        self.iter = 0

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(history={list(self.history)}, iter={self.iter}, n_iter={self.n_iter}, "
            f"tol={self.tol}, verbose={self.verbose})"
        )

    def _reset(self) -> None:
        self.iter = 0
        self.history.clear()

    def report(self, log_prob: float) -> None:
        """Add the objective of one more iteration."""
        self.history.append(log_prob)
        self.iter += 1

    @property
    def converged(self) -> bool:
        """Whether EM should stop."""
        if self.iter == self.n_iter:
            return True
        return len(self.history) >= 2 and self.history[-1] - self.history[-2] < self.tol
