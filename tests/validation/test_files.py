"""Files to write: replaced in one go, and nothing but regular files is ever replaced.

The real devices of the machine are never touched: pipes, sockets and devices are made in a temporary folder.
"""

import os
import socket
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest

from pluri.inference import expectation_maximization
from pluri.inference.checkpoint import write as write_checkpoint
from pluri.inference.mcmc import Trace
from pluri.io import save
from pluri.report.page import write_page
from pluri.sequences import GaussianHMM
from pluri.validation import check_target, check_writable, replacing

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs pipes and devices in folders")


@pytest.fixture
def folder():
    # Short: the name of a socket has at most a hundred characters.
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def pipe(path):
    os.mkfifo(path)


def device(path):
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError:
        pytest.skip("devices can be made by root only")


def plug(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


MAKERS = {"pipe": pipe, "device": device, "socket": plug}
WRITERS = {
    "a model": lambda path: save(GaussianHMM(2), path),
    "a checkpoint": lambda path: write_checkpoint(path, {}, {"a": np.zeros(2)}),
    "a trace": lambda path: Trace({"x": np.zeros((2, 3))}, {}).save(path),
    "a page": lambda path: write_page("<html></html>", path),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("what", WRITERS)
def test_what_is_no_regular_file_is_refused_and_stays(folder, kind, what):
    MAKERS[kind](folder / "place")
    before = (folder / "place").lstat()
    with pytest.raises(ValueError, match=f"must name a regular file, got the {kind} '.*place'"):
        WRITERS[what](folder / "place")
    assert (folder / "place").lstat() == before
    assert [path.name for path in folder.iterdir()] == ["place"]


@pytest.mark.parametrize("what", WRITERS)
def test_a_link_to_a_file_is_followed_and_one_to_a_pipe_is_refused(folder, what):
    (folder / "file").write_bytes(b"old")
    (folder / "link").symlink_to("file")
    WRITERS[what](folder / "link")
    assert (folder / "link").is_symlink()
    assert not (folder / "file").is_symlink()
    assert (folder / "file").read_bytes() != b"old"
    pipe(folder / "pipe")
    (folder / "other").symlink_to("pipe")
    with pytest.raises(ValueError, match=r"must name a regular file, got the pipe '.*other'"):
        WRITERS[what](folder / "other")
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)


@pytest.mark.parametrize("what", WRITERS)
def test_folders_and_places_outside_any_folder_are_refused(folder, what):
    (folder / "file").write_bytes(b"old")
    (folder / "loop").symlink_to("loop")
    with pytest.raises(IsADirectoryError, match="must name a file, got the folder"):
        WRITERS[what](folder)
    for place in ("nowhere/model", "file/model"):
        with pytest.raises(FileNotFoundError, match=f"must lie in an existing folder, got '.*{place}'"):
            WRITERS[what](folder / place)
    with pytest.raises(OSError, match=r"must name a file that can be written, got '.*loop'"):
        WRITERS[what](folder / "loop")
    assert (folder / "file").read_bytes() == b"old"
    assert sorted(path.name for path in folder.iterdir()) == ["file", "loop"]


def test_a_target_that_becomes_a_pipe_while_it_is_written_is_not_replaced(folder):
    with pytest.raises(ValueError, match="got the pipe"), replacing(folder / "file"):
        pipe(folder / "file")
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert stat.S_ISFIFO((folder / "file").stat().st_mode)


def test_a_failure_leaves_the_old_file_and_nothing_else(folder):
    (folder / "file").write_bytes(b"old")

    def interrupted():
        with replacing(folder / "file") as file:
            file.write(b"half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (folder / "file").read_bytes() == b"old"
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_a_new_file_has_the_usual_permissions_and_an_old_one_keeps_its_own(folder):
    mask = os.umask(0o027)
    try:
        with replacing(folder / "file") as file:
            file.write(b"a")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((folder / "file").stat().st_mode) == 0o640
    (folder / "file").chmod(0o604)
    with replacing(folder / "file") as file:
        file.write(b"b")
    assert stat.S_IMODE((folder / "file").stat().st_mode) == 0o604


def test_the_longest_name_that_the_system_allows_can_be_written(folder):
    path = folder / ("n" * 255)
    with replacing(path) as file:
        file.write(b"a")
    assert path.read_bytes() == b"a"


def test_the_trial_leaves_nothing_behind_and_finds_a_folder_that_cannot_be_written(folder, monkeypatch):
    check_writable(folder / "file")
    assert list(folder.iterdir()) == []

    def read_only(*arguments):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(PermissionError, match=r"--figure must lie in a folder that can be written, got .*Read-only"):
        check_writable(folder / "file", "--figure")
    assert check_target(folder / "file") == Path(os.path.realpath(folder)) / "file"


class Problem:
    """Fails the test if anything is computed."""

    def initialize(self, source, rng):
        raise AssertionError("the place of the checkpoint must be looked at before the work")


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_fit(folder):
    pipe(folder / "pipe")
    with pytest.raises(ValueError, match="checkpoint must name a regular file, got the pipe"):
        expectation_maximization(Problem(), None, rng=np.random.default_rng(0), checkpoint=folder / "pipe")


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_first_draw(folder):
    from pluri.inference.mcmc import RandomWalk, sample

    asked = []

    def log_density(x):
        asked.append(x)
        return -0.5 * x @ x

    with pytest.raises(FileNotFoundError, match="checkpoint must lie in an existing folder"):
        sample(RandomWalk(log_density), np.zeros(2), checkpoint=folder / "nowhere" / "trace.npz", random_state=0)
    assert len(asked) <= 4  # where the four chains start
