"""What the options of the search are worth: beam size, length penalty, and minimum Bayes risk.

usage: python -m benchmarks.search_quality NAME=MODEL,SRC,REF[,TOKENIZE] ...

SRC and REF are text files, a sentence on each line, such as a dev set; TOKENIZE is that of `evaluate` for BLEU. What
the result file has of a name is not measured again.
"""

import sys
from pathlib import Path

from benchmarks.machine import load_own, save
from glassformer.corpora.lines import read_lines
from glassformer.metrics import translation_scores
from glassformer.tasks.registry import load

SETTINGS = {
    "beam 4, length penalty 0.6": {"beam": 4, "length_penalty": 0.6},
    "beam 4, length penalty 1": {"beam": 4, "length_penalty": 1.0},
    "beam 4, length penalty 1.4": {"beam": 4, "length_penalty": 1.4},
    "beam 4, length penalty 1, mbr": {"beam": 4, "length_penalty": 1.0, "rerank": "mbr"},
    "beam 16, length penalty 1": {"beam": 16, "length_penalty": 1.0},
    "beam 16, length penalty 1, mbr": {"beam": 16, "length_penalty": 1.0, "rerank": "mbr"},
}


def measure(known, folder, src, ref, tokenize="13a"):
    """Scores by setting, those that are known among them."""
    task = load(folder, device="cpu")
    sources, references = (list(read_lines(Path(path))) for path in (src, ref))
    rows = {}
    for name, options in SETTINGS.items():
        if name in known:
            rows[name] = known[name]
            continue
        found = task.translate(sources, precision="auto", **options)
        scores = translation_scores([nbest[0].text for nbest in found], references, tokenize=tokenize)
        rows[name] = {score.name: round(score.value, 2) for score in scores if score.name != "TER"}
    return rows


def main():
    for argument in sys.argv[1:]:
        name, _, given = argument.partition("=")
        rows = load_own("search_quality").get("rows", {})
        rows[name] = measure(rows.get(name, {}), *given.split(","))
        print(name, rows[name], flush=True)
        save("search_quality", {"rows": rows}, "python -m benchmarks.search_quality NAME=MODEL,SRC,REF[,TOKENIZE] ...")


if __name__ == "__main__":
    main()
