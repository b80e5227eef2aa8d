"""Mutates graphs at random, and executes those that the verifier accepts in a process with AddressSanitizer.

usage: python -m tests.runtime.fuzz N [SEED]

It compiles the kernels with AddressSanitizer into a temporary folder (gcc), starts a process that uses them, and prints
the numbers of accepted and refused graphs. Exit code 1: an accepted graph made the process fail.
"""

import contextlib
import copy
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from glassformer.errors import CheckpointError
from glassformer.kernels import build, library
from glassformer.model_config import FAMILIES
from glassformer.runtime.encoder import RuntimeEncoder
from glassformer.runtime.graph_file import from_json
from glassformer.runtime.model import RuntimeModel
from glassformer.runtime.verify import n_entries, n_positions

NUMBERS = [-1, 0, 1, 2, 3, 4, 8, 15, 16, 17, 32, 44, 48, 63, 64, 65, 96, 127, 128, 129, 331, 1 << 20, (1 << 31) - 1]


WORDS = ["own", "source", "relu", "tanh", "layer", "rms", "token", "position"]


def mutations(record, n, seed):
    """n records with one to three random changes."""
    rng, text = random.Random(seed), json.dumps(record)
    for _ in range(n):
        mutated = json.loads(text)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            mutate(mutated, rng)
        yield mutated


def number(old, rng):
    if not isinstance(old, int):
        return rng.choice([0.0, -1.0, 1e29, 1e-30, old * 2])
    return rng.choice([rng.choice(NUMBERS), old + rng.choice([-2, -1, 1, 2]), old * 2, old // 2])


def mutate(record, rng):
    """Change a field of an operation, the order of operations, a shape, or rows."""
    program = rng.choice(list(record["programs"].values()))
    operation, kind = rng.choice(program), rng.randrange(10)
    tables = [*record["weights"], *record["rows"], "constant.0"]
    fields = [name for name in operation if name != "op"]
    if kind <= 4 and fields:
        field = rng.choice(fields)
        value = operation[field]
        if isinstance(value, str):
            operation[field] = rng.choice(
                ["own", "source", "relu", "tanh", "layer", "rms", "token", "position", *tables]
            )
        elif value is None:
            operation[field] = rng.choice(tables)
        else:
            operation[field] = rng.choice([number(value, rng), None]) if rng.random() < 0.9 else rng.choice(tables)
    elif kind == 5:
        program.insert(rng.randrange(len(program)), copy.deepcopy(rng.choice(program)))
    elif kind == 6 and len(program) > 1:
        program.pop(rng.randrange(len(program)))
    elif kind == 7:
        shape = rng.choice(list(record["weights"].values()))
        shape[rng.randrange(len(shape))] = abs(number(shape[0], rng))
    elif kind == 8 and record["rows"]:
        rows = rng.choice(list(record["rows"].values()))["rows"]
        rows[rng.randrange(len(rows))] = abs(number(rows[0], rng))
    else:
        i, j = rng.randrange(len(program)), rng.randrange(len(program))
        program[i], program[j] = program[j], program[i]


def execute(graph, config, seed):
    """Execute all programs of a graph, in int8 or fp32, with weights of the shapes that it says."""
    numbers = np.random.default_rng(seed)
    sizes = {"vocab_size": n_entries(graph, "token"), "max_len": n_positions(graph) or config.max_len}
    config = config.model_copy(update={name: min(getattr(config, name), size) for name, size in sizes.items()})
    weights = {name: numbers.normal(size=shape).astype(np.float32) for name, shape in graph.weights.items()}
    kernels, _ = library.load()
    is_quantized = bool(numbers.integers(2))
    if "step" not in graph.programs:
        use(RuntimeEncoder(graph, config, kernels, weights, is_quantized=is_quantized), config)
        return
    config = config.model_copy(update={"vocab_size": graph.programs["step"][-1].width})
    use(RuntimeModel(graph, config, kernels, weights, is_quantized=is_quantized), config)


def use(model, config):
    """Compute a few texts with a model, by all its programs."""
    texts = [[1 % max(1, config.vocab_size)] * n for n in (1, 3, min(config.max_len - 1, 21)) if n]
    if isinstance(model, RuntimeEncoder):
        hidden = model(texts, [[0] * len(text) for text in texts])
        for head in model.heads:
            model.outputs(hidden[-1], head)
        return
    state, last = model.start(texts, 2)
    for _ in range(3 if len(texts[-1]) < config.max_len - 4 else 0):
        ((_, tokens),) = model.next_tokens([(last, state)], min(4, config.vocab_size))
        model.logits(tokens[:, 0], state)
        last = tokens[:, -1]
        state.select(np.resize([1, 0, 2, 2, 5, 4], len(last)) % len(last))


def seeds(folder):
    """Write the graphs of small models of all families, which need PyTorch to be recorded, into a folder."""
    from tests.runtime.test_graph_file import CONFIG, GRAPHS, family_of, graph, record_of

    for i, (name, model) in enumerate(GRAPHS.items()):
        np.savez(folder / f"{i}.npz", **graph(name).constants)
        entry = {"name": name, "family": family_of(model), "config": model.config.model_dump(), "hash": CONFIG}
        (folder / f"{i}.json").write_text(json.dumps(entry | {"record": record_of(name)}))


def read_seeds(folder):
    """The graphs of a folder: entry, constants, config of the model."""
    for path in sorted(folder.glob("*.json"), key=lambda p: int(p.stem)):
        entry = json.loads(path.read_text())
        config = FAMILIES[entry["family"]].config_class.model_validate(entry["config"])
        yield entry, dict(np.load(path.with_suffix(".npz"))), config


def executor(folder):
    """Execute the graphs of standard input, one in a line. Writes a line for each, unless the process fails."""
    library.FOLDER = folder
    known = list(read_seeds(folder))
    for line in sys.stdin:
        i, seed, record = json.loads(line)
        entry, constants, config = known[i]
        result = "executed"
        try:
            execute(from_json(record, entry["hash"], constants), config, seed)
        except (CheckpointError, ValueError, MemoryError) as error:  # an error of Python does no harm
            result = type(error).__name__
        print(result, flush=True)


MAX_SIZE, MAX_OPERATIONS = 1 << 14, 400
"""Graphs with larger weights or more operations are verified and not executed: their memory would be the test."""


@contextlib.contextmanager
def sanitized(folder):
    """A function that starts a process of `executor` with AddressSanitizer."""
    build.compile_library(["gcc"], folder / build.LIBRARY, extra="-fsanitize=address -g")
    asan = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    options = "detect_leaks=0:exitcode=99:allocator_may_return_null=1"
    environment = {**os.environ, "LD_PRELOAD": asan.stdout.strip(), "ASAN_OPTIONS": options, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.runtime.fuzz", "--execute", str(folder)]
    processes, errors = [], open(folder / "errors", "w")

    def start():
        processes.append(
            subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        )
        return processes[-1]

    try:
        yield start
    finally:
        for process in processes:
            process.kill()


def fuzz(n, seed, folder, start):
    """Returns the number of graphs that made the process fail."""
    counts, failed, process = {"refused": 0, "not executed": 0}, 0, start()
    known = list(read_seeds(folder))
    for i, (entry, constants, _) in enumerate(known):
        for k, mutated in enumerate(mutations(entry["record"], -(-n // len(known)), seed + i)):
            try:
                accepted = from_json(mutated, entry["hash"], constants)
            except CheckpointError:
                counts["refused"] += 1
                continue
            largest = max(size for shape in accepted.weights.values() for size in shape)
            if largest > MAX_SIZE or sum(map(len, accepted.programs.values())) > MAX_OPERATIONS:
                counts["not executed"] += 1
                continue
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps([i, seed + k, mutated]) + "\n")
                process.stdin.flush()
            result = process.stdout.readline().strip() or "failed"
            counts[result] = counts.get(result, 0) + 1
            if result == "failed":
                failed += 1
                path = Path(tempfile.gettempdir()) / f"fuzz.{seed}.{i}.{k}.json"
                path.write_text(json.dumps([i, seed + k, mutated]))
                print(f"{entry['name']}: exit code {process.wait()}: {path}", flush=True)
                print((folder / "errors").read_text()[-600:])
                process = start()
        print(entry["name"], counts, flush=True)
    return failed


def main():
    if sys.argv[1] == "--execute":
        executor(Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seeds(folder)
        with sanitized(folder) as start:
            sys.exit(1 if fuzz(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1, folder, start) else 0)


if __name__ == "__main__":
    main()
