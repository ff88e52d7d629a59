"""The line that tells of compiling: on a terminal, once, after a while, above a progress bar, and never elsewhere."""

import io
import multiprocessing
import os
import sys
import time
from contextlib import redirect_stderr
from types import SimpleNamespace

import numpy as np
import pytest

from pluri.engine.compile_cache import DEPENDS
from pluri.engine.compile_record import listening, record_compilations
from pluri.engine.compile_status import QUIET, CompileStatus, silenced
from pluri.engine.compiled import compiled

LINE = "pluri: compiling, once (kept in the cache)\n"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.delenv(QUIET, raising=False)
    monkeypatch.delitem(sys.modules, "tqdm", raising=False)
    return Terminal()


def on(stream):
    """With a stream as stderr; not by a fixture, since pytest sets its own between fixtures and test."""
    return redirect_stderr(stream)


def function(ours=True, kept=True):
    """What numba tells of: a function of ours or of somebody else."""
    cache = SimpleNamespace(cache_path="/somewhere" if kept else None)
    return {"dispatcher": SimpleNamespace(_cache=cache, **({DEPENDS: frozenset()} if ours else {}))}


def compile_for(seconds, status=None, **kind):
    status = CompileStatus(patience=0.0) if status is None else status
    status.begin(function(**kind))
    status.begin(function(ours=False))  # what it calls
    time.sleep(seconds)
    status.end(function(ours=False))
    status.end(function(**kind))


def test_the_line_comes_once_after_compiling_for_a_while(terminal):
    status = CompileStatus(patience=0.5)
    with on(terminal):
        compile_for(0.1, status)
        time.sleep(0.6)  # time that is not spent on compiling does not count
        compile_for(0.01, status)
        assert terminal.getvalue() == ""
        compile_for(1.0, status)
        assert terminal.getvalue() == LINE
        compile_for(0.1, status)
    assert terminal.getvalue() == LINE


@pytest.mark.parametrize(
    "reason", ["a pipe", "no stderr", "a closed stream", "silenced", "a quiet block", "a worker", "others"]
)
def test_there_is_no_line_where_nobody_wants_it(terminal, monkeypatch, reason):
    stream = terminal
    if reason == "a pipe":
        stream = io.StringIO()
    elif reason == "no stderr":
        stream = None
    elif reason == "a closed stream":
        stream = Terminal()
        stream.close()
    elif reason == "silenced":
        monkeypatch.setenv(QUIET, "1")
    elif reason == "a worker":
        monkeypatch.setattr(multiprocessing, "current_process", lambda: SimpleNamespace(name="SpawnProcess-1"))
    with on(stream), silenced(reason == "a quiet block"):
        compile_for(0.1, ours=reason != "others")
    assert terminal.getvalue() == ""
    assert reason != "a pipe" or stream.getvalue() == ""


def test_a_terminal_that_goes_away_ends_nothing(terminal, monkeypatch):
    def gone(text):
        raise OSError("no terminal")

    monkeypatch.setattr(terminal, "write", gone)
    with on(terminal):
        compile_for(0.1)


def test_nothing_is_promised_without_a_cache(terminal):
    with on(terminal):
        compile_for(0.3, kept=False)
    assert terminal.getvalue() == "pluri: compiling\n"


def test_the_line_stands_alone_above_a_bar_of_rich(terminal):
    from rich.console import Console
    from rich.progress import Progress

    with on(terminal), Progress(console=Console(file=terminal, force_terminal=True, width=80)) as bar:
        task = bar.add_task("fit", total=4)
        bar.advance(task)
        compile_for(0.3)
        bar.advance(task)
    (shown,) = [line for line in terminal.getvalue().split("\n") if "compiling" in line]
    assert "fit" not in shown.split("\x1b[2K")[-1]  # what was on the line before it is erased


def test_the_line_stands_alone_above_a_bar_of_tqdm(terminal, monkeypatch):
    tqdm = pytest.importorskip("tqdm")
    monkeypatch.setitem(sys.modules, "tqdm", tqdm)
    with on(terminal), tqdm.tqdm(total=4, file=terminal, mininterval=0) as bar:
        bar.update()
        compile_for(0.3)
        bar.update()
    # After a return to the beginning of the line, and before the bar is drawn again.
    assert LINE in terminal.getvalue().split("\r")


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are of POSIX")
def test_a_real_terminal_gets_the_line_and_a_record_tells_of_the_same_function(monkeypatch):
    import pty

    @compiled(cache=False)
    def slowly(x):
        return x.sum() + x.max()

    monkeypatch.delenv(QUIET, raising=False)
    monkeypatch.delitem(sys.modules, "tqdm", raising=False)
    status = CompileStatus(patience=0.0)
    leader, follower = pty.openpty()
    with open(follower, "w") as stream, on(stream):
        with listening(status.begin, status.end), record_compilations() as found:
            assert slowly(np.ones(3)) == 4.0
            assert slowly(np.ones(4)) == 5.0
        shown = os.read(leader, 1000).decode()
    os.close(leader)
    # The status of the whole program may have something to say as well.
    assert set(shown.split("\r\n")) == {"pluri: compiling", ""}
    assert [one.types for one in found if one.depth == 0] == ["array(float64, 1d, C)"]
    outer = found[-1]
    assert outer.function.endswith("slowly")
    inner = sum(one.seconds for one in found if one.depth == 1)
    assert abs(outer.seconds - outer.own_seconds - inner) < 1e-9
