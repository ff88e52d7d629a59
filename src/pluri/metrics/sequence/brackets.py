"""Labelled brackets of trees that two parses share: PARSEVAL [1]_.

A bracket is a label with the first and the last word below it. Precision and recall are over the brackets of all trees
together. A predicted tree that is not well formed, or has another number of words than the true one, has no bracket
right: all that it opens count as wrong, and it is counted.

References
----------
.. [1] Black, E. et al. (1991). A procedure for quantitatively comparing the syntactic coverage of English grammars.
   DARPA speech and natural language workshop.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TOKEN = re.compile(r"\([^\s()]*|\)[^\s()]*|[^\s()]+")

Span = tuple[str, int, int]


@dataclass(frozen=True)
class BracketScores:
    """Agreement of brackets.

    Attributes
    ----------
    precision, recall : float
        Shares of the predicted, and of the true, brackets that are in both; 0 where there are none.
    f1 : float
        Their harmonic mean.
    n_invalid : int
        Predicted trees that are not well formed, or have another number of words.
    n_trees : int
    """

    precision: float
    recall: float
    f1: float
    n_invalid: int
    n_trees: int


def bracket_scores(y_true: Sequence[Any], y_pred: Sequence[Any]) -> BracketScores:
    """Precision, recall and F1 of labelled brackets, and how many predicted trees are invalid.

    Parameters
    ----------
    y_true, y_pred : list of str, or list of lists of tokens
        Trees: "(A" opens a phrase with label A, ")A" or ")" closes it, and any other token is a word. Strings may also
        be written as "(S (NP the cat) (VP sleeps))".

    Returns
    -------
    BracketScores

    Examples
    --------
    >>> from pluri.metrics import bracket_scores
    >>> scores = bracket_scores(["(S (NP the cat) (VP sleeps))"] * 2, ["(S (NP the) cat (VP sleeps))", "(S the cat"])
    >>> scores.n_invalid, scores.precision, round(scores.recall, 3), round(scores.f1, 3)
    (1, 0.5, 0.333, 0.4)
    """
    if isinstance(y_true, str) or isinstance(y_pred, str):
        raise ValueError("y_true and y_pred must be lists of trees, got a string")
    if len(y_true) != len(y_pred) or not len(y_true):
        raise ValueError(f"y_true and y_pred must be equally many, and at least one, got {len(y_true)}, {len(y_pred)}")
    matched = n_true = n_predicted = n_invalid = 0
    for row, (true, predicted) in enumerate(zip(y_true, y_pred)):
        reference = tree_spans(_tokens(true))
        if reference is None:
            raise ValueError(f"y_true must be well-formed trees, got {true!r} at {row}")
        n_true += reference[0].total()
        tokens = _tokens(predicted)
        found = tree_spans(tokens)
        if found is None or found[1] != reference[1]:
            n_invalid += 1
            n_predicted += sum(token.startswith("(") for token in tokens)
            continue
        n_predicted += found[0].total()
        matched += (reference[0] & found[0]).total()
    precision, recall = (matched / count if count else 0.0 for count in (n_predicted, n_true))
    f1 = 2 * matched / (n_predicted + n_true) if matched else 0.0
    return BracketScores(precision, recall, f1, n_invalid, len(y_true))


def bracket_f1(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """F1 of labelled brackets; see :func:`bracket_scores`.

    Examples
    --------
    >>> from pluri.metrics import bracket_f1
    >>> bracket_f1(["(S (NP the cat) sleeps)"], ["(S the (NP cat sleeps))"])
    0.5
    """
    return bracket_scores(y_true, y_pred).f1


def tree_spans(tokens: Sequence[str]) -> tuple[Counter[Span], int] | None:
    """The brackets of a tree with their labels and ends, and its number of words; None if it is not well formed.

    A tree has one root, which holds all words, and a closing token that names a label names the one that is open.
    """
    spans: Counter[Span] = Counter()
    stack: list[tuple[str, int]] = []
    n_words = 0
    for position, token in enumerate(tokens):
        if token.startswith("("):
            if not stack and position:
                return None
            stack.append((token[1:], n_words))
        elif token.startswith(")"):
            if not stack or token[1:] not in ("", stack[-1][0]):
                return None
            label, start = stack.pop()
            spans[label, start, n_words] += 1
        elif not stack:
            return None
        else:
            n_words += 1
    return None if stack or not spans else (spans, n_words)


def _tokens(tree: Any) -> list[str]:
    return TOKEN.findall(tree) if isinstance(tree, str) else [str(token) for token in tree]
