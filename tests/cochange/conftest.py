"""Small git repositories with known commits."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


class Scratch:
    """A repository that commits what it is told, at times that are told."""

    def __init__(self, folder):
        self.folder = folder
        self.time = 1_000_000_000
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments, check=True):
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "C",
            "GIT_COMMITTER_EMAIL": "c@example.org",
            "GIT_AUTHOR_DATE": f"{self.time} +0000",
            "GIT_COMMITTER_DATE": f"{self.time} +0000",
            "HOME": str(self.folder),
        }
        result = subprocess.run(
            ["git", "-C", str(self.folder), *arguments], env=environment, capture_output=True, check=check
        )
        return result.stdout.decode()

    def write(self, *files):
        for number, file in enumerate(files):
            path = self.folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            # Contents differ from file to file, so that git sees no renames where there are none.
            path.write_text(f"{file!r} {number} {self.time}\n" + f"line of {file!r}\n" * 5)

    def commit(self, *files, message="change", pause=3600):
        self.time += pause
        self.write(*files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD").strip()

    def rename(self, old, new, *files):
        (self.folder / new).parent.mkdir(parents=True, exist_ok=True)
        self.git("mv", old, new)
        return self.commit(*files, message="rename")


@pytest.fixture
def scratch(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("no git on the PATH")
    return Scratch(tmp_path / "repository")
