"""Chats: the same prompts and outputs as text-generation of transformers."""

import json
import shutil
import sys
from pathlib import Path

import pytest

transformers = pytest.importorskip("transformers")

from glassformer import pipeline
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop import hub
from glassformer.pipelines.chat import chat_prompt
from tests.pipelines.conftest import assert_same

ROLES = (
    "{{ bos_token }}{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
CHAT = [{"role": "user", "content": "The cat"}]
PREFILLED = [*CHAT, {"role": "assistant", "content": "A dog ran "}]
GREEDY = {"max_new_tokens": 6, "do_sample": False, "clean_up_tokenization_spaces": False}
BOS_FIRST = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}},
}


def edit(path: Path, **entries: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


@pytest.fixture
def with_template(folder, tmp_path):
    """Copies a GPT-2 whose tokenizer adds a start token, and writes a chat template; gives both pipelines."""

    def made(template=ROLES, *, file=True):
        copy = tmp_path / "gpt2-chat"
        shutil.copytree(folder("gpt2"), copy)
        edit(copy / "tokenizer.json", post_processor=BOS_FIRST)
        if file:
            (copy / "chat_template.jinja").write_text(template)
        else:
            edit(copy / "tokenizer_config.json", chat_template=template)
        theirs = transformers.pipeline("text-generation", model=str(copy), device=-1)
        return pipeline("text-generation", str(copy), device=-1), theirs

    return made


def compare(pipelines, inputs=CHAT, **options):
    ours, theirs = pipelines
    assert_same(ours(inputs, **GREEDY, **options), theirs(inputs, **GREEDY, **options))


@pytest.mark.parametrize("file", [True, False])
def test_chats_match_transformers(with_template, file):
    pipelines = with_template(file=file)
    compare(pipelines)
    compare(pipelines, [CHAT, [*CHAT, {"role": "bot", "content": "sat"}]])


def test_the_default_of_named_templates_is_used(with_template):
    named = [{"name": "tool_use", "template": "wrong"}, {"name": "default", "template": ROLES}]
    compare(with_template(named, file=False))


def test_chat_templates_are_downloaded():
    assert "*.jinja" in hub.DOWNLOADED_FILES


def test_the_prompt_of_a_chat_has_the_special_tokens_of_the_template_only(with_template):
    ours, theirs = with_template()
    prompt = theirs.tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, return_dict=False)
    assert ours(CHAT, **GREEDY, return_tensors=True)[0]["generated_token_ids"][:-6] == prompt
    assert prompt[0] == 0 != prompt[1]


@pytest.mark.parametrize("options", [{}, {"return_full_text": False}, {"continue_final_message": False}], ids=str)
@pytest.mark.parametrize("inputs", [CHAT, PREFILLED, [CHAT, PREFILLED]])
def test_replies_match_transformers(with_template, inputs, options):
    compare(with_template(), inputs, **options)


def test_ids_of_a_chat_match_transformers(with_template):
    ours, theirs = with_template()
    options = {"max_new_tokens": 6, "do_sample": False, "return_tensors": True}
    assert_same(ours(PREFILLED, **options), theirs(PREFILLED, **options))


TEMPLATES = {
    "break": "{% for m in messages %}{{ m['content'] }}{% break %}{% endfor %}",
    "continue": "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m['role'] }}{% endfor %}",
    "generation": "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ messages[-1]['role'] }}{% endgeneration %}{{ x }}",
    "time": "{{ strftime_now('%Y') | length }}",
    "tools": "{{ tools is none }} {{ documents is none }} {{ tools is defined }}",
    "json": "{{ messages | tojson }} {{ {'b': '<ö>', 'a': [1]} | tojson(indent=2, sort_keys=True) }}",
    "tokens": "{{ bos_token }}|{{ eos_token }}|{{ pad_token }}|{{ unk_token }}",
    "trimmed": "{% for m in messages %}<{{ m['content'] | trim }}>\n{% endfor %}",
}


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("chat", [CHAT, [*CHAT, {"role": "assistant", "content": "A 'dog' & <cat> "}]])
def test_templates_are_rendered_as_by_transformers(folder, name, chat):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder("gpt2"))
    names = pipeline("text-generation", folder("gpt2")).tokenizer.template_variables
    expected = tokenizer.apply_chat_template(
        chat, chat_template=TEMPLATES[name], tokenize=False, add_generation_prompt=True
    )
    assert chat_prompt(chat, TEMPLATES[name], names, continues=False) == expected


@pytest.mark.parametrize("template", [ROLES, TEMPLATES["trimmed"]])
@pytest.mark.parametrize("content", ["A dog", "A dog ", " A dog\n"])
def test_the_prompt_of_a_continued_message_ends_with_it_as_in_transformers(folder, template, content):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder("gpt2"))
    names = pipeline("text-generation", folder("gpt2")).tokenizer.template_variables
    chat = [*CHAT, {"role": "assistant", "content": content}]
    expected = tokenizer.apply_chat_template(chat, chat_template=template, tokenize=False, continue_final_message=True)
    assert chat_prompt(chat, template, names, continues=True) == expected


def test_a_message_that_the_template_omits_cannot_be_continued():
    with pytest.raises(ConfigError, match="omits or changes the last message"):
        chat_prompt(PREFILLED, "{{ messages[0]['content'] }}", {}, continues=True)


@pytest.mark.parametrize("template", ["{% for %}", "{{ raise_exception('no system') }}", "{{ missing | tojson }}"])
def test_invalid_templates_are_errors(template):
    with pytest.raises(CheckpointError, match="the chat template of this model cannot be used"):
        chat_prompt(CHAT, template, {}, continues=False)


def test_a_template_without_jinja2_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ConfigError, match="a chat template needs the package jinja2"):
        chat_prompt(CHAT, ROLES, {}, continues=False)


def test_a_folder_of_transformers_without_a_chat_template_refuses_chats(folder):
    with pytest.raises(ConfigError, match=r"has no chat template: neither chat_template.jinja"):
        pipeline("text-generation", folder("gpt2"))(CHAT, **GREEDY)


def test_a_prefix_is_refused_for_chats(with_template):
    with pytest.raises(ConfigError, match="prefix: not for chats"):
        with_template()[0](CHAT, **GREEDY, prefix="The ")
