"""Hidden Markov models: one core, six families, and what surrounds them.

Each model is hmmlearn's in names and attributes, and more: missing values, weights, lists of sequences, files larger
than memory, several threads, and a prior that keeps the states distinct.
"""

from pluri.sequences.bernoulli import BernoulliHMM
from pluri.sequences.categorical import CategoricalHMM
from pluri.sequences.gaussian import GaussianHMM
from pluri.sequences.gmm import GMMHMM
from pluri.sequences.hmm import DeadStateWarning, HiddenMarkovModel
from pluri.sequences.monitor import ConvergenceMonitor
from pluri.sequences.multinomial import MultinomialHMM
from pluri.sequences.online import OnlineFilter
from pluri.sequences.poisson import PoissonHMM

__all__ = [
    "GMMHMM",
    "BernoulliHMM",
    "CategoricalHMM",
    "ConvergenceMonitor",
    "DeadStateWarning",
    "GaussianHMM",
    "HiddenMarkovModel",
    "MultinomialHMM",
    "OnlineFilter",
    "PoissonHMM",
]
