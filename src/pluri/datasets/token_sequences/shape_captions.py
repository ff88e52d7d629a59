"""Scenes of two shapes and sentences that describe them, with free synonyms: a stand-in for captions of photographs.

A scene has eight features: size, colour and kind of two shapes, how they lie to each other, and the background. A
caption says all of them in one order, and chooses freely among words of the same meaning. The choice is the point: a
decoder that chose one word must go on from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.token_sequences.pairs import TokenPairs, Tokens
from pluri.validation import RandomState, as_generator, check_count

SIZES = (("small", "little", "tiny"), ("big", "large", "huge"))
COLORS = (("red", "crimson"), ("blue", "azure"), ("green", "emerald"), ("yellow", "golden"))
SHAPES = (("circle", "disc"), ("square", "box"), ("triangle",), ("star",))
RELATIONS = (
    ("above", "over"), ("below", "under"), ("left of", "to the left of"), ("right of", "to the right of"),
)  # fmt: skip
GROUNDS = (("white", "pale"), ("black", "dark"))
#: Words for each value of each of the eight features of a scene.
FEATURES = (SIZES, COLORS, SHAPES, RELATIONS, SIZES, COLORS, SHAPES, GROUNDS)
VERBS = ("is", "lies", "sits")
GROUND_PHRASES = ("on a {} ground", "in front of a {} wall", "on {} paper")


@dataclass(frozen=True, eq=False, repr=False)
class ShapeCaptions(TokenPairs):
    """Scenes and their captions.

    Attributes
    ----------
    X : ndarray of shape (n_scenes, 26)
        The eight features of each scene, each as a one and zeros.
    Y : tuple of tuples of str
        A caption of each scene: the first of its references.
    references : tuple of tuples of tuples of str
        All captions of each scene.
    scenes : ndarray of shape (n_scenes, 8)
        The features as numbers from 0.
    """

    references: tuple[tuple[Tokens, ...], ...]
    scenes: NDArray[np.int64]


def make_shape_captions(
    n_scenes: int = 1000, *, n_references: int = 5, random_state: RandomState = None
) -> ShapeCaptions:
    """Draw scenes of two shapes, and captions with free synonyms.

    Parameters
    ----------
    n_scenes : int, default=1000
        Number of scenes.
    n_references : int, default=5
        Captions of each scene.
    random_state : int, Generator, RandomState or None
        Source of randomness.

    Returns
    -------
    ShapeCaptions

    Examples
    --------
    >>> from pluri.datasets import make_shape_captions
    >>> captions = make_shape_captions(100, random_state=0)
    >>> captions.X.shape, len(captions.references[0])
    ((100, 26), 5)
    >>> " ".join(captions.Y[0])
    'a huge green triangle is below a tiny crimson circle on white paper'
    """
    check_count(n_scenes, "n_scenes")
    check_count(n_references, "n_references")
    rng = as_generator(random_state)
    n_values = [len(values) for values in FEATURES]
    scenes = rng.integers(n_values, size=(n_scenes, len(FEATURES)))
    X = np.zeros((n_scenes, sum(n_values)))
    offsets = np.array([0, *accumulate(n_values[:-1])])
    np.put_along_axis(X, scenes + offsets, 1.0, axis=1)
    references = tuple(tuple(_caption(scene, rng) for _ in range(n_references)) for scene in scenes)
    return ShapeCaptions(X, tuple(captions[0] for captions in references), references, scenes)


def _caption(scene: NDArray[np.int64], rng: np.random.Generator) -> Tokens:
    """One sentence about a scene, each word chosen among those of its meaning."""

    def one_of(words: Tokens) -> str:
        return words[rng.integers(len(words))]

    size, color, shape, relation, other_size, other_color, other_shape, ground = (
        one_of(values[value]) for values, value in zip(FEATURES, scene)
    )
    sentence = (
        f"a {size} {color} {shape} {one_of(VERBS)} {relation} a {other_size} {other_color} {other_shape} "
        f"{one_of(GROUND_PHRASES).format(ground)}"
    )
    return tuple(sentence.split())
