"""The six questions that people bring to topics, each by one command, on real texts.

``python benchmarks/reproduce/topic_questions.py`` writes tables of texts into a folder (``--folder``, a temporary one
by default) and runs ``pluri topics`` on them, each time in a process of its own:

- *weekly tickets*: Reuters stories of 1987 with their dates: what emerges, fades and drifts, a page with time;
- *own tokenizer*: posts of newsgroups in a data frame, cut by a function of one's own (in Python);
- *how many*: ``--topics auto`` on the same posts;
- *stars from reviews*: film reviews with ratings: the error on held-out reviews beside that without topics;
- *guided*: two topics of the posts are told some of their words;
- *a tree*: the flat topics of the first command as a tree (``pluri edit-topics --tree``), and hLDA's.

Printed are the lines that answer, processor time, and the sizes of the pages. Needs the files of `load_newsgroups`,
`load_reuters` and ``movie_scale_schwartz.jsonl.gz`` in PLURI_DATA.

    python benchmarks/reproduce/topic_questions.py --documents 1500 --folder pages
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

FILES = {
    "posts": "newsgroups20_bydate.jsonl.gz",
    "stories": "reuters21578_modapte.jsonl.gz",
    "reviews": "movie_scale_schwartz.jsonl.gz",
}


def rows_of(name: str, n_documents: int) -> list[dict[str, Any]]:
    """Some of the rows, in their order."""
    with gzip.open(Path(os.environ["PLURI_DATA"]) / FILES[name], "rt", encoding="utf8") as lines:
        rows = [row for row in map(json.loads, lines) if len(row["text"].split()) >= 10]
    if name == "stories":
        rows = [found for row in rows if (found := dated(row))]
    chosen = np.sort(np.random.default_rng(0).choice(len(rows), min(n_documents, len(rows)), replace=False))
    return [rows[place] for place in chosen]


def dated(row: dict[str, Any]) -> dict[str, Any] | None:
    """A story with its day ("26-FEB-1987 15:01:01" is one); None if it has none."""
    found = re.search(r"(\d{1,2})-([A-Z]{3})-(\d{4})", row.get("date") or "")
    if not found:
        return None
    month = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC".index(found[2]) // 3 + 1
    return {"text": row["text"], "title": row["title"], "day": f"{found[3]}-{month:02d}-{int(found[1]):02d}"}


def run(question: str, *arguments: str, show: str = "", n_lines: int = 6) -> None:
    """Run a command and print the lines that match a pattern, or the first."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-W", "ignore", "-m", "pluri", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"\n{question}: pluri {' '.join(Path(one).name if '/' in one else one for one in arguments)}")
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip() and re.search(show, line)]
    for line in lines[:n_lines]:
        print(f"    {line[:150]}")
    print(f"    ({seconds:.0f} s of processor time, code {done.returncode})", flush=True)


def own_tokenizer(rows: list[dict[str, Any]]) -> None:
    """Posts in a data frame, cut by a function."""
    import pandas as pd
    from sklearn.feature_extraction.text import CountVectorizer

    from pluri.topics import LatentDirichletAllocation, WordCutter, stop_words

    frame = pd.DataFrame(rows)
    cut = WordCutter(
        tokenizer=lambda text: re.findall(r"[a-z]+(?:['-][a-z]+)+|[a-z]{4,}", text.lower()), stop_words=stop_words("en")
    )
    vectorizer = CountVectorizer(analyzer=cut, min_df=5, max_df=0.5)
    X = vectorizer.fit_transform(frame["text"])
    model = LatentDirichletAllocation(20, inference="gibbs", n_warmup=100, random_state=0).fit(X)
    model = model.keep_vectorizer(vectorizer)
    print("\nown tokenizer: words with hyphens and apostrophes stay whole")
    for words in model.top_words(8)[:4]:
        print("    " + " ".join(words))
    print(f"    first document: topic {model.transform(model.count_texts(frame['text'][:1])).argmax()}", flush=True)


def questions(place: Path, n_documents: int) -> None:
    tables = {}
    for name in FILES:
        tables[name] = place / f"{name}.jsonl"
        rows = rows_of(name, n_documents)
        tables[name].write_text("\n".join(map(json.dumps, rows)), encoding="utf8")
    model = str(place / "stories.skops")
    run(
        "weekly tickets", "topics", str(tables["stories"]), "-k", "20", "--date", "day", "-o", model, "-r",
        str(place / "stories.html"), "--force", show="emerging|fading|new:|drifting|chance", n_lines=8,
    )  # fmt: skip
    own_tokenizer(rows_of("posts", n_documents))
    run(
        "how many", "topics", str(tables["posts"]), "--topics", "auto", "-r", str(place / "posts.html"), "--force",
        show="recommended|found again|gains|smallest",
    )  # fmt: skip
    run(
        "stars from reviews", "topics", str(tables["reviews"]), "-k", "20", "--rating", "rating", "--held-out", "0.2",
        "--text-field", "text", "-r", str(place / "reviews.html"), "--force", show="rating|without|error",
    )  # fmt: skip
    run(
        "guided", "topics", str(tables["posts"]), "-k", "20", "--seed-words", "space orbit", "--seed-words",
        "hockey team", "-r", str(place / "guided.html"), "--force", show=r"space|hockey",
    )  # fmt: skip
    run("a tree", "edit-topics", model, "--tree", n_lines=16)
    run(
        "a learned tree", "topics", str(tables["stories"]), "--model", "hlda", "--sweeps", "60", "-r",
        str(place / "hlda.html"), "--force", n_lines=14,
    )  # fmt: skip
    for page in sorted(place.glob("*.html")):
        print(f"{page.name}: {page.stat().st_size / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--folder", type=Path, help="keeps tables, models and pages")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = given.folder or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        questions(place, given.documents)


if __name__ == "__main__":
    main()
