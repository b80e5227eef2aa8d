"""Pages that translate by themselves, and their engines."""

import json

import pytest

import glassformer as gf
from glassformer.browser.page import page
from glassformer.kernels.build import FOLDER, WEB, web_file
from tests.browser.translators import random_translator

OWN = ("file:", "data:", "blob:")
"""How the addresses of what a page may load begin."""

ENGINE = """
async (only) => {
  const bytes = async (node, isDeflated = true) => {
    const text = atob(node.textContent.trim());
    const deflated = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) deflated[i] = text.charCodeAt(i);
    if (!isDeflated) return deflated;
    const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  const { deflated: isDeflated, size, sum } = JSON.parse(document.getElementById("model-sum").textContent);
  const nodes = [...document.querySelectorAll("script[data-build]")];
  const builds = {};
  for (const node of nodes) builds[node.dataset.build] = await bytes(node);
  const source = document.getElementById("worker").textContent;
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const calls = new Map();
  const parts = []; // of the last call
  worker.onmessage = ({ data }) => {
    if (data.part) parts.push(data.part);
    else calls.get(data.id)({ ...data, parts: parts.splice(0) });
  };
  window.call = (method, values) => new Promise((resolve) => {
    calls.set(calls.size + 1, resolve);
    worker.postMessage({ id: calls.size, method, values });
  });
  const model = await bytes(document.getElementById("model"), isDeflated);
  return window.call("load", { builds, model, size, sum, wanted: only });
}
"""


AS_JSON = """
async ([method, values]) => JSON.stringify(await window.call(method, values), (_, value) => {
  if (ArrayBuffer.isView(value)) return Array.from(value);
  return typeof value === "number" && !Number.isFinite(value) ? { notFinite: String(value) } : value ?? null;
})
"""
"""The answer of an engine as a text: playwright takes ten times as long to transfer it as an object."""


def number(found):
    """A number that JSON does not have; other objects as they are."""
    return float(found["notFinite"]) if found.keys() == {"notFinite"} else found


@pytest.fixture(scope="module", autouse=True)
def kernels():
    """Skip where the kernels for WebAssembly are missing; CI has them."""
    if not all((FOLDER / web_file(name)).exists() for name in WEB):
        pytest.skip("needs the kernels for WebAssembly: python src/glassformer/kernels/build.py web")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A function that trains a model on some rows for two steps."""

    def train(name, rows, **options):
        folder = tmp_path_factory.mktemp(name)
        (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        options = {"steps": 2, "vocab_size": 280, "threads": 1, "quiet": True, "max_len": 40, **options}
        task = gf.train(folder / "data.jsonl", out=folder / "out", **options)
        task.precision = "int8"
        return task

    return train


@pytest.fixture(scope="module")
def small_translator(tmp_path_factory):
    return random_translator("transformer", tmp_path_factory.mktemp("translator"))


@pytest.fixture(scope="module")
def engines(browser, tmp_path_factory):
    """A function that opens the page of a translator, and returns a function that calls a method of its engine."""
    opened = []

    def open_engine(task, build="simd"):
        path = tmp_path_factory.mktemp("pages") / "page.html"
        path.write_text(page(task, "model"), encoding="utf-8")
        tab = browser.new_page()
        opened.append(tab)
        tab.goto(path.as_uri())
        loaded = tab.evaluate(ENGINE, build)
        assert "error" not in loaded, loaded

        def call(method, **values):
            answer = json.loads(tab.evaluate(AS_JSON, [method, values]), object_hook=number)
            assert "error" not in answer, answer
            return answer.get("result") or answer["parts"]

        def run(method, **values):
            """Call a method whose result is not needed: it takes longer to come than to be computed."""
            error = "async ([method, values]) => (await window.call(method, values)).error ?? null"
            assert tab.evaluate(error, [method, values]) is None

        call.run = run
        return call

    yield open_engine
    for tab in opened:
        tab.close()


@pytest.fixture
def open_page(tabs, tmp_path):
    """A function that opens the page of a task, which may load nothing else."""

    def open_tab(task, name):
        path = tmp_path / f"{name}.html"
        path.write_text(page(task, name), encoding="utf-8")
        return tabs(path.as_uri(), OWN)

    return open_tab
