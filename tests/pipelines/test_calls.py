"""Wrong calls: what is wrong, and what there is instead."""

import json
import shutil
import subprocess
import sys

import pytest

transformers = pytest.importorskip("transformers")

from glassformer import pipeline
from glassformer.errors import CheckpointError, ConfigError, UserError

CAT = "The cat sat on the mat."


def refused(kind, *parts):
    return pytest.raises(kind, match="(?s)" + ".*".join(parts))


def test_importing_the_package_imports_no_torch_for_pipeline():
    code = "import sys, glassformer; assert 'pipeline' in glassformer.__all__; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_task_is_refused_with_those_there_are(folder):
    with refused(ConfigError, "no task 'translate'", "Known are translation, summarization", "sentiment-analysis, ner"):
        pipeline("translate", folder("marian"))


@pytest.mark.parametrize(
    ("task", "name", "can"),
    [
        ("translation", "bert-grades", "text-classification, feature-extraction"),
        ("ner", "bert-answers", "question-answering, feature-extraction"),
        ("fill-mask", "gpt2", "text-generation, feature-extraction"),
        ("summarization", "marian", "translation, text2text-generation"),
        ("feature-extraction", "t5", "translation, summarization, text2text-generation"),
        ("text-classification", "bert", "feature-extraction"),
    ],
)
def test_a_model_that_was_not_trained_for_a_task_says_what_it_can_do(folder, task, name, can):
    with refused(ConfigError, f"not trained for {task}", f"It can do {can}\\."):
        pipeline(task, folder(name))


def test_a_task_left_out_is_found_from_the_architecture(folder):
    assert [pipeline(model=folder(name)).task for name in ["marian", "t5", "gpt2", "bert-one", "bert-entities"]] == [
        "translation", "text2text-generation", "text-generation", "text-classification", "token-classification",
    ]  # fmt: skip


def test_folders_that_are_not_there_or_hold_no_model_are_refused(tmp_path):
    with refused(CheckpointError, "no such folder"):
        pipeline("translation", str(tmp_path / "not there"))
    with refused(CheckpointError, "not a model folder: it has no config.json"):
        pipeline("translation", tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mamba"}))
    with refused(CheckpointError, "'mamba' is not supported"):
        pipeline("translation", tmp_path)


def test_a_hub_name_without_a_network_is_one_clear_error(monkeypatch):
    import huggingface_hub

    def fail(*_, **__):
        raise OSError("the network is down\nand a long story")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with refused(
        CheckpointError,
        "someone/model: no such folder, and the download from .* hub failed: the network is down\n  Give",
    ):
        pipeline("translation", "someone/model")


def test_a_hub_name_is_fetched_without_code_and_pickles(monkeypatch, folder, tmp_path):
    import huggingface_hub

    asked = {}

    def fetch(name, **options):
        asked.update(options, name=name)
        return folder("marian") if name == "someone/model" else str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert pipeline("translation", "someone/model", revision="v2").task == "translation"
    assert (asked["name"], asked["revision"]) == ("someone/model", "v2")
    assert not {"*.py", "*.bin", "*"} & {*asked["allow_patterns"]}
    with refused(CheckpointError, "the weights as a pickle only", "from_pretrained\\('someone/other'\\)"):
        pipeline("translation", "someone/other")


@pytest.mark.parametrize(
    ("task", "name"),
    [("translation", "marian"), ("text-generation", "gpt2"), ("ner", "bert-entities"), ("fill-mask", "bert-fill")],
)
def test_unknown_arguments_are_refused_when_given_and_when_called(folder, task, name):
    with refused(ConfigError, "num_beans: there is no such option", "This pipeline takes .*batch_size"):
        pipeline(task, folder(name), num_beans=3)
    with refused(ConfigError, "num_beans: there is no such option"):
        pipeline(task, folder(name))(CAT, num_beans=3)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"model": None}, "model: required"),
        ({"model": 3}, "expected a folder, a name"),
        ({"tokenizer": "another"}, "tokenizer = 'another'"),
        ({"framework": "tf"}, "PyTorch alone"),
        ({"trust_remote_code": True}, "no code of a folder is run"),
        ({"torch_dtype": "float16"}, "float32 alone"),
        ({"device": "tpu"}, "device 'tpu' is not available"),
        ({"device": "cuda:99"}, "is not (here|available)"),
        ({"top_k": "many"}, "top_k: 'many'"),
    ],
)
def test_impossible_arguments_are_refused(folder, options, what):
    with refused(ConfigError, what):
        pipeline("text-generation", **{"model": folder("gpt2"), **options})


def test_arguments_of_scripts_for_transformers_are_taken(folder):
    name = folder("bert-grades")
    made = pipeline(
        "text-classification", model=name, tokenizer=name, framework="pt", device=-1, use_fast=True, dtype="auto",
        trust_remote_code=False, batch_size=8, num_workers=0, padding=True,
    )  # fmt: skip
    assert made(CAT, batch_size=2, truncation=True, clean_up_tokenization_spaces=True) == made([CAT])
    assert str(made.device) == "cpu"
    assert made.tokenizer.pad_token == "[PAD]"


@pytest.mark.parametrize(
    ("task", "name", "wrong", "what"),
    [
        ("translation", "marian", 3, "expected a text or a list of texts, found int"),
        ("translation", "marian", [["a"]], "found list"),
        ("text-generation", "gpt2", [{"role": "user", "content": "hi"}], "chats are not"),
        ("text-generation", "gpt2", [[{"role": "user", "content": "hi"}]], "chats are not"),
        ("text-classification", "bert-grades", [["a", "b"]], '"text_pair"'),
        ("text-classification", "bert-grades", {"text": "a", "pair": "b"}, '"text_pair"'),
        ("ner", "bert-entities", [3], "found int"),
        ("feature-extraction", "bert", None, "found NoneType"),
    ],
)
def test_what_is_no_text_is_refused(folder, task, name, wrong, what):
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
        ({"question": "a", "context": CAT, "max_seq_len": 30, "doc_stride": 29}, "windows are to share 29"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(folder, arguments, what):
    with refused(ConfigError, what):
        pipeline("question-answering", folder("bert-answers"))(**arguments)
    with refused(ConfigError, 'expected ."question"'):
        pipeline("question-answering", folder("bert-answers"))([{"question": "a"}])


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"num_return_sequences": 3, "do_sample": False}, "only num_beams = 1 are looked at"),
        ({"do_sample": True, "temperature": 0.0}, "temperature = 0"),
        ({"max_length": 2}, "leaves no room"),
        ({"top_p": 1.5}, "top_p: 1.5"),
        ({"return_full_text": True, "return_tensors": True}, "excludes"),
        ({"handle_long_generation": "cut"}, "handle_long_generation = 'cut'"),
    ],
)
def test_impossible_ways_to_say_something_are_refused(folder, options, what):
    with refused(ConfigError, what):
        pipeline("text-generation", folder("gpt2"))(CAT, **options)


def test_what_has_no_effect_is_said(folder):
    with pytest.warns(UserWarning, match="temperature, top_p: of no effect without do_sample=True"):
        pipeline("translation", folder("marian"), max_new_tokens=2)(CAT, temperature=0.5, top_p=0.9)


def test_what_generation_config_says_and_we_do_not_know_is_named(folder, tmp_path):
    shutil.copytree(folder("marian"), tmp_path / "it")
    path = tmp_path / "it" / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "guidance_scale": 3.0}))
    with pytest.warns(UserWarning, match="names guidance_scale, which this version leaves out"):
        pipeline("translation", tmp_path / "it", max_new_tokens=2)(CAT)
    path.write_text(json.dumps({"num_beams": "many"}))
    with refused(CheckpointError, "generation_config.json, .*num_beams: 'many'"):
        pipeline("translation", tmp_path / "it", max_new_tokens=2)(CAT)


def test_gaps_and_targets_that_are_not_there_are_refused(folder):
    fill = pipeline("fill-mask", folder("bert-fill"))
    with refused(UserError, "no mask \\(\\[MASK\\]\\) in what is read of 'The cat"):
        fill(CAT)
    with refused(ConfigError, "targets: none"):
        fill("a [MASK]", targets=[])


def test_stride_needs_groups(folder):
    with refused(ConfigError, "stride: windows need an aggregation_strategy"):
        pipeline("ner", folder("bert-entities"))(CAT, stride=3)
    with refused(ConfigError, "stride = 60: must be less"):
        pipeline("ner", folder("bert-entities"), aggregation_strategy="first")(CAT, stride=60)


def test_a_long_prompt_keeps_its_end_and_that_is_said(folder):
    say = pipeline("text-generation", folder("gpt2"), do_sample=False, max_new_tokens=3)
    with pytest.warns(UserWarning, match="longer than the 94 tokens .* its beginning was not read"):
        found = say(CAT * 20, return_full_text=False)
    assert found == say(CAT * 20, return_full_text=False, handle_long_generation="hole")


def test_a_model_says_no_more_than_it_can_hold(folder):
    say = pipeline("text-generation", folder("gpt2"), do_sample=False, return_tensors=True, eos_token_id=330)
    assert len(say(CAT * 9, max_new_tokens=95)[0]["generated_token_ids"]) == 98  # a place for all but the last


def test_no_inputs_give_no_outputs(folder):
    assert pipeline("ner", folder("bert-entities"))([]) == []
    assert pipeline("translation", folder("marian"))([]) == []
