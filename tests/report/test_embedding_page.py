"""The page with a map: what is in it, what is refused, and that nothing of it runs or is loaded."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re

import numpy as np
import pytest
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap

from pluri.report import embedding_report, model_report
from pluri.report.embedding_page import COLORS
from pluri.report.pictures import Range, png, range_of, thumbnails

BAD = "</script><img src=x onerror=\"document.documentElement.dataset.ran='yes'\"><!--"


class GivenImages:
    """A fitted model whose points have several images."""

    def __init__(self, images, proportions):
        self.images_, self.proportions_ = images, proportions

    def fit(self, X):
        return self

    def get_params(self, deep=True):
        return {"n_images": self.images_.shape[1]}


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def numbers_of(text, kind="<f4"):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def coordinates_of(data):
    points = data["points"]
    packed = numbers_of(points["coordinates"]).reshape(points["axes"], points["n"], points["images"])
    return np.moveaxis(packed, 0, 2) * points["unit"] + points["middle"]


def pictures_of(sprites):
    """Every picture of a sheet, decoded by another library."""
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(sprites["sheet"].split(",")[1]))))
    height, width = sprites["height"], sprites["width"]
    places = (divmod(number, sprites["columns"]) for number in range(sprites["count"]))
    return np.array([sheet[row * height :][:height, column * width :][:, :width] for row, column in places])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(40, 2), (40, 5), (30, 1), (20, 3, 2)])
def test_the_page_holds_the_coordinates(rng, shape):
    coordinates = rng.normal([1e4] * shape[-1], 5.0, size=shape)
    found = coordinates_of(data_of(embedding_report(coordinates)))
    np.testing.assert_allclose(found, coordinates.reshape(shape[0], -1, shape[-1]), atol=1e-5)


def test_of_many_coordinates_the_first_ten_are_there_and_the_page_says_how_many_there_are(rng):
    coordinates = rng.normal(size=(20, 14))
    page = embedding_report(coordinates)
    np.testing.assert_allclose(coordinates_of(data_of(page))[:, 0], coordinates[:, :10], atol=1e-6)
    assert "<dt>coordinates</dt><dd>14</dd>" in page
    assert page.count("<option value=") == 20


def test_models_with_images_and_models_with_an_embedding_are_read(rng):
    images, shares = rng.normal(size=(12, 2, 2)), rng.dirichlet([1, 1], 12)
    page = embedding_report(GivenImages(images, shares))
    np.testing.assert_allclose(coordinates_of(data_of(page)), images, atol=1e-6)
    np.testing.assert_allclose(numbers_of(data_of(page)["points"]["proportions"]), shares.ravel(), atol=1e-6)
    assert 'id="lines"' in page
    X = rng.normal(size=(30, 4))
    isomap = Isomap(n_neighbors=8).fit(X)
    page = embedding_report(isomap)
    np.testing.assert_allclose(coordinates_of(data_of(page))[:, 0], isomap.embedding_, atol=1e-5)
    assert "<title>Isomap: 30 points</title>" in page
    assert "n_neighbors" in page


def test_points_can_be_coloured_by_what_the_model_has_learned_of_them(rng):
    model = GivenImages(rng.normal(size=(12, 2, 2)), np.full((12, 2), 0.5))
    model.separation_, model.labels_ = rng.uniform(size=12), np.arange(12) % 3
    model._private_, model.other_ = np.zeros(12), np.zeros(5)
    columns = data_of(embedding_report(model))["columns"]
    assert [column["name"] for column in columns] == ["cluster", "separation"]
    np.testing.assert_array_equal(numbers_of(columns[0]["codes"], "u1"), model.labels_)
    assert data_of(embedding_report(model, columns={}))["columns"] == []


def test_the_report_of_any_model_is_a_map_if_it_is_an_embedding(rng, tmp_path):
    isomap = Isomap(n_neighbors=8).fit(rng.normal(size=(30, 4)))
    assert model_report(isomap, tmp_path / "map.html", title="Mine") == embedding_report(isomap, title="Mine")
    assert (tmp_path / "map.html").read_text(encoding="utf-8") == embedding_report(isomap, title="Mine")
    mixture = GivenImages(rng.normal(size=(5, 2, 2)), np.full((5, 2), 0.5))
    assert model_report(mixture) == embedding_report(mixture)


def test_columns_are_classes_or_numbers(rng):
    day = 1.7e9 + 60.0 * rng.permutation(50)
    columns = {
        "word": np.array(["b", "a", None, "a", "b"] * 10, dtype=object),
        "flag": np.arange(50) < 20,
        "few": np.tile([3, 10, 2, 3, 3], 10),
        "part": [0.5, float("nan"), 2.5, 1.5, -1.0] * 10,
        "time": day,
    }
    found = {
        column["name"]: column
        for column in data_of(embedding_report(rng.normal(size=(50, 2)), columns=columns))["columns"]
    }
    assert found["word"]["classes"] == ["a", "b"]
    assert numbers_of(found["word"]["codes"], "u1")[:5].tolist() == [1, 0, 3, 0, 1]  # 3 is missing, 2 the others
    assert found["flag"]["classes"] == ["False", "True"]
    assert found["few"]["classes"] == ["2", "3", "10"]
    assert numbers_of(found["few"]["codes"], "u1")[:5].tolist() == [1, 2, 0, 1, 1]
    for name in ("part", "time"):
        column = found[name]
        values = column["least"] + numbers_of(column["values"]) * (column["greatest"] - column["least"])
        np.testing.assert_allclose(values, columns[name], atol=1e-3)
    assert found["part"]["range"] == [-1.0, 2.5]


def test_of_many_classes_the_largest_have_colours(rng):
    names = [f"class {number:02}" for number in range(60) for _ in range(60 - number)]
    column = data_of(embedding_report(rng.normal(size=(len(names), 2)), columns={"c": names}))["columns"][0]
    assert column["classes"] == [f"class {number:02}" for number in range(36)]
    assert column["others"] == 24
    codes = numbers_of(column["codes"], "u1")
    assert (codes == 36).sum() == sum(60 - number for number in range(36, 60))


def test_a_few_extreme_values_do_not_use_up_the_colours(rng):
    values = np.append(rng.normal(size=400), 1e6)
    column = data_of(embedding_report(np.zeros((401, 2)), columns={"v": values}))["columns"][0]
    np.testing.assert_allclose(column["range"], np.quantile(values, [0.01, 0.99]))
    assert column["greatest"] == 1e6


def test_a_data_frame_is_a_table(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"kind": pandas.Categorical(["x", "y", "x"]), "size": [1.5, None, 2.5]})
    columns = data_of(embedding_report(rng.normal(size=(3, 2)), columns=frame))["columns"]
    assert [(column["name"], column["kind"]) for column in columns] == [("kind", "classes"), ("size", "numbers")]
    assert np.isnan(numbers_of(columns[1]["values"])[1])


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_come_back_from_the_sheet(rng, channels):
    pictures = rng.integers(0, 256, size=(23, 7, 5, channels)).astype(np.uint8)
    given = pictures[..., 0] if channels == 1 else pictures
    data = data_of(embedding_report(rng.normal(size=(23, 2)), images=given))
    np.testing.assert_array_equal(pictures_of(data["pictures"]), given)
    rows = data_of(
        embedding_report(rng.normal(size=(23, 2)), images=pictures.reshape(23, -1), picture_shape=(7, 5, channels))
    )
    assert rows["pictures"] == data["pictures"]


def test_a_png_is_read_by_another_library(rng):
    flat = np.zeros((9, 11, 1), dtype=np.uint8)
    smooth = np.linspace(0, 255, 9 * 11 * 3).reshape(9, 11, 3).astype(np.uint8)
    noise = rng.integers(0, 256, size=(1, 1, 3)).astype(np.uint8)
    for pixels in (flat, smooth, smooth.transpose(1, 0, 2), noise):
        read = np.asarray(Image.open(io.BytesIO(png(pixels))))
        np.testing.assert_array_equal(read.reshape(pixels.shape), pixels)


def test_large_pictures_are_averaged(rng):
    pictures = rng.uniform(size=(3, 128, 192, 1))
    small = thumbnails(pictures, Range(0.0, 1.0))
    assert small.shape == (3, 42, 64, 1)
    halves = thumbnails(pictures[:, :, :128], Range(0.0, 1.0))
    expected = pictures[:, :, :128].reshape(3, 64, 2, 64, 2, 1).mean(axis=(2, 4))
    np.testing.assert_allclose(halves / 255, expected, atol=0.5 / 255 + 1e-12)
    np.testing.assert_allclose(small.mean(axis=(1, 2)) / 255, pictures.mean(axis=(1, 2)), atol=1e-3)
    many = thumbnails(np.zeros((100, 60, 60, 1), dtype=np.uint8), Range(0.0, 255.0), most_pixels=10_000)
    assert many.shape == (100, 10, 10, 1)
    assert range_of(np.zeros((1, 2, 2, 1), dtype=np.uint8)) == (0.0, 255.0)


def test_rows_over_the_lattice_are_what_the_model_makes_there(rng):
    X = rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6))
    pca = PCA(2).fit(X)
    lattice = data_of(embedding_report(pca.transform(X), inverse=pca))["lattice"]
    (left, low), (right, high) = lattice["corners"]
    rows = numbers_of(lattice["rows"]).reshape(24, 24, 6)
    for row, column in [(0, 0), (3, 20), (23, 23)]:
        place = [left + (right - left) * column / 23, low + (high - low) * row / 23]
        np.testing.assert_allclose(rows[row, column], pca.inverse_transform([place])[0], rtol=1e-4, atol=1e-5)
    inside = pca.transform(X)
    assert (inside > [left, low]).all()
    assert (inside < [right, high]).all()


def test_other_coordinates_on_the_lattice_are_those_of_the_nearest_points():
    first = np.stack(np.meshgrid(np.linspace(0, 1, 24), np.linspace(0, 1, 24)), axis=-1).reshape(-1, 2)
    coordinates = np.column_stack([first, 7 + 0 * first[:, 0], first[:, 0] > 0.5])
    lattice = data_of(embedding_report(coordinates, inverse=lambda places: places))["lattice"]
    rows = numbers_of(lattice["rows"]).reshape(24, 24, 4)
    np.testing.assert_allclose(rows[..., 2], 7)
    np.testing.assert_array_equal(rows[:, :10, 3], 0)
    np.testing.assert_array_equal(rows[:, 14:, 3], 1)


def test_cuts_that_were_asked_for_are_made_exactly(rng):
    coordinates = rng.normal(size=(9, 3))
    inverse = lambda places: places**2 @ np.ones((3, 4))  # noqa: E731
    cuts = data_of(embedding_report(coordinates, inverse=inverse, cuts=[(0, 5), (7, 2)]))["cuts"]
    rows = numbers_of(cuts["rows"]).reshape(2, 9, 4)
    for pair, (begin, end) in enumerate([(0, 5), (7, 2)]):
        for step in range(9):
            place = coordinates[begin] + step / 8 * (coordinates[end] - coordinates[begin])
            np.testing.assert_allclose(rows[pair, step], (place**2).sum(), rtol=1e-5)


def test_rows_too_long_to_be_drawn_are_no_reason_to_refuse_a_map(rng):
    class Model:
        embedding_ = rng.normal(size=(10, 2))
        inverse_transform = staticmethod(lambda places: np.zeros((len(places), 600)))

        def fit(self, X):
            return self

    assert data_of(embedding_report(Model()))["lattice"] is None
    with pytest.raises(ValueError, match="picture_shape must be given for rows of more than 512 features"):
        embedding_report(Model().embedding_, inverse=Model())
    shown = data_of(embedding_report(Model(), picture_shape=(20, 30)))["lattice"]["pictures"]
    assert (shown["height"], shown["width"], shown["count"]) == (20, 30, 576)


def test_nothing_on_the_page_is_loaded_and_one_program_may_run(rng):
    page = embedding_report(
        rng.normal(size=(4, 2)), title=BAD, labels=[BAD] * 4, titles=[BAD] * 4, columns={BAD: [BAD, "a", "b", BAD]},
        facts={BAD: BAD},
    )  # fmt: skip
    assert page.count("<script") == 2  # the data and the program
    assert "<img" not in page
    assert "src=x" not in re.sub(r"&lt;img src=x|\\u003cimg src=x", "", page)
    assert not re.search(r"(src|href)=.?(https?:|//)", page)
    program = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert data_of(page)["labels"] == [BAD] * 4


def test_long_texts_are_cut_and_missing_ones_are_empty(rng):
    data = data_of(
        embedding_report(np.zeros((3, 2)), labels=["a" * 500, None, float("nan")], titles=["b\n  c", "", None])
    )
    assert data["labels"][0] == "a" * 119 + "…"
    assert data["labels"][1:] == ["", ""]
    assert data["titles"] == ["b c", "", ""]


@pytest.mark.parametrize(("n", "told"), [(0, "Map of 0 points"), (1, "Map of 1 point<")])
def test_maps_of_no_and_one_point_are_pages(n, told):
    page = embedding_report(np.zeros((n, 2)), labels=["a"] * n, columns={"c": np.zeros(n)}, images=np.zeros((n, 2, 2)))
    assert told in page
    assert ("There are no points" in page) == (n == 0)


VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
PAPER = {"light": "#f7f7f5", "dark": "#14181c"}


def linear(color):
    rgb = np.array([int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = np.clip(rgb, 0, 1) @ to_xyz.T / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


@pytest.mark.parametrize("paper", PAPER)
def test_colours_differ_for_every_kind_of_sight_and_from_the_paper(paper):
    colors = np.array([linear(color) for color in COLORS[paper]])
    for matrix in VISION.values():
        seen = lab(colors @ np.array(matrix).T)
        distance = np.linalg.norm(seen[:, None] - seen, axis=2)
        assert distance[np.triu_indices(len(seen), 1)].min() >= 14
    luminance, ground = (np.atleast_2d(c) @ [0.2126, 0.7152, 0.0722] for c in (colors, linear(PAPER[paper])))
    contrast = (np.maximum(luminance, ground) + 0.05) / (np.minimum(luminance, ground) + 0.05)
    assert contrast.min() >= 1.9


FLAT, TWICE = np.zeros((3, 2)), np.zeros((3, 2, 2))


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        (np.full((3, 2), np.nan), {}, ValueError, "coordinates must be finite, got NaN or infinity at point 0, and 3"),
        (np.array([[0, np.inf], [0, 0]]), {}, ValueError, "at point 0, and 1 such in all"),
        (np.full((3, 2), 1e200), {}, ValueError, r"coordinates must be numbers up to 1e\+150, got 1e\+200"),
        (np.zeros(3), {}, ValueError, r"got float64 of shape \(3,\)"),
        (np.zeros((3, 0)), {}, ValueError, r"got float64 of shape \(3, 0\)"),
        ([["a", "b"]], {}, ValueError, "got <U1 of shape"),
        (PCA(), {}, TypeError, "model must be fitted and have embedding_, or be an array of coordinates, got PCA"),
        (FLAT, {"labels": ["a"]}, ValueError, "labels must have one text for each of the 3 points, got 1"),
        (FLAT, {"titles": "abc"}, ValueError, r"points \(the heading of the page is title\), got 'abc'"),
        (FLAT, {"columns": [1]}, TypeError, "columns must be a mapping of names to columns or a data"),
        (FLAT, {"columns": {"c": [1, 2]}}, ValueError, r"columns\['c'\] must have one value for each of 3"),
        (FLAT, {"columns": {"c": [1.5, 2, 1e300]}}, ValueError, r"must hold numbers up to 1e\+150"),
        (FLAT, {"images": np.zeros((2, 4, 4))}, ValueError, "one picture for each of the 3 points, got 2"),
        (FLAT, {"images": np.zeros((3, 4))}, ValueError, r"images must be an array of numbers of shape"),
        (FLAT, {"images": np.full((3, 2, 2), np.nan)}, ValueError, "images must hold finite values"),
        (FLAT, {"images": np.zeros((3, 4)), "picture_shape": (3, 3)}, ValueError, "rows of 9 values"),
        (FLAT, {"picture_shape": (3,), "inverse": abs}, ValueError, r"picture_shape must be \(height, wid"),
        (FLAT, {"cuts": [(0, 1)]}, ValueError, "cuts must be given with a way back .* ndarray, which has"),
        (FLAT, {"cuts": [(0, 3)], "inverse": abs}, ValueError, "cuts must hold points from 0 to 2, got 0"),
        (FLAT, {"cuts": [0], "inverse": abs}, ValueError, "cuts must be pairs of points"),
        (FLAT, {"inverse": 3}, TypeError, "inverse must be a function or a model with inverse_transform"),
        (FLAT, {"inverse": lambda x: x[:1]}, ValueError, "a row of finite numbers for each of 576 places"),
        (TWICE, {"proportions": np.ones(3)}, ValueError, "one for each of 2 images of 3 points"),
        (TWICE, {"cuts": [(0, 1)], "inverse": abs}, ValueError, "got points with several images"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_said(given, options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        embedding_report(given, tmp_path / "map.html", **options)
    assert not list(tmp_path.iterdir())
