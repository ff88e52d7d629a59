"""Hidden Markov models (one core, six families, and what surrounds them), and kernels that align sequences.

Each hidden Markov model is hmmlearn's in names and attributes, and more: missing values, weights, lists of sequences,
files larger than memory, several threads, and a prior that keeps the states distinct.
"""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names
from pluri.validation.sequences import BoundaryWarning

if TYPE_CHECKING:
    from pluri.sequences.alignment.classification import SequenceSVC
    from pluri.sequences.alignment.covariance import GramCovariance
    from pluri.sequences.alignment.indefinite import IndefiniteKernelWarning
    from pluri.sequences.alignment.kernel import TimeAlignmentKernel
    from pluri.sequences.alignment.regression import SequenceSVR
    from pluri.sequences.alignment.transformers import FrameTransformer, LinearTimeNormalizer
    from pluri.sequences.bernoulli import BernoulliHMM
    from pluri.sequences.categorical import CategoricalHMM
    from pluri.sequences.driven.autoregressive import AutoregressiveHMM
    from pluri.sequences.driven.driven_filter import DrivenFilter
    from pluri.sequences.driven.driven_hmm import DrivenHMM
    from pluri.sequences.driven.effects import TransitionEffects
    from pluri.sequences.driven.regression import RegressionHMM
    from pluri.sequences.fitting import ConvergenceMonitor, DeadStateWarning
    from pluri.sequences.forecasting import StateForecast
    from pluri.sequences.gaussian import GaussianHMM
    from pluri.sequences.gmm import GMMHMM
    from pluri.sequences.hmm import HiddenMarkovModel, TooManyParametersWarning
    from pluri.sequences.infinite.estimator import InfiniteHMM
    from pluri.sequences.labelled.classifier import HMMClassifier
    from pluri.sequences.labelled.sequence_classifier import SequenceClassifier
    from pluri.sequences.multinomial import MultinomialHMM
    from pluri.sequences.online import OnlineFilter
    from pluri.sequences.poisson import PoissonHMM
    from pluri.sequences.sampled.bayesian_categorical import BayesianCategoricalHMM
    from pluri.sequences.sampled.symbol_classes import SymbolClassHMM
    from pluri.sequences.selection.folds import SequenceKFold, sequence_ids
    from pluri.sequences.selection.scorers import log_likelihood_per_sample
    from pluri.sequences.selection.search import HMMSearchCV
    from pluri.sequences.variational.categorical import VariationalCategoricalHMM
    from pluri.sequences.variational.gaussian import VariationalGaussianHMM

__all__ = [
    "GMMHMM",
    "AutoregressiveHMM",
    "BayesianCategoricalHMM",
    "BernoulliHMM",
    "BoundaryWarning",
    "CategoricalHMM",
    "ConvergenceMonitor",
    "DeadStateWarning",
    "DrivenFilter",
    "DrivenHMM",
    "FrameTransformer",
    "GaussianHMM",
    "GramCovariance",
    "HMMClassifier",
    "HMMSearchCV",
    "HiddenMarkovModel",
    "IndefiniteKernelWarning",
    "InfiniteHMM",
    "LinearTimeNormalizer",
    "MultinomialHMM",
    "OnlineFilter",
    "PoissonHMM",
    "RegressionHMM",
    "SequenceClassifier",
    "SequenceKFold",
    "SequenceSVC",
    "SequenceSVR",
    "StateForecast",
    "SymbolClassHMM",
    "TimeAlignmentKernel",
    "TooManyParametersWarning",
    "TransitionEffects",
    "VariationalCategoricalHMM",
    "VariationalGaussianHMM",
    "log_likelihood_per_sample",
    "sequence_ids",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "alignment.classification": ["SequenceSVC"],
        "alignment.covariance": ["GramCovariance"],
        "alignment.indefinite": ["IndefiniteKernelWarning"],
        "alignment.kernel": ["TimeAlignmentKernel"],
        "alignment.regression": ["SequenceSVR"],
        "alignment.transformers": ["FrameTransformer", "LinearTimeNormalizer"],
        "bernoulli": ["BernoulliHMM"],
        "categorical": ["CategoricalHMM"],
        "driven.autoregressive": ["AutoregressiveHMM"],
        "driven.driven_filter": ["DrivenFilter"],
        "driven.driven_hmm": ["DrivenHMM"],
        "driven.effects": ["TransitionEffects"],
        "driven.regression": ["RegressionHMM"],
        "fitting": ["ConvergenceMonitor", "DeadStateWarning"],
        "forecasting": ["StateForecast"],
        "gaussian": ["GaussianHMM"],
        "gmm": ["GMMHMM"],
        "hmm": ["HiddenMarkovModel", "TooManyParametersWarning"],
        "infinite.estimator": ["InfiniteHMM"],
        "labelled.classifier": ["HMMClassifier"],
        "labelled.sequence_classifier": ["SequenceClassifier"],
        "multinomial": ["MultinomialHMM"],
        "online": ["OnlineFilter"],
        "poisson": ["PoissonHMM"],
        "sampled.bayesian_categorical": ["BayesianCategoricalHMM"],
        "sampled.symbol_classes": ["SymbolClassHMM"],
        "selection.folds": ["SequenceKFold", "sequence_ids"],
        "selection.scorers": ["log_likelihood_per_sample"],
        "selection.search": ["HMMSearchCV"],
        "variational.categorical": ["VariationalCategoricalHMM"],
        "variational.gaussian": ["VariationalGaussianHMM"],
    },
)
