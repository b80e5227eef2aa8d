"""Speed of a page that translates by itself, in Chromium, Firefox and WebKit, relative to the command line's decoder in
one thread.

Sentences one at a time, as in the page; the page, the decoder, and the decoder limited to AVX2 where the processor has
more, in turn (A B C A B C), medians. Texts and log-probabilities must be equal. Then: size of the file, time from
opening it to its first translation and the memory of the process of the page after it (medians of ROUNDS openings),
and, of one sentence, time of a record of all heads after its translation, of both: what the page asks for at a key
press while it shows what happens inside, and of the predictions of each layer, for which it asks after them.

usage: OMP_NUM_THREADS=1 python -m benchmarks.browser NAME=MODEL,SRC ...

MODEL: folder of a translator, or "random": base sizes, a vocabulary of 32,000, outputs as long as their sources. SRC:
file of sentences, of which the first N_SENTENCES are used. Needs playwright, Chromium, and what
`benchmarks.firefox` and `benchmarks.webkit` name.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.firefox import Firefox
from benchmarks.machine import load_own, save
from benchmarks.models import random_translator
from benchmarks.webkit import WebKit
from glassformer.browser import model_file
from glassformer.browser.page import page
from glassformer.corpora.lines import read_lines
from glassformer.decode_config import DecodeConfig
from glassformer.generate import engine
from glassformer.kernels.library import load as load_kernels
from glassformer.tasks.registry import load
from glassformer.threads import n_threads
from glassformer.tokens.tokenizer import Tokenizer

N_SENTENCES, ROUNDS = 60, 5
VOCAB = 32_000
BEAMS = (1, 4)
FIRST = """
() => new Promise((resolve) => {
  const check = () => {
    const field = document.querySelector(".mirror textarea");
    if (field && !field.value) {
      field.value = "The first sentence.";
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    if (document.querySelector(".output .word")) resolve();
    else setTimeout(check, 2);
  };
  check();
})
"""
"""Type a sentence, and wait for its translation."""

CALL = """
async ([method, calls]) => {
  const start = performance.now();
  const results = [];
  for (const values of calls) results.push(await window.call(method, values));
  return [performance.now() - start, results.map(({ result }) => result)];
}
"""


def model_of(name, src, folder):
    """The folder of a model; for "random", a new one of base sizes with random weights."""
    if name != "random":
        return Path(name)
    random_translator(Tokenizer.train(list(read_lines(Path(src))), vocab_size=VOCAB)).save(folder / name)
    return folder / name


def sentences_of(model, src, n=N_SENTENCES):
    """Sentences to translate."""
    sentences = [line for line in read_lines(src) if line.strip()][:n]
    # Of sources that repeat themselves, translations that do are not decoded again.
    return [" ".join(line.split()[:4] * 3) for line in sentences] if model.name == "random" else sentences


def limited(model):
    """While it is active, outputs of random weights, which do not end, are as long as their sources."""
    stack = ExitStack()
    for module in (engine, model_file) if model.name == "random" else ():
        stack.enter_context(patch.object(module, "MORE_TOKENS", 0))
    return stack


def memory_of_pages(browser):
    """Memory of the largest process of a browser that has pages, in bytes."""
    option = getattr(browser, "page_process", b"--type=renderer")
    sizes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if option in (folder / "cmdline").read_bytes():
                lines = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
                sizes.append(1024 * int(lines["VmRSS"].split()[0]))
        except (OSError, KeyError):  # it has ended
            continue
    return max(sizes)


def opened(browser, path):
    """A tab with the page; time to the first translation in ms, and the memory after it."""
    tab = browser.new_page()
    start = time.perf_counter()
    tab.goto(path.as_uri())
    tab.evaluate(FIRST)
    first = 1000 * (time.perf_counter() - start)
    return tab, first, memory_of_pages(browser)


def build_of(tab):
    """Load an engine of its own in a tab with the page, which `window.call` calls. Returns its build."""
    from tests.browser.conftest import ENGINE

    return tab.evaluate(ENGINE, None)["result"]["build"]


def measure(browser, folder, sentences, path):
    task = load(folder, device="cpu")
    path.write_text(page(task, "model"), encoding="utf-8")
    firsts, memories = [], []
    for _ in range(ROUNDS):
        time.sleep(1)  # the process of the last page has ended
        tab, first, memory = opened(browser, path)
        firsts.append(first)
        memories.append(memory)
        if len(firsts) < ROUNDS:
            tab.close()
    build = build_of(tab)
    result = {"build": build, "bytes": path.stat().st_size, "first_translation_ms": round(statistics.median(firsts))}
    result["memory_bytes"] = round(statistics.median(memories))
    kernels, _ = load_kernels()
    slower = {"avx2"} & kernels.supported.keys() - {kernels.variant}
    natives = {"native": kernels.variant, **{name: name for name in slower}}
    for beam in BEAMS:
        speeds = {"page": [], **{name: [] for name in natives}}
        for _ in range(ROUNDS):
            calls = [{"text": text, "options": {"beam": beam}} for text in sentences]
            ms, found = tab.evaluate(CALL, ["translate", calls])
            n_tokens = sum(len(nbest[0]["ids"]) for nbest in found)
            speeds["page"].append(1000 * n_tokens / ms)
            outputs = [(nbest[0]["text"], nbest[0]["logProbs"]) for nbest in found]
            for name, variant in natives.items():
                kernels.select(variant)
                start = time.perf_counter()
                native = [task.translate([text], DecodeConfig(beam=beam, precision="int8"))[0][0] for text in sentences]
                speeds[name].append(n_tokens / (time.perf_counter() - start))
                if [(x.text, x.log_probs) for x in native] != outputs:
                    sys.exit("the page translates otherwise than the command line")
            kernels.select(natives["native"])
        medians = {name: statistics.median(values) for name, values in speeds.items()}
        result[f"beam {beam}"] = {f"{name}_tokens_per_s": round(x) for name, x in medians.items()}
        result[f"beam {beam}"]["ratio"] = round(medians["page"] / medians["native"], 2)
        if "avx2" in medians:
            result[f"beam {beam}"]["ratio_avx2"] = round(medians["page"] / medians["avx2"], 2)
    methods = ("translate", "record", "lens")
    times = [[tab.evaluate(CALL, [method, [{"text": text}]])[0] for method in methods] for text in sentences]
    result["heads_ms"] = round(statistics.median(heads for _, heads, _ in times), 1)
    result["key_press_ms"] = round(statistics.median(first + heads for first, heads, _ in times), 1)
    result["layers_ms"] = round(statistics.median(layers for *_, layers in times), 1)
    tab.close()
    return result


@contextmanager
def browsers():
    """Chromium, Firefox and WebKit, by name and version."""
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium") or "/usr/bin/chromium"
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        found = {f"Chromium {chromium.version.split('.')[0]}": chromium}
        try:
            firefox = Firefox()
            found[f"Firefox {firefox.version.split('.')[0]}"] = firefox
            webkit = WebKit()
            found[f"WebKitGTK {webkit.version.rpartition('.')[0]}"] = webkit
            yield found
        finally:
            for browser in found.values():
                browser.close()


def main():
    if n_threads() != 1:
        sys.exit("set OMP_NUM_THREADS=1: the page has one thread")
    with tempfile.TemporaryDirectory() as folder, browsers() as found:
        results = load_own("browser").get("results", {})
        for argument in sys.argv[1:]:
            name, _, paths = argument.partition("=")
            model, src = paths.split(",")
            model, src = model_of(model, src, Path(folder)), Path(src)
            sentences = sentences_of(model, src)
            for title, browser in found.items():
                own = f"{name}, {title}"
                with limited(model):
                    results[own] = measure(browser, model, sentences, Path(folder) / f"{name}.html")
                print(own, results[own], flush=True)
    record = {"results": results, "n_sentences": N_SENTENCES}
    save("browser", record, "OMP_NUM_THREADS=1 python -m benchmarks.browser NAME=MODEL,SRC ...")


if __name__ == "__main__":
    main()
