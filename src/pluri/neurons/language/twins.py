"""Methods of `Simulation` that do what the commands ``include``, ``ls`` and ``show`` do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pluri.neurons.simulation import Simulation


class ScriptCommands:
    """Methods of `Simulation` for scripts, and for those who look around."""

    def run_script(self, path: str | os.PathLike[str]) -> Any:
        """Run a script file; nothing of it runs if a line of it cannot be meant.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        SimulationResult
            All that was recorded since the last reset; of the simulation that the script ended with, if it has restored
            another one.
        """
        from pluri.neurons.language import Interpreter

        simulation: Any = self
        interpreter = Interpreter(simulation)
        interpreter.run_file(os.fspath(path))
        return interpreter.simulation.result()

    def list_elements(self, path: str = ".") -> str:
        """The elements directly below one, a line for each: name and class."""
        simulation: Simulation = self  # type: ignore[assignment]
        element = simulation.element(path)
        lines = [f"  {one.name}{'/' * bool(one.children)}  ({one.class_name})" for one in element.children.values()]
        return "\n".join([element.path, *(lines or ["  (nothing)"])])

    def describe(self, path: str) -> str:
        """An element and its fields, a line for each: value, unit and meaning; and what it is joined to."""
        simulation: Simulation = self  # type: ignore[assignment]
        element = simulation.element(path)
        lines = [f"{element.path}  ({element.class_name})"]
        for name, one in element.fields.items():
            value = f"{one.value:.6g}" if isinstance(one.value, float) else _text(one.value)
            lines.append(f"  {name} = {value}{' ' * bool(one.unit)}{one.unit}  // {one.doc}")
        for link in simulation.links:
            if element in (link.source, link.destination):
                lines.append(f"  link {link.source.path} to {link.destination.path}  // {link.kind}")
        wires = [one for one in simulation.connections if element in (one.source, one.destination)]
        for wire in wires[:20]:
            lines.append(
                f"  connect {wire.source.path} to {wire.destination.path} -delay {wire.delay:g} -weight {wire.weight:g}"
            )
        if len(wires) > 20:
            lines.append(f"  and {len(wires) - 20} more connections")
        return "\n".join(lines)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return '"' + " ".join(f"{one:g}" for one in value[:20]) + (" ..." if len(value) > 20 else "") + '"'
    return f'"{value}"' if isinstance(value, str) else str(value)
