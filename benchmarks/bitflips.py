"""One bit of a file is flipped, as by a failing disk or a bad copy: is it noticed?

usage: python -m benchmarks.bitflips N

N flips at random places, spread evenly over the files of a model folder, which is then loaded and translates; and N
over those of a training that was stopped, which is then continued. A flip is noticed (an error, or the message that a
file is damaged), without effect (the same translations or weights), or silent.
"""

import contextlib
import hashlib
import io
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import glassformer as gf
from benchmarks.killtest import SIZES, write_corpus
from benchmarks.machine import save
from glassformer import cli
from glassformer.errors import UserError

LINES = ["The black cat sat on the couch.", "A man saw 25 dogs."]


def run(*arguments):
    """Exit code and messages of a command in this process."""
    messages, code = io.StringIO(), 0
    with contextlib.redirect_stderr(messages), contextlib.redirect_stdout(io.StringIO()):
        try:
            cli.main(list(map(str, arguments)))
        except SystemExit as end:
            code = end.code or 0
    return code, messages.getvalue()


def use_model(folder):
    """What a user gets of a model folder: translations, or None after an error."""
    try:
        return gf.load(folder)(LINES, nbest=2)
    except UserError:
        return None


def continue_training(command, folder):
    """The weights at the end of a training, by their SHA-256, or None after an error or a message of damage."""
    code, messages = run(*command, folder)
    if code or "damaged" in messages:
        return None
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def flip(path, rng):
    """Flip a bit of a file."""
    data = bytearray(path.read_bytes())
    bit = rng.randrange(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    return bit


def test(original, use, n, rng):
    """Flip N bits, each in a copy of the folder that is then used."""
    expected, found, unused = use(copied(original)), Counter(), set()
    names = sorted(path.relative_to(original) for path in original.rglob("*") if path.is_file() and path.stat().st_size)
    for i in range(n):
        name, copy = names[i % len(names)], copied(original)
        bit = flip(copy / name, rng)
        result = use(copy)
        outcome = "noticed" if result is None else "without effect" if result == expected else "silent"
        found[outcome] += 1
        if outcome == "without effect":
            unused.add(str(name))
        if outcome == "silent":
            print(f"  silent: bit {bit} of {name}", flush=True)
    outcomes = {outcome: found[outcome] for outcome in ("noticed", "without effect", "silent")}
    return {"flips": n, "files": len(names), **outcomes, "files without effect": sorted(unused)}


def copied(folder):
    """A copy of a folder, beside it; an earlier one is replaced."""
    copy = folder.with_name(f"{folder.name}-copy")
    shutil.rmtree(copy, ignore_errors=True)
    return shutil.copytree(folder, copy)


def main(n):
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), random.Random(1)
        write_corpus(folder)
        train = ["train", folder / "train.en", folder / "train.fr", *SIZES, "--threads", "1", "--save-every", "3"]
        code, messages = run(*train, "--steps", "12", "--out", folder / "run")
        assert code == 0, messages
        model = folder / "model"
        model.mkdir()
        for path in (folder / "run").iterdir():
            if path.is_file() and path.name not in ("run.toml", "env.json", "metrics.jsonl", "train.log"):
                path.rename(model / path.name)  # the training is then as it was before its end
        rows = {"a model folder": test(model, use_model, n, rng)}
        print(rows, flush=True)
        shutil.rmtree(folder / "run" / "checkpoints" / "step-12")
        resume = [*train, "--steps", "12", "--out"]
        rows["a training that was stopped"] = test(folder / "run", lambda copy: continue_training(resume, copy), n, rng)
    save("bitflips", {"rows": rows}, f"python -m benchmarks.bitflips {n}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
