"""MarianMT and Pegasus, imported and exported again: same outputs and same tokens as transformers."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from glassformer import checkpoint
from glassformer.errors import UserError
from glassformer.generate.search import beam_search
from glassformer.interop.huggingface import export_folder, import_folder
from glassformer.learning.translation import TranslationObjective
from glassformer.models.decoding import decodable
from glassformer.models.transformer import TransformerConfig
from glassformer.tasks.registry import load
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from tests.generate.sources import unpadded
from tests.interop.theirs import LINES, TEXTS, ragged, random_model, up_to, write_unigram

PAD, END, MAX_LEN = 0, 1, 11
KINDS = {"marian": "MarianMTModel", "pegasus": "PegasusForConditionalGeneration"}


def make_theirs(kind, folder):
    n = write_unigram(folder / "theirs")
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=n + 3, decoder_vocab_size=n + 3, d_model=22, encoder_layers=2, decoder_layers=3,
        encoder_ffn_dim=31, decoder_ffn_dim=31, encoder_attention_heads=11, decoder_attention_heads=11,
        max_position_embeddings=29, activation_function="swish", scale_embedding=kind == "marian",
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=PAD, forced_eos_token_id=None,
    )  # fmt: skip
    random_model(KINDS[kind], config).save_pretrained(folder / "theirs")
    import_folder(folder / "theirs", folder / "ours")
    assert export_folder(folder / "ours", folder / "back") == KINDS[kind]
    return ["theirs", "back"]


def make_ours(kind, folder):
    """A model as created by `glassformer train`: interleaved sinusoids, a separate start token."""
    tokenizer = Tokenizer.train(TEXTS, vocab_size=331)
    sizes = dict(d_model=22, n_heads=11, d_ff=31, n_encoder_layers=2, n_decoder_layers=3, max_len=29)
    sizes["pre_norm"] = kind == "pegasus"
    torch.manual_seed(3)
    task = Translator.build(TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes), tokenizer)
    for p in task.model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    checkpoint.save_folder(folder / "ours", task.contents())
    assert export_folder(folder / "ours", folder / "back") == KINDS[kind]
    return ["back"]


CASES = [(kind, make) for kind in KINDS for make in (make_theirs, make_ours)]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1].__name__}")
def both(tmp_path_factory, request):
    """Our task, and the folders and models of the equivalent transformers models."""
    kind, make = request.param
    root = tmp_path_factory.mktemp(kind)
    folders = [root / name for name in make(kind, root)]
    read = transformers.AutoModelForSeq2SeqLM.from_pretrained
    return load(root / "ours", device="cpu"), folders, [read(folder).eval() for folder in folders]


def test_logits_are_transformers_over_ragged_batches(both):
    task, _, models = both
    src = ragged(task.config.vocab_size, PAD)
    tgt = ragged(task.config.vocab_size, PAD, (19,) * 5)
    tgt[:, 0] = task.tokenizer.bos_id
    with torch.no_grad():
        found = task.model.logits(task.model(src, tgt))
        for model in models:
            expected = model(input_ids=src, attention_mask=src != PAD, decoder_input_ids=tgt).logits
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_search_gives_transformers_tokens(both, beam):
    task, _, models = both
    src, end = ragged(task.config.vocab_size, PAD), task.tokenizer.eos_id
    found = beam_search(
        decodable(task.model), unpadded(src, PAD), [MAX_LEN] * len(src), eos_id=end, beam=beam, alpha=0.0
    )
    for model in models:
        with torch.no_grad():
            expected = model.generate(
                input_ids=src, attention_mask=src != PAD, num_beams=beam, do_sample=False, max_new_tokens=MAX_LEN,
                length_penalty=0.0, early_stopping=True, bad_words_ids=None, use_cache=False,
            )  # fmt: skip
        for ours_best, theirs_ids in zip(found, expected.tolist(), strict=True):
            assert ours_best[0].ids == up_to(end, theirs_ids[1:])


def test_ids_are_auto_tokenizers(both):
    task, folders, _ = both
    expected = [[*ids, task.tokenizer.eos_id] for ids in task.tokenizer.encode_batch(LINES)]
    for folder in folders:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        assert tokenizer(LINES)["input_ids"] == expected
        found = tokenizer.batch_decode(expected, skip_special_tokens=True)
        assert found == [task.tokenizer.decode(ids) for ids in expected]


def test_a_translation_is_the_one_of_transformers(both):
    """From text to text, with the exported generation config."""
    task, folders, models = both
    line = "the cat sat on the rug"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[-1])
    with torch.no_grad():
        ids = models[-1].generate(
            **tokenizer(line, return_tensors="pt", return_token_type_ids=False), max_new_tokens=9, num_beams=1,
            use_cache=False,
        )  # fmt: skip
    expected = tokenizer.decode(ids[0], skip_special_tokens=True)
    assert task(line, beam=1, max_length=9, no_repeat_ngram_size=0) == expected.replace("\n", " ")


def test_the_output_bias_is_part_of_the_training_loss(tmp_path):
    make_theirs("marian", tmp_path)
    task = load(tmp_path / "ours", device="cpu")
    objective = TranslationObjective(task)
    batch = objective.batch([([7, 8, 9], [11, 12]), ([13], [14, 15, 16])])
    with torch.no_grad():
        logits = task.model.logits(task.model(batch.src, batch.tgt_in))
        words = batch.tgt_out != PAD
        expected = torch.nn.functional.cross_entropy(logits[words], batch.tgt_out[words], reduction="sum")
        torch.testing.assert_close(objective.loss(batch), expected)


def test_a_model_with_additive_attention_is_not_exported(tmp_path):
    tokenizer = Tokenizer.train(TEXTS, vocab_size=331)
    sizes = dict(d_model=22, n_heads=11, d_ff=31, n_encoder_layers=1, n_decoder_layers=1, attention="additive")
    task = Translator.build(TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes), tokenizer)
    checkpoint.save_folder(tmp_path / "ours", task.contents())
    with pytest.raises(UserError, match="additive attention: transformers has no such model"):
        export_folder(tmp_path / "ours", tmp_path / "back")
