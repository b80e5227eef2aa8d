"""HTML pages from records: self-contained files that need no network access."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from glassformer.config import JsonObject
from glassformer.inspection.ablation import AblationResult
from glassformer.inspection.arrays import pack
from glassformer.inspection.worked_example import WorkedExample
from glassformer.metrics.registry import metric
from glassformer.tokens.tokenizer import well_formed

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w]+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function (\w+)|const (\w+))", re.MULTILINE)
VENDORED = ("d3", "plot")


@cache
def source(name: str) -> str:
    """Read a file of the folder `page/`."""
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")


def bundle(entry: str) -> str:
    """Bundle a JavaScript module and its imports into one script.

    Each module becomes a function that returns its exports.
    """
    bundled: dict[str, str] = {}

    def add(name: str) -> None:
        if name in bundled:
            return
        text = source(f"{name}.js")
        bundled[name] = ""  # set before the imports are added, so that circular imports terminate
        for match in IMPORT.finditer(text):
            add(match[2])
        exports = [match[1] or match[2] for match in EXPORT.finditer(text)]
        text = IMPORT.sub(lambda m: f"const {{{' '.join(m[1].split())}}} = ${m[2]};\n", text)
        text = EXPORT.sub("", text)
        del bundled[name]
        bundled[name] = f"const ${name} = (() => {{\n{text}\nreturn {{ {', '.join(exports)} }};\n}})();\n"

    add(entry)
    return '"use strict";\n' + "".join(bundled.values())


def page(title: str, record: object, entry: str) -> str:
    """Build an HTML page that displays a record.

    Args:
        entry: JavaScript module of `page/` that renders the record, without its suffix.

    The record is embedded as JSON in which every "<" is escaped. The Content-Security-Policy allows only the scripts of
    the page, identified by their hashes.
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


def inspection_page(record: JsonObject) -> str:
    """Page of `glassformer inspect`."""
    first = next(iter(record["sides"].values()))["text"]
    return page(f"glassformer inspect: {first[:60]}", record, "inspection")


def report_page(record: JsonObject) -> str:
    """Page of `glassformer report`."""
    return page(f"glassformer report: {record['run']}", record, "report")


def profile_page(record: JsonObject) -> str:
    """Page of `glassformer train --profile`."""
    return page(f"glassformer train --profile: {record['run']}", record, "profile")


def ablation_page(baseline: dict[str, float], results: Sequence[AblationResult], kind: str, n_examples: int) -> str:
    """Page of `glassformer ablate --html`."""
    rows = [{**asdict(result.component), "metrics": result.metrics, "change": result.change} for result in results]
    record = {"baseline": baseline, "parts": kind, "examples": n_examples, "losses": rows}
    record["digits"] = {name: metric(name).digits for name in baseline}
    return page("glassformer ablate", record, "ablation")


def worked_page(example: WorkedExample) -> str:
    """Page of `glassformer worked-example --html`."""
    record = asdict(example)
    for step in record["steps"]:
        step["matrices"] = [
            {**matrix, "shape": matrix["values"].shape, "values": numbers(matrix["values"])}
            for matrix in step["matrices"]
        ]
    if p := example.positions:
        tables = {"paper": pack(p.correct), "doubled": pack(p.doubled_exponent)}
        record["positions"] = {**tables, "first": p.first, "second": p.second, "cosines": p.cosines}
    return page(example.title, record, "worked")


def numbers(x: NDArray[np.float64]) -> list[float] | JsonObject:
    """Encode a small matrix as a list of exact values, a large one with `pack`."""
    return x.flatten().tolist() if x.size <= 1000 else pack(x)


def frame(page: str, height: int = 900) -> str:
    """Embed a page in a sandboxed iframe, for notebooks."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {height}px; border: 0"></iframe>'
    )
