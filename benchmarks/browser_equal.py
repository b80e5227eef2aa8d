"""Whether a page translates as the command line does in int8: texts, tokens and log-probabilities bit for bit, in
Chromium, Firefox and WebKit, with several options, for the lines of a file, those of the tests, and N_HOSTILE of
benchmarks.serve_xss.

usage: python -m benchmarks.browser_equal NAME=MODEL,SRC[,N_LINES] ...

MODEL, SRC and the packages that are needed: see benchmarks.browser. N_LINES: number of lines of SRC, 1,000 by default.
"""

import sys
import tempfile
from pathlib import Path

from tests.browser.test_engine import TEXTS

from benchmarks.browser import CALL, browsers, build_of, limited, model_of, opened
from benchmarks.machine import load_own, save
from benchmarks.serve_xss import payloads
from glassformer.browser.page import page
from glassformer.corpora.lines import read_lines
from glassformer.decode_config import DecodeConfig
from glassformer.tasks.registry import load

N_HOSTILE, AT_ONCE = 500, 50
COMMAND = "python -m benchmarks.browser_equal NAME=MODEL,SRC[,N_LINES] ..."
OPTIONS = {"greedy": {"beam": 1}, "beam 4": {"beam": 4}, "3 best": {"beam": 4, "nbest": 3}}


def compare(browser, task, texts, path):
    """The number of texts whose outputs differ, by options."""
    tab, *_ = opened(browser, path)
    build = build_of(tab)
    differ = {}
    for name, options in OPTIONS.items():
        found = []
        for start in range(0, len(texts), AT_ONCE):
            calls = [{"text": text, "options": options} for text in texts[start : start + AT_ONCE]]
            found += tab.evaluate(CALL, ["translate", calls])[1]
        wanted = task.translate(texts, DecodeConfig(precision="int8", **options))
        own = [[(x["text"], x["ids"], x["logProbs"]) for x in nbest] for nbest in found]
        native = [[(x.text, list(x.ids), x.log_probs) for x in nbest] for nbest in wanted]
        differ[name] = sum(a != b for a, b in zip(own, native, strict=True))
    tab.close()
    return {"build": build, "texts": len(texts), "differ": differ}


def main():
    with tempfile.TemporaryDirectory() as folder, browsers() as found:
        results = load_own("browser_equal").get("results", {})
        for argument in sys.argv[1:]:
            name, _, rest = argument.partition("=")
            model, src, *n_lines = rest.split(",")
            model = model_of(model, src, Path(folder))
            task, path = load(model, device="cpu"), Path(folder) / f"{name}.html"
            lines = [line for line in read_lines(Path(src)) if line.strip()][: int(*n_lines or [1000])]
            for title, browser in found.items():
                with limited(model):
                    path.write_text(page(task, name), encoding="utf-8")
                    result = compare(browser, task, [*lines, *TEXTS, *payloads(N_HOSTILE)], path)
                results[f"{name}, {title}"] = result
                print(f"{name}, {title}", result, flush=True)
                save("browser_equal", {"results": results}, COMMAND)


if __name__ == "__main__":
    main()
