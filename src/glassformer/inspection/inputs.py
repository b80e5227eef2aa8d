"""A text as a model reads it: tokens with their places, on one side or two, and the pass through the model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.config import DecodeConfig
from glassformer.errors import ConfigError, UserError
from glassformer.generate.search import search
from glassformer.inspection.search_tree import SearchRecorder
from glassformer.models.families import family_of
from glassformer.tasks.question_answering import MAX_QUESTION_TOKENS, question_of
from glassformer.tokens.tokenizer import Tokenizer

DEFAULT_MAX_NEW_TOKENS = 64
"""Tokens that a decoder alone is left to say unless more are asked for."""


@dataclass(frozen=True, slots=True)
class Side:
    """Tokens in a row."""

    name: str
    """source and target, or text."""
    text: str
    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int] | None]
    """The stretch of characters of the text that each token stands for; None of special tokens."""


@dataclass(slots=True)
class ModelInputs:
    """What a model is given: a source and a target, or one text."""

    task: Any
    sides: dict[str, Side]
    inputs: tuple[Tensor, ...]
    expected: list[int]
    """Of a decoder the token that follows each place of its side; of an encoder nothing."""
    first_predicted: int = 0
    """Place on the decoder's side whose follower is the first that was said or given as target."""
    recorder: SearchRecorder | None = None
    """The search that found the target."""
    token_type_ids: Tensor | None = None
    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""

    def forward(self) -> Float[Tensor, "1 length d_model"]:
        """The model's last layer at every place of the side that is predicted."""
        return (
            self.task.model(*self.inputs)
            if self.token_type_ids is None
            else self.task.model(*self.inputs, self.token_type_ids)
        )

    @property
    def predicted(self) -> Side:
        """The side whose next tokens, or whose labels, the model predicts."""
        return self.sides.get("target") or self.sides["text"]


def side(
    t: Tokenizer, name: str, text: str, ids: Sequence[int], offsets: Sequence[tuple[int, int]], first: int
) -> Side:
    """A side whose text's tokens begin at `first`."""
    places: list[tuple[int, int] | None] = [None] * len(ids)
    places[first : first + len(offsets)] = offsets[: len(ids) - first]
    return Side(name, text, list(ids), [t.token(i) for i in ids], places)


def read(
    task: Any,
    text: str,
    target: str | None = None,
    *,
    options: DecodeConfig | None = None,
    window: int = 1,
) -> ModelInputs:
    """A text as a task's model reads it; without a target what the model says to it.

    Args:
        target: of translators and language models, what to follow in place of the best that search finds.
        window: of a text longer than the model reads, the stretch to look at, counted from 1.

    Raises:
        ConfigError: nothing to read, a target for a model that says nothing, or a window that the text has not.
    """
    if not text.strip():
        raise ConfigError("the text is empty: there is nothing to look at.")
    family = family_of(task.model)
    if family == "skipgram":
        raise ConfigError(
            "word vectors have no layers to look into; `glassformer similar` shows what stands near a word."
        )
    if family == "bert":
        if target is not None:
            raise ConfigError(f"{task.name} says nothing that a target could be compared with; leave --target out.")
        return read_encoder(task, text, window)
    return (read_decoder if family == "gpt2" else read_pair)(task, text, target, options or DecodeConfig(), window)


def token_window(items: list[Any], limit: int, window: int, notes: list[str]) -> slice:
    """The stretch of a text's tokens to look at."""
    n_windows = max(1, -(-len(items) // limit))
    if not 1 <= window <= n_windows:
        raise ConfigError(f"window {window}: this text has {n_windows}, of {limit} tokens each.")
    if n_windows > 1:
        notes.append(
            f"{len(items)} tokens, the model reads {limit}: this is window {window} of {n_windows} (--window N)."
        )
    return slice((window - 1) * limit, window * limit)


def read_encoder(task: Any, text: str, window: int) -> ModelInputs:
    """A text, or two that a tab separates."""
    notes: list[str] = []
    match task.name:
        case "question-answering":
            question, context = question_of(text, 0)
            text = f"{question}\t{context}"
            parts = [question, context]
        case "tagging" | "masked-lm" | "bert-pretraining":
            parts = [text]
        case _:
            parts = [part for i, part in enumerate(text.split("\t", 1)) if part or not i]
    encode = {"tagging": encode_words, "masked-lm": encode_masked_text, "bert-pretraining": encode_masked_text}
    found, begin = [], 0
    for part in parts:
        found.append(encode.get(task.name, encode_text)(task, part, begin))
        begin += len(part) + 1
    room = task.model.config.max_len - (task.n_specials if len(parts) > 1 else 2)
    if len(parts) > 1:
        limit = min(MAX_QUESTION_TOKENS, room // 2) if task.name == "question-answering" else room // 2
        if len(found[0]) > limit:
            notes.append(f"the first text has {len(found[0])} tokens, of which {limit} are read.")
        found[0] = found[0][:limit]
        room -= len(found[0])
    found[-1] = found[-1][token_window(found[-1], room, window, notes)]
    ids, token_type_ids = task.add_special_tokens(*([i for i, _ in part] for part in [*found, []][:2]))
    between: list[tuple[int, int] | None] = [None] * (task.n_separators if len(parts) > 1 else 1)
    offsets = [None, *(at for _, at in found[0]), *between]
    if len(parts) > 1:
        offsets += [*(at for _, at in found[1]), None]
    made = Side("text", text, ids, [task.tokenizer.token(i) for i in ids], offsets)
    tensors = torch.tensor([[ids], [token_type_ids]], device=task.device)
    return ModelInputs(task, {"text": made}, (tensors[0],), [], token_type_ids=tensors[1], notes=notes)


Piece = tuple[int, tuple[int, int] | None]
"""A token's id, and the stretch of the text that it stands for."""


def encode_text(task: Any, text: str, begin: int) -> list[Piece]:
    """The tokens of a text that begins at a place of the whole."""
    return [(i, (begin + a, begin + b)) for i, (a, b) in zip(*task.tokenizer.offsets(text), strict=True)]


def encode_words(task: Any, text: str, begin: int) -> list[Piece]:
    """The tokens of words that are cut each for itself, as a tagger cuts them."""
    words = [(match[0], begin + match.start()) for match in re.finditer(r"\S+", text)]
    found: list[Piece] = []
    for (word, at), ids in zip(words, task.subword_ids([word for word, _ in words]), strict=True):
        pieces = encode_text(task, word, at)[: len(ids)]
        found += pieces if [i for i, _ in pieces] == ids else [(i, (at, at + len(word))) for i in ids]
    return found


def encode_masked_text(task: Any, text: str, begin: int) -> list[Piece]:
    """The tokens of a text with masks in it, as `MaskedLM.encode_masked` cuts it."""
    prefix = task.tokenizer.special_tokens.prefix
    found: list[Piece] = []
    at = 0
    for gap in [*task.mask_pattern.finditer(text), None]:
        part = text[at : gap.start() if gap else len(text)]
        if gap and task.tokens_include_space:
            part = part.rstrip(" ")
        if part:
            shift = len(prefix) if at and prefix and part.startswith(prefix) else 0
            found += encode_text(task, part[shift:], begin + at + shift)
        if gap:
            found.append((task.mask_id, (begin + gap.start(), begin + gap.end())))
            at = gap.end()
    return found


def read_pair(task: Any, text: str, target: str | None, options: DecodeConfig, window: int) -> ModelInputs:
    """A source, and the target that was given or found."""
    t, model = task.tokenizer, task.model
    notes: list[str] = []
    every, offsets = t.offsets(text)
    part = token_window(every, model.config.max_len - 1, window, notes)
    src = [*every[part], t.eos_id]
    recorder = None
    if target is None:
        limit = min(model.config.max_len, options.max_length or len(src) + 50)
        recorder = record_search(task, src, limit, options, (t.pad_id, t.bos_id))
        expected = recorder.found[0].ids
        target = t.decode(expected)
    else:
        expected = truncate_target(t.encode(target), model.config.max_len - 1, t.eos_id, notes)
    tgt_in = [model.config.bos_id, *expected[:-1]]
    ids, places = t.offsets(target)
    places = places if ids == [i for i in expected if i != t.eos_id] else []
    sides = {
        "source": side(t, "source", text, src, offsets[part], 0),
        "target": side(t, "target", target, tgt_in, places, 1),
    }
    inputs = (torch.tensor([src], device=task.device), torch.tensor([tgt_in], device=task.device))
    return ModelInputs(task, sides, inputs, expected, recorder=recorder, notes=notes)


def read_decoder(task: Any, text: str, target: str | None, options: DecodeConfig, window: int) -> ModelInputs:
    """A prompt, and what follows it."""
    t, model = task.tokenizer, task.model
    notes: list[str] = []
    room = model.config.max_len
    prompt = task.prompt(text)
    tail = prompt[-1:] if task.name == "summarization" else []  # what asks for the summary
    prompt = prompt[: len(prompt) - len(tail)]
    given = t.encode(target) if target is not None else None
    n_more = (
        min(options.max_length or DEFAULT_MAX_NEW_TOKENS, room // 2) if given is None else min(len(given), room // 2)
    )
    part = token_window(prompt, max(1, room - n_more - len(tail)), window, notes)
    offsets = t.offsets(text)[1]
    lead = 1 if prompt[:1] == [t.bos_id] and len(prompt) > len(offsets) else 0
    prompt, offsets = [*prompt[part], *tail], offsets[max(0, part.start - lead) : part.stop - lead]
    recorder = None
    if given is None:
        limit = max(1, min(n_more, room - len(prompt)))
        recorder = record_search(task, prompt, limit, task.options(options), task.banned_ids)
        given = recorder.found[0].ids
    else:
        given = truncate_target(given, n_more, t.eos_id, notes)
    whole = [*prompt, *given]
    side_ids = whole[:-1]
    made = side(t, "text", text, side_ids, offsets, lead if window == 1 else 0)
    return ModelInputs(
        task, {"text": made}, (torch.tensor([side_ids], device=task.device),), whole[1:], first_predicted=len(prompt) - 1,
        recorder=recorder, notes=notes,
    )  # fmt: skip


def record_search(
    task: Any, src: list[int], limit: int, options: DecodeConfig, banned_ids: tuple[int, ...]
) -> SearchRecorder:
    """A search that was watched."""
    recorder = SearchRecorder(task.model, limit, options)
    (recorder.found,) = search(
        recorder,
        torch.tensor([src], device=task.device),
        [limit],
        eos_id=task.tokenizer.eos_id,
        banned_ids=banned_ids,
        beam=options.beam,
        alpha=options.length_penalty,
        nbest=options.beam,
        no_repeat_ngram_size=options.no_repeat_ngram_size,
    )
    if not recorder.found:
        raise UserError("search found nothing: the model's logits are not finite. `glassformer trace` shows where.")
    return recorder


def truncate_target(ids: list[int], limit: int, eos_id: int, notes: list[str]) -> list[int]:
    """As much of a target as the model can say, and its end."""
    if len(ids) > limit:
        notes.append(f"the target has {len(ids)} tokens, of which the first {limit} are followed.")
    return [*ids[:limit], eos_id]
