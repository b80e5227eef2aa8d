"""The command line as a user meets it: in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from glassformer.corpora.grammar import split_pairs

ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
SMALL = [
    *("--preset", "tiny", "--d-model", "32", "--n-heads", "2", "--d-ff", "32", "--n-layers", "1"),
    *("--vocab-size", "300", "--batch-tokens", "500", "--threads", "1"),
]


def glassformer(*arguments, stdin: str | bytes | None = None, cwd: Path | None = None, timeout: float = 240):
    """Run a command; standard input and output as UTF-8 text, or bytes if bytes are given."""
    text = not isinstance(stdin, bytes)
    return subprocess.run(
        [sys.executable, "-m", "glassformer", *map(str, arguments)],
        input=stdin if stdin is not None else "", capture_output=True, cwd=cwd, env=ENVIRONMENT, timeout=timeout,
        **({"encoding": "utf-8"} if text else {}),
    )  # fmt: skip


def write_lines(path: Path, lines) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    """A folder with train, dev and test text of the embedded grammar."""
    folder = tmp_path_factory.mktemp("corpus")
    train, held_out = split_pairs(300, 40, seed=3)
    for name, pairs in (("train", train), ("dev", held_out[:20]), ("test", held_out[20:])):
        write_lines(folder / f"{name}.en", [english for english, _ in pairs])
        write_lines(folder / f"{name}.fr", [french for _, french in pairs])
    return folder


@pytest.fixture(scope="session")
def model(corpus) -> Path:
    """A model folder, barely trained."""
    out = corpus / "model"
    done = glassformer("train", corpus / "train.en", corpus / "train.fr", "--out", out, "--steps", 30, *SMALL)
    assert done.returncode == 0, done.stderr
    return out
