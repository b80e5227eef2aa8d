"""Files named on the command line: the two sides of a corpus, and output files."""

import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from glassformer.cli import app
from glassformer.config import JsonObject, nearest_name
from glassformer.corpora.lines import STDIN, refuse_streams
from glassformer.corpora.read_options import DETECT, ReadOptions
from glassformer.corpora.table_texts import SUFFIXES, is_table
from glassformer.errors import ConfigError, UserError

if TYPE_CHECKING:
    from glassformer.tasks.base import AnyTask

Sides = tuple[tuple[Path, ...], tuple[Path, ...]]


def corpus_sides(given: JsonObject, options: ReadOptions = DETECT) -> JsonObject:
    """Source files and target files of training text and dev set, of which only the sources may be given.

    Args:
        given: options of a training, as given on the command line, in the environment and in a file.
        options: how the files are read.

    Returns:
        The options src, tgt, dev_src and dev_tgt that are found.

    Raises:
        ConfigError: the task is not given and cannot be inferred, or source and target cannot be told apart.
    """
    from glassformer.corpora.bilingual import expanded
    from glassformer.corpora.detect import find_task

    task = given.get("task") or ("translation" if given.get("tgt") else None)
    sides: JsonObject = {}
    for src, tgt in (("src", "tgt"), ("dev_src", "dev_tgt")):
        if not given.get(src) or given.get(tgt):
            continue
        refuse_streams(given[src], "training reads its text several times")
        files = expanded(given[src])
        if task is None and (src == "src" or len(files) > 1):  # one dev file is of the task of the --config file
            task = find_task(files, options)
        if has_two_files(task, files, options):
            or_options = f"or {option_of(src)} FILE … {option_of(tgt)} FILE …, "
            sides[src], sides[tgt] = pair_sides(files, options, or_options=or_options)
        else:
            sides[src] = files
    return sides


def has_two_files(task: str | None, files: Sequence[Path], options: ReadOptions) -> bool:
    """Whether source and target of a task may be in two files: for translation, and for summarization if the files are
    plain text."""
    from glassformer.corpora.corpus import detect_format

    if task != "summarization":
        return task == "translation"
    return not options.keys and all((options.format or detect_format(path)) == "lines" for path in files)


def option_of(name: str) -> str:
    """The option on the command line for a field of a config class."""
    return f"--{name.replace('_', '-')}"


def pair_sides(files: Sequence[Path], options: ReadOptions = DETECT, *, or_options: str = "") -> Sides:
    """The two sides of parallel text: two plain text files, or any number of files of pairs or folders of these.

    Args:
        options: how the files are read. With keys, a file of any name is a file of pairs, and so are two of them if
            their lines have tabs.
        or_options: options of the command that name the sides, for the message.

    Raises:
        ConfigError: source and target cannot be told apart.
    """
    from glassformer.corpora.bilingual import expanded
    from glassformer.corpora.corpus import detect_format, n_tabs
    from glassformer.corpora.pair_formats import PAIR_FORMATS, format_of

    files = expanded(tuple(files))
    detect = format_of if len(files) == 2 else detect_format

    def has_both_sides(path: Path) -> bool:
        is_named_table = bool(options.keys) and (len(files) != 2 or (options.format is None and n_tabs(path) > 0))
        return is_named_table or PAIR_FORMATS[options.format or detect(path)].has_both_sides

    if all(map(has_both_sides, files)):
        return tuple(files), ()
    if len(files) == 2:
        return (files[0],), (files[1],)
    if len(files) == 1 and format_of(files[0]) == "catalogue":
        raise ConfigError(
            f"{files[0]}: a catalogue of one language.\n  Give that of the other language as well: SOURCE TARGET."
        )
    count = "one plain text file" if len(files) == 1 else f"{len(files)} plain text files"
    raise ConfigError(
        f"{count}: which is the source, which the target?\n"
        f"  Give two files, {or_options}or TSV or JSONL files of pairs."
    )


def check_given_once(files: Sequence[Path], src: Sequence[Path], tgt: Sequence[Path]) -> None:
    """Check that text is not given both without an option and by options, which would have no effect.

    Raises:
        ConfigError: it is.
    """
    option = "--src" if src else "--tgt" if tgt else ""
    if files and option:
        raise ConfigError(
            f"{option}: text is also given without an option: {files[0]}.\n"
            "  Give all of it by options: --src FILE … --tgt FILE …"
        )


def evaluation_sides(task: "AnyTask", files: Sequence[Path], ref: Path | None, options: ReadOptions) -> Sides:
    """Source files and reference files of a test set; the latter for tasks that `has_two_files`.

    Args:
        files: the test set, or its sources.
        ref: references of the sources.

    Raises:
        ConfigError: the task has no reference files, or source and target cannot be told apart.
    """
    if not has_two_files(task.name, files, options):
        if ref:
            raise ConfigError(
                f"--ref: for translations, and summaries of plain text; not for {task.name} of {files[0]}.\n"
                "  Leave it out."
            )
        return tuple(files), ()
    return (tuple(files), (ref,)) if ref else pair_sides(files, options)


def check_no_options(paths: Iterable[Path | None], command: str) -> None:
    """Check that no file is a misspelled option. A command whose files may be `-` gets options as files too.

    Raises:
        ConfigError: a name begins with a hyphen.
    """
    for path in paths:
        if path is not None and path != STDIN and str(path).startswith("-"):
            names = {name for argument in app[command].assemble_argument_collection() for name in argument.names}
            nearest = nearest_name(str(path).partition("=")[0], sorted(names))
            raise ConfigError(
                f"unknown option: {path}.{f' Did you mean {nearest}?' if nearest else ''}\n"
                f"  `glassformer {command} --help-all` lists all options. A file of this name: ./{path}"
            )


def refuse_texts(texts: Sequence[str], command: str, model: Path) -> None:
    """Check that a command that reads standard input is not given texts, or files without a folder for the outputs.

    Raises:
        ConfigError: with the command that reads them.
    """
    if texts:
        folder, text = shlex.quote(str(model)), shlex.quote(texts[0])
        if Path(texts[0]).exists():
            usage = f"glassformer {command} {folder} {text} --out FOLDER"
            if Path(texts[0]).is_file() and not is_table(Path(texts[0])):
                usage = f"glassformer {command} {folder} < {text}, or {usage}"
        else:
            usage = f"echo {text} | glassformer {command} {folder}"
        raise ConfigError(f"{texts[0]}: {command} reads standard input, a line at a time.\n  Use: {usage}")


def check_tables(files: Sequence[Path], keys: Sequence[str], *, json: bool) -> None:
    """Check that options of tables have an effect, and that those of lines are not given for a table.

    Raises:
        ConfigError: there is no table, or --json is given for one.
    """
    tables = [path for path in files if is_table(path)]
    if keys and not tables:
        raise ConfigError(f"--keys: for tables ({', '.join(SUFFIXES)}), and {files[0]} is none.\n  Leave it out.")
    if json and tables:
        raise ConfigError(f"--json: {tables[0]} is a table, and gets its outputs as columns.\n  Leave it out.")


def refuse_without_files(command: str, model: Path, **options: object) -> None:
    """Check that options that have an effect on files only are not given.

    Args:
        options: values of the options.

    Raises:
        ConfigError: one is.
    """
    for name, value in options.items():
        if value:
            raise ConfigError(
                f"--{name}: for files, and none is named.\n"
                f"  Name them: glassformer {command} {shlex.quote(str(model))} FILE … --out FOLDER"
            )


def check_exist(files: Sequence[Path]) -> None:
    """Check that files exist, before the work begins.

    Raises:
        ConfigError: one does not.
    """
    for path in files:
        if not path.exists():
            raise ConfigError(f"{path}: no such file.\n  Check the path and the current folder.")


def check_folder(out: Path) -> Path:
    """Check that the folder of the outputs can be one.

    Raises:
        ConfigError: it is a file.
    """
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out}: is a file.\n  Name a folder.")
    return out


def check_new(path: Path | None, force: bool) -> None:
    """Check that an output file can be created.

    Raises:
        ConfigError: the file exists and may not be overwritten, or its folder does not exist.
    """
    if path and not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: there is no folder {path.parent}.\n  Create it, or name another file.")
    if path and path.exists() and not force:
        raise ConfigError(f"{path} exists.\n  Name another file, or overwrite it with --force.")


def check_writable(path: Path | None) -> None:
    """Check that an output file can be written, before the work whose result it will hold.

    Raises:
        UserError: the path is a folder, its folder does not exist, or the file system or permissions forbid it.
    """
    if path is None:
        return
    if path.is_dir():
        raise UserError(f"{path}: is a folder.\n  Name a file in it.")
    if not path.absolute().parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}.\n  Create it, or name another file.")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise UserError(f"{path}: cannot be written.\n  Name a file in a folder that can be written to.")


def write_page(path: Path, page: str) -> None:
    """Write an HTML page and print its path and size.

    Raises:
        UserError: the path cannot be written.
    """
    try:
        path.write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}.\n  Name a file in a folder that can be written to.") from None
    print(f"-> {path} ({path.stat().st_size / 1e6:.1f} MB)", file=sys.stderr)
