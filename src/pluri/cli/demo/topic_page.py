"""A page about the topics of real texts: the docstrings of pluri itself, which are wherever pluri is.

The page is then a map of the library: each topic is named by its words, and lists the functions that are most about it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from pluri.cli.demo.part import Part

FILE = "topics.html"
N_TOPICS, N_WORDS = 10, 5
#: Docstrings that are shorter say too little.
LEAST_CHARACTERS = 200
#: Words that docstrings are made of, whatever they are about.
COMMON = (
    "array arrays attributes bool class default dict examples false float given int like list model models none notes "
    "number object optional parameters returns see self shape str true tuple used warns raises yields"
)
#: What is not prose: examples, types of parameters, directives, formulas and other markup, names of code.
MARKUP = re.compile(r"^ *(?:>>>|\.\.\.) .*$|^\S.* : .*$|^ *\.\. .*$|:[a-z:]+:`[^`]*`|`+[^`]*`+", flags=re.MULTILINE)
REFERENCES = re.compile(r"^References\n-+\n.*", flags=re.MULTILINE | re.DOTALL)


def show(path: Path, seed: int) -> Part:
    """Read, find topics, write the page."""
    titles, texts = docstrings()
    model, n_words = find_topics(titles, texts, seed)
    from pluri.report import topic_report

    topic_report(model, path, title="What the documentation of pluri is about")
    graph = model.topic_graph(N_WORDS)
    nodes = sorted(graph.nodes, key=lambda node: (-node.weight, node.index))
    numbers = {
        "documents": len(texts),
        "words": n_words,
        "topics": [
            {"words": list(node.words), "share": node.weight, "example": node.examples[0].title} for node in nodes
        ],
    }
    return Part(reading(numbers), numbers, path)


def docstrings() -> tuple[list[str], list[str]]:
    """Names and prose of what is documented in pluri. The files are read, not run."""
    import pluri

    root = Path(pluri.__file__).parent
    titles, texts = [], []
    for file in sorted(root.rglob("*.py")):
        module = ".".join(file.relative_to(root).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = MARKUP.sub(" ", REFERENCES.sub("", ast.get_docstring(node) or ""))
                if len(text) >= LEAST_CHARACTERS:
                    family = module.partition(".")[0]
                    titles.append(module if isinstance(node, ast.Module) else f"{family}.{node.name}")
                    texts.append(text)
    return titles, texts


def find_topics(titles: list[str], texts: list[str], seed: int) -> tuple[Any, int]:
    """A fitted model that knows its words and documents, and the number of words."""
    import numpy as np
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

    from pluri.topics import LatentDirichletAllocation

    vectorizer = CountVectorizer(
        stop_words=sorted({*ENGLISH_STOP_WORDS, *COMMON.split()}), min_df=5, max_df=0.3, token_pattern=r"\b[a-z]{3,}\b"
    )
    counts = vectorizer.fit_transform(texts)
    rows = np.flatnonzero(counts.sum(axis=1))
    counts = counts[rows]
    model = LatentDirichletAllocation(N_TOPICS, inference="gibbs", random_state=seed).fit(counts)
    model.name_words(vectorizer)
    model.keep_examples(counts, [titles[row] for row in rows], [texts[row] for row in rows])
    return model, int(counts.sum())


def reading(numbers: dict[str, Any]) -> list[str]:
    """The topics by their words, each with what is most about it."""
    topics = numbers["topics"]
    return [
        f"The texts are the {numbers['documents']} longer docstrings of pluri itself, {numbers['words']} words. Its "
        f"{len(topics)} topics, the largest first, and what is most about each:",
        *(f"  {topic['share']:>4.0%}  {' '.join(topic['words'])}: {topic['example']}" for topic in topics),
        "The page shows them on a map, with words, texts and a search; it is one file that loads nothing.",
    ]
