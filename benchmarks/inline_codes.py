"""Placing of inline codes by a model that was trained with them (train --inline-codes), compared with where human
translators put them, and with its own word alignment.

Data: the Spanish or French translation of Python's documentation, divided as in benchmarks.translation_memory: by file,
the test part without sentences of the training. Codes, pairs and measures are those of benchmarks.markup; the training
has the files as they are.

    python -m benchmarks.translation_memory write PAIRS FOLDER es
    glassformer train FOLDER/train.en FOLDER/train.es --dev-src FOLDER/dev.en --dev-tgt FOLDER/dev.es \
        --inline-codes --steps 31500 --out FOLDER/codes
    python -m benchmarks.inline_codes words PAIRS FOLDER es
    eflomal-align -s FOLDER/words.en -t FOLDER/words.es -f FOLDER/forward -r FOLDER/reverse
    python -m benchmarks.inline_codes measure PAIRS FOLDER es

French: --minutes 35 --threads 1. eflomal sees the pairs of the test part, without their codes, besides the training
text.
"""

import gzip
import json
import sys
import time
from pathlib import Path

from benchmarks.machine import load_own, save
from benchmarks.markup import bare, by_alignment, marked, score
from glassformer.corpora.lines import read_lines
from glassformer.tasks.alignment import align
from glassformer.tasks.code_positions import code_positions
from glassformer.tasks.registry import load
from glassformer.tasks.translated import Translation


def read(path, folder, language):
    """The pairs of the test part with the same codes on both sides."""
    held_out = set(read_lines(folder / "test.en"))
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [[" ".join(record[key].split()) for key in ("en", language)] for record in map(json.loads, file)]
    found = {en: marked(en, other) for en, other in rows if en in held_out}
    return [pair for pair in found.values() if pair]


def write_words(path, folder, language):
    """Write the texts for eflomal: in lower case, words without punctuation around them."""
    pairs = read(path, folder, language)
    training = zip(*(read_lines(folder / f"train.{name}") for name in ("en", language)), strict=True)
    texts = [*((pair.source.core, pair.target) for pair in pairs), *training]
    for side, name in enumerate(("en", language)):
        lines = [" ".join(map(bare, text[side].split())) for text in texts]
        (folder / f"words.{name}").write_text("".join(f"{line}\n" for line in lines))


def by_eflomal(pairs, folder):
    """The union of its alignments of both directions."""
    directions = [[line.split() for line in read_lines(folder / name)] for name in ("forward", "reverse")]
    links = [{*directions[0][i], *directions[1][i]} for i in range(len(pairs))]
    return [[tuple(map(int, link.split("-"))) for link in of_pair] for of_pair in links]


def measure(path, folder, language):
    pairs = read(path, folder, language)
    task = load(folder / "codes", device="cpu")
    start = time.perf_counter()
    alignments = align(task, [pair.source.core for pair in pairs], [pair.target for pair in pairs])
    aligned = time.perf_counter()
    translations = [Translation(pair.source.core, pair.target, 0.0, [], []) for pair in pairs]
    positions = code_positions(task, [pair.source for pair in pairs], translations, alignments, "auto")
    asked = time.perf_counter()
    return {
        "pairs": len(pairs),
        "codes": sum(len(pair.source.inner) for pair in pairs),
        "alignment": {
            **score(pairs, by_alignment(pairs, alignments)),
            "ms": round(1000 * (aligned - start) / len(pairs), 2),
        },
        "eflomal": score(pairs, by_alignment(pairs, by_eflomal(pairs, folder))),
        "model": {**score(pairs, positions), "ms": round(1000 * (asked - aligned) / len(pairs), 2)},
    }


if __name__ == "__main__":
    command, path, folder, language = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    if command == "words":
        write_words(path, folder, language)
        sys.exit()
    own = measure(path, folder, language)
    rows = load_own("inline_codes").get("rows", {}) | {language: own}
    print(json.dumps(rows[language], indent=2))
    save("inline_codes", {"rows": rows}, "python -m benchmarks.inline_codes measure PAIRS FOLDER LANGUAGE")
