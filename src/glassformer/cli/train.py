"""`glassformer train`"""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from glassformer.cli.files import sides
from glassformer.cli.options import flags, given
from glassformer.config import TrainConfig

Flags: Any = flags(TrainConfig)


def train(
    *files: Path,
    config: Path | None = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Train a translator from two text files, or go on with a run that was broken off.

    Example:  glassformer train train.en train.fr --out en-fr --minutes 60

    Args:
        files: source text and target text, line by line; or one TSV or JSONL of pairs. Any may be gzip'd. For several
            files a side use --src and --tgt.
        config: TOML file of options, such as a run folder's run.toml.
        quiet: say nothing but errors.
    """
    chosen: dict[str, Any] = given(options)
    if files:
        chosen["src"], chosen["tgt"] = sides(files)
    resolved = TrainConfig.resolve(chosen, config)
    from glassformer.train.run import train as run  # torch takes seconds to import

    run(resolved, quiet=quiet)
