"""What is public (docs/stability.md) is what tests/public.json lists.

`python -m tests.test_public` writes the file; a removal is a breaking change, and needs a line in CHANGELOG.md.
"""

import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

LIST = Path(__file__).with_name("public.json")


def options(command: str) -> list[str]:
    """Names of the options of a command."""
    from glassformer.cli import app

    arguments = app[command].assemble_argument_collection()
    return sorted({name for argument in arguments for name in argument.names if name.startswith("--")})


def public() -> dict[str, object]:
    """Names, commands, options and HTTP paths of this version."""
    import glassformer
    from glassformer import errors
    from glassformer.cli import SUMMARIES
    from glassformer.pipelines import PIPELINES
    from glassformer.tasks.registry import TASKS

    return {
        "names": sorted(glassformer.__all__),
        "errors": sorted(name for name, value in vars(errors).items() if isinstance(value, type)),
        "pipelines": sorted(PIPELINES),
        "tasks": sorted(TASKS),
        "commands": {name: options(name) for commands in SUMMARIES.values() for name in commands},
        "paths": paths(),
    }


def paths() -> list[str]:
    """Methods and paths of the server."""
    from glassformer.serve import apertium, documents, huggingface, libretranslate, openai

    routers = [module.router(MagicMock()) for module in (libretranslate, documents, openai, huggingface, apertium)]
    return sorted(f"{method} {route.path}" for router in routers for route in router.routes for method in route.methods)


def test_what_is_public_is_listed():
    program = "import json, tests.test_public as t; print(json.dumps(t.public()))"
    done = subprocess.run([sys.executable, "-c", program, "--help-all"], capture_output=True, check=True)
    assert json.loads(done.stdout) == json.loads(LIST.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.argv.append("--help-all")
    LIST.write_text(json.dumps(public(), indent=1) + "\n", encoding="utf-8")
