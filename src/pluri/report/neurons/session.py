"""A simulation that runs beside a page: in a thread of its own, in short pieces, between which commands are taken.

Only that thread touches the simulation. The page asks for what is new, and may close: nothing stops that was not asked
to stop.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from pluri.neurons import Simulation
from pluri.neurons.graphics.elements import Widget
from pluri.neurons.graphics.film import Film
from pluri.neurons.graphics.layout import output_layout, shape_of, widget_values, with_values
from pluri.neurons.language import Limits, ScriptError
from pluri.report.neurons.live_interpreter import Halted, LiveInterpreter

#: Seconds of the clock that a piece of a run takes if the computer keeps up, and at most.
PIECE, LONGEST_PIECE = 0.03, 0.1
#: Milliseconds of the simulation in one piece: more at a time could not be drawn.
LONGEST_STRETCH = 200.0
#: Seconds that an answer waits for its command: mistakes come back with it, long runs are seen on the page.
PATIENCE = 1.0
#: Lines of output that are kept.
MOST_LINES = 200
#: Recorded numbers that are kept: a simulation beside a page may run for days.
MOST_NUMBERS = 20_000_000
#: Commands that wait for those before them.
MOST_WAITING = 100


class LiveSession:
    """A simulation with its page.

    Parameters
    ----------
    simulation : Simulation
    title : str
        Heading of the page.
    output : callable, optional
        Takes what scripts say, beside the page.
    limits : Limits, optional
        Of scripts and commands.

    Attributes
    ----------
    interpreter : LiveInterpreter
        Runs the script that builds the network, before `start`.
    """

    def __init__(
        self,
        simulation: Simulation,
        title: str,
        *,
        output: Callable[[str], None] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.title, self._output = title, output
        self.running, self.speed, self.trouble = False, 100.0, ""
        self.said: deque[str] = deque(maxlen=MOST_LINES)
        self.interpreter = LiveInterpreter(simulation, self._say, self, limits)
        self._lock = threading.RLock()
        self._jobs: queue.Queue[_Job] = queue.Queue(MOST_WAITING)
        self._halt, self._closed, self._busy = threading.Event(), threading.Event(), False
        self._thread: threading.Thread | None = None
        self._seconds_per_step, self._n_pieces = 0.0, 0
        self.version = self.epoch = 0
        self.layout: dict[str, Any] = {}
        self._film = Film({"forms": [], "graphs": [], "cells": [], "networks": []})
        self._values: dict[str, Any] = {}
        self._time = 0.0
        self._cursors: dict[int, dict[str, int]] = {}
        self.look_again()

    # The thread of the simulation -------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to take commands; what runs, runs in a thread."""
        self.look_again()
        self._thread = threading.Thread(target=self._work, name="neurons", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, after the piece that it is in."""
        self._closed.set()
        self._halt.set()
        if self._thread is not None:
            self._thread.join(10)

    def _work(self) -> None:
        while not self._closed.is_set():
            try:
                job = self._jobs.get_nowait() if self.running else self._jobs.get(timeout=0.05)
            except queue.Empty:
                if self.running:
                    self._run_piece()
                continue
            self._halt.clear()
            self._busy = True
            try:
                job.work()
            except Halted:
                pass
            except Exception as error:
                job.error = error
                if job.late:
                    self.trouble = _sentence(error)
            finally:
                self._busy = False
                self.look_again()
                job.done.set()

    def _run_piece(self) -> None:
        begun = time.monotonic()
        try:
            self._advance(self._steps_of_a_piece())
        except Exception as error:
            self.running, self.trouble = False, _sentence(error)
            self.look_again()
            return
        pause = PIECE - (time.monotonic() - begun)
        if self.speed > 0 and pause > 0:
            time.sleep(pause)

    def _steps_of_a_piece(self) -> int:
        simulation, most = self.interpreter.simulation, LONGEST_PIECE
        wanted = (self.speed * PIECE if self.speed > 0 else LONGEST_STRETCH) / simulation.dt
        possible = most / self._seconds_per_step if self._seconds_per_step > 0 else 10.0
        return max(1, round(min(wanted, possible)))

    def _advance(self, n_steps: int) -> None:
        simulation = self.interpreter.simulation
        begun = time.perf_counter()
        result = simulation.run(n_steps * simulation.dt)
        spent = (time.perf_counter() - begun) / n_steps
        # Compiling counts once: the first pieces are slow, and soon forgotten.
        self._seconds_per_step = spent if self._seconds_per_step == 0 else 0.7 * self._seconds_per_step + 0.3 * spent
        self._n_pieces += 1
        if self._n_pieces % 100 == 0:
            simulation.recording.forget(MOST_NUMBERS)
        with self._lock:
            if result.time.size and result.time[0] < self._film.end - 1e-9:
                self._new_epoch()
            self._film.add(result)
            self._time = float(simulation.time)

    def is_halted(self) -> bool:
        """Whether somebody has paused what a command does."""
        return self._thread is not None and self._halt.is_set()

    def go_on(self, n_steps: int) -> None:
        """Take steps in pieces until they are done, or somebody pauses; the command of a script."""
        self.look_again()
        live = self._thread is not None
        while n_steps > 0:
            piece = min(n_steps, self._steps_of_a_piece() if live else 20_000)
            begun = time.monotonic()
            self._advance(piece)
            n_steps -= piece
            if self.is_halted():
                raise Halted
            pause = PIECE - (time.monotonic() - begun)
            if live and self.speed > 0 and pause > 0 and n_steps > 0:
                time.sleep(pause)

    # What may be asked for --------------------------------------------------------------------------------------

    def act(self, action: str, **content: Any) -> None:
        """Do what the page asks for; a mistake is a ValueError with one sentence."""
        if action == "start":
            self.running, self.trouble = True, ""
        elif action == "pause":
            self.running = False
            self._halt.set()
        elif action == "speed":
            if not 0 <= content["value"] <= 1e6:
                raise ValueError(f"speed must be from 0 to 1e6 ms/s, got {content['value']!r}")
            self.speed = float(content["value"])
        else:
            self.trouble = ""
            self._wait(getattr(self, f"_{action}"), content)

    def _wait(self, work: Callable[..., None], content: dict[str, Any]) -> None:
        job = _Job(lambda: work(**content))
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise ValueError("too many commands wait already: pause first") from None
        if not job.done.wait(PATIENCE):
            job.late = True
        if job.done.is_set() and job.error is not None:
            raise ValueError(_sentence(job.error)) from job.error

    def _step(self, duration: float) -> None:
        if not 0 < duration <= 1e6:
            raise ValueError(f"duration must be above 0 and at most 1e6 ms, got {duration!r}")
        self.running = False
        self.go_on(max(1, round(duration / self.interpreter.simulation.dt)))

    def _reset(self) -> None:
        self.interpreter.simulation.reset()

    def _widget(self, path: str, value: Any = None) -> None:
        found = self.interpreter.simulation.find(path)
        if len(found) != 1 or not isinstance(found[0], Widget):
            raise ValueError(f"there is no widget {path}")
        seen = found[0].used(value)
        with self._lock:
            self._values = widget_values(self.interpreter.simulation)
        if found[0].command:
            self.interpreter.run_action(found[0].command, f"command of {path}", seen)

    def _command(self, text: str) -> None:
        self._say(f"> {text}")
        self.interpreter.run_text(text, "line")

    def _say(self, text: str) -> None:
        self.said.extend(text.split("\n"))
        if self._output is not None and (self._thread is None):
            self._output(text)

    # What is seen -----------------------------------------------------------------------------------------------

    def look_again(self) -> None:
        """See what the simulation has become: new widgets, other values, a time that was reset."""
        simulation = self.interpreter.simulation
        layout, values = output_layout(simulation), widget_values(simulation)
        with self._lock:
            self._values = values
            shape = shape_of(layout)
            if shape != shape_of(self.layout) or not self.version:
                self.layout, self.version = layout, self.version + 1
                self._film = Film.of(simulation, layout)
                self.epoch += 1
            elif simulation.time < self._time - 1e-9:
                self._new_epoch()
            self._time = float(simulation.time)

    def _new_epoch(self) -> None:
        self._film.clear()
        self.epoch += 1

    def state(self, after: int, epoch: int, version: int) -> dict[str, Any]:
        """What came after a mark that an earlier answer had; all of it if that was of another run."""
        with self._lock:
            known = self._cursors.get(after, {}) if epoch == self.epoch and version == self.version else {}
            mark = self._film.marks() + 1_000_000_007 * self.epoch
            found = {
                **self._film.since(known),
                "version": self.version,
                "epoch": self.epoch,
                "cursor": mark,
                "time": self._time,
                "running": self.running,
                "busy": self._busy and self._thread is not None,
                "speed": self.speed,
                "values": self._values,
                "trouble": self.trouble,
                "said": list(self.said),
            }
            if version != self.version:
                found["layout"] = self.layout
            self._cursors[mark] = self._film.ends()
            while len(self._cursors) > 50:  # pages that have not asked for long begin anew
                del self._cursors[next(iter(self._cursors))]
            return found

    def film(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Layout and film, for a page that replays."""
        with self._lock:
            layout = {**self.layout, "forms": with_values(self.layout["forms"], self._values)}
            return layout, {**self._film.whole(), "end": max(self._film.end, self._time)}


class _Job:
    """Work for the thread of the simulation, and what became of it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work, self.done, self.late = work, threading.Event(), False
        self.error: Exception | None = None


def _sentence(error: Exception) -> str:
    if isinstance(error, ScriptError) and error.place.file.startswith(("line", "command of")):
        return str(error).removeprefix(f"{error.place}: ")
    return " ".join(str(error).split()) or type(error).__name__
