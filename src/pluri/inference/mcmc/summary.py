"""A table of the posterior: one row for each number that was sampled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc import diagnostics

COLUMNS = ("mean", "sd", "hdi_low", "hdi_high", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat")


@dataclass(frozen=True)
class Summary:
    """Rows by name, columns by :data:`COLUMNS`; prints as a table.

    Attributes
    ----------
    names : tuple of str
        ``"x[0]"``, ``"x[1]"``, ...
    values : (n_rows, n_columns)
    mass : share of the draws inside the interval ``hdi_low`` to ``hdi_high``
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    mass: float

    def __getitem__(self, key: str) -> NDArray[np.float64]:
        """Column, or row, of that name."""
        if key in COLUMNS:
            return self.values[:, COLUMNS.index(key)]
        if key in self.names:
            return self.values[self.names.index(key)]
        raise KeyError(f"{key!r} is neither a column ({', '.join(COLUMNS)}) nor a variable")

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    def to_frame(self) -> Any:
        """As a pandas table."""
        import pandas as pd

        return pd.DataFrame(self.values, index=list(self.names), columns=list(COLUMNS))

    def __str__(self) -> str:
        width = max([len(name) for name in self.names], default=0)
        lines = [" " * width + "".join(f"{column:>11}" for column in COLUMNS)]
        for name, row in zip(self.names, self.values):
            cells = [
                f"{value:>11.0f}" if column.startswith("ess") else f"{value:>11.4g}"
                for column, value in zip(COLUMNS, row)
            ]
            lines.append(f"{name:<{width}}" + "".join(cells))
        lines.append(f"hdi: shortest interval with {100 * self.mass:g} % of the draws")
        return "\n".join(lines)

    __repr__ = __str__


def summarize(draws: Mapping[str, NDArray[Any]], mass: float = 0.94) -> Summary:
    """Summary of draws by name, each of shape (n_chains, n_draws, ...)."""
    names, rows = [], []
    for name, values in diagnostics.each_number(draws):
        low, high = diagnostics.highest_density_interval(values, mass)
        names.append(name)
        rows.append(
            (
                values.mean() if values.size else np.nan,
                values.std(ddof=1) if values.size > 1 else np.nan,
                low,
                high,
                diagnostics.mcse_mean(values),
                diagnostics.mcse_sd(values) if values.size else np.nan,
                diagnostics.ess_bulk(values),
                diagnostics.ess_tail(values),
                diagnostics.r_hat(values),
            )
        )
    return Summary(tuple(names), np.array(rows, dtype=np.float64).reshape(len(rows), len(COLUMNS)), mass)
