"""A topic model with given topics: pages and drawings can be checked without a fit; and pages in a browser."""

from __future__ import annotations

import base64
import json
import os
import re
import select
import shutil
import subprocess
import time
from html import unescape

import numpy as np
import pytest

from pluri.topics.topic_graph import Hierarchy
from pluri.topics.topic_model import TopicModel

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class GivenTopics(TopicModel):
    """Topics as they were given."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return self.shares_

    def _held_out(self, X, method, rng, **options):
        raise NotImplementedError

    def _hierarchy(self):
        return self.hierarchy_ if self.hierarchy_ is not None else super()._hierarchy()


def given_topics(topic_word, weight, hierarchy=None, words=None):
    model = GivenTopics()
    model.topic_word_ = model.components_ = np.asarray(topic_word, dtype=float)
    model.topic_weight_ = np.asarray(weight, dtype=float)
    model.hierarchy_ = hierarchy
    if words is not None:
        model.name_words(words)
    return model


def random_topics(n_topics, n_words=300, *, kind="flat", seed=0, n_documents=0):
    """Topics drawn at random: flat, a tree, or a graph in which some have two parents."""
    rng = np.random.default_rng(seed)
    hierarchy = None
    if kind != "flat":
        depth, edges, weight = [0], [], []
        for topic in range(1, n_topics):
            parent = int(rng.integers(0, topic)) if topic > 3 else 0
            while depth[parent] >= 3:
                parent = int(rng.integers(0, topic))
            depth.append(depth[parent] + 1)
            above = {parent}
            if kind == "graph" and topic > 3 and rng.random() < 0.4:
                above |= {other for other in [int(rng.integers(0, topic))] if depth[other] < depth[topic]}
            for other in sorted(above):
                edges.append((other, topic))
                weight.append(float(rng.uniform(0.05, 0.9)))
        hierarchy = Hierarchy(np.array(depth), np.array(edges), np.array(weight))
    model = given_topics(
        0.999 * rng.dirichlet(np.full(n_words, 0.05), n_topics) + 0.001 / n_words,
        rng.dirichlet(np.ones(n_topics)),
        hierarchy,
        [f"word{column}" for column in range(n_words)],
    )
    if n_documents:
        model.shares_ = rng.dirichlet(np.full(n_topics, 0.2), n_documents)
        texts = [" ".join(f"word{column}" for column in rng.integers(0, n_words, 80)) for _ in range(n_documents)]
        model.keep_examples(None, [f"letter {row}" for row in range(n_documents)], texts)
    return model


@pytest.fixture
def topics():
    return random_topics


@pytest.fixture
def given():
    return given_topics


def document_of(path, fragment="", profile=None):
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               "--disable-background-networking", "--no-first-run", f"--user-data-dir={profile}",
               "--window-size=1300,900", "--virtual-time-budget=4000", "--dump-dom",
               path.as_uri() + fragment]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def html_attributes(document):
    return dict(re.findall(r'(data-\w+)="([^"]*)"', re.search(r"<html[^>]*>", document)[0]))


@pytest.fixture
def browse(tmp_path):
    """Open a page at a fragment and act on it; gives the attributes, the document, and what the program said.

    A program of the test's own is added to a copy of the page whose policy is taken away; it acts, and writes what it
    saw into attributes of the document, which the browser prints.
    """
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH")

    def open_page(page, fragment="", program=None):
        if program is not None:
            page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
            told = "document.documentElement.setAttribute('data-told', JSON.stringify(say))"
            tools = (
                "const $ = (s) => document.querySelector(s), $$ = (s) => [...document.querySelectorAll(s)];"
                "const wait = () => new Promise((done) => setTimeout(done, 30));"
                "const key = (element, name) => element.dispatchEvent(new KeyboardEvent('keydown', "
                "{key: name, bubbles: true, cancelable: true}));"
            )
            script = f"<script>(async () => {{{tools} const say = {{}}; try {{ {program} }} catch (error) "
            script += f"{{ say.error = String(error); }} {told}; }})();</script>"
            # Virtual time does not wait for frames, but for timers.
            frames = "<script>window.requestAnimationFrame = (step) => setTimeout(step, 0);</script>"
            page = page.replace("</head>", frames + "</head>", 1).replace("</body>", script + "</body>")
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        document = document_of(path, fragment, tmp_path / "profile")
        attributes = html_attributes(document)
        assert attributes.get("data-ready") == "true", document[:2000]
        said = json.loads(unescape(attributes.get("data-told", "{}")))
        assert "error" not in said, said
        return attributes, document, said

    return open_page


class Chromium:
    """A browser steered through pipes (its DevTools protocol): real keys, and pages as they are, with their policy."""

    def __init__(self, profile):
        to_browser, from_test = os.pipe()
        from_browser, to_test = os.pipe()
        # The browser reads what it is told from 3 and answers on 4.
        shell = f'exec 3<&{to_browser} 4>&{to_test}; exec "$@"'
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", f"--user-data-dir={profile}", "--remote-debugging-pipe",
                   "--window-size=1200,800", "about:blank"]  # fmt: skip
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", CHROMIUM, *options], pass_fds=(to_browser, to_test),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(to_test)
        self._in, self._out = os.fdopen(from_test, "wb", 0), os.fdopen(from_browser, "rb", 0)
        self._rest, self._number, self._session = b"", 0, None
        page = next(one for one in self.tell("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self._session = self.tell("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]

    def tell(self, method, **parameters):
        """Send a command, and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._in.write(json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                assert select.select([self._out], [], [], 60)[0], f"no answer to {method}"
                self._rest += os.read(self._out.fileno(), 1 << 20)
            text, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def value(self, expression):
        """What an expression is on the page."""
        found = self.tell("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression, seconds=60):
        """Wait until an expression holds on the page."""
        end = time.monotonic() + seconds
        while not self.value(f"(() => {{ try {{ return {expression}; }} catch {{ return false; }} }})()"):
            assert time.monotonic() < end, f"{expression} did not come true: {self.value('document.body.innerText')}"
            time.sleep(0.01)

    def open(self, url):
        self.tell("Page.navigate", url=url)

    def press(self, key):
        """Strike a key: down and up."""
        code = {"Backspace": 8}.get(key, ord(key.upper()[0]))
        text = {} if len(key) > 1 else {"text": key}
        for kind in ("keyDown", "keyUp"):
            self.tell("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def picture(self, path, width=1200, height=800, dark=False):
        """Save what is seen."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.tell("Emulation.setEmulatedMedia", features=scheme)
        path.write_bytes(base64.b64decode(self.tell("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self._in.close()
        self._out.close()
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture
def chromium(tmp_path):
    """A browser that the test steers."""
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH")
    browser = Chromium(tmp_path / "chromium")
    yield browser
    browser.close()
