"""Quality after the first six minutes on one core: translators of about equal size, on the dev set of Multi30k En-De.

Nothing else must run. A folder that is there is not trained again, so that a stopped command goes on.

usage: python -m benchmarks.first_minutes DATA FOLDER
"""

import json
import sys
from pathlib import Path

from benchmarks.machine import save
from benchmarks.quality import corpus_of, glassformer, score, write

COMMON = "--preset tiny --vocab-size 8000 --no-augment --languages en de --threads 1 --minutes 6"
ADAM = "--optimizer adam --lr 3e-3 --batch-tokens 1500 --dropout 0.25"
SMALL = "--batch-tokens 800 --dropout 0.02"

ROWS = {
    "LSTM with attention, its preset": "--family rnn",
    "LSTM with attention, small batches, dropout 0.02": f"--family rnn --lr 5e-3 {SMALL}",
    "Transformer, Adam, dropout 0.25": ADAM,
    "Transformer, Muon, small batches, dropout 0.02": f"--optimizer muon --lr 8e-3 {SMALL}",
}
"""Options of each training, besides COMMON."""


def main():
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    corpus, files = corpus_of(data, "multi30k-de"), folder / "data"
    write(corpus, files)
    rows = {}
    for name, options in ROWS.items():
        out = folder / name.replace(",", "").replace(" ", "-").lower()
        glassformer(
            "train", files / "train.en", files / "train.de", "--dev-src", files / "dev.en", "--dev-tgt",
            files / "dev.de", "--out", out, *COMMON.split(), *options.split(),
        )  # fmt: skip
        training = json.loads((out / "training.json").read_text())
        rows[name] = {
            "options": options,
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
