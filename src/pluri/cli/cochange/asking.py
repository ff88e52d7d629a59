"""``pluri cochange suggest`` and ``pluri cochange check``: a trained model put to use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.cochange import options as shared
from pluri.cli.console import FAILED, note, reporting
from pluri.cli.registry import UsageError

Top = Annotated[int, typer.Option(min=1, help="Largest number of files to show.")]
LevelOption = Annotated[
    float | None, typer.Option("--threshold", help="Probability above which a file is likely; the model's by default.")
]
MissingOption = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        help="Probability above which a file is missing; by default the model's, chosen by its false alarms.",
    ),
]
#: Exit code of a check that has no model to ask; 1 means that a file seems to be missing.
NO_MODEL = 3
#: Commits of more files are imports and reformatting, of which the model knows nothing.
MOST_CHANGED = 100


def suggest(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Paths, from here or from the top of the repository.")
    ],
    repo: shared.RepoOption = Path("."),
    model_file: shared.ModelFile = None,
    top: Top = 10,
    threshold: LevelOption = None,
    as_json: options.Json = False,
) -> None:
    """Rank the files that change together with the given ones; a star marks those that are likely."""
    with reporting():
        shared.check_threshold(threshold)
        repository = shared.asked_repository(repo, model_file)
        recommender = shared.open_model(repository, model_file)
        names = set(recommender.files.tolist())
        paths = shared.repository_paths(files, repository, names)
        known, unknown = _divided(paths, names)
        reasons = shared.why_unknown(unknown, repository, model_file)
        if not known:
            _refuse_unknown(recommender, reasons)
        shared.warn_unknown(reasons)
        level = recommender.threshold if threshold is None else threshold
        suggestions = recommender.recommend(known, top, threshold=0.0)
        if as_json:
            shared.print_ascii_json(
                {
                    "files": known,
                    "unknown": unknown,
                    "threshold": level,
                    "suggestions": [shared.as_record(item, level) for item in suggestions],
                }
            )
            return
        for line in shared.suggestion_lines(suggestions, level):
            print(line)
        if not suggestions:
            note("no file has changed together with these")


def check(
    commit: Annotated[
        str | None,
        typer.Argument(metavar="[COMMIT]", help="A commit; what is staged, or else the work tree, by default."),
    ] = None,
    repo: shared.RepoOption = Path("."),
    staged: Annotated[bool, typer.Option("--staged", help="Check what is staged, even if that is nothing.")] = False,
    working_tree: Annotated[
        bool, typer.Option("--working-tree", help="Check all changes since the last commit, staged or not.")
    ] = False,
    model_file: shared.ModelFile = None,
    top: Top = 10,
    threshold: MissingOption = None,
    fail: Annotated[bool, typer.Option("--fail", help="Exit code 1 if a file seems to be missing.")] = False,
    if_trained: Annotated[
        bool,
        typer.Option(
            "--if-trained", help="Say so, and exit with code 0, where no model was trained or none can be read."
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Tell which files are likely to change together with those of a commit, and have not.

    As a hook before each commit: pluri cochange check --staged --fail --if-trained

    Exit codes: 0 nothing is missing (or nothing was asked to fail), 1 a file seems to be missing and --fail was given,
    or git failed, 3 there is no model, or its file is damaged, and --if-trained was not given.
    """
    with reporting():
        from pluri.cochange.repository.changes import existing_files

        shared.check_threshold(threshold)
        if sum((commit is not None, staged, working_tree)) > 1:
            raise UsageError("COMMIT, --staged and --working-tree must not be given together")
        repository = shared.asked_repository(repo, model_file)
        try:
            recommender = shared.open_model(repository, model_file)
        except shared.NoModelError as error:
            if if_trained:
                note(f"nothing checked: {error}")
                return
            note(f"error: {error}")
            raise typer.Exit(NO_MODEL) from error
        if repository is None:
            raise UsageError(f"--repo must lie in a git repository, got {str(repo)!r}")
        source, changed = _changed(repository, commit, staged, working_tree)
        known, unknown = _divided(changed, set(recommender.files.tolist()))
        level = recommender.hook_threshold if threshold is None else threshold
        usual = len(changed) <= MOST_CHANGED
        missing = recommender.recommend(known, None, threshold=level) if known and usual else []
        if missing:
            # Files may have gone since the model was trained, or may not be on this branch.
            there = set(existing_files(repository, commit))
            missing = [item for item in missing if item.n_commits > 0 and item.path in there][:top]
        if as_json:
            told = {"checked": source, "files": known, "unknown": unknown, "threshold": level}
            shared.print_ascii_json(told | {"missing": [shared.as_record(item, level) for item in missing]})
        elif not usual:
            note(f"{len(changed)} files changed in {source}: too many to tell what is missing")
        else:
            _tell_missing(recommender, missing, source, known, unknown)
        if missing and fail:
            raise typer.Exit(FAILED)


def _tell_missing(recommender: Any, missing: list[Any], source: str, known: list[str], unknown: list[str]) -> None:
    counted = f"{shared.number_of(len(known), 'known file')} changed"
    if unknown:
        counted += f", and {len(unknown)} not known to the model: new, or changed too seldom for --min-support"
    if not missing:
        note(f"nothing seems to be missing from {source} ({counted})")
        return
    note(f"may be missing from {source} ({counted}):")
    for line in shared.missing_lines(missing, recommender.count_commits(known)):
        print(line)


def _refuse_unknown(recommender: Any, reasons: Mapping[str, str]) -> None:
    """Say why nothing can be asked, and which path may have been meant."""
    path, reason = next(iter(reasons.items()))
    try:
        recommender.known_columns(list(reasons))
    except ValueError as error:
        raise ValueError(f"{error} ({shared.show(path)}: {reason})") from error


def _changed(repository: Any, commit: str | None, staged: bool, working_tree: bool) -> tuple[str, list[str]]:
    """What is looked at, and the files that changed in it."""
    from pluri.cochange.repository.changes import changed_files, committed_files, staged_files

    if commit is not None:
        return commit, committed_files(repository, commit)
    if not working_tree:
        found = staged_files(repository)
        if found or staged:
            return "what is staged", found
    return "the work tree", changed_files(repository)


def _divided(paths: list[str], names: set[str]) -> tuple[list[str], list[str]]:
    unique = list(dict.fromkeys(paths))
    return [path for path in unique if path in names], [path for path in unique if path not in names]
