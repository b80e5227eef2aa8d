"""Records as pages: one file each, which opens from disk and asks nothing of any network."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

from glassformer.inspection.ablation import AblationResult
from glassformer.inspection.arrays import pack
from glassformer.inspection.worked_example import Worked
from glassformer.tokens.tokenizer import well_formed

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w]+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function (\w+)|const (\w+))", re.MULTILINE)
VENDORED = ("d3", "plot")


@cache
def source(name: str) -> str:
    """A file of the page."""
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")


def bundle(entry: str) -> str:
    """A module and all that it imports as one script: each a function's body that gives what it exports."""
    done: dict[str, str] = {}

    def add(name: str) -> None:
        if name in done:
            return
        text = source(f"{name}.js")
        done[name] = ""  # before what it imports: a circle would be endless
        for match in IMPORT.finditer(text):
            add(match[2])
        exports = [match[1] or match[2] for match in EXPORT.finditer(text)]
        text = IMPORT.sub(lambda m: f"const {{{' '.join(m[1].split())}}} = ${m[2]};\n", text)
        text = EXPORT.sub("", text)
        del done[name]
        done[name] = f"const ${name} = (() => {{\n{text}\nreturn {{ {', '.join(exports)} }};\n}})();\n"

    add(entry)
    return '"use strict";\n' + "".join(done.values())


def page(title: str, record: Any, entry: str) -> str:
    """A page that draws a record.

    Args:
        entry: the module that draws, a file of `page/` without its ending.

    The record stands in the page as JSON in which no "<" is left, and only scripts whose hashes its policy names run.
    """
    scripts = [*(source(f"vendor/{name}.min.js") for name in VENDORED), bundle(entry)]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    policy = "; ".join(
        [
            "default-src 'none'",
            "script-src " + " ".join(f"'sha256-{value}'" for value in hashes),
            "style-src 'unsafe-inline'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    licences = "".join(f"<!--\n{name}\n{source(f'vendor/{name}.LICENSE')}-->\n" for name in VENDORED)
    parts = {
        "policy": policy,
        "title": html.escape(well_formed(title)),
        "style": source("style.css"),
        "record": json.dumps(record, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        "scripts": licences + "\n".join(f"<script>{text}</script>" for text in scripts),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], source("page.html"))


def inspection_page(record: dict[str, Any]) -> str:
    """What `glassformer inspect` writes."""
    first = next(iter(record["sides"].values()))["text"]
    return page(f"glassformer inspect: {first[:60]}", record, "inspection")


def report_page(record: dict[str, Any]) -> str:
    """What `glassformer report` writes."""
    return page(f"glassformer report: {record['run']}", record, "report")


def ablation_page(whole: dict[str, float], losses: Sequence[AblationResult], parts: str, n_examples: int) -> str:
    """What `glassformer ablate --html` writes."""
    rows = [{**asdict(loss.part), "metrics": loss.metrics, "change": loss.change} for loss in losses]
    record = {"whole": whole, "parts": parts, "examples": n_examples, "losses": rows}
    return page("glassformer ablate", record, "ablation")


def worked_page(example: Worked) -> str:
    """What `glassformer worked-example --html` writes."""
    record = asdict(example)
    for step in record["steps"]:
        step["matrices"] = [
            {**shown, "shape": shown["values"].shape, "values": numbers(shown["values"])} for shown in step["matrices"]
        ]
    if example.positions:
        record["positions"] |= {name: pack(getattr(example.positions, name)) for name in ("paper", "doubled")}
    return page(example.title, record, "worked")


def numbers(x: Any) -> Any:
    """A small matrix to the last digit, a large one packed."""
    return x.flatten().tolist() if x.size <= 1000 else pack(x)


def frame(page: str, height: int = 900) -> str:
    """A page within a page, as notebooks show it."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {height}px; border: 0"></iframe>'
    )
