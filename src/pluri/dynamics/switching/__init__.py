"""Switching systems: linear dynamics whose matrices follow a hidden Markov chain."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.dynamics.switching.known import (
        SwitchingLinearModel,
        make_maneuvering_target,
        make_slds_random,
        regime_probabilities,
    )
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
        "known": ["SwitchingLinearModel", "make_maneuvering_target", "make_slds_random", "regime_probabilities"],
        "rao_blackwell": ["RaoBlackwellResult", "rao_blackwell_filter"],
    },
)
