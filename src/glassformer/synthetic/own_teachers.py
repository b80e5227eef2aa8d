"""A translator that also learns from what other models, trained first on the same text, translate together.

Source: Freitag et al. 2017, "Ensemble Distillation for Neural Machine Translation".
"""

from glassformer.config import JsonObject
from glassformer.corpora.languages import languages_of
from glassformer.errors import ConfigError
from glassformer.synthetic.distillation import (
    FOLDER,
    PLAIN_TEXT,
    check_is_own_run,
    distill,
    has_begun,
    make_teacher,
    plain_text,
)
from glassformer.synthetic.monolingual import held_out
from glassformer.tasks.base import AnyTask, Log
from glassformer.train_config import TrainConfig
from glassformer.training.options import stored_options
from glassformer.training.run import make_run_folder, train

TEXT = "text"
"""Folder in that of the teachers with their training text and dev set, if the dev set is held out."""

TEACHERS_FRACTION = 0.5
"""Fraction of the minutes of a training for all teachers together."""


def train_with_teachers(config: TrainConfig, log: Log, *, quiet: bool = False) -> AnyTask:
    """Train `config.n_teachers` translators, which differ in their seeds, and then one that learns from the text and
    from what they translate as an ensemble. Repeating the call resumes an interrupted training.

    With --minutes, the teachers have TEACHERS_FRACTION of them; with --steps or --epochs, each model has all of them.

    Args:
        log: called with messages.

    Raises:
        UserError: a file or an option cannot be used.
        Stopped: a signal stopped it; what is done is kept.
    """
    languages = languages_of(config.src, config.tgt, config.keys, config.languages)
    make_run_folder(config.out)
    folder = config.out / FOLDER
    check_is_own_run(config, folder)
    folders = [folder / f"model-{number + 1}" for number in range(config.n_teachers)]
    before = {*folder.glob("model-*")}
    if before - {*folders} or (stored_options(config) and before != {*folders}):
        n_before = len(before)
        advice = f"Use --n-teachers {n_before}, or choose another --out" if n_before else "Choose another --out"
        raise ConfigError(f"{config.out}: contains a run with {n_before} teachers.\n  {advice}.")
    update: JsonObject = {**plain_text(config, "", folder), **plain_text(config, "dev_", folder), **PLAIN_TEXT}
    plain = config.model_copy(update={**update, "languages": languages, "n_teachers": 0})
    if not plain.dev_src:
        plain = plain.model_copy(update=held_out(plain, folder / TEXT, log))
    if has_begun(config.out):  # with more of a budget, other teachers would have other answers
        log("The teachers stay as they are: the training of the model that learns from them has begun.")
    else:
        for number, out in enumerate(folders, 1):
            log(f"Training teacher {number} of {len(folders)}, in {out} (--n-teachers).")
            own = {"out": out, "seed": plain.seed + number, "profile": False}
            train(part_of(plain.model_copy(update=own), TEACHERS_FRACTION / len(folders)), quiet=quiet)
    teacher = make_teacher(folders, plain)
    return distill(part_of(plain, 1 - TEACHERS_FRACTION), teacher, log, quiet=quiet)


def part_of(config: TrainConfig, fraction: float) -> TrainConfig:
    """The options with a fraction of the minutes, if they have minutes."""
    return config.model_copy(update={"minutes": config.minutes and config.minutes * fraction})
