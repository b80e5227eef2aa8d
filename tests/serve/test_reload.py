"""Folders that were replaced: by fine-tuned models, by damaged ones, by ones that lack what the old ones had."""

import json
import os
import shutil
import signal
import subprocess

from glassformer.corpora.language_id import LanguageProfiles
from glassformer.generate.shortlist import Shortlist
from glassformer.tasks.confidence import N_FEATURES, Confidence
from glassformer.tasks.registry import load
from tests.forks import forking_python
from tests.interop.ours import make
from tests.serve.models import ENGLISH, GERMAN, running, wait_for, write_models


def fine_tune(folder, *arguments):
    command = [forking_python(), "-m", "glassformer", "train", *arguments, "--steps", "2", "--threads", "1"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stderr


def hang_up(server, message):
    """Load the folders again, and wait until the log has a message."""
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: any(message in line for line in server.log))


def test_the_documented_loop_of_corrections(tmp_path):
    write_models(tmp_path)
    (tmp_path / "corrections").mkdir()
    with running(tmp_path, "--corrections", "corrections", models=("en-de",)) as server:
        before = server.get("/languages").json, server.get("/models").json[0]["features"]
        for i in range(12):
            correction = {"q": f"The cat {i}", "s": f"Die Katze {i}", "source": "en", "target": "de"}
            assert server.post("/suggest", correction).json == {"success": True}
        log = fine_tune(tmp_path, "corrections/corrections.en-de.jsonl", "--init-from", "en-de", "--out", "en-de-2")
        assert "Confidence: that of the initial model" in log
        os.rename(tmp_path / "en-de", tmp_path / "old")
        os.rename(tmp_path / "en-de-2", tmp_path / "en-de")
        hang_up(server, "were loaded again")
        assert (server.get("/languages").json, server.get("/models").json[0]["features"]) == before
        found = server.translate("The cat.", source="auto", confidence=True, align=True).json
        assert found["detectedLanguage"]["language"] == "en"
        assert {"words", "alignment"} <= found.keys()
        assert server.get("/health").json == {"status": "ok"}


def test_fine_tuning_keeps_what_corrections_do_not_have(tmp_path):
    base = make("translation", "transformer", max_len=40)
    base.languages = ("en", "de")
    base.detection = LanguageProfiles.fit({"en": ENGLISH * 9, "de": GERMAN * 9})
    base.confidence = Confidence((0.0,) * N_FEATURES, (1.0,) * N_FEATURES, (0.01,) * (N_FEATURES + 1), 1000)
    rows = [([5, 6], [7, 8]), ([6], [9])]
    base.shortlist = Shortlist.learn(iter(rows), base.model.config.vocab_size, base.tokenizer.eos_id)
    base.save(tmp_path / "base")
    pairs = [{"src": f"The cat {i}", "tgt": f"Die Katze {i}"} for i in range(12)]
    (tmp_path / "few.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    fine_tune(tmp_path, "few.jsonl", "--init-from", "base", "--out", "tuned")
    tuned = load(tmp_path / "tuned", device="cpu")
    assert tuned.languages == ("en", "de")
    assert tuned.confidence == base.confidence
    assert tuned.detection == base.detection  # that with more text
    assert tuned.shortlist.to_tensors().keys() == base.shortlist.to_tensors().keys()
    assert all((tuned.shortlist.to_tensors()[k] == v).all() for k, v in base.shortlist.to_tensors().items())
    # What was learned for other languages is not used.
    log = fine_tune(tmp_path, "few.jsonl", "--init-from", "base", "--languages", "en", "fr", "--out", "other")
    other = load(tmp_path / "other", device="cpu")
    assert (other.languages, other.confidence, other.shortlist) == (("en", "fr"), None, None)
    assert "Confidence and shortlist of the initial model are not used" in log


def replace_folder(path, task):
    shutil.rmtree(path)
    task.save(path)


def test_a_folder_that_has_lost_its_languages_is_not_used(tmp_path):
    write_models(tmp_path)
    with running(tmp_path, models=("en-de",)) as server:
        before = server.translate("The cat.").json
        replace_folder(tmp_path / "en-de", make("translation", "transformer"))
        hang_up(server, "en-de: the new folder does not translate en to de")
        assert server.translate("The cat.").json == before
        health = server.get("/health")
        assert health.status == 200
        assert health.json == {"status": "degraded", "problems": ["the last reload was refused"]}
        # A process that is restarted takes the folder that is there.
        os.kill(server.worker, signal.SIGKILL)
        loss = "en-de: without confidence, en to de, language detection, which an earlier folder had"
        wait_for(lambda: server.get("/health").json == {"status": "degraded", "problems": [loss]})


def test_a_folder_that_has_lost_a_feature_is_named(tmp_path):
    write_models(tmp_path)
    with running(tmp_path, models=("en-de",)) as server:
        task = make("translation", "transformer")
        task.languages = ("en", "de")
        replace_folder(tmp_path / "en-de", task)
        hang_up(server, "were loaded again")
        loss = "en-de: without confidence, language detection, which an earlier folder had"
        assert f"warning: {loss}\n" in server.log
        assert server.get("/health").json == {"status": "degraded", "problems": [loss]}


def test_a_damaged_folder_does_not_take_the_other_models_down(tmp_path):
    write_models(tmp_path)
    (tmp_path / "terms.tsv").write_text("cat\tKater\n", encoding="utf-8")
    (tmp_path / "memory.tsv").write_text("cat\tKatze\n", encoding="utf-8")
    options = "--glossary", "animals=terms.tsv", "--memory", "old=memory.tsv"
    with running(tmp_path, *options, models=("en-de", "sentiment")) as server:
        with open(tmp_path / "sentiment" / "model.safetensors", "r+b") as file:
            file.seek(200)
            file.write(b"damaged")
        (tmp_path / "terms.tsv").write_text("cat\n", encoding="utf-8")
        (tmp_path / "memory.tsv").write_text("cat\n", encoding="utf-8")
        os.kill(server.worker, signal.SIGKILL)
        assert server.translate("The cat.").status == 200
        assert any("sentiment" in line and "model.safetensors" in line for line in server.log)
        assert server.get("/health").json == {
            "status": "degraded",
            "problems": [
                "model sentiment: cannot be loaded",
                "glossary animals: cannot be read",
                "memory old: cannot be read",
            ],
        }
        answer = server.post("/models/sentiment", {"inputs": "good"})
        assert (answer.status, answer.headers["retry-after"]) == (503, "60")
        assert "the model sentiment cannot be loaded" in answer.json["error"]
        answer = server.translate("The cat.", glossary="animals")
        assert answer.status == 503
        assert "the glossary animals cannot be loaded" in answer.json["error"]
        assert "the memory old cannot be loaded" in server.translate("The cat.", memory="old").json["error"]
        assert [row["id"] for row in server.get("/v1/models").json["data"]] == ["en-de"]


def test_a_damaged_translator_is_named_in_the_answer(tmp_path):
    write_models(tmp_path)
    with running(tmp_path, models=("en-de", "lm")) as server:
        (tmp_path / "en-de" / "model.safetensors").write_bytes(b"damaged")
        os.kill(server.worker, signal.SIGKILL)
        wait_for(lambda: server.get("/health").json["status"] == "degraded")
        answer = server.translate("The cat.")
        assert answer.status == 503
        assert "the model en-de cannot be loaded" in answer.json["error"]
        assert server.post("/v1/completions", {"model": "lm", "prompt": "a", "max_tokens": 2}).status == 200
        # Nothing can be loaded.
        (tmp_path / "lm" / "model.safetensors").write_bytes(b"damaged")
        os.kill(server.worker, signal.SIGKILL)
        wait_for(lambda: server.get("/health").status == 503)
