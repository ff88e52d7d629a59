"""``pluri topics`` with dates, ratings, seed words, other languages, updates and streams."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import pluri.io
from pluri.cli.application import application
from pluri.cli.topics import streaming
from pluri.cli.topics.reading import Fields, read_corpus

SPORT = ["puck", "goal", "ice", "skate", "referee"]
SPACE = ["orbit", "rocket", "moon", "launch", "crew"]
FOOD = ["bread", "butter", "cheese", "apple", "honey"]


def learn(*arguments, **options):
    """The command, with words that most documents have."""
    return run(*arguments, "--max-share", 1, **options)


def run(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(application, ["topics", *map(str, arguments)], input=stdin, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def sentence(result):
    return " ".join(re.sub(r"[│╭╰─╮╯]", " ", result.stderr).split())


def write(path, n_weeks=16, new_from=99, themes=(SPORT, SPACE), per_week=12, seed=0):
    """Tickets of weeks; from one week on half of them are about food."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for week in range(n_weeks):
            for _ in range(per_week):
                kind = int(rng.integers(len(themes)))
                words = FOOD if week >= new_from and rng.random() < 0.5 else themes[kind]
                day = np.datetime64("2024-01-01") + 7 * week + int(rng.integers(7))
                record = {"text": " ".join(rng.choice(words, 20)), "day": str(day), "stars": 1.0 + 3 * kind}
                record["mood"] = ["glad", "sad"][kind]
                print(json.dumps(record), file=file)
    return path


def test_dates_tell_what_emerges_and_the_page_shows_it(tmp_path):
    tickets = write(tmp_path / "tickets.jsonl", new_from=12)
    page, shares = tmp_path / "page.html", tmp_path / "shares.csv"
    # Seed words make the topics the same whatever the random numbers.
    seeds = ["--seed-words", "puck goal ice", "--seed-words", "orbit rocket moon", "--seed-words", "bread butter"]
    options = ["-k", 3, "--sweeps", 60, *seeds, "--date", "day"]
    result = learn(tickets, *options, "-r", page, "--shares", shares, "--json")
    told = json.loads(result.stdout)["over_time"]
    (emerging,) = told["emerging"]
    words = {row["topic"]: set(row["words"]) for row in json.loads(result.stdout)["topics"]}
    assert words[emerging["topic"]] >= set(FOOD)
    assert emerging["since"] >= "2024-03-25"
    assert told["period"] == "week"
    assert len(told["starts"]) == 16
    np.testing.assert_allclose(np.sum(told["shares"], axis=1), 1)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])
    assert data["time"]["changes"][0]["topic"] == emerging["topic"]
    assert len(data["index"]["titles"]) == 192
    assert data["index"]["days"][0] is not None
    with shares.open(newline="") as file:
        assert next(csv.DictReader(file))["date"].startswith("2024-01-0")
    printed = learn(tickets, *options).stdout
    assert f"emerging: topic {emerging['topic']}" in printed
    assert "chance of a false alarm, all topics together: 5%" in printed


def test_ratings_and_classes_lead_topics(tmp_path):
    tickets = write(tmp_path / "tickets.jsonl")
    result = learn(tickets, "-k", 2, "--sweeps", 40, "--rating", "stars", "--held-out", 0.2, "--json")
    told = json.loads(result.stdout)
    ratings = sorted(float(row["rating"]) for row in told["topics"])
    np.testing.assert_allclose(ratings, [1, 4], atol=0.3)
    assert told["held-out rating error"] < 0.5 < told["without topics"]
    result = learn(tickets, "-k", 2, "--sweeps", 40, "--rating", "mood", "--held-out", 0.2)
    assert "held-out accuracy" in result.stdout
    assert {"glad", "sad"} <= set(result.stdout.split())


def test_seed_words_lead_the_first_topics(tmp_path):
    tickets = write(tmp_path / "tickets.jsonl")
    result = learn(
        tickets, "-k", 2, "--sweeps", 40, "--seed-words", "moon rocket violin", "--seed-words", "puck", "--json"
    )
    topics = {row["topic"]: set(row["words"]) for row in json.loads(result.stdout)["topics"]}
    assert topics[0] >= set(SPACE)
    assert "seed words that are not among the words of the documents: violin" in result.stderr
    assert "got none that is kept" in sentence(run(tickets, "-k", 2, "--seed-words", "violin", code=2))


def test_titles_are_first_lines_cut(tmp_path):
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "a.txt").write_text("word " * 60 + "\nsecond line")
    (folder / "b.txt").write_text("\n\nShort\nand more")
    corpus = read_corpus(str(folder), Fields())
    assert corpus.titles[0].startswith("word word")
    assert corpus.titles[0].endswith("…")
    assert len(corpus.titles[0]) <= 80
    assert (corpus.titles[1], corpus.names[1]) == ("Short", "b.txt")
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "First line\nSecond line"}))
    assert read_corpus(str(tmp_path / "a.jsonl"), Fields()).titles == ["First line"]


def test_languages_patterns_and_phrases(tmp_path):
    pytest.importorskip("stopwordsiso")
    rng = np.random.default_rng(0)
    themes = [["hund", "katze", "maus"], ["schnee", "wind", "regen"]]
    texts = ["und der die " + " ".join(rng.choice(themes[n % 2], 12)) + " new york 3d" for n in range(60)]
    corpus = tmp_path / "texte.jsonl"
    corpus.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    model = tmp_path / "model.skops"
    run(corpus, "-k", 2, "--sweeps", 20, "--stop-words", "german,en", "--phrases", "--max-share", 1, "-o", model)
    words = set(pluri.io.load(model).vocabulary_)
    assert words == {"hund", "katze", "maus", "schnee", "wind", "regen", "new york"}
    run(corpus, "-k", 2, "--sweeps", 20, "--token-pattern", r"\d\w", "--max-share", 1, "-o", model, "--force")
    assert set(pluri.io.load(model).vocabulary_) == {"3d"}
    assert "--token-pattern must be a regular expression" in sentence(run(corpus, "--token-pattern", "(", code=2))
    assert "--segmenter must be one of" in sentence(run(corpus, "--segmenter", "spacy", code=2))
    corpus.write_text("\n".join(json.dumps({"text": "我喜欢北京" * 3}) for _ in range(20)))
    result = run(corpus, "-k", 2, "--sweeps", 5, "--max-share", 1)
    assert "was cut into pairs of characters; --segmenter jieba" in result.stderr


def test_a_model_goes_on_week_after_week_and_says_when_documents_do_not_fit(tmp_path):
    first = write(tmp_path / "first.jsonl", n_weeks=20)
    week = write(tmp_path / "week.jsonl", n_weeks=3, seed=1)
    strange = write(tmp_path / "strange.jsonl", n_weeks=3, seed=2, themes=(SPORT + FOOD,))
    model, second = tmp_path / "model.skops", tmp_path / "second.skops"
    learn(first, "-k", 2, "--sweeps", 40, "--held-out", 0.2, "-o", model)
    result = run(week, "--update", model, "--forget", 0.1, "-o", second)
    assert "the documents are like those before (chance of a false alarm: 5% in 52 looks)" in result.stdout
    loaded, before = pluri.io.load(second), pluri.io.load(model)
    assert loaded.n_documents_seen_ == pytest.approx(0.9 * before.n_documents_seen_ + 36)
    assert len(pluri.io.read_info(second).notes["monitor"]["history"]["unknown"]) == 2
    third = tmp_path / "third.skops"
    result = run(strange, "--update", second, "-o", third, code=3)
    assert "ALARM: " in result.stdout
    assert "more words are unknown" in result.stdout
    assert "nothing was learned" in result.stderr
    assert not third.exists()
    told = json.loads(run(strange, "--update", second, "-o", third, "--despite-alarm", "--json").stdout)
    assert (told["alarm"], told["learned"], told["output"]) == (True, True, str(third))


def test_a_stream_gives_the_topics_shares_and_trends_of_documents_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "BATCH", 50)
    tickets = write(tmp_path / "tickets.jsonl", n_weeks=40, new_from=36)
    model, page, shares, plain = (tmp_path / name for name in ("m.skops", "p.html", "s.csv", "plain.csv"))
    options = ["-k", 3, "--date", "day", "--held-out", 0.1, "--set", "batch_size=64"]
    result = learn(tickets, *options, "--stream", "-o", model, "-r", page, "--shares", shares)
    loaded = pluri.io.load(model)
    assert loaded.inference == "svi"
    assert "held-out perplexity" in result.stdout
    found = [set(words) for words in loaded.top_words(5)]
    assert sum(words in (set(SPORT), set(SPACE)) for words in found) >= 2
    run(tickets, "--apply", model, "--date", "day", "--shares", plain)
    assert plain.read_text() == shares.read_text()
    from_pipe = learn("-", *options, "--stream", "--json", stdin=tickets.read_text())
    assert json.loads(from_pipe.stdout)["documents"] + 48 == pytest.approx(480, abs=48)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])
    assert len(data["index"]["titles"]) == 480
    assert len(data["time"]["names"]) == 40
    assert all(len(node["documents"]) for node in data["nodes"] if node["weight"] > 0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.jsonl", "--date", "when"], "--date must name a field of a.jsonl, got 'when': there are text, day"),
        (["folder", "--date", "day"], "--date must name a field of records, got 'day' for 'folder', which has none"),
        (["a.jsonl", "--date", "text"], "--date must be dates, such as 2024-03-31, got"),
        (["a.jsonl", "--period", "fortnight"], "--period must be one of day, week"),
        (["a.jsonl", "--false-alarms", "0"], "--false-alarms must lie between 0 and 1"),
        (["a.jsonl", "--forget", "0.1"], "--forget must be given together with --update"),
        (["a.jsonl", "--rating", "stars", "--model", "hdp"], "--rating must be given with --model lda"),
        (["a.jsonl", "--seed-words", "ice", "--model", "hlda"], "--seed-words must be given with --model lda"),
        (
            ["a.jsonl", "--stream", "--inference", "gibbs"],
            "--stream must be given with --model lda and --inference svi",
        ),
        (["a.jsonl", "--update", "m.skops", "-k", "3"], "--topics must not be given together with --update"),
    ],
)
def test_mistakes_get_a_sentence(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    write(tmp_path / "a.jsonl", n_weeks=3)
    result = CliRunner().invoke(application, ["topics", *arguments], catch_exceptions=False)
    assert result.exit_code in (1, 2)
    assert message in sentence(result)
