"""How many greedy translations by an exported model equal those of `glassformer translate --beam 1`.

By the defaults of the other program, and by the calls of docs/export.md, which limit the length as glassformer does;
compared with glassformer's output as it is, and without its guard against repetition (--no-repeat-ngram-size 0). The
differences are large for a model that was trained briefly, which repeats itself.

usage: python -m benchmarks.export_defaults FOLDER SOURCES

FOLDER: a translator that was trained with --no-rotary, as transformers has no other.
"""

import sys
import tempfile
from pathlib import Path

import ctranslate2
import tokenizers
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from benchmarks.machine import save
from glassformer.decode_config import DecodeConfig
from glassformer.generate.engine import MORE_TOKENS
from glassformer.interop.export import export_verified
from glassformer.interop.huggingface import export_folder
from glassformer.tasks.registry import load


def by_transformers(folder, lines, limited):
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder)
    for line in lines:
        inputs = tokenizer(line, return_tensors="pt")
        limit = {"max_new_tokens": inputs["input_ids"].size(1) + MORE_TOKENS} if limited else {}
        output = model.generate(**inputs, num_beams=1, do_sample=False, **limit)
        yield tokenizer.decode(output[0], skip_special_tokens=True)


def by_ctranslate2(folder, lines, limited):
    translator = ctranslate2.Translator(str(folder))
    tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    for line in lines:
        source = tokenizer.encode(line).tokens
        limit = {"max_decoding_length": len(source) + MORE_TOKENS} if limited else {}
        target = translator.translate_batch([source], beam_size=1, **limit)[0].hypotheses[0]
        yield tokenizer.decode([tokenizer.token_to_id(token) for token in target])


def main() -> None:
    folder, sources = map(Path, sys.argv[1:3])
    lines = sources.read_text(encoding="utf-8").splitlines()
    task = load(folder, device="cpu")
    ours = {
        "as it is": task.run(lines, DecodeConfig(beam=1)),
        "without the guard": task.run(lines, DecodeConfig(beam=1, no_repeat_ngram_size=0)),
    }
    record = {"lines": len(lines), "equal": {}}
    with tempfile.TemporaryDirectory() as name:
        export_folder(folder, Path(name, "huggingface"))
        export_verified(folder, Path(name, "ctranslate2"), "ctranslate2")
        for program, translate in (("huggingface", by_transformers), ("ctranslate2", by_ctranslate2)):
            for limited in (False, True):
                theirs = list(translate(Path(name, program), lines, limited))
                for kind, expected in ours.items():
                    n = sum(a.strip() == b.strip() for a, b in zip(theirs, expected, strict=True))
                    calls = "calls of docs/export.md" if limited else "defaults"
                    record["equal"][f"{program}, {calls}; glassformer {kind}"] = n
    print(record)
    save("export_defaults", record, "python -m benchmarks.export_defaults FOLDER SOURCES")


if __name__ == "__main__":
    main()
