"""A hidden Markov model whose states are the classes: supervised and semi-supervised labelling of sequences.

With all labels known, the fit is counting (`pluri.sequences.labelled.counting`). A diversity prior of strength alpha
and an anchor of weight w at the smoothed counts A0 turn the transition matrix A into the maximiser of

    sum_ij C_ij log A_ij  +  alpha log det K(A)  -  w ||A - A0||^2,

where C are the counts themselves. Samples of unknown label take part through EM with the known states held fixed.

References
----------
M. Qiao, W. Bian, R. Y. D. Xu and D. Tao, "Diversified hidden Markov models for sequential labeling", IEEE Transactions
on Knowledge and Data Engineering 27, 2015.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from pluri.engine import Source
from pluri.sequences.gaussian import GaussianHMM
from pluri.sequences.hmm import HiddenMarkovModel
from pluri.sequences.labelled.classification import SequenceClassification
from pluri.sequences.labelled.counting import (
    LabelCounts,
    count_labels,
    labels_in_source,
    starting_values,
    warn_never_left,
    with_pseudo_count,
)
from pluri.sequences.labelled.labels import check_label_lengths, encode_labels, join_labels
from pluri.sequences.learning import ChainPrior
from pluri.validation import Allowed, Number, Stored, check_parameters, is_source
from pluri.validation.sequences import (
    BOUNDARIES,
    check_not_lost,
    is_sequence_list,
    may_be_rows,
    sequence_lengths,
    weight_by_either_name,
)

Array = NDArray[np.float64]

#: Pseudo-count that keeps an anchored probability off zero, where EM would hold it for ever.
BARRIER = 1e-9


class HMMClassifier(SequenceClassification):
    """Classifier of the samples of sequences: a hidden Markov model with one state for each class.

    Parameters
    ----------
    hmm : hidden Markov model of `pluri.sequences`, default=None
        The emission family, its priors, `diversity`, `algorithm` and so on. Its `n_components` and `n_init` are not
        used. A starting value (such as `transmat_init`, or an attribute set on it by hand whose letter is not in its
        `init_params`) takes the place of counting; letters that are not in its `params` are counted and then kept.
        None is ``GaussianHMM(algorithm="map")``, which predicts the class of the highest probability; the best path
        ("viterbi") may pass through others.
    anchor : float, default=0.0
        Weight of the squared distance of the transition matrix from `anchor_transmat_`.
    pseudo_count : float, default=0.0
        Added to the counts of starts and transitions; with 0, what was never seen in `fit` is impossible. With an
        anchor, it smooths what the transition matrix is anchored to, and not the matrix itself.
    unknown : label, "auto" or None, default="auto"
        The mark of a sample whose label is not known. "auto": -1 among numbers and "" among strings, unless fewer
        than two classes would be left (so that labels -1 and 1 are two classes); None and NaN in an array of objects,
        always. With None all labels are classes.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        State i of the model is class ``classes_[i]``.
    hmm_ : hidden Markov model
        The fitted model.
    anchor_transmat_ : array of shape (n_classes, n_classes)
        Transition probabilities of the (smoothed) counts of labels alone.
    n_features_in_ : int

    Examples
    --------
    >>> from pluri.datasets import make_toy_hmm
    >>> from pluri.sequences import GaussianHMM, HMMClassifier
    >>> train, test = make_toy_hmm(random_state=0), make_toy_hmm(random_state=1)
    >>> model = HMMClassifier(GaussianHMM(diversity=1.0), pseudo_count=0.5).fit(train.X, train.y, train.lengths)
    >>> round(model.score(test.X, test.y, test.lengths), 2)
    1.0
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"anchor_transmat_": Stored("n_states_", "n_states_")}

    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES
    _parameters: ClassVar[Mapping[str, Allowed]] = {"anchor": Number(least=0), "pseudo_count": Number(least=0)}

    def __init__(
        self,
        hmm: HiddenMarkovModel | None = None,
        *,
        anchor: float = 0.0,
        pseudo_count: float = 0.0,
        unknown: Any = "auto",
    ) -> None:
        self.hmm = hmm
        self.anchor = anchor
        self.pseudo_count = pseudo_count
        self.unknown = unknown

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._template()).input_tags
        return tags

    def _template(self) -> HiddenMarkovModel:
        hmm = GaussianHMM(algorithm="map") if self.hmm is None else self.hmm
        if not isinstance(hmm, HiddenMarkovModel):
            raise TypeError(f"hmm must be a hidden Markov model of pluri.sequences, got {type(hmm).__name__}")
        topology = getattr(hmm, "topology", "ergodic")
        if not (isinstance(topology, str) and topology == "ergodic"):
            raise ValueError(
                f"topology of hmm must be 'ergodic', got {topology!r}: states are classes, and the labels tell which "
                "transitions happen; use transmat_init for zeros that are known"
            )
        return hmm

    def fit(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        **aliases: Any,
    ) -> Self:
        """Learn from labelled sequences.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), list of sequences, or `pluri.engine.Source`
            A source holds lengths, weights and labels (0 .. n_classes - 1, -1 if unknown) itself.
        y : array of shape (n_samples,), or list of sequences of labels
            Numbers or strings; see `unknown` for samples without a label.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X, which sum to n_samples. Without `lengths` and `groups`, those of the labels
            if y is a list of sequences, and one sequence if it is not.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`: rows with the same value next to each other are one
            sequence. This is what reaches the model through scikit-learn's cross-validation, with metadata routing.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence; also taken under the name ``sample_weight``.

        Returns
        -------
        self : object
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        check_parameters(self)
        template = self._template()
        hmm = clone(template).set_params(n_components=1, n_init=1)
        lengths = sequence_lengths(X, lengths, groups)
        classes, source, n_samples = self._labelled_source(hmm, X, y, lengths, sequence_weight)
        hmm.set_params(n_components=len(classes))
        for name in template._hand_set():
            stored = name if name in vars(template) else f"_{name}"  # a property reads other shapes than it takes
            setattr(hmm, stored, vars(template)[stored])
        given = hmm._given()

        counts = count_labels(source, len(classes))
        prior = self._counting_prior(hmm, counts)
        if counts.unknown == 0:
            warn_never_left(counts, prior.transition, classes)
        anchor, start = starting_values(hmm, source, counts, prior, given)
        if self.anchor > 0:
            own = with_pseudo_count(hmm._chain_prior().transition, BARRIER, anchor.shape)
            prior = dataclasses.replace(prior, transition=own, anchor=anchor, anchor_weight=float(self.anchor))
        hmm._learn(source, prior, n_samples=n_samples, start=start)

        self.classes_ = classes
        self.hmm_ = hmm
        self.anchor_transmat_ = anchor
        self.n_features_in_ = hmm.n_features_in_
        if hasattr(hmm, "feature_names_in_"):
            self.feature_names_in_ = hmm.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _labelled_source(
        self, hmm: HiddenMarkovModel, X: Any, y: Any, lengths: ArrayLike | None, weight: ArrayLike | None
    ) -> tuple[NDArray[Any], Source, int | None]:
        if is_source(X):
            if y is not None:
                raise ValueError("y must be None when X is a source of batches: it holds the labels")
            source, _ = hmm._source(X, lengths, weight)
            return labels_in_source(source), source, None
        labels, label_lengths = join_labels(y)
        if label_lengths is None and may_be_rows(X) and len(labels) == len(X) > 0:
            X = np.array(X)  # a label for each of these lists: they are the rows of a matrix
        if lengths is None and label_lengths is not None and not is_sequence_list(X):
            lengths = label_lengths
        check_not_lost(X, lengths, fitting=True)
        _, counts = hmm._sequences(X, lengths, fitting=True)
        check_label_lengths(labels, label_lengths, counts)
        classes, states = encode_labels(labels, self.unknown)
        source, n_samples = hmm._source(X, lengths, weight, states)
        return classes, source, n_samples

    def _counting_prior(self, hmm: HiddenMarkovModel, counts: LabelCounts) -> ChainPrior:
        """Priors of the model, with the pseudo-counts of the classifier."""
        prior = hmm._chain_prior()
        return dataclasses.replace(
            prior,
            start=with_pseudo_count(prior.start, self.pseudo_count, counts.starts.shape),
            transition=with_pseudo_count(prior.transition, self.pseudo_count, counts.pairs.shape),
        )
