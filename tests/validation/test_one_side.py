"""Ratings of 1 to 5 with the usual `binarize=0` are all ones: a model that would learn nothing says so."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from pluri.engine import ArraySource
from pluri.factors import BinaryRBM, LogisticPCA
from pluri.mixtures import BayesianBernoulliMixture, BernoulliMixture
from pluri.sequences import BernoulliHMM

MODELS = [
    BernoulliMixture(2, random_state=0),
    BayesianBernoulliMixture(5, n_chains=2, n_warmup=1, n_draws=2, random_state=0),
    LogisticPCA(1, max_iter=3),
    BinaryRBM(2, n_iter=2, n_chains=2, n_warmup=1, n_draws=2, random_state=0),
    BernoulliHMM(2, n_iter=3, random_state=0),
]
RATINGS = np.random.default_rng(0).integers(1, 6, size=(40, 4)).astype(float)


def warned(model, X):
    """Sentences about `binarize` that a fit says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    return [str(warning.message) for warning in caught if "binarize" in str(warning.message)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_what_would_be_all_ones_or_all_zeros_is_said(model):
    assert warned(model, RATINGS) == [
        "every value of X (from 1 to 5) lies above binarize=0, so that all are ones: set binarize to a value between "
        "them"
    ]
    assert "at or below binarize=9, so that all are zeros" in warned(model.set_params(binarize=9.0), RATINGS)[0]
    assert warned(model.set_params(binarize=3.0), RATINGS) == []
    assert warned(model.set_params(binarize=0.0), np.ones((40, 4))) == []
    assert warned(model, (RATINGS > 3) * 5.0) == []


def test_unknown_ratings_lie_on_no_side():
    holes = RATINGS.copy()
    holes[::3, 1] = np.nan
    assert "from 1 to 5" in warned(BernoulliMixture(2, random_state=0), holes)[0]


def test_stored_ratings_are_ones_beside_gaps():
    assert warned(BernoulliMixture(2, random_state=0), sparse.csr_array(RATINGS * (RATINGS > 3))) == []


@pytest.mark.parametrize("model", [BernoulliMixture(2, random_state=0), BernoulliHMM(2, n_iter=3, random_state=0)])
def test_of_a_source_only_the_first_batch_is_known(model):
    later = np.concatenate([RATINGS, np.zeros_like(RATINGS)])
    lengths = [40, 40] if isinstance(model, BernoulliHMM) else None
    told = warned(model, ArraySource(later, lengths, batch_size=40))
    assert len(told) == 1
    assert told[0].startswith("every value of the first batch of X (from 1 to 5) lies above binarize=0")
    assert warned(model, ArraySource(later[::-1], lengths, batch_size=40)) == []
