"""Speed of a page that translates by itself, beside onnxruntime-web with the same weights in the same Chromium.

The page, and onnxruntime-web with the folder of `export --to onnx` (keys and values of earlier tokens are kept; fp32,
and int8 by quantize_dynamic), in turn (A B A B), medians; one sentence at a time, one thread each. onnxruntime-web
computes as many tokens as the page has, with the same beam: browser_onnx.html.

usage: python -m benchmarks.browser_onnx DIST NAME=MODEL,SRC ...

DIST: folder `dist` of the npm package onnxruntime-web. MODEL: folder of a translator, or "random": base sizes, a
vocabulary of 32,000. SRC: file of sentences, of which the first are used. Needs playwright, Chromium, onnx
and onnxruntime.
"""

import functools
import http.server
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.browser import BEAMS, CALL, build_of, limited, model_of, opened, sentences_of
from benchmarks.machine import load_own, save
from glassformer.browser.page import page
from glassformer.interop.export import export_verified
from glassformer.interop.onnx import DECODER, ENCODER
from glassformer.tasks.registry import load

N_SENTENCES, ROUNDS = 20, 3
KINDS = ("fp32", "int8")
RUNTIME = ("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")


class Handler(http.server.SimpleHTTPRequestHandler):
    """The files of a folder, without a line for each request."""

    def log_message(self, *_):
        pass


def write_peer(model, folder):
    """The models of the peer: fp32 and int8. Returns the names of the empty caches with heads and sizes."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    export_verified(model, folder / "fp32", "onnx", None)
    (folder / "int8").mkdir()
    for name in (ENCODER, DECODER):
        quantize_dynamic(folder / "fp32" / name, folder / "int8" / name, weight_type=QuantType.QInt8)
    decoder = onnx.load(folder / "fp32" / DECODER, load_external_data=False)
    shapes = {x.name: [d.dim_value for d in x.type.tensor_type.shape.dim] for x in decoder.graph.input}
    return [
        (name, shape[1], shape[3])
        for name, shape in shapes.items()
        if name.startswith("past") and ".encoder." not in name
    ]


def served(folder):
    """A server of the files of a folder on this machine."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def measure(browser, dist, name, model, src, folder):
    task = load(model, device="cpu")
    sentences = sentences_of(model, src, N_SENTENCES)
    path, root = folder / f"{name}.html", folder / f"{name}.peer"
    path.write_text(page(task, name), encoding="utf-8")
    tab, *_ = opened(browser, path)
    build_of(tab)
    root.mkdir()
    for file in RUNTIME:
        shutil.copy(dist / file, root)
    shutil.copy(Path(__file__).with_suffix(".html"), root / "index.html")
    empty = write_peer(model, root)
    server, peer = served(root), browser.new_page()
    peer.goto(f"http://127.0.0.1:{server.server_port}/index.html")
    for kind in KINDS:
        peer.evaluate("([kind, empty]) => window.load(kind, empty)", [kind, empty])
    runtime = (dist / RUNTIME[-1]).stat().st_size
    sizes = {kind: runtime + sum(x.stat().st_size for x in (root / kind).glob("*.onnx*")) for kind in KINDS}
    result = {"bytes": path.stat().st_size, "peer_bytes": sizes}
    t, bos = task.tokenizer, task.config.bos_id
    for beam in BEAMS:
        calls = [{"text": text, "options": {"beam": beam}} for text in sentences]
        speeds = {name: [] for name in ("page", *KINDS)}
        outputs = {}
        for _ in range(ROUNDS + 1):
            times = {}
            times["page"], found = tab.evaluate(CALL, ["translate", calls])
            ids = [nbest[0]["ids"] for nbest in found]
            given = [[[*t.encode(text), t.eos_id], len(own)] for text, own in zip(sentences, ids, strict=True)]
            for kind in KINDS:
                values = [kind, given, beam, bos, [t.pad_id, bos]]
                times[kind], outputs[kind] = peer.evaluate("(values) => window.translate(...values)", values)
            for kind, ms in times.items():
                speeds[kind].append(1000 * sum(map(len, ids)) / ms)
        medians = {kind: statistics.median(values[1:]) for kind, values in speeds.items()}  # the first round warms up
        pairs = [pair for own, other in zip(ids, outputs["fp32"], strict=True) for pair in zip(own, other, strict=True)]
        result[f"beam {beam}"] = {
            "tokens_per_s": {kind: round(x) for kind, x in medians.items()},
            "equal_tokens": round(sum(a == b for a, b in pairs) / len(pairs), 3),
            "ratio": round(medians["page"] / max(medians[kind] for kind in KINDS), 2),
        }
        print(name, beam, result[f"beam {beam}"], flush=True)
    tab.close()
    peer.close()
    server.shutdown()
    return result


def main():
    from playwright.sync_api import sync_playwright

    dist = Path(sys.argv[1])
    version = json.loads((dist.parent / "package.json").read_text())["version"]
    executable = shutil.which("chromium") or "/usr/bin/chromium"
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        chromium = play.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        for argument in sys.argv[2:]:
            name, _, paths = argument.partition("=")
            model, src = paths.split(",")
            model, src = model_of(model, src, Path(folder)), Path(src)
            with limited(model):
                result = measure(chromium, dist, name, model, src, Path(folder))
            results = {**load_own("browser_onnx").get("results", {}), name: result}
            note = f"Chromium {chromium.version.split('.')[0]}, onnxruntime-web {version}"
            save(
                "browser_onnx",
                {"results": results, "note": note},
                "python -m benchmarks.browser_onnx DIST NAME=MODEL,SRC ...",
            )
        chromium.close()


if __name__ == "__main__":
    main()
