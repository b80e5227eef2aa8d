"""Quality after the first six minutes on one core: translators of about equal size, on the dev set of Multi30k En-De.

As many trainings run at a time as there are cores; nothing else must run. A training that FOLDER has is not repeated.

usage: python -m benchmarks.first_minutes DATA FOLDER
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.machine import save
from benchmarks.quality import corpus_of, glassformer, score, write

COMMON = "--preset tiny --vocab-size 8000 --languages en de --threads 1 --minutes 6"
MUON = "--optimizer muon --lr 8e-3 --batch-tokens 800"

ROWS = {
    "LSTM with attention, its preset": "--family rnn",
    "LSTM with attention, small batches, dropout 0.02": "--family rnn --lr 5e-3 --batch-tokens 800 --dropout 0.02",
    "Transformer, Adam, dropout 0.25": "--optimizer adam --lr 3e-3 --batch-tokens 1500 --dropout 0.25",
    "Transformer, Muon, small batches, dropout 0.25": f"{MUON} --dropout 0.25",
    "Transformer, Muon, small batches, dropout 0.02": f"{MUON} --dropout 0.02",
    "Transformer, Muon, small batches, dropout 0.02, augmented": f"{MUON} --dropout 0.02 --augment",
    "Transformer, its preset": "",
}
"""Options of each training, besides COMMON."""


def main():
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    corpus, files = corpus_of(data, "multi30k-de"), folder / "data"
    write(corpus, files)

    def train(name):
        out = folder / name.replace(",", "").replace(" ", "-").lower()
        glassformer(
            "train", files / "train.en", files / "train.de", "--dev-src", files / "dev.en", "--dev-tgt",
            files / "dev.de", "--out", out, *COMMON.split(), *ROWS[name].split(),
        )  # fmt: skip
        return out

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        folders = dict(zip(ROWS, threads.map(train, ROWS), strict=True))
    rows = {}
    for name, out in folders.items():
        training = json.loads((out / "training.json").read_text())
        rows[name] = {
            "options": ROWS[name],
            "n_parameters": json.loads(glassformer("info", out, "--json"))["parameters"],
            "targets": training["targets"],
            "minutes": training["minutes"],
            "greedy": score(out, files, corpus, "dev", "--beam", 1),
            "beam 5, length penalty 1": score(out, files, corpus, "dev", "--beam", 5, "--length-penalty", 1),
        }
        print(name, rows[name], flush=True)
    save("first_minutes", {"common": COMMON, "rows": rows}, "python -m benchmarks.first_minutes DATA FOLDER")


if __name__ == "__main__":
    main()
