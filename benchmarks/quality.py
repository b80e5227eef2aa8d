"""Quality of translators by recipe, on the dev sets of several corpora: BLEU and chrF, with mean and range over seeds.

usage: python -m benchmarks.quality DATA FOLDER [CORPUS/RECIPE/SEED ...] [--test]

Each run is a training of a fixed number of updates in FOLDER, on the GPU if there is one, and one row of the result
file; a run that is stopped is resumed by the same command, and what the file has is not run again (its `options` are
those that the run had). Without names, all runs of CARD. With --test, the runs named are scored on the test set as
well: once, at the end, for what the dev sets have chosen.

Corpora, from DATA: Multi30k (lower-cased, Moses-tokenized, scored as published: sacrebleu --tokenize none; captions-de:
as it was written), Tatoeba (split by English sentence), the documentation of Python (split by file, without sentences
of the training), small-parallel-enja (scored by characters). CORPUS-N: its first N pairs.
"""

import gzip
import hashlib
import json
import os
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpora import lines, part_of
from benchmarks.machine import describe, gpu, load_own, save
from benchmarks.multi30k import run as run_command

PUBLISHED = (
    "--preset tiny --optimizer adam --no-pre-norm --no-rotary --dropout 0.3 --lr 5e-3 --batch-tokens 8000"
    " --warmup-ratio 0.25 --decay-ratio 0 --vocab-size 10000 --steps 8000"
)
"""The published recipe of Multi30k (2,000 of 8,000 updates are the warm-up): about 60 M targets."""

ADAM = "--preset tiny --optimizer adam --lr 3e-3 --batch-tokens 1500 --dropout 0.25"
MUON = "--preset tiny --optimizer muon --lr 8e-3 --batch-tokens 1000"

RECIPES = {
    # About 6 M targets each, 14 epochs of Multi30k.
    "adam": f"{ADAM} --vocab-size 8000 --steps 4200",
    "adam-4000": f"{ADAM} --vocab-size 4000 --steps 3750",
    "muon-0.07": f"{MUON} --dropout 0.07 --vocab-size 8000 --steps 6250",
    "muon-0.14": f"{MUON} --dropout 0.14 --vocab-size 8000 --steps 6250",
    # About 2.6 M targets each, for 5,000 pairs.
    "small-adam": f"{ADAM} --vocab-size 2000 --steps 1900",
    "small-muon": f"{MUON} --dropout 0.2 --vocab-size 2000 --steps 2850",
    "small-muon-0.3": f"{MUON} --dropout 0.3 --vocab-size 2000 --steps 2850",
    "small-bpe-dropout": f"{MUON} --dropout 0.2 --bpe-dropout 0.1 --vocab-size 2000 --steps 2850",
    # About 9.4 M targets, 22 epochs of Multi30k.
    "preset": "--preset tiny --steps 10000",
    # About 15 M targets, 35 epochs of Multi30k.
    "hour": "--preset tiny --steps 16000",
    "published": PUBLISHED,
    # A student of an ensemble, from its translations and the references: about 11 M targets.
    "distilled": "--preset tiny --vocab-size 8000 --steps 12000",
    # The same, about 28 M targets.
    "distilled-long": "--preset tiny --vocab-size 8000 --steps 30000",
    # Teachers of a student, about 8.5 M targets each, and what --n-teachers 2 makes of them in as many updates as both
    # have had (17 M targets); with three of them, in about as many updates in all.
    "teacher": "--preset tiny --vocab-size 8000 --steps 9000",
    "own-teachers": "--preset tiny --vocab-size 8000 --steps 18000",
    "own-teachers-3": "--preset tiny --vocab-size 8000 --steps 10000",
    # The same for 5,000 pairs: 1.3 M targets for each teacher, 2.6 M for the student; and 5.3 M without teachers.
    "small-teacher": "--preset tiny --steps 1400",
    "small-own-teachers": "--preset tiny --steps 2800",
    "small-twice": "--preset tiny --steps 5600",
    # About 2.8 M targets each, 6 epochs of Multi30k.
    **{
        f"augment-{fraction}": f"{MUON} --dropout 0.08 --augment {fraction} --vocab-size 8000 --steps 3000"
        for fraction in (0, 0.1, 0.38)
    },
    # About 1.4 M and 9.4 M targets each, 3 and 22 epochs of Multi30k.
    **{
        f"augment-{fraction}-{length}": f"--preset tiny --augment {fraction} --steps {steps}"
        for fraction in (0, 0.1)
        for length, steps in {"short": 1500, "long": 10_000}.items()
    },
}
"""Options of `glassformer train` by name."""

TEACHERS = {
    **dict.fromkeys(("distilled", "distilled-long"), ("published/1", "published/2", "published/3")),
    "own-teachers": ("teacher/11", "teacher/12"),
    "own-teachers-3": ("teacher/11", "teacher/12", "teacher/13"),
    "small-own-teachers": ("small-teacher/11", "small-teacher/12"),
}
"""Recipe of a student -> the runs of the same corpus that teach it."""

CARD = [
    *(f"multi30k-de/{recipe}/1" for recipe in ("adam", "adam-4000", "muon-0.07", "muon-0.14")),
    *(f"multi30k-de-5000/{name}/1" for name in ("small-adam", "small-muon", "small-muon-0.3", "small-bpe-dropout")),
    *(f"captions-de/augment-{fraction}/1" for fraction in (0, 0.1, 0.38)),
    *(f"multi30k-{language}/{recipe}/1" for language in ("de", "fr") for recipe in ("preset", "hour")),
]

LENGTH_PENALTIES = (0.6, 1.0, 1.4, 2.0)
BEAM = 5


@dataclass(frozen=True)
class Corpus:
    """Pairs of each part, and how they are scored."""

    train: list
    dev: list
    test: list
    languages: tuple[str, str]
    tokenize: str = "13a"


def split(pairs, n_parts):
    """Test, dev and training pairs, by a hash of a text for each pair: one part, one part, and all others.

    Args:
        pairs: texts and pairs.
    """
    parts = [], [], []
    for text, pair in pairs:
        parts[min(2, part_of(text, n_parts))].append(pair)
    return parts


def multi30k(data, language):
    def pairs(part):
        names = (data / f"multi30k/tok/{part}.lc.norm.tok.{side}.gz" for side in ("en", language))
        return list(zip(*map(lines, names), strict=True))

    return Corpus(pairs("train"), pairs("val"), pairs("test_2016_flickr"), ("en", language), "none")


def captions(data):
    """Multi30k En-De as it was written, with capitals."""

    def pairs(part):
        sides = (lines(data / f"multi30k/raw/{part}.{side}.gz") for side in ("en", "de"))
        return [(src.strip(), tgt.strip()) for src, tgt in zip(*sides, strict=True)]

    return Corpus(pairs("train"), pairs("val"), pairs("test_2016_flickr"), ("en", "de"))


def tatoeba(data):
    rows = [tuple(line.split("\t")[:2]) for line in lines(data / "tatoeba-en-de/deu.txt.gz")]
    test, dev, train = split(((pair[0], pair) for pair in dict.fromkeys(rows)), 100)
    train.sort(key=lambda pair: hashlib.blake2b(pair[0].encode()).digest())  # the file is sorted by length
    return Corpus(train, dev, test, ("en", "de"))


def documentation(data):
    with gzip.open(data / "python-docs-es/python-docs-es-pairs.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    sides = lambda row: tuple(" ".join(row[side].split()) for side in ("en", "es"))
    test, dev, train = (dict.fromkeys(part) for part in split(((row["file"], sides(row)) for row in rows), 20))
    trained = {src for src, _ in train}
    test, dev = ([pair for pair in part if pair[0] not in trained][:1000] for part in (test, dev))
    return Corpus(list(train), dev, test, ("en", "es"))


def japanese(data):
    sides = {part: [lines(data / f"small-parallel-enja/{part}.{side}.gz") for side in ("en", "ja")] for part in
             ("train", "dev")}  # fmt: skip
    train, dev = (list(zip(*sides[part], strict=True)) for part in ("train", "dev"))
    return Corpus(train, dev, [], ("en", "ja"), "char")


CORPORA = {
    "multi30k-de": lambda data: multi30k(data, "de"),
    "multi30k-fr": lambda data: multi30k(data, "fr"),
    "captions-de": captions,
    "tatoeba-de": tatoeba,
    "docs-es": documentation,
    "enja": japanese,
}


def corpus_of(data, name):
    """The corpus of a name, of which a number at its end is that of the training pairs."""
    base, _, number = name.rpartition("-")
    if not number.isdigit():
        return CORPORA[name](data)
    whole = CORPORA[base](data)
    return Corpus(whole.train[: int(number)], whole.dev, whole.test, whole.languages, whole.tokenize)


def write(corpus, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        for side, language in enumerate(corpus.languages):
            text = "".join(pair[side] + "\n" for pair in getattr(corpus, part))
            (folder / f"{part}.{language}").write_text(text, encoding="utf-8")


def glassformer(*arguments):
    return run_command(*map(str, arguments))


def train(corpus, files, out, *options, teachers=()):
    """Train a translator on the files of a corpus. Returns its training.json.

    Args:
        teachers: folders of models whose translations it learns.
    """
    src, tgt = corpus.languages
    glassformer(
        *(("distill", *teachers) if teachers else ("train",)), "--src", files / f"train.{src}", "--tgt",
        files / f"train.{tgt}", "--dev-src", files / f"dev.{src}", "--dev-tgt",
        files / f"dev.{tgt}", "--languages", src, tgt, "--out", out, *options,
    )  # fmt: skip
    return json.loads((out / "training.json").read_text())


def train_side_by_side(trainings):
    """Train one translator on each core at a time.

    Args:
        trainings: the arguments of `train`, by name.

    Returns:
        What `train` returns, by name.
    """
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        results = threads.map(lambda given: train(*given), trainings.values())
        return dict(zip(trainings, results, strict=True))


def score(model, folder, corpus, part, *options):
    src, ref = (folder / f"{part}.{language}" for language in corpus.languages)
    printed = glassformer(
        "evaluate", model, "--src", src, "--ref", ref, "--tokenize", corpus.tokenize, "--precision", "auto",
        "--device", "cpu", "--json", *options,
    )  # fmt: skip
    return {name: round(json.loads(printed)[name]["score"], 2) for name in ("BLEU", "chrF2")}


def run(data, folder, name, with_test):
    """Train and score one run. Returns its record."""
    corpus_name, recipe, seed = name.split("/")
    corpus, files, out = corpus_of(data, corpus_name), folder / "data" / corpus_name, folder / "runs" / name
    write(corpus, files)
    teachers = [folder / "runs" / corpus_name / each for each in TEACHERS.get(recipe, ())]
    training = train(corpus, files, out, *RECIPES[recipe].split(), "--seed", seed, teachers=teachers)
    settings = {"greedy": ("--beam", 1), "beam 4, 0.6": ("--length-penalty", 0.6)}
    settings |= {f"beam {BEAM}, {a}": ("--beam", BEAM, "--length-penalty", a) for a in LENGTH_PENALTIES}
    dev = {setting: score(out, files, corpus, "dev", *given) for setting, given in settings.items()}
    record = {"options": RECIPES[recipe], "dev": dev}
    record |= {key: training[key] for key in ("targets", "minutes", "steps", "weights", "n_pairs")}
    best = max(dev, key=lambda setting: dev[setting]["BLEU"])
    if with_test:
        record["test"] = {best: score(out, files, corpus, "test", *settings[best])}
    if teachers:
        options = ("--ensemble", *teachers[1:], *settings[best])
        parts = ("dev", "test") if with_test else ("dev",)
        record["ensemble of the teachers"] = {part: score(teachers[0], files, corpus, part, *options) for part in parts}
    return record


def summary(runs):
    """Mean and range of the best dev scores of each recipe on each corpus."""
    found = {}
    for name, record in runs.items():
        best = max(record["dev"].values(), key=lambda scores: scores["BLEU"])
        found.setdefault(name.rpartition("/")[0], []).append(best)
    return {
        name: {
            metric: [round(f([scores[metric] for scores in rows]), 2) for f in (statistics.mean, min, max)]
            for metric in ("BLEU", "chrF2")
        }
        for name, rows in found.items()
    }


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--test"]
    data, folder, names = Path(arguments[0]), Path(arguments[1]), arguments[2:] or CARD
    command = "python -m benchmarks.quality DATA FOLDER"
    own = lambda: load_own("quality", gpu().get("device"))
    for name in names:
        runs = own().get("runs", {})
        if name in runs and "--test" not in sys.argv:
            continue
        made_with = describe("")
        record = run(data, folder, name, "--test" in sys.argv)
        record |= {key: made_with[key] for key in ("commit", "date")}
        runs = {**own().get("runs", {}), name: record}
        note = {key: value for key, value in own().items() if key == "note"}
        save("quality", {**gpu(), **note, "runs": runs, "summary": summary(runs)}, command)
        print(name, record["dev"], flush=True)


if __name__ == "__main__":
    main()
