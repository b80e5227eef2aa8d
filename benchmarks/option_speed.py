"""Speed of translation in int8 with options that exclude tokens, relative to that without them.

usage: python -m benchmarks.option_speed MODEL SRC
"""

import sys
from pathlib import Path

from benchmarks.machine import alternate, save
from glassformer.corpora.lines import read_lines
from glassformer.decode_config import DecodeConfig
from glassformer.tasks.registry import load

N_LINES = 200
OPTIONS = {
    "none": {},
    "min_length": {"min_length": 5},
    "no_repeat_ngram_size": {"no_repeat_ngram_size": 4},
    "prefix": {"prefix": "Ein"},
    "ban": {"ban": ("Mann", "Hund")},
    "temperature": {"temperature": 1.0},
}


def main():
    folder, path = map(Path, sys.argv[1:3])
    lines = list(read_lines(path))[:N_LINES]
    task = load(folder, device="cpu")
    works = {
        name: lambda options=options: task.translate(lines, DecodeConfig(precision="int8", **options))
        for name, options in OPTIONS.items()
    }
    seconds = alternate(works, rounds=5)
    ratios = {name: round(seconds["none"] / value, 2) for name, value in seconds.items()}
    print(ratios)
    save(
        "option_speed",
        {"model": folder.name, "speed_relative_to_none": ratios},
        "python -m benchmarks.option_speed MODEL SRC",
    )


if __name__ == "__main__":
    main()
