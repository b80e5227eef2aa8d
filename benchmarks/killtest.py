"""`kill -9` at random instants of a training or a bulk run, which is started again until it ends: is the result, by its
SHA-256, that of an unbroken run?

    python -m benchmarks.killtest N

N kills each of: a training; a fine-tuning; a training by two processes; a bulk translation by two processes.
Trainings are tiny, and write a checkpoint every three updates, so that many kills meet one that is being written.
Commands are forks of this process, which has loaded PyTorch: no kill meets a program that is still being loaded.
"""

import gzip
import hashlib
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.machine import save
from glassformer import cli
from glassformer.corpora.demo.pairs import sample_pairs

MARK = "KILLTEST_OUTPUT"
KILLS_A_RUN = 10
"""After so many kills, a run may end: the more runs, the more results are compared."""
SIZES = "--d-model 32 --n-heads 2 --d-ff 64 --n-layers 1 --vocab-size 400 --batch-tokens 500".split()
OFTEN = "--save-every 3 --validate-every 8 --threads 1 --quiet".split()


def commands(folder):
    """Name -> the command, and the files that are its result."""
    train = ["train", f"{folder}/train.en", f"{folder}/train.fr", *OFTEN, "--out"]
    model = ["model.safetensors", "tokenizer.json"]
    return {
        "training": ([*train, "{out}", *SIZES, "--steps", "40"], model),
        "fine-tuning": ([*train, "{out}", "--init-from", f"{folder}/base", "--steps", "25"], model),
        "two processes": ([*train, "{out}", *SIZES, "--steps", "25", "--devices", "2", "--device", "cpu"], model),
        "bulk": (
            ["translate", f"{folder}/base", f"{folder}/lines.gz", "--workers", "2", "--out", "{out}"],
            ["lines.gz"],
        ),
    }


def start(arguments, out):
    """Start a command."""
    command = [argument.format(out=out) for argument in arguments]
    process = multiprocessing.get_context("fork").Process(target=run, args=(command, out))
    process.start()
    return process


def run(command, out):
    """Run a command. The environment of the processes that it starts has the name of its output folder."""
    os.environ[MARK] = str(out)
    os.dup2(os.open(errors_of(out), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    cli.main(command)


def errors_of(out):
    """The file with the messages of a command."""
    return out.with_name(f"{out.name}.err")


def kill(process, out):
    """End all processes of a command at once."""
    process.kill()
    process.join()
    mark = f"{MARK}={out}\0".encode()
    while found := [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if mark in content(path)]:
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def content(path):
    """Content of a file of /proc; nothing if the process has ended, or is another user's."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def digest(out, names):
    """SHA-256 of files."""
    return hashlib.sha256(b"".join((out / name).read_bytes() for name in names)).hexdigest()


def finish(process, out):
    """Wait for a command."""
    process.join()
    assert process.exitcode == 0, errors_of(out).read_text()


def test(arguments, names, n, folder, rng):
    """Kill a command N times."""
    folder.mkdir()
    out = folder / "whole"
    begin = time.perf_counter()
    finish(start(arguments, out), out)
    time_s = time.perf_counter() - begin
    expected = digest(out, names)
    n_killed = n_runs = n_different = 0
    while n_killed < n:
        out = folder / f"run-{n_runs}"
        for _ in range(KILLS_A_RUN):
            process = start(arguments, out)
            process.join(rng.uniform(0.0, time_s))
            if process.exitcode is not None:
                break
            kill(process, out)
            n_killed += 1
        else:
            process = start(arguments, out)
        finish(process, out)
        n_runs += 1
        n_different += digest(out, names) != expected
        shutil.rmtree(out)
        print(f"  {n_killed} kills, {n_runs} runs, {n_different} different", flush=True)
    return {"kills": n_killed, "runs": n_runs, "different": n_different, "seconds_unbroken": round(time_s, 1)}


def main(n):
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder)
        train = ["train", f"{name}/train.en", f"{name}/train.fr", *SIZES, "--steps", "30", "--out", "{out}"]
        finish(start(train, base := folder / "base"), base)
        for kind, (arguments, names) in commands(name).items():
            print(kind, flush=True)
            found[kind] = test(arguments, names, n, folder / kind.replace(" ", "-"), random.Random(1))
    save("killtest", {"kinds": found}, f"python -m benchmarks.killtest {n}")


def write_corpus(folder):
    """Pairs to train on, and lines to translate."""
    pairs = sample_pairs(400, 1)
    for side, language in enumerate(("en", "fr")):
        (folder / f"train.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs))
    lines = [f"{pair[0]} {i}" for i in range(5) for pair in pairs] * 3
    (folder / "lines.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
