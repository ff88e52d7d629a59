"""Nothing public disappears by accident: every public name stands in ``public_names.txt``.

``python tests/test_public_names.py`` writes that file anew. A name that leaves it is a decision, which CHANGELOG tells.
"""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pluri

LIST = Path(__file__).with_name("public_names.txt")


def public_names():
    """All names that packages of pluri export, with the package they are in."""
    root = Path(pluri.__file__).parent
    packages = [
        "pluri",
        *(".".join(("pluri", *file.parent.relative_to(root).parts)) for file in root.glob("*/**/__init__.py")),
    ]
    hidden = [name for name in packages if any(part.startswith("_") or part == "cli" for part in name.split("."))]
    names = [
        f"{package}.{name}"
        for package in sorted(set(packages) - set(hidden))
        for name in getattr(import_module(package), "__all__", ())
    ]
    return sorted(names)


def test_public_names_are_those_of_the_list():
    listed = LIST.read_text(encoding="utf-8").split()
    found = public_names()
    gone, new = sorted(set(listed) - set(found)), sorted(set(found) - set(listed))
    assert not gone, f"no longer public: {', '.join(gone)}"
    assert not new, f"public, and not in {LIST.name} (python tests/{Path(__file__).name} adds them): {', '.join(new)}"


def test_every_package_can_be_had_from_pluri_itself():
    folders = {path.parent.name for path in Path(pluri.__file__).parent.glob("*/__init__.py")}
    assert folders - {"cli"} <= set(pluri.__all__)


def test_every_public_name_can_be_had():
    for name in LIST.read_text(encoding="utf-8").split():
        package, _, own = name.rpartition(".")
        assert getattr(import_module(package), own) is not None or own == "__version__", name


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n", encoding="utf-8")


def test_fits_do_without_matplotlib():
    program = """
import sys
sys.modules["matplotlib"] = None  # as if it were not installed
import numpy as np
import pluri
from pluri.sequences import GaussianHMM
model = GaussianHMM(2, n_iter=2, tol=-np.inf, random_state=0).fit(np.random.default_rng(0).normal(size=(40, 1)))
print(model.forecast(np.zeros((5, 1)), horizon=2).mean.shape)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.strip() == "(1, 2, 1)", ran.stderr
