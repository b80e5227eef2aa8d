"""`glassformer distill`"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from glassformer.cli.files import check_no_options
from glassformer.cli.options import DATA, RUN, Count, Quiet, flags, given
from glassformer.cli.train import STARTED_S
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
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
    learns from both: of several translations the one nearest to the reference is used. All options of `train` are
    those of the student. A repeated command goes on where it was stopped: no sentence is translated twice.

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
    if not teachers:
        raise ConfigError("no teacher given.\n  Name a model folder, or the address of a server (http://…).")
    from glassformer.synthetic.distillation import check_is_not_student
    from glassformer.synthetic.distillation import distill as run
    from glassformer.synthetic.endpoint import EndpointOptions, EndpointTeacher
    from glassformer.synthetic.teachers import ModelTeacher
    from glassformer.training.options import known_names

    resolved = TrainConfig.resolve(given(options), config, os.environ, known=known_names())
    urls = [teacher for teacher in teachers if "://" in teacher]
    of_endpoint = {"--endpoint-model": endpoint_model, "--prompt": prompt, "--per-minute": per_minute}
    of_endpoint["--connections"] = connections
    teacher: EndpointTeacher | ModelTeacher
    if urls:
        if len(teachers) > 1:
            raise ConfigError("several teachers, one of them a server.\n  Name one server, or model folders.")
        if beam:
            raise ConfigError("--beam: the server decodes.\n  Leave it out.")
        missing = [name for name in ("--endpoint-model", "--prompt") if not of_endpoint[name]]
        if missing or endpoint_model is None or prompt is None:
            raise ConfigError(
                f"{urls[0]}: needs {' and '.join(missing)}. For instance:\n"
                "  --endpoint-model NAME --prompt 'Translate into French, without comment: {text}'\n"
                "  For a translator behind `glassformer serve` the prompt is '{text}'."
            )
        teacher = EndpointTeacher(
            EndpointOptions(
                urls[0], endpoint_model, prompt, os.environ.get("OPENAI_API_KEY"), per_minute, connections or 8
            )
        )
    else:
        if unused := [name for name, value in of_endpoint.items() if value]:
            raise ConfigError(f"{', '.join(unused)}: only for a server.\n  Leave it out.")
        folders = [Path(teacher) for teacher in teachers]
        check_is_not_student(folders, resolved.out)
        n = beam or 4
        decoding = DecodeConfig(beam=n, nbest=n if resolved.tgt else 1, precision="auto")
        teacher = ModelTeacher(folders, decoding, device=resolved.device)

    def log(message: str) -> None:
        if not quiet:
            print(message, file=sys.stderr, flush=True)

    run(resolved, teacher, log, quiet=quiet, started_s=STARTED_S)
