"""Mutates graphs at random, and executes those that the verifier accepts, in a process with AddressSanitizer.

usage: python -m tests.runtime.fuzz N [SEED]

It compiles the kernels with AddressSanitizer into a temporary folder (gcc), starts itself with the library of the
sanitizer, and prints the numbers of accepted and refused graphs. Exit code 1: an accepted graph made the kernels fail.
"""

import copy
import json
import os
import random
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

NUMBERS = [-1, 0, 1, 2, 3, 4, 8, 15, 16, 17, 32, 44, 48, 63, 64, 65, 96, 127, 128, 129, 331, 1 << 20, (1 << 31) - 1]


WORDS = ["own", "source", "relu", "tanh", "layer", "rms", "token", "position"]


def mutations(record, n, seed):
    """n records with one to three random changes."""
    rng = random.Random(seed)
    for _ in range(n):
        mutated = copy.deepcopy(record)
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


def execute(graph, config, rng):
    """Execute all programs of a graph with weights of the shapes that it says, in int8 and in fp32."""
    import numpy as np

    from glassformer.kernels.library import load
    from glassformer.runtime.encoder import RuntimeEncoder
    from glassformer.runtime.model import RuntimeModel
    from glassformer.runtime.verify import n_entries, n_positions

    config = config.model_copy(
        update={
            "vocab_size": min(config.vocab_size, n_entries(graph, "token")),
            "max_len": min(config.max_len, n_positions(graph) or config.max_len),
        }
    )
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    weights = {name: numbers.normal(size=shape).astype(np.float32) for name, shape in graph.weights.items()}
    kernels, _ = load()
    texts = [[1 % config.vocab_size] * n for n in (1, 3, min(config.max_len - 1, 21))]
    for is_quantized in (True, False):
        if "step" not in graph.programs:
            encoder = RuntimeEncoder(graph, config, kernels, weights, is_quantized=is_quantized)
            hidden = encoder(texts, [[0] * len(text) for text in texts])
            for head in encoder.heads:
                encoder.outputs(hidden[-1], head)
            continue
        config = config.model_copy(update={"vocab_size": graph.programs["step"][-1].width})
        model = RuntimeModel(graph, config, kernels, weights, is_quantized=is_quantized)
        for text in texts:
            state, last = model.start([text] * 3, 2)
            for _ in range(3 if len(text) < config.max_len - 4 else 0):
                _, tokens = model.next_tokens([(last, state)], min(4, config.vocab_size))[0]
                model.logits(tokens[:, 0], state)
                last = tokens[:, -1]
                state.select(np.array([1, 0, 2, 2, 5, 4]))


def outcome(action):
    """What becomes of an action in a process of its own."""
    pid = os.fork()
    if not pid:
        try:
            action()
        except (ValueError, MemoryError, KeyError):  # errors of Python do no harm
            os._exit(3)
        except BaseException as error:
            print(repr(error)[:300], file=sys.stderr, flush=True)
            os._exit(4)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


MAX_TABLE = 1 << 22
"""Graphs with larger weights are verified and not executed: their memory would be the test."""


def fuzz(n, seed):
    from glassformer.errors import CheckpointError
    from glassformer.runtime.graph_file import from_json
    from tests.runtime.test_graph_file import CONFIG, GRAPHS, graph, record_of

    rng, counts, failed = random.Random(seed), {"refused": 0, "executed": 0, "error": 0, "not executed": 0}, 0
    names = list(GRAPHS)
    for k, name in enumerate(names):
        expected = graph(name)
        for i, mutated in enumerate(mutations(record_of(name), n // len(names), seed + k)):
            try:
                accepted = from_json(mutated, CONFIG, expected.constants)
            except CheckpointError:
                counts["refused"] += 1
                continue
            sizes = [size for shape in accepted.weights.values() for size in shape]
            if max(sizes) > MAX_TABLE // 64 or sum(map(len, accepted.programs.values())) > 400:
                counts["not executed"] += 1
                continue
            code = outcome(partial(execute, accepted, GRAPHS[name].config, rng))
            counts["executed" if code == 0 else "error" if code == 3 else "not executed"] += code in (0, 3)
            if code not in (0, 3):
                failed += 1
                path = Path(tempfile.gettempdir()) / f"fuzz.{seed}.{k}.{i}.json"
                path.write_text(json.dumps(mutated))
                print(f"{name} {i}: exit code {code}: {path}", flush=True)
    print(f"{n:,} graphs: {counts}, failed: {failed}")
    return failed


def main():
    n, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    if "FUZZ_LIBRARY" not in os.environ:
        from glassformer.kernels import build

        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / build.LIBRARY
            build.compile_library(["gcc"], library, extra="-fsanitize=address -g")
            asan = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
            environment = {
                **os.environ, "FUZZ_LIBRARY": str(library), "LD_PRELOAD": asan.stdout.strip(),
                "ASAN_OPTIONS": "detect_leaks=0:exitcode=99:allocator_may_return_null=1",
            }  # fmt: skip
            sys.exit(
                subprocess.run([sys.executable, "-m", "tests.runtime.fuzz", *sys.argv[1:]], env=environment).returncode
            )
    from glassformer.kernels import library

    library.FOLDER = Path(os.environ["FUZZ_LIBRARY"]).parent
    sys.exit(1 if fuzz(n, seed) else 0)


if __name__ == "__main__":
    main()
