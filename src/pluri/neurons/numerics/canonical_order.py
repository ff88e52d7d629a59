"""An order of elements that depends on what they are and how they are wired, not on names or the order of creation.

Sums of floating-point numbers depend on the order of their terms. So that a network gives the same bits however it was
built, terms are added in an order found by colour refinement: each element has a colour, from its class and fields;
then again and again a new one, from its own and those of its neighbours. Elements that still have one colour in the end
have the same trajectories (their classes are an equitable partition), so that their order does not matter. Random
sources, which have streams of their own, are told apart by their streams.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from pluri.neurons.tree.element import Element
from pluri.neurons.tree.messages import Connection, Link

#: Rounds of refinement at most; a change at one end of a cable needs as many to be noticed at the other.
MOST_ROUNDS = 3000
U64 = np.uint64


def digest(*parts: Any) -> int:
    """A number of 64 bits from what the parts look like."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little")


def mixed(z: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The finaliser of splitmix64: other bits for every change of a bit."""
    z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
    return z ^ (z >> U64(31))


def canonical_ranks(
    elements: Sequence[Element], links: Sequence[Link], connections: Sequence[Connection]
) -> dict[int, int]:
    """Place of each element in canonical order, by its id; identities tell apart what has one colour."""
    number = {id(element): i for i, element in enumerate(elements)}
    known: dict[Any, int] = {}

    def once(*parts: Any) -> int:
        if parts not in known:
            known[parts] = digest(*parts)
        return known[parts]

    n, n_messages = len(elements), len(links) + len(connections)
    colour = np.fromiter((once(*_appearance(element)) for element in elements), dtype=U64, count=n)
    rank = _refined(np.zeros(n, dtype=np.int64), colour)
    if n_messages:
        both: list[Link | Connection] = [*links, *connections]
        start = np.fromiter((number[id(one.source)] for one in both), np.int64, n_messages)
        end = np.fromiter((number[id(one.destination)] for one in both), np.int64, n_messages)
        linked = (once("link", one.source_slot, one.destination_slot) for one in links)
        wired = (
            once(one.source_slot, one.destination_slot, one.delay, one.weight, one.exact_delay) for one in connections
        )
        kind = np.fromiter(chain(linked, wired), dtype=U64, count=n_messages)
        # A coupling of two compartments has no direction.
        back = np.ones(n_messages, dtype=U64)
        back[: len(links)] = [one.kind != "axial" for one in links]
        n_before = 0
        with np.errstate(over="ignore"):
            for _ in range(min(n, MOST_ROUNDS)):
                if rank.max() + 1 == n_before:
                    break
                n_before = rank.max() + 1
                told = np.zeros(n, dtype=U64)
                np.add.at(told, end, mixed(colour[start] ^ kind))
                np.add.at(told, start, mixed((colour[end] ^ kind) + back))
                colour = mixed(colour * U64(3) + told)
                rank = _refined(rank, colour)
    identity = np.fromiter((element.identity for element in elements), dtype=U64, count=n)
    place = np.empty(n, dtype=np.int64)
    place[np.lexsort((identity, rank))] = np.arange(n)
    return {id(element): at for element, at in zip(elements, place.tolist())}


def _refined(rank: np.ndarray[Any, Any], colour: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Ranks by the ranks before and, among equals, by colour: the first round that tells them apart decides.

    So the order of two elements depends on what is near them, and not on the number of rounds that others need.
    """
    if not len(rank):
        return rank
    order = np.lexsort((colour, rank))
    changes = (rank[order][1:] != rank[order][:-1]) | (colour[order][1:] != colour[order][:-1])
    found = np.empty(len(rank), dtype=np.int64)
    found[order] = np.concatenate([[0], np.cumsum(changes)])
    return found


def _appearance(element: Element) -> tuple[Any, ...]:
    kinds = element.declared()
    kept = (element._values or {}).items()
    values = tuple(sorted((name, value) for name, value in kept if name in kinds and value != kinds[name].default))
    random = "stream" in element.declared() and element["stream"] == 0
    return (element.class_name, values, element.identity if random else None)
