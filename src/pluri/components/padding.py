"""The width of arrays over states: the number of states rounded up to whole vector registers."""

from __future__ import annotations

#: Four doubles fill a 256-bit register.
LANES = 4


def padded_width(n_states: int) -> int:
    """Smallest multiple of `LANES` that holds `n_states`."""
    return -(-n_states // LANES) * LANES
