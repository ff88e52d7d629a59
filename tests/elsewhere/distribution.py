"""Build the wheel and the source archive, and try the wheel as a user would get it.

``python tests/elsewhere/distribution.py`` (or ``make dist``) builds both into ``dist``, looks at what is in them,
checks their metadata, installs the wheel into an empty environment, weighs that, and runs a small program and ``pluri
doctor`` there, outside the folder of the source. Ends with code 1 if anything is wrong.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What a wheel may hold: the package, and what installers read.
IN_A_WHEEL = re.compile(r"pluri/[\w/]+\.(py|typed|html|css|js|svg|json|txt|g|swc)|pluri-[\w.]+\.dist-info/[\w./-]+")
LARGEST = 15_000_000
#: Of an installation with all that it needs. SciPy, llvmlite, NumPy and scikit-learn alone are four fifths of it.
HEAVIEST = 600_000_000
SLOWEST_IMPORT = 0.5

#: Megabytes of each package, the largest first.
SIZES = """
from importlib.metadata import distributions
sizes = {
    one.name: sum(file.locate().stat().st_size for file in one.files or () if file.locate().is_file()) / 1e6
    for one in distributions()
}
largest = sorted(sizes, key=sizes.get, reverse=True)[:12]
print(", ".join(f"{name} {sizes[name]:.0f}" for name in largest))
"""
PROGRAM = """
import time
began = time.perf_counter()
import pluri
print(f"import pluri: {time.perf_counter() - began:.2f} s")
import numpy as np
from pluri.sequences import GaussianHMM
X = np.repeat([[0.0], [5.0]], 50, axis=0) + np.random.default_rng(0).normal(size=(100, 1))
assert sorted(np.bincount(GaussianHMM(2, random_state=0).fit(X).predict(X))) == [50, 50]
"""


def run(*command: object, **options: object) -> str:
    """Run a command outside the folder of the source; what it printed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(str(word) for word in command[:6])} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return str(done.stdout)


def build(folder: Path) -> tuple[Path, Path]:
    """Build both files; give their paths."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    newest = max((path.stat().st_mtime, path) for path in folder.glob("*.whl"))[1]
    return newest, max((path.stat().st_mtime, path) for path in folder.glob("*.tar.gz"))[1]


def strays(wheel: Path) -> list[str]:
    """Files that have no place in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if not IN_A_WHEEL.fullmatch(name)]


def missing_from(wheel: Path) -> list[str]:
    """Files of the package that the wheel has lost."""
    tracked = run("git", "ls-files", "src/pluri", cwd=ROOT).split()
    with zipfile.ZipFile(wheel) as archive:
        there = set(archive.namelist())
    return [name for name in tracked if name.removeprefix("src/") not in there]


def source_strays(archive: Path) -> list[str]:
    """Files of the source archive that are not tracked."""
    tracked = {*run("git", "ls-files", cwd=ROOT).split(), "PKG-INFO"}
    with tarfile.open(archive) as opened:
        names = [member.name.partition("/")[2] for member in opened.getmembers() if member.isfile()]
    return [name for name in names if name not in tracked]


def install(wheel: Path, folder: Path) -> tuple[Path, int]:
    """Install a wheel into an empty environment; the interpreter there, and the bytes that were added."""
    run(sys.executable, "-m", "venv", folder)
    interpreter = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    empty = weight(folder)
    run(interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", wheel)
    return interpreter, weight(folder) - empty


def weight(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def main() -> int:
    """Do all of it, print a line for each step; the exit code tells whether anything was wrong."""
    wrong = []
    wheel, archive = build(ROOT / "dist")
    for path in (wheel, archive):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
        if path.stat().st_size > LARGEST:
            wrong.append(f"{path.name} is larger than {LARGEST / 1e6:.0f} MB")
    wrong += [f"the wheel has a stray file: {name}" for name in strays(wheel)]
    wrong += [f"the wheel lacks {name}" for name in missing_from(wheel)]
    wrong += [f"the source archive has a stray file: {name}" for name in source_strays(archive)]
    print(run(sys.executable, "-m", "twine", "check", "--strict", wheel, archive).strip())
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        interpreter, added = install(wheel, place / "environment")
        print(f"installed with all that it needs: {added / 1e6:.0f} MB")
        print(run(interpreter, "-c", SIZES).strip())
        if added > HEAVIEST:
            wrong.append(f"an installation takes {added / 1e6:.0f} MB, {HEAVIEST / 1e6:.0f} are allowed")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        run(interpreter, "-c", PROGRAM, cwd=place, env=environment)
        told = run(interpreter, "-c", PROGRAM, cwd=place, env=environment).strip()  # now that files have been read once
        print(told)
        if float(re.findall(r"[\d.]+", told)[0]) > SLOWEST_IMPORT:
            wrong.append(f"importing takes longer than {SLOWEST_IMPORT} s")
        print(run(interpreter.parent / "pluri", "doctor", cwd=place, env=environment).strip().splitlines()[-1])
    print("\n".join(wrong) if wrong else "Nothing is wrong.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
