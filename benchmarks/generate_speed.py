"""Time per token of GPT-2 (124 M parameters, random weights) as the output grows, compared with Hugging Face generate.

Greedy search after a prompt of 32 tokens. Ours in int8, Hugging Face in bf16, with the same number of threads. For each
window of 32 tokens, the median time of a step.

usage: python -m benchmarks.generate_speed [THREADS [BATCH]]
"""

import statistics
import sys
import time

import torch
from transformers import GPT2Config as TheirConfig
from transformers import GPT2LMHeadModel, StoppingCriteria, StoppingCriteriaList

from benchmarks.machine import save, threads
from glassformer.generate.policy import Policy
from glassformer.generate.rules import search_rules
from glassformer.generate.search import BeamSearch
from glassformer.kernels.library import load
from glassformer.models.decoding import decodable
from glassformer.models.gpt2 import Gpt2, Gpt2Config
from glassformer.recording.precision import in_precision

VOCAB, PROMPT, WINDOW = 50_257, 32, 32
OURS_ENDS, THEIR_ENDS = (32, 64, 256, 512, 992), (32, 64)
BATCHES = (1, 16)


class Clock(StoppingCriteria):
    """Records the time of each step."""

    def __init__(self):
        self.times = []

    def __call__(self, input_ids, scores, **kwargs):
        self.times.append(time.perf_counter())
        return torch.zeros(len(input_ids), dtype=torch.bool)


def windows(times, ends):
    """Median milliseconds of the last WINDOW steps up to each end."""
    steps = [b - a for a, b in zip(times, times[1:], strict=False)]
    return {
        str(end): round(1e3 * statistics.median(steps[max(0, end - 1 - WINDOW) : end - 1]), 2)
        for end in ends
        if end <= len(times)
    }


@torch.inference_mode()
def ours(model, prompt, n):
    decoder = decodable(model)
    search = BeamSearch(
        *decoder.start(prompt.tolist()), [n] * len(prompt), eos_ids=[VOCAB - 1], rules=search_rules((VOCAB - 1,)),
        policy=Policy(beam=1),
    )  # fmt: skip
    times = []
    while len(search.alive):
        search.advance(*search.candidates(decoder))
        times.append(time.perf_counter())
    return windows(times, OURS_ENDS)


@torch.inference_mode()
def theirs(model, prompt, n):
    clock = Clock()
    model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=n, min_new_tokens=n, do_sample=False,
        stopping_criteria=StoppingCriteriaList([clock]), pad_token_id=0,
    )  # fmt: skip
    return windows(clock.times, THEIR_ENDS)


def main():
    torch.set_num_threads(threads())
    torch.manual_seed(0)
    model = in_precision(Gpt2(Gpt2Config(vocab_size=VOCAB, max_len=1024)).eval(), "int8")
    peer = GPT2LMHeadModel(TheirConfig()).eval().bfloat16()
    record = {"threads": threads(), "kernels": load()[1], "ms_per_step": {}, "ratio": {}, "growth": {}}
    for batch in [int(sys.argv[2])] if len(sys.argv) > 2 else BATCHES:
        prompt = torch.randint(4, VOCAB - 1, (batch, PROMPT))
        ours(model, prompt, 32), theirs(peer, prompt, 8)
        time.sleep(0.5)
        measured = {"glassformer int8": ours(model, prompt, OURS_ENDS[-1])}
        time.sleep(0.5)
        measured["Hugging Face generate bf16"] = theirs(peer, prompt, THEIR_ENDS[-1])
        key = f"batch {batch}"
        record["ms_per_step"][key] = measured
        a, b = measured.values()
        record["ratio"][key] = {end: round(b[end] / a[end], 2) for end in b}
        record["growth"][key] = round(a[str(OURS_ENDS[-1])] / a[str(OURS_ENDS[0])], 2)
        print(key, measured, record["ratio"][key], record["growth"][key], flush=True)
    save("generate_speed", record, " ".join(["python -m benchmarks.generate_speed", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
