"""Pipelines that transformers 5 still has: both implementations give the same output for the same arguments."""

import warnings

import pytest

transformers = pytest.importorskip("transformers")

import torch

from glassformer import pipeline
from glassformer.errors import ConfigError
from tests.pipelines.conftest import assert_same

CAT = "The cat sat on the mat, and Ann didn't see it."
ROME = "Where does Wolfgang live? He lives in Rome with cats, zebras & żółw."
RAIN = "It is raining."
PAIR = {"text": CAT, "text_pair": RAIN}
LONG = " ".join([CAT, ROME, RAIN] * 4)
INPUTS = [CAT, [ROME], [CAT, ROME, RAIN]]


@pytest.fixture(scope="module")
def both(folder):
    """Pipelines of glassformer and of transformers for the same folder."""
    cache = {}

    def pair(task, name, **options):
        key = repr((task, name, options))
        if key not in cache:
            theirs = transformers.pipeline(task, model=folder(name), device=-1, **options)
            cache[key] = pipeline(task, model=folder(name), device=-1, **options), theirs
        return cache[key]

    return pair


def compare(pipelines, inputs, **options):
    ours, theirs = pipelines
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Tokenizer does not support real words", UserWarning)
        warnings.filterwarnings("ignore", "the tokenizer does not split texts into words", UserWarning)
        assert_same(ours(inputs, **options), theirs(inputs, **options))


MODELS = ["bert-grades", "bert-one", "bert-number", "roberta-grades", "distilbert-grades"]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("init", [{}, {"top_k": 2, "function_to_apply": "none"}])
def test_labels_match_transformers(both, name, init):
    pipelines = both("text-classification", name, **init)
    for inputs in [*INPUTS, PAIR, [PAIR, {"text": RAIN}], [[[CAT, RAIN]]]]:
        for options in [{}, {"top_k": None}, {"top_k": 1}, {"function_to_apply": "SIGMOID"}]:
            compare(pipelines, inputs, **options)


@pytest.mark.parametrize("name", MODELS[3:])
def test_truncation_matches_transformers(both, name):
    pipelines = both("sentiment-analysis", name)
    for inputs in [LONG, {"text": LONG, "text_pair": ROME}, {"text": ROME, "text_pair": LONG}]:
        compare(pipelines, inputs, truncation=True)
        compare(pipelines, inputs, truncation=True, max_length=19, padding=True)


def test_special_tokens_in_a_text_match_transformers(both):
    compare(both("text-classification", "bert-grades"), "A [SEP] cat [CLS] [MASK] sat [PAD")
    compare(both("token-classification", "bert-entities", ignore_labels=[]), "A [SEP] cat [MASK] ☃ żółw sat")


@pytest.mark.parametrize("name", ["bert-entities", "roberta-entities"])
@pytest.mark.parametrize("strategy", ["none", "simple", "first", "average", "max"])
def test_entities_match_transformers(both, name, strategy):
    pipelines = both("ner", name, aggregation_strategy=strategy)
    for inputs in INPUTS:
        for ignored in [["O"], [], ["B-LOC", "LOC"]]:
            compare(pipelines, inputs, ignore_labels=ignored)


def test_a_long_text_is_truncated_with_a_warning(both):
    ours, theirs = both("ner", "bert-entities")
    with pytest.warns(UserWarning, match="exceeds the maximum length of 61 tokens"):
        outputs = ours(LONG)
    assert_same(outputs, theirs(LONG))
    assert ours(LONG, truncation=True) == outputs


@pytest.mark.parametrize("name", ["bert-entities", "roberta-entities"])
@pytest.mark.parametrize("strategy", ["none", "simple", "average"])
def test_entities_of_word_lists_match_transformers(both, name, strategy):
    pipelines = both("token-classification", name)
    words = ["The", "unbelievable", "cat's", "Berlin-hill"]
    options = {"is_split_into_words": True, "aggregation_strategy": strategy, "ignore_labels": []}
    compare(pipelines, words, **options)
    compare(pipelines, [words, ["Wolfgang"]], **options)
    compare(pipelines, words, **options, delimiter="--")


@pytest.mark.parametrize("strategy", ["simple", "first", "max"])
@pytest.mark.parametrize("stride", [0, 7])
def test_entities_of_overlapping_windows_match_transformers(both, strategy, stride):
    pipelines = both("ner", "bert-entities", stride=stride, aggregation_strategy=strategy)
    compare(pipelines, [LONG, CAT], ignore_labels=[])


@pytest.mark.parametrize(("name", "mask"), [("bert-fill", "[MASK]"), ("roberta-fill", "<mask>")])
def test_predictions_for_masks_match_transformers(both, name, mask):
    pipelines = both("fill-mask", name)
    for inputs in [
        f"The {mask} sat.",
        [f"The {mask} sat."],
        [f"The {mask} sat.", f"{mask} is raining, isn't it ?"],
        f"The {mask} {mask} on {mask}!",
        [f"The {mask} {mask}", f"a {mask}"],
    ]:
        for options in [{}, {"top_k": 2}, {"targets": "cat"}, {"targets": ["cat", "on"], "top_k": 9}]:
            compare_fill(pipelines, inputs, **options)


def compare_fill(pipelines, inputs, **options):
    """Compare without warnings: words of RoBERTa begin with a space, so both implementations replace the targets."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "targets:", UserWarning)
        compare(pipelines, inputs, **options)


def test_the_mask_of_a_truncated_text_is_predicted(both):
    compare(both("fill-mask", "bert-fill"), "The [MASK] sat. " + LONG, tokenizer_kwargs={"truncation": True})


def test_a_target_outside_the_vocabulary_is_replaced_with_a_warning(folder):
    with pytest.warns(
        UserWarning, match="'unbelievably' is not in the model's vocabulary: its first token 'un.*' is used"
    ):
        pipeline("fill-mask", folder("bert-fill"))("a [MASK]", targets=["unbelievably"])


@pytest.mark.parametrize("name", ["bert", "bert-grades", "roberta-fill", "gpt2"])
def test_hidden_states_match_transformers(both, name):
    pipelines = both("feature-extraction", name)
    for inputs in INPUTS:
        compare(pipelines, inputs)
    compare(pipelines, LONG, truncation=True)
    assert_same(*(p(CAT, return_tensors=True).tolist() for p in pipelines))
    short = {"truncation": True, "max_length": 9}
    compare(both("feature-extraction", name, tokenize_kwargs=short), LONG)


GREEDY = {"do_sample": False, "max_new_tokens": 9, "clean_up_tokenization_spaces": False}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_full_text": False},
        {"return_tensors": True},
        {"num_beams": 3},
        {"num_beams": 3, "num_return_sequences": 2},
        {"num_beams": 4, "length_penalty": 2.5, "max_new_tokens": 17},
        {"num_beams": 4, "length_penalty": -1.0, "early_stopping": True, "max_new_tokens": 17},
        {"num_beams": 4, "early_stopping": "never", "eos_token_id": [30, 31, 40, 260]},
        {"no_repeat_ngram_size": 2, "max_new_tokens": 17},
        {"repetition_penalty": 1.7},
        {"repetition_penalty": 1.7, "num_beams": 3, "renormalize_logits": True},
        {"bad_words_ids": [[5], [7, 8], [263]], "num_beams": 2},
        {"suppress_tokens": [1, 2, 100, 263, 270]},
        {"min_new_tokens": 7, "eos_token_id": 30},
        {"min_length": 13, "max_new_tokens": 19, "eos_token_id": [30, 263]},
        {"forced_eos_token_id": 0},
        {"max_new_tokens": None, "max_length": 25},
        {"prefix": "The dog "},
    ],
    ids=str,
)
def test_continuations_match_transformers(both, options):
    options = {name: value for name, value in {**GREEDY, **options}.items() if value is not None}
    if "return_tensors" in options:
        del options["clean_up_tokenization_spaces"]
    pipelines = both("text-generation", "gpt2")
    compare(pipelines, ["The cat", "It is raining . isn't it ?"], **options)


def test_nesting_of_outputs_matches_transformers(both):
    for inputs in ["The cat", ["The cat"], ["A", "The cat"]]:
        compare(both("text-generation", "gpt2"), inputs, **{**GREEDY, "max_new_tokens": 2})


def test_truncated_prompts_match_transformers(both):
    options = {**GREEDY, "max_new_tokens": 3, "handle_long_generation": "hole"}
    compare(both("text-generation", "gpt2"), LONG, **options)
    compare(both("text-generation", "gpt2"), CAT, **options)


@pytest.mark.parametrize(
    ("task", "model", "name", "inputs", "options"),
    [
        ("zero-shot-classification", "bert-nli", "sequences", [CAT, RAIN], {"candidate_labels": ["a", "b"]}),
        ("text-generation", "gpt2", "text_inputs", ["The cat"], GREEDY),
        ("text-classification", "bert-grades", "inputs", CAT, {}),
        ("token-classification", "bert-entities", "inputs", CAT, {}),
        ("fill-mask", "bert-fill", "inputs", "The [MASK] sat.", {}),
    ],
)
def test_the_first_argument_has_its_name_in_transformers(both, task, model, name, inputs, options):
    ours, theirs = both(task, model)
    assert_same(ours(**{name: inputs}, **options), theirs(**{name: inputs}, **options))
    with pytest.raises(ConfigError):
        ours(inputs, **options, text="a")


def test_arguments_of_the_call_override_those_of_the_pipeline(both):
    compare(both("text-generation", "gpt2", **GREEDY, num_beams=2), "The cat", max_new_tokens=5)


def test_a_generator_of_texts_gives_a_generator_of_outputs(both):
    texts = [CAT, ROME, RAIN]
    for task, name in [
        ("text-classification", "bert-grades"),
        ("ner", "bert-entities"),
        ("feature-extraction", "bert"),
    ]:
        ours, theirs = both(task, name)
        outputs = ours(text for text in texts)
        assert not isinstance(outputs, list)
        assert_same(list(outputs), list(theirs(text for text in texts)))
        assert_same(list(ours((text for text in texts), batch_size=2)), list(theirs(text for text in texts)))


@pytest.mark.parametrize("num_beams", [1, 2])
def test_samples_of_a_generator_are_those_of_a_list(folder, num_beams):
    sample = pipeline(
        "text-generation", folder("gpt2"), do_sample=True, seed=1, max_new_tokens=9, num_beams=num_beams,
        num_return_sequences=2,
    )  # fmt: skip
    expected = sample(["The cat"] * 3)
    assert len({str(outputs) for outputs in expected}) == 3
    for batch_size in (None, 2, 3):
        assert list(sample(iter(["The cat"] * 3), batch_size=batch_size)) == expected


def test_a_dataset_is_processed_like_a_generator(folder):
    class Texts(torch.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return [CAT, ROME][i]

    ours = pipeline("ner", folder("bert-entities"))
    assert list(ours(Texts())) == ours([CAT, ROME])


@pytest.mark.parametrize("name", ["bert-nli", "bert-nli-first"])
def test_zero_shot_scores_match_transformers(both, name):
    pipelines = both("zero-shot-classification", name)
    for inputs in [CAT, [CAT, RAIN]]:
        for options in [
            {"candidate_labels": ["weather", "animals", "music"]},
            {"candidate_labels": "weather, animals", "multi_label": True},
            {"candidate_labels": "weather, animals, , "},
            {"candidate_labels": ["weather"], "hypothesis_template": "It is about {}."},
        ]:
            compare(pipelines, inputs, **options)


@pytest.mark.parametrize("name", ["bert", "roberta-grades", "gpt2"])
def test_tokenizer_call_matches_transformers(folder, name):
    ours = pipeline(
        "feature-extraction" if name != "roberta-grades" else "text-classification", folder(name), device=-1
    )
    theirs = transformers.AutoTokenizer.from_pretrained(folder(name))
    assert ours.tokenizer(CAT) == dict(theirs(CAT))
    assert ours.tokenizer([CAT, RAIN]) == dict(theirs([CAT, RAIN]))
    if name != "gpt2":
        assert ours.tokenizer(CAT, RAIN) == dict(theirs(CAT, RAIN))
        batch = ours.tokenizer([CAT, RAIN], padding=True, return_tensors="pt")
        expected = theirs([CAT, RAIN], padding=True, return_tensors="pt")
        assert batch.keys() == expected.keys()
        assert all(torch.equal(batch[key], expected[key]) for key in batch)


def test_a_saved_pipeline_loads_in_transformers(both, folder, tmp_path):
    ours, theirs = both("text-classification", "bert-grades")
    ours.save_pretrained(tmp_path / "copy")
    again = transformers.pipeline("text-classification", model=str(tmp_path / "copy"), device=-1)
    assert_same(again(CAT), theirs(CAT))
