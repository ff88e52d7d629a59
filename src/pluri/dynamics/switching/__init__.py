"""Switching systems: linear dynamics whose matrices follow a hidden Markov chain."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.dynamics.switching.estimator import SwitchingDynamicalSystem
    from pluri.dynamics.switching.examples import make_maneuvering_target, make_slds_random
    from pluri.dynamics.switching.fitting import DeadRegimeWarning
    from pluri.dynamics.switching.forecast import LogLikelihood, SwitchingForecast
    from pluri.dynamics.switching.known import SwitchingLinearModel, regime_probabilities
    from pluri.dynamics.switching.online import OnlineSwitchingFilter
    from pluri.dynamics.switching.rao_blackwell import RaoBlackwellResult, rao_blackwell_filter

__all__ = [
    "DeadRegimeWarning",
    "LogLikelihood",
    "OnlineSwitchingFilter",
    "RaoBlackwellResult",
    "SwitchingDynamicalSystem",
    "SwitchingForecast",
    "SwitchingLinearModel",
    "make_maneuvering_target",
    "make_slds_random",
    "rao_blackwell_filter",
    "regime_probabilities",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "estimator": ["SwitchingDynamicalSystem"],
        "examples": ["make_maneuvering_target", "make_slds_random"],
        "fitting": ["DeadRegimeWarning"],
        "forecast": ["LogLikelihood", "SwitchingForecast"],
        "known": ["SwitchingLinearModel", "regime_probabilities"],
        "online": ["OnlineSwitchingFilter"],
        "rao_blackwell": ["RaoBlackwellResult", "rao_blackwell_filter"],
    },
)
