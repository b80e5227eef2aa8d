"""HTML pages from records: self-contained files that need no network access."""

import html
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from glassformer.config import JsonObject
from glassformer.inspection.arrays import pack
from glassformer.inspection.bundle import bundle, hash_of, source
from glassformer.inspection.worked_example import WorkedExample
from glassformer.metrics.registry import metric
from glassformer.tokens.tokenizer import well_formed

if TYPE_CHECKING:  # the server writes pages, and removes no parts of models
    from glassformer.inspection.ablation import AblationResult

VENDORED = ("d3", "plot")


def page(title: str, record: object, entry: str) -> str:
    """Build an HTML page that displays a record.

    Args:
        entry: JavaScript module of `page/` that renders the record, without its suffix.

    The record is embedded as JSON in which every "<" is escaped. The Content-Security-Policy allows only the scripts of
    the page, identified by their hashes.
    """
    scripts = scripts_of(entry)
    licences = "".join(f"<!--\n{name}\n{source(f'vendor/{name}.LICENSE')}-->\n" for name in VENDORED)
    parts = {
        "policy": policy_of(entry),
        "title": html.escape(well_formed(title)),
        "style": source("style.css"),
        "record": json.dumps(record, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        "scripts": licences + "\n".join(f"<script>{text}</script>" for text in scripts),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], source("page.html"))


def scripts_of(entry: str) -> list[str]:
    """The scripts of a page."""
    return [*(source(f"vendor/{name}.min.js") for name in VENDORED), bundle(entry)]


@cache
def policy_of(entry: str) -> str:
    """The Content-Security-Policy of a page."""
    return "; ".join(
        [
            "default-src 'none'",
            "script-src " + " ".join(map(hash_of, scripts_of(entry))),
            "style-src 'unsafe-inline'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


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


def ablation_page(baseline: dict[str, float], results: "Sequence[AblationResult]", kind: str, n_examples: int) -> str:
    """Page of `glassformer ablate --html`."""
    rows = [{**asdict(result.component), "metrics": result.metrics, "change": result.change} for result in results]
    record = {"baseline": baseline, "parts": kind, "examples": n_examples, "losses": rows}
    record["digits"] = {name: metric(name).digits for name in baseline}
    record["names"] = {name: metric(name).name for name in baseline}
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
