"""Training runs: start or resume a run in a folder and write the trained model."""

import time
from contextlib import ExitStack
from pathlib import Path

import torch

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.devices import pick_device
from glassformer.errors import ConfigError
from glassformer.learning.registry import objective_class
from glassformer.lock import locked
from glassformer.manifest import MANIFEST, read_json, sha256
from glassformer.tasks.base import AnyTask
from glassformer.tasks.registry import load
from glassformer.train_config import BUDGETS, TrainConfig
from glassformer.training import launch, translators
from glassformer.training.arithmetic import CHOSEN, choose_arithmetic, model_sizes, products_by
from glassformer.training.building import build
from glassformer.training.distributed import Processes, joined
from glassformer.training.divergence import EVIDENCE
from glassformer.training.encoding import PreparedData, encode
from glassformer.training.environment import configure_torch, environment, set_threads, warn_about_environment
from glassformer.training.final import finish
from glassformer.training.memory import MemoryMeter
from glassformer.training.model_card import model_name
from glassformer.training.options import (
    check_blocks,
    check_model_fields,
    check_sizes,
    merge_options,
    model_family,
    preset_of_pretraining,
    resolve_options,
    select_objective_type,
    store_options,
    stored_options,
)
from glassformer.training.progress import Reporter, SilentReporter, duration
from glassformer.training.scan import corpus_files, scan
from glassformer.training.signals import stop_on_signal
from glassformer.training.trainer import Trainer
from glassformer.training.validation import MAX_VALIDATION_COST
from glassformer.version import __version__

EARLY_FILES = (
    "data", "teacher", "synthetic", "update", "train.log", "metrics.jsonl", "tensorboard", "env.json", "best",
    "checkpoints", EVIDENCE,
)  # fmt: skip
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
            if processes.rank == 0:
                (config.out / EVIDENCE).unlink(missing_ok=True)  # of an earlier start
                if step_folder is None and (config.out / MANIFEST).exists():
                    raise ConfigError(
                        f"{config.out}: contains a trained model, and no intact checkpoint from which its training can"
                        f" go on.\n  Choose another --out; --init-from {config.out} begins with this model."
                    )
                if step_folder is None:
                    discard_unstarted(config)
        stored = stored_options(config)
        config = merge_options(stored, config) if stored else config
        check_same_inputs(config, step_folder, processes)
        step = read_json(step_folder / "progress.json")["step"] if step_folder else 0
        reporter = stack.enter_context(
            SilentReporter()
            if processes.rank
            else Reporter(config.out, step=step, quiet=quiet, tensorboard=config.tensorboard)
        )
        base_task = load(config.init_from, device="cpu") if config.init_from else None
        base = base_task.model if base_task else None
        objective_type = select_objective_type(config, base)
        task_type = objective_type.task_type
        reporter.targets_name = objective_type.targets_name
        family = model_family(config, task_type, base)
        check_blocks(config, family)
        check_model_fields(config, family, base)
        if base_task:
            check_sizes(config, base_task)
        if config.auto_batch and config.batch_tokens is None:
            MemoryMeter(torch.device(pick_device(config.device)))  # it can measure

        with processes.rank_0_first():
            corpus = scan(config, objective_type, reporter.log)
            if processes.rank and (chosen := stored_options(config)):  # rank 0 chose for all
                config = config.model_copy(update={name: getattr(chosen, name) for name in (*CHOSEN, "preset")})
            n_threads = config.threads or torch.get_num_threads()
            set_threads(n_threads, processes)  # before speed is measured
            config = config.model_copy(update={"threads": n_threads})
            pretraining = preset_of_pretraining(config, task_type, base_task, reporter.log)
            config = resolve_options(
                config, objective_type, corpus, base, n_processes=processes.size, pretraining=pretraining
            )
            if pretraining:
                reporter.log(
                    f"Options that are not given: those of the preset {pretraining}, as in the training of"
                    f" {config.init_from}."
                )
            device = configure_torch(config)
            config, choice = choose_arithmetic(config, device, model_sizes(config))
            stack.enter_context(products_by(config.cpu_matmul))
            if choice:
                reporter.log(choice)
            labels = base_task.labels if base_task else ()
            objective = build(config, objective_type, corpus, base, device, processes, reporter.log, base_labels=labels)
            task = objective.task
            if base_task:
                translators.inherit(task, base_task, reporter.log)
            data = encode(config, objective, corpus, reporter.log)
            if processes.rank == 0:
                store_options(config)
        objective.fit_statistics(data.train)
        trainer = Trainer(objective, data, config, reporter, processes)
        if step_folder:
            trainer.load(step_folder)
            warn_about_environment(step_folder, trainer.progress.n_processes, processes.size, reporter.log)
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
        finish(trainer, reporter, base)


def discard_unstarted(config: TrainConfig) -> None:
    """Forget a run that ended before its first checkpoint, if this one has other options or files.

    Otherwise a training that fails, for example because of a wrong option, would block its folder.
    """
    stored = stored_options(config)
    if stored is None:
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
        files = {f"content of {path}": sha256(path) if path.is_file() else "no file" for path in corpus_files(config)}
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
        checkpoint.make_folder(out)
        (out / ".lock").touch()
    except OSError as error:
        raise checkpoint.write_error(out, error) from None


def is_finished(out: Path, step: int) -> bool:
    """Whether the folder contains the final model of a training of `step` steps."""
    if not (out / MANIFEST).exists():
        return False
    return read_json(out / "training.json").get("steps") == step


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
    is_augmented = config.augment and "augment" in objective_class(task.name).options
    changed = f", {config.augment:.0%} of them changed at each use (--augment)" if is_augmented else ""
    return (
        f"Model: {model_name(config)} ({n_parameters / 1e6:.1f} M parameters), {config.precision} on"
        f" {config.device} with {threads}, {budget}, {len(data.train):,} {task.examples_name}{changed}."
    )


def already_trained_message(config: TrainConfig, trainer: Trainer) -> str:
    """Message for a run that has used up its budget."""
    done = trainer.progress.step
    helpers = (*(config.out / "teacher").glob("model-*"), *(config.out / "synthetic").glob("*-model"))
    is_part = helpers or config.out.parent.name in ("teacher", "synthetic")
    larger_budget = (
        "twice the --minutes of the command, of which this model has a part"
        if config.minutes and is_part
        else f"--minutes {2 * config.minutes:g}"
        if config.minutes
        else f"--epochs {2 * config.epochs}"
        if config.epochs
        else f"--steps {2 * done}"
    )
    return f"{config.out} has already been trained for {done:,} steps. To train longer, use for example {larger_budget}"
