"""Whole samplers of topic models, from their start through the warm-up to thinned draws, are calibrated.

Geweke's tests and enumerations try single sweeps from exact draws; here nothing is given but the words. Parameters,
topics of tokens and words of a tiny corpus are drawn from the model, a chain is run as the estimator runs it, and the
truth is ranked among the draws. All numbers that are ranked stay the same when topics or the tokens of a document are
renumbered; the log joint is one of them, without which a sampler that does not hear the data would pass.

What has no posterior is left out: priors put at their likeliest values (LDA's ``PriorLearning("optimize")``), and
coefficients of classes at their mode, in whose place they are known. Two threads change the totals of topics a little
late; that with thirteen tokens, where it matters most, is less than 200 simulations can see is what is tested of them.

Thinning is such that the autocorrelation of every number is at most about 0.2 from one draw to the next. A run
has a false-alarm rate of 1e-3; a test fails if a second, independent run fails as well: a false alarm in a million.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from pluri.inference import mcmc
from pluri.priors.hyperpriors import Gamma, Hyperparameter
from pluri.testing import simulation_based_calibration
from pluri.topics.documents import Tokens
from pluri.topics.hdp.gibbs import TopicGibbs
from pluri.topics.hdp.starts import draw_start
from pluri.topics.lda.sampling.gibbs import CollapsedGibbs
from pluri.topics.lda.sampling.priors_learning import PriorLearning
from pluri.topics.supervised.gibbs import ClassesGibbs, RatingsGibbs

LENGTHS, N_WORDS = (5, 4, 4), 4
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)
DOCUMENTS = np.repeat(np.arange(len(LENGTHS)), LENGTHS).astype(np.int32)
#: Documents whose words are not drawn yet.
BLANK = Tokens(np.zeros(len(DOCUMENTS), dtype=np.int32), DOCUMENTS, OFFSETS, N_WORDS)


@dataclass(frozen=True)
class Whole:
    """A sampler from start to end.

    ``draw(rng)`` gives a position of the model and the kernel for the words that go with it, ``numbers(position,
    kernel)`` what is ranked, and ``start(kernel)`` where the estimator lets chains begin. ``fault(kernel)`` is what the
    chain runs in place of the kernel, if something is to be found wrong.
    """

    draw: Any
    numbers: Any
    start: Any = lambda kernel: kernel.start
    n_simulations: int = 200
    n_draws: int = 11
    n_warmup: int = 20
    thin: int = 5
    fault: Any = lambda kernel: kernel


def calibration(whole, random_state=0):
    def sampler(rng, kernel, n_draws):
        draws, runs = [], whole.fault(kernel)

        def keep(position):
            draws.append((deepcopy(dict(position)), kernel))
            return {"number": len(draws)}

        mcmc.sample(
            runs, whole.start(runs), record=keep, n_draws=n_draws, n_warmup=whole.n_warmup, n_chains=1,
            thin=whole.thin, random_state=rng, warn=False,
        )  # fmt: skip
        return draws

    return simulation_based_calibration(
        whole.draw, lambda rng, theta: theta[1], sampler, quantities=lambda theta, kernel: whole.numbers(*theta),
        n_simulations=whole.n_simulations, n_draws=whole.n_draws, thin=1, alpha=1e-3, random_state=random_state,
    )  # fmt: skip


def confirmed_calibration(whole):
    """The first run that passes of two, or the second."""
    first = calibration(whole)
    return first if first.passed else calibration(whole, random_state=1)


def in_order(words, position, *names):
    """Documents with their words in the order that samplers read them in, and a position with its tokens likewise."""
    order = np.lexsort((words, DOCUMENTS))
    tokens = replace(BLANK, words=np.asarray(words, dtype=np.int32)[order])
    return tokens, {**position, **{name: np.asarray(position[name])[order] for name in names}}


def pairs(topics, words):
    """Pairs of tokens that have a topic in common, and a word or a document besides."""
    together = topics[:, None] == topics
    return {
        "topics": len(np.unique(topics)),
        "of a topic": together.sum(),
        "of a topic and word": (together & (words[:, None] == words)).sum(),
        "of a topic and document": (together & (DOCUMENTS[:, None] == DOCUMENTS)).sum(),
    }


# Latent Dirichlet allocation, flat and of unknown size ---------------------------------------------------------------


def lda(method, **options):
    base = CollapsedGibbs(BLANK, 3, [0.5, 1.0, 2.0], 0.4, method=method, **options)

    def draw(rng):
        position = base.sample_prior(rng)
        tokens, position = in_order(base.sample_words(rng, position), position, "topics")
        return position, replace(base, tokens=tokens)

    def numbers(position, kernel):
        alpha, eta = position["doc_topic_prior"], position["topic_word_prior"]
        log_joint = kernel.init(np.random.default_rng(0), position).log_density
        learned = {"log alpha": np.log(alpha).sum(), "largest alpha": alpha.max(), "log eta": np.log(eta)}
        return (
            pairs(position["topics"], kernel.tokens.words)
            | {"log joint": log_joint}
            | (learned if base.learning else {})
        )

    if base.learning:
        return Whole(draw, numbers, n_simulations=150, n_draws=7)
    return Whole(draw, numbers)


def hdp(n_proposals):
    base = TopicGibbs(
        BLANK, *(Hyperparameter(value, Gamma(2.0, 1.5)) for value in (1.0, 1.0, 0.5)),
        n_proposals=n_proposals,
    )  # fmt: skip

    def draw(rng):
        position = base.sample_prior(rng)
        tokens, position = in_order(base.sample_data(rng, position).words, position, "labels")
        return position, replace(base, tokens=tokens)

    def numbers(position, kernel):
        return pairs(position["labels"], kernel.tokens.words) | {
            "log alpha": np.log(position["alpha"]), "log gamma": np.log(position["gamma"]),
            "log eta": np.log(position["eta"]), "log rest": np.log(position["weights"][-1]),
            "log joint": kernel.log_joint(position),
        }  # fmt: skip

    start = lambda kernel: partial(draw_start, kernel=kernel, init="documents", n_topics=8)  # noqa: E731
    return Whole(draw, numbers, start, 120, 4, thin=8 if n_proposals else 15)


# With ratings or classes ---------------------------------------------------------------------------------------------


def supervised(base, start=lambda kernel: kernel.start, **given):
    """`given` are coefficients that are known."""

    def draw(rng):
        position = {**base.sample_prior(rng), **given}
        drawn, response = base.sample_data(rng, position)
        tokens, position = in_order(drawn.words, position, "topics")
        return position, replace(base, tokens=tokens, response=response)

    def numbers(position, kernel):
        coefficients = position["coefficients"]
        found = pairs(position["topics"], kernel.tokens.words) | {"log joint": kernel.log_joint(position)}
        if "precision" in position:
            found["log precision"] = np.log(position["precision"])
        return found if given else found | {"squares": (coefficients**2).sum(), "largest": coefficients.max()}

    return Whole(draw, numbers, start, *((120, 7) if getattr(base, "learning", None) == "draw" else (200, 11)))


def ratings():
    said = np.array([0.0, 0.0, np.nan])
    return supervised(RatingsGibbs(BLANK, said, np.full(2, 0.8), 0.4, 2.0, Gamma(2.0, 1.0)))


def classes(learning):
    base = ClassesGibbs(BLANK, np.array([0, 0, -1]), np.full(2, 0.8), 0.4, 4.0, 3, learning)
    if learning == "draw":
        return supervised(base)
    known = np.array([[2.0, -1.0], [-2.0, 1.0], [0.5, 1.5]])
    return supervised(base, lambda kernel: lambda rng: {**kernel.start(rng), "coefficients": known}, coefficients=known)


SAMPLERS = {
    "LDA, dense": partial(lda, "dense"),
    "LDA, sparse": partial(lda, "sparse"),
    "LDA, two threads": partial(lda, "dense", n_threads=2),
    "LDA, priors learned": partial(
        lda, "dense", learning=PriorLearning("sample", Gamma(2.0, 2.0), Gamma(2.0, 2.0), every=2)
    ),
    "HDP": partial(hdp, 0),
    "HDP, splits and merges": partial(hdp, 3),
    "ratings": ratings,
    "classes": partial(classes, "draw"),
    "classes, coefficients known": partial(classes, "fixed"),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_truth_ranks_uniformly_among_the_draws(name):
    confirmed_calibration(SAMPLERS[name]()).raise_if_failed()


def test_too_short_a_warm_up_is_noticed():
    """All tokens begin in one topic: the first three sweeps remember it, draws after the warm-up do not."""
    at_once = replace(lda("dense"), start=lambda kernel: {"topics": np.zeros(len(DOCUMENTS), dtype=np.int32)})
    assert not calibration(replace(at_once, n_warmup=0, n_draws=3, thin=1)).passed
    assert confirmed_calibration(at_once).passed


def test_a_sampler_that_does_not_hear_the_ratings_is_noticed():
    deaf = replace(ratings(), fault=lambda kernel: replace(kernel, response=np.full(len(LENGTHS), np.nan)))
    assert not calibration(deaf).passed
