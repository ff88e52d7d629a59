"""Arguments that the commands of ``pluri cochange`` share, and how they become histories, models and paths."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pluri.cli.console import note, plain
from pluri.cli.outputs import check_output
from pluri.cli.own_process import load_skops
from pluri.cli.registry import UsageError, parse_value

if TYPE_CHECKING:
    from pluri.cochange import CommitHistory
    from pluri.cochange.repository.git import Repository
    from pluri.cochange.suggester import Suggester

#: In the folder of git itself, so that nobody commits it by accident.
MODEL_NAME = "pluri-cochange.skops"
FEWEST_COMMITS = 20
#: A threshold that fewer questions have chosen is mostly chance.
FEWEST_QUESTIONS = 30
#: The least threshold that is trusted then.
LEAST_LEVEL = 0.5
MODELS = (
    *("neighbors", "pairwise", "cooccurrence", "counter", "bayesian", "dp", "mixture", "rbm", "logistic_pca"),
    *("itemsets", "popular"),
)
DEFAULT_MODEL = "neighbors"

Repo = Annotated[Path, typer.Argument(metavar="REPO", help="A folder of a git repository.")]
RepoOption = Annotated[Path, typer.Option("--repo", help="A folder of the git repository.")]
ModelFile = Annotated[
    Path | None,
    typer.Option("--model-file", help=f"File written by [bold]train[/]; {MODEL_NAME} in the folder .git by default."),
]
Since = Annotated[
    str | None, typer.Option(help="Only commits since then, in any form git takes: 2024-01-31, '2 years ago'.")
]
Until = Annotated[str | None, typer.Option(help="Only commits until then.")]
MaxFiles = Annotated[int, typer.Option(min=2, help="Drop commits with more files.")]
MinSupport = Annotated[int, typer.Option(min=1, help="Drop files that occur in fewer commits.")]
Include = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="Only these paths, as in .gitignore; may be given many times."),
]
Exclude = Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Not these paths; may be given many times.")]
Renames = Annotated[bool, typer.Option("--renames/--no-renames", help="Follow renamed files.")]
FirstParent = Annotated[
    bool, typer.Option("--first-parent", help="Read the main line only, with each merge as one commit.")
]
HalfLife = Annotated[
    float | None,
    typer.Option(metavar="DAYS", help="Days after which a commit counts half; all count alike by default."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed.")]


def read_history(repo: Path, support_on: str, min_support: int, **options: Any) -> CommitHistory:
    """The history of a repository, refused if there is too little of it."""
    from pluri.cochange import CommitHistory

    history = CommitHistory.from_git(repo, min_support=min_support, support_on=support_on, **options)
    n_commits, n_files = history.X_.shape
    if n_commits < FEWEST_COMMITS or n_files < 2:
        raise ValueError(
            f"REPO must have at least {FEWEST_COMMITS} commits with files that change at least {min_support} times, "
            f"got {n_commits} commits with {n_files} such files: lower --min-support, or take more commits (--since, "
            "--until, --max-files, --include, --exclude)"
        )
    return history


def check_dates(repo: Path, **dates: str | None) -> None:
    """Refuse what git does not understand, before anything is read."""
    from pluri.cochange.repository.git import find_repository
    from pluri.cochange.repository.git_log import is_date

    repository = find_repository(repo)
    for option, text in dates.items():
        if text is not None and not is_date(repository.path, text):
            raise UsageError(f"--{option} must be a date that git understands, such as 2024-01-31, got {text!r}")


def check_place(place: Path, force: bool) -> None:
    """Refuse to replace anything but a model of this kind, which can be trained again."""
    check_output(place, force or (place.is_file() and _is_recommender(place)))


def _is_recommender(place: Path) -> bool:
    from pluri.io import read_info

    try:
        return read_info(place).class_name == "pluri.cochange.recommender.FileRecommender"
    except (ValueError, OSError):
        return False


def check_threshold(threshold: float | None) -> None:
    """Refuse what is not a probability."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise UsageError(f"--threshold must lie between 0 and 1, got {threshold:g}")


def check_model(name: str) -> str:
    """The name of a model, or an error; on a command line words may be joined by hyphens too."""
    name = name.replace("-", "_")
    if name not in MODELS:
        raise UsageError(f"--model must be one of {', '.join(MODELS)}, got {name!r}")
    return name


def model_settings(settings: Iterable[str]) -> dict[str, Any]:
    """Parameters given as ``name=value``."""
    found = {}
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not equals or not name:
            raise UsageError(f"--set must have the form name=value, got {setting!r}")
        found[name] = parse_value(value)
    return found


def model_place(repository: Repository | None, given: Path | None) -> Path:
    """Where the model is."""
    if given is not None:
        return given
    assert repository is not None
    return repository.folder / MODEL_NAME


class NoModelError(ValueError):
    """There is no model to ask: its file is missing, damaged, or something else."""


def asked_repository(repo: Path, given: Path | None) -> Repository | None:
    """The repository if there is one; without --model-file there must be."""
    from pluri.cochange.repository.git import GitError, find_repository

    try:
        return find_repository(repo)
    except GitError:
        if given is None:
            raise
        return None


def open_model(repository: Repository | None, given: Path | None) -> Suggester:
    """What was trained, or `NoModelError`."""
    place = model_place(repository, given)
    if not place.is_file():
        train = "pluri cochange train" + ("" if given is None else f" --output {given}")
        raise NoModelError(f"there must be a model to ask, got no file {str(place)!r}: {train} makes one")
    try:
        from pluri.cochange.saved import open_suggester

        return open_suggester(place, before_building=load_skops)
    except (ValueError, OSError, ImportError, MemoryError) as error:
        raise NoModelError(f"{error} (pluri cochange train --force makes a new one)") from error


def repository_paths(files: Sequence[str], repository: Repository | None, known: set[str]) -> list[str]:
    """Paths from the top of the repository; each may be given from there, or from the current folder."""
    return [_from_top(file, repository, known) for file in files]


def _from_top(file: str, repository: Repository | None, known: set[str]) -> str:
    plain_path = Path(os.path.normpath(file)).as_posix()
    if repository is None or repository.top is None:
        return plain_path
    # The folder is resolved, not the file: git knows a link by its own name.
    here = os.path.abspath(file)
    real = os.path.join(os.path.realpath(os.path.dirname(here)), os.path.basename(here))
    top = os.path.realpath(repository.top)
    try:
        relative = Path(os.path.relpath(real, top)).as_posix()
    except ValueError:  # another drive
        relative = ".."
    outside = relative == ".." or relative.startswith("../")
    if not outside and (relative in known or plain_path not in known):
        return relative
    if outside and (os.path.isabs(file) or plain_path not in known) and os.path.lexists(here):
        raise UsageError(f"FILE must lie in the repository {top!r}, got {file!r}")
    return plain_path


def show(path: str) -> str:
    """A path on one line: as it is if it can be printed, else quoted with escapes."""
    return path if path.isprintable() else json.dumps(path)


def print_ascii_json(value: Any) -> None:
    """JSON in ASCII: a path may hold bytes that are no text."""
    print(json.dumps(plain(value), indent=2))


def number_of(count: int, thing: str) -> str:
    """A number and what is counted.

    Examples
    --------
    >>> from pluri.cli.cochange.options import number_of
    >>> number_of(1, "file"), number_of(2, "known file")
    ('1 file', '2 known files')
    """
    return f"{count} {thing}{'' if count == 1 else 's'}"


def missing_lines(suggestions: Sequence[Any], n_commits: int) -> Iterable[str]:
    """Probability, path, and how many of the commits of the given files changed it too."""
    width = max((len(show(item.path)) for item in suggestions), default=0)
    for item in suggestions:
        told = f"changed together in {item.n_commits} of {number_of(n_commits, 'commit')}"
        commits = " ".join(name[:8] for name in item.commits)
        yield f"{item.probability:>8.3f}   {show(item.path):<{width}}  {told}  {commits}"


def suggestion_lines(suggestions: Sequence[Any], threshold: float) -> Iterable[str]:
    """Probability, path and the commits that support it; a mark for those above the threshold."""
    width = max((len(show(item.path)) for item in suggestions), default=0)
    for item in suggestions:
        mark = "*" if item.probability > threshold else " "
        commits = " ".join(name[:8] for name in item.commits)
        told = f"{item.n_commits:>4d} commit{'s' if item.n_commits != 1 else ' '}  {commits}".rstrip()
        yield f"{item.probability:>8.3f} {mark} {show(item.path):<{width}}  {told}"


def as_record(item: Any, threshold: float) -> dict[str, Any]:
    """A suggestion for JSON."""
    return {
        "path": item.path,
        "probability": item.probability,
        "likely": item.probability > threshold,
        "n_commits": item.n_commits,
        "commits": list(item.commits),
    }


def why_unknown(unknown: Sequence[str], repository: Repository | None, given: Path | None) -> dict[str, str]:
    """Why the model does not know some paths: those that git knows have changed too seldom."""
    from pluri.cochange.repository.changes import existing_files
    from pluri.io import read_info

    if not unknown:
        return {}
    there = set() if repository is None or repository.top is None else set(existing_files(repository))
    least = read_info(model_place(repository, given)).notes.get("min_support")
    seldom = "changed too seldom in the commits it was trained on" + (
        f": fewer than {least} times (train --min-support)" if isinstance(least, int) else ""
    )
    return {path: seldom if path in there else "no such file when it was trained" for path in unknown}


def warn_unknown(reasons: Mapping[str, str]) -> None:
    """Say which paths were not used."""
    for path, reason in reasons.items():
        note(f"warning: {show(path)} is not known to the model ({reason}), and not used")
