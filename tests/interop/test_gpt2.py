"""GPT-2, imported and exported again: same outputs and same tokens as transformers."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from glassformer.generate.search import beam_search
from glassformer.interop.huggingface import export_folder, import_folder
from glassformer.models.decoding import decodable
from glassformer.tasks.registry import load
from tests.interop.theirs import LINES, ragged, random_model, up_to, write_byte_level

END = "<|endoftext|>"
MAX_LEN = 11


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A transformers folder, its import, and the export of the import."""
    root = tmp_path_factory.mktemp("gpt2")
    n = write_byte_level(root / "theirs", [END])
    config = transformers.GPT2Config(
        vocab_size=n + 3, n_embd=22, n_head=11, n_layer=3, n_inner=31, n_positions=29, bos_token_id=0, eos_token_id=0
    )
    random_model("GPT2LMHeadModel", config).save_pretrained(root / "theirs")
    import_folder(root / "theirs", root / "ours")
    assert export_folder(root / "ours", root / "back") == "GPT2LMHeadModel"
    return root


@pytest.fixture(scope="module")
def task(folders):
    return load(folders / "ours", device="cpu")


@pytest.fixture(scope="module", params=["theirs", "back"])
def model(folders, request):
    return transformers.AutoModelForCausalLM.from_pretrained(folders / request.param).eval()


def test_logits_are_transformers_over_ragged_batches(task, model):
    ids = ragged(task.config.vocab_size, 0)
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=ids != 0).logits
        found = task.model.logits(task.model(ids))
    torch.testing.assert_close(found[ids != 0], expected[ids != 0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("length", [1, 5])
def test_search_gives_transformers_tokens(task, model, beam, length):
    prompts = ragged(task.config.vocab_size, 0, (length,) * 5)
    with torch.no_grad():
        expected = model.generate(
            input_ids=prompts, attention_mask=torch.ones_like(prompts), num_beams=beam, do_sample=False,
            max_new_tokens=MAX_LEN, length_penalty=0.0, early_stopping=True, pad_token_id=0,
        )  # fmt: skip
    found = beam_search(
        decodable(task.model), prompts.tolist(), [MAX_LEN] * len(prompts), eos_id=0, beam=beam, alpha=0.0
    )
    for ours_best, theirs_ids in zip(found, expected[:, length:].tolist(), strict=True):
        assert ours_best[0].ids == up_to(0, theirs_ids)


def test_cached_decoding_gives_the_logits_of_the_full_forward_pass(task):
    m, ids = task.model, ragged(task.config.vocab_size, 0, (13, 13, 13))
    with torch.inference_mode():
        whole = m.logits(m(ids))
        state, last = m.start(ids[:, :4])
        for i in range(3, 13):
            torch.testing.assert_close(m.step(last, state), whole[:, i], rtol=1e-5, atol=1e-5)
            last = ids[:, min(i + 1, 12)]


def test_texts_packed_into_one_sequence_give_the_outputs_of_separate_texts(task):
    ids = ragged(task.config.vocab_size, 0, (5, 3, 7))
    segments = torch.tensor([[1] * 5 + [2] * 3 + [3] * 7])
    packed = torch.cat([ids[0, :5], ids[1, :3], ids[2]])[None]
    found = task.model(packed, segments)[0]
    alone = torch.cat([task.model(row[row != 0][None])[0] for row in ids])
    torch.testing.assert_close(found, alone, rtol=1e-5, atol=1e-5)


def test_ids_are_auto_tokenizers(folders, task):
    theirs, back = (transformers.AutoTokenizer.from_pretrained(folders / name) for name in ("theirs", "back"))
    found = task.tokenizer.encode_batch(LINES)
    assert theirs(LINES)["input_ids"] == found
    assert back(LINES)["input_ids"] == [task.prompt(line) for line in LINES]
    assert [task.tokenizer.decode(ids) for ids in found] == LINES


def test_the_only_special_token_is_pad_bos_and_eos(task):
    assert (task.name, task.tokenizer.pad_id, task.tokenizer.bos_id, task.tokenizer.eos_id) == ("causal-lm", 0, 0, 0)


def test_a_body_without_a_head_is_the_same_model(folders, task, tmp_path):
    write_byte_level(tmp_path / "theirs", [END])
    model = transformers.GPT2Model.from_pretrained(folders / "theirs")
    model.save_pretrained(tmp_path / "theirs")
    body = import_folder(tmp_path / "theirs", tmp_path / "ours")
    ids = ragged(task.config.vocab_size, 0, (7, 7))
    torch.testing.assert_close(body.model(ids), task.model(ids))
