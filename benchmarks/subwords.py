"""WordPiece, BPE and unigram on Multi30k En-De: pieces per word, and BLEU of a translator, for the same units and time.

usage: python -m benchmarks.subwords DATA [MINUTES [THREADS]]

DATA is as for benchmarks.multi30k. BLEU is of the dev set by sacrebleu's intl tokenizer, which splits at punctuation as
WordPiece does: its text comes back with spaces there.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks import multi30k
from benchmarks.machine import describe, save
from glassformer.corpora.lines import read_lines
from glassformer.tokens.tokenizer import Tokenizer

KINDS = ("wordpiece", "bpe", "unigram")


def main():
    data = Path(sys.argv[1])
    minutes, threads = [*sys.argv[2:], *("8", "1")[len(sys.argv) - 2 :]]
    command = f"python -m benchmarks.subwords DATA {minutes} {threads}"
    record = describe(command)
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            out = Path(folder) / kind
            options = ["--tokenizer", kind, "--minutes", minutes, "--threads", threads, *multi30k.OPTIONS]
            trained = multi30k.train(data, "de", out, options)
            tokenizer = Tokenizer.from_folder(out)
            record[kind] = {
                "units": tokenizer.vocab_size,
                "pieces_per_word": {
                    lang: fertility(tokenizer, multi30k.side(data, "val", lang)) for lang in ("en", "de")
                },
                "val": multi30k.evaluate(data, "de", out, "val", tokenize="intl"),
                **trained,
            }
            print(kind, record[kind]["pieces_per_word"], record[kind]["val"]["BLEU"]["score"], flush=True)
    save("subwords", record, command)


def fertility(tokenizer, path):
    lines = list(read_lines(Path(path)))
    return round(sum(map(len, tokenizer.encode_batch(lines))) / sum(len(line.split()) for line in lines), 3)


if __name__ == "__main__":
    main()
