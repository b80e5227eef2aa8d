"""Pipelines of imported models: the outputs are those of the original folder, until the model is trained further."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

transformers = pytest.importorskip("transformers")

import glassformer as gf
from glassformer import checkpoint, pipeline
from glassformer.decode_config import DecodeConfig
from glassformer.errors import CheckpointError, ConfigError
from glassformer.generate.request import Sources
from glassformer.interop.huggingface import export_folder, import_folder
from glassformer.tasks.origin import FILE
from tests.pipelines.conftest import assert_same

CAT = "The cat sat on the mat, and Ann didn't see it."
ROME = "Where does Wolfgang live?\nHe lives in Rome with cats, zebras & żółw."
LONG = " ".join([CAT, ROME] * 5)
CHAT = [{"role": "user", "content": "The cat"}]


@pytest.fixture(scope="module")
def imported(folder, tmp_path_factory):
    """The import of a folder by its name."""
    made = {}

    def named(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp("imported") / name
            import_folder(Path(folder(name)), made[name])
        return made[name]

    return named


SHORT = {"max_new_tokens": 9}
GREEDY = DecodeConfig(beam=1, no_repeat_ngram_size=0)


@pytest.mark.parametrize(
    ("task", "name", "inputs", "options"),
    [
        ("summarization", "t5-asked", [CAT, ROME], SHORT),
        ("translation_en_to_de", "t5-asked", CAT, SHORT),
        ("text2text-generation", "t5-asked", CAT, {**SHORT, "return_tensors": True, "num_beams": 1}),
        ("translation", "marian", [CAT, ROME], {}),
        ("translation", "marian", LONG, {**SHORT, "truncation": True}),
        ("translation", "marian", CAT, {"do_sample": True, "seed": 3, "num_return_sequences": 2}),
        ("text-generation", "gpt2", [CAT, "a <|endoftext|> b"], {**SHORT, "do_sample": False}),
        ("text-generation", "gpt2", CAT, {**SHORT, "seed": 3}),
        ("feature-extraction", "gpt2", CAT, {}),
        ("fill-mask", "bert-fill", "The [MASK] sat .", {}),
        ("fill-mask", "roberta-fill", "The <mask> sat .", {}),
        ("text-classification", "bert-one", [CAT, ROME], {}),
        ("text-classification", "bert-number", {"text": CAT, "text_pair": ROME}, {}),
        ("text-classification", "roberta-grades", {"text": CAT, "text_pair": "a [SEP] </s> b"}, {"top_k": None}),
        ("token-classification", "bert-entities", CAT, {}),
        ("question-answering", "roberta-answers", {"question": "Where?", "context": CAT}, {}),
    ],
)
def test_outputs_are_those_of_the_original(folder, imported, task, name, inputs, options):
    found, expected = (pipeline(task, made(name), device=-1)(inputs, **options) for made in (imported, folder))
    if options.get("return_tensors"):
        found, expected = (
            [{key: ids.tolist() for key, ids in row.items()} for row in rows] for rows in (found, expected)
        )
    assert_same(found, expected)


@pytest.mark.parametrize("name", ["t5", "marian", "gpt2", "bert-one"])
def test_the_pipelines_of_the_original_are_supported(folder, imported, name):
    assert pipeline(model=imported(name)).source.pipelines == pipeline(model=folder(name)).source.pipelines


def test_chats_are_those_of_the_original(folder, tmp_path):
    shutil.copytree(folder("gpt2"), tmp_path / "theirs")
    template = "{% for m in messages %}{{ m['content'] }}{{ eos_token }}{% endfor %}"
    (tmp_path / "theirs" / "chat_template.jinja").write_text(template)
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    options = {"max_new_tokens": 6, "do_sample": False}
    expected = pipeline("text-generation", tmp_path / "theirs")(CHAT, **options)
    assert pipeline("text-generation", tmp_path / "ours")(CHAT, **options) == expected


def test_an_export_keeps_template_prefixes_and_generation_parameters(folder, imported, tmp_path):
    shutil.copytree(folder("gpt2"), tmp_path / "theirs")
    template = "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{{ eos_token }}{% endfor %}"
    (tmp_path / "theirs" / "chat_template.jinja").write_text(template)
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    export_folder(tmp_path / "ours", tmp_path / "exported")
    export_folder(imported("t5-asked"), tmp_path / "t5")
    expected, found = (
        transformers.AutoTokenizer.from_pretrained(tmp_path / name).apply_chat_template(CHAT, tokenize=False)
        for name in ("theirs", "exported")
    )
    assert found == expected
    for name in ("prefix", "task_specific_params"):
        found, expected = (
            getattr(transformers.AutoConfig.from_pretrained(path), name, None)
            for path in (tmp_path / "t5", folder("t5-asked"))
        )
        assert found == expected
    found, expected = (
        transformers.GenerationConfig.from_pretrained(path) for path in (tmp_path / "t5", folder("t5-asked"))
    )
    assert found == expected
    assert pipeline("summarization", tmp_path / "t5", **SHORT)(CAT) == pipeline(
        "summarization", folder("t5-asked"), **SHORT
    )(CAT)


def test_all_end_tokens_of_the_original_end_a_text(folder, tmp_path):
    shutil.copytree(folder("gpt2"), tmp_path / "theirs")
    path = tmp_path / "theirs" / "generation_config.json"
    config = json.loads(path.read_text())
    task = gf.load(import_folder(tmp_path / "theirs", tmp_path / "first") and tmp_path / "first", device="cpu")
    ((best,),) = task.engine(GREEDY).decode(Sources([task.prompt(CAT)], GREEDY, [12]))
    other = next(i for i in best.ids[1:] if i != best.ids[0])
    path.write_text(json.dumps({**config, "eos_token_id": [task.tokenizer.eos_id, other], "pad_token_id": other}))
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    task = gf.load(tmp_path / "ours", device="cpu")
    assert (task.end_ids, other in task.banned_ids) == ((other,), False)
    ((found,),) = task.engine(GREEDY).decode(Sources([task.prompt(CAT)], GREEDY, [12]))
    assert found.ids == best.ids[: best.ids.index(other) + 1]


def test_a_model_that_is_saved_again_has_the_same_outputs(imported, tmp_path):
    task = gf.load(imported("t5-asked"), device="cpu")
    task.save(tmp_path / "again")
    expected = pipeline("summarization", imported("t5-asked"), **SHORT)(CAT)
    assert pipeline("summarization", tmp_path / "again", **SHORT)(CAT) == expected
    assert pipeline("summarization", task, **SHORT)(CAT) == expected


def test_an_imported_model_needs_no_torch(imported):
    expected = pipeline("summarization", imported("t5-asked"), **SHORT)(CAT)
    code = (
        "import sys; sys.modules['torch'] = None; from glassformer import pipeline;"
        f"print(pipeline('summarization', {str(imported('t5-asked'))!r}, max_new_tokens=9)({CAT!r}))"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == str(expected)


def test_a_model_trained_from_an_imported_one_has_no_prefix_of_it(imported, tmp_path):
    (tmp_path / "pairs.jsonl").write_text(
        "".join(json.dumps({"src": f"the cat {i}", "tgt": f"a dog {i}"}) + "\n" for i in range(40))
    )
    gf.train(
        tmp_path / "pairs.jsonl", out=tmp_path / "tuned", task="translation", init_from=imported("marian"), steps=2,
        quiet=True, languages=("en", "de"),
    )  # fmt: skip
    assert not (tmp_path / "tuned" / FILE).exists()
    assert pipeline(model=tmp_path / "tuned").source.config == {}
    with pytest.raises(ConfigError, match="not trained for summarization"):
        pipeline("summarization", tmp_path / "tuned")


def test_a_damaged_file_is_an_error(imported, tmp_path):
    shutil.copytree(imported("marian"), tmp_path / "it")
    checkpoint.add_file(tmp_path / "it", FILE, json.dumps({"pipelines": "translation"}))
    with pytest.raises(CheckpointError, match=r"huggingface.json: damaged"):
        pipeline("translation", tmp_path / "it")
