"""Search trees: nodes match the expanded hypotheses, and the best path is the result of the search."""

import itertools

import pytest
import torch

from glassformer.inspection.inspect import inspect
from glassformer.inspection.search_tree import path
from tests.inspection.models import make


@pytest.mark.parametrize(
    ("name", "family"), [("translation", "transformer"), ("translation", "rnn"), ("causal-lm", "gpt2")]
)
@pytest.mark.parametrize("beam", [1, 3])
def test_nodes_are_the_best_extensions_of_the_kept_hypotheses(name, family, beam):
    task = make(name, family)
    n = 6
    found = inspect(task, "The black cat", beam=beam, max_length=n)
    nodes, t = found.nodes, task.tokenizer
    assert nodes
    banned = [t.pad_id, t.bos_id] if name == "translation" else list(task.banned_ids)
    prompt = found.sides["text"].ids[: found.first_predicted + 1] if name == "causal-lm" else [task.config.bos_id]
    src = torch.tensor([found.sides["source"].ids]) if name == "translation" else None

    def log_probs(generated):
        ids = torch.tensor([[*prompt, *generated]])
        with torch.no_grad():
            hidden = task.model(src, ids) if src is not None else task.model(ids)
            logits = task.model.logits(hidden)[0, -1].float()
        logits[banned] = -torch.inf
        return logits.log_softmax(-1)

    front = [((), 0.0)]
    for _, group in itertools.groupby(nodes, key=lambda node: node.step):
        group = list(group)
        extensions = [
            (total + float(p), (*generated, token))
            for generated, total in front
            for token, p in enumerate(log_probs(generated))
            if p > -torch.inf
        ]
        best = sorted(extensions, reverse=True)[: 2 * beam]
        assert {ids for _, ids in best} == {
            tuple(nodes[i].token_id for i in path(nodes, nodes.index(node))) for node in group
        }
        assert sorted(node.total for node in group) == pytest.approx(sorted(total for total, _ in best), abs=1e-3)
        kept = [node for node in group if node.status == "kept"]
        assert sum(node.status in ("kept", "cut", "left") for node in group) <= beam
        front = [(tuple(nodes[i].token_id for i in path(nodes, nodes.index(node))), node.total) for node in kept]


@pytest.mark.parametrize("options", [{}, {"no_repeat_ngram_size": 1, "max_length": 12}])
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_the_best_path_has_the_best_score_and_is_the_translation(beam, options):
    task = make("translation", "transformer")
    for text in ("The black cat sat.", "Der Hund", "on the rug on the couch"):
        found = inspect(task, text, beam=beam, **options)
        assert found.best_path
        ended = [node for node in found.nodes if node.score is not None]
        assert found.nodes[found.best_path[-1]].score == max(node.score for node in ended)
        ids = [found.nodes[i].token_id for i in found.best_path]
        assert task.tokenizer.decode(ids) == task(text, beam=beam, **{"no_repeat_ngram_size": 0} | options)
        assert sum(found.nodes[i].log_prob for i in found.best_path) == pytest.approx(
            found.nodes[found.best_path[-1]].total, abs=1e-4
        )
