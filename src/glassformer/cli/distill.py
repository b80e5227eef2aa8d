"""`glassformer distill`"""

import os
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from glassformer.cli.files import check_no_options, corpus_sides
from glassformer.cli.options import DATA, RUN, Count, Quiet, flags, given
from glassformer.cli.reading import reading_of
from glassformer.cli.train import CORPUS, given_anywhere
from glassformer.config import JsonObject
from glassformer.train_config import TrainConfig

Flags: Any = flags(TrainConfig)


def distill(
    *teachers: Annotated[str, Parameter(group=DATA)],
    endpoint_model: Annotated[str | None, Parameter(group=DATA)] = None,
    prompt: Annotated[str | None, Parameter(group=DATA)] = None,
    per_minute: Annotated[float | None, Parameter(group=DATA, validator=Number(gt=0))] = None,
    connections: Annotated[Count | None, Parameter(group=DATA)] = None,
    beam: Annotated[Count | None, Parameter(group=DATA)] = None,
    config: Annotated[Path | None, Parameter(group=RUN)] = None,
    quiet: Quiet = False,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Train a small translator on the translations of larger ones, or of any OpenAI-compatible server.

    The teachers translate --src; several translate together, as an ensemble. With --tgt, references, the student
    learns from both: of several translations the one nearest to the reference is used. Options of `train` are those of
    the student. A repeated command goes on where it was stopped, with the answers so far.

    Example:  glassformer distill big-1 big-2 --src text.en --dev-src dev.en --dev-tgt dev.fr --out small

    Example:  glassformer distill http://127.0.0.1:8000/v1 --endpoint-model NAME --prompt "Translate into French,
    without comment: {text}" --src text.en --out small

    Args:
        teachers: Model folders, or the address of one server. Its key: environment variable OPENAI_API_KEY.
        endpoint_model: Name of the model at the server.
        prompt: The message to the server; {text} is replaced by each sentence.
        per_minute: Maximum number of requests to the server in a minute.
        connections: Number of requests at the same time. Default: 8.
        beam: Beam size of model folders. Default: 4.
        config: TOML file of options of the training.
        quiet: Print errors only.
    """
    check_no_options([Path(teacher) for teacher in teachers], "distill")
    from glassformer.synthetic.ask import print_log
    from glassformer.synthetic.distillation import distill as run
    from glassformer.synthetic.distillation import make_teacher
    from glassformer.tasks.texts import no_op
    from glassformer.training.options import check_preset, known_names

    explicit = given(options)
    known = TrainConfig.converted(given_anywhere(explicit, config), CORPUS)
    dev: JsonObject = {name: known[name] for name in ("dev_src", "dev_tgt") if name in known}
    explicit |= corpus_sides({"task": "translation", **dev}, reading_of(known))
    resolved = TrainConfig.resolve(explicit, config, os.environ, known=known_names())
    check_preset(explicit, resolved)
    teacher = make_teacher(
        teachers, resolved, beam=beam, endpoint_model=endpoint_model, prompt=prompt, per_minute=per_minute,
        connections=connections, api_key=os.environ.get("OPENAI_API_KEY"),
    )  # fmt: skip
    run(resolved, teacher, no_op if quiet else print_log, quiet=quiet)
