"""Parquet files as a source: scanned in order, a sequence that spans chunks or files put together again.

The files are read with pyarrow a chunk at a time: memory holds about ``batch_size`` rows, the longest sequence, the
pages that are being decoded, and on the first pass one identifier per sequence.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pluri.engine.batches import Batch, LazyBatch
from pluri.engine.cutting import DEFAULT_BATCH_SIZE, check_batch_size, cut_sequences
from pluri.engine.extras import import_extra

_BUFFER_SIZE = 2**16  # bytes of each column that are read at a time

PathLike = str | os.PathLike[str]


class ParquetSource:
    """Read columns of Parquet files batch by batch; the files may be larger than memory.

    Parameters
    ----------
    data : path, list of paths or pyarrow.dataset.Dataset
        A file, a folder (its files in order of their names), several files, or a dataset that pyarrow has opened
        (on remote storage, say); reading one that is filtered, or has columns from the names of its folders, takes
        memory for a row group as well.
    columns : list of str
        The numeric columns that become the features, in this order. Nulls become NaN.
    sequence : str, optional
        Column that identifies the sequence of each row: consecutive rows with the same value are one sequence, and
        a value may not come back after another one. None: the rows are independent.
    batch_size : int, default=16384
        A batch holds at most so many samples, except that a longer sequence has a batch of its own.
    label : str, optional
        Integer column with known states; nulls become -1, unknown.
    dtype : dtype, default=float64
        Type of the features. An integer type refuses nulls.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from pluri.engine import ParquetSource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "walks.parquet"
    ...     pq.write_table(pa.table({"walk": ["a", "a", "b", "b", "b"], "x": [1, 2, None, 4, 5]}), path)
    ...     for batch in ParquetSource(path, ["x"], sequence="walk", batch_size=3).batches():
    ...         print(batch.X.ravel(), batch.lengths)
    [1. 2.] [2]
    [nan 4. 5.] [3]
    """

    def __init__(
        self,
        data: PathLike | Sequence[PathLike] | Any,
        columns: str | Sequence[str],
        sequence: str | None = None,
        *,
        batch_size: int = DEFAULT_BATCH_SIZE,
        label: str | None = None,
        dtype: DTypeLike = np.float64,
    ) -> None:
        self._dataset, self._from_paths = _open(data)
        self._columns = [columns] if isinstance(columns, str) else list(columns)
        self._sequence = sequence
        self._label = label
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._batch_size = check_batch_size(batch_size)
        self._identifiers_checked = False
        self._check_schema(self._dataset.schema)
        self._from_paths = self._from_paths or _is_files_alone(self._dataset, self._wanted)

    @property
    def _wanted(self) -> list[str]:
        """Columns to be read, each once."""
        return list(dict.fromkeys([*self._columns, *filter(None, (self._sequence, self._label))]))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self._columns)

    def batches(self) -> Iterator[LazyBatch]:
        """Start a new pass over the data."""
        stitching = _Stitching(self._batch_size, independent=self._sequence is None)
        seen: set[Any] | None = None if self._identifiers_checked else set()
        previous: tuple[Any, ...] = ()
        for chunk in self._chunks():
            if chunk.num_rows == 0:
                continue
            if self._sequence is None:
                lengths, goes_on = np.ones(chunk.num_rows, dtype=np.int64), False
            else:
                lengths, identifiers = _runs(chunk.column(self._sequence), self._sequence)
                goes_on = previous == (identifiers[0],)
                if seen is not None:
                    _check_new(identifiers[goes_on:], seen, self._sequence)
                previous = (identifiers[-1],)
            X = np.empty((chunk.num_rows, len(self._columns)), dtype=self._dtype)
            for position, name in enumerate(self._columns):
                X[:, position] = _numbers(chunk.column(name), name, self._dtype)
            labels = None if self._label is None else _labels(chunk.column(self._label))
            stitching.add(X, labels, lengths, goes_on)
            yield from stitching.ready()
        yield from stitching.ready(at_end=True)
        self._identifiers_checked = True

    def _chunks(self) -> Iterator[Any]:
        """Record batches of the files, in order."""
        wanted = self._wanted
        if not self._from_paths:
            import pyarrow.dataset as arrow

            # A scanner holds what it reads ahead: least without threads, and without loading whole row groups at once.
            reading = arrow.ParquetFragmentScanOptions(
                pre_buffer=False, use_buffered_stream=True, buffer_size=_BUFFER_SIZE
            )
            yield from self._dataset.scanner(
                columns=wanted,
                batch_size=self._batch_size,
                batch_readahead=1,
                fragment_readahead=1,
                use_threads=False,
                fragment_scan_options=reading,
            ).to_batches()
            return
        import pyarrow.parquet as parquet

        for path in self._dataset.files:
            with (
                self._dataset.filesystem.open_input_file(path) as stream,
                parquet.ParquetFile(stream, buffer_size=_BUFFER_SIZE, pre_buffer=False) as file,
            ):
                self._check_schema(file.schema_arrow)
                yield from file.iter_batches(self._batch_size, columns=wanted, use_threads=False)

    def _check_schema(self, schema: Any) -> None:
        import pyarrow.types as kinds

        if not self._columns:
            raise ValueError("columns must name at least one column, got none")
        roles = [("columns", name) for name in self._columns]
        roles += [(role, name) for role, name in (("sequence", self._sequence), ("label", self._label)) if name]
        for role, name in roles:
            if name not in schema.names:
                present = ", ".join(schema.names)
                raise ValueError(f"{role} must name columns that every file has, got {name!r} for a file of {present}")
            kind = schema.field(name).type
            numeric = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)
            if role == "columns" and not (numeric or kinds.is_decimal(kind)):
                raise ValueError(f"columns must be numeric, got {name!r} of type {kind}")
            if role == "label" and not kinds.is_integer(kind):
                raise ValueError(f"label must name an integer column, got {name!r} of type {kind}")


class _Stitching:
    """Rows that wait for the end of their sequence, or for their batch to be full."""

    def __init__(self, batch_size: int, independent: bool) -> None:
        self._batch_size = batch_size
        self._independent = independent
        self._X: list[NDArray[Any]] = []
        self._labels: list[NDArray[np.int64]] = []
        self._lengths = np.zeros(0, dtype=np.int64)

    def add(self, X: NDArray[Any], labels: NDArray[np.int64] | None, lengths: NDArray[np.int64], goes_on: bool) -> None:
        """Append rows; ``goes_on`` says that the first of them belong to the last sequence that waits."""
        self._X.append(X)
        if labels is not None:
            self._labels.append(labels)
        if goes_on:
            lengths[0] += self._lengths[-1]
        self._lengths = np.concatenate([self._lengths[: len(self._lengths) - goes_on], lengths])

    def ready(self, at_end: bool = False) -> Iterator[Batch]:
        """Give the batches that can no longer grow."""
        # The last sequence may go on in the next chunk, and the last batch may have room for one more sequence.
        complete = self._lengths if at_end or self._independent else self._lengths[:-1]
        boundaries = cut_sequences(complete, self._batch_size)
        if not at_end:
            boundaries = boundaries[:-1]
        if len(boundaries) < 2:
            return
        X = self._X[0] if len(self._X) == 1 else np.concatenate(self._X)
        labels = np.concatenate(self._labels) if self._labels else None
        rows = np.append(0, np.cumsum(self._lengths))[boundaries]
        batches = [
            Batch(
                X[rows[i] : rows[i + 1]],
                None if self._independent else self._lengths[boundaries[i] : boundaries[i + 1]],
                labels=None if labels is None else labels[rows[i] : rows[i + 1]],
            )
            for i in range(len(boundaries) - 1)
        ]
        self._X = [X[rows[-1] :]]
        self._labels = [] if labels is None else [labels[rows[-1] :]]
        self._lengths = self._lengths[boundaries[-1] :]
        yield from batches


def _open(data: Any) -> tuple[Any, bool]:
    """Open the data, and tell whether they were given as paths."""
    arrow = import_extra("pyarrow.dataset", "ParquetSource", extra="dask")
    if isinstance(data, arrow.Dataset):
        return data, False
    if isinstance(data, str | os.PathLike):
        return arrow.dataset(os.fspath(data), format="parquet"), True  # pyarrow sorts the files of a folder by name
    return arrow.dataset([os.fspath(path) for path in data], format="parquet"), True


def _is_files_alone(dataset: Any, wanted: list[str]) -> bool:
    """Whether a dataset is nothing but its Parquet files: no filter, no choice of row groups, no other columns."""
    import pyarrow.dataset as arrow

    if not isinstance(dataset, arrow.FileSystemDataset) or not isinstance(dataset.format, arrow.ParquetFileFormat):
        return False
    if getattr(dataset, "_scan_options", None) != {}:  # a version without it may hide a filter
        return False
    return all(
        set(wanted) <= set(fragment.physical_schema.names)
        and fragment.num_row_groups == fragment.metadata.num_row_groups
        for fragment in dataset.get_fragments()
    )


def _runs(column: Any, name: str) -> tuple[NDArray[np.int64], list[Any]]:
    """Lengths of the runs of equal values, and the value of each run."""
    import pyarrow as pa

    if column.null_count:
        raise ValueError(f"sequence must name a column without nulls, got {column.null_count} of them in {name!r}")
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
    values = encoded.dictionary.take(pa.array(codes[starts])).to_pylist()
    return np.diff(starts, append=len(codes)), values


def _check_new(identifiers: list[Any], seen: set[Any], name: str) -> None:
    for identifier in identifiers:
        if identifier in seen:
            raise ValueError(
                f"rows of a sequence must follow each other, got {name} = {identifier!r} again after another sequence: "
                f"sort the files by {name!r}"
            )
        seen.add(identifier)


def _numbers(column: Any, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    import pyarrow as pa

    if column.null_count and dtype.kind != "f":
        raise ValueError(f"column {name!r} must have no nulls to become {dtype}, got {column.null_count} of them")
    if column.null_count or not pa.types.is_integer(column.type):
        column = column.cast(pa.float64(), safe=False)
    return column.to_numpy(zero_copy_only=False)


def _labels(column: Any) -> NDArray[np.int64]:
    import pyarrow as pa

    return column.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
