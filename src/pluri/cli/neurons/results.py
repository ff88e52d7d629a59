"""What was recorded, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pluri.cli.outputs import write_table


def write_results(result: Any, path: Path) -> int:
    """Write times and recorded fields, and (in .npz) spikes; gives the number of rows."""
    import numpy as np

    names = list(result.names())
    times = np.asarray(result.time)
    columns = {f"{source} {field}": np.asarray(result[source, field]) for source, field in names}
    if path.suffix.lower() == ".csv":
        same = {name: column for name, column in columns.items() if len(column) == len(times)}
        return write_table(path, ["time", *same], [[times, *same.values()]])
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
