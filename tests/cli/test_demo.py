"""The demonstration: its sentences follow from its numbers, and its files are what they are said to be."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.cli.demo import (
    collapsed_fits,
    diverse_selection,
    index_page,
    missing_values,
    number_of_clusters,
    series_forecast,
    topic_page,
)
from pluri.cli.demo.command import PARTS
from pluri.cli.demo.part import Part


def is_a_large_coloured_image(file):
    pixels = imread(file)
    return min(pixels.shape[:2]) > 500 and len(np.unique(pixels[::5, ::5].reshape(-1, pixels.shape[2]), axis=0)) > 30


@pytest.fixture(scope="module")
def collapsed(tmp_path_factory):
    return collapsed_fits.show(tmp_path_factory.mktemp("demo") / "fits.png", seed=3, n_fits=4)


def test_the_flagged_fits_are_those_with_a_low_determinant_and_only_they_are_fitted_again(collapsed):
    numbers = collapsed.numbers
    assert numbers["flagged"] == [start for start, value in enumerate(numbers["log_det"]) if value < -3]
    assert list(numbers["repaired_accuracy"]) == list(numbers["repaired_log_det"]) == numbers["flagged"]
    assert len(numbers["accuracy"]) == 4
    assert is_a_large_coloured_image(collapsed.file)


def test_twins_have_a_determinant_of_zero_and_the_true_model_is_not_flagged():
    from pluri.priors import log_determinant

    transmat = collapsed_fits.true_model().transmat_.copy()
    assert log_determinant(transmat) > collapsed_fits.FLAG_BELOW
    transmat[2] = transmat[0]
    assert log_determinant(transmat) < collapsed_fits.FLAG_BELOW


def fits(log_det, accuracy, repaired_log_det, repaired_accuracy):
    flagged = [start for start, value in enumerate(log_det) if value < -3]
    return {
        "log_det": log_det,
        "flagged": flagged,
        "accuracy": accuracy,
        "repaired_log_det": dict(zip(flagged, repaired_log_det)),
        "repaired_accuracy": dict(zip(flagged, repaired_accuracy)),
    }


def test_the_sentences_about_the_fits_follow_the_numbers():
    told = " ".join(collapsed_fits.reading(fits([-1, -9, -5, -1], [0.9, 0.5, 0.6, 0.9], [-1, -1], [0.9, 0.9])))
    assert "2 of 4 fits are flagged" in told
    assert "label 50% to 60% of the data correctly, the others 90%." in told
    assert "none of them is flagged, and they label 90% correctly" in told
    told = " ".join(collapsed_fits.reading(fits([-9, -5], [0.5, 0.6], [-1, -8], [0.9, 0.5])))
    assert "the others" not in told
    assert "1 of them is flagged, and they label 50% to 90% correctly" in told
    assert "No fit was flagged" in collapsed_fits.reading(fits([-1.0], [0.9], [], []))[1]


def test_as_many_values_are_hidden_as_is_said_and_a_model_is_fitted_to_each_version(tmp_path):
    part = missing_values.show(tmp_path / "missing.png", seed=5, n_observations=300)
    # 600 values, each hidden with probability 0.3: six standard deviations, a false alarm in 5e8.
    assert part.numbers["missing"] == pytest.approx(0.3, abs=6 * np.sqrt(0.3 * 0.7 / 600))
    assert all(0 < part.numbers["accuracy"][way] <= 1 for way in missing_values.WAYS)
    assert is_a_large_coloured_image(part.file)
    for way, told in missing_values.WAYS.items():
        assert any(told in line and f"{part.numbers['accuracy'][way]:.0%}" in line for line in part.lines)


def test_the_versions_of_the_data_differ_in_the_hidden_values_only(monkeypatch):
    monkeypatch.setattr(missing_values, "N_STARTS", 1)  # it is about the data, not the fits
    data = missing_values.run(7, n_observations=200).data
    hidden = np.isnan(data["left"])
    for way in missing_values.WAYS:
        assert np.array_equal(data[way][~hidden], data["complete"][~hidden])
    means = np.array([data["complete"][~hidden[:, column], column].mean() for column in range(2)])
    assert np.allclose(data["filled"], np.where(hidden, means, data["complete"]))


def test_the_posterior_of_the_number_of_clusters_is_told_and_drawn(tmp_path):
    part = number_of_clusters.show(tmp_path / "clusters.png", seed=2, n_timed=500)
    posterior = np.array(part.numbers["posterior"])
    assert posterior.sum() == pytest.approx(1.0)
    assert f"it says {posterior.argmax()} with probability {posterior.max():.2f}" in part.lines[0]
    assert part.numbers["times_scikit_learn"] > 0
    assert is_a_large_coloured_image(part.file)


def test_gaps_and_futures_are_compared_with_what_happened(tmp_path):
    """Over 40 seeds the share within the intervals was .89 on average with a deviation of .03."""
    part = series_forecast.show(tmp_path / "series.png", seed=4)
    numbers = part.numbers
    assert 0.3 < numbers["error_in_gap"] < numbers["error_of_straight_line"]
    assert numbers["error"] < numbers["error_of_last_value"]
    assert numbers["covered"] > 0.6
    assert f"{numbers['covered']:.0%} of the values" in part.lines[1]
    assert is_a_large_coloured_image(part.file)


@pytest.mark.parametrize("seed", range(2))
def test_the_diverse_points_are_different_and_from_more_groups_than_chance_finds(seed, tmp_path):
    choice = diverse_selection.run(seed)
    assert len(set(choice.diverse.tolist())) == 10
    at_random = np.mean([choice.n_groups(rows) for rows in choice.random])
    # The expected number of groups in ten rows drawn without replacement, by inclusion and exclusion.
    n, sizes = len(choice.groups), np.array(diverse_selection.SIZES)
    missed = np.prod([(n - sizes - taken) / (n - taken) for taken in range(10)], axis=0)
    assert at_random == pytest.approx(10 - missed.sum(), abs=6 * 1.5 / np.sqrt(len(choice.random)))
    assert choice.n_groups(choice.diverse) > 10 - missed.sum() + 2
    diverse_selection.draw(choice, tmp_path / "points.png")
    assert is_a_large_coloured_image(tmp_path / "points.png")


def test_the_sentence_about_the_selection_follows_the_numbers():
    numbers = {"n_points": 571, "groups_found": 9, "groups_found_at_random": [4, 5, 7, 4]}
    told = diverse_selection.reading(numbers)[0]
    assert "are from 9 groups; 10 at random from 5.0 on average, at most 7 in 4 tries" in told


@pytest.fixture(scope="module")
def docstrings():
    return topic_page.docstrings()


def test_the_texts_are_prose_without_code_and_references(docstrings):
    titles, texts = docstrings
    assert len(titles) == len(texts) > 500
    assert "sequences.GaussianHMM" in titles
    assert all(len(text) >= topic_page.LEAST_CHARACTERS for text in texts)
    assert not any(">>>" in text or ":math:" in text or "References\n-" in text for text in texts)


def test_the_page_has_every_topic_and_the_terminal_names_them(docstrings, monkeypatch, tmp_path):
    titles, texts = docstrings
    monkeypatch.setattr(topic_page, "docstrings", lambda: (titles[::6], texts[::6]))
    part = topic_page.show(tmp_path / "topics.html", seed=1)
    topics = part.numbers["topics"]
    assert len(topics) == topic_page.N_TOPICS
    assert sum(topic["share"] for topic in topics) == pytest.approx(1.0, abs=1e-6)
    page = part.file.read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    for topic in topics:
        assert any(" ".join(topic["words"]) in line and topic["example"] in line for line in part.lines)
        assert " ".join(topic["words"][:4]) in page


MODULES = {
    "collapsed_fits": collapsed_fits,
    "missing_values": missing_values,
    "number_of_clusters": number_of_clusters,
    "series_forecast": series_forecast,
    "diverse_selection": diverse_selection,
    "topic_page": topic_page,
}


@pytest.fixture
def told(monkeypatch):
    """Parts that have something to tell without any work."""
    for name, module in MODULES.items():
        lines = [f"Words about {name}. " + "More words. " * 20, "  a line that is laid out already" + 10 * " wide"]

        def show(path, seed, lines=lines):
            path.write_text("done")
            return Part(lines, {"seed": seed}, path)

        monkeypatch.setattr(module, "show", show)


def test_the_command_goes_through_all_parts_in_order_and_says_where_the_files_are(told, tmp_path):
    folder = tmp_path / "new" / "folder"
    result = CliRunner().invoke(application, ["demo", "-o", str(folder)], catch_exceptions=False)
    assert result.exit_code == 0
    assert list(MODULES) == list(PARTS)
    assert {path.name for path in folder.iterdir()} == {*(module.FILE for module in MODULES.values()), index_page.FILE}
    page = (folder / index_page.FILE).read_text(encoding="utf-8")
    assert all(f"Words about {name}" in page for name in PARTS)
    assert f"href='{topic_page.FILE}'" in page
    places = []
    for number, (name, heading) in enumerate(PARTS.items(), 1):
        places += [result.stdout.index(f"{number}. {heading}"), result.stdout.index(f"Words about {name}")]
        places += [result.stdout.index(f"-> {folder / MODULES[name].FILE}")]
    assert places == sorted(places)
    prose = [line for line in result.stdout.splitlines() if not line.startswith(("   -> ", "     "))]
    assert max(map(len, prose)) <= 80
    assert "     a line that is laid out already" + 10 * " wide" in result.stdout


def test_one_part_can_be_shown_alone(told, tmp_path):
    result = CliRunner().invoke(
        application, ["demo", "series_forecast", "-o", str(tmp_path), "--seed", "7"], catch_exceptions=False
    )
    assert result.exit_code == 0
    assert "Words about series_forecast" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == [series_forecast.FILE]


def test_the_numbers_are_json_when_asked_for(told, tmp_path):
    result = CliRunner().invoke(application, ["demo", "-o", str(tmp_path), "--seed", "4", "--json"])
    numbers = json.loads(result.stdout)
    assert list(numbers) == list(PARTS)
    assert numbers["topic_page"]["seed"] == 4
    assert numbers["topic_page"]["reading"][0].startswith("Words about topic_page")


@pytest.mark.slow
def test_the_whole_demonstration_writes_its_files(tmp_path):
    result = CliRunner().invoke(application, ["demo", "-o", str(tmp_path), "--seed", "1"], catch_exceptions=False)
    assert result.exit_code == 0
    assert all((tmp_path / module.FILE).stat().st_size > 10_000 for module in MODULES.values())


def test_options_before_the_comparison_are_refused_instead_of_ignored():
    result = CliRunner().invoke(application, ["demo", "--seed", "3", "prior"])
    assert result.exit_code == 2
    assert "--seed must stand after" in result.output
