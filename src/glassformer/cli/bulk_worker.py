"""A process that computes outputs for `glassformer … --workers`: see `glassformer.bulk.workers.Worker`."""

import json
import signal
import sys
import warnings
from dataclasses import asdict
from typing import Any

from glassformer.bulk.chunks import Process
from glassformer.bulk.workers import Answer
from glassformer.cli import print_warning
from glassformer.cli.jobs import Job
from glassformer.config import JsonObject
from glassformer.errors import UserError


def open_answer() -> Answer:
    """What answers a job, and then the items of chunks."""
    process: Process | None = None

    def answer(value: Any) -> JsonObject:
        nonlocal process
        try:
            if process is not None:
                return asdict(process(value))
            process = Job(**value).open(quiet=True)
        except UserError as error:
            return {"error": str(error), "exit_code": error.exit_code}
        return {}

    return answer


def main() -> None:
    """Answer the lines of standard input, each of which is a JSON value."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end quietly when the process that asks has gone
    warnings.showwarning = print_warning  # type: ignore[assignment]
    out, sys.stdout = sys.stdout, sys.stderr  # nothing else is printed between the answers
    answer = open_answer()
    for line in sys.stdin:
        out.write(json.dumps(answer(json.loads(line))) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
