"""Which atoms of a dictionary rows may use: priors of a binary matrix."""

from pluri.factors.dictionaries.usage.beta_process import BetaProcessUsage
from pluri.factors.dictionaries.usage.protocol import UsagePrior

__all__ = ["BetaProcessUsage", "UsagePrior"]
