"""Invalid calls of pipelines: error messages name the problem and the valid alternatives."""

import json
import shutil
import subprocess
import sys

import pytest

transformers = pytest.importorskip("transformers")

from glassformer import pipeline
from glassformer.decode_config import DecodeConfig
from glassformer.errors import CheckpointError, ConfigError, UserError
from glassformer.generate.request import Sources

CAT = "The cat sat on the mat."


def refused(error_type, *parts):
    """Expect an error whose message contains the regular expressions in order."""
    return pytest.raises(error_type, match="(?s)" + ".*".join(parts))


def test_importing_the_package_imports_no_torch_for_pipeline():
    code = "import sys, glassformer; assert 'pipeline' in glassformer.__all__; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_error_of_an_unknown_task_lists_the_available_tasks(folder):
    with refused(
        ConfigError, "no task 'translate'", "Available tasks: translation, summarization", "sentiment-analysis, ner"
    ):
        pipeline("translate", folder("marian"))


@pytest.mark.parametrize(
    ("task", "name", "can"),
    [
        ("translation", "bert-grades", "text-classification, feature-extraction"),
        ("ner", "bert-answers", "question-answering, feature-extraction"),
        ("fill-mask", "gpt2", "text-generation, feature-extraction"),
        ("summarization", "marian", "translation, text2text-generation"),
        ("feature-extraction", "t5", "translation, summarization, text2text-generation"),
        ("text-classification", "bert", "feature-extraction, sentence-similarity"),
    ],
)
def test_error_of_an_unsupported_task_lists_the_supported_pipelines(folder, task, name, can):
    with refused(ConfigError, f"not trained for {task}", f"Supported pipelines: {can}\\."):
        pipeline(task, folder(name))


def test_default_task_follows_from_the_architecture(folder):
    assert [pipeline(model=folder(name)).task for name in ["marian", "t5", "gpt2", "bert-one", "bert-entities"]] == [
        "translation", "text2text-generation", "text-generation", "text-classification", "token-classification",
    ]  # fmt: skip


def test_missing_folders_and_folders_without_a_model_are_errors(tmp_path):
    with refused(CheckpointError, "no such folder"):
        pipeline("translation", str(tmp_path / "not there"))
    with refused(CheckpointError, "not a model folder: it has no config.json"):
        pipeline("translation", tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mamba"}))
    with refused(CheckpointError, "'mamba' is not supported"):
        pipeline("translation", tmp_path)


def test_hub_name_without_network_is_a_single_error(monkeypatch):
    import huggingface_hub

    def fail(*_, **__):
        raise OSError("the network is down\nand a long story")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with refused(
        CheckpointError,
        "someone/model: no such folder, and the download from .* hub failed: the network is down\n  Give",
    ):
        pipeline("translation", "someone/model")


def test_download_from_the_hub_excludes_code_and_pickles(monkeypatch, folder, tmp_path):
    import huggingface_hub

    requested = {}

    def fetch(name, **options):
        requested.update(options, name=name)
        return folder("marian") if name == "someone/model" else str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert pipeline("translation", "someone/model", revision="v2").task == "translation"
    assert (requested["name"], requested["revision"]) == ("someone/model", "v2")
    assert not {"*.py", "*.bin", "*"} & {*requested["allow_patterns"]}
    with refused(CheckpointError, "the weights as a pickle only", "from_pretrained\\('someone/other'\\)"):
        pipeline("translation", "someone/other")


@pytest.mark.parametrize(
    ("task", "name"),
    [("translation", "marian"), ("text-generation", "gpt2"), ("ner", "bert-entities"), ("fill-mask", "bert-fill")],
)
def test_unknown_arguments_are_errors_at_construction_and_at_call(folder, task, name):
    with refused(ConfigError, "num_beans: no such option", "Arguments of this pipeline: .*batch_size"):
        pipeline(task, folder(name), num_beans=3)
    with refused(ConfigError, "num_beans: no such option"):
        pipeline(task, folder(name))(CAT, num_beans=3)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"model": None}, "model: required"),
        ({"model": 3}, "expected a folder, a name"),
        ({"tokenizer": "another"}, "tokenizer = 'another'"),
        ({"framework": "tf"}, "only PyTorch is supported"),
        ({"trust_remote_code": True}, "code in a model folder is never run"),
        ({"torch_dtype": "float16"}, "float32 or bfloat16 is supported"),
        ({"precision": "int4"}, "expected auto, fp32, bf16, int8"),
        ({"precision": "int8", "dtype": "bfloat16"}, "give one of them"),
        ({"device": "tpu"}, "device 'tpu' is not available"),
        ({"device": "mps"}, "device 'mps' is not supported: nothing of glassformer has been tested on Apple's GPU."),
        ({"device": "cuda:99"}, "is not available"),
        ({"top_k": "many"}, "top_k: 'many'"),
    ],
)
def test_invalid_arguments_are_errors(folder, options, what):
    with refused(ConfigError, what):
        pipeline("text-generation", **{"model": folder("gpt2"), **options})


def test_a_model_of_transformers_in_int8_generates_the_tokens_of_the_engine(folder):
    generate = pipeline("text-generation", folder("gpt2"), precision="int8", return_tensors=True, do_sample=False)
    ids = generate(CAT, max_new_tokens=6)[0]["generated_token_ids"]
    engine = generate.model.engine(DecodeConfig(precision="int8"))
    ((hypothesis,),) = engine.decode(Sources([ids[:-6]], DecodeConfig(beam=1, max_length=6)))
    assert hypothesis.ids == ids[-6:]


def test_arguments_of_transformers_are_accepted(folder):
    name = folder("bert-grades")
    classify = pipeline(
        "text-classification", model=name, tokenizer=name, framework="pt", device=-1, use_fast=True, dtype="auto",
        trust_remote_code=False, batch_size=8, num_workers=0, padding=True,
    )  # fmt: skip
    assert classify(CAT, batch_size=2, truncation=True, clean_up_tokenization_spaces=True) == classify([CAT])
    assert str(classify.device) == "cpu"
    assert classify.tokenizer.pad_token == "[PAD]"


@pytest.mark.parametrize(
    ("task", "name", "wrong", "what"),
    [
        ("translation", "marian", 3, "expected a text or a list of texts, found int"),
        ("translation", "marian", [["a"]], "found list"),
        ("text-generation", "gpt2", [{"text": "hi"}], "found dict"),
        ("text-classification", "bert-grades", [["a", "b"]], '"text_pair"'),
        ("text-classification", "bert-grades", {"text": "a", "pair": "b"}, '"text_pair"'),
        ("ner", "bert-entities", [3], "found int"),
        ("feature-extraction", "bert", None, "found NoneType"),
    ],
)
def test_inputs_that_are_not_texts_are_errors(folder, task, name, wrong, what):
    with refused(ConfigError, what):
        pipeline(task, folder(name))(wrong)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({}, "expected question= and context="),
        ({"question": "Where?"}, "expected question= and context="),
        ({"question": "", "context": CAT}, "the question is ''"),
        ({"question": ["a", "b"], "context": [CAT]}, "2 questions and 1 contexts"),
        ({"question": "a", "context": CAT, "top_k": 0}, "top_k: 0"),
        ({"question": "cat " * 60, "context": CAT}, "a question of 60 tokens leaves 0 of 61"),
        ({"question": "a", "context": CAT, "max_seq_len": 30, "doc_stride": 29}, "adjacent windows share 29"),
    ],
)
def test_invalid_questions_are_errors(folder, arguments, what):
    with refused(ConfigError, what):
        pipeline("question-answering", folder("bert-answers"))(**arguments)
    with refused(ConfigError, 'expected ."question"'):
        pipeline("question-answering", folder("bert-answers"))([{"question": "a"}])


@pytest.mark.parametrize("name", ["data", "X"])
def test_questions_have_their_names_in_version_4(folder, name):
    answer, pair = pipeline("question-answering", folder("bert-answers")), {"question": "Where?", "context": CAT}
    assert answer(**{name: pair}) == answer(pair) == answer(**pair)
    with refused(ConfigError, f"{name}: no such option"):
        answer(pair, **{name: pair})


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"num_return_sequences": 3, "do_sample": False}, "must not exceed num_beams = 1 without sampling"),
        ({"do_sample": True, "temperature": 0.0}, "temperature = 0"),
        ({"max_length": 2}, "must be greater than .*, the number of prompt tokens"),
        ({"top_p": 1.5}, "top_p: 1.5"),
        ({"return_full_text": True, "return_tensors": True}, "cannot be combined"),
        ({"handle_long_generation": "cut"}, "handle_long_generation = 'cut'"),
    ],
)
def test_invalid_generation_arguments_are_errors(folder, options, what):
    with refused(ConfigError, what):
        pipeline("text-generation", folder("gpt2"))(CAT, **options)


def test_arguments_without_effect_cause_a_warning(folder):
    with pytest.warns(UserWarning, match="temperature, top_p: no effect without do_sample=True"):
        pipeline("translation", folder("marian"), max_new_tokens=2)(CAT, temperature=0.5, top_p=0.9)


def test_unsupported_entries_of_generation_config_cause_a_warning(folder, tmp_path):
    shutil.copytree(folder("marian"), tmp_path / "it")
    path = tmp_path / "it" / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "guidance_scale": 3.0}))
    with pytest.warns(UserWarning, match="generation_config.json are ignored: guidance_scale"):
        pipeline("translation", tmp_path / "it", max_new_tokens=2)(CAT)
    path.write_text(json.dumps({"num_beams": "many"}))
    with refused(CheckpointError, "generation_config.json: .*num_beams: 'many'"):
        pipeline("translation", tmp_path / "it", max_new_tokens=2)(CAT)


def test_missing_masks_and_targets_are_errors(folder):
    fill = pipeline("fill-mask", folder("bert-fill"))
    with refused(UserError, "no mask \\(\\[MASK\\]\\) in the first 61 tokens of 'The cat"):
        fill(CAT)
    with refused(ConfigError, "targets: none"):
        fill("a [MASK]", targets=[])


def test_stride_requires_an_aggregation_strategy(folder):
    with refused(ConfigError, "stride: requires an aggregation_strategy"):
        pipeline("ner", folder("bert-entities"))(CAT, stride=3)
    with refused(ConfigError, "stride = 60: must be from 0 to 58"):
        pipeline("ner", folder("bert-entities"), aggregation_strategy="first")(CAT, stride=60)


def test_a_long_prompt_loses_its_beginning_with_a_warning(folder):
    generate = pipeline("text-generation", folder("gpt2"), do_sample=False, max_new_tokens=3)
    with pytest.warns(UserWarning, match="maximum length of 94 tokens: its beginning was removed"):
        outputs = generate(CAT * 20, return_full_text=False)
    assert outputs == generate(CAT * 20, return_full_text=False, handle_long_generation="hole")


def test_generated_length_is_limited_by_the_positions_of_the_model(folder):
    generate = pipeline("text-generation", folder("gpt2"), do_sample=False, return_tensors=True, eos_token_id=330)
    assert (
        len(generate(CAT * 9, max_new_tokens=95)[0]["generated_token_ids"]) == 98
    )  # every token but the last needs a position


def test_an_empty_list_gives_an_empty_list(folder):
    assert pipeline("ner", folder("bert-entities"))([]) == []
    assert pipeline("translation", folder("marian"))([]) == []
