"""Counts of words larger than memory: a CSR matrix in files, read some documents at a time.

A folder with three arrays, ``data.npy``, ``indices.npy`` and ``indptr.npy``, and ``n_words.npy``; or one file that
``scipy.sparse.save_npz(path, X, compressed=False)`` wrote. Documents are read by plain reads, not mapped: the memory of
a pass is that of a few batches, and nothing of the file stays behind in it.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from pluri.engine import Batch, LazyBatch
from pluri.engine.batches import check_weight
from pluri.engine.cutting import check_batch_size

#: Names of the arrays.
PARTS = ("data", "indices", "indptr")
#: Documents of a batch, if nobody says otherwise.
DEFAULT_DOCUMENTS = 4096


@dataclass(frozen=True)
class StoredArray:
    """A one-dimensional array in a file: where it begins, of what type it is, how long it is."""

    path: str
    offset: int
    dtype: np.dtype[Any]
    size: int

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """The entries ``begin:end``."""
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self.offset + begin * self.dtype.itemsize)
            found = np.fromfile(file, dtype=self.dtype, count=end - begin)
        if found.size < end - begin:
            raise OSError(f"{self.path} ends before entry {end} of {self.size}: the file was changed or cut short")
        return found


def _describe(path: str, file: IO[bytes]) -> StoredArray:
    """Read the header of a ``.npy`` file at which `file` stands."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if len(shape) != 1 or dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold numbers in one dimension, got dtype {dtype} and shape {shape}")
    return StoredArray(path, file.tell(), dtype, int(shape[0]))


def _from_folder(folder: Path) -> tuple[dict[str, StoredArray], int]:
    arrays = {}
    for name in PARTS:
        path = folder / f"{name}.npy"
        if not path.is_file():
            raise FileNotFoundError(
                f"path must be a folder with data.npy, indices.npy and indptr.npy: no {path.name} in it"
            )
        with open(path, "rb") as file:
            arrays[name] = _describe(str(path), file)
    words = folder / "n_words.npy"
    return arrays, int(np.load(words, allow_pickle=False)) if words.is_file() else -1


def _from_archive(path: Path) -> tuple[dict[str, StoredArray], int]:
    arrays = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        names = {info.filename: info for info in archive.infolist()}
        if not {f"{name}.npy" for name in (*PARTS, "shape", "format")} <= names.keys():
            raise ValueError(f"path must be a CSR matrix that scipy.sparse.save_npz wrote, got {path.name}")
        with archive.open("format.npy") as member:
            kind = np.lib.format.read_array(member, allow_pickle=False).item()
        if kind not in (b"csr", "csr"):
            raise ValueError(f"path must be a CSR matrix, got format {kind!r}: save X.tocsr()")
        for name in PARTS:
            info = names[f"{name}.npy"]
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError(
                    f"path must not be compressed: write {path.name} by save_npz(path, X, compressed=False)"
                )
            file.seek(info.header_offset + 26)  # lengths of the name and of the extra field of the local header
            lengths = np.frombuffer(file.read(4), dtype="<u2")
            file.seek(info.header_offset + 30 + int(lengths.sum()))
            arrays[name] = _describe(str(path), file)
        with archive.open("shape.npy") as member:
            return arrays, int(np.lib.format.read_array(member, allow_pickle=False)[1])


@dataclass(frozen=True, eq=False)
class CountSlice:
    """Some documents of a file, read when they are needed; pickles to a few hundred bytes."""

    arrays: tuple[StoredArray, StoredArray, StoredArray]
    n_words: int
    begin: int
    end: int
    weight: NDArray[np.float64] | None = None

    def load(self) -> Batch:
        """Read the documents."""
        data, indices, indptr = self.arrays
        offsets = indptr.read(self.begin, self.end + 1).astype(np.int64)
        first, last = int(offsets[0]), int(offsets[-1])
        if last < first or (np.diff(offsets) < 0).any() or last > min(data.size, indices.size):
            raise ValueError(
                f"{indptr.path} must hold offsets that rise up to {data.size}, in documents from {self.begin}"
            )
        words = indices.read(first, last).astype(np.int32, copy=False)
        counts = data.read(first, last).astype(np.float64)
        if words.size and not 0 <= words.min() <= words.max() < self.n_words:
            raise ValueError(
                f"{indices.path} must hold columns from 0 to {self.n_words - 1}, in documents from {self.begin}"
            )
        if counts.size and not (np.isfinite(counts).all() and counts.min() >= 0):
            raise ValueError(f"{data.path} must hold counts that are not negative, in documents from {self.begin}")
        X = sparse.csr_matrix((counts, words, offsets - first), shape=(self.end - self.begin, self.n_words))
        return Batch(X, weight=self.weight)


class CountFiles:
    """Documents in files as a source for `fit_online` and `fit_batch`, on any engine.

    Parameters
    ----------
    path : path
        A folder that `write_counts` wrote, or an uncompressed ``.npz`` file of ``scipy.sparse.save_npz``.
    n_words : int, optional
        Size of the vocabulary, if the folder does not say.
    sample_weight : array of shape (n_documents,), optional
    batch_size : int, default=4096
        Documents of a batch, which is a minibatch of online learning.

    Examples
    --------
    >>> import tempfile
    >>> from scipy import sparse
    >>> from pluri.topics.lda.streaming import CountFiles, write_counts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_counts(folder, [sparse.eye(3, format="csr"), sparse.eye(3, format="csr")])
    ...     source = CountFiles(folder, batch_size=4)
    ...     source.n_documents, [batch.load().X.shape for batch in source.batches()]
    (6, [(4, 3), (2, 3)])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        n_words: int | None = None,
        sample_weight: ArrayLike | None = None,
        batch_size: int = DEFAULT_DOCUMENTS,
    ) -> None:
        place = Path(path)
        if not place.exists():
            raise FileNotFoundError(
                f"path must be a folder or an .npz file, got {os.fspath(path)!r}, which does not exist"
            )
        arrays, stored = _from_folder(place) if place.is_dir() else _from_archive(place)
        if stored < 0 and n_words is None:
            raise ValueError("n_words must be given: the folder has no n_words.npy")
        self._arrays = (arrays["data"], arrays["indices"], arrays["indptr"])
        self._n_words = stored if n_words is None else int(n_words)
        self._batch_size = check_batch_size(batch_size)
        self._weight = None if sample_weight is None else check_weight(sample_weight, self.n_documents)
        if self.n_documents < 1:
            raise ValueError(f"path must hold at least one document, got none in {os.fspath(path)!r}")

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self._arrays[2].size - 1

    @property
    def n_features(self) -> int:
        """Size of the vocabulary."""
        return self._n_words

    def batches(self) -> Iterator[LazyBatch]:
        """Start a new pass over the documents."""
        for begin in range(0, self.n_documents, self._batch_size):
            end = min(begin + self._batch_size, self.n_documents)
            weight = None if self._weight is None else self._weight[begin:end]
            yield CountSlice(self._arrays, self._n_words, begin, end, weight)


def write_counts(folder: str | os.PathLike[str], batches: Iterable[Any], *, dtype: DTypeLike = np.int32) -> None:
    """Write documents for `CountFiles`, one batch after another.

    Parameters
    ----------
    folder : path
        Made if it does not exist; files of an earlier call are replaced.
    batches : iterable of sparse matrices or arrays of shape (some documents, n_words)
        A generator is fine: only one batch is in memory at a time.
    dtype : data-type, default=int32
        Of the counts; use float64 for counts that are not whole.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    dtypes = {"data": np.dtype(dtype), "indices": np.dtype(np.int32), "indptr": np.dtype(np.int64)}
    sizes, n_words = dict.fromkeys(PARTS, 0), None
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(place / f"{name}.npy", "wb")) for name in PARTS}
        starts = {name: _write_header(files[name], dtypes[name], 0) for name in PARTS}
        for batch in batches:
            X = sparse.csr_matrix(batch)
            n_words = X.shape[1] if n_words is None else n_words
            if X.shape[1] != n_words:
                raise ValueError(f"batches must all have {n_words} columns, got {X.shape[1]}")
            counts = X.data.astype(dtypes["data"])
            if (counts != X.data).any():
                raise ValueError(f"dtype must hold the counts exactly, got {dtypes['data']} for {X.data.dtype}")
            ends = X.indptr[1 if sizes["indptr"] else 0 :].astype(np.int64) + sizes["data"]
            for name, values in {"indptr": ends, "data": counts, "indices": X.indices.astype(np.int32)}.items():
                values.tofile(files[name])
                sizes[name] += values.size
        if n_words is None:
            raise ValueError("batches must give at least one batch, got none")
        for name, file in files.items():
            file.seek(0)
            # NumPy leaves room in the header for a longer first axis.
            if _write_header(file, dtypes[name], sizes[name]) != starts[name]:
                raise OSError(f"the header of {name}.npy grew while it was written")
    np.save(place / "n_words.npy", np.array(n_words))


def _write_header(file: IO[bytes], dtype: np.dtype[Any], size: int) -> int:
    description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (size,)}
    np.lib.format.write_array_header_1_0(file, description)
    return file.tell()


def read_json_lines(
    path: str | os.PathLike[str], vocabulary: Sequence[str] | Mapping[str, int], *, batch_size: int = DEFAULT_DOCUMENTS
) -> Iterator[Any]:
    """Batches of counts from a text file with a JSON object of words and counts on every line, for `write_counts`.

    Parameters
    ----------
    path : path
        Lines such as ``{"ball": 2, "game": 1}``. Empty lines are skipped.
    vocabulary : list of str, or dict from word to column
        Words that are not in it are left out.
    batch_size : int, default=4096
        Lines of a batch.

    Yields
    ------
    csr matrix of shape (at most batch_size, n_words)
    """
    known = isinstance(vocabulary, Mapping)
    columns = dict(vocabulary) if known else {word: column for column, word in enumerate(vocabulary)}  # type: ignore[arg-type]
    n_words = max(columns.values(), default=-1) + 1
    offsets, words, counts = [0], list[int](), list[float]()

    def batch() -> Any:
        X = sparse.csr_matrix((counts, words, offsets), shape=(len(offsets) - 1, n_words), dtype=np.float64)
        X.sum_duplicates()
        return X

    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                document = json.loads(line)
                found = [(columns[word], float(count)) for word, count in document.items() if word in columns]
            except (ValueError, AttributeError, TypeError) as error:
                raise ValueError(
                    f"line {number} of {os.fspath(path)} must be a JSON object of words and counts"
                ) from error
            words += [column for column, _ in found]
            counts += [count for _, count in found]
            offsets.append(len(words))
            if len(offsets) > batch_size:
                yield batch()
                offsets, words, counts = [0], [], []
    if len(offsets) > 1:
        yield batch()
