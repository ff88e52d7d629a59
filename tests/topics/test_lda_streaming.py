"""Counts in files: what is read is what was written, and a fit does not know the difference."""

import json
import pickle

import numpy as np
import pytest
from scipy import sparse

from pluri.engine import SparseSource, resolve_engine
from pluri.topics.lda.maximum.em import fit_maximum
from pluri.topics.lda.streaming import CountFiles, read_json_lines, write_counts
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.topics.lda.variational.batch import fit_batch
from pluri.topics.lda.variational.online import fit_online


def counts(n_documents=50, n_words=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.3, (n_documents, n_words)) * rng.integers(1, 4, (n_documents, n_words))
    X[7] = 0  # an empty document
    return sparse.csr_matrix(X.astype(float))


def read(source):
    return sparse.vstack([item.load().X for item in source.batches()]).toarray()


@pytest.fixture
def folder(tmp_path):
    X = counts()
    write_counts(tmp_path / "counts", (X[begin : begin + 9] for begin in range(0, 50, 9)))
    return tmp_path / "counts"


@pytest.mark.parametrize("batch_size", [1, 7, 50, 1000])
def test_what_is_read_is_what_was_written(folder, batch_size):
    source = CountFiles(folder, batch_size=batch_size)
    assert (source.n_documents, source.n_features) == (50, 20)
    np.testing.assert_array_equal(read(source), counts().toarray())
    np.testing.assert_array_equal(read(source), counts().toarray())  # and again


def test_the_files_are_ordinary_npy_files(folder):
    X = counts()
    np.testing.assert_array_equal(np.load(folder / "indptr.npy"), X.indptr)
    np.testing.assert_array_equal(np.load(folder / "indices.npy"), X.indices)
    np.testing.assert_array_equal(np.load(folder / "data.npy"), X.data)


def test_an_archive_of_scipy_is_read_without_unpacking(tmp_path):
    sparse.save_npz(tmp_path / "X.npz", counts(), compressed=False)
    np.testing.assert_array_equal(read(CountFiles(tmp_path / "X.npz", batch_size=8)), counts().toarray())
    sparse.save_npz(tmp_path / "small.npz", counts(), compressed=True)
    with pytest.raises(ValueError, match="compressed=False"):
        CountFiles(tmp_path / "small.npz")
    sparse.save_npz(tmp_path / "columns.npz", counts().tocsc(), compressed=False)
    with pytest.raises(ValueError, match=r"tocsr\(\)"):
        CountFiles(tmp_path / "columns.npz")


def test_json_lines_become_counts(tmp_path):
    documents = [{"ball": 2, "game": 1}, {}, {"ice": 3, "unknown": 9}, {"game": 1}]
    path = tmp_path / "counts.jsonl"
    path.write_text("\n".join(json.dumps(document) for document in documents) + "\n\n", encoding="utf-8")
    write_counts(tmp_path / "counts", read_json_lines(path, ["ball", "game", "ice"], batch_size=3))
    expected = [[2, 1, 0], [0, 0, 0], [0, 0, 3], [0, 1, 0]]
    np.testing.assert_array_equal(read(CountFiles(tmp_path / "counts")), expected)
    mapped = next(read_json_lines(path, {"ball": 2, "game": 0, "ice": 1}))
    np.testing.assert_array_equal(mapped.toarray(), np.array(expected)[:, [1, 2, 0]])
    path.write_text('{"ball": 2}\n[1, 2]\n', encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        list(read_json_lines(path, ["ball"]))


def test_a_batch_travels_as_a_few_bytes(folder):
    item = list(CountFiles(folder, batch_size=20).batches())[1]
    message = pickle.dumps(item)
    assert len(message) < 1000
    np.testing.assert_array_equal(pickle.loads(message).load().X.toarray(), counts().toarray()[20:40])


def test_fits_do_not_know_the_difference(folder):
    X, priors, weight = counts(), TopicPriors.checked(3, 20), np.linspace(0.5, 2.0, 50)
    files = CountFiles(folder, batch_size=10, sample_weight=weight)
    memory = SparseSource(X, batch_size=10, sample_weight=weight)
    for start in ("random", "documents"):
        options = {"start": start, "random_state": 0}
        one, other = (fit_batch(source, priors, max_iter=4, **options) for source in (files, memory))
        np.testing.assert_allclose(one.components, other.components, rtol=1e-12)
        one, other = (fit_online(source, priors, max_iter=2, **options) for source in (files, memory))
        np.testing.assert_allclose(one.components, other.components, rtol=1e-12)
        one, other = (fit_maximum(source, 3, max_iter=3, **options) for source in (files, memory))
        np.testing.assert_allclose(one.topic_word, other.topic_word, rtol=1e-12)


def test_threads_read_the_same_files(folder):
    priors = TopicPriors.checked(3, 20)
    source = CountFiles(folder, batch_size=10)
    alone, threads = (
        fit_batch(source, priors, max_iter=4, random_state=0, engine=resolve_engine(n_jobs=n)) for n in (None, 2)
    )
    np.testing.assert_array_equal(threads.components, alone.components)


def test_files_that_make_no_sense_are_refused(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        CountFiles(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"no data\.npy"):
        CountFiles(tmp_path)
    with pytest.raises(ValueError, match="one weight per"):
        CountFiles(folder, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="batch_size"):
        CountFiles(folder, batch_size=0)
    with pytest.raises(ValueError, match="columns from 0 to 4"):
        read(CountFiles(folder, n_words=5))
    (folder / "n_words.npy").unlink()
    with pytest.raises(ValueError, match="n_words must be given"):
        CountFiles(folder)
    np.save(folder / "data.npy", np.full(np.load(folder / "data.npy").size, -1.0))
    with pytest.raises(ValueError, match="not negative"):
        read(CountFiles(folder, n_words=20))
    np.save(folder / "data.npy", np.ones((2, 2)))
    with pytest.raises(ValueError, match="one dimension"):
        CountFiles(folder, n_words=20)


def test_a_file_cut_short_is_named(folder):
    content = (folder / "indices.npy").read_bytes()
    (folder / "indices.npy").write_bytes(content[:-8])
    with pytest.raises(OSError, match="cut short"):
        read(CountFiles(folder))


def test_batches_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one batch"):
        write_counts(tmp_path / "none", [])
    with pytest.raises(ValueError, match="all have 20 columns"):
        write_counts(tmp_path / "mixed", [counts(), counts(n_words=21)])
    with pytest.raises(ValueError, match="hold the counts exactly"):
        write_counts(tmp_path / "halves", [0.5 * counts()])
    write_counts(tmp_path / "floats", [0.5 * counts()], dtype=np.float64)
    np.testing.assert_array_equal(read(CountFiles(tmp_path / "floats")), 0.5 * counts().toarray())
