// A label or a number for a text or a pair of texts. Counterparts: tasks/encoder.py, tasks/classification.py, tasks/regression.py.

export class Labels {
  constructor(encoder, tokenizer) {
    Object.assign(this, { encoder, tokenizer, header: encoder.header });
  }

  /** Token ids and types of a text or a pair, and whether their ends were cut off. */
  inputs(text, pair) {
    const { max_len: maxLength, n_separators: nSeparators, bos, eos } = this.header;
    const first = this.tokenizer.encode(text);
    const second = pair ? this.tokenizer.encode(pair) : [];
    let excess = first.length + second.length + 2 + nSeparators - maxLength;
    const isCut = excess > 0;
    while (excess > 0) {
      const longer = first.length >= second.length ? first : second;
      const n = Math.min(excess, Math.max(1, Math.abs(first.length - second.length)));
      longer.splice(longer.length - n, n);
      excess -= n;
    }
    const before = second.length ? [bos, ...first, ...new Array(nSeparators).fill(eos)] : [bos, ...first, eos];
    const after = second.length ? [...second, eos] : [];
    return { ids: [...before, ...after], types: [...before.map(() => 0), ...after.map(() => 1)], isCut };
  }

  /** The labels with their probabilities, the most probable first; for regression the number. */
  predict(text, pair) {
    const { labels, pooling, task, max_len: maxLength, n_separators: nSeparators } = this.header;
    const { ids, types, isCut } = this.inputs(text, pair);
    const hidden = this.encoder.hidden(ids, types);
    const mean = () => hidden[0].map((_, i) => hidden.reduce((sum, row) => sum + row[i], 0) / hidden.length);
    const outputs = this.encoder.outputs(pooling === "first" ? hidden[0] : mean());
    const limit = isCut ? maxLength - 2 - nSeparators : null;
    if (task === "regression") {
      const [low, high] = labels.map(Number);
      return { labels: [{ label: "number", score: low + (high - low) * (outputs[0] + 0.5) }], limit };
    }
    const logits = Array.from(outputs.subarray(0, labels.length));
    const top = Math.max(...logits);
    const exponentials = logits.map((x) => Math.exp(x - top));
    const sum = exponentials.reduce((a, b) => a + b, 0);
    const rows = labels.map((label, i) => ({ label, score: exponentials[i] / sum }));
    return { labels: rows.sort((a, b) => b.score - a.score), limit };
  }
}
