"""Shares over time, topics that emerge and fade, and words that drift, against sums, enumeration and chance."""

from __future__ import annotations

import itertools
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from pluri.topics import LatentDirichletAllocation, topic_shares_over_time, topic_trends
from pluri.topics.over_time import changes
from pluri.topics.over_time.changes import period_sums, scan
from pluri.topics.over_time.misfits import log_likelihoods
from pluri.topics.over_time.periods import as_days, period_names, period_numbers, period_starts
from pluri.topics.over_time.shares import Groups, ShareSums
from pluri.topics.over_time.words import WordSums

FIRST = np.datetime64("2024-01-01")


class Given(LatentDirichletAllocation):
    """Topics that are given; shares are those of the words, one topic for each block of them."""

    def transform(self, X, *, normalize=True):
        counts = np.asarray(sparse.csr_matrix(X).todense(), dtype=float)
        blocks = counts.reshape(len(counts), self.n_components, -1).sum(axis=2) + 0.01
        return blocks / blocks.sum(axis=1, keepdims=True)


def given_topics(n_topics=3, n_each=4):
    model = Given(n_topics)
    model.topic_word_ = np.kron(np.eye(n_topics), np.full(n_each, 1 / n_each)) * 0.996 + 0.004 / (n_topics * n_each)
    model.components_, model.topic_weight_ = 100 * model.topic_word_, np.full(n_topics, 1 / n_topics)
    model.n_features_in_ = n_topics * n_each
    return model


def year(rng, n_weeks, per_week, probabilities, length=15):
    """Documents of one topic each, with given probabilities in each week (weeks x topics)."""
    model = given_topics(probabilities.shape[1])
    weeks = np.repeat(np.arange(n_weeks), per_week)
    about = np.array([rng.choice(probabilities.shape[1], p=probabilities[week]) for week in weeks])
    return model, sparse.csr_matrix(rng.multinomial(length, model.topic_word_[about])), FIRST + 7 * weeks


def test_dates_of_all_kinds_are_the_same_days():
    wanted = np.array(["2024-03-31", "2024-12-30", "NaT"], dtype="datetime64[D]")
    kinds = [
        ["2024-03-31", "2024-12-30T23:59:59+02:00", ""],
        ["Sun, 31 Mar 2024 10:00:00 +0200", "20241230", None],
        [date(2024, 3, 31), datetime(2024, 12, 30, 5), float("nan")],
        wanted,
        pd.Series(wanted),
        pd.Series(pd.to_datetime(["2024-03-31", "2024-12-30", None])),
        pd.Series(["2024/3/31", "2024-12-30 10:00", None]),
    ]
    for dates in kinds:
        np.testing.assert_array_equal(as_days(dates), wanted)
    assert as_days(["2024-03", "2024"]).astype(str).tolist() == ["2024-03-01", "2024-01-01"]
    for wrong in (["31.3.24"], [20240331], np.array([1.0])):
        with pytest.raises(ValueError, match="dates must be dates, such as 2024-03-31, got"):
            as_days(wrong)


def test_a_time_in_a_zone_is_on_the_day_there():
    midnights = pd.Series(pd.date_range("2024-03-30", periods=3, tz="Europe/Berlin"))  # the evening before in Greenwich
    expected = np.array(["2024-03-30", "2024-03-31", "2024-04-01"], dtype="datetime64[D]")
    np.testing.assert_array_equal(as_days(midnights), expected)
    np.testing.assert_array_equal(as_days(pd.DatetimeIndex(midnights)), expected)
    midnights[1] = pd.NaT
    assert np.isnat(as_days(midnights)).tolist() == [False, True, False]


@pytest.mark.parametrize("period", ["day", "week", "month", "quarter", "year"])
def test_periods_agree_with_those_of_pandas(period):
    days = np.arange("1968-01-01", "2031-01-01", 13, dtype="datetime64[D]")
    code = {"day": "D", "week": "W-SUN", "month": "M", "quarter": "Q", "year": "Y"}[period]
    wanted = pd.PeriodIndex(pd.DatetimeIndex(days), freq=code).start_time.values.astype("datetime64[D]")
    starts = period_starts(period_numbers(days, period), period)
    np.testing.assert_array_equal(starts, wanted)
    assert len(period_names(starts, period)) == len(days)


def test_shares_and_errors_are_means_and_their_standard_errors():
    rng = np.random.default_rng(0)
    probabilities = np.tile([0.5, 0.3, 0.2], (4, 1))
    model, X, dates = year(rng, 4, 50, probabilities)
    dates = dates.astype("datetime64[D]")
    dates[7] = np.datetime64("NaT")
    dates[100:150] = dates[0]  # the third week is empty
    found = topic_shares_over_time(model, X, dates)
    shares = model.transform(X)
    first = np.r_[0:7, 8:50, 100:150]
    np.testing.assert_allclose(found.shares[0], shares[first].mean(axis=0))
    assert found.n_documents.tolist() == [99, 50, 0, 50]
    assert np.isnan(found.shares[2]).all()
    assert found.n_undated == 1
    plain = shares[first].std(axis=0, ddof=1) / np.sqrt(99)
    np.testing.assert_allclose(found.errors[0], plain, rtol=0.05)  # drawn a little towards all periods
    assert repr(found) == "<shares of 3 topics in 4 weeks, 2024-01-01 to 2024-01-22>"
    frame = found.to_frame()
    assert frame.shape == (12, 5)
    np.testing.assert_allclose(frame["share"][:3], found.shares[0])


def test_groups_hold_all_documents_and_memory_is_bounded(monkeypatch):
    monkeypatch.setattr("pluri.topics.over_time.shares.MOST_GROUPS", 64)
    rng = np.random.default_rng(0)
    shares, numbers = rng.dirichlet(np.ones(3), 3000), rng.integers(5, size=3000)
    sums = ShareSums(3)
    for begin in range(0, 3000, 170):
        sums.add(shares[begin : begin + 170], numbers[begin : begin + 170])
    groups = sums.groups()
    assert len(groups.values) <= 64
    assert 3000 - groups.size * len(groups.values) < 5 * groups.size
    for period in range(5):
        own = groups.values[groups.periods == period].mean(axis=0)
        np.testing.assert_allclose(own, shares[numbers == period].mean(axis=0), atol=0.03)
    np.testing.assert_allclose(sums.shares("week").shares[2], shares[numbers == 2].mean(axis=0))


def test_sums_of_periods_are_those_of_their_rows():
    values = np.arange(12.0).reshape(6, 2)
    found = period_sums(values, np.array([2, 0, 3, 1, 0]))
    wanted = [values[:2].sum(axis=0), [0, 0], values[2:5].sum(axis=0), values[5], [0, 0]]
    np.testing.assert_allclose(found, wanted)


def test_p_values_are_those_of_all_orders(monkeypatch):
    """Seven documents in four periods: the scan over random orders against all 5,040 of them."""
    rng = np.random.default_rng(3)
    values = rng.dirichlet([0.4, 0.4], 7)
    values[-2:] = [0.02, 0.98]
    groups = Groups(values, np.array([0, 0, 1, 1, 2, 3, 3]), 1, 4)
    found = scan(groups, n_reference=1, n_permutations=4000, last_only=False, rng=rng)
    largest = []
    for order in itertools.permutations(range(7)):
        again = scan(Groups(values[list(order)], groups.periods, 1, 4), n_reference=1, n_permutations=0,
                     last_only=False, rng=rng)  # fmt: skip
        largest.append(np.abs(again.z).max())
    exact = np.mean(np.asarray(largest) >= np.abs(found.z).max() * (1 - 1e-9))
    least = found.p_value.min()
    # 4,000 draws: five standard deviations, a false alarm in two million.
    assert abs(least - exact) < 5 * np.sqrt(exact * (1 - exact) / 4000) + 1e-3


def test_what_periods_differ_by_is_allowed_for():
    """With one window and no spread between periods, z is the signed root of the likelihood ratio."""
    count = np.full(10, 40)
    share = np.full((10, 1), 0.2)
    share[-1] = 0.4
    layout = changes.Layout(count, 1, np.array([0.16]), np.array([0.2]), 4, True)
    sums = (share * 40)[None]
    z, window = changes.statistics(sums, layout)
    both = (9 * 0.2 + 0.4) / 10
    kl = [a * np.log(a / both) + (1 - a) * np.log((1 - a) / (1 - both)) for a in (0.2, 0.4)]
    assert window[0, -1, 0] == 1
    assert z[0, -1, 0] == pytest.approx(np.sqrt(2 * (360 * kl[0] + 40 * kl[1])))
    restless = share.copy()
    restless[:9:2] += 0.15
    restless[1:9:2] -= 0.15
    assert changes.statistics((restless * 40)[None], layout)[0][0, -1, 0] < z[0, -1, 0] / 2


def test_quiet_years_raise_no_more_alarms_than_stated():
    """60 quiet years at a rate of 20 %: more than 24 alarms have a chance of 2e-4 if the rate is kept."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        model, X, dates = year(rng, 26, 20, np.tile([0.7, 0.27, 0.03], (26, 1)))
        trends = topic_trends(model, X, dates, false_alarm_rate=0.2, n_permutations=99, random_state=seed)
        alarms += bool(trends.emerging() or trends.fading())
    assert stats.binom.sf(24, 60, 0.2) < 3e-4
    assert alarms <= 24
    assert alarms >= 1  # none at all has a chance of 2e-6


def test_a_planted_topic_is_found_within_three_weeks_and_a_vanished_one_fades():
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        probabilities = np.tile([0.6, 0.4, 0.0], (23, 1))
        probabilities[20:] = [0.57, 0.40, 0.03]
        model, X, dates = year(rng, 23, 200, probabilities)
        emerging = topic_trends(model, X, dates, random_state=seed).emerging()
        found += [change.topic for change in emerging] == [2]
    assert found >= 15  # each is found with a chance of 0.97 at least, and wrongly named in 1 of 20
    rng = np.random.default_rng(0)
    probabilities[:] = [0.5, 0.3, 0.2]
    probabilities[15:] = [0.6, 0.4, 0.0]
    trends = topic_trends(*year(rng, 23, 100, probabilities))
    (fading,) = [change for change in trends.fading() if change.topic == 2]
    assert fading.since == "2024-04-15"
    assert fading.share < 0.02 < 0.15 < fading.before
    assert "fading: topic 2" in trends.summary()


def test_looking_every_week_tests_the_last_week_only():
    rng = np.random.default_rng(0)
    probabilities = np.tile([0.6, 0.4, 0.0], (20, 1))
    probabilities[9:11] = [0.3, 0.2, 0.5]
    model, X, dates = year(rng, 20, 60, probabilities)
    late = topic_trends(model, X, dates, n_looks=52)
    assert late.emerging() == []
    assert (late.scan.p_value[:-1] == 1).all()
    rows = np.flatnonzero(dates < FIRST + 7 * 10)
    now = topic_trends(model, X[rows], dates[rows], n_looks=52)
    assert [change.topic for change in now.emerging()] == [2]
    assert now.emerging()[0].p_value <= 0.05 / 52


def test_scores_of_words_are_those_of_the_formula():
    rng = np.random.default_rng(1)
    topic_word = rng.dirichlet(np.ones(6), 2)
    shares, times = rng.dirichlet([1, 1], 300), rng.integers(0, 30, 300)
    X = rng.multinomial(8, shares @ topic_word)
    sums = WordSums(topic_word)
    for begin in range(0, 300, 70):
        rows = slice(begin, begin + 70)
        sums.add(sparse.csr_matrix(X[rows]), shares[rows], times[rows])
    found = sums.trends()
    parts = X[:, None, :] * shares[:, :, None] * topic_word / (shares @ topic_word)[:, None, :]
    for topic in range(2):
        tokens, whole = parts[:, topic], parts[:, topic].sum(axis=1)
        share, middle = tokens.sum(axis=0) / whole.sum(), times @ whole / whole.sum()
        residual = (times - middle)[:, None] * (tokens - share * whole[:, None])
        z = residual.sum(axis=0) / np.sqrt((residual**2).sum(axis=0))
        tested = (tokens >= 0.5).sum(axis=0) >= 20
        np.testing.assert_allclose(found.z[topic][tested], z[tested], rtol=1e-8)
    assert stats.norm.sf(found.bar(0.05)) * 2 * found.n_tested == pytest.approx(0.05)


def test_a_word_that_drifts_is_named():
    rng = np.random.default_rng(0)
    model, X, dates = year(rng, 30, 40, np.tile([0.5, 0.5], (30, 1)))
    weeks = (dates - FIRST).astype(int) // 7
    dense = np.asarray(X.todense())
    moved = rng.binomial(dense[:, 0], weeks / 40)  # the first word of the first topic gives way to the second
    dense[:, 0] -= moved
    dense[:, 1] += moved
    trends = topic_trends(model, sparse.csr_matrix(dense), dates, feature_names=[f"w{n}" for n in range(8)])
    drifting = {drift.word: drift for drift in trends.drifting_words(0)}
    assert drifting.keys() == {"w0", "w1"}
    assert drifting["w0"].early > 0.2 > 0.12 > drifting["w0"].late
    assert trends.drifting_words(1) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"period": "fortnight"}, "period must be one of day, week"),
        ({"false_alarm_rate": 1.5}, "false_alarm_rate must lie between 0 and 1, got 1.5"),
        ({"n_looks": 0}, "n_looks must be"),
        ({"shares": np.ones((2, 2))}, "shares must have a row for each of 20 documents"),
        ({"dates": ["2024-01-01"]}, "dates must have one for each of 20 documents, got 1"),
        ({"dates": [None] * 20}, "dates must have at least one that is known, got none"),
    ],
)
def test_mistakes_get_a_sentence(arguments, message):
    model, X, dates = year(np.random.default_rng(0), 2, 10, np.tile([0.5, 0.5], (2, 1)))
    dates = arguments.pop("dates", dates)
    with pytest.raises(ValueError, match=message):
        topic_trends(model, X, dates, **arguments)


def test_one_period_and_one_document_are_no_news():
    model, X, dates = year(np.random.default_rng(0), 1, 1, np.array([[0.5, 0.5]]))
    trends = topic_trends(model, X, dates)
    assert trends.emerging() == trends.fading() == []
    assert trends.over_time.shares.shape == (1, 2)
    week = "2024-01-01"
    assert repr(trends) == f"<TopicTrends in <shares of 2 topics in 1 week, {week}>: nothing changes>"


def test_surprise_is_the_standardised_log_likelihood_of_each_document():
    rng = np.random.default_rng(0)
    topic_word, shares = rng.dirichlet(np.ones(6), 2), rng.dirichlet([1, 1], 50)
    X = rng.multinomial(9, shares @ topic_word)
    sums, squares, lengths = log_likelihoods(sparse.csr_matrix(X), shares, topic_word)
    logs = np.log(shares @ topic_word)
    np.testing.assert_allclose(sums, (X * logs).sum(axis=1))
    np.testing.assert_allclose(squares, (X * logs**2).sum(axis=1))
    assert (lengths == 9).all()


def test_a_subject_without_a_topic_shows_by_documents_that_no_topic_explains():
    """A new subject mixes the words of two topics that never went together: no topic emerges, but it is noticed."""
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        model, X, dates = year(rng, 23, 100, np.tile([0.4, 0.3, 0.3], (23, 1)))
        dense = np.asarray(X.todense())
        new = np.flatnonzero((dates >= FIRST + 7 * 20) & (rng.random(len(dates)) < 0.06))
        strange = np.zeros(12)
        strange[[0, 4, 8]] = 1 / 3  # a word of each
        dense[new] = rng.multinomial(15, strange, len(new))
        names = [f"w{column}" for column in range(12)]
        trends = topic_trends(model, sparse.csr_matrix(dense), dates, feature_names=names, random_state=seed)
        if trends.misfit is not None and set(trends.misfit.words) == {"w0", "w4", "w8"}:
            found += trends.misfit.since >= "2024-05-06"
    assert found >= 8
