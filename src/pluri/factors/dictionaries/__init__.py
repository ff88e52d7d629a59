"""Dictionaries: rows as sums of few of many atoms, with the number of atoms and the noise inferred."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.factors.dictionaries.estimator import BetaProcessDictionary
    from pluri.factors.dictionaries.gibbs import DictionaryGibbs

__all__ = ["BetaProcessDictionary", "DictionaryGibbs"]

__getattr__, __dir__ = lazy_names(__name__, {"estimator": ["BetaProcessDictionary"], "gibbs": ["DictionaryGibbs"]})
