"""WordPiece, BPE and unigram on Multi30k En-De: subwords per word, and BLEU, at equal vocabulary size and time.

usage: python -m benchmarks.subwords DATA [MINUTES [THREADS]]

DATA is as for benchmarks.multi30k. BLEU is computed on the dev set with the intl tokenizer of sacrebleu, which splits
at punctuation like WordPiece, whose decoded text has spaces there.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks import multi30k
from benchmarks.machine import describe, save
from glassformer.corpora.lines import read_lines
from glassformer.tokens.tokenizer import Tokenizer

TOKENIZERS = ("wordpiece", "bpe", "unigram")


def main():
    data = Path(sys.argv[1])
    minutes, threads = [*sys.argv[2:], *("8", "1")[len(sys.argv) - 2 :]]
    command = f"python -m benchmarks.subwords DATA {minutes} {threads}"
    record = describe(command)
    with tempfile.TemporaryDirectory() as folder:
        for tokenizer_type in TOKENIZERS:
            out = Path(folder) / tokenizer_type
            options = ["--tokenizer", tokenizer_type, "--minutes", minutes, "--threads", threads, *multi30k.OPTIONS]
            trained = multi30k.train(data, "de", out, options)
            tokenizer = Tokenizer.from_folder(out)
            record[tokenizer_type] = {
                "units": tokenizer.vocab_size,
                "pieces_per_word": {
                    lang: fertility(tokenizer, multi30k.side(data, "val", lang)) for lang in ("en", "de")
                },
                "val": multi30k.evaluate(data, "de", out, "val", tokenize="intl"),
                **trained,
            }
            print(
                tokenizer_type,
                record[tokenizer_type]["pieces_per_word"],
                record[tokenizer_type]["val"]["BLEU"]["score"],
                flush=True,
            )
    save("subwords", record, command)


def fertility(tokenizer, path):
    lines = list(read_lines(Path(path)))
    return round(sum(map(len, tokenizer.encode_batch(lines))) / sum(len(line.split()) for line in lines), 3)


if __name__ == "__main__":
    main()
