"""``pluri forecast`` and ``pluri impute``: what is not there, by a linear dynamical system or a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.by_model import (
    Table,
    coming,
    forecast_by,
    impute_by,
    names_of_sequences,
    plural,
    write_filled,
    write_forecast,
)
from pluri.cli.console import INTERRUPTED, note, reporting
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError, configured

#: What the model is given unless ``--set`` says otherwise: enough iterations to converge.
DEFAULTS = ("max_iter=1000", "acceleration=squarem")
#: Numbers of hidden dimensions that are tried if none is given, until `PATIENCE` in a row were no better.
SIZES, PATIENCE = (1, 2, 3, 4, 6, 8), 2

Components = Annotated[
    int | None,
    typer.Option(min=1, help=f"Hidden dimensions; by default {SIZES[0]} to {SIZES[-1]}, by the lowest BIC."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of LinearDynamicalSystem; may be given many times."),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File of type .csv or .npy; stdout if not given.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the fit (random_state).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def forecast(
    data: options.Data,
    horizon: Annotated[int, typer.Option(min=1, help="Number of steps.")] = 10,
    level: Annotated[float, typer.Option(help="Probability that a value lies in its interval.")] = 0.9,
    components: Components = None,
    settings: Settings = None,
    columns: options.Columns = None,
    sequence: options.Sequence = None,
    lengths: options.Lengths = None,
    header: options.Header = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL.skops", help="A saved model to forecast by, such as a GaussianHMM: fits nothing."),
    ] = None,
    output: Output = None,
    seed: Seed = 0,
    force: options.Force = False,
    quiet: Quiet = False,
) -> None:
    """Forecast the rows that come after those of a data file, with intervals.

    A linear dynamical system is fitted, unless --model names a saved model of sequences; empty cells are missing
    values. The table has a line for each step: each column's mean and the bounds of its interval, or the probability
    of each symbol.
    """
    with reporting():
        check_output(output, force, (".csv", ".npy"))
        if not 0 < level < 1:
            raise UsageError(f"--level must be between 0 and 1, got {level}")
        if model is not None:
            _refuse_settings(components, settings)
            selection = options.selection(columns, sequence, lengths, None, header)
            _told(forecast_by(model, data, horizon, level, selection, output), output, False)
            return
        table = _read(data, columns, sequence, lengths, header)
        fitted, interrupted = _fit(table, components, settings or [], seed, quiet)
        found = fitted.forecast(table.X, horizon, table.lengths, level=level)
        write_forecast(output, coming(found, table.columns), horizon, sequence, table.sequences)
        _told(f"{plural(horizon, 'step')} forecast after {plural(len(found.mean), 'sequence')}", output, interrupted)


def impute(
    data: options.Data,
    components: Components = None,
    settings: Settings = None,
    columns: options.Columns = None,
    sequence: options.Sequence = None,
    lengths: options.Lengths = None,
    header: options.Header = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL.skops",
            help="A saved mixture or hidden Markov model to fill by: fits nothing.",
        ),
    ] = None,
    std: Annotated[
        bool, typer.Option("--std", help="Add a column with the standard deviation of each value, 0 where it is known.")
    ] = False,
    output: Output = None,
    seed: Seed = 0,
    force: options.Force = False,
    quiet: Quiet = False,
) -> None:
    """Fill the empty cells of a data file whose rows follow each other, or, by a saved model, of any.

    A linear dynamical system is fitted, and each missing value becomes its mean given all values of its sequence that
    are there. Rows that do not follow each other, such as customers, need --model: a mixture that was fitted to them.
    Columns that are not used are copied.
    """
    with reporting():
        check_output(output, force, (".csv", ".npy"))
        if model is not None:
            _refuse_settings(components, settings)
            selection = options.selection(columns, sequence, lengths, None, header)
            _told(impute_by(model, data, selection, output, std), output, False)
            return
        table = _read(data, columns, sequence, lengths, header)
        fitted, interrupted = _fit(table, components, settings or [], seed, quiet)
        import numpy as np

        filled, deviation = fitted.impute(table.X, table.lengths, return_std=True)
        write_filled(data, table, header, filled, deviation if std else None, output)
        n_missing = int(np.isnan(table.X).sum())
        _told(f"{plural(n_missing, 'missing value')} of {table.X.size} filled", output, interrupted)


def _refuse_settings(components: int | None, settings: Sequence[str] | None) -> None:
    if components is not None or settings:
        raise UsageError("--components and --set must not be given with --model, which is fitted")


def _read(data: Path, columns: str | None, sequence: str | None, lengths: Path | None, header: bool | None) -> Table:
    import numpy as np

    from pluri.cli.observations import read_observations

    selection = options.selection(columns, sequence, lengths, None, header)
    found = read_observations(data, selection, stream=False)
    if found.is_text:
        options.refuse_text(found, "LinearDynamicalSystem")
    X = np.array(found.X, dtype=np.float64)
    counts = found.lengths
    _warn_of_gaps(data, [name for name in found.columns if name != sequence], header, counts)
    return Table(X, list(found.columns), counts, names_of_sequences(data, sequence, header, counts))


def _warn_of_gaps(data: Path, used: list[str], header: bool | None, lengths: Any) -> None:
    """Say so if a column that is not used holds times with a gap: rows are taken as equally far apart."""
    import numpy as np

    from pluri.cli.observations import Selection, column_names, read_observations
    from pluri.validation.inputs import find_gap

    others = [name for name in column_names(data, header) if name not in used]
    if not others:
        return
    cells = read_observations(data, Selection(others, header=header, text=True), stream=False).X
    ends = np.append(0, np.cumsum([len(cells)] if lengths is None else lengths)).astype(int)
    for place, name in enumerate(others):
        for begin, end in pairwise(ends):
            try:
                found = find_gap(np.array(cells[begin:end, place], dtype="datetime64[us]"))
            except (TypeError, ValueError):
                break
            if found is not None:
                row, usual, gap = found
                note(
                    f"warning: {name} has a gap of {gap / usual:.3g} usual steps after {cells[begin + row, place]}, "
                    "but rows are taken as equally far apart: add empty rows, or name the pieces by --sequence"
                )
                break


def _fit(table: Table, components: int | None, settings: Sequence[str], seed: int, quiet: bool) -> tuple[Any, bool]:
    """The fitted model, and whether Ctrl-C cut the fit short."""
    from pluri.cli.fitting import fit_or_keep, progress
    from pluri.dynamics import LinearDynamicalSystem

    if any(setting.partition("=")[0].strip() == "n_components" for setting in settings):
        raise UsageError("--set must not name n_components: use --components")
    sizes = SIZES if components is None else (components,)
    best, lowest, stopped, worse = None, None, False, 0
    tried: list[int] = []
    for size in sizes:
        tried.append(size)
        model = configured(LinearDynamicalSystem, [*DEFAULTS, *settings])
        model.set_params(n_components=size)
        if model.random_state is None:
            model.set_params(random_state=seed)
        with progress(model, quiet):
            stopped = fit_or_keep(model, table.X, nothing="nothing was written", lengths=table.lengths)
        rating = model.bic(table.X, table.lengths)
        worse += 1
        if lowest is None or rating < lowest:
            best, lowest, worse = model, rating, 0
        if stopped or worse == PATIENCE:
            break
    assert best is not None
    why = "as asked for" if components is not None else f"of {', '.join(map(str, tried))} tried, by the lowest BIC"
    note(
        f"linear dynamical system with {plural(best.n_components, 'hidden dimension')} ({why}), "
        f"{'converged' if best.converged_ else 'not converged'} after {best.n_iter_} iterations, log-likelihood "
        f"{best.score(table.X, lengths=table.lengths):.6g}"
    )
    ratio = beside_last_value(best, table)
    if ratio is not None:
        better = "" if ratio < 1 else ": the last value is the better guess; try more --components"
        note(f"one step ahead its errors are {ratio:.2f} times those of the last value{better}")
    return best, stopped


def beside_last_value(model: Any, table: Table) -> float | None:
    """Errors of predictions one step ahead, in units of each column's spread, beside those of the value before."""
    import numpy as np

    X = table.X
    scale = np.nanstd(X, axis=0)
    first = np.zeros(len(X), dtype=bool)
    first[np.append(0, np.cumsum([len(X)] if table.lengths is None else table.lengths)[:-1]).astype(int)] = True
    before = np.full_like(X, np.nan)
    before[1:] = X[:-1]
    before[first] = np.nan
    known = ~np.isnan(X) & ~np.isnan(before) & (scale > 0)
    if not known.any():
        return None
    weight = np.broadcast_to(1.0 / np.where(scale > 0, scale, 1.0), X.shape)[known]
    own = np.square((X - model.predict(X, table.lengths))[known] * weight).mean()
    last = np.square((X - before)[known] * weight).mean()
    return float(np.sqrt(own / last)) if last > 0 else None


def _told(what: str, output: Path | None, interrupted: bool) -> None:
    note(what + ("" if output is None else f"; written to {output}"))
    if interrupted:
        note("interrupted: this is from the best parameters so far")
        raise typer.Exit(INTERRUPTED)
