"""Speed of translation, tokenization included, compared with CTranslate2 int8 with the same weights.

Translator.translate and, for CTranslate2, the same tokenizer and translate_batch translate sentences of Multi30k's test
set, in turn (A B A B). Models: random weights of several sizes, with outputs of a fixed length (the mean length of the
references); and if given, a trained model with outputs of their own lengths. Then whole processes: time and peak memory
for one sentence and for all 1,000, model loading included.

usage: python -m benchmarks.translate_speed DATA [TRAINED [TEXT]]

DATA contains raw/{train,test_2016_flickr}.{en,de,fr}.gz. TRAINED: model folder of a translation model, or "-".
TEXT: measure only the rows whose name contains it, such as "base avx512 batch 32"; other rows of the results are kept.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.corpora import lines
from benchmarks.machine import alternate, load_own, save
from benchmarks.models import random_translator
from glassformer import checkpoint
from glassformer.corpora.example import Example
from glassformer.decode_config import DecodeConfig
from glassformer.generate.shortlist import Shortlist
from glassformer.interop.ctranslate2 import VOCABULARY_MAP, save_model, vocabulary, vocabulary_map
from glassformer.kernels.library import load as load_kernels
from glassformer.runtime.arrays import read_arrays
from glassformer.tasks.registry import load
from glassformer.tasks.shortlist import learn_shortlist
from glassformer.tokens.tokenizer import Tokenizer

THREADS = os.cpu_count()
VOCAB = 32_000
MODELS = {
    "base": {},
    "12+2 layers": {"n_encoder_layers": 12, "n_decoder_layers": 2},
    "tiny": {"d_model": 128, "n_heads": 4, "d_ff": 256, "n_encoder_layers": 4, "n_decoder_layers": 4},
    "trained": None,
}
NO_AVX512 = {"CT2_FORCE_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}  # of CTranslate2, and of its products
VARIANTS = {
    "avx512": {},
    "avx2": {"GLASSFORMER_KERNELS": "avx2", **NO_AVX512},
    "PyTorch": {"GLASSFORMER_KERNELS": "none"},
}
"""Instruction sets: environment variables of both systems."""
SIZES = {f"batch {batch} beam {beam}": (batch, beam) for batch, beam in ((32, 4), (64, 4), (32, 1), (1, 4), (1, 1))}
SETTINGS = {
    f"{name}{', shortlist' if shortlist else ''}": (*sizes, shortlist)
    for shortlist in (False, True)
    for name, sizes in SIZES.items()
}
"""Batch size, beam size, and whether both systems use a vocabulary shortlist, the same in both. Then ours without it is
measured as well."""
N_SENTENCES = 256
N_SINGLE = 16
SMALL_PARENT = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""
"""Runs a command and prints its peak memory in KiB. That of a process begins with the memory of its parent."""

PEER_PROCESS = """
import sys
sys.modules["torch"] = None  # CTranslate2 imports it if it is installed, and does not need it
import ctranslate2, tokenizers
folder, peer, threads, eos, n = *sys.argv[1:5], int(sys.argv[5])
tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
translator = ctranslate2.Translator(peer, compute_type="int8", intra_threads=int(threads))
sources = [encoding.tokens + [eos] for encoding in tokenizer.encode_batch([" " + line for line in sys.stdin])]
options = dict(beam_size=4, max_batch_size=64, batch_type="examples", min_decoding_length=n, max_decoding_length=n)
for result in translator.translate_batch(sources, **options):
    print(tokenizer.decode([tokenizer.token_to_id(token) for token in result.hypotheses[0]]).strip())
"""


def write_models(data, trained, folder):
    """Write the folders of each model, for both systems. Returns the mean number of tokens of the references."""
    texts = [text for language in ("en", "de", "fr") for text in lines(data / f"raw/train.{language}.gz")]
    tokenizer = Tokenizer.train(texts, vocab_size=VOCAB)
    for name, sizes in MODELS.items():
        if sizes is not None:
            task = random_translator(tokenizer, **sizes)
            task.save(folder / name)
            task.save(folder / f"{name}.int8", precision="int8")
        elif trained:
            (folder / name).symlink_to(trained.resolve())
            task = load(trained, device="cpu")
        else:
            continue
        peer, names = folder / f"{name}.ctranslate2", vocabulary(task)
        save_model(task.model, names, peer, "int8")
        pairs = zip(*(lines(data / f"raw/train.{language}.gz") for language in ("en", "de")), strict=True)
        shortlist = learn_shortlist(task, (Example(src, tgt, "train", 1) for src, tgt in pairs))
        (peer / VOCABULARY_MAP).write_text(vocabulary_map(shortlist, names), encoding="utf-8")
        checkpoint.write_synced(folder / f"{name}.shortlist", checkpoint.to_bytes(shortlist.to_tensors()))
    references = lines(data / "raw/test_2016_flickr.de.gz")
    return round(sum(map(len, tokenizer.encode_batch(references))) / len(references))


def measure(folder, name, setting, n_tokens, sources):
    """Measure one model in one setting, in this process. Prints the result as JSON."""
    import ctranslate2

    torch.set_num_threads(THREADS)
    (batch, beam, with_shortlist), is_trained = SETTINGS[setting], MODELS[name] is None
    task = load(folder / name, device="cpu")
    task.shortlist = Shortlist.from_tensors(read_arrays(folder / f"{name}.shortlist"), task.config.vocab_size)
    peer = ctranslate2.Translator(str(folder / f"{name}.ctranslate2"), compute_type="int8", intra_threads=THREADS)
    tokenizer, names = task.tokenizer, vocabulary(task)
    ids = {token: i for i, token in enumerate(names)}
    n_single = N_SINGLE if batch == 1 else N_SENTENCES
    sources = [sources[i * len(sources) // n_single] for i in range(n_single)]
    mean_length = sum(len(row) + 1 for row in tokenizer.encode_batch(sources)) / len(sources)
    tokens = max(1, round(batch * mean_length))
    options = DecodeConfig(
        beam=beam, precision="int8", batch_tokens=tokens, no_repeat_ngram_size=0, shortlist=with_shortlist
    )
    limit = None if is_trained else lambda n: n_tokens
    lengths = {} if is_trained else {"min_decoding_length": n_tokens}
    n_generated = {}

    def ours(texts, options):
        return [nbest[0] for nbest in task.translate(texts, options, max_new_tokens=limit)]

    def theirs(texts):
        tokens = [[*(names[i] for i in row), names[tokenizer.eos_id]] for row in tokenizer.encode_batch(texts)]
        results = peer.translate_batch(
            tokens, beam_size=beam, max_batch_size=batch, batch_type="examples",
            max_decoding_length=100 if is_trained else n_tokens, use_vmap=with_shortlist, **lengths,
        )  # fmt: skip
        return [tokenizer.decode([ids[token] for token in result.hypotheses[0]]) for result in results], results

    def ours_task(system="glassformer", options=options):
        groups = [[text] for text in sources] if batch == 1 else [sources]
        n_generated[system] = sum(len(t.tokens) for group in groups for t in ours(group, options))

    def theirs_task():
        groups = [[text] for text in sources] if batch == 1 else [sources]
        n_generated["CTranslate2"] = sum(
            len(result.hypotheses[0]) + is_trained for group in groups for result in theirs(group)[1]
        )

    systems = {"glassformer": ours_task, "CTranslate2": theirs_task}
    record = {"kernels": load_kernels()[1]}
    if with_shortlist:
        without = options.model_copy(update={"shortlist": False})
        systems["glassformer without shortlist"] = lambda: ours_task("glassformer without shortlist", without)
        of_sources = [task.shortlist.tokens([*row, tokenizer.eos_id]) for row in tokenizer.encode_batch(sources)]
        record["tokens_of_a_list"] = round(statistics.mean(len(ids) for ids in of_sources if ids is not None))
    seconds = alternate(systems, rounds=5, pause_s=0.3)
    record["tokens"] = n_generated
    record["tokens_per_s"] = {system: round(n_generated[system] / s) for system, s in seconds.items()}
    record["ratio"] = round(seconds["CTranslate2"] / seconds["glassformer"], 2)
    if with_shortlist:
        speed = record["tokens_per_s"]
        record["ratio_to_without"] = round(speed["glassformer"] / speed["glassformer without shortlist"], 2)
    print(json.dumps(record))


def process(command, text, rounds):
    """Median wall-clock seconds and peak memory of a process that reads `text` from standard input."""
    seconds, peak = [], 0
    for _ in range(rounds):
        with tempfile.TemporaryFile("w+") as stdin:
            stdin.write(text)
            stdin.seek(0)
            start = time.perf_counter()
            done = subprocess.run([sys.executable, "-c", SMALL_PARENT, *command], stdin=stdin, capture_output=True)
            seconds.append(time.perf_counter() - start)
        assert done.returncode == 0, command
        peak = max(peak, int(done.stdout) * 1024)
    return {"seconds": round(statistics.median(seconds), 3), "peak_megabytes": round(peak / 1e6)}


def measure_processes(folder, name, n_tokens, sources, rounds):
    """Both systems as programs: load a model and translate, beam 4, 64 sentences at a time."""
    model = str(folder / name)
    mean_length = sum(map(len, load(model, device="cpu").tokenizer.encode_batch(sources))) / len(sources) + 1
    options = ["--precision", "int8", "--max-length", str(n_tokens), "--batch-tokens", str(round(64 * mean_length))]
    options += ["--no-repeat-ngram-size", "0"]  # outputs of random weights repeat themselves
    ours = [sys.executable, "-m", "glassformer", "translate"]
    commands = {
        "glassformer": [*ours, model, *options, "--threads", str(THREADS)],
        "glassformer, folder in int8": [*ours, f"{model}.int8", *options, "--threads", str(THREADS)],
        "CTranslate2": [
            sys.executable, "-c", PEER_PROCESS, model, f"{model}.ctranslate2", str(THREADS), "</s>", str(n_tokens),
        ],
    }  # fmt: skip
    text = "\n".join(sources) + "\n"
    results = {system: process(command, text, rounds) for system, command in commands.items()}
    peer = results["CTranslate2"]
    ratios = {
        system: {key: round(peer[key] / values[key], 2) for key in peer}
        for system, values in results.items()
        if system != "CTranslate2"
    }
    return {**results, "ratio": ratios}


def main():
    data, trained = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2] != "-" else None
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    rows = load_own("translate_speed").get("rows", {})
    sources = lines(data / "raw/test_2016_flickr.en.gz")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.environ.get("TRANSLATE_SPEED_MODELS", name))
        count = folder / "n_tokens"
        if not count.exists():
            folder.mkdir(exist_ok=True)
            count.write_text(str(write_models(data, trained, folder)))
        n_tokens = int(count.read_text())
        for model, sizes in MODELS.items():
            for variant, environment in VARIANTS.items():
                for setting in SETTINGS:
                    row = f"{model} {variant} {setting}"
                    if wanted not in row or (sizes is None and not trained):
                        continue
                    arguments = [str(data), "--measure", str(folder), model, setting, str(n_tokens)]
                    output = subprocess.run(
                        [sys.executable, "-m", "benchmarks.translate_speed", *arguments],
                        env={**os.environ, **environment}, check=True, capture_output=True, text=True,
                    ).stdout  # fmt: skip
                    rows[row] = json.loads(output)
                    print(row, rows[row], flush=True)
        for model, n, rounds in itertools.product(("base", "tiny"), (1, len(sources)), (7,)):
            row = f"process, {model}, {n:,} sentences"
            if wanted in row:
                rows[row] = measure_processes(folder, model, n_tokens, sources[:n], rounds if n == 1 else 1)
                print(row, rows[row], flush=True)
    rows = {row: rows[row] for row in sorted(rows)}
    record = {"threads": THREADS, "generated_tokens": n_tokens, "rows": rows}
    save("translate_speed", record, "python -m benchmarks.translate_speed DATA TRAINED")


if __name__ == "__main__":
    if sys.argv[2:3] == ["--measure"]:
        data, _, folder, model, setting, n_tokens = sys.argv[1:]
        measure(Path(folder), model, setting, int(n_tokens), lines(Path(data) / "raw/test_2016_flickr.en.gz"))
    else:
        main()
