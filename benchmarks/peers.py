"""Encoder-decoders of toolkits that need an environment of their own: x-transformers, Joey NMT and EOLE.

Each function takes the sizes (d_model, d_ff, n_heads, n_layers) and the vocabulary size. It returns the model, and the
function (src, tgt) -> mean loss of a batch without padding, of which `tgt` begins with the start token. Dropout and
label smoothing are 0.1. ImportError: the toolkit is not installed.

To install them beside glassformer, without what only their data loaders and servers need:

    pip install x-transformers
    pip install --no-deps joeynmt eole torch-optimi
    pip install matplotlib tensorboard sentencepiece subword-nmt sacremoses importlib_metadata lazy_importer pandas \\
        configargparse pyonmttok rapidfuzz pyahocorasick pyyaml six wrapt
"""

from types import SimpleNamespace

import torch
import torch.nn.functional as F


def x_transformers(sizes, vocab_size, flash=False):
    """XTransformer: post-norm, the embeddings of both sides tied. Its output projection cannot be tied. Dropout is that
    of embeddings, attention weights and feed-forward networks.

    Args:
        flash: torch's fused attention in place of one with explicit weights.
    """
    from x_transformers import XTransformer

    d_model, d_ff, n_heads, n_layers = sizes
    side = {
        "num_tokens": vocab_size, "max_seq_len": 256, "depth": n_layers, "heads": n_heads,
        "attn_dim_head": d_model // n_heads, "attn_flash": flash, "ff_mult": d_ff / d_model, "pre_norm": False,
        "attn_dropout": 0.1, "ff_dropout": 0.1, "emb_dropout": 0.1,
    }  # fmt: skip
    sides = {f"{prefix}_{name}": value for prefix in ("enc", "dec") for name, value in side.items()}
    model = XTransformer(dim=d_model, tie_token_emb=True, **sides)

    def loss(src, tgt):
        memory = model.encoder(src, return_embeddings=True)
        logits = model.decoder.net(tgt[:, :-1], context=memory)  # its own loss has no label smoothing
        return F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), label_smoothing=0.1)

    return model, loss


def x_transformers_flash(sizes, vocab_size):
    """XTransformer with torch's fused attention."""
    return x_transformers(sizes, vocab_size, flash=True)


def joey_nmt(sizes, vocab_size):
    """Joey NMT: post-norm, tied embeddings, its own loss."""
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    d_model, d_ff, n_heads, n_layers = sizes
    side = {
        "type": "transformer", "num_layers": n_layers, "num_heads": n_heads, "hidden_size": d_model, "ff_size": d_ff,
        "dropout": 0.1, "layer_norm": "post", "embeddings": {"embedding_dim": d_model, "scale": True, "dropout": 0.1},
    }  # fmt: skip
    specials = SimpleNamespace(
        unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None, lang_tags=[],
        unk_id=0, pad_id=1, bos_id=2, eos_id=3,
    )  # fmt: skip
    vocab = Vocabulary([f"token{i}" for i in range(vocab_size - 4)], specials)
    model = build_model({"encoder": side, "decoder": side, "tied_embeddings": True, "tied_softmax": True}, vocab, vocab)
    model.loss_function = ("crossentropy", 0.1)

    def loss(src, tgt):
        src_mask = torch.ones(len(src), 1, src.size(1), dtype=torch.bool)
        tgt_mask = torch.ones(len(tgt), 1, tgt.size(1) - 1, dtype=torch.bool)
        src_length = torch.full((len(src),), src.size(1))
        batch = {"src": src, "src_mask": src_mask, "src_length": src_length}
        batch |= {"trg_input": tgt[:, :-1], "trg": tgt[:, 1:], "trg_mask": tgt_mask}
        return model(return_type="loss", **batch)[0] / tgt[:, 1:].numel()

    return model, loss


def eole(sizes, vocab_size):
    """EOLE: pre-norm (its decoder has no other), tied embeddings, its own loss."""
    from eole.config.models import TransformerModelConfig
    from eole.config.training import TrainingConfig
    from eole.models.model import EncoderDecoderModel
    from eole.utils.loss import LossCompute

    d_model, d_ff, n_heads, n_layers = sizes
    config = TransformerModelConfig(
        hidden_size=d_model, word_vec_size=d_model, layers=n_layers, transformer_ff=d_ff, heads=n_heads,
        add_qkvbias=True, add_ffnbias=True, share_embeddings=True, share_decoder_embeddings=True,
        embeddings={"word_vec_size": d_model, "position_encoding_type": "SinusoidalInterleaved"},
    )  # fmt: skip
    training = TrainingConfig(
        dropout=[0.1], attention_dropout=[0.1], label_smoothing=0.1, param_init_method="xavier_uniform", optim="adam",
        log_attention_entropy=False,
    )  # fmt: skip
    vocab = {"<blank>": 0} | {f"token{i}": i for i in range(1, vocab_size)}
    vocabs = {"src": vocab, "tgt": vocab, "specials": {"pad_token": "<blank>"}}
    model = EncoderDecoderModel.for_training(config, vocabs, training)
    compute = LossCompute.from_config(SimpleNamespace(model=config, training=training), model, vocabs)

    def loss(src, tgt):
        lengths = torch.full((len(src),), src.size(1))
        batch = {"src": src, "tgt": tgt, "srclen": lengths, "cid": [], "cid_line_number": []}
        return compute(batch, *model(src, tgt, lengths))[0] / tgt[:, 1:].numel()

    return model, loss


PEERS = {
    "x-transformers": ("x-transformers", x_transformers),
    "x-transformers flash": ("x-transformers", x_transformers_flash),
    "Joey NMT": ("joeynmt", joey_nmt),
    "EOLE": ("eole", eole),
}
"""Name of each peer, its distribution and its function."""
