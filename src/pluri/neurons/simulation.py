"""A simulation: the tree of elements with clocks, and (when it is compiled) the arrays that it runs on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from pluri.neurons.clocks import Clocked
from pluri.neurons.numerics.network import Network
from pluri.neurons.numerics.numbering import is_python
from pluri.neurons.numerics.recording import Recording, Request
from pluri.neurons.problems import problems_of, warn_of_large_steps
from pluri.neurons.result import SimulationResult, result_of
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError, nearest
from pluri.neurons.tree.names import Place
from pluri.validation import Flag, Number, Only, RandomState, Whole, as_generator
from pluri.validation.interrupt_pauses import whole_pieces

METHODS = ("euler", "exp_euler", "backward_euler", "crank_nicolson")


class Simulation(Clocked):
    """A network of elements, and its time.

    Elements are created by the name of their class at a path, joined by `link` (values pass within a step: a channel
    and its compartment) and `connect` (a wire with a delay: an axon and a synapse), and moved on by `run`. The tree is
    compiled into arrays when it first runs; the loops over them are the same for all networks, so that a new network
    compiles nothing. Fields of elements stay live: reading ``soma.Vm`` reads the array.

    Units are mV, ms, nA, uS, nF and MOhm.

    Parameters
    ----------
    dt : float, default=0.025
        Time step in ms: the period of clock 0.
    method : {"exp_euler", "crank_nicolson", "backward_euler", "euler"}, default="exp_euler"
        How voltages are moved on. ``"exp_euler"`` cannot blow up within a compartment and suits networks of few
        compartments each; ``"crank_nicolson"``, of second order, suits morphologies; ``"backward_euler"`` is stable
        whatever the step; ``"euler"`` is for teaching.
    random_state : int, Generator or None, default=None
        Of random spikes and of the order of binary units.
    n_jobs : int or None, default=None
        None or 1: a simulation runs on one thread. `run_all` runs several simulations at once.
    rate_tables : bool, default=True
        Whether gates are looked up in tables with 20 voltages for each mV; else their rates are evaluated in each
        step. Channels with `kinetics` of their own are always looked up.
    verbose : int, default=0
        With 1, `copy` says which links and connections it left out.

    Attributes
    ----------
    time : float
        Time since the last reset, in ms.
    root, current, links, connections : Element, str, list, list
        The tree.

    See Also
    --------
    pluri.neurons.models : Networks that are ready to run.
    SimulationResult : What `run` gives.

    Examples
    --------
    >>> from pluri.neurons import Simulation
    >>> sim = Simulation(dt=0.025)
    >>> soma = sim.create("active_compartment", "/soma", length=20, diameter=20, inject=0.1)
    >>> axon = sim.create("axon", "/soma/axon")
    >>> sim.link("/soma", "/soma/axon")
    >>> sim.record("/soma", "Vm")
    >>> result = sim.run(50.0)
    >>> result["/soma", "Vm"].shape, result.spikes("/soma/axon").round(1).tolist()
    ((2001,), [2.2, 18.5, 34.5])
    """

    def __init__(
        self,
        dt: float = 0.025,
        method: str = "exp_euler",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        *,
        rate_tables: bool = True,
        verbose: int = 0,
    ) -> None:
        for name, value, allowed in (
            ("dt", dt, Number(above=0)),
            ("method", method, Only(*METHODS)),
            ("n_jobs", n_jobs, Only(None, 1)),
            ("rate_tables", rate_tables, Flag()),
        ):
            if not allowed.holds(value):
                near = nearest(value, METHODS) if name == "method" and isinstance(value, str) else ""
                raise SimulationError(f"{name} must be {allowed}, got {value!r}{near}")
        super().__init__(dt, verbose=verbose)
        self.n_jobs, self.rate_tables = n_jobs, bool(rate_tables)
        self._method = method
        self.seed = int(as_generator(random_state).integers(2**63))
        self.requests: list[Request] = []
        self.recording = Recording()
        self.network: Network | None = None
        self._stale = True
        self._n_steps = 0  # of the network before it was compiled

    # Methods and time ------------------------------------------------------------------------------------------

    @property
    def method(self) -> str:
        """How voltages are moved on."""
        return self._method

    @method.setter
    def method(self, value: str) -> None:
        if not Only(*METHODS).holds(value):
            raise SimulationError(f"method must be {Only(*METHODS)}, got {value!r}")
        if value != self._method and "crank_nicolson" in (value, self._method) and self.n_steps > 0:
            raise SimulationError("the method can change to or from crank_nicolson only at time 0: reset first")
        self._method = value
        self._stale = True

    @property
    def method_number(self) -> int:
        """Number of the method in the compiled loops."""
        return METHODS.index(self.method)

    @property
    def n_steps(self) -> int:
        """Steps since the last reset."""
        return self._n_steps if self.network is None else self.network.step

    @property
    def time(self) -> float:
        """Time since the last reset, in ms."""
        return self.n_steps * self.dt

    # What the tree asks -----------------------------------------------------------------------------------------

    def changed(self, element: Element | None, name: str | None = None) -> None:
        """Note that the network must be compiled anew before the next step."""
        if element is None or element._numbers is not None or name == "clock":
            self._stale = True

    def place(self, block: str, number: int) -> tuple[np.ndarray[Any, Any], int] | None:
        """Where a number of a block lives in the compiled arrays."""
        assert self.network is not None
        return self.network.state, self.network.layout.offset[block] + number

    def _python(self, element: Element) -> Any:
        if self.network is None or self.network.python is None or not is_python(element):
            raise SimulationError(f"{element.path} has no process of its own, or the network is not running")
        return self.network.python

    def deliver(self, element: Element, slot: str, value: Any) -> None:
        """Have a value arrive at a slot of an element written in Python."""
        self._python(element).deliver(element, slot, value)

    def received(self, element: Element, slot: str) -> float:
        """What arrives at a slot of an element written in Python."""
        return float(self._python(element).received(element, slot))

    def sent(self, element: Element, slot: str, value: Any) -> None:
        """Have a slot of an element written in Python give out a value."""
        self._python(element).sent(element, slot, value)

    # Running ----------------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        """Sentences about what looks wrong: unlinked channels, cycles, disconnected compartments, odd values."""
        return [problem.text for problem in problems_of(self)]

    def record(self, pattern: Place, field: str, clock: int = 0) -> None:
        """Keep a field of all elements that a pattern matches, at each tick of a clock.

        Parameters
        ----------
        pattern : str or Element
            Which elements.
        field : str
            Which field: one that changes in the course of a run, such as "Vm".
        clock : int, default=0
            How often. What is asked for at two clocks is kept at the faster one.
        """
        targets = self._targets(pattern)
        if not any(field in one.addresses for one in targets):
            targets[0].field_named(field)
            raise SimulationError(f"{field} of {targets[0].path} does not change in a run, and cannot be recorded")
        if clock not in self.clocks:
            raise SimulationError(f"clock {clock} was not set")
        text = pattern.path if isinstance(pattern, Element) else pattern
        if not text.startswith("/"):
            text = ("" if self.current == "/" else self.current) + "/" + text
        request = Request(text, field, clock)
        if request not in self.requests:
            self.requests.append(request)
            self._stale = True

    def reset(self) -> None:
        """Go back to time 0: initial values, empty queues, nothing recorded."""
        elements = self.root.below()
        for one in elements:
            one.forget_state()
        self.network, self._stale, self._n_steps, self.recording = None, True, 0, Recording()
        for one in elements:
            one.reset()

    def compile(self) -> None:
        """Turn the tree into arrays; done by `run` and `step` where anything has changed."""
        problems = [one.text for one in problems_of(self) if one.fatal]
        if problems:
            raise SimulationError("; ".join(problems[:5]))
        warn_of_large_steps(self)
        old = self.network
        network = Network(self, self.recording, step=self.n_steps)
        if old is not None:
            network.take_over(old)
        with whole_pieces():
            for one in network.assembly.elements:
                one._numbers = network.assembly.numbers.get(id(one))
            self.network, self._stale = network, False
            if self.n_steps == 0:
                self.recording.groups = list(self.recording.active)
                self.recording.add_first_row(network.state)

    def step(self, n_steps: int = 1) -> None:
        """Move on by some steps.

        Parameters
        ----------
        n_steps : int, default=1
            How many.
        """
        if not Whole(0).holds(n_steps):
            raise SimulationError(f"n_steps must be {Whole(0)}, got {n_steps!r}")
        if self._stale or self.network is None:
            self.compile()
        assert self.network is not None
        self.network.run(int(n_steps))

    def run(self, duration: float) -> SimulationResult:
        """Move on by a time.

        Ctrl-C ends it after the current piece of work; what was recorded until then is in `result`.

        Parameters
        ----------
        duration : float
            In ms; rounded to whole steps.

        Returns
        -------
        SimulationResult
            What was recorded during this run.
        """
        if not Number(least=0).holds(duration):
            raise SimulationError(f"duration must be {Number(least=0)}, got {duration!r}")
        begin = self.n_steps
        self.step(math.floor(float(duration) / self.dt + 0.5))
        return result_of(self, begin)

    def result(self) -> SimulationResult:
        """All that was recorded since the last reset."""
        return result_of(self, 0)

    # Files ------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Save the network, its state and what was recorded, as plain data.

        Parameters
        ----------
        path : str or Path
            File to write: a ZIP archive of arrays and a JSON text.
        """
        from pluri.neurons.saving import save_simulation

        save_simulation(self, path)

    @classmethod
    def restore(cls, path: str | Path) -> Simulation:
        """Read what `save` wrote; it runs on as if it had never been saved. Loading runs no code.

        Parameters
        ----------
        path : str or Path
            File to read. Classes of elements of your own must be registered before.

        Returns
        -------
        Simulation
        """
        from pluri.neurons.saving import restore_simulation

        return restore_simulation(cls, path)
