"""SHA-256 digests of model outputs, trained weights and decoded texts, to verify that a change alters no result.

All model families are trained for a few steps on generated text with one thread. Digests are computed of the weights,
of outputs for fixed inputs, and of metrics. Commits with equal digests have equal results on this machine.

usage: python -m benchmarks.output_digests [FILE]   (FILE: an earlier output to compare with)
"""

import hashlib
import json
import os
import random
import sys
import tempfile
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import torch

import glassformer as gf
from glassformer.decode_config import DecodeConfig
from glassformer.learning.registry import objective_of

WORDS = "the a cat dog sat ran on under big small red house tree and then slept quickly".split()

RUNS = {
    "translation": ["pairs", {}],
    "translation pre-norm": ["pairs", {"pre_norm": True, "tokenizer": "word"}],
    "translation rnn": ["pairs", {"family": "rnn"}],
    "translation t5": ["pairs", {"family": "t5", "tokenizer": "wordpiece"}],
    "classification": ["labels", {}],
    "regression": ["numbers", {}],
    "tagging": ["tags.conll", {}],
    "answer": ["squad.json", {}],
    "language": ["text", {"task": "causal-lm"}],
    "language char": ["text", {"task": "causal-lm", "tokenizer": "char", "dropout": 0.1}],
    "summarization": ["pairs", {"task": "summarization"}],
    "multitask": ["multitask.jsonl", {}],
    "denoising": ["text", {"task": "span-corruption"}],
    "vectors": ["text", {"task": "skip-gram"}],
    "fill": ["text", {"task": "masked-lm"}],
    "pretraining": ["docs.jsonl", {"task": "bert-pretraining"}],
}


def sha(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False, default=str).encode()
    return hashlib.sha256(data).hexdigest()[:16]


def write_corpora(folder: Path) -> None:
    """Write generated text in all corpus formats."""
    rng = random.Random(5)
    sentences = [" ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 12))) for _ in range(400)]
    targets = [" ".join(word[::-1] for word in s.split()) for s in sentences]

    def write(name: str, lines: list[str]) -> None:
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    write("text", sentences)
    write("pairs.tsv", [f"{s}\t{t}" for s, t in zip(sentences, targets, strict=True)])
    labels = ["long" if len(s) > 35 else "short" for s in sentences]
    write("labels.tsv", ["text\tlabel", *(f"{s}\t{x}" for s, x in zip(sentences, labels, strict=True))])
    write("numbers.tsv", ["text\tlabel", *(f"{s}\t{len(s) / 10}" for s in sentences)])
    tagged = ["\n".join(f"{w}\t{'B-ANIMAL' if w in ('cat', 'dog') else 'O'}" for w in s.split()) for s in sentences]
    write("tags.conll", ["\n\n".join(tagged)])
    questions = [
        {
            "context": s,
            "qas": [{"id": str(i), "question": "who ?", "answers": [{"text": s.split()[0], "answer_start": 0}]}],
        }
        for i, s in enumerate(sentences)
    ]
    write("squad.json", [json.dumps({"data": [{"title": "t", "paragraphs": questions}]})])
    records = [{"task": "reverse", "src": s, "tgt": t} for s, t in zip(sentences[:200], targets, strict=False)]
    records += [{"task": "size", "text": s, "label": x} for s, x in zip(sentences[200:], labels[200:], strict=True)]
    write("multitask.jsonl", [json.dumps(record) for record in records])
    documents = ["\n".join(sentences[i : i + 4]) for i in range(0, 400, 4)]
    write("docs.jsonl", [json.dumps({"text": text}) for text in documents])


def digest(folder: Path, name: str, data: str, options: dict) -> dict[str, str]:
    """Digests of one run."""
    source = next(path for path in folder.iterdir() if path.name == data or path.stem == data)
    out = folder / name.replace(" ", "-")
    options = {"precision": "fp32", "cpu_matmul": "torch", **options}  # not the fastest, which is found by measuring
    task = gf.train(source, out=out, steps=6, vocab_size=300, preset="tiny", threads=1, quiet=True, **options)
    weights = sorted(
        hashlib.sha256(value.contiguous().numpy().tobytes()).hexdigest() for value in task.model.state_dict().values()
    )
    lines = ["the cat sat on a house", "", "a dog ran and then slept", "red <mask> tree", "big " * 40]
    match task.name:
        case "question-answering":
            lines = ["who ?\tthe cat sat", "", "who ran ?\ta dog ran"]
    digests = {"weights": sha(weights), "tokenizer": sha((out / "tokenizer.json").read_bytes())}
    for beam in (1, 4):
        digests[f"run beam {beam}"] = sha(task.run(lines, DecodeConfig(beam=beam, max_length=12)))
    digests["run sampled"] = sha(
        task.run(lines, DecodeConfig(temperature=0.9, top_k=20, top_p=0.9, seed=3, max_length=9))
    )
    dev = [line for line in (out / "data" / "dev.jsonl").read_text(encoding="utf-8").split("\n") if line]
    examples = [example_type(task)(**json.loads(line)) for line in dev]
    digests["metrics"] = sha(dict(enumerate(objective_of(task).validate(examples).values())))
    outputs, scores = task.evaluate(examples)
    digests["scores"] = sha([outputs, [score.value for score in scores]])
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").split("\n") if line]
    times = {"elapsed_s", "tokens_per_s"}
    digests["training log"] = sha([[v for k, v in row.items() if k not in times] for row in rows])
    return digests


def example_type(task: object) -> type:
    """Dataclass of the examples of a task."""
    return type(task).example_type


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpora(folder)
        digests = {run: digest(folder, run, data, options) for run, (data, options) in RUNS.items()}
    print(json.dumps(digests, indent=1))
    if len(sys.argv) > 1:
        before = json.loads(Path(sys.argv[1]).read_text())
        changed = [
            f"{run}: {key}"
            for run, digests_before in before.items()
            for key, value in digests_before.items()
            if digests[run].get(key) != value
        ]
        print("differs: " + ", ".join(changed) if changed else "no digest differs", file=sys.stderr)
        sys.exit(bool(changed))


if __name__ == "__main__":
    main()
