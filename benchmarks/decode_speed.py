"""Decoding speed in tokens per second, compared with Hugging Face generate and CTranslate2 with the same weights.

Random weights of base size, vocabulary of 32,000, sources of 20 tokens, exactly 30 generated tokens.

usage: python -m benchmarks.decode_speed [THREADS [TEXT]]

TEXT: measure only the systems whose name contains it, such as int8.
"""

import copy
import sys
import tempfile
from pathlib import Path

import ctranslate2
import torch

from benchmarks.machine import alternate, save, threads
from benchmarks.marian import marian_with_weights_of
from glassformer.generate.rules import search_rules
from glassformer.generate.search import beam_search
from glassformer.interop.ctranslate2 import save_model
from glassformer.kernels.library import load
from glassformer.models.decoding import decodable
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.recording.precision import in_precision

VOCAB, SRC, OUT = 32_000, 20, 30
SETTINGS = [(32, 4), (32, 1), (1, 4), (1, 1)]


def ctranslate2_translators(model, folder):
    """CTranslate2 translators with the same weights."""
    for dtype in ("float32", "int8"):
        save_model(model, [f"t{i}" for i in range(VOCAB)], Path(folder) / dtype, dtype)
        yield (
            dtype,
            ctranslate2.Translator(
                f"{folder}/{dtype}", device="cpu", intra_threads=threads(), inter_threads=1, compute_type=dtype
            ),
        )


def main():
    torch.set_num_threads(threads())
    torch.manual_seed(0)
    ours = Transformer(TransformerConfig(vocab_size=VOCAB)).eval()
    hf = marian_with_weights_of(ours)
    hf_bf16 = copy.deepcopy(hf).bfloat16()
    models = {precision: in_precision(ours, precision) for precision in ("fp32", "bf16", "int8")}
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    record = {"threads": threads(), "kernels": load()[1], "tokens_per_s": {}, "ratio": {}}
    with tempfile.TemporaryDirectory() as folder:
        peers = dict(ctranslate2_translators(ours, folder))
        for batch, beam in SETTINGS:
            src = torch.randint(4, VOCAB - 1, (batch, SRC))
            tokens = [[f"t{i}" for i in row] for row in src.tolist()]
            options = dict(num_beams=beam, do_sample=False, min_new_tokens=OUT, max_new_tokens=OUT)
            tasks = {
                f"glassformer {dtype}": lambda model=model: beam_search(
                    decodable(model), src.tolist(), [OUT] * batch, eos_id=2, rules=search_rules((0, 1, 2)), beam=beam
                )
                for dtype, model in models.items()
            }
            tasks |= {
                f"Hugging Face generate {dtype}": lambda model=model: model.generate(
                    src, attention_mask=torch.ones_like(src), **options
                )
                for dtype, model in (("fp32", hf), ("bf16", hf_bf16))
            }
            tasks |= {
                f"CTranslate2 {dtype}": lambda peer=peer: peer.translate_batch(
                    tokens, beam_size=beam, min_decoding_length=OUT, max_decoding_length=OUT, max_batch_size=batch
                )
                for dtype, peer in peers.items()
            }
            tasks = {name: task for name, task in tasks.items() if wanted in name}
            seconds = alternate(tasks, rounds=7, pause_s=0.3)
            speed = {name: batch * OUT / s for name, s in seconds.items()}
            key = f"batch {batch} beam {beam}"
            record["tokens_per_s"][key] = {name: round(value) for name, value in speed.items()}
            record["ratio"][key] = {
                f"{ours_name} to {name}": round(speed[ours_name] / value, 2)
                for ours_name in speed
                for name, value in speed.items()
                if ours_name.startswith("glassformer") and not name.startswith("glassformer")
            }
            print(key, record["tokens_per_s"][key], record["ratio"][key], flush=True)
    command = " ".join(["python -m benchmarks.decode_speed", *sys.argv[1:]])
    save("_".join(["decode_speed", *sys.argv[2:]]), record, command)


if __name__ == "__main__":
    main()
