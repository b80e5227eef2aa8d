import re

import pytest

from glassformer import pipeline
from glassformer.tasks.registry import load

huggingface_hub = pytest.importorskip("huggingface_hub")


@pytest.fixture(autouse=True)
def online(monkeypatch):
    """The client refuses even this machine when it is offline."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)


def client(server, model):
    return huggingface_hub.InferenceClient(model=f"http://127.0.0.1:{server.port}/models/{model}")


def test_the_inference_client_classifies(server, folder):
    found = client(server, "sentiment").text_classification("The cat.", top_k=3)
    expected = pipeline(model=folder / "sentiment", precision="auto")("The cat.", top_k=3)
    assert [row.label for row in found] == [row["label"] for row in expected]
    assert [row.score for row in found] == pytest.approx([row["score"] for row in expected], abs=1e-6)


def test_the_inference_client_translates_and_generates(server):
    expected = server.translate("The cat.").json["translatedText"]
    assert client(server, "en-de").translation("The cat.").translation_text == expected
    text = client(server, "lm").text_generation("The cat", max_new_tokens=5, do_sample=False)
    body = {"model": "lm", "prompt": "The cat", "max_tokens": 5, "temperature": 0}
    assert text.removeprefix("The cat") == server.post("/v1/completions", body).json["choices"][0]["text"]


def test_the_inference_client_chats_and_streams_are_refused_elsewhere(server):
    message = {"role": "user", "content": "The cat."}
    translator = client(server, "en-de")
    found = translator.chat_completion([message], max_tokens=100)
    assert found.choices[0].message.content == server.translate("The cat.").json["translatedText"]
    parts = translator.chat_completion([message], max_tokens=100, stream=True)
    assert "".join(part.choices[0].delta.content or "" for part in parts) == found.choices[0].message.content
    answer = server.post("/models/lm", {"inputs": "The cat", "stream": True})
    assert answer.status == 400
    assert "/models/lm/v1/chat/completions" in answer.json["error"]


def test_the_inference_client_tags_and_compares(server, folder):
    found = client(server, "tagger").token_classification("The cat sat.", aggregation_strategy="simple")
    expected = pipeline(model=folder / "tagger", precision="auto")("The cat sat.", aggregation_strategy="simple")
    assert [(row.entity_group, row.start, row.end) for row in found] == [
        (row["entity_group"], row["start"], row["end"]) for row in expected
    ]
    scores = client(server, "embedder").sentence_similarity("The cat.", ["The cat.", "A dog."])
    embedder = load(folder / "embedder", device="cpu")
    embedder.precision = "auto"
    first, second = embedder(["The cat.", "A dog."])
    assert scores == pytest.approx([1, float(first @ second)], abs=1e-5)


LONG = "The cat sat on the mat. " * 60


@pytest.mark.parametrize(
    ("model", "inputs", "parameters"),
    [
        ("sentiment", LONG, {}),
        ("sentiment", ["The cat.", LONG, LONG], {}),
        ("tagger", LONG, {"aggregation_strategy": "simple"}),
        ("embedder", LONG, {}),
        ("embedder", {"source_sentence": "The cat.", "sentences": [LONG, "A dog."]}, {}),
    ],
    ids=str,
)
def test_a_header_says_that_a_text_was_cut(server, model, inputs, parameters):
    answer = server.post(f"/models/{model}", {"inputs": inputs, "parameters": parameters})
    assert re.fullmatch(
        r'299 - "[^"]* maximum length of \d+ tokens: its end was (removed|cut off)\.?"', answer.headers["warning"]
    )
    short = server.post(f"/models/{model}", {"inputs": cut(inputs), "parameters": parameters})
    assert short.status == answer.status == 200
    assert "warning" not in short.headers


def test_truncation_cuts_at_the_maximum_length_without_a_header(server, folder):
    expected = pipeline(model=folder / "embedder", precision="auto")(LONG, truncation=True)
    found = client(server, "embedder").feature_extraction(LONG, truncate=True)
    assert found.shape == (1, len(expected[0]), len(expected[0][0]))
    assert found[0, -1] == pytest.approx(expected[0][-1], abs=1e-5)
    for model, body in (
        ("embedder", {"truncate": True}),
        ("embedder", {"parameters": {"truncate": True}}),
        ("embedder", {"parameters": {"truncation": True}}),
        ("sentiment", {"parameters": {"truncation": True}}),
    ):
        answer = server.post(f"/models/{model}", {"inputs": LONG, **body})
        assert (answer.status, "warning" in answer.headers) == (200, False)
    refused = server.post("/models/embedder", {"inputs": "The cat.", "normalize": True})
    assert refused.status == 400
    assert refused.json["error"] == "parameters: normalize: unknown; there are: truncate, truncation"
    assert server.post("/models/embedder", {"inputs": "a", "parameters": {"truncate": [1]}}).status == 400


def cut(inputs):
    """The same inputs with short texts."""
    if isinstance(inputs, dict):
        return {name: cut(value) for name, value in inputs.items()}
    return inputs[:20] if isinstance(inputs, str) else [cut(value) for value in inputs]


def test_models(server):
    found = {row["id"]: row for row in server.get("/models").json}
    assert (found["en-de"]["source"], found["en-de"]["target"]) == ("en", "de")
    assert set(found["en-de"]["features"]) == {"align", "confidence", "detect", "inspect", "prefix"}
    assert found["sentiment"]["labels"] == ["no", "yes", "maybe"]
    assert found["sentiment"]["pipeline"] == "text-classification"


def test_the_inspection_of_a_text_is_a_page(server):
    url = server.post("/models/en-de/inspect", {"inputs": "The cat."}).json["url"]
    page = server.get(url)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"Content-Security-Policy" in page.body
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.removesuffix("; frame-ancestors 'self'") in page.body.decode()
    assert b"glassformer inspect: The cat." in page.body
    assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
    assert server.get(url[:-1]).status == 404


def test_an_inspection_with_a_tag(server):
    def inspect(parameters):
        return server.post("/models/en-de/inspect", {"inputs": "The cat.", "parameters": parameters})

    assert b"tag:law" in server.get(inspect({"tag": "law"}).json["url"]).body
    assert inspect({"tag": "x"}).json["error"] == "there is no tag 'x'; there are: law"
    refused = inspect({"beam": 2})
    assert refused.status == 400
    assert "beam" in refused.json["error"]


@pytest.mark.parametrize(
    ("model", "body", "status", "message"),
    [
        ("xx", {"inputs": "a"}, 404, "there is no model 'xx'"),
        ("sentiment", {}, 400, "missing inputs"),
        ("sentiment", {"inputs": 5}, 400, "expected texts"),
        ("sentiment", {"inputs": ""}, 400, "expected texts that are not blank"),
        (
            "sentiment",
            {"inputs": "a", "parameters": {"topk": 1}},
            400,
            "topk: unknown; there are: function_to_apply",
        ),
        ("sentiment", {"inputs": "a", "parameters": {"top_k": "x"}}, 400, "top_k"),
        ("en-de", {"inputs": {"a": 1}}, 400, "expected a text"),
        ("en-de", {"inputs": "a", "parameters": {"num_beams": 99}}, 400, "num_beams"),
        ("lm", {"inputs": "a", "parameters": {"max_new_tokens": -1}}, 400, "max_new_tokens"),
    ],
)
def test_a_wrong_request_is_one_clear_error(server, model, body, status, message):
    answer = server.post(f"/models/{model}", body)
    assert answer.status == status
    assert message in answer.json["error"]


def test_omegat_gets_the_answers_of_apertium(server):
    expected = server.translate("The cat.").json["translatedText"]
    path = "/translate?q=The%20cat.&markUnknown=no&langpair="
    assert server.get(f"{path}en%7Cde").json == {
        "responseData": {"translatedText": expected}, "responseStatus": 200, "responseDetails": None,
    }  # fmt: skip
    refused = server.get(f"{path}en%7Cxx")
    assert (refused.status, refused.json["responseStatus"]) == (400, 400)
    assert "xx is not supported" in refused.json["responseDetails"]
