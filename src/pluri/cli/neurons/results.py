"""What was recorded, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluri.cli.outputs import write_table

if TYPE_CHECKING:
    from pluri.neurons import SimulationResult


def write_results(result: SimulationResult, path: Path) -> int:
    """Write times and recorded fields, and (in .npz) spikes; gives the number of rows.

    A field of a slow clock has NaN at the times at which it did not tick.
    """
    import numpy as np

    times = result.time
    columns: dict[str, Any] = {}
    for source, field in result.names:
        own, values = result.times(source, field), result[source, field]
        column = np.full(len(times), np.nan)
        column[np.searchsorted(times, own - 1e-9)] = values
        columns[f"{source} {field}"] = column
    if path.suffix.lower() == ".csv":
        return write_table(path, ["time", *columns], [[times, *columns.values()]])
    from pluri.validation import replacing

    spikes, units, sources = result.raster()
    with replacing(path, "--results") as file:
        np.savez_compressed(
            file,
            allow_pickle=False,
            time=times,
            spike_times=spikes,
            spike_units=units,
            spike_names=np.array(sources, dtype=str),
            **columns,
        )
    return len(times)
