"""Run a fast part of the tests with the lowest and the newest versions of everything pluri depends on.

``python tests/elsewhere/versions.py`` (or ``make test-versions``) makes, for every Python that it finds, one
environment with the lowest versions that ``pyproject.toml`` allows and one with the newest, in a temporary folder,
runs the tests of `fast_part.py` in each of them, and prints a table. Only wheels are installed: the lowest version on a
new Python is the lowest that was ever built for it. ``uv`` resolves and installs; it comes by ``pip install uv``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter

from fast_part import FAST

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
VERSIONS = {"lowest": "lowest-direct", "newest": "highest"}
#: An old library on a new one below it is told that it does what is no longer done, and old peers of the tests (an
#: optimiser of SciPy, JAX where a process forks) tell of what they mend themselves: their matter, not ours.
OLD_LIBRARIES = (
    "ignore::DeprecationWarning",
    "ignore::PendingDeprecationWarning",
    "ignore::FutureWarning",
    "ignore:Values in x were outside bounds:RuntimeWarning",
    "ignore:os.fork:RuntimeWarning",
)
#: What the table shows of an environment; the rest is in its folder.
SHOWN = ("numpy", "scipy", "scikit-learn", "numba", "typer", "skops", "matplotlib", "jax", "dask", "arviz")


@dataclass(frozen=True)
class Outcome:
    """What became of one environment: `told` is the last line of pytest, or what failed before it."""

    python: str
    versions: str
    passed: bool
    told: str
    seconds: float
    installed: dict[str, str]


def find_python(name: str) -> str | None:
    """Give the interpreter itself: what is on the path may be a stand-in of one that is not there, or not chosen."""
    found = shutil.which(name)
    command = [found or "", "-c", "import sys; print(sys.executable)"]
    told = subprocess.run(command, capture_output=True, text=True) if found else None
    return told.stdout.strip() or None if told and told.returncode == 0 else None


@cache
def called(python: str) -> str:
    """What an interpreter is called here, whatever its file is called: two of them may both be python3."""
    asked = [python, "-c", "import sys; print('python{}.{}'.format(*sys.version_info))"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def find_uv() -> list[str]:
    """Give the command of uv: that of this Python, or the one on the path."""
    if subprocess.run([sys.executable, "-m", "uv", "--version"], capture_output=True).returncode == 0:
        return [sys.executable, "-m", "uv"]
    if found := shutil.which("uv"):
        return [found]
    sys.exit("uv is needed to choose the versions: pip install uv")


def run(command: list[str], **options: object) -> None:
    """Run a command; if it fails, its last words are the error."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise RuntimeError(" ".join((done.stderr or done.stdout).split())[-300:])


def make_environment(uv: list[str], python: str, versions: str, folder: Path) -> Path:
    """Install pluri with its test requirements into a new folder; give its interpreter."""
    chosen = folder / "requirements.txt"
    interpreter = folder / "environment" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wheels = ["--only-binary", ":all:"]
    resolve = ["pip", "compile", "--python", python, "--resolution", VERSIONS[versions], "--extra", "test"]
    run([*uv, *resolve, *wheels, "--output-file", str(chosen), "pyproject.toml"])
    run([*uv, "venv", "--clear", "--python", python, str(folder / "environment")])
    run([*uv, "pip", "install", "--python", str(interpreter), *wheels, "--requirements", str(chosen)])
    run([*uv, "pip", "install", "--python", str(interpreter), "--no-deps", "--editable", str(ROOT)])
    return interpreter


def installed_versions(folder: Path) -> dict[str, str]:
    """Give the versions that were chosen for an environment."""
    lines = (folder / "requirements.txt").read_text().splitlines()
    return dict(line.split("==", 1) for line in lines if re.match(r"[\w.-]+==", line))


def run_tests(interpreter: Path, versions: str, folder: Path, tests: list[str]) -> tuple[bool, str]:
    """Run the tests in an environment; say whether all passed, and the last line."""
    quiet = [word for rule in OLD_LIBRARIES for word in ("-W", rule)] if versions == "lowest" else []
    # Compiled loops of one version of Numba are of no use to another, and the folder of the source stays clean.
    settings = {"NUMBA_CACHE_DIR": str(folder / "compiled"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | settings
    command = [str(interpreter), "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=short", "-m", "not slow"]
    with (folder / "log.txt").open("w") as log:
        done = subprocess.run([*command, *quiet, *tests], cwd=ROOT, env=environment, stdout=log, stderr=log)
    lines = (folder / "log.txt").read_text().splitlines()
    if done.returncode:
        print("\n".join(line for line in lines if line.startswith(("FAILED", "ERROR"))))
    return done.returncode == 0, lines[-1].strip("= ") if lines else "nothing was run"


def try_environment(uv: list[str], python: str, versions: str, folder: Path, tests: list[str]) -> Outcome:
    """Make one environment and run the tests in it."""
    print(f"{called(python)}, {versions} versions ...", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    started = perf_counter()
    try:
        interpreter = make_environment(uv, python, versions, folder)
        passed, told = run_tests(interpreter, versions, folder, tests)
    except RuntimeError as error:
        return Outcome(python, versions, False, str(error), perf_counter() - started, {})
    return Outcome(python, versions, passed, told, perf_counter() - started, installed_versions(folder))


def print_table(outcomes: list[Outcome]) -> None:
    """Print a line for each environment, and the versions of what matters most."""
    print(f"\n{'python':<12}{'versions':<10}{'':<8}{'seconds':>8}  told")
    for one in outcomes:
        verdict = "passed" if one.passed else "FAILED"
        print(f"{called(one.python):<12}{one.versions:<10}{verdict:<8}{one.seconds:>8.0f}  {one.told}")
        print(" " * 22 + ", ".join(f"{name} {one.installed.get(name, '-')}" for name in SHOWN))


def main() -> int:
    """Read the options, try every environment, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found_here = f"(default: those of {', '.join(PYTHONS)} on the path)"
    parser.add_argument("--python", action="append", help=f"an interpreter; may be given again {found_here}")
    parser.add_argument("--versions", choices=list(VERSIONS), help="one of them alone (default: both)")
    parser.add_argument("--folder", type=Path, help="keeps environments and logs (default: a temporary folder)")
    parser.add_argument("tests", nargs="*", help="files to test instead of the fast part")
    options = parser.parse_args()
    pythons = [found for name in options.python or PYTHONS if (found := find_python(name))]
    if missing := [name for name in options.python or () if not find_python(name)]:
        sys.exit(f"--python must name interpreters that can be run, got {', '.join(missing)}")
    if not pythons:
        sys.exit(f"none of {', '.join(PYTHONS)} is on the path: name an interpreter by --python")
    uv = find_uv()
    with tempfile.TemporaryDirectory(prefix="pluri-versions-") as temporary:
        base = (options.folder or Path(temporary)).resolve()
        outcomes = [
            try_environment(uv, python, versions, base / f"{called(python)}-{versions}", options.tests or list(FAST))
            for python in pythons
            for versions in ([options.versions] if options.versions else VERSIONS)
        ]
    print_table(outcomes)
    return 0 if all(one.passed for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
