"""`glassformer run` and the commands named after tasks"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from glassformer.cli.files import check_exist, check_folder, refuse_texts, refuse_without_files
from glassformer.cli.options import BulkOptions, Device, Json, Keys, Quiet, Threads, decode_options, flags, given
from glassformer.decode_config import COMPLETION, INFERENCE, TRANSLATION, DecodeConfig, OptionGroup

TASKS_OF_COMMAND: dict[str, tuple[tuple[str, ...], tuple[type[OptionGroup], ...]]] = {
    "run": ((), tuple(DecodeConfig.groups())),
    "summarize": (("summarization",), COMPLETION),
    "complete": (("causal-lm",), COMPLETION),
    "generate": (("causal-lm",), COMPLETION),
    "classify": (("classification",), INFERENCE),
    "tag": (("tagging",), INFERENCE),
    "answer": (("question-answering",), INFERENCE),
    "similarity": (("regression", "feature-extraction"), INFERENCE),
    "embed": (("feature-extraction",), INFERENCE),
    "fill_mask": (("masked-lm", "bert-pretraining"), INFERENCE),
    "correct": (("translation",), TRANSLATION),
}
"""Command -> the tasks whose models it accepts (none: the models of all tasks), and its options of decoding."""


def make_command(
    command: str, tasks: tuple[str, ...], groups: Sequence[type[OptionGroup]], pairs: bool = False
) -> Callable[..., None]:
    """Make a `run` command that accepts the models of some tasks.

    Args:
        command: name of the command.
        tasks: tasks whose models the command accepts; an empty tuple: all tasks.
        groups: options of decoding that the command has.
        pairs: each line of input must have two texts separated by a tab.
    """
    Flags: Any = flags(*groups, exclude=("nbest",))  # noqa: N806

    def run(
        model: Path,
        /,
        *files: Path,
        out: Path | None = None,
        keys: Keys = (),
        bulk: BulkOptions = BulkOptions(),  # noqa: B008
        json: Json = False,
        quiet: Quiet = False,
        device: Device = "auto",
        threads: Threads = None,
        options: Annotated[Flags, Parameter(name="*")] = Flags(),  # noqa: B008
    ) -> None:
        """Apply a model to each line of standard input, or of files, and print one line of output for each.

        Input by task: text; for pairs TEXT TAB TEXT; for question answering QUESTION TAB CONTEXT; for masked-token
        prediction text with <mask>; for tagging words separated by spaces.

        Example:  echo "what a lovely film" | glassformer run sentiment

        Args:
            model: Model folder written by `glassformer train` or `glassformer import`.
            files: Files of lines, plain or .gz, tables (.csv, .tsv, .jsonl), which get a column with the outputs, or
                folders of them.
            out: Folder for the outputs, in files of the same names. None is overwritten. The files are processed in
                chunks, which are kept: after an interruption, the same command goes on.
            keys: Columns of a table, or JSON keys, with the text: text=review, of a pair text=… text2=….
            json: Print one JSON object for each line: input, output, and scores.
            quiet: Print no warnings.
            device: Device to compute on.
            threads: Number of CPU threads. Default: all cores.
        """
        decoding = decode_options(options)
        if out is None or not files:
            refuse_texts([str(path) for path in files], command, model)
            refuse_without_files(command, model, out=out, keys=keys, **given(bulk))
        else:
            from glassformer.cli.bulk import process_files
            from glassformer.cli.jobs import Job

            kind: Literal["pairs", "run"] = "pairs" if pairs else "run"
            job = Job(kind, str(model), decoding.given(), (), json, device, threads, tasks, {"keys": keys})
            check_exist(files)
            process_files(job, files, check_folder(out), bulk, quiet=quiet)
            return
        from glassformer.cli.lines import run_lines

        run_lines(
            model,
            decoding,
            json=json,
            quiet=quiet,
            device=device,
            threads=threads,
            tasks=tasks,
            pairs=pairs,
        )

    return run


for name, (tasks, groups) in TASKS_OF_COMMAND.items():
    globals()[name] = make_command(name.replace("_", "-"), tasks, groups, pairs=name == "similarity")
