"""Every command of use where torch is not installed: the same bytes as where it is, where it is not imported."""

import json
import os
import subprocess
import sys
from typing import NamedTuple

import pytest

import glassformer as gf
from glassformer import devices
from glassformer.errors import ConfigError
from glassformer.kernels.library import load
from glassformer.models.gpt2 import Gpt2, Gpt2Config
from glassformer.models.llama import Llama, LlamaConfig
from glassformer.models.rnn import Rnn, RnnConfig
from glassformer.models.skipgram import SkipGram, SkipGramConfig
from glassformer.models.t5 import T5, T5Config
from glassformer.tasks.causal_lm import LanguageModel
from glassformer.tasks.skip_gram import WordVectors
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from tests.inspection.models import make
from tests.tasks.test_terms import LINES, translator

pytestmark = pytest.mark.skipif(load()[0] is None, reason="without the C library, torch computes all models")

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "jaxtyping"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""

REPORT = """
import io, json, sys
from glassformer.cli import main

own = sys.stdout
for arguments, text in json.load(sys.stdin):
    streams = [io.TextIOWrapper(io.BytesIO(data), encoding="utf-8") for data in (text.encode(), b"", b"")]
    sys.stdin, sys.stdout, sys.stderr = streams
    code, before = 0, {*sys.modules}
    try:
        main(arguments)
    except SystemExit as end:
        code = end.code or 0
    sys.stdout, sys.stderr = own, sys.__stderr__
    out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])
    print(json.dumps([out, err, code, "torch" in {*sys.modules} - before]))
"""


class Done(NamedTuple):
    stdout: str
    stderr: str
    returncode: int
    has_imported_torch: bool


def run(commands, folder=None, blocked=None) -> list[Done]:
    """Commands, each with its standard input, one after the other in one process.

    Args:
        blocked: folder of the module that hides torch.
    """
    written = json.dumps([([str(word) for word in command], stdin) for command, stdin in commands])
    done = subprocess.run(
        [sys.executable, "-c", REPORT], cwd=folder, env=environment_of(blocked), input=written, capture_output=True,
        text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [Done(*json.loads(line)) for line in done.stdout.splitlines()]


def environment_of(blocked):
    """The environment of a process in which torch is hidden, if a folder is given."""
    paths = [str(blocked)] if blocked else []
    return os.environ | {"PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}


@pytest.fixture(scope="module")
def blocked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blocked")
    (folder / "sitecustomize.py").write_text(BLOCK)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    task = translator()
    task.save(folder / "translation")
    task.save(folder / "int8", precision="int8")
    tokenizer = Tokenizer.train(LINES * 5, vocab_size=300)
    sizes = {"vocab_size": 300, "d_model": 16, "n_heads": 2, "d_ff": 24, "max_len": 64}
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 2}
    Translator(T5(T5Config(**sizes, **layers, d_head=8)), tokenizer).save(folder / "t5")
    LanguageModel(Gpt2(Gpt2Config(**sizes, n_layers=2)), tokenizer).save(folder / "gpt2")
    LanguageModel(Llama(LlamaConfig(**sizes, n_layers=2, n_kv_heads=1)), tokenizer).save(folder / "llama")
    Translator(Rnn(RnnConfig(vocab_size=300, d_model=16)), tokenizer).save(folder / "rnn")
    for name in ("classification", "regression", "tagging", "question-answering", "feature-extraction", "masked-lm"):
        make(name, "bert").save(folder / name)
    vectors = SkipGram(SkipGramConfig(vocab_size=300, d_model=16))
    WordVectors(vectors, tokenizer).save(folder / "skip-gram")
    (folder / "terms.tsv").write_text("black cat\tKater\ndog\tHund\n")
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in LINES * 4))
    return folder


TEXT = "the black cat\n\nthe dog sleeps on a couch\n"
USES = {
    "translate": ("translate", "translation"),
    "translate fp32": ("translate", "translation", "--precision", "fp32", "--beam", 3, "--nbest", 2, "--json"),
    "translate int8": ("translate", "translation", "--precision", "int8", "--beam", 8, "--json"),
    "translate, terms": ("translate", "translation", "--glossary", "terms.tsv", "--align", "--max-length", 9),
    "translate, prefix": ("translate", "translation", "--prefix", "neues", "--max-length", 9),
    "translate, rules": ("translate", "translation", "--ban", "e", "--min-length", 4, "--max-length", 9,
                         "--no-repeat-ngram-size", 2),
    "translate, all logits": ("translate", "translation", "--repetition-penalty", 1.3, "--max-length", 9),
    "translate, sampled": ("translate", "translation", "--temperature", 0.8, "--top-k", 9, "--top-p", 0.9, "--min-p",
                           0.01, "--typical-p", 0.9, "--seed", 3, "--max-length", 9),
    "translate, protected": ("translate", "translation", "--protect", "cat", "--max-length", 9),
    "translate an int8 folder": ("translate", "int8", "--align", "--max-length", 9, "--json"),
    "translate, T5": ("translate", "t5", "--align", "--max-length", 9),
    "run": ("run", "translation", "--max-length", 9),
    "complete": ("complete", "gpt2", "--max-length", 5, "--seed", 2),
    "complete, beam": ("complete", "llama", "--beam", 3, "--max-length", 5),
    "complete, int8": ("complete", "llama", "--beam", 2, "--max-length", 5, "--precision", "int8"),
    "classify": ("classify", "classification", "--json"),
    "classify, int8": ("classify", "classification", "--json", "--precision", "int8"),
    "run a regression": ("run", "regression"),
    "tag": ("tag", "tagging", "--json"),
    "embed": ("embed", "feature-extraction"),
    "fill-mask": ("fill-mask", "masked-lm", "--json"),
    "similar": ("similar", "skip-gram", "cat", "--n", 3),
    "evaluate": ("evaluate", "translation", "--src", "text.txt", "--ref", "text.txt", "--max-length", 9),
    "evaluate a language model": ("evaluate", "gpt2", "--src", "text.txt"),
    "score": ("score", "translation", "--src", "text.txt", "--tgt", "text.txt"),
    "score, T5": ("score", "t5", "--src", "text.txt", "--tgt", "text.txt"),
    "info": ("info", "translation"),
    "answer": ("answer", "question-answering"),
    "similarity": ("similarity", "feature-extraction"),
    "calibrate": ("calibrate", "t5", "--src", "text.txt", "--ref", "text.txt"),
    "shortlist": ("shortlist", "t5", "--src", "text.txt", "--ref", "text.txt"),
}  # fmt: skip
STDIN = {
    "fill-mask": "the <mask> cat\na <mask> <mask>\n",
    "answer": "where is the cat?\tthe black cat sat on a couch\n",
    "similarity": "a cat\ta dog\n\n",
}


@pytest.fixture(scope="module")
def results(models, blocked) -> list[dict[str, Done]]:
    """What each command of use printed where torch is installed, and where it is not."""
    commands = [(command, STDIN.get(use, TEXT)) for use, command in USES.items()]
    return [dict(zip(USES, run(commands, models, hidden), strict=True)) for hidden in (None, blocked)]


@pytest.mark.parametrize("use", USES)
def test_a_command_of_use_imports_no_torch_and_prints_the_same_without_it(use, results):
    installed, without = (result[use] for result in results)
    assert not installed.has_imported_torch
    assert without == installed
    assert installed.returncode == (1 if use == "calibrate" else 0), installed.stderr  # too few words
    assert installed.stdout or use in ("calibrate", "shortlist")
    assert not installed.stderr or use not in ("answer", "similarity")


NEEDS = {
    ("train", "text.txt", "text.txt", "--out", "new"): "`glassformer train` needs PyTorch",
    ("inspect", "translation", "the cat"): "`glassformer inspect` needs PyTorch",
    ("translate", "rnn"): "(rnn), needs PyTorch",
    ("translate", "translation", "--precision", "bf16"): "--precision bf16 needs PyTorch",
    ("translate", "translation", "--device", "cuda"): "Other devices need PyTorch",
    ("evaluate", "masked-lm", "--src", "text.txt"): "The evaluation of masked-lm needs PyTorch",
    ("export", "translation", "--out", "hf"): "needs PyTorch",
}


def test_what_needs_torch_says_how_to_install_it(models, blocked):
    for done, message in zip(run([(command, TEXT) for command in NEEDS], models, blocked), NEEDS.values(), strict=True):
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
        assert 'pip install "glassformer[train]"' in done.stderr
        assert "Traceback" not in done.stderr


def test_an_older_folder_without_programs_says_what_is_missing(models, blocked, tmp_path):
    task = gf.load(models / "translation")
    contents = {name: content for name, content in task.contents().items() if not name.startswith("programs")}
    gf.tasks.base.checkpoint.save_folder(tmp_path / "older", contents)
    commands = [(("translate", folder, "--max-length", 9), TEXT) for folder in (tmp_path / "older", "translation")]
    with_torch, expected = run(commands, models)
    assert with_torch.stdout == expected.stdout
    done, _ = run(commands, models, blocked)
    assert done.returncode == 2
    assert "A model folder without programs" in done.stderr


def test_the_api_and_pipelines_use_no_torch(models, blocked):
    code = """if True:
    import json, sys
    import glassformer as gf
    folder = sys.argv[1]
    task = gf.load(f"{folder}/translation")
    outputs = [
        task("the black cat", max_length=9),
        gf.pipeline("translation", model=f"{folder}/translation")("the dog", max_length=9),
        gf.pipeline("text-classification", model=f"{folder}/classification")("the dog"),
        gf.pipeline("token-classification", model=f"{folder}/tagging")("the dog"),
        gf.pipeline("fill-mask", model=f"{folder}/masked-lm")("the <mask>"),
        gf.pipeline("text-generation", model=f"{folder}/gpt2")("the", max_new_tokens=3, do_sample=False),
        gf.pipeline("question-answering", model=f"{folder}/question-answering")(question="who?", context="the dog"),
        gf.load(f"{folder}/feature-extraction")(["the dog"]).tolist(),
        repr(task),
    ]
    print(json.dumps(outputs, default=float), "torch" in sys.modules)
    """
    done = [
        subprocess.run(
            [sys.executable, "-c", code, str(models)], capture_output=True, text=True, env=environment_of(folder)
        )
        for folder in (None, blocked)
    ]  # fmt: skip
    assert done[0].stdout.endswith("False\n"), done[0].stderr
    assert done[1].stdout == done[0].stdout, done[1].stderr
    assert json.loads(done[0].stdout.removesuffix(" False\n"))


@pytest.mark.parametrize(("missing", "name"), [("torch", "PyTorch"), ("jaxtyping", "jaxtyping")])
def test_torch_alone_is_not_enough_for_models_in_torch(missing, name, monkeypatch):
    found = devices.importlib.util.find_spec
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: None if name == missing else found(name))
    monkeypatch.setattr(devices, "may_have_gpu", lambda: True)
    assert devices.pick_device("auto") == "cpu"
    with pytest.raises(ConfigError, match=f"A training needs {name}, which is not installed"):
        devices.require_torch("A training")
