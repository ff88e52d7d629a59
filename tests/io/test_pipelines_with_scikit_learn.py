"""Vectorizers, pipelines of scikit-learn's steps, and models that know their words by a vectorizer, in files."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from pluri import io
from pluri.mixtures import GaussianMixture
from pluri.topics import LatentDirichletAllocation

TEXTS = ["ice goal ice", "goal ice puck", "vote law vote", "law vote court", "the ice was melting"] * 6


def model(**changes):
    return LatentDirichletAllocation(2, max_iter=20, random_state=0, **changes)


def own_tokens(text):
    return text.split()


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(),
        CountVectorizer(stop_words="english", ngram_range=(1, 2), dtype=np.float32),
        CountVectorizer(stop_words=["the", "was"], vocabulary=["ice", "goal", "vote", "law"]),
        CountVectorizer(analyzer="char_wb", binary=True, strip_accents="unicode"),
    ],
)
def test_a_model_that_knows_its_words_by_a_vectorizer_is_saved_with_it(vectorizer, tmp_path):
    counts = vectorizer.fit_transform(TEXTS)
    fitted = model(vocabulary=vectorizer).fit(counts)
    io.save(fitted, tmp_path / "model.skops")
    again = io.load(tmp_path / "model.skops")
    assert again.top_words(3) == fitted.top_words(3)
    np.testing.assert_array_equal(again.transform(again.vocabulary.transform(TEXTS)), fitted.transform(counts))


@pytest.mark.filterwarnings("ignore:.*weights by tf-idf")
@pytest.mark.parametrize(
    "steps",
    [
        [CountVectorizer()],
        [CountVectorizer(), TfidfTransformer(sublinear_tf=True)],
        [TfidfVectorizer(stop_words="english")],
        [FeatureUnion([("words", CountVectorizer()), ("letters", CountVectorizer(analyzer="char"))])],
    ],
)
def test_a_pipeline_from_texts_is_saved_whole(steps, tmp_path):
    pipeline = make_pipeline(*steps, model()).fit(TEXTS)
    io.save(pipeline, tmp_path / "model.skops")
    np.testing.assert_array_equal(io.load(tmp_path / "model.skops").transform(TEXTS), pipeline.transform(TEXTS))


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), Normalizer(), Binarizer(threshold=0.1),
        PowerTransformer(), QuantileTransformer(n_quantiles=20), PCA(2), PCA(0.9, whiten=True),
        TruncatedSVD(2, random_state=0), SimpleImputer(strategy="median"), VarianceThreshold(), PolynomialFeatures(2),
        KBinsDiscretizer(3, encode="onehot-dense", quantile_method="averaged_inverted_cdf"),
        FeatureUnion([("plain", MinMaxScaler()), ("turned", PCA(2))]),
    ],
    ids=lambda step: type(step).__name__,
)  # fmt: skip
def test_the_usual_steps_before_a_model_are_saved_with_it(step, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 4)) + np.repeat([[0.0], [5.0]], 30, axis=0)
    pipeline = make_pipeline(step, GaussianMixture(2, random_state=0, reg_covar=1e-3)).fit(X)
    io.save(pipeline, tmp_path / "model.skops")
    again = io.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(X), pipeline.predict_proba(X))


@pytest.mark.parametrize("step", [OneHotEncoder(sparse_output=False), OrdinalEncoder()], ids=["one hot", "ordinal"])
def test_encoders_of_categories_are_saved(step, tmp_path):
    X = np.array([["a", "x"], ["b", "y"], ["a", "y"]] * 10, dtype=object)
    pipeline = make_pipeline(step, GaussianMixture(2, random_state=0, reg_covar=1e-2)).fit(X)
    io.save(pipeline, tmp_path / "model.skops")
    np.testing.assert_array_equal(io.load(tmp_path / "model.skops").predict(X), pipeline.predict(X))


@pytest.mark.parametrize("place", ["analyzer", "tokenizer", "preprocessor"])
@pytest.mark.parametrize("function", [own_tokens, lambda text: [text]], ids=["named", "lambda"])
def test_a_vectorizer_that_calls_a_function_of_the_user_is_refused_when_it_is_saved(place, function, tmp_path):
    pipeline = make_pipeline(CountVectorizer(token_pattern=None, **{place: function}), model())
    with pytest.raises(ValueError, match=rf"no function that is not named in trusted.*\.{place}$"):
        io.save(pipeline, tmp_path / "model.skops")
    assert not any(tmp_path.iterdir())


def test_a_function_that_the_user_vouches_for_is_saved(tmp_path):
    pipeline = make_pipeline(CountVectorizer(token_pattern=None, tokenizer=own_tokens), model()).fit(TEXTS)
    io.save(pipeline, tmp_path / "model.skops", trusted=[own_tokens])
    with pytest.raises(ValueError, match="own_tokens: nothing was loaded"):
        io.load(tmp_path / "model.skops")
    again = io.load(tmp_path / "model.skops", trusted=[own_tokens])
    np.testing.assert_array_equal(again.transform(TEXTS), pipeline.transform(TEXTS))


@pytest.mark.parametrize("step", [FunctionTransformer(np.log1p), SelectKBest(k=2)], ids=["function", "score"])
def test_steps_that_are_made_to_call_functions_are_refused(step, tmp_path):
    with pytest.raises(ValueError, match="model must hold"):
        io.save(make_pipeline(step, model()), tmp_path / "model.skops")


def test_a_vectorizer_that_reads_files_is_refused(tmp_path):
    with pytest.raises(ValueError, match="input='content' to be saved or loaded, got 'filename'"):
        io.save(make_pipeline(CountVectorizer(input="filename"), model()), tmp_path / "model.skops")


def changed(source, target, change):
    """A file whose schema was changed by hand."""
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(target, "w") as after:
        for name in before.namelist():
            data = before.read(name)
            after.writestr(name, change(json.loads(data)) if name == "schema.json" else data)


def texts_replaced(old, new):
    def change(schema):
        text = json.dumps(schema)
        assert json.dumps(json.dumps(old))[1:-1] in text
        return text.replace(json.dumps(json.dumps(old))[1:-1], json.dumps(json.dumps(new))[1:-1])

    return change


@pytest.mark.parametrize(("old", "new"), [(7, 2**40), (7, -3), (7, 0), ("content", "filename")])
def test_a_vectorizer_whose_columns_were_changed_is_not_loaded(old, new, tmp_path):
    vectorizer = CountVectorizer(min_df=1, vocabulary=None).fit(["aa bb cc dd ee ff gg hh"])
    io.save(make_pipeline(vectorizer, model()), tmp_path / "good.skops")
    changed(tmp_path / "good.skops", tmp_path / "bad.skops", texts_replaced(old, new))
    with pytest.raises(ValueError, match="path must name a model"):
        io.load(tmp_path / "bad.skops")
