"""The engine: the result of a request does not depend on the others, however they arrive."""

import itertools
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from warnings import catch_warnings

import numpy as np
import pytest
import torch

from glassformer.decode_config import DecodeConfig
from glassformer.errors import UserError
from glassformer.generate import engine as engine_module
from glassformer.generate.engine import Engine
from glassformer.generate.request import Sources
from glassformer.generate.shortlist import Shortlist
from glassformer.kernels.library import load
from glassformer.models.decoding import TorchDecoder
from glassformer.recording.precision import runtime_of
from glassformer.runtime.model import RuntimeModel
from tests.generate.test_invariance import BOS, EOS, PAD, VOCAB, random_model

OPTIONS = [
    DecodeConfig(beam=3, batch_tokens=64),
    DecodeConfig(beam=1, batch_tokens=64),
    DecodeConfig(beam=2, nbest=2, length_penalty=0.0, batch_tokens=64),
    DecodeConfig(top_p=0.9, temperature=1.5, seed=3, batch_tokens=64),
    DecodeConfig(beam=2, no_repeat_ngram_size=2, batch_tokens=64),
    DecodeConfig(beam=2, shortlist=True, batch_tokens=64),
]
END = 17
"""The end token of the outputs: one that the model generates now and then."""
LISTS = np.random.default_rng(1).integers(3, VOCAB, (VOCAB, 3), np.int32)
SHORTLIST = Shortlist(
    np.array([5, END], np.int32),
    np.append(np.arange(VOCAB - 1) * 3, [VOCAB * 3 - 6] * 2).astype(np.int32),
    LISTS[2:].ravel(),
)
"""The last token has no list."""


@pytest.fixture(params=["eager", "compiled", "compiled without C"], scope="module")
def model(request):
    """A model whose outputs vary, and of which some end before the limit."""
    torch.manual_seed(0)
    varied = random_model(32)
    for name, parameter in varied.named_parameters():
        if "norm" in name or parameter.dim() == 1:
            torch.nn.init.constant_(parameter, float(name.endswith("norm.weight")))
    if request.param == "eager":
        return TorchDecoder(varied)
    kernels, reason = load()
    if request.param == "compiled" and kernels is None:
        pytest.skip(reason)
    return runtime_of(varied, kernels if request.param == "compiled" else None)


def engine_of(model, batch_tokens=64, **options):
    return Engine(
        model, eos_id=END, max_len=30, batch_tokens=batch_tokens, banned_ids=(PAD, BOS), shortlist=SHORTLIST, **options,
    )  # fmt: skip


def requests(model):
    """Sources of different lengths, options that the model has, and maximum numbers of new tokens.

    Fewer for the eager model, whose steps take 20 times as long: two of each of its options, in several batches.
    """
    n = 23 if isinstance(model, RuntimeModel) else 11
    rng = random.Random(n)
    options = [x for x in OPTIONS if not x.shortlist or isinstance(model, RuntimeModel)]
    source = lambda: [*(rng.randrange(3, VOCAB) for _ in range(rng.randrange(1, 20))), EOS]
    return [(source(), options[i % len(options)], rng.randrange(1, 15)) for i in range(n)]


def alone(model, source, options, limit, index):
    engine = engine_of(model)
    engine.submit(source, options, max_new_tokens=limit, index=index)
    return finish(engine)[0]


def finish(engine):
    results = {}
    while engine.n_unfinished:
        results |= {event.request_id: event.hypotheses for event in engine.step() if event.hypotheses is not None}
    return results


@pytest.fixture(scope="module")
def expected(model):
    """Results of `requests`, each decoded alone."""
    return [alone(model, *request, index) for index, request in enumerate(requests(model))]


@pytest.mark.parametrize("seed", range(3))
def test_requests_that_arrive_at_any_time_are_decoded_as_if_alone(model, expected, seed):
    rng, engine, pending, results = random.Random(seed), engine_of(model), requests(model), {}
    rng.shuffle(order := list(range(len(pending))))
    index_of = {}
    while order or engine.n_unfinished:
        for _ in range(rng.randrange(4)):
            if order:
                index = order.pop()
                source, options, limit = pending[index]
                index_of[engine.submit(source, options, max_new_tokens=limit, index=index)] = index
        for event in engine.step():
            if event.hypotheses is not None:
                results[index_of[event.request_id]] = event.hypotheses
    assert [results[i] for i in range(len(pending))] == expected


JOINED = [
    (DecodeConfig(beam=3, nbest=2), ()),
    (DecodeConfig(beam=1), ()),
    (DecodeConfig(beam=3, no_repeat_ngram_size=2, min_length=9), ()),
    (DecodeConfig(beam=2, shortlist=True), ()),
    (DecodeConfig(beam=3), (7, 9, 7)),
]
"""Options, and tokens that every output begins with."""


@pytest.mark.parametrize(
    "model", ["compiled", pytest.param("compiled without C", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize(("options", "prefix"), JOINED)
def test_requests_that_begin_later_join_the_search_that_is_computed(model, options, prefix):
    """One search has all requests, at different positions; each result is that of the request alone."""
    rng, engine, results = random.Random(5), engine_of(model), {}
    pending = [source for source, _, _ in requests(model)]
    limits = [rng.randrange(1, 15) for _ in pending]
    positions = 0
    for index, (source, limit) in enumerate(zip(pending, limits, strict=True)):
        engine.submit(source, options, max_new_tokens=limit, index=index, prefix=prefix)
        for _ in range(rng.randrange(3)):
            results |= {event.request_id: event.hypotheses for event in engine.step() if event.hypotheses}
            assert len(engine.batches) <= 1
            positions = max(positions, *(len(set(batch.search.lengths.tolist())) for batch in engine.batches), 0)
    assert positions > 2
    cancelled = next(request_id for request_id in range(len(pending)) if request_id not in results)
    engine.cancel(cancelled)
    results |= finish(engine)
    for index, (source, limit) in enumerate(zip(pending, limits, strict=True)):
        if index != cancelled:
            other = engine_of(model)
            other.submit(source, options, max_new_tokens=limit, index=index, prefix=prefix)
            assert results[index] == finish(other)[0]
    assert len(results) == len(pending) - 1
    assert options.beam == 1 or any(nbest[0].ids[-1] == END for nbest in results.values())
    assert model.targets.n_free == model.targets.capacity


def in_threads(function, arguments):
    """Call a function with each argument, each in a thread of its own."""
    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(function, arguments))


def test_several_threads_call_one_engine(model, expected):
    engine, pending, results, index_of = engine_of(model), requests(model), {}, {}

    def client(first):
        for index in range(first, len(pending), 3):
            source, options, limit = pending[index]
            index_of[engine.submit(source, options, max_new_tokens=limit, index=index)] = index
            results.update((event.request_id, event.hypotheses) for event in engine.step() if event.hypotheses)

    in_threads(client, range(3))
    results |= finish(engine)
    assert {index_of[request_id]: hypotheses for request_id, hypotheses in results.items()} == dict(enumerate(expected))


def test_two_engines_decode_with_one_model_at_the_same_time(model, expected):
    def client(first):
        return [alone(model, *requests(model)[index], index) for index in range(first, len(expected), 2)]

    assert in_threads(client, range(2)) == [expected[0::2], expected[1::2]]


def test_a_cancelled_request_is_gone_after_the_call_and_changes_no_other(model, expected):
    pending = requests(model)
    for n_steps in (0, 1, 3):
        engine = engine_of(model, batch_tokens=1000)
        for source, options, limit in pending:
            engine.submit(source, options, max_new_tokens=limit)
        results = {}
        for _ in range(n_steps):
            results |= {event.request_id: event.hypotheses for event in engine.step() if event.hypotheses is not None}
        for request_id in (0, 3, 7):
            before, is_done = engine.n_unfinished, request_id in results
            engine.cancel(request_id)
            assert engine.n_unfinished == before - (not is_done)
        results |= finish(engine)
        others = [i for i in range(len(pending)) if i not in (0, 3, 7)]
        assert [results[i] for i in others] == [expected[i] for i in others]


@pytest.mark.parametrize("options", [OPTIONS[1], OPTIONS[3]], ids=["greedy", "sampling"])
def test_tokens_are_reported_as_they_come(model, options):
    engine = engine_of(model)
    engine.submit([5, 6, EOS], options, max_new_tokens=9)
    tokens, n_steps = [], 0
    while engine.n_unfinished:
        (event,) = engine.step()
        tokens += event.tokens
        n_steps += 1
    assert tokens == event.hypotheses[0].ids
    assert n_steps == len(tokens)


def test_a_waiting_request_begins_when_another_ends():
    model = TorchDecoder(random_model(32))
    engine = engine_of(model, batch_tokens=8)
    for _ in range(2):
        engine.submit([5, EOS], OPTIONS[1], max_new_tokens=4)
    engine.step()
    assert len(engine.waiting) == 1
    assert len(finish(engine)) == 2


class Small(TorchDecoder):
    """A model for which batches of more than `limit` sources do not fit in memory."""

    def __init__(self, model, limit):
        super().__init__(model.model)
        self.limit = limit

    def start(self, sources, n_hypotheses=1):
        if len(sources) > self.limit:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory")
        return super().start(sources, n_hypotheses)


def test_a_batch_that_does_not_fit_in_memory_is_halved_with_a_warning():
    model = TorchDecoder(random_model(32))
    sources = [[5, i, EOS] for i in range(3, 20)]
    options = DecodeConfig(beam=2, batch_tokens=8 * 16)
    decode = lambda model: engine_of(model, batch_tokens=8 * 16).decode(Sources(sources, options, [4] * len(sources)))
    expected = decode(model)
    with pytest.warns(UserWarning, match="batches have at most") as warnings:
        assert decode(Small(model, 5)) == expected
    assert len(warnings) == 2  # 16, 8, 4 sources
    with catch_warnings(action="ignore"), pytest.raises(UserError, match="a source of 8 tokens"):
        decode(Small(model, 0))


@pytest.mark.parametrize("step", range(1, 8))
def test_no_result_is_lost_when_the_memory_is_insufficient_in_any_step(step):
    """Two batches of different lengths; one fails after the other has advanced."""
    model, options = TorchDecoder(random_model(32)), DecodeConfig(beam=1, batch_tokens=64)
    sources = [[5, 6, EOS], [7, 6, EOS], [5] * 8 + [EOS], [6] * 8 + [EOS]]
    limits = [2 if len(source) > 3 else 9 for source in sources]
    expected = engine_of(model).decode(Sources(sources, options, limits))
    failing, n_steps = Small(model, 99), itertools.count(1)

    def next_tokens(steps, k, banned_ids):
        if next(n_steps) == step:
            raise torch.OutOfMemoryError
        return model.next_tokens(steps, k, banned_ids)

    failing.next_tokens = next_tokens
    with pytest.warns(UserWarning, match="batches have at most 32 tokens"):
        assert engine_of(failing).decode(Sources(sources, options, limits)) == expected


@pytest.mark.parametrize("n_together", [1, 5, 30])
def test_no_more_requests_are_decoded_together_than_fit_in_memory(model, n_together, monkeypatch):
    sources = [[5, i, EOS] for i in range(3, 20)]
    options = DecodeConfig(beam=2, batch_tokens=8 * 16)
    decode = lambda model: engine_of(model, batch_tokens=8 * 16).decode(Sources(sources, options, [4] * len(sources)))
    expected = decode(model)
    needed = engine_module.bytes_needed(model, 2, 3 + 4)
    monkeypatch.setattr(engine_module, "available_bytes", lambda device: n_together * needed / engine_module.USABLE)
    engine = engine_of(model, batch_tokens=8 * 16)
    for source in sources:
        engine.submit(source, options, max_new_tokens=4)
    with pytest.warns(UserWarning, match="batches have at most") if n_together < 16 else nullcontext():
        engine.step()
    assert sum(len(batch.requests) for batch in engine.batches) <= n_together
    with catch_warnings(action="ignore"):
        assert decode(model) == expected
    monkeypatch.setattr(engine_module, "available_bytes", lambda device: needed)  # half of it is used
    with pytest.raises(UserError, match="not enough memory to decode a source of"):
        decode(model)


def test_an_empty_source_and_a_limit_below_1_are_refused(model):
    with pytest.raises(ValueError, match="source of 0 tokens"):
        engine_of(model).submit([], OPTIONS[0], max_new_tokens=3)
    with pytest.raises(ValueError, match="at most 0 new tokens"):
        engine_of(model).submit([5], OPTIONS[0], max_new_tokens=0)


def test_a_shortlist_that_the_model_cannot_use_is_an_error():
    with pytest.raises(ValueError, match="the model uses none"):
        engine_of(TorchDecoder(random_model(32))).submit([5, EOS], DecodeConfig(shortlist=True), max_new_tokens=3)


def test_several_tokens_end_a_text(model):
    other, options = 5, DecodeConfig(temperature=1.5, seed=3)
    sources = [source for source, *_ in requests(model)]

    def decoded(**more):
        return engine_of(model, **more).decode(Sources(sources, options, [14] * len(sources)))

    n_cut = 0
    for (before,), (after,) in zip(decoded(), decoded(end_ids=[other]), strict=True):
        first = before.ids.index(other) + 1 if other in before.ids else len(before.ids)
        n_cut += first < len(before.ids)
        assert after.ids == before.ids[:first]
    assert n_cut
    searched = engine_of(model, end_ids=[other]).decode(Sources(sources, DecodeConfig(beam=3), [14] * len(sources)))
    assert any(best.ids[-1] == other for best, *_ in searched)
    assert all(other not in best.ids[:-1] for best, *_ in searched)


def test_the_score_of_a_sample_is_that_of_a_search(model):
    options = DecodeConfig(temperature=1.5, length_penalty=0.7)
    for (best,) in engine_of(model).decode(Sources([source for source, *_ in requests(model)], options)):
        expected = sum(best.log_probs) / ((5 + len(best.ids)) / 6) ** 0.7
        assert best.score == pytest.approx(expected)
