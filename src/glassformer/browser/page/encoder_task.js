// The input of an encoder: a text or a pair of texts with special tokens. Counterpart: tasks/encoder.py.

import { attentionMap, attentionOf, canSwitch, layerOutputs, lensOf, packed, rollout, stepsOf, streamOf, vectorsOf } from "./record.js";
import { characterSpans } from "./text.js";

export class EncoderTask {
  /** @param {Encoder} encoder @param {Tokenizer} tokenizer */
  constructor(encoder, tokenizer) {
    this.encoder = encoder;
    this.tokenizer = tokenizer;
    this.header = encoder.header;
    this.nSpecials = 2 + encoder.header.n_separators;
  }

  /**
   * Token ids of a text, or of a pair, and the maximum number of tokens if they were cut to it, the longer text first.
   * @param {string} text @param {string} [pair]
   */
  encode(text, pair) {
    const ids = [this.tokenizer.encode(text), pair ? this.tokenizer.encode(pair) : []];
    return { ids, limit: this.shorten(ids) };
  }

  /**
   * Cut two lists of tokens to what the model can read, the longer one first. Returns the maximum number of tokens if
   * they were cut.
   * @param {unknown[][]} lists
   */
  shorten(lists) {
    const limit = this.header.max_len - (lists[1].length ? this.nSpecials : 2);
    const excess = () => lists[0].length + lists[1].length - limit;
    const isCut = excess() > 0;
    while (excess() > 0) {
      const longer = lists[lists[0].length >= lists[1].length ? 0 : 1];
      const n = Math.min(excess(), Math.max(1, Math.abs(lists[0].length - lists[1].length)));
      longer.splice(longer.length - n, n);
    }
    return isCut ? limit : null;
  }

  /**
   * [CLS] first [SEP], or [CLS] first [SEP] second [SEP]: two lists, of which the second may be empty.
   * @template T @param {T[]} first @param {T[]} second @param {T} bos @param {T} eos @returns {[T[], T[]]}
   */
  withSpecials(first, second, bos, eos) {
    const before = second.length ? [bos, ...first, ...new Array(this.header.n_separators).fill(eos)] : [bos, ...first, eos];
    return [before, second.length ? [...second, eos] : []];
  }

  /**
   * Output of the encoder for each token of one or two texts.
   * @param {number[]} first @param {number[]} second
   */
  hidden(first, second = []) {
    return this.encoder.hidden(...this.read(first, second));
  }

  /**
   * Token ids with special tokens, and their types.
   * @param {number[]} first @param {number[]} second @returns {[ids: number[], types: number[]]}
   */
  read(first, second) {
    const [before, after] = this.withSpecials(first, second, this.header.bos, this.header.eos);
    return [[...before, ...after], [...before.map(() => 0), ...after.map(() => 1)]];
  }

  /**
   * Tokens [id, span] of a text that begins at a position.
   * @param {string} text @param {number} begin @returns {SpanToken[]}
   */
  tokensOf(text, begin = 0) {
    const { ids, spans } = this.tokenizer.offsets(text);
    return ids.map((id, i) => [id, [spans[i][0] + begin, spans[i][1] + begin]]);
  }

  /**
   * Tokens [id, span] of one or two texts, which a tab separates unless the model was trained on single ones, and the
   * maximum number of tokens if some were cut off.
   * @param {string} text @returns {{ lists: SpanToken[][], limit: number | null }}
   */
  tokens(text) {
    const [first, ...rest] = this.header.inputs?.length === 1 ? [text] : text.split("\t");
    const lists = [this.tokensOf(first), rest.length ? this.tokensOf(rest.join("\t"), first.length + 1) : []];
    return { lists, limit: this.shorten(lists) };
  }

  /**
   * What the predictions are (see inspection/inspect.py), and rows of position, token, log-probability, rank, and best
   * candidates.
   * @param {Float32Array[]} _rows @param {Side} _side @returns {[predicts: string, predictions: Prediction[]]}
   */
  predictions(_rows, _side) {
    return ["nothing", []];
  }

  /**
   * The output of the task in short, from its predictions.
   * @param {Prediction[]} predictions @param {Side} _side @returns {string}
   */
  outputOf(predictions, _side) {
    return predictions.map(([, , , , best]) => best[0][0]).join(" ");
  }

  /**
   * What happens inside of the model for a text, as a record of `glassformer inspect`. `off`: heads whose outputs are
   * 0.
   * @param {string} text @param {{ off?: HeadOff[] }} options
   */
  record(text, { off = [] } = {}) {
    const { encoder, header, tokenizer } = this;
    const { lists, limit } = this.tokens(text);
    const [firstIds, secondIds] = lists.map((list) => list.map(([id]) => id));
    const [firstSpans, secondSpans] = lists.map((list) => list.map(([, span]) => span));
    const [ids, types] = this.read(firstIds, secondIds);
    const spans = this.withSpecials(firstSpans, secondSpans, null, null).flat();
    const n = ids.length;
    const side = { text, ids, tokens: ids.map((id) => tokenizer.tokenText(id)), offsets: spans };
    const predict = (rows) => this.predictions(rows, side);
    const output = (predictions) => this.outputOf(predictions, side);
    const unchanged = off.length ? output(predict(encoder.hidden(ids, types))[1]) : null;
    return encoder.without(off, () => {
      const [predicts, predictions] = predict(encoder.hidden(ids, types));
      const found = output(predictions);
      encoder.read(encoder.sourceReader, ids, types);
      const attention = header.read_source.attentions.map((x) => attentionMap(encoder, x, n, n, "text"));
      const stream = { text: streamOf(encoder.sourceReader, n) };
      const vectors = { text: vectorsOf(encoder.sourceReader, n) };
      const hasLens = !["span", "nothing"].includes(predicts) && Object.keys(layerOutputs(encoder.sourceReader, n)[0]).length > 0;
      this.recorded = { off, ids, types, side, hasLens, size: predicts === "words" ? header.vocab_size * header.sizes.d_model : 0 };
      const whole = rollout(attention);
      return {
        format: 1, task: header.task, family: header.family, sizes: header.sizes, sides: { text: { ...side, offsets: characterSpans(text, spans) } },
        notes: [limit !== null && `The text is longer than the model can read: its first ${limit} tokens are shown.`].filter(Boolean),
        vectors, attention, rollout: { encoder: whole }, stream, lens: {}, predictions, predicts, first_predicted: 0,
        answer: predicts === "span" ? found : "", beam: [], best_path: [], alignment: null, agreement: null,
        saliency: predicts === "label" ? { "roll-out": this.pooled(whole) } : {},
        live: { off, unchanged, output: found, canSwitch: canSwitch([header.read_source]), hasLens },
      };
    });
  }

  /** The predictions of each layer for the last record. */
  lens() {
    const { encoder, recorded: { off, ids, types, side, hasLens, size } } = this;
    if (!hasLens) return {};
    return encoder.without(off, () => {
      encoder.read(encoder.sourceReader, ids, types);
      const [outputs] = layerOutputs(encoder.sourceReader, ids.length);
      return lensOf(outputs, size, (rows) => this.predictions(encoder.lens ? encoder.lens.apply(rows) : rows, side)[1]);
    });
  }

  /**
   * The matrices of a head for the last record.
   * @param {HeadName} name
   */
  head({ kind, layer, head }) {
    const { encoder, recorded: { off, ids, types } } = this;
    return encoder.without(off, () => {
      encoder.read(encoder.sourceReader, ids, types);
      return stepsOf(encoder, attentionOf(this.header.read_source, kind, layer), head, ids.length, ids.length);
    });
  }

  /**
   * The mean of the rows of a matrix, or its first row, as the model's pooling.
   * @param {Packed} matrix
   */
  pooled({ shape: [n], values }) {
    const rows = Array.from({ length: n }, (_, i) => values.subarray(i * n, (i + 1) * n));
    return packed(Object.assign(this.header.pooling === "first" ? rows[0].slice() : mean(rows), { shape: [n] }));
  }
}

/** @param {ArrayLike<number>} scores */
export function softmax(scores) {
  const all = Array.from(scores);
  const top = all.reduce((a, b) => Math.max(a, b), -Infinity);
  const exponentials = all.map((x) => Math.exp(x - top));
  const sum = exponentials.reduce((a, b) => a + b, 0);
  return exponentials.map((x) => x / sum);
}

/** @param {Float32Array[]} rows */
export function mean(rows) {
  return rows[0].map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
}
