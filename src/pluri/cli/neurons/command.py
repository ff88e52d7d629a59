"""``pluri neurons``: run a script of the neuron simulator, or take its commands one by one."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import INTERRUPTED, note, reporting, show
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError

if TYPE_CHECKING:
    from pluri.neurons import Simulation
    from pluri.neurons.language import Interpreter

Script = Annotated[
    str | None,
    typer.Argument(metavar="[SCRIPT]", help="A script file, or the name of one that is shipped; a prompt without."),
]
SavePage = Annotated[
    Path | None, typer.Option("--save-page", metavar="FILE.html", help="Write a page that replays the run.")
]
Results = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write what was recorded, as .npz (with spikes) or .csv.")
]


def neurons(
    script: Script = None,
    listed: Annotated[bool, typer.Option("--list", help="List the scripts that are shipped, and end.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Serve a page on which the simulation runs.")] = False,
    save_page: SavePage = None,
    results: Results = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of 127.0.0.1; 0 for any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random numbers.")] = 0,
    force: options.Force = False,
) -> None:
    """Simulate neurons and networks of them: run a script, take commands at a prompt, or serve a page.

    The page is served to this computer alone (127.0.0.1): its panel is what the script describes, the simulation runs
    beside it, and closing it stops nothing; end with Ctrl-C.
    """
    with reporting():
        if listed:
            _list()
            return
        check_output(save_page, force, (".html", ".htm"), "--save-page")
        check_output(results, force, (".npz", ".csv"), "--results")
        place = None if script is None else _find(script)
        if page and place is None and not sys.stdin.isatty():
            raise UsageError("--page must have a SCRIPT, or a terminal")
        from pluri.neurons import Simulation

        simulation = Simulation(random_state=seed)
        if page:
            simulation = _serve(simulation, place, port, browser)
        elif place is None and sys.stdin.isatty():
            from pluri.cli.neurons.prompt import take_commands

            simulation = take_commands(simulation)
        else:
            simulation = _batch(simulation, place, save_page, results)
        _write(simulation, place, save_page, results)


def _list() -> None:
    from pluri.neurons.scripts import first_comment, shipped_scripts

    found = shipped_scripts()
    width = max(map(len, found))
    for name, path in found.items():
        show(f"{name:<{width}}  {first_comment(path)}")


def _find(script: str) -> Path:
    """The file that was meant: one of the user's, or one that is shipped."""
    from pluri.neurons.scripts import shipped_scripts

    shipped = shipped_scripts()
    path = Path(script)
    if path.is_file():
        return path
    if script in shipped:
        return shipped[script]
    near = difflib.get_close_matches(script, shipped, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise UsageError(f"SCRIPT must be a file or one of {', '.join(shipped)}, got {script!r}{hint}")


def _title(place: Path | None) -> str:
    from pluri.neurons.scripts import title_of

    return "Neurons" if place is None else title_of(place)


def run_script(interpreter: Interpreter, place: Path | None) -> None:
    """Run a file or what comes through a pipe; a mistake is shown with its line."""
    from pluri.neurons.language import ScriptError

    try:
        if place is None:
            interpreter.run_text(sys.stdin.read(), "<stdin>")
        else:
            interpreter.run_file(place)
    except ScriptError as error:
        show_line(error, place)
        raise


def show_line(error: Any, place: Path | None) -> None:
    """The line of a mistake with a mark below its column, if it is in this file."""
    if place is None or error.place.file != place.name:
        return
    lines = place.read_text(encoding="utf-8", errors="replace").split("\n")
    if error.place.line <= len(lines) and len(lines[error.place.line - 1]) <= 200:
        note(f"  {lines[error.place.line - 1].rstrip().expandtabs(1)}")
        note(" " * (error.place.column + 1) + "^")


def _batch(simulation: Simulation, place: Path | None, save_page: Path | None, results: Path | None) -> Simulation:
    from pluri.neurons.language import Interpreter

    interpreter = Interpreter(simulation, output=show)
    try:
        run_script(interpreter, place)
    except KeyboardInterrupt:
        note("interrupted: this is what was recorded so far")
        _write(interpreter.simulation, place, save_page, results)
        raise typer.Exit(INTERRUPTED) from None
    note(f"{interpreter.simulation.time:g} ms simulated")
    return interpreter.simulation


def _serve(simulation: Simulation, place: Path | None, port: int, browser: bool) -> Simulation:
    """Serve the page until Ctrl-C."""
    from pluri.report.neurons.server import NeuronServer
    from pluri.report.neurons.session import LiveSession

    session = LiveSession(simulation, _title(place), output=show)
    if place is not None:
        run_script(session.interpreter, place)
    session.start()
    try:
        server = NeuronServer(session, port)
    except OSError as error:
        session.close()
        raise UsageError(f"--port must be free, got {port}: {error.strerror}") from error
    show(server.url)
    note("the simulation runs beside the page; end with Ctrl-C")
    if browser:
        import webbrowser

        webbrowser.open(server.url)
    sys.stdout.flush()
    try:
        server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        pass  # the usual end
    finally:
        server.server_close()
        session.close()
    note(f"{session.interpreter.simulation.time:g} ms simulated")
    return session.interpreter.simulation


def _write(simulation: Simulation, place: Path | None, save_page: Path | None, results: Path | None) -> None:
    if save_page is not None:
        from pluri.report import neuron_report

        neuron_report(simulation, save_page, title=_title(place))
        note(f"page written to {save_page}")
    if results is not None:
        from pluri.cli.neurons.results import write_results

        n_rows = write_results(simulation.result(), results)
        note(f"{n_rows} rows written to {results}")
