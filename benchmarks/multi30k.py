"""BLEU on Multi30k after a given time of training, through the command line as a user would.

usage: python -m benchmarks.multi30k DATA de|fr [MINUTES [THREADS]]

DATA holds tok/{train,val,test_2016_flickr}.lc.norm.tok.{en,de,fr}.gz: lower-cased, normalized, Moses-tokenized text,
scored as published figures are (sacrebleu --tokenize none). Training sees train and val; test_2016 is translated once,
at the end.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import describe, save

OPTIONS = ["--preset", "tiny", "--vocab-size", "8000"]


def main():
    data, language = Path(sys.argv[1]), sys.argv[2]
    minutes = sys.argv[3] if len(sys.argv) > 3 else "60"
    extra = ["--threads", sys.argv[4]] if len(sys.argv) > 4 else []
    command = " ".join(["python -m benchmarks.multi30k DATA", language, minutes, *sys.argv[4:]])
    made_with = describe(command)  # before, not after: an hour is long
    file = lambda split, lang: str(data / "tok" / f"{split}.lc.norm.tok.{lang}.gz")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"en-{language}"
        train = [
            "train", file("train", "en"), file("train", language), "--dev-src", file("val", "en"),
            "--dev-tgt", file("val", language), "--minutes", minutes, "--out", str(out), *OPTIONS, *extra,
        ]  # fmt: skip
        run(*train)
        scores = {}
        for split in ("val", "test_2016_flickr"):
            for beam in (["--beam", "1"], []):
                sides = ["--src", file(split, "en"), "--ref", file(split, language)]
                found = run("evaluate", str(out), *sides, "--tokenize", "none", "--json", *beam)
                scores[f"{split} {'greedy' if beam else 'beam 4'}"] = json.loads(found)
        curve = [json.loads(line) for line in (out / "metrics.jsonl").read_text().split("\n") if "dev_bleu" in line]
        training = json.loads((out / "training.json").read_text())
    as_typed = " ".join(["glassformer", *train]).replace(str(data), "DATA").replace(str(out), out.name)
    record = {**made_with, "train": as_typed, "scores": scores, "training": training, "curve": curve}
    save(f"multi30k_en_{language}", record, command)
    print({name: round(score["BLEU"]["score"], 2) for name, score in scores.items()})


def run(*arguments):
    command = [sys.executable, "-m", "glassformer", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
