"""Small models of the families with random weights."""

import torch

from glassformer.models.gpt2 import Gpt2, Gpt2Config
from glassformer.models.initialization import BRANCH_ENDS
from glassformer.models.llama import Llama, LlamaConfig
from glassformer.models.t5 import T5, T5Config
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.recording.precision import runtime_of

VOCAB, MAX_LEN = 331, 56
LAYERS = dict(n_encoder_layers=2, n_decoder_layers=2)


def transformer(**options):
    config = TransformerConfig(vocab_size=VOCAB, d_model=44, n_heads=2, d_ff=97, max_len=MAX_LEN, **LAYERS, **options)
    return Transformer(config)


def gpt2(**options):
    return Gpt2(Gpt2Config(vocab_size=VOCAB, d_model=44, n_heads=2, d_ff=97, n_layers=2, max_len=MAX_LEN, **options))


def t5(n_heads=3, d_head=16, **options):
    config = T5Config(vocab_size=VOCAB, d_model=44, n_heads=n_heads, d_head=d_head, d_ff=97, max_len=MAX_LEN,
                      max_distance=11, n_buckets=8, **LAYERS, **options)  # fmt: skip
    return T5(config)


def llama(**options):
    config = LlamaConfig(vocab_size=VOCAB, d_model=44, n_heads=4, n_kv_heads=2, d_head=12, d_ff=97, n_layers=2,
                         max_len=MAX_LEN, **options)  # fmt: skip
    return Llama(config)


MODELS = {
    "transformer": transformer,
    "transformer, pre-norm": lambda: transformer(pre_norm=True),
    "transformer, rotary": lambda: transformer(pre_norm=True, rotary=True),
    "Marian": lambda: transformer(sinusoid_layout="concat", output_bias=True, activation="silu"),
    "transformer, gelu": lambda: transformer(activation="gelu", scale_embedding=False),
    "T5": t5,
    "T5 v1.1": lambda: t5(activation="gated_gelu", tie_embeddings=False, scale_output=False),
    "T5, heads of 5": lambda: t5(n_heads=11, d_head=5),  # 55 features: with those that the kernel reads beyond, 70
    "GPT-2": gpt2,
    "Llama": llama,
    "Qwen2": lambda: llama(qkv_bias=True, tie_embeddings=True),
}


def model_of(name):
    """A model whose outputs depend on all its weights: gains of norms and biases are random too, and branches of a
    Transformer large."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    has_small_branches = isinstance(model, Transformer) and model.config.pre_norm
    for key, p in model.named_parameters():
        if p.dim() == 1:
            torch.nn.init.normal_(p, mean=float(key.endswith("norm.weight")), std=0.3)
        elif has_small_branches and key.endswith(BRANCH_ENDS):
            torch.nn.init.xavier_uniform_(p)
    return model


def verify(model):
    """Check that the programs of a model compute what the model computes, with PyTorch in place of the kernels."""
    programs = runtime_of(model, None, is_quantized=False)
    src = torch.randint(3, VOCAB, (2, 7), generator=torch.Generator().manual_seed(1))
    lengths = [7, 4] if model.kind == "encoder-decoder" else [7, 7]
    src[1, lengths[1] :] = model.config.pad_id
    with torch.inference_mode():
        state, _ = programs.start([row[:n].tolist() for row, n in zip(src, lengths, strict=True)])
        expected_state, last = model.start(src)
        for _ in range(3):
            logits = torch.from_numpy(programs.logits(last.numpy(), state))
            torch.testing.assert_close(logits, model.step(last, expected_state), rtol=1e-4, atol=1e-4)
            last = torch.randint(3, VOCAB, last.shape)
