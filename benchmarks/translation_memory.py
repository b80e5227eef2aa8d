"""What a translation memory is worth: chrF with and without it, by the similarity of the best match.

Data: the Spanish translation of Python's documentation. Every eighth file is held out, a third of these for the dev
set; texts that the training has as well are left out of them. The test texts are translated in two halves, line by
line in turn, each with the other half and the dev set as memory: translations that the model has not seen, as those of
an earlier version of the same files. Besides, with the training text as memory.

    python -m benchmarks.translation_memory write DATA/python-docs-es/python-docs-es-pairs.jsonl.gz FOLDER es
    glassformer train FOLDER/train.en FOLDER/train.es --dev-src FOLDER/dev.en --dev-tgt FOLDER/dev.es \
        --inline-codes --steps 31500 --out FOLDER/codes
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
    """Translate the test texts without a memory and with each."""
    test, dev, train = (
        list(zip(*(read_lines_of(folder / f"{part}.{language}") for language in ("en", "es")), strict=True))
        for part in ("test", "dev", "train")
    )
    halves = [test[half::2] for half in (0, 1)]
    task = load(folder / "codes", device="cpu")
    steps = json.loads((folder / "codes" / "training.json").read_text())["steps"]
    record = {"training_texts": len(train), "test_texts": len(test), "steps": steps, "memories": {}}
    plain = [translated(task, half) for half in halves]
    references = [tgt for half in halves for _, tgt in half]
    record["without_memory"] = scores([text for texts, _ in plain for text in texts], references)
    record["seconds_without"] = round(sum(seconds for _, seconds in plain), 1)
    for name, memories in (("unseen", [halves[1] + dev, halves[0] + dev]), ("training text", [train, train])):
        texts, others, references, matches = [], [], [], []
        seconds = 0.0
        for half, (outputs, _), memory in zip(halves, plain, memories, strict=True):
            path = folder / "memory.tsv"
            path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in memory))
            with_memory, took = translated(task, half, memory=(path,), min_match=BINS[0])
            seconds += took
            known = Memory(memory)
            for (src, tgt), one, other in zip(half, outputs, with_memory, strict=True):
                if match := known.similar(src, BINS[0]):
                    texts.append(one)
                    others.append(other)
                    references.append(tgt)
                    matches.append(match)
        rows = {}
        for low, high in (*pairwise(BINS), (0.7, 1.0)):
            own = [i for i, match in enumerate(matches) if low <= match.similarity < high]
            of = [[side[i] for i in own] for side in (texts, others, [m.target for m in matches], references)]
            rows[f"{low:.1f} to {high:.1f}"] = {
                "texts": len(own),
                "changed": sum(texts[i] != others[i] for i in own),
                **{key: scores(side, of[3]) for key, side in zip(("without", "with", "match"), of[:3], strict=True)},
            }
        record["memories"][name] = {"seconds": round(seconds, 1), "rows": rows}
        print(name, json.dumps(record["memories"][name], indent=1), flush=True)
    save("translation_memory", record, "python -m benchmarks.translation_memory measure FOLDER")


def translated(task, pairs, **options):
    """The translations of texts, and the seconds that they took."""
    start = time.perf_counter()
    found = task.translate([src for src, _ in pairs], precision="auto", **options)
    return [best.text for best, *_ in found], time.perf_counter() - start


def read_lines_of(path):
    return list(read_lines(path))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
    else:
        measure(Path(sys.argv[2]))
