"""The command line as a user meets it."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from glassformer.cli import main
from glassformer.corpora.demo.pairs import split_pairs

os.environ |= {"COLUMNS": "200", "NO_COLOR": "1"}  # messages are compared
ENVIRONMENT = dict(os.environ)
SMALL = [
    *("--preset", "tiny", "--d-model", "32", "--n-heads", "2", "--d-ff", "32", "--n-layers", "1"),
    *("--vocab-size", "300", "--batch-tokens", "500", "--threads", "1"),
]

RARE = ["--validate-every", "1000"]  # at the end only


def glassformer(*arguments, stdin: str | bytes = "") -> subprocess.CompletedProcess:
    """Run a command in this process, which spares it the seconds that torch takes to load.

    Standard input and output are text, or bytes if bytes are given.
    """
    text = isinstance(stdin, str)
    streams = [
        io.TextIOWrapper(io.BytesIO(data), encoding="utf-8") for data in (stdin.encode() if text else stdin, b"", b"")
    ]
    before = sys.stdin, sys.stdout, sys.stderr, torch.get_num_threads()
    sys.stdin, sys.stdout, sys.stderr = streams
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.stdin, sys.stdout, sys.stderr, n_threads = before
        torch.set_num_threads(n_threads)
        torch.use_deterministic_algorithms(False)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    for stream in streams[1:]:
        stream.flush()
    out, err = (stream.buffer.getvalue() for stream in streams[1:])
    return subprocess.CompletedProcess(arguments, code, *((out.decode(), err.decode()) if text else (out, err)))


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
    done = glassformer("train", corpus / "train.en", corpus / "train.fr", "--out", out, "--steps", 30, *SMALL, *RARE)
    assert done.returncode == 0, done.stderr
    return out
