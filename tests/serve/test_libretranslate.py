import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from glassformer.decode_config import DecodeConfig
from glassformer.serve.worker.jobs import LINE_END
from glassformer.tasks.registry import load
from tests.interop.ours import make
from tests.serve import contract
from tests.serve.models import TEXTS, Server, running
from tests.serve.test_documents import upload

OK = {"q": "The cat.", "source": "en", "target": "de"}


@pytest.fixture(scope="module")
def translator(folder):
    return load(folder / "en-de", device="cpu")


def offline(translator, text, **options):
    """The translation of a text by the task itself, line by line, with the original line ends."""
    options = DecodeConfig(precision="auto", **options)
    return "\n".join(
        translator.translate([line.removesuffix("\r")], options)[0][0].text + ("\r" if line.endswith("\r") else "")
        for line in text.split("\n")
    )


@pytest.mark.parametrize("n_clients", [1, 8])
def test_answers_are_those_of_the_task_whatever_else_is_computed(server, translator, n_clients):
    texts = [text for text in TEXTS if text] * (1 if n_clients == 1 else 3)
    with ThreadPoolExecutor(n_clients) as pool:
        answers = list(pool.map(server.translate, texts))
    assert [answer.status for answer in answers] == [200] * len(texts)
    expected = {text: offline(translator, text) for text in set(texts)}
    assert [answer.json["translatedText"] for answer in answers] == [expected[text] for text in texts]


def test_a_list_is_translated_as_its_texts_are(server):
    found = server.translate(TEXTS).json["translatedText"]
    assert found == [server.translate(text).json["translatedText"] if text else "" for text in TEXTS]


@pytest.mark.parametrize("beam", [1, 2, 7])
def test_the_beam_size_is_that_of_the_request(server, translator, beam):
    found = server.translate(TEXTS, beam=beam).json["translatedText"]
    assert found == [offline(translator, text, beam=beam) for text in TEXTS]


def test_a_tag_is_that_of_the_request(server, translator):
    found = server.translate(TEXTS, tag="law").json["translatedText"]
    assert found == [offline(translator, text, tag="law") for text in TEXTS]
    assert found != server.translate(TEXTS).json["translatedText"]
    tagged, plain = (
        [server.translate(text, prefix="", alternatives=2, **tag).json["alternatives"] for text in TEXTS[:3]]
        for tag in ({"tag": "law"}, {})
    )
    assert tagged != plain
    unknown = server.translate("The cat.", tag="news")
    assert unknown.status == 400
    assert "there is no tag 'news'; there are: law" in unknown.json["error"]


def test_json_forms_multipart_and_query_strings_are_the_same_request(server):
    expected = server.translate("The cat.").json
    assert server.form("/translate", OK).json == expected
    assert server.request("POST", "/translate?q=The+cat.&source=en&target=de").json == expected
    body = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in OK.items()
    )
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    assert server.request("POST", "/translate", f"{body}--x--\r\n".encode(), kind).json == expected


def test_repeated_fields_of_a_form_are_a_list(server):
    found = server.form("/translate", {**OK, "q": ["The cat.", "The dog."]}).json["translatedText"]
    assert found == server.translate(["The cat.", "The dog."]).json["translatedText"]


def test_languages(server):
    english, german = server.get("/languages").json
    assert english == {"code": "en", "name": "English", "targets": ["en", "de"]}
    assert german == {"code": "de", "name": "German", "targets": ["de"]}


def test_a_text_in_its_own_language_comes_back(server):
    assert server.translate(["The cat."], target="en").json == {"translatedText": ["The cat."]}


@pytest.mark.parametrize(
    ("text", "language"), [("The old man and the dog went home", "en"), ("Der alte Mann saß auf der Matte", "de")]
)
def test_languages_are_detected(server, text, language):
    assert server.post("/detect", {"q": text}).json[0]["language"] == language
    found = server.translate(text, source="auto").json
    assert found["detectedLanguage"]["language"] == language
    assert found["detectedLanguage"]["confidence"] > 90
    assert (found["translatedText"] == text) == (language == "de")


def test_the_language_of_html_is_that_of_its_text(server):
    text = '<button type="submit" class="the old man and a dog went home" title="damit">Die alte Katze </button>'
    found = server.translate(text, format="html", source="auto").json
    assert found["detectedLanguage"]["language"] == "de"
    assert found["translatedText"] == text


@pytest.fixture(scope="module")
def chain(folder, tmp_path_factory) -> Iterator[Server]:
    """A server from English to German, and from German to French by a model without confidence."""
    path = tmp_path_factory.mktemp("chain")
    task = make("translation", "transformer")
    task.languages = ("de", "fr")
    task.save(path / "de-fr")
    with running(path, models=("de-fr", f"en-de={folder / 'en-de'}")) as found:
        yield found


@pytest.mark.parametrize("others", [["2024."], ["2024.", "🎉", "a dog"], ["a dog", "Die Katze"]])
def test_a_text_of_a_list_without_letters_or_with_few_takes_a_language_that_is_translated(chain, others):
    texts = ["Der alte Mann saß auf der Matte und ging nach Hause.", *others]
    found = chain.translate(texts, source="auto", target="fr").json
    assert [row["language"] for row in found["detectedLanguage"]] == ["de"] * len(texts)


def test_texts_in_a_language_that_is_not_translated_are_refused(chain):
    for q in ("The old man and the dog went home.", ["The old man and the dog went home.", "2024."]):
        answer = chain.translate(q, source="auto", target="fr")
        assert (answer.status, answer.json["error"][:25]) == (400, "en to fr is not supported")
    assert chain.translate("2024.", source="auto", target="fr").json["translatedText"] == "2024."


@pytest.mark.parametrize("text_format", ["text", "html"])
def test_min_confidence_needs_a_model_with_confidence(chain, text_format):
    answer = chain.translate("Die Katze.", source="de", target="fr", min_confidence=0.5, format=text_format)
    assert answer.status == 400
    assert "the model de-fr has no confidence" in answer.json["error"]
    assert "glassformer calibrate" in answer.json["error"]
    for name, data in (("a.txt", b"Die Katze."), ("a.po", b'msgid "Die Katze."\nmsgstr ""\n')):
        answer = upload(chain, name, data, source="de", target="fr", min_confidence="0.5")
        assert answer.status == 400
        assert "the model de-fr has no confidence" in answer.json["error"]


def test_empty_fields_of_a_form_are_as_if_they_were_not_there(server):
    names = ("beam", "alternatives", "format", "protect", "align", "confidence", "min_confidence", "prefix", "glossary")
    names += ("keep_spelling",)
    empty = dict.fromkeys((*names, "memory", "terms", "tag", "api_key"), "")
    for fields in ({"q": "The cat.\nA dog."}, {"q": ["The cat.", "A dog."]}):
        found, expected = (server.form("/translate", {**OK, **fields, **more}).json for more in (empty, {}))
        assert found == expected
    html = {**OK, "format": "html", "prefix": ""}
    assert server.form("/translate", html).status == 200
    names = ("protect", "min_confidence", "progress", "only", "to", "glossary")
    assert upload(server, "a.txt", b"The cat.", **dict.fromkeys(names, "")).status == 200


def test_alternatives_are_the_next_best_hypotheses(server, translator):
    found = server.translate(["The cat.", "The dog sat."], alternatives=3).json
    for text, best, others in zip(
        ["The cat.", "The dog sat."], found["translatedText"], found["alternatives"], strict=True
    ):
        (nbest,) = translator.translate([text], DecodeConfig(beam=4, nbest=4, precision="auto"))
        expected = list(dict.fromkeys(t.text for t in nbest))
        assert [best, *others] == expected


def test_alignment_and_confidence_are_those_of_the_task(server, translator):
    text = "The cat sat.\nA dog went home."
    found = server.translate(text, align=True, confidence=True).json
    options = DecodeConfig(align=True, confidence=True, precision="auto")
    (first,), (second,) = translator.translate(text.split("\n"), options)
    n_source, n_target = len(first.source.split()), len(first.text.split())
    shifted = [[n_source + s, n_target + t] for s, t in second.alignment]
    assert found["alignment"] == [*map(list, first.alignment), *shifted]
    assert found["words"] == [[word, pytest.approx(p)] for t in (first, second) for word, p in t.words]


def test_a_text_of_low_confidence_is_not_translated(server):
    found = server.translate(["The cat.", ""], min_confidence=1.0).json
    assert found["translatedText"] == ["The cat.", ""]
    assert found["untranslated"] == [True, False]


def test_words_of_a_discarded_translation_are_left_out(server):
    found = server.translate(["The cat.", "12"], min_confidence=1.0, confidence=True).json
    assert found["words"] == [None, []]
    assert 0 < found["confidence"][0] < 1
    assert server.translate("The cat.", min_confidence=0.0, confidence=True).json["words"]


def test_a_format_of_null_is_text(server):
    assert server.translate("The <b>cat</b>.", format=None).json == server.translate("The <b>cat</b>.").json


def test_glossaries_terms_and_protected_spans(server):
    assert "Kater" in server.translate("The cat sat.", glossary="animals").json["translatedText"]
    found = server.translate("The cat sat.", terms=[["cat", "Mieze|Katze"]]).json["translatedText"]
    assert "Mieze" in found or "Katze" in found
    assert "{name}" in server.translate("The cat {name} sat.", protect=True).json["translatedText"]


def test_a_text_that_the_memory_has_is_not_translated_anew(server):
    text, expected = "The cat is in the memory.", "Die Katze hat ein Gedächtnis."
    found = server.translate(text, memory="old").json
    match = {"source": text, "target": expected, "similarity": 1.0, "used": True}
    assert found == {"translatedText": expected, "match": match}
    assert server.translate([text, "The cat."], memory="old").json["match"] == [match, None]
    assert server.translate(text).json["translatedText"] != expected
    html = server.translate(f"<p>{text}</p>", memory="old", format="html").json["translatedText"]
    assert html == f"<p>{expected}</p>"


@pytest.mark.parametrize("protect", [False, True])
@pytest.mark.parametrize(
    ("text", "markers"),
    [
        ("The [X7X] cat [X12X] sat.", ["[X7X]", "[X12X]"]), ("[X0X] sat.", ["[X0X]"]), ("[X0X]", ["[X0X]"]),
        ("Save <f0>the cat</f0> on <x1/> the mat.", ["<f0>", "</f0>", "<x1/>"]),
    ],
)  # fmt: skip
def test_markers_of_weblate_and_omegat_stay(server, protect, text, markers):
    found = server.translate(text, protect=protect).json["translatedText"]
    assert [found.count(marker) for marker in markers] == [1] * len(markers)
    listed = server.translate([text, text], protect=protect, alternatives=1).json
    assert listed["translatedText"] == [found, found]
    apertium = server.get(f"/translate?langpair=en|de&q={quote(text)}").json["responseData"]["translatedText"]
    assert [apertium.count(marker) for marker in markers] == [1] * len(markers)


@pytest.mark.parametrize("text", ["🎉", "12345", "...", "https://example.org/the-cat", "Привет, мир"])
def test_texts_without_words_stay_and_list_marks_too(server, text):
    assert server.translate(text).json["translatedText"] == text
    assert server.translate([text, "The cat."]).json["translatedText"][0] == text
    assert server.translate(f"<p>{text}</p>", format="html").json["translatedText"] == f"<p>{text}</p>"
    assert server.translate("- The cat.\n2. The cat.").json["translatedText"] == "- {0}\n2. {0}".format(
        server.translate("The cat.").json["translatedText"]
    )


def test_alternatives_respect_glossaries_and_terms(server):
    for control in ({"glossary": "animals"}, {"terms": [["cat", "Kater"]]}):
        found = server.translate("A cat", prefix="", alternatives=4, **control).json
        assert len(found["alternatives"]) > 1
        have = ["Kater" in record["text"] for record in found["continuations"]]
        assert have == ["missing" not in record for record in found["continuations"]]


def test_a_translation_begins_with_the_prefix(server):
    assert server.translate("The cat sat.", prefix="the dog").json["translatedText"].lower().startswith("the dog")


@pytest.mark.parametrize("prefix", ["", "the dog"])
def test_alternatives_after_a_prefix_continue_with_different_words(server, prefix):
    found = server.translate("A cat", prefix=prefix, alternatives=4, beam=2).json
    texts = [found["translatedText"], *found["alternatives"]]
    assert (1 if prefix else 2) <= len(texts) <= 5
    assert all(text.startswith(prefix) for text in texts)
    assert len({text[len(prefix) :].split()[0] for text in texts}) == len(texts)
    assert [record["text"] for record in found["continuations"]] == texts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": None}, "q"), ({"q": ""}, "missing q"), ({"q": []}, "missing q"), ({"q": 5}, "q:"), ({"q": [1]}, "q:"),
        ({"q": {"a": 1}}, "q:"), ({"q": [["a"]]}, "q:"), ({"q": "\ud800"}, "surrogate"), ({"q": "a\0b"}, "NUL"),
        ({"q": "a" * 20_001}, "exceeds text limit (20,000)"), ({"q": ["a"] * 1001}, "1,001 texts"),
        ({"source": "xx"}, "xx is not supported; languages: en, de"), ({"source": 5}, "source:"),
        ({"target": "auto"}, "auto is not supported"), ({"source": "de", "target": "en"}, "de to en is not supported"),
        ({"format": "xml"}, "format:"), ({"alternatives": "x"}, "alternatives:"),
        ({"alternatives": -1}, "alternatives:"),
        ({"alternatives": 2.7}, "alternatives:"), ({"alternatives": 10_000}, "alternatives:"),
        ({"alternatives": 2**63}, "alternatives:"), ({"beam": 0}, "beam:"), ({"beam": 1 << 70}, "beam:"),
        ({"min_confidence": float("nan")}, "min_confidence"), ({"min_confidence": 2}, "min_confidence"),
        ({"glossary": "xx"}, "there is no glossary 'xx'; there are: animals"), ({"terms": [["a"]]}, "terms:"),
        ({"memory": "xx"}, "there is no memory 'xx'; there are: old"),
        ({"terms": [["a", " "]]}, "terms:"), ({"terms": [["a|", "b"]]}, "terms:"), ({"terms": [["a", "|"]]}, "terms:"),
        ({"prefix": "x", "q": ["a", "b"]}, "prefix"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_one_clear_error(server, change, message):
    answer = server.translate(**{"q": "The cat.", **change})
    assert answer.status == 400
    assert message in answer.json["error"]


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"5", b"[" * 9000, b"\xff", b'{"q": "a"', b"null"])
def test_a_body_that_is_no_object_is_one_clear_error(server, body):
    answer = server.request("POST", "/translate", body, {"Content-Type": "application/json"})
    assert answer.status == 400
    assert "Invalid request" in answer.json["error"]


def test_unknown_paths_and_methods_have_the_form_of_the_api(server):
    assert server.get("/nope").status == 404
    assert server.request("PUT", "/languages").status == 405
    assert "error" in server.request("PUT", "/languages").json


def test_a_body_that_is_too_large_is_refused_before_it_is_read(server):
    answer = server.request("POST", "/translate", b"x" * (1 << 20) + b"x", {"Content-Type": "application/json"})
    assert answer.status == 413
    assert "1,048,576 bytes" in answer.json["error"]


def test_codes_with_a_region_mean_the_language(server):
    expected = server.translate("The cat.").json
    assert server.translate("The cat.", source="en-US", target="DE").json == expected


def test_settings_and_health(server):
    settings = server.get("/frontend/settings").json
    assert settings["charLimit"] == 20_000
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert not settings["keyRequired"]
    assert (settings["glossaries"], settings["memories"]) == (["animals"], ["old"])
    assert server.get("/health").json == {"status": "ok"}
    assert server.get("/spec").json["openapi"].startswith("3")


def test_corrections_are_kept_for_training(server, folder):
    correction = {"q": "The cat.", "s": "Die\nKatze.", "source": "en", "target": "de"}
    assert server.post("/suggest", correction).json == {"success": True}
    lines = (folder / "corrections" / "corrections.en-de.jsonl").read_text().splitlines()
    assert json.loads(lines[-1]) == {"src": "The cat.", "tgt": "Die Katze."}
    assert server.post("/suggest", {**correction, "s": " "}).status == 400


def test_a_server_without_a_folder_for_corrections_refuses_them(folder):
    with running(folder, models=("en-de",)) as server:
        correction = {"q": "The cat.", "s": "Die Katze.", "source": "en", "target": "de"}
        assert server.post("/suggest", correction).status == 403


RECORDED = json.loads((Path(__file__).parent / "libretranslate-1.9.6.json").read_text())
REFUSED = {"status": 400, "body": {"error": "str"}}
DIFFERENT = {
    "alternatives: -1": REFUSED,
    "alternatives: 2.7": REFUSED,
    "repeated field of a form": {"status": 200, "body": {"translatedText": ["str"]}},
    "source: en-US": {"status": 200, "body": {"translatedText": "str"}},
    "detect: 5": REFUSED,
    "suggest: target xx": REFUSED,
    "GET /translate": {
        "status": 400,
        "body": {"responseData": {"translatedText": "NoneType"}, "responseDetails": "str", "responseStatus": "number"},
    },
    "settings": {
        "status": 200,
        "body": {**RECORDED["settings"]["body"], "glossaries": ["str"], "memories": ["str"]},
    },
    "unknown path": {"status": 404, "body": {"error": "str"}},
    "unknown method": {"status": 405, "body": {"error": "str"}},
    "file: .TXT": {"status": 200, "body": {"translatedFileUrl": "str"}},
    "download: path": {"status": 404, "body": {"error": "str"}},
}
"""Answers that are not as those of LibreTranslate; docs/serving.md has the reasons."""


def test_answers_have_the_form_of_those_of_libretranslate_itself(server):
    found = contract.answers("127.0.0.1", server.port)
    faults = {name for name, row in RECORDED.items() if row["status"] == 500}
    expected = {**RECORDED, **DIFFERENT}
    assert {name: row for name, row in found.items() if name not in faults and row != expected[name]} == {}
    assert {name for name in faults if found[name]["status"] >= 500} == set()
    assert all(RECORDED[name] != row for name, row in DIFFERENT.items())


def test_the_description_names_errors_and_bodies_of_all_routes(server):
    description = server.get("/spec").json
    assert "$ref" not in str(description).replace("#/components/schemas/HTTPValidationError", "")
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            assert {"200", "4XX", "5XX"} <= route["responses"].keys(), path
            assert "422" not in route["responses"], path
            assert method == "get" or route["requestBody"]["content"], path


def test_a_wrong_method_is_answered_with_all_that_the_path_has(server):
    answer = server.request("OPTIONS", "/translate")
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, POST"


def test_answers_say_which_translations_are_cut_off(server, translator):
    texts = [text for text in TEXTS if text]
    lines = [translator.translate(LINE_END.split(text), DecodeConfig(precision="auto")) for text in texts]
    expected = [any(best.is_truncated for best, *_ in nbests) for nbests in lines]
    assert len(set(expected)) == 2
    assert server.translate(texts).json["truncated"] == expected
    for text, is_cut in zip(texts, expected, strict=True):
        assert server.translate(text).json.get("truncated", False) == is_cut
