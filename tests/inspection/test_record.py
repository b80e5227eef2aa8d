"""Recording does not change outputs, is complete and reverted; recorded weights match transformers."""

import pytest
import torch

from glassformer.generate.search import beam_search
from glassformer.inspection.record import record_activations
from glassformer.models.decoding import decodable
from glassformer.models.families import FAMILIES
from glassformer.nn.attention import Attention
from glassformer.tasks.registry import load
from tests.inspection.models import SIZES as FAMILY_SIZES
from tests.interop.theirs import ragged, random_model, write_byte_level, write_unigram, write_wordpiece

SIZES = {**FAMILY_SIZES, "additive": {**FAMILY_SIZES["transformer"], "attention": "additive"}}
LONG = (71, 3, 67, 13, 1)  # long enough for the fused attention kernel


def make(family):
    model_type = FAMILIES["transformer" if family == "additive" else family]
    config = model_type.config_class
    model = model_type(config(vocab_size=101, max_len=90, **SIZES[family])).eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return model


def run(model):
    ids = ragged(101, 0, LONG)
    if model.kind in ("encoder", "decoder"):
        return model(ids)[ids != 0]
    tgt = ragged(101, 0, LONG[::-1])
    return model.logits(model(ids, tgt))[tgt != 0]


@pytest.mark.parametrize("family", SIZES)
@pytest.mark.parametrize("with_grad", [False, True])
def test_recording_does_not_change_outputs_and_is_reverted(family, with_grad):
    model = make(family)
    with torch.set_grad_enabled(with_grad):
        before = run(model)
        with record_activations(model) as cache:
            recorded = run(model)
        after = run(model)
    torch.testing.assert_close(recorded, before, rtol=1e-5, atol=1e-5)
    assert torch.equal(after, before)
    for module in model.modules():
        assert not {"sdpa", "weights", "logits", "mlm_logits", "label_logits"} & vars(module).keys()
        assert not module._forward_hooks
    attentions = [name for name, module in model.named_modules() if isinstance(module, Attention)]
    assert attentions
    for name in attentions:
        assert cache.axes(f"{name}.weights") == ("batch", "head", "query", "key")
        assert {f"{name}.{kind}" for kind in ("queries", "keys", "values", "heads")} <= cache.keys()
    assert all(len(cache.axes(name)) == tensor.dim() for name, tensor in cache.items())


@pytest.mark.parametrize("family", SIZES)
def test_weights_sum_to_one_and_are_zero_at_masked_positions(family):
    model = make(family)
    with torch.no_grad(), record_activations(model) as cache:
        run(model)
    src, tgt = ragged(101, 0, LONG), ragged(101, 0, LONG[::-1])
    for name in (name for name in cache if name.endswith(".weights")):
        weights = cache[name]
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), rtol=1e-5, atol=1e-5)
        if "cross" in name or name.startswith("encoder"):
            assert weights.transpose(1, 3)[src == 0].abs().max() == 0
        else:
            assert weights.triu(1).abs().max() == 0
    assert (tgt == 0).any()


def test_a_decoding_step_equals_a_row_of_the_full_forward_pass():
    model = make("transformer")
    src = ragged(101, 0, (8, 8))  # the search pads to a multiple of 8
    with record_activations(model) as cache:
        (best,) = beam_search(decodable(model), src[:1].tolist(), [7], eos_id=2, beam=1)[0]
    ids = torch.tensor([[1, *best.ids[:-1]]])
    with torch.no_grad(), record_activations(model) as full:
        model(src[:1], ids)
    for name in ("decoder.2.cross_attention.weights", "decoder.1.self_attention.weights"):
        steps = cache.calls(name)
        assert len(steps) == ids.size(1)
        for i, step in enumerate(steps):
            expected = full[name][:, :, i, : step.size(-1)]
            torch.testing.assert_close(step[:, :, 0], expected, rtol=1e-5, atol=1e-5)


def test_error_of_an_unknown_name_lists_similar_names():
    with torch.no_grad(), record_activations(make("bert")) as cache:
        pass
    with pytest.raises(KeyError, match="0 names"):
        cache["encoder"]
    model = make("bert")
    with torch.no_grad(), record_activations(model) as cache:
        run(model)
    with pytest.raises(KeyError, match=r"'encoder\.0\.self_attention\.weights'"):
        cache["encoder.0.self_attention.weight"]
    assert "encoder.0.self_attention.weight" not in cache


def test_nested_recorders_record_the_same():
    model = make("transformer")
    with torch.no_grad(), record_activations(model) as outer, record_activations(model) as inner:
        run(model)
    assert outer.keys() == inner.keys()
    for name, x in inner.items():
        assert torch.equal(outer[name], x)


def their_folder(kind, folder):
    """A random model of transformers that returns attention weights, saved in a folder."""
    transformers = pytest.importorskip("transformers")
    common = {"attn_implementation": "eager"}
    match kind:
        case "bert" | "roberta":
            n = write_wordpiece(folder) if kind == "bert" else write_byte_level(
                folder, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
            )  # fmt: skip
            more = {} if kind == "bert" else dict(pad_token_id=1, bos_token_id=0, eos_token_id=2)
            config = transformers.AutoConfig.for_model(
                kind, vocab_size=n, hidden_size=22, num_hidden_layers=3, num_attention_heads=11, intermediate_size=31,
                max_position_embeddings=32, **more, **common,
            )  # fmt: skip
            name = {"bert": "BertForMaskedLM", "roberta": "RobertaForMaskedLM"}[kind]
        case "distilbert":
            n = write_wordpiece(folder)
            config = transformers.DistilBertConfig(
                vocab_size=n, dim=22, n_heads=11, hidden_dim=31, n_layers=2, max_position_embeddings=32, **common
            )
            name = "DistilBertForMaskedLM"
        case "gpt2":
            n = write_byte_level(folder, ["<|endoftext|>"])
            config = transformers.GPT2Config(
                vocab_size=n, n_embd=22, n_head=11, n_layer=3, n_inner=31, n_positions=29, bos_token_id=0,
                eos_token_id=0, **common,
            )  # fmt: skip
            name = "GPT2LMHeadModel"
        case "t5":
            n = write_unigram(folder)
            config = transformers.T5Config(
                vocab_size=n, d_model=22, d_kv=5, num_heads=3, d_ff=31, num_layers=2, num_decoder_layers=3,
                decoder_start_token_id=0, **common,
            )  # fmt: skip
            name = "T5ForConditionalGeneration"
        case "marian":
            n = write_unigram(folder)
            config = transformers.MarianConfig(
                vocab_size=n, decoder_vocab_size=n, d_model=22, encoder_layers=2, decoder_layers=3, encoder_ffn_dim=31,
                decoder_ffn_dim=31, encoder_attention_heads=11, decoder_attention_heads=11, pad_token_id=0,
                max_position_embeddings=29, eos_token_id=1, decoder_start_token_id=0, forced_eos_token_id=None,
                **common,
            )  # fmt: skip
            name = "MarianMTModel"
    model = random_model(name, config)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "gpt2", "t5", "marian"])
def test_attention_weights_match_transformers(kind, tmp_path):
    from glassformer.interop.huggingface import import_folder

    theirs = their_folder(kind, tmp_path / "theirs")
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    task = load(tmp_path / "ours", device="cpu")
    pad_id = task.config.pad_id
    ids = ragged(140, pad_id)
    inputs = {"input_ids": ids, "attention_mask": (ids != pad_id).long()}
    with torch.no_grad(), record_activations(task) as cache:
        if kind in ("t5", "marian"):
            tgt = ragged(140, pad_id, (9,) * 5)
            task.model(ids, tgt)
            inputs["decoder_input_ids"] = tgt
        else:
            task.model(ids)
    with torch.no_grad():
        out = theirs(**inputs, output_attentions=True)
    if kind in ("t5", "marian"):
        sides = {
            "encoder.{}.self_attention": out.encoder_attentions,
            "decoder.{}.self_attention": out.decoder_attentions,
            "decoder.{}.cross_attention": out.cross_attentions,
        }
    else:
        sides = {f"{'decoder' if kind == 'gpt2' else 'encoder'}.{{}}.self_attention": out.attentions}
    for name, layers in sides.items():
        for i, expected in enumerate(layers):
            weights = cache[f"{name.format(i)}.weights"]
            nonpad = (ids != pad_id) if "decoder" not in name or kind == "gpt2" else torch.ones(5, 9, dtype=bool)
            torch.testing.assert_close(
                weights.transpose(1, 2)[nonpad], expected.transpose(1, 2)[nonpad], rtol=1e-5, atol=1e-5
            )
