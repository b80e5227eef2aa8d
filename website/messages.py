"""The page of messages: what the errors and warnings of the program say, read from its source."""

import ast
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "glassformer"

PARTS = {
    "Training text and other files": ["corpora", "data", "tokens"],
    "Documents, translation memories and catalogues": ["documents"],
    "Training": ["training", "learning", "objectives", "train_config.py"],
    "Monolingual text, distillation and corrections": ["synthetic"],
    "Models and their folders": ["checkpoint.py", "manifest.py", "config.py", "models", "model_config.py", "tasks"],
    "Import, export and other formats": ["interop", "recording", "browser"],
    "Commands": ["cli", "bulk", "pipelines"],
    "Servers": ["serve"],
}
"""Title of a part of the page -> packages and modules. All others have the last part."""

OTHERS = "Computing"
OTHER_ERRORS = {
    *("ValueError", "TypeError", "RuntimeError", "AssertionError", "AttributeError", "OSError", "FileNotFoundError"),
    *("KeyError", "NotImplementedError", "jinja2.TemplateError"),  # for programs
    *("AmbiguousError", "ProgramError", "UnsupportedError"),  # caught by the program itself
}
LETTERS = 15
"""A text with fewer letters is only the frame of a message that is put together elsewhere."""


def template(node: ast.expr) -> str:
    """Text of an expression, with … for what it inserts."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(values):
            return "".join(template(value) for value in values)
        case ast.BinOp(left, ast.Add(), right):
            return template(left) + template(right)
        case _:
            return "…"


def messages(source: str) -> Iterator[str]:
    """The texts of a module that are the first argument of an error of ours, or that begin with "warning:"."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name, text = ast.unparse(node.func), template(node.args[0])
        is_error = name.endswith("Error") and name not in OTHER_ERRORS
        if (is_error or text.startswith("warning:")) and len(re.sub(r"[^a-z]", "", text)) >= LETTERS:
            yield text


def row(text: str) -> str:
    """Row of a table: the problem, and what to do."""
    problem, _, remedy = text.partition("\n")
    return (
        "| "
        + " | ".join(escape(" ".join(each.split()), quote=False).replace("|", r"\|") for each in (problem, remedy))
        + " |"
    )


def messages_page() -> str:
    """The messages of the program by part, as Markdown."""
    titles = {name: title for title, names in PARTS.items() for name in names}
    found: dict[str, set[str]] = {title: set() for title in [*PARTS, OTHERS]}
    for path in SOURCE.rglob("*.py"):
        part = titles.get(path.relative_to(SOURCE).parts[0], OTHERS)
        found[part].update(messages(path.read_text(encoding="utf-8")))
    text = (
        "# Messages\n\nThe errors and warnings of the program, and what to do. … stands for names, numbers and texts of"
        " yours. An error ends a command with the exit code 1, or 2 if an option is wrong; an error of the server is"
        " the answer to a request. [Troubleshooting](troubleshooting.md) says more about some.\n"
    )
    for title, texts in found.items():
        rows = "\n".join(sorted(map(row, texts), key=str.casefold))
        text += f"\n## {title}\n\n| message | what to do |\n|---|---|\n{rows}\n"
    return text
