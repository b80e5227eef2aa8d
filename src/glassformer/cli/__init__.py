"""The command line: one module for each command. No module imports torch before its command is called."""

import io
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Sequence
from inspect import cleandoc

from cyclopts import App, Group, Parameter

from glassformer.devices import INSTALL_TORCH
from glassformer.errors import ColumnsError, UserError
from glassformer.threads import heed_quota
from glassformer.version import __version__

app = App(
    name="glassformer",
    help="Train, run and explain Transformers from your own text.",
    version=__version__,
    version_flags=["--version"],
    help_format="plaintext",
    default_parameter=Parameter(negative_iterable=()),
)
SUMMARIES = {
    Group("Train", sort_key=1): {
        "demo": "Train a small English-French translator on built-in text and try it, in about three minutes.",
        "train": "Train a model on text files, or continue a training run.",
        "update": "Train a translator further on corrections, unless it becomes worse on other text.",
        "distill": "Train a small translator on the translations of larger ones, or of any OpenAI-compatible server.",
    },
    Group("Use", sort_key=2): {
        "run": "Apply a model of any task to each line of standard input.",
        "translate": "Translate each line of standard input, or files.",
        "summarize": "Summarize each line of standard input.",
        "complete": "Continue each line of standard input with a language model.",
        "classify": "Print the class of each line of standard input.",
        "tag": "Print each word of each line of standard input with its tag: word/TAG.",
        "answer": "Answer questions; each line of standard input is QUESTION TAB CONTEXT.",
        "embed": "Print the embedding of each line of standard input as a JSON list of numbers.",
        "similarity": "Print the similarity of two texts; each line of standard input is TEXT TAB TEXT.",
        "fill-mask": "Replace each <mask> in each line of standard input by the most probable word.",
        "correct": "Correct each line of standard input with a translator from wrong to right text.",
        "generate": "The same as `complete`.",
        "score": "Print the log-probability of given translations.",
        "similar": "List the words whose embeddings are nearest to the embedding of a word.",
    },
    Group("Serve", sort_key=3): {
        "serve": "Serve models: a page, and the HTTP APIs of LibreTranslate, OpenAI, Hugging Face and Apertium.",
    },
    Group("Evaluate", sort_key=4): {
        "evaluate": "Compute the metrics of a model on a test set.",
        "calibrate": "Fit the confidence of translations to a dev set.",
        "shortlist": "Learn which tokens a source may be translated to, to translate faster with a large vocabulary.",
        "compare": "Test whether the difference between two models is statistically significant.",
        "doctor": "Find errors in parallel or labeled text, line by line, and repair parallel text.",
        "report": "Write a report of a training run as an HTML page: curves, data, samples, errors.",
        "info": "Print the configuration, size and training metadata of a model folder, or describe this machine.",
    },
    Group("Inspect", sort_key=5): {
        "inspect": "Show attention, predictions by layer and beam search for one text, as an HTML page.",
        "trace": "Print shape and statistics of every tensor computed for one text.",
        "ablate": "Measure the effect of removing each head, sub-layer or layer; prune heads.",
        "worked-example": "Compute attention step by step and print every number.",
    },
    Group("Convert", sort_key=6): {
        "import": "Convert a Hugging Face model folder to a glassformer model folder.",
        "export": "Convert a model folder for transformers, CTranslate2, ONNX Runtime or a browser, or to 8 bits.",
    },
}
PACKAGES = {
    "torch": ("PyTorch", INSTALL_TORCH),
    "jaxtyping": ("jaxtyping", INSTALL_TORCH),
    "sacrebleu": ("sacrebleu", "pip install 'glassformer[eval]'"),
}
"""Modules that some commands need: what they are called, and the command that installs them."""

ALIASES_OF_RUN = (
    "summarize",
    "complete",
    "classify",
    "tag",
    "answer",
    "similarity",
    "embed",
    "fill-mask",
    "correct",
    "generate",
)

COMMANDS = [name for names in SUMMARIES.values() for name in names if name not in ALIASES_OF_RUN]

for group, commands in SUMMARIES.items():
    for command, summary in commands.items():
        function = "import_" if command == "import" else command.replace("-", "_")
        module = "run" if command in ALIASES_OF_RUN else function
        app.command(f"glassformer.cli.{module}:{function}", name=command, help=summary, group=group)


def show_full_description(command: str) -> None:
    """Let the help of a command show the whole description in its docstring, not the summary alone."""
    summary = next(commands[command] for commands in SUMMARIES.values() if command in commands)
    description = cleandoc(app[command].default_command.__doc__ or "").partition("\nArgs:")[0]
    paragraphs = [" ".join(paragraph.split("\n")) for paragraph in description.strip().split("\n\n")]
    app[command].help = "\n\n".join([summary, *paragraphs[1:]])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. A user's mistake is one message on standard error and an exit code.

    Args:
        arguments: the command and its arguments. Default: those of the process.
    """
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end quietly when the reader of a pipe has gone
    reopen_closed_streams()
    write_utf8()
    heed_quota()
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if sorted(arguments) == ["--verbose", "--version"]:
            from glassformer.cli.info import print_versions

            print_versions()
            return
        with warnings.catch_warnings():
            warnings.showwarning = print_warning  # type: ignore[assignment]
            arguments = ["--help" if argument == "--help-all" else argument for argument in arguments]
            if arguments[1:2] in (["--help"], ["-h"]) and arguments[0] in COMMANDS:
                show_full_description(arguments[0])
            try:
                app(arguments)
            finally:  # also after SystemExit, the end of most commands
                sys.stdout.flush()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        if isinstance(error, ColumnsError) and error.keys:
            print(f"  For example: glassformer {shlex.join(arguments)} {error.keys}", file=sys.stderr)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in PACKAGES:
            raise
        package, install = PACKAGES[name]
        command = f"glassformer {arguments[0]}" if arguments else "glassformer"
        print(f"error: `{command}` needs {package}, which is not installed.\n  Install it: {install}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except MemoryError:
        print("error: out of memory.\n  Lower --batch-tokens, or use a smaller --preset.", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"error: {describe_os_error(error)}", file=sys.stderr)
        sys.exit(1)
    except BaseException as error:
        if (signum := getattr(error, "signum", None)) is None:
            raise
        print(error, file=sys.stderr)
        sys.exit(128 + signum)
    finally:
        discard_unwritable_output()


def print_warning(message: Warning | str, category: type[Warning], *location: object) -> None:
    """Print a warning as the commands print theirs, without the location in the source code."""
    print(f"warning: {message}", file=sys.stderr)


def write_utf8() -> None:
    """Write text to pipes and files as it is read: in UTF-8, with lines that end in "\\n". On Windows, and with some
    locales, Python would write it otherwise. PYTHONIOENCODING asks for another encoding."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty() and "PYTHONIOENCODING" not in os.environ:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")


def reopen_closed_streams() -> None:
    """Open the standard streams that the caller closed (`<&-`, `>&-`), so that every use of them is an OSError.

    Python sets a closed stream to None, and the next file that is opened gets its descriptor.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_WRONLY)  # gets the lowest free descriptor, 0; reading from it fails
        sys.stdin = open(0, encoding="utf-8")
    if sys.stdout is None:
        os.open(os.devnull, os.O_RDONLY)  # descriptor 1; writing to it fails
        sys.stdout = open(1, "w", encoding="utf-8")
    if sys.stderr is None:
        os.open(os.devnull, os.O_WRONLY)
        sys.stderr = open(2, "w", encoding="utf-8")


def describe_os_error(error: OSError) -> str:
    """The error message for a failed system call: the file it names, else the standard output.

    Readers and writers of files raise UserError, which names the file; what remains are the standard streams.
    """
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename}: {reason}.\n  Check the path, its permissions and the disk."
    return f"the output cannot be written: {reason}.\n  Check what standard output is connected to and the disk."


def discard_unwritable_output() -> None:
    """Discard output that cannot be written, so that the interpreter does not report it again when it exits."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with open(os.devnull, "w") as null:
                os.dup2(null.fileno(), stream.fileno())
