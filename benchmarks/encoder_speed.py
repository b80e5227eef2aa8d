"""Speed of a BERT encoder in int8 and in fp32: lines per second, tokenization included.

MiniLM's shape (6 layers, d_model 384, 12 heads, d_ff 1536, vocabulary 30,522) with random weights, on 1,000 lines.

usage: python -m benchmarks.encoder_speed TEXT   (TEXT: a file with lines of text)
"""

import itertools
import os
import sys
from pathlib import Path

import torch

from benchmarks.machine import alternate, save
from glassformer.corpora.lines import read_lines
from glassformer.models.bert import Bert, BertConfig
from glassformer.tasks.feature_extraction import SentenceEmbedder
from glassformer.tokens.tokenizer import Tokenizer

N_LINES, VOCAB, ROUNDS = 1000, 30_522, 5


def main() -> None:
    torch.manual_seed(1)
    texts = list(itertools.islice(read_lines(Path(sys.argv[1])), N_LINES))
    tokenizer = Tokenizer.train(texts, vocab_size=4000)
    config = BertConfig(
        vocab_size=VOCAB, d_model=384, n_heads=12, d_ff=1536, n_layers=6, max_len=512, pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
    )  # fmt: skip
    task = SentenceEmbedder(Bert(config), tokenizer)
    outputs = {}

    def extract(precision: str) -> None:
        task.precision = precision
        outputs[precision] = task(texts)

    seconds = alternate({p: lambda p=p: extract(p) for p in ("fp32", "int8")}, ROUNDS, pause_s=0.3)
    cosine = torch.cosine_similarity(outputs["fp32"], outputs["int8"]).min()
    record = {
        "threads": os.cpu_count(),
        "lines": len(texts),
        "lines_per_s": {p: round(len(texts) / s) for p, s in seconds.items()},
        "ratio": round(seconds["fp32"] / seconds["int8"], 2),
        "smallest_cosine": round(float(cosine), 5),
    }
    print(record)
    save("encoder_speed", record, "python -m benchmarks.encoder_speed TEXT")


if __name__ == "__main__":
    main()
