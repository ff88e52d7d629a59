"""What comes out of a file is what went in."""

from __future__ import annotations

import dataclasses
import inspect
import os
import stat
import warnings
from collections import deque

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pluri.sequences
from pluri.inference import History
from pluri.io import load, read_info, save
from pluri.io.trusted import MODELS, PARTS, Allowed, type_name
from pluri.priors import Dirichlet, Diversity, Sticky
from pluri.sequences import CategoricalHMM, ConvergenceMonitor, GaussianHMM

LENGTHS = [70, 30, 20]


def observations(name):
    rng = np.random.default_rng(3)
    n = sum(LENGTHS)
    return {
        "GaussianHMM": lambda: rng.normal(size=(n, 2)) + 4 * rng.integers(2, size=(n, 1)),
        "GMMHMM": lambda: rng.normal(size=(n, 2)) + 4 * rng.integers(2, size=(n, 1)),
        "CategoricalHMM": lambda: np.array(["été", "dog", "a"], dtype=object)[rng.integers(3, size=(n, 2))],
        "BernoulliHMM": lambda: rng.integers(2, size=(n, 3)).astype(float),
        "PoissonHMM": lambda: rng.poisson(3, size=(n, 2)),
        "MultinomialHMM": lambda: rng.multinomial(5, [0.2, 0.3, 0.5], size=n),
    }[name]()


def fitted(name, **settings):
    settings = {"n_components": 2, "n_iter": 4, "tol": 0.0, "random_state": 0} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(pluri.sequences, name)(**settings).fit(observations(name), lengths=LENGTHS)


FAMILIES = ["GaussianHMM", "GMMHMM", "CategoricalHMM", "BernoulliHMM", "PoissonHMM", "MultinomialHMM"]


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    """A fitted model and its data."""
    model = fitted(
        request.param,
        n_init=2,
        diversity=Diversity(0.5, max_iter=9),
        transmat_prior=Sticky(2.0),
        startprob_prior=Dirichlet([1.5, 2.0]),
        random_state=np.random.default_rng(7),
    )
    return model, observations(request.param)


@pytest.fixture(scope="module")
def gaussian():
    return fitted("GaussianHMM")


def round_trip(model, folder, **options):
    save(model, folder / "model.skops", **options)
    return load(folder / "model.skops", **options)


def assert_same(left, right, name="model"):
    """Equal types, and equal bits of every number, all the way down."""
    assert type(left) is type(right), name
    if isinstance(left, np.ndarray):
        assert (left.dtype, left.shape) == (right.dtype, right.shape), name
        if left.dtype == object:
            assert_same(left.tolist(), right.tolist(), name)
        else:
            assert left.tobytes() == right.tobytes(), name
        if isinstance(left, np.ma.MaskedArray):
            assert_same(np.ma.getmaskarray(left), np.ma.getmaskarray(right), name)
    elif isinstance(left, dict):
        assert list(left) == list(right), name
        for key in left:
            assert_same(left[key], right[key], f"{name}[{key!r}]")
    elif isinstance(left, list | tuple | deque):
        assert len(left) == len(right), name
        for index, pair in enumerate(zip(left, right)):
            assert_same(*pair, f"{name}[{index}]")
    elif isinstance(left, np.random.Generator):
        assert_same(left.bit_generator.state, right.bit_generator.state, name)
    elif inspect.isfunction(left):
        assert left is right, name
    elif hasattr(left, "__dict__"):
        assert_same(vars(left), vars(right), f"{name}.__dict__")
    else:
        assert repr(left) == repr(right), name


def test_every_parameter_and_attribute_survives_bit_for_bit(family, tmp_path):
    model, X = family
    back = round_trip(model, tmp_path)
    assert_same(model, back)
    assert isinstance(back.history_, History)
    assert len(back.history_) == 8
    assert type(back.monitor_.history) is deque
    assert back.get_params().keys() == model.get_params().keys()
    np.testing.assert_array_equal(back.predict(X, LENGTHS), model.predict(X, LENGTHS))
    assert back.predict_proba(X, LENGTHS).tobytes() == model.predict_proba(X, LENGTHS).tobytes()
    assert back.score(X, lengths=LENGTHS) == model.score(X, lengths=LENGTHS)
    assert back.summary() == model.summary()


def words():
    symbols = np.array(["the", "a", "dog", "cat", "runs", "sleeps"], dtype=object)
    rng = np.random.default_rng(0)
    return [symbols[2 * np.array([0, 1, 2]) + rng.integers(2, size=3)].reshape(-1, 1) for _ in range(12)]


def labelled():
    X = observations("GaussianHMM")
    labels = np.where(X[:, 0] > 2, "high", "low").astype(object)
    labels[::9] = None
    return X, labels, LENGTHS


def utterances():
    return np.split(observations("GaussianHMM"), 12), np.arange(12) % 2


def search(**settings):
    grid = {"n_components": [1, 2], "diversity": [None, Diversity(1.0)]}
    model = pluri.sequences.HMMSearchCV(GaussianHMM(n_iter=3, random_state=0, tol=np.inf), grid, cv=2, **settings)
    return model.fit(observations("GaussianHMM"), lengths=LENGTHS)


OTHERS = {
    "HMMClassifier": lambda cls: cls(GaussianHMM(diversity=1.0), pseudo_count=0.5).fit(*labelled()),
    "SequenceClassifier": lambda cls: cls(CategoricalHMM(2, emissionprob_prior=2.0, random_state=0)).fit(
        words(), np.arange(len(words())) % 2
    ),
    "SequenceSVC": lambda cls: cls(pluri.sequences.TimeAlignmentKernel("sum", normalize=True)).fit(*utterances()),
    "SequenceSVR": lambda cls: cls(pluri.sequences.TimeAlignmentKernel("linear")).fit(*utterances()),
    "LinearTimeNormalizer": lambda cls: cls(4).fit(utterances()[0]),
    "FrameTransformer": lambda cls: cls(StandardScaler()).fit(utterances()[0]),
    "AutoregressiveHMM": lambda cls: cls(2, n_iter=3, random_state=0).fit(observations("GaussianHMM"), lengths=LENGTHS),
    "RegressionHMM": lambda cls: cls(2, inputs=[1], n_iter=3, random_state=0).fit(observations("GaussianHMM")),
    "DrivenHMM": lambda cls: cls(GaussianHMM(2, n_iter=3, random_state=0), [1]).fit(observations("GaussianHMM")),
    "HMMSearchCV": lambda cls: search(random_state=0),
    "BayesianCategoricalHMM": lambda cls: cls(3, n_draws=5, n_warmup=5, random_state=0).fit(words()),
    "InfiniteHMM": lambda cls: cls("categorical", n_warmup=3, n_draws=3, n_chains=1, random_state=0).fit(words()),
    "SymbolClassHMM": lambda cls: cls(3, n_warmup=3, n_draws=3, random_state=0).fit(words()),
    "VariationalCategoricalHMM": lambda cls: cls(3, n_iter=3, random_state=0, tol=np.inf).fit(words()),
    "VariationalGaussianHMM": lambda cls: cls(2, n_iter=3, random_state=0, tol=np.inf).fit(
        observations("GaussianHMM"), lengths=LENGTHS
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_models_made_of_models_and_sampled_models_survive_too(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = OTHERS[name](getattr(pluri.sequences, name))
    back = round_trip(model, tmp_path)
    assert_same(model, back)
    X = words() if hasattr(model, "vocabulary_") else utterances()[0]
    for question in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(model, question):
            for mine, theirs in zip(getattr(model, question)(X), getattr(back, question)(X), strict=True):
                np.testing.assert_array_equal(mine, theirs)


def test_every_public_model_has_an_example_here():
    public = {name.rpartition(".")[2] for name in MODELS} & set(pluri.sequences.__all__)
    assert public == (set(FAMILIES) | set(OTHERS)) & set(pluri.sequences.__all__)


def test_a_score_of_ones_own_needs_to_be_vouched_for(tmp_path):
    model = search(scoring=spread)
    with pytest.raises(ValueError, match=r"builtins\.function in scoring"):
        save(model, tmp_path / "model.skops")
    save(model, tmp_path / "model.skops", trusted=[spread])
    with pytest.raises(ValueError, match=r"with .*spread: nothing was loaded"):
        load(tmp_path / "model.skops")


def spread(estimator, X, y=None):
    return -float(estimator.n_components)


def test_a_loaded_generator_goes_on_where_the_saved_one_was(tmp_path):
    model = fitted("GaussianHMM", random_state=np.random.default_rng(5))
    back = round_trip(model, tmp_path)
    np.testing.assert_array_equal(model.sample(20)[0], back.sample(20)[0])


def test_legacy_random_states_survive(tmp_path):
    state = np.random.RandomState(4)
    back = round_trip(GaussianHMM(2, random_state=state), tmp_path)
    assert back.random_state.randint(10**9) == state.randint(10**9)


def test_a_loaded_model_can_be_cloned_fitted_and_saved_again(gaussian, tmp_path):
    X = observations("GaussianHMM")
    back = round_trip(round_trip(gaussian, tmp_path), tmp_path)
    again = clone(back).set_params(n_iter=4, tol=-np.inf).fit(X, lengths=LENGTHS)
    np.testing.assert_array_equal(again.means_, gaussian.means_)


@pytest.mark.parametrize("settings", [{}, {"tol": -np.inf, "means_prior": np.array([1.0, np.nan])}])
def test_an_unfitted_model_keeps_its_parameters(tmp_path, settings):
    model = GaussianHMM(4, n_iter=np.int64(7), covars_prior=np.float32(0.1), **settings)
    assert_same(model, round_trip(model, tmp_path))


def test_integer_symbols_and_column_names_survive(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"left": rng.integers(3, size=40), "right": rng.integers(2, size=40)})
    model = CategoricalHMM(2, n_iter=2, tol=-np.inf, random_state=0).fit(table)
    back = round_trip(model, tmp_path)
    assert_same(model, back)
    assert back.feature_names_in_.tolist() == ["left", "right"]


def test_memory_mapped_attributes_become_plain_arrays(gaussian, tmp_path):
    np.save(tmp_path / "means.npy", gaussian.means_)
    model = clone(gaussian)
    model.__dict__.update(vars(gaussian))
    model.means_ = np.load(tmp_path / "means.npy", mmap_mode="r")
    back = round_trip(model, tmp_path)
    assert type(back.means_) is np.ndarray
    np.testing.assert_array_equal(back.means_, gaussian.means_)


def test_a_pipeline_with_a_scaler_survives(tmp_path):
    X = observations("GaussianHMM")
    pipeline = make_pipeline(StandardScaler(), GaussianHMM(2, random_state=0)).fit(X)
    back = round_trip(pipeline, tmp_path)
    np.testing.assert_array_equal(back.predict(X), pipeline.predict(X))


def test_what_belongs_to_the_machine_is_left_behind(gaussian, tmp_path):
    class Client:
        """Stands for a connection, which cannot be stored."""

    class Impatient(ConvergenceMonitor):
        pass

    model = GaussianHMM(2, engine=Client(), checkpoint=tmp_path / "fit.npz")
    model.monitor_ = Impatient(0.1, 5, False)
    model._skl_callbacks = [Client()]
    back = round_trip(model, tmp_path)
    assert back.engine is None
    assert back.checkpoint is None
    assert type(back.monitor_) is ConvergenceMonitor
    assert not hasattr(back, "_skl_callbacks")
    assert isinstance(model.engine, Client), "saving must not change the model"
    assert isinstance(model.monitor_, Impatient)
    assert round_trip(GaussianHMM(2, engine="threads"), tmp_path).engine == "threads"


def test_a_model_fitted_with_callbacks_can_be_saved(tmp_path):
    callback = pytest.importorskip("sklearn.callback")
    X = observations("GaussianHMM")
    model = GaussianHMM(2, n_iter=3, tol=-np.inf, random_state=0)
    model.set_callbacks(callback.ScoringMonitor(scoring=lambda estimator, X, y: estimator.score(X)))
    model.fit(X)
    back = round_trip(model, tmp_path)
    assert back.score(X) == model.score(X)


def test_what_cannot_be_stored_is_refused_by_name_and_no_file_is_left(gaussian, tmp_path):
    model = clone(gaussian)
    for value, words in [
        ({"deep": [lambda: 0]}, r"builtins.function in odd_\['deep'\]\[0\]"),
        (os.environ, "os._Environ in odd_"),
        (np.array([1, {2}], dtype=object), r"builtins.set in odd_\[1\]"),
        ({(1, 2): 3}, "builtins.dict in odd_"),
    ]:
        model.odd_ = value
        with pytest.raises(ValueError, match=words):
            save(model, tmp_path / "model.skops")
        assert list(tmp_path.iterdir()) == []
    model.odd_ = model
    with pytest.raises(ValueError, match="must not contain itself"):
        save(model, tmp_path / "model.skops")


@dataclasses.dataclass
class Homemade:
    weight: float

    def log_density(self, rows):
        return self.weight


def test_a_class_of_ones_own_needs_to_be_vouched_for_on_both_sides(tmp_path):
    model = GaussianHMM(2, transmat_prior=Homemade(2.5))
    with pytest.raises(ValueError, match="Homemade in transmat_prior"):
        save(model, tmp_path / "model.skops")
    save(model, tmp_path / "model.skops", trusted=[Homemade])
    with pytest.raises(ValueError, match=r"got .* with .*Homemade: nothing was loaded"):
        load(tmp_path / "model.skops")
    with pytest.raises(TypeError, match="trusted must hold classes and functions of modules, got 'Homemade'"):
        load(tmp_path / "model.skops", trusted=["Homemade"])


def test_other_objects_are_no_models(tmp_path):
    for thing in ({"a": 1}, np.zeros(3), "text", type("Stranger", (GaussianHMM,), {})()):
        with pytest.raises(ValueError, match="model must be a model of pluri"):
            save(thing, tmp_path / "model.skops")


def test_notes_are_remembered_beside_the_model(gaussian, tmp_path):
    notes = {"columns": ["a", "é"], "depth": {"n": 3, "x": None}}
    save(gaussian, tmp_path / "model.skops", notes=notes)
    assert read_info(tmp_path / "model.skops").notes == notes
    assert load(tmp_path / "model.skops").get_params() == gaussian.get_params()
    for bad in ({"x": {1}}, {"x": float("nan")}):
        with pytest.raises(ValueError, match="notes must be what JSON can hold, got"):
            save(gaussian, tmp_path / "other.skops", notes=bad)
    assert not (tmp_path / "other.skops").exists()


def test_skops_reads_the_file_too_and_asks_only_for_listed_types(family, tmp_path):
    model, X = family
    save(model, tmp_path / "model.skops")
    untrusted = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert set(untrusted) <= MODELS | PARTS
    assert type_name(type(model)) in untrusted
    back = skops.io.load(tmp_path / "model.skops", trusted=untrusted)
    np.testing.assert_array_equal(back.predict(X, LENGTHS), model.predict(X, LENGTHS))
    np.testing.assert_array_equal(back.history_.objective, model.history_.objective)


def test_the_list_of_types_names_every_public_model_and_nothing_that_is_not_there():
    public = [getattr(pluri.sequences, name) for name in pluri.sequences.__all__]
    models = {
        type_name(kind)
        for kind in public
        if inspect.isclass(kind) and issubclass(kind, BaseEstimator) and hasattr(kind, "fit")
        if kind is not pluri.sequences.HiddenMarkovModel
    }
    assert models <= MODELS
    for name in Allowed().names:
        module, _, class_name = name.rpartition(".")
        kind = getattr(__import__(module, fromlist=[class_name]), class_name)
        assert type_name(kind) == name


def test_saving_replaces_in_one_go_and_keeps_permissions(gaussian, tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    save(gaussian, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~current_umask()
    path.chmod(0o640)
    save(gaussian, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(GaussianHMM(3), path)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["model.skops"]


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_link_is_followed(gaussian, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model.skops")
    save(gaussian, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert read_info(tmp_path / "model.skops").class_name == "pluri.sequences.gaussian.GaussianHMM"


def test_bad_places_are_named(gaussian, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"path must lie in an existing folder, got .*nowhere"):
        save(gaussian, tmp_path / "nowhere" / "model.skops")
    with pytest.raises(IsADirectoryError, match="path must name a file, got the folder"):
        save(gaussian, tmp_path)
    with pytest.raises(IsADirectoryError, match="path must name a model file, got the folder"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"path must name an existing model file, got .*absent"):
        load(tmp_path / "absent")

    def read_only(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(
        PermissionError, match=r"path must lie in a folder that can be written, got .*Permission denied"
    ):
        save(gaussian, tmp_path / "model.skops")
