"""Variational Bayes for dictionaries: codes in a known one, dictionaries that are learned, at once or from a stream."""

from pluri.factors.dictionaries.variational.fitting import fit
from pluri.factors.dictionaries.variational.recovery import RecoveredCodes, recover_codes
from pluri.factors.dictionaries.variational.streaming import StreamedFit

__all__ = ["RecoveredCodes", "StreamedFit", "fit", "recover_codes"]
