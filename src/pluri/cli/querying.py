"""``pluri predict``, ``transform``, ``score`` and ``sample``: a saved model put to use."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import note, print_json, reporting
from pluri.cli.families import family_of
from pluri.cli.outputs import check_output, write_table
from pluri.cli.registry import UsageError, fitted_part

if TYPE_CHECKING:
    from pluri.cli.observations import Observations, Selection

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File of type .csv or .npy; the terminal by default.")
]
TABLES = (".csv", ".npy")


def predict(
    model: options.ModelFile,
    data: options.Data,
    output: Output = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each state or component.")] = False,
    columns: options.Columns = None,
    sequence: options.Sequence = None,
    lengths: options.Lengths = None,
    header: options.Header = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Label each row of a data file with its most probable state or component.

    Columns and sequences are those of the fit, if the file has columns of these names and nothing else is said.
    """
    with reporting():
        import numpy as np

        check_output(output, force, TABLES)
        estimator, observations = opened(
            model, data, options.selection(columns, sequence, lengths, None, header), "predict"
        )
        if proba and not hasattr(estimator, "predict_proba"):
            raise UsageError(f"--proba must not be given for {type(estimator).__name__}, which has no probabilities")
        classes = getattr(estimator, "classes_", None)
        names = [family_of(estimator).unit if classes is None else "label"]

        def blocks() -> Iterator[list[Any]]:
            for batch in observations.batches():
                found = [np.asarray(estimator.predict(batch.X, **lengths_of(batch)))]
                yield [*found, estimator.predict_proba(batch.X, **lengths_of(batch))] if proba else found

        parts = blocks()
        first = next(parts, [])
        if first and first[0].ndim == 2:  # rows are predicted, one step ahead
            names = options.predicted_columns(first[0].shape[1], observations.columns)
        if proba and first:
            names += [f"p_{name}" for name in (range(first[1].shape[1]) if classes is None else classes)]
        parts = chain([first] if first else [], parts)
        if as_json and output is None:
            found = [np.concatenate(part) for part in zip(*parts)]
            print_json({f"{names[0]}s": found[0]} | ({"probabilities": found[1]} if proba else {}))
            return
        n_rows = write_table(output, names, parts)
        if as_json:
            print_json({"n_samples": n_rows, "columns": names, "output": str(output)})
        elif output is not None:
            note(f"{n_rows} rows written to {output}")


def transform(
    model: options.ModelFile,
    data: options.Data,
    output: Output = None,
    columns: options.Columns = None,
    sequence: options.Sequence = None,
    lengths: options.Lengths = None,
    header: options.Header = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Give each row of a data file its coordinates in a model: factors, weights, places on a map.

    For models with a method transform. Columns and sequences are those of the fit, as in predict.
    """
    with reporting():
        import numpy as np

        check_output(output, force, TABLES)
        estimator, observations = opened(
            model, data, options.selection(columns, sequence, lengths, None, header), "transform"
        )
        blocks = ([_dense(estimator.transform(batch.X, **lengths_of(batch)))] for batch in observations.batches())
        first = next(blocks, [])
        names = _output_names(estimator, first[0].shape[1] if first else 0)
        parts = chain([first] if first else [], blocks)
        if as_json and output is None:
            print_json({"columns": names, "X": np.concatenate([part for (part,) in parts])})
            return
        n_rows = write_table(output, names, parts)
        if as_json:
            print_json({"n_samples": n_rows, "columns": names, "output": str(output)})
        elif output is not None:
            note(f"{n_rows} rows written to {output}")


def score(
    model: options.ModelFile,
    data: options.Data,
    columns: options.Columns = None,
    sequence: options.Sequence = None,
    lengths: options.Lengths = None,
    label: options.Label = None,
    header: options.Header = None,
    as_json: options.Json = False,
) -> None:
    """Tell how well a model fits a data file: log-likelihood (or squared distance), accuracy where labels are known."""
    with reporting():
        from sklearn.base import is_classifier

        estimator, observations = opened(
            model, data, options.selection(columns, sequence, lengths, label, header), "score"
        )
        if is_classifier(estimator) and label is None:
            raise ValueError(f"--label must be given for {type(estimator).__name__}, whose score is its accuracy")
        rate = _score_classifier if is_classifier(estimator) else _score
        report = rate(estimator, observations)
        if as_json:
            print_json(report)
        else:
            width = max(map(len, report))
            for name, value in report.items():
                print(f"{name.replace('_', ' '):>{width}}  {value:.6g}")


def sample(
    model: options.ModelFile,
    n_samples: Annotated[int, typer.Option("-n", "--n-samples", min=1, help="Number of rows.")] = 100,
    output: Output = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed; the model's own by default.")] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Draw rows from a model: a sequence if it is one of sequences."""
    with reporting():
        from pluri.io import load, read_info

        check_output(output, force, TABLES)
        notes = read_info(model).notes
        estimator = load(model)
        generator = fitted_part(estimator)
        if not hasattr(generator, "sample"):
            raise ValueError(f"MODEL must be able to sample, got {type(estimator).__name__}")
        X, states = _draw(generator, n_samples, seed)
        if getattr(X, "ndim", 0) != 2:
            raise ValueError(f"MODEL must be able to sample rows of a table, got {type(estimator).__name__}")
        names = notes.get("columns")
        if not isinstance(names, list) or len(names) != X.shape[1]:
            names = [f"x{place}" for place in range(X.shape[1])]
        if hasattr(estimator, "classes_"):
            states = estimator.classes_[states]
        # Some models draw rows that come from no part in particular.
        unit = [] if states is None else [family_of(estimator).unit]
        if as_json and output is None:
            print_json({"columns": names, "X": X} | {f"{name}s": states for name in unit})
            return
        n_rows = write_table(output, [*names, *unit], [[X, states] if unit else [X]])
        if as_json:
            print_json({"n_samples": n_rows, "columns": [*names, *unit], "output": str(output)})
        elif output is not None:
            note(f"{n_rows} rows written to {output}")


def opened(path: Path, data: Path, selection: Selection, question: str) -> tuple[Any, Observations]:
    """The model, if it can be asked that, and the data by the columns it was fitted to."""
    from dataclasses import replace

    from sklearn.utils import get_tags

    from pluri.cli.observations import column_names, read_observations
    from pluri.io import load, read_info

    if data.suffix == ".skops" and path.suffix != ".skops":
        raise UsageError(f"the model comes first and then the data, got {path.name} and then {data.name}")
    notes = read_info(path).notes
    estimator = load(path)
    estimator = getattr(estimator, "best_estimator_", estimator)
    if hasattr(estimator, "topic_graph"):
        raise ValueError(
            f"MODEL must be fitted to a table, got {type(estimator).__name__}, whose data are documents: see pluri "
            "topics --apply"
        )
    if not hasattr(estimator, question):
        raise ValueError(f"MODEL must be able to {question}, got {type(estimator).__name__}")
    family = family_of(estimator)
    options.refuse_sequences(selection, family, type(estimator).__name__)
    present = column_names(data, selection.header)
    selection = options.columns_of_fit(selection, options.remembered_columns(estimator, notes), present)
    column = notes.get("sequence")
    if selection.sequence is None and selection.lengths is None and isinstance(column, str) and column in present:
        note(f"sequences by column {column!r}, as in the fit")
        selection = replace(selection, sequence=column)
    symbols = getattr(fitted_part(estimator), family.symbols, None) or []
    words = any(known.dtype.kind in "OU" for known in symbols)
    observations = read_observations(data, replace(selection, text=words))
    tags = get_tags(estimator).input_tags
    if observations.is_text and not tags.string:
        options.refuse_text(observations, type(estimator).__name__)
    return estimator, observations


def _dense(rows: Any) -> Any:
    import numpy as np

    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


def _output_names(estimator: Any, n_columns: int) -> list[str]:
    """Names of the columns that `transform` gives, as scikit-learn has them, or numbered ones."""
    try:
        names = list(estimator.get_feature_names_out())
    except (AttributeError, ValueError, TypeError):
        names = []
    return [str(name) for name in names] if len(names) == n_columns else [f"z{place}" for place in range(n_columns)]


def lengths_of(batch: Observations) -> dict[str, Any]:
    return {} if batch.lengths is None else {"lengths": batch.lengths}


def _draw(generator: Any, n_samples: int, seed: int | None) -> tuple[Any, Any]:
    """Rows and what each was drawn from, if the model tells."""
    given = {} if seed is None else {"random_state": seed}
    if given and "random_state" not in signature(generator.sample).parameters:
        generator, given = generator.set_params(**given), {}
    drawn = generator.sample(n_samples, **given)
    return drawn if isinstance(drawn, tuple) and len(drawn) == 2 else (drawn, None)


def _score(estimator: Any, observations: Observations) -> dict[str, Any]:
    """Score of all rows; with labels, also how well the states match them."""
    import numpy as np

    family = family_of(estimator)
    if family.rating is None or not hasattr(estimator, "score"):
        raise ValueError(f"MODEL must be able to score, got {type(estimator).__name__}")
    total, n_samples, n_sequences = 0.0, 0, 0
    truth, found = [], []
    for batch in observations.batches():
        rating = estimator.score(batch.X, **lengths_of(batch))
        total += rating * len(batch.X) if family.rating_is_mean else rating
        n_samples += len(batch.X)
        n_sequences += 1 if batch.lengths is None else len(batch.lengths)
        if batch.labels is not None:
            truth.append(batch.labels)
            found.append(estimator.predict(batch.X, **lengths_of(batch)))
    report: dict[str, Any] = {
        family.rating: total,
        f"{family.rating}_per_sample": total / n_samples,
        "n_samples": n_samples,
    }
    if family.ordered:
        report["n_sequences"] = n_sequences
    if truth:
        from pluri.metrics import many_to_one_accuracy, one_to_one_accuracy

        labels, states = np.concatenate(truth), np.concatenate(found)
        known = np.array([label is not None for label in labels])
        names = np.array([str(label) for label in labels[known]])
        report["one_to_one_accuracy"] = one_to_one_accuracy(names, states[known])
        report["many_to_one_accuracy"] = many_to_one_accuracy(names, states[known])
    return report


def _score_classifier(estimator: Any, observations: Observations) -> dict[str, Any]:
    right, n_samples = 0.0, 0
    for batch in observations.batches():
        right += len(batch.X) * estimator.score(batch.X, batch.labels, **lengths_of(batch))
        n_samples += len(batch.X)
    return {"accuracy": right / n_samples, "n_samples": n_samples}
