"""The default recipe and the published one after equal time, on the dev sets of several corpora.

Six minutes on one core each. As many trainings run at a time as there are cores; nothing else must run. A training that
FOLDER has is not repeated.

usage: python -m benchmarks.equal_time DATA FOLDER
"""

import sys
from pathlib import Path

from benchmarks.machine import save
from benchmarks.quality import CORPORA, PUBLISHED, corpus_of, score, train_side_by_side, write

COMMON = "--threads 1 --minutes 6"
RECIPES = {"default": "", "published": PUBLISHED.replace(" --steps 8000", "")}
NAMES = [name for name in CORPORA if name != "captions-de"]  # the pairs of multi30k-de


def main():
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    corpora = {name: corpus_of(data, name) for name in NAMES}
    for name, corpus in corpora.items():
        write(corpus, folder / "data" / name)
    names = [(name, recipe) for name in NAMES for recipe in RECIPES]
    trainings = train_side_by_side(
        {
            (name, recipe): (
                corpora[name], folder / "data" / name, folder / name / recipe, *COMMON.split(),
                *RECIPES[recipe].split(),
            )
            for name, recipe in names
        }
    )  # fmt: skip
    rows = {}
    for name, recipe in names:
        training = trainings[name, recipe]
        rows.setdefault(name, {})[recipe] = {
            "preset": training["preset"],
            "targets": training["targets"],
            **score(folder / name / recipe, folder / "data" / name, corpora[name], "dev", "--beam", 5),
        }
        print(name, recipe, rows[name][recipe], flush=True)
    save(
        "equal_time",
        {"common": COMMON, "recipes": RECIPES, "rows": rows},
        "python -m benchmarks.equal_time DATA FOLDER",
    )


if __name__ == "__main__":
    main()
