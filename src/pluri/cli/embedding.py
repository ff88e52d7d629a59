"""``pluri embed``: rows of a data file as a map on a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from pluri.cli import options
from pluri.cli.console import INTERRUPTED, note, reporting
from pluri.cli.outputs import check_output, write_table
from pluri.cli.registry import UsageError, parse_value


class Method(NamedTuple):
    """Where a method is, and what it is given unless ``--set`` says otherwise."""

    package: str
    kind: str
    settings: dict[str, Any]


METHODS = {
    "sne": Method("pluri.embedding", "SNE", {}),
    "mixture-sne": Method("pluri.embedding", "MixtureSNE", {}),
    "diffusion": Method("pluri.embedding", "DiffusionMap", {}),
    "spectral-regression": Method("pluri.embedding", "SpectralRegression", {}),
    "pca": Method("sklearn.decomposition", "PCA", {"n_components": 2}),
    "isomap": Method("sklearn.manifold", "Isomap", {}),
    "tsne": Method("sklearn.manifold", "TSNE", {}),
}
#: Longer rows are no curves that one could look at.
MOST_FEATURES = 512


class Rows(NamedTuple):
    """What is embedded, and what is told of each row."""

    X: Any
    labels: list[str] | None
    colors: dict[str, Any]


def embed(
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the page, such as map.html.")],
    method: Annotated[str, typer.Option(help=f"{', '.join(METHODS)}.")] = "sne",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; may be given many times."),
    ] = None,
    columns: options.Columns = None,
    color: Annotated[str | None, typer.Option(metavar="A,B,...", help="Columns to colour points by.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with the names of points.")] = None,
    pictures: Annotated[
        str | None, typer.Option(metavar="HxW", help="Rows are pictures of this height and width, such as 28x28.")
    ] = None,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Scale each column to mean 0 and variance 1 first.")
    ] = False,
    coordinates: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the coordinates too, of type .csv or .npy.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page; the name of the file by default.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    header: options.Header = None,
    force: options.Force = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Draw a map of the rows of a data file: a page to move, zoom and search in.

    Rows that are alike are near each other. The page is one HTML file that needs nothing else; it holds the labels,
    the colours and the pictures, but no other columns. Ctrl-C keeps the map so far, and the exit code is 130.
    """
    with reporting():
        check_output(output, force, (".html", ".htm"))
        check_output(coordinates, force, (".csv", ".npy"), "--coordinates")
        estimator = estimator_of(method, settings or [], seed)
        shape = _shape(pictures)
        rows = _read(data, columns, color, label, header)
        if shape is not None and rows.X.shape[1] != shape[0] * shape[1]:
            raise UsageError(
                f"--pictures must be of {rows.X.shape[1]} pixels, as rows have so many values, got {pictures!r}"
            )
        scaler = _scaler(rows.X) if standardize else None
        interrupted = fit_or_stop(estimator, rows.X if scaler is None else scaler.transform(rows.X), quiet)
        places = places_of(estimator, rows.X if scaler is None else scaler.transform(rows.X))
        _write_page(output, title or data.name, estimator, places, rows, shape, scaler)
        note(f"map of {len(rows.X)} points written to {output}")
        if coordinates is not None:
            _write_coordinates(coordinates, places)
            note(f"coordinates written to {coordinates}")
        if interrupted:
            note("interrupted: this is the map so far")
            raise typer.Exit(INTERRUPTED)


def estimator_of(method: str, settings: list[str], seed: int) -> Any:
    """A method by its name, with the settings of ``--set`` and the seed."""
    if method not in METHODS:
        raise UsageError(f"--method must be one of {', '.join(METHODS)}, got {method!r}")
    from importlib import import_module

    chosen = METHODS[method]
    kind = getattr(import_module(chosen.package), chosen.kind)
    values = dict(chosen.settings)
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not equals or not name:
            raise UsageError(f"--set must have the form name=value, got {setting!r}")
        values[name] = parse_value(text)
    valid = kind().get_params()
    for name in values:
        if name not in valid:
            raise UsageError(
                f"--set must name a parameter of {chosen.kind}, got {name!r}: valid are {', '.join(sorted(valid))}"
            )
    if "random_state" in valid:
        values.setdefault("random_state", seed)
    return kind(**values)


def _shape(pictures: str | None) -> tuple[int, int] | None:
    if pictures is None:
        return None
    found = re.fullmatch(r"(\d+)\s*[xX,]\s*(\d+)", pictures.strip())
    if found is None or 0 in (int(found[1]), int(found[2])):
        raise UsageError(f"--pictures must be a height and a width, as in 28x28, got {pictures!r}")
    return int(found[1]), int(found[2])


def _read(data: Path, columns: str | None, color: str | None, label: str | None, header: bool | None) -> Rows:
    import numpy as np

    from pluri.cli.candidates import refuse_missing
    from pluri.cli.observations import Selection, column_names, read_observations

    def read(names: list[str] | None, as_text: bool = False) -> Any:
        return read_observations(data, Selection(names, header=header, text=as_text), stream=False)

    colors = [] if color is None else [name.strip() for name in color.split(",") if name.strip()]
    special = [*colors, *([label] if label is not None else [])]
    told = {name: read([name]).X[:, 0] for name in colors}
    labels = None if label is None else [_word(cell) for cell in read([label], as_text=True).X[:, 0].tolist()]
    chosen = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    if chosen is None and special:
        chosen = [name for name in column_names(data, header) if name not in special]
        if not chosen:
            raise ValueError(f"{data} must have a column to embed besides {', '.join(special)}, got none")
    features = read(chosen)
    if features.is_text:
        options.refuse_text(features, "embed")
    X = np.array(features.X, dtype=np.float64)
    refuse_missing(X, features.columns)
    return Rows(X, labels, told)


def _word(cell: Any) -> str:
    """A label as it is written, without the point of whole floats."""
    if cell is None or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _scaler(X: Any) -> Any:
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit(X)


def fit_or_stop(estimator: Any, X: Any, quiet: bool) -> bool:
    """Fit, with a bar of progress unless it is to be quiet; whether Ctrl-C ended it."""
    from pluri.cli.fitting import fit_or_keep, progress

    with progress(estimator, quiet):
        return fit_or_keep(estimator, X, nothing="nothing was written")


def places_of(estimator: Any, X: Any) -> Any:
    """Coordinates of the rows that a method was fitted to."""
    for name in ("images_", "embedding_"):
        if hasattr(estimator, name):
            return getattr(estimator, name)
    return estimator.transform(X)


def _write_page(
    output: Path, title: str, estimator: Any, places: Any, rows: Rows, shape: tuple[int, int] | None, scaler: Any
) -> None:
    from pluri.report import embedding_report

    n_features = rows.X.shape[1]
    back = getattr(estimator, "inverse_transform", None)
    if back is not None and scaler is not None:
        unscaled = back

        def back(places: Any) -> Any:
            return scaler.inverse_transform(unscaled(places))

    embedding_report(
        estimator if hasattr(estimator, "embedding_") or hasattr(estimator, "images_") else places,
        output,
        title=title,
        labels=rows.labels,
        columns=rows.colors,
        images=None if shape is None else rows.X,
        picture_shape=shape,
        inverse=back if shape is not None or n_features <= MOST_FEATURES else None,
        facts={"method": type(estimator).__name__, "features": n_features, "standardized": scaler is not None},
    )


def _write_coordinates(path: Path, places: Any) -> None:
    import numpy as np

    flat = np.asarray(places, dtype=np.float64)
    names = [f"coordinate{axis + 1}" for axis in range(flat.shape[-1])]
    if flat.ndim == 3:
        names = [f"image{image + 1}_{name}" for image in range(flat.shape[1]) for name in names]
    write_table(path, names, [[flat.reshape(len(flat), -1)]])
