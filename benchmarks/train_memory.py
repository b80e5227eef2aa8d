"""Peak memory of a training step at base size on a CPU, compared with torch.nn.Transformer and MarianMTModel.

512 pairs of 25 tokens, vocabulary of 37,000, bf16, Adam. Each system is a process of its own; memory is the peak
resident memory above that after the imports, after three steps.

usage: python -m benchmarks.train_memory
"""

import json
import subprocess
import sys

import torch

from benchmarks import train_speed
from benchmarks.growth import resident_mb
from benchmarks.machine import save

PAIRS, LENGTH, VOCAB, N_STEPS = 512, 25, 37000, 3
SYSTEMS = ("glassformer", "torch.nn.Transformer", "MarianMTModel")


def main():
    peak_mb = {}
    for system in SYSTEMS:
        code = f"from benchmarks import train_memory as t; t.report({system!r})"
        output = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
        peak_mb[system] = json.loads(output.split("\n")[-2])
        print(system, peak_mb[system], "MB", flush=True)
    ours, *peers = peak_mb.values()
    record = {"batch": [PAIRS, LENGTH], "vocab_size": VOCAB, "peak_mb": peak_mb, "ratio": round(ours / min(peers), 2)}
    print("ratio to the better peer", record["ratio"])
    save("train_memory", record, "python -m benchmarks.train_memory")


def report(system):
    """Print the peak memory of a system in MB."""
    import transformers  # noqa: F401  its import takes memory too

    train_speed.VOCAB = VOCAB
    torch.manual_seed(0)
    src, tgt = torch.randint(3, VOCAB, (PAIRS, LENGTH)), torch.randint(3, VOCAB, (PAIRS, LENGTH + 1))
    sizes = train_speed.SIZES["base"]
    before = resident_mb()
    if system == "glassformer":
        step = train_speed.our_step(sizes, src, tgt, "bf16", vocab_size=VOCAB)
    elif system == "torch.nn.Transformer":
        model = train_speed.Plain(*sizes).train()
        step = train_speed.plain_step(model, model, src, tgt, True)
    else:
        model = train_speed.marian(*sizes)
        step = train_speed.plain_step(
            model, lambda s, t: model(input_ids=s, decoder_input_ids=t).logits, src, tgt, True
        )
    for _ in range(N_STEPS):
        step()
    print(json.dumps(round(resident_mb() - before)))


if __name__ == "__main__":
    main()
