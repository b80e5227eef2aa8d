"""Translation in int8 with a vocabulary shortlist and without: BLEU, equal lines, speed, length of the lists.

usage: python -m benchmarks.shortlist NAME FOLDER TRAIN_SRC TRAIN_REF SRC REF

FOLDER: a translation model; NAME: its name in the results. The shortlist is learned from TRAIN_SRC and TRAIN_REF. SRC,
REF: a test set.
"""

import sys
import time
from pathlib import Path

import numpy as np

import glassformer as gf
from benchmarks.machine import alternate, load_own, save
from glassformer.corpora.corpus import read_pairs
from glassformer.corpora.lines import read_lines
from glassformer.decode_config import DecodeConfig
from glassformer.metrics import bleu
from glassformer.tasks.shortlist import learn_shortlist
from glassformer.tasks.translation import Translator

ROUNDS = 5


def main() -> None:
    name, folder, *files = sys.argv[1:]
    train_src, train_ref, src, ref = map(Path, files)
    translator = gf.load(folder, device="cpu", task=Translator)
    start = time.perf_counter()
    shortlist = learn_shortlist(translator, read_pairs([train_src], [train_ref]))
    record: dict[str, object] = {"seconds_to_learn": round(time.perf_counter() - start, 1)}
    sources, references = list(read_lines(src)), list(read_lines(ref))
    eos = translator.tokenizer.eos_id
    lists = [shortlist.tokens([*ids, eos]) for ids in translator.tokenizer.encode_batch(sources)]
    record["vocabulary"] = translator.model.config.vocab_size
    record["tokens_of_a_list"] = round(float(np.mean([len(tokens) for tokens in lists if tokens is not None])))
    record["lines_without_list"] = sum(tokens is None for tokens in lists)
    for beam in (1, 4):
        outputs: dict[str, list[str]] = {}

        def translate(key: str, is_used: bool, beam: int = beam, outputs: dict[str, list[str]] = outputs) -> None:
            options = DecodeConfig(beam=beam, precision="int8", shortlist=is_used)
            outputs[key] = [nbest[0].text for nbest in translator.translate(sources, options)]

        seconds = alternate(
            {"without": lambda t=translate: t("without", False), "with": lambda t=translate: t("with", True)},
            rounds=ROUNDS, pause_s=0.3,
        )  # fmt: skip
        equal = [a == b for a, b in zip(outputs["with"], outputs["without"], strict=True)]
        record[f"beam {beam}"] = row = {
            **{f"bleu_{key}": round(bleu(texts, references), 2) for key, texts in outputs.items()},
            "equal_lines": round(sum(equal) / len(equal), 3),
            "speed_ratio": round(seconds["without"] / seconds["with"], 2),
        }
        print(name, f"beam {beam}", row, flush=True)
    kept = load_own("shortlist").get("models", {})
    command = "python -m benchmarks.shortlist NAME FOLDER TRAIN_SRC TRAIN_REF SRC REF"
    save("shortlist", {"models": {**kept, name: record}}, command)


if __name__ == "__main__":
    main()
