"""Options of a training run: those of the folder, and defaults by corpus, preset and model."""

import hashlib
from collections.abc import Mapping

import torch

from glassformer import checkpoint
from glassformer.config import ENVIRONMENT_PREFIX, JsonObject
from glassformer.corpora.detect import find_task
from glassformer.corpora.pair_formats import PAIR_FORMATS
from glassformer.corpora.read_options import check_keys
from glassformer.devices import pick_device
from glassformer.errors import ConfigError
from glassformer.learning.base import AnyObjective
from glassformer.learning.registry import objective_class
from glassformer.limits import MAX_TOKENS
from glassformer.models.base import Model
from glassformer.models.families import FAMILIES, family_of
from glassformer.presets import ADAM, BASE_FOR_LARGE, FINE_TUNING, preset, preset_for, presets_of
from glassformer.tasks.base import AnyTask, Log
from glassformer.tasks.documents import DocumentTask
from glassformer.tasks.registry import TASKS
from glassformer.train_config import BUDGETS, TrainConfig
from glassformer.training.arithmetic import available_flop
from glassformer.training.optimizer import OPTIMIZERS, OptimizerType
from glassformer.training.scan import CorpusInfo, read_options
from glassformer.training.schedule import SCHEDULES, Schedule

DIGEST = b"# SHA-256 of the lines above: "
"""Beginning of the last line of run.toml."""

MAX_AUTO_LEN = 1024
"""Largest default maximum length that follows the data. Larger ones take long to train: --max-len."""

MIN_SEQUENCES = 4
"""Fewest sequences of the maximum length in a batch, if that length follows the data."""

DERIVED_FIELDS = {"vocab_size", "pad_id", "bos_id", "eos_id", "pruned_heads", "head", "n_labels"}
"""Fields of a model's configuration that the tokenizer and the task determine."""

MUTABLE_OPTIONS = {
    *BUDGETS, "out", "src", "tgt", "dev_src", "dev_tgt", "in_domain", "save_every", "validate_every", "tensorboard",
    "devices", "shard", "threads", "timeout_s", "profile", "micro_batch_tokens",
}  # fmt: skip
"""Options that may differ when a run is resumed. They change no update, except that other numbers of processes or
threads and other micro-batches change rounding and random numbers. Files are compared by content, those of --in-domain
by position."""

OWN_OPTIONS = (
    "augment",
    "bpe_dropout",
    "inline_codes",
    "in_domain",
    "label_smoothing",
    "mixing_limit",
    "mixing_temperature",
    "prompt_loss_weight",
    "tags",
    "weights",
)
"""Options that some objectives have (`Objective.options`)."""

MODEL_OPTIONS = ("n_heads", "d_ff", "n_layers", "pre_norm", "rotary", "pooling", "dropout")
"""Options that are fields of the configurations of some model families."""

GIVEN_ANEW = {"devices": None, "shard": False, "profile": False}
"""Options that each start of a run gives, and their defaults: run.toml does not have them."""


def known_names() -> dict[str, dict[str, set[str]]]:
    """Options that name rows of a registry: their rows, and for each row the options that have no meaning with it."""
    known = {
        name: {row: set[str]() for row in registry}
        for name, registry in (("family", FAMILIES), ("format", PAIR_FORMATS))
    }
    return known | {"optimizer": excluded_options(OPTIMIZERS), "schedule": excluded_options(SCHEDULES)}


def excluded_options(registry: Mapping[str, OptimizerType] | Mapping[str, Schedule]) -> dict[str, set[str]]:
    """For each row the options that only other rows have."""
    options = {option for row in registry.values() for option in row.options}
    return {name: options.difference(row.options) for name, row in registry.items()}


def stored_options(config: TrainConfig) -> TrainConfig | None:
    """The options in run.toml of the run folder, if it exists.

    Raises:
        ConfigError: the file is not as the run wrote it.
    """
    path = config.out / "run.toml"
    if not path.exists():
        return None
    text, mark, digest = path.read_bytes().partition(DIGEST)
    if mark and digest.strip() != hashlib.sha256(text).hexdigest().encode():
        raise ConfigError(
            f"{path}: damaged or changed since the run wrote it.\n"
            f"  To train with other options: glassformer train --config {path} --out NEW"
        )
    return with_former_values(TrainConfig.resolve({}, path, environment={}))


def with_former_values(config: TrainConfig) -> TrainConfig:
    """The options of a run. Those that did not exist when it began have the values that change nothing, not the present
    defaults."""
    former: JsonObject = {"augment": 0.0} if config.task == "translation" else {}
    former |= {"rotary": False} if config.family == "transformer" else {}
    return config.model_copy(update={name: value for name, value in former.items() if getattr(config, name) is None})


def store_options(config: TrainConfig) -> None:
    """Write run.toml of the run folder.

    Raises:
        UserError: the file cannot be written.
    """
    text = config.model_copy(update=GIVEN_ANEW).to_toml()
    digest = hashlib.sha256(text.encode()).hexdigest()
    checkpoint.write_text(config.out / "run.toml", f"{text}{DIGEST.decode()}{digest}\n")


def merge_options(stored: TrainConfig, requested: TrainConfig) -> TrainConfig:
    """The stored options of a run, updated with the requested values of MUTABLE_OPTIONS.

    Raises:
        ConfigError: another option differs from the stored one.
    """
    new = requested.model_dump(exclude_none=True)
    old = stored.model_dump()
    auto = {"precision": "auto", "cpu_matmul": "auto", "device": "auto", "compile": "auto", "preset": "auto"}
    differing = [
        name for name, value in new.items() if name not in MUTABLE_OPTIONS and value not in (old[name], auto.get(name))
    ]
    if in_domain_positions(stored) != in_domain_positions(requested):
        differing.append("in_domain")
    if differing:
        differences = "\n".join(f"  {name}: {old[name]} in the run, {new[name]} requested" for name in differing)
        raise ConfigError(
            f"{requested.out}: contains a run with other options.\n{differences}\n"
            "  To resume this run, use its options (see run.toml). For a new run, choose another --out."
        )
    changed = {name: new[name] for name in MUTABLE_OPTIONS if name in new}
    if any(name in changed for name in BUDGETS):
        old |= dict.fromkeys(BUDGETS)
    return TrainConfig.resolve(old | changed, environment={})


def in_domain_positions(config: TrainConfig) -> list[int]:
    """Positions of the files of --in-domain among the source files."""
    return [i for i, path in enumerate(config.src) if path in config.in_domain]


def select_objective_type(config: TrainConfig, base: Model | None) -> type[AnyObjective]:
    """The objective of the task given by the options, else inferred from the corpus files.

    Raises:
        ConfigError: the task is unknown or cannot be trained, or the model family does not support it.
    """
    name = config.task or ("translation" if config.tgt else find_task(config.src, read_options(config)))
    if name not in TASKS:
        raise ConfigError(f"task {name!r}: unknown.\n  Known tasks: {', '.join(TASKS)}.")
    objective_type = objective_class(name)
    task_type = objective_type.task_type
    read_options(config).check_used(task_type.read_options, name)
    sets = [(config.src, config.tgt), (config.dev_src, config.dev_tgt)]
    check_keys(config.keys, sets, config.format, may_be_tables=task_type.may_read_tables)
    family = model_family(config, task_type, base)
    if family not in task_type.families():
        advice = "Change --family" if config.family else "Use another model for --init-from"
        raise ConfigError(
            f"{name}: not supported by the model family {family}; use {' or '.join(task_type.families())}.\n  {advice}."
        )
    if not stored_options(config):  # else they were checked when the run began, perhaps by an earlier version
        for option, owner in unused_options(config, objective_type, family).items():
            flag = "--" + option.replace("_", "-")
            variable = ENVIRONMENT_PREFIX + option.upper()
            raise ConfigError(
                f"{flag}: the {owner} has no such option.\n"
                f"  Leave it out; it may also come from --config or the environment ({variable})."
            )
    return objective_type


def unused_options(config: TrainConfig, objective_type: type[AnyObjective], family: str) -> dict[str, str]:
    """The given options that the task or the model family does not have, and which of both it is.

    The values of a named preset are not among them: run.toml has them for all tasks and families.
    """
    fields = set(FAMILIES[family].config_class.model_fields)
    if "n_encoder_layers" in fields:
        fields.add("n_layers")
    if family == "skipgram":
        fields.remove("dropout")
    of_preset = preset(config.preset, family) if config.preset in presets_of(family) else {}

    def is_given(option: str, *none: object) -> bool:
        return getattr(config, option) not in (TrainConfig.model_fields[option].default, of_preset.get(option), *none)

    lacked_by_task = [option for option in OWN_OPTIONS if option not in objective_type.options and is_given(option, 0)]
    lacked_by_family = [option for option in MODEL_OPTIONS if option not in fields and is_given(option)]
    return {
        **dict.fromkeys(lacked_by_task, f"task {objective_type.task_type.name}"),
        **dict.fromkeys(lacked_by_family, f"family {family}"),
    }


def without_unused_options(config: TrainConfig) -> TrainConfig:
    """The options of a run without those that had no effect, which earlier versions accepted."""
    if config.family is None or config.family not in FAMILIES or config.task not in TASKS:
        return config
    unused = unused_options(config, objective_class(config.task), config.family)
    return config.model_copy(update={option: TrainConfig.model_fields[option].default for option in unused})


def model_family(config: TrainConfig, task_type: type[AnyTask], base: Model | None) -> str:
    """Name of the model family: as given, else that of `base`, else the default of the task."""
    return config.family or (family_of(base) if base else task_type.families()[0])


def check_blocks(config: TrainConfig, family: str) -> None:
    """Check that the options for Transformer blocks are given only for families that have them.

    Raises:
        ConfigError: they are given for another family.
    """
    if config.activation_checkpointing and not FAMILIES[family].has_blocks:
        families = ", ".join(name for name, model_class in FAMILIES.items() if model_class.has_blocks)
        raise ConfigError(
            f"--activation-checkpointing: the family {family} has no Transformer blocks.\n"
            f"  Leave it out. Families with Transformer blocks: {families}."
        )


def check_model_fields(config: TrainConfig, family: str, base: Model | None) -> None:
    """Check the names in the table `model` of the options.

    Raises:
        ConfigError: a name is not a field of the model's configuration or is set by another option, or the
            configuration comes from `base`.
    """
    if not config.model:
        return
    if base:
        raise ConfigError("--model cannot be combined with --init-from, whose configuration is used.")
    known = sorted(FAMILIES[family].config_class.model_fields.keys() - DERIVED_FIELDS - TrainConfig.model_fields.keys())
    unknown = [name for name in config.model if name not in known]
    if unknown:
        raise ConfigError(
            f"--model {', '.join(unknown)}: no such field of the family {family}, or set by another option.\n"
            f"  Fields: {', '.join(known)}."
        )


def sizes_of(model: Model) -> JsonObject:
    """The configuration of a model; `n_layers` of an encoder-decoder is None if the two have different numbers."""
    sizes = model.config.model_dump()
    layers = {sizes[name] for name in ("n_layers", "n_encoder_layers", "n_decoder_layers") if name in sizes}
    return {**sizes, "n_layers": layers.pop() if len(layers) == 1 else None}


def check_sizes(config: TrainConfig, base: AnyTask) -> None:
    """Check that no option asks for another family, size or tokenizer than those of the model that the training begins
    with.

    Raises:
        ConfigError: one does.
    """
    if config.family not in (None, family := family_of(base.model)):
        raise ConfigError(
            f"--family {config.family}: --init-from {config.init_from} keeps its family {family}.\n  Leave it out."
        )
    sizes = ("max_len", "d_model", "n_heads", "d_ff", "n_layers", "pre_norm", "rotary")
    own: JsonObject = {name: value for name, value in sizes_of(base.model).items() if name in sizes}
    own |= {"vocab_size": base.tokenizer.vocab_size, "tokenizer": None, "lowercase": False}
    for option, value in own.items():  # run.toml also has sizes of the preset that the family does not have
        asked = getattr(config, option)
        if asked not in (None, value):
            raise ConfigError(
                f"--{option.replace('_', '-')} {asked}: --init-from {config.init_from} keeps the size and the tokenizer"
                " of its model.\n  Leave it out."
            )


def check_preset(given: Mapping[str, object], config: TrainConfig) -> None:
    """Check that a preset is not given with a model to start from, whose sizes and defaults are others.

    Args:
        given: the options of a command or a call, without those of a file.

    Raises:
        ConfigError: it is.
    """
    if config.init_from and given.get("preset") not in (None, "auto"):
        raise ConfigError(
            f"--preset {given['preset']}: has no effect with --init-from, whose model has its sizes, and fine-tuning"
            " has its own defaults.\n  Leave it out."
        )


def preset_of_pretraining(config: TrainConfig, task_type: type[AnyTask], base: AnyTask | None, log: Log) -> str | None:
    """The preset of the model of --init-from, if it was trained from random weights on text without labels, for another
    task than this: a training of this task has the options of this preset as well.

    The low rate of fine-tuning is for large models that are trained already: after two minutes of span corruption, a
    `tiny` translator has 3.0 BLEU with it, and 20.5 with its preset (benchmarks/more_text.py).
    """
    if not config.init_from or not isinstance(base, DocumentTask) or base.name == task_type.name:
        return None
    try:
        options = stored_options(config.model_copy(update={"out": config.init_from}))
    except ConfigError as error:
        log(f"warning: {str(error).splitlines()[0]} The options are those of fine-tuning.")
        return None
    return options.preset if options and not options.init_from else None


def resolve_options(
    config: TrainConfig,
    objective_type: type[AnyObjective],
    corpus_info: CorpusInfo,
    base: Model | None,
    n_processes: int = 1,
    pretraining: str | None = None,
) -> TrainConfig:
    """The options with defaults for all that are not given: family, preset, the options of the preset.

    `choose_arithmetic` chooses the precision.

    Args:
        pretraining: what `preset_of_pretraining` returned.

    Raises:
        ConfigError: the family does not have the preset.
    """
    explicit = config.model_dump(exclude_none=True)
    family = model_family(config, objective_type.task_type, base)
    device = torch.device(pick_device(config.device))
    vocab_size, name = corpus_info.tokenizer.vocab_size, pretraining or str(config.preset)
    if name == "auto":
        n_flop = available_flop(config, device, n_processes) if family in BASE_FOR_LARGE and not base else None
        name = preset_for(corpus_info.n_examples, family, n_flop=n_flop, vocab_size=vocab_size)
    if name not in presets_of(family):
        raise ConfigError(f"preset {name!r}: unknown for the family {family}; known: {', '.join(presets_of(family))}.")
    defaults = preset(name, family)
    if base:
        own = sizes_of(base)
        if pretraining:
            own.pop("dropout", None)  # the preset has that of a training
        else:
            defaults = {name: value for name, value in defaults.items() if name not in BUDGETS} | FINE_TUNING
        defaults |= {name: value for name, value in own.items() if name in defaults}
    elif corpus_info.wanted_max_len > defaults.get("max_len", MAX_TOKENS):
        defaults["max_len"] = min(MAX_AUTO_LEN, -(-corpus_info.wanted_max_len // 64) * 64)
        defaults["batch_tokens"] = max(defaults["batch_tokens"], MIN_SEQUENCES * defaults["max_len"])
    if corpus_info.tokenizer.unk_id is not None:
        defaults.pop("augment", None)  # most of what it makes would be unknown
    if any(budget in explicit for budget in BUDGETS):
        for budget in BUDGETS:
            defaults.pop(budget, None)
    if config.auto_batch:
        defaults.pop("batch_tokens")  # found later
    known = known_names()
    rows = {option: str(explicit.get(option, defaults[option])) for option in ("optimizer", "schedule")}
    excluded = {excluded for option, row in rows.items() for excluded in known[option][row]}
    defaults = {option: value for option, value in (ADAM | defaults).items() if option not in excluded}
    selected = {
        **defaults,
        "task": objective_type.task_type.name,
        "family": family,
        "vocab_size": vocab_size,
        "threads": torch.get_num_threads(),
    }
    # With "auto" the training decides when it knows its speed, so that two runs may differ in rounding.
    is_decided = device.type != "cuda" or config.deterministic
    compilation = "off" if config.compile == "auto" and is_decided else config.compile
    fixed = {"device": device.type, "compile": compilation, "preset": name}
    options = {
        name: value for name, value in {**selected, **explicit, **fixed}.items() if name in TrainConfig.model_fields
    }
    return TrainConfig.resolve(options, environment={}, known=known)
