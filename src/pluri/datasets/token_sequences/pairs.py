"""The record of inputs with the tokens that belong to each, and the smallest problem of that kind: "00" or "11".

A decoder trained by scheduled sampling [1]_ on "00" and "11", each half of the sequences, sees the true first token
with probability epsilon and its own otherwise, which tells nothing of the second token. The optimum of the second step
is therefore ``P(y_2 = a | a) = (1 + epsilon) / 2``: the whole truth for epsilon 1, and independence for epsilon 0.

References
----------
.. [1] Bengio, S., Vinyals, O., Jaitly, N. & Shazeer, N. (2015). Scheduled sampling for sequence prediction with
   recurrent neural networks. NeurIPS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.validation import RandomState, as_generator, check_count

Tokens = tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class TokenPairs:
    """Inputs, and a sequence of tokens for each.

    Attributes
    ----------
    X : ndarray of shape (n_sequences, n_features), or tuple of tuples of str
        A vector, or a sequence of tokens, for each pair.
    Y : tuple of tuples of str
        The tokens to predict; the end of a sequence has no token of its own.

    Examples
    --------
    >>> from pluri.datasets import TokenPairs
    >>> pairs = TokenPairs(X=(("a", "b"), ("c",)), Y=(("A", "B"), ("C",)))
    >>> pairs
    TokenPairs(2 pairs, 3 tokens)
    >>> pairs.vocabulary()
    ('A', 'B', 'C')
    """

    X: NDArray[np.float64] | tuple[Tokens, ...]
    Y: tuple[Tokens, ...]

    def vocabulary(self) -> Tokens:
        """The tokens that occur in ``Y``, sorted."""
        return tuple(sorted({token for sequence in self.Y for token in sequence}))

    def keys(self) -> list[str]:
        """Names of the fields."""
        return [field.name for field in fields(self)]

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        """Names of the fields, as in a dict."""
        return iter(self.keys())

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.Y)

    def __repr__(self) -> str:
        """Sizes instead of the values."""
        return f"{type(self).__name__}({len(self)} pairs, {len(self.vocabulary())} tokens)"


def make_two_tokens(n_sequences: int = 1000, *, length: int = 2, random_state: RandomState = None) -> TokenPairs:
    """Make sequences of one token repeated, "00" or "11", in random order; the inputs say nothing.

    Parameters
    ----------
    n_sequences : int, default=1000
        Number of sequences. Exactly half of them (rounded down) are zeros, so that closed forms hold without sampling
        error.
    length : int, default=2
        Length of each sequence.
    random_state : int, Generator, RandomState or None
        Source of randomness, for the order.

    Returns
    -------
    TokenPairs
        With one column of zeros as ``X``.

    Examples
    --------
    >>> from pluri.datasets import make_two_tokens
    >>> sorted(set(make_two_tokens(10, random_state=0).Y))
    [('0', '0'), ('1', '1')]
    """
    check_count(n_sequences, "n_sequences", 2)
    check_count(length, "length")
    drawn = as_generator(random_state).permutation(np.arange(n_sequences) >= n_sequences // 2)
    return TokenPairs(np.zeros((n_sequences, 1)), tuple((str(int(token)),) * length for token in drawn))
