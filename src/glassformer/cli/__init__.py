"""The command line: one file a command, none of which imports torch before it is called."""

import signal
import sys
from collections.abc import Sequence

from cyclopts import App, Parameter

from glassformer.errors import UserError
from glassformer.version import __version__

app = App(
    name="glassformer",
    help="Train, run, explain and serve Transformers from your own text.",
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
    try:
        app(sys.argv[1:] if arguments is None else arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except MemoryError:
        print("error: out of memory.\n  Lower --batch-tokens, or use a smaller --preset.", file=sys.stderr)
        sys.exit(1)
    except BaseException as problem:
        if (signum := getattr(problem, "signum", None)) is None:
            raise
        print(problem, file=sys.stderr)
        sys.exit(128 + signum)
