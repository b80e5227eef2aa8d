"""What text in one language, teachers and pre-training are worth to a translator of 5,000 pairs, at equal time.

Six minutes of training in all on one core each, by the default recipe; dev sets. The other pairs of a corpus are given
as text in one language: their targets (back-translation), their sources (self-training), or both sides (pre-training by
denoising, a third of the time). As many trainings run at a time as there are cores; nothing else must run. A training
that FOLDER has is not repeated.

usage: python -m benchmarks.more_text DATA FOLDER
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.machine import save
from benchmarks.quality import corpus_of, glassformer, score, train, write
from glassformer.presets import FINE_TUNING
from glassformer.train_config import BUDGETS

N_PAIRS = 5000
NAMES = ("multi30k-de", "docs-es")
MINUTES, PRETRAINING = 6, 2
COMMON = ("--threads", 1)


def alone(corpus, files, out, *options, minutes=MINUTES):
    return train(corpus, files, out, *COMMON, "--minutes", minutes, *options)


def back_translation(corpus, files, out):
    return alone(corpus, files, out, "--more-tgt", files / f"more.{corpus.languages[1]}")


def self_training(corpus, files, out):
    return alone(corpus, files, out, "--more-src", files / f"more.{corpus.languages[0]}")


def both(corpus, files, out):
    src, tgt = (files / f"more.{language}" for language in corpus.languages)
    return alone(corpus, files, out, "--more-tgt", tgt, "--more-src", src)


def teachers(corpus, files, out):
    return alone(corpus, files, out, "--n-teachers", 2)


def pretraining(corpus, files, out, *options):
    first = out.with_name(f"{out.name}-first")
    glassformer(
        "train", files / "all.jsonl", "--task", "span-corruption", "--family", "transformer", "--preset", "tiny",
        "--vocab-size", 8000, "--out", first, *COMMON, "--minutes", PRETRAINING,
    )  # fmt: skip
    return alone(corpus, files, out, "--init-from", first, *options, minutes=MINUTES - PRETRAINING)


def pretraining_fine_tuning(corpus, files, out):
    given = {name: value for name, value in FINE_TUNING.items() if name not in BUDGETS} | {"dropout": 0.02}
    flags = [each for name, value in given.items() for each in (f"--{name.replace('_', '-')}", value)]
    return pretraining(corpus, files, out, *flags)


METHODS = {
    "the pairs alone": alone,
    "back-translation": back_translation,
    "self-training": self_training,
    "back-translation and self-training": both,
    "two teachers": teachers,
    "pre-training by denoising, then the recipe of fine-tuning": pretraining_fine_tuning,
    "pre-training by denoising, then the default recipe": pretraining,
}


def write_all(data, name, files):
    """Write the pairs, and the text of the other pairs: of each side, and of both with that of the pairs."""
    corpus, whole = corpus_of(data, f"{name}-{N_PAIRS}"), corpus_of(data, name)
    write(corpus, files)
    others = whole.train[N_PAIRS:]
    for side, language in enumerate(corpus.languages):
        (files / f"more.{language}").write_text("".join(pair[side] + "\n" for pair in others), encoding="utf-8")
    texts = (text for pairs in zip(*whole.train, strict=True) for text in dict.fromkeys(pairs))
    records = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (files / "all.jsonl").write_text(records, encoding="utf-8")
    return corpus, len(others)


def main():
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    corpora = {name: write_all(data, name, folder / "data" / name) for name in NAMES}

    def run(name, method):
        out = folder / name / method.replace(",", "").replace(" ", "-")
        return METHODS[method](corpora[name][0], folder / "data" / name, out), out

    names = [(name, method) for name in NAMES for method in METHODS]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        trainings = dict(zip(names, threads.map(lambda given: run(*given), names), strict=True))
    rows = {}
    for (name, method), (training, out) in trainings.items():
        corpus, n_more = corpora[name]
        row = {"n_more": n_more, "targets": training["targets"], "minutes": training["minutes"]}
        row |= score(out, folder / "data" / name, corpus, "dev", "--beam", 5)
        rows.setdefault(name, {})[method] = row
        print(name, method, json.dumps(row), flush=True)
    save(
        "more_text",
        {"n_pairs": N_PAIRS, "minutes": MINUTES, "pretraining": PRETRAINING, "rows": rows},
        "python -m benchmarks.more_text DATA FOLDER",
    )


if __name__ == "__main__":
    main()
