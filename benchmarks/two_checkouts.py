"""Speed of training steps and of decoding in two checkouts of this repository, measured in turn (A B A B).

Shows that a change of the code costs no speed. Each measurement is a process of its own, with one checkout's sources.

usage: python -m benchmarks.two_checkouts OTHER_CHECKOUT [THREADS] [ROUNDS]
       python -m benchmarks.two_checkouts OTHER_CHECKOUT serve MODEL SRC [ROUNDS]

The second form measures the server: seconds for the lines of SRC with 32 connections, of which each sends a line when
it has the answer to the one before.
"""

import asyncio
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.machine import describe, load_own, save
from benchmarks.serve import N_CONNECTIONS, closed_loop, process

MEASURE = """
import importlib, sys, time, torch

threads = int(sys.argv[1])
torch.set_num_threads(threads)
torch.manual_seed(0)
for module in ("models.transformer", "model_config", "sizes"):  # the newest name first
    try:
        TransformerConfig = importlib.import_module(f"glassformer.{module}").TransformerConfig
        break
    except (ModuleNotFoundError, AttributeError):
        pass
try:
    from glassformer.generate.search import beam_search
except ImportError:
    from glassformer.generate.search import search as beam_search  # before the function was renamed
decodable = lambda model, src: (model, src)
try:
    from glassformer.generate.rules import search_rules
    from glassformer.models.decoding import TorchDecoder
    banned = {"rules": search_rules((0, 1, 2))}
    decodable = lambda model, src: (TorchDecoder(model), src.tolist())
except ModuleNotFoundError:  # before search was without PyTorch
    try:
        from glassformer.generate.processors import search_processors
        banned = {"processors": search_processors((0, 1, 2))}
    except ModuleNotFoundError:
        banned = {"banned_ids": (0, 1, 2)}  # before the argument was generalized
is_numpy = "rules" in banned
try:
    from glassformer.recording.precision import in_precision
except ModuleNotFoundError:
    from glassformer.runtime.precision import in_precision
from glassformer.models.transformer import Transformer
try:
    from glassformer.objectives.loss import linear_cross_entropy
except ImportError:
    from glassformer.objectives.loss import projected_cross_entropy as linear_cross_entropy  # before it was renamed

def seconds(function, n):
    function()
    times = []
    for _ in range(n):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return sorted(times)[n // 2]

has_bf16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
for name, (d_model, d_ff, n_heads, n_layers), n in (("tiny", (128, 256, 4, 4), 9), ("base", (512, 2048, 8, 6), 3)):
    config = TransformerConfig(
        vocab_size=8000, d_model=d_model, d_ff=d_ff, n_heads=n_heads,
        n_encoder_layers=n_layers, n_decoder_layers=n_layers,
    )
    model = Transformer(config).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    src, tgt = torch.randint(4, 8000, (128, 18)), torch.randint(4, 8000, (128, 19))

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=has_bf16):  # without its instructions it takes minutes
            hidden = model(src, tgt[:, :-1]).flatten(0, 1)
            loss = linear_cross_entropy(hidden, model.output_weight, tgt[:, 1:].flatten(), label_smoothing=0.1)
        optimizer.zero_grad()
        (loss / tgt[:, 1:].numel()).backward()
        optimizer.step()

    print(f"training step {name}", seconds(step, n))
    model.eval()
    src = torch.randint(4, 8000, (32, 20))
    decode = lambda: beam_search(*decodable(model, src), [30] * 32, eos_id=2, beam=4, **banned)
    print(f"decoding {name}", seconds(decode, n))
    for precision in ("int8", "fp32"):
        programs = in_precision(model, precision)
        sources = src.tolist() if is_numpy else src
        for what, beam, size in (("batch", 4, 32), ("sentence", 1, 1)):
            decode = lambda: beam_search(programs, sources[:size], [30] * size, eos_id=2, beam=beam, **banned)
            print(f"decoding {name}, {precision}, {what}", seconds(decode, 5 * n))
"""


def measure(checkout: Path, threads: int) -> dict[str, float]:
    """Median seconds of each measurement, with the sources of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-c", MEASURE, str(threads)]
    done = subprocess.run(command, env=environment, cwd=checkout, capture_output=True, text=True, check=True)
    rows = (line.rpartition(" ") for line in done.stdout.strip().split("\n"))
    return {name: float(value) for name, _, value in rows}


def measure_server(checkout: Path, model: Path, lines: list[str]) -> dict[str, float]:
    """Seconds for the lines by a server with the sources of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-m", "glassformer", "serve", str(model), "--port", "0"]
    with process(command, env=environment, cwd=checkout) as (_, port):
        path = f"/models/{model.name}"
        asyncio.run(closed_loop(port, lines[:N_CONNECTIONS], N_CONNECTIONS, path))
        seconds, answers, _ = asyncio.run(closed_loop(port, lines, N_CONNECTIONS, path))
    assert all(status == 200 for status, _ in answers)
    return {f"serve {model.name}, {N_CONNECTIONS} connections": seconds}


def main() -> None:
    other, here = Path(sys.argv[1]).resolve(), Path(__file__).parents[1]
    threads, arguments, measured = os.cpu_count(), sys.argv[2:], lambda checkout: measure(checkout, threads)
    name = "two_checkouts"
    if arguments[:1] == ["serve"]:
        model, lines = Path(arguments[1]), Path(arguments[2]).read_text(encoding="utf-8").splitlines()
        name, arguments = "two_checkouts_serve", arguments[2:]
        measured = lambda checkout: measure_server(checkout, model, lines)
    elif arguments:
        threads = int(arguments[0])
    rounds = int(arguments[1]) if len(arguments) > 1 else 5
    pairs = [(measured(other), measured(here)) for _ in range(rounds)]
    ratios = {name: [before[name] / after[name] for before, after in pairs] for name in pairs[0][0]}
    commit = subprocess.run(["git", "-C", other, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    record = {
        "other_commit": commit.stdout.strip(),
        "threads": threads,
        "rounds": rounds,
        "speed_ratio_to_other": {
            name: {"median": round(statistics.median(r), 3), "min": round(min(r), 3), "max": round(max(r), 3)}
            for name, r in ratios.items()
        },
    }
    print(describe("")["commit"], record)
    suffix = ""
    if name.endswith("serve"):
        suffix = " serve MODEL SRC"
        rows = load_own(name).get("speed_ratio_to_other", {})  # those of other models are kept
        record["speed_ratio_to_other"] = rows | record["speed_ratio_to_other"]
    save(name, record, f"python -m benchmarks.two_checkouts OTHER_CHECKOUT{suffix}")


if __name__ == "__main__":
    main()
