"""All benchmarks, one after the other: speed beside other libraries (peers), how far answers and their error bars are
from the truth (accuracy), published experiments (reproduce), and how long first calls take.

    python benchmarks/run.py                     # everything, which takes hours
    python benchmarks/run.py --only hmm topics   # those whose name holds one of the words
    python benchmarks/run.py --quick             # the short form of those that have one
    python benchmarks/run.py --list              # what there is

A benchmark is a file here, in `peers`, `accuracy` or `reproduce` whose docstring tells how to run it; other files are
parts of benchmarks. Each runs in a process of its own. What needs a file that is not there (PLURI_DATA names the folder
of the data), or a library that is not installed, is skipped, and one that fails does not end the others. The last lines
are a table of all of them; the exit code is 1 if one failed.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent
FOLDERS = ("", "peers", "accuracy", "reproduce")
DONE, SKIPPED, FAILED, INTERRUPTED = "done", "skipped", "FAILED", "interrupted"
#: Run in their short form by default: the long one takes a night.
LONG = ("reproduce/topic_hierarchies",)
#: What the last line of an error says if something is missing that this benchmark needs and others do not.
MISSING = (
    (re.compile(r"FileNotFoundError: data_home \(.*\) must hold (.+?), which is not there"), r"\1 is not in the data"),
    (re.compile(r"ModuleNotFoundError: No module named '(?!pluri)([^']+)'"), r"\1 is not installed"),
    (re.compile(r"KeyError: 'PLURI_DATA'|.*set PLURI_DATA.*"), "PLURI_DATA is not set"),
)


@dataclass(frozen=True)
class Benchmark:
    """A script: its name (folder and file), and whether it has a short form."""

    name: str
    path: Path
    has_quick: bool


@dataclass(frozen=True)
class Outcome:
    """How it went."""

    name: str
    state: str
    seconds: float
    reason: str = ""


def find(root: Path = ROOT) -> list[Benchmark]:
    """All benchmarks, sorted by folder and name."""
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("*.py")):
            source = path.read_text(encoding="utf-8")
            told = ast.get_docstring(ast.parse(source)) or ""
            name = path.relative_to(root).with_suffix("").as_posix()
            if f"python benchmarks/{name}.py" in told and path.name != "run.py":
                found.append(Benchmark(name, path, '"--quick"' in source))
    return found


def choose(benchmarks: Sequence[Benchmark], only: Sequence[str]) -> list[Benchmark]:
    """Those whose name holds one of the words; all if there are none."""
    for word in only:
        if not any(word in benchmark.name for benchmark in benchmarks):
            names = ", ".join(benchmark.name for benchmark in benchmarks)
            raise SystemExit(f"--only must be part of a name ({names}), got {word!r}")
    return [benchmark for benchmark in benchmarks if not only or any(word in benchmark.name for word in only)]


def arguments_of(benchmark: Benchmark, quick: bool) -> list[str]:
    """What it is given on its command line."""
    return ["--quick"] if benchmark.has_quick and (quick or benchmark.name in LONG) else []


def missing(errors: Sequence[str]) -> str:
    """What was not there, in words, from the last lines of an error; nothing if it failed for another reason."""
    last = next((line for line in reversed(errors) if line.strip()), "").strip()
    data = Path(os.environ.get("PLURI_DATA") or "~/pluri_data").expanduser()
    file = re.match(r"FileNotFoundError: .*No such file or directory: '(.+)'", last)
    if file and Path(file[1]).parent == data:
        return f"{Path(file[1]).name} is not in the data"
    for pattern, told in MISSING:
        match = pattern.match(last)
        if match:
            return match.expand(told)
    return ""


def run(benchmark: Benchmark, quick: bool) -> Outcome:
    """Run one in a process of its own; what it prints is seen while it runs."""
    command = [sys.executable, str(benchmark.path), *arguments_of(benchmark, quick)]
    began = time.perf_counter()
    errors: deque[str] = deque(maxlen=20)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                sys.stderr.write(line)
                errors.append(line)
            code = process.wait()
        except KeyboardInterrupt:  # the process has had the signal too
            process.wait()
            return Outcome(benchmark.name, INTERRUPTED, time.perf_counter() - began)
    seconds = time.perf_counter() - began
    if code == 0:
        return Outcome(benchmark.name, DONE, seconds)
    reason = missing(list(errors))
    if reason:
        return Outcome(benchmark.name, SKIPPED, seconds, reason)
    last = next((line.strip() for line in reversed(errors) if line.strip()), f"exit code {code}")
    return Outcome(benchmark.name, FAILED, seconds, last)


def run_all(
    benchmarks: Sequence[Benchmark], quick: bool, runner: Callable[[Benchmark, bool], Outcome] = run
) -> list[Outcome]:
    """Run all of them, whatever becomes of each; Ctrl-C ends the one that runs and those to come."""
    outcomes = []
    for benchmark in benchmarks:
        words = " ".join(arguments_of(benchmark, quick))
        print(f"\n=== {benchmark.name} {words}".rstrip(), flush=True)
        outcomes.append(runner(benchmark, quick))
        if outcomes[-1].state == INTERRUPTED:
            break
    return outcomes


def summary(outcomes: Sequence[Outcome]) -> str:
    """A line for each, and their number and time."""
    width = max((len(outcome.name) for outcome in outcomes), default=0)
    lines = [
        f"{outcome.name:<{width}}  {outcome.state:<11}  {outcome.seconds:7.0f} s  {outcome.reason}".rstrip()
        for outcome in outcomes
    ]
    states = [outcome.state for outcome in outcomes]
    counted = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    total = sum(outcome.seconds for outcome in outcomes)
    return "\n".join([*lines, f"{counted or 'nothing to do'}; {total / 60:.0f} minutes"])


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line, run, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="part of a name, such as hmm or peers/")
    parser.add_argument("--quick", action="store_true", help="the short form of those that have one")
    parser.add_argument("--list", action="store_true", help="print the names and leave")
    options = parser.parse_args(words)
    chosen = choose(find(), options.only)
    if options.list:
        print("\n".join(f"{item.name}{'  (has --quick)' if item.has_quick else ''}" for item in chosen))
        return 0
    outcomes = run_all(chosen, options.quick)
    print(f"\n{summary(outcomes)}")
    states = {outcome.state for outcome in outcomes}
    return 130 if INTERRUPTED in states else int(FAILED in states)


if __name__ == "__main__":
    sys.exit(main())
