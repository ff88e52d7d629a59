"""Suggestions, thresholds, evaluation and tuning, with models whose answers are known."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from pluri import on_interrupt, validation
from pluri.cochange import (
    CommitHistory,
    CoOccurrence,
    FileRecommender,
    cooccurrence_tuned,
    evaluate,
    fim_fixed,
    tune,
)
from pluri.cochange.models.registry import MODELS, build_model
from pluri.cochange.queries import Answers, answer, make_queries
from pluri.cochange.scoring import best_threshold, score_queries
from pluri.datasets.commits import make_commits
from pluri.io import save
from pluri.mixtures.bayesian_bernoulli.gibbs import BernoulliGibbs
from pluri.priors import Beta

PAIRS = [("a.c", "a.h"), ("b.c", "b.h"), ("c.c", "c.h", "c.md")]


class Oracle(BaseEstimator):
    """Knows the true groups: a stand-in for a model with the shared interface, one row at a time."""

    def __init__(self, weights=None, probabilities=None, shift=0.0):
        self.weights = weights
        self.probabilities = probabilities
        self.shift = shift

    def fit(self, X, y=None):
        self.n_seen_ = X.shape[0]
        self.width_ = X.shape[1]
        return self

    def predict_missing(self, present, absent=None):
        present = np.asarray(present, dtype=int)
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights) + np.log(self.probabilities[:, present]).sum(axis=1)
        share = np.exp(logs - logs.max())
        return share @ self.probabilities / share.sum() + self.shift


def history(n_commits=120, seed=0, **options):
    rng = np.random.default_rng(seed)
    records = [
        {"time": 3600 * number, "files": [*PAIRS[rng.integers(3)], *(["noise"] if rng.random() < 0.2 else [])]}
        for number in range(n_commits)
    ]
    return CommitHistory.from_records(records, **{"support_on": "all", **options})


@pytest.fixture(scope="module")
def recommender():
    return FileRecommender("cooccurrence", random_state=0).fit(history())


def test_suggestions_are_ranked_with_the_commits_that_speak_for_them(recommender):
    commits = history()
    found = recommender.recommend(["c.c"], threshold=0.0)
    assert [item.path for item in found] == ["c.h", "c.md", "noise"]
    rows = commits.X_.toarray().astype(bool)
    place = {name: column for column, name in enumerate(commits.files_.tolist())}
    both = np.flatnonzero(rows[:, place["c.c"]] & rows[:, place["noise"]])
    noise = found[-1]
    assert noise.probability == pytest.approx(len(both) / rows[:, place["c.c"]].sum())
    assert noise.n_commits == len(both)
    assert noise.commits == tuple(commits.ids_[both[::-1][:3]])
    assert [item.path for item in recommender.recommend("c.c")] == ["c.h", "c.md"]
    assert [item.path for item in recommender.recommend(["c.c", "c.h"], top=1)] == ["c.md"]
    assert recommender.recommend(["c.c", "c.h", "c.md"]) == []


def test_commits_with_any_of_some_files_are_counted(recommender):
    commits = history()
    rows = commits.X_.toarray().astype(bool)
    place = {name: column for column, name in enumerate(commits.files_.tolist())}
    either = rows[:, place["c.c"]] | rows[:, place["noise"]]
    assert recommender.count_commits(["c.c", "noise"]) == either.sum()


def test_unknown_files_are_dropped_or_refused_with_the_nearest(recommender):
    with pytest.warns(UserWarning, match=r"dropped 'src/a.c'; nearest known: 'a.c'"):
        assert [item.path for item in recommender.recommend(["src/a.c", "b.c"])] == ["b.h"]
    with pytest.raises(ValueError, match=r"must hold a path that the history knows, got 'c.cc'; nearest known: 'c.c'"):
        recommender.recommend(["c.cc"])
    with pytest.raises(ValueError, match="files must hold at least one path"):
        recommender.recommend([])
    with pytest.raises(ValueError, match="top must be at least 1"):
        recommender.recommend(["a.c"], top=0)


def test_deleted_files_are_not_suggested_unless_asked_for():
    commits = history()
    commits.alive_[commits.files_.tolist().index("a.h")] = False
    gone = FileRecommender("cooccurrence", threshold=0.1).fit(commits)
    assert "a.h" not in [item.path for item in gone.recommend("a.c", threshold=0)]
    kept = FileRecommender("cooccurrence", threshold=0.1, drop_deleted=False).fit(commits)
    assert kept.recommend("a.c")[0].path == "a.h"


def test_a_recommender_survives_saving(recommender, tmp_path):
    for model in (recommender, fim_fixed(3).fit(history()), FileRecommender("popular", threshold=0.1).fit(history())):
        model.save(tmp_path / "model.skops", notes={"last_commit": "x"})
        again = FileRecommender.load(tmp_path / "model.skops")
        assert again.recommend(["a.c"], threshold=0) == model.recommend(["a.c"], threshold=0)
        assert again.threshold_ == model.threshold_
        assert again.get_params().keys() == model.get_params().keys()
    other = CoOccurrence().fit(np.eye(3))
    save(other, tmp_path / "other.skops", trusted=[CoOccurrence])
    with pytest.raises(ValueError, match="path must name a saved FileRecommender, got CoOccurrence"):
        FileRecommender.load(tmp_path / "other.skops")


def test_a_failed_fit_leaves_the_one_before(recommender):
    copied = FileRecommender("cooccurrence", random_state=0).fit(history())
    before = copied.recommend("a.c")
    with pytest.raises(ValueError, match="history must have at least 2 commits"):
        copied.fit(CommitHistory.from_records([]))
    assert copied.recommend("a.c") == before
    with pytest.raises(TypeError, match="history must be a CommitHistory, got ndarray"):
        copied.fit(np.eye(3))


def test_no_late_commit_to_choose_by_is_told():
    records = [{"time": number, "files": ["a", "b"] if number < 50 else ["a"]} for number in range(80)]
    with pytest.warns(UserWarning, match=r"no commit among the last 20% has more than 1 known files"):
        fitted = FileRecommender("cooccurrence").fit(CommitHistory.from_records(records, support_on="all"))
    assert fitted.threshold_ == 0.5


def test_weights_by_age_are_those_of_the_half_life():
    commits = history(60)
    fitted = FileRecommender("cooccurrence", threshold=0.0, half_life=0.5).fit(commits)
    ages = (commits.times_[-1] - commits.times_) / 86_400
    np.testing.assert_allclose(fitted.model_.row_weights_, 0.5 ** (ages / 0.5))
    oracle = Oracle(np.ones(1), np.ones((1, len(commits.files_))))
    with pytest.raises(ValueError, match="half_life must be None for Oracle"):
        FileRecommender(oracle, half_life=1.0).fit(commits)
    with pytest.raises(ValueError, match="half_life must be a positive number of days"):
        FileRecommender("cooccurrence", half_life=-1.0).fit(commits)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "bayes"}, r"model must be one of .* \(did you mean bayesian\?\)"),
        ({"model": 3}, "or an estimator with fit and predict_missing"),
        ({"model": "popular", "model_params": {"k": 3}}, "model_params must be parameters of Popularity"),
        ({"model": "popular", "threshold": "best"}, "threshold must be a finite number or 'auto'"),
        ({"model": "popular", "average": "weighted"}, "average must be one of 'macro', 'micro'"),
        ({"model": "popular", "n_start": 0}, "n_start must be a whole number of at least 1"),
        ({"model": "popular", "validation_fraction": 1.0}, "validation_fraction must be a number above 0 and below 1"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        FileRecommender(**options).fit(history(40))


def brute_force_f(answers, threshold, average):
    scores = []
    for values, hits, n_labels in zip(answers.scores, answers.hits, answers.n_labels):
        chosen = values > threshold
        scores.append((int((hits & chosen).sum()), int(chosen.sum()), int(n_labels)))
    if average == "micro":
        hits, suggested, labels = np.sum(scores, axis=0)
        return 2 * hits / (suggested + labels)
    return np.mean([2 * hits / (suggested + labels) for hits, suggested, labels in scores])


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_the_best_threshold_is_the_best_of_all(average):
    rng = np.random.default_rng(2)
    for _ in range(30):
        # Rounded, so that scores are often equal, within a query and between queries.
        scores = -np.sort(-np.round(rng.random((6, 9)) ** 2, 1), axis=1)
        scores[0, 5:] = -np.inf
        hits = (rng.random((6, 9)) < scores) & np.isfinite(scores)
        answers = Answers(scores, hits, hits.sum(axis=1) + rng.integers(1, 3, size=6))
        found = best_threshold(answers, average)
        levels = np.unique(scores[np.isfinite(scores)])
        tried = [brute_force_f(answers, level, average) for level in [*(levels - 0.05), *levels]]
        assert found.f == pytest.approx(max(tried))
        assert brute_force_f(answers, found.value, average) == pytest.approx(found.f)
        if average == "macro":
            assert score_queries(answers, found.value).f.mean() == pytest.approx(found.f)


def test_queries_show_some_files_and_hide_the_rest():
    X = history().X_
    queries = make_queries(X, 2, np.random.default_rng(0))
    sizes = np.diff(X.indptr)
    assert queries.commits.tolist() == np.flatnonzero(sizes > 2).tolist()
    for commit, shown, hidden in zip(queries.commits, queries.starters, queries.labels):
        assert sorted([*shown, *hidden]) == sorted(X.indices[X.indptr[commit] : X.indptr[commit + 1]])
        assert len(shown) == 2
    seen = np.zeros(X.shape[1], dtype=bool)
    assert len(make_queries(X, 1, np.random.default_rng(0), seen)) == 0
    with pytest.raises(ValueError, match="n_start must be at least 1"):
        make_queries(X, 0, np.random.default_rng(0))


def test_equal_scores_are_ranked_by_popularity_and_an_oracle_is_perfect():
    X = history().X_
    queries = make_queries(X, 1, np.random.default_rng(0))
    popularity = np.asarray(X.sum(axis=0)).ravel()
    answers = answer(lambda starters: np.zeros(starters.shape), queries, popularity)
    first = np.argsort(-popularity, kind="stable")
    for hits, shown, hidden in zip(answers.hits, queries.starters, queries.labels):
        ranked = [file for file in first if file not in shown]
        assert hits[: len(ranked)].tolist() == [file in hidden for file in ranked]
    truth = iter(X[queries.commits].toarray())
    perfect = score_queries(
        answer(lambda starters: np.array([next(truth) for _ in range(starters.shape[0])]), queries, popularity), 0.5
    )
    assert (perfect.cpr == 1).all()
    assert (perfect.f == 1).all()
    with pytest.raises(ValueError, match="got NaN"):
        answer(lambda starters: np.full(starters.shape, np.nan), queries, popularity)


def test_evaluation_is_that_of_a_loop_over_recommendations():
    train, test = history(150, min_support=5, support_on="train").split()
    fitted = FileRecommender("cooccurrence", random_state=1).fit(train)
    found = evaluate(fitted, None, test, n_start=1, random_state=3)
    again = evaluate(FileRecommender("cooccurrence", random_state=1), train, test, n_start=1, random_state=3)
    assert found.figures() == again.figures()
    queries = make_queries(test.X_, 1, validation.as_generator(3))
    figures = []
    for shown, hidden in zip(queries.starters, queries.labels):
        given, truth = set(test.files_[shown].tolist()), set(test.files_[hidden].tolist())
        suggested = {item.path for item in fitted.recommend(given, top=None)}
        ranked = [item.path for item in fitted.recommend(given, top=None, threshold=-1.0)]
        hits = len(suggested & truth)
        cpr = len(set(ranked[: len(truth)]) & truth) / len(truth)
        figures.append(
            (hits / max(len(suggested), 1), hits / len(truth), 2 * hits / (len(suggested) + len(truth)), cpr)
        )
    np.testing.assert_allclose((found.precision, found.recall, found.f, found.cpr), np.mean(figures, axis=0))
    np.testing.assert_allclose(found.table["f"], np.array(figures)[:, 2])
    assert found.n_queries == len(queries)
    hits, suggested, labels = (found.table[name].sum() for name in ("n_hits", "n_suggested", "n_labels"))
    assert found.micro_f == pytest.approx(2 * hits / (suggested + labels))


def test_nothing_is_judged_on_what_was_learnt():
    train, test = history(150, min_support=5, support_on="train").split()
    with pytest.raises(ValueError, match="test must not begin before the end of what was learnt"):
        evaluate(FileRecommender("popular", threshold=0.1), test, train)
    with pytest.raises(ValueError, match="test must not begin before the end of what was learnt"):
        evaluate(FileRecommender("popular", threshold=0.1).fit(test), None, train)
    with pytest.raises(ValueError, match="more than n_start = 9 known files"):
        evaluate(FileRecommender("popular", threshold=0.1), train, test, n_start=9)


def test_tuning_never_sees_the_last_commits_while_it_learns():
    train, test = history(150, min_support=5, support_on="train").split()
    seen = []

    class Watched(CoOccurrence):
        def fit(self, X, y=None, sample_weight=None):
            seen.append(X.shape[0])
            return super().fit(X, y, sample_weight)

    tuned = tune(FileRecommender(Watched()), train, {"measure": ["support", "confidence"]}, random_state=0)
    assert seen == [int(0.8 * len(train))] * 2
    assert tuned.recommender.threshold == tuned.threshold
    assert [trial["params"] for trial in tuned.table] == [{"measure": "support"}, {"measure": "confidence"}]
    assert tuned.f == max(trial["f"] for trial in tuned.table)
    by_rank = tune(FileRecommender("cooccurrence"), train, metric="cpr", n_start=2, random_state=0)
    assert by_rank.cpr == max(trial["cpr"] for trial in by_rank.table)
    assert by_rank.recommender.n_start == 2
    micro = tune(FileRecommender("cooccurrence", average="micro"), train, {}, random_state=0)
    assert 0 < micro.f <= 1
    fixed = tune(FileRecommender("cooccurrence", threshold=0.25), train, {}, random_state=0)
    assert fixed.threshold == 0.25
    assert evaluate(fixed.recommender, train, test, random_state=0).threshold == 0.25
    with pytest.raises(ValueError, match="param_grid must be given for a model that is an estimator"):
        tune(FileRecommender(CoOccurrence()), train)
    with pytest.raises(ValueError, match="metric must be one of 'f', 'cpr'"):
        tune(FileRecommender("popular"), train, metric="auc")


def test_files_that_only_come_late_get_no_score():
    records = [{"time": t, "files": ["a", "b"] if t < 90 else ["a", "b", "late"]} for t in range(100)]
    commits = CommitHistory.from_records(records, min_support=1, support_on="all")
    early, late = commits.split(0.85)
    fitted = FileRecommender(CoOccurrence(), threshold=0.1).fit(early)
    assert fitted.columns_.tolist() == [0, 1]
    scores = fitted.score_files(sparse.csr_array(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])))
    assert scores[:, 2].tolist() == [0.0, 0.0]
    found = evaluate(fitted, None, late, random_state=0)
    assert found.recall < 1


def test_the_two_baselines_differ_in_their_threshold():
    """Over histories the gain in F has mean 0.18 and spread 0.05: the mean of three is six standard errors above 0."""
    gain = []
    for seed in range(3):
        train, test = CommitHistory.from_records(make_commits(1200, random_state=seed).records()).split()
        fixed = evaluate(fim_fixed(10, random_state=0), train, test, n_start=3, random_state=0)
        tuned = evaluate(cooccurrence_tuned(n_start=3, random_state=0), train, test, n_start=3, random_state=0)
        assert fixed.threshold == 0
        gain.append((tuned.f - fixed.f, fixed.empty - tuned.empty))
    assert (np.mean(gain, axis=0) > 0).all()


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_by_name_recommends_and_is_repeatable(name):
    try:
        kind = MODELS[name].load()
    except ImportError:
        pytest.skip(f"{name} is not there")
    small = {"n_components": 5, "n_chains": 2, "n_warmup": 5, "n_draws": 5, "n_iter": 20, "max_iter": 20}
    settings = {key: value for key, value in small.items() if key in kind().get_params()}
    if name == "dp":
        settings.pop("n_components")
    if name == "rbm":
        settings = {"n_components": 10}
    commits = history(80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            FileRecommender(name, model_params=settings, random_state=4).fit(commits).recommend("a.c", threshold=0)
            for _ in range(2)
        ]
    assert found[0] == found[1]
    if name != "popular":
        assert found[0][0].path == "a.h"


def test_bayesian_mixture_ranks_nearly_as_well_as_the_truth():
    """CPR within 0.06 of that of the true model, without drift; over seeds 0.006 below it with a spread of 0.009."""
    commits = make_commits(drift=0.0, random_state=0)
    train, test = CommitHistory.from_records(commits.records(), min_support=1).split()
    names = train.files_.tolist()
    place = [commits.files.tolist().index(name) for name in names]
    oracle = Oracle(commits.weights, commits.probabilities[0][:, place])
    truth = evaluate(FileRecommender(oracle, threshold=0.5), train, test, n_start=1, random_state=0)
    model = build_model("bayesian", {"n_components": 100, "weight_concentration": 10.0, "n_chains": 4}, len(train), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = evaluate(FileRecommender(model, threshold=0.5), train, test, n_start=1, random_state=0)
    assert truth.cpr - found.cpr < 0.06
    assert found.n_queries > 500


def test_a_recommender_can_be_cloned():
    copied = clone(FileRecommender("bayesian", model_params={"n_components": 3}, threshold=0.2))
    assert copied.get_params()["model_params"] == {"n_components": 3}


def test_ctrl_c_ends_a_recommender_whose_model_would_go_on(monkeypatch):
    history = CommitHistory.from_records(
        [{"time": t, "files": PAIRS[t % 3]} for t in range(60)], min_support=1, support_on="all"
    )
    sweep, calls = BernoulliGibbs.step, []

    def step(self, rng, state):
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return sweep(self, rng, state)

    monkeypatch.setattr(BernoulliGibbs, "step", step)
    recommender = FileRecommender("bayesian", model_params={"n_chains": 1}, random_state=0)
    with on_interrupt("keep"), pytest.raises(KeyboardInterrupt):
        recommender.fit(history)
    assert len(calls) == 12
    assert not hasattr(recommender, "model_")


def test_settings_that_suit_sparse_commits_do_not_hang_on_the_defaults_of_the_models():
    assert build_model("rbm", None, 100, 0).inference == "factorised"
    for name in ("bayesian", "dp"):
        model = build_model(name, None, 100, 0)
        assert model.probabilities_prior == Beta(0.005, 0.95)
    assert build_model("logistic_pca", None, 100, 0).fold_in_alpha == 0.1
