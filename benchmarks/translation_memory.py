"""What a translation memory is worth: chrF with and without it, by the similarity of the best match.

Data: the Spanish translation of Python's documentation. Every eighth file is held out, a third of these for the dev
set; texts that the training has as well are left out of them. The memory is the training text. A model trained with
--fuzzy-matches is compared with itself without the memory, and with one that was trained without matches.

    python -m benchmarks.translation_memory write DATA/python-docs-es/python-docs-es-pairs.jsonl.gz FOLDER es
    glassformer train FOLDER/train.en FOLDER/train.es --dev-src FOLDER/dev.en --dev-tgt FOLDER/dev.es \
        --minutes 60 --threads 1 --out FOLDER/plain
    the same with --fuzzy-matches --out FOLDER/matches
    python -m benchmarks.translation_memory measure FOLDER
"""

import gzip
import json
import sys
import time
from itertools import pairwise
from pathlib import Path

from benchmarks.machine import save
from glassformer.corpora.lines import read_lines
from glassformer.corpora.memory import Memory
from glassformer.metrics import translation_scores
from glassformer.tasks.registry import load

BINS = (0.6, 0.7, 0.8, 0.9, 1.0)
"""Limits of the similarity."""


def write(path, folder, language):
    """Write the texts: training, dev and test."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [[" ".join(row[key].split()) for key in ("file", "en", language)] for row in map(json.loads, file)]
    rows = [row for row in rows if all(row)]
    files = sorted({name for name, *_ in rows})
    held_out = {name: ("dev" if i // 8 % 3 == 0 else "test") for i, name in enumerate(files) if i % 8 == 0}
    train = [row for row in rows if row[0] not in held_out]
    known = {en for _, en, _ in train}
    parts = {"train": list(dict.fromkeys((en, es) for _, en, es in train))}
    for part in ("dev", "test"):
        own = [(en, es) for name, en, es in rows if held_out.get(name) == part and en not in known]
        parts[part] = list({en: (en, es) for en, es in own}.values())
    folder.mkdir(parents=True, exist_ok=True)
    for part, pairs in parts.items():
        print(f"{part}: {len(pairs):,} pairs")
        for side, name in enumerate(("en", language)):
            (folder / f"{part}.{name}").write_text("".join(f"{pair[side]}\n" for pair in pairs))


def scores(hypotheses, references):
    """BLEU and chrF."""
    return {
        score.name.partition("|")[0].lower()[:4]: round(score.value, 2)
        for score in translation_scores(hypotheses, references)[:2]
    }


def measure(folder):
    """Translate the test texts by each model, with the memory and without."""
    sources, references = (read_lines_of(folder / f"test.{language}") for language in ("en", "es"))
    paths = tuple(folder / f"train.{language}" for language in ("en", "es"))
    start = time.perf_counter()
    memory = Memory(zip(*map(read_lines_of, paths), strict=True))
    indexed_s = time.perf_counter() - start
    start = time.perf_counter()
    found = [memory.similar(source, BINS[0]) for source in sources]
    searched_s = time.perf_counter() - start
    bins = [
        [i for i, match in enumerate(found) if match and low <= match.similarity < high] for low, high in pairwise(BINS)
    ]
    (folder / "memory.tsv").write_text(
        "".join(f"{src}\t{tgt}\n" for src, tgt in zip(*map(read_lines_of, paths), strict=True))
    )
    record = {
        "memory_texts": len(memory),
        "index_s": round(indexed_s, 2),
        "search_ms": round(1000 * searched_s / len(sources), 2),
        "test_texts": len(sources),
        "rows": {},
    }
    for name in ("plain", "matches"):
        if not (folder / name / "model.safetensors").exists():
            continue
        task = load(folder / name, device="cpu")
        for use, given in (("without", ()), ("with", (folder / "memory.tsv",))):
            if use == "with" and name == "plain":
                continue
            start = time.perf_counter()
            outputs = [
                best.text for best, *_ in task.translate(sources, precision="auto", memory=given, min_match=BINS[0])
            ]
            row = {"seconds": round(time.perf_counter() - start, 1), "all": scores(outputs, references)}
            for (low, high), own in zip(pairwise(BINS), bins, strict=True):
                row[f"{low:.1f} to {high:.1f}"] = {
                    "texts": len(own), **scores([outputs[i] for i in own], [references[i] for i in own])
                }  # fmt: skip
            above = [i for own in bins[1:] for i in own]
            row["0.7 and more"] = {
                "texts": len(above), **scores([outputs[i] for i in above], [references[i] for i in above])
            }  # fmt: skip
            copies = [found[i].target for i in above]
            row["0.7 and more"]["match_as_it_is"] = scores(copies, [references[i] for i in above])
            record["rows"][f"{name}, {use} memory"] = row
            print(name, use, row, flush=True)
    save("translation_memory", record, "python -m benchmarks.translation_memory measure FOLDER")


def read_lines_of(path):
    return list(read_lines(path))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
    else:
        measure(Path(sys.argv[2]))
