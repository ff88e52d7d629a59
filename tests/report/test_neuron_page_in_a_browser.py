"""``pluri neurons --page`` as a person meets it: start, pause, another current, another rate; and others kept out."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pluri.neurons import Simulation
from pluri.neurons.language import Limits
from pluri.report import neuron_report
from pluri.report.local_server import serve_in_background
from pluri.report.neurons.server import NeuronServer
from pluri.report.neurons.session import LiveSession

SCRIPT = """// Patch: a test
method crank_nicolson
side = sqrt(1000 / pi)
create active_compartment /patch -length {side} -diameter {side} -inject 0.1
create passive_compartment /dendrite -length 100 -diameter 2
link /dendrite to /patch
create axon /axon
link /patch to /axon
graph /patch Vm -title "Voltage <b>"
network_view /axon
cell_view /*
form panel -title "Panel"
dialog current -label "current" -value 10 -unit "uA/cm2" -command "set /patch inject {value / 100}"
toggle block -label "block" -command "call block {value}"
button more -label "Run 50 ms" -command "step -time 50"
function block on
    set /patch gNa {120 * (1 - on)}
end
"""


class Served:
    """The command in a process of its own."""

    def __init__(self, folder, script=SCRIPT):
        (folder / "patch.g").write_text(script)
        command = [sys.executable, "-u", "-m", "pluri", "neurons", str(folder / "patch.g"), "--page", "--no-browser"]
        quiet = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=quiet)
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("http://127.0.0.1:"):
            raise AssertionError(self.end())
        self.port = urlsplit(self.url).port
        self.token = urlsplit(self.url).query.removeprefix("token=")

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        return self.process.communicate(timeout=60)[1]

    def ask(self, method="POST", path="/act", body=None, **settings):
        return ask(self.port, self.token, method, path, body, **settings)

    def state(self):
        return json.loads(self.ask("GET", "/state", Origin=None)[1])


def ask(port, own_token, method="POST", path="/act", body=None, *, token=None, **headers):
    """A request as any program could make it; gives status and answer."""
    own = f"127.0.0.1:{port}"
    sent = {"Host": own, "Origin": f"http://{own}", "Content-Type": "application/json"} | headers
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, f"{path}?token={own_token if token is None else token}", skip_host=True)
    content = json.dumps(body).encode() if method == "POST" else b""
    for name, value in sent.items():
        if value is not None:
            connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(content)))
    connection.endheaders(content)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


@pytest.fixture
def served(tmp_path):
    begun = []

    def begin(*arguments):
        begun.append(Served(tmp_path, *arguments))
        return begun[-1]

    yield begin
    for one in begun:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)
        one.process.stdout.close()
        one.process.stderr.close()


def listening(pid):
    """Addresses on which a process listens, from the tables of the kernel."""
    sockets, found = set(), []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # one that is closed meanwhile
            sockets.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and f"socket:[{cells[9]}]" in sockets:
                found.append((table, cells[1].split(":")[0], int(cells[1].split(":")[1], 16)))
    return found


TIME, RATE = "Number(document.documentElement.dataset.time)", "Number(document.querySelector('.rate').dataset.rate)"


def give(chromium, path, value):
    """Write into a dialog, as a person does, and leave it."""
    chromium.value(
        f"(() => {{ const input = document.querySelector('#forms input[data-path=\"{path}\"]'); input.focus(); "
        f"input.value = '{value}'; input.dispatchEvent(new Event('change')); input.blur(); }})()"
    )


@pytest.mark.slow
def test_a_person_starts_pauses_and_changes_the_current_while_it_runs(chromium, served, tmp_path):
    server = served()
    pictures = Path(os.environ.get("PLURI_FIGURES", tmp_path))
    chromium.open(server.url)
    chromium.wait("document.documentElement.dataset.ready === 'true'")
    assert chromium.value("document.querySelector('.card h2').textContent") == "Voltage <b>"
    assert chromium.value(TIME) == 0
    chromium.value("document.getElementById('speed').value = '0'")
    chromium.value("document.getElementById('speed').dispatchEvent(new Event('change'))")
    chromium.press(" ")
    chromium.wait(f"document.documentElement.dataset.running === 'true' && {TIME} > 600")
    chromium.value("document.getElementById('play').click()")
    chromium.wait("document.documentElement.dataset.running === 'false'")
    slow, paused = chromium.value(RATE), server.state()["time"]
    time.sleep(0.3)
    assert server.state()["time"] == paused  # it is paused
    chromium.press(" ")
    chromium.wait("document.documentElement.dataset.running === 'true'")
    give(chromium, "/output/panel/current", "20")
    chromium.wait("document.documentElement.dataset.acted === '1'")
    begun = server.state()["time"]  # the page may be behind
    chromium.wait(f"{TIME} > {begun} + 700")
    fast = chromium.value(RATE)
    # The dendrite draws some current: rates lie below those of the patch alone, 68.3 and 86.5 Hz.
    assert 30 < slow < 68.4
    assert slow + 8 < fast < 86.6
    give(chromium, "/output/panel/current", "much")
    chromium.wait("!document.getElementById('message').hidden")
    assert "current must be a number" in chromium.value("document.getElementById('message').textContent")
    chromium.value("document.querySelector('#forms input[type=checkbox]').click()")
    chromium.wait("document.documentElement.dataset.acted === '2'")
    begun = server.state()["time"]
    chromium.wait(f"{TIME} > {begun} + 500 && {RATE} === 0")  # no sodium, no spikes
    for name, settings in {"wide": {}, "narrow": {"width": 400}, "dark": {"dark": True}}.items():
        chromium.picture(pictures / f"neurons_{name}.png", **settings)
    assert chromium.value("document.documentElement.scrollWidth <= window.innerWidth")
    # Closing the page stops nothing.
    chromium.open("about:blank")
    left = server.state()["time"]
    time.sleep(0.5)
    assert server.state()["time"] > left
    assert server.state()["running"] is True
    said = server.end(signal.SIGINT)
    assert "ms simulated" in said
    assert "Traceback" not in said
    assert server.process.returncode == 0


@pytest.mark.slow
def test_buttons_steps_resets_and_commands(chromium, served):
    server = served()
    chromium.open(server.url)
    chromium.wait("document.documentElement.dataset.ready === 'true'")
    chromium.value("document.getElementById('step').click()")
    chromium.wait(f"Math.abs({TIME} - 1) < 1e-6")
    chromium.value("document.querySelector('#forms button').click()")
    chromium.wait(f"Math.abs({TIME} - 51) < 1e-6")
    chromium.value("document.getElementById('reset').click()")
    chromium.wait(f"{TIME} === 0")
    for text, expected in (
        ("echo {1 + 1} things", "2 things"),
        ("set /patch inject 0.3", ""),
        ("graph /patch n", ""),
    ):
        chromium.value(f"document.getElementById('command').value = '{text}'")
        chromium.value("document.getElementById('line').requestSubmit()")
        if expected:
            chromium.wait(f"document.getElementById('said').textContent.includes('{expected}')")
    chromium.wait("document.querySelectorAll('.card.graph').length === 2")  # a graph that a command made
    chromium.value("document.getElementById('command').value = 'frobnicate'")
    chromium.value("document.getElementById('line').requestSubmit()")
    chromium.wait("document.getElementById('message').textContent.includes('unknown command')")
    # A long command is paused like anything else, and the page stays alive meanwhile.
    server.ask(body={"action": "speed", "value": 0})
    server.ask(body={"action": "command", "text": "step -time 1000000"})
    chromium.wait(f"{TIME} > 100")
    chromium.wait("!document.getElementById('busy').hidden")
    server.ask(body={"action": "pause"})
    chromium.wait("document.getElementById('busy').hidden")
    reached = server.state()["time"]
    assert 100 < reached < 1_000_000
    time.sleep(0.3)
    assert server.state()["time"] == reached


@pytest.mark.slow
def test_a_page_of_another_origin_in_the_same_browser_cannot_start_it(chromium, served, tmp_path):
    server = served()
    (tmp_path / "evil.html").write_text("<h1>evil</h1>")
    chromium.open((tmp_path / "evil.html").as_uri())
    chromium.wait("document.readyState === 'complete' && document.querySelector('h1') !== null")
    for kind in ("text/plain", "application/json"):
        said = chromium.value(
            f"fetch('{server.url.replace('/?', '/act?')}', {{method: 'POST', mode: 'no-cors', "
            f"headers: {{'Content-Type': '{kind}'}}, body: JSON.stringify({{action: 'start'}})}})"
            ".then((a) => String(a.status), String)"
        )
        assert said in ("0", "TypeError: Failed to fetch")  # it may be sent, but is not answered
    time.sleep(0.2)
    assert server.state()["running"] is False
    assert server.state()["time"] == 0


def simulated():
    sim = Simulation(dt=0.05)
    sim.create("active_compartment", "/soma", length=20, diameter=20, inject=0.2)
    sim.create("axon", "/axon")
    sim.link("/soma", "/axon")
    sim.graph("/soma", "Vm", title="</script><b>V")
    sim.network_view("/axon")
    sim.cell_view("/soma")
    sim.form("panel")
    sim.dialog("current", value=0.2, unit="nA", command="set /soma inject {value}")
    sim.run(60)
    return sim


@pytest.mark.slow
def test_a_saved_page_replays_without_a_server(chromium, tmp_path):
    sim = simulated()
    neuron_report(sim, tmp_path / "film.html", title="Film & <i>")
    chromium.open((tmp_path / "film.html").as_uri())
    chromium.wait("document.documentElement.dataset.ready === 'true'")
    assert chromium.value("document.title") == "Film & <i>"
    assert chromium.value("document.querySelector('.card h2').textContent") == "</script><b>V"
    chromium.wait(f"Math.abs({TIME} - 60) < 0.11")
    chromium.value("(() => { const s = document.getElementById('scrub'); s.value = 20; "
                   "s.dispatchEvent(new Event('input')); })()")  # fmt: skip
    chromium.wait(f"Math.abs({TIME} - 20) < 0.1")
    chromium.value("document.getElementById('speed').value = '1000'")
    chromium.value("document.getElementById('play').click()")
    chromium.wait(f"Math.abs({TIME} - 60) < 0.11 && document.documentElement.dataset.running === 'false'")
    n = len(sim.result().spikes("/axon"))
    assert n >= 3
    data = json.loads(chromium.value("document.getElementById('data').textContent"))
    assert len(data["film"]["networks"]["/output/network"]["t"]) == n
    assert chromium.value("document.querySelector('#forms fieldset').disabled") is True
    ink = chromium.value(
        "[...document.querySelectorAll('canvas')].map((one) => one.getContext('2d')"
        ".getImageData(0, 0, one.width, one.height).data.filter((value, place) => place % 4 === 3 && value > 0).length)"
    )
    assert len(ink) == 3
    assert min(ink) > 300  # each of them is drawn
    chromium.picture(Path(os.environ.get("PLURI_FIGURES", tmp_path)) / "neurons_film.png")


@pytest.fixture
def session():
    """A server in this process, quick to begin with."""
    live = LiveSession(simulated(), "here")
    live.start()
    server = NeuronServer(live)
    thread = serve_in_background(server)
    yield server
    server.shutdown()
    server.server_close()
    live.close()
    thread.join(10)


def test_nothing_but_the_loopback_address_listens_and_no_other_page_gets_in(session):
    port, own = session.server_port, f"127.0.0.1:{session.server_port}"
    if Path("/proc").exists():
        assert ("tcp", "0100007F", port) in listening(os.getpid())
        assert [one for one in listening(os.getpid()) if one[2] == port] == [("tcp", "0100007F", port)]
    refused = {
        "no token": {"token": ""},
        "wrong token": {"token": "x" + session.token[1:]},
        "no origin": {"Origin": None},
        "another origin": {"Origin": "http://evil.example"},
        "another port": {"Origin": f"http://127.0.0.1:{port + 1}"},
        "the null origin": {"Origin": "null"},
        "no host": {"Host": None},
        "a host bent to this address": {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"},
        "a host without port": {"Host": "127.0.0.1"},
        "another site": {"Sec-Fetch-Site": "cross-site"},
    }
    good = {"action": "widget", "path": "/output/panel/current", "value": "0.9"}
    simulation = session.session.interpreter.simulation
    for name, wrong in refused.items():
        assert ask(port, session.token, body=good, **wrong)[0] in (400, 403), name
        assert ask(port, session.token, body={"action": "start"}, **wrong)[0] in (400, 403), name
        if "host" in name or "token" in name:  # nor can it be read
            for path in ("/", "/state", "/film"):
                status, text = ask(port, session.token, "GET", path, **{"Origin": None} | wrong)
                assert status in (400, 403), (name, path)
                assert b"/soma" not in text
    assert ask(port, session.token, "GET", "/state", Origin="http://evil.example")[0] == 403
    assert ask(port, session.token, body=good, **{"Content-Type": "text/plain"})[0] == 415
    assert simulation.get("/soma", "inject") == 0.2
    assert session.session.running is False
    for wrong, status in (
        ({"action": "explode"}, 400),
        ({"action": "widget", "path": "/soma", "value": 1}, 400),
        ({"action": "widget", "path": 3}, 400),
        ({"action": "widget", "path": "/output/panel/current", "value": [1]}, 400),
        ({"action": "step", "duration": -1}, 400),
        ({"action": "step", "duration": True}, 400),
        ({"action": "step"}, 400),
        ({"action": "speed", "value": 1e30}, 400),
        ({"action": "start", "more": 1}, 400),
        ({"action": "command", "text": "frobnicate"}, 400),
        ({"action": "command", "text": "x" * 20_000}, 413),
        ([good], 400),
    ):
        assert ask(port, session.token, body=wrong)[0] == status, wrong
    assert ask(port, session.token, path="/elsewhere", body=good)[0] == 404
    assert ask(port, session.token, "GET", "/elsewhere", Origin=None)[0] == 404
    assert own in session.hosts
    assert ask(port, session.token, body=good)[0] == 200
    assert simulation.get("/soma", "inject") == 0.9


def test_what_is_new_is_sent_once_and_a_reset_begins_anew(session):
    def state(after=-1, epoch=-1, version=-1):
        path = f"/state?after={after}&epoch={epoch}&version={version}&token={session.token}"
        connection = http.client.HTTPConnection("127.0.0.1", session.server_port, timeout=60)
        connection.request("GET", path)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    first = state()
    times = first["graphs"]["/output/Vm"]["t"]
    assert times[-1] == pytest.approx(60)
    assert first["layout"]["forms"][0]["widgets"][0]["value"] == "0.2"
    again = state(first["cursor"], first["epoch"], first["version"])
    assert again["graphs"] == {}
    assert "layout" not in again
    assert ask(session.server_port, session.token, body={"action": "step", "duration": 2})[0] == 200
    more = state(first["cursor"], first["epoch"], first["version"])
    assert more["graphs"]["/output/Vm"]["t"][0] > times[-1]
    assert more["time"] == pytest.approx(62)
    everything = state()["graphs"]["/output/Vm"]["t"]
    assert everything == times + more["graphs"]["/output/Vm"]["t"]
    assert ask(session.server_port, session.token, body={"action": "reset"})[0] == 200
    reset = state(more["cursor"], more["epoch"], more["version"])
    assert reset["epoch"] != first["epoch"]
    assert reset["time"] == 0
    status, page = ask(session.server_port, session.token, "GET", "/film", Origin=None)
    assert status == 200
    assert b"connect-src" not in page


def test_an_endless_loop_is_paused_like_anything_else(session):
    live = session.session
    live.interpreter.limits = Limits(statements=10**12)
    assert ask(session.server_port, session.token, body={"action": "command", "text": "while true\nend"})[0] == 200
    assert live.state(-1, -1, -1)["busy"] is True
    live.act("pause")
    end = time.monotonic() + 60
    while live.state(-1, -1, -1)["busy"] and time.monotonic() < end:
        time.sleep(0.01)
    assert ask(session.server_port, session.token, body={"action": "step", "duration": 1})[0] == 200
    assert live.state(-1, -1, -1)["time"] == pytest.approx(61)


def test_trouble_in_a_run_is_told_and_stops_it(session):
    live = session.session
    command = "set /soma inject 1e6"
    assert ask(session.server_port, session.token, body={"action": "command", "text": command})[0] == 200
    live.act("start")
    end = time.monotonic() + 60
    while live.running and time.monotonic() < end:
        time.sleep(0.01)
    told = live.state(-1, -1, -1)
    assert told["running"] is False
    assert "/soma" in told["trouble"]
    assert "reduce dt" in told["trouble"]
    assert threading.active_count() < 50
