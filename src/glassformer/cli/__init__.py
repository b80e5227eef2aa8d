"""The command line: one file a command, none of which imports torch before it is called."""

import os
import signal
import sys
from collections.abc import Sequence

from cyclopts import App, Parameter

from glassformer.errors import UserError
from glassformer.version import __version__

app = App(
    name="glassformer",
    help="Train, run and explain Transformers from your own text.",
    version=__version__,
    version_flags=["--version"],
    default_parameter=Parameter(negative=()),
)
COMMANDS = {
    "demo": "Train a small English-French translator on built-in text, and try it. Three minutes.",
    "train": "Train on your text files, or go on with a run.",
    "run": "Lines in, lines out, by whatever a model was trained for.",
    "translate": "Translate standard input, line by line, to standard output.",
    "evaluate": "Figures of a model on text with the right answers.",
    "compare": "Whether one model is better than another, or by chance.",
    "similar": "The words whose vectors stand nearest to a word's.",
    "score": "How probable a model finds given translations.",
    "info": "What is in a model folder.",
    "inspect": "See what a model does with a text: attention, predictions, search, as a page.",
    "trace": "Shapes and figures of every tensor that a model makes of a text.",
    "ablate": "What is lost when heads, layers or sub-layers are switched off; prune heads.",
    "report": "How a run went, as a page: curves, data, samples, best and worst.",
    "worked-example": "Attention worked out step by step, every number shown.",
    "doctor": "Find what is wrong with a parallel corpus, line by line, and mend it.",
    "import": "Make a model folder of one of Hugging Face's.",
    "export": "Write a model as a folder that Hugging Face's transformers loads.",
}
for command, summary in COMMANDS.items():
    function = f"{command}_" if command == "import" else command.replace("-", "_")
    app.command(f"glassformer.cli.{function}:{function}", name=command, help=summary)
for alias in ("summarize", "generate", "complete", "classify", "tag", "answer", "similarity", "fill-mask", "correct"):
    app.command(f"glassformer.cli.run:{alias}", name=alias, help="`run`, by the name of the task.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command (default: the one typed); a user's mistake is one message on standard error and an exit code."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has gone ends us quietly
    reopen_closed_streams()
    try:
        try:
            app(sys.argv[1:] if arguments is None else arguments)
        except SystemExit:  # the end of most commands
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except MemoryError:
        print("error: out of memory.\n  Lower --batch-tokens, or use a smaller --preset.", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"error: {describe_os_error(error)}", file=sys.stderr)
        sys.exit(1)
    except BaseException as problem:
        if (signum := getattr(problem, "signum", None)) is None:
            raise
        print(problem, file=sys.stderr)
        sys.exit(128 + signum)
    finally:
        discard_unwritable_output()


def reopen_closed_streams() -> None:
    """Open the standard streams that the caller closed (`<&-`, `>&-`) so that every use of them is an OSError.

    Python sets a closed stream to None, and the next file that is opened takes its descriptor.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_WRONLY)  # takes the lowest free descriptor, 0; reading from it fails
        sys.stdin = open(0, encoding="utf-8")  # type: ignore[unreachable]
    if sys.stdout is None:
        os.open(os.devnull, os.O_RDONLY)  # descriptor 1; writing to it fails
        sys.stdout = open(1, "w", encoding="utf-8")  # type: ignore[unreachable]
    if sys.stderr is None:
        os.open(os.devnull, os.O_WRONLY)
        sys.stderr = open(2, "w", encoding="utf-8")  # type: ignore[unreachable]


def describe_os_error(error: OSError) -> str:
    """What failed, in words for the user: the file that the error names, else the output.

    Files that are read or written are named by their readers and writers; what is left are the standard streams.
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
