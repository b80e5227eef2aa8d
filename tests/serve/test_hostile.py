"""Requests that are valid in form and hostile in content do not end the model process."""

import random
import threading

import pytest

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
    assert answer.status in (200, 400, 503), answer.body
    assert server.metric("glassformer_model_process_restarts") == 0
    assert server.translate("The cat.").status == 200


def test_terms_of_a_long_text_do_not_hold_up_others(server):
    """Each of its parts lacks many terms, which are put in one after the other."""
    ended = []

    def long():
        answer = server.translate("cat " * 2_000, terms=[["cat", "Katze"]], beam=8)
        ended.append(("long", answer.status))

    thread = threading.Thread(target=long)
    thread.start()
    while thread.is_alive() and len(ended) < 20:
        ended.append(("short", server.translate("The cat.").status))
    thread.join()
    assert {status for _, status in ended} == {200}
    assert ended.index(("long", 200)) >= 5
    assert server.metric("glassformer_model_process_restarts") == 0
