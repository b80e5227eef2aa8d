"""T5, versions 1.0 and 1.1, imported and exported again: same outputs and same tokens as transformers."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from glassformer import checkpoint
from glassformer.generate.search import beam_search
from glassformer.interop.huggingface import export_folder, import_folder
from glassformer.models.decoding import decodable
from glassformer.models.t5 import relative_position_bucket
from glassformer.tasks.registry import load
from tests.generate.sources import unpadded
from tests.interop.theirs import LINES, ragged, random_model, up_to, write_unigram

PAD, END, MAX_LEN = 0, 1, 11
VERSIONS = {
    "1.0": dict(feed_forward_proj="relu"),
    "1.1, tied": dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False),  # as transformers 5 initializes it
    "1.1": dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
}


@pytest.fixture(scope="module", params=VERSIONS)
def folders(tmp_path_factory, request):
    """A transformers folder, its import, and the export of the import."""
    root = tmp_path_factory.mktemp("t5")
    n = write_unigram(root / "theirs")
    config = transformers.T5Config(
        vocab_size=n + 3, d_model=22, d_kv=5, num_heads=3, d_ff=31, num_layers=2, num_decoder_layers=3,
        relative_attention_num_buckets=10, relative_attention_max_distance=17, decoder_start_token_id=0,
        **VERSIONS[request.param],
    )  # fmt: skip
    random_model("T5ForConditionalGeneration", config).save_pretrained(root / "theirs")
    if request.param == "1.1":
        tensors = checkpoint.read_tensors(root / "theirs" / "model.safetensors")
        tensors["lm_head.weight"] = torch.randn_like(tensors["shared.weight"])
        checkpoint.write_files(root / "theirs", {"model.safetensors": tensors})
    import_folder(root / "theirs", root / "ours")
    assert export_folder(root / "ours", root / "back") == "T5ForConditionalGeneration"
    return root


@pytest.fixture(scope="module")
def task(folders):
    return load(folders / "ours", device="cpu")


@pytest.fixture(scope="module")
def models(folders):
    read = transformers.AutoModelForSeq2SeqLM.from_pretrained
    return [read(folders / name).eval() for name in ("theirs", "back")]


def test_output_matrix_and_scale_match_the_version(folders, task, request):
    version = request.node.callspec.params["folders"]
    assert (task.config.tie_embeddings, task.config.scale_output) == (version != "1.1", version == "1.0")


@pytest.mark.parametrize("with_grad", [False, True], ids=["inference", "training"])  # different kernels
def test_logits_are_transformers_over_ragged_batches(task, models, with_grad):
    src = ragged(task.config.vocab_size, PAD)
    tgt = ragged(task.config.vocab_size, PAD, (19,) * 5)
    tgt[:, 0] = PAD
    with torch.set_grad_enabled(with_grad):
        found = task.model.logits(task.model(src, tgt))
        for model in models:
            expected = model(input_ids=src, attention_mask=src != PAD, decoder_input_ids=tgt).logits
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_search_gives_transformers_tokens(task, models, beam):
    src = ragged(task.config.vocab_size, PAD)
    found = beam_search(
        decodable(task.model), unpadded(src, PAD), [MAX_LEN] * len(src), eos_id=END, beam=beam, alpha=0.0
    )
    for model in models:
        with torch.no_grad():
            expected = model.generate(
                input_ids=src, attention_mask=src != PAD, num_beams=beam, do_sample=False, max_new_tokens=MAX_LEN,
                length_penalty=0.0, early_stopping=True, bad_words_ids=None,
                use_cache=False,  # transformers' cache assumes as many decoder layers as encoder layers
            )  # fmt: skip
        for ours_best, theirs_ids in zip(found, expected.tolist(), strict=True):
            assert ours_best[0].ids == up_to(END, theirs_ids[1:])


def test_cached_decoding_gives_the_logits_of_the_full_forward_pass(task):
    m = task.model
    src, tgt = ragged(m.config.vocab_size, PAD), ragged(m.config.vocab_size, PAD, (13,) * 5)
    tgt[:, 0] = PAD
    with torch.inference_mode():
        whole = m.logits(m(src, tgt))
        state, last = m.start(src)
        assert last.tolist() == [PAD] * 5
        for i in range(13):
            torch.testing.assert_close(m.step(tgt[:, i], state), whole[:, i], rtol=1e-4, atol=1e-4)


def test_ids_are_auto_tokenizers(folders, task):
    expected = [[*ids, END] for ids in task.tokenizer.encode_batch(LINES)]
    for name in ("theirs", "back"):
        assert transformers.AutoTokenizer.from_pretrained(folders / name)(LINES)["input_ids"] == expected


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (10, 17)])
def test_relative_position_buckets_are_those_of_transformers(bidirectional, n_buckets, max_distance):
    from transformers.models.t5.modeling_t5 import T5Attention

    positions = torch.arange(301)
    relative_position = positions[None] - positions[:, None]
    expected = T5Attention._relative_position_bucket(relative_position, bidirectional, n_buckets, max_distance)
    found = relative_position_bucket(
        relative_position, n_buckets=n_buckets, max_distance=max_distance, bidirectional=bidirectional
    )
    assert found.equal(expected)
