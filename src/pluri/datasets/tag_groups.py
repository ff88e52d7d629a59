"""The 46 tags of the Wall Street Journal treebank sample merged into 15 groups, and how frequent the groups are.

Groups and frequencies are those of Qiao et al. (2015), "Diversified hidden Markov models for sequential
labeling".
"""

from __future__ import annotations

from types import MappingProxyType

TAG_GROUPS = MappingProxyType(
    {
        "noun": ("NNP", "NNPS", "NNS", "NN", "SYM"),
        "punctuation": (",", "``", "''", ":", ".", "$", "(", ")", "LS", "#"),
        "number": ("CD",),
        "adjective": ("JJS", "JJ", "JJR"),
        "modal": ("MD",),
        "verb": ("VBZ", "VB", "VBG", "VBD", "VBN", "VBP", "VBG|NN"),
        "determiner": ("DT", "PDT", "WDT"),
        "preposition": ("IN", "CC", "TO"),
        "foreign": ("FW",),
        "adverb": ("WRB", "RB", "RBS", "RBR"),
        "interjection": ("UH",),
        "pronoun": ("WP", "WP$", "PRP", "PRP$"),
        "possessive": ("POS",),
        "existential": ("EX",),
        "particle": ("RP",),
    }
)
"""Name of each group -> its tags; the groups are numbered in this order, from 0."""

GROUP_COUNTS = (28866, 11727, 3546, 6397, 927, 12637, 8637, 14403, 4, 3178, 3, 2737, 824, 88, 107)
"""Tokens of each group among the 94,081 of the sample."""

GROUP_OF_TAG = MappingProxyType({tag: group for group, tags in enumerate(TAG_GROUPS.values()) for tag in tags})
"""Tag -> number of its group."""
