"""Speed of a BERT encoder in int8 and in fp32, and of ONNX Runtime in int8: lines per second, tokenization included.

MiniLM's shape (6 layers, d_model 384, 12 heads, d_ff 1536, vocabulary 30,522) with random weights, on 1,000 lines.
ONNX Runtime gets the graph of `glassformer export --to onnx`, fused by onnxruntime.transformers (attention included)
and then quantized dynamically; the same batches, and the same number of threads.

usage: python -m benchmarks.encoder_speed TEXT   (TEXT: a file with lines of text)
"""

import itertools
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import quantize_dynamic
from onnxruntime.transformers.optimizer import optimize_model

from benchmarks.machine import alternate, save
from glassformer.corpora.lines import read_lines
from glassformer.data.batch import pad
from glassformer.generate.batches import batches_by_length
from glassformer.interop.onnx import MODEL, save_encoder
from glassformer.models.bert import Bert, BertConfig
from glassformer.tasks.encoder import BATCH_TOKENS
from glassformer.tasks.feature_extraction import SentenceEmbedder
from glassformer.tokens.tokenizer import Tokenizer

N_LINES, VOCAB, ROUNDS = 1000, 30_522, 5


def onnx_session(task, folder):
    """ONNX Runtime in int8."""
    c = task.config
    save_encoder(task, folder)
    fused = optimize_model(str(folder / MODEL), model_type="bert", num_heads=c.n_heads, hidden_size=c.d_model)
    fused.save_model_to_file(str(folder / "fp32"))
    assert fused.get_fused_operator_statistics()["Attention"] == c.n_layers
    options = {"DefaultTensorType": onnx.TensorProto.FLOAT}
    quantize_dynamic(folder / "fp32", folder / "int8", extra_options=options)
    threads = onnxruntime.SessionOptions()
    threads.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(str(folder / "int8"), threads)


def embed(task, session, texts):
    """What the task computes, by ONNX Runtime."""
    rows = [task.add_special_tokens(*row)[0] for row in task.encode_texts(texts)]
    vectors = torch.empty(len(rows), task.config.d_model)
    for indices in batches_by_length([len(row) for row in rows], BATCH_TOKENS):
        ids = pad([rows[i] for i in indices], task.tokenizer.pad_id).numpy()
        mask = (ids != task.tokenizer.pad_id).astype(np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = session.run(None, inputs)
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        vectors[indices] = torch.nn.functional.normalize(torch.from_numpy(mean).float(), dim=-1)
    return vectors


def main() -> None:
    torch.manual_seed(1)
    texts = list(itertools.islice(read_lines(Path(sys.argv[1])), N_LINES))
    tokenizer = Tokenizer.train(texts, vocab_size=4000)
    config = BertConfig(
        vocab_size=VOCAB, d_model=384, n_heads=12, d_ff=1536, n_layers=6, max_len=512, pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id, head="none", pooler=False,
    )  # fmt: skip
    task = SentenceEmbedder(Bert(config), tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        session = onnx_session(task, Path(folder))
    outputs = {}

    def extract(precision: str) -> None:
        task.precision = precision
        outputs[precision] = task(texts)

    tasks = {precision: lambda p=precision: extract(p) for precision in ("fp32", "int8")}
    tasks["onnxruntime int8"] = lambda: outputs.update({"onnxruntime int8": embed(task, session, texts)})
    seconds = alternate(tasks, ROUNDS, pause_s=0.3)
    cosines = {name: torch.cosine_similarity(outputs["fp32"], outputs[name]).min() for name in outputs}
    record = {
        "threads": torch.get_num_threads(),
        "lines": len(texts),
        "lines_per_s": {name: round(len(texts) / s) for name, s in seconds.items()},
        "ratio": round(seconds["fp32"] / seconds["int8"], 2),
        "ratio_to_onnxruntime_int8": round(seconds["onnxruntime int8"] / seconds["int8"], 2),
        "smallest_cosine": {name: round(float(cosine), 5) for name, cosine in cosines.items()},
    }
    print(record)
    save("encoder_speed", record, "python -m benchmarks.encoder_speed TEXT")


if __name__ == "__main__":
    main()
