"""Switching systems: linear dynamics whose matrices follow a hidden Markov chain."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.dynamics.switching.examples import make_maneuvering_target, make_slds_random
    from pluri.dynamics.switching.known import SwitchingLinearModel, regime_probabilities
    from pluri.dynamics.switching.rao_blackwell import RaoBlackwellResult, rao_blackwell_filter

__all__ = [
    "RaoBlackwellResult",
    "SwitchingLinearModel",
    "make_maneuvering_target",
    "make_slds_random",
    "rao_blackwell_filter",
    "regime_probabilities",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "examples": ["make_maneuvering_target", "make_slds_random"],
        "known": ["SwitchingLinearModel", "regime_probabilities"],
        "rao_blackwell": ["RaoBlackwellResult", "rao_blackwell_filter"],
    },
)
