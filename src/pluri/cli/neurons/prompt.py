"""The prompt of ``pluri neurons``: one command after the other, with completion and a history."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluri.cli.console import note, show

if TYPE_CHECKING:
    from pluri.neurons import Simulation
    from pluri.neurons.language import Interpreter

PROMPT, MORE = "neurons> ", "     ... "
MOST_HISTORY = 2000


def take_commands(simulation: Simulation, read: Callable[[str], str] = input) -> Simulation:
    """Take commands until quit or the end of input; mistakes are told, and cost nothing."""
    from pluri.neurons.language import Interpreter, ScriptError
    from pluri.neurons.language.places import UnclosedBlock

    interpreter = Interpreter(simulation, output=show)
    store = _with_readline(interpreter) if read is input else None
    note("Commands of the neuron simulator: help lists them, Tab completes, quit or Ctrl-D ends.")
    lines: list[str] = []
    try:
        while not interpreter.has_left:
            try:
                lines.append(read(MORE if lines else PROMPT))
                interpreter.run_text("\n".join(lines), "line")
                lines = []
            except UnclosedBlock:
                continue
            except ScriptError as error:
                where = f"{error.place}: "
                shorter = f"column {error.place.column}: "
                note(f"error: {str(error).replace(where, shorter) if len(lines) == 1 else error}")
                lines = []
            except KeyboardInterrupt:
                lines = []
                note("interrupted")
            except EOFError:
                show()
                break
    finally:
        if store is not None:
            store()
    return interpreter.simulation


def _with_readline(interpreter: Interpreter) -> Callable[[], None] | None:
    """Completion and history, where there is readline; gives what stores the history."""
    try:
        import readline
    except ImportError:  # Windows
        return None

    found: list[str] = []

    def complete(text: str, number: int) -> str | None:
        if number == 0:
            from pluri.neurons.language.completion import completions

            try:
                found[:] = completions(interpreter, readline.get_line_buffer()[: readline.get_endidx()])
            except Exception:  # a mistake in what is half written is no reason to disturb
                found[:] = []
        return found[number] if number < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n")
    readline.parse_and_bind("bind ^I rl_complete" if _is_libedit(readline) else "tab: complete")
    place = history_file()
    with contextlib.suppress(OSError):
        readline.read_history_file(place)
    readline.set_history_length(MOST_HISTORY)

    def store() -> None:
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(place)

    return store


def history_file() -> Path:
    """Where commands are remembered, as other programs do."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(state) / "pluri" / "neurons_history"


def _is_libedit(readline: Any) -> bool:
    return "libedit" in (getattr(readline, "__doc__", "") or "")
