"""Line-by-line processing of standard input: one line of output for each line of input."""

import json as json_module
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from glassformer.cli.reading import languages_of
from glassformer.cli.standard_input import MAX_CHUNK_LINES, input_chunks
from glassformer.corpora.table_texts import are_names
from glassformer.decode_config import DecodeConfig, Precision
from glassformer.errors import ConfigError, CorpusError
from glassformer.tasks.base import AnyTask
from glassformer.tasks.memories import memory_of
from glassformer.tasks.registry import load
from glassformer.tasks.steps import check_options
from glassformer.tasks.terms import terms_of
from glassformer.tasks.texts import Warn, no_op
from glassformer.tasks.translated import Translation, record_of
from glassformer.threads import set_n_threads

if TYPE_CHECKING:
    from glassformer.tasks.base import CorpusExample
    from glassformer.tasks.text_to_text import TextToTextTask


def open_model(
    folder: Path,
    device: str,
    threads: int | None,
    tasks: tuple[str, ...] = (),
    *,
    precision: Precision = "fp32",
    quiet: bool = False,
) -> AnyTask:
    """Load the model of a command and set the number of threads.

    Args:
        tasks: tasks whose models the command accepts; if empty, all.
        precision: precision of an encoder.
        quiet: print no warnings.

    Raises:
        ConfigError: the model was trained for another task.
    """
    if quiet:
        warnings.simplefilter("ignore")
    if threads:
        set_n_threads(threads)
    task = load(folder, device=device)
    if tasks and task.name not in tasks:
        raise ConfigError(
            f"{folder}: was trained for {task.name}, not for {' or '.join(tasks)}.\n  Use: glassformer run {folder}"
        )
    if task.kind == "encoder":
        task.precision = precision  # type: ignore[attr-defined]
    return task


def open_translator(
    folder: Path, device: str, threads: int | None, *, quiet: bool = False
) -> "TextToTextTask[CorpusExample]":
    """`open_model` for the models that translate."""
    task: TextToTextTask[CorpusExample] = open_model(  # type: ignore[assignment]
        folder, device, threads, ("translation", "multitask"), quiet=quiet
    )
    return task


def join_ensemble(task: AnyTask, folders: Sequence[Path], device: str) -> None:
    """Let the models of folders translate together with that of a task.

    Raises:
        ConfigError: the models are not translators of the same vocabulary.
    """
    from glassformer.tasks.text_to_text import TextToTextTask

    if not folders:
        return
    members = [load(folder, device=device) for folder in folders]
    translators = [member for member in (task, *members) if isinstance(member, TextToTextTask)]
    if others := [member.name for member in (task, *members) if not isinstance(member, TextToTextTask)]:
        raise ConfigError(f"--ensemble: only for models that translate, not for {others[0]}.\n  Leave it out.")
    translators[0].with_members(translators[1:])


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, nothing elsewhere. Yields the function that advances it."""
    if not sys.stderr.isatty():
        yield no_op
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda n: bar.update(task, advance=n)


def make_warn(first: int, *, quiet: bool) -> Callable[[int, str], None]:
    """Make the function that prints a warning about a line, given its index in a chunk.

    Args:
        first: number of the chunk's first line in the input, counted from 1.
        quiet: print none.
    """

    def warn(index: int, what: str) -> None:
        if not quiet:
            print(f"warning: line {first + index}: {what}", file=sys.stderr)

    return warn


def prepare_translator(
    translator: "TextToTextTask[CorpusExample]",
    options: DecodeConfig,
    ensemble: Sequence[Path],
    device: str,
    *,
    quiet: bool,
) -> None:
    """Read what the options name, so that an error in it is reported before the text is read and a folder is made: the
    glossary, the models of the ensemble, and the translation memory, whose size is printed. What the model must have
    for the options is checked.

    Raises:
        ConfigError: it cannot be used.
    """
    terms_of(options, languages_of(translator))
    join_ensemble(translator, ensemble, device)
    check_options(translator, options)
    memory = memory_of(translator, options)
    if memory and not quiet:
        print(f"Memory: {len(memory):,} texts.", file=sys.stderr)


def translate_lines(
    folder: Path,
    options: DecodeConfig,
    out: TextIO,
    *,
    ensemble: Sequence[Path] = (),
    json: bool,
    quiet: bool,
    device: str,
    threads: int | None,
) -> None:
    """Translate standard input to `out`: `nbest` lines for each line of input."""
    translator = open_translator(folder, device, threads, quiet=quiet)
    prepare_translator(translator, options, ensemble, device, quiet=quiet)
    n_done = 0
    for chunk in input_chunks(MAX_CHUNK_LINES):
        warn = make_warn(n_done + 1, quiet=quiet)
        with progress_bar(f"lines {n_done + 1:,} to {n_done + len(chunk):,}", len(chunk)) as progress:
            shown = no_op if quiet or len(chunk) == 1 else progress
            of_chunk = options.after(n_done) if options.do_sample else options
            texts = translations_of_lines(translator, chunk, warn, options=of_chunk, json=json, progress=shown)
        out.writelines(text + "\n" for text in texts)
        out.flush()
        n_done += len(chunk)


def translations_of_lines(
    translator: "TextToTextTask[CorpusExample]",
    lines: Sequence[str],
    warn: Warn,
    *,
    options: DecodeConfig,
    json: bool,
    progress: Callable[[int], None] = no_op,
) -> list[str]:
    """For each line its translations, `nbest` lines, or a JSON object."""
    results = translator.translate(lines, options, warn=warn, progress=progress)
    for index, nbest in enumerate(results):
        if nbest[0].repeated:
            warn(index, "the translation repeated itself: translated again, without repeated n-grams")
    if json:
        return [json_module.dumps(record_of(nbest), ensure_ascii=False) for nbest in results]
    return ["\n".join(line_of(each, confidence=options.confidence) for each in nbest) for nbest in results]


def line_of(translation: Translation, *, confidence: bool) -> str:
    """A translation. If requested, after ` ||| ` the word alignment in the format of Pharaoh, and the confidence:
    `Hallo Welt ||| 0-0 1-1 ||| 0.93`. A blank line for a blank line."""
    if translation.is_untranslated or not translation.source.strip():
        return translation.text
    parts = [translation.text]
    if translation.alignment is not None:
        parts.append(" ".join(f"{s}-{t}" for s, t in translation.alignment))
    if confidence:
        parts.append(f"{translation.confidence:.2f}")
    return " ||| ".join(parts).rstrip() if len(parts) > 1 else translation.text


def run_lines(
    folder: Path,
    options: DecodeConfig,
    *,
    json: bool,
    quiet: bool,
    device: str,
    threads: int | None,
    tasks: tuple[str, ...] = (),
    pairs: bool = False,
) -> None:
    """Apply a model to standard input: one line of output for each line of input.

    Args:
        tasks: tasks whose models the command accepts; if empty, all.
        pairs: each line that is not blank must have two texts separated by a tab.

    Raises:
        ConfigError: an option that the task of the model does not have.
    """
    from glassformer.tasks.causal_lm import DecoderTask
    from glassformer.tasks.question_answering import QuestionAnswerer, question_of

    task = open_model(folder, device, threads, tasks, precision=options.precision, quiet=quiet)
    task.check_options(options)
    if pairs:
        check_takes_pairs(task)
    samples = (task.with_default_options(options) if isinstance(task, DecoderTask) else options).do_sample
    is_shown = samples and sys.stdout.isatty() and not json
    streamed = task if isinstance(task, DecoderTask) and task.streams and is_shown else None
    n_done = 0
    for chunk in input_chunks(1 if streamed else MAX_CHUNK_LINES):
        warn = make_warn(n_done + 1, quiet=quiet)
        if not n_done and are_names(chunk[0]):
            warn(0, "looks like the names of columns, and is taken for a text. A table is named: FILE.csv --out FOLDER")
        if pairs:
            check_pairs(chunk, n_done + 1)
        if isinstance(task, QuestionAnswerer):
            for index, line in enumerate(chunk, n_done):
                if line.strip():
                    question_of(line, index)  # refuses a line without a context
        of_chunk = options.after(n_done) if samples else options
        if streamed:
            if chunk[0].strip():
                is_begun = False
                for text in streamed.stream(chunk[0], of_chunk, warn=partial(warn, 0)):
                    before, newline, _ = (text if is_begun else text.lstrip("\n")).partition("\n")
                    is_begun |= before != ""
                    sys.stdout.write(before)
                    sys.stdout.flush()
                    if newline:  # one line of output for each line of input
                        break
            sys.stdout.write("\n")
        else:
            outputs = (outputs_of_pairs if pairs else outputs_of_lines)(task, chunk, warn, options=of_chunk, json=json)
            sys.stdout.writelines(output + "\n" for output in outputs)
        sys.stdout.flush()
        n_done += len(chunk)


def outputs_of_lines(
    task: AnyTask, lines: Sequence[str], warn: Warn, *, options: DecodeConfig, json: bool
) -> list[str]:
    """The output of a task for each line, or a JSON object."""
    if json:
        return [json_module.dumps(each, ensure_ascii=False) for each in task.records(lines, options, warn=warn)]
    return task.run(lines, options, warn=warn)


def outputs_of_pairs(
    task: AnyTask, lines: Sequence[str], warn: Warn, *, options: DecodeConfig, json: bool
) -> list[str]:
    """`outputs_of_lines` for lines of two texts. A model of embeddings computes their similarity; a blank line for a
    blank line.

    Raises:
        CorpusError: a line has not two texts.
    """
    from glassformer.tasks.feature_extraction import SentenceEmbedder

    for line in lines:
        if problem := pair_problem(line):
            raise CorpusError(problem)
    if not isinstance(task, SentenceEmbedder):
        return outputs_of_lines(task, lines, warn, options=options, json=json)
    indices = [i for i, line in enumerate(lines) if line.strip()]
    pairs = [(first, second) for first, _, second in (lines[i].partition("\t") for i in indices)]
    outputs = [""] * len(lines)
    for i, similarity in zip(indices, task.similarities(pairs, lambda i, what: warn(indices[i], what)), strict=True):
        outputs[i] = f"{similarity:.4f}"
    if not json:
        return outputs
    records = ({"input": line, "output": output} for line, output in zip(lines, outputs, strict=True))
    return [json_module.dumps(record, ensure_ascii=False) for record in records]


def scores_of_pairs(
    translator: "TextToTextTask[CorpusExample]", pairs: Sequence[Sequence[str]], warn: Warn, *, json: bool
) -> list[str]:
    """The log-probability of the target of each pair given its source, or a JSON object."""
    if translator.tokenizer.target_warning:
        warnings.warn(translator.tokenizer.target_warning, UserWarning, stacklevel=2)
    scores = translator.score([src for src, _ in pairs], [tgt for _, tgt in pairs], warn)
    if not json:
        return [f"{sum(log_probs):.4f}" for log_probs in scores]
    records = (
        {"source": src, "target": tgt, "score": sum(log_probs), "log_probs": log_probs}
        for (src, tgt), log_probs in zip(pairs, scores, strict=True)
    )
    return [json_module.dumps(record, ensure_ascii=False) for record in records]


def check_pairs(lines: list[str], first: int) -> None:
    """Check that each line has two texts separated by a tab; a blank line may have none.

    Args:
        first: number of the first of these lines in the input.

    Raises:
        CorpusError: a line without a tab, or with more than one.
    """
    for number, line in enumerate(lines, first):
        if problem := pair_problem(line):
            raise CorpusError(
                f"standard input:{number}: {problem}.\n"
                f"  The line begins {line[:40]!r}.\n"
                "  Write text TAB text on each line. A model trained on single texts is used by `glassformer run`."
            )


def check_takes_pairs(task: AnyTask) -> None:
    """Check that a model was not trained on single texts.

    Raises:
        ConfigError: it was.
    """
    from glassformer.tasks.classification import LabelTask

    if isinstance(task, LabelTask) and len(task.inputs) == 1:
        raise ConfigError(
            "the model was trained on single texts, not on pairs.\n  Use `glassformer run` with one text on each line."
        )


def pair_problem(line: str) -> str | None:
    """Why a line is not two texts separated by a tab, if it is not; a blank line may have none."""
    if line.strip() and line.count("\t") != 1:
        return f"expected 2 texts separated by a tab, found {line.count(chr(9)) + 1}"
    return None
