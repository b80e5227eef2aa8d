"""Word alignment by cross-attention."""

import re
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from glassformer.generate.engine import batches_by_length
from glassformer.nn.attention import Attention
from glassformer.tokens.tokenizer import Tokenizer

Pairs = list[tuple[int, int]]
"""Index of a source word, and of a target word that is its translation."""


SMOOTHING = 0.1
"""Added to the sum of the attention to a source token: a single target word has nothing to be compared with."""


class CrossAttentionRecorder(TorchFunctionMode):
    """Mode in which the weights of cross-attention are recorded: the mean over layers and heads, in which the layers of
    small models agree better with dictionaries than in most single heads."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.modules = {m for name, m in model.named_modules() if name.endswith("cross_attention")}
        self.weights: list[Float[Tensor, "batch tgt src"]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not Attention.sdpa or args[0] not in self.modules:
            return func(*args, **(kwargs or {}))
        module, q, k, v, mask, _, position_bias = args
        weights = module.attention_weights(q, k, mask, position_bias)
        self.weights.append(weights.mean(1))
        return weights @ v


def cross_attention(
    task: Any, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int = 2048
) -> list[Float[Tensor, "tgt src"]]:
    """Mean attention of each target token to the source tokens, when the model reads the tokens before it.

    Args:
        task: a text-to-text task.
        pairs: token ids of source and target, without end-of-sentence tokens, at most of the maximum length.
    """
    results: list[Tensor] = [torch.empty(0)] * len(pairs)
    for indices in batches_by_length([max(len(src), len(tgt)) + 1 for src, tgt in pairs], batch_tokens):
        batch = task.batch([pairs[i] for i in indices]).to(task.device)
        recorder = CrossAttentionRecorder(task.model)
        with torch.inference_mode(), recorder:
            task.model(batch.src, batch.tgt_in)
        if len(recorder.weights) == len(recorder.modules):
            weights = torch.stack(recorder.weights).mean(0)
        else:  # a recurrent decoder attends once for each position
            weights = torch.cat(recorder.weights, 1)
        for row, i in enumerate(indices):
            src, tgt = pairs[i]
            results[i] = weights[row, : len(tgt), : len(src)].float().cpu()
    return results


def word_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each word of a text: the parts between white space."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def words_of_tokens(text: str, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Token ids of a text, and the index of the word that each token ends in; -1 for white space."""
    ids, offsets = tokenizer.offsets(text)
    word_at = [-1] * (len(text) + 1)
    for word, (start, end) in enumerate(word_spans(text)):
        word_at[start:end] = [word] * (end - start)
    return ids, [word_at[max(end - 1, 0)] if end > start else -1 for start, end in offsets]


def word_attention(task: Any, sources: Sequence[str], targets: Sequence[str]) -> list[Float[Tensor, "tgt src"]]:
    """Attention of each target word to each source word: the sum over the source tokens of the mean over the target
    tokens. Words beyond the maximum length have none.

    The attention to each source token is divided by the sum over the target: some tokens, such as punctuation, get
    attention from all others (recall of eflomal's links on Multi30k train: without this division 0.71, with it 0.80).
    """
    limit = task.model.config.max_len - 1
    sides = [[words_of_tokens(text, task.tokenizer) for text in texts] for texts in (sources, targets)]
    pairs = [(src[:limit], tgt[:limit]) for (src, _), (tgt, _) in zip(*sides, strict=True)]
    results = []
    for i, weights in enumerate(cross_attention(task, pairs)):
        (_, src_words), (_, tgt_words) = sides[0][i], sides[1][i]
        to_source = membership(src_words[:limit], len(word_spans(sources[i])))
        to_target = membership(tgt_words[:limit], len(word_spans(targets[i])))
        means = to_target / to_target.sum(1, keepdim=True).clamp(min=1)
        relative = weights / (weights.sum(0, keepdim=True) + SMOOTHING)
        results.append(means @ relative @ to_source.T)
    return results


def membership(words: Sequence[int], n: int) -> Float[Tensor, "words tokens"]:
    """1 where a token belongs to a word."""
    return (torch.tensor(words, dtype=torch.long)[None] == torch.arange(n)[:, None]).float()


def align(task: Any, sources: Sequence[str], targets: Sequence[str]) -> list[Pairs]:
    """Align the words of translations to those of the sources: each target word to the source word that it attends to
    most, in the order of the target words."""
    results: list[Pairs] = []
    for weights in word_attention(task, sources, targets):
        if weights.numel() == 0:
            results.append([])
            continue
        best = weights.max(1)
        results.append([(int(s), t) for t, (w, s) in enumerate(zip(best.values, best.indices, strict=True)) if w > 0])
    return results
