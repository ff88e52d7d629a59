"""``pluri edit-topics`` and ``pluri topics --topics auto``: fewer, named and merged topics from the shell."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.io import load, read_info, save
from pluri.mixtures import GaussianMixture
from pluri.topics import LatentDirichletAllocation


def run(*arguments, code=0):
    result = CliRunner().invoke(application, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def said(result):
    """What was written to stderr, without lines and boxes."""
    return " ".join(result.stderr.replace("│", " ").split())


@pytest.fixture
def saved(tmp_path):
    counts = np.random.default_rng(0).poisson(1.0, (30, 12))
    model = LatentDirichletAllocation(5, max_iter=100, random_state=0).fit(counts)
    model.name_words([f"word{column}" for column in range(12)])
    save(model, tmp_path / "model.skops", notes={"corpus": "letters", "coherence": [0.1] * 5})
    return model, tmp_path / "model.skops"


def test_edits_of_a_file_are_applied_kept_and_shown(saved, tmp_path):
    model, path = saved
    edits = {"topics": 5, "edits": [{"edit": "merge", "topics": [0, 3], "name": "both"}, {"edit": "drop", "topic": 1}]}
    (tmp_path / "edits.json").write_text(json.dumps(edits))
    out, page = tmp_path / "edited.skops", tmp_path / "edited.html"
    result = run("edit-topics", path, tmp_path / "edits.json", "-o", out, "-r", page)
    assert "both: " in result.stdout
    edited = load(out)
    assert [edit["edit"] for edit in edited.edits_] == ["merge", "drop"]
    assert len(edited.topic_word_) == 3
    assert read_info(out).notes == {"corpus": "letters"}
    assert "both" in page.read_text()
    back = tmp_path / "back.skops"
    run("edit-topics", out, "--undo", 2, "-o", back)
    np.testing.assert_array_equal(load(back).components_, model.components_)


def test_topics_are_reduced_and_told_as_a_tree(saved):
    _, path = saved
    result = run("edit-topics", path, "--reduce", 3, "--tree")
    assert result.stdout.startswith("TopicTree: 3 topics")
    assert "nothing was written" in result.stderr
    told = json.loads(run("edit-topics", path, "--reduce", 2, "--tree", "--json").stdout)
    assert len(told["topics"]) == 2
    assert told["edits"][0]["edit"] == "reduce"
    assert told["tree"]["topics"][0] == [0, 1]


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ([{"edit": "drop", "topic": 7}], "edit 1 (drop): topics must be whole numbers from 0 to 4, got 7"),
        ([{"edit": "split", "topic": 1}], "can be split only with documents"),
        ({"topics": 9, "edits": []}, "must be of a model with 5 topics"),
        ([{"edit": "explode"}], "edit 1 must be one of rename, merge"),
    ],
)
def test_wrong_edits_are_one_sentence(saved, tmp_path, edits, told):
    _, path = saved
    (tmp_path / "edits.json").write_text(json.dumps(edits))
    result = run("edit-topics", path, tmp_path / "edits.json", "-o", tmp_path / "new.skops", code=2)
    assert told in said(result)
    assert not (tmp_path / "new.skops").exists()


def test_other_models_have_no_topics(tmp_path):
    save(GaussianMixture(2, random_state=0).fit(np.random.default_rng(0).normal(size=(20, 2))), tmp_path / "m.skops")
    assert "must be a topic model, got GaussianMixture" in said(run("edit-topics", tmp_path / "m.skops", code=2))


def test_the_number_of_topics_is_found_and_said(tmp_path):
    """Three subjects without a common word: every fit of three topics or more finds them again."""
    rng = np.random.default_rng(0)
    subjects = [[f"{kind}{letter}" for letter in "abcdefghijkl"] for kind in ("ice", "law", "moon")]
    lines = [" ".join(rng.choice(subjects[row % 3], 30)) for row in range(150)]
    (tmp_path / "texts.txt").write_text("\n".join(lines))
    result = run("topics", tmp_path / "texts.txt", "--topics", "auto", "--sweeps", 40, "-o", tmp_path / "m.skops")
    assert "3 topics are recommended" in said(result)
    assert load(tmp_path / "m.skops").n_components == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--topics", "many"], "--topics must be a whole number of at least 1, or auto, got 'many'"),
        (["--topics", "0"], "--topics must be a whole number of at least 1, or auto, got '0'"),
        (["--topics", "auto", "--model", "hdp"], "--topics must not be given for hdp"),
        (["--topics", "auto", "--inference", "vb"], "--topics auto must be given with --inference gibbs"),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused(tmp_path, arguments, told):
    (tmp_path / "texts.txt").write_text("one two\n" * 9)
    assert told in said(run("topics", tmp_path / "texts.txt", *arguments, code=2))
