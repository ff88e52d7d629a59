"""The script language: whole files are parsed before a line runs, errors name their place, and nothing is evaluated.

`Interpreter` runs scripts on a `Simulation`; `ScriptError` tells file, line, column, the offending word and the nearest
known one; `Limits` bounds what a script may do.
"""

from pluri.neurons.language.interpreter import Interpreter
from pluri.neurons.language.limits import Limits
from pluri.neurons.language.places import Place, ScriptError

__all__ = ["Interpreter", "Limits", "Place", "ScriptError"]
