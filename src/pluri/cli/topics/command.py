"""``pluri topics``: what a pile of documents is about, as a model, a page and a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from pluri.cli import options
from pluri.cli.console import INTERRUPTED, note, print_json, reporting, show
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError
from pluri.cli.topics import options as shared
from pluri.cli.topics.learning import Job, Outputs
from pluri.cli.topics.telling import figures, topic_lines, topics_as_json

if TYPE_CHECKING:
    from pluri.cli.topics.learning import Learned


def topics(
    corpus: shared.Documents,
    output: shared.Output = None,
    report: shared.Report = None,
    model: shared.Model = "lda",
    shares: shared.Shares = None,
    apply: shared.Apply = None,
    update: shared.Update = None,
    n_topics: shared.Topics = None,
    inference: shared.Inference = None,
    sweeps: shared.Sweeps = None,
    settings: shared.Settings = None,
    text_field: shared.TextField = "text",
    title_field: shared.TitleField = None,
    id_field: shared.IdField = None,
    date: shared.Date = None,
    period: shared.PeriodOption = "week",
    false_alarms: shared.FalseAlarms = 0.05,
    rating: shared.Rating = None,
    seed_words: shared.SeedWords = None,
    pattern: shared.Pattern = "*.txt",
    min_documents: shared.MinDocuments = 5,
    max_share: shared.MaxShare = 0.5,
    max_words: shared.MaxWords = 20_000,
    stop_words: shared.StopWords = "english",
    token_pattern: shared.TokenPattern = None,
    segmenter: shared.Segmenter = "auto",
    phrases: shared.Collocations = False,
    n_grams: shared.Phrases = 1,
    held_out: shared.HeldOut = 0.0,
    stream: shared.Stream = False,
    forget: shared.Forget = 0.0,
    despite_alarm: shared.DespiteAlarm = False,
    title: shared.Title = None,
    seed: shared.Seed = 0,
    force: options.Force = False,
    quiet: shared.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Find the topics of documents; print them, save the model, and write a page about it.

    [bold]pluri topics letters/ -k 30 -o letters.skops -r letters.html[/] reads all text files of a folder.

    [bold]pluri topics tickets.csv --date opened -r tickets.html[/] tells what changes from week to week.

    [bold]pluri topics new/ --apply letters.skops --shares new.csv[/] tells what other documents are about.

    Ctrl-C keeps the topics so far: everything is written, and the exit code is 130.
    """
    given = dict(locals())
    with reporting():
        _refuse(given)
        _do(given)


def _do(given: dict[str, Any]) -> None:
    """Apply a model, go on with one, or learn one."""
    from pluri.cli.topics.reading import Fields
    from pluri.cli.topics.words import WordChoice

    fields = Fields(*(given[name] for name in ("text_field", "title_field", "id_field", "date", "rating")))
    choice = WordChoice(
        *(given[name] for name in ("min_documents", "max_share", "max_words", "stop_words", "n_grams", "token_pattern",
                                   "segmenter", "phrases"))
    )  # fmt: skip
    corpus, pattern, seeds = given["corpus"], given["pattern"], list(given["seed_words"] or [])
    outputs = Outputs(given["output"], given["report"], given["shares"])
    refused = {"--topics": given["n_topics"], "--inference": given["inference"], "--sweeps": given["sweeps"],
               "--set": given["settings"], "--held-out": given["held_out"] or None, "--seed-words": seeds,
               "--rating": given["rating"], "--report": outputs.report}  # fmt: skip
    if given["apply"] is not None:
        from pluri.cli.topics.shares import apply_model

        refused["--output"] = outputs.output
        apply_model(given["apply"], corpus, fields, pattern, outputs.shares, refused, given["as_json"])
        return
    if given["update"] is not None:
        from pluri.cli.topics.updating import Going, update_model

        going = Going(given["update"], outputs.output, given["forget"], given["despite_alarm"], given["seed"])
        update_model(going, corpus, fields, pattern, refused | {"--shares": outputs.shares}, given["as_json"])
        return
    builder = _builder(
        given["model"], n_topics=given["n_topics"], inference=given["inference"], n_sweeps=given["sweeps"],
        seed=given["seed"], settings=given["settings"], seeded=bool(seeds), stream=given["stream"],
        rated=given["rating"] is not None,
    )  # fmt: skip
    job = Job(corpus, fields, pattern, choice, builder, outputs, given["period"], given["false_alarms"], seeds,
              given["held_out"], given["seed"], given["quiet"])  # fmt: skip
    _run(job, given["stream"], given["title"], given["as_json"])


def _refuse(given: dict[str, Any]) -> None:
    """Refuse what cannot be meant, before anything is read."""
    force = given["force"]
    check_output(given["output"], force, (".skops",))
    check_output(given["report"], force, (".html", ".htm"), "--report")
    check_output(given["shares"], force, (".csv",), "--shares")
    if not 0 <= given["held_out"] <= 0.9:
        raise UsageError(f"--held-out must lie between 0 and 0.9, got {given['held_out']:g}")
    if not 0 < given["max_share"] <= 1:
        raise UsageError(f"--max-share must lie above 0 and be at most 1, got {given['max_share']:g}")
    if not 0 < given["false_alarms"] < 1:
        raise UsageError(f"--false-alarms must lie between 0 and 1, got {given['false_alarms']:g}")
    if not 0 <= given["forget"] < 1:
        raise UsageError(f"--forget must be at least 0 and below 1, got {given['forget']:g}")
    if given["period"] not in ("day", "week", "month", "quarter", "year"):
        raise UsageError(f"--period must be one of day, week, month, quarter, year, got {given['period']!r}")
    for option, needed, name in (("--forget", "update", "forget"), ("--despite-alarm", "update", "despite_alarm")):
        if given[name] and given[needed] is None:
            raise UsageError(f"{option} must be given together with --{needed}, got it alone")
    if given["apply"] is not None and given["update"] is not None:
        raise UsageError("--apply must not be given together with --update, which tells and learns, got both")
    if given["rating"] is not None and given["model"] != "lda":
        raise UsageError(
            f"--rating must be given with --model lda, which it makes a supervised one, got {given['model']!r}"
        )
    if given["seed_words"] and (given["model"] != "lda" or given["rating"] is not None):
        raise UsageError("--seed-words must be given with --model lda, and without --rating, got another model")
    if given["n_topics"] == "auto" and (given["stream"] or given["rating"] is not None):
        raise UsageError("--topics must be a number with --stream and with --rating, got 'auto'")
    if given["stream"] and (given["model"] != "lda" or given["rating"] or given["inference"] not in (None, "svi")):
        raise UsageError("--stream must be given with --model lda and --inference svi (by default), got another model")


def _builder(name: str, *, stream: bool, rated: bool, inference: str | None, **settings: Any) -> Any:
    """A function that makes the model, by whether there are ratings or classes; what is wrong is found at once."""
    from pluri.cli.topics.models import build_topic_model

    def build(kind: str | None) -> Any:
        how = "svi" if stream and inference is None else inference
        return build_topic_model(kind or name, inference=how, **settings)

    build("number" if rated else None)
    return build


def _run(job: Job, stream: bool, title: str | None, as_json: bool) -> None:
    if stream:
        from pluri.cli.topics.streaming import learn_stream as learn
    else:
        from pluri.cli.topics.learning import learn
    learned = learn(job)
    _tell(learned, job.outputs, as_json)
    _write(learned, job.outputs, job.name, title)
    if learned.interrupted:
        note("interrupted: these are the topics so far")
        raise typer.Exit(INTERRUPTED)


def _tell(learned: Learned, outputs: Outputs, as_json: bool) -> None:
    """Print the topics first: whatever happens to the files, they have been seen."""
    if as_json:
        told = topics_as_json(
            learned.estimator, learned.facts, learned.coherence, learned.score, outputs._asdict(),
            learned.interrupted, learned.trends,
        )  # fmt: skip
        print_json(told)
    else:
        show(topic_lines(learned.estimator, learned.coherence))
        if learned.score is not None:
            print(f"\nheld-out perplexity {learned.score.perplexity:.1f}")
        for name in ("held-out rating error", "held-out accuracy"):
            if name in learned.facts:
                print(f"{name} {learned.facts[name]:g}")
        if learned.trends is not None:
            show("\n" + learned.trends.summary())
    sys.stdout.flush()


def _write(learned: Learned, outputs: Outputs, name: str, title: str | None) -> None:
    estimator, coherence = learned.estimator, learned.coherence
    facts = learned.facts | figures(learned.score)
    if outputs.output is not None:
        from pluri.io import save

        kept: dict[str, Any] = {"corpus": name, **facts, "counting": learned.counting}
        if coherence is not None:
            kept["coherence"] = [round(float(value), 4) for value in coherence]
        if learned.monitor is not None:
            kept["monitor"] = learned.monitor
        save(estimator, outputs.output, notes=kept)
        note(f"model written to {outputs.output}")
    if outputs.report is not None:
        from pluri.report import topic_report

        scores = None if coherence is None else {"coherence": coherence}
        topic_report(
            estimator, outputs.report, title=title or f"Topics of {name}", facts=facts, scores=scores,
            documents=learned.index, trends=learned.trends,
        )  # fmt: skip
        note(f"page written to {outputs.report}")
    if outputs.shares is not None:
        learned.write_shares(outputs.shares)
        note(f"shares written to {outputs.shares}")
    if not any(outputs):
        note("nothing was written: -o keeps the model, -r writes a page about it, --shares a table of documents")
