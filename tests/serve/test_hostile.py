"""Requests that are valid in form and hostile in content do not end the model process."""

import random
from types import SimpleNamespace

import pytest

from glassformer.decode_config import DecodeConfig
from glassformer.generate.request import Sources
from glassformer.generate.search import Hypothesis
from glassformer.serve.messages import Done, Translated
from glassformer.serve.worker.jobs import DecodingJob
from glassformer.serve.worker.loop import Worker
from glassformer.tasks import terms
from glassformer.tasks.registry import load
from glassformer.tasks.terms import Output, Part
from tests.serve.models import TEXTS

CONTENT = [
    *(text for text in TEXTS if text.strip()),
    *("x" * 20_000, "cat " * 5_000, "\u202e\u0301\ufeff", "|||", "\t", "</s> <pad> <s>", "{name} " * 500, "a\r" * 900),
    *("🏳️‍🌈" * 300, "\u2028\u2029\x85\x1c", "%s" * 2_000, "https://" + "a" * 3_000, "((((" * 1_000, "é" * 10_000),
]


@pytest.mark.parametrize("seed", range(12))
def test_the_model_process_survives_hostile_content(server, seed):
    rng = random.Random(seed)
    fields = {
        "beam": rng.choice([1, 2, 16]),
        "protect": rng.random() < 0.5,
        "align": rng.random() < 0.5,
        "confidence": rng.random() < 0.5,
        "min_confidence": rng.choice([None, 0, 0.5, 1]),
        "alternatives": rng.choice([0, 0, 3]),
        "format": rng.choice(["text", "text", "html"]),
        "terms": [[rng.choice(CONTENT)[:200].replace("|", "") or "a", rng.choice(["Katze", "(", "a|b"])]],
    }
    if rng.random() < 0.4 and fields["format"] == "text":
        fields["prefix"] = rng.choice(["", "x" * 9_000, "die " * 400, "</s>"])
    answer = server.translate(rng.choice(CONTENT).replace("\n", " "), **fields)
    assert answer.status in (200, 400, 413, 503), answer.body
    assert server.metric("glassformer_model_process_restarts") == 0
    assert server.translate("The cat.").status == 200


def test_the_alignment_of_a_text_of_thousands_of_words_does_not_stop_the_model_process(server):
    before = server.metric("glassformer_model_process_restarts")
    answer = server.translate("cat " * 4_990, align=True)
    assert answer.status == 200
    assert answer.json["alignment"]
    assert server.metric("glassformer_model_process_restarts") == before


def test_a_decoding_that_waits_for_nothing_lets_others_go_on(folder):
    """It is continued once in a turn of the loop, so that the process is not silent."""
    sent = []
    worker = Worker(SimpleNamespace(send=sent.append), {}, {}, {})
    model = SimpleNamespace(engine=load(folder / "en-de").engine(DecodeConfig()))

    def decoding(result):
        for _ in range(3):
            assert (yield Sources([], DecodeConfig())) == []
        return Translated(text=result)

    worker.jobs = {i: DecodingJob(model, decoding(str(i)), lambda result: result) for i in range(2)}
    for _ in range(3):
        worker.advance()
        assert len(worker.jobs) == 2
    assert not sent
    worker.advance()
    assert sent == [Done(job_id=i, result=Translated(text=str(i))) for i in range(2)]
    assert not worker.jobs


def test_the_edits_of_a_long_text_are_made_in_parts(monkeypatch):
    monkeypatch.setattr(terms, "edit_once", lambda *_: True)
    parts = [Part(i, "", "cat", [5], [object()]) for i in range(terms.EDITED_TOGETHER + 1)]
    outputs = [[Output("a", Hypothesis([5], [0.0], 0.0))] for _ in parts]
    yielded = list(terms.meet_requirements(SimpleNamespace(), parts, outputs, DecodeConfig()))
    assert [sources.ids for sources in yielded] == [[]] * (2 * terms.MAX_EDITS)
