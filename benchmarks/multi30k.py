"""BLEU on Multi30k after a fixed training time, with the command line.

usage: python -m benchmarks.multi30k DATA de|fr [MINUTES [THREADS [OPTION ...]]]

DATA contains tok/{train,val,test_2016_flickr}.lc.norm.tok.{en,de,fr}.gz: lower-cased, normalized, Moses-tokenized text,
scored like published results (sacrebleu --tokenize none). Training uses train and val; test_2016 is translated only
once, at the end. OPTION: of `glassformer train`; with --n-teachers, and for each --seed, there is a file of results.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import describe, save

OPTIONS = ["--preset", "tiny", "--vocab-size", "8000"]


def main():
    data, language = Path(sys.argv[1]), sys.argv[2]
    minutes = sys.argv[3] if len(sys.argv) > 3 else "60"
    extra = ["--threads", *sys.argv[4:]] if len(sys.argv) > 4 else []
    name = f"multi30k_en_{language}" + ("_teachers" if "--n-teachers" in extra else "")
    if "--seed" in extra:
        name += f"_seed_{extra[extra.index('--seed') + 1]}"
    command = " ".join(["python -m benchmarks.multi30k DATA", language, minutes, *sys.argv[4:]])
    made_with = describe(command)  # before the training, which takes an hour
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"en-{language}"
        trained = train(data, language, out, ["--minutes", minutes, *OPTIONS, *extra])
        scores = score(data, language, out)
    save(name, {**made_with, "scores": scores, **trained}, command)
    print({what: round(metrics["BLEU"]["score"], 2) for what, metrics in scores.items()})


def score(data, language, out):
    """The scores of both sets and searches."""
    return {
        f"{split} {name}": evaluate(data, language, out, split, *beam)
        for split in ("val", "test_2016_flickr")
        for name, beam in (("greedy", ["--beam", "1"]), ("beam 4", []))
    }


def side(data, split, language):
    return str(data / "tok" / f"{split}.lc.norm.tok.{language}.gz")


def train(data, language, out, options):
    """Train a model. Returns the command, its minutes, training.json and the validation records."""
    command = [
        "train", side(data, "train", "en"), side(data, "train", language), "--dev-src", side(data, "val", "en"),
        "--dev-tgt", side(data, "val", language), "--out", str(out), *options,
    ]  # fmt: skip
    start = time.monotonic()
    run(*command)
    minutes = (time.monotonic() - start) / 60
    curve = [json.loads(line) for line in (out / "metrics.jsonl").read_text().split("\n") if "dev_bleu" in line]
    as_typed = " ".join(["glassformer", *command]).replace(str(data), "DATA").replace(str(out), out.name)
    return {
        "train": as_typed,
        "minutes_in_all": minutes,
        "training": json.loads((out / "training.json").read_text()),
        "curve": curve,
    }


def evaluate(data, language, out, split, *options, tokenize="none"):
    sides = ["--src", side(data, split, "en"), "--ref", side(data, split, language)]
    return json.loads(run("evaluate", str(out), *sides, "--tokenize", tokenize, "--json", *options))


def run(*arguments):
    command = [sys.executable, "-m", "glassformer", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
