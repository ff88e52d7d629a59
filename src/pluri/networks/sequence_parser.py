"""From sentences to trees, written as sequences: "(S (NP XX XX )NP (VP XX )VP )S".

A decoder with attention reads the words and writes the tree from left to right; "XX" stands for the next word. Nothing
keeps it from writing something that is no tree: how often that happens is counted.

References
----------
Vinyals, Kaiser, Koo, Petrov, Sutskever and Hinton (2015), Grammar as a foreign language, NeurIPS.
Bengio, Vinyals, Jaitly and Shazeer (2015), Scheduled sampling for sequence prediction with recurrent neural networks,
NeurIPS, section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from pluri.metrics import BracketScores, bracket_scores
from pluri.metrics.sequence.brackets import TOKEN, tree_spans
from pluri.networks.sequence_decoder import SequenceDecoder

#: What stands for a word in a tree.
LEAF = "XX"


class SequenceParser(SequenceDecoder):
    """Parser of sentences into trees: a `SequenceDecoder` with attention that writes brackets.

    Parameters
    ----------
    cell : {"lstm", "gru", "rnn"}, default="lstm"
    hidden_size : int, default=128
        Units of each layer, in each direction of the encoder.
    n_layers : int, default=1
    embedding_size : int, default=64
    schedule : {"inverse_sigmoid", "linear", "exponential", "ramp"}, callable or None, default="inverse_sigmoid"
        Probability of feeding the true token; None is teacher forcing. See `SequenceDecoder`.
    dropout : float, default=0.0
    learning_rate : float, default=3e-3
    batch_size : int or "auto", default="auto"
    max_epochs, min_epochs : int, default=100, 1
    n_iter_no_change : int, default=10
    n_members : int, default=1
    beam_size : int, default=10
    random_state : int, numpy Generator, RandomState or None, default=None
    verbose : int, default=0
    **settings
        The others of `SequenceDecoder`; `attention` and `bidirectional` are True.

    Attributes
    ----------
    vocabulary_ : array of shape (n_tokens,)
        Brackets, and "XX".
    input_vocabulary_ : array
        Words.
    scores_ : dict
        Teacher-forced and free-running errors, and perplexity, as of `SequenceDecoder`.

    Examples
    --------
    >>> from pluri.networks import SequenceParser
    >>> sentences = [["the", "cat", "sleeps"], ["the", "dog", "sleeps"], ["dogs", "sleep"]] * 10
    >>> trees = ["(S (NP the cat) (VP sleeps))", "(S (NP the dog) (VP sleeps))", "(S (NP dogs) (VP sleep))"] * 10
    >>> settings = {"hidden_size": 16, "embedding_size": 8, "learning_rate": 0.01, "n_iter_no_change": 100}
    >>> parser = SequenceParser(max_epochs=100, random_state=0, **settings).fit(sentences, trees)
    >>> parser.predict_trees([["the", "cat", "sleeps"]])
    ['(S (NP the cat) (VP sleeps))']
    """

    def __init__(
        self,
        cell: str = "lstm",
        *,
        hidden_size: int = 128,
        n_layers: int = 1,
        embedding_size: int = 64,
        attention: bool = True,
        bidirectional: bool = True,
        schedule: Any = "inverse_sigmoid",
        feedback: str = "sample",
        coin: str = "token",
        sampling_grad: str | None = None,
        temperature: float = 1.0,
        confidence: bool = False,
        dropout: float = 0.0,
        optimizer: str = "adam",
        learning_rate: float = 3e-3,
        batch_size: int | str = "auto",
        max_epochs: int = 100,
        min_epochs: int = 1,
        early_stopping: str | None = "free_running",
        n_iter_no_change: int = 10,
        validation_fraction: float = 0.1,
        clip_norm: float | None = 1.0,
        n_members: int = 1,
        beam_size: int = 10,
        max_length: int | None = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            cell,
            hidden_size=hidden_size,
            n_layers=n_layers,
            embedding_size=embedding_size,
            attention=attention,
            bidirectional=bidirectional,
            schedule=schedule,
            feedback=feedback,
            coin=coin,
            sampling_grad=sampling_grad,
            temperature=temperature,
            confidence=confidence,
            dropout=dropout,
            optimizer=optimizer,
            learning_rate=learning_rate,
            batch_size=batch_size,
            max_epochs=max_epochs,
            min_epochs=min_epochs,
            early_stopping=early_stopping,
            n_iter_no_change=n_iter_no_change,
            validation_fraction=validation_fraction,
            clip_norm=clip_norm,
            n_members=n_members,
            beam_size=beam_size,
            max_length=max_length,
            warm_start=warm_start,
            checkpoint=checkpoint,
            random_state=random_state,
            verbose=verbose,
        )

    def fit(self, X: Any, y: Any, *, validation_set: tuple[Any, Any] | None = None) -> Self:
        """Train the parser; after Ctrl-C the best epoch so far stays.

        Parameters
        ----------
        X : list of lists of words
        y : list of str, or list of lists of tokens
            The tree of each sentence, "(S (NP the cat) (VP sleeps))" or its tokens; words are written as "XX".
        validation_set : (X, y), optional
            To judge epochs by, in place of `validation_fraction`.

        Returns
        -------
        self : object
        """
        held_out = None if validation_set is None else (validation_set[0], linear_trees(validation_set[1]))
        trees = linear_trees(y)
        for number, tree in enumerate(trees):
            if tree_spans(tree) is None:
                raise ValueError(f"y must hold trees with one root and matching brackets, got {' '.join(tree)!r:.80} "
                                 f"at {number}")  # fmt: skip
        return super().fit(X, trees, validation_set=held_out)

    def predict_trees(self, X: Any, *, beam_size: int | None = None) -> list[str | None]:
        """The tree of each sentence with its words in it; None where what was written is no tree over its words."""
        written = self.predict(X, beam_size=beam_size)
        return [_tree_over(list(words), tokens) for words, tokens in zip(X, written)]

    def bracket_scores(self, X: Any, y: Any, *, beam_size: int | None = None) -> BracketScores:
        """Precision, recall and F1 of labelled brackets, and how many predicted trees are invalid.

        Parameters
        ----------
        X, y : as in `fit`
        beam_size : int, optional
            In place of the setting.

        Returns
        -------
        BracketScores
            See :func:`pluri.metrics.bracket_scores`.
        """
        return bracket_scores(linear_trees(y), self.predict(X, beam_size=beam_size))

    def score(self, X: Any, y: Any) -> float:
        """F1 of labelled brackets."""
        return self.bracket_scores(X, y).f1

    def written_tokens(self, y: Any) -> list[list[Any]]:
        """Trees as the tokens that the parser writes, without the end; see `SequenceDecoder.written_tokens`."""
        return [list(tokens) for tokens in linear_trees(y)]

    def _examples(self, X: Any, y: Any = None, design: Any = None) -> Any:
        return super()._examples(X, None if y is None else linear_trees(y), design)


def linear_trees(trees: Sequence[Any]) -> list[list[str]]:
    """Trees as tokens: brackets with their labels, opening and closing, and "XX" for each word.

    Examples
    --------
    >>> from pluri.networks.sequence_parser import linear_trees
    >>> linear_trees(["(S (NP the cat) (VP sleeps))"])
    [['(S', '(NP', 'XX', 'XX', ')NP', '(VP', 'XX', ')VP', ')S']]
    """
    if isinstance(trees, str) or not hasattr(trees, "__len__"):
        raise ValueError(f"y must be a list of trees, got {trees!r:.80}")
    found = []
    for tree in trees:
        tokens = TOKEN.findall(tree) if isinstance(tree, str) else [str(token) for token in tree]
        open_labels: list[str] = []
        line = []
        for token in tokens:
            if token.startswith("("):
                open_labels.append(token[1:])
                line.append(token)
            elif token.startswith(")"):
                label = open_labels.pop() if open_labels else ""
                line.append(token if len(token) > 1 else f"){label}")
            else:
                line.append(LEAF)
        found.append(line)
    return found


def _tree_over(words: list[str], tokens: list[str]) -> str | None:
    if tree_spans(tokens) is None or tokens.count(LEAF) != len(words):
        return None
    left = iter(words)
    written = [next(left) if token == LEAF else ")" if token.startswith(")") else token for token in tokens]
    return " ".join(written).replace(" )", ")")
