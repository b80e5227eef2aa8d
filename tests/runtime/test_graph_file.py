"""Graphs in files: what is written is read again, and what must not be executed is refused, field by field."""

import copy
import json

import numpy as np
import pytest

from glassformer.errors import CheckpointError
from glassformer.kernels.library import load
from glassformer.models.bert import Bert, BertConfig
from glassformer.models.families import family_of
from glassformer.recording.graphs import graph_of
from glassformer.runtime.graph import Add, Gather, Graph, Input, Linear, Table
from glassformer.runtime.graph_file import SPEC, from_json, to_json
from glassformer.runtime.model import RuntimeModel, check_sizes
from glassformer.runtime.verify import MAX_OPERATIONS, MAX_WIDTH, ProgramError, n_positions, verify
from tests.runtime.fuzz import mutations
from tests.runtime.models import MODELS, model_of

CONFIG = {"model_type": "glassformer-transformer", "d_model": 44}


def bert(head="mlm", **config):
    sizes = {"vocab_size": 37, "d_model": 48, "n_heads": 3, "d_ff": 101, "n_layers": 2, "max_len": 23}
    return Bert(BertConfig(**sizes, head=head, **config))


GRAPHS = {name: model_of(name) for name in MODELS} | {
    "BERT": bert(n_labels=2, position_offset=2),
    "BERT, classes": bert("sequence", n_labels=3, pooler_activation="relu"),
}


def graph(name):
    model = GRAPHS[name]
    return graph_of(family_of(model), model.config)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_is_read_as_it_was_written(name):
    text = to_json(graph(name), CONFIG)
    read = from_json(json.loads(text), CONFIG, graph(name).constants)
    assert to_json(read, CONFIG) == text
    assert [type(x) for x in read.operations()] == [type(x) for x in graph(name).operations()]


def record_of(name):
    return json.loads(to_json(graph(name), CONFIG))


def refused(record, name, match="must not be executed"):
    with pytest.raises(CheckpointError, match=match):
        from_json(record, CONFIG, graph(name).constants)


OPERATIONS = {"rotate": "Llama", "multiply": "Llama", "input": "BERT", "scale": "transformer", "activate": "BERT"}
"""Operation -> a model that has it. Default: T5."""


@pytest.mark.parametrize(("op", "field"), [(op, field) for op, spec in SPEC.items() for field in spec])
@pytest.mark.parametrize(
    "value", ["missing", -1, 10**9, 1.5, True, "xyz", None, [], {"op": "add"}, float("nan"), 1 << 70],
    ids=str,
)  # fmt: skip
def test_each_field_of_each_operation_is_checked(op, field, value):
    name = OPERATIONS.get(op, "T5")
    record = record_of(name)
    operation = next(x for program in record["programs"].values() for x in program if x["op"] == op)
    old = operation[field]
    if value == "missing":
        del operation[field]
    else:
        operation[field] = value
    is_number = isinstance(old, float) and type(value) in (int, float) and abs(value) < 1e30
    is_absent = value is None and SPEC[op][field] == (Table | None)
    if (is_number and (field != "epsilon" or value >= 0)) or is_absent:
        from_json(record, CONFIG, graph(name).constants)  # any number is legal
    else:
        refused(record, name)


def one_of(record, op, program="step"):
    return next(x for x in record["programs"][program] if x["op"] == op)


WRONG_SIZES = {
    "a weight of another input": ("T5", lambda r: one_of(r, "linear").update(weight="embedding.weight")),
    "a gain of another width": ("transformer", lambda r: one_of(r, "normalize").update(
        gain=next(n for n, s in r["weights"].items() if len(s) == 1 and s != [44]))),
    "a matrix as a gain": ("T5", lambda r: one_of(r, "normalize").update(gain="embedding.weight")),
    "a vector as an embedding": ("transformer", lambda r: one_of(r, "gather").update(
        table=next(n for n, s in r["weights"].items() if len(s) == 1))),
    "a sum of two widths": ("BERT", lambda r: r["programs"]["encode"].append(
        {"op": "add", "x": 0, "y": next(i for i, x in enumerate(r["programs"]["encode"]) if x["op"] == "linear" and
                                         r["weights"][x["weight"]][0] != 48)})),
    "heads that are no divisor": ("T5", lambda r: one_of(r, "attend").update(d_head=7)),
    "a head of 0": ("T5", lambda r: one_of(r, "attend").update(d_head=0)),
    "no key heads": ("T5", lambda r: one_of(r, "attend").update(n_kv_heads=0)),
    "key heads of another width": ("Llama", lambda r: one_of(r, "attend").update(n_kv_heads=4)),
    "a cache that nothing was stored in": ("T5", lambda r: one_of(r, "attend").update(cache=3)),
    "a cache of another side": ("GPT-2", lambda r: one_of(r, "attend").update(side="source")),
    "keys of another width than values": ("BERT", lambda r: one_of(r, "store", "encode").update(
        keys=next(i for i, x in enumerate(r["programs"]["encode"]) if x["op"] == "linear" and
                  r["weights"][x["weight"]][0] != 48))),
    "a step that stores for the source": ("T5", lambda r: one_of(r, "store").update(side="source")),
    "a cache with a gap": ("GPT-2", lambda r: one_of(r, "store").update(cache=5)),
    "the result of a store": ("GPT-2", lambda r: r["programs"]["step"].append({"op": "scale", "x": next(
        i for i, x in enumerate(r["programs"]["step"]) if x["op"] == "store"), "factor": 1.0})),
    "a bias of other heads": ("T5", lambda r: one_of(r, "attend").update(distance_bias="embedding.weight")),
    "rows beyond the weight": ("T5", lambda r: next(iter(r["rows"].values()))["rows"].append(8)),
    "an even number of distances": ("T5", lambda r: next(iter(r["rows"].values()))["rows"].append(0)),
    "rows of an unknown weight": ("T5", lambda r: next(iter(r["rows"].values())).update(of="xyz")),
    "no rows": ("T5", lambda r: next(iter(r["rows"].values())).update(rows=[])),
    "a weight without size": ("T5", lambda r: r["weights"].update({one_of(r, "linear")["weight"]: [0, 44]})),
    "a huge weight": ("GPT-2", lambda r: r["weights"].update(
        {one_of(r, "linear")["weight"]: [MAX_WIDTH + 1, r["weights"][one_of(r, "linear")["weight"]][1]]})),
    "three dimensions": ("T5", lambda r: r["weights"].update({one_of(r, "linear")["weight"]: [4, 4, 44]})),
    "cosines of another size than sines": ("Llama", lambda r: one_of(r, "rotate").update(sines="embedding.weight")),
    "no output layer": ("T5", lambda r: r["programs"]["step"].append({"op": "scale", "x": 0, "factor": 1.0})),
    "an input in a step": ("T5", lambda r: r["programs"]["step"].insert(0, {"op": "input", "size": 44})),
    "a head of another width": ("BERT", lambda r: r["programs"]["head"][0].update(size=47)),
    "a cache in a head": ("BERT", lambda r: r["programs"]["head"].append(
        {"op": "store", "keys": 0, "values": 0, "cache": 0, "side": "own"})),
    "a second input": ("BERT", lambda r: r["programs"]["head"].append({"op": "input", "size": 48})),
    "a head without a linear layer": ("BERT", lambda r: r["programs"].update(head=r["programs"]["head"][:1])),
    "no programs": ("T5", lambda r: r.update(programs={})),
    "an unknown program": ("T5", lambda r: r["programs"].update(other=r["programs"]["step"])),
    "an empty program": ("T5", lambda r: r["programs"].update(encode=[])),
    "a step and a head": ("T5", lambda r: r["programs"].update(head=record_of("BERT")["programs"]["head"])),
    "an encoder without caches of the source": ("T5", lambda r: r["programs"].update(
        encode=[x for x in r["programs"]["encode"] if x["op"] != "store" or x["side"] != "source"])),
    "too many operations": ("GPT-2", lambda r: r["programs"].update(
        step=[r["programs"]["step"][0]] * (MAX_OPERATIONS + 1))),
    "an unknown operation": ("T5", lambda r: one_of(r, "linear").update(op="exec")),
    "a further field": ("T5", lambda r: one_of(r, "linear").update(out=3)),
    "a further field of the file": ("T5", lambda r: r.update(more=1)),
    "programs that are no lists": ("T5", lambda r: r["programs"].update(step={"op": "add"})),
    "weights that are no object": ("T5", lambda r: r.update(weights=[])),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_SIZES)
def test_what_does_not_fit_together_is_refused(what):
    name, damage = WRONG_SIZES[what]
    record = record_of(name)
    damage(record)
    refused(record, name)


def test_a_file_of_another_version_or_configuration_is_refused():
    record = record_of("T5")
    refused(record | {"version": 2}, "T5", "version 2")
    refused(record | {"version": None}, "T5", "version None")
    refused(record | {"config": "0" * 64}, "T5", "another configuration")


def test_constants_have_the_shape_and_type_that_is_used():
    expected = graph("transformer")
    (name, array) = next(iter(expected.constants.items()))
    for constant in (array[:, :-2], array.astype(np.float64), array.ravel()):
        with pytest.raises(ProgramError):
            verify(Graph(expected.programs, expected.weights, {name: constant}))
    with pytest.raises(ProgramError, match="constant"):
        verify(Graph(expected.programs, expected.weights, {**expected.constants, "unused": array}))


def test_the_width_of_all_results_and_caches_is_limited():
    wide = Table("wide", (MAX_WIDTH, 48))
    program = [x := Input(48), Linear(x, wide, None)]
    base = graph("BERT")
    with pytest.raises(ProgramError, match="widths"):
        verify(Graph({**base.programs, "head": program}, {**base.weights, "wide": wide.shape}, base.constants))


def test_a_graph_with_too_few_tokens_or_positions_for_its_config_is_refused():
    model = GRAPHS["GPT-2"]
    check_sizes(graph("GPT-2"), model.config)
    for field in ("vocab_size", "max_len"):
        config = model.config.model_copy(update={field: getattr(model.config, field) + 1})
        with pytest.raises(CheckpointError, match=r"config\.json"):
            check_sizes(graph("GPT-2"), config)
    assert n_positions(graph("T5")) is None


def test_caches_of_the_source_exist_also_if_the_step_does_not_attend_to_them():
    record, model = record_of("T5"), GRAPHS["T5"]
    for operation in record["programs"]["step"]:
        if operation["op"] == "attend":
            operation["side"] = "own"
    read = from_json(record, CONFIG, {})
    weights = {name: weight.detach().numpy() for name, weight in model.state_dict().items()}
    programs = RuntimeModel(read, model.config, load()[0], weights)
    assert len(programs.encode.cache_widths) == len(programs.decode.cache_widths) - programs.n_layers + 1
    assert len(programs.encode.cache_widths) == 3
    programs.start([[3, 4]])


def test_tokens_and_positions_outside_of_the_tables_are_an_error():
    model = GRAPHS["GPT-2"]
    weights = {name: weight.detach().numpy() for name, weight in model.state_dict().items()}
    programs = RuntimeModel(graph("GPT-2"), model.config, None, weights, is_quantized=False)
    for ids in ([3, 331, 4], [3, -1, 4]):
        with pytest.raises(ValueError, match="vocabulary"):
            programs.start([ids])
    with pytest.raises(ValueError, match="positions"):
        programs.start([[3] * 60])


def test_mutated_files_are_refused_or_legal():
    """Files with random changes: an error of ours, or a graph that is legal; see tests/runtime/fuzz.py."""
    counts = {True: 0, False: 0}
    for name in ("T5", "Llama", "BERT"):
        record = record_of(name)
        for mutated in mutations(record, 300, seed=1):
            if mutated == record:
                continue
            try:
                from_json(copy.deepcopy(mutated), CONFIG, graph(name).constants)
            except CheckpointError:
                counts[False] += 1
            else:
                counts[True] += 1
    assert min(counts.values()) > 20


def test_an_encoder_before_a_decoder_has_one_cache_of_its_own():
    record = record_of("transformer")
    last = max(i for i, x in enumerate(record["programs"]["encode"]) if x["op"] == "store" and x["side"] == "own")
    for operation in record["programs"]["encode"][last:]:
        if operation["op"] in ("store", "attend") and operation["side"] == "own":
            operation["cache"] = 1
    refused(record, "transformer", "one cache of its own")


@pytest.mark.parametrize("by", ["token", "position"])
def test_a_head_has_no_table_of_tokens(by):
    base = graph("BERT")
    table = next(x.table for x in base.operations() if isinstance(x, Gather))
    size = base.programs["encode"][-1].width
    width = table.shape[1]
    weight = Table("projection", (width, size))
    program = [x := Input(size), y := Linear(x, weight, None), Add(y, Gather(table, by)), Linear(y, weight, None)]
    program.insert(2, program[2].y)
    weights = {**base.weights, weight.name: weight.shape}
    with pytest.raises(ProgramError, match="a table of tokens in a head"):
        verify(Graph({**base.programs, "head": program}, weights, base.constants))
