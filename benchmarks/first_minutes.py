"""Quality after the first six minutes on one core: translators of about equal size, on the dev set of Multi30k En-De.

As many trainings run at a time as there are cores; nothing else must run. A training that FOLDER has is not repeated.

usage: python -m benchmarks.first_minutes DATA FOLDER [ROW ...]

ROW: the beginning of names of rows. Default: all.
"""

import json
import sys
from pathlib import Path

from benchmarks.machine import save
from benchmarks.quality import corpus_of, glassformer, score, train_side_by_side, write

COMMON = "--preset tiny --vocab-size 8000 --threads 1 --minutes 6"
MUON = "--optimizer muon --lr 8e-3 --batch-tokens 800"
NO_CHANGES = "--augment 0"

ROWS = {
    "LSTM with attention, its preset": "--family rnn",
    "LSTM with attention, small batches, dropout 0.02": "--family rnn --lr 5e-3 --batch-tokens 800 --dropout 0.02",
    "Transformer, Adam, dropout 0.25": f"--optimizer adam --lr 3e-3 --batch-tokens 1500 --dropout 0.25 {NO_CHANGES}",
    "Transformer, Muon, small batches, dropout 0.25": f"{MUON} --dropout 0.25 {NO_CHANGES}",
    "Transformer, Muon, small batches, dropout 0.02": f"{MUON} --dropout 0.02 {NO_CHANGES}",
    "Transformer, Muon, small batches, dropout 0.02, augmented": f"{MUON} --dropout 0.02 --augment 0.38",
    "Transformer, its preset": "",
    "Transformer, its preset, not augmented": NO_CHANGES,
    "Transformer, its preset, sinusoids": "--no-rotary",
}
COMPARED = ("LSTM with attention, small batches, dropout 0.02", "Transformer, its preset")
ROWS |= {f"{name}, seed {seed}": f"{ROWS[name]} --seed {seed}".strip() for seed in (2, 3) for name in COMPARED}
"""Options of each training, besides COMMON."""


def main():
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    corpus, files = corpus_of(data, "multi30k-de"), folder / "data"
    write(corpus, files)

    names = [name for name in ROWS if not sys.argv[3:] or name.startswith(tuple(sys.argv[3:]))]
    folders = {name: folder / name.replace(",", "").replace(" ", "-").lower() for name in names}
    trainings = train_side_by_side(
        {name: (corpus, files, folders[name], *COMMON.split(), *ROWS[name].split()) for name in names}
    )
    rows = {}
    for name, training in trainings.items():
        out = folders[name]
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
