"""Methods that find a sparse code of few measurements, one row at a time, to compare with."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.factors.dictionaries.sensing.baselines.basis_pursuit import BasisPursuit
    from pluri.factors.dictionaries.sensing.baselines.fast_bcs import FastBCS
    from pluri.factors.dictionaries.sensing.baselines.greedy import LarsLasso, MatchingPursuit, StOMP
    from pluri.factors.dictionaries.sensing.baselines.interface import sparse_codes
    from pluri.factors.dictionaries.sensing.baselines.variational_bcs import VariationalBCS

__all__ = ["BasisPursuit", "FastBCS", "LarsLasso", "MatchingPursuit", "StOMP", "VariationalBCS", "sparse_codes"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "basis_pursuit": ["BasisPursuit"],
        "fast_bcs": ["FastBCS"],
        "greedy": ["LarsLasso", "MatchingPursuit", "StOMP"],
        "interface": ["sparse_codes"],
        "variational_bcs": ["VariationalBCS"],
    },
)
