"""Random scripts and mutations of the shipped ones: an error sentence or a run, never a traceback or a hang.

``python tests/neurons/fuzz_scripts.py 10000`` tries so many, and tells how they ended and which took longest.
"""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

from pluri.neurons import Simulation
from pluri.neurons.language import Interpreter, Limits, ScriptError
from pluri.neurons.language.commands import COMMANDS, element_classes
from pluri.neurons.language.functions import FUNCTIONS
from pluri.neurons.scripts import shipped_scripts

LIMITS = Limits(statements=3000, elements=300, steps=2000)
PIECES = [
    "/", "/net", "/net/a", "/net/*", "/**", "..", ".", "{", "}", "(", ")", "{i}", "{1/0}", "{rand()}", '"', '""', "-",
    "-1", "1e9", "1e308", "-1e308", "0", "3", "0.025", "to", "=", "==", "+", "*", "^", "//", "\\", "\x00", "é",
    "\u202e", "x", "i", "i = i + 1", "if", "else", "end", "for i = 0 to 3", "while i < 3", "while true", "function f a",
    "call f 1", "include", "step 5", "step -time 2", "reset", "nan", "inf", "[0]", "[", "]", "cell[3]", "\t",
    "create group /net", "ls", "check", "create active_compartment /net/s", "create axon /net/a",
    "link /net/s to /net/a", "graph /net/s Vm", "ce /net", "copy /net to /b -n 3", "getfield(/net/s, Vm)", "setfield",
    "0x10", "1_000", "\u0661", "__import__('os')", "{" * 30,
]  # fmt: skip


def words():
    kinds = element_classes()
    fields = sorted({name for kind in kinds.values() for name in kind.declared()})
    # What reads and writes files is tried elsewhere: a random path might be somebody's.
    commands = [name for name in COMMANDS if name not in ("save", "restore", "include", "help")]
    return [
        *PIECES,
        *commands,
        *kinds,
        *(f"-{name}" for name in fields),
        *fields,
        *FUNCTIONS,
        *(f"{name}(" for name in FUNCTIONS),
    ]


def random_script(rng, vocabulary):
    if rng.random() < 0.1:
        return "".join(
            chr(rng.choice([rng.randrange(32, 127), rng.randrange(0, 0x3000), 10])) for _ in range(rng.randrange(200))
        )
    lines = []
    for _ in range(rng.randrange(1, 25)):
        lines.append(" ".join(rng.choice(vocabulary) for _ in range(rng.randrange(1, 8))))
    return "\n".join(lines)


def mutated(rng, text, vocabulary):
    lines = text.split("\n")
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        at = rng.randrange(len(lines))
        kind = rng.randrange(7)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 2:
            lines[at] = (
                " ".join(rng.sample(parts, len(parts))) if (parts := lines[at].split()) else rng.choice(vocabulary)
            )
        elif kind == 3 and lines[at].split():
            parts = lines[at].split()
            parts[rng.randrange(len(parts))] = rng.choice(vocabulary)
            lines[at] = " ".join(parts)
        elif kind == 4 and lines[at]:
            place = rng.randrange(len(lines[at]))
            lines[at] = (
                lines[at][:place] + rng.choice('abz019 /{}()[]"-=*\0.\t^') + lines[at][place + rng.randrange(2) :]
            )
        elif kind == 5:
            lines = lines[:at] or [""]
        else:
            number = rng.choice(["0", "-1", "1e6", "1e-6", "1e300", "0.5", "100000"])
            parts = lines[at].split()
            places = [k for k, part in enumerate(parts) if part.replace(".", "").lstrip("-").isdigit()]
            if places:
                parts[rng.choice(places)] = number
                lines[at] = " ".join(parts)
        if not lines:
            lines = [""]
    return "\n".join(lines)


def without_files(text):
    """Lines that would touch files stay out."""
    return "\n".join(
        line for line in text.split("\n") if not any(word in line for word in ("save", "restore", "include"))
    )


def try_script(text):
    """How a script ends: that it ran, or the kind of its error; anything but a ScriptError is let through."""
    interpreter = Interpreter(Simulation(random_state=0), output=lambda text: None, limits=LIMITS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            interpreter.run_text(without_files(text), "fuzz.g")
            return "ran"
        except ScriptError as error:
            told = error
    sentence = str(told)
    assert sentence.startswith("fuzz.g, line "), sentence
    assert "\n" not in sentence, sentence
    assert len(sentence) < 1000, sentence
    assert told.place.line <= text.count("\n") + 1
    return "while it ran" if told.__cause__ is not None else "before or between lines"


def scripts(n, seed=0):
    """Half of them random, half mutations."""
    rng = random.Random(seed)
    vocabulary = words()
    shipped = [path.read_text() for path in shipped_scripts().values()]
    for number in range(n):
        if number % 2:
            yield random_script(rng, vocabulary)
        else:
            yield mutated(rng, rng.choice(shipped), vocabulary)


def main(n, seed=0):
    ends, slow = Counter(), (0.0, "")
    for number, text in enumerate(scripts(n, seed)):
        begun = time.process_time()
        try:
            ends[try_script(text)] += 1
        except BaseException:
            Path("fuzz_failure.g").write_text(text, errors="surrogatepass")
            print(f"script {number} of seed {seed} is in fuzz_failure.g")
            raise
        slow = max(slow, (time.process_time() - begun, text))
    print(f"{n} scripts: {dict(ends)}; the slowest took {slow[0]:.2f} CPU seconds")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
