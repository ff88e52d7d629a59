"""Files whose arrays were tampered with: refused by name, and never the end of the interpreter."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from pluri.embedding import SNE
from pluri.io import load, save
from pluri.io.archive import Unsound, check_soundness
from pluri.io.trusted import MODELS
from pluri.mixtures import BayesianBernoulliMixture, GaussianMixture
from pluri.sequences import CategoricalHMM, GaussianHMM

PROGRAM = Path(__file__).with_name("tamper_with_saved_arrays.py")


def with_array(source, target, name, array):
    """A copy of a model file in which the attribute of this name is another array."""
    with zipfile.ZipFile(source) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    waiting, files = [json.loads(members["schema.json"])], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            files |= {item["file"] for key, item in node.items() if key == name and "file" in item}
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    assert len(files) == 1, files
    stream = io.BytesIO()
    np.save(stream, array)
    with zipfile.ZipFile(target, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, stream.getvalue() if member in files else content)
    return target


@pytest.fixture
def rows():
    return np.random.default_rng(0).integers(2, size=(30, 5)).astype(float)


def test_the_index_that_ended_the_interpreter_is_refused_by_name(rows, tmp_path):
    model = BayesianBernoulliMixture(3, n_warmup=2, n_draws=3, n_chains=1, random_state=0).fit(rows)
    save(model, tmp_path / "good.skops")
    for value in (2**40, -(2**40), 5, -1):
        array = np.full_like(model.tables_.indices, value)
        with pytest.raises(ValueError, match="its ClusterTables is damaged: the indices of tables_ must lie between 0"):
            load(with_array(tmp_path / "good.skops", tmp_path / "bad.skops", "indices", array))
    turned = model.tables_.indptr[::-1]
    with pytest.raises(ValueError, match="its ClusterTables is damaged: the indptr of tables_ must rise from 0 to"):
        load(with_array(tmp_path / "good.skops", tmp_path / "bad.skops", "indptr", turned))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("means_", np.zeros((3, 2)), r"its GaussianHMM is damaged: means_ must have shape \(2, n_features\), got"),
        ("means_", np.full((2, 2), np.nan), "its GaussianHMM is damaged: means_ must be finite"),
        ("means_", np.zeros((2, 3)), "its GaussianHMM is damaged: .* must have 3 features, as means_ does, got 2"),
        ("transmat_", np.full((2, 2), 2.0), "its GaussianHMM is damaged: transmat_ rows must sum to 1"),
        ("startprob_", np.ones(1), "its GaussianHMM is damaged: startprob_ must have length n_components"),
        ("state_occupancy_", np.ones(9), r"its GaussianHMM is damaged: state_occupancy_ must have shape"),
    ],
)
def test_the_sentence_names_class_and_attribute(name, array, message, tmp_path):
    model = GaussianHMM(2, n_iter=3, tol=np.inf, random_state=0).fit(np.random.default_rng(0).normal(size=(40, 2)))
    save(model, tmp_path / "good.skops")
    with pytest.raises(
        ValueError, match=f"path must name a model saved by pluri.io.save, got '.*bad.skops': {message}"
    ):
        load(with_array(tmp_path / "good.skops", tmp_path / "bad.skops", name, array))


def test_a_vocabulary_longer_than_its_table_is_refused(tmp_path):
    words = np.array(["a", "b", "c"], dtype=object)[np.arange(30) % 3].reshape(-1, 1)
    save(CategoricalHMM(2, n_iter=2, tol=np.inf, random_state=0).fit(words), tmp_path / "good.skops")
    for width in (2, 4):
        table = np.full((2, width), 1 / width)
        with pytest.raises(ValueError, match="its CategoricalHMM is damaged: emissionprob_"):
            load(with_array(tmp_path / "good.skops", tmp_path / "bad.skops", "emissionprob_", table))


def test_what_load_would_refuse_is_not_written(tmp_path):
    model = GaussianMixture(2, random_state=0).fit(np.random.default_rng(0).normal(size=(20, 2)))
    model.means_ = model.means_[:1]
    with pytest.raises(ValueError, match="model must be sound to be loaded again, but its GaussianMixture is damaged"):
        save(model, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["_unit", "_rate"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, np.ones(2), "one"])
def test_a_scale_that_places_new_rows_must_be_a_positive_number(name, value):
    model = SNE(perplexity=5, kernel="student_t", max_iter=3, random_state=0)
    model.fit(np.random.default_rng(0).normal(size=(20, 2)))
    check_soundness(model)
    setattr(model, name, value)
    with pytest.raises(Unsound, match=f"its SNE is damaged: {name} must"):
        check_soundness(model)


def test_parameters_set_by_hand_are_sound():
    model = GaussianHMM(2)
    model.startprob_, model.transmat_ = [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]
    check_soundness(model)  # as long as something is lacking, there is nothing to ask it
    model.means_, model.covars_ = [[0.0], [1.0]], [[1.0], [1.0]]
    check_soundness(model)


class Holder:
    """Something with a sparse matrix deep inside."""

    def __init__(self, matrix):
        self.parts = {"deep": [(matrix,)]}


SPARSE = {
    "an index too large": lambda matrix: matrix.indices.__setitem__(0, 2**30),
    "an index below zero": lambda matrix: matrix.indices.__setitem__(0, -1),
    "pointers that fall": lambda matrix: matrix.indptr.__setitem__(1, 99),
    "pointers that end early": lambda matrix: matrix.indptr.__setitem__(-1, 1),
    "too few pointers": lambda matrix: setattr(matrix, "indptr", matrix.indptr[:-1]),
    "too few entries": lambda matrix: setattr(matrix, "data", matrix.data[:1]),
    "pointers that are fractions": lambda matrix: setattr(matrix, "indptr", matrix.indptr + 0.0),
    "entries that are words": lambda matrix: setattr(matrix, "data", matrix.data.astype(str)),
}


@pytest.mark.parametrize("what", SPARSE)
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.csr_matrix])
def test_sparse_matrices_are_checked_wherever_they_are(what, kind):
    holder = Holder(kind(np.eye(4)[[0, 1, 1, 3]]))
    check_soundness(holder)
    SPARSE[what](holder.parts["deep"][0][0])
    with pytest.raises(Unsound, match=r"its cs[rc]_(array|matrix) is damaged: "):
        check_soundness(holder)


def test_every_model_says_what_it_may_look_like():
    for name in sorted(MODELS):
        module, _, class_name = name.rpartition(".")
        if module.startswith("pluri.topics"):
            continue
        kind = getattr(importlib.import_module(module), class_name)
        assert hasattr(kind, "_fitted_layout") or hasattr(kind, "_check_fitted_state"), f"{name} is not checked by load"


# The arrays that kill most often come first, so that eight instead of three are a second opinion.
@pytest.mark.slow
@pytest.mark.parametrize("n_arrays", [3, pytest.param(8, marks=pytest.mark.thorough)])
def test_no_tampered_array_ends_the_interpreter(n_arrays):
    """A few arrays of every public estimator; ``python tests/io/tamper_with_saved_arrays.py`` tries all of them."""
    result = subprocess.run([sys.executable, str(PROGRAM), "--quick", str(n_arrays)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
