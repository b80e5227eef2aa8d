"""Training runs: start or resume a run in a folder and write the trained model."""

import os
import platform
import time
from contextlib import ExitStack
from pathlib import Path

import torch
from torch import Tensor

from glassformer import checkpoint
from glassformer.config import JsonObject, TrainConfig
from glassformer.errors import ConfigError
from glassformer.kernels.library import implementation
from glassformer.measurement import processor
from glassformer.metrics.registry import format_metric, metric
from glassformer.models.base import Model
from glassformer.models.families import FAMILIES
from glassformer.nn import cpu_training
from glassformer.tasks.base import AnyTask
from glassformer.tasks.embeddings import init_embeddings
from glassformer.tasks.registry import load, pick_device
from glassformer.tasks.translation import Translator
from glassformer.training import launch, translators
from glassformer.training.arithmetic import CHOSEN, choose_arithmetic, model_sizes
from glassformer.training.distributed import Processes, joined
from glassformer.training.lock import locked
from glassformer.training.memory import MemoryMeter, check_model_fits
from glassformer.training.model_card import model_card, model_name, usage_example
from glassformer.training.options import (
    BUDGETS,
    check_blocks,
    check_model_fields,
    merge_options,
    model_family,
    resolve_options,
    select_task_type,
    store_options,
    stored_options,
)
from glassformer.training.prepare import CorpusInfo, PreparedData, corpus_files, prepare
from glassformer.training.progress import Reporter, SilentReporter, duration
from glassformer.training.signals import stop_on_signal
from glassformer.training.trainer import Trainer
from glassformer.training.validation import MAX_VALIDATION_COST
from glassformer.version import __version__

EARLY_FILES = ("data", "train.log", "metrics.jsonl", "tensorboard", "env.json", "best", "checkpoints")
"""Files of a run folder that may exist before run.toml is written."""


def train(config: TrainConfig, *, quiet: bool = False, started_s: float | None = None) -> AnyTask:
    """Train a task in the run folder `config.out`, or resume the run that the folder contains.

    Args:
        quiet: print errors only.
        started_s: value of `time.monotonic` when the command started. Default: now.

    Returns:
        The trained task, as returned by `load`.

    Raises:
        ConfigError: the folder contains other files or a run with other options, or the options cannot be used.
        CorpusError: a corpus file cannot be used.
        Stopped: a signal stopped the training; a checkpoint was saved.
    """
    started_s = started_s or time.monotonic()
    if launch.is_requested(config):
        launch.launch(config, quiet=quiet)
    else:
        with joined(config) as processes:
            train_in(config, processes, quiet=quiet, started_s=started_s)
    return load(config.out, device=config.device)


def train_in(config: TrainConfig, processes: Processes, *, quiet: bool, started_s: float) -> None:
    """Train or resume in the run folder, as one of several processes or alone. Rank 0 locks and writes the folder."""
    with ExitStack() as stack:
        with processes.rank_0_first():
            if processes.rank == 0:
                make_run_folder(config.out)
                stack.enter_context(locked(config.out))
            elif not config.out.is_dir():
                raise ConfigError(f"{config.out}: this process cannot see the run folder.\n  Use a shared file system.")
            # First, to report a folder of another version.
            report = SilentReporter().log if processes.rank else None
            step_folder = checkpoint.newest(config.out / "checkpoints", report)
            if processes.rank == 0 and step_folder is None:
                discard_unstarted(config)
        stored = stored_options(config)
        config = merge_options(stored, config) if stored else config
        check_same_inputs(config, step_folder, processes)
        step = checkpoint.read_json(step_folder / "progress.json")["step"] if step_folder else 0
        reporter = stack.enter_context(
            SilentReporter()
            if processes.rank
            else Reporter(config.out, step=step, quiet=quiet, tensorboard=config.tensorboard)
        )
        base_task = load(config.init_from, device="cpu") if config.init_from else None
        base = base_task.model if base_task else None
        task_type = select_task_type(config, base)
        reporter.targets_name = task_type.targets_name
        family = model_family(config, task_type, base)
        check_blocks(config, family)
        check_model_fields(config, family, base)
        if config.auto_batch and config.batch_tokens is None:
            MemoryMeter(pick_device(config.device))  # it can measure

        def make(corpus_info: CorpusInfo) -> AnyTask:
            nonlocal config
            if processes.rank and (chosen := stored_options(config)):  # rank 0 chose for all
                config = config.model_copy(update={name: getattr(chosen, name) for name in CHOSEN})
            config = resolve_options(config, task_type, corpus_info, base)
            device = configure_torch(config, processes)
            config, choice = choose_arithmetic(config, device, model_sizes(config))
            stack.callback(setattr, cpu_training.Selection, "uses_product", cpu_training.Selection.uses_product)
            cpu_training.Selection.uses_product = config.cpu_matmul != "torch"
            if choice:
                reporter.log(choice)
            task = build(config, task_type, corpus_info, base, device, processes)
            if base_task:
                translators.inherit(task, base_task, reporter.log)
            return task

        with processes.rank_0_first():
            task, data = prepare(config, task_type, make, reporter.log)
            if processes.rank == 0:
                store_options(config)
        task.fit_statistics(data.train)
        trainer = Trainer(task, data, config, reporter, processes)
        if step_folder:
            trainer.load(step_folder)
            warn_about_environment(step_folder, trainer, reporter)
            if trainer.budget_used(trainer.progress.step) >= 1 and is_finished(config.out, trainer.progress.step):
                reporter.log(already_trained_message(config, trainer))
                return
            reporter.log(f"Resuming from step {trainer.progress.step:,}.")
        else:
            graphs, preparation_s = trainer.step.graphs is not None, time.monotonic() - started_s
            reporter.log(describe(config, task, data, processes, uses_graphs=graphs, preparation_s=preparation_s))

        def write_environment(**more: float) -> JsonObject:
            record = environment(config, processes) | more
            checkpoint.write_text(config.out / "env.json", checkpoint.to_json(record))
            return record

        def report_first_step() -> None:
            first_step_s = round(time.monotonic() - started_s, 1)
            reporter.log(f"First step after {first_step_s} s{', with compilation' if trainer.step.compiled else ''}.")
            processes.lead(lambda: write_environment(first_step_s=first_step_s))

        processes.lead(write_environment)
        with stop_on_signal() as stop:
            trainer.run(stop, report_first_step)
        finish(trainer, reporter)


def discard_unstarted(config: TrainConfig) -> None:
    """Forget a run that ended before its first checkpoint, if this one has other options or files.

    Otherwise a training that fails, for example because of a wrong option, would block its folder.
    """
    stored = stored_options(config)
    if stored is None or (config.out / checkpoint.MANIFEST).exists():
        return
    try:
        merge_options(stored, config)
    except ConfigError:
        is_same = False
    else:
        is_same = corpus_files(stored) == corpus_files(config)
    if not is_same:
        (config.out / "run.toml").unlink()


def check_same_inputs(config: TrainConfig, step_folder: Path | None, processes: Processes) -> None:
    """Check that all processes have the same versions, options, checkpoint and corpus files.

    Raises:
        ConfigError: the first difference, with its rank.
    """
    if processes.size > 1:
        versions = {"version of glassformer": __version__, "version of torch": torch.__version__}
        options = {f"--{name.replace('_', '-')}": str(value) for name, value in config if name != "config"}
        files = {
            f"content of {path}": checkpoint.sha256(path) if path.is_file() else "no file"
            for path in corpus_files(config)
        }
        processes.check_same(versions | options | {"checkpoint": str(step_folder)} | files)


def make_run_folder(out: Path) -> None:
    """Create the run folder if it does not exist.

    Raises:
        ConfigError: the folder is a file, or contains files that are not from a run.
        UserError: the folder cannot be written.
    """
    try:
        exists = out.exists()
    except OSError as error:
        raise checkpoint.write_error(out, error) from None
    if exists and not out.is_dir():
        raise ConfigError(f"{out}: is a file.\n  --out must be a folder.")
    if out.is_dir() and not (out / "run.toml").exists():
        others = [p.name for p in out.iterdir() if p.name[0] != "." and p.name not in EARLY_FILES]
        if others:
            raise ConfigError(f"{out}: contains a file that is not from a run ({others[0]}).\n  Choose another --out.")
    for name in (".lock", "run.toml", "train.log", "metrics.jsonl"):
        if (out / name).exists() and not (out / name).is_file():
            raise ConfigError(f"{out / name}: not a regular file.\n  Delete it, or choose another --out.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / ".lock").touch()
    except OSError as error:
        raise checkpoint.write_error(out, error) from None


def is_finished(out: Path, step: int) -> bool:
    """Whether the folder contains the final model of a training of `step` steps."""
    if not (out / checkpoint.MANIFEST).exists():
        return False
    return checkpoint.read_json(out / "training.json").get("steps") == step


def configure_torch(config: TrainConfig, processes: Processes) -> torch.device:
    """Set the number of threads, deterministic algorithms and the random seed. Returns the device.

    The processes on a machine share its cores, also if the run began with fewer processes.
    """
    assert config.threads is not None
    device = pick_device(config.device)
    n_cores = os.cpu_count() or 1
    torch.set_num_threads(
        config.threads if processes.size == 1 else max(1, min(config.threads, n_cores // processes.local_size))
    )
    if device.type == "cuda" and config.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs for it
    if device.type == "cpu" or config.deterministic:
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.manual_seed(config.seed)
    return device


def build(
    config: TrainConfig,
    task_type: type[AnyTask],
    corpus_info: CorpusInfo,
    base: Model | None,
    device: torch.device,
    processes: Processes,
) -> AnyTask:
    """Build the untrained task, with the weights of `base` where names and shapes match.

    Raises:
        UserError: the device has too little memory for the model.
    """
    assert config.family is not None
    model_class = FAMILIES[config.family]
    config_class = model_class.config_class
    options = base.config.model_dump() if base else {}
    n_layers = dict.fromkeys(("n_layers", "n_encoder_layers", "n_decoder_layers"), config.n_layers)
    explicit = {} if base else {**config.model_dump(exclude_none=True), **n_layers}
    if base and config.dropout is not None:
        explicit["dropout"] = config.dropout
    tokenizer = corpus_info.tokenizer
    derived = {
        **task_type.head_config,
        **({"n_labels": task_type.n_labels(corpus_info.labels)} if "n_labels" in config_class.model_fields else {}),
        **({"pooling": config.pooling} if config.pooling else {}),
        "vocab_size": base.config.vocab_size if base else tokenizer.vocab_size,
        "pad_id": tokenizer.pad_id,
        "bos_id": base.config.bos_id if base else tokenizer.bos_id,
        "eos_id": tokenizer.eos_id,
    }
    options |= {name: value for name, value in {**explicit, **derived}.items() if name in config_class.model_fields}
    options |= config.model or {}
    model_config = config_class.resolve(options, environment={})
    check_model_fits(config, model_class, model_config, device, processes)
    model = model_class(model_config)
    if base:
        load_matching_weights(model, base)
    task = task_type(model, tokenizer, device, corpus_info.labels)
    task.configure(config)
    if config.embeddings:
        init_embeddings(task, load(config.embeddings, device="cpu"))
    return task


def load_matching_weights(model: Model, base: Model) -> None:
    """Copy the weights of `base` that have the same names and shapes. Other weights keep their initial values."""
    own = model.state_dict()
    matching = {
        name: value for name, value in base.state_dict().items() if name in own and own[name].shape == value.shape
    }
    model.load_state_dict({**own, **matching})


def finish(trainer: Trainer, reporter: Reporter) -> None:
    """Write the final model to the run folder: the best on the dev set of averaged, last and best checkpoints.

    All processes must call this.
    """
    progress, task, validator = trainer.progress, trainer.task, trainer.validator
    # The copies are in CPU memory: a GPU may have no room for them.
    last = {name: value.to("cpu", copy=True) for name, value in task.model.state_dict().items()}
    candidates: dict[str, dict[str, Tensor]] = {}
    if (n := progress.n_averaged) > 1:
        candidates[f"the average of {n} checkpoints"] = {
            name: (total / n).cpu() for name, total in trainer.weight_sums.items()
        }
    if trainer.ema:
        candidates["the exponential moving average"] = trainer.ema
    candidates["the last checkpoint"] = last
    known = {"the last checkpoint": progress.last_score, "the best checkpoint": progress.best_score}
    best = trainer.config.out / "best" / f"step-{progress.best_step}"
    if progress.best_step != progress.step and best.exists():
        checkpoint.verify(best)
        candidates["the best checkpoint"] = checkpoint.read_tensors(best / "model.safetensors")
    if validator.decode_more(len(candidates)) or validator.selection({"loss": 0.0}) != task.metric:
        known = {}  # scores on fewer examples are not comparable; if the loss selects, the others are not known
    selection = task.metric
    results: dict[str, dict[str, float]] = {}
    for name, weights in candidates.items():
        if (score := known.get(name)) is None:
            task.model.load_state_dict(weights)
            results[name] = validator.metrics()
            selection = validator.selection(results[name])
        else:
            results[name] = {task.metric: score}
    trainer.processes.lead(lambda: write_best(trainer, candidates, results, selection, reporter))


def write_best(
    trainer: Trainer,
    candidates: dict[str, dict[str, Tensor]],
    results: dict[str, dict[str, float]],
    selection: str,
    reporter: Reporter,
) -> JsonObject:
    """Write the best of `candidates` as the final model.

    Args:
        candidates: weights by name.
        results: their metrics on the dev set.
        selection: the metric that selects the best.

    Returns:
        The contents of training.json.
    """
    progress, config, task = trainer.progress, trainer.config, trainer.task
    sign = 1 if metric(selection).larger_is_better else -1
    name = max(results, key=lambda candidate: sign * results[candidate][selection])  # the first in case of ties
    score = results[name][task.metric]
    training = {
        f"dev_{task.metric}": round(score, 4),
        "weights": name,
        "steps": progress.step,
        "targets": progress.n_tokens,
        "minutes": round(trainer.elapsed_s() / 60, 1),
        f"n_{task.examples_name}": trainer.data.n_examples,
        "preset": config.preset,
        "precision": config.precision,
        "machine": environment(config, trainer.processes),
    }
    if trainer.data.label_counts:
        training["labels"] = trainer.data.label_counts
    if isinstance(task, Translator):
        task.model.load_state_dict(candidates[name])
        translators.complete(task, trainer.data, reporter.log)
    contents = {**task.contents(candidates[name]), "training.json": checkpoint.to_json(training)}
    checkpoint.save_into_folder(config.out, contents)
    checkpoint.write_text(config.out / "README.md", model_card(config, task, training))
    summary = ", ".join(
        f"{' and '.join(format_metric(each, found[each]) for each in dict.fromkeys((task.metric, selection)))}"
        f" for {candidate}"
        for candidate, found in results.items()
    )
    if selection != task.metric:
        summary += f" (chosen by the loss: {trainer.validator.state.n_decoded} decoded examples are too few)"
    reporter.log(
        f"Trained {progress.step:,} steps in {duration(trainer.elapsed_s())}. Dev scores: {summary}.\n"
        f"Saved {name} to {config.out}. Try: {usage_example(task, config.out)}"
    )
    return training


def describe(
    config: TrainConfig,
    task: AnyTask,
    data: PreparedData,
    processes: Processes,
    *,
    uses_graphs: bool,
    preparation_s: float,
) -> str:
    """Message with the model, its size, the device and the training budget."""
    n_parameters = sum(p.numel() for p in task.model.parameters())
    budget = next(f"{getattr(config, b):g} {b}" for b in BUDGETS if getattr(config, b) is not None)
    if config.minutes is not None:
        # The time of the final comparison of weights is limited like that of the validations.
        total_s = preparation_s + 60 * config.minutes * (1 + MAX_VALIDATION_COST)
        budget += f" of training (about {duration(total_s)} in all, with preparation and final scoring)"
    n_threads = torch.get_num_threads()
    threads = f"{n_threads} thread{'' if n_threads == 1 else 's'}"
    if processes.size > 1:
        threads = f"{processes.size} processes of {threads}" + (", sharded" if config.shard else "")
    threads += ", compiled" if config.compile == "on" else ""
    threads += ", CUDA graphs" if uses_graphs else ""
    return (
        f"Model: {model_name(config)} ({n_parameters / 1e6:.1f} M parameters), {config.precision} on"
        f" {config.device} with {threads}, {budget}, {data.n_examples:,} {task.examples_name}."
    )


def already_trained_message(config: TrainConfig, trainer: Trainer) -> str:
    """Message for a run that has used up its budget."""
    done = trainer.progress.step
    larger_budget = (
        f"--minutes {2 * config.minutes:g}"
        if config.minutes
        else f"--epochs {2 * config.epochs}"
        if config.epochs
        else f"--steps {2 * done}"
    )
    return f"{config.out} has already been trained for {done:,} steps. To train longer, use for example {larger_budget}"


def warn_about_environment(step_folder: Path, trainer: Trainer, reporter: Reporter) -> None:
    """Log a warning if the resumed run may not be bit-identical to an uninterrupted one."""
    manifest = checkpoint.read_json(step_folder / checkpoint.MANIFEST)
    if (before := trainer.progress.n_processes) != trainer.processes.size:
        reporter.log(
            f"warning: the checkpoint was written by a training with {before} processes; this one has"
            f" {trainer.processes.size}. Results will differ in the last digits, and random numbers are others."
        )
    now = {"torch": torch.__version__, "threads": torch.get_num_threads(), "kernels": implementation()}
    written = {name: manifest.get(name) for name in now}
    changed = [f"{name} {written[name]} (now {now[name]})" for name in now if written[name] != now[name]]
    if changed:
        reporter.log(
            f"warning: the checkpoint was written with {', '.join(changed)}; results will differ in the last digits"
            " from those of an uninterrupted run."
        )


def environment(config: TrainConfig, processes: Processes) -> JsonObject:
    """Versions, machine and device of a run."""
    return {
        "glassformer": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "processes": processes.size,
        "threads": torch.get_num_threads(),
        "kernels": implementation(),
        "device": torch.cuda.get_device_name() if config.device == "cuda" else config.device,
    }
