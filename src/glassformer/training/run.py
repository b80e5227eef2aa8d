"""A whole run: from options to a model folder, begun, gone on with, or found finished."""

import os
import platform
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer import checkpoint
from glassformer.config import TrainConfig
from glassformer.corpora.detect import find_task
from glassformer.errors import ConfigError
from glassformer.models.base import Model
from glassformer.models.families import FAMILIES, family_of
from glassformer.presets import FINE_TUNING, PRESETS, preset, preset_for
from glassformer.tasks.base import Task
from glassformer.tasks.embeddings import init_embeddings
from glassformer.tasks.registry import TASKS, load, pick_device, task_class
from glassformer.training.lock import locked
from glassformer.training.model_card import example_of_use, model_card
from glassformer.training.prepare import CorpusInfo, Prepared, prepare, read_options
from glassformer.training.progress import Reporter, duration, named
from glassformer.training.signals import stop_on_signal
from glassformer.training.trainer import Trainer
from glassformer.version import __version__

INIT_OPTIONS = ("data", "train.log", "metrics.jsonl", "tensorboard")
"""What a run that was killed before its options were written leaves behind."""

BUDGETS = ("steps", "epochs", "minutes")
MAY_CHANGE = {*BUDGETS, "out", "src", "tgt", "dev_src", "dev_tgt", "save_every", "validate_every", "tensorboard"}
"""Options that a continued run may be given anew: they change no update. Files are compared by content."""


def train(config: TrainConfig, *, quiet: bool = False) -> Any:
    """Train a task into `config.out`, or go on with the run that is there.

    Returns:
        The trained task, as `load` would give it.

    Raises:
        ConfigError: the folder holds something else, or the options cannot be used.
        CorpusError: a corpus file cannot be used.
        Stopped: a signal ended the training; a checkpoint was saved.
    """
    make_run_folder(config.out)
    with locked(config.out):
        place = checkpoint.newest(config.out / "checkpoints")  # first: names a folder of another version as such
        before = stored_options(config)
        config = continued(before, config) if before else config
        step = checkpoint.read_json(place / "progress.json")["step"] if place else 0
        with Reporter(config.out, step=step, quiet=quiet, tensorboard=config.tensorboard) as reporter:
            base = load(config.init_from, device="cpu").model if config.init_from else None
            kind = find_kind(config, base)

            def make(corpus_info: CorpusInfo) -> Task:
                nonlocal config
                config = resolved(config, kind, corpus_info, base)
                return build(config, kind, corpus_info, base, set_up(config))

            task, data = prepare(config, kind, make, reporter.log)
            task.fit_statistics(data.train)
            checkpoint.write_text(config.out / "run.toml", config.to_toml())
            checkpoint.write_text(config.out / "env.json", checkpoint.to_json(environment(config)))
            trainer = Trainer(task, data, config, reporter)
            if place:
                trainer.load(place)
                warn_of_other_threads(place, reporter)
                if trainer.budget_used(trainer.progress.step) >= 1 and is_finished(config.out, trainer.progress.step):
                    reporter.log(already_done(config, trainer))
                    return load(config.out, device=config.device)
                reporter.log(f"Going on from step {trainer.progress.step:,}.")
            else:
                reporter.log(describe(config, task, data))
            with stop_on_signal() as stop:
                trainer.run(stop)
            finish(trainer, reporter)
        return load(config.out, device=config.device)


def make_run_folder(out: Path) -> None:
    """The folder, made if absent; one that holds anything but a run is left alone."""
    try:
        exists = out.exists()
    except OSError as error:
        raise checkpoint.write_error(out, error) from None
    if exists and not out.is_dir():
        raise ConfigError(f"{out}: is a file.\n  --out names the folder to train in.")
    if out.is_dir() and not (out / "run.toml").exists():
        others = [p.name for p in out.iterdir() if p.name[0] != "." and p.name not in INIT_OPTIONS]
        if others:
            raise ConfigError(f"{out}: holds something that is not a run ({others[0]}).\n  Choose another --out.")
    for name in (".lock", "run.toml", "train.log", "metrics.jsonl"):
        if (out / name).exists() and not (out / name).is_file():
            raise ConfigError(f"{out / name}: not a regular file.\n  Delete it, or choose another --out.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / ".lock").touch()
    except OSError as error:
        raise checkpoint.write_error(out, error) from None


def is_finished(out: Path, step: int) -> bool:
    """Whether the folder holds the model that so many steps came to."""
    if not (out / checkpoint.MANIFEST).exists():
        return False
    return checkpoint.read_json(out / "training.json").get("steps") == step


def stored_options(config: TrainConfig) -> TrainConfig | None:
    """The options of the run that the folder holds, if it holds one."""
    path = config.out / "run.toml"
    return TrainConfig.resolve({}, path, environment={}) if path.exists() else None


def continued(before: TrainConfig, given: TrainConfig) -> TrainConfig:
    """The stored options with those that may change as given.

    Raises:
        ConfigError: another option differs: this is another run.
    """
    new = given.model_dump(exclude_none=True)
    old = before.model_dump()
    auto = {"precision": "auto", "device": "auto"}
    differing = [
        name for name, value in new.items() if name not in MAY_CHANGE and value not in (old[name], auto.get(name))
    ]
    if differing:
        rows = "\n".join(f"  {name}: {old[name]} there, {new[name]} asked for" for name in differing)
        raise ConfigError(
            f"{given.out}: holds another run.\n{rows}\n"
            "  Give that run's options (they are in its run.toml) to go on with it, or choose another --out."
        )
    changed = {name: new[name] for name in MAY_CHANGE if name in new}
    if any(name in changed for name in BUDGETS):
        old |= dict.fromkeys(BUDGETS)
    return TrainConfig.resolve(old | changed, environment={})


def find_kind(config: TrainConfig, base: Model | None) -> type[Task]:
    """The task to learn: as named, or found from the data; one that the family can do."""
    name = config.task or ("translation" if config.tgt else find_task(config.src, read_options(config)))
    if name not in TASKS:
        raise ConfigError(f"task {name!r}: unknown.\n  Known are: {', '.join(TASKS)}.")
    kind = task_class(name)
    family = config.family or (family_of(base) if base else kind.families[0])
    if family not in kind.families:
        mend = "Change --family" if config.family else "Start --init-from another model"
        raise ConfigError(f"{name}: by {' or '.join(kind.families)}, not by {family}.\n  {mend}.")
    return kind


def resolved(config: TrainConfig, kind: type[Task], corpus_info: CorpusInfo, base: Model | None) -> TrainConfig:
    """The options with everything chosen that was left open."""
    given = config.model_dump(exclude_none=True)
    family = config.family or (family_of(base) if base else kind.families[0])
    name = config.preset or preset_for(corpus_info.n_examples, family)
    if name not in PRESETS[family]:
        raise ConfigError(f"preset {name!r}: {family} has {', '.join(PRESETS[family])}.")
    row = preset(name, family)
    if base:
        row = {name: value for name, value in row.items() if name not in BUDGETS} | FINE_TUNING
        row |= {name: value for name, value in base.config.model_dump().items() if name in row}
    if any(budget in given for budget in BUDGETS):
        for budget in BUDGETS:
            row.pop(budget, None)
    device = pick_device(config.device)
    chosen = {
        **row,
        "task": kind.name,
        "family": family,
        "preset": name,
        "vocab_size": corpus_info.tokenizer.vocab_size,
        "threads": torch.get_num_threads(),
    }
    precision = config.precision if config.precision != "auto" else "bf16" if has_fast_bf16(device) else "fp32"
    fixed = {"device": device.type, "precision": precision}
    options = {name: value for name, value in {**chosen, **given, **fixed}.items() if name in TrainConfig.model_fields}
    return TrainConfig.resolve(options, environment={})


def has_fast_bf16(device: torch.device) -> bool:
    """Whether bf16 matrix products are done by the hardware there."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_tile") or capabilities.get("bf16"))
    return False


def set_up(config: TrainConfig) -> torch.device:
    """Threads, determinism and the random state that the weights are drawn from."""
    assert config.threads is not None
    device = pick_device(config.device)
    torch.set_num_threads(config.threads)
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.manual_seed(config.seed)
    return device


def build(
    config: TrainConfig, kind: type[Task], corpus_info: CorpusInfo, base: Model | None, device: torch.device
) -> Task:
    """The untrained task, or with the weights of another folder as far as they fit."""
    assert config.family is not None
    sizes_type, model_type = FAMILIES[config.family]
    options = base.config.model_dump() if base else {}
    n_layers = dict.fromkeys(("n_layers", "n_encoder_layers", "n_decoder_layers"), config.n_layers)
    named = {} if base else {**config.model_dump(exclude_none=True), **n_layers}
    if base and config.dropout is not None:
        named["dropout"] = config.dropout
    tokenizer = corpus_info.tokenizer
    decided = {
        **kind.head,
        **({"n_labels": kind.n_labels(corpus_info.labels)} if "n_labels" in sizes_type.model_fields else {}),
        **({"pooling": config.pooling} if config.pooling else {}),
        "vocab_size": base.config.vocab_size if base else tokenizer.vocab_size,
        "pad_id": tokenizer.pad_id,
        "bos_id": base.config.bos_id if base else tokenizer.bos_id,
        "eos_id": tokenizer.eos_id,
    }
    options |= {name: value for name, value in {**named, **decided}.items() if name in sizes_type.model_fields}
    model = model_type(sizes_type.resolve(options, environment={}))
    if base:
        load_matching_weights(model, base)
    task = kind(model, tokenizer, device, corpus_info.labels)
    task.configure(config)
    if config.embeddings:
        init_embeddings(task, load(config.embeddings, device="cpu"))
    return task


def load_matching_weights(model: Model, base: Model) -> None:
    """Give a model the weights of another, by name, wherever the shapes agree: a new head stays as it was drawn."""
    own = model.state_dict()
    same = {name: value for name, value in base.state_dict().items() if name in own and own[name].shape == value.shape}
    model.load_state_dict({**own, **same})


def finish(trainer: Trainer, reporter: Reporter) -> None:
    """Put the best of three sets of weights, by the task's metric, into the run folder: averaged, best so far, last."""
    progress, config, task = trainer.progress, trainer.config, trainer.task
    candidates: dict[str, tuple[float, dict[str, Tensor]]] = {}
    last = {name: value.clone() for name, value in task.model.state_dict().items()}
    if progress.n_averaged > 1:
        average = {name: total / progress.n_averaged for name, total in trainer.average.items()}
        task.model.load_state_dict(average)
        candidates[f"the average of {progress.n_averaged} checkpoints"] = (trainer.validate_dev()[task.metric], average)
    assert progress.last_score is not None
    assert progress.best_score is not None
    candidates["the last checkpoint"] = (progress.last_score, last)
    best = config.out / "best" / f"step-{progress.best_step}"
    if best.exists():
        checkpoint.verify(best)
        candidates["the best checkpoint"] = (progress.best_score, checkpoint.read_tensors(best / "model.safetensors"))
    sign = 1 if task.larger_is_better else -1
    name, (score, weights) = max(candidates.items(), key=lambda item: sign * item[1][0])  # of equals the first
    training = {
        f"dev_{task.metric}": round(score, 4),
        "weights": name,
        "steps": progress.step,
        "targets": progress.n_tokens,
        "minutes": round(trainer.elapsed_s() / 60, 1),
        f"n_{task.examples_name}": trainer.data.n_examples,
        "preset": config.preset,
        "precision": config.precision,
        "machine": environment(config),
    }
    contents = {**task.contents(weights), "training.json": checkpoint.to_json(training)}
    checkpoint.save_into_folder(config.out, contents)
    checkpoint.write_text(config.out / "README.md", model_card(config, task, training))
    scores = ", ".join(f"{kind}: {named(task.metric, value)}" for kind, (value, _) in candidates.items())
    reporter.log(
        f"Trained {progress.step:,} steps in {duration(trainer.elapsed_s())}. On the dev set, {scores}.\n"
        f"{config.out} holds {name}. Try: {example_of_use(task, config.out)}"
    )


def describe(config: TrainConfig, task: Task, data: Prepared) -> str:
    """What is about to be trained, in a few lines."""
    n_parameters = sum(p.numel() for p in task.model.parameters())
    length = next(f"{getattr(config, b):g} {b}" for b in BUDGETS if getattr(config, b) is not None)
    return (
        f"Model: {config.family} {config.preset} ({n_parameters / 1e6:.1f} M parameters), {config.precision} on"
        f" {config.device} with {config.threads} threads, {length}, {data.n_examples:,} {task.examples_name}."
    )


def already_done(config: TrainConfig, trainer: Trainer) -> str:
    """That there is nothing left to do, and how to ask for more."""
    done = trainer.progress.step
    more = (
        f"--minutes {2 * config.minutes:g}"
        if config.minutes
        else f"--epochs {2 * config.epochs}"
        if config.epochs
        else f"--steps {2 * done}"
    )
    return f"{config.out} has already been trained for {done:,} steps. To train longer, ask for more: {more}"


def warn_of_other_threads(place: Path, reporter: Reporter) -> None:
    """Say so if going on will not give an unbroken run's very bits."""
    made_by = checkpoint.read_json(place / checkpoint.MANIFEST)
    if (made_by.get("threads"), made_by.get("torch")) != (torch.get_num_threads(), torch.__version__):
        reporter.log(
            f"warning: the checkpoint was made by torch {made_by.get('torch')} with {made_by.get('threads')} threads:"
            " results will differ from an unbroken run's in the last digits."
        )


def environment(config: TrainConfig) -> dict[str, Any]:
    """The machine and the versions a run was made with."""
    return {
        "glassformer": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": config.threads,
        "device": torch.cuda.get_device_name() if config.device == "cuda" else config.device,
    }


def processor() -> str:
    """The processor's name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
