"""What every estimator offers that was learned by sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pluri.inference.mcmc.trace import Trace


class Sampled:
    """Estimator whose draws are the attribute ``trace_``, a :class:`pluri.inference.mcmc.Trace`."""

    trace_: Trace

    def to_arviz(self, log_likelihood: Any = None, posterior_predictive: Any = None, observed_data: Any = None) -> Any:
        """Draws and statistics of the chains for ArviZ: ``InferenceData`` up to version 0.23, later a ``DataTree``.

        Parameters
        ----------
        log_likelihood, posterior_predictive : callable, str, or dict of arrays, optional
            Further groups; see :meth:`pluri.inference.mcmc.Trace.to_arviz`.
        observed_data : dict of arrays, optional
        """
        trace = getattr(self, "trace_", None)
        if trace is None:
            raise AttributeError(
                f"this {type(self).__name__} has no draws: it is not fitted yet, or was not learned by sampling"
            )
        return trace.to_arviz(log_likelihood, posterior_predictive, observed_data)
