"""What a translation memory is worth: chrF with and without it, by the similarity of the best match.

Data: the Spanish translation of Python's documentation. Every eighth file is held out, a third of these for the dev set;
texts that the training has as well are left out of them. The memory is the training text. A model trained with
--fuzzy-matches is compared with itself without the memory, and with one that was trained without matches.

    python -m benchmarks.translation_memory write DATA/python-docs-es/python-docs-es-pairs.jsonl.gz FOLDER
    glassformer train FOLDER/train.en FOLDER/train.es --dev-src FOLDER/dev.en --dev-tgt FOLDER/dev.es \
        --minutes 60 --threads 1 --out FOLDER/plain
    the same with --fuzzy-matches --out FOLDER/matches
    python -m benchmarks.translation_memory measure FOLDER
"""

import gzip
import json
import sys
import time
from pathlib import Path

from benchmarks.machine import save
from glassformer.corpora.lines import read_lines
from glassformer.metrics import translation_scores

BINS = (0.6, 0.7, 0.8, 0.9, 1.0)
"""Limits of the similarity."""


def write(path, folder):
    """Write the texts: training, dev and test."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [[" ".join(row[key].split()) for key in ("file", "en", "es")] for row in map(json.loads, file)]
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
        for side, name in enumerate(("en", "es")):
            (folder / f"{part}.{name}").write_text("".join(f"{pair[side]}\n" for pair in pairs))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        measure(Path(sys.argv[2]))
