"""Variational Bayes for dictionaries: codes in a known one, and dictionaries that are learned."""

from pluri.factors.dictionaries.variational.fitting import fit
from pluri.factors.dictionaries.variational.recovery import RecoveredCodes, recover_codes

__all__ = ["RecoveredCodes", "fit", "recover_codes"]
