"""Training on text of the user and of other models: what the command `train` and `gf.train` call."""

import os

from glassformer.corpora.corpus import pair_files
from glassformer.errors import ConfigError
from glassformer.synthetic.ask import print_log
from glassformer.synthetic.distillation import tell_of_codes
from glassformer.synthetic.monolingual import train_with_monolingual
from glassformer.synthetic.own_teachers import train_with_teachers
from glassformer.tasks.base import AnyTask
from glassformer.tasks.texts import no_op
from glassformer.train_config import TrainConfig
from glassformer.training import run
from glassformer.training.options import select_objective_type

OF_OTHER_MODELS = "n_teachers", "more_tgt", "more_src"
"""Options by which other models translate text for the training."""


def train(config: TrainConfig, *, quiet: bool = False, started_s: float | None = None) -> AnyTask:
    """Train a model as `training.run.train`; with --n-teachers, --more-tgt or --more-src, also on text that other
    models make.

    Raises:
        UserError: a file or an option cannot be used.
        Stopped: a signal stopped it; what is done is kept.
    """
    given = [name for name in OF_OTHER_MODELS if getattr(config, name)]
    if not given:
        return run.train(config, quiet=quiet, started_s=started_s)
    option = "--" + given[0].replace("_", "-")
    if "RANK" in os.environ:
        raise ConfigError(f"{option}: not in a process that a launcher started.\n  Use --devices.")
    task = select_objective_type(config, None).task_type.name
    if task != "translation":
        raise ConfigError(f"{option}: the task {task} has no such option.\n  Leave it out.")
    pair_files(config.src, config.tgt, config.format, config.keys)
    log = no_op if quiet else print_log
    tell_of_codes(config, log)
    chain = train_with_teachers if config.n_teachers else train_with_monolingual
    return chain(config, log, quiet=quiet)
