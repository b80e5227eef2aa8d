"""Import and export of the tokenizers of Hugging Face model folders."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.errors import CheckpointError
from glassformer.interop import sentencepiece as sp
from glassformer.manifest import read_json
from glassformer.model_config import Kind
from glassformer.tasks.base import AnyTask
from glassformer.tasks.encoder import EncoderTask
from glassformer.tasks.origin import Origin
from glassformer.tokens.tokenizer import TARGET_TOKENIZER_FILE, SpecialTokens, Tokenizer, wrap_native_errors
from glassformer.tokens.wordpiece import wordpiece_tokenizer

SENTENCEPIECE_FILES = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model")
TEMPLATE_FILE = "chat_template.jinja"
SHIFTED = ("xlm-roberta", "pegasus")
"""Types of models whose token ids are not those of the SentencePiece file."""
ROLES = ("pad_token", "bos_token", "eos_token", "cls_token", "sep_token", "mask_token", "unk_token")
"""Keys of tokenizer_config.json that name special tokens."""


def import_tokenizer(source: Path, hf_config: JsonObject, kind: Kind) -> Tokenizer:
    """Read the tokenizer of a transformers folder.

    Args:
        source: the folder.
        hf_config: contents of its config.json.

    Raises:
        CheckpointError: no supported tokenizer file, or a special token is missing.
    """

    def read() -> Tokenizer:
        settings = read_settings(source)
        backend = read_tokenizer(source, hf_config, settings)
        target = read_target_tokenizer(source, settings)
        for each in filter(None, (backend, target)):
            sp.encode_special_tokens_as_text(each)
        return Tokenizer(backend, find_special_tokens(source, hf_config, settings, backend, kind), target)

    return wrap_native_errors(read, lambda problem: CheckpointError(f"{source}: no usable tokenizer: {problem}"))


def read_settings(source: Path) -> JsonObject:
    """Settings of special_tokens_map.json, overridden by tokenizer_config.json; special tokens and chat template as
    strings."""
    settings: JsonObject = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (source / name).exists():
            settings |= read_json(source / name)
    for role in ROLES:
        if isinstance(settings.get(role), dict):
            settings[role] = settings[role].get("content")
    if template := chat_template(source, settings):
        settings["chat_template"] = template
    return settings


def chat_template(source: Path, settings: JsonObject) -> str | None:
    """The chat template of a folder: chat_template.jinja, else that of tokenizer_config.json, of several the one named
    "default". None: the folder has none.
    """
    if (source / TEMPLATE_FILE).exists():
        return (source / TEMPLATE_FILE).read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {row.get("name"): row.get("template") for row in template if isinstance(row, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None


def read_tokenizer(source: Path, hf_config: JsonObject, settings: JsonObject) -> tokenizers.Tokenizer:
    """Build the tokenizer from the first supported tokenizer file of a folder."""
    t5_sentinels = int(settings.get("extra_ids", 100)) if hf_config["model_type"] == "t5" else 0
    spm_file = next((source / name for name in SENTENCEPIECE_FILES if (source / name).exists()), None)
    if hf_config["model_type"] in SHIFTED and not (source / "tokenizer.json").exists():
        raise CheckpointError(
            f"{source}: no tokenizer.json. The ids of {hf_config['model_type']} differ from those of its SentencePiece"
            " file.\n"
            '  Write it: python -c "from transformers import AutoTokenizer as T;'
            f" T.from_pretrained('{source}').save_pretrained('{source}')\""
        )
    if (source / "tokenizer.json").exists():
        return read_tokenizer_json(source / "tokenizer.json")
    if (source / "source.spm").exists():
        if settings.get("separate_vocabs"):
            raise CheckpointError(f"{source}: separate vocabularies per language are not supported, only a shared one.")
        backend = sp.marian_tokenizer(sp.read_sentencepiece(source / "source.spm"), read_json(source / "vocab.json"))
    elif spm_file:
        backend = sp.sentencepiece_tokenizer(sp.read_sentencepiece(spm_file), t5_sentinels)
    elif (source / "vocab.txt").exists():
        backend = read_wordpiece(source / "vocab.txt", settings)
    elif (source / "vocab.json").exists() and (source / "merges.txt").exists():
        backend = read_byte_level_bpe(source, settings)
    else:
        raise CheckpointError(
            f"{source}: no tokenizer: none of tokenizer.json, vocab.txt, vocab.json with merges.txt or source.spm,"
            f" {', '.join(SENTENCEPIECE_FILES)}.\n  Download it with the model."
        )
    add_tokens(backend, source, settings)
    return backend


def read_target_tokenizer(source: Path, settings: JsonObject) -> tokenizers.Tokenizer | None:
    """Build the tokenizer of target texts of a folder that has another one for them."""
    if (source / TARGET_TOKENIZER_FILE).exists():
        return read_tokenizer_json(source / TARGET_TOKENIZER_FILE)
    paths = source / "source.spm", source / "target.spm"
    if not all(path.exists() for path in paths) or paths[0].read_bytes() == paths[1].read_bytes():
        return None
    backend = sp.marian_tokenizer(sp.read_sentencepiece(paths[1]), read_json(source / "vocab.json"))
    add_tokens(backend, source, settings)
    return backend


def read_tokenizer_json(path: Path) -> tokenizers.Tokenizer:
    """Read a tokenizer.json. T5's sentinels are marked as not special.

    So `<extra_id_0>` in a text is encoded as its one id, unlike the names of special tokens, which are ordinary text.
    """
    tokenizer_json = read_json(path)
    for token in tokenizer_json.get("added_tokens", ()):
        if re.fullmatch(r"<extra_id_\d+>", token["content"]):
            token["special"] = False
    return tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json))


def read_wordpiece(path: Path, settings: JsonObject) -> tokenizers.Tokenizer:
    """Read BERT's vocab.txt."""
    vocab = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    lowercase = bool(settings.get("do_lower_case", True))
    strip = settings.get("strip_accents")
    backend = wordpiece_tokenizer(vocab, lowercase=lowercase, strip_accents=lowercase if strip is None else strip)
    if not settings.get("tokenize_chinese_chars", True):
        backend.normalizer.handle_chinese_chars = False
    return backend


def read_byte_level_bpe(source: Path, settings: JsonObject) -> tokenizers.Tokenizer:
    """Read vocab.json and merges.txt of GPT-2 and RoBERTa (byte-level BPE)."""
    backend = tokenizers.Tokenizer(models.BPE.from_file(str(source / "vocab.json"), str(source / "merges.txt")))
    space = bool(settings.get("add_prefix_space", False))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    backend.decoder = decoders.ByteLevel()
    common = ("<|endoftext|>", "<s>", "</s>", "<pad>", "<unk>", "<mask>")
    names = dict.fromkeys([*(settings.get(role) for role in ROLES), *common])
    backend.add_special_tokens([name for name in names if name and backend.token_to_id(name) is not None])
    return backend


def add_tokens(backend: tokenizers.Tokenizer, source: Path, settings: JsonObject) -> None:
    """Add the tokens listed in `added_tokens_decoder` of the settings or, in older folders, in added_tokens.json."""
    added: dict[int, JsonObject] = {int(i): token for i, token in settings.get("added_tokens_decoder", {}).items()}
    if not added and (source / "added_tokens.json").exists():
        added = {i: {"content": name} for name, i in read_json(source / "added_tokens.json").items()}
    specials = [settings.get(role) for role in ROLES]
    for i, token in sorted(added.items()):
        name = token["content"]
        if re.fullmatch(r"<extra_id_\d+>", name) and backend.token_to_id(name) == i:
            continue
        special = bool(token.get("special", name in specials))
        backend.add_tokens([AddedToken(name, special=special, normalized=bool(token.get("normalized", not special)))])
        if backend.token_to_id(name) != i:
            raise CheckpointError(
                f"{source}: the added token {name} requires the id {i:,}, which is not the next free id."
            )


def find_special_tokens(
    source: Path, hf_config: JsonObject, settings: JsonObject, backend: tokenizers.Tokenizer, kind: Kind
) -> SpecialTokens:
    """Find the special tokens by the tokenizer settings, else by the model config, else by their common names."""

    def token(roles: tuple[str, ...], *common: str | None) -> str:
        ids = (token_id(hf_config, f"{role}_id") for role in roles)
        by_id = (backend.id_to_token(i) for i in ids if i is not None)
        for name in (*(settings.get(role) for role in roles), *by_id, *common):
            if name is not None and backend.token_to_id(name) is not None:
                return str(name)
        raise CheckpointError(f"{source}: the tokenizer has no {roles[0]}.")

    has_json = (source / "tokenizer.json").exists()
    match kind:
        case "decoder":
            eos = token(("eos_token",), "<|endoftext|>", "</s>")
            # Qwen2 has a start token in config.json, and none in the settings: its texts have none. The start token of
            # SmolLM2 begins the messages of a chat: tokenizer.json does not add it to a text.
            adds = settings.get("add_bos_token", adds_special_tokens(backend) if has_json else True)
            has_start = settings.get("bos_token", "") is not None and adds is not False
            start_token = token(("bos_token",), eos) if has_start else eos
            return SpecialTokens(token(("pad_token",), eos), start_token, eos, prefix="")
        case "encoder-decoder":
            pad = token(("pad_token",), "<pad>")
            start = decoder_start_token_id(source)
            bos = pad if start is None else backend.id_to_token(start)
            if bos is None:
                raise CheckpointError(f"{source}: the decoder start token id {start:,} is not in the vocabulary.")
            first = token(("bos_token",), "<s>") if hf_config["model_type"] == "bart" else None
            return SpecialTokens(pad, bos, token(("eos_token",), "</s>"), prefix="", first_token=first)
    mask = settings.get("mask_token")
    if has_json and not adds_special_tokens(backend):
        raise CheckpointError(
            f"{source}: tokenizer.json adds no token at the start of a text (CLS), as models of this kind need it.\n"
            "  Put the tokenizer files that were published with the weights into the folder."
        )
    return SpecialTokens(
        token(("pad_token",), "[PAD]", "<pad>"),
        token(("cls_token", "bos_token"), "[CLS]", "<s>"),
        token(("sep_token", "eos_token"), "[SEP]", "</s>"),
        next((name for name in (mask, "[MASK]", "<mask>") if name and backend.token_to_id(name) is not None), None),
        prefix="",
    )


def adds_special_tokens(backend: tokenizers.Tokenizer) -> bool:
    """Whether a tokenizer adds a token at the start of a text."""
    ids = backend.encode("a").ids
    return ids[:1] != backend.encode("a", add_special_tokens=False).ids[:1]


def token_id(config: JsonObject, key: str) -> int | None:
    """The token id for a key of a config, None if it is not set. Older folders have -1 for a token that is not set."""
    value = config.get(key)
    return value if isinstance(value, int) and value >= 0 else None


def decoder_start_token_id(source: Path) -> int | None:
    """decoder_start_token_id of a folder, None if it is not set."""
    paths = (source / name for name in ("generation_config.json", "config.json"))
    found = (token_id(read_json(path), "decoder_start_token_id") for path in paths if path.exists())
    return next((i for i in found if i is not None), None)


# Export


def export_tokenizer(task: AnyTask) -> Mapping[str, str]:
    """tokenizer.json and tokenizer_config.json with which transformers' AutoTokenizer encodes text as the task does.
    Also the tokenizer of target texts, if it is another one."""
    tokenizer, config = task.tokenizer, task.config
    s, is_encoder = tokenizer.special_tokens, task.kind == "encoder"
    tokenizer_json = exported_json(tokenizer, task)
    bos_role, eos_role = ("cls_token", "sep_token") if is_encoder else ("bos_token", "eos_token")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.max_len,
        "clean_up_tokenization_spaces": False,
        "padding_side": "left" if task.kind == "decoder" else "right",
        "pad_token": s.pad_token,
        bos_role: s.bos_token,
        eos_role: s.eos_token,
        **({"mask_token": s.mask_token} if s.mask_token else {}),
        **({"unk_token": unk} if (unk := unk_token_of(tokenizer_json["model"])) else {}),
        "model_input_names": [
            "input_ids", *(["token_type_ids"] if getattr(config, "n_token_types", 0) > 1 else []), "attention_mask"
        ],
        **(settings_of(task.origin) if task.origin else {}),
    }  # fmt: skip
    files = {"tokenizer.json": tokenizer_json, "tokenizer_config.json": settings}
    if tokenizer.targets is not tokenizer:
        files[TARGET_TOKENIZER_FILE] = exported_json(tokenizer.targets, task)
    return {name: checkpoint.to_json(contents) for name, contents in files.items()}


def settings_of(origin: Origin) -> JsonObject:
    """The chat template of an imported model, and the special tokens that it may name."""
    roles = {role: name for role in ROLES if (name := origin.tokenizer_config.get(role)) is not None}
    return roles | ({"chat_template": origin.chat_template} if origin.chat_template else {})


def exported_json(tokenizer: Tokenizer, task: AnyTask) -> JsonObject:
    """Contents of a tokenizer.json with which `tokenizers` encodes text as a tokenizer of the task does."""
    s = tokenizer.special_tokens
    backend = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    if s.prefix:
        first = [normalizers.Prepend(s.prefix)]
        backend.normalizer = normalizers.Sequence([*first, *([backend.normalizer] if backend.normalizer else [])])
        backend.decoder = decoders.Sequence([backend.decoder, decoders.Strip(s.prefix, 1, 0)])
    backend.post_processor = special_token_template(tokenizer, task)
    tokenizer_json: JsonObject = json.loads(backend.to_str())
    for token in tokenizer_json["added_tokens"]:
        if token["content"] == s.mask_token:
            token["lstrip"] = True  # the space before a word is part of its token, so the mask replaces it too
    return tokenizer_json


def special_token_template(tokenizer: Tokenizer, task: AnyTask) -> processors.TemplateProcessing:
    """Post-processor that adds the special tokens with which a task reads a single text or a pair."""
    s = tokenizer.special_tokens
    if task.source_has_end_token:
        first = [s.first_token] if s.first_token else []
        single, pair = [*first, "$A", s.eos_token], [*first, "$A", s.eos_token, "$B", s.eos_token]
    elif isinstance(task, EncoderTask):
        single = [s.bos_token, "$A", s.eos_token]
        pair = [s.bos_token, "$A", *[s.eos_token] * task.n_separators, "$B:1", f"{s.eos_token}:1"]
    else:
        start = [s.bos_token] if s.bos_token != s.eos_token else []
        single, pair = [*start, "$A"], [*start, "$A", "$B"]
    names = {s.bos_token, s.eos_token, *([s.first_token] if s.first_token else [])}
    ids = [(name, tokenizer.special_id(name)) for name in sorted(names)]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)


def unk_token_of(model: JsonObject) -> str | None:
    """The token for unknown text of the `model` entry of a tokenizer.json, None if there is none."""
    if model["type"] == "Unigram":
        return None if model["unk_id"] is None else str(model["vocab"][model["unk_id"]][0])
    return model.get("unk_token")
