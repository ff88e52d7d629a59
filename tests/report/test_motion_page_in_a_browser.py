"""The page that plays motion in a browser: what is drawn, and what the clock, pointers and keys do."""

from __future__ import annotations

import numpy as np
import pytest

from pluri.datasets import Markers, Motion, Skeleton, cmu_skeleton
from pluri.report import motion_report

BAD = (
    "</script><script>document.documentElement.dataset.ran='yes'</script>"
    "<img src=x onerror=\"document.documentElement.dataset.ran='yes'\">"
)
TOOLS = """
    const html = document.documentElement, frame = () => Number(html.dataset.frame);
    const point = (element, kind, x, y, more = {}) => { const box = element.getBoundingClientRect();
        element.dispatchEvent(new PointerEvent(kind, {bubbles: true, cancelable: true, clientX: box.left + x,
        clientY: box.top + y, pointerId: 1, pointerType: 'mouse', button: 0, ...more})); };
    const press = (name, more = {}) => document.body.dispatchEvent(new KeyboardEvent('keydown',
        {key: name, bubbles: true, cancelable: true, ...more}));
    const sleep = (time) => new Promise((done) => setTimeout(done, time));
    const drawn = async () => { await wait(); await wait(); };
    await drawn();
"""


def walk(n_frames=61, name="walk", frame_time=0.05, speed=1.0):
    """A figure that strides along z."""
    frames = np.zeros((n_frames, 96))
    names = cmu_skeleton().channel_names
    phase = speed * np.arange(n_frames) / 6
    frames[:, names.index("Hips:Yposition")] = 17
    frames[:, names.index("Hips:Zposition")] = 6 * phase
    frames[:, names.index("LeftUpLeg:Xrotation")] = 30 * np.sin(phase)
    frames[:, names.index("RightUpLeg:Xrotation")] = -30 * np.sin(phase)
    return Motion(cmu_skeleton(), frames, frame_time, name)


def circle(n_frames, turns=1.0):
    angle = 2 * np.pi * turns * np.arange(n_frames) / n_frames
    return np.column_stack([np.cos(angle), np.sin(angle)])


@pytest.fixture
def page():
    """Two motions, the second half as long and at twice the rate, with all that can be told of them."""
    return motion_report(
        [walk(), walk(61, "run", 0.025, 2.0), walk(31, "third")], latent=[circle(61), 2 * circle(61, 2), circle(31)],
        gaps=[[(20, 30)], None, None], hand_overs=[[(40, "walk to run")], None, None],
        regimes=[np.repeat(["stride", "swing"], [30, 31]), None, None],
    )  # fmt: skip


def n_bones(motion):
    lengths = np.linalg.norm(np.concatenate([motion.skeleton.offsets[1:], motion.skeleton.end_offsets]), axis=1)
    return int((lengths > 0).sum())


def test_an_address_opens_a_frame_with_the_motions_that_it_names(browse, page):
    attributes, document, _ = browse(page, "#frame=44&show=0,2")
    assert (attributes["data-frame"], attributes["data-shown"]) == ("44", "0,2")
    assert attributes["data-playing"] == "false"
    assert attributes["data-drawn"] == str(2 * n_bones(walk()))
    assert "frame 22 of 60" in document  # the clock ticks as often as the second motion has frames
    _, document, _ = browse(page, "#frame=82")
    assert '<span class="badge">walk to run</span>' in document


def test_an_address_that_means_nothing_opens_the_page_as_it_is(browse, page):
    program = TOOLS + """
        say.found = [[html.dataset.shown, frame()]];
        for (const hash of ['#frame=%ZZ&&=', '#frame=7&show=', '#frame=1e3', '#frame=7', '#show=1,1,0,2x']) {
            location.hash = hash; await sleep(60); say.found.push([html.dataset.shown, frame()]); }
    """  # fmt: skip
    _, _, said = browse(page, "#frame=999&show=9,x", program)
    assert said["found"] == [["0,1", 120], ["0,1", 0], ["0,1", 7], ["0,1", 0], ["0,1", 7], ["0,1", 0]]


def test_text_is_never_run(browse):
    skeleton = Skeleton((BAD, BAD), [-1, 0], np.ones((2, 3)), (("Xposition",), ()))
    page = motion_report(
        [Motion(skeleton, np.arange(4.0)[:, None], 0.1, BAD)], title=BAD, hand_overs=[[(1, BAD)]],
        regimes=[[BAD, "a", "b", BAD]], latent=[np.zeros((4, 2))],
    )  # fmt: skip
    attributes, document, _ = browse(page, "#frame=1")
    assert "data-ran" not in attributes
    assert "<img" not in document
    assert "&lt;img src=x onerror" in document


def test_it_plays_at_its_own_speed_and_pauses(browse, page):
    program = TOOLS + """
        say.begun = html.dataset.playing; say.label = $('#play').ariaLabel;
        const clock = async (time) => { const start = performance.now(), from = frame(); await sleep(time);
            return (frame() - from) / (performance.now() - start) * 1000; };
        say.rate = await clock(500);
        $('#speed').value = '0.5'; say.slow = await clock(500);
        press(' '); await drawn(); say.paused = html.dataset.playing; const at = frame(); await sleep(200);
        say.still = frame() === at; say.hash = location.hash; say.at = at;
        press('End'); await drawn(); say.end = frame(); $('#repeat').checked = false; $('#speed').value = '4';
        $('#play').click(); await sleep(100); say.again = frame() < 120; await sleep(1500);
        say.stopped = [html.dataset.playing, frame()];
    """  # fmt: skip
    _, _, said = browse(page, "", program)
    assert (said["begun"], said["label"], said["paused"]) == ("true", "Pause", "false")
    assert said["rate"] == pytest.approx(40, abs=8)  # frames of 0.025 s; the program looks at it now and then
    assert said["slow"] == pytest.approx(20, abs=6)
    assert said["still"] is True
    assert said["hash"] == f"#frame={said['at']}"
    assert (said["end"], said["again"], said["stopped"]) == (120, True, ["false", 120])


def test_who_wants_less_motion_starts_it_himself(browse, page):
    calm = page.replace("(prefers-reduced-motion:reduce)", "(min-width:1px)")
    attributes, _, _ = browse(calm, "", TOOLS)
    assert (attributes["data-playing"], attributes["data-frame"]) == ("false", "0")


def test_keys_go_from_frame_to_frame_and_from_mark_to_mark(browse, page):
    program = TOOLS + """
        const found = []; const then = async (name, more) => { press(name, more); await drawn(); found.push(frame()); };
        await then('ArrowRight'); await then('ArrowRight', {shiftKey: true}); await then('ArrowLeft');
        await then('n'); say.badges = $$('.badge').map((badge) => badge.textContent);
        await then('n'); await then('n'); await then('p'); await then('End'); await then('ArrowRight');
        await then('Home'); await then('ArrowLeft');
        say.found = found; say.value = $('#scrub').value; say.spoken = $('#scrub').getAttribute('aria-valuetext');
    """  # fmt: skip
    _, _, said = browse(page, "#frame=5", program)
    assert said["found"] == [6, 16, 15, 40, 80, 80, 40, 120, 120, 0, 0]
    assert said["badges"] == ["gap, imputed", "stride"]
    assert said["value"] == "0"
    assert said["spoken"] == "frame 0 of 120 · 0.00 s; walk: stride; run: "


def test_the_timeline_has_gaps_hand_overs_and_regimes_where_they_are(browse, page):
    program = TOOLS + """
        const strip = $('.strip'), whole = strip.getBoundingClientRect();
        const share = (element) => { const box = element.getBoundingClientRect();
            return [(box.left - whole.left) / whole.width, box.width / whole.width]; };
        say.gap = share($('.gap')); say.over = share($('.over'))[0];
        say.regimes = [...strip.querySelectorAll('.regime')].map(share); say.rows = $$('.row').length;
        say.shares = $$('#regimes li').map((row) => row.innerText.replace(/\\s+/g, ' '));
        say.events = $$('#events a').map((row) => row.innerText.replace(/\\s+/g, ' '));
        point(strip, 'pointerdown', whole.width * 0.25, 5); await drawn(); say.pressed = frame();
        point(strip, 'pointermove', whole.width * 0.5, 5); await drawn(); say.moved = frame();
        point(strip, 'pointerup', whole.width * 0.5, 5); point(strip, 'pointermove', 3, 5); await drawn();
        say.left = frame(); say.hash = location.hash;
        $$('#events a')[1].click(); await drawn(); say.event = frame();
        $('#scrub').value = 33; $('#scrub').dispatchEvent(new Event('input')); await drawn(); say.slid = frame();
    """  # fmt: skip
    _, _, said = browse(page, "#frame=5", program)
    np.testing.assert_allclose(said["gap"], [20 / 60, 10 / 60], atol=0.005)
    assert said["over"] == pytest.approx(40 / 60, abs=0.005)
    np.testing.assert_allclose(said["regimes"], [[0, 0.5], [0.5, 0.5]], atol=0.005)
    assert (said["rows"], said["shares"]) == (2, ["stride 49%", "swing 51%"])
    assert said["events"] == ["gap of 10 frames, walk frame 20", "walk to run, walk frame 40"]
    assert (said["pressed"], said["moved"], said["left"], said["hash"]) == (30, 60, 60, "#frame=60")
    assert (said["event"], said["slid"]) == (80, 33)


def test_motions_are_chosen_and_played_in_step(browse, page):
    program = TOOLS + """
        const counts = () => $$('.count').map((count) => count.textContent);
        say.two = counts(); say.badges = $$('.badge').map((badge) => badge.textContent);
        $('[data-motion="2"]').click(); await drawn(); say.three = counts(); say.hash = location.hash;
        say.drawn = Number(html.dataset.drawn);
        $('[data-motion="1"]').click(); await drawn(); $('[data-motion="0"]').click(); await drawn();
        say.one = counts(); say.last = Number($('#scrub').max); say.frame = frame();
        $('[data-motion="2"]').click(); await drawn(); say.kept = html.dataset.shown;
        say.pressed = $$('#motions button').map((button) => button.ariaPressed);
        $('h1 a').click(); await drawn(); say.reset = [html.dataset.shown, frame()];
    """  # fmt: skip
    _, _, said = browse(page, "#frame=100", program)
    assert said["two"] == ["frame 50 of 60", "frame 60 of 60"]
    assert said["badges"] == ["walk to run", "swing", "ended"]
    assert said["three"] == ["frame 50 of 60", "frame 60 of 60", "frame 30 of 30"]
    assert (said["hash"], said["drawn"]) == ("#frame=100&show=0,1,2", 3 * n_bones(walk()))
    assert (said["one"], said["last"], said["frame"]) == (["frame 30 of 30"], 60, 60)
    assert (said["kept"], said["pressed"]) == ("2", ["false", "false", "true"])  # one is always shown
    assert said["reset"] == ["0,1", 0]


def test_figures_are_turned_and_brought_nearer(browse, page):
    program = TOOLS + """
        const figure = $('#figure'), yaw = () => Number(html.dataset.yaw), zoom = () => Number(html.dataset.zoom);
        const look = () => figure.toDataURL();
        const before = look();
        point(figure, 'pointerdown', 100, 200);
        for (let k = 1; k <= 5; k++) point(figure, 'pointermove', 100 + 10 * k, 200);
        point(figure, 'pointerup', 150, 200); await drawn(); say.turned = yaw(); say.changed = look() !== before;
        point(figure, 'pointermove', 300, 200); say.released = yaw() === say.turned;
        figure.dispatchEvent(new WheelEvent('wheel', {deltaY: -100, bubbles: true, cancelable: true}));
        await drawn(); say.near = zoom();
        point(figure, 'pointerdown', 100, 300, {pointerType: 'touch'});
        point(figure, 'pointerdown', 140, 300, {pointerType: 'touch', pointerId: 2});
        point(figure, 'pointermove', 180, 300, {pointerType: 'touch', pointerId: 2});
        point(figure, 'pointerup', 180, 300, {pointerType: 'touch', pointerId: 2});
        point(figure, 'pointerup', 100, 300, {pointerType: 'touch'}); await drawn(); say.pinched = zoom();
        key(figure, 'ArrowLeft'); await drawn(); say.key = yaw(); say.frame = frame();
        key(figure, '0'); await drawn(); say.back = [zoom(), look() === before];
        $('#follow').click(); await drawn(); say.follow = look() !== before;
    """  # fmt: skip
    _, _, said = browse(page, "#frame=10", program)
    start = -1.0  # the figures go along z: seen from a radian beside it
    assert said["turned"] == pytest.approx(start - 0.5, abs=1e-3)
    assert (said["changed"], said["released"]) == (True, True)
    assert said["near"] == pytest.approx(np.exp(0.18), abs=1e-3)
    assert said["pinched"] == pytest.approx(2 * np.exp(0.18), abs=2e-3)
    assert said["key"] == pytest.approx(start - 0.5 + 0.12, abs=1e-3)
    assert said["frame"] == 10  # keys turn a figure that has the focus
    assert said["back"] == [1.0, True]
    assert said["follow"] is True


def test_a_path_is_followed_by_the_pointer(browse):
    page = motion_report(walk(60), latent=circle(60), gaps=[(12, 20)], regimes=np.arange(60) // 10)
    program = TOOLS + """
        const map = $('#map'), w = map.clientWidth, h = map.clientHeight, size = Math.min(w, h) / 2 - 34;
        const at = (angle) => [w / 2 + size * Math.cos(angle), h / 2 - size * Math.sin(angle)];
        point(map, 'pointermove', ...at(Math.PI / 2)); await drawn(); say.tip = $('#tip').innerText.split('\\n');
        point(map, 'pointermove', w / 2, h / 2); await drawn(); say.nothing = $('#tip').hidden;
        point(map, 'pointerdown', ...at(Math.PI)); await drawn(); say.half = frame();
        point(map, 'pointermove', ...at(1.5 * Math.PI)); await drawn(); say.dragged = frame();
        point(map, 'pointerup', ...at(1.5 * Math.PI)); say.hash = location.hash;
        const before = map.toDataURL(); $('#color').value = 'motion'; $('#color').dispatchEvent(new Event('change'));
        await drawn(); say.recolored = map.toDataURL() !== before;
    """  # fmt: skip
    _, _, said = browse(page, "#frame=3", program)
    assert [line for line in said["tip"] if line] == ["walk", "frame 15 · 0.75 s", "gap, imputed", "regime 1"]
    assert said["nothing"] is True
    assert (said["half"], said["dragged"], said["hash"]) == (30, 45, "#frame=45")
    assert said["recolored"] is True


def test_markers_and_a_single_frame_are_drawn(browse):
    rng = np.random.default_rng(0)
    places = rng.normal(size=(5, 7, 3))
    places[2, 3] = np.nan
    attributes, _, _ = browse(motion_report(Markers(places, tuple("abcdefg"), 0.1, "z", "dots")), "#frame=2", TOOLS)
    assert attributes["data-drawn"] == "6"
    one = motion_report(walk(1))
    attributes, _, _ = browse(one, "", TOOLS + "press(' '); press('ArrowRight'); press('End'); await drawn();")
    assert (attributes["data-frame"], attributes["data-playing"]) == ("0", "false")
