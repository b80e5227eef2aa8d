"""`glassformer update`"""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from glassformer.cli.files import check_no_options, pair_sides
from glassformer.cli.options import Quiet, flags, given
from glassformer.cli.reading import OTHER_DESCRIPTIONS, READING, check_pair_options, reading_of
from glassformer.train_config import TrainConfig

Flags: Any = flags(
    TrainConfig,
    only=(*READING, "minutes", "steps", "lr", "seed", "device", "threads"),
    descriptions=OTHER_DESCRIPTIONS,
)

DEFAULT_MINUTES = 3.0
N_SHOWN = 3


def update(
    model: Path,
    /,
    *files: Path,
    out: Path,
    max_drop: Annotated[float, Parameter(validator=Number(gte=0))] = 0.2,
    quiet: Quiet = False,
    options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
) -> None:
    """Train a translator further on corrected translations, and keep the result only if it is not worse on other text.

    The corrections are mixed with the text of the earlier training. The new model is compared with the old one on the
    dev set. A repeated command goes on where it was stopped.

    Example:  glassformer update en-fr corrected.xlf --out en-fr-2

    Args:
        model: Run folder written by `glassformer train`.
        files: Corrections: XLIFF, PO or TMX files, or folders of them, of which fuzzy entries are left out; a table of
            pairs; or source text and target text.
        out: New folder.
        max_drop: By how much chrF on the dev set may fall.
        quiet: Print errors only.
    """
    from glassformer.errors import ConfigError
    from glassformer.synthetic.ask import print_log
    from glassformer.synthetic.correction import update as run
    from glassformer.tasks.texts import no_op

    check_no_options(files, "update")
    if not files:
        raise ConfigError("no corrections given.\n  glassformer update MODEL corrected.xlf --out NEW")
    explicit = given(options)
    if not explicit.get("steps"):
        explicit.setdefault("minutes", DEFAULT_MINUTES)
    reading = reading_of(explicit)
    src, tgt = pair_sides(files, reading)
    check_pair_options(src, reading)
    done = run(model, src, tgt, explicit, out=out, max_drop=max_drop, log=no_op if quiet else print_log, quiet=quiet)
    print(f"Dev set: {done.dev}.")
    print(f"Corrections: {done.corrections}; {len(done.examples):,} are translated otherwise:")
    for source, correction, before, after in done.examples[:N_SHOWN]:
        print(f"  {source}\n    correction: {correction}\n    before:     {before}\n    after:      {after}")
    print(f"All of them: {done.folder / 'corrections.tsv'}. Try: glassformer translate {done.folder}")
