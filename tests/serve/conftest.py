"""One server for the tests that do not change it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.models import Server, running, write_models


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """A folder with models, a glossary and a folder for corrections."""
    path = tmp_path_factory.mktemp("served")
    write_models(path)
    (path / "terms.tsv").write_text("cat\tKater\n", encoding="utf-8")
    (path / "corrections").mkdir()
    return path


@pytest.fixture(scope="session")
def server(folder) -> Iterator[Server]:
    with running(folder, "--glossary", "animals=terms.tsv", "--corrections", "corrections") as found:
        yield found
