"""For all that pytest collects, documents included: an example that writes a file leaves nothing behind."""

import pytest


@pytest.fixture(autouse=True)
def _examples_write_into_a_folder_of_their_own(request):
    # Asked for only here: a fixture that every test had would be undone after those of the test itself.
    if isinstance(request.node, pytest.DoctestItem):
        folder = request.getfixturevalue("tmp_path_factory").mktemp("example")
        request.getfixturevalue("monkeypatch").chdir(folder)
