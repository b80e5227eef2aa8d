import base64
import json
import struct

import pytest

from glassformer.config import DecodeConfig
from glassformer.tasks.registry import load

PROMPT = {"model": "lm", "prompt": "The cat", "max_tokens": 12, "temperature": 0}


def events(answer):
    """The records of a stream, after checks of its form."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    *lines, done, end = answer.body.decode().split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_models(server):
    found = server.get("/v1/models").json
    assert found["object"] == "list"
    assert {row["id"] for row in found["data"]} >= {"en-de", "lm"}
    assert server.get("/v1/models/lm").json in found["data"]
    assert server.get("/v1/models/xx").status == 404


@pytest.mark.parametrize(
    "options", [{"temperature": 0}, {"temperature": 0.7, "seed": 3}, {"temperature": 1, "top_p": 0.9, "seed": 5}]
)
def test_a_completion_is_that_of_the_task(server, folder, options):
    answer = server.post("/v1/completions", {**PROMPT, **options}).json
    given = {"beam": 1} if options["temperature"] == 0 else options
    task = load(folder / "lm", device="cpu")
    (expected,) = task.complete(["The cat"], DecodeConfig(**given, max_length=12, precision="auto"))
    assert answer["choices"][0]["text"] == expected
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]


@pytest.mark.parametrize("stop", [[], ["e"], ["cat", "th"]])
def test_a_stream_has_the_text_of_the_whole_answer(server, stop):
    body = {**PROMPT, "max_tokens": 40, "temperature": 0.9, "seed": 1, "stop": stop}
    whole = server.post("/v1/completions", body).json
    records = events(
        server.post("/v1/completions", {**body, "stream": True, "stream_options": {"include_usage": True}})
    )
    assert "".join(choice["text"] for record in records for choice in record["choices"]) == whole["choices"][0]["text"]
    assert records[-1]["usage"] == whole["usage"]
    reasons = [choice["finish_reason"] for record in records for choice in record["choices"]]
    assert [reason for reason in reasons if reason] == [whole["choices"][0]["finish_reason"]]


def test_several_prompts_and_echo(server):
    found = server.post("/v1/completions", {**PROMPT, "prompt": ["The cat", "A dog"], "echo": True}).json["choices"]
    assert [choice["index"] for choice in found] == [0, 1]
    alone = [server.post("/v1/completions", {**PROMPT, "prompt": text}).json for text in ("The cat", "A dog")]
    assert [choice["text"] for choice in found] == [
        text + answer["choices"][0]["text"] for text, answer in zip(("The cat", "A dog"), alone, strict=True)
    ]


def test_requests_without_a_seed_differ(server):
    body = {**PROMPT, "temperature": 1.5, "max_tokens": 30}
    texts = {server.post("/v1/completions", body).json["choices"][0]["text"] for _ in range(4)}
    assert len(texts) > 1


def test_a_chat_with_a_translator_translates_the_last_message_of_the_user(server):
    messages = [
        {"role": "system", "content": "Translate."}, {"role": "user", "content": "A dog."},
        {"role": "assistant", "content": "Ein Hund."},
        {"role": "user", "content": [{"type": "text", "text": "The cat."}]},
    ]  # fmt: skip
    found = server.post("/v1/chat/completions", {"model": "en-de", "messages": messages}).json
    expected = server.translate("The cat.").json["translatedText"]
    assert found["choices"][0]["message"]["content"] == expected
    body = {"model": "en-de", "messages": messages, "stream": True}
    records = events(server.post("/v1/chat/completions", body))
    assert "".join(record["choices"][0]["delta"].get("content", "") for record in records) == expected
    assert {record["object"] for record in records} == {"chat.completion.chunk"}


def test_embeddings_are_those_of_the_task(server, folder):
    texts = ["The cat.", "A dog."]
    found = server.post("/v1/embeddings", {"model": "embedder", "input": texts}).json
    vectors = [row["embedding"] for row in found["data"]]
    task = load(folder / "embedder", device="cpu")
    task.precision = "auto"
    assert vectors == [pytest.approx(row, abs=1e-6) for row in task(texts).tolist()]
    packed = server.post("/v1/embeddings", {"model": "embedder", "input": texts, "encoding_format": "base64"}).json
    for row, vector in zip(packed["data"], vectors, strict=True):
        assert struct.unpack(f"<{len(vector)}f", base64.b64decode(row["embedding"])) == pytest.approx(vector)


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("completions", {"prompt": "a"}, 400, "missing model"),
        ("completions", {"model": "xx", "prompt": "a"}, 404, "there is no model 'xx'; there are: en-de"),
        ("completions", {"model": "sentiment", "prompt": "a"}, 400, "does not generate text"),
        ("completions", {**PROMPT, "prompt": []}, 400, "prompt"),
        ("completions", {**PROMPT, "prompt": [1]}, 400, "prompt"),
        ("completions", {**PROMPT, "max_tokens": 10**9}, 400, "max_tokens"),
        ("completions", {**PROMPT, "n": 2}, 400, "n:"),
        ("completions", {**PROMPT, "prompt": "a" * 20_001}, 400, "at most 20,000"),
        ("chat/completions", {"model": "lm", "messages": []}, 400, "messages"),
        ("chat/completions", {"model": "lm", "messages": [{"role": "user", "content": ""}]}, 400, "no message"),
        ("embeddings", {"model": "lm", "input": "a"}, 400, "has no embeddings"),
        ("nope", {}, 404, "Not Found"),
    ],
)
def test_errors_have_the_form_of_the_api(server, path, body, status, message):
    answer = server.post(f"/v1/{path}", body)
    assert answer.status == status
    assert message in answer.json["error"]["message"]
    assert answer.json["error"]["code"] == str(status)
