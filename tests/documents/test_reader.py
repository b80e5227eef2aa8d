"""The process that reads documents."""

import subprocess
import sys

import pytest

from glassformer.documents.reader import HEADER, document_of, request

LIMITS = {
    "linux": "",
    "windows": "import sys; sys.modules['resource'] = None",
    "macos": "import resource\ndef refused(*_): raise ValueError('current limit exceeds maximum limit')\n"
    "resource.setrlimit = refused",
}


@pytest.mark.parametrize("system", LIMITS)
def test_documents_are_read_where_memory_cannot_be_limited(system):
    code = f"{LIMITS[system]}\nfrom glassformer.documents.reader import main\nmain()"
    data = b"A cat.\n"
    done = subprocess.run([sys.executable, "-c", code], input=request("a.txt", data, ("en", "fr")), capture_output=True)
    assert not done.stderr
    document = document_of(done.stdout[HEADER.size :], data)
    assert [segment.text for segment in document.segments] == ["A cat."]
