"""The demo reaches what the README says of it. A file of its own, as it takes minutes and files run in parallel."""

import re

import pytest

from tests.journeys.test_readme import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demo_reaches_95_bleu_and_translates_the_reference_sentence(tmp_path):
    # The demo trains for 2 minutes on all cores; here it has one, while other tests use the other.
    done = run("glassformer demo --minutes 3.5", tmp_path, timeout=590)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"BLEU on 500 held-out sentences: ([\d.]+)", done.stdout).group(1)) >= 95
    assert "Le chat noir était assis sur le canapé et le chien marron dormait sur le tapis." in done.stdout
