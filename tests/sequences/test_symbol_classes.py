"""Symbol classes: the sampler against enumeration and urn draws, the estimator against counts made by hand."""

from __future__ import annotations

import _thread
import threading
import warnings
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.datasets import make_zipf_tagging
from pluri.datasets.words import word_features
from pluri.engine import ArraySource
from pluri.inference import mcmc
from pluri.metrics import one_to_one_accuracy
from pluri.priors import LogUniform
from pluri.sequences.sampled import symbol_class_sampler as sampler
from pluri.sequences.sampled.symbol_class_emission import log_newcomer
from pluri.sequences.sampled.symbol_class_gibbs import SymbolClassGibbs, majority
from pluri.sequences.sampled.symbol_class_sampler import LEARNED, Concentrations, Corpus, Tables, assign, log_joint
from pluri.sequences.sampled.symbol_classes import SymbolClassHMM

# Most fits here are as short as their claims allow.
pytestmark = pytest.mark.filterwarnings("ignore:the chains have not settled")

SENTENCES = [
    ["the", "dog", "sees", "a", "cat"],
    ["a", "cat", "sleeps"],
    ["the", "cat", "sees", "the", "dog"],
    ["a", "dog", "sleeps", "sleeps"],
]


def tiny(n_features=1):
    """Four symbols in two sequences; one follows itself, and the sequences share a boundary."""
    codes, lengths = np.array([0, 1, 1, 2, 0, 3, 1]), np.array([4, 3])
    features = np.array([[0, 1], [0, 0], [1, 2], [1, 1]])[:, :n_features]
    return Corpus.from_codes(codes, lengths, features, np.array([2, 3])[:n_features])


def random_corpus(rng, n_features=2):
    codes = rng.integers(0, 6, 60)
    codes[:6] = np.arange(6)
    codes[10:14] = 3  # a run, so that a symbol follows itself
    features = rng.integers(0, 3, (6, n_features))
    return Corpus.from_codes(codes, np.array([20, 1, 0, 9, 30]), features, np.full(n_features, 3))


def urn_log_joint(corpus, classes, n_components, concentrations):
    """Log joint as a product of predictive probabilities: one class, feature, state and symbol after another."""
    k, a, b, g = n_components, concentrations.transition, concentrations.emission, concentrations.classes
    total = 0.0
    drawn = np.zeros(k)
    values = [np.zeros((k, size)) for size in corpus.sizes]
    offsets = np.concatenate([[0], np.cumsum(corpus.sizes)])
    for v, c in enumerate(classes):
        total += np.log((drawn[c] + g) / (v + k * g))
        drawn[c] += 1
        for f, e in enumerate(concentrations.features):
            x = corpus.features[v, f] - offsets[f]
            total += np.log((values[f][c, x] + e) / (values[f][c].sum() + corpus.sizes[f] * e))
            values[f][c, x] += 1
    moves, uses = np.zeros((k + 1, k + 1)), np.zeros(len(classes))
    state = k
    for symbol in corpus.symbols[1:]:
        new = k if symbol < 0 else classes[symbol]
        total += np.log((moves[state, new] + a) / (moves[state].sum() + (k + 1) * a))
        moves[state, new] += 1
        state = new
        if symbol >= 0:
            own = np.flatnonzero(classes == new)
            total += np.log((uses[symbol] + b) / (uses[own].sum() + len(own) * b))
            uses[symbol] += 1
    return total


@pytest.mark.parametrize("n_features", [0, 2])
def test_log_joint_equals_a_product_of_urn_draws(n_features):
    rng = np.random.default_rng(0)
    corpus = random_corpus(rng, n_features)
    concentrations = Concentrations(0.3, 0.7, 0.4, (0.2, 1.5)[:n_features])
    for _ in range(5):
        classes = rng.integers(0, 4, 6)
        expected = urn_log_joint(corpus, classes, 4, concentrations)
        assert log_joint(corpus, assign(corpus, classes, 4).counts, concentrations) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n_features", [0, 2])
def test_the_conditional_of_a_symbol_is_the_ratio_of_log_joints(n_features):
    rng = np.random.default_rng(1)
    corpus = random_corpus(rng, n_features)
    concentrations = Concentrations(0.3, 0.7, 0.4, (0.2, 1.5)[:n_features])
    tables = Tables.of(corpus, 4, concentrations)
    point = assign(corpus, np.array([0, 0, 0, 1, 1, 0]), 4)  # two classes are empty
    for step in range(30):
        v = step % 6
        logs = []
        for c in range(4):
            classes = point.classes.copy()
            classes[v] = c
            logs.append(log_joint(corpus, assign(corpus, classes, 4).counts, concentrations))
        sampler.sweep(corpus, point, tables, rng, order=np.array([v]))
        weights = tables.work[0]
        np.testing.assert_allclose(weights / weights.sum(), np.exp(logs - logsumexp(logs)), rtol=1e-9)


def test_counts_stay_those_of_the_classes():
    rng = np.random.default_rng(2)
    corpus = random_corpus(rng)
    point = assign(corpus, rng.integers(0, 5, 6), 5)
    tables = Tables.of(corpus, 5, Concentrations(0.1, 1.0, 1.0, (0.1, 0.1)))
    moved = sum(sampler.sweep(corpus, point, tables, rng) for _ in range(50))
    assert moved > 10
    fresh = assign(corpus, point.classes, 5)
    np.testing.assert_array_equal(point.states, fresh.states)
    for name in ("transition", "tokens", "types", "features"):
        np.testing.assert_array_equal(getattr(point.counts, name), getattr(fresh.counts, name))
    # A boundary follows the last token of a sequence: a state is left as often as it has tokens.
    np.testing.assert_array_equal(fresh.counts.transition.sum(axis=1)[:5], fresh.counts.tokens)


def test_visits_are_as_frequent_as_enumeration_says():
    """All 81 classifications of four symbols into three classes; false alarms 1e-6 (draws nearly independent)."""
    corpus, concentrations, rng = tiny(), Concentrations(0.4, 0.8, 0.6, (0.5,)), np.random.default_rng(3)
    every = np.array(list(product(range(3), repeat=4)))
    logs = np.array([log_joint(corpus, assign(corpus, classes, 3).counts, concentrations) for classes in every])
    posterior = np.exp(logs - logsumexp(logs))
    point, tables = assign(corpus, np.zeros(4, dtype=np.int64), 3), Tables.of(corpus, 3, concentrations)
    n_draws, visits = 5000, np.zeros(81)
    for _ in range(n_draws):
        for _ in range(8):
            sampler.sweep(corpus, point, tables, rng)
        visits[point.classes @ [27, 9, 3, 1]] += 1
    expected = n_draws * posterior
    order = np.argsort(expected)
    rare = np.cumsum(expected[order]) < 10  # merged into one cell
    seen = np.concatenate([[visits[order[rare]].sum()], visits[order[~rare]]])
    wanted = np.concatenate([[expected[order[rare]].sum()], expected[order[~rare]]])
    seen, wanted = seen[wanted > 0], wanted[wanted > 0]
    assert len(wanted) > 20
    assert ((seen - wanted) ** 2 / wanted).sum() < chi2.isf(1e-6, len(wanted) - 1)


def test_sampled_concentrations_have_their_exact_posterior():
    """Means of 14 functions of classes and concentrations within 7.5 standard errors by 30 batches; rate below 1e-6.

    Given the classes, each concentration has a part of the log joint to itself: the exact answer is a sum over all
    classifications of products of integrals over one variable.
    """
    corpus, rng = tiny(2), np.random.default_rng(4)
    every = np.array(list(product(range(2), repeat=4)))
    counts = [assign(corpus, classes, 2).counts for classes in every]
    priors = [LEARNED.transition, LEARNED.emission, LEARNED.classes, LEARNED.features, LEARNED.features]
    edges = [np.linspace(*np.log(prior.support), 201) for prior in priors]
    grids = [(edge[1:] + edge[:-1]) / 2 for edge in edges]  # midpoint rule

    def parts(c):
        functions = [
            lambda x: sampler.log_transitions(c, x),
            lambda x: sampler.log_tokens(corpus, c, x),
            lambda x: sampler.log_types(c, x),
            lambda x: sampler.log_feature(corpus, c, 0, x),
            lambda x: sampler.log_feature(corpus, c, 1, x),
        ]
        return [np.array([function(x) for x in np.exp(grid)]) for function, grid in zip(functions, grids)]

    tables = [parts(c) for c in counts]
    evidence = np.array([[logsumexp(part) for part in row] for row in tables])
    posterior = np.exp(evidence.sum(axis=1) - logsumexp(evidence.sum(axis=1)))
    means = np.array([[np.exp(part - logsumexp(part)) @ grid for part, grid in zip(row, grids)] for row in tables])
    same = every[:, :, None] == every[:, None, :]
    upper = np.triu_indices(4, 1)
    sizes = np.array([c.types[0] for c in counts])[:, None] == np.arange(3)
    exact = posterior @ np.concatenate([same[:, upper[0], upper[1]], sizes, means], axis=1)

    point = assign(corpus, np.zeros(4, dtype=np.int64), 2)
    concentrations = Concentrations(0.1, 1.0, 1.0, (0.1, 0.1))
    rows = np.empty((9_000, len(exact)))
    for row in rows:
        concentrations = sampler.sample_concentrations(corpus, point.counts, concentrations, rng)
        sampler.sweep(corpus, point, Tables.of(corpus, 2, concentrations), rng)
        together = (point.classes[:, None] == point.classes)[upper]
        row[:] = [*together, *(point.counts.types[0] == np.arange(3)), *np.log(concentrations.as_tuple())]
    batches = rows.reshape(30, 300, -1).mean(axis=1)
    errors = batches.std(axis=0, ddof=1) / np.sqrt(30)
    assert (abs(batches.mean(axis=0) - exact) < 7.5 * errors).all()


def test_names_of_classes_do_not_matter():
    rng = np.random.default_rng(5)
    corpus, concentrations = random_corpus(rng), Concentrations(0.3, 0.7, 0.4, (0.2, 0.3))
    classes = rng.integers(0, 3, 6)
    expected = log_joint(corpus, assign(corpus, classes, 3).counts, concentrations)
    for order in permutations(range(3)):
        renamed = assign(corpus, np.array(order)[classes], 3)
        assert log_joint(corpus, renamed.counts, concentrations) == pytest.approx(expected, abs=1e-10)


def test_a_chain_makes_the_sweeps_that_are_made_by_hand():
    corpus = random_corpus(np.random.default_rng(6))
    first = Concentrations(0.1, 1.0, 1.0, (0.1, 0.1))
    kernel = SymbolClassGibbs(corpus, 3, first, n_held=6)
    trace = mcmc.sample(
        kernel, kernel.sample_start, record=kernel.record, n_warmup=4, n_draws=16, n_chains=1,
        random_state=np.random.default_rng(0), warn=False,
    )  # fmt: skip
    rng = np.random.default_rng(0).spawn(1)[0]  # the stream of the first chain
    point = assign(corpus, rng.integers(0, 3, 6), 3)
    draws, weights, concentrations, values = [], [], first, []
    for number in range(20):
        sampler.sweep(corpus, point, Tables.of(corpus, 3, concentrations), rng)
        if number in (6, 9, 12, 15, 18):
            concentrations = sampler.sample_concentrations(corpus, point.counts, concentrations, rng)
        draws.append(point.classes.copy())
        weights.append(concentrations.as_tuple())
        values.append(log_joint(corpus, point.counts, concentrations))
    np.testing.assert_allclose(trace.stats["log_density"][0], values[4:])
    np.testing.assert_array_equal(trace["classes"][0], draws[4:])
    names = ("transition_concentration", "emission_concentration", "class_concentration")
    found = np.column_stack([*(trace[name][0] for name in names), trace["feature_concentration"][0]])
    np.testing.assert_array_equal(found, weights[4:])
    np.testing.assert_array_equal(found[1], first.as_tuple())
    for v, c in enumerate(majority(trace["classes"][0, -7:], 3)):
        shares = [sum(draw[v] == other for draw in draws[-7:]) for other in range(3)]
        assert shares[c] == max(shares)


def test_majority_takes_the_commonest_class():
    np.testing.assert_array_equal(majority(np.array([[0, 1], [2, 1], [2, 0]]), 3), [2, 1])


# The estimator ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text():
    rng = np.random.default_rng(0)
    corpus = make_zipf_tagging(400, n_states=5, n_words=150, ambiguity=0.0, as_words=True, random_state=rng)
    return corpus.X, corpus.lengths, corpus.states


@pytest.fixture(scope="module")
def fitted(text):
    return SymbolClassHMM(5, n_chains=3, n_warmup=30, random_state=0).fit(text[0], lengths=text[1])


def test_word_classes_are_found_again(text, fitted):
    """Shuffled labels, as a measure of chance, reach the share of the commonest class at best (about 0.5)."""
    found = one_to_one_accuracy(text[2], fitted.labels_)
    shuffled = np.random.default_rng(0).permutation(fitted.labels_)
    assert found > 0.85
    assert found > one_to_one_accuracy(text[2], shuffled) + 0.3


def test_the_chain_with_the_highest_log_joint_is_kept(fitted):
    levels = fitted.trace_.stats["log_density"].mean(axis=1)
    assert fitted.best_chain_ == levels.argmax()
    assert fitted.objective_ == pytest.approx(levels.max())


def test_a_feature_that_tells_the_class_helps():
    """Words too rare for their contexts to tell, and a feature that is right for nine symbols in ten.

    Over such corpora the gain is 0.16 with a standard deviation of 0.10: the mean of nine is negative once in a million
    times.
    """
    gains = []
    for seed in range(9):
        corpus = make_zipf_tagging(60, n_states=5, n_words=400, ambiguity=0.0, exponent=0.3, random_state=seed)
        rng = np.random.default_rng(seed)
        owner = corpus.emissionprob.argmax(axis=0)
        hint = np.where(rng.random(400) < 0.9, owner, rng.integers(0, 5, 400))
        accuracies = []
        for X in (corpus.X, np.column_stack([corpus.X, hint[corpus.X]])):
            model = SymbolClassHMM(5, n_chains=2, n_warmup=30, random_state=0).fit(X, lengths=corpus.lengths)
            accuracies.append(one_to_one_accuracy(corpus.states, model.labels_))
        gains.append(accuracies[1] - accuracies[0])
    assert np.mean(gains) > 0.0


def test_every_token_of_a_symbol_has_its_class(text, fitted):
    X, lengths, _ = text
    places = np.searchsorted(fitted.vocabulary_[0], X[:, 0])
    np.testing.assert_array_equal(fitted.labels_, fitted.symbol_classes_[places])
    for algorithm in ("map", "viterbi"):
        states = fitted.decode(X, lengths, algorithm=algorithm)[1]
        np.testing.assert_array_equal(states, fitted.labels_)
    np.testing.assert_array_equal(np.bincount(fitted.labels_, minlength=5), fitted.state_occupancy_)


def test_probabilities_are_posterior_means_given_the_classes():
    model = SymbolClassHMM(
        2, transition_concentration=0.3, emission_concentration=0.7, class_concentration=1.0, random_state=0
    ).fit(SENTENCES)
    states = np.split(model.labels_, np.cumsum([len(s) for s in SENTENCES])[:-1])
    starts, moves = np.full(2, 0.3), np.full((2, 2), 0.3)
    for path in states:
        starts[path[0]] += 1
        for i, j in pairwise(path):
            moves[i, j] += 1
    np.testing.assert_allclose(model.startprob_, starts / starts.sum())
    np.testing.assert_allclose(model.transmat_, moves / moves.sum(axis=1, keepdims=True))
    words = [word for sentence in SENTENCES for word in sentence]
    for c in range(2):
        own = [v for v, word in enumerate(model.vocabulary_[0]) if model.symbol_classes_[v] == c]
        weights = {v: words.count(model.vocabulary_[0][v]) + 0.7 for v in own}
        for v, probability in enumerate(model.emissionprob_[c]):
            assert probability == pytest.approx(weights.get(v, 0.0) / sum(weights.values()))
    assert model.transition_concentration_ == pytest.approx(0.3)


def test_a_new_symbol_is_as_likely_as_the_log_joint_says():
    """Adding a symbol of one token to a class, by the closed form and by the tokens' and symbols' parts themselves."""
    types, tokens, b, g = np.array([3, 0, 2]), np.array([9, 0, 5]), 0.7, 0.4

    def part(types, tokens):
        used = types > 0
        classes = gammaln(3 * g) - gammaln(types.sum() + 3 * g) + gammaln(types + g).sum()
        return classes + (gammaln(types[used] * b) - gammaln(types[used] * b + tokens[used])).sum()

    expected = [part(types + one, tokens + one) - part(types, tokens) + np.log(b) for one in np.eye(3, dtype=int)]
    np.testing.assert_allclose(log_newcomer(types, tokens.astype(float), b, g), expected, rtol=1e-12)


def brute_force(model, log_emission):
    """Posterior of each step and log-likelihood by a sum over all paths: log_emission (n_steps, k)."""
    n, k = log_emission.shape
    paths = np.array(list(product(range(k), repeat=n)))
    logs = np.log(model.startprob_)[paths[:, 0]] + log_emission[np.arange(n), paths].sum(axis=1)
    logs += np.log(model.transmat_)[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    weights = np.exp(logs - logsumexp(logs))
    return np.stack([[weights[paths[:, t] == c].sum() for c in range(k)] for t in range(n)]), logsumexp(logs)


@pytest.mark.parametrize("unseen", ["new", "missing"])
def test_unseen_symbols_are_decoded_by_their_neighbours_and_features(unseen):
    features = {"the": "x", "a": "x", "dog": "y", "cat": "y", "sees": "z", "sleeps": "z"}
    sentences = [[[word, features[word]] for word in sentence] for sentence in SENTENCES]
    model = SymbolClassHMM(3, unseen=unseen, random_state=0).fit(sentences)
    query = np.array([["the", "x"], ["emu", "y"], ["sees", "z"], ["gnu", "?"], [None, "z"]], dtype=object)
    known = np.full(3, -np.inf)
    rows = []
    for word, feature in query:
        row = np.zeros(3)
        if word in features:
            v = int(np.flatnonzero(model.vocabulary_[0] == word)[0])
            c = model.symbol_classes_[v]
            row = known.copy()
            row[c] = np.log(model.emissionprob_[c, v])  # features of a known symbol are no news
        else:
            if word is not None and unseen == "new":
                types = np.bincount(model.symbol_classes_, minlength=3)
                b, g = model.emission_concentration_, model.class_concentration_
                row = row + log_newcomer(types, model.state_occupancy_, b, g)
            if feature in "xyz":
                row = row + np.log(model.featureprob_[0][:, "xyz".index(feature)])
        rows.append(row)
    posterior, log_likelihood = brute_force(model, np.array(rows))
    np.testing.assert_allclose(model.predict_proba(query), posterior, atol=1e-9)
    assert model.score(query) == pytest.approx(log_likelihood)
    online = model.filter()
    for row in query:
        last = online.update(row)
    np.testing.assert_allclose(last, posterior[-1], atol=1e-9)


def test_unseen_symbols_may_be_an_error():
    model = SymbolClassHMM(2, unseen="error", n_warmup=0, n_draws=5, random_state=0).fit(SENTENCES)
    with pytest.raises(ValueError, match="seen in column 0, got 'emu'"):
        model.predict(["the", "emu"])
    numbers = SymbolClassHMM(2, unseen="error", n_warmup=0, n_draws=5, random_state=0).fit(
        np.array([[0], [3], [0], [3]])
    )
    np.testing.assert_array_equal(numbers.symbol_classes_ == -1, [False, True, True, False])
    for strange in (1, 4):
        with pytest.raises(ValueError, match=f"seen in column 0, got {strange}"):
            numbers.predict(np.array([[0], [strange]]))


def test_numbers_that_do_not_occur_change_nothing(text):
    X, lengths, _ = text
    codes = np.unique(X[:, 0], return_inverse=True)[1].reshape(-1, 1)
    settings = {"n_components": 4, "n_warmup": 0, "n_draws": 10, "random_state": 0}
    dense = SymbolClassHMM(**settings).fit(codes, lengths=lengths)
    sparse = SymbolClassHMM(**settings).fit(3 * codes + 1, lengths=lengths)
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)
    np.testing.assert_allclose(dense.emissionprob_, sparse.emissionprob_[:, 1::3])
    np.testing.assert_allclose(sparse.emissionprob_.sum(axis=1), 1.0)
    assert sparse.score(3 * codes + 1, lengths=lengths) == pytest.approx(dense.score(codes, lengths=lengths))


def test_lists_lengths_words_and_sources_give_the_same_fit(text):
    X, lengths, _ = text
    settings = {"n_components": 4, "n_warmup": 0, "n_draws": 10, "random_state": 0}
    reference = SymbolClassHMM(**settings).fit(X, lengths=lengths)
    listed = np.split(X[:, 0], np.cumsum(lengths)[:-1])
    codes = np.unique(X[:, 0], return_inverse=True)[1].reshape(-1, 1)
    for given in (
        ([list(item) for item in listed],),
        (X, lengths),
        (ArraySource(codes, lengths),),
        (codes.astype(float), None, lengths),
    ):
        np.testing.assert_array_equal(SymbolClassHMM(**settings).fit(*given).labels_, reference.labels_)


def test_the_seed_decides_and_threads_do_not(text):
    X, lengths, _ = text
    settings = {"n_components": 5, "n_warmup": 5, "n_draws": 10}
    one = SymbolClassHMM(**settings, n_chains=3, random_state=1).fit(X, lengths=lengths)
    two = SymbolClassHMM(**settings, n_chains=3, random_state=1, n_jobs=2).fit(X, lengths=lengths)
    alone = SymbolClassHMM(**settings, random_state=1).fit(X, lengths=lengths)
    other = SymbolClassHMM(**settings, n_chains=3, random_state=2).fit(X, lengths=lengths)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    for name in one.trace_:
        np.testing.assert_array_equal(one.trace_[name], two.trace_[name])
        np.testing.assert_array_equal(one.trace_[name][0], alone.trace_[name][0])
    assert not np.array_equal(one.trace_["classes"], other.trace_["classes"])


def test_the_trace_holds_what_the_model_is_made_of(fitted):
    trace = fitted.trace_
    assert trace.stats["log_density"].shape == trace.stats["moved"].shape == (3, 30)
    assert trace["classes"].shape == (3, 30, len(fitted.symbol_classes_))
    assert trace["feature_concentration"].shape == (3, 30, 0)
    for name in ("transition", "emission", "class"):
        draws = trace[f"{name}_concentration"][fitted.best_chain_]
        assert len(np.unique(draws)) > 1  # it moves on every third sweep, if the proposals are not refused
        assert getattr(fitted, f"{name}_concentration_") == pytest.approx(draws.mean())
    np.testing.assert_array_equal(majority(trace["classes"][fitted.best_chain_], 5), fitted.symbol_classes_)
    assert fitted.n_iter_ == 60
    assert "SymbolClassHMM: 5 states" in fitted.summary()


@pytest.mark.parametrize("name", ["transition", "emission", "class", "feature"])
def test_a_concentration_is_a_number_or_has_a_prior(name):
    features = {"the": "x", "a": "x", "dog": "y", "cat": "y", "sees": "z", "sleeps": "z"}
    sentences = [[[word, features[word]] for word in sentence] for sentence in SENTENCES]
    name = f"{name}_concentration"
    settings = {"n_components": 2, "n_warmup": 10, "random_state": 0}
    fixed = SymbolClassHMM(**settings, **{name: 0.3}).fit(sentences).trace_
    assert (fixed[name] == 0.3).all()
    others = {other for other in fixed if other.endswith("_concentration")} - {name}
    assert all(len(np.unique(fixed[other])) > 1 for other in others)
    learned = SymbolClassHMM(**settings, **{name: LogUniform(2.0, 3.0)}).fit(sentences).trace_[name]
    assert len(np.unique(learned)) > 1
    assert ((learned > 2.0) & (learned < 3.0)).all()


def test_samples_have_the_features_of_their_symbols():
    features = {"the": "x", "a": "x", "dog": "y", "cat": "y", "sees": "z", "sleeps": "z"}
    sentences = [[[word, features[word]] for word in sentence] for sentence in SENTENCES]
    model = SymbolClassHMM(5, n_warmup=10, n_draws=10, random_state=0).fit(sentences)  # more states than are used
    X, states = model.sample(500, random_state=1)
    assert all(features[word] == feature for word, feature in X)
    empty = np.bincount(model.symbol_classes_, minlength=5) == 0
    used = ~empty[states]
    np.testing.assert_array_equal(model.predict(X)[used], states[used])
    assert not empty[model.predict(X)].any()
    for table in (model.emissionprob_, *model.featureprob_, model.transmat_):
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert model.n_free_parameters() == 4 + 20 + (6 - (~empty).sum()) + 5 * 2


@pytest.mark.parametrize("n_warmup", [0, 10**6])
def test_ctrl_c_keeps_what_was_sampled(text, n_warmup):
    model = SymbolClassHMM(5, n_draws=10**6, n_warmup=n_warmup, n_chains=2, n_jobs=2, random_state=0)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model.fit(text[0], lengths=text[1])
    timer.join()
    assert 1 <= model.n_iter_ < 10**6
    assert model.trace_.n_draws == (1 if n_warmup else model.n_iter_)
    np.testing.assert_array_equal(model.predict(text[0], text[1]), model.labels_)


def test_empty_and_one_word_sequences_are_welcome():
    model = SymbolClassHMM(2, n_warmup=0, n_draws=5, random_state=0)
    model.fit(np.array([["a"], ["b"], ["a"]]), lengths=[0, 1, 0, 2])
    assert model.labels_.shape == (3,)
    assert SymbolClassHMM(1, n_warmup=0, n_draws=2).fit(["a"]).predict(["a"]).tolist() == [0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"n_warmup": 2.5}, "n_warmup must be an integer of at least 0, got 2.5"),
        ({"n_draws": 0}, "n_draws must be an integer of at least 1, got 0"),
        ({"n_chains": True}, "n_chains must be an integer of at least 1, got True"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0, or None, got 0"),
        ({"unseen": "guess"}, "unseen must be one of 'new', 'missing', 'error', got 'guess'"),
        ({"algorithm": "guess"}, "algorithm must be one of 'viterbi', 'map', got 'guess'"),
        ({"transition_concentration": 0.0}, "transition_concentration must be a positive number or 'learn' or a prior"),
        ({"class_concentration": -1}, r"class_concentration must be .* or a prior \(LogUniform\), got -1"),
        ({"feature_concentration": np.nan}, "feature_concentration must be a positive number"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message):
        SymbolClassHMM(**settings).fit(SENTENCES)


def test_bad_data_are_refused_in_one_sentence():
    model = SymbolClassHMM(2, n_warmup=0, n_draws=2)
    with pytest.raises(ValueError, match="in column 1 wherever symbol a stands, got x and y"):
        model.fit(np.array([["a", "x"], ["b", "x"], ["a", "y"]]))
    with pytest.raises(ValueError, match="no missing values in fit"):
        model.fit(np.array([["a"], [None]], dtype=object))
    with pytest.raises(ValueError, match="no missing values in fit"):
        model.fit(np.array([[1.0], [np.nan]]))


def test_word_features_are_suffix_and_shape():
    words = ["Singing", "ringing", "King", "x-ray", "Mid-1990s", "U.S.", "Anglo-Saxon", "--", "singing", "singing"]
    features = word_features(words, min_words=2)
    assert features.tolist() == [
        ["ing", "small"],
        ["ing", "small"],
        ["*short", "capital"],
        ["*other", "small-"],
        ["*other", "digit"],
        ["*other", "capital"],
        ["*other", "capital-"],
        ["*other", "punctuation"],
        ["ing", "small"],
        ["ing", "small"],
    ]
    assert word_features(words, min_words=3)[0, 0] == "*rare"  # two distinct words have the suffix
    assert word_features([]).shape == (0, 2)
    with pytest.raises(ValueError, match="min_words must be at least 1, got 0"):
        word_features(words, min_words=0)


def test_a_chain_that_still_climbs_is_said_aloud_and_a_usual_fit_is_quiet():
    corpus = make_zipf_tagging(150, n_states=5, n_words=100, as_words=True, random_state=0)
    with pytest.warns(ConvergenceWarning, match="have not settled: R-hat of log_density"):
        climbing = SymbolClassHMM(5, n_warmup=0, random_state=0).fit(corpus.X, lengths=corpus.lengths)
    assert not climbing.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        usual = SymbolClassHMM(5, random_state=0).fit(corpus.X, lengths=corpus.lengths)
    assert usual.converged_
