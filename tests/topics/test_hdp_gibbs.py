"""The sampler of the HDP topic model against enumeration of all seatings, Geweke's test and its plain sibling."""

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import gammaln

from pluri.inference import mcmc
from pluri.priors.hyperpriors import Gamma, Hyperparameter
from pluri.processes import ChineseRestaurantFranchise, DirectAssignmentGibbs, DirichletMultinomial, draw_table_counts
from pluri.processes.hierarchical_dirichlet import Seating
from pluri.testing import SamplerProblem, canonical_labels, check_sampler, enumerate_posterior, set_partitions
from pluri.topics.documents import Tokens, tokens_of
from pluri.topics.hdp import _gibbs_kernels, _table_kernels, slots, split_merge
from pluri.topics.hdp.gibbs import TopicGibbs
from pluri.topics.hdp.slots import SlotRoom, Slots, SlotState, TableRoom

#: Two documents, of three tokens and of two.
COUNTS = np.array([[2, 1, 0], [1, 0, 1]])
ALPHA, GAMMA, ETA = 1.3, 0.8, 0.4


def kernel_of(counts=COUNTS, **settings):
    settings = {"alpha": ALPHA, "gamma": GAMMA, "eta": ETA} | settings
    return TopicGibbs(tokens_of(sparse.csr_matrix(counts)), **settings)


def log_words(labels, words, n_words, eta):
    """log p(w | z) as a product of predictions, one token after the other."""
    total, seen = 0.0, np.zeros((labels.max() + 1, n_words))
    for k, w in zip(labels, words):
        total += np.log((seen[k, w] + eta) / (seen[k].sum() + n_words * eta))
        seen[k, w] += 1
    return total


def all_seatings(lengths):
    """Every way to seat customers at tables and to serve tables dishes."""
    groups = np.repeat(np.arange(len(lengths)), lengths)
    tables = [[]]
    for length in lengths:
        tables = [[*before, own] for before in tables for own in set_partitions(length)]
    for seats in tables:
        first = np.cumsum([0, *(own.max() + 1 for own in seats)])
        joined = np.concatenate([own + start for own, start in zip(seats, first)])
        for dishes in set_partitions(int(first[-1])):
            yield Seating(groups, joined, dishes)


def exact(counts=COUNTS):
    """Posterior over seatings."""
    tokens = tokens_of(sparse.csr_matrix(counts))
    franchise = ChineseRestaurantFranchise(ALPHA, GAMMA)
    return enumerate_posterior(
        lambda s: franchise.log_probability(s) + log_words(s.labels, tokens.words, tokens.n_words, ETA),
        configurations=list(all_seatings(np.diff(tokens.offsets))),
    )


def by_partition(counts=COUNTS):
    """Posterior over partitions of the tokens, and the seatings of each with their probabilities."""
    seatings, found = exact(counts), {}
    for seating, p in zip(seatings.configurations, seatings.probabilities):
        found.setdefault(tuple(canonical_labels(seating.labels)), []).append((seating, p))
    posterior = enumerate_posterior(
        lambda z: np.log(sum(p for _, p in found[tuple(z)])), configurations=[np.array(z) for z in found]
    )
    return posterior, found, seatings.log_evidence


def enumeration_problem(n_proposals, table_share=0.5):
    """Labels with sticks drawn given them, exactly: a sweep must keep the posterior of the labels."""
    kernel = kernel_of(n_proposals=n_proposals, table_share=table_share)
    posterior, found, _ = by_partition()

    def move(rng, labels):
        labels = canonical_labels(labels)
        choices = found[tuple(labels)]
        p = np.array([p for _, p in choices])
        seating = choices[rng.choice(len(p), p=p / p.sum())][0]
        shown = seating.labels[[np.argmax(labels == k) for k in range(labels.max() + 1)]]
        tables = np.bincount(seating.dishes)[shown]
        position = kernel.start(labels.astype(np.int32)) | {"weights": rng.dirichlet([*tables, GAMMA])}
        state, _ = kernel.step(rng, kernel.init(rng, position))
        return canonical_labels(state.position["labels"])

    return SamplerProblem(
        f"HDP topics against enumeration, {n_proposals} proposals", kernel=move, posterior=posterior, n_steps=3
    )


def joint_problem(n_proposals=2):
    """Everything learned, for Geweke's test; an empty document among the others."""
    offsets = np.array([0, 4, 4, 7, 9])
    documents = np.repeat(np.arange(4), np.diff(offsets)).astype(np.int32)
    tokens = Tokens(np.zeros(9, dtype=np.int32), documents, offsets, 4)
    kernel = TopicGibbs(
        tokens, *(Hyperparameter(value, Gamma(2.0, 1.5)) for value in (1.0, 1.0, 0.01)), n_proposals=n_proposals,
        table_share=0.5,
    )  # fmt: skip

    def statistics(position, data):
        labels, weights = position["labels"], position["weights"]
        sizes = np.bincount(labels)
        same = data.words[:, None] == data.words[None, :]
        together = labels[:, None] == labels[None, :]
        return {
            "log alpha": np.log(position["alpha"]),
            "log gamma": np.log(position["gamma"]),
            "log eta": np.log(position["eta"]),
            "log rest": np.log(weights[-1]),
            "squared weights": (weights**2).sum(),
            "topics": len(sizes),
            "squared sizes": (sizes**2).sum(),
            "within a document": float(labels[0] == labels[1]),
            "across documents": float(labels[0] == labels[4]),
            "pairs of one word and topic": (same & together).sum(),
            "pairs of one word": same.sum(),
        }

    return SamplerProblem(
        f"HDP topics, {n_proposals} proposals", prior=kernel.sample_prior, data=kernel.sample_data,
        transition=kernel.sweep, statistics=statistics, log_likelihood=kernel.log_likelihood, n_steps=3,
    )  # fmt: skip


@pytest.mark.parametrize("gamma", [2.0, 0.05, 1e-3])
def test_what_is_left_of_the_stick_is_never_lost_in_a_difference(gamma):
    """A small concentration leaves pieces of 1e-300 or none, which later sweeps divide by."""
    for seed in range(200):
        weights, rest = np.zeros(1), np.ones(1)
        _gibbs_kernels.break_off(np.random.default_rng(seed), gamma, weights, rest, 0)
        left = np.exp(np.log1p(-np.random.default_rng(seed).random()) / gamma)
        assert rest[0] == pytest.approx(left, rel=1e-9)
        assert weights[0] == pytest.approx(1.0 - left, rel=1e-9, abs=1e-300)


def test_topics_can_be_dissolved_when_nothing_is_left_of_the_stick():
    tokens = tokens_of(sparse.csr_matrix(COUNTS))
    seated = Slots(tokens, np.arange(len(tokens.words)) % 2, np.array([0.5, 0.5, 0.0]), 1.0, 1e-3, 0.5)
    seated.dissolve_topics(np.random.default_rng(0), 1.0)
    assert (seated.close()[1] > 0).all()


@pytest.fixture(params=["all topics read", "those of a word read"])
def reading(request, monkeypatch):
    """Both ways to draw topics, whatever their number."""
    if request.param.startswith("those"):
        monkeypatch.setattr(slots, "FEW", 0)


@pytest.mark.usefixtures("reading")
def test_sampler_has_its_prior_for_a_marginal():
    """Geweke's test with all concentrations and moves; false alarms: 1e-6."""
    check_sampler(joint_problem(2), checks=["geweke", "repeats itself", "input untouched"], random_state=0,
                  alpha=1e-6, max_stages=5, n_replications=400).raise_if_failed()  # fmt: skip


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("n_proposals", [0, 4])
def test_sweep_keeps_the_enumerated_posterior(n_proposals):
    """False alarms: 1e-6."""
    problem = enumeration_problem(n_proposals)
    check_sampler(problem, alpha=1e-6, max_stages=5, random_state=12, n_replications=500).raise_if_failed()


def test_split_and_merge_alone_keep_the_posterior(monkeypatch):
    """Many proposals, without the pass over tokens: a wrong ratio has nowhere to hide. False alarms: 1e-6."""
    monkeypatch.setattr(Slots, "pass_over_tokens", lambda self, rng: None)
    problem = enumeration_problem(6, table_share=0.0)
    check_sampler(
        problem, checks=["enumeration"], alpha=1e-6, max_stages=5, random_state=4, n_replications=1000
    ).raise_if_failed()


@pytest.mark.usefixtures("reading")
def test_tables_alone_keep_the_posterior(monkeypatch):
    """Without the pass over tokens, and with tables of one token; false alarms: 1e-6."""
    monkeypatch.setattr(Slots, "pass_over_tokens", lambda self, rng: None)
    problem = enumeration_problem(0, table_share=1.0)
    check_sampler(
        problem, checks=["enumeration"], alpha=1e-6, max_stages=5, random_state=5, n_replications=1000
    ).raise_if_failed()


def chain_of(kernel, n_draws, seed):
    return mcmc.sample(kernel, kernel.sample_prior, n_draws=n_draws, n_warmup=50, n_chains=1, random_state=seed,
                       record=lambda position: {"labels": position["labels"]}, warn=False)["labels"][0]  # fmt: skip


# A second opinion: `test_every_sampler` compares both with enumeration or by Geweke's test (HDP topics, 0 splits and
# merges; DirectAssignmentGibbs).
@pytest.mark.thorough
def test_chains_of_both_samplers_visit_partitions_as_enumerated():
    """The compiled sampler and that of `pluri.processes`; false alarms: 1e-6 each."""
    posterior, _, log_evidence = by_partition()
    draws = [canonical_labels(z) for z in chain_of(kernel_of(), 8_000, 0)]
    fit = posterior.compare(draws, alpha=1e-6)
    assert fit.passed, fit
    together = np.mean([z[0] == z[3] for z in draws])
    truth = posterior.expectation(lambda z: float(z[0] == z[3]))
    assert together == pytest.approx(truth, abs=0.05)
    # The sibling takes rows of single tokens; it agrees on the target and on the evidence's own arithmetic.
    tokens = tokens_of(sparse.csr_matrix(COUNTS))
    rows = np.eye(3)[tokens.words]
    sibling = DirectAssignmentGibbs(DirichletMultinomial(3, ETA), rows, tokens.documents, ALPHA, GAMMA)
    others = [canonical_labels(z) for z in chain_of(sibling, 3_000, 1)]
    fit = posterior.compare(others, alpha=1e-6)
    assert fit.passed, fit
    assert np.isfinite(log_evidence)


def test_log_joint_is_that_of_the_sibling_and_the_density_of_the_sticks():
    kernel, rng = kernel_of(np.random.default_rng(0).integers(0, 4, size=(5, 6))), np.random.default_rng(1)
    tokens = kernel.tokens
    sibling = DirectAssignmentGibbs(
        DirichletMultinomial(6, ETA), np.eye(6)[tokens.words], tokens.documents, ALPHA, GAMMA
    )
    for _ in range(10):
        position = kernel.sample_prior(rng)
        weights = position["weights"]
        sticks = (len(weights) - 1) * np.log(GAMMA) + (GAMMA - 1) * np.log(weights[-1]) - np.log(weights[:-1]).sum()
        assert kernel.log_joint(position) == pytest.approx(sibling.log_joint(position) + sticks, abs=1e-8)


def test_log_joint_after_a_sweep_is_the_one_from_scratch():
    kernel, rng = (
        kernel_of(np.random.default_rng(0).integers(0, 5, size=(20, 8)), eta=Hyperparameter(0.01, Gamma(1.0, 1.0))),
        np.random.default_rng(2),
    )
    state = kernel.init(rng, kernel.start())
    for _ in range(10):
        state, _ = kernel.step(rng, state)
        position = state.position
        labels, weights, alpha, eta = (position[name] for name in ("labels", "weights", "alpha", "eta"))
        assert set(labels) == set(range(len(weights) - 1))
        total = log_words(labels, kernel.tokens.words, 8, eta)
        for d in range(20):
            here = np.bincount(labels[kernel.tokens.documents == d], minlength=len(weights) - 1)
            total += gammaln(alpha) - gammaln(alpha + here.sum())
            total += (gammaln(alpha * weights[:-1] + here) - gammaln(alpha * weights[:-1])).sum()
        total += (len(weights) - 1) * np.log(GAMMA) - np.log(weights[:-1]).sum() + (GAMMA - 1) * np.log(weights[-1])
        total += stats.gamma(1.0).logpdf(eta)
        assert state.log_density == pytest.approx(total, rel=1e-9)


def test_density_integrates_over_sticks_to_the_seatings():
    """Importance sampling of the sticks of one partition, Dirichlet around its tables; ten standard errors."""
    kernel, labels = kernel_of(), np.array([0, 0, 1, 1, 0], dtype=np.int32)
    _, found, log_evidence = by_partition()
    truth = log_evidence + np.log(sum(p for _, p in found[tuple(canonical_labels(labels))]))
    rng, parameters = np.random.default_rng(0), np.array([1.5, 1.5, GAMMA])
    drawn = rng.dirichlet(parameters, size=4000)
    start = kernel.start(labels)
    ratio = np.exp([
        kernel.log_joint({**start, "weights": w}) - stats.dirichlet(parameters).logpdf(w) - truth for w in drawn
    ])  # fmt: skip
    assert abs(ratio.mean() - 1) < 10 * ratio.std() / np.sqrt(len(ratio))


def test_tables_have_the_law_of_summed_coins():
    """Against `draw_table_counts`, a chi-square test; false alarms: 1e-6."""
    labels, offsets = np.repeat([0, 1, 0], [7, 3, 4]).astype(np.int32), np.array([0, 10, 14])
    weights, rng = np.array([0.7, 2.0]), np.random.default_rng(0)
    ours, theirs = np.zeros((2, 4000, 2), dtype=int)
    for i in range(4000):
        tables = np.zeros(2, dtype=np.int64)
        _gibbs_kernels.count_tables(rng, offsets, labels, weights, np.zeros(2, dtype=np.int64), tables)
        ours[i] = tables
        theirs[i] = draw_table_counts(rng, [[7, 3], [4, 0]], weights).sum(axis=0)
    for k in range(2):
        counts = np.array([np.bincount(draws[:, k], minlength=12) for draws in (ours, theirs)])
        kept = counts[:, counts.sum(axis=0) > 20]
        assert stats.chi2_contingency(kept).pvalue > 5e-7


def test_topics_beyond_the_room_are_born_in_the_middle_of_a_sweep():
    """A hundred words that never occur together, each in a document of its own: the first pass outgrows its slots."""
    kernel = kernel_of(30 * np.eye(100, dtype=int), gamma=50.0, eta=0.01, n_proposals=0)
    state = kernel.init(np.random.default_rng(0), kernel.start())
    assert len(state.position["weights"]) > 90
    assert state.position["weights"].sum() == pytest.approx(1.0)


def test_merge_finds_duplicates_that_tokens_do_not_leave():
    """One topic cut in two by documents: proposals join it in the first sweeps.

    Nineteen chains of twenty then have nine tenths of the tokens in one topic; that fewer than half of twelve have
    would be a false alarm of 1e-6.
    """
    X, n_joined = np.random.default_rng(0).multinomial(60, [0.25] * 4, size=40), 0
    for seed in range(12):
        kernel, rng = kernel_of(X, n_proposals=10), np.random.default_rng(seed)
        labels = (kernel.tokens.documents % 2).astype(np.int32)
        state = kernel.init(rng, kernel.start(labels))
        for _ in range(5):
            state, _ = kernel.step(rng, state)
        n_joined += np.bincount(state.position["labels"]).max() > 0.9 * kernel.tokens.n_tokens
    assert n_joined >= 6


def test_pairs_are_drawn_alike_in_both_orders():
    """The chance of a pair must not depend on which token comes first. Chi-square, false alarms: 1e-6."""
    tokens, rng = tokens_of(sparse.csr_matrix(COUNTS)), np.random.default_rng(0)
    index, seen = split_merge.WordIndex(tokens), np.zeros((5, 5))
    for _ in range(20_000):
        seen[index.draw_pair(rng, tokens)] += 1
    upper = np.triu_indices(5, 1)
    pairs = np.stack([seen[upper], seen.T[upper]])
    assert stats.chi2_contingency(pairs).pvalue > 1e-6


def test_seats_have_the_law_of_a_restaurant():
    """Five tokens, three of one topic and two of another: partitions by enumeration, chi-square, false alarms: 1e-6."""
    labels, rng = np.array([0, 1, 0, 0, 1], dtype=np.int32), np.random.default_rng(0)
    concentrations, room, seen = np.array([0.7, 2.0]), TableRoom.of(2, 0, 5), {}
    for _ in range(6000):
        n_tables = _table_kernels.seat(rng, 0, 5, labels, concentrations, room)
        seats, begin = np.empty(5, dtype=int), 0
        for i, end in enumerate(room.ends[:n_tables]):
            seats[room.members[begin:end]] = i
            begin = end
        assert begin == 5
        assert not room.here.any()
        assert not room.place.any()
        key = tuple(canonical_labels(seats))
        seen[key] = seen.get(key, 0) + 1
    expected = {}
    for one in set_partitions(3):
        for other in set_partitions(2):
            seats, p = np.empty(5, dtype=int), 1.0
            for own, part, weight in ((labels == 0, one, 0.7), (labels == 1, other, 2.0)):
                sizes = np.bincount(part)
                p *= weight ** len(sizes) * np.exp(
                    gammaln(sizes).sum() + gammaln(weight) - gammaln(weight + sizes.sum())
                )
                seats[own] = part + (10 if own[1] else 0)
            expected[tuple(canonical_labels(seats))] = 6000 * p
    assert set(seen) == set(expected)
    assert stats.chisquare([seen[key] for key in expected], list(expected.values())).pvalue > 1e-6


def test_scores_of_a_table_are_products_of_predictions():
    """Against logarithms of gamma functions, with a word that occurs often and tables longer than one scaling."""
    rng = np.random.default_rng(0)
    counts, eta = rng.integers(0, 9, size=(6, 16)).astype(np.int32), 0.3
    weights, rest = rng.dirichlet(np.ones(17))[:16], 0.04
    sizes, room = counts.sum(axis=0), SlotRoom.of(16)
    room.base[:] = sizes + 6 * eta
    state = SlotState(np.zeros(0, dtype=np.int32), counts, sizes, weights, np.array([rest]))
    for n in (2, 8, 9, 40):
        words, same = rng.integers(0, 6, size=n).astype(np.int32), np.zeros(6, dtype=np.int64)
        total, fresh = _table_kernels.score_table(words, np.arange(n), eta, state, 16, room, same)
        own = np.bincount(words, minlength=6)[:, None]
        table = np.column_stack([counts, np.zeros(6)])
        log_score = np.log(np.append(weights, rest)) + (gammaln(table + own + eta) - gammaln(table + eta)).sum(axis=0)
        whole = table.sum(axis=0) + 6 * eta
        log_score += gammaln(whole) - gammaln(whole + n)
        expected = np.exp(log_score - log_score.max())
        np.testing.assert_allclose(
            np.append(room.scores, fresh) / (total + fresh), expected / expected.sum(), rtol=1e-9
        )
        assert not same.any()


@pytest.mark.usefixtures("reading")
def test_tables_find_their_way_to_topics_beyond_the_room():
    """A hundred words, each in a document of its own, all in one topic: tables outgrow the slots; all are counted."""
    kernel = kernel_of(30 * np.eye(100, dtype=int), gamma=50.0, eta=0.01)
    start = kernel.start(np.zeros(kernel.tokens.n_tokens, dtype=np.int32))
    room, rng = Slots(kernel.tokens, start["labels"], start["weights"], 1.0, 50.0, 0.01), np.random.default_rng(0)
    room.pass_over_tables(rng, np.arange(100))
    labels, weights = room.close()
    assert len(weights) > 60
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(room.sizes[room.sizes > 0], np.bincount(labels))
    assert not start["labels"].any()


def test_tables_leave_duplicates_that_tokens_keep():
    """One topic cut in ten by documents, without proposals: tables join it, where single tokens leave many pieces."""
    X = np.random.default_rng(0).multinomial(60, [0.25] * 4, size=100)
    pieces = {}
    for share in (0.0, 1.0):
        kernel, rng = kernel_of(X, n_proposals=0, table_share=share), np.random.default_rng(1)
        state = kernel.init(rng, kernel.start((kernel.tokens.documents % 10).astype(np.int32)))
        for _ in range(15):
            state, _ = kernel.step(rng, state)
        pieces[share] = int((np.bincount(state.position["labels"]) > 0.02 * kernel.tokens.n_tokens).sum())
    assert pieces[1.0] < pieces[0.0]
