"""Pipelines that transformers 5 took away, against its models with what version 4.57 did around them."""

import numpy as np
import pytest

transformers = pytest.importorskip("transformers")

import torch

from glassformer import pipeline
from glassformer.pipelines.decoding import warp_logits
from glassformer.pipelines.generation_config import (
    TEXT_GENERATION_DEFAULTS,
    TEXT_TO_TEXT_DEFAULTS,
    GenerateOptions,
    GenerationConfig,
    resolve_generation_config,
)
from tests.pipelines.conftest import SUMMARY, assert_same

CAT = "The cat sat on the mat, and Ann didn't see it."
ROME = "Where does Wolfgang live? He lives in Rome with cats, zebras & żółw."
RAIN = "It is raining."
LONG = " ".join([CAT, ROME, RAIN] * 4)
TEXTS = [CAT, "the <extra_id_0> cat </s> sat", RAIN]


@pytest.fixture(scope="module")
def generate(folder):
    """What `model.generate` says of a text, as `tokenizer.decode` writes it."""
    known = {}

    def said(name, text, clean=False, **options):
        if name not in known:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder(name))
            known[name] = tokenizer, transformers.AutoModelForSeq2SeqLM.from_pretrained(folder(name)).eval()
        tokenizer, model = known[name]
        found = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            ids = model.generate(**found, **{"num_beams": 4, **options})
        return [tokenizer.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=clean) for row in ids]

    return said


OPTIONS = [
    {},
    {"num_beams": 3, "num_return_sequences": 2},
    {"num_beams": 2, "length_penalty": 2.5, "num_return_sequences": 2},
    {"repetition_penalty": 2.0, "num_beams": 1},
    {"forced_bos_token_id": 9},
    {"length_penalty": -1.0},
    {"early_stopping": True, "num_return_sequences": 4},
    {"early_stopping": True, "length_penalty": -1.0},
    {"early_stopping": "never", "num_return_sequences": 4},
    {"early_stopping": "never", "length_penalty": 3.0},
    {"min_length": 5},
    {"min_new_tokens": 8},
    {"no_repeat_ngram_size": 1},
    {"repetition_penalty": 1.7, "bad_words_ids": [[8], [9, 10]], "num_beams": 3},
    {"eos_token_id": [0, 1, 5, 9, 20, 30], "num_return_sequences": 4},
]
T5 = "t5", "text2text-generation", "generated_text"
MARIAN = "marian", "translation", "translation_text"


@pytest.mark.parametrize(
    ("name", "task", "key", "options"),
    [(*MARIAN, options) for options in OPTIONS] + [(*T5, options) for options in OPTIONS[:4]],
    ids=str,
)
def test_texts_are_what_generate_says(folder, generate, name, task, key, options):
    options = {"max_new_tokens": 12, **options}
    found = pipeline(task, folder(name))(TEXTS, **options)
    for text, records in zip(TEXTS, found, strict=True):
        records = [records] if isinstance(records, dict) else records
        assert records == [{key: said} for said in generate(name, text, **options)]


def test_the_models_of_these_tests_end_what_they_say(folder):
    said = pipeline("translation", folder("marian"), max_new_tokens=12, num_return_sequences=4, return_tensors=True)
    lengths = [len(record["translation_token_ids"]) for records in said(TEXTS) for record in records]
    assert len({*lengths}) > 4
    assert min(lengths) < 5 < max(lengths)


def test_usual_lengths_and_beams_are_those_of_version_4(folder):
    source = pipeline(model=folder("t5")).source
    rules = resolve_generation_config(source, "summarization", TEXT_TO_TEXT_DEFAULTS, GenerateOptions())
    assert rules == GenerationConfig(max_new_tokens=256, num_beams=4, decoder_start_token_id=0, eos_token_id=(1,))
    source = pipeline(model=folder("gpt2")).source
    rules = resolve_generation_config(source, "text-generation", TEXT_GENERATION_DEFAULTS, GenerateOptions())
    assert rules == GenerationConfig(max_new_tokens=256, do_sample=True, temperature=0.7, top_k=50, eos_token_id=(0,))


def test_what_the_models_files_say_stands_before_what_is_usual(folder, generate):
    rules = resolve_generation_config(
        pipeline(model=folder("marian")).source, "translation", TEXT_TO_TEXT_DEFAULTS, GenerateOptions()
    )
    assert (rules.max_length, rules.max_new_tokens, rules.num_beams, rules.bad_words_ids) == (40, None, 4, ((2,),))
    assert pipeline("translation", folder("marian"))(ROME)[0]["translation_text"] == generate("marian", ROME)[0]


def test_the_callers_max_length_counts_where_the_files_say_nothing(folder, generate):
    found = pipeline("summarization", folder("t5"))(CAT, max_length=9, min_length=2, do_sample=False)
    assert found == [{"summary_text": generate("t5", CAT, max_length=9, min_length=2)[0]}]


def test_a_text_gives_a_list_and_a_list_a_flat_one(folder):
    translate = pipeline("translation_en_to_de", folder("marian"), max_new_tokens=5)
    one, two = translate(CAT), translate([CAT, RAIN])
    assert [list(record) for record in one + two] == [["translation_text"]] * 3
    assert translate([CAT]) == one == two[:1]
    assert list(translate(text for text in [CAT, RAIN])) == [one, two[1:]]
    several = translate([CAT, RAIN], num_return_sequences=2)
    assert [len(records) for records in several] == [2, 2]
    assert translate(CAT, num_return_sequences=2) == several[0]


def test_what_config_says_of_a_task_is_done(folder, generate):
    rest = {name: value for name, value in SUMMARY.items() if name != "prefix"}
    found = pipeline("summarization", folder("t5-asked"), max_new_tokens=12)(CAT)
    assert found == [{"summary_text": generate("t5-asked", "The cat: " + CAT, max_new_tokens=12, **rest)[0]}]
    with pytest.warns(UserWarning, match="translation is taken to be translation_en_to_de"):
        translate = pipeline("translation", folder("t5-asked"), max_new_tokens=12)
    assert translate.task == "translation_en_to_de"
    assert translate(CAT)[0]["translation_text"] == generate("t5-asked", "A dog: " + CAT, max_new_tokens=12)[0]


def test_ids_and_clean_text_are_given_when_asked_for(folder, generate):
    said = pipeline("text2text-generation", folder("t5"), max_new_tokens=12)
    assert said(CAT, clean_up_tokenization_spaces=True) == [
        {"generated_text": generate("t5", CAT, clean=True, max_new_tokens=12)[0]}
    ]
    (record,) = said(CAT, return_tensors=True)
    assert list(record) == ["generated_token_ids"]
    assert record["generated_token_ids"][0] == 0
    assert (
        said.tokenizer.decode(record["generated_token_ids"].tolist(), skip_special_tokens=True)
        == said(CAT)[0]["generated_text"]
    )


def test_a_t5_reads_texts_of_any_length_and_a_marian_says_what_it_left_out(folder, generate):
    longer = LONG + LONG
    assert pipeline("text2text-generation", folder("t5"), max_new_tokens=7)(longer) == [
        {"generated_text": generate("t5", longer, max_new_tokens=7)[0]}
    ]
    translate = pipeline("translation", folder("marian"), max_new_tokens=7)
    with pytest.warns(UserWarning, match="longer than the 61 tokens that the model reads"):
        cut = translate(longer)
    assert translate(longer, truncation=True) == cut


def test_texts_that_are_decoded_together_are_as_if_alone(folder):
    translate = pipeline("translation", folder("marian"), max_new_tokens=11, num_beams=3)
    texts = [CAT, RAIN, "The cat and the dog", RAIN]
    assert translate(texts) == [translate(text)[0] for text in texts]


# Drawing


def test_tokens_are_drawn_as_often_as_transformers_would(folder):
    n = 3000
    options = {"temperature": 1.3, "top_k": 9, "top_p": 0.8}
    ours = pipeline("text-generation", folder("gpt2"))
    drawn = ours(
        "The cat", do_sample=True, max_new_tokens=1, num_return_sequences=n, seed=5, return_tensors=True, **options
    )
    counts = np.bincount([record["generated_token_ids"][-1] for record in drawn], minlength=331)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder("gpt2")).eval()
    ids = torch.tensor([drawn[0]["generated_token_ids"][:-1]])
    with torch.no_grad():
        found = model.generate(
            ids, do_sample=True, max_new_tokens=1, return_dict_in_generate=True, output_scores=True, pad_token_id=0,
            **options,
        )  # fmt: skip
    probs = found.scores[0][0].softmax(-1).numpy()
    assert (counts[probs == 0] == 0).all()
    assert np.abs(counts / n - probs).max() < 4 * (0.25 / n) ** 0.5


@pytest.mark.parametrize("n_least", [1, 2, 5])
@pytest.mark.parametrize("options", [{"temperature": 0.3}, {"top_k": 3}, {"top_p": 0.6}, {"top_p": 1e-6, "top_k": 4}])
def test_scores_are_shaped_as_by_transformers(options, n_least):
    scores = 2 * torch.randn(5, 37)
    expected = scores / options.get("temperature", 1.0)
    if "top_k" in options:
        expected = transformers.TopKLogitsWarper(options["top_k"], min_tokens_to_keep=n_least)(None, expected)
    if "top_p" in options:
        expected = transformers.TopPLogitsWarper(options["top_p"], min_tokens_to_keep=n_least)(None, expected)
    torch.testing.assert_close(warp_logits(scores, GenerationConfig(**{"top_k": 0, **options}), n_least), expected)


def test_beams_are_drawn_without_replacement_and_by_probability(folder):
    n = 400
    ours = pipeline("text-generation", folder("gpt2"), do_sample=True, max_new_tokens=1, top_k=7, return_tensors=True)
    options = {"num_beams": 2, "num_return_sequences": 2}
    pairs = [[r["generated_token_ids"][-1] for r in row] for row in ours(["The cat"] * n, seed=3, **options)]
    assert all(a != b for a, b in pairs)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder("gpt2")).eval()
    ids = torch.tensor([ours.tokenizer.read("The cat")[0].ids])
    with torch.no_grad():
        logits = model(ids).logits[0, -1] / 0.7
    kept = logits.topk(7)
    probs = kept.values.log_softmax(-1).double()
    # Of the four that are drawn for two beams the first two end here: those are the two drawn first.
    p = torch.exp(probs)
    first_two = p + torch.stack([sum(p[j] * p[i] / (1 - p[j]) for j in range(7) if j != i) for i in range(7)])
    counts = np.array([sum(int(token) in pair for pair in pairs) for token in kept.indices])
    assert np.abs(counts / n - first_two.numpy()).max() < 4 * (0.25 / n) ** 0.5


def test_a_seed_repeats_what_is_drawn_and_torchs_seed_does_without_one(folder):
    ours = pipeline("text-generation", folder("gpt2"), max_new_tokens=7)
    assert ours("The", seed=3) == ours("The", seed=3) != ours("The", seed=4)
    torch.manual_seed(1)
    first = [ours("The"), ours("The")]
    torch.manual_seed(1)
    assert [ours("The"), ours("The")] == first
    assert first[0] != first[1]
    assert len({record["generated_text"] for record in ours("The", num_return_sequences=5)}) > 1


def test_greedy_is_drawing_from_one(folder):
    ours = pipeline("text-generation", folder("gpt2"), max_new_tokens=12)
    assert ours("The", top_k=1) == ours("The", do_sample=False)


# Answers

ASKED = [(RAIN, CAT), ("Where does Wolfgang live?", ROME), ("Where?", LONG), ("Who's there?", ROME + " " + CAT)]


def answers_of_version_4(
    tokenizer, model, question, context, *, top_k=1, longest=15, size=None, stride=None, **options
):
    """Hand-written: every stretch of every window, by brute force."""
    size = size or min(tokenizer.model_max_length, 384)
    stride = min(size // 2, 128) if stride is None else stride
    windows = tokenizer(
        question, context, truncation="only_second", max_length=size, stride=stride, return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )  # fmt: skip
    found, nothing = [], 1e6
    for w, ids in enumerate(windows["input_ids"]):
        sequence = windows.sequence_ids(w)
        may = [s == 1 or i == tokenizer.cls_token_id for s, i in zip(sequence, ids, strict=True)]
        inputs = {"input_ids": torch.tensor([ids])}
        if "token_type_ids" in windows:
            inputs["token_type_ids"] = torch.tensor([windows["token_type_ids"][w]])
        with torch.no_grad():
            output = model(**inputs)
        start, end = (
            x[0].masked_fill(~torch.tensor(may), -10000.0).softmax(-1).tolist()
            for x in (output.start_logits, output.end_logits)
        )
        nothing = min(nothing, start[0] * end[0])
        start[0] = end[0] = 0.0
        n_tried = 2 * top_k + 10 if options.get("align_to_words", True) else top_k
        pairs = [(start[i] * end[j], i, j) for i in range(len(ids)) for j in range(i, min(len(ids), i + longest))]
        pairs = sorted(pairs, key=lambda pair: -pair[0])[:n_tried]
        for score, i, j in pairs:
            if not (may[i] and may[j]):
                continue
            a, b = windows["offset_mapping"][w][i][0], windows["offset_mapping"][w][j][1]
            words = windows.token_to_word(w, i), windows.token_to_word(w, j)
            if options.get("align_to_words", True) and None not in words:
                a = windows.word_to_chars(w, words[0], sequence_index=1).start
                b = windows.word_to_chars(w, words[1], sequence_index=1).end
            text = context[a:b]
            same = next((answer for answer in found if answer["answer"].lower() == text.lower()), None)
            if same:
                same["score"] += score
            else:
                found.append({"score": score, "start": a, "end": b, "answer": text})
    if options.get("handle_impossible_answer"):
        found.append({"score": nothing, "start": 0, "end": 0, "answer": ""})
    found = sorted(found, key=lambda answer: -answer["score"])[:top_k]
    return found[0] if len(found) == 1 else found


@pytest.mark.parametrize("name", ["bert-answers", "roberta-answers"])
@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ({}, {}),
        ({"top_k": 3}, {"top_k": 3}),
        ({"handle_impossible_answer": True, "top_k": 99}, {"handle_impossible_answer": True, "top_k": 99}),
        ({"max_answer_len": 2, "top_k": 2}, {"longest": 2, "top_k": 2}),
        ({"align_to_words": False, "top_k": 5}, {"align_to_words": False, "top_k": 5}),
        ({"doc_stride": 5, "max_seq_len": 40, "top_k": 3}, {"stride": 5, "size": 40, "top_k": 3}),
    ],
    ids=str,
)
def test_answers_are_those_of_version_4(folder, name, options, theirs):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder(name))
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(folder(name)).eval()
    answer = pipeline("question-answering", folder(name), **options)
    for question, context in ASKED:
        expected = answers_of_version_4(tokenizer, model, question, context, **theirs)
        assert_same(answer(question=question, context=context), expected)


def test_questions_may_be_asked_in_every_way_of_version_4(folder):
    answer = pipeline("question-answering", folder("bert-answers"))
    one = answer(question="Where?", context=ROME)
    assert list(one) == ["score", "start", "end", "answer"]
    assert ROME[one["start"] : one["end"]] == one["answer"]
    record = {"question": "Where?", "context": ROME}
    assert (
        one == answer("Where?", ROME) == answer(record) == answer([record]) == answer(question=["Where?"], context=ROME)
    )
    other = answer(question="Who?", context=CAT)
    assert answer([record, {"question": "Who?", "context": CAT}]) == [one, other]
    assert answer(question=["Where?", "Who?"], context=[ROME, CAT]) == [one, other]
    assert answer(question=["Where?", "Who?"], context=ROME)[0] == one
    assert list(answer(r for r in [record, record])) == [one, one]
    assert [len(found) for found in answer([record, record], top_k=2)] == [2, 2]
    assert answer(question="Where?", context=ROME, topk=2) == answer(question="Where?", context=ROME, top_k=2)


def test_old_names_of_arguments_are_known(folder):
    grade = pipeline("sentiment-analysis", folder("bert-grades"))
    every = grade(CAT, return_all_scores=True)
    assert [row["label"] for row in every[0]] == ["good", "bad", "so so"]
    assert grade(CAT, return_all_scores=False) == grade(CAT)
    assert grade([CAT], return_all_scores=True) == every
    tag = pipeline("ner", folder("bert-entities"))
    assert tag(CAT, grouped_entities=True) == tag(CAT, aggregation_strategy="simple")
    assert tag(CAT, grouped_entities=True, ignore_subwords=True) == tag(CAT, aggregation_strategy="first")
    assert tag(CAT, grouped_entities=False) == tag(CAT)
