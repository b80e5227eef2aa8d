"""What corrections are worth: a translator before and after `glassformer update` with 200 corrected texts of a file
that its training did not have, on the other texts of this file and on the dev set.

Data and model: those of benchmarks.translation_memory. Of the two held-out files with the most texts that the
training does not have, the first 200 are the corrections, by the human translator.

    python -m benchmarks.translation_memory write PAIRS FOLDER es
    glassformer train FOLDER/train.en FOLDER/train.es --dev-src FOLDER/dev.en --dev-tgt FOLDER/dev.es \
        --inline-codes --steps 31500 --out FOLDER/codes
    python -m benchmarks.corrections PAIRS FOLDER
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.machine import save
from benchmarks.translation_memory import scores
from glassformer.corpora.lines import read_lines
from glassformer.tasks.registry import load

N_FILES = 2
N_CORRECTIONS = 200
MINUTES = 3


def held_out_files(path: Path, folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Pairs of the largest files of the test part, in the order of the file."""
    test = dict(zip(read_lines(folder / "test.en"), read_lines(folder / "test.es"), strict=True))
    files: dict[str, list[tuple[str, str]]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            en = " ".join(row["en"].split())
            if en in test:
                files.setdefault(row["file"], []).append((en, test.pop(en)))
    return {name: files[name] for name in sorted(files, key=lambda name: -len(files[name]))[:N_FILES]}


def quality(model: Path, pairs: list[tuple[str, str]]) -> dict[str, float]:
    """BLEU and chrF of the translations of pairs."""
    found = load(model, device="cpu").translate([src for src, _ in pairs], precision="auto")
    return scores([best.text for best, *_ in found], [tgt for _, tgt in pairs])


def measure(path: Path, folder: Path) -> dict:
    old = folder / "codes"
    dev = list(zip(read_lines(folder / "dev.en"), read_lines(folder / "dev.es"), strict=True))
    record: dict = {"minutes": MINUTES, "corrections": N_CORRECTIONS, "dev": quality(old, dev), "files": {}}
    for name, pairs in held_out_files(path, folder).items():
        new = folder / "updates" / name.replace("/", "-").removesuffix(".po")
        new.parent.mkdir(exist_ok=True)
        corrected = new.with_name(f"{new.name}.tsv")
        corrected.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs[:N_CORRECTIONS]))
        update = [sys.executable, "-m", "glassformer", "update", "codes", corrected.relative_to(folder)]
        options = ["--minutes", str(MINUTES), "--max-drop", "100"]  # measured also if it would be refused
        subprocess.run([*update, "--out", new.relative_to(folder), *options], cwd=folder, check=True)
        rest = pairs[N_CORRECTIONS:]
        record["files"][name] = {
            "texts": len(rest),
            "steps": json.loads((new / "training.json").read_text())["steps"],
            **{key: quality(model, rest) for key, model in (("before", old), ("after", new))},
            "dev": quality(new, dev),
        }
        print(name, json.dumps(record["files"][name]), flush=True)
    return record


if __name__ == "__main__":
    record = measure(Path(sys.argv[1]), Path(sys.argv[2]))
    save("corrections", record, "python -m benchmarks.corrections PAIRS FOLDER")
