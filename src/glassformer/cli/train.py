"""`glassformer train`"""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from glassformer.cli.options import flags, given
from glassformer.config import TrainConfig

Flags = flags(TrainConfig)


def train(
    *files: Path,
    config: Path | None = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
    options: Annotated[Flags | None, Parameter(name="*")] = None,  # type: ignore[valid-type]
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
        chosen |= sides(files)
    resolved = TrainConfig.resolve(chosen, config)
    from glassformer.train.run import train as run  # torch takes seconds to import

    run(resolved, quiet=quiet)


def sides(files: tuple[Path, ...]) -> dict[str, tuple[Path, ...]]:
    """Positional files as source and target files."""
    from glassformer.corpora.corpus import format_of
    from glassformer.errors import ConfigError

    if all(format_of(path) != "lines" for path in files):
        return {"src": files}
    if len(files) == 2:
        return {"src": files[:1], "tgt": files[1:]}
    raise ConfigError(
        f"{len(files)} plain text files: which is source, which target?\n"
        "  Give two files, or --src FILE … --tgt FILE …, or TSV or JSONL files of pairs."
    )
