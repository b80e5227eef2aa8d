"""Recorded programs compute what the models compute, for every family; rows do not depend on one another."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.decode_config import DecodeConfig
from glassformer.generate.rules import Rule, search_rules
from glassformer.generate.search import beam_search
from glassformer.kernels.library import load
from glassformer.models.decoding import decodable
from glassformer.models.rnn import Rnn, RnnConfig
from glassformer.recording.precision import in_precision, runtime_of
from glassformer.recording.recorder import UnsupportedError
from glassformer.runtime import model as model_module
from glassformer.runtime.model import RuntimeModel
from tests.generate.sources import unpadded
from tests.runtime.models import MAX_LEN, MODELS, VOCAB, model_of, transformer, verify

PAD, BOS, EOS = 0, 1, 2
KERNELS, _ = load()
FAMILIES = {name: model_of(name) for name in ("transformer", "GPT-2", "Llama")}
DECODERS = {name: runtime_of(model, KERNELS) for name, model in FAMILIES.items()}
IN_FP32 = runtime_of(FAMILIES["transformer"], KERNELS, is_quantized=False)


class Unchanged(Rule):
    """A rule without a fast form that changes nothing."""

    def apply(self, scores, ids):
        return scores


families = pytest.mark.parametrize("name", MODELS)


def sources(model, lengths, seed=5):
    """Padded sources of the given lengths; for decoder-only models, prompts of the first length."""
    generator = torch.Generator().manual_seed(seed)
    decoder_only = model.kind == "decoder"
    width = lengths[0] if decoder_only else max(lengths)
    ids = torch.randint(3, VOCAB, (len(lengths), width), generator=generator)
    for row, length in zip(ids, lengths, strict=True):
        row[width if decoder_only else length :] = PAD
    return ids


def lists(model, src):
    """Sources as lists without padding; all of a prompt."""
    return src.tolist() if is_decoder_only(model) else unpadded(src, PAD)


def is_decoder_only(model):
    return model.encode is None if isinstance(model, RuntimeModel) else model.kind == "decoder"


def search(model, src, limits, **options):
    options = {"eos_id": EOS, "beam": 3, "nbest": 3, "rules": search_rules((PAD, BOS))} | options
    return beam_search(decodable(model), lists(model, src), limits, **options)


@families
def test_the_recorded_program_computes_the_logits_of_the_model(name):
    verify(model_of(name))


@pytest.mark.parametrize("kernels", [pytest.param(KERNELS, id="C"), pytest.param(None, id="PyTorch")])
@families
@torch.no_grad()
def test_logits_in_int8_are_close_to_those_in_fp32(name, kernels):
    model = model_of(name)
    decoder = runtime_of(model, kernels)
    src = sources(model, [7, 3, 5])
    (state, _), (expected_state, last) = decoder.start(lists(model, src), 2), model.start(src, 2)
    for step in range(5):
        logits = torch.from_numpy(decoder.logits(last.numpy(), state))
        expected = model.step(last, expected_state)
        assert (logits - expected).norm() < 0.06 * expected.norm(), step
        rows = torch.tensor([1, 1, 2, 3, 5, 4])
        state.select(rows.numpy())
        expected_state.select(rows)
        last = torch.randint(3, VOCAB, last.shape)


@pytest.mark.parametrize("kernels", [pytest.param(KERNELS, id="C"), pytest.param(None, id="PyTorch")])
@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("GPT-2", "Llama", "Qwen2")])
@torch.no_grad()
def test_scores_of_whole_targets_are_those_of_single_steps(name, kernels):
    model = model_of(name)
    decoder = runtime_of(model, kernels)
    src = sources(model, [7, 3])
    targets = [[9, 4, 7, EOS], [8, EOS], [30, 31, 32, 33, EOS]]
    inputs = [[BOS, *target[:-1]] for target in targets]
    found = decoder.score(inputs, targets, [row[row != PAD].tolist() for row in src], [1, 0, 1])
    for target, source, log_probs in zip(targets, [1, 0, 1], found, strict=True):
        state, last = decoder.start(unpadded(src[source : source + 1], PAD))
        for token, log_prob in zip(target, log_probs, strict=True):
            logits = torch.from_numpy(decoder.logits(last, state))
            assert log_prob == pytest.approx(float(logits.log_softmax(-1)[0, token]), abs=1e-5)
            last = np.array([token])


@families
def test_the_c_library_and_pytorch_generate_the_same_tokens(name):
    model = model_of(name)
    src, limits = sources(model, [7, 3, 5, 1]), [11, 7, 13, 9]
    by_c, by_pytorch = (search(runtime_of(model, kernels), src, limits) for kernels in (KERNELS, None))
    for ours, theirs in zip(by_c, by_pytorch, strict=True):
        assert [h.ids for h in ours] == [h.ids for h in theirs]
        for a, b in zip(ours, theirs, strict=True):
            assert a.log_probs == pytest.approx(b.log_probs, abs=2e-2)


@families
@torch.no_grad()
def test_the_kernels_in_fp32_compute_the_logits_of_the_model(name):
    model = model_of(name)
    decoder = runtime_of(model, KERNELS, is_quantized=False)
    src = sources(model, [7, 3, 5])
    (state, _), (expected_state, last) = decoder.start(lists(model, src), 2), model.start(src, 2)
    for _ in range(5):
        logits = torch.from_numpy(decoder.logits(last.numpy(), state))
        torch.testing.assert_close(logits, model.step(last, expected_state), rtol=1e-4, atol=1e-4)
        rows = torch.tensor([1, 1, 2, 3, 5, 4])
        state.select(rows.numpy())
        expected_state.select(rows)
        last = torch.randint(3, VOCAB, last.shape)


@families
def test_the_kernels_in_fp32_generate_the_tokens_of_the_model(name):
    model = model_of(name)
    src, limits = sources(model, [7, 3, 5, 1]), [11, 7, 13, 9]
    ours, expected = (
        search(runtime_of(model, KERNELS, is_quantized=False), src, limits),
        search(model, src, limits),
    )
    assert [[h.ids for h in hypotheses] for hypotheses in ours] == [[h.ids for h in row] for row in expected]
    assert ours[0][0].log_probs == pytest.approx(expected[0][0].log_probs, abs=1e-4)


def test_fp32_is_computed_by_the_model_itself_where_kernels_cannot(monkeypatch):
    model = model_of("transformer")
    if KERNELS is not None and KERNELS.variant != "plain":
        assert isinstance(in_precision(model, "fp32"), RuntimeModel)
    additive = transformer(attention="additive").eval()
    assert in_precision(additive, "fp32") is additive
    double = model_of("transformer").double()
    assert in_precision(double, "fp32") is double
    hook = model.register_forward_hook(lambda *_: None)
    assert in_precision(model, "fp32") is model
    hook.remove()
    monkeypatch.setattr("glassformer.runtime.precision.load", lambda: (None, "no C compiler"))
    assert in_precision(model, "fp32") is model


@pytest.mark.skipif(KERNELS is None, reason="no C compiler")
@pytest.mark.parametrize("is_quantized", [True, False], ids=["int8", "fp32"])
@families
def test_all_instruction_sets_compute_the_same_bits(name, is_quantized):
    model = model_of(name)
    decoder = runtime_of(model, KERNELS, is_quantized=is_quantized)
    src, limits = sources(model, [7, 3, 5, 1]), [11, 7, 13, 9]
    results = []
    for variant in KERNELS.supported:
        if is_quantized or variant != "plain":  # plain kernels have no fused multiply-add
            KERNELS.select(variant)
            results.append(search(decoder, src, limits))
    KERNELS.select(next(iter(KERNELS.supported)))
    assert all(result == results[0] for result in results)


@settings(max_examples=15)
@given(
    decoder=st.sampled_from([DECODERS["transformer"], IN_FP32]),
    lengths=st.lists(st.integers(1, 19), min_size=1, max_size=23), seed=st.integers(0, 1 << 20), beam=st.integers(1, 4),
)  # fmt: skip
def test_a_sentence_is_translated_alone_as_in_any_batch(decoder, lengths, seed, beam):
    src = sources(FAMILIES["transformer"], lengths, seed)
    limits = [3 + length for length in lengths]
    together = search(decoder, src, limits, beam=beam, nbest=beam)
    alone = [search(decoder, src[i : i + 1], limits[i : i + 1], beam=beam, nbest=beam)[0] for i in range(len(lengths))]
    assert together == alone


@pytest.mark.parametrize("name", ["GPT-2", "Llama"])
def test_a_prompt_is_continued_alone_as_in_a_batch(name):
    decoder = DECODERS[name]
    src = sources(FAMILIES[name], [9] * 13)
    together = search(decoder, src, [17] * 13)
    assert together == [search(decoder, src[i : i + 1], [17])[0] for i in range(13)]


@pytest.mark.parametrize("decoder", [DECODERS["transformer"], IN_FP32], ids=["int8", "fp32"])
def test_the_number_of_threads_does_not_change_the_result(decoder):
    src = sources(FAMILIES["transformer"], [7, 3, 5, 1, 19])
    results = []
    for n_threads in (1, 2, 3, 4):
        torch.set_num_threads(n_threads)
        results.append(search(decoder, src, [11] * 5))
    torch.set_num_threads(1)
    assert all(result == results[0] for result in results)


def test_best_of_all_logits_and_of_the_kernel_agree():
    """A rule without a fast form needs all logits."""
    decoder = DECODERS["transformer"]
    src = sources(FAMILIES["transformer"], [7, 3, 5])
    rules = [*search_rules((PAD, BOS)), Unchanged()]
    fast, full = search(decoder, src, [11] * 3), search(decoder, src, [11] * 3, rules=rules)
    for ours, theirs in zip(fast, full, strict=True):
        assert [h.ids for h in ours] == [h.ids for h in theirs]
        assert ours[0].log_probs == pytest.approx(theirs[0].log_probs, abs=1e-4)


def test_long_outputs_use_more_slots_than_the_first_arrays_have():
    model = model_of("transformer")
    decoder = runtime_of(model, KERNELS)
    src = sources(model, [19] * 37)
    banned = search_rules((PAD, BOS, EOS))
    together = search(decoder, src, [MAX_LEN] * 37, rules=banned)
    assert together[36] == search(decoder, src[36:], [MAX_LEN], rules=banned)[0]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: Rnn(RnnConfig(vocab_size=VOCAB, d_model=44, n_layers=1)), "has no kernel"),
        (lambda: transformer(attention="additive"), "additive attention has no kernel"),
    ],
    ids=["RNN", "additive attention"],
)
def test_a_model_without_kernels_says_why(model, reason):
    with pytest.raises(UnsupportedError, match=reason):
        runtime_of(model().eval(), None)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8", "auto"])
def test_a_model_is_converted_again_when_its_weights_change(precision):
    model = model_of("transformer")
    converted = in_precision(model, precision)
    assert in_precision(model, precision) is converted
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    torch.optim.Adam(model.parameters(), fused=True).step()  # leaves the versions of the tensors as they are
    assert in_precision(model, precision) is not converted


def test_auto_is_int8_with_fast_kernels_and_fp32_without(monkeypatch):
    model, rnn = model_of("transformer"), Rnn(RnnConfig(vocab_size=VOCAB, d_model=16)).eval()
    assert in_precision(rnn, "auto") is rnn
    if KERNELS is not None and KERNELS.variant != "plain":
        assert isinstance(in_precision(model, "auto"), RuntimeModel)
    monkeypatch.setattr("glassformer.runtime.precision.load", lambda: (None, "no C compiler"))
    assert in_precision(model, "auto") is model


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("option", ["no_repeat_ngram_size", "min_length", "ban", "prefix"])
def test_rules_for_the_most_probable_tokens_exclude_is_excluded_from_all_logits(name, option):
    decoder = DECODERS[name]
    src = sources(FAMILIES[name], [7, 3, 5])
    first, second, third, *_ = search(decoder, src, [11] * 3)[0][0].ids
    texts = [b"c" if i in (first, second) else b"b" if i == third else b"a" for i in range(VOCAB)]
    value = {"no_repeat_ngram_size": 1, "min_length": 9, "ban": ("c", "aaab", "baaa"), "prefix": (7, 9)}[option]
    given = {"prefix": value} if option == "prefix" else {"options": DecodeConfig(**{option: value})}
    rules = search_rules((PAD, BOS), eos_id=second, token_bytes=texts, **given)
    options = {"eos_id": second}
    fast = search(decoder, src, [11] * 3, rules=rules, **options)
    full = search(decoder, src, [11] * 3, rules=[*rules, Unchanged()], **options)
    assert fast != search(decoder, src, [11] * 3, **options)
    for ours, theirs in zip(fast, full, strict=True):
        assert [h.ids for h in ours] == [h.ids for h in theirs]
        assert ours[0].log_probs == pytest.approx(theirs[0].log_probs, abs=1e-4)


@pytest.mark.parametrize("kernels", [pytest.param(KERNELS, id="C"), pytest.param(None, id="PyTorch")])
@torch.no_grad()
def test_with_a_shortlist_the_best_tokens_are_those_of_the_list(kernels):
    decoder = runtime_of(model_of("transformer"), kernels)
    srcs = [sources(FAMILIES["transformer"], [7, 3, 5]), sources(FAMILIES["transformer"], [4])]
    lists = [np.arange(3, VOCAB, 2, dtype=np.int32), None, np.array([EOS, 7, 8, 9, 11], np.int32)]
    (first, last), (second, last_of_second) = (decoder.start(unpadded(src, PAD), 2) for src in srcs)
    (all_first, _), (all_second, _) = (decoder.start(unpadded(src, PAD), 2) for src in srcs)
    decoder.restrict(first, lists)
    rows = [0, 0, 1, 1, 2, 2]
    for step in range(3):
        found = decoder.next_tokens([(last, first), (last_of_second, second)], 4, (PAD, BOS))
        logits = decoder.logits(last, all_first), decoder.logits(last_of_second, all_second)
        logits = map(torch.from_numpy, logits)
        for values, (log_probs, ids), sentences in zip(logits, found, [rows, [-1, -1]], strict=True):
            for row, sentence in enumerate(sentences):
                allowed = lists[sentence] if sentence >= 0 else None
                allowed = np.arange(2, VOCAB) if allowed is None else allowed
                expected = values[row, allowed].log_softmax(-1).topk(4)
                assert ids[row].tolist() == allowed[expected.indices].tolist(), (step, row)
                assert log_probs[row].tolist() == pytest.approx(expected.values.tolist(), abs=1e-4)
        if step == 1:  # the first sentence is done; hypotheses change places
            kept = np.array([3, 2, 5, 5])
            first.select(kept, np.array([1, 2]))
            all_first.select(kept, np.array([1, 2]))
            last, rows = last[kept], [1, 1, 2, 2]


@pytest.mark.skipif(KERNELS is None, reason="no C compiler")
@torch.no_grad()
def test_a_shortlist_of_all_tokens_changes_nothing_in_any_instruction_set():
    decoder, src = DECODERS["transformer"], sources(FAMILIES["transformer"], [7, 3] * 20)
    for variant in KERNELS.supported:
        KERNELS.select(variant)
        results = []
        for is_restricted in (False, True):
            state, last = decoder.start(unpadded(src, PAD), 3)
            if is_restricted:
                decoder.restrict(state, [np.arange(VOCAB, dtype=np.int32)] * 40)
            results.append([x.tolist() for x in decoder.next_tokens([(last, state)], 5)[0]])
        assert results[0] == results[1]
    KERNELS.select(next(iter(KERNELS.supported)))


@pytest.mark.parametrize("name", ["transformer", "GPT-2"])
@pytest.mark.parametrize("limits", [{}, {"MAX_ROWS": 5, "MAX_READ": 9, "MAX_LOGITS": 2 * VOCAB}])
def test_scores_do_not_depend_on_what_is_computed_together_and_take_memory_for_a_part(name, limits, monkeypatch):
    decoder, rng = runtime_of(FAMILIES[name], KERNELS), np.random.default_rng(2)
    has_sources = decoder.encode is not None
    texts, others = ([rng.integers(3, VOCAB, rng.integers(1, MAX_LEN)).tolist() for _ in range(200)] for _ in range(2))
    source_of = sorted(rng.integers(0, 200, 200).tolist()) if has_sources else []
    given = others if has_sources else []

    def scored(which):
        inputs = [[BOS, *texts[i][:-1]] for i in which]
        return decoder.score(inputs, [texts[i] for i in which], given, [source_of[i] for i in which if has_sources])

    expected = [scored([i])[0] for i in range(200)]
    for constant, value in limits.items():
        monkeypatch.setattr(model_module, constant, value)
    assert scored(range(200)) == expected
    assert decoder.sources.n_free == decoder.sources.capacity
    assert decoder.targets.n_free == decoder.targets.capacity
    if limits:
        assert decoder.sources.capacity <= 1024


def test_slots_of_sources_are_those_of_a_part():
    decoder = runtime_of(FAMILIES["transformer"], KERNELS)
    sources = [[5] * (MAX_LEN - 1)] * 2000
    decoder.score([[BOS, 5]] * 2000, [[5, 6]] * 2000, sources, range(2000))
    assert decoder.sources.capacity <= 2 * model_module.MAX_READ
