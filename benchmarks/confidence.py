"""Confidence of translations: calibration on lines that it was not fitted to, and quality without the least confident.

The confidence is fitted to a dev set and measured on a test set, of which the least confident tenth is then left out.

usage: python -m benchmarks.confidence NAME MODEL DEV_SRC DEV_REF SRC REF
"""

import sys
from pathlib import Path

from benchmarks.machine import load_own, save
from glassformer.corpora.lines import read_lines
from glassformer.decode_config import DecodeConfig
from glassformer.metrics import translation_scores
from glassformer.tasks.confidence import fit_confidence
from glassformer.tasks.registry import load

DROPPED = 0.1


def main():
    name, folder, *paths = sys.argv[1:7]
    task = load(folder, device="cpu")
    dev_sources, dev_references, sources, references = (list(read_lines(Path(path))) for path in paths)
    task.confidence, dev_error = fit_confidence(task, dev_sources, dev_references)
    best = [nbest[0] for nbest in task.translate(sources, DecodeConfig(precision="int8", confidence=True))]
    (error,) = task.calibration(best, references)
    order = sorted(range(len(best)), key=lambda i: best[i].confidence)
    kept = order[round(DROPPED * len(best)) :]

    def chrf(lines):
        scores = translation_scores([best[i].text for i in lines], [references[i] for i in lines])
        return next(score.value for score in scores if score.name == "chrF2")

    record = {
        "lines": len(best),
        "ece_of_words_on_half_of_dev": round(dev_error, 4),
        "ece_of_words_on_test": round(error.value, 4),
        "chrf": round(chrf(order), 2),
        "chrf_without_the_least_confident_tenth": round(chrf(kept), 2),
    }
    print(record)
    models = load_own("confidence").get("models", {})
    save(
        "confidence",
        {"models": models | {name: record}},
        "python -m benchmarks.confidence NAME MODEL DEV_SRC DEV_REF SRC REF",
    )


if __name__ == "__main__":
    main()
