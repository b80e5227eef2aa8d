"""The server where torch is not installed."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.serve.models import MODELS, Server, running

NO_TORCH = 'import sys\nsys.modules["torch"] = None  # an import of it is an error, and no package is found\n'
SLOW_TORCH = """
import sys, time
if "glassformer.serve.worker" in sys.orig_argv:
    time.sleep({seconds})
sys.path.remove({folder!r})
del sys.modules["torch"]
import torch
"""
SENTENCES = ["The cat sat on the mat.", "A dog.\r\nand the old man\n"]

TRANSLATIONS = [
    {"q": SENTENCES},
    {"q": "The cat {name}.", "align": True, "confidence": True, "protect": True, "terms": [["cat", "Kater"]]},
    {"q": "The cat sat.", "alternatives": 3, "beam": 4},
    {"q": "The cat sat.", "alternatives": 3, "prefix": ""},
    {"q": "<p>The <b>cat</b> sat.</p>", "format": "html"},
    {"q": "The cat sat.", "source": "auto"},
]
COMPLETIONS = [
    {"model": "lm", "prompt": ["The cat", "a"], "max_tokens": 8, "temperature": 0},
    {"model": "lm", "prompt": "The cat", "max_tokens": 8, "seed": 3, "temperature": 0.8, "top_p": 0.9},
    {"model": "en-de", "prompt": "The cat", "max_tokens": 2},
]
PIPELINES = {"en-de": SENTENCES, "sentiment": SENTENCES, "tagger": SENTENCES, "embedder": SENTENCES, "lm": "The cat"}


@pytest.fixture(scope="module")
def servers(folder, tmp_path_factory) -> Iterator[tuple[Server, Server]]:
    """A server with torch, and one without."""
    path = tmp_path_factory.mktemp("no_torch")
    (path / "sitecustomize.py").write_text(NO_TORCH)
    env = {"PYTHONPATH": str(path)}
    with running(folder, "--precision", "fp32") as one, running(folder, "--precision", "fp32", env=env) as other:
        yield one, other


def answers(server: Server) -> Iterator[bytes]:
    """The answers that do not contain the time or random names."""
    for fields in TRANSLATIONS:
        answer = server.translate(**fields)
        assert answer.status == 200, answer.body
        yield answer.body
    for fields in COMPLETIONS:
        answer = server.post("/v1/completions", fields)
        assert answer.status == 200, answer.body
        yield repr((answer.json["choices"], answer.json["usage"])).encode()
    yield server.post("/v1/embeddings", {"model": "embedder", "input": SENTENCES}).body
    for name, inputs in PIPELINES.items():
        parameters = {"do_sample": False, "max_new_tokens": 9} if name == "lm" else {}
        answer = server.post(f"/models/{name}", {"inputs": inputs, "parameters": parameters})
        assert answer.status == 200, answer.body
        yield answer.body


def test_a_server_without_torch_gives_the_same_answers(servers):
    with_torch, without = map(answers, servers)
    for expected, answer in zip(with_torch, without, strict=True):
        assert answer == expected


def test_inspection_is_offered_only_with_torch(servers):
    with_torch, without = servers
    offered = [["inspect" in model["features"] for model in server.get("/models").json] for server in servers]
    assert offered == [[True] * len(MODELS), [False] * len(MODELS)]
    inputs = {"inputs": "The cat."}
    assert with_torch.post("/models/en-de/inspect", inputs).status == 200
    refused = without.post("/models/en-de/inspect", inputs)
    assert refused.status == 400
    needs = "The inspection of a model needs PyTorch, which is not installed."
    assert refused.json["error"] == f'{needs} Install it: pip install "glassformer[train]"'
    assert without.translate("The cat.").status == 200


def test_the_model_process_imports_torch_for_an_inspection_only():
    code = "import glassformer.serve.worker.__main__, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.slow
def test_a_slow_import_of_torch_does_not_end_the_model_process(folder, tmp_path):
    silence_s = 3.0
    (tmp_path / "sitecustomize.py").write_text(f"import glassformer.serve.limits as l; l.SILENCE_S = {silence_s}")
    (tmp_path / "torch.py").write_text(SLOW_TORCH.format(seconds=1.75 * silence_s, folder=str(tmp_path)))
    env = {"PYTHONPATH": str(tmp_path)}
    with running(folder, "--precision", "fp32", models=("en-de",), env=env) as server:
        assert server.post("/models/en-de/inspect", {"inputs": "The cat."}).status == 200
        assert server.metric("glassformer_model_process_restarts") == 0
