"""A process that computes outputs for `glassformer … --workers`: see `glassformer.bulk.workers.Worker`."""

import json
import sys
from dataclasses import asdict

from glassformer.cli import print_warning
from glassformer.cli.jobs import Job
from glassformer.errors import UserError


def main() -> None:
    """Answer the lines of standard input: first the job, then lists of items."""
    import warnings

    warnings.showwarning = print_warning  # type: ignore[assignment]
    answers, sys.stdout = sys.stdout, sys.stderr  # nothing else is printed between the answers
    process = None
    for line in sys.stdin:
        value = json.loads(line)
        try:
            if process is None:
                process = Job(**value).open(quiet=True)
                answer = {}
            else:
                answer = asdict(process(value))
        except UserError as error:
            answer = {"error": str(error), "exit_code": error.exit_code}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
