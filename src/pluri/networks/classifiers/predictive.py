"""What a network does not know, from the draws of its predictions: MC dropout.

A network trained with dropout, and asked with dropout, answers differently each time: draws ``p_t`` of the
probabilities, t = 1, ..., T, from an approximate posterior of its weights [1]_. Their mean ``p`` is the prediction. Its
entropy ``H(p)`` is all uncertainty; the mutual information of class and weights [2]_ (BALD),

    H(p) - (1/T) sum_t H(p_t) = (1/T) sum_t KL(p_t || p),

is the part that more labels could remove: 0 where all draws agree, and never more than the entropy.

References
----------
.. [1] Gal, Y. & Ghahramani, Z. (2016). Dropout as a Bayesian approximation. ICML.
.. [2] Houlsby, N., Huszar, F., Ghahramani, Z. & Lengyel, M. (2011). Bayesian active learning for classification and
   preference learning. arXiv:1112.5745.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from pluri.validation import Only, check_count, check_value

Array = NDArray[np.float64]

#: Names of what may be asked for in choosing the next rows to label.
CRITERIA = ("bald", "entropy", "variation_ratio")
#: Sums of drawn probabilities may be off by so much: networks compute in single precision.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class PredictiveUncertainty:
    """What several draws of the probabilities of classes say together.

    Attributes
    ----------
    mean : ndarray of shape (n_samples, n_classes)
        Probabilities, averaged over the draws.
    entropy : ndarray of shape (n_samples,)
        Of the mean, in nats.
    mutual_information : ndarray of shape (n_samples,)
        Of the class and the weights (BALD): between 0 and `entropy`.

    Examples
    --------
    >>> from pluri.networks import PredictiveUncertainty
    >>> agreeing = PredictiveUncertainty.from_samples([[[0.5, 0.5]], [[0.5, 0.5]]])
    >>> torn = PredictiveUncertainty.from_samples([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> agreeing.entropy.round(3).tolist(), agreeing.mutual_information.tolist()
    ([0.693], [0.0])
    >>> torn.entropy.round(3).tolist(), torn.mutual_information.round(3).tolist()
    ([0.693], [0.693])
    """

    mean: Array
    entropy: Array
    mutual_information: Array

    @classmethod
    def from_samples(cls, samples: ArrayLike) -> PredictiveUncertainty:
        """From draws of shape (n_predictive, n_samples, n_classes)."""
        draws = check_draws(samples)
        mean = draws.mean(axis=0)
        entropy = entr(mean).sum(axis=-1)
        information = entropy - entr(draws).sum(axis=-1).mean(axis=0)
        return cls(mean, entropy, np.clip(information, 0.0, entropy))

    def acquisition(self, criterion: str = "bald") -> Array:
        """How much is to be learned from the label of each row.

        Parameters
        ----------
        criterion : {"bald", "entropy", "variation_ratio"}, default="bald"
            Mutual information of class and weights; entropy; or one minus the largest probability.
        """
        check_value(criterion, "criterion", Only(*CRITERIA))
        if criterion == "variation_ratio":
            return np.asarray(1.0 - self.mean.max(axis=-1))
        return self.mutual_information if criterion == "bald" else self.entropy


def check_draws(samples: ArrayLike, name: str = "samples") -> Array:
    """Draws of probabilities (n_predictive, n_samples, n_classes), scaled to sum to one exactly; or an error."""
    draws = np.asarray(samples, dtype=np.float64)
    if draws.ndim != 3 or 0 in draws.shape:
        raise ValueError(
            f"{name} must have shape (n_predictive, n_samples, n_classes), none of them 0, got {draws.shape}"
        )
    if not (draws >= 0).all() or not (np.abs(draws.sum(axis=-1) - 1) <= TOLERANCE).all():
        raise ValueError(f"{name} must be probabilities that sum to 1 over the last axis")
    return draws / draws.sum(axis=-1, keepdims=True)


class MCDropout:
    """A classifier from a function that answers differently each time: any framework's network with dropout left on.

    Parameters
    ----------
    predict_stochastic : callable
        Of X; gives probabilities (n_samples, n_classes), with fresh randomness at each call.
    n_predictive : int, default=20
        Calls that a prediction averages over.
    classes : array-like, optional
        Labels of the classes; 0, 1, ... by default.

    Examples
    --------
    A stand-in for ``lambda X: softmax(network.train()(X))`` of a framework:

    >>> import numpy as np
    >>> from pluri.networks import MCDropout
    >>> rng = np.random.default_rng(0)
    >>> def network(X):
    ...     kept = rng.random(X.shape) < 0.5
    ...     odds = np.exp((2 * X * kept).sum(axis=1))
    ...     return np.column_stack([1 / (1 + odds), odds / (1 + odds)])
    >>> model = MCDropout(network, n_predictive=200, classes=["low", "high"])
    >>> X = np.array([[3.0] * 9, [3.0, -3.0] * 4 + [1.0]])
    >>> model.predict(X[:1]).tolist()
    ['high']
    >>> (model.uncertainty(X).mutual_information > 0.1).tolist()
    [False, True]
    """

    def __init__(
        self, predict_stochastic: Callable[[Any], Any], n_predictive: int = 20, *, classes: ArrayLike | None = None
    ) -> None:
        if not callable(predict_stochastic):
            raise ValueError(f"predict_stochastic must be callable, got {predict_stochastic!r}")
        self.predict_stochastic = predict_stochastic
        self.n_predictive = check_count(n_predictive, "n_predictive")
        self.classes_ = None if classes is None else np.asarray(classes)

    def predict_proba_samples(self, X: Any, n_predictive: int | None = None) -> Array:
        """Draws of the probabilities of classes, of shape (n_predictive, n_samples, n_classes)."""
        n_calls = self.n_predictive if n_predictive is None else check_count(n_predictive, "n_predictive")
        found = [np.asarray(self.predict_stochastic(X), dtype=np.float64) for _ in range(n_calls)]
        shapes = {one.shape for one in found}
        if len(shapes) > 1 or found[0].ndim != 2:
            raise ValueError(
                f"predict_stochastic must return shape (n_samples, n_classes) at each call, got {sorted(shapes)}"
            )
        if self.classes_ is not None and found[0].shape[1] != len(self.classes_):
            raise ValueError(
                f"predict_stochastic must return a column for each of {len(self.classes_)} classes, got "
                f"{found[0].shape[1]}"
            )
        return check_draws(np.stack(found), "what predict_stochastic returns")

    def uncertainty(self, X: Any, n_predictive: int | None = None) -> PredictiveUncertainty:
        """Mean, entropy and mutual information (BALD) of fresh draws."""
        return PredictiveUncertainty.from_samples(self.predict_proba_samples(X, n_predictive))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of classes, averaged over draws."""
        return self.uncertainty(X).mean

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        numbers = self.predict_proba(X).argmax(axis=1)
        return numbers if self.classes_ is None else np.asarray(self.classes_[numbers])

    def acquisition(self, X: Any, criterion: str = "bald") -> Array:
        """How much is to be learned from the label of each row; see `PredictiveUncertainty.acquisition`."""
        return self.uncertainty(X).acquisition(criterion)
