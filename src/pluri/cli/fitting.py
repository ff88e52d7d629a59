"""``pluri fit``: a model learnt from a data file, saved."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import INTERRUPTED, note, print_json, reporting, show
from pluri.cli.describing import naming, summary
from pluri.cli.families import family_of
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError, build_model, fitted_part


def fit(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Name of the model; see [bold]pluri models[/].")],
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the model, such as model.skops.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the model; may be given many times."),
    ] = None,
    columns: options.Columns = None,
    sequence: options.Sequence = None,
    lengths: options.Lengths = None,
    label: options.Label = None,
    header: options.Header = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the fit (random_state); 0 if nothing else is set.")
    ] = None,
    force: options.Force = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    as_json: options.Json = False,
) -> None:
    """Fit a model to a data file and save it.

    Ctrl-C keeps the best parameters so far: the model is saved and the exit code is 130.
    """
    with reporting():
        check_output(output, force)
        estimator = build_model(model, settings or [])
        _seed(estimator, seed, settings or [])
        elsewhere = family_of(estimator).command
        if elsewhere is not None:
            raise UsageError(
                f"MODEL must be fitted to a table, got {type(estimator).__name__}, whose data are documents: see "
                f"{elsewhere}"
            )
        selection = options.selection(columns, sequence, lengths, label, header)
        observations, arguments = _arguments(estimator, data, selection)
        began = time.perf_counter()
        with progress(estimator, quiet):
            interrupted = fit_or_keep(estimator, observations.X, nothing="nothing was saved", **arguments)
        seconds = time.perf_counter() - began
        from pluri.io import save

        save(estimator, output, notes={"columns": observations.columns, "sequence": sequence})
        report = describe_fit(estimator) | {"seconds": seconds, "interrupted": interrupted, "output": str(output)}
        if as_json:
            print_json(report)
        else:
            note(f"{report['model']} saved in {output} after {seconds:.1f} s")
            if hasattr(estimator, "best_params_"):
                show(f"best of the search: {estimator.best_params_}\n")
            with naming(estimator, observations.columns):
                show(summary(estimator))
        if interrupted:
            note("interrupted: this is the best so far")
            raise typer.Exit(INTERRUPTED)


def _seed(estimator: Any, seed: int | None, settings: list[str]) -> None:
    """Make the fit the same each time, except where ``--set random_state=...`` has said otherwise."""
    seeded = {setting.partition("=")[0].strip() for setting in settings}
    known = {name for name in estimator.get_params() if name.split("__")[-1] == "random_state"}
    if seed is not None and not known:
        raise UsageError(f"--seed must not be given for {type(estimator).__name__}, whose fit draws nothing")
    if seed is not None and "random_state" in seeded:
        raise UsageError("--seed must not be given together with --set random_state=...")
    estimator.set_params(**dict.fromkeys(known - seeded, 0 if seed is None else seed))


def _arguments(estimator: Any, data: Path, selection: Any) -> tuple[Any, dict[str, Any]]:
    """The observations, and the other arguments of `fit` for them."""
    from sklearn.base import is_classifier
    from sklearn.utils import get_tags

    from pluri.cli.observations import read_observations

    family, name = family_of(estimator), type(estimator).__name__
    options.refuse_sequences(selection, family, name)
    supervised = is_classifier(estimator)
    if supervised != (selection.label is not None):
        see = f"; see {family.classifier}" if family.classifier else ""
        raise UsageError(
            f"--label must be given for {name}, which learns from labels"
            if supervised
            else f"--label must not be given for {name}, which learns without labels{see}"
        )
    tags = get_tags(estimator).input_tags
    # Which symbols there are is known only when all data have been seen; a search deals out sequences.
    stream = not (tags.categorical or hasattr(estimator, "param_grid"))
    observations = read_observations(data, selection, stream=stream)
    if observations.is_text and not tags.string:
        options.refuse_text(observations, name)
    if observations.streamed:
        return observations, {}
    labels = {"y": observations.labels} if supervised else {}
    return observations, labels | ({"lengths": observations.lengths} if family.ordered else {})


def describe_fit(model: Any) -> dict[str, Any]:
    """What is worth knowing of a fitted model, for JSON."""
    fitted = fitted_part(model)
    found = {name: getattr(model, name, getattr(fitted, name, None)) for name in family_of(model).outcome}
    return {"model": type(model).__name__} | {
        name.removesuffix("_"): value for name, value in found.items() if value is not None
    }


@contextmanager
def progress(estimator: Any, quiet: bool) -> Iterator[None]:
    """Show progress during the fit, unless told not to; the saved model is as silent as it was asked to be."""
    from pluri.engine.compile_status import silenced

    asked = {name: value for name, value in estimator.get_params().items() if name.split("__")[-1] == "verbose"}
    if not quiet and sys.stderr is not None:
        estimator.set_params(**{name: 1 for name, value in asked.items() if value == 0})
    try:
        with silenced(quiet):
            yield
    finally:
        estimator.set_params(**asked)


def fit_or_keep(estimator: Any, X: Any, *, nothing: str, **arguments: Any) -> bool:
    """Fit a model, and tell whether Ctrl-C ended that; if the model then has nothing to show, so does the command."""
    try:
        estimator.fit(X, **arguments)
    except KeyboardInterrupt as stop:
        if getattr(stop, "result", None) is not None:
            return True
        note(f"interrupted before there was anything to keep: {nothing}")
        raise typer.Exit(INTERRUPTED) from None
    return False
