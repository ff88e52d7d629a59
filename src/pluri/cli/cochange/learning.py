"""``pluri cochange``: which files change together, learnt from the history of a repository."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.cochange import options as shared
from pluri.cli.cochange.asking import check, suggest
from pluri.cli.console import note, reporting
from pluri.cli.registry import UsageError

if TYPE_CHECKING:
    from pluri.cochange import CommitHistory, Evaluation, FileRecommender

cochange = typer.Typer(
    name="cochange",
    help="Which files change together: learnt from a git history, asked before a commit.",
    no_args_is_help=True,
)

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the model; may be given many times."),
]


def train(
    repo: shared.Repo = Path("."),
    model: Annotated[str, typer.Option(help=f"One of {', '.join(shared.MODELS)}.")] = shared.DEFAULT_MODEL,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"File for the model; {shared.MODEL_NAME} in the folder .git by default."),
    ] = None,
    settings: Settings = None,
    since: shared.Since = None,
    until: shared.Until = None,
    max_files: shared.MaxFiles = 100,
    min_support: shared.MinSupport = 5,
    include: shared.Include = None,
    exclude: shared.Exclude = None,
    renames: shared.Renames = True,
    first_parent: shared.FirstParent = False,
    half_life: shared.HalfLife = None,
    threshold: Annotated[
        str, typer.Option(help="Suggest files with a higher probability; auto chooses it on the last commits.")
    ] = "auto",
    false_alarms: Annotated[
        float, typer.Option(metavar="SHARE", help="Complete commits in which a check may name a file, at most.")
    ] = 0.02,
    seed: shared.Seed = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Learn from the history of a repository which files change together.

    Only the log is read: nothing is checked out, and nothing of the repository is run.
    """
    with reporting():
        from pluri.cochange.repository.git import find_repository

        model = shared.check_model(model)
        parameters, level = shared.model_settings(settings or []), _threshold(threshold)
        if not 0 < false_alarms < 1:
            raise UsageError(f"--false-alarms must lie between 0 and 1, got {false_alarms:g}")
        place = shared.model_place(find_repository(repo), output)
        shared.check_dates(repo, since=since, until=until)
        shared.check_place(place, force)
        from pluri.cochange import FileRecommender

        recommender = FileRecommender(
            model, model_params=parameters, threshold=level, false_alarm_rate=false_alarms, half_life=half_life,
            random_state=seed,
        )  # fmt: skip
        began = time.perf_counter()
        reading = _reading(since, until, max_files, include, exclude, renames, first_parent)
        history = shared.read_history(repo, "all", min_support, **reading)
        note(f"{history!r} read in {time.perf_counter() - began:.1f} s")
        recommender.fit(history)
        _raise_threshold(recommender)
        recommender.save(place, notes={"last_commit": str(history.ids_[-1]), "min_support": min_support})
        seconds = time.perf_counter() - began
        if as_json:
            shared.print_ascii_json(_as_record(recommender) | {"seconds": seconds, "output": str(place)})
            return
        note(f"{model} saved in {place} after {seconds:.1f} s")
        for line in (*_about_the_threshold(recommender), *_about_the_hook(recommender, false_alarms)):
            print(line)


def evaluate(
    repo: shared.Repo = Path("."),
    models: Annotated[
        str, typer.Option("--model", metavar="A,B,...", help=f"Some of {', '.join(shared.MODELS)}.")
    ] = "popular,cooccurrence,pairwise,neighbors",
    n_start: Annotated[
        str, typer.Option(metavar="N,...", help="Numbers of files that are shown of each later commit.")
    ] = "1,3",
    tune: Annotated[
        bool, typer.Option("--tune", help="Also choose the settings of each model on the last training commits.")
    ] = False,
    fraction: Annotated[
        float, typer.Option(min=0.05, max=0.95, help="Share of the commits, the earliest, to learn from.")
    ] = 2 / 3,
    since: shared.Since = None,
    until: shared.Until = None,
    max_files: shared.MaxFiles = 100,
    min_support: shared.MinSupport = 5,
    include: shared.Include = None,
    exclude: shared.Exclude = None,
    renames: shared.Renames = True,
    first_parent: shared.FirstParent = False,
    half_life: shared.HalfLife = None,
    seed: shared.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Tell how good suggestions would have been: learnt from earlier commits, asked about later ones."""
    with reporting():
        names = [shared.check_model(name.strip()) for name in models.split(",")]
        numbers = _numbers(n_start)
        shared.check_dates(repo, since=since, until=until)
        reading = _reading(since, until, max_files, include, exclude, renames, first_parent)
        earlier, later = shared.read_history(repo, "train", min_support, **reading).split(fraction)
        note(f"learning from {earlier!r}, asking about {later!r}")
        if not as_json:
            print(
                f"{'model':<14}{'shown':>6}{'f':>8}{'CPR':>8}{'precision':>11}{'recall':>8}{'R@10':>8}{'empty':>8}{'asked':>8}"
            )
        records: list[dict[str, Any]] = []
        for name, shown in product(names, numbers):
            found = _judged(name, shown, half_life, earlier, later, tune, seed)
            records.append({"model": name, **found.figures()})
            if not as_json:
                print(
                    f"{name:<14}{shown:>6d}{found.f:>8.3f}{found.cpr:>8.3f}{found.precision:>11.3f}"
                    f"{found.recall:>8.3f}{found.recall_at_10:>8.3f}{found.empty:>8.3f}{found.n_queries:>8d}",
                    flush=True,
                )
        if as_json:
            shared.print_ascii_json(records)
            return
        for line in _trust(records):
            print(line)


def _judged(
    name: str, shown: int, half_life: float | None, earlier: CommitHistory, later: CommitHistory, tune: bool, seed: int
) -> Evaluation:
    """One model, learnt from the earlier commits and asked about the later ones."""
    from pluri.cochange import FileRecommender, evaluate
    from pluri.cochange import tune as choose

    recommender = FileRecommender(name, n_start=shown, half_life=half_life, random_state=seed)
    if tune:
        recommender = choose(recommender, earlier, random_state=seed).recommender
    return evaluate(recommender, earlier, later, n_start=shown, random_state=seed)


def _as_record(recommender: FileRecommender) -> dict[str, Any]:
    """What a training has found."""
    return {
        "model": recommender.model,
        "n_commits": recommender.n_commits_,
        "n_files": len(recommender.files_),
        "first_time": recommender.first_time_,
        "last_time": recommender.last_time_,
        "threshold": recommender.threshold_,
        "validation": recommender.validation_,
        "calibrated": recommender.calibration_ is not None,
        "hook_threshold": recommender.hook_threshold_,
        "hook": recommender.hook_,
    }


def _reading(
    since: str | None,
    until: str | None,
    max_files: int,
    include: list[str] | None,
    exclude: list[str] | None,
    renames: bool,
    first_parent: bool,
) -> dict[str, Any]:
    return {
        "since": since,
        "until": until,
        "max_files": max_files,
        "include": include,
        "exclude": exclude,
        "follow_renames": renames,
        "first_parent": first_parent,
    }


def _about_the_threshold(recommender: FileRecommender) -> Iterator[str]:
    yield f"threshold {recommender.threshold_:.3f}"
    for name, value in recommender.validation_.items():
        yield f"{name:>9}  {value:.3f}" if name != "n_queries" else f"{'questions':>9}  {value:.0f}"


def _about_the_hook(recommender: FileRecommender, wanted: float) -> Iterator[str]:
    """The threshold of checks, what it was chosen by, and whether it can be trusted."""
    hook = recommender.hook_
    yield (
        f"check names files above {recommender.hook_threshold_:.3f}: in {100 * hook['false_alarms']:.1f} % of the last "
        f"{shared.number_of(hook['n_commits'], 'commit')}, which were complete"
    )
    if not hook["enough"]:
        note(
            f"warning: {shared.number_of(hook['n_commits'], 'commit')} kept apart are too few to be sure of at most "
            f"{100 * wanted:g} % false alarms"
        )
    if recommender.calibration_ is None:
        note("warning: probabilities are not calibrated: too few commits, or scores that are no shares")


def _trust(records: list[dict[str, Any]]) -> Iterator[str]:
    """How far to trust checks and probabilities: the first record of each model, as both do not depend on --n-start."""
    first: dict[str, dict[str, Any]] = {}
    for record in records:
        first.setdefault(record["model"], record)
    yield ""
    yield f"{'check':<14}{'above':>8}{'false alarms':>14}{'caught':>8}{'commits':>9}"
    for name, record in first.items():
        yield (
            f"{name:<14}{record['hook_threshold']:>8.3f}{100 * record['false_alarms']:>13.1f}%"
            f"{100 * record['caught']:>7.1f}%{record['n_complete']:>9d}"
        )
    for name, record in first.items():
        if record["calibration"]:
            yield ""
            yield f"{name}: stated probabilities, and how often they came true"
            for group in record["calibration"]:
                yield (
                    f"{group['low']:>8.2f} to {group['high']:.2f}{group['stated']:>8.3f}{group['observed']:>8.3f}"
                    f"{group['n']:>9d} files"
                )


def _raise_threshold(recommender: FileRecommender) -> None:
    """Do not trust a low threshold that few questions have chosen."""
    n_queries = recommender.validation_.get("n_queries")
    if n_queries is None or n_queries >= shared.FEWEST_QUESTIONS:
        return
    found = recommender.threshold_
    recommender.threshold_ = max(found, shared.LEAST_LEVEL)
    note(
        f"warning: only {shared.number_of(int(n_queries), 'question')} could be asked to choose the threshold "
        f"{found:.3f}, and {shared.FEWEST_QUESTIONS} are needed: {recommender.threshold_:.3f} is used "
        f"(the figures are those of {found:.3f})"
    )


def _threshold(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"--threshold must be a number or auto, got {text!r}") from error


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise UsageError(f"--n-start must be whole numbers of at least 1 between commas, got {text!r}")
    return numbers


for command in (train, suggest, check, evaluate):
    cochange.command()(command)
