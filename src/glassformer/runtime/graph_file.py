"""Graphs as JSON: the file `programs.json` of a model folder."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from glassformer.config import JsonObject
from glassformer.errors import CheckpointError
from glassformer.runtime.graph import OPERATIONS, Graph, Operation, ProgramName, Table
from glassformer.runtime.verify import MAX_OPERATIONS, ProgramError, need, verify

FILE, CONSTANTS_FILE = "programs.json", "programs.safetensors"
VERSION = 1

SPEC = {
    name: {f.name: get_type_hints(operation)[f.name] for f in fields(operation)}
    for name, operation in OPERATIONS.items()
}
"""The legal form of each operation in the file: name -> field -> type."""

MAX_INTEGER = 1 << 31


def config_hash(config: JsonObject) -> str:
    """What a graph is made of: the SHA-256 of family and configuration of its model."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def to_json(graph: Graph, config: JsonObject) -> str:
    """The text of the file.

    Args:
        config: family and configuration of the model.
    """
    rows = {table.name: {"of": table.of, "rows": table.rows} for table in graph.tables.values() if table.rows}
    programs = {name: lines_of(program) for name, program in graph.programs.items()}
    record = {"version": VERSION, "config": config_hash(config), "weights": graph.weights, "rows": rows}
    # One line for each operation, so that a person can read it.
    lines = json.dumps(record, ensure_ascii=False)[:-1]
    parts = [
        f'  "{name}": [\n' + ",\n".join(f"    {json.dumps(line, ensure_ascii=False)}" for line in program) + "\n  ]"
        for name, program in programs.items()
    ]
    return lines + ', "programs": {\n' + ",\n".join(parts) + "\n}}\n"


def lines_of(program: Sequence[Operation]) -> list[JsonObject]:
    """The operations of a program as JSON objects. Operations are named by their number in the program."""
    numbers = {operation: i for i, operation in enumerate(program)}

    def value_of(value: object) -> object:
        return numbers[value] if isinstance(value, Operation) else value.name if isinstance(value, Table) else value

    return [
        {"op": type(operation).__name__.lower()}
        | {f.name: value_of(getattr(operation, f.name)) for f in fields(operation)}
        for operation in program
    ]


def from_json(record: JsonObject, config: JsonObject, constants: Mapping[str, NDArray[np.float32]]) -> Graph:
    """The verified graph of a file.

    Args:
        config: family and configuration of the model.
        constants: the tables of `CONSTANTS_FILE`.

    Raises:
        CheckpointError: a newer version, a graph of another configuration, or one that must not be executed.
    """
    if (version := record.get("version")) != VERSION:
        raise CheckpointError(
            f"{FILE}: version {version!r}; this glassformer reads version {VERSION}.\n"
            "  Install the version of glassformer that wrote it, or remove this file and its entry in manifest.json."
        )
    if record.get("config") != config_hash(config):
        raise CheckpointError(f"{FILE}: of another configuration than config.json.\n  Copy the folder again.")
    try:
        graph = parse(record, constants)
        verify(graph)
    except ProgramError as error:
        raise CheckpointError(
            f"{FILE}: must not be executed: {error}.\n  Copy the folder again, from a source that you trust."
        ) from None
    return graph


def parse(record: JsonObject, constants: Mapping[str, NDArray[np.float32]]) -> Graph:
    """The graph of a file. Each field has the type of the spec; results are used after they were computed."""
    need(set(record) == {"version", "config", "weights", "rows", "programs"}, "the fields of the file")
    programs = record["programs"]
    need(all(isinstance(record[name], dict) for name in ("weights", "rows", "programs")), "the types of the fields")
    weights = {name: integers_of(shape, f"the shape of {name!r}") for name, shape in record["weights"].items()}
    tables = {name: Table(name, shape) for name, shape in weights.items()}
    tables |= {name: Table(name, array.shape) for name, array in constants.items()}
    for name, entry in record["rows"].items():
        need(isinstance(entry, dict) and set(entry) == {"of", "rows"} and name not in tables, f"the rows {name!r}")
        of, rows = entry["of"], integers_of(entry["rows"], f"the rows {name!r}")
        need(isinstance(of, str) and of in weights, f"the rows {name!r}")
        tables[name] = Table(name, (len(rows), *weights[of][1:]), of, rows)
    parsed: dict[ProgramName, list[Operation]] = {}
    for name, lines in programs.items():
        need(name in get_args(ProgramName), f"a program {name!r}")
        need(isinstance(lines, list) and 0 < len(lines) <= MAX_OPERATIONS, f"the number of operations of {name!r}")
        operations = parsed.setdefault(name, [])
        for i, line in enumerate(lines):
            need(isinstance(line, dict) and line.get("op") in SPEC, f"{name} {i}: an unknown operation")
            spec = SPEC[line["op"]]
            need(set(line) == {"op", *spec}, f"{name} {i}: the fields of {line['op']!r}")
            values = {
                field: value_of(line[field], kind, operations, tables, f"{name} {i}: {line['op']}.{field}")
                for field, kind in spec.items()
            }
            operations.append(OPERATIONS[line["op"]](**values))
    return Graph(parsed, weights, constants)


def integers_of(value: object, what: str) -> tuple[int, ...]:
    """Integers of the file: a shape, or rows."""
    need(isinstance(value, list) and len(value) > 0, what)
    need(all(type(x) is int and 0 <= x < MAX_INTEGER for x in value), what)  # type: ignore[attr-defined]
    return tuple(value)  # type: ignore[arg-type]


def value_of(
    value: object, kind: Any, operations: Sequence[Operation], tables: Mapping[str, Table], what: str
) -> object:
    """The value of a field."""
    if kind is Operation:
        need(type(value) is int and 0 <= value < len(operations), f"{what} is not an earlier operation")
        return operations[value]  # type: ignore[call-overload]
    if kind is Table or kind == (Table | None):
        if value is None and kind is not Table:
            return None
        need(isinstance(value, str) and value in tables, f"{what} is not a table")
        return tables[value]  # type: ignore[index]
    if kind is int:
        need(type(value) is int and 0 <= value < MAX_INTEGER, f"{what} is {value!r}")
    elif kind is float:
        need(type(value) in (int, float) and abs(value) < 1e30, f"{what} is {value!r}")  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    else:
        assert get_origin(kind) is Literal
        need(isinstance(value, str) and value in get_args(kind), f"{what} is {value!r}")
    return value
