"""Run the test suite as other machines would see it.

A seed fixes the random numbers, not the path of a chain: rounding differs with the BLAS kernel, the vector width and
the compiler's target, and a chaotic path magnifies it. Each setting below changes all three, shifts every seed
(`tests/conftest.py`) and shuffles the order of the tests.

    python tests/elsewhere/machines.py                 every setting that this CPU can run
    python tests/elsewhere/machines.py old --offset 7  one of them, with another shift
    python tests/elsewhere/machines.py wide -- tests/topics -x   what follows -- goes to pytest
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time

#: Names of a setting, of the OpenBLAS kernels to try in turn (the first that this CPU runs), whether NumPy and Numba
#: may use wide vectors, and the shift of the seeds.
SETTINGS = {
    "old": (("Prescott",), False, 1000),
    "middle": (("Haswell", "Sandybridge", "Nehalem"), False, 2000),
    "wide": (("SkylakeX", "Zen", "Haswell", "Nehalem"), True, 3000),
}
PROBE = "import numpy as np; a = np.ones((64, 64)); a @ a; np.linalg.svd(a)"


def runs_here(kernel: str) -> bool:
    """Whether this CPU knows all instructions of an OpenBLAS kernel."""
    environment = os.environ | {"OPENBLAS_CORETYPE": kernel}
    return subprocess.run([sys.executable, "-c", PROBE], env=environment, stderr=subprocess.DEVNULL).returncode == 0


def wide_features() -> str:
    """Names of the vector instructions that the installed NumPy chooses at run time and this CPU has."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))


def environment_of(name: str, offset: int | None) -> dict[str, str]:
    """Variables that make up a setting."""
    kernels, wide, shift = SETTINGS[name]
    kernel = next(kernel for kernel in kernels if runs_here(kernel))
    shift = shift if offset is None else offset
    chosen = {"OPENBLAS_CORETYPE": kernel, "PLURI_SEED_OFFSET": str(shift), "PLURI_TEST_ORDER": str(shift)}
    # Two test processes share the cores, as in `make test`; and threads of k-means may differ in the last bit.
    chosen |= {name: os.environ.get(name, "1") for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
    if not wide:
        chosen |= {"NPY_DISABLE_CPU_FEATURES": wide_features(), "NUMBA_CPU_NAME": "generic"}
    return chosen


def main() -> int:
    """Run the settings one after the other; the exit code is the number of those that failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", metavar="SETTING", help=f"of {', '.join(SETTINGS)}; default: all")
    parser.add_argument("--offset", type=int, help="shift of the seeds, instead of the setting's own")
    own, to_pytest = sys.argv[1:], ["-n", "2", "--dist", "worksteal", "-q"]
    if "--" in own:
        own, more = own[: own.index("--")], own[own.index("--") + 1 :]
        to_pytest += more
    arguments = parser.parse_args(own)
    unknown = set(arguments.settings) - set(SETTINGS)
    if unknown:
        parser.error(f"a setting must be one of {', '.join(SETTINGS)}, got {', '.join(sorted(unknown))}")
    rows = []
    for name in arguments.settings or SETTINGS:
        chosen = environment_of(name, arguments.offset)
        print(f"\n{name}: " + " ".join(f"{key}={value!r}" for key, value in chosen.items()), flush=True)
        began = time.perf_counter()
        command = [sys.executable, "-m", "pytest", *to_pytest]
        done = subprocess.run(command, env=os.environ | chosen, check=False)
        rows.append((name, chosen, done.returncode, time.perf_counter() - began))
    print()
    for name, chosen, code, seconds in rows:
        verdict = "passed" if code == 0 else f"FAILED (exit {code})"
        print(re.sub(r" +$", "", f"{name:8} {chosen['OPENBLAS_CORETYPE']:10} {verdict:18} {seconds / 60:5.1f} min"))
    return sum(code != 0 for _, _, code, _ in rows)


if __name__ == "__main__":
    sys.exit(main())
