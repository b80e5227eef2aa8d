"""Every block of commands of docs/quality.md, with small models and few updates."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from glassformer.corpora.demo.pairs import split_pairs
from glassformer.presets import FINE_TUNING, preset, preset_for, vocab_size_for
from tests.forks import forking_python
from tests.journeys.conftest import ENVIRONMENT, write_lines

TEXT = (Path(__file__).parents[2] / "docs" / "quality.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
SERVER = "http://"  # tests/journeys/test_synthetic.py has one

# Enough updates for sentences of words that end.
OPTIONS = {
    **{"STEPS": "100", "TOKENIZER": "word", "LR": "1e-2", "VALIDATE_EVERY": "1000", "THREADS": "1", "PRESET": "tiny"},
    **{"D_MODEL": "32", "N_HEADS": "2", "D_FF": "32", "N_LAYERS": "1", "VOCAB_SIZE": "300", "BATCH_TOKENS": "500"},
    "ROTARY": "false",  # one layer hardly knows by relative positions where a sentence ends
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


def test_the_defaults_of_the_page_are_those_that_are_chosen():
    paragraph = " ".join(TEXT.split("## What is chosen if nothing is given")[1].split("##")[0].split())
    vocabularies = re.findall(r"([\d,]+)(?: entries)? below ([\d.,]+\d)( million)?", paragraph)
    numbers = [
        (int(size.replace(",", "")), int(float(limit.replace(",", "")) * (1_000_000 if million else 1)))
        for size, limit, million in vocabularies
    ]
    assert len(numbers) == 5
    assert [vocab_size_for(limit - 1) for _, limit in numbers] == [size for size, _ in numbers]
    assert [vocab_size_for(limit) for _, limit in numbers] == [*(size for size, _ in numbers[1:]), 32_000]
    assert "else 32,000; and the preset" in paragraph
    assert "of a translator, `tiny` below 100,000 pairs, `small` below a million, else `base`" in paragraph
    assert [preset_for(n) for n in (99_999, 100_000, 999_999, 1_000_000)] == ["tiny", "small", "small", "base"]
    assert "20,000 updates (`tiny`, `small`) or 100,000 (`base`), a model from `--init-from` for 4 epochs" in paragraph
    assert [preset(name)["steps"] for name in ("tiny", "small", "base")] == [20_000, 20_000, 100_000]
    assert FINE_TUNING["epochs"] == 4
