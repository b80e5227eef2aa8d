"""Lengths, banned texts and cut outputs of translations."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.corpora.memory import Match
from glassformer.corpora.terms import Glossary, Term
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.tasks import repair
from glassformer.tasks.terms import Terms
from glassformer.tasks.texts import no_op
from glassformer.tasks.translated import record_of
from tests.inspection.models import make
from tests.tasks.test_terms import LINES, translator

CUT = "the translation was cut off at the maximum length: its end is missing"


def ending(name, family, **sizes):
    """A model that ends its outputs at once."""
    task = make(name, family, max_len=160, output_bias=True, **sizes)
    with torch.no_grad():
        task.model.output_bias[task.tokenizer.eos_id] = 30
    return task


def test_a_translation_that_is_cut_off_is_named():
    warnings = []
    task = translator()
    found = task.translate(LINES, DecodeConfig(no_repeat_ngram_size=0), warn=lambda *each: warnings.append(each))
    cut = [i for i, (best,) in enumerate(found) if best.ids and best.ids[-1] != task.tokenizer.eos_id]
    assert cut
    assert [(i, CUT) for i in cut] == warnings
    assert [i for i, nbest in enumerate(found) if record_of(nbest).get("truncated")] == cut
    warnings.clear()
    task.translate(LINES, DecodeConfig(max_length=5), warn=lambda *each: warnings.append(each))
    assert warnings == []  # as it was asked for
    task = ending("translation", "transformer")
    ((best,),) = task.translate(["The black cat"], warn=lambda *each: warnings.append(each))
    assert (best.is_truncated, warnings) == (False, [])


def test_the_minimum_length_is_kept_beyond_the_usual_maximum():
    task = ending("translation", "transformer")
    ((best,),) = task.translate(["The cat"], DecodeConfig(min_length=100, no_repeat_ngram_size=0))
    assert (len(best.ids), best.ids[-1]) == (101, task.tokenizer.eos_id)


@pytest.mark.parametrize("name", ["causal-lm", "summarization"])
def test_the_maximum_of_language_models_is_above_the_minimum(name):
    task = make(name, "gpt2", max_len=100)
    usual = task.max_new_tokens(DecodeConfig())
    assert task.max_new_tokens(DecodeConfig(min_length=usual - 5)) == usual
    if name == "causal-lm":
        assert task.max_new_tokens(DecodeConfig(min_length=usual + 5)) == usual + 6


def test_a_minimum_of_the_maximum_is_refused():
    with pytest.raises(ConfigError, match="min_length = 10 is not less than max_length = 10"):
        DecodeConfig.resolve({"min_length": 10, "max_length": 10}, environment={})


def test_no_term_is_put_in_where_it_makes_a_banned_text():
    task = translator()
    terms = Terms(Glossary([Term(("cat",), ("Kater",))]), None)

    def translated(ban):
        options = DecodeConfig(ban=ban)
        ((best,),) = task.engine(options).run(task.decoding(["a dog and a cat"], options, terms=terms))
        return best

    first = translated(())
    at = first.text.index("Kater")
    banned = first.text[at - 1 : at + 5]  # the term and what is before it
    second = translated((banned,))
    assert banned not in second.text
    assert second.missing or "Kater" in second.text


def test_a_repair_is_scored_with_the_tag(monkeypatch):
    task = translator()
    ((best,),) = task.translate(["a dog"])
    monkeypatch.setattr(repair, "repaired", lambda *_: "ein Hund")
    scored = {}
    for tag in ([], [7]):
        (found,) = repair.from_similar(
            task, [("a dog", best, Match("a cat", "eine Katze", 0.9))], DecodeConfig(), None, tag
        )
        t = task.tokenizer
        source, target = [*tag, *t.encode("a dog"), t.eos_id], [*t.encode("ein Hund"), t.eos_id]
        np.testing.assert_allclose(found.log_probs, task.log_probs([source], [target], [0])[0], rtol=1e-5)
        scored[len(tag)] = found.score
    assert scored[0] != scored[1]


def test_sources_and_cut_ones_among_several_translations_are_named():
    ((first, second),) = translator().translate(["a dog"], DecodeConfig(beam=2, nbest=2))
    record = record_of([first, replace(second, is_untranslated=True)])
    assert ["untranslated" in each for each in record["nbest"]] == [False, True]
    record = record_of([replace(first, is_truncated=False), replace(second, is_truncated=True)])
    assert ["truncated" in each for each in record["nbest"]] == [False, True]


@pytest.mark.parametrize("options", [{}, {"prefix": "the"}])
def test_a_sample_does_not_depend_on_the_other_texts(options):
    task = translator()
    options = DecodeConfig(temperature=1.5, seed=3, batch_tokens=4096, **options)
    others = ["a dog slept", "the cat " * 60, ""]
    (first, last), *found = (
        [nbest[0].text for nbest in task.translate(["a dog", other, LINES[0]], options, warn=no_op)][::2]
        for other in others
    )
    assert all(texts == [first, last] for texts in found)
