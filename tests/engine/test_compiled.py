"""Where compiled loops are kept, also where nothing can be written.

Permissions do not bind root, so each program here makes the places of numba impossible: it takes away the locators of
the package's folder and of the home (a read-only file system has the same effect on them), or puts the package in a zip
archive.
"""

import os
import stat
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

import pluri
from pluri.engine import compiled

SOURCE = Path(pluri.__file__).parent.parent
#: numba finds no place: neither beside the source nor in the home.
NOWHERE = """
    from numba.core import caching
    for name in ("InTreeCacheLocator", "_InTreeCacheLocator", "UserWideCacheLocator", "_UserWideCacheLocator"):
        if hasattr(caching, name):
            getattr(caching, name).from_function = classmethod(lambda cls, *arguments: None)
"""
LOOP = """
    import warnings
    import numpy as np
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        from pluri.inference.smc._kernels import last_positive
        found = last_positive(np.array([0.0, 1.0, 0.0]))
    print(len([one for one in told if "NUMBA_CACHE_DIR" in str(one.message)]), found)
"""
#: How many loops were read from the cache.
HITS = """
import sys
from numba.core.dispatcher import Dispatcher
modules = [module for name, module in sys.modules.items() if name.startswith("pluri.")]
loops = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
print(sum(sum(loop.stats.cache_hits.values()) for loop in loops.values()))
"""
posix = pytest.mark.skipif(os.name != "posix", reason="who may write where is told by POSIX permissions")


def run(program, temporary, **environment):
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300,
        env={name: value for name, value in os.environ.items() if name not in ("HOME", "NUMBA_CACHE_DIR")}
        | {"PYTHONPATH": str(SOURCE), "TMPDIR": str(temporary)} | environment,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.fixture
def temporary(tmp_path):
    """A directory for temporary files below folders that only the user can write to."""
    place = tmp_path / "tmp"
    place.mkdir(mode=0o700)
    compiled.private_folder.cache_clear()
    yield place
    compiled.private_folder.cache_clear()


@posix
def test_where_nothing_can_be_written_loops_are_kept_in_a_private_temporary_folder(temporary):
    assert run(textwrap.dedent(NOWHERE) + textwrap.dedent(LOOP), temporary) == ["1", "1"]
    (folder,) = temporary.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.rglob("*.nbi"))
    # The second program loads what the first has compiled.
    assert int(run(textwrap.dedent(NOWHERE) + textwrap.dedent(LOOP) + HITS, temporary)[2]) > 0


@posix
def test_without_any_folder_of_ones_own_nothing_is_kept(temporary):
    (temporary / f"pluri-compiled-{os.getuid()}").mkdir(mode=0o777)
    (temporary / f"pluri-compiled-{os.getuid()}").chmod(0o777)  # anybody might have put code there
    assert run(textwrap.dedent(NOWHERE) + textwrap.dedent(LOOP), temporary) == ["1", "1"]
    assert not list(temporary.rglob("*.nbi"))


def test_an_impossible_folder_of_the_user_falls_back_to_the_usual_ones_with_one_sentence(temporary):
    assert run(LOOP, temporary, NUMBA_CACHE_DIR="/dev/null/nowhere") == ["1", "1"]
    assert not list(temporary.iterdir())


@posix
def test_a_zip_archive_without_a_home_works_without_a_cache(temporary, tmp_path):
    archive = tmp_path / "pluri.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in (SOURCE / "pluri").rglob("*.py"):
            packed.write(file, file.relative_to(SOURCE))
    blocked = {"PYTHONPATH": str(archive), "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
    assert run(LOOP, temporary, **blocked) == ["1", "1"]


@posix
@pytest.mark.parametrize("spoilt", ["mode", "link", "file", "parent"])
def test_a_folder_that_others_can_write_to_is_not_used(temporary, monkeypatch, spoilt):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(temporary))
    assert compiled.private_folder() is not None or os.name != "posix"
    folder = temporary / f"pluri-compiled-{os.getuid()}"
    folder.rmdir()
    if spoilt == "mode":
        folder.mkdir()
        folder.chmod(0o770)
    elif spoilt == "link":
        (temporary / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(temporary / "elsewhere")
    elif spoilt == "file":
        folder.write_text("")
    else:
        temporary.chmod(0o777)  # without the sticky bit anybody can rename what is in it
    compiled.private_folder.cache_clear()
    assert compiled.private_folder() is None


@posix
def test_a_folder_of_another_user_is_not_used(temporary, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(temporary))
    user = os.getuid()
    (temporary / f"pluri-compiled-{user + 1}").mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    assert compiled.private_folder() is None


def test_other_errors_of_the_compiler_go_on(monkeypatch):
    def fail(function, options):
        raise RuntimeError("something else")

    monkeypatch.setattr(compiled, "_compiled", fail)
    with pytest.raises(RuntimeError, match="something else"):
        compiled.compiled()(run)
