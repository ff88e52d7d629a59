import _thread
import threading
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.engine import ArraySource
from pluri.inference import mcmc
from pluri.metrics import many_to_one_accuracy
from pluri.priors import Gamma, LogUniform
from pluri.sequences.sampled import collapsed_gibbs as gibbs
from pluri.sequences.sampled.bayesian_categorical import BayesianCategoricalHMM
from pluri.sequences.sampled.collapsed_gibbs import ConcentrationPriors, Concentrations, SymbolSequences
from pluri.sequences.sampled.hidden_states_gibbs import HiddenStatesGibbs, posterior_means

# A short chain that has settled may still seem to drift: the halves of 100 sweeps with memory differ by chance. Only
# the test of that warning asks.
pytestmark = pytest.mark.filterwarnings("ignore:the chains have not settled")

WEIGHTS = Concentrations(start=0.7, transition=0.4, emission=0.6)


def sequences_of(codes, lengths, sizes):
    codes = np.asarray(codes, dtype=np.int64).reshape(sum(lengths), -1)
    columns = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return SymbolSequences(codes, offsets, columns)


def urn_log_joint(data, states, k, weights):
    """Log joint probability as a product of predictive probabilities, one token after the other (Polya urns)."""
    seen, total = Counter(), 0.0

    def draw(urn, outcome, n_outcomes, weight):
        nonlocal total
        total += np.log((seen[urn, outcome] + weight) / (seen[urn] + n_outcomes * weight))
        seen[urn, outcome] += 1
        seen[urn] += 1

    for begin, end in pairwise(data.offsets.tolist()):
        for t in range(begin, end):
            if t == begin:
                draw("start", states[t], k, weights.start)
            else:
                draw(("after", states[t - 1]), states[t], k, weights.transition)
            for f, code in enumerate(data.codes[t]):
                if code >= 0:
                    size = int(data.columns[f + 1] - data.columns[f])
                    draw((f, states[t]), code, size, weights.emission)
    return total


def enumerate_states(data, k, weights):
    paths = list(product(range(k), repeat=len(data.codes)))
    log_joint = np.array([urn_log_joint(data, path, k, weights) for path in paths])
    return paths, log_joint


THREE_TOKENS = sequences_of([0, 1, 0], [3], [2])
PROBLEMS = {
    "three tokens": (THREE_TOKENS, 2, 1.0),
    "two sequences, one symbol missing, an empty sequence": (sequences_of([0, 1, -1, 1, 0], [3, 0, 2], [3]), 2, 1.0),
    "one symbol, three states": (sequences_of([0, 0, 0, 0], [4], [1]), 3, 1.0),
    "two columns": (sequences_of([[0, 2], [1, -1], [0, 3], [-1, -1]], [4], [2, 3]), 2, 1.0),
    "a temperature of 2": (THREE_TOKENS, 2, 2.0),
    "a temperature of 0.5": (sequences_of([0, 1, 1, 1], [1, 3], [2]), 2, 0.5),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_log_joint_equals_the_product_of_urn_draws(name):
    data, k, _ = PROBLEMS[name]
    for path in product(range(k), repeat=len(data.codes)):
        counts = gibbs.count(data, np.array(path), k)
        together, symbols = gibbs.log_joint(data, counts, WEIGHTS)
        assert together == pytest.approx(urn_log_joint(data, path, k, WEIGHTS), abs=1e-12)
        assert symbols <= 0


@pytest.mark.parametrize("name", PROBLEMS)
def test_visits_are_as_frequent_as_enumeration_says(name):
    """Chi-square at level 1e-6 each; ten sweeps between two visits make them all but independent."""
    data, k, temperature = PROBLEMS[name]
    paths, log_joint = enumerate_states(data, k, WEIGHTS)
    tempered = log_joint / temperature
    expected = np.exp(tempered - logsumexp(tempered))
    rng = np.random.default_rng(8)
    states = np.zeros(len(data.codes), dtype=np.int64)
    counts = gibbs.count(data, states, k)
    visits, n_visits = Counter(), 4000
    for _ in range(n_visits):
        for _ in range(10):
            gibbs.sweep(data, states, counts, WEIGHTS, rng, temperature=temperature)
        visits[tuple(states.tolist())] += 1
    observed = np.array([visits[path] for path in paths])
    common = expected * n_visits >= 5
    pooled = [np.append(x[common], x[~common].sum()) for x in (observed, expected * n_visits)]
    keep = pooled[1] > 0
    assert chisquare(pooled[0][keep], pooled[1][keep]).pvalue > 1e-6


def test_the_middle_of_three_equal_states_has_its_exact_conditional():
    """x_{t-1} = s = x_{t+1}: the uniform at which the kernel's choice flips is the conditional probability."""
    data, k = sequences_of([0, 0, 1, 0], [4], [2]), 2
    for outer in product(range(k), repeat=3):
        first, left, right = outer
        log_joint = [urn_log_joint(data, (first, left, s, right), k, WEIGHTS) for s in range(k)]
        expected = np.exp(log_joint[0] - logsumexp(log_joint))
        low, high = 0.0, 1.0
        while high - low > 1e-12:
            uniform = (low + high) / 2
            states = np.array([first, left, 1 - left, right])
            counts = gibbs.count(data, states, k)
            _resample_third_only(data, states, counts, uniform)
            low, high = (uniform, high) if states[2] == 0 else (low, uniform)
        assert low == pytest.approx(expected, abs=1e-10)


class _Scripted:
    """Stands in for a generator: hands out given uniforms."""

    def __init__(self, values):
        self.values = values

    def random(self, size):
        return np.resize(self.values, size)


def _resample_third_only(data, states, counts, uniform):
    """Keep the first two states by trying uniforms; the fourth is resampled after the third and does not matter."""
    first, left = states[:2]
    for u0, u1 in product((1e-9, 1 - 1e-9), repeat=2):
        trial = states.copy()
        gibbs.sweep(data, trial, _copy(counts), WEIGHTS, _Scripted([u0, u1, uniform, 0.5]))
        if trial[0] == first and trial[1] == left:
            states[:] = trial
            return
    raise AssertionError("no uniforms keep the first two states")


def _copy(counts):
    return gibbs.Counts(*(np.array(values) for values in counts))


def random_problem(rng, n_columns=1, missing=0.1):
    lengths = rng.integers(0, 9, size=20).tolist()
    sizes = rng.integers(2, 6, size=n_columns)
    codes = rng.integers(sizes, size=(sum(lengths), n_columns)) + np.concatenate([[0], np.cumsum(sizes)])[:-1]
    codes[rng.random(codes.shape) < missing] = -1
    return sequences_of(codes, lengths, sizes)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_counts_stay_those_of_the_states(n_columns):
    rng = np.random.default_rng(3)
    data, k = random_problem(rng, n_columns), 4
    states = rng.integers(k, size=len(data.codes))
    counts = gibbs.count(data, states, k)
    for _ in range(50):
        gibbs.sweep(data, states, counts, WEIGHTS, rng)
    fresh = gibbs.count(data, states, k)
    for name in counts._fields:
        np.testing.assert_array_equal(getattr(counts, name), getattr(fresh, name))
    assert counts.transition.sum() == len(data.codes)
    assert counts.emission.sum() == (data.codes >= 0).sum()


def test_many_columns_do_not_underflow():
    n_columns, k = 400, 2
    truth = np.repeat([0, 1], 10)
    codes = truth[:, None] + 2 * np.arange(n_columns)
    data = sequences_of(codes, [20], [2] * n_columns)
    labels = means_of_a_chain(data, k, Concentrations(1.0, 1.0, 1e-3), n_warmup=10, n_draws=10).labels
    assert many_to_one_accuracy(truth, labels) == 1.0


def means_of_a_chain(data, k, weights, **settings):
    kernel = HiddenStatesGibbs(data, k, weights, ConcentrationPriors(None, None))
    trace = mcmc.sample(
        kernel, kernel.sample_start, record=kernel.record, random_state=np.random.default_rng(0), n_chains=1,
        warn=False, **settings,
    )  # fmt: skip
    return posterior_means(kernel, {name: values[0] for name, values in trace.draws.items()})


def draw_states(rng, lengths, weights, k):
    """States by urns: the same distribution as with drawn probabilities, and no underflow at small concentrations."""
    seen, states = np.zeros((k + 1, k)), []
    for length in lengths:
        state = k
        for _ in range(length):
            state = draw_from_urn(rng, seen[state], weights.start if state == k else weights.transition)
            states.append(state)
    return np.array(states)


def draw_data(rng, states, lengths, n_symbols, weights, k):
    """Symbols given the states, by urns too."""
    seen = np.zeros((k, n_symbols))
    codes = [draw_from_urn(rng, seen[state], weights.emission) for state in states]
    return sequences_of(codes, lengths, [n_symbols])


def draw_from_urn(rng, seen, weight):
    cumulative = np.cumsum(seen + weight)
    outcome = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
    seen[outcome] += 1
    return outcome


def summaries(data, states, weights, k):
    counts = gibbs.count(data, states, k)
    return [
        np.trace(counts.transition[:k]),
        (counts.departures**2).sum(),
        (counts.emission**2).sum(),
        counts.transition[k, 0],
        np.log(weights.transition),
        np.log(weights.emission),
        np.log(weights.transition) ** 2,
    ]


# A second opinion: `test_every_sampler` tries the same sweeps by Geweke's test (BayesianCategoricalHMM).
@pytest.mark.thorough
def test_prior_and_sampler_agree_on_the_joint_distribution():
    """Geweke's test: the chain (states given data, then data given states) leaves the joint distribution as it is.

    Seven statistics at six and a half standard errors, by 50 batches: 1e-6 in all.

    A narrower prior on the concentrations lets the chain mix faster.
    """
    priors = ConcentrationPriors(LogUniform(0.05, 5.0), LogUniform(0.05, 5.0))
    rng = np.random.default_rng(11)
    k, n_symbols, lengths = 3, 3, [4, 1, 3]

    def draw_weights():
        a, b = np.exp(rng.uniform(np.log(0.05), np.log(5.0), size=2))
        return Concentrations(0.8, a, b)

    independent = []
    for _ in range(4000):
        weights = draw_weights()
        states = draw_states(rng, lengths, weights, k)
        independent.append(summaries(draw_data(rng, states, lengths, n_symbols, weights, k), states, weights, k))

    chain = []
    for _ in range(4000):
        data = draw_data(rng, states, lengths, n_symbols, weights, k)
        counts = gibbs.count(data, states, k)
        gibbs.sweep(data, states, counts, weights, rng)
        weights = gibbs.sample_concentrations(data, counts, weights, rng, priors)
        chain.append(summaries(data, states, weights, k))
    chain, independent = np.array(chain), np.array(independent)
    batches = chain.reshape(50, -1, chain.shape[1]).mean(axis=1)
    error = np.sqrt(batches.var(axis=0, ddof=1) / len(batches) + independent.var(axis=0, ddof=1) / len(independent))
    z = (chain.mean(axis=0) - independent.mean(axis=0)) / error
    assert (np.abs(z) < 6.5).all(), z


def test_posterior_mean_is_the_mean_over_kept_samples():
    rng = np.random.default_rng(5)
    data, k = random_problem(rng), 3
    means = means_of_a_chain(data, k, WEIGHTS, n_warmup=10, n_draws=4, thin=5)
    stream = np.random.default_rng(0).spawn(1)[0]  # that of the first chain
    states = stream.integers(k, size=len(data.codes))
    starts, tables, votes = [], [], np.zeros((len(states), k))
    for number in range(30):
        gibbs.sweep(data, states, gibbs.count(data, states, k), WEIGHTS, stream)
        if number in (14, 19, 24, 29):
            firsts = states[data.offsets[:-1][np.diff(data.offsets) > 0]]
            starts.append((np.bincount(firsts, minlength=k) + WEIGHTS.start) / (len(firsts) + k * WEIGHTS.start))
            table = np.full((k, int(data.columns[-1])), WEIGHTS.emission)
            for code, state in zip(data.codes[:, 0], states):
                table[state, code] += code >= 0
            tables.append(table / table.sum(axis=1, keepdims=True))
            votes[np.arange(len(states)), states] += 1
    np.testing.assert_allclose(means.start, np.mean(starts, axis=0))
    np.testing.assert_allclose(means.emission.T, np.mean(tables, axis=0))
    np.testing.assert_array_equal(means.labels, votes.argmax(axis=1))
    np.testing.assert_allclose(means.occupancy, votes.sum(axis=0) / 4)


# The estimator ------------------------------------------------------------------------------------------------------


def tagged_text(rng, n_sentences=150):
    """Sentences of three word classes that follow each other in a circle, mostly; returns sentences and classes."""
    words = [["the", "a", "this"], ["dog", "cat", "bird", "fish"], ["runs", "sleeps", "sings"]]
    sentences, classes = [], []
    for _ in range(n_sentences):
        tags = (rng.integers(3) + np.cumsum(rng.random(rng.integers(4, 9)) < 0.9)) % 3
        sentences.append([words[tag][rng.integers(len(words[tag]))] for tag in tags])
        classes.append(tags)
    return sentences, np.concatenate(classes)


@pytest.fixture(scope="module")
def text():
    return tagged_text(np.random.default_rng(0))


def quick(n_components=3, **settings):
    settings = {"n_draws": 100, "n_warmup": 60, "random_state": 0} | settings
    return BayesianCategoricalHMM(n_components, **settings)


def test_word_classes_are_found_again(text):
    sentences, classes = text
    model = quick(n_chains=4, n_jobs=2, annealing=2.0).fit(sentences)
    for labels in (model.labels_, model.best_labels_, model.predict(sentences)):
        assert many_to_one_accuracy(classes, labels) > 0.98
    assert set(model.emissionprob_.argmax(axis=1)) <= set(range(10))
    for name in ("startprob_", "transmat_", "emissionprob_"):
        np.testing.assert_allclose(getattr(model, name).sum(axis=-1), 1.0)
    assert model.state_occupancy_.sum() == pytest.approx(len(classes))
    assert "converged" in model.summary()


def test_lists_lengths_integers_and_sources_give_the_same_fit(text):
    sentences, _ = text
    lengths = [len(sentence) for sentence in sentences]
    flat = np.array([word for sentence in sentences for word in sentence], dtype=object)[:, None]
    codes = np.unique(flat.astype(str), return_inverse=True)[1].reshape(-1, 1)
    expected = quick().fit(sentences)
    fits = [
        quick().fit(flat, lengths=lengths),
        quick().fit(flat, lengths),
        quick().fit(codes, lengths=lengths),
        quick(n_features=10).fit(ArraySource(codes, np.array(lengths), batch_size=50)),
    ]
    for model in fits:
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_allclose(model.emissionprob_, expected.emissionprob_)
    assert len(expected.vocabulary_[0]) == 10


def test_the_seed_decides_and_threads_do_not(text):
    sentences, _ = text
    learned = {"transition_concentration": "learn", "emission_concentration": "learn"}
    one, two = (quick(n_chains=3, n_jobs=n, **learned).fit(sentences[:30]) for n in (1, 2))
    assert one.trace_["states"].shape == (3, 100, sum(map(len, sentences[:30])))
    for name in one.trace_:
        np.testing.assert_array_equal(one.trace_[name], two.trace_[name])
    np.testing.assert_array_equal(one.transmat_, two.transmat_)
    other = quick(n_chains=3, random_state=1).fit(sentences[:30])
    assert not np.array_equal(one.trace_["states"], other.trace_["states"])
    # Chain i is the same however many chains there are.
    alone = quick(n_chains=1, **learned).fit(sentences[:30])
    np.testing.assert_array_equal(alone.trace_.stats["log_density"][0], one.trace_.stats["log_density"][0])


def test_the_trace_tells_the_best_chain_and_sample(text):
    model = quick(n_chains=3, thin=2).fit(text[0][:40])
    density = model.trace_.stats["log_density"]
    assert density.shape == (3, 100)
    assert model.n_iter_ == 60 + 2 * 100
    assert model.best_chain_ == np.argmax(density.mean(axis=1))
    assert model.objective_ >= density[model.best_chain_].max()
    codes = np.concatenate([np.searchsorted(model.vocabulary_[0], sentence) for sentence in text[0][:40]])
    data = sequences_of(codes, [len(sentence) for sentence in text[0][:40]], [10])
    weights = Concentrations(1.0, 0.1, 0.1)
    assert model.objective_ == pytest.approx(urn_log_joint(data, model.best_labels_, 3, weights))
    for chain, draw in ((0, 0), (2, 99)):
        again = urn_log_joint(data, model.trace_["states"][chain, draw], 3, weights)
        assert density[chain, draw] == pytest.approx(again)


def test_only_what_has_a_prior_is_learned(text):
    prior = LogUniform(0.5, 2.0)
    model = quick(emission_concentration=prior, n_chains=2).fit(text[0][:30])
    assert (model.trace_["transition_concentration"] == 0.1).all()
    draws = model.trace_["emission_concentration"]
    assert len(np.unique(draws)) > 150
    assert ((draws > 0.5) & (draws < 2.0)).all()
    assert model.emission_concentration_ == pytest.approx(draws[model.best_chain_].mean())


def test_missing_symbols_are_ignored_and_their_states_sampled(text):
    sentences, classes = text
    rng = np.random.default_rng(1)
    lengths = [len(sentence) for sentence in sentences]
    vocabulary = sorted({word for sentence in sentences for word in sentence})
    codes = np.array([vocabulary.index(word) for sentence in sentences for word in sentence], dtype=float)
    codes[rng.random(len(codes)) < 0.1] = np.nan
    model = quick(n_chains=4, annealing=2.0).fit(codes[:, None], lengths=lengths)
    assert len(model.labels_) == len(codes)
    assert many_to_one_accuracy(classes, model.labels_) > 0.9


def test_learned_concentrations_come_near_those_of_the_data():
    """True values 0.05 and 0.02 over 12 states and 300 symbols: the posterior lies within a factor of 2."""
    rng = np.random.default_rng(4)
    k, n_symbols, lengths = 12, 300, [50] * 60
    weights = Concentrations(1.0, 0.05, 0.02)
    states = draw_states(rng, lengths, weights, k)
    data = draw_data(rng, states, lengths, n_symbols, weights, k)
    counts = gibbs.count(data, states, k)
    learned = Concentrations(1.0, 5.0, 5.0)
    draws = []
    for _ in range(300):
        learned = gibbs.sample_concentrations(data, counts, learned, rng, ConcentrationPriors())
        draws.append((learned.transition, learned.emission))
    assert np.abs(np.log2(np.mean(draws[50:], axis=0) / (0.05, 0.02))).max() < 1


def test_concentrations_stay_put_while_annealing(text):
    temperatures, concentrations = warm_up(60, quick(annealing=3.0)._temperatures())
    assert temperatures[0] == 3.0
    assert (np.diff(temperatures) <= 0).all()
    assert (temperatures[45:] == 1.0).all()
    assert (concentrations[:45] == 0.1).all()
    assert len(np.unique(concentrations[45:])) == 16  # each sweep of the warm-up that is left, and one more
    temperatures, concentrations = warm_up(8, quick(annealing=[4.0, 2.0])._temperatures())
    assert temperatures.tolist() == [4.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert (concentrations == 0.1).tolist() == [True] * 4 + [False] * 5  # half of the warm-up
    learned = quick(annealing=3.0, transition_concentration="learn").fit(text[0][:30])
    assert len(np.unique(learned.trace_["transition_concentration"])) == 100


def warm_up(n_warmup, annealing):
    """Temperature and transition concentration of each sweep of a warm-up, and of the first one after it."""
    rng = np.random.default_rng(0)
    kernel = HiddenStatesGibbs(random_problem(rng), 3, Concentrations(1.0, 0.1, 0.1), annealing=annealing)
    state, adaptation = kernel.init(rng, kernel.sample_start(rng)), kernel.adaptation(n_warmup)
    kernel, seen = adaptation.start(rng, kernel, state), []
    for number in range(n_warmup + 1):
        temperature = kernel.temperature
        state, info = kernel.step(rng, state)
        seen.append((temperature, float(state.position["transition_concentration"])))
        if number < n_warmup:
            kernel = adaptation.update(rng, kernel, state, info)
        if number == n_warmup - 1:
            kernel = adaptation.finish(kernel)
    return np.array(seen).T


@pytest.mark.parametrize("n_warmup", [0, 10**6])
def test_ctrl_c_keeps_what_was_sampled(text, n_warmup):
    quick(n_draws=1, n_warmup=0).fit(text[0])  # compile first
    model = BayesianCategoricalHMM(3, n_draws=10**6, n_warmup=n_warmup, n_chains=2, n_jobs=2, random_state=0)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model.fit(text[0])
    timer.join()
    assert 1 <= model.n_iter_ < 10**6
    np.testing.assert_allclose(model.transmat_.sum(axis=1), 1.0)
    assert len(model.predict(text[0][0])) == len(text[0][0])
    assert model.trace_.n_draws == (1 if n_warmup else model.n_iter_)
    np.testing.assert_array_equal(model.trace_.ends[1].position["states"], model.trace_["states"][1, -1])


@pytest.mark.parametrize("n_chains", [1, 2])
def test_callbacks_see_every_sweep_and_may_stop_the_chains(text, n_chains):
    """Chains go side by side: an iteration is a sweep of each."""
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")

    class Stopper:
        """Counts the sweeps and asks to stop at the third."""

        def __init__(self, stop_at):
            self.stop_at, self.n_sweeps = stop_at, 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.n_sweeps += context.task_name == "iteration"
            return context.task_name == "iteration" and context.task_id == self.stop_at

    patient, hasty = Stopper(None), Stopper(2)
    settings = {"n_draws": 200, "n_warmup": 60, "n_chains": n_chains, "n_jobs": 2}
    quick(**settings).set_callbacks(patient).fit(text[0][:10])
    assert patient.n_sweeps == 260
    model = quick(**settings).set_callbacks(hasty).fit(text[0][:10])
    assert hasty.n_sweeps == 3
    assert model.n_iter_ == 3
    assert model.trace_["states"].shape[:2] == (n_chains, 1)  # where the chains were


def test_a_chain_that_still_drifts_is_reported():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(40), 25)[rng.permutation(1000)][:, None]
    model = BayesianCategoricalHMM(10, emission_concentration=0.01, n_warmup=0, n_draws=20, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match=r"the chains have not settled: R-hat of log_density is [0-9.]+, above 1\.[1-9]"
    ) as given:
        model.fit(codes)
    assert given[0].filename == __file__
    assert not model.converged_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_draws": 0}, "n_draws must be an integer of at least 1, got 0"),
        ({"n_warmup": -1}, "n_warmup must be an integer of at least 0, got -1"),
        ({"thin": 1.5}, "thin must be an integer of at least 1, got 1.5"),
        ({"n_chains": 0}, "n_chains must be an integer of at least 1, got 0"),
        ({"transition_concentration": 0.0}, "transition_concentration must be a positive number or 'learn' or a prior"),
        ({"emission_concentration": Gamma(1.0, 1.0)}, r"emission_concentration must be .* a prior \(LogUniform\), got"),
        ({"start_concentration": np.ones(3)}, "start_concentration must be a positive number"),
        ({"start_concentration": "learn"}, "start_concentration must be a positive number, got 'learn'"),
        ({"annealing": -1.0}, "annealing must be None, a positive temperature"),
        ({"annealing": np.ones(61)}, r"annealing must be .* at most n_warmup \(60\) positive temperatures"),
        ({"unseen": "guess"}, "unseen must be one of 'error', 'missing', got 'guess'"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0, or None, got 0"),
    ],
)
def test_bad_settings_are_refused_by_name(text, settings, message):
    with pytest.raises(ValueError, match=message):
        quick(**settings).fit(text[0])
