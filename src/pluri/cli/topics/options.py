"""The options of ``pluri topics``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pluri.cli.topics.models import MODELS

Documents = Annotated[
    str,
    typer.Argument(
        metavar="CORPUS",
        help="A folder of text files; a .jsonl, .csv or .tsv file with a field of text, or a .txt file with a "
        "document in each line (all may end in .gz); or - for JSON Lines on standard input.",
    ),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File for the model, such as topics.skops.")]
Report = Annotated[
    Path | None, typer.Option("--report", "-r", help="File for a page to read in a browser, such as topics.html.")
]
Model = Annotated[
    str,
    typer.Option(help="; ".join(f"[bold]{name}[/]: {told}" for name, (_, told) in MODELS.items()) + "."),
]
Shares = Annotated[
    Path | None, typer.Option("--shares", help="File of type .csv for the share of each topic in each document.")
]
Apply = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL.skops",
        help="Find no new topics, but give the shares of the topics of a saved model in these documents; on the "
        "terminal unless there is --shares.",
    ),
]
Topics = Annotated[
    str | None,
    typer.Option(
        "--topics",
        "-k",
        help="Number of topics of lda, 20 by default; or [bold]auto[/]: as many as are found again in other documents.",
    ),
]
Inference = Annotated[
    str | None,
    typer.Option(
        help="How the model is learnt. lda: gibbs (by default, with learnt priors), vb, svi or em; hdp: gibbs (by "
        "default), vb or svi; tree: truncated (of given size, by default), or retrospective or slice, which let "
        "it grow."
    ),
]
Sweeps = Annotated[
    int | None, typer.Option(min=1, help="Passes over the documents; by default what the model thinks right.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the model; may be given many times."),
]
TextField = Annotated[str, typer.Option(help="Field or column with the text.")]
TitleField = Annotated[
    str | None, typer.Option(help="Field with the title; [bold]title[/] if there is one, else the text begins.")
]
IdField = Annotated[str | None, typer.Option(help="Field that names documents without a title.")]
Pattern = Annotated[str, typer.Option(help="Files of a folder, and of the folders in it.")]
MinDocuments = Annotated[int, typer.Option(min=1, help="Leave out words of fewer documents.")]
MaxShare = Annotated[float, typer.Option(help="Leave out words of a larger share of the documents.")]
MaxWords = Annotated[int, typer.Option(min=2, help="Keep the most frequent words only.")]
StopWords = Annotated[
    str,
    typer.Option(
        help="Words to leave out: english, none, another language (german or de; several with commas), or a file with "
        "a word in each line."
    ),
]
TokenPattern = Annotated[
    str | None, typer.Option(help="Regular expression of a word; by default two or more characters, a letter first.")
]
Segmenter = Annotated[
    str,
    typer.Option(
        help="Text without spaces between words: auto cuts it into pairs of characters; jieba (Chinese), janome "
        "(Japanese) and pythainlp (Thai) are packages that cut it into words; none leaves it."
    ),
]
Collocations = Annotated[
    bool,
    typer.Option(
        "--phrases", help="Join words that stand together more often than by chance, such as new york (NPMI of 0.5)."
    ),
]
SeedWords = Annotated[
    list[str] | None,
    typer.Option(
        help="Words that a topic of lda is known to have, 'puck goal rink'; once for each topic, from the first on."
    ),
]
Rating = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD",
        help="Field with a rating, or a class, of each document: topics that explain it are found (supervised lda).",
    ),
]
Date = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD",
        help="Field with the date of each document (2024-03-31): shares over time, topics that emerge and fade.",
    ),
]
PeriodOption = Annotated[str, typer.Option("--period", help="With --date: day, week, month, quarter or year.")]
FalseAlarms = Annotated[
    float,
    typer.Option(help="With --date: chance of any alarm about any topic in all periods, if nothing changes."),
]
Update = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL.skops",
        help="Go on with a saved lda: look whether these documents fit it, learn them, and save it with -o. If they do "
        "not fit nothing is learned, and the exit code is 3.",
    ),
]
Forget = Annotated[float, typer.Option(help="With --update: share of what was learned before that is forgotten.")]
DespiteAlarm = Annotated[bool, typer.Option("--despite-alarm", help="With --update: learn documents that do not fit.")]
Stream = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="For more documents than memory: they are read three times, and lda is learnt by minibatches (svi).",
    ),
]
Phrases = Annotated[int, typer.Option("--ngrams", min=1, help="Phrases of up to so many words are words.")]
HeldOut = Annotated[
    float, typer.Option(help="Share of the documents to hold out, to tell how well they are predicted.")
]
Title = Annotated[str | None, typer.Option(help="Heading of the page; the name of the corpus by default.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
