"""Cells as NeuroML 2 files, for simulators of research scale.

R. C. Cannon et al. (2014). LEMS: a language for expressing complex biological models in concise and hierarchical form
and its use in underpinning NeuroML 2. Frontiers in Neuroinformatics 8, 79.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from pluri.neurons.library.channels import Channel
from pluri.neurons.library.compartments import ActiveCompartment, Cylinder, Membrane
from pluri.neurons.library.hodgkin_huxley import POTASSIUM, SODIUM, GateRates, Rate
from pluri.neurons.simulation import Simulation
from pluri.neurons.tree.errors import SimulationError
from pluri.neurons.tree.names import Place
from pluri.validation import replacing

SPACE = "http://www.neuroml.org/schema/neuroml2"
#: Kinetics of a channel: powers and rates of its gates.
Gates = tuple[tuple[int, GateRates], ...]


def write_neuroml(simulation: Simulation, path: Place, file: str | Path) -> None:
    """Write a cell as a NeuroML 2 file: its morphology, channels and passive properties.

    Synapses, stimuli and axons are not part of it; the schema is that of version 2.3.

    Parameters
    ----------
    simulation : Simulation
        Where the cell is.
    path : str or Element
        A compartment, or the element that all compartments of one cell are below. They must be cylinders, with
        channels whose rates are given by numbers of the forms that NeuroML has: exponential, sigmoid and linoid.
    file : str or Path
        File to write.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pluri.neurons.models import two_neurons, write_neuroml
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "cell.nml"
    >>> write_neuroml(two_neurons(), "/net/a", file)
    >>> file.read_text().count("<segment ")
    2
    """
    top = simulation.element(path)
    cell: list[Any] = [one for one in top.below() if isinstance(one, Membrane)]
    if not cell:
        raise SimulationError(f"there are no compartments at {top.path}")
    for one in cell:
        if not isinstance(one, Cylinder):
            raise SimulationError(f"{one.path} ({one.class_name}) has no length and diameter, which NeuroML needs")
    name = _identifier(top.path)
    document = Xml.Element("neuroml", {"xmlns": SPACE, "id": name})
    writer = _Cell(simulation, cell)
    for gates, identifier in writer.kinetics.items():
        document.append(_channel(identifier, gates))
    body = Xml.SubElement(document, "cell", id=name)
    body.append(writer.morphology())
    body.append(writer.biophysics())
    Xml.indent(document)
    with replacing(file, "file") as place:
        place.write(Xml.tostring(document, encoding="utf-8", xml_declaration=True))


def _identifier(text: str) -> str:
    """A name as NeuroML has them."""
    letters = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in text).strip("_")
    return letters if letters and not letters[0].isdigit() else f"cell_{letters}"


class _Cell:
    """A cell: its compartments from a root on, and what each has."""

    def __init__(self, simulation: Simulation, cell: list[Cylinder]) -> None:
        inside = {id(one) for one in cell}
        self.neighbours: dict[int, list[Cylinder]] = {id(one): [] for one in cell}
        self.channels: dict[int, list[Channel]] = {id(one): [] for one in cell}
        for link in simulation.links:
            ends: tuple[Any, Any] = link.source, link.destination
            if link.kind == "axial" and id(ends[0]) in inside and id(ends[1]) in inside:
                self.neighbours[id(ends[0])].append(ends[1])
                self.neighbours[id(ends[1])].append(ends[0])
            elif id(ends[1]) in inside and isinstance(ends[0], Channel):
                self.channels[id(ends[1])].append(ends[0])
        self.order, self.parent = self._from_the_root(cell)
        self.kinetics: dict[Gates, str] = {(): "passive"}
        self.groups: dict[tuple[Any, ...], list[int]] = {}
        for number, one in enumerate(self.order):
            self.groups.setdefault(self._properties(one), []).append(number)

    def _from_the_root(self, cell: list[Cylinder]) -> tuple[list[Cylinder], list[int]]:
        number, order, parent = {id(cell[0]): 0}, [cell[0]], [-1]
        for at, one in enumerate(order):  # the list grows meanwhile
            for other in self.neighbours[id(one)]:
                if id(other) not in number:
                    number[id(other)] = len(order)
                    order.append(other)
                    parent.append(at)
        if len(order) < len(cell):
            lost = next(one for one in cell if id(one) not in number)
            raise SimulationError(f"{lost.path} is not coupled to {cell[0].path}: NeuroML has one cell in a tree")
        if sum(map(len, self.neighbours.values())) > 2 * (len(cell) - 1):
            raise SimulationError(f"couplings of {cell[0].path} form a cycle, and a cell of NeuroML is a tree")
        return order, parent

    def _properties(self, one: Cylinder) -> tuple[Any, ...]:
        """What compartments of a group share: capacitance, axial resistance, voltage, and densities."""
        densities = [("passive", one.leak_density(), one.Em)]
        if isinstance(one, ActiveCompartment):
            sodium, potassium = ((3, SODIUM[0]), (1, SODIUM[1])), ((4, POTASSIUM[0]),)
            densities.append((self._named(sodium, "hh_sodium"), one.gNa, one.ENa))
            densities.append((self._named(potassium, "hh_potassium"), one.gK, one.EK))
        for channel in self.channels[id(one)]:
            rates = channel.rates()
            if rates is None:
                raise SimulationError(f"{channel.path} has kinetics of its own, which NeuroML cannot be told")
            gates = tuple((power, gate) for power, gate in zip((channel.p, channel.q), rates) if power)
            density = channel.density + channel.gbar / (1e-5 * one.area)
            densities.append((self._named(gates, f"{channel.class_name}_{len(self.kinetics)}"), density, channel.E))
        return one.cm, one.ra, one.initial_Vm, tuple(densities)

    def _named(self, gates: Gates, name: str) -> str:
        return self.kinetics.setdefault(gates, name)

    def morphology(self) -> Xml.Element:
        """Segments that touch, each with its own length and diameter, and groups of those with equal properties."""
        found = Xml.Element("morphology", id="morphology")
        ends: list[tuple[float, float, float]] = []
        for number, (one, above) in enumerate(zip(self.order, self.parent)):
            segment = Xml.SubElement(found, "segment", id=str(number), name=_identifier(one.path))
            start, direction = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)
            if above >= 0:
                Xml.SubElement(segment, "parent", segment=str(above))
                start = ends[above]
                apart = tuple(float(one[axis] - self.order[above][axis]) for axis in "xyz")
                far = math.hypot(*apart)
                direction = (apart[0] / far, apart[1] / far, apart[2] / far) if far > 0 else direction
            ends.append(tuple(s + one.length * d for s, d in zip(start, direction)))
            for name, place in (("proximal", start), ("distal", ends[-1])):
                points = {axis: repr(float(value)) for axis, value in zip("xyz", place)}
                Xml.SubElement(segment, name, {**points, "diameter": repr(float(one.diameter))})
        for k, members in enumerate(self.groups.values()):
            group = Xml.SubElement(found, "segmentGroup", id=f"group_{k}")
            for number in members:
                Xml.SubElement(group, "member", segment=str(number))
        return found

    def biophysics(self) -> Xml.Element:
        """Densities of channels, capacitance and resistivity of each group."""
        found = Xml.Element("biophysicalProperties", id="biophysics")
        membrane = Xml.SubElement(found, "membraneProperties")
        for k, (*_, densities) in enumerate(self.groups):
            for j, (channel, density, reversal) in enumerate(densities):
                Xml.SubElement(
                    membrane,
                    "channelDensity",
                    id=f"{channel}_{k}_{j}",
                    ionChannel=channel,
                    condDensity=f"{density!r} mS_per_cm2",
                    erev=f"{reversal!r} mV",
                    ion="non_specific",
                    segmentGroup=f"group_{k}",
                )
        Xml.SubElement(membrane, "spikeThresh", value="0 mV")
        inside = Xml.SubElement(found, "intracellularProperties")
        for name, parent, place, unit in (
            ("specificCapacitance", membrane, 0, "uF_per_cm2"),
            ("initMembPotential", membrane, 2, "mV"),
            ("resistivity", inside, 1, "ohm_cm"),
        ):
            for k, properties in enumerate(self.groups):
                Xml.SubElement(parent, name, value=f"{properties[place]!r} {unit}", segmentGroup=f"group_{k}")
        return found


def _channel(name: str, gates: Gates) -> Xml.Element:
    if not gates:
        return Xml.Element("ionChannel", {"type": "ionChannelPassive"}, id=name, conductance="10 pS")
    found = Xml.Element("ionChannelHH", id=name, conductance="10 pS")
    for letter, (power, rates) in zip("mh", gates):
        gate = Xml.SubElement(found, "gateHHrates", id=letter, instances=str(power))
        for direction, one in (("forwardRate", rates.alpha), ("reverseRate", rates.beta)):
            Xml.SubElement(gate, direction, _rate(one, name))
    return found


def _rate(coefficients: Rate, name: str) -> dict[str, str]:
    """(A + B V)/(C + exp((V + D)/F)) in the words of NeuroML."""
    a, b, c, d, f = coefficients
    if b == 0 and c == 0:
        kind, size, shift = "HHExpRate", a, d
    elif b == 0 and c > 0:
        kind, size, shift = "HHSigmoidRate", a / c, d - f * math.log(c)
    elif c == -1 and math.isclose(a, b * d, rel_tol=1e-12):
        kind, size, shift = "HHExpLinearRate", b * f, d
    else:
        raise SimulationError(f"a rate of {name} ({coefficients}) is none of the forms that NeuroML has")
    return {"type": kind, "rate": f"{size!r} per_ms", "midpoint": f"{-shift!r} mV", "scale": f"{-f!r} mV"}
