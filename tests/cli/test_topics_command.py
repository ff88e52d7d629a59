"""``pluri topics`` from end to end: documents in, a table, a model and a page out."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA
from typer.testing import CliRunner

import pluri.io
from pluri.cli.application import application
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError
from pluri.cli.topics import models as topics_models
from pluri.cli.topics.models import build_topic_model
from pluri.cli.topics.reading import Fields, read_corpus
from pluri.cli.topics.telling import topic_lines
from pluri.cli.topics.words import WordChoice, count_words
from pluri.mixtures import GaussianMixture
from pluri.topics import LatentDirichletAllocation
from pluri.topics.held_out import HeldOut
from pluri.topics.topic_model import TopicModel
from pluri.validation.interruption import hold

SPORT = ["puck", "goal", "ice", "skate", "referee"]
SPACE = ["orbit", "rocket", "moon", "launch", "crew"]


class QuickTopics(TopicModel):
    """Topics by scikit-learn, with the parameters of a sampler; the command should not care who finds them."""

    def __init__(
        self, n_components=10, *, inference="variational", n_warmup=1, n_draws=1, thin=3, random_state=None, verbose=0
    ):
        self.n_components = n_components
        self.inference = inference
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None):
        finder = SklearnLDA(self.n_components, max_iter=15, random_state=self.random_state).fit(X)
        if self.inference == "interrupted":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt as stop:
                hold(stop)
        if self.inference == "interrupted at once":
            signal.raise_signal(signal.SIGINT)
        self.n_documents_ = X.shape[0]
        self.components_ = finder.components_
        self.topic_word_ = finder.components_ / finder.components_.sum(axis=1, keepdims=True)
        self.topic_weight_ = finder.components_.sum(axis=1) / finder.components_.sum()
        return self

    def transform(self, X):
        scores = X @ np.log(self.topic_word_.T)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def _held_out(self, X, method, rng, **options):
        return HeldOut(-2.0 * np.ones(X.shape[0]), np.ones(X.shape[0], dtype=np.int64), method)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(topics_models, "topic_class", lambda name: QuickTopics)
    monkeypatch.setattr(pluri.io, "save", partial(pluri.io.save, trusted=[QuickTopics]))


def documents():
    rng = np.random.default_rng(0)
    for number in range(40):
        theme = SPORT if number % 2 else SPACE
        yield f"{'Sport' if number % 2 else 'Space'} {number}", "the " + " ".join(rng.choice(theme, 30))


@pytest.fixture
def folder(tmp_path):
    for number, (title, text) in enumerate(documents()):
        place = tmp_path / "letters" / f"part{number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.txt").write_text(f"{title}\n\n{text}\n")
    return tmp_path / "letters"


def run(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(application, ["topics", *map(str, arguments)], input=stdin, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def sentence(result):
    return " ".join(re.sub(r"[│╭╰─╮╯]", " ", result.stderr).split())


def test_a_folder_becomes_a_table_a_model_and_a_page(quick, folder, tmp_path):
    model, page = tmp_path / "model.skops", tmp_path / "page.html"
    result = run(folder, "-k", 2, "--max-share", 1, "-o", model, "-r", page, "--seed", 3)
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["topic", "share", "NPMI", "words"]
    found = [set(line.split()[3:]) for line in lines[1:]]
    assert sum(set(SPORT) <= words for words in found) == 1
    assert sum(set(SPACE) <= words for words in found) == 1
    assert "40 documents, 11 words" not in result.stderr  # titles have words too
    assert f"model written to {model}" in result.stderr
    assert f"page written to {page}" in result.stderr
    loaded = pluri.io.load(model, trusted=[QuickTopics])
    assert (loaded.n_components, loaded.random_state, loaded.verbose) == (2, 3, 0)
    assert set(SPORT) <= set(loaded.vocabulary_)
    notes = pluri.io.read_info(model).notes
    assert (notes["corpus"], notes["documents"]) == ("letters", 40)
    text = page.read_text(encoding="utf-8")
    assert "<title>Topics of letters</title>" in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["scores"] == ["coherence"]
    for node in data["nodes"]:
        themes = {data["documents"][place][0].split()[0] for place, _ in node["documents"]}
        assert themes == ({"Sport"} if node["label"].split()[0] in SPORT else {"Space"})


def test_every_kind_of_file_gives_the_same_documents(tmp_path, monkeypatch):
    records = [{"title": title, "text": text, "id": number} for number, (title, text) in enumerate(documents())]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "a.jsonl").write_text(lines + "\n")
    (tmp_path / "b.ndjson.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "c.json").write_text(json.dumps(records, indent=1))
    for name, delimiter in (("d.csv", ","), ("e.csv", ";"), ("f.tsv", "\t")):
        with open(tmp_path / name, "w", newline="") as file:
            writer = csv.DictWriter(file, ["id", "title", "text"], delimiter=delimiter)
            writer.writeheader()
            writer.writerows(records)
    (tmp_path / "g.csv.gz").write_bytes(gzip.compress((tmp_path / "d.csv").read_bytes()))
    corpora = [read_corpus(str(path), Fields()) for path in sorted(tmp_path.iterdir())]
    assert len(corpora) == 7
    assert all(corpus == corpora[0] for corpus in corpora)
    assert corpora[0].titles == [record["title"] for record in records]
    assert corpora[0].texts == [record["text"] for record in records]
    (tmp_path / "h.txt").write_text("\n".join(corpora[0].texts) + "\n\n")
    plain = read_corpus(str(tmp_path / "h.txt"), Fields())
    assert [text.strip() for text in plain.texts] == corpora[0].texts
    assert plain.n_empty == 1
    assert all(text.startswith(title.rstrip("…")) for title, text in zip(plain.titles, plain.texts))


def test_documents_come_from_standard_input(quick):
    lines = "".join(json.dumps({"body": text}) + "\n" for _, text in documents())
    result = run("-", "--text-field", "body", "-k", 2, "--json", stdin=lines)
    report = json.loads(result.stdout)
    assert report["documents"] == 40
    assert report["tokens"] == 40 * 30
    assert report["output"] is None
    assert {frozenset(row["words"][:5]) for row in report["topics"]} == {frozenset(SPORT), frozenset(SPACE)}
    assert sum(row["share"] for row in report["topics"]) == pytest.approx(1)


def test_text_in_other_encodings_is_read_and_counted(tmp_path):
    (tmp_path / "1.txt").write_bytes("Grüße\nschöne Straße".encode("latin-1"))
    (tmp_path / "2.txt").write_bytes(b"\xef\xbb\xbf" + "Brief\nmit Marke ü".encode())
    (tmp_path / "3.txt").write_bytes(b"bytes \x81\x8d here")
    (tmp_path / "4.txt").write_bytes(b"   \n")
    (tmp_path / "5.md").write_text("not a text file")
    corpus = read_corpus(str(tmp_path), Fields())
    assert corpus.titles[:2] == ["Grüße", "Brief"]
    assert corpus.texts[0].endswith("schöne Straße")
    assert (corpus.n_empty, corpus.n_recoded) == (1, 2)
    assert len(read_corpus(str(tmp_path), Fields(), "*.md").texts) == 1
    (tmp_path / "t.csv").write_bytes("text\nstraße\nweg".encode("latin-1"))
    table = read_corpus(str(tmp_path / "t.csv"), Fields())
    assert (table.texts, table.n_recoded, table.n_empty) == (["straße", "weg"], 1, 0)


def test_titles_are_taken_from_where_there_are_some(tmp_path):
    rows = [{"text": "a b", "name": 7}, {"text": ["c", "d"], "title": " x\ny "}, {"text": "e " * 200}, {"text": None}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    corpus = read_corpus(str(tmp_path / "a.jsonl"), Fields(name="name"))
    assert corpus.titles[:2] == ["7", "x y"]
    assert corpus.titles[2].startswith("e e")
    assert len(corpus.titles[2]) <= 80
    assert corpus.texts[1] == "c\nd"
    assert corpus.n_empty == 1


def test_words_are_those_of_enough_and_not_too_many_documents(tmp_path, capsys):
    texts = ["The cat sat 12 x", "the cat ran", "a cat sat there", "dogs, DOGS! can't", "dogs ran 9lives"]
    counts, words = count_words(texts, WordChoice(min_documents=2, max_share=0.5, stop_words="none"))
    assert set(words) == {"the", "sat", "ran", "dogs"}  # cat is in three of five
    assert capsys.readouterr().err == "1 word left out, in more than 50% of documents (--max-share): cat\n"
    assert counts.toarray()[3].tolist() == [2 * (word == "dogs") for word in words]
    _, words = count_words(texts, WordChoice(1, 1.0, 20, "english"))
    assert "the" not in words
    assert not any(word[0].isdigit() for word in words)
    (tmp_path / "stop").write_text("cat\nCan't\n")
    _, words = count_words(texts, WordChoice(1, 1.0, 20, str(tmp_path / "stop")))
    assert "the" in words
    assert not {"cat", "can"} & set(words)
    _, words = count_words(texts, WordChoice(1, 1.0, 100, "none", n_grams=2))
    assert "the cat" in words
    _, words = count_words(texts, WordChoice(1, 1.0, 2, "none"))
    assert len(words) == 2


def test_what_is_left_out_is_told(quick, tmp_path):
    lines = [json.dumps({"text": text}) for _, text in documents()] + ['{"text": ""}', '{"text": "zzz 123"}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    result = run(tmp_path / "a.jsonl", "-k", 2)
    assert "2 documents left out: 1 without text, 1 without any word that is kept" in result.stderr
    assert "40 documents, 10 words, 1200 tokens" in result.stderr
    assert "nothing was written" in result.stderr


def test_held_out_documents_are_predicted(quick, folder, tmp_path):
    model, page = tmp_path / "model.skops", tmp_path / "page.html"
    result = run(folder, "-k", 2, "--held-out", 0.25, "-o", model, "-r", page)
    assert f"held-out perplexity {np.exp(2):.1f}" in result.stdout
    assert pluri.io.load(model, trusted=[QuickTopics]).n_documents_ == 30
    assert "held-out perplexity" in page.read_text()


def test_ctrl_c_keeps_the_topics_so_far(quick, folder, tmp_path):
    model, page = tmp_path / "model.skops", tmp_path / "page.html"
    options = [folder, "-k", 2, "-o", model, "-r", page, "--held-out", 0.5]
    result = run(*options, "--inference", "interrupted at once", code=130)
    assert "nothing was written" in result.stderr
    assert not model.exists()
    result = run(*options, "--inference", "interrupted", "--json", code=130)
    report = json.loads(result.stdout)
    assert report["interrupted"] is True
    assert report["held_out_perplexity"] is None
    assert "these are the topics so far" in result.stderr
    assert model.exists()
    assert page.exists()


def test_options_become_parameters(quick):
    model = build_topic_model("lda", n_topics=7, n_sweeps=100, seed=5, settings=["thin=2"])
    assert (model.n_components, model.random_state, model.thin) == (7, 5, 2)
    assert (model.n_warmup, model.n_draws) == (80, 20)
    assert model.inference == "gibbs"
    assert build_topic_model("lda").n_components == 20
    assert build_topic_model("lda", inference="variational").inference == "variational"


def test_options_that_a_model_does_not_have_are_refused(monkeypatch):
    class Alone(QuickTopics):
        def __init__(self, random_state=None, max_iter=5):
            self.random_state, self.max_iter = random_state, max_iter

    monkeypatch.setattr(topics_models, "topic_class", lambda name: Alone)
    assert build_topic_model("hdp", n_sweeps=9).max_iter == 9
    with pytest.raises(UsageError, match="--topics must not be given for hdp"):
        build_topic_model("hdp", n_topics=3)
    with pytest.raises(UsageError, match="--inference must not be given for hdp"):
        build_topic_model("hdp", inference="gibbs")
    with pytest.raises(UsageError, match=r"got 'max_iters' \(did you mean max_iter\?\)"):
        build_topic_model("hdp", settings=["max_iters=3"])
    with pytest.raises(UsageError, match="--set must have the form name=value"):
        build_topic_model("hdp", settings=["max_iter"])


def test_files_are_never_replaced_by_accident(quick, folder, tmp_path):
    precious = tmp_path / "precious.html"
    precious.write_text("precious")
    assert "which exists" in sentence(run(folder, "-r", precious, code=2))
    assert precious.read_text() == "precious"
    run(folder, "-k", 2, "-r", precious, "--force")
    assert precious.read_text().startswith("<!doctype html>")
    assert "must be a file of type .html" in sentence(run(folder, "-r", tmp_path / "page.txt", code=2))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing"], 1, "CORPUS must name a file or folder"),
        (["empty"], 1, "CORPUS must be a folder with files '*.txt'"),
        (["blank.jsonl"], 1, "CORPUS must hold documents with text, got 2 without any"),
        (["data.xyz"], 2, "CORPUS must be a folder or a file of type"),
        (["broken.jsonl"], 1, "line 2 of broken.jsonl must be a JSON object, got '{oops'"),
        (["number.jsonl"], 1, "line 1 of number.jsonl must be a JSON object, got '17'"),
        (["fields.jsonl"], 2, "--text-field must name a field of fields.jsonl, got 'text': there are body, head"),
        (["fields.jsonl", "--text-field", "body", "--title-field", "x"], 2, "--title-field must name a field"),
        (["broken.jsonl.gz"], 1, "must be a whole gzip file"),
        (["few.jsonl"], 1, "CORPUS must have words in at least 5 and at most 50% of its 2 documents, got none"),
        (["few.jsonl", "--stop-words", "nowhere"], 2, "--stop-words must be english, none or a file"),
        (["few.jsonl", "--max-share", "1.5"], 2, "--max-share must lie above 0"),
        (["few.jsonl", "--held-out", "2"], 2, "--held-out must lie between 0 and 0.9"),
        (["few.jsonl", "-o", "none/model.skops"], 2, "--output must lie in an existing folder"),
        (["few.jsonl", "-o", "model.pkl"], 2, "--output must be a file of type .skops, got 'model.pkl'"),
        (["few.jsonl", "--shares", "shares.txt"], 2, "--shares must be a file of type .csv"),
        (["missing", "-k", "3", "--set", "n_components=4"], 2, "--topics must not be given together with --set"),
        (["missing", "--set", "n_draws=0"], 2, "n_draws must be"),
        (["missing", "--apply", "x.skops", "-k", "3"], 2, "--topics must not be given together with --apply"),
    ],
)
def test_mistakes_get_a_sentence_and_an_exit_code(quick, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "blank.jsonl").write_text('{"text": " "}\n{"text": null}\n')
    (tmp_path / "data.xyz").write_text("x")
    (tmp_path / "broken.jsonl").write_text('{"text": "a"}\n{oops\n')
    (tmp_path / "number.jsonl").write_text("17\n")
    (tmp_path / "fields.jsonl").write_text('{"body": "a", "head": "b"}\n')
    (tmp_path / "broken.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n' * 999)[:40])
    (tmp_path / "few.jsonl").write_text('{"text": "ice"}\n{"text": "moon"}\n')
    result = run(*arguments, code=code)
    assert message in sentence(result)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_an_unknown_model_is_refused_before_anything_is_read(tmp_path):
    assert "--model must be one of lda, hdp, hlda, concept-graph, tree, got 'hldaa' (did you mean hlda?)" in sentence(
        run(tmp_path / "nothing", "--model", "hldaa", code=2)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--inference", "vbb"], "--inference must be one of gibbs, vb, svi, em for lda, got 'vbb'"),
        (["--set", "inference=vbb"], "inference must be one of 'vb', 'svi', 'gibbs', 'em', got 'vbb'"),
        (["--inference", "vb", "--set", "inference=em"], "--inference must not be given together with --set inference"),
        (["--set", "learning_decay=3"], "learning_decay must"),
        (["--model", "hdp", "--inference", "em"], "--inference must be one of gibbs, vb, svi for hdp, got 'em'"),
        (["--model", "hdp", "--set", "max_topics=0"], "max_topics must"),
        (["--model", "hlda", "--set", "n_levels=0"], "n_levels must"),
        (["--model", "tree", "--set", "width=broad"], "width must be one of"),
        (["--model", "concept-graph", "--set", "n_levels=0"], "n_levels must"),
    ],
)
def test_values_that_a_model_does_not_take_are_refused_before_anything_is_read(tmp_path, arguments, message):
    result = run(tmp_path / "nothing", *arguments, code=2)
    assert message in sentence(result)


@pytest.mark.parametrize("model", topics_models.MODELS)
def test_every_model_can_be_built_without_options(model):
    assert type(build_topic_model(model)).__name__ == topics_models.MODELS[model][0]


def test_the_number_of_passes_depends_on_the_way_of_learning():
    found = {how: build_topic_model("lda", inference=how).max_iter for how in ("vb", "em", "svi")}
    assert found == {"vb": 100, "em": 100, "svi": 20}
    assert build_topic_model("lda", inference="vb", n_sweeps=7).max_iter == 7
    assert build_topic_model("lda", inference="vb", settings=["max_iter=8"]).max_iter == 8


def test_gibbs_learns_the_priors_whether_it_is_asked_for_or_not():
    for given in ({}, {"inference": "gibbs"}, {"settings": ["inference=gibbs"]}):
        model = build_topic_model("lda", **given)
        assert (model.inference, model.doc_topic_prior, model.topic_word_prior) == ("gibbs", "learn", "learn")
    assert build_topic_model("lda", inference="gibbs", settings=["doc_topic_prior=0.3"]).doc_topic_prior == 0.3
    assert build_topic_model("lda", settings=["seed_words=[[0], [1]]"]).topic_word_prior is None
    for given in ({"inference": "em"}, {"settings": ["inference=em"]}):
        model = build_topic_model("lda", **given)
        assert (model.inference, model.doc_topic_prior, model.max_iter) == ("em", None, 100)


def test_topics_without_tokens_are_left_out_and_small_ones_counted():
    model = QuickTopics()
    shares = np.array([0.6, 0.3985, 0.0, 0.0008, 0.0007])
    model.topic_word_ = np.full((5, 3), 1 / 3) + np.array([0.1, 0, -0.1])
    model.components_, model.topic_weight_ = 100 * model.topic_word_, shares
    lines = topic_lines(model).splitlines()
    assert [line.split()[0] for line in lines] == ["topic", "0", "1", "2"]
    assert lines[-1] == "2 more with 0.1% together"
    model.topic_weight_ = np.array([0.6, 0.3993, 0.0, 0.0, 0.0007])
    assert [line.split()[0] for line in topic_lines(model).splitlines()] == ["topic", "0", "1", "4"]


def test_the_number_of_topics_is_told_with_its_interval(folder, tmp_path):
    model = tmp_path / "model.skops"
    first = run(folder, "--model", "hdp", "--sweeps", 30, "-o", model).stdout.splitlines()[0]
    loaded = pluri.io.load(model)
    low, high = loaded.n_large_topics_interval_
    assert first.startswith(
        f"{loaded.n_large_topics_} topics with 1 % or more of the tokens (95 % of the draws: {low} to {high})"
    )


def test_topics_are_printed_before_anything_is_written(quick, folder, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise OSError("the disc is full")

    monkeypatch.setattr(pluri.io, "save", fail)
    result = run(folder, "-k", 2, "-o", tmp_path / "model.skops", code=1)
    assert "puck" in result.stdout
    assert "the disc is full" in result.stderr


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a folder that cannot be written")
def test_a_folder_that_cannot_be_written_is_found_before_the_fit(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    result = run(tmp_path / "nothing", "-o", tmp_path / "closed" / "model.skops", code=2)
    assert "must lie in a folder that can be written" in sentence(result)


def test_a_trial_file_is_not_left_behind(tmp_path, monkeypatch):
    check_output(tmp_path / "model.skops", force=False)
    assert list(tmp_path.iterdir()) == []

    def refuse(*arguments, **options):
        raise PermissionError("no")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UsageError, match="--report must lie in a folder that can be written"):
        check_output(tmp_path / "page.html", force=False, option="--report")


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_shares_are_those_of_the_model_and_the_same_when_it_is_applied(folder, tmp_path):
    model, first, second = (tmp_path / name for name in ("model.skops", "first.csv", "second.csv"))
    (tmp_path / "stop").write_text("referee")
    run(folder, "-k", 2, "--inference", "vb", "--ngrams", 2, "--stop-words", tmp_path / "stop", "--max-share", 1,
        "-o", model, "--shares", first)  # fmt: skip
    loaded = pluri.io.load(model)
    assert {"puck goal", "the"} <= set(loaded.vocabulary_)
    corpus = read_corpus(str(folder), Fields())
    counts, words = count_words(corpus.texts, WordChoice(5, 1.0, 20_000, str(tmp_path / "stop"), 2))
    assert list(words) == list(loaded.vocabulary_)
    rows = rows_of(first)
    assert [row["document"] for row in rows] == corpus.names
    assert [row["title"] for row in rows] == corpus.titles
    found = [[float(row["topic 0"]), float(row["topic 1"])] for row in rows]
    np.testing.assert_allclose(found, loaded.transform(counts), atol=1e-6)
    (tmp_path / "stop").unlink()  # all that is needed is in the file of the model
    result = run(folder, "--apply", model, "--shares", second)
    assert result.stdout == ""
    assert second.read_text() == first.read_text()
    assert run(folder, "--apply", model).stdout == first.read_text()


def test_a_model_is_applied_to_documents_with_unknown_words(quick, folder, tmp_path, monkeypatch):
    model = tmp_path / "model.skops"
    run(folder, "-k", 2, "-o", model)
    monkeypatch.setattr(pluri.io, "load", partial(pluri.io.load, trusted=[QuickTopics]))
    lines = [{"text": "PUCK on the ice", "id": "a"}, {"text": "violin"}, {"text": ""}, {"text": "Moon rocket cello"}]
    stdin = "\n".join(map(json.dumps, lines))
    result = run("-", "--apply", model, "--id-field", "id", "--json", stdin=stdin)
    report = json.loads(result.stdout)
    assert [(row["document"], row["title"]) for row in report["rows"]] == [("a", "a"), ("4", "Moon rocket cello")]
    first, second = (np.argmax(row["shares"]) for row in report["rows"])
    assert first != second
    assert "2 documents left out: 1 without text, 1 without any word that is kept" in result.stderr
    known = sum(word in pluri.io.load(model).vocabulary_ for word in ("puck", "ice", "moon", "rocket"))
    assert f"{6 - known} words of 6 ({(6 - known) / 6:.1%}) it does not know" in result.stderr
    assert (report["words"], report["unknown_words"], report["tokens"]) == (6, 6 - known, known)
    assert "words that the model knows" in run("-", "--apply", model, stdin='{"text": "cello"}', code=1).stderr


def test_only_topic_models_are_applied(folder, tmp_path):
    pluri.io.save(GaussianMixture(2), tmp_path / "mixture.skops")
    result = run(folder, "--apply", tmp_path / "mixture.skops", code=2)
    assert "--apply must name a topic model, got GaussianMixture" in sentence(result)
    pluri.io.save(LatentDirichletAllocation(2), tmp_path / "bare.skops")
    assert "that knows its words" in sentence(run(folder, "--apply", tmp_path / "bare.skops", code=2))


def test_other_commands_point_to_this_one(folder, tmp_path):
    model = tmp_path / "model.skops"
    run(folder, "-k", 2, "--sweeps", 20, "-o", model)
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    invoke = partial(CliRunner().invoke, application, catch_exceptions=False)
    fit = ["fit", "LatentDirichletAllocation", str(tmp_path / "data.csv"), "-o", str(tmp_path / "other.skops")]
    failed = invoke(fit)
    assert failed.exit_code == 2
    assert "see pluri topics" in sentence(failed)
    assert "see pluri topics --apply" in invoke(["predict", str(model), str(tmp_path / "data.csv")]).stderr
    shown = invoke(["inspect", str(model)]).stdout
    assert "coherence" not in shown
    assert "counting: stop words english, n-grams 1" in shown
    assert "topic   share    NPMI  words" in shown
    assert "puck" in shown
    listed = invoke(["models"]).stdout
    assert "Topics (fitted by pluri topics)" in listed
    assert listed.index("Topics (fitted") < listed.index("HDPTopicModel  ")


def test_flat_topics_are_found_by_the_model_of_the_library(folder, tmp_path):
    model = tmp_path / "model.skops"
    run(folder, "-k", 2, "--sweeps", 50, "-o", model, "--seed", 1)
    loaded = pluri.io.load(model)
    assert (type(loaded).__name__, loaded.inference, loaded.doc_topic_prior) == (
        "LatentDirichletAllocation",
        "gibbs",
        "learn",
    )
    assert {frozenset(words) for words in loaded.top_words(5)} == {frozenset(SPORT), frozenset(SPACE)}
    again = LatentDirichletAllocation(
        2,
        inference="gibbs",
        doc_topic_prior="learn",
        topic_word_prior="learn",
        n_warmup=40,
        n_draws=10,
        thin=1,
        random_state=1,
    )
    counts, _ = count_words(read_corpus(str(folder), Fields()).texts, WordChoice())
    np.testing.assert_array_equal(again.fit(counts).topic_word_, loaded.topic_word_)


def test_a_tree_is_printed_as_a_tree(folder, tmp_path):
    page = tmp_path / "page.html"
    result = run(folder, "--model", "hlda", "--sweeps", 30, "-r", page)
    assert result.stdout.startswith("[0] ")
    assert "└── [" in result.stdout
    assert 'id="view-graph"' in page.read_text()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_from_the_terminal_keeps_the_topics_so_far(folder, tmp_path):
    model, page = tmp_path / "model.skops", tmp_path / "page.html"
    settings = ("n_warmup=5", "n_draws=50000000", "thin=1", "verbose=2")
    command = [sys.executable, "-m", "pluri", "topics", folder, "-k", 2, "-o", model, "-r", page]
    command += [part for setting in settings for part in ("--set", setting)]
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        found = re.search(r"iteration\s+(\d+)/", line)
        if found and int(found[1]) > 10:
            break
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "these are the topics so far" in errors
    assert len(output.splitlines()) == 3
    assert pluri.io.load(model).topic_word_.shape[0] == 2
    assert page.stat().st_size > 10_000


def test_coherence_is_that_of_the_words_that_a_topic_has():
    from types import SimpleNamespace

    import numpy as np
    from scipy import sparse

    from pluri.cli.topics.learning import coherence_of_topics as _coherence

    counts = sparse.csr_matrix(np.repeat([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]], 5, axis=0))
    words = [["0", "1"], ["2", "3", "4"], ["2"]]
    told = SimpleNamespace(top_words=lambda n_words, feature_names: words)
    np.testing.assert_allclose(_coherence(told, counts), [1.0, 1.0, 0.0])  # always together; a single word
