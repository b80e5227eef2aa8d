import base64
import json
import re
import socket
import struct

import pytest

from glassformer import pipeline
from glassformer.decode_config import DecodeConfig
from glassformer.tasks.registry import load
from tests.serve.models import running, wait_for

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


def test_no_text_divides_an_event_of_a_stream_into_lines(server):
    prompt = "The\u2028cat\u2029is\x85old\x1c."
    answer = server.post("/v1/completions", {**PROMPT, "prompt": prompt, "echo": True, "stream": True})
    assert all(line.startswith("data: ") for line in answer.body.decode().splitlines() if line)
    assert events(answer)[0]["choices"][0]["text"] == prompt


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


def test_a_completion_is_after_its_prompt_as_it_would_be_written(server, folder):
    generate = pipeline("text-generation", model=folder / "lm", precision="auto")
    for prompt in ("The cat", "The cat sat on", "A"):
        body = {"model": "lm", "prompt": prompt, "max_tokens": 7, "temperature": 0, "echo": True}
        (whole,) = generate(prompt, max_new_tokens=7, do_sample=False)
        assert server.post("/v1/completions", body).json["choices"][0]["text"] == whole["generated_text"]


def test_a_header_says_which_texts_of_embeddings_were_cut(server):
    long = "The cat sat on the mat. " * 60
    notes = lambda texts: server.post("/v1/embeddings", {"model": "embedder", "input": texts}).headers.get("warning")
    assert notes(["The cat.", "A dog."]) is None
    assert re.fullmatch(r'299 - "text 2: longer than [^"]+"', notes(["A dog.", long, "A dog."]))
    assert notes([long] * 8).endswith(', 299 - "3 more notes like these"')


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("completions", {"prompt": "a"}, 400, "missing model"),
        ("completions", {"model": "xx", "prompt": "a"}, 404, "there is no model 'xx'; there are: en-de"),
        ("completions", {"model": "sentiment", "prompt": "a"}, 400, "does not generate text"),
        ("completions", {**PROMPT, "prompt": []}, 400, "prompt"),
        ("completions", {**PROMPT, "prompt": [1]}, 400, "prompt"),
        ("completions", {**PROMPT, "max_tokens": 0}, 400, "max_tokens"),
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


def chat(server, content="The cat.", **fields):
    return server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": content}], **fields})


def test_the_role_is_sent_once(server):
    for model in ("lm", "en-de"):
        records = events(chat(server, model=model, stream=True, max_tokens=20, seed=1))
        deltas = [choice["delta"] for record in records for choice in record["choices"]]
        assert deltas[0] == {"role": "assistant", "content": ""}
        assert all("role" not in delta for delta in deltas[1:])
        assert deltas[-1] == {}


@pytest.mark.parametrize("stream", [False, True])
def test_max_tokens_and_stop_limit_translations(server, folder, stream):
    tokenizer = load(folder / "en-de", device="cpu").tokenizer

    def answer(**fields):
        found = chat(server, "The cat sat.", model="en-de", stream=stream, **fields)
        if not stream:
            choice = found.json["choices"][0]
            return choice["message"]["content"], choice["finish_reason"], found.json["usage"]
        records = events(found)
        choices = [choice for record in records for choice in record["choices"]]
        return "".join(choice["delta"].get("content", "") for choice in choices), choices[-1]["finish_reason"], None

    whole, reason, usage = answer()
    ids = tokenizer.encode(whole)
    assert reason == "stop"
    assert usage is None or usage["completion_tokens"] == len(ids)
    text, reason, usage = answer(max_tokens=3)
    assert (text, reason) == (tokenizer.decode_stable_prefix(ids[:3]), "length")
    assert usage is None or usage["completion_tokens"] <= 3
    assert answer(max_tokens=len(ids))[:2] == (whole, "stop")
    assert answer(max_tokens=10**9)[:2] == (whole, "stop")
    stop = whole[4:7]
    assert answer(stop=[stop])[:2] == (whole[: whole.index(stop)], "stop")


def test_a_translation_that_is_cut_off_says_so(server):
    found = chat(server, "The cat. " * 20, model="en-de").json["choices"][0]
    assert server.translate("The cat. " * 20).json["truncated"] is True
    assert found["finish_reason"] == "length"


def test_max_tokens_above_the_limit_are_the_limit(server):
    found = server.post("/v1/completions", {**PROMPT, "max_tokens": 10**9})
    assert found.status == 200
    assert found.json["usage"]["total_tokens"] <= 64


@pytest.mark.parametrize(
    "option",
    [
        {"n": 2}, {"best_of": 3}, {"logprobs": True}, {"logprobs": 0}, {"top_logprobs": 2}, {"logit_bias": {"5": 9}},
        {"response_format": {"type": "json_object"}}, {"tool_choice": "required"}, {"suffix": "x"},
        {"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"frequency_penalty": 0.5},
    ],
)  # fmt: skip
def test_options_that_would_change_the_answer_are_refused(server, option):
    for answer in (chat(server, model="lm", **option), server.post("/v1/completions", {**PROMPT, **option})):
        assert answer.status == 400
        assert answer.json["error"] == {
            "message": answer.json["error"]["message"], "type": "invalid_request_error",
            "param": next(iter(option)), "code": "unsupported_value",
        }  # fmt: skip


def test_options_without_effect_are_accepted(server):
    options = {
        "n": 1, "logprobs": False, "frequency_penalty": 0, "response_format": {"type": "text"}, "user": "me",
        "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto", "logit_bias": {},
    }  # fmt: skip
    assert chat(server, model="lm", max_tokens=2, **options).status == 200


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_is_refused_and_not_cut(server, stream):
    text = "The cat sat on the mat. " * 20
    for answer in (
        chat(server, text, model="lm", stream=stream),
        server.post("/v1/completions", {**PROMPT, "prompt": text, "stream": stream}),
    ):
        assert answer.status == 400
        assert answer.json["error"]["code"] == "context_length_exceeded"
        assert "at most 63" in answer.json["error"]["message"]
    assert "reads at most" in server.post("/models/lm", {"inputs": text}).json["error"]


def test_a_long_prompt_leaves_less_room_and_is_not_cut(server, folder):
    tokenizer = load(folder / "lm", device="cpu").tokenizer
    text = "The cat sat" * 30
    while len(tokenizer.encode(text)) > 55:
        text = text[:-1]
    usage = server.post("/v1/completions", {**PROMPT, "prompt": text, "max_tokens": 40}).json["usage"]
    assert usage["prompt_tokens"] == len(tokenizer.encode(text)) + 1  # the start token
    assert usage["total_tokens"] <= 64


def test_a_history_with_tools_is_accepted(server):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "A dog."}, {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "5"}, {"role": "user", "content": "The cat."},
    ]  # fmt: skip
    for model in ("en-de", "lm"):
        found = server.post("/v1/chat/completions", {"model": model, "messages": messages, "max_tokens": 2})
        assert found.status == 200


@pytest.mark.parametrize("given", [[1, 2, 3], [[1, 2], [3]]])
def test_tokens_of_other_models_are_refused_with_the_reason(server, given):
    answer = server.post("/v1/embeddings", {"model": "embedder", "input": given})
    assert answer.status == 400
    assert "tokens of another model" in answer.json["error"]["message"]
    assert server.post("/v1/embeddings", {"model": "embedder", "input": "a", "dimensions": 3}).status == 400


def test_a_chat_at_the_address_of_a_model(server):
    body = {"model": "tgi", "messages": [{"role": "user", "content": "The cat."}]}
    found = server.post("/models/en-de/v1/chat/completions", body).json
    assert found["choices"][0]["message"]["content"] == server.translate("The cat.").json["translatedText"]
    refused = server.post("/models/xx/v1/chat/completions", body)
    assert (refused.status, refused.json["error"]["type"]) == (404, "invalid_request_error")


def test_an_aborted_stream_leaves_nothing_behind(folder):
    with running(folder, models=("lm",)) as server:
        body = json.dumps({**PROMPT, "prompt": ["The cat"] * 200, "max_tokens": 60, "stream": True, "temperature": 1})
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        for _ in range(8):
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(head.encode() + body.encode())
                assert b"200 OK" in connection.recv(1000)
        wait_for(lambda: server.metric("glassformer_texts_running") == 0)
        assert server.post("/v1/completions", PROMPT).status == 200
    assert "destroyed" not in "".join(server.log)
    assert "Traceback" not in "".join(server.log)
