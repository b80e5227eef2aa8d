// The input of an encoder: a text or a pair of texts with special tokens. Counterpart: tasks/encoder.py.

export class EncoderTask {
  constructor(encoder, tokenizer) {
    Object.assign(this, { encoder, tokenizer, header: encoder.header, nSpecials: 2 + encoder.header.n_separators });
  }

  /** Token ids of a text, or of a pair, and the maximum number of tokens if they were cut to it, the longer text first. */
  encode(text, pair) {
    const ids = [this.tokenizer.encode(text), pair ? this.tokenizer.encode(pair) : []];
    const limit = this.header.max_len - this.nSpecials;
    const excess = () => ids[0].length + ids[1].length - limit;
    const isCut = excess() > 0;
    while (excess() > 0) {
      const longer = ids[ids[0].length >= ids[1].length ? 0 : 1];
      const n = Math.min(excess(), Math.max(1, Math.abs(ids[0].length - ids[1].length)));
      longer.splice(longer.length - n, n);
    }
    return { ids, limit: isCut ? limit : null };
  }

  /** Output of the encoder for each token of [CLS] first [SEP], or [CLS] first [SEP] second [SEP]. */
  hidden(first, second = []) {
    const { bos, eos, n_separators: nSeparators } = this.header;
    const before = second.length ? [bos, ...first, ...new Array(nSeparators).fill(eos)] : [bos, ...first, eos];
    const after = second.length ? [...second, eos] : [];
    return this.encoder.hidden([...before, ...after], [...before.map(() => 0), ...after.map(() => 1)]);
  }
}

export function softmax(scores) {
  const top = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const exponentials = Array.from(scores, (x) => Math.exp(x - top));
  const sum = exponentials.reduce((a, b) => a + b, 0);
  return exponentials.map((x) => x / sum);
}

export function mean(rows) {
  return rows[0].map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
}
