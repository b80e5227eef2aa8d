"""Pipelines for folders of glassformer: the outputs are those of the task, in the dictionaries of transformers."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import glassformer as gf
from glassformer import checkpoint, pipeline
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.models.bert import Bert, BertConfig
from glassformer.models.gpt2 import Gpt2, Gpt2Config
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.tasks.registry import task_class
from glassformer.tokens.tokenizer import MASK, Tokenizer
from tests.tokens.options import tokenizer_options

TEXTS = ["The cat sat on the mat.", "A dog ran over the hill to Berlin!", "Where does Ann live? In Rome, with cats."]
CAT, DOG, ANN = TEXTS
LABELS = {"classification": ["bad", "good"], "regression": ["1.0", "4.0"], "tagging": ["B-LOC", "I-LOC", "O"]}
HEADS = {
    "classification": 2,
    "regression": 1,
    "tagging": 3,
    "question-answering": 2,
    "masked-lm": 0,
    "feature-extraction": 0,
}
SIZES = dict(d_model=14, n_heads=2, d_ff=23, dropout=0.0)


def build(name, kind="wordpiece"):
    """An untrained glassformer task with large random weights."""
    torch.manual_seed(1)
    task = task_class(name)
    tokenizer = Tokenizer.train(
        TEXTS * 9,
        kind=kind,
        vocab_size=350,
        **tokenizer_options(name),
    )
    ids = dict(pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id)
    sizes = {**SIZES, **ids, "vocab_size": tokenizer.vocab_size}
    if name in HEADS:
        labels = dict(n_labels=HEADS[name]) if HEADS[name] else {}
        model = Bert(BertConfig(**{**sizes, **task.head_config, **labels}, n_layers=2, max_len=37))
    elif name == "translation":
        model = Transformer(TransformerConfig(**sizes, n_encoder_layers=1, n_decoder_layers=2, max_len=23))
    else:
        model = Gpt2(Gpt2Config(**sizes, n_layers=2, max_len=37))
    for p in model.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.4)
    return task(model, tokenizer, "cpu", LABELS.get(name, ()))


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """The folder of an untrained task."""
    made = {}

    def folder(name, kind="wordpiece"):
        if (name, kind) not in made:
            made[name, kind] = tmp_path_factory.mktemp("ours") / name
            checkpoint.save_folder(made[name, kind], build(name, kind).contents())
        return made[name, kind]

    return folder


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("translation", "translation"), ("summarization", "summarization"), ("causal-lm", "text-generation"),
        ("masked-lm", "fill-mask"), ("question-answering", "question-answering"),
        ("classification", "text-classification"),
        ("regression", "text-classification"), ("tagging", "token-classification"),
        ("feature-extraction", "feature-extraction"),
    ],
)  # fmt: skip
def test_default_task_follows_from_the_model(ours, name, task):
    assert (
        pipeline(model=ours(name, "bpe" if name in ("translation", "summarization", "causal-lm") else "wordpiece")).task
        == task
    )


@pytest.mark.filterwarnings("ignore:.*the translation was cut off")
def test_translations_match_the_task(ours):
    folder = ours("translation", "bpe")
    task, translate = gf.load(folder), pipeline("translation", model=folder)
    assert translate([CAT, DOG]) == [{"translation_text": text} for text in task([CAT, DOG])]
    assert translate(CAT, num_beams=2, max_new_tokens=5) == [{"translation_text": task(CAT, beam=2, max_length=5)}]
    assert translate(CAT, num_beams=2, max_length=9, max_new_tokens=5) == translate(CAT, num_beams=2, max_new_tokens=5)
    assert translate(CAT, min_length=7, max_length=9) == [{"translation_text": task(CAT, min_length=7, max_length=9)}]
    assert translate("The\n\nA", max_length=3) == [{"translation_text": task("The\n\nA", max_length=3)}]
    best = task.translate([CAT], DecodeConfig(nbest=3, max_length=4))[0]
    assert translate(CAT, num_return_sequences=3, max_length=4) == [{"translation_text": t.text} for t in best]
    assert pipeline("text2text-generation", folder)(DOG, max_length=4) == [{"generated_text": task(DOG, max_length=4)}]


def test_each_returned_translation_is_sampled_independently(ours):
    translate = pipeline(
        "translation", ours("translation", "bpe"), do_sample=True, num_return_sequences=3, max_new_tokens=4
    )
    samples = translate([CAT, CAT], seed=4)
    assert [len(records) for records in samples] == [3, 3]
    assert samples == translate([CAT, CAT], seed=4)
    assert len({record["translation_text"] for records in samples for record in records}) == 6


def test_a_long_text_is_translated_in_parts_with_a_warning(ours):
    translate = pipeline(model=ours("translation", "bpe"), max_new_tokens=3)
    with pytest.warns(UserWarning, match="longer than the maximum length of 22 tokens: translated in . parts"):
        found = translate(" ".join(TEXTS * 2))
    assert translate(" ".join(TEXTS * 2), truncation=True) == found


def test_summaries_match_the_task(ours):
    folder = ours("summarization", "bpe")
    task = gf.load(folder)
    assert pipeline("summarization", folder)([CAT, DOG]) == [{"summary_text": text} for text in task([CAT, DOG])]


def test_continuations_match_the_task(ours):
    folder = ours("causal-lm", "bpe")
    task, generate = gf.load(folder), pipeline("text-generation", folder, max_new_tokens=9)
    greedy = task([CAT, DOG], beam=1, max_length=9)
    assert generate([CAT, DOG], do_sample=False) == [
        [{"generated_text": a + b}] for a, b in zip([CAT, DOG], greedy, strict=True)
    ]
    assert generate(CAT, do_sample=False, return_full_text=False) == [{"generated_text": greedy[0]}]
    # Default: the sampling options of the task.
    assert generate(CAT, seed=5) == [
        {"generated_text": CAT + task(CAT, temperature=0.8, top_k=40, seed=5, max_length=9)}
    ]
    assert generate(CAT, top_p=0.5, seed=5, return_full_text=False) == [
        {"generated_text": task(CAT, temperature=0.8, top_k=40, top_p=0.5, seed=5, max_length=9)}
    ]
    assert len(generate(CAT, num_return_sequences=4)) == 4
    stop = greedy[0][2:4]
    assert (
        generate(CAT, do_sample=False, return_full_text=False, stop_sequence=stop)[0]["generated_text"]
        == greedy[0].split(stop)[0]
    )


@pytest.mark.parametrize("kind", ["wordpiece", "word"])
def test_a_continuation_keeps_the_space_after_the_prompt(ours, kind):
    folder = ours("causal-lm", kind)
    task, generate = gf.load(folder), pipeline("text-generation", folder, max_new_tokens=9, do_sample=False)
    continued = task([CAT, DOG], beam=1, max_length=9)
    assert generate([CAT, DOG]) == [
        [{"generated_text": f"{a} {b}"}] for a, b in zip([CAT, DOG], continued, strict=True)
    ]
    assert generate(CAT, return_full_text=False) == [{"generated_text": " " + continued[0]}]


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_labels_and_numbers_match_the_task(ours, kind):
    task, grade = gf.load(ours("classification", kind)), pipeline(model=ours("classification", kind))
    for text, row in zip(TEXTS, task.probabilities(TEXTS).tolist(), strict=True):
        assert [(r["label"], pytest.approx(r["score"], abs=1e-6)) for r in grade(text, return_all_scores=True)[0]] == [
            *zip(LABELS["classification"], row, strict=True)
        ]
    pair = task.probabilities([(CAT, DOG)]).max()
    assert grade({"text": CAT, "text_pair": DOG})["score"] == pytest.approx(float(pair), abs=1e-6)
    task, measure = gf.load(ours("regression", kind)), pipeline(model=ours("regression", kind))
    assert measure(TEXTS) == [{"label": "LABEL_0", "score": pytest.approx(x, abs=1e-5)} for x in task(TEXTS)]


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "char"])
def test_tags_cover_all_words(ours, kind):
    tag = pipeline("ner", ours("tagging", kind), ignore_labels=[])
    text = "In Rome, with ☃ & Ann."
    tokens = tag(text)
    assert [token["index"] for token in tokens] == list(range(1, 1 + len(tokens)))
    positions = [position for token in tokens for position in range(token["start"], token["end"])]
    assert {*positions} >= {i for i, character in enumerate(text) if character != " "}
    assert {token["entity"] for token in tokens} <= {*LABELS["tagging"]}
    if kind != "char":  # for char, spaces are tokens, which the task does not use
        words = "Ann live with cats"
        starts = [0, 4, 9, 14]
        firsts = [token["entity"] for token in tag(words) if token["start"] in starts]
        assert firsts == [label for _, label in gf.load(ours("tagging", kind))(words)]


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "char"])
def test_answers_are_spans_of_the_context(ours, kind):
    answer = pipeline(model=ours("question-answering", kind), top_k=7, max_answer_len=4)
    for context in [ANN, " ".join(TEXTS)]:
        found = answer(question="Who?", context=context)
        assert len(found) == 7
        for row in found:
            assert row["answer"] == context[row["start"] : row["end"]]
            assert len(row["answer"].split()) <= 5
            assert row["answer"] == row["answer"].strip() or kind == "char"
    scores = [row["score"] for row in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_predictions_for_masks_match_the_task(ours, kind):
    task, fill = gf.load(ours("masked-lm", kind)), pipeline(model=ours("masked-lm", kind), top_k=3)
    for text in [f"The {MASK} sat.", f"A {MASK} ran {MASK} Berlin!"]:
        found = fill(text)
        expected = [
            [{"score": pytest.approx(g.score, abs=1e-6), "token": g.token_id, "sequence": g.text} for g in mask]
            for mask in task.fill_mask(text, top_k=3)
        ]
        found = [found] if isinstance(found[0], dict) else found
        assert [[{k: row[k] for k in ("score", "token", "sequence")} for row in mask] for mask in found] == expected
    assert fill.tokenizer.mask_token in (MASK, "[MASK]")
    assert fill(f"The {fill.tokenizer.mask_token} sat.") == fill(f"The {MASK} sat.")


def test_names_of_special_tokens_in_a_text_are_plain_text(ours):
    grade = pipeline(model=ours("classification"))
    ids = grade.tokenizer.encode_windows("a [SEP] b")[0].ids
    assert ids.count(grade.tokenizer.sep_token_id) == 1


def test_hidden_states_have_one_row_per_token(ours):
    extract = pipeline(model=ours("feature-extraction"))
    vectors = torch.tensor(extract(CAT))
    assert vectors.shape == (1, len(extract.tokenizer.encode_windows(CAT)[0].ids), SIZES["d_model"])
    mean = torch.nn.functional.normalize(vectors[0].mean(0), dim=0)
    torch.testing.assert_close(mean, torch.from_numpy(gf.load(ours("feature-extraction"))([CAT])[0]))
    assert torch.tensor(pipeline("feature-extraction", ours("causal-lm", "bpe"))(CAT)).shape[2] == SIZES["d_model"]


def test_a_loaded_task_can_be_passed_as_model(ours):
    folder = ours("translation", "bpe")
    found = [pipeline("translation", model, max_new_tokens=4)(CAT) for model in (gf.load(folder), str(folder))]
    assert found[0] == found[1]


def test_unsupported_arguments_of_native_folders_are_reported(ours):
    with pytest.raises(
        gf.errors.ConfigError,
        match="early_stopping: not supported for models of glassformer, which support num_beams",
    ):
        pipeline(model=ours("translation", "bpe"))(CAT, early_stopping=True)
    with pytest.raises(gf.errors.ConfigError, match="requires do_sample=True for several outputs"):
        pipeline(model=ours("causal-lm", "bpe"))(CAT, num_beams=4, num_return_sequences=2)
    with pytest.warns(UserWarning, match="top_k: no effect without do_sample=True"):
        pipeline(model=ours("translation", "bpe"))(CAT, top_k=5, max_new_tokens=2)


def test_arguments_of_transformers_are_options_of_native_folders(ours):
    folder = ours("translation", "bpe")
    options = {"min_length": 9, "no_repeat_ngram_size": 2, "repetition_penalty": 1.5, "max_length": 11}
    arguments = {"min_new_tokens": 9, "no_repeat_ngram_size": 2, "repetition_penalty": 1.5, "max_new_tokens": 11}
    expected = gf.load(folder)(CAT, **options)
    assert expected != gf.load(folder)(CAT, max_length=11)
    assert pipeline(model=folder)(CAT, **arguments) == [{"translation_text": expected}]


def test_sentence_similarity_is_the_cosine_of_the_vectors(ours):
    similar = pipeline("sentence-similarity", ours("feature-extraction"))
    vectors = gf.load(ours("feature-extraction"))([CAT, DOG, ANN])
    expected = (vectors[1:] @ vectors[0]).tolist()
    assert similar({"source_sentence": CAT, "sentences": [DOG, ANN]}) == pytest.approx(expected, abs=1e-6)
    assert similar(CAT, [DOG, ANN]) == pytest.approx(expected, abs=1e-6)
    assert similar(CAT, CAT) == pytest.approx([1.0], abs=1e-5)
    with pytest.raises(ConfigError, match=r"expected .*source_sentence"):
        similar({"source_sentence": CAT})


def test_sentence_similarity_of_a_model_of_pairs_is_its_number(ours):
    similar = pipeline("sentence-similarity", ours("regression"))
    assert similar(CAT, [DOG]) == pytest.approx([gf.load(ours("regression"))((CAT, DOG))])


@pytest.mark.parametrize("name", ["causal-lm", "translation"])
def test_samples_of_a_generator_do_not_depend_on_the_batch_size(ours, name):
    sample = pipeline(model=ours(name, "bpe"), do_sample=True, seed=1, max_new_tokens=9)
    expected = list(sample(iter([DOG] * 3)))
    assert len({str(outputs) for outputs in expected}) == 3
    assert list(sample(iter([DOG] * 3), batch_size=2)) == expected


def test_a_chat_is_continued_by_one_line_of_the_assistant(ours):
    generate = pipeline("text-generation", ours("causal-lm", "bpe"), max_new_tokens=12, do_sample=False)
    chat = [{"role": "user", "content": CAT}]
    (result,) = generate(chat)
    prompt = f"user: {CAT}\nassistant:"
    line = generate(prompt, return_full_text=False)[0]["generated_text"].lstrip(" ").split("\n")[0]
    assert result["generated_text"] == [*chat, {"role": "assistant", "content": line}]
    assert generate([chat, chat]) == [[result], [result]]
    with pytest.raises(ConfigError, match="each message"):
        generate([{"role": "user", "content": 3}])


def test_the_last_message_of_the_assistant_is_continued(ours):
    generate = pipeline("text-generation", ours("causal-lm", "bpe"), max_new_tokens=7, do_sample=False)
    chat = [{"role": "user", "content": CAT}, {"role": "assistant", "content": "A dog"}]
    rest = generate(f"user: {CAT}\nassistant: A dog", return_full_text=False)[0]["generated_text"].split("\n")[0]
    assert generate(chat) == [{"generated_text": [chat[0], {"role": "assistant", "content": "A dog" + rest}]}]
    assert generate(chat, return_full_text=False) == [{"generated_text": rest}]


@pytest.mark.parametrize("name", ["dtype", "torch_dtype"])
def test_bfloat16_gives_nearly_the_same_scores(ours, name):
    full = pipeline("text-classification", ours("classification"))(CAT, top_k=None)
    half = pipeline("text-classification", ours("classification"), **{name: torch.bfloat16})(CAT, top_k=None)
    scores = {row["label"]: row["score"] for row in full}
    assert {row["label"]: row["score"] for row in half} == pytest.approx(scores, abs=0.1)
    with pytest.raises(ConfigError, match="float16"):
        pipeline("text-classification", ours("classification"), dtype="float16")


@pytest.mark.parametrize("name", ["translation", "causal-lm"])
def test_generation_in_int8_is_that_of_the_task(ours, name):
    task = gf.load(ours(name, "bpe"))
    expected = task.run([CAT], DecodeConfig(precision="int8", beam=1, max_length=7))
    pipe = pipeline(
        model=ours(name, "bpe"), precision="int8", **({"return_full_text": False} if name == "causal-lm" else {})
    )
    options = {"do_sample": False} if name == "causal-lm" else {}
    (output,) = pipe(CAT, max_new_tokens=7, num_beams=1, **options)
    assert next(iter(output.values())).strip() == expected[0].strip()
    assert pipe.source.precision == "int8"


@pytest.mark.parametrize("name", ["classification", "tagging", "question-answering", "feature-extraction"])
def test_encoders_in_int8_give_nearly_the_same_numbers(ours, name):
    inputs = {"question": "who?", "context": CAT} if name == "question-answering" else CAT
    full, int8 = (pipeline(model=ours(name, "bpe"), precision=p) for p in ("fp32", "int8"))
    found, expected = numbers(int8(inputs)), numbers(full(inputs))
    assert found != expected
    assert found == pytest.approx(expected, abs=0.2)


def numbers(value):
    """All floats in nested lists and dictionaries."""
    if isinstance(value, dict | list | tuple):
        return [x for item in (value.values() if isinstance(value, dict) else value) for x in numbers(item)]
    return [float(value)] if isinstance(value, float | np.floating) else []


def test_device_map_is_a_device(ours):
    assert str(pipeline(model=ours("classification"), device_map="cpu").device) == "cpu"
    assert pipeline(model=ours("classification"), device_map="auto")(CAT)
    with pytest.raises(ConfigError, match="device_map"):
        pipeline(model=ours("classification"), device_map="auto", device="cpu")


def test_a_saved_pipeline_is_a_model_folder(ours, tmp_path):
    pipe = pipeline("text-classification", ours("classification"))
    pipe.save_pretrained(tmp_path / "copy")
    assert pipeline(model=tmp_path / "copy")(CAT) == pipe(CAT)


@pytest.fixture
def frequent_switches():
    """Threads take turns after every few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.filterwarnings("ignore:.*the translation was cut off")
@pytest.mark.parametrize("name", ["translation", "classification", "tagging", "question-answering", "masked-lm"])
def test_threads_can_share_a_task(ours, name):
    task = gf.load(ours(name, "bpe"), device="cpu")
    texts = {"question-answering": "Who sat?\t{}", "masked-lm": f"The {MASK} sat. {{}}"}
    lines = [[texts.get(name, "{}").format(f"{CAT} {i}")] * 3 for i in range(4)]
    expected = [task.run(part) for part in lines]
    with ThreadPoolExecutor(4) as executor:
        for _ in range(3):
            assert list(executor.map(task.run, lines)) == expected


def test_threads_can_share_a_tokenizer(ours, frequent_switches):
    tokenizer = pipeline(model=ours("classification", "bpe")).tokenizer
    limits = [None, 7, 11, None] * 300

    def n_tokens(limit):
        return len(tokenizer.encode_windows(" ".join([CAT] * 9), max_length=limit)[0].ids)

    expected = [n_tokens(limit) for limit in limits]
    with ThreadPoolExecutor(4) as executor:
        assert list(executor.map(n_tokens, limits)) == expected
