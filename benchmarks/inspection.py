"""Cost of the inspection features: without recording, with recording of all tensors, and in the browser.

usage: python -m benchmarks.inspection [THREADS]

Off: time of a training step and of decoding a batch at base size, relative to the commit before activations could be
recorded; separate processes in alternation. On: time of a forward pass of 30 + 30 tokens with all tensors recorded,
relative to one without. Page: size and time to write it; with playwright and Chromium (CHROMIUM, /usr/bin/chromium)
also the time to first paint, and the longest frame while the pointer moves over a map of 100 x 100 tokens.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.machine import alternate, save, threads
from glassformer.inspection.inputs import prepare_inputs
from glassformer.inspection.inspect import inspect
from glassformer.inspection.page import inspection_page
from glassformer.inspection.record import record_activations
from glassformer.models.transformer import TransformerConfig
from glassformer.presets import preset
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer

BEFORE = "d609c66"
ROUNDS = 7
OFF = """
import sys, time, torch
from glassformer.models.transformer import Transformer
from glassformer.models.transformer import TransformerConfig
from glassformer.generate.search import beam_search
try:
    from glassformer.models.decoding import TorchDecoder
    decodable = lambda model, src: (TorchDecoder(model), src.tolist())
except ImportError:
    decodable = lambda model, src: (model, src)  # before search was without PyTorch
torch.set_num_threads(int(sys.argv[1])); torch.manual_seed(0)
model = Transformer(TransformerConfig(vocab_size=8000))
src, tgt = torch.randint(3, 8000, (2, 64, 20))
def step():
    model.train(); model.zero_grad(); model(src, tgt).square().mean().backward()
def decode():
    model.eval(); beam_search(*decodable(model, src[:16]), [12] * 16, eos_id=2)
for name, run in (("step", step), ("decode", decode)):
    run(); start = time.perf_counter()
    for _ in range(3): run()
    print(name, (time.perf_counter() - start) / 3)
"""


def main():
    torch.set_num_threads(threads())
    task = make()
    with tempfile.TemporaryDirectory() as folder:
        results = {"threads": threads(), "off_ratio": off(Path(folder)), **on(task), **pages(task, Path(folder))}
    print(results)
    save("inspection", results, f"python -m benchmarks.inspection {threads()}")


def off(folder):
    """Ratio of the times with and without the feature."""
    subprocess.run(
        ["git", "worktree", "add", "--detach", str(folder / "before"), BEFORE], check=True, capture_output=True
    )
    try:
        trees = {"with": Path(__file__).parents[1] / "src", "without": folder / "before" / "src"}
        seconds = {name: {"step": [], "decode": []} for name in trees}
        for _ in range(ROUNDS):
            for name, tree in trees.items():
                out = subprocess.run(
                    [sys.executable, "-c", OFF, str(threads())], check=True, capture_output=True, text=True,
                    env={**os.environ, "PYTHONPATH": str(tree)},
                ).stdout  # fmt: skip
                for line in out.splitlines():
                    task_name, value = line.split()
                    seconds[name][task_name].append(float(value))
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(folder / "before")], check=True)
    return {
        task_name: round(
            statistics.median(seconds["with"][task_name]) / statistics.median(seconds["without"][task_name]), 3
        )
        for task_name in ("step", "decode")
    }


def make():
    """A translator of base size with random weights."""
    words = [f"word{i}" for i in range(400)]
    tokenizer = Tokenizer.train([" ".join(words)] * 2, vocab_size=1200)
    sizes = preset("base")
    torch.manual_seed(1)
    return Translator.build(
        TransformerConfig(
            vocab_size=tokenizer.vocab_size, **{name: sizes[name] for name in ("d_model", "n_heads", "d_ff", "max_len")}
        ),
        tokenizer,
    )


def text_of(task, n):
    """A text of n tokens."""
    ids = [i for i in range(300, 700) if task.tokenizer.token(i).strip()][:n]
    text = task.tokenizer.decode(ids)
    assert abs(len(task.tokenizer.encode(text)) - n) <= n // 10, len(task.tokenizer.encode(text))
    return text


def on(task):
    """Ratio of the times of a forward pass with and without recording."""
    inputs = prepare_inputs(task, text_of(task, 30), text_of(task, 30))

    def plain():
        with torch.inference_mode():
            task.model.logits(inputs.forward())

    def recorded():
        with torch.inference_mode(), record_activations(task) as cache:
            task.model.logits(inputs.forward())
        assert len([name for name in cache if name.endswith(".weights")]) == 18

    seconds = alternate({"plain": plain, "recorded": recorded}, 15)
    return {"on_ratio": round(seconds["recorded"] / seconds["plain"], 2), "forward_s": round(seconds["plain"], 4)}


def pages(task, folder):
    """Size of the page, and times in the browser."""
    start = time.perf_counter()
    text = inspection_page(inspect(task, text_of(task, 30), text_of(task, 30)).to_dict())
    (folder / "page.html").write_text(text, encoding="utf-8")
    results = {"page_write_s": round(time.perf_counter() - start, 2), "page_mb": round(len(text.encode()) / 1e6, 2)}
    text = inspection_page(inspect(task, text_of(task, 100), text_of(task, 100)).to_dict())
    (folder / "long.html").write_text(text, encoding="utf-8")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("playwright is not installed: browser times are skipped", file=sys.stderr)
        return results
    with sync_playwright() as play:
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        faults = []
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or faults.append(request.url))
        paints = []
        for _ in range(5):
            page.goto(f"file://{folder}/page.html")
            page.wait_for_selector(".cell-area")
            paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
        results["first_paint_s"] = round(statistics.median(paints), 2)
        page.goto(f"file://{folder}/long.html")
        area = page.wait_for_selector(".cell-area")
        area.scroll_into_view_if_needed()
        box = area.bounding_box()
        page.evaluate(
            "() => { window.frames_ = []; let last = performance.now();"
            " const tick = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(tick); };"
            " requestAnimationFrame(tick); }"
        )
        page.wait_for_timeout(500)
        page.evaluate("() => { window.frames_.length = 0; }")
        for i in range(120):
            page.mouse.move(box["x"] + 5 + i * 4 % 600, box["y"] + 5 + i * 3 % 300)
        page.wait_for_timeout(100)
        frames = json.loads(page.evaluate("JSON.stringify(window.frames_)"))
        results |= {"hover_longest_frame_ms": round(max(frames[1:]), 1), "hover_frames": len(frames), "faults": faults}
        browser.close()
    return results


if __name__ == "__main__":
    main()
