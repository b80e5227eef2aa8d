"""Run report: training curves, data statistics, sample outputs of the checkpoints, best and worst examples."""

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from glassformer.config import JsonObject, read_toml
from glassformer.corpora.example import Example
from glassformer.corpora.labeled import Labeled
from glassformer.corpora.squad import QAExample
from glassformer.corpora.tagged import Tagged
from glassformer.data.dataset import IDS, Dataset
from glassformer.decode_config import DecodeConfig
from glassformer.errors import CheckpointError
from glassformer.learning.base import AnyObjective
from glassformer.learning.registry import objective_class
from glassformer.manifest import MANIFEST, read_json
from glassformer.metrics.registry import format_metric, metric
from glassformer.tasks.base import AnyTask, CorpusExample
from glassformer.tasks.causal_lm import LanguageModel
from glassformer.tasks.classification import Classifier, text_of
from glassformer.tasks.documents import Document, DocumentTask
from glassformer.tasks.question_answering import QuestionAnswerer
from glassformer.tasks.registry import TASKS, load
from glassformer.tasks.regression import Regressor
from glassformer.tasks.tagging import Tagger
from glassformer.tasks.texts import no_op
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.train_config import TrainConfig

N_SHOWN = 8
"""Number of dev examples shown as samples, as best and as worst examples."""

MAX_CLASSES = 40
"""Maximum number of classes in the confusion matrix."""


def run_report(run: Path, n_examples: int = 200) -> JsonObject:
    """Collect the report of a run folder as JSON-serializable data.

    Args:
        n_examples: number of dev examples that the final model is evaluated on.

    Raises:
        CheckpointError: the folder is no run folder, or has no record of its training.
    """
    if not (run / "run.toml").exists():
        raise CheckpointError(f"{run}: not a run folder of glassformer train: it has no run.toml.")
    if not (run / "metrics.jsonl").exists():
        raise CheckpointError(f"{run}: no metrics.jsonl: this run has no record of its training.")
    options = read_toml(run / "run.toml")
    if options.get("task") not in TASKS:
        raise CheckpointError(f"{run / 'run.toml'}: unknown task; this version has the tasks {', '.join(TASKS)}.")
    objective_type = objective_class(options["task"])
    task_type = objective_type.task_type
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines[:-1] if line]  # the last line may be incomplete during training
    dev = [task_type.example_type(**json.loads(line)) for line in text_lines(run / "data" / "dev.jsonl")][:n_examples]
    training = read_json(run / "training.json") if (run / "training.json").exists() else {}
    record: JsonObject = {
        "run": run.name,
        "task": options["task"],
        "metric": objective_type.metric,
        "command": as_command(options),
        "options": options,
        "machine": read_json(run / "env.json") if (run / "env.json").exists() else {},
        "training": training,
        "score": format_metric(objective_type.metric, training[f"dev_{objective_type.metric}"]) if training else "",
        "curves": curves(rows),
        "data": data_statistics(run, objective_type),
    }
    shown, outputs, model = dev[:N_SHOWN], {}, None
    for name, path in model_paths(run):
        model = load(path, device="cpu")
        outputs[name] = predict(model, shown)
    record["samples"] = {
        "inputs": [input_of(task_type, example) for example in shown],
        "expected": [expected_of(example) for example in shown],
        "outputs": outputs,
    }
    return record | rank_examples(model, dev) if model else record


def text_lines(path: Path) -> list[str]:
    """Non-empty lines of a file; none if the file does not exist."""
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line] if path.exists() else []


def as_command(options: JsonObject) -> str:
    """Command line that repeats a run: its explicit options and those set by its preset."""
    words = ["glassformer", "train"]
    for name, option in TrainConfig.model_fields.items():
        value = options.get(name)
        if value is None or value in (option.default, []) or (name == "preset" and options.get("init_from")):
            continue
        option_name = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option_name}" if value else f"--no-{option_name}")
        elif isinstance(value, dict):
            words += [f"--{option_name}", *(f"{field}={json.dumps(given)}" for field, given in value.items())]
        else:
            words += [f"--{option_name}", *map(str, value if isinstance(value, list) else [value])]
    return shlex.join(words)


def curves(rows: Sequence[JsonObject]) -> dict[str, list[list[float]]]:
    """Points [step, value] of each metric, reduced to at most 1,000 by keeping every n-th."""
    results: dict[str, list[list[float]]] = {}
    for row in rows:
        for name, value in row.items():
            if name not in ("step", "epoch", "elapsed_s") and isinstance(value, (int, float)) and np.isfinite(value):
                results.setdefault(name, []).append([row["step"], value])
    return {name: points[:: -(-len(points) // 1000)] for name, points in results.items()}


def data_statistics(run: Path, objective_type: type[AnyObjective]) -> JsonObject:
    """Number of training examples, and for each field the lengths in tokens and the most frequent tokens."""
    folder = run / "data" / "train"
    if not folder.exists():
        return {}
    dataset = Dataset(folder, objective_type.fields)
    tokenizer = Tokenizer.from_folder(run / "data")
    results: JsonObject = {"examples": len(dataset), "fields": {}}
    for name, field in dataset.fields.items():
        if objective_type.fields[name] != IDS or not len(field.values):
            continue
        lengths = np.asarray(field.lengths)
        counts, edges = np.histogram(lengths, bins=min(40, max(1, int(lengths.max()))))
        token_counts = np.bincount(np.asarray(field.values[: 1 << 24]), minlength=tokenizer.vocab_size)
        common = np.argsort(-token_counts, kind="stable")[:20]
        results["fields"][name] = {
            "tokens": int(lengths.sum()),
            "mean": round(float(lengths.mean()), 2),
            "quantiles": {str(q): int(np.quantile(lengths, q / 100)) for q in (5, 50, 95, 100)},
            "histogram": [[round(float(e), 1), int(c)] for e, c in zip(edges, counts, strict=False)],
            "entries_used": int((token_counts > 0).sum()),
            "vocab_size": tokenizer.vocab_size,
            "common": [[tokenizer.token(int(i)), int(token_counts[i])] for i in common if token_counts[i]],
        }
    return results


def model_paths(run: Path) -> list[tuple[str, Path]]:
    """Names and paths of a run's models: checkpoints by step, the best checkpoints, then the finished model if any."""
    paths = [
        (f"{folder}/{path.name}", path)
        for folder in ("checkpoints", "best")
        for path in sorted((run / folder).glob("step-*"), key=lambda p: int(p.name.rpartition("-")[2]))
        if (path / MANIFEST).exists() and (path / "model.safetensors").exists()
    ]
    return [*paths, *([("finished", run)] if (run / MANIFEST).exists() else [])]


def input_of(task_type: type[AnyTask], example: CorpusExample) -> str:
    """Input text of an example."""
    if isinstance(example, QAExample):
        return f"{example.question}\t{example.context}"
    if isinstance(example, Tagged):
        return " ".join(example.words)
    return "\t".join(task_type.texts(example)[:1] if hasattr(example, "tgt") else task_type.texts(example))


def expected_of(example: CorpusExample) -> str:
    """Reference output of an example; empty if it has none."""
    for name in ("tgt", "label"):
        if hasattr(example, name):
            return str(getattr(example, name))
    if isinstance(example, Tagged):
        return " ".join(example.tags)
    return " | ".join(text for text, _ in example.answers) if isinstance(example, QAExample) else ""


def predict(task: AnyTask, examples: Sequence[CorpusExample]) -> list[str]:
    """Predicted text of each example; an empty list for tasks without an output per example."""
    if not examples:
        return []
    if isinstance(task, LanguageModel):
        prompts = [e.text[:80] for e in examples if isinstance(e, Document)]
        return [text.strip() for text in task.complete(prompts, DecodeConfig(beam=1, max_length=40), no_op)]
    if isinstance(task, DocumentTask):
        return []
    options = DecodeConfig(beam=1) if hasattr(task, "translate") or hasattr(task, "complete") else None
    return [str(output) for output in task.evaluate(examples, options)[0]]


def rank_examples(task: AnyTask, dev: Sequence[CorpusExample]) -> JsonObject:
    """Best and worst dev examples, and the confusion matrix or the fractions of error types."""
    outputs = predict(task, dev)
    if not dev or len(outputs) != len(dev):
        return {}
    expected = [expected_of(example) for example in dev]
    inputs = [input_of(type(task), example) for example in dev]
    score_name, scores = example_scores(task, dev, outputs)
    order = np.argsort(scores, kind="stable")
    rows = [
        [*row, round(float(score), metric(score_name).digits)]
        for *row, score in zip(inputs, expected, outputs, scores, strict=True)
    ]
    n = max(1, min(N_SHOWN, len(dev) // 2))
    results: JsonObject = {
        "ranked_by": score_name,
        "worst": [rows[i] for i in order[:n]],
        "best": [rows[i] for i in order[::-1][:n]],
    }
    if isinstance(task, Classifier):
        results["confusion"] = confusion(expected, outputs)
    elif isinstance(task, Tagger):
        pairs = [
            pair for e, o in zip(expected, outputs, strict=True) for pair in zip(e.split(), o.split(), strict=True)
        ]
        results["confusion"] = confusion([e for e, _ in pairs], [o for _, o in pairs])
    elif not isinstance(task, LanguageModel | Regressor | QuestionAnswerer):
        results["errors"] = errors(inputs, expected, outputs)
    return results


def example_scores(task: AnyTask, dev: Sequence[CorpusExample], outputs: Sequence[str]) -> tuple[str, list[float]]:
    """Name of the score by which examples are ranked (higher is better), and the score of each example."""
    if isinstance(task, Translator):
        pairs = [example for example in dev if isinstance(example, Example)]
        rows = task.score([pair.src for pair in pairs], [pair.tgt for pair in pairs], no_op)
        return "mean log-probability per reference token", [sum(row) / len(row) for row in rows]
    labeled = [example for example in dev if isinstance(example, Labeled)]
    if isinstance(task, Classifier):
        probabilities = task.probabilities([text_of(e) for e in labeled])
        known = {label: i for i, label in enumerate(task.labels)}
        return "probability of the correct class", [
            float(row[known[e.label]]) if e.label in known else 0.0
            for row, e in zip(probabilities, labeled, strict=True)
        ]
    if isinstance(task, Regressor):
        return "negative absolute error", [-abs(float(o) - e.number()) for o, e in zip(outputs, labeled, strict=True)]
    if isinstance(task, LanguageModel):
        # One example at a time, because encoding concatenates texts into windows.
        nll_sums = [task.nll_sums([example]) for example in dev if isinstance(example, Document)]
        return "mean log-probability per token", [-nll / max(1, n) for nll, n, _ in nll_sums]
    bootstrap_statistics = task.bootstrap_statistics(list(outputs), list(dev))
    name = "F1" if "F1" in bootstrap_statistics else next(iter(bootstrap_statistics))
    statistics, from_sums = bootstrap_statistics[name]
    return name, [float(from_sums(statistics[i : i + 1].sum(0))) for i in range(len(dev))]


def confusion(expected: Iterable[str], outputs: Iterable[str]) -> JsonObject:
    """Confusion matrix of the most frequent classes: rows are expected classes, columns are predicted classes."""
    pairs = Counter(zip(expected, outputs, strict=True))
    frequent: Counter[str] = Counter()
    for (e, o), n in pairs.items():
        frequent[e] += n
        frequent[o] += 0
    labels = sorted(label for label, _ in frequent.most_common(MAX_CLASSES))
    return {"labels": labels, "counts": [[pairs[e, o] for o in labels] for e in labels]}


def errors(inputs: Sequence[str], expected: Sequence[str], outputs: Sequence[str]) -> list[list[str | float]]:
    """Fraction of outputs with each type of error that can be detected from the texts: [name, fraction]."""

    def repeats(text: str) -> bool:
        words = text.split()
        return any(words[i : i + 3] == words[i + 3 : i + 6] for i in range(len(words) - 5))

    def digits(text: str) -> list[str]:
        return sorted("".join(c if c.isdigit() else " " for c in text).split())

    types = {
        "identical to the reference": [o == e for o, e in zip(outputs, expected, strict=True)],
        "empty": [not o.strip() for o in outputs],
        "shorter than 2/3 of the reference": [3 * len(o) < 2 * len(e) for o, e in zip(outputs, expected, strict=True)],
        "longer than 3/2 of the reference": [2 * len(o) > 3 * len(e) for o, e in zip(outputs, expected, strict=True)],
        "copy of the source": [o == i and o != e for o, i, e in zip(outputs, inputs, expected, strict=True)],
        "repeats three words": [repeats(o) for o in outputs],
        "numbers differ from the reference": [digits(o) != digits(e) for o, e in zip(outputs, expected, strict=True)],
    }
    return [[name, sum(rows) / len(rows)] for name, rows in types.items()]
