"""The server beside LibreTranslate 1.9.6: throughput of single sentences and of lists, with the same weights.

LibreTranslate gets a CTranslate2 export of the same model in int8 and the model's own tokenizer. Its sentence
splitter, which would download a model, is replaced by a regular expression. Two models: base (random weights, outputs
of 16 tokens) and a trained translator, whose answers are compared as well. The peer's best number of threads counts.

usage: python -m benchmarks.serve_libretranslate DATA MODELS PYTHON [URL]

DATA, MODELS: see benchmarks.serve; MODELS also contains trained and trained.ctranslate2, a translator from English
into German. PYTHON: interpreter of an environment with `pip install libretranslate==1.9.6 tokenizers`.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from benchmarks.corpora import lines
from benchmarks.machine import save
from benchmarks.serve import N_CONNECTIONS, PARAMETERS, closed_loop, glassformer, process, ratio

ROUNDS = 3

N_SENTENCES = 160
LIST_LENGTH = 20
THREADS = ((1, 2), (2, 1))
PEER = """
import re, sys
import ctranslate2, tokenizers
from argostranslate import package, sbd, translate
n = int(sys.argv.pop(1))

class Splitter:
    def __init__(self, package): pass
    def split_sentences(self, text): return re.split(r"(?<=[.!?])\\s+", text)

class Tokenizer:
    def __init__(self, path): self.own = tokenizers.Tokenizer.from_file(str(path.with_name("tokenizer.json")))
    def encode(self, text): return self.own.encode(" " + text).tokens + ["</s>"]
    def decode(self, tokens): return self.own.decode([self.own.token_to_id(t) for t in tokens]).strip()

class Translator(ctranslate2.Translator):
    def translate_batch(self, *args, **options):
        return super().translate_batch(*args, **options, max_decoding_length=n)

translate.ctranslate2.Translator = Translator
translate.MiniSBDSentencizer = Splitter
package.SentencePieceTokenizer = Tokenizer
from libretranslate.main import main
main()
"""


@contextmanager
def libretranslate(python, model, n_tokens, inter, intra):
    """The peer with the model as a package from English into German. Yields the port."""
    with tempfile.TemporaryDirectory() as folder:
        for source, target in (("en", "de"), ("de", "en")):  # with one package, it would download others
            package = Path(folder) / "packages" / f"translate-{source}_{target}-1_0"
            package.mkdir(parents=True)
            (package / "model").symlink_to(f"{model}.ctranslate2")
            (package / "tokenizer.json").symlink_to(model / "tokenizer.json")
            (package / "sentencepiece.model").touch()
            names = {"from_code": source, "from_name": source, "to_code": target, "to_name": target}
            versions = {"package_version": "1.0", "argos_version": "1.9"}
            (package / "metadata.json").write_text(json.dumps(names | versions))
        settings = {
            "ARGOS_PACKAGES_DIR": str(package.parent),
            "ARGOS_COMPUTE_TYPE": "int8",
            "ARGOS_INTER_THREADS": str(inter),
            "ARGOS_INTRA_THREADS": str(intra),
            "HOME": folder,
        }
        command = ["env", "-C", folder, *(f"{name}={value}" for name, value in settings.items())]
        command += ["sh", "-c", 'exec "$@" 1>&2', "-", python, "-u", "-c", PEER, str(n_tokens)]
        command += ["--host", "127.0.0.1", "--port", "5978", "--threads", str(N_CONNECTIONS), "--disable-web-ui"]
        with process(command, r"Running on http://.*:(\d+)$") as (_, port):
            time.sleep(2)
            yield port


def wrap(texts):
    return {"q": texts, "source": "en", "target": "de"}


def rate(port, requests, n, **options):
    """Sentences per second, and the translations."""
    asyncio.run(closed_loop(port, requests[:2], 2, **options))
    seconds, answers, _ = asyncio.run(closed_loop(port, requests, n, **options))
    assert all(status == 200 for status, _ in answers), [answer for answer in answers if answer[0] != 200][:1]
    n_sentences = sum(len(texts) if isinstance(texts, list) else 1 for texts in requests)
    return n_sentences / seconds, [json.loads(body) for _, body in answers]


def compared(models, python, name, texts):
    """Rates of both servers in turn, for single sentences and for lists of 20."""
    model = models / name
    n_tokens = PARAMETERS["max_new_tokens"] if name == "base" else 256
    path, ours = "/translate", wrap
    if name == "base":
        path, ours = "/models/base", lambda texts: {"inputs": texts, "parameters": PARAMETERS}
    lists = [texts[i : i + LIST_LENGTH] for i in range(0, len(texts), LIST_LENGTH)]
    works = {"single": (texts, N_CONNECTIONS), "lists of 20": (lists, len(lists) // 4), "one client": (texts[:64], 1)}
    rates = {work: {"glassformer": [], "LibreTranslate": []} for work in works}
    answers = {}
    for _ in range(ROUNDS):
        with glassformer([str(model)], "--languages", f"{name}=en,de") as (_, port):
            for work, (requests, n) in works.items():
                value, answers["glassformer"] = rate(port, requests, n, path=path, wrap=ours)
                rates[work]["glassformer"].append(value)
        best = dict.fromkeys(works, 0.0)
        for inter, intra in THREADS:
            with libretranslate(python, model, n_tokens, inter, intra) as port:
                for work, (requests, n) in works.items():
                    value, answers["LibreTranslate"] = rate(port, requests, n, path="/translate", wrap=wrap)
                    best[work] = max(best[work], value)
        for work, value in best.items():
            rates[work]["LibreTranslate"].append(value)
    rows = {
        work: {
            "sentences_per_second": {server: round(statistics.median(v), 1) for server, v in values.items()},
            "ratio": ratio(values["glassformer"], values["LibreTranslate"]),
        }
        for work, values in rates.items()
    }
    if name == "trained":
        pairs = zip(answers["glassformer"], answers["LibreTranslate"], strict=True)
        rows["equal_answers"] = round(statistics.mean(a["translatedText"] == b["translatedText"] for a, b in pairs), 3)
    return rows


def main():
    data, models, python = Path(sys.argv[1]), Path(sys.argv[2]).resolve(), os.path.abspath(sys.argv[3])
    texts = lines(data / "raw/test_2016_flickr.en.gz")[:N_SENTENCES]
    rows = {name: compared(models, python, name, texts) for name in ("base", "trained")}
    print(json.dumps(rows, indent=2))
    save("serve_libretranslate", {"results": rows}, "python -m benchmarks.serve_libretranslate DATA MODELS PYTHON")


if __name__ == "__main__":
    main()
