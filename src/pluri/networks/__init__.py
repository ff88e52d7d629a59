"""Small recurrent and convolutional networks on JAX that meet their own mistakes, and say what they do not know.

Needs ``pip install "pluri[jax]"`` (jax, equinox, optax). Decoders of sequences are trained by scheduled sampling.
"""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.networks.classifiers.bilstm import BiLSTMClassifier
    from pluri.networks.classifiers.predictive import MCDropout, PredictiveUncertainty
    from pluri.networks.classifiers.text_cnn import TextCNNClassifier

__all__ = [
    "BiLSTMClassifier",
    "MCDropout",
    "PredictiveUncertainty",
    "TextCNNClassifier",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "classifiers.bilstm": ["BiLSTMClassifier"],
        "classifiers.predictive": ["MCDropout", "PredictiveUncertainty"],
        "classifiers.text_cnn": ["TextCNNClassifier"],
    },
)
