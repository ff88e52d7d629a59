"""No model runs a loop of its own: chains are run by `pluri.inference.mcmc.sample`, ascents by their drivers.

Read from the source: outside the drivers nothing counts iterations, sweeps or draws, and nothing catches Ctrl-C, which
is what a loop of one's own would have to do. What samples is found by introspection in `tests/test_vocabulary.py`, and
that its draws come from the driver is tried for each of them in `tests/seams`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pluri

ROOT = Path(pluri.__file__).parent

#: Folders and files whose work it is to run loops.
DRIVERS = (
    "inference/",
    "optimize/",
    "testing/",
    "cli/",
    "validation/",
)
#: Loops of a fixed number of steps inside one iteration or one draw (a Newton step, an inner ascent), with the reason.
INNER_LOOPS: dict[str, str] = {
    "components/k_means.py": "starting values of few rows, before the first iteration: milliseconds",
    "dynamics/switching/smoothing.py": "states and regimes are updated in turn within one E-step, sequence by sequence",
    "processes/ising/bethe.py": "messages pass until they settle; there is no objective that a driver could watch",
}
#: What drivers count.
COUNTED = {"max_iter", "n_iter", "n_draws", "n_warmup", "n_sweeps", "n_chains", "n_init"}

SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in ROOT.rglob("*.py")
    if not path.relative_to(ROOT).as_posix().startswith(DRIVERS) and not path.name.startswith("_")
)


def names_in(node):
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }


def own_loops(text):
    """(line, what) of each loop that counts what drivers count, and of each handler of Ctrl-C."""
    if not any(word in text for word in (*COUNTED, "KeyboardInterrupt")):
        return  # without the words there is nothing to find
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and "range" in names_in(node.iter.func):
            counted = names_in(node.iter) & COUNTED
            if counted:
                yield node.lineno, f"a loop over range({', '.join(sorted(counted))})"
        if isinstance(node, ast.While) and names_in(node.test) & COUNTED:
            yield node.lineno, "a loop until a number of iterations"
        if isinstance(node, ast.ExceptHandler) and node.type is not None and "KeyboardInterrupt" in names_in(node.type):
            yield node.lineno, "a handler of Ctrl-C"


def test_the_reader_sees_loops_and_handlers():
    text = """
for sweep in range(self.n_draws + 1):
    pass
while n_iter < 3:
    pass
try:
    pass
except (KeyboardInterrupt, ValueError):
    pass
for k in range(n_components):
    pass
"""
    assert [line for line, _ in sorted(own_loops(text))] == [2, 4, 8]


@pytest.mark.parametrize("file", SOURCES)
def test_no_model_runs_a_loop_of_its_own(file):
    found = [f"{file}:{line}: {what}" for line, what in own_loops((ROOT / file).read_text(encoding="utf-8"))]
    if file in INNER_LOOPS:  # one loop and no handler; an exception that is no longer needed goes
        assert len(found) == 1, "\n".join(found)
        assert "Ctrl-C" not in found[0]
    else:
        assert not found, "\n".join(found)
