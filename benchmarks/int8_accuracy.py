"""Accuracy of decoding in bf16 and int8 relative to fp32: BLEU, and equal tokens.

Tokens are compared in two ways. `equal_tokens`: of two outputs that were decoded independently, position by position;
after the first difference of a sentence, most of its other positions differ. `equal_predictions`: most probable next
tokens, given the tokens of the fp32 output before them.

usage: python -m benchmarks.int8_accuracy NAME FOLDER SRC REF   (FOLDER: a translation model; SRC, REF: a test set)
"""

import sys
from pathlib import Path
from typing import Any

import torch

import glassformer as gf
from benchmarks.machine import save
from glassformer.corpora.lines import read_lines
from glassformer.data.batch import pad
from glassformer.decode_config import DecodeConfig
from glassformer.generate.request import Sources
from glassformer.metrics import bleu
from glassformer.recording.precision import in_precision
from glassformer.tasks.translation import Translator

BATCH = 64


def predictions(
    translator: Translator, precision: str, sources: list[list[int]], outputs: list[list[int]]
) -> list[int]:
    """The most probable token after each prefix of the outputs."""
    tokenizer, predicted = translator.tokenizer, []
    model = in_precision(translator.model, precision)
    excluded = list(translator.banned_ids)
    for start in range(0, len(sources), BATCH):
        src = pad(sources[start : start + BATCH], tokenizer.pad_id, model.pad_to_multiple_of)
        batch = outputs[start : start + BATCH]
        with torch.inference_mode():
            state, last = model.start(src)
            for i in range(max(map(len, batch))):
                logits = model.step(last, state).float()
                logits[:, excluded] = -torch.inf
                best = logits.argmax(-1).tolist()
                predicted += [token for token, output in zip(best, batch, strict=True) if i < len(output)]
                last = torch.tensor([output[i] if i < len(output) else tokenizer.eos_id for output in batch])
    return predicted


def equal_tokens(outputs: list[list[int]], expected: list[list[int]]) -> float:
    """Fraction of positions with the same token."""
    pairs = list(zip(outputs, expected, strict=True))
    equal = sum(a == b for x, y in pairs for a, b in zip(x, y, strict=False))
    return equal / sum(max(len(x), len(y)) for x, y in pairs)


def measure(translator: Translator, sources: list[str], references: list[str]) -> dict[str, Any]:
    """BLEU of each precision, and the equality of its tokens with those of fp32."""
    tokenizer, record = translator.tokenizer, dict[str, Any]()
    ids = [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_batch(sources)]
    for beam in (1, 4):
        expected: list[list[int]] = []
        for precision in ("fp32", "bf16", "int8"):
            options = DecodeConfig(beam=beam, precision=precision)
            found = [nbest[0].ids for nbest in translator.engine(options).decode(Sources(ids, options))]
            predicted = predictions(translator, precision, ids, expected or found)
            if precision == "fp32":
                expected, expected_predictions = found, predicted
            matches = [a == b for a, b in zip(predicted, expected_predictions, strict=True)]
            lines = [a == b for a, b in zip(found, expected, strict=True)]
            record[f"beam {beam}, {precision}"] = row = {
                "bleu": round(bleu([tokenizer.decode(output) for output in found], references), 2),
                "equal_tokens": round(equal_tokens(found, expected), 4),
                "equal_predictions": round(sum(matches) / len(matches), 4),
                "equal_lines": round(sum(lines) / len(lines), 3),
            }
            print(f"beam {beam} {precision}", row, flush=True)
    return record


def main() -> None:
    name, folder, src, ref = sys.argv[1:]
    translator = gf.load(folder)
    sources, references = (list(read_lines(Path(path))) for path in (src, ref))
    record = measure(translator, sources, references)
    save(f"int8_accuracy_{name}", record, f"python -m benchmarks.int8_accuracy {name} FOLDER SRC REF")


if __name__ == "__main__":
    main()
