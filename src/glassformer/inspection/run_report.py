"""How a run went: its curves, its data, what its models say, where they are best and worst."""

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glassformer import checkpoint
from glassformer.config import DecodeConfig, TrainConfig, read_toml
from glassformer.data.dataset import IDS, Dataset
from glassformer.errors import CheckpointError
from glassformer.tasks.registry import TASKS, load, task_class
from glassformer.tokens.tokenizer import Tokenizer

SHOWN = 8
"""Dev examples that are shown with what each checkpoint says to them, and as best and worst."""

MOST_CLASSES = 40


def run_report(run: Path, n_examples: int = 200) -> dict[str, Any]:
    """All there is to see of a run folder, as JSON holds it.

    Args:
        n_examples: dev examples that the final model is asked about.

    Raises:
        CheckpointError: no run folder, or one without a record of its training.
    """
    if not (run / "run.toml").exists():
        raise CheckpointError(f"{run}: no run folder of glassformer train: it has no run.toml.")
    if not (run / "metrics.jsonl").exists():
        raise CheckpointError(f"{run}: no metrics.jsonl: this run has kept no record of its training.")
    options = read_toml(run / "run.toml")
    if options.get("task") not in TASKS:
        raise CheckpointError(f"{run / 'run.toml'}: names no task that this version knows ({', '.join(TASKS)}).")
    kind = task_class(options["task"])
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines[:-1] if line]  # what follows the last line end is still being written
    dev = [kind.example_type(**json.loads(line)) for line in text_lines(run / "data" / "dev.jsonl")][:n_examples]
    record: dict[str, Any] = {
        "run": run.name,
        "task": options["task"],
        "metric": kind.metric,
        "command": as_command(options),
        "options": options,
        "machine": checkpoint.read_json(run / "env.json") if (run / "env.json").exists() else {},
        "training": checkpoint.read_json(run / "training.json") if (run / "training.json").exists() else {},
        "curves": curves(rows),
        "data": data(run, kind),
    }
    shown, said, model = dev[:SHOWN], {}, None
    for name, place in places(run):
        model = load(place, device="cpu")
        said[name] = predict(model, shown)
    record["samples"] = {
        "inputs": [input_of(kind, example) for example in shown],
        "expected": [expected_of(example) for example in shown],
        "outputs": said,
    }
    return record | rank_examples(model, dev) if model else record


def text_lines(path: Path) -> list[str]:
    """The lines of a file that is there, else none."""
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line] if path.exists() else []


def as_command(options: dict[str, Any]) -> str:
    """The command that repeats a run: what was asked for, and the options that a preset decided."""
    words = ["glassformer", "train"]
    for name, option in TrainConfig.model_fields.items():
        value = options.get(name)
        if value is None or value in (option.default, []):
            continue
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not False:
            words += [flag, *map(str, value if isinstance(value, list) else [value])]
    return shlex.join(words)


def curves(rows: Sequence[dict[str, Any]]) -> dict[str, list[list[float]]]:
    """Of each figure its [step, value]; long ones thinned to a thousand."""
    found: dict[str, list[list[float]]] = {}
    for row in rows:
        for name, value in row.items():
            if name not in ("step", "epoch", "elapsed_s") and isinstance(value, (int, float)) and np.isfinite(value):
                found.setdefault(name, []).append([row["step"], value])
    return {name: points[:: -(-len(points) // 1000)] for name, points in found.items()}


def data(run: Path, kind: Any) -> dict[str, Any]:
    """Lengths of the training examples in tokens, field by field, and the tokens that occur most."""
    folder = run / "data" / "train"
    if not folder.exists():
        return {}
    dataset = Dataset(folder, kind.fields)
    tokenizer = Tokenizer.from_folder(run / "data")
    found: dict[str, Any] = {"examples": len(dataset), "fields": {}}
    for name, field in dataset.fields.items():
        if kind.fields[name] != IDS or not len(field.values):
            continue
        lengths = np.asarray(field.lengths)
        counts, edges = np.histogram(lengths, bins=min(40, max(1, int(lengths.max()))))
        numbers = np.bincount(np.asarray(field.values[: 1 << 24]), minlength=tokenizer.vocab_size)
        common = np.argsort(-numbers, kind="stable")[:20]
        found["fields"][name] = {
            "tokens": int(lengths.sum()),
            "mean": round(float(lengths.mean()), 2),
            "quantiles": {str(q): int(np.quantile(lengths, q / 100)) for q in (5, 50, 95, 100)},
            "histogram": [[round(float(e), 1), int(c)] for e, c in zip(edges, counts, strict=False)],
            "units_used": int((numbers > 0).sum()),
            "units": tokenizer.vocab_size,
            "common": [[tokenizer.token(int(i)), int(numbers[i])] for i in common if numbers[i]],
        }
    return found


def places(run: Path) -> list[tuple[str, Path]]:
    """The models of a run: its checkpoints by step, the best, and last the finished one if there is one."""
    found = [
        (f"{folder}/{place.name}", place)
        for folder in ("checkpoints", "best")
        for place in sorted((run / folder).glob("step-*"), key=lambda p: int(p.name.rpartition("-")[2]))
        if (place / checkpoint.MANIFEST).exists() and (place / "model.safetensors").exists()
    ]
    return [*found, *([("finished", run)] if (run / checkpoint.MANIFEST).exists() else [])]


def input_of(kind: Any, example: Any) -> str:
    """What a model is asked in an example."""
    match example:
        case _ if hasattr(example, "question"):
            return f"{example.question}\t{example.context}"
        case _ if hasattr(example, "words"):
            return " ".join(example.words)
    return "\t".join(kind.texts(example)[:1] if hasattr(example, "tgt") else kind.texts(example))


def expected_of(example: Any) -> str:
    """The right answer."""
    for name in ("tgt", "label"):
        if hasattr(example, name):
            return str(getattr(example, name))
    if hasattr(example, "tags"):
        return " ".join(example.tags)
    return " | ".join(text for text, _ in example.answers) if hasattr(example, "answers") else ""


def predict(task: Any, examples: Sequence[Any]) -> list[str]:
    """What a model says to each example; nothing where a task says nothing of one example."""
    if not examples:
        return []
    if task.name == "causal-lm":
        begun = [example.text[:80] for example in examples]
        return [text.strip() for text in task.complete(begun, DecodeConfig(beam=1, max_length=40))]
    if task.name in ("masked-lm", "bert-pretraining", "skip-gram", "span-corruption"):
        return []
    options = DecodeConfig(beam=1) if hasattr(task, "translate") or hasattr(task, "complete") else None
    return [str(said) for said in task.scores(examples, options)[0]]


def rank_examples(task: Any, dev: Sequence[Any]) -> dict[str, Any]:
    """Best and worst dev examples, and the confusions or kinds of error."""
    said = predict(task, dev)
    if not dev or len(said) != len(dev):
        return {}
    expected = [expected_of(example) for example in dev]
    asked = [input_of(type(task), example) for example in dev]
    what, marks = example_scores(task, dev, said)
    order = np.argsort(marks, kind="stable")
    rows = [list(row) for row in zip(asked, expected, said, (round(float(mark), 4) for mark in marks), strict=True)]
    n = max(1, min(SHOWN, len(dev) // 2))
    found: dict[str, Any] = {
        "ranked_by": what,
        "worst": [rows[i] for i in order[:n]],
        "best": [rows[i] for i in order[::-1][:n]],
    }
    if task.name == "classification":
        found["confusion"] = confusion(expected, said)
    elif task.name == "tagging":
        pairs = [pair for e, s in zip(expected, said, strict=True) for pair in zip(e.split(), s.split(), strict=True)]
        found["confusion"] = confusion([e for e, _ in pairs], [s for _, s in pairs])
    elif task.name not in ("causal-lm", "regression", "question-answering"):
        found["errors"] = errors(asked, expected, said)
    return found


def example_scores(task: Any, dev: Sequence[Any], said: Sequence[str]) -> tuple[str, list[float]]:
    """What examples are ranked by, larger being better, and each one's mark."""
    if task.name == "translation":
        rows = task.score([example.src for example in dev], [example.tgt for example in dev])
        return "log-probability of a reference token", [sum(row) / len(row) for row in rows]
    if task.name == "classification":
        texts = [(e.text, e.text2) if e.text2 is not None else e.text for e in dev]
        probabilities = task.probabilities(texts)
        known = {label: i for i, label in enumerate(task.labels)}
        return "probability of the right class", [
            float(row[known[e.label]]) if e.label in known else 0.0 for row, e in zip(probabilities, dev, strict=True)
        ]
    if task.name == "regression":
        return "distance, turned round", [-abs(float(s) - e.number()) for s, e in zip(said, dev, strict=True)]
    if task.name == "causal-lm":
        found = [task.nll_sums([example]) for example in dev]  # one at a time: encoding joins texts into stretches
        return "log-probability of a token", [-nll / max(1, n) for nll, n, _ in found]
    bootstrap_statistics = task.bootstrap_statistics(list(said), list(dev))
    name = "F1" if "F1" in bootstrap_statistics else next(iter(bootstrap_statistics))
    statistics, figure = bootstrap_statistics[name]
    return name, [float(figure(statistics[i : i + 1].sum(0))) for i in range(len(dev))]


def confusion(expected: Iterable[str], said: Iterable[str]) -> dict[str, Any]:
    """How often each class (rows) was taken for each (columns), the most frequent classes."""
    pairs = Counter(zip(expected, said, strict=True))
    frequent: Counter[str] = Counter()
    for (e, s), n in pairs.items():
        frequent[e] += n
        frequent[s] += 0
    labels = sorted(label for label, _ in frequent.most_common(MOST_CLASSES))
    return {"labels": labels, "counts": [[pairs[e, s] for s in labels] for e in labels]}


def errors(asked: Sequence[str], expected: Sequence[str], said: Sequence[str]) -> list[list[Any]]:
    """Kinds of error that can be told from the texts: name and share."""

    def repeats(text: str) -> bool:
        words = text.split()
        return any(words[i : i + 3] == words[i + 3 : i + 6] for i in range(len(words) - 5))

    def digits(text: str) -> list[str]:
        return sorted("".join(c if c.isdigit() else " " for c in text).split())

    kinds = {
        "right to the letter": [s == e for s, e in zip(said, expected, strict=True)],
        "empty": [not s.strip() for s in said],
        "shorter than two thirds": [3 * len(s) < 2 * len(e) for s, e in zip(said, expected, strict=True)],
        "longer than three halves": [2 * len(s) > 3 * len(e) for s, e in zip(said, expected, strict=True)],
        "the source, copied": [s == a and s != e for s, a, e in zip(said, asked, expected, strict=True)],
        "says three words twice over": [repeats(s) for s in said],
        "other numbers": [digits(s) != digits(e) for s, e in zip(said, expected, strict=True)],
    }
    return [[name, sum(rows) / len(rows)] for name, rows in kinds.items()]
