"""The map in a browser: what is drawn, and what the pointer, keys, the legend and the search do."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.decomposition import PCA

from pluri.report import embedding_report

BAD = (
    "</script><script>document.documentElement.dataset.ran='yes'</script>"
    "<img src=x onerror=\"document.documentElement.dataset.ran='yes'\">"
)
#: Events on the map, and the time until they are drawn.
TOOLS = """
    const html = document.documentElement, map = $('#map'), frame = map.getBoundingClientRect();
    const point = (kind, x, y, more = {}) => map.dispatchEvent(new PointerEvent(kind, {bubbles: true, cancelable: true,
        clientX: frame.left + x, clientY: frame.top + y, pointerId: 1, pointerType: 'mouse', button: 0, ...more}));
    const click = async (x, y) => { point('pointerdown', x, y); point('pointerup', x, y); await drawn(); };
    const drag = async (x, y, dx, dy) => { point('pointerdown', x, y);
        for (let k = 1; k <= 5; k++) point('pointermove', x + k * dx / 5, y + k * dy / 5);
        point('pointerup', x + dx, y + dy); await drawn(); };
    const wheel = async (x, y, by) => { map.dispatchEvent(new WheelEvent('wheel', {deltaY: by, bubbles: true,
        cancelable: true, clientX: frame.left + x, clientY: frame.top + y})); await drawn(); };
    const type = async (text) => { const input = $('#find'); input.value = text;
        input.dispatchEvent(new Event('input', {bubbles: true})); await new Promise((done) => setTimeout(done, 200)); };
    const drawn = async () => { await wait(); await wait(); };
    await drawn();
"""


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_all_points_are_drawn_and_text_is_never_run(browse, rng):
    page = embedding_report(
        rng.normal(size=(40, 2)), title=BAD, labels=[BAD] * 40, titles=[BAD] * 40, columns={BAD: [BAD, "b"] * 20}
    )
    attributes, document, _ = browse(page, "#point=3&find=onerror")
    assert attributes["data-drawn"] == attributes["data-shown"] == attributes["data-hits"] == "40"
    assert attributes["data-point"] == "3"
    assert "data-ran" not in attributes
    panel = re.search(r'<section id="point".*?</section>', document, re.DOTALL)[0]
    assert "&lt;img src=x onerror" in panel
    assert "<img" not in document


def test_an_address_that_means_nothing_opens_the_page_as_it_is(browse, rng):
    page = embedding_report(rng.normal(size=(5, 2)), columns={"c": list("aabbc")})
    attributes, _, _ = browse(page, "#point=77&from=-1&color=none&find=%ZZ&&=")
    assert (attributes["data-point"], attributes["data-from"], attributes["data-hits"]) == ("", "", "")


@pytest.mark.parametrize("n", [0, 1])
def test_maps_of_no_and_one_point_can_be_clicked(browse, n):
    program = TOOLS + "await click(map.clientWidth / 2, map.clientHeight / 2); await wheel(9, 9, -300);"
    attributes, _, _ = browse(embedding_report(np.full((n, 2), 7.0), columns={"c": ["a"] * n}), "", program)
    assert attributes["data-shown"] == str(n)
    assert attributes["data-point"] == ("0" if n else "")


def test_classes_are_put_away_and_brought_back(browse, rng):
    group = np.repeat(["a", "b", "c"], [10, 20, 30])
    other = np.tile(["x", "y"], 30)
    program = TOOLS + """
        const press = async (code, which = 'button') => {
            $('[data-code="' + code + '"] ' + which).click(); await drawn(); };
        const seen = () => Number(html.dataset.drawn);
        say.legend = $$('#legend li').map((row) => row.innerText.replace(/\\s+/g, ' '));
        await press(1); say.without = seen(); say.pressed = $('[data-code="1"] button').ariaPressed;
        await press(1); say.again = seen();
        await press(2, '.only'); say.only = seen();
        $('#color').value = '1'; $('#color').dispatchEvent(new Event('change')); await drawn(); say.kept = seen();
        await press(0); say.both = seen(); say.hash = location.hash;
        $('.more').click(); await drawn(); say.all = seen();
    """  # fmt: skip
    page = embedding_report(rng.normal(size=(60, 2)), columns={"group": group, "other": other})
    _, _, said = browse(page, "", program)
    assert said["legend"] == ["a 10 only", "b 20 only", "c 30 only"]
    assert (said["without"], said["pressed"], said["again"], said["only"]) == (40, "false", 60, 30)
    assert (said["kept"], said["both"]) == (30, int(((group == "c") & (other == "y")).sum()))
    assert (said["all"], said["hash"]) == (60, "#color=other")


def test_the_map_moves_and_zooms_by_pointer_and_by_keys(browse, rng):
    program = TOOLS + """
        const seen = () => Number(html.dataset.drawn), w = map.clientWidth, h = map.clientHeight;
        for (let k = 0; k < 6; k++) await wheel(w / 2, h / 2, -200);
        say.near = seen();
        await drag(w / 2, h / 2, 20 * w, 0); say.away = seen();
        $('[data-zoom=fit]').click(); await drawn(); say.fit = seen();
        map.focus(); for (let k = 0; k < 8; k++) key(map, '+'); await drawn(); say.keys = seen();
        for (let k = 0; k < 400; k++) key(map, 'ArrowRight'); await drawn(); say.right = seen();
        key(map, '0'); await drawn(); say.whole = seen();
        point('pointerdown', 300, 300, {pointerType: 'touch'});
        point('pointerdown', 340, 300, {pointerType: 'touch', pointerId: 2});
        for (let k = 1; k <= 10; k++) point('pointermove', 340 + 40 * k, 300, {pointerType: 'touch', pointerId: 2});
        point('pointerup', 740, 300, {pointerType: 'touch', pointerId: 2});
        point('pointerup', 300, 300, {pointerType: 'touch'});
        await drawn(); say.pinched = seen(); say.point = html.dataset.point;
    """  # fmt: skip
    _, _, said = browse(embedding_report(rng.uniform(size=(2000, 2))), "", program)
    assert 0 < said["near"] < 300
    assert said["away"] == 0
    assert said["fit"] == said["whole"] == 2000
    assert 0 < said["keys"] < 400
    assert said["right"] == 0
    assert 0 < said["pinched"] < 1000
    assert said["point"] == ""  # no choice was meant


def test_two_clicks_choose_two_points_and_keys_the_one_in_the_middle(browse):
    page = embedding_report(
        np.array([[0.0, 0.0], [4.0, 0.0], [2.1, 0.1]]), labels=["left", "right", "middle"], inverse=lambda x: x
    )
    program = TOOLS + """
        const w = map.clientWidth, h = map.clientHeight, room = Math.min(60, 0.08 * w);
        point('pointermove', room, h / 2); await drawn(); say.tip = $('#tip').textContent;
        const before = $('#tip').style.left; await wheel(room + 3, h / 2, 60);
        say.moved = $('#tip').style.left !== before;
        $('[data-zoom=fit]').click(); await drawn();
        point('pointermove', room, 5); await drawn(); say.nothing = $('#tip').hidden;
        await click(room, h / 2 + 5); say.first = html.dataset.point;
        await click(w - room, h / 2 + 5); say.second = html.dataset.point; say.from = html.dataset.from;
        say.heading = $('.cut h3').textContent; say.steps = $$('.strip canvas').length; say.hash = location.hash;
        $('.cut input').value = 25; $('.cut input').dispatchEvent(new Event('input')); say.along = html.dataset.along;
        key(map, 'Escape'); await drawn(); say.left = html.dataset.point;
        map.focus(); key(map, 'Enter'); await drawn(); say.key = html.dataset.point;
        say.near = $$('#point .links span').map((name) => name.textContent);
        $('#point .links a').click(); await drawn(); say.followed = html.dataset.point;
        history.back(); await drawn(); say.back = html.dataset.point;
    """  # fmt: skip
    _, _, said = browse(page, "", program)
    assert (said["tip"], said["moved"], said["nothing"]) == ("left", True, True)
    assert (said["first"], said["second"], said["from"]) == ("0", "1", "0")
    assert (said["heading"], said["steps"], said["hash"]) == ("From left to right", 9, "#from=0&point=1")
    assert (said["along"], said["left"], said["key"]) == ("0.25", "", "2")
    assert said["near"] == ["right", "left"]
    assert (said["followed"], said["back"]) == ("1", "2")


def test_the_search_finds_labels_titles_and_classes(browse, rng):
    labels = [f"Point {number}" for number in range(200)]
    labels[7] = "Ångström"
    page = embedding_report(
        rng.normal(size=(200, 2)), labels=labels, titles=[f"text {number % 10}" for number in range(200)],
        columns={"kind": ["red", "blue"] * 100},
    )  # fmt: skip
    program = TOOLS + """
        await type('angstrom'); say.folded = html.dataset.hits; say.listed = $$('#found a').length;
        await type('blue 3'); say.both = Number(html.dataset.hits);
        key($('#find'), 'Enter'); await drawn(); say.chosen = html.dataset.point; say.hash = location.hash;
        await type('point 19'); await drawn(); say.list = $$('#found a').map((link) => link.firstChild.textContent);
        key($('#find'), 'ArrowDown'); say.focus = document.activeElement.textContent;
        await type(''); say.none = html.dataset.hits;
    """  # fmt: skip
    _, _, said = browse(page, "", program)
    expected = [
        number for number, label in enumerate(labels) if "3" in f"{label} text {number % 10}" and number % 2 == 1
    ]
    assert (said["folded"], said["listed"]) == ("1", 1)
    assert (said["both"], said["chosen"]) == (len(expected), str(expected[0]))
    assert said["hash"] == f"#point={expected[0]}&find=blue%203"
    wanted = [label for number, label in enumerate(labels) if "19" in f"{label} text {number % 10}"]
    assert said["list"] == ["Show all of them", *wanted[:12]]
    assert (said["focus"], said["none"]) == ("Show all of them", "")


def shuffled(n):
    """The order of the page, computed once more."""
    order, seed = list(range(n)), 12345
    for place in range(n - 1, 0, -1):
        seed = (seed * 1664525 + 1013904223) % 2**32
        other = seed * (place + 1) // 2**32
        order[place], order[other] = order[other], order[place]
    return order


def test_pictures_are_drawn_in_random_order_where_they_overlap_none(browse, rng):
    coordinates = rng.normal(size=(600, 2))
    program = TOOLS + """
        say.size = [map.clientWidth, map.clientHeight];
        $('#pictures').value = 'always'; $('#pictures').dispatchEvent(new Event('change')); await drawn();
        say.always = Number(html.dataset.pictures);
        $('#pictures').value = 'never'; $('#pictures').dispatchEvent(new Event('change')); await drawn();
        say.never = Number(html.dataset.pictures);
    """  # fmt: skip
    _, _, said = browse(embedding_report(coordinates, images=rng.uniform(size=(600, 8, 8))), "", program)
    width, height = said["size"]
    room = min(60, 0.08 * width)
    extent = np.ptp(coordinates, axis=0)
    places = coordinates * min((width - 2 * room) / extent[0], (height - 2 * room) / extent[1])
    kept = []
    for point in shuffled(600):  # boxes of 26 pixels and a margin of 4, each compared with all before it
        if all((abs(places[point] - places[other]) >= 30).any() for other in kept):
            kept.append(point)
    assert said["always"] == pytest.approx(len(kept), abs=2)  # a place may round to the other side
    assert 50 < len(kept) < 590
    assert said["never"] == 0


def test_a_cut_shows_what_the_model_makes(browse, rng):
    X = rng.uniform(size=(80, 3)) @ rng.uniform(size=(3, 48))
    pca = PCA(2).fit(X)
    coordinates = pca.transform(X)
    page = embedding_report(coordinates, images=X.reshape(80, 8, 6), inverse=pca, cuts=[(5, 9)])
    program = TOOLS + """
        const red = ({data}) => [...data].filter((_, place) => place % 4 === 0);
        say.strip = $$('.strip canvas').map((step) => red(step.getContext('2d').getImageData(0, 0, 6, 8)));
        say.note = $('.cut .note').textContent; say.kind = html.dataset.cut;
    """  # fmt: skip
    low, high = X.min(), X.max()
    for begin, end, kind in ((2, 40, "lattice"), (5, 9, "exact"), (9, 5, "exact")):
        _, _, said = browse(page, f"#from={begin}&point={end}", program)
        share = np.linspace(0, 1, 9)[:, None]
        rows = pca.inverse_transform((1 - share) * coordinates[begin] + share * coordinates[end])
        expected = np.clip((rows - low) / (high - low), 0, 1) * 255
        # PCA is linear, so that blending is exact; bytes are rounded twice, and cut where they end.
        assert np.abs(np.array(said["strip"]) - expected).max() <= 2.0
        assert said["kind"] == kind
        assert ("that the model made over the map" in said["note"]) == (kind == "lattice")


def test_points_with_two_images_have_both(browse, rng):
    images = rng.normal(size=(30, 2, 2))
    shares = np.tile([[0.75, 0.25]], (30, 1))
    program = TOOLS + """
        say.drawn = Number(html.dataset.drawn); say.facts = $$('#point dt').map((name) => name.textContent);
        const before = map.toDataURL(); $('#lines').click(); await drawn(); say.lines = map.toDataURL() !== before;
    """  # fmt: skip
    attributes, _, said = browse(embedding_report(images, proportions=shares), "#point=4", program)
    assert attributes["data-shown"] == "30"
    assert (said["drawn"], said["facts"]) == (60, ["75% at", "25% at"])
    assert said["lines"] is True


def test_of_many_coordinates_two_are_shown(browse, rng):
    coordinates = np.column_stack([np.zeros((50, 2)), np.arange(50), rng.normal(size=50)])
    program = TOOLS + """
        for (const [id, axis] of [['#first', 2], ['#second', 3]]) {
            $(id).value = axis; $(id).dispatchEvent(new Event('change')); }
        await drawn();
        const h = map.clientHeight, seen = [];
        for (let x = 0; x < map.clientWidth; x += 8) for (let y = 0; y < h; y += 8) {
            point('pointermove', x, y); seen.push($('#tip').hidden ? '' : $('#tip').textContent); }
        say.found = new Set(seen.filter(Boolean)).size;
    """  # fmt: skip
    _, _, said = browse(embedding_report(coordinates), "", program)
    assert said["found"] == 50
