"""Small models with random weights, and servers for them in processes of their own."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import torch

from glassformer.corpora.language_id import LanguageProfiles
from glassformer.tasks.confidence import N_FEATURES, Confidence
from tests.interop.ours import make

ENGLISH = ["The cat sat on the mat.", "A dog and the old man went home.", "Where are you going with that book?"]
GERMAN = ["Die Katze saß auf der Matte.", "Ein Hund und der alte Mann gingen nach Hause.", "Wohin gehst du damit?"]
TEXTS = [
    *ENGLISH, "", "a", "a\nb\r\nc", " the  cat ", "The cat. " * 20, "<b>cat</b> & {name}", "The cats sat\n\non mats.\n",
    *(f"the cat {word} the mat" for word in ["on", "at", "by", "near", "under", "behind", "over", "beside"]),
]  # fmt: skip


def write_models(folder: Path) -> None:
    """Write en-de, sentiment, lm, embedder, tagger."""
    small = dict(d_model=32, n_heads=4, d_ff=32, n_encoder_layers=2, n_decoder_layers=2, max_len=40)
    translator = make("translation", "transformer", tags=("law",), output_bias=True, **small)
    torch.manual_seed(13)  # with these weights, outputs have several words, and differ; those of short texts end
    for p in translator.model.parameters():
        torch.nn.init.normal_(p, std=0.8)
    with torch.no_grad():
        bias = translator.model.output_bias.zero_()
        bias[translator.tokenizer.eos_id] = 1.5
    translator.languages, translator.scripts = ("en", "de"), ("LATIN",)
    translator.detection = LanguageProfiles.fit({"en": ENGLISH, "de": GERMAN})
    translator.confidence = Confidence((0.0,) * N_FEATURES, (1.0,) * N_FEATURES, (0.01,) * (N_FEATURES + 1), 1000)
    translator.save(folder / "en-de")
    make("classification").save(folder / "sentiment")
    make("feature-extraction").save(folder / "embedder")
    make("causal-lm", "gpt2", max_len=64).save(folder / "lm")
    tagger = make("tagging")
    tagger.save(folder / "tagger")


MODELS = ("en-de", "sentiment", "embedder", "lm", "tagger")


class Answer:
    """An answer of the server."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.body = response.status, response.read()
        self.headers = {name.lower(): value for name, value in response.getheaders()}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """A server process."""

    def __init__(self, process: subprocess.Popen[str], port: int, log: list[str]) -> None:
        self.process, self.port, self.log = process, port, log

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, dict(headers or {}))
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, headers=headers)

    def post(self, path: str, value: Any, **headers: str) -> Answer:
        return self.request("POST", path, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})

    def form(self, path: str, fields: Any) -> Answer:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.request("POST", path, urlencode(fields, doseq=True).encode(), kind)

    def translate(self, q: Any, **fields: Any) -> Answer:
        return self.post("/translate", {"q": q, "source": "en", "target": "de", **fields})

    @property
    def worker(self) -> int:
        """Process id of the model process."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[-1])

    def metric(self, name: str) -> float:
        text = self.get("/metrics").body.decode()
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))


@contextmanager
def running(
    folder: Path,
    *arguments: str,
    models: tuple[str, ...] = MODELS,
    port: int = 0,
    env: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """A server for the models of a folder; port 0: a free one."""
    options = ["--port", str(port), "--threads", "1", *arguments]
    command = [sys.executable, "-m", "glassformer", "serve", *models, *options]
    process = subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
    )
    log: list[str] = []
    assert process.stderr
    for line in process.stderr:
        log.append(line)
        if match := re.search(r"http://.*:(\d+)$", line):
            port = int(match[1])
            break
    reader = threading.Thread(target=lambda: log.extend(process.stderr or ()), daemon=True)
    reader.start()
    try:
        assert port, "".join(log)
        yield Server(process, port, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        finally:
            process.kill()
            reader.join(5)
            process.stderr.close()


def wait_for(condition: Any, timeout_s: float = 20) -> None:
    """Wait until a condition is true.

    Raises:
        AssertionError: it is not within the time.
    """
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "the condition is not met"
        time.sleep(0.02)
