"""``pluri forecast --model`` and ``pluri impute --model``: a saved model tells what is not there; nothing is fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from pluri.cli.outputs import write_table
from pluri.cli.registry import UsageError


class Table(NamedTuple):
    """Numbers with holes, their columns, the lengths of the sequences, and the name of each sequence (or nothing)."""

    X: Any
    columns: list[str]
    lengths: Any
    sequences: list[str] | None


def impute_by(path: Path, data: Path, selection: Any, output: Path | None, std: bool) -> str:
    """Fill a file by a saved model that can: what was seen stays as it is. Says what was done."""
    from inspect import signature

    import numpy as np

    from pluri.cli.querying import lengths_of, opened

    estimator, observations = opened(path, data, selection, "impute")
    if std and (observations.is_text or "return_std" not in signature(estimator.impute).parameters):
        raise UsageError(f"--std must not be given: {type(estimator).__name__} fills symbols, which have none")
    X, answers = [], []
    for batch in observations.batches():
        X.append(np.asarray(batch.X))
        answer = estimator.impute(batch.X, **lengths_of(batch), **({"return_std": True} if std else {}))
        answers.append(answer if std else (answer,))
    table = Table(np.concatenate(X), list(observations.columns), None, None)
    filled, *deviation = (np.concatenate(parts) for parts in zip(*answers))
    write_filled(data, table, selection.header, filled, deviation[0] if deviation else None, output)
    n_missing = sum(cell is None or cell != cell for cell in table.X.ravel().tolist())
    return f"{plural(n_missing, 'missing value')} of {table.X.size} filled"


def write_filled(
    data: Path, table: Table, header: bool | None, filled: Any, deviation: Any | None, output: Path | None
) -> None:
    """Write the table with its columns filled, and their standard deviations beside them if there are any."""
    names, blocks = with_others(data, table, header, filled)
    if deviation is not None:
        names = [*names, *(f"{name}_std" for name in table.columns)]
        blocks = [*blocks, deviation]
    write_table(output, names, [blocks])


def forecast_by(path: Path, data: Path, horizon: int, level: float, selection: Any, output: Path | None) -> str:
    """Write what a saved model expects after the end of each sequence of a file. Says what was done."""
    import numpy as np

    from pluri.cli.observations import column_names
    from pluri.cli.querying import lengths_of, opened
    from pluri.io import read_info

    estimator, observations = opened(path, data, selection, "forecast")
    names: list[str] = []
    values, lengths = [], []
    for batch in observations.batches():
        found = estimator.forecast(batch.X, horizon, level=level, **lengths_of(batch))
        names, rows = coming(found, list(observations.columns), estimator)
        values.append(rows)
        lengths.append([len(rows) // horizon] if batch.lengths is None else batch.lengths)
    column = selection.sequence
    if column is None and selection.lengths is None:
        noted = read_info(path).notes.get("sequence")
        column = noted if isinstance(noted, str) and noted in column_names(data, selection.header) else None
    counts = np.concatenate(lengths)
    sequences = names_of_sequences(data, column, selection.header, counts)
    write_forecast(output, (names, np.concatenate(values)), horizon, column, sequences)
    return f"{plural(horizon, 'step')} forecast after {plural(len(counts), 'sequence')}"


def coming(found: Any, columns: list[str], estimator: Any = None) -> tuple[list[str], Any]:
    """Names of the columns of a forecast, and its rows: steps within sequences."""
    import numpy as np

    if getattr(found, "probabilities", None) is None:
        names = [f"{name}{end}" for name in columns for end in ("", "_lower", "_upper")]
        parts = np.stack([found.mean, found.lower, found.upper], axis=-1)
        return names, parts.reshape(-1, len(names))
    tables = found.probabilities if isinstance(found.probabilities, list) else [found.probabilities]
    known = getattr(estimator, "vocabulary_", None) or [None] * len(tables)
    names = []
    for place, (table, words) in enumerate(zip(tables, known)):
        words = (columns if table.shape[-1] == len(columns) else range(table.shape[-1])) if words is None else words
        names += [f"p_{columns[place]}_{word}" if len(tables) > 1 else f"p_{word}" for word in words]
    return names, np.concatenate([table.reshape(-1, table.shape[-1]) for table in tables], axis=1)


def write_forecast(
    output: Path | None,
    columns: tuple[list[str], Any],
    horizon: int,
    sequence: str | None,
    sequences: list[str] | None,
) -> None:
    """Write a forecast: a line for each step after each sequence."""
    import numpy as np

    names, values = columns
    names = ["step", *names]
    blocks: list[Any] = [np.tile(np.arange(1, horizon + 1), len(values) // horizon), values]
    if sequences is not None:
        names = [sequence or "sequence", *names]
        blocks = [np.repeat(np.array(sequences, dtype=object), horizon), *blocks]
    write_table(output, names, [blocks])


def names_of_sequences(data: Path, sequence: str | None, header: bool | None, lengths: Any) -> list[str] | None:
    """What the file calls its sequences, or their numbers; nothing if there is one."""
    import numpy as np

    from pluri.cli.observations import Selection, read_observations

    if lengths is None or len(lengths) < 2:
        return None
    if sequence is None:
        return [str(number) for number in range(len(lengths))]
    cells = read_observations(data, Selection([sequence], header=header, text=True), stream=False).X[:, 0]
    return [str(cell) for cell in cells[np.cumsum(lengths) - lengths]]


def with_others(data: Path, table: Table, header: bool | None, filled: Any) -> tuple[list[str], list[Any]]:
    """Names and columns of the whole file, those that were not used as they are written."""
    import numpy as np

    from pluri.cli.observations import Selection, column_names, read_observations

    names = column_names(data, header) or table.columns
    places = {name: place for place, name in enumerate(table.columns)}
    if set(names) == set(places):
        return names, [filled[:, [places[name] for name in names]]]
    others = [name for name in names if name not in places]
    copied = read_observations(data, Selection(others, header=header, text=True), stream=False).X
    written = np.where(copied == None, "", copied)  # noqa: E711 (compares each cell)
    return names, [filled[:, places[name]] if name in places else written[:, others.index(name)] for name in names]


def plural(n: int, word: str) -> str:
    """The number and the word: 1 step, 2 steps."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
