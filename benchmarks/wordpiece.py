"""Time to train a WordPiece vocabulary of 8,000 by likelihood gain on both sides of a TSV corpus, on one core.

usage: taskset -c 1 python -m benchmarks.wordpiece DATA

DATA is a folder of TSV files, gzip or plain; the first two columns are text.
"""

import statistics
import sys
import time
from pathlib import Path

from benchmarks.machine import save
from glassformer.corpora.lines import read_lines
from glassformer.tokens.wordpiece import BERT_SPECIALS, CONTINUATION, count_words, train_wordpiece, wordpiece_tokenizer

VOCAB, ROUNDS = 8000, 3


def main():
    files = [path for ending in ("*.tsv", "*.txt") for path in sorted(Path(sys.argv[1]).glob(ending + "*"))]
    lines = [line for path in files if not path.name.startswith("_") for line in read_lines(path)]
    texts = [cell for line in lines for cell in line.split("\t")[:2]]
    options = {"lowercase": False, "strip_accents": False}
    seconds = {"count_words": [], "train_wordpiece": [], "both": []}
    for _ in range(ROUNDS):
        start = time.perf_counter()
        counts = count_words(texts, **options)
        counted = time.perf_counter()
        vocab = train_wordpiece(counts, VOCAB)
        end = time.perf_counter()
        for name, value in zip(seconds, (counted - start, end - counted, end - start), strict=True):
            seconds[name].append(value)
    encodings = wordpiece_tokenizer(vocab, **options).encode_batch_fast([*counts], add_special_tokens=False)
    n_subwords = sum(count * len(encoding.ids) for count, encoding in zip(counts.values(), encodings, strict=True))
    merged = [entry for entry in vocab[len(BERT_SPECIALS) :] if len(entry.removeprefix(CONTINUATION)) > 1]
    record = {
        "text_bytes": sum(len(text.encode()) for text in texts),
        "words": counts.total(),
        "distinct_words": len(counts),
        "units": len(vocab),
        "units_per_word": round(n_subwords / counts.total(), 3),
        "median_s": {name: round(statistics.median(values), 1) for name, values in seconds.items()},
        "first_merges": merged[:20],
        "last_merges": merged[-20:],
    }
    print(record, file=sys.stderr)
    save("wordpiece", record, "taskset -c 1 python -m benchmarks.wordpiece DATA")


if __name__ == "__main__":
    main()
