"""For all that pytest collects, documents included: an example that writes a file leaves nothing behind."""

import pytest


@pytest.fixture(autouse=True)
def _examples_write_into_a_folder_of_their_own(request, tmp_path_factory, monkeypatch):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path_factory.mktemp("example"))
