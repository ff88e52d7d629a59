"""False alarms about emerging and fading topics in quiet years, and how soon a planted topic is found.

``python benchmarks/accuracy/topic_alarms.py`` simulates years of 52 weeks of short documents. In quiet years nothing
changes: a model that was fitted to another year is applied, all weeks are scanned at a rate of false alarms of 5 %, and
the years with any alarm are counted. The same is done for years whose weeks differ by more than chance, for words that
drift, and for the drift alarm of ``TopicMonitor`` (52 weekly checks). In planted years a topic of 3 % of the documents
begins in week 30; the model is fitted to the documents up to the third week of it, and the alarm must name it: the
topic that is most like it emerges, or half of the words of the documents that no topic explains are among its first 20.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy import sparse, stats

from pluri.topics import LatentDirichletAllocation, TopicMonitor, topic_trends

N_TOPICS, N_WORDS, LENGTH, RATE = 10, 500, 30, 0.05
FIRST, WEEKS, PLANTED = np.datetime64("2024-01-01"), 52, 30


class World:
    """Topics, and years of documents about them."""

    def __init__(self, seed: int, per_week: int) -> None:
        rng = np.random.default_rng(seed)
        self.topics = rng.dirichlet(np.full(N_WORDS, 0.05), N_TOPICS + 1)
        self.prior = rng.gamma(2.0, 0.05, N_TOPICS)
        self.per_week = per_week

    def year(self, rng: np.random.Generator, *, n_weeks: int = WEEKS, wobble: float = 0.0, planted: float = 0.0):
        """Counts and dates; weekly priors wobble by this coefficient of variation, a new topic has this share."""
        shares, weeks = [], []
        for week in range(n_weeks):
            prior = self.prior * (rng.gamma(wobble**-2, wobble**2, N_TOPICS) if wobble else 1.0)
            own = np.column_stack([rng.dirichlet(prior, self.per_week), np.zeros(self.per_week)])
            if planted and week >= PLANTED:
                new = rng.random(self.per_week) < planted
                own[new] = 0.2 * own[new] + 0.8 * np.eye(N_TOPICS + 1)[-1]
            shares.append(own)
            weeks.append(np.full(self.per_week, week))
        probabilities = np.concatenate(shares) @ self.topics
        X = rng.multinomial(LENGTH, probabilities / probabilities.sum(axis=1, keepdims=True))
        return sparse.csr_matrix(X), FIRST + 7 * np.concatenate(weeks)

    def model(self, X, seed: int, n_topics: int = N_TOPICS, n_warmup: int = 80):
        """A model of a year."""
        settings = {"inference": "gibbs", "doc_topic_prior": "learn", "n_draws": 5, "thin": 4}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return LatentDirichletAllocation(n_topics, n_warmup=n_warmup, random_state=seed, **settings).fit(X)


def quiet_years(n_years: int, per_week: int, wobble: float = 0.0, seed: int = 0):
    """Years with an alarm about topics, and years with a word that is said to drift."""
    world = World(seed, per_week)
    rng = np.random.default_rng(seed + 1)
    model = world.model(world.year(rng)[0], seed)
    topics = words = 0
    for year in range(n_years):
        X, dates = world.year(rng, wobble=wobble)
        trends = topic_trends(model, X, dates, false_alarm_rate=RATE, n_permutations=199, random_state=year)
        topics += bool(trends.emerging() or trends.fading() or trends.misfit)
        words += bool(trends.drifting_words())
    return topics, words


def planted_years(n_years: int, per_week: int, share: float = 0.03, seed: int = 100) -> int:
    """Years in which the planted topic was named within three weeks."""
    found = 0
    for year in range(n_years):
        world = World(seed + year, per_week)
        rng = np.random.default_rng(seed + year)
        X, dates = world.year(rng, n_weeks=PLANTED + 3, planted=share)
        model = world.model(X, year, n_topics=N_TOPICS + 2, n_warmup=150)
        names = [str(column) for column in range(N_WORDS)]
        trends = topic_trends(model, X, dates, false_alarm_rate=RATE, feature_names=names, random_state=year)
        likeness = model.topic_word_ @ world.topics[-1] / np.linalg.norm(model.topic_word_, axis=1)
        named = any(change.topic == likeness.argmax() for change in trends.emerging())
        best = {names[column] for column in np.argsort(-world.topics[-1])[:20]}
        found += named or (trends.misfit is not None and len(best & set(trends.misfit.words)) >= 4)
    return found


def monitored_years(n_years: int, per_week: int, seed: int = 200) -> tuple[int, int]:
    """Quiet years with any drift alarm in 52 weekly checks, and years in which a new subject of 10 % was noticed."""
    world = World(seed, per_week)
    rng = np.random.default_rng(seed + 1)
    X, _ = world.year(rng)
    held_out, _ = world.year(rng, n_weeks=10)
    model = world.model(X, seed)
    false = noticed = 0
    for _ in range(n_years):
        monitor = TopicMonitor(model, false_alarm_rate=RATE, n_looks=WEEKS).start(held_out, random_state=0)
        year, dates = world.year(rng)
        weeks = (dates - FIRST).astype(int) // 7
        checks = [monitor.check(year[weeks == week], random_state=week) for week in range(WEEKS)]
        false += any(check.alarm for check in checks)
        changed, _ = world.year(rng, n_weeks=PLANTED + 3, planted=0.1)
        later = changed[-3 * per_week :]
        noticed += any(
            monitor.check(later[begin : begin + per_week], random_state=begin).alarm
            for begin in range(0, 3 * per_week, per_week)
        )
    return false, noticed


def told(name: str, count: int, n_years: int) -> None:
    low, high = stats.beta.ppf(
        [0.025, 0.975], [max(count, 1e-9), count + 1], [n_years - count + 1, max(n_years - count, 1e-9)]
    )
    print(f"{name:64} {count:4d} of {n_years}  {count / n_years:6.1%}  (95 %: {low:.1%} to {high:.1%})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--years", type=int, default=500, help="quiet years")
    parser.add_argument("--planted", type=int, default=100, help="planted years")
    parser.add_argument("--seed", type=int, default=0, help="of the years, added to that of each part")
    parser.add_argument("--parts", nargs="*", default=["quiet", "planted", "wobble", "monitor"])
    parser.add_argument("--per-week", nargs="*", type=int, default=[100, 200, 50], help="documents of planted years")
    parser.add_argument("--quick", action="store_true", help="twenty years of each")
    arguments = parser.parse_args()
    n_quiet, n_planted = (20, 20) if arguments.quick else (arguments.years, arguments.planted)
    n_few, seed, parts = max(n_quiet // 5, 10), arguments.seed, arguments.parts
    began = time.process_time()
    print(f"{N_TOPICS} topics, {WEEKS} weeks, documents of {LENGTH} words; stated rate of false alarms {RATE:.0%}")
    if "quiet" in parts:
        topics, words = quiet_years(n_quiet, 50, seed=seed)
        told("quiet, 50 documents a week: any alarm", topics, n_quiet)
        told("quiet, 50 documents a week: any word drifts", words, n_quiet)
    for per_week in arguments.per_week if "planted" in parts else []:
        found = planted_years(n_planted, per_week, seed=100 + seed)
        told(f"planted 3 %, {per_week} documents a week: found in three weeks", found, n_planted)
    if "wobble" in parts:
        topics, _ = quiet_years(n_few, 50, wobble=0.3, seed=10 + seed)
        told("weeks that differ by 30 %: any alarm", topics, n_few)
    if "monitor" in parts:
        false, noticed = monitored_years(n_few, 100, seed=200 + seed)
        told("quiet: any drift alarm in 52 checks", false, n_few)
        told("a new subject of 10 %: drift alarm within three weeks", noticed, n_few)
    print(f"{time.process_time() - began:.0f} s of processor time")


if __name__ == "__main__":
    main()
