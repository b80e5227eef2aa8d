"""Every block of commands of docs/quality.md, with small models and few updates."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from glassformer.corpora.demo.pairs import split_pairs
from tests.forks import forking_python
from tests.journeys.conftest import ENVIRONMENT, write_lines

TEXT = (Path(__file__).parents[2] / "docs" / "quality.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
SERVER = "http://"  # tests/journeys/test_synthetic.py has one

# Enough updates for sentences of words that end.
OPTIONS = {
    **{"STEPS": "100", "TOKENIZER": "word", "LR": "1e-2", "VALIDATE_EVERY": "1000", "THREADS": "1", "PRESET": "tiny"},
    **{"D_MODEL": "32", "N_HEADS": "2", "D_FF": "32", "N_LAYERS": "1", "VOCAB_SIZE": "300", "BATCH_TOKENS": "500"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The files that the page names."""
    folder = tmp_path_factory.mktemp("quality")
    pairs = split_pairs(900, 260, seed=3)
    for name, part in {"train": pairs[0][:250], "news": pairs[0][400:520], "own": pairs[0][800:], "dev": pairs[1][:20],
                       "test": pairs[1][20:40], "mono": pairs[1][40:140]}.items():  # fmt: skip
        for side, language in enumerate(("en", "de")):
            write_lines(folder / f"{name}.{language}", [pair[side] for pair in part])
    return folder


@pytest.mark.slow
def test_the_commands_of_the_page_run(folder):
    environment = ENVIRONMENT | {f"GLASSFORMER_{name}": value for name, value in OPTIONS.items()}
    environment["PATH"] = f"{Path(forking_python()).parent}:{os.environ['PATH']}"
    blocks = [re.sub(r" --minutes \d+", "", block) for block in BLOCKS if SERVER not in block]
    assert len(blocks) == len(BLOCKS) - 1 >= 5
    for block in blocks:
        done = subprocess.run(
            ["bash", "-ec", block], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (block, done.stderr)
        assert "Traceback" not in done.stderr
