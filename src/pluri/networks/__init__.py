"""Small recurrent and convolutional networks on JAX that meet their own mistakes, and say what they do not know.

`SequenceDecoder` (from a vector or a sequence to tokens), `FrameTagger` (a label for each frame) and `SequenceParser`
(from sentences to trees) are trained by scheduled sampling and report what they are worth with and without the true
tokens before each. `BiLSTMClassifier` and `TextCNNClassifier` (a class for each text or sequence of tokens) draw their
probabilities by MC dropout, as `MCDropout` does with the networks of other frameworks. Needs
``pip install "pluri[jax]"`` (jax, equinox, optax); schedules and `MCDropout` do not.
"""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.networks.classifiers.bilstm import BiLSTMClassifier
    from pluri.networks.classifiers.predictive import MCDropout, PredictiveUncertainty
    from pluri.networks.classifiers.text_cnn import TextCNNClassifier
    from pluri.networks.decoder_queries import Candidate
    from pluri.networks.error_rates import Scores
    from pluri.networks.examples import UnknownTokenWarning
    from pluri.networks.frame_tagger import FrameTagger
    from pluri.networks.schedules import (
        ConstantRate,
        EpochRamp,
        ExponentialDecay,
        InverseSigmoidDecay,
        LinearDecay,
    )
    from pluri.networks.sequence_decoder import SequenceDecoder
    from pluri.networks.sequence_parser import SequenceParser

__all__ = [
    "BiLSTMClassifier",
    "Candidate",
    "ConstantRate",
    "EpochRamp",
    "ExponentialDecay",
    "FrameTagger",
    "InverseSigmoidDecay",
    "LinearDecay",
    "MCDropout",
    "PredictiveUncertainty",
    "Scores",
    "SequenceDecoder",
    "SequenceParser",
    "TextCNNClassifier",
    "UnknownTokenWarning",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "classifiers.bilstm": ["BiLSTMClassifier"],
        "classifiers.predictive": ["MCDropout", "PredictiveUncertainty"],
        "classifiers.text_cnn": ["TextCNNClassifier"],
        "decoder_queries": ["Candidate"],
        "error_rates": ["Scores"],
        "examples": ["UnknownTokenWarning"],
        "frame_tagger": ["FrameTagger"],
        "schedules": ["ConstantRate", "EpochRamp", "ExponentialDecay", "InverseSigmoidDecay", "LinearDecay"],
        "sequence_decoder": ["SequenceDecoder"],
        "sequence_parser": ["SequenceParser"],
    },
)
