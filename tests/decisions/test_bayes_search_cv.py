"""BayesSearchCV where RandomizedSearchCV is used: the same results for the same settings, and its own refusals."""

import warnings

import numpy as np
import pytest
import sklearn
from scipy.stats import loguniform, randint
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, ParameterGrid, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import pluri
from pluri.decisions import BayesSearchCV, Categorical, Integer, Real
from pluri.mixtures import GaussianMixture

X, y = load_iris(return_X_y=True)
SPACE = {"C": Real(1e-3, 1e3, log=True)}


def test_scores_of_a_setting_are_those_of_scikit_learn():
    search = BayesSearchCV(SVC(), SPACE, n_iter=6, cv=3, random_state=0, return_train_score=True).fit(X, y)
    grid = [{"C": [C]} for C in search.cv_results_["param_C"]]
    peer = GridSearchCV(SVC(), grid, cv=3, return_train_score=True).fit(X, y)
    for name in ("mean_test_score", "std_test_score", "split1_test_score", "mean_train_score", "rank_test_score"):
        np.testing.assert_allclose(search.cv_results_[name], peer.cv_results_[name])
    assert search.cv_results_.keys() == peer.cv_results_.keys()
    assert search.best_params_ == peer.best_params_
    np.testing.assert_array_equal(search.predict(X), peer.predict(X))
    assert search.score(X, y) == peer.score(X, y)


def test_arguments_of_the_search_it_replaces_are_taken_as_they_are():
    space = {"C": loguniform(1e-3, 1e3), "kernel": ["rbf", "linear"], "degree": randint(1, 5)}
    given = {"n_iter": 6, "cv": 3, "random_state": np.random.RandomState(0), "n_jobs": 1, "error_score": "raise"}
    ours, theirs = BayesSearchCV(SVC(), space, **given).fit(X, y), RandomizedSearchCV(SVC(), space, **given).fit(X, y)
    assert ours.best_score_ > 0.95
    assert ours.cv_results_.keys() == theirs.cv_results_.keys()
    assert len(ours.cv_results_["params"]) == 6
    assert set(BayesSearchCV(SVC(), space).get_params(deep=False)) >= set(theirs.get_params(deep=False))


def test_it_learns_from_its_scores():
    # The score is highest at a strength of 1e2 and falls on both sides.
    class Peak(ClassifierMixin, BaseEstimator):
        def __init__(self, strength=1.0):
            self.strength = strength

        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def score(self, X, y):
            return -((np.log10(self.strength) - 2.0) ** 2)

    space = {"strength": Real(1e-6, 1e6, log=True)}
    search = BayesSearchCV(Peak(), space, n_iter=12, cv=2, random_state=0, refit=False).fit(X, y)
    assert search.best_score_ > -0.1  # twelve even points would leave -0.25


def test_pipelines_groups_and_several_metrics():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    space = {
        "logisticregression__C": Real(1e-3, 1e2, log=True),
        "standardscaler__with_mean": Categorical([True, False]),
    }
    groups = np.arange(len(y)) % 5
    search = BayesSearchCV(
        pipeline, space, n_iter=5, cv=GroupKFold(5), scoring=["accuracy", "neg_log_loss"], refit="neg_log_loss",
        random_state=0, batch_size=2,
    ).fit(X, y, groups=groups)  # fmt: skip
    assert search.best_index_ == np.argmax(search.cv_results_["mean_test_neg_log_loss"])
    assert len(search.cv_results_["mean_test_accuracy"]) == 5
    nested = make_pipeline(StandardScaler(), BayesSearchCV(SVC(), SPACE, n_iter=3, cv=2, random_state=0))
    assert nested.fit(X, y).score(X, y) > 0.9
    assert clone(search).get_params()["n_iter"] == 5
    with pytest.raises(ValueError, match="refit must name the metric to be maximised, one of accuracy, neg_log_loss"):
        clone(search).set_params(refit=False).fit(X, y, groups=groups)


def test_weights_are_routed_as_in_scikit_learn():
    weights = np.random.default_rng(0).random(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = SVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = BayesSearchCV(estimator, SPACE, n_iter=3, cv=2, random_state=0).fit(X, y, sample_weight=weights)
        grid = [{"C": [C]} for C in search.cv_results_["param_C"]]
        peer = GridSearchCV(estimator, grid, cv=2).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"])


def test_settings_that_fail_get_the_error_score_and_are_avoided():
    space = {"C": Real(-1.0, 10.0)}  # negative strengths are refused by the estimator
    search = BayesSearchCV(SVC(), {"C": Categorical([-2.0, -1.0, 1.0])}, n_iter=3, n_initial_points=1, cv=2)
    for seed in range(3):  # whichever of the three comes first
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search.set_params(random_state=seed).fit(X, y)
        assert search.best_params_ == {"C": 1.0}
        scores = search.cv_results_["mean_test_score"]
        assert np.isfinite(scores).sum() == 1
    search = BayesSearchCV(SVC(), space, n_iter=8, cv=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    assert search.best_score_ > 0.9
    assert np.isnan(search.cv_results_["mean_test_score"]).sum() <= 4
    with pytest.raises(ValueError, match="fits failed"):
        clone(search).set_params(param_distributions={"C": Real(-2.0, -1.0)}).fit(X, y)
    with pytest.raises(ValueError, match="'C' parameter of SVC must be"):
        clone(search).set_params(error_score="raise", param_distributions={"C": Real(-2.0, -1.0)}).fit(X, y)


def test_a_small_space_is_tried_whole_as_scikit_learn_does():
    space = {"C": [0.1, 1.0], "kernel": ["rbf", "linear"]}
    with pytest.warns(UserWarning, match="the space has 4 points, fewer than n_iter=10: each is tried once"):
        search = BayesSearchCV(SVC(), space, cv=2, random_state=0).fit(X, y)
    tried = sorted(map(repr, (sorted(params.items()) for params in search.cv_results_["params"])))
    assert tried == sorted(repr(sorted(params.items())) for params in ParameterGrid(space))


def test_regressors_and_integers_work_and_the_seed_decides():
    Xr, yr = make_classification(60, random_state=0)
    space = {"alpha": Real(1e-3, 1e3, log=True), "max_iter": Integer(50, 500)}
    runs = [BayesSearchCV(Ridge(), space, n_iter=6, cv=2, random_state=s).fit(Xr, yr) for s in (0, 0, 1)]
    assert runs[0].cv_results_["params"] == runs[1].cv_results_["params"] != runs[2].cv_results_["params"]


def test_a_fitted_search_is_saved_and_loaded(tmp_path):
    space = {
        "reg_covar": Real(1e-6, 1e-2, log=True),
        "n_components": Integer(1, 3),
        "init_params": ["kmeans", "random"],
    }
    search = BayesSearchCV(GaussianMixture(random_state=0), space, n_iter=3, cv=2, random_state=0).fit(X)
    pluri.save(search, tmp_path / "search.skops")
    back = pluri.load(tmp_path / "search.skops")
    np.testing.assert_array_equal(back.predict(X), search.predict(X))
    assert back.best_params_ == search.best_params_
    assert back.param_distributions == space
    assert back.score(X) == search.score(X)


@pytest.mark.parametrize("cv", [3, GroupKFold(3)])
def test_a_search_of_a_classifier_is_saved_with_its_folds(cv, tmp_path):
    groups = None if cv == 3 else np.arange(len(y)) % 5
    search = BayesSearchCV(LogisticRegression(max_iter=500), SPACE, n_iter=3, cv=cv, random_state=0)
    search.fit(X, y, groups=groups)
    pluri.save(search, tmp_path / "search.skops")
    back = pluri.load(tmp_path / "search.skops")
    np.testing.assert_array_equal(back.predict_proba(X), search.predict_proba(X))


def test_ctrl_c_keeps_the_settings_that_were_tried():
    class Impatient(SVC):
        n_fits = 0

        def fit(self, X, y):
            Impatient.n_fits += 1
            if Impatient.n_fits == 10:
                raise KeyboardInterrupt
            return super().fit(X, y)

    search = BayesSearchCV(Impatient(), SPACE, n_iter=8, cv=2, random_state=0)
    with pytest.raises(KeyboardInterrupt, match="interrupted after 4 settings, which are kept"):
        search.fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert hasattr(search, "best_estimator_")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"param_distributions": {}}, "param_distributions must be a dict of at least one name"),
        ({"param_distributions": [SPACE]}, "param_distributions must be a dict"),
        ({"param_distributions": {"C": (0, 1)}}, r"param_distributions\['C'\] must be"),
        ({"n_iter": 0}, "n_iter must be an integer of at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"acquisition": "ucb"}, "acquisition must be one of"),
        ({"n_initial_points": 0}, "n_initial_points must be"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, sentence):
    search = BayesSearchCV(SVC(), SPACE).set_params(**settings)
    with pytest.raises(ValueError, match=sentence):
        search.fit(X, y)


class Failing(ClassifierMixin, BaseEstimator):
    """A classifier that counts its fits and fails above a limit."""

    n_fits = 0

    def __init__(self, level=0.0, limit=-1.0):
        self.level, self.limit = level, limit

    def fit(self, X, y):
        type(self).n_fits += 1
        if self.level > self.limit:
            raise RuntimeError("too high")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.filterwarnings("ignore")
def test_settings_that_fail_are_not_fitted_again_and_again():
    Failing.n_fits = 0
    with pytest.raises(ValueError, match="All the 40 fits failed"):
        BayesSearchCV(Failing(), {"level": Real(0, 1)}, n_iter=20, cv=2, random_state=0).fit(X, y)
    assert Failing.n_fits <= 2 * 2 * 20
    search = BayesSearchCV(Failing(limit=0.4), {"level": Real(0, 1)}, n_iter=20, cv=2, random_state=0).fit(X, y)
    assert len(search.cv_results_["params"]) == 20
    failed = np.isnan(search.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(failed, np.asarray(search.cv_results_["param_level"], dtype=float) > 0.4)


def test_a_message_names_the_argument_of_the_search():
    for given in ([SPACE, {"C": [1.0]}], {"C": (1, 2)}):
        with pytest.raises(ValueError, match=r"^param_distributions.* must be"):
            BayesSearchCV(SVC(), given).fit(X, y)
