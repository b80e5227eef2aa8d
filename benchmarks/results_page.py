"""Writes the tables of docs/results.md, docs/tutorial.md and README.md, and pictures, from benchmarks/results/*.json.

A table is between the comments `<!-- results: NAME -->` and `<!-- end -->`; benchmarks.results_tables says what NAME
has. All other text is written by hand. The tests check that the tables are those of the files.

usage: python -m benchmarks.results_page
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.bars import bars
from benchmarks.machine import RESULTS, load

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "docs" / "results.md", ROOT / "docs" / "tutorial.md", ROOT / "README.md")
PROCESSORS = {
    "AMD EPYC, family 25, model 1": "AMD EPYC (Zen 3)",
    "AMD EPYC, family 25, model 17": "AMD EPYC (Zen 4)",
    "AMD EPYC, family 26, model 2": "AMD EPYC (Zen 5)",
}
MARKED = re.compile(r"(<!-- results: ([\w -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
NUMBER = re.compile(r"([-+]?\d[\d,.]*(e-\d+)?( ?(%|x|s|ms|MB|MiB|GiB))?)?")

Row = list[object]
Rows = Callable[[dict], list[Row]]


class Table(NamedTuple):
    """A table of results.

    Args:
        columns: their titles; the first has the labels of the rows.
        rows: name of a file of results -> the rows of one of its records. No rows: the record is left out.
        versions: packages whose versions are given.
        command: command for all rows, which then have columns for what differs. Default: those of the records.
        note: whether the note of the record is printed.
    """

    columns: tuple[str, ...]
    rows: dict[str, Rows]
    versions: tuple[str, ...] = ("torch",)
    command: str = ""
    note: bool = False


def name_of(processor: str) -> str:
    """Short name of the processor or GPU of a record."""
    return PROCESSORS.get(processor, processor)


def cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def markdown(columns: tuple[str, ...], rows: list[Row]) -> str:
    """A table in Markdown. Columns of numbers are aligned on the right."""
    cells = [[cell(value) for value in row] for row in rows]
    are_numbers = [all(map(NUMBER.fullmatch, column)) for column in zip(*cells, strict=True)]
    rule = ["---:" if numbers else "---" for numbers in are_numbers]
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, rule, *cells))


def origin(table: Table, processor: str, records: list[dict]) -> str:
    """Processor, versions, commands and commits of the records of a table."""
    first = records[0]
    name, versions = name_of(processor), {**first["versions"], **first.get("peers", {})}
    machine = f"One {name}" if "device" in first else f"{first['cores']} cores of an {name}"
    machine = ", ".join(
        [machine, *(f"{package} {versions[package]}" for package in table.versions if package in versions)]
    )
    commands = dict.fromkeys(f"`{r['command']}` at commit {r['commit']}, {r['date']}" for r in records)
    note = f" {first['note']}" if table.note and "note" in first else ""
    return f"{'; '.join([machine, *([f'`{table.command}`'] if table.command else commands)])}.{note}"


def render(table: Table) -> str:
    """The rows of each processor, with their origin."""
    by_processor: dict[str, list[dict]] = {}
    rows: dict[str, list[Row]] = {}
    for name, rows_of in table.rows.items():
        for processor, record in load(name).items():
            if some := rows_of(record):
                by_processor.setdefault(processor, []).append(record)
                rows.setdefault(processor, []).extend(some)
    return "\n\n".join(
        f"{origin(table, processor, records)}\n\n{markdown(table.columns, rows[processor])}"
        for processor, records in by_processor.items()
    )


def contents(text: str) -> str:
    """List of links to the headings of a page. Anchors are those of GitHub."""
    lines = []
    for level, title in re.findall(r"^(##|###) (.*)$", text, flags=re.MULTILINE):
        anchor = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        link = f"[{title}](#{anchor})"
        lines.append(f"- {link}" if level == "##" else f"  - {link}")
    return "\n".join(lines)


def measured() -> str:
    """The table of README.md: a row for each processor with a result."""
    from benchmarks.results_tables import README_ROWS

    rows: list[Row] = [
        [what, name_of(processor), text]
        for name, what, result in README_ROWS
        for processor, record in load(name).items()
        if (text := result(record))
    ]
    return markdown(("what", "processor", "result"), rows)


def presets() -> str:
    """The table of docs/tutorial.md: our rates of training."""
    records = load("train_speed")
    rate = lambda rates: max(rates[f"glassformer {precision}"] for precision in ("bf16", "fp32"))
    sizes = next(iter(records.values()))["target_tokens_per_s"]
    rows: list[Row] = [
        [f"`{size}`", *(rate(record["target_tokens_per_s"][size]) for record in records.values())] for size in sizes
    ]
    return markdown(("preset", *map(name_of, records)), rows)


def update(text: str) -> str:
    """A page with the tables that the files of results have now."""
    from benchmarks.results_tables import TABLES

    def body(name: str) -> str:
        if name == "contents":
            return contents(text)
        return {"measured": measured, "presets": presets}.get(name, lambda: render(TABLES[name]))()

    return MARKED.sub(lambda match: f"{match[1]}\n{body(match[2])}\n\n{match[3]}", text)


def pictures() -> dict[str, str]:
    """File names and contents of the pictures of speeds. A processor, or a model, is a column."""
    from benchmarks.results_tables import SETTINGS, SIZES, product, train_speed

    training: dict[str, dict[str, dict[str, float]]] = {}
    for processor, record in load("train_speed").items():
        *systems, _ = train_speed(record)
        rates = {size: {str(name): found[i] for name, *found in systems} for i, size in enumerate(SIZES)}
        training[name_of(processor)] = {f"{size}: target tokens/s": by_system for size, by_system in rates.items()}
    translation: dict[str, dict[str, dict[str, float]]] = {}
    for processor, record in load("translate_speed").items():
        for model, title in (("base", "base"), ("trained", "tiny")):
            rows = product(f"{model} avx512")(record)
            if len(rows) == len(SETTINGS):
                translation[f"{title}, {name_of(processor)}"] = {
                    f"{setting}: tokens/s": {"glassformer": own, "CTranslate2": other}
                    for setting, own, other, _ in rows
                }
    return {"train_speed.svg": bars(training), "translate_speed.svg": bars(translation)}


if __name__ == "__main__":
    for name, content in pictures().items():
        (RESULTS / name).write_text(content, encoding="utf-8")
    for path in PAGES:
        path.write_text(update(path.read_text(encoding="utf-8")), encoding="utf-8")
