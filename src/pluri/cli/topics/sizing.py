"""How many topics, where the command is asked to find out: ``--topics auto``."""

from __future__ import annotations

import sys
from typing import Any

from pluri.cli.console import note
from pluri.cli.registry import UsageError

#: Attribute of a model whose number of topics waits for the documents.
TO_BE_FOUND = "_number_to_be_found"


def number_of_topics(given: str | int | None, model: str = "lda", inference: str | None = None) -> int | str | None:
    """What was given for ``--topics``: a number, "auto", or nothing; refused where it cannot be meant.

    Examples
    --------
    >>> from pluri.cli.topics.sizing import number_of_topics
    >>> number_of_topics("30"), number_of_topics("auto"), number_of_topics(None)
    (30, 'auto', None)
    """
    if given == "auto":
        if model != "lda":
            raise UsageError(f"--topics must not be given for {model}, which finds the number of topics itself")
        if inference not in (None, "gibbs"):
            raise UsageError(f"--topics auto must be given with --inference gibbs (by default), got {inference!r}")
        return given
    if given is None or isinstance(given, int):
        return given
    if not given.isdecimal() or int(given) < 1:
        raise UsageError(f"--topics must be a whole number of at least 1, or auto, got {given!r}")
    return int(given)


def settle_number(estimator: Any, counts: Any, seed: int, quiet: bool) -> Any:
    """Give a model the number of topics that is recommended for documents, if it is to be found: why is told.

    Returns the topics that were found again, to begin with; None if nothing was to be found.
    """
    if vars(estimator).pop(TO_BE_FOUND, None) is None:
        return None
    from pluri.engine.compile_status import silenced
    from pluri.topics import choose_n_topics

    shown = not quiet and sys.stderr is not None and sys.stderr.isatty()
    with silenced(quiet):
        search = choose_n_topics(counts, random_state=seed, verbose=int(shown))
    for sentence in search.reasons_:
        note(sentence)
    estimator.set_params(n_components=search.n_components_)
    return search.first_topics_
