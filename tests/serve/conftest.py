"""One server for the tests that do not change it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.models import Server, running, write_models


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """A folder with models, a glossary, a translation memory and a folder for corrections."""
    path = tmp_path_factory.mktemp("served")
    write_models(path)
    (path / "terms.tsv").write_text("cat\tKater\n", encoding="utf-8")
    (path / "memory.tsv").write_text("The cat is in the memory.\tDie Katze hat ein Gedächtnis.\n", encoding="utf-8")
    (path / "corrections").mkdir()
    return path


@pytest.fixture(scope="session")
def server(folder) -> Iterator[Server]:
    options = "--glossary", "animals=terms.tsv", "--memory", "old=memory.tsv", "--corrections", "corrections"
    with running(folder, *options) as found:
        yield found
