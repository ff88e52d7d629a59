"""Going on with a saved model: do the new documents fit, and what do they teach?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from pluri.cli.console import note, print_json
from pluri.cli.registry import UsageError
from pluri.cli.topics.shares import load_topics, with_words

if TYPE_CHECKING:
    from pluri.cli.topics.reading import Fields

#: Exit code: the documents do not fit, and nothing was learned.
ALARM = 3


class Going(NamedTuple):
    """Which model goes on, where it is saved, what it forgets, and whether it learns whatever comes."""

    model: Path
    output: Path | None
    forget: float
    despite_alarm: bool
    seed: int


def update_model(
    going: Going, corpus: str, fields: Fields, pattern: str, refused: Mapping[str, Any], as_json: bool
) -> None:
    """Look at new documents, learn them if they fit, and save the model."""
    for option, given in refused.items():
        if given is not None and given != []:
            raise UsageError(f"{option} must not be given together with --update, which goes on with a saved model")
    from pluri.cli.topics.reading import read_corpus
    from pluri.topics import TopicMonitor, forget

    estimator, notes = load_topics(going.model, "--update")
    if not hasattr(estimator, "partial_fit"):
        raise UsageError(f"--update must name a model that can go on learning, got {type(estimator).__name__}")
    found = read_corpus(corpus, fields, pattern)
    counts = estimator.count_texts(found.texts)
    unknown, whole = estimator.count_unknown_words(found.texts)
    _, kept = with_words(found, counts)
    if not len(kept):
        raise ValueError(f"CORPUS must have words that the model knows, got none in {corpus!r}")
    monitor = TopicMonitor(estimator)
    if isinstance(notes.get("monitor"), dict):
        monitor = TopicMonitor.from_dict(estimator, notes["monitor"])
    else:
        note("there is nothing to compare the documents with: --held-out 0.1 keeps that when a model is first learnt")
    look = monitor.check(counts[kept], unknown[kept], whole[kept], random_state=going.seed)
    learns = going.despite_alarm or not look.alarm
    told = {"documents": len(kept), "perplexity": look.perplexity, "unknown_words": look.unknown, "alarm": look.alarm,
            "reason": look.reason, "learned": learns, "output": None}  # fmt: skip
    if learns:
        forget(estimator, going.forget)
        estimator.partial_fit(counts[kept])
    if learns and going.output is not None:
        from pluri.io import save

        notes["documents"] = int(notes.get("documents", 0)) + len(kept)
        save(estimator, going.output, notes=notes | {"monitor": monitor.to_dict()})
        told["output"] = str(going.output)
    if as_json:
        print_json(told)
    else:
        rate = f"{monitor.false_alarm_rate:.0%} in {monitor.n_looks} looks"
        print(f"{len(kept)} documents, perplexity {look.perplexity:.1f}, {look.unknown:.1%} of the words unknown")
        print(f"{'ALARM: ' if look.alarm else ''}{look.reason} (chance of a false alarm: {rate})")
    if told["output"]:
        note(f"model written to {going.output}")
    if not learns:
        note("nothing was learned: learn a new model of old and new documents, or add --despite-alarm")
        raise typer.Exit(ALARM)
