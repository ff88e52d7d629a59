"""Single cells: a Hodgkin-Huxley patch, a passive cable, and a branched tree that equals a cylinder."""

from __future__ import annotations

from typing import Any, cast

from pluri.neurons.simulation import Simulation


def hodgkin_huxley_patch(
    current_density: float = 10.0, *, area: float = 1000.0, n_cells: int = 1, **settings: Any
) -> Simulation:
    """A patch of squid axon, or several, with a steady current.

    Parameters
    ----------
    current_density : float, default=10.0
        Injected current in uA/cm^2.
    area : float, default=1000.0
        Of the membrane, in um^2.
    n_cells : int, default=1
        Number of patches: ``/patch``, or ``/patch[0]`` and so on if there are several.
    **settings
        Of the `Simulation`.

    Returns
    -------
    Simulation
        With an axon below each patch.

    Examples
    --------
    >>> from pluri.neurons.models import hodgkin_huxley_patch
    >>> sim = hodgkin_huxley_patch(10.0, dt=0.01)
    >>> result = sim.run(100.0)
    >>> result.spikes("/patch/axon")[:2].round(1).tolist()
    [1.9, 16.8]
    """
    simulation = Simulation(**settings)
    diameter = 20.0
    nanoamperes = 1e3 * current_density * 1e-8 * area
    for path in ["/patch"] if n_cells == 1 else [f"/patch[{i}]" for i in range(n_cells)]:
        length = area / (3.141592653589793 * diameter)
        simulation.create("active_compartment", path, length=length, diameter=diameter, inject=nanoamperes)
        simulation.create("axon", f"{path}/axon")
        simulation.link(path, f"{path}/axon")
    return simulation


def cable(n_compartments: int = 1000, *, current: float = 0.1, length: float = 1000.0, **settings: Any) -> Simulation:
    """A passive cable with sealed ends and a current at the near one.

    The cable of a known benchmark (Rallpack 1): 1 mm long, 1 um thick, R_a = 100 Ohm cm, r_m = 40 kOhm cm^2,
    c_m = 1 uF/cm^2, so that it is one length constant long and its time constant is 40 ms.

    Parameters
    ----------
    n_compartments : int, default=1000
        ``/cable[0]`` (near) to ``/cable[n_compartments - 1]`` (far).
    current : float, default=0.1
        In nA.
    length : float, default=1000.0
        In um.
    **settings
        Of the `Simulation`; the method is "crank_nicolson" and the step 0.05 ms if nothing is said.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> from pluri.neurons.models import cable
    >>> sim = cable(50)
    >>> _ = sim.run(400.0)
    >>> round(sim.get("/cable[49]", "Vm"), 1)
    43.3
    """
    simulation = Simulation(**cast(dict[str, Any], {"dt": 0.05, "method": "crank_nicolson"} | settings))
    for i in range(n_compartments):
        simulation.create(
            "passive_compartment",
            f"/cable[{i}]",
            length=length / n_compartments,
            diameter=1.0,
            rm=40000.0,
            ra=100.0,
            x=(i + 0.5) * length / n_compartments,
        )
        if i:
            simulation.link(f"/cable[{i - 1}]", f"/cable[{i}]")
    simulation.set("/cable[0]", "inject", current)
    return simulation


def branched_tree(depth: int = 3, *, per_branch: int = 32, current: float = 0.1, **settings: Any) -> Simulation:
    r"""A passive tree whose branches match (:math:`d^{3/2}` of the parent is the sum over its two daughters).

    Each branch is as long in length constants as the others, so that seen from the stem the tree is a cylinder
    (W. Rall, 1959).

    Parameters
    ----------
    depth : int, default=3
        Generations of branches.
    per_branch : int, default=32
        Compartments in each branch.
    current : float, default=0.1
        Into the first compartment of the stem, in nA.
    **settings
        Of the `Simulation`; the method is "crank_nicolson" and the step 0.05 ms if nothing is said.

    Returns
    -------
    Simulation
        With elements ``/tree/stem[0]`` and, for each branch, ``/tree/branch01[0]`` (first daughter 0, then 1) and
        so on.

    Examples
    --------
    >>> from pluri.neurons.models import branched_tree
    >>> sim = branched_tree(depth=2, per_branch=4)
    >>> [element.path for element in sim.find("/tree/*[0]")]
    ['/tree/stem[0]', '/tree/branch0[0]', '/tree/branch1[0]']
    """
    simulation = Simulation(**cast(dict[str, Any], {"dt": 0.05, "method": "crank_nicolson"} | settings))
    simulation.create("group", "/tree")

    def grow(name: str, generation: int, above: str | None, at: tuple[float, float], spread: float) -> None:
        diameter = 4.0 * 2.0 ** (-2.0 * generation / 3.0)
        # A length constant grows with the root of the diameter.
        piece = 300.0 * (diameter / 4.0) ** 0.5 / per_branch
        for i in range(per_branch):
            path = f"/tree/{name}[{i}]"
            x, y = at[0] + (i + 0.5) * piece, at[1] + (0.0 if above is None else spread * (i + 1) / per_branch)
            simulation.create(
                "passive_compartment", path, length=piece, diameter=diameter, rm=20000.0, ra=100.0, x=x, y=y
            )
            if above is not None:
                simulation.link(above, path)
            above = path
        if generation + 1 < depth:
            end = (at[0] + per_branch * piece, at[1] + (0.0 if name == "stem" else spread))
            prefix = "branch" if name == "stem" else name
            grow(f"{prefix}0", generation + 1, above, end, 120.0 / 2**generation)
            grow(f"{prefix}1", generation + 1, above, end, -120.0 / 2**generation)

    grow("stem", 0, None, (0.0, 0.0), 0.0)
    simulation.set("/tree/stem[0]", "inject", current)
    return simulation
