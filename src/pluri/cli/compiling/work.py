"""Small fits in several processes, which fill the cache of compiled code."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from multiprocessing import get_context

from pluri.cli.compiling.tiny_fits import TinyFit


@dataclass(frozen=True)
class Outcome:
    """What became of one small fit.

    Attributes
    ----------
    title : which it was
    compiled : functions of ours that were compiled, each with the types of its arguments
    failure : why it could not be run; empty if it could
    unkept : why compiled code could not be kept; empty if it could
    """

    title: str
    compiled: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    failure: str = ""
    unkept: str = ""


def run_one(fit: TinyFit) -> Outcome:
    """Run a small fit and ask the model for all it can tell; what an optional library lacks is left out."""
    from pluri.engine.compile_cache import CompileCacheWarning
    from pluri.engine.compile_record import record_compilations

    failure = ""
    with warnings.catch_warnings(record=True) as told, record_compilations() as found:
        warnings.simplefilter("always")
        try:
            fit.ask(fit.prepare()())
        except ImportError:
            pass
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
    unkept = [str(one.message) for one in told if issubclass(one.category, CompileCacheWarning)]
    ours = frozenset((one.function, one.types) for one in found if one.function.startswith("pluri."))
    return Outcome(fit.title, ours, failure, unkept[0] if unkept else "")


def run_group(fits: Sequence[TinyFit]) -> list[Outcome]:
    """Run small fits one after the other."""
    return [run_one(fit) for fit in fits]


def run_all(fits: Sequence[TinyFit], n_jobs: int, report: Callable[[Outcome], None]) -> list[Outcome]:
    """Run small fits in `n_jobs` processes; `report` is called with each as it is done."""
    outcomes = []
    for outcome in _outcomes(list(_groups(fits)), n_jobs):
        report(outcome)
        outcomes.append(outcome)
    return outcomes


def _outcomes(groups: Sequence[Sequence[TinyFit]], n_jobs: int) -> Iterator[Outcome]:
    # Processes are started anew, not forked: a fork of a program with threads may hang.
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        try:
            for done in as_completed([pool.submit(run_group, group) for group in groups]):
                yield from done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _groups(fits: Sequence[TinyFit]) -> Iterator[list[TinyFit]]:
    """All settings of an estimator together; neighbours are of different packages.

    Processes that work on one package at the same time would compile what its models share, each for itself.
    """
    by_package: dict[str, dict[str, list[TinyFit]]] = {}
    for fit in fits:
        by_package.setdefault(fit.package, {}).setdefault(fit.name, []).append(fit)
    in_turn = chain.from_iterable(zip_longest(*(names.values() for names in by_package.values())))
    yield from (group for group in in_turn if group is not None)


def n_cores() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
