"""``pluri label`` as a person meets it: a browser, keys, a process that is killed, and other pages kept out."""

from __future__ import annotations

import csv
import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

BAD = (
    "<script>document.documentElement.dataset.ran='yes'</script><img src=x onerror=\"document.body.dataset.ran='yes'\">"
)
SPORT, SPACE = (
    ["goal", "team", "match", "season", "player", "league"],
    ["orbit", "moon", "rocket", "launch", "planet", "star"],
)


def write_texts(path, n_rows=260):
    rng = np.random.default_rng(0)
    truth = []
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "source"])
        for row in range(n_rows):
            words = SPORT if row % 2 else SPACE
            common = rng.choice(["the", "of", "and", "to"], 12)
            writer.writerow([" ".join([*common, *rng.choice(words, 3), BAD if row % 7 == 0 else ""]), f"letter {row}"])
            truth.append("sport" if row % 2 else "space")
    return truth


class Labelling:
    """The command in a process of its own."""

    def __init__(self, folder, *arguments, name="pool.csv"):
        command = [sys.executable, "-m", "pluri", "label", str(folder / name), "--no-browser", *arguments]
        quiet = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=quiet)
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("http://127.0.0.1:"):
            raise AssertionError(self.end())
        self.port = urlsplit(self.url).port
        self.token = urlsplit(self.url).query.removeprefix("token=")

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        _, said = self.process.communicate(timeout=60)
        return said

    def ask(self, method="POST", path="/label", body=None, *, token=None, **headers):
        """A request as any program could make it; gives status and answer."""
        own = f"127.0.0.1:{self.port}"
        sent = {"Host": own, "Origin": f"http://{own}", "Content-Type": "application/json"} | headers
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(method, f"{path}?token={self.token if token is None else token}", skip_host=True)
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
def labelling(tmp_path):
    begun = []

    def begin(*arguments, **settings):
        begun.append(Labelling(tmp_path, *arguments, **settings))
        return begun[-1]

    yield begin
    for one in begun:
        if one.process.poll() is None:
            one.end()
        one.process.stdout.close()
        one.process.stderr.close()


def labels_of(path):
    """What is in the file, read without the library."""
    answers = []
    for line in Path(path).read_text().splitlines():
        content = json.loads(line)
        if "undo" in content:
            answers.pop()
        elif "row" in content:
            answers.append((content["row"], content.get("label")))
    return answers


def listening(pid):
    """Addresses on which a process listens, from the tables of the kernel."""
    sockets = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and f"socket:[{cells[9]}]" in sockets:
                found.append((table, cells[1].split(":")[0], int(cells[1].split(":")[1], 16)))
    return found


@pytest.mark.slow
def test_200_labels_by_keyboard_with_two_kills_on_the_way(chromium, labelling, tmp_path):
    truth = write_texts(tmp_path / "pool.csv")
    pictures = Path(os.environ.get("PLURI_FIGURES", tmp_path))
    given, place = [], tmp_path / "pool.labels.jsonl"
    for until in (70, 140, 200):
        server = labelling("--classes", "sport,space", "--seed", "1")
        chromium.open(server.url)
        chromium.wait(f"document.documentElement.dataset.labels === '{len(given)}'")
        while len(given) < until:
            row = int(chromium.value("document.getElementById('item').dataset.row"))
            given.append((row, truth[row]))
            chromium.press("1" if truth[row] == "sport" else "2")
            chromium.wait(f"document.documentElement.dataset.labels === '{len(given)}'")
        if until == 200:
            break
        server.end(signal.SIGKILL)
        chromium.press("1")  # nobody is there: it is said, and nothing else happens
        chromium.wait("!document.getElementById('message').hidden")
        assert "was not kept" in chromium.value("document.getElementById('message').textContent")
        with open(place, "ab") as file:
            file.write(b'{"row": 3, "la')  # half a line, as a process can leave it that is killed while it writes
    assert labels_of(place) == given
    assert len({row for row, _ in given}) == 200
    assert "data-ran" not in chromium.value("document.documentElement.outerHTML").replace("dataset.ran", "")
    assert chromium.value("document.documentElement.dataset.ran || document.body.dataset.ran || ''") == ""
    chromium.wait("Number(document.documentElement.dataset.fitted) === 200")
    chromium.wait("document.querySelectorAll('#curve circle').length === 1")
    curve = json.loads(server.ask("GET", "/state", Origin=None)[1])["curve"]
    assert curve[-1][0] > 150
    assert curve[-1][1] > 0.9  # by three words of six in every text, which no one misses
    for name, settings in {"wide": {}, "narrow": {"width": 400}, "dark": {"dark": True}}.items():
        chromium.picture(pictures / f"labelling_{name}.png", **settings)
    said = server.end(signal.SIGINT)
    assert "200 of 260 rows have labels" in said
    assert server.process.returncode == 0


@pytest.mark.slow
def test_keys_undo_skip_and_show_pictures(chromium, labelling, tmp_path):
    rng = np.random.default_rng(0)
    table = rng.integers(0, 256, size=(30, 16))
    header = ",".join(f"p{column}" for column in range(16))
    np.savetxt(tmp_path / "pool.csv", table, fmt="%d", delimiter=",", header=header, comments="")
    names = [f"class {number}" for number in range(11)]
    server = labelling("--classes", ",".join(names), "--picture", "4x4")
    chromium.open(server.url)
    chromium.wait("document.documentElement.dataset.labels === '0'")
    first = chromium.value("document.getElementById('item').dataset.row")
    pixels = chromium.value(
        "[...document.querySelector('#item canvas').getContext('2d').getImageData(0, 0, 4, 4).data]"
        ".filter((value, place) => place % 4 === 0)"
    )
    low, high = table.min(), table.max()
    assert pixels == np.rint((table[int(first)] - low) * (255 / (high - low))).astype(int).tolist()
    chromium.press("b")  # the eleventh
    chromium.wait("document.documentElement.dataset.labels === '1'")
    second = chromium.value("document.getElementById('item').dataset.row")
    assert labels_of(tmp_path / "pool.labels.jsonl") == [(int(first), "class 10")]
    chromium.press("u")
    chromium.wait("document.documentElement.dataset.labels === '0'")
    assert chromium.value("document.getElementById('item').dataset.row") == first
    chromium.press("s")
    chromium.wait(f"document.getElementById('item').dataset.row === '{second}'")
    chromium.press("z")  # means nothing
    chromium.value("document.querySelectorAll('.choice')[2].click()")
    chromium.wait("document.documentElement.dataset.labels === '1'")
    assert labels_of(tmp_path / "pool.labels.jsonl") == [(int(first), None), (int(second), "class 2")]


def test_nothing_but_the_loopback_address_listens_and_no_other_page_gets_in(labelling, tmp_path):
    write_texts(tmp_path / "pool.csv", 30)
    server = labelling("--classes", "sport,space")
    if Path("/proc").exists():
        assert listening(server.process.pid) == [("tcp", "0100007F", server.port)]
    place = tmp_path / "pool.labels.jsonl"
    before = place.read_bytes()
    row = json.loads(server.ask("GET", "/state", Origin=None)[1])["item"]["row"]
    good, own = {"row": row, "label": "sport"}, f"127.0.0.1:{server.port}"
    refused = {
        "no token": {"token": ""},
        "wrong token": {"token": "x" + server.token[1:]},
        "part of the token": {"token": server.token[:-1]},
        "no origin": {"Origin": None},
        "another origin": {"Origin": "http://evil.example"},
        "another port": {"Origin": f"http://127.0.0.1:{server.port + 1}"},
        "the null origin": {"Origin": "null"},
        "a secure origin": {"Origin": f"https://{own}"},
        "no host": {"Host": None},
        "a host bent to this address": {
            "Host": f"evil.example:{server.port}",
            "Origin": f"http://evil.example:{server.port}",
        },
        "a host without port": {"Host": "127.0.0.1"},
        "another site": {"Sec-Fetch-Site": "cross-site"},
    }
    for name, wrong in refused.items():
        assert server.ask(body=good, **wrong)[0] in (400, 403), name
        assert server.ask(path="/undo", body={}, **wrong)[0] in (400, 403), name
        if "host" in name or "token" in name:  # nor can it be read
            assert server.ask("GET", "/", **{"Origin": None} | wrong)[0] in (400, 403), name
            assert b"apple" not in server.ask("GET", "/state", **{"Origin": None} | wrong)[1], name
    assert server.ask(body=good, **{"Content-Type": "text/plain"})[0] == 415  # what a form of another page could send
    assert server.ask(body={"row": row})[0] == 400
    assert server.ask(body={"row": "1", "label": "sport"})[0] == 400
    assert server.ask(body={"row": row, "label": "neither"})[0] == 400
    assert server.ask(body={"row": row + 1000, "label": "sport"})[0] == 409
    assert server.ask(body=[good])[0] == 400
    assert server.ask(body={"row": row, "label": "x" * 20_000})[0] == 413
    assert server.ask(path="/elsewhere", body=good)[0] == 404
    assert server.ask("PUT", "/label")[0] == 501
    assert place.read_bytes() == before
    assert server.ask(body=good)[0] == 200
    assert labels_of(place) == [(row, "sport")]


@pytest.mark.slow
def test_a_page_of_another_origin_in_the_same_browser_cannot_label(chromium, labelling, tmp_path):
    write_texts(tmp_path / "pool.csv", 30)
    server = labelling("--classes", "sport,space")
    other = labelling("--classes", "sport,space", "-o", str(tmp_path / "other.jsonl"))  # another port: another origin
    row = json.loads(server.ask("GET", "/state", Origin=None)[1])["item"]["row"]
    (tmp_path / "evil.html").write_text("<h1>evil</h1>")
    for address in ((tmp_path / "evil.html").as_uri(), other.url):
        chromium.open(address)
        chromium.wait("document.readyState === 'complete' && document.querySelector('h1') !== null")
        said = chromium.value(
            f"fetch('{server.url.replace('/?', '/label?')}', {{method: 'POST', mode: 'no-cors', "
            f"body: JSON.stringify({{row: {row}, label: 'sport'}})}}).then((a) => String(a.status), String)"
        )
        assert said in ("0", "TypeError: Failed to fetch")  # it may be sent, but is not answered
    assert labels_of(tmp_path / "pool.labels.jsonl") == []
