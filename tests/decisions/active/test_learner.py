"""The loop: what is asked, taught and kept, by any model; and what is refused."""

import json

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

import pluri
from pluri.decisions import ActiveLearner, Committee, QueryByCommittee, committee_scores, fisher_scores
from pluri.decisions.active.rows import join, take
from pluri.mixtures import NaiveBayes
from pluri.processes import GaussianProcessRegressor

X, Y = make_classification(120, 3, n_informative=3, n_redundant=0, random_state=1)
START, POOL, HELD = np.arange(10), np.arange(10, 80), np.arange(80, 120)


def begun(strategy="margin", estimator=None, **settings):
    learner = ActiveLearner(estimator, strategy, random_state=0, **settings)
    return learner.fit(X[START], Y[START])


def run_of(learner):
    return learner.run(X[POOL], Y[POOL], X[HELD], Y[HELD])


def test_a_run_equals_the_loop_written_out():
    learner = run_of(begun("entropy", n_queries=12, batch_size=3))
    labelled, scores = list(START), []
    for _ in range(5):
        model = LogisticRegression(max_iter=1000).fit(X[labelled], Y[labelled])
        scores.append(model.score(X[HELD], Y[HELD]))
        free = np.setdiff1d(POOL, labelled)
        P = model.predict_proba(X[free])
        entropy = -(P * np.log(P)).sum(axis=1)
        labelled += free[np.argsort(-entropy)[:3]].tolist()
    assert_array_equal(np.asarray(learner.queried_) + 10, labelled[10:22])
    assert_allclose(learner.history_["score"], scores)
    assert learner.history_["n_labels"] == [10, 13, 16, 19, 22]
    assert learner.history_["n_queries"] == [0, 3, 6, 9, 12]
    assert_array_equal(learner.y_, Y[labelled[:22]])


def test_a_row_is_never_asked_for_twice_and_the_last_batch_is_cut():
    asked = []
    learner = begun(n_queries=11, batch_size=4)
    learner.run(X[POOL], lambda rows: (asked.append(len(rows)), Y[POOL][rows])[1])
    assert asked == [4, 4, 3]
    assert len(set(learner.queried_.tolist())) == 11
    whole = begun(batch_size=30)
    whole.run(X[POOL], Y[POOL])
    assert sorted(whole.queried_.tolist()) == list(range(70))


def test_it_stops_when_nothing_is_uncertain_enough():
    learner = run_of(begun("least_confident", min_score=0.45))
    assert 0 < learner.queried_.size < len(POOL)
    assert (np.array(learner.history_["max_score"][:-1]) >= 0.45).all()
    assert learner.history_["max_score"][-1] < 0.45
    free = np.setdiff1d(np.arange(70), learner.queried_)
    assert learner.scores(X[POOL][free]).max() < 0.45


def test_taught_is_the_same_as_fitted():
    taught = ActiveLearner().teach(X[:6], Y[:6]).teach(X[6:10], Y[6:10])
    assert_allclose(taught.predict_proba(X), begun().predict_proba(X))


def test_before_two_classes_are_seen_rows_that_differ_are_asked_for():
    blobs, group = make_blobs([40, 5, 5], centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    learner = ActiveLearner(random_state=0)
    assert set(group[learner.query(blobs, 3)]) == {0, 1, 2}
    learner.teach(blobs[:1], ["a"])
    assert len(learner.query(blobs[1:], 3)) == 3
    with pytest.raises(NotFittedError, match=r"labels of one class so far \(.*a.*\)"):
        learner.predict(blobs)
    learner.teach(blobs[45:46], ["b"])
    assert set(learner.predict(blobs)) == {"a", "b"}
    texts = ["one two", "two three", "four five"]
    assert len(ActiveLearner(make_pipeline(TfidfVectorizer(), LogisticRegression())).query(texts, 2)) == 2


def test_a_run_may_begin_without_any_label():
    learner = ActiveLearner(random_state=0, n_queries=15, batch_size=5)
    learner.run(X[POOL], Y[POOL], X[HELD], Y[HELD])
    assert np.isnan(learner.history_["score"][0])
    assert learner.history_["score"][-1] > 0.6


@pytest.mark.parametrize("stop", ["interrupt", "oracle fails"])
@pytest.mark.parametrize("strategy", ["margin", "random"])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(stop, strategy, tmp_path):
    whole = run_of(begun(strategy, n_queries=20, batch_size=2))

    def failing(rows, calls=[]):  # noqa: B006
        calls.append(rows)
        if len(calls) == 4:
            raise KeyboardInterrupt if stop == "interrupt" else RuntimeError("gone for lunch")
        return Y[POOL][rows]

    error = KeyboardInterrupt if stop == "interrupt" else RuntimeError
    for checkpoint in (None, tmp_path / "run.json"):
        learner = begun(strategy, n_queries=20, batch_size=2, checkpoint=checkpoint)
        with pytest.raises(error):
            learner.run(X[POOL], failing, X[HELD], Y[HELD])
        failing.__defaults__[0].clear()
        assert learner.queried_.size == 6
        assert_array_equal(learner.y_[10:], Y[POOL][learner.queried_])
        if checkpoint is not None:  # another process: nothing but the file is left
            learner = begun(strategy, n_queries=20, batch_size=2, checkpoint=checkpoint)
        asked = []
        learner.run(X[POOL], lambda rows: (asked.extend(rows), Y[POOL][rows])[1], X[HELD], Y[HELD])  # noqa: B023
        assert_array_equal(asked, whole.queried_[6:])
        assert_array_equal(learner.queried_, whole.queried_)
        assert_allclose(learner.history_["score"], whole.history_["score"])
        assert learner.history_["n_labels"] == whole.history_["n_labels"]


def test_ctrl_c_in_a_fit_keeps_the_labels(tmp_path):
    class Slow(LogisticRegression):
        def fit(self, X, y):
            if len(y) == 14:
                raise KeyboardInterrupt
            return super().fit(X, y)

    learner = begun(estimator=Slow(), batch_size=2, checkpoint=tmp_path / "run.json")
    with pytest.raises(KeyboardInterrupt):
        run_of(learner)
    assert len(learner.y_) == 14
    assert len(json.loads((tmp_path / "run.json").read_text())["labels"]) == 4


def test_ctrl_c_at_any_line_of_a_run_loses_no_label_and_keeps_none_twice(press_at_line):
    settings = {"estimator": NaiveBayes(), "n_queries": 2}
    whole = run_of(begun(**settings))
    line = interrupted = 0
    while interrupted == line:
        learner = begun(**settings)
        with press_at_line(line, "pool_run.py"):
            try:
                run_of(learner)
            except KeyboardInterrupt:
                interrupted += 1
        run_of(learner)
        assert_array_equal(learner.queried_, whole.queried_)
        assert_array_equal(learner.X_, whole.X_)
        assert_array_equal(learner.y_, whole.y_)
        assert learner.history_["n_labels"] == whole.history_["n_labels"]
        line += 1
    assert line > 30


@pytest.mark.parametrize("content", ["", "{}", '{"format": 3}', "[1]"])
def test_a_file_that_is_no_run_is_refused(content, tmp_path):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match="checkpoint must be a file of a run"):
        run_of(begun(checkpoint=tmp_path / "run.json"))


def test_a_file_of_another_run_is_refused(tmp_path):
    run_of(begun(checkpoint=tmp_path / "run.json", n_queries=2))
    with pytest.raises(ValueError, match="belongs to another run: its strategy is 'margin', not 'entropy'"):
        run_of(begun("entropy", checkpoint=tmp_path / "run.json", n_queries=2))
    with pytest.raises(ValueError, match="belongs to another run: its pool"):
        begun(checkpoint=tmp_path / "run.json").run(X[POOL[1:]], Y[POOL[1:]])


def as_sparse(rows):
    return sparse.csr_matrix(rows)


def as_frame(rows):
    return pandas.DataFrame(rows, columns=["a", "b", "c"])


@pytest.mark.parametrize("form", [as_sparse, sparse.csc_array, as_frame, np.ndarray.tolist], ids=lambda f: f.__name__)
@pytest.mark.parametrize("strategy", ["margin", "fisher_d", "fisher_a", "fisher_e", "expected_error", "random"])
def test_rows_of_any_kind_are_asked_for_alike(form, strategy):
    settings = {"n_queries": 4, "batch_size": 2}
    plain = begun(strategy, **settings).run(X[POOL], Y[POOL], X[HELD], Y[HELD])
    other = ActiveLearner(None, strategy, random_state=0, **settings).fit(form(X[START]), Y[START])
    other.run(form(X[POOL]), Y[POOL], form(X[HELD]), Y[HELD])
    if form is not sparse.csc_array and form is not as_sparse:  # a sparse solver ends elsewhere, within its tolerance
        assert_array_equal(other.queried_, plain.queried_)
    assert_allclose(other.history_["score"][0], plain.history_["score"][0])
    assert len(other.y_) == 14


def test_rows_join_to_what_the_first_are():
    for form in (as_sparse, as_frame, np.asarray, np.ndarray.tolist):
        joined = join(form(X[:2]), form(X[2:5]))
        assert type(joined) is type(take(form(X), range(5))) or sparse.issparse(joined)
        dense = joined.toarray() if sparse.issparse(joined) else np.asarray(joined)
        assert_allclose(dense, X[:5])


MODELS = {
    "vote_entropy": [Committee(random_state=0), RandomForestClassifier(10, random_state=0)],
    "kl": [
        Committee(NaiveBayes("gaussian"), random_state=0),
        RandomForestClassifier(10, random_state=0),
        BaggingClassifier(LogisticRegression(), 5, max_features=2, random_state=0),
        make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)),
    ],
    "margin": [NaiveBayes("gaussian"), make_pipeline(StandardScaler(), LogisticRegression())],
    "expected_error": [NaiveBayes("gaussian")],
}


@pytest.mark.parametrize(("strategy", "model"), [(name, one) for name, some in MODELS.items() for one in some])
def test_models_of_many_kinds_are_taught(strategy, model):
    learner = run_of(begun(strategy, clone(model), n_queries=6, batch_size=3))
    assert learner.queried_.size == 6
    assert learner.history_["score"][-1] > 0.5


def test_members_of_an_ensemble_are_asked_by_their_codes():
    names = np.array(["no", "yes"])[Y]
    forest = RandomForestClassifier(7, random_state=0)
    learner = ActiveLearner(forest, "kl", random_state=0).fit(X[START], names[START])
    members = np.stack([tree.predict_proba(X[POOL]) for tree in learner.estimator_.estimators_])
    assert_allclose(learner.scores(X[POOL]), committee_scores(members, "kl"))


def test_fisher_scores_of_a_pipeline_are_of_the_columns_that_the_regression_sees():
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.5))
    learner = begun("fisher_a", model)
    scaler, last = learner.estimator_[0], learner.estimator_[-1]

    def columns(rows):
        return np.column_stack([scaler.transform(rows), np.ones(len(rows))])

    expected = fisher_scores(
        columns(X[POOL]), last.predict_proba(scaler.transform(X[POOL])), X_labelled=columns(X[START]),
        P_labelled=last.predict_proba(scaler.transform(X[START])), criterion="a", alpha=2.0,
    )  # fmt: skip
    assert_allclose(learner.scores(X[POOL]), expected)


REGRESSORS = [
    (GaussianProcessRegressor(), "variance"),
    (RandomForestRegressor(10, random_state=0), "variance"),
    (BaggingRegressor(LinearRegression(), 5, max_features=2, random_state=0), "variance"),
    (make_pipeline(StandardScaler(), BaggingRegressor(Ridge(), 5, random_state=0)), "variance"),
    (Ridge(), "fisher_d"),
    (LinearRegression(), "fisher_e"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "strategy"), REGRESSORS, ids=lambda one: str(one)[:24])
def test_regressors_are_taught(model, strategy):
    target = X @ [1.0, -2.0, 0.5]
    learner = ActiveLearner(clone(model), strategy, n_queries=5, random_state=0).fit(X[START], target[START])
    learner.run(X[POOL], target[POOL], X[HELD], target[HELD])
    assert learner.queried_.size == 5
    if isinstance(model, GaussianProcessRegressor):
        assert_allclose(learner.scores(X[POOL]), learner.estimator_.predict(X[POOL], return_std=True)[1] ** 2)
    else:
        assert learner.history_["score"][-1] > 0.3
    if strategy == "variance" and hasattr(learner.estimator_, "estimators_") and "Forest" in str(model):
        spread = np.var([tree.predict(X[POOL]) for tree in learner.estimator_.estimators_], axis=0)
        assert_allclose(learner.scores(X[POOL]), spread)


def test_a_callable_sees_the_learner_and_the_rows():
    def nearest(learner, rows):
        return -np.linalg.norm(rows - learner.X_.mean(axis=0), axis=1)

    learner = begun(nearest)
    expected = np.argsort(np.linalg.norm(X[POOL] - X[START].mean(axis=0), axis=1))[:5]
    assert_array_equal(learner.query(X[POOL], 5), expected)
    chosen, scores = learner.query(X[POOL], 5, return_scores=True)
    assert_allclose(scores[chosen], np.sort(scores)[::-1][:5])


def test_warm_fits_start_from_the_model_before():
    warm = begun(estimator=SGDClassifier(loss="log_loss", max_iter=5, tol=None, random_state=0), warm_start=True)
    model = warm.estimator_
    warm.teach(X[10:20], Y[10:20])
    assert warm.estimator_ is model
    assert begun().teach(X[10:20], Y[10:20]).estimator_ is not model
    with pytest.raises(ValueError, match="warm_start must be False for NaiveBayes"):
        begun(estimator=NaiveBayes("gaussian"), warm_start=True)


def test_sequences_are_a_pool():
    from pluri.sequences import GaussianHMM, SequenceClassifier

    rng = np.random.default_rng(0)
    labels = np.arange(30) % 2
    sequences = [rng.normal(size=(8, 2)) + label for label in labels]
    model = SequenceClassifier(GaussianHMM(2, n_iter=5, random_state=0, tol=np.inf))
    learner = ActiveLearner(model, "margin", n_queries=4, batch_size=2, random_state=0)
    learner.fit(sequences[:6], labels[:6])
    learner.run(sequences[6:20], labels[6:20], sequences[20:], labels[20:])
    assert learner.history_["score"][-1] > 0.6
    assert len(learner.X_) == 10


class Doubtful(LogisticRegression):
    """Has draws, as a network with MC dropout."""

    def predict_proba_samples(self, X, n_predictive=20, *, random_state=None):
        rng = np.random.default_rng(random_state)
        P = self.predict_proba(X)
        return np.stack([P + 0.1 * rng.random() * (0.5 - P) for _ in range(n_predictive)])


def test_draws_of_a_model_are_its_committee():
    learner = begun("bald", Doubtful())
    first, again = learner.scores(X[POOL]), learner.scores(X[POOL])
    assert_array_equal(first, again)  # the same draws for the same labels
    assert 0 < first.max() < np.log(2)
    assert run_of(learner.set_params(n_queries=3)).queried_.size == 3


def test_naive_bayes_tells_its_information_also_at_the_end_of_a_pipeline():
    rows = (X > 0).astype(float)
    model = NaiveBayes(inference="bayes")
    learner = ActiveLearner(model, "bald", random_state=0).fit(rows[:20], Y[:20])
    piped = ActiveLearner(make_pipeline(FunctionTransformer(), model), "bald", random_state=0).fit(rows[:20], Y[:20])
    seed = int(np.random.default_rng([learner.seed_, 20]).integers(2**31))
    expected = learner.estimator_.planning_scores(rows[POOL], "bald", random_state=seed)
    assert_array_equal(learner.scores(rows[POOL]), expected)
    assert_array_equal(piped.scores(rows[POOL]), expected)
    with pytest.raises(ValueError, match="strategy 'vote_entropy' must be used with several models"):
        learner.set_params(strategy="vote_entropy").scores(rows[POOL])
    with pytest.raises(ValueError, match="strategy 'bald' must be used with several models"):
        begun("bald").scores(X[POOL])


def test_labels_of_steps_are_no_labels_of_sequences():
    sequences = [np.zeros((3, 1)), np.zeros((2, 1))]
    with pytest.raises(ValueError, match="y must be one label for each of 2 rows, got lists of different lengths"):
        ActiveLearner(NaiveBayes("gaussian")).fit(sequences, [[0, 0, 1], [1, 1]])


# The quicker test above guards draws; these are fits of models that have them.
@pytest.mark.slow
@pytest.mark.thorough
def test_supervised_topics_and_networks_tell_their_information():
    from pluri.topics import SupervisedLDAClassifier

    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    counts = rng.poisson(np.where(labels[:, None], [3, 3, 0.5, 0.5], [0.5, 0.5, 3, 3]))
    counts[:, 0] += 1
    model = SupervisedLDAClassifier(2, n_warmup=10, n_draws=10, random_state=0)
    learner = ActiveLearner(model, "bald", n_queries=2, random_state=0).fit(counts[:10], labels[:10])
    with np.errstate(all="ignore"):
        learner.run(counts[10:30], labels[10:30], counts[30:], labels[30:], check_rows=False)
    assert learner.queried_.size == 2
    pytest.importorskip("jax")
    from pluri.networks import TextCNNClassifier

    texts = [" ".join(rng.choice(["good", "fine"] if label else ["bad", "poor"], 4)) for label in labels]
    network = TextCNNClassifier(max_epochs=3, random_state=0)
    learner = ActiveLearner(network, "bald", n_queries=2, batch_size=2, random_state=0).fit(texts[:10], labels[:10])
    learner.run(texts[10:30], labels[10:30])
    assert len(learner.y_) == 12


def test_a_committee_is_resampled_with_all_classes_and_disagrees():
    y = np.repeat([0, 1, 2], [20, 2, 1])
    rows = np.random.default_rng(0).normal(size=(23, 2)) + y[:, None]
    committee = Committee(n_members=8, random_state=0).fit(rows, y)
    assert all(len(member.classes_) == 3 for member in committee.estimators_)
    P = committee.predict_proba_samples(rows)
    assert P.std(axis=0).max() > 1e-3
    assert_allclose(committee.predict_proba(rows), P.mean(axis=0))
    with pytest.raises(ValueError, match="bootstrap must be True for NaiveBayes"):
        Committee(NaiveBayes("gaussian"), bootstrap=False).fit(rows, y)
    varied = Committee(RandomForestClassifier(3), bootstrap=False, random_state=0).fit(rows, y)
    assert varied.predict_proba_samples(rows).std(axis=0).max() > 0


@pytest.mark.parametrize("disagreement", ["kl", "vote_entropy"])
def test_query_by_committee_asks_where_its_members_disagree(disagreement):
    learner = QueryByCommittee(disagreement=disagreement, n_members=6, random_state=0).fit(X[START], Y[START])
    scores = committee_scores(learner.estimator_.predict_proba_samples(X[POOL]), disagreement)
    assert_allclose(learner.scores(X[POOL]), scores)
    assert scores[learner.query(X[POOL], 1)[0]] == scores.max()
    again = QueryByCommittee(disagreement=disagreement, n_members=6, random_state=0).fit(X[START], Y[START])
    again.set_params(n_queries=4)
    learner.set_params(n_queries=4)
    assert_array_equal(run_of(again).queried_, run_of(learner).queried_)


def test_self_training_of_scikit_learn_takes_our_models():
    """It does what a wrapper of ours would do, so there is none."""
    y = np.where(np.arange(len(Y)) < 20, Y, -1)
    model = SelfTrainingClassifier(NaiveBayes("gaussian"), threshold=0.95).fit(X, y)
    assert (model.transduction_ >= 0).sum() > 20
    certain = SelfTrainingClassifier(NaiveBayes("gaussian"), threshold=np.nextafter(1, 0)).fit(X * 1e-3, y)
    assert (certain.transduction_ >= 0).sum() == 20  # nothing is added beyond the greatest confidence


def test_a_learner_comes_back_from_its_file(tmp_path):
    learner = run_of(begun(n_queries=4, batch_size=2))
    pluri.save(learner, tmp_path / "learner.skops")
    loaded = pluri.load(tmp_path / "learner.skops")
    assert_allclose(loaded.predict_proba(X), learner.predict_proba(X))
    for one in (learner, loaded):
        one.set_params(n_queries=8)
        run_of(one)
    assert_array_equal(loaded.queried_, learner.queried_)
    assert loaded.history_["n_labels"] == [10, 12, 14, 16, 18]


def with_hole(rows):
    rows = rows.copy()
    rows[3, 1] = np.nan
    return rows


BAD = {
    "one class": (lambda: ActiveLearner().fit(X[:3], [1, 1, 1]), "y must have at least two classes to begin with"),
    "empty pool": (lambda: begun().run(X[:0], Y[:0]), "X_pool must have at least one row"),
    "empty query": (lambda: begun().query(X[:0]), "X_pool must have at least one row"),
    "oracle gives NaN": (
        lambda: begun().run(X[POOL], lambda r: np.full(len(r), np.nan)),
        "what oracle returns must be",
    ),
    "oracle gives None": (lambda: begun().run(X[POOL], lambda r: None), "oracle must give a label for each row"),
    "oracle gives few": (lambda: begun(batch_size=3).run(X[POOL], lambda r: [1]), "one label for each of 3 rows"),
    "oracle is a number": (lambda: begun().run(X[POOL], 3), "oracle must be callable, or the labels"),
    "oracle is short": (lambda: begun().run(X[POOL], Y[:5]), "oracle must have a label for each of the 70 rows"),
    "unknown label": (
        lambda: begun(classes=[0, 1]).run(X[POOL], lambda r: [7] * len(r)),
        r"among classes \(0, 1\), got 7",
    ),
    "label not in classes": (
        lambda: begun(classes=[0, 1]).teach(X[:2], [0, 2]),
        r"y must be among classes \(0, 1\), got 2",
    ),
    "hole in the pool": (
        lambda: begun().query(with_hole(X[POOL])),
        "X_pool must have no missing values for LogisticRegression, got NaN in row 3",
    ),
    "hole in taught rows": (lambda: begun().teach(with_hole(X[:5]), Y[:5]), "X must have no missing values"),
    "hole in a sparse pool": (lambda: begun().query(sparse.csr_matrix(with_hole(X[POOL]))), "got NaN in row 3"),
    "labels of another length": (lambda: begun().teach(X[:3], Y[:2]), "y must be one label for each of 3 rows"),
    "missing label": (lambda: begun().teach(X[:2], [0.0, np.nan]), "y must be labels, got .*nan.* for row 1"),
    "no label": (lambda: begun().teach(X[:2], np.array(["a", None], object)), "y must be labels, got None for row 1"),
    "eval in pool": (
        lambda: begun().run(X[POOL], Y[POOL], X[15:30], Y[15:30]),
        "X_eval must have no row that is also in",
    ),
    "eval alone": (lambda: begun().run(X[POOL], Y[POOL], X[HELD]), "X_eval and y_eval must be given together"),
    "strategy": (lambda: begun("guess"), "strategy must be one of 'random'"),
    "strategy of a wrong shape": (lambda: begun(lambda l, r: [1.0]).query(X[POOL]), "a score for each of the 70 rows"),
    "strategy gives NaN": (lambda: begun(lambda l, r: np.full(len(r), np.nan)).query(X[POOL]), "got NaN for row 0"),
    "no probabilities": (lambda: begun("margin", LinearSVC()).query(X[POOL]), "LinearSVC, which has no predict_proba"),
    "no members": (lambda: begun("bald").query(X[POOL]), "strategy 'bald' must be used with several models"),
    "no variance": (lambda: begun("variance").query(X[POOL]), "strategy 'variance' must be used with a regressor"),
    "no coefficients": (
        lambda: begun("fisher_d", NaiveBayes("gaussian")).query(X[POOL]),
        "linear or logistic regression",
    ),
    "batch_size": (lambda: begun(batch_size=0), "batch_size must be an integer of at least 1, got 0"),
    "n_queries": (lambda: begun(n_queries=-1), "n_queries must be an integer of at least 0 or None, got -1"),
    "batches": (lambda: begun(batches="all"), "batches must be one of 'top', 'diverse', got 'all'"),
    "n": (lambda: begun().query(X[POOL], 0), "n must be an integer of at least 1"),
    "estimator": (lambda: ActiveLearner("svm").fit(X, Y), "estimator must have fit"),
    "pool is a number": (lambda: begun().query(3.0), "X_pool must be rows"),
    "continuous labels": (lambda: ActiveLearner().fit(X, X[:, 0]), "Unknown label type: continuous"),
    "committee of one": (lambda: QueryByCommittee(n_members=1).fit(X, Y), "n_members must be an integer of at least 2"),
    "committee of regressors": (lambda: Committee(Ridge()).fit(X, Y), "estimator must be a classifier, got Ridge"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_meant_is_refused_in_a_sentence(case):
    call, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_rows_that_cannot_be_told_apart_are_still_asked_for():
    same = np.repeat(X[POOL[:2]], 10, axis=0)
    for batches in ("top", "diverse"):
        chosen = begun(batches=batches).query(same, 6)
        assert len(set(chosen.tolist())) == 6


def test_equal_rows_on_both_sides_are_allowed_when_asked_for():
    learner = begun(n_queries=2).run(X[POOL], Y[POOL], X[POOL], Y[POOL], check_rows=False)
    assert learner.queried_.size == 2
