"""How good predicted sequences are: labels of frames, sentences beside references, trees."""

from pluri.metrics.sequence.brackets import BracketScores, bracket_f1, bracket_scores
from pluri.metrics.sequence.exact_meteor import exact_meteor_score
from pluri.metrics.sequence.frames import frame_error_rate, perplexity
from pluri.metrics.sequence.n_grams import bleu_score, cider_score

__all__ = [
    "BracketScores",
    "bleu_score",
    "bracket_f1",
    "bracket_scores",
    "cider_score",
    "exact_meteor_score",
    "frame_error_rate",
    "perplexity",
]
