"""Sequences to label, to translate and to classify: frames, tokens, trees, captions, phrases."""

from pluri.datasets.token_sequences.brackets import BracketedSentences, make_bracketed_sentences
from pluri.datasets.token_sequences.digit_frames import DigitFrames, load_spoken_digit_frames
from pluri.datasets.token_sequences.negated_sentences import NegatedSentences, make_negated_sentences
from pluri.datasets.token_sequences.pairs import TokenPairs, make_two_tokens
from pluri.datasets.token_sequences.sentiment_phrases import SentimentPhrases, load_sst_phrases
from pluri.datasets.token_sequences.shape_captions import ShapeCaptions, make_shape_captions
from pluri.datasets.token_sequences.sticky_frames import StickyFrames, make_sticky_frames

__all__ = [
    "BracketedSentences",
    "DigitFrames",
    "NegatedSentences",
    "SentimentPhrases",
    "ShapeCaptions",
    "StickyFrames",
    "TokenPairs",
    "load_spoken_digit_frames",
    "load_sst_phrases",
    "make_bracketed_sentences",
    "make_negated_sentences",
    "make_shape_captions",
    "make_sticky_frames",
    "make_two_tokens",
]
